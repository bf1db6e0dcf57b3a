//! Tool lists from any source, checked for each provider before any request is made.
//!
//! Input: a JSON document with tools ([`ToolList::of`]), or an MCP server's list. Output: a
//! [`Matrix`] of tools and providers. Each tool is accepted, silently weakened, doubtful, or
//! rejected, with the responsible rule and the rule's evidence. A cell is the result of checking
//! the smallest request with the tool against the schemas and rules for all bodies
//! ([`Judge::problems`]), so it cannot disagree with other checks of the same body. [`lowered`]
//! writes the most similar tools that a provider accepts. This module neither accesses files nor
//! displays results.

mod read;
mod target;
pub mod lower;

use std::collections::HashMap;

use rayon::prelude::*;
use serde_json::Value;

use crate::compile::{Compiler, Judge, LintTarget};
use crate::conversation::NameRule;
use crate::diag::{Evidence, Rule, Severity};
use crate::json::Pointer;
use crate::lint::{Problem, Server};
use crate::tokens::{PartKind, TokenEstimate};
use lower::{Loss, Speech, lower};
pub use read::ToolList;
pub use target::{Form, ToolTarget};

/// A tool in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct ListedTool {
    /// The tool name.
    pub name: String,
    /// The description of the tool.
    pub description: String,
    /// The tool's argument schema, in any form.
    pub schema: Value,
}

/// The status of a tool for a provider, from harmless to severe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// No rule objects to the tool.
    Accepted,
    /// The provider ignores part of the schema without notice.
    Weakened,
    /// Sources disagree on whether the provider accepts the tool.
    Doubtful,
    /// The tool is rejected, together with the whole request.
    Rejected,
}

impl Status {
    /// All statuses.
    pub const ALL: [Status; 4] = [
        Status::Accepted,
        Status::Weakened,
        Status::Doubtful,
        Status::Rejected,
    ];

    /// Returns the name of the status.
    pub fn name(self) -> &'static str {
        match self {
            Status::Accepted => "accepted",
            Status::Weakened => "weakened",
            Status::Doubtful => "doubtful",
            Status::Rejected => "rejected",
        }
    }
}

/// A rule's objection to a tool or a list, as sent to one provider.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Objection {
    /// The rule that objects.
    pub rule: &'static Rule,
    /// The resulting status of the tool.
    pub status: Status,
    /// The location in the tool's declaration, in the provider's form. For an objection to the
    /// list, the location in the request.
    pub pointer: String,
    /// The problem in words.
    pub message: String,
    /// The next step, if there is advice.
    pub help: Option<String>,
    /// The rule's sources for this message; empty if the rule does not assign sources to its
    /// messages.
    pub sources: &'static [&'static str],
}

/// The result for a tool and a provider.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Verdict {
    /// The status of the tool.
    pub status: Status,
    /// The reasons for the status.
    pub objections: Vec<Objection>,
    /// The parts of the schema that the provider silently ignores.
    pub dropped: Vec<Loss>,
    /// The number of tokens in the tool's declaration.
    pub tokens: u64,
}

/// One provider's results for all tools.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Column {
    /// The provider that the tools are checked for.
    pub target: ToolTarget,
    /// The result for each tool, in list order.
    pub verdicts: Vec<Verdict>,
    /// The objections to the list as a whole.
    pub of_list: Vec<Objection>,
    /// The number of tokens in the whole list.
    pub tokens: u64,
    /// `true` if the tokens were counted with the provider's own tokenizer; otherwise, their number
    /// is an estimate.
    pub is_tokenized: bool,
}

impl Column {
    /// Returns `true` if the provider rejects a request with these tools.
    pub fn is_refused(&self) -> bool {
        self.of_list
            .iter()
            .any(|objection| objection.status == Status::Rejected)
            || self
                .verdicts
                .iter()
                .any(|verdict| verdict.status == Status::Rejected)
    }

    /// Returns the number of tools with this status.
    pub fn with(&self, status: Status) -> usize {
        self.verdicts
            .iter()
            .filter(|verdict| verdict.status == status)
            .count()
    }
}

/// All providers' results for all tools.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Matrix {
    /// The tools, one per row.
    pub tools: Vec<ListedTool>,
    /// The results, one column per provider.
    pub columns: Vec<Column>,
}

