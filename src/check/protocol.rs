//! Rules of protocols: what schemas cannot say, and servers refuse all the same.
//!
//! One file per rule, with its declaration and its check. A new rule is a file here, a line in [`ALL`], and its cases. Each lists its
//! evidence: where the fact was found, and when.

mod builtin_tool;
mod cache_breakpoints;
mod cache_lost;
mod cached_content;
mod call_arguments;
mod call_id;
mod choice_without_tools;
mod citations;
mod conditions;
mod continued_response;
mod duplicate_call_id;
mod duplicate_result;
mod duplicate_tool;
mod empty_content;
mod empty_error_result;
mod exclusive_members;
mod forced_choice;
mod item_id;
mod json_mode;
mod late_breakpoint;
mod limit;
mod media_source;
mod media_type;
mod missing_companion;
mod model_media;
mod model_parameter;
mod model_prefill;
mod orphan_result;
mod pairing;
mod participant_name;
mod prefill;
mod result_order;
mod result_role;
mod sampling;
mod schema_keyword;
mod schemas;
mod strict_schema;
mod system_message;
mod thinking_budget;
mod thinking_sampling;
mod thinking_signature;
mod thinking_turn;
mod tool_name;
mod tool_schema;
mod tools;
mod turn_order;
mod unanswered_call;
mod unknown_choice;
mod unsupported_choice;
mod value;

use super::Problem;
use super::found::Found;
use super::subject::Subject;
use crate::diag::Rule;
use crate::provider::WireFormat;

/// A rule that is asked of each body.
pub(crate) struct BodyRule {
    /// Its declaration.
    pub(crate) rule: Rule,
    /// What its verdict depends on.
    pub(crate) scope: Scope,
    /// Finds what is wrong.
    pub(crate) check: Check,
    /// Finds what is wrong with the history alone, for a rule that also looks beyond it.
    pub(crate) of_history: Option<Check>,
}

/// Looks at a body.
type Check = for<'b> fn(&Subject<'b>, &mut Found<'b>);

/// What the verdict of a rule depends on, beside wire format, server, version of the API, model, and whether the server holds
/// a part of the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// The history alone: bodies that share it share the verdict.
    History,
    /// The tools alone: so do bodies that share those.
    Tools,
    /// The members beside the conversation, which are history and instructions: so do bodies that share those.
    Options,
    /// The history, and [what may stand beside it](beside_history).
    Body,
}

impl Scope {
    /// All but that of the history.
    pub(crate) const OF_OTHERS: &'static [Scope] = &[Scope::Tools, Scope::Options, Scope::Body];
}

/// The members beside the history and the model that rules of [`Scope::Body`] look at: they see no others.
pub(super) fn beside_history(wire: WireFormat) -> &'static [&'static str] {
    match wire {
        WireFormat::AnthropicMessages => &["system", "tools", "thinking", "cache_control", "compaction"],
        WireFormat::OpenAiResponses => {
            &["store", "text", "previous_response_id", "conversation", "prompt", "compaction"]
        }
        WireFormat::GoogleGenerateContent => &[
            "systemInstruction",
            "system_instruction",
            "tools",
            "toolConfig",
            "tool_config",
            "cachedContent",
            "cached_content",
            "compaction",
        ],
        _ => &["response_format", "thinking", "chat_template_kwargs", "prompt", "compaction"],
    }
}

/// Declares the rule of a file: `body_rule! { History, Error "code", "summary", "page", seen "2026-11" { "ADDRESS": "shows", } }`,
/// checked by the function `check`. One that looks at the history and beyond has a function for each: `Body and of_history`.
macro_rules! body_rule {
    (Body and $of_history:ident, $($rest:tt)+) => {
        body_rule!(@Body, Some($of_history), $($rest)+);
    };
    (Options and $of_history:ident, $($rest:tt)+) => {
        body_rule!(@Options, Some($of_history), $($rest)+);
    };
    ($scope:ident, $($rest:tt)+) => {
        body_rule!(@$scope, None, $($rest)+);
    };
    (@$scope:ident, $of_history:expr, $severity:ident $code:literal, $summary:literal, $page:expr,
        $(seen $seen:literal { $($source:literal: $shows:literal,)+ })+
    ) => {
        /// The rule; its page is below.
        pub(super) static RULE: $crate::check::protocol::BodyRule = $crate::check::protocol::BodyRule {
            rule: $crate::diag::Rule::new($code, $crate::diag::Severity::$severity, $summary, $page)
                .lowerable()
                .resting_on(&[$($($crate::diag::Evidence::new($source, $shows, $seen),)+)+]),
            scope: $crate::check::protocol::Scope::$scope,
            check,
            of_history: $of_history,
        };
    };
}
use body_rule;

/// Every rule, in the order in which they are asked.
static ALL: &[&BodyRule] = &[
    &unanswered_call::RULE,
    &orphan_result::RULE,
    &duplicate_call_id::RULE,
    &media_source::RULE,
    &citations::RULE,
    &exclusive_members::RULE,
    &missing_companion::RULE,
    &json_mode::RULE,
    &limit::RULE,
    &duplicate_result::RULE,
    &call_id::RULE,
    &call_arguments::RULE,
    &empty_error_result::RULE,
    &result_order::RULE,
    &result_role::RULE,
    &participant_name::RULE,
    &item_id::RULE,
    &turn_order::RULE,
    &system_message::RULE,
    &empty_content::RULE,
    &prefill::RULE,
    &continued_response::RULE,
    &duplicate_tool::RULE,
    &tool_name::RULE,
    &tool_schema::RULE,
    &strict_schema::RULE,
    &schema_keyword::RULE,
    &builtin_tool::RULE,
    &choice_without_tools::RULE,
    &unknown_choice::RULE,
    &forced_choice::RULE,
    &unsupported_choice::RULE,
    &model_parameter::RULE,
    &model_prefill::RULE,
    &model_media::RULE,
    &thinking_budget::RULE,
    &thinking_sampling::RULE,
    &thinking_signature::RULE,
    &thinking_turn::RULE,
    &cache_breakpoints::RULE,
    &cache_lost::RULE,
    &late_breakpoint::RULE,
    &cached_content::RULE,
    &sampling::RULE,
];

/// The declarations of all rules.
pub(crate) fn rules() -> impl Iterator<Item = &'static Rule> {
    ALL.iter().map(|rule| &rule.rule)
}

/// How much the rules find that look beside the conversation alone, what is known of models left out.
pub(super) fn count_options(subject: &Subject<'_>) -> usize {
    let mut found = Found::new(ALL[0]);
    let of_options =
        ALL.iter().filter(|rule| rule.scope == Scope::Options && rule.rule.code != model_parameter::RULE.rule.code);
    for rule in of_options {
        found.next(rule);
        (rule.check)(subject, &mut found);
    }
    found.len()
}

/// What the rules of some scopes find in a body, in the order of the rules.
pub(super) fn check(subject: &Subject<'_>, scopes: &[Scope]) -> Vec<Problem> {
    let mut found = Found::new(ALL[0]);
    for rule in ALL {
        found.next(rule);
        match rule.of_history {
            _ if scopes.contains(&rule.scope) => (rule.check)(subject, &mut found),
            Some(check) if scopes.contains(&Scope::History) => check(subject, &mut found),
            _ => {}
        }
    }
    if found.is_empty() { Vec::new() } else { found.told(subject) }
}
