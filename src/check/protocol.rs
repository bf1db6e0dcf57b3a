//! Protocol rules: requirements of servers that schemas cannot express.
//!
//! Each file declares and checks one rule. A new rule needs a file in this folder, a `mod` line for
//! the file, a line in [`ALL`], and test cases. Each rule lists its evidence: the source of the
//! fact and the date.

mod cached_content;
mod call_arguments;
mod call_id;
mod conditions;
mod context_window;
mod continued_response;
mod empty_content;
mod empty_error_result;
mod exclusive_members;
mod item_id;
mod json_mode;
mod limit;
mod media_type;
mod missing_companion;
mod taken;
mod model_parameter;
mod pairing;
mod duplicate_call_id;
mod duplicate_result;
mod orphan_result;
mod participant_name;
mod result_order;
mod result_role;
mod sampling;
mod system_message;
mod tools;
mod beta_header;
mod builtin_tool;
mod choice_without_tools;
mod duplicate_tool;
mod forced_choice;
mod pattern;
mod schemas;
mod moonshot_schema;
mod citations;
mod references;
mod schema_keyword;
mod strict_schema;
mod tool_name;
mod tool_schema;
mod turn_order;
mod unanswered_call;
mod unknown_choice;
mod unsupported_choice;
mod value;
mod constraint;
mod context_edits;
mod item_kind;
mod call_namespace;
mod reserved_prompt;
mod safety_check;
mod cache_breakpoints;
mod cache_lost;
mod late_breakpoint;
mod media_limit;
mod model_media;
mod media_source;
mod model_prefill;
mod prefill;
mod thinking_budget;
mod thinking_sampling;
mod thinking_signature;
mod thinking_turn;

pub(crate) use moonshot_schema::MOONSHOT_RESERVED;
pub(crate) use pattern::{Engine, has_lookaround, unread, unread_by_claude, unread_by_grammar};
pub(crate) use schemas::patterns_of;
pub(crate) use strict_schema::{
    ANTHROPIC_FORMAT, ANTHROPIC_OMITS, ANTHROPIC_REFUSES, FORMATS, OPENAI_REFUSES,
};
pub(crate) use tool_schema::unread_by_deepseek;

use super::Problem;
use super::found::{BodyRule, Found};
use super::subject::Subject;
use crate::diag::Rule;

/// Declares the rule in a file:
/// `body_rule! { Error "code", "summary", "page", seen "2026-11" { "ADDRESS": "shows", } }`. The
/// file's function `check` implements the rule. A rule that applies only to some wire formats lists
/// them after the page: `of AnthropicMessages, OpenAiChat;`.
macro_rules! body_rule {
    ($severity:ident $code:literal, $summary:literal, $page:expr,
        $(of $($wire:ident),+;)?
        $(seen $seen:literal { $($source:literal: $shows:literal,)+ })+
    ) => {
        /// The rule in this file.
        pub(super) static RULE: $crate::check::found::BodyRule = $crate::check::found::BodyRule {
            rule: $crate::diag::Rule::new($code, $crate::diag::Severity::$severity, $summary, $page)
                .lowerable()
                .resting_on(&[$($($crate::diag::Evidence::new($source, $shows, $seen),)+)+]),
            of: &[$($($crate::provider::WireFormat::$wire),+)?],
            check,
        };
    };
}
use body_rule;

/// The number of rules. Each rule has its own bit in [`Rules`].
pub(super) const COUNT: usize = ALL.len();

/// All rules, in the order in which they run.
const ALL: &[&BodyRule] = &[
    &unanswered_call::RULE,
    &orphan_result::RULE,
    &duplicate_call_id::RULE,
    &media_source::RULE,
    &media_limit::RULE,
    &citations::RULE,
    &exclusive_members::RULE,
    &missing_companion::RULE,
    &json_mode::RULE,
    &limit::RULE,
    &context_window::RULE,
    &duplicate_result::RULE,
    &call_id::RULE,
    &call_arguments::RULE,
    &call_namespace::RULE,
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
    &constraint::RULE,
    &context_edits::RULE,
    &item_kind::RULE,
    &beta_header::RULE,
    &reserved_prompt::RULE,
    &safety_check::RULE,
];

/// Returns the declarations of all rules.
pub(crate) fn rules() -> impl Iterator<Item = &'static Rule> {
    ALL.iter().map(|rule| &rule.rule)
}

/// Returns the number of problems that the rules find, not counting violations of facts about
/// models.
pub(super) fn count_beside_models(subject: &Subject<'_>) -> usize {
    let mut found = Found::new(ALL[0]);
    for rule in ALL
        .iter()
        .filter(|rule| rule.rule.code != model_parameter::RULE.rule.code)
    {
        found.next(rule);
        rule.run(subject, &mut found);
    }
    found.len()
}

/// Returns `true` if the rule with this index finds nothing in a body.
pub(super) fn is_silent(rule: usize, subject: &Subject<'_>) -> bool {
    let mut found = Found::new(ALL[rule]);
    ALL[rule].run(subject, &mut found);
    found.is_empty()
}

/// A set of rules, with one bit for each index.
pub(super) type Rules = u64;

/// All rules.
pub(super) const EVERY: Rules = (1 << COUNT) - 1;

/// Returns the problems that rules find in a body, in rule order. If the history does not conform
/// to its schema (`is_readable` is `false`), calls and results may not be recognised. Problems from
/// rules that read the history are then dropped, because the schema already reports their cause.
pub(super) fn check(rules: Rules, subject: &Subject<'_>, is_readable: bool) -> Vec<Problem> {
    let mut found = Found::new(ALL[0]);
    for (_, rule) in ALL
        .iter()
        .enumerate()
        .filter(|(number, _)| rules & (1 << number) != 0)
    {
        found.next(rule);
        let before = found.len();
        if subject.reads_history(|| rule.run(subject, &mut found)) && !is_readable {
            found.doubt_in_history(before);
        }
    }
    if found.is_empty() {
        Vec::new()
    } else {
        found.told(subject)
    }
}