impl Matrix {
    /// Checks tools for each of the given providers.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use reqc::compile::{Compiler, LoadOptions};
    /// use reqc::system::Embedded;
    /// use reqc::tool_list::{Matrix, Status, ToolList, ToolTarget};
    /// use reqc::world::MemoryWorld;
    /// use serde_json::json;
    ///
    /// let nothing = Arc::new(MemoryWorld::default());
    /// let compiler = Compiler::load(nothing, Arc::new(Embedded::bundled()), LoadOptions::default());
    /// let list = ToolList::of(&json!([{"name": "ls.all", "inputSchema": {"type": "object", "properties": {}}}]));
    /// let claude = ToolTarget::from_name("anthropic").expect("a target");
    /// let matrix = Matrix::of(&compiler, list.expect("a tool").tools, &[claude]);
    /// assert_eq!(matrix.columns[0].verdicts[0].status, Status::Rejected);
    /// ```
    pub fn of(compiler: &Compiler, tools: Vec<ListedTool>, targets: &[ToolTarget]) -> Matrix {
        let columns = targets
            .par_iter()
            .map(|target| column(compiler, &tools, *target))
            .collect();
        Matrix { tools, columns }
    }

    /// Returns `true` if a provider rejects a tool or the list in the plain form. Rejections by
    /// strict modes and by Gemini's own schema dialect are ignored, because the plain form can
    /// always be used instead.
    pub fn refuses(&self) -> bool {
        self.columns
            .iter()
            .any(|column| column.target.form == Form::Plain && column.is_refused())
    }
}

fn column(compiler: &Compiler, tools: &[ListedTool], target: ToolTarget) -> Column {
    let mut first: HashMap<&str, &ListedTool> = HashMap::new();
    let mut verdicts: Vec<Verdict> = Vec::new();
    for tool in tools {
        let mut verdict = verdict(compiler, tool, &target);
        if let Some(earlier) = first.get(tool.name.as_str()) {
            verdict.add(beside(compiler, earlier, tool, &target, &verdict));
        }
        first.entry(&tool.name).or_insert(tool);
        verdicts.push(verdict);
    }
    let all: Vec<&ListedTool> = tools.iter().collect();
    let body = target.body(&all);
    let of_tools: Vec<&[Objection]> = verdicts
        .iter()
        .map(|verdict| verdict.objections.as_slice())
        .collect();
    let of_list = of_list(&target, problems(compiler, &target, &body), &of_tools);
    let (tokens, is_tokenized) = tokens(&target, &body);
    Column {
        target,
        verdicts,
        of_list,
        tokens,
        is_tokenized,
    }
}

/// Returns the objections to a list as a whole: those outside the tools, and those inside a tool
/// that arise only in combination with the other tools, such as limits on all tools of a request
/// together. `of_tools` contains the objections to each tool by itself.
fn of_list(
    target: &ToolTarget,
    problems: Vec<Problem>,
    of_tools: &[&[Objection]],
) -> Vec<Objection> {
    let objections = problems.into_iter().filter_map(|problem| {
        let place = problem.pointer.as_str().to_owned();
        let Some((index, pointer)) = of_tool(target, &problem) else {
            return Some(objection(target, 0, place, problem));
        };
        let own = objection(target, index, pointer, problem);
        let known = of_tools.get(index).copied().unwrap_or_default();
        let is_told = known.iter().any(|known| own.repeats(known));
        (!is_told).then_some(Objection {
            pointer: place,
            ..own
        })
    });
    objections.collect()
}

impl Objection {
    /// Returns `true` if another objection says the same about the same place.
    fn repeats(&self, other: &Objection) -> bool {
        (self.rule.code, &self.pointer, &self.message)
            == (other.rule.code, &other.pointer, &other.message)
    }
}

impl Verdict {
    fn add(&mut self, more: Vec<Objection>) {
        self.objections.extend(more);
        let worst = self
            .objections
            .iter()
            .map(|objection| objection.status)
            .max();
        self.status = self.status.max(worst.unwrap_or(Status::Accepted));
    }
}

fn verdict(compiler: &Compiler, tool: &ListedTool, target: &ToolTarget) -> Verdict {
    let body = target.body(&[tool]);
    let found = problems(compiler, target, &body);
    let objections = found.into_iter().filter_map(|problem| {
        let (index, pointer) = of_tool(target, &problem)?;
        Some(objection(target, index, pointer, problem))
    });
    let objections: Vec<Objection> = objections.collect();
    let dropped = dropped(tool, target);
    // The text around the first tool does not belong to the tool, so the tokens are those that a
    // second tool adds.
    let (one, two) = (
        tokens(target, &body).0,
        tokens(target, &target.body(&[tool, tool])).0,
    );
    let status = match dropped.iter().all(is_minor) {
        true => Status::Accepted,
        false => Status::Weakened,
    };
    let mut verdict = Verdict {
        status,
        objections: Vec::new(),
        dropped,
        tokens: two.saturating_sub(one),
    };
    verdict.add(objections);
    verdict
}

/// Returns `true` if the loss of a check has no effect on the values that a tool declares. Almost
/// every tool forbids additional arguments, so marking this loss would distract from the losses
/// that matter.
fn is_minor(loss: &Loss) -> bool {
    loss.pointer.is_empty() && loss.keyword == "additionalProperties"
}

/// Returns the constraints that a server drops before it shows the tool to the model. Servers that
/// read the whole schema drop nothing.
fn dropped(tool: &ListedTool, target: &ToolTarget) -> Vec<Loss> {
    if !target.wire.facts().drops_keywords {
        return Vec::new();
    }
    lower(&tool.schema, &Speech::of(target))
        .map(|lowered| lowered.losses)
        .unwrap_or_default()
}

/// Returns the objections to a tool that are caused by an earlier tool with the same name.
fn beside(
    compiler: &Compiler,
    earlier: &ListedTool,
    tool: &ListedTool,
    target: &ToolTarget,
    alone: &Verdict,
) -> Vec<Objection> {
    let found = problems(compiler, target, &target.body(&[earlier, tool]));
    let of_second = found
        .into_iter()
        .filter_map(|problem| match of_tool(target, &problem)? {
            (1, inner) => Some(objection(target, 1, inner, problem)),
            _ => None,
        });
    of_second
        .filter(|objection| !alone.objections.contains(objection))
        .collect()
}

fn problems(compiler: &Compiler, target: &ToolTarget, body: &Value) -> Vec<Problem> {
    let to = LintTarget {
        server: Some(target.server),
        model: Some(target.model),
        ..LintTarget::default()
    };
    Judge::new(compiler).problems(body, target.wire, &to)
}

/// Returns the index of the tool that a problem is about, and the location in the tool's
/// declaration; `None` if the problem is not about a tool.
fn of_tool(target: &ToolTarget, problem: &Problem) -> Option<(usize, String)> {
    let list = Pointer::parse(&target.place(0)).parent()?;
    let below = problem.pointer.below(&list)?;
    let index = below.tokens().next()?.parse().ok()?;
    let inner = below.below(&Pointer::root().element(index))?;
    Some((index, inner.as_str().to_owned()))
}

fn objection(target: &ToolTarget, index: usize, pointer: String, problem: Problem) -> Objection {
    let status = match problem.severity.unwrap_or(problem.rule.severity) {
        Severity::Error => Status::Rejected,
        Severity::Warning if problem.is_ignored() => Status::Weakened,
        Severity::Warning => Status::Doubtful,
    };
    // Users never see the smallest request, so reported locations begin at the tool.
    let place = target.place(index);
    let (own, nested) = (format!("`{place}/"), format!("`{place}/function/"));
    let message = problem.message.replace(&nested, "`/").replace(&own, "`/");
    Objection {
        rule: problem.rule,
        status,
        pointer,
        message,
        help: problem.help,
        sources: problem.sources,
    }
}

/// Returns the number of tokens in a body's tools, and `true` if a tokenizer counted them.
fn tokens(target: &ToolTarget, body: &Value) -> (u64, bool) {
    let estimate = TokenEstimate::of(body, target.wire, target.model);
    (estimate.of_kind(PartKind::Tools), estimate.is_tokenized)
}

/// Returns the evidence of an objection that mentions a server. If none does, returns the evidence
/// that mentions no server at all, or else the evidence about OpenAI, whose formats the others
/// copy, or else all evidence. If the rule does not assign sources to its messages, all of its
/// evidence is returned.
pub fn evidence(objection: &Objection, server: Server) -> Vec<&'static Evidence> {
    let all = objection.rule.evidence.iter();
    let of_message: Vec<&Evidence> = all
        .clone()
        .filter(|it| objection.sources.contains(&it.source))
        .collect();
    let found: Vec<&Evidence> = match of_message.is_empty() {
        true => all.collect(),
        false => of_message,
    };
    let of_none = found
        .iter()
        .copied()
        .filter(|it| Server::ALL.into_iter().all(|other| !mentions(it, other)))
        .collect();
    [
        evidence_about(&found, server),
        of_none,
        evidence_about(&found, Server::OpenAi),
    ]
    .into_iter()
    .find(|some| !some.is_empty())
    .unwrap_or(found)
}

fn evidence_about(evidence: &[&'static Evidence], server: Server) -> Vec<&'static Evidence> {
    let evidence = evidence.iter().copied();
    evidence.filter(|it| mentions(it, server)).collect()
}

/// Returns the name by which evidence refers to a server.
fn name_in_evidence(server: Server) -> &'static str {
    match server {
        Server::Anthropic => "Claude",
        Server::Google | Server::Vertex => "Gemini",
        other => other.name(),
    }
}

fn mentions(evidence: &Evidence, server: Server) -> bool {
    let name = name_in_evidence(server);
    evidence.shows.starts_with(name) || evidence.shows.contains(&format!("{name}:"))
}

/// Tools in the most similar form that a provider accepts.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LoweredList {
    /// The `tools` member of a request, with all tools that the provider accepts.
    pub tools: Value,
    /// The result for each tool, in list order.
    pub told: Vec<LoweredTool>,
    /// The reasons why the provider rejects the list, although it accepts each tool.
    pub of_list: Vec<Objection>,
}

/// The result of lowering one tool.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LoweredTool {
    /// The tool's name in the list.
    pub name: String,
    /// The tool's name in the request, if it differs.
    pub renamed: Option<String>,
    /// The form used instead of the requested one, and why. `None` if the requested form can
    /// express the tool's schema.
    pub instead: Option<(ToolTarget, String)>,
    /// The checks that the tool's schema no longer performs.
    pub losses: Vec<Loss>,
    /// The reason the tool is omitted; `None` if the provider accepts a form of it.
    pub refused: Option<String>,
    /// The tool's schema in the request.
    pub schema: Value,
}

/// Lowers tools for a provider. Tools that the provider accepts stay unchanged. If the provider
/// limits the tools of a form in one request, the tools beyond the limit use the plain form.
pub fn lowered(compiler: &Compiler, tools: &[ListedTool], target: ToolTarget) -> LoweredList {
    let mut names: Vec<String> = Vec::new();
    let mut made: Vec<Made> = Vec::new();
    for tool in tools {
        let name = fitting_name(&tool.name, &target, &names);
        names.push(name.clone());
        let tool = ListedTool {
            name,
            ..tool.clone()
        };
        let (form, told) = lowered_tool(compiler, &tool, target);
        made.push(Made { tool, form, told });
    }
    let mut of_list = refusals_of(compiler, &target, declared(&made));
    if let Some(wider) = target.wider().filter(|_| !of_list.is_empty()) {
        within_limits(compiler, &mut made, target, wider);
        of_list = refusals_of(compiler, &target, declared(&made));
    }
    let listed = declared(&made);
    let told = made.into_iter().zip(tools).map(|(made, tool)| LoweredTool {
        name: tool.name.clone(),
        renamed: (made.tool.name != tool.name).then_some(made.tool.name),
        ..made.told
    });
    LoweredList {
        told: told.collect(),
        tools: target.member(listed),
        of_list,
    }
}

/// A tool with its name in the request, the form of its declaration, and the result of lowering it.
struct Made {
    tool: ListedTool,
    form: ToolTarget,
    told: LoweredTool,
}

impl Made {
    /// Returns the declaration of the tool; `None` if the tool is omitted.
    fn declared(&self) -> Option<Value> {
        let schema = self.told.schema.clone();
        self.told.refused.is_none().then(|| {
            self.form.declared(&ListedTool {
                schema,
                ..self.tool.clone()
            })
        })
    }
}

fn declared(made: &[Made]) -> Vec<Value> {
    made.iter().filter_map(Made::declared).collect()
}

/// Returns the reasons why a provider rejects a list of declarations.
fn refusals_of(compiler: &Compiler, target: &ToolTarget, declared: Vec<Value>) -> Vec<Objection> {
    let found = problems(compiler, target, &target.request(declared));
    let mut refusals = of_list(target, found, &[]);
    refusals.retain(|objection| objection.status == Status::Rejected);
    refusals
}

/// Keeps the form of each tool only if the provider accepts it together with the earlier tools of
/// that form. Other tools use the plain form.
fn within_limits(compiler: &Compiler, made: &mut [Made], target: ToolTarget, wider: ToolTarget) {
    let mut kept = Vec::new();
    for one in made.iter_mut().filter(|one| one.form == target) {
        let Some(declared) = one.declared() else {
            continue;
        };
        kept.push(declared);
        let refusals = refusals_of(compiler, &target, kept.clone());
        if let Some(refusal) = refusals.into_iter().next() {
            kept.pop();
            let (form, told) = lowered_tool(compiler, &one.tool, wider);
            one.form = form;
            one.told = LoweredTool {
                instead: Some((wider, refusal.message)),
                ..told
            };
        }
    }
}

fn lowered_tool(
    compiler: &Compiler,
    tool: &ListedTool,
    target: ToolTarget,
) -> (ToolTarget, LoweredTool) {
    let mut one = LoweredTool {
        name: tool.name.clone(),
        renamed: None,
        instead: None,
        losses: Vec::new(),
        refused: None,
        schema: tool.schema.clone(),
    };
    if is_plainly_taken(compiler, tool, &target) {
        return (target, one);
    }
    let why = match lower(&tool.schema, &Speech::of(&target)) {
        Ok(lowered) => {
            let nearest = ListedTool {
                schema: lowered.schema.clone(),
                ..tool.clone()
            };
            match refusal(compiler, &nearest, &target) {
                None => {
                    (one.schema, one.losses) = (lowered.schema, lowered.losses);
                    return (target, one);
                }
                Some(why) => why,
            }
        }
        Err(unsayable) if unsayable.pointer.is_empty() => {
            format!("{} (at the root)", unsayable.why)
        }
        Err(unsayable) => format!("{} (at `{}`)", unsayable.why, unsayable.pointer),
    };
    match target.wider() {
        Some(wider) => {
            let (form, inner) = lowered_tool(compiler, tool, wider);
            (
                form,
                LoweredTool {
                    instead: Some((wider, why)),
                    ..inner
                },
            )
        }
        None => {
            one.refused = Some(why);
            (target, one)
        }
    }
}

/// Returns `true` if a provider accepts a tool unchanged and without any loss.
fn is_plainly_taken(compiler: &Compiler, tool: &ListedTool, target: &ToolTarget) -> bool {
    let found = problems(compiler, target, &target.body(&[tool]));
    let is_taken = found
        .iter()
        .all(|problem| of_tool(target, problem).is_none());
    is_taken && dropped(tool, target).is_empty()
}

/// Returns the reason why a provider rejects a tool; `None` if the provider accepts it.
fn refusal(compiler: &Compiler, tool: &ListedTool, target: &ToolTarget) -> Option<String> {
    let found = problems(compiler, target, &target.body(&[tool]));
    let told = found.into_iter().filter_map(|problem| {
        let (index, pointer) = of_tool(target, &problem)?;
        Some(objection(target, index, pointer, problem))
    });
    let mut refusals = told.filter(|objection| objection.status == Status::Rejected);
    refusals.next().map(|objection| objection.message)
}

/// Returns a name that the provider accepts and that is not in `taken`. Each character that the
/// provider rejects becomes `_`.
fn fitting_name(name: &str, target: &ToolTarget, taken: &[String]) -> String {
    let (longest, has_dots) = match target.wire.facts().names {
        NameRule::Any => return unique(name, usize::MAX, taken),
        NameRule::Dotted(_) => (64, true),
        NameRule::Word(_) => (crate::repo::MAX_TOOL_NAME, false),
    };
    let legal: String = name
        .chars()
        .map(|c| if is_taken(c, has_dots) { c } else { '_' })
        .collect();
    let is_moonshot = target.server == Server::Moonshot;
    let needs_letter = (has_dots || is_moonshot)
        && !legal.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let legal = match needs_letter || legal.is_empty() {
        // Reports disagree on whether Moonshot accepts `_` at the beginning.
        true if is_moonshot => format!("t_{legal}"),
        true => format!("_{legal}"),
        false => legal,
    };
    unique(&legal, longest, taken)
}

fn is_taken(c: char, has_dots: bool) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-') || has_dots && matches!(c, '.' | ':')
}

fn unique(name: &str, longest: usize, taken: &[String]) -> String {
    let plain = cut(0, name, longest);
    let numbered = (2..).map(|number: usize| {
        let end = format!("_{number}");
        format!("{}{end}", cut(end.len(), name, longest))
    });
    std::iter::once(plain)
        .chain(numbered)
        .find(|candidate| !taken.contains(candidate))
        .expect("there are more numbers than names")
}

fn cut(room: usize, name: &str, longest: usize) -> String {
    name.chars()
        .take(longest.saturating_sub(room))
        .collect::<String>()
}
