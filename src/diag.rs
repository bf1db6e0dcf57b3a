//! Findings as values.
//!
//! A [`Diagnostic`] has a stable code (through its [`Rule`]), a message that fits on one line, a
//! primary location in a source file, related locations (such as the `extends` or include chain
//! that led there), and advice on what to do. Stages return diagnostics; this module prints
//! nothing.

mod evidence;
mod fix;

pub use evidence::{Citation, Evidence, Rank, carry_an_error, citations, rank};
pub use fix::Edit;

use std::collections::HashMap;
use std::sync::Arc;

use crate::source::Span;

/// The severity of a finding, from least to most severe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth a look; does not fail a run.
    Warning,
    /// Fails the run.
    Error,
}

impl Severity {
    /// Returns `error` or `warning`, the names in machine-readable formats.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

/// A kind of finding: its stable code, default severity and documentation page.
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Rule {
    /// The stable code, as `family/kebab-case`.
    pub code: &'static str,
    /// The default severity, which `reqc.toml` or the command line may change.
    pub severity: Severity,
    /// A one-line summary of the problem.
    pub summary: &'static str,
    /// The page that `reqc rule CODE` shows, in Markdown: why the problem matters and what to do.
    pub page: &'static str,
    /// `true` if a repository may lower or silence the rule: it is a warning, or it is about the
    /// content of bodies that exist. An error that leaves an agent without a body cannot be
    /// lowered, because a run that compiled only some of the bodies would then pass.
    pub can_be_lowered: bool,
    /// `true` if the rule is about a member's key rather than its value.
    pub is_about_key: bool,
    /// The sources of the facts about providers. Rules about the project's own files have none.
    pub evidence: &'static [Evidence],
}

impl Rule {
    /// Creates a rule about values. A warning can be lowered; an error cannot, unless it is marked
    /// `lowerable`.
    pub(crate) const fn new(
        code: &'static str,
        severity: Severity,
        summary: &'static str,
        page: &'static str,
    ) -> Rule {
        let can_be_lowered = matches!(severity, Severity::Warning);
        Rule {
            code,
            severity,
            summary,
            page,
            can_be_lowered,
            is_about_key: false,
            evidence: &[],
        }
    }

    /// Allows an error to be lowered. This is for errors about the content of bodies that exist.
    pub(crate) const fn lowerable(self) -> Rule {
        Rule {
            can_be_lowered: true,
            ..self
        }
    }

    /// Adds evidence to a rule.
    pub(crate) const fn resting_on(self, evidence: &'static [Evidence]) -> Rule {
        Rule { evidence, ..self }
    }

    /// Returns the evidence, strongest first.
    pub fn evidence_by_rank(&self) -> Vec<Evidence> {
        let mut evidence = self.evidence.to_vec();
        evidence.sort_by_key(Evidence::rank);
        evidence
    }

    /// Returns the page with an evidence section, in Markdown.
    pub fn full_page(&self) -> String {
        let mut page = self.page.to_owned();
        if !self.evidence.is_empty() {
            page.push_str("\n\nEvidence, strongest first:\n");
        }
        for evidence in self.evidence_by_rank() {
            page.push_str(&format!("\n* {evidence}"));
        }
        page
    }

    /// Marks the rule as one about keys rather than values.
    pub(crate) const fn about_key(self) -> Rule {
        Rule {
            is_about_key: true,
            ..self
        }
    }
}

/// Declares rules as documented statics, and a `RULES` slice that lists them. Special properties
/// are in brackets after the severity: `Error[lowerable]`, `Error[lowerable, about_key]`. Evidence
/// follows the page: `seen "2026-11" { "ADDRESS": "the fact it shows", }`.
macro_rules! rules {
    ($(
        $name:ident = $severity:ident $([$($special:ident),+])? $code:literal, $summary:literal, $page:literal
        $(, seen $seen:literal { $($source:literal: $shows:literal,)+ })*;
    )*) => {
        $(
            #[doc = concat!("The rule `", $code, "`; its summary and page are below.")]
            pub(crate) static $name: $crate::diag::Rule =
                $crate::diag::Rule::new($code, $crate::diag::Severity::$severity, $summary, $page)
                    .resting_on(&[$($($crate::diag::Evidence::new($source, $shows, $seen),)+)*])
                    $($(.$special())+)?;
        )*
        /// All rules declared here, in order.
        pub(crate) static RULES: &[&$crate::diag::Rule] = &[$(&$name),*];
    };
}
pub(crate) use rules;

/// A location that a finding refers to, with a note.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Label {
    /// The location that the note is about.
    pub span: Span,
    /// The note at the location. It may be empty for a primary label.
    pub message: String,
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// The violated rule.
    pub rule: &'static Rule,
    /// The severity in this run.
    pub severity: Severity,
    /// A lower-case phrase that makes sense on its own.
    pub message: String,
    /// The primary location.
    pub primary: Label,
    /// The chain that led to the primary location, or the other half of a conflict.
    pub related: Vec<Label>,
    /// The next step, as advice.
    pub help: Option<String>,
    /// The edit that fixes the finding, if the stage that reported it knows one; see
    /// [`Diagnostic::fix`].
    pub(crate) fix: Option<Edit>,
    /// `true` if the mistake itself is elsewhere, in a location that cannot be edited. The names at
    /// the reported location are then spelled correctly.
    pub(crate) is_elsewhere: bool,
    /// A string that distinguishes the finding from other findings of the same rule at the same
    /// location.
    pub(crate) sense: Option<String>,
    /// The maximum severity of the finding under any policy.
    pub(crate) worst: Severity,
    /// The locations of template errors that explain the finding. After the policy is applied, the
    /// finding is dropped for agents that one of these errors affects.
    pub(crate) explained_at: Vec<Span>,
    /// The underlying problem, such as a missing file, which must be fixed elsewhere. Findings of
    /// the same rule with the same cause are merged.
    pub(crate) cause: Option<String>,
    /// The JSON pointer into the request body, if the finding is about a body in a file.
    pub(crate) pointer: Option<String>,
    /// The names of the agents that the finding affects, sorted. Empty for findings about the
    /// repository itself.
    pub agents: Vec<Arc<str>>,
    /// The names of the contexts that the finding affects, sorted.
    pub contexts: Vec<Arc<str>>,
}

impl Diagnostic {
    /// Creates a finding of `rule` at `span`.
    pub fn new(rule: &'static Rule, span: Span, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            rule,
            severity: rule.severity,
            message: message.into(),
            primary: Label {
                span,
                message: String::new(),
            },
            related: Vec::new(),
            help: None,
            fix: None,
            is_elsewhere: false,
            sense: None,
            worst: Severity::Error,
            explained_at: Vec::new(),
            cause: None,
            pointer: None,
            agents: Vec::new(),
            contexts: Vec::new(),
        }
    }

    /// Limits the severity: no policy can raise it above `worst`.
    #[must_use]
    pub(crate) fn at_most(mut self, worst: Severity) -> Diagnostic {
        self.worst = worst;
        self.severity = self.severity.min(worst);
        self
    }

    /// Sets the note at the primary location.
    #[must_use]
    pub fn label(mut self, message: impl Into<String>) -> Diagnostic {
        self.primary.message = message.into();
        self
    }

    /// Adds a related location.
    #[must_use]
    pub fn related(mut self, span: Span, message: impl Into<String>) -> Diagnostic {
        self.related.push(Label {
            span,
            message: message.into(),
        });
        self
    }

    /// Moves the finding to the location that introduces the mistake. The original location becomes
    /// a related one. It keeps its note or, if the note is empty, gets `what`.
    #[must_use]
    pub(crate) fn told_at(mut self, span: Span, what: &str) -> Diagnostic {
        let mut before = std::mem::replace(
            &mut self.primary,
            Label {
                span,
                message: String::new(),
            },
        );
        if before.message.is_empty() {
            what.clone_into(&mut before.message);
        }
        self.related.retain(|label| label.span != span);
        self.related.insert(0, before);
        (self.is_elsewhere, self.fix) = (true, None);
        self
    }

    /// Sets the string that distinguishes the finding from other findings of the same rule at the
    /// same location.
    #[must_use]
    pub(crate) fn in_sense(mut self, sense: Option<String>) -> Diagnostic {
        self.sense = sense;
        self
    }

    /// Sets the cause, which must be fixed elsewhere. Findings of the same rule with the same cause
    /// are merged, even if their locations differ.
    #[must_use]
    pub(crate) fn caused_by(mut self, cause: Option<String>) -> Diagnostic {
        self.cause = cause;
        self
    }

    /// Sets the JSON pointer into the request body. The root pointer is omitted, because it adds no
    /// information.
    #[must_use]
    pub(crate) fn in_body_at(mut self, pointer: &str) -> Diagnostic {
        self.pointer = Some(pointer.to_owned()).filter(|pointer| !pointer.is_empty());
        self
    }

    /// Sets the locations of the errors that explain the finding.
    #[must_use]
    pub(crate) fn explained_at(mut self, places: Vec<Span>) -> Diagnostic {
        self.explained_at = places;
        self
    }

    /// Uses the value at the primary location as the cause. Findings of the same rule at this
    /// location are merged into one finding, which lists their messages.
    #[must_use]
    pub(crate) fn once_at_its_place(self) -> Diagnostic {
        let Span { file, start, end } = self.primary.span;
        self.caused_by(Some(format!("{file:?} {start} {end}")))
    }

    /// Sets the advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Diagnostic {
        self.help = Some(help.into());
        self
    }

    /// Sets the advice, if there is any.
    #[must_use]
    pub fn maybe_help(mut self, help: Option<String>) -> Diagnostic {
        self.help = help.or(self.help);
        self
    }

    /// Adds a location at which the same cause was found again.
    fn met_at(&mut self, span: Span) {
        let is_known =
            self.primary.span == span || self.related.iter().any(|label| label.span == span);
        let further = self
            .related
            .iter()
            .filter(|label| label.message == MET_HERE)
            .count();
        if !is_known && further < MOST_PLACES {
            self.related.push(Label {
                span,
                message: MET_HERE.to_owned(),
            });
        }
    }

    /// Adds the message of another finding with the same cause, if the message differs.
    fn says_too(&mut self, other: &Diagnostic) {
        let said = words(&other.message);
        let known =
            std::iter::once(&self.message).chain(self.related.iter().map(|label| &label.message));
        let is_known = known.into_iter().any(|message| words(message) == said);
        if other.cause.is_some() && !is_known && self.related.len() < MOST_RELATED {
            self.related.push(Label {
                span: other.primary.span,
                message: other.message.clone(),
            });
        }
    }

    /// Merges the message, severity, agents and contexts of another finding, which follows from
    /// this one, into this one.
    pub(crate) fn takes_in(&mut self, other: &Diagnostic) {
        self.severity = self.severity.max(other.severity);
        if self.related.len() < MOST_RELATED {
            self.related.push(Label {
                span: other.primary.span,
                message: other.message.clone(),
            });
        }
        other
            .agents
            .iter()
            .for_each(|agent| insert_sorted(&mut self.agents, agent));
        other
            .contexts
            .iter()
            .for_each(|context| insert_sorted(&mut self.contexts, context));
    }

    /// Adds an agent that the finding affects, and the context if one is given.
    #[must_use]
    pub fn reaching(mut self, agent: &Arc<str>, context: Option<&Arc<str>>) -> Diagnostic {
        insert_sorted(&mut self.agents, agent);
        if let Some(context) = context {
            insert_sorted(&mut self.contexts, context);
        }
        self
    }
}

/// Returns a message without digits, so that messages about different elements of a list are
/// treated as equal.
fn words(text: &str) -> String {
    text.chars()
        .filter(|c| !c.is_ascii_digit())
        .collect::<String>()
}

/// A collection of findings without duplicates. Findings of the same rule with the same location,
/// severity, and sense are merged. Findings with the same cause are merged too, and their other
/// locations become related ones.
///
/// The first finding's wording is kept, so the result depends on the order of insertion, which must
/// be stable.
#[derive(Debug, Default)]
pub struct Findings {
    list: Vec<Diagnostic>,
    seen: HashMap<Key, usize>,
}

/// The key that equal findings share.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    code: &'static str,
    severity: Severity,
    /// The location; `None` if the finding has a cause, which is then compared instead.
    place: Option<Span>,
    /// The finding's sense or cause.
    words: Option<String>,
    explained_at: Vec<Span>,
}

/// The note at each additional location of a cause.
const MET_HERE: &str = "also here";

/// The maximum number of additional locations shown for a cause.
const MOST_PLACES: usize = 3;

/// The maximum number of related locations. Messages of further findings with the same cause are
/// not added.
const MOST_RELATED: usize = 16;

impl Key {
    fn of(finding: &Diagnostic) -> Key {
        let place = finding.cause.is_none().then_some(finding.primary.span);
        let words = finding.cause.as_ref().or(finding.sense.as_ref()).cloned();
        Key {
            code: finding.rule.code,
            severity: finding.severity,
            place,
            words,
            explained_at: finding.explained_at.clone(),
        }
    }
}

/// The properties by which [`Findings`] identifies a finding.
#[derive(Clone, Copy)]
pub(crate) struct FindingAt<'a> {
    pub(crate) rule: &'static Rule,
    /// The severity; `None` for the rule's default.
    pub(crate) severity: Option<Severity>,
    pub(crate) span: Span,
    pub(crate) sense: Option<&'a str>,
}

impl Findings {
    /// Adds a finding, or merges it into an equal one.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        let key = Key::of(&diagnostic);
        match self.seen.get(&key) {
            Some(&index) => {
                let known = &mut self.list[index];
                known.met_at(diagnostic.primary.span);
                known.says_too(&diagnostic);
                diagnostic
                    .agents
                    .iter()
                    .for_each(|agent| insert_sorted(&mut known.agents, agent));
                diagnostic
                    .contexts
                    .iter()
                    .for_each(|context| insert_sorted(&mut known.contexts, context));
            }
            None => {
                self.seen.insert(key, self.list.len());
                self.list.push(diagnostic);
            }
        }
    }

    /// Adds an agent and a context to those that a known finding affects. Returns `false` if there
    /// is no such finding.
    pub(crate) fn reach(
        &mut self,
        finding: FindingAt<'_>,
        agent: &Arc<str>,
        context: &Arc<str>,
    ) -> bool {
        let FindingAt { rule, .. } = finding;
        let key = Key {
            code: rule.code,
            severity: finding.severity.unwrap_or(rule.severity),
            place: Some(finding.span),
            words: finding.sense.map(str::to_owned),
            explained_at: Vec::new(),
        };
        let Some(&index) = self.seen.get(&key) else {
            return false;
        };
        let known = &mut self.list[index];
        insert_sorted(&mut known.agents, agent);
        insert_sorted(&mut known.contexts, context);
        true
    }

    /// Adds several findings.
    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        diagnostics
            .into_iter()
            .for_each(|diagnostic| self.push(diagnostic));
    }

    /// Adds findings. If a finding's rule has already reported something at the same location, the
    /// finding's agents are added to that earlier finding instead.
    pub(crate) fn extend_where_nothing_is<'d>(
        &mut self,
        diagnostics: impl Iterator<Item = &'d Diagnostic>,
    ) {
        let mut diagnostics = diagnostics.peekable();
        if diagnostics.peek().is_none() {
            return;
        }
        let told: HashMap<(&str, Span), usize> = self
            .list
            .iter()
            .enumerate()
            .map(|(index, known)| ((known.rule.code, known.primary.span), index))
            .collect();
        let mut untold = Vec::new();
        for diagnostic in diagnostics {
            match told.get(&(diagnostic.rule.code, diagnostic.primary.span)) {
                Some(index) => {
                    let known = &mut self.list[*index];
                    for agent in &diagnostic.agents {
                        insert_sorted(&mut known.agents, agent);
                    }
                }
                None => untold.push(diagnostic.clone()),
            }
        }
        self.extend(untold);
    }

    /// Returns `true` if there are no findings.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Returns the findings in order of insertion.
    pub fn into_vec(self) -> Vec<Diagnostic> {
        self.list
    }
}

fn insert_sorted(list: &mut Vec<Arc<str>>, item: &Arc<str>) {
    if let Err(at) = list.binary_search(item) {
        list.insert(at, Arc::clone(item));
    }
}

/// The maximum difference in similarity between the best suggestion and the other suggestions.
const NEARLY_AS_ALIKE: f64 = 0.04;

/// The maximum length of a name that gets suggestions, in bytes.
const LONGEST_NAME: usize = 120;

/// Returns up to three candidates that resemble a misspelled name, best first. Candidates that are
/// clearly worse than the best are omitted. Long names get no suggestions.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    if name.len() > LONGEST_NAME {
        return Vec::new();
    }
    let wanted = name.to_lowercase();
    let mut scored: Vec<(f64, &str)> = candidates
        .into_iter()
        .filter(|candidate| candidate.len() <= LONGEST_NAME && *candidate != name)
        .filter_map(|candidate| Some((likeness(&wanted, &candidate.to_lowercase())?, candidate)))
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    let best = scored.first().map_or(0.0, |(score, _)| *score);
    scored.retain(|(score, _)| *score >= best - NEARLY_AS_ALIKE);
    scored
        .into_iter()
        .take(3)
        .map(|(_, candidate)| candidate)
        .collect()
}

/// Returns the similarity of two names, from 0 to 1; `None` if the candidate is not worth
/// suggesting.
fn likeness(wanted: &str, candidate: &str) -> Option<f64> {
    let score = strsim::jaro_winkler(wanted, candidate);
    let most = 2.min(wanted.len() / 3);
    // Each edit changes the length by at most one character, which has up to four bytes.
    let may_be_near = wanted.len().abs_diff(candidate.len()) <= 4 * most;
    let is_like =
        score >= 0.85 || may_be_near && strsim::damerau_levenshtein(wanted, candidate) <= most;
    is_like.then_some(score)
}

/// Returns `true` if `name` is a misspelling of a known name: it is written in a different style
/// (`providerInstance`), or differs by one or two edits.
pub(crate) fn is_misspelling(name: &str, known: &str) -> bool {
    if name.len() > LONGEST_NAME {
        return false;
    }
    let (name, known) = (folded(name), folded(known));
    name == known
        || strsim::damerau_levenshtein(&name, &known)
            <= 2.min(known.len() / 4).max(usize::from(known.len() > 2))
}

fn folded(name: &str) -> String {
    name.to_lowercase().replace(['_', '-', ' ', '.'], "")
}

/// Returns “did you mean `a` or `b`?”; `None` if no candidate is similar enough.
pub fn did_you_mean<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<String> {
    one_of(&nearest(name, candidates))
}

/// Suggestions for many names, with a limit on the total number of comparisons. Once the limit is
/// reached, further names get no suggestions.
#[derive(Debug)]
pub(crate) struct Suggestions {
    /// The number of comparisons that are still allowed.
    left: usize,
}

impl Default for Suggestions {
    fn default() -> Suggestions {
        Suggestions { left: 200_000 }
    }
}

impl Suggestions {
    /// Does the same as [`did_you_mean`], but returns `None` once the limit is reached.
    pub(crate) fn did_you_mean<'a>(
        &mut self,
        name: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Option<String> {
        one_of(&self.nearest(name, candidates))
    }

    /// Returns `true` if the limit is reached.
    pub(crate) fn is_spent(&self) -> bool {
        self.left == 0
    }

    /// Does the same as [`nearest`], but returns nothing once the limit is reached.
    pub(crate) fn nearest<'a>(
        &mut self,
        name: &str,
        candidates: impl IntoIterator<Item = &'a str>,
    ) -> Vec<&'a str> {
        if self.left == 0 {
            return Vec::new();
        }
        let candidates: Vec<&str> = candidates.into_iter().take(self.left + 1).collect();
        match self.left.checked_sub(candidates.len()) {
            Some(left) => {
                self.left = left;
                nearest(name, candidates)
            }
            None => {
                self.left = 0;
                Vec::new()
            }
        }
    }
}

/// Returns a number with its noun: `1 agent`, `2 agents`, or `2 bodies`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    match (number, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {noun}s"),
    }
}

/// The maximum number of names in a help text.
const LISTED: usize = 40;

/// Lists names for a help text. If there are many, lists only the first ones.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut names = names.into_iter();
    let first: Vec<&str> = names.by_ref().take(LISTED).collect();
    match names.count() {
        0 => first.join(", "),
        more => format!("{}, … (+{more})", first.join(", ")),
    }
}

/// Returns “did you mean `a`, `b` or `c`?” for similar names; `None` if there are no names.
pub(crate) fn one_of(names: &[&str]) -> Option<String> {
    let (last, others) = names.split_last()?;
    let others: Vec<String> = others.iter().map(|name| format!("`{name}`")).collect();
    Some(match others.as_slice() {
        [] => format!("did you mean `{last}`?"),
        others => format!("did you mean {} or `{last}`?", others.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn suggestions_are_near_or_absent() {
        assert_eq!(
            nearest("contnet", ["content", "role", "content_blocks"])[0],
            "content"
        );
        assert_eq!(
            nearest("OpenAI Chatt", ["OpenAI Chat Tools", "OpenAI Chat"]),
            ["OpenAI Chat"]
        );
        assert_eq!(nearest("zzz", ["content", "role"]), Vec::<&str>::new());
        assert_eq!(
            did_you_mean("extend", ["extends"]).as_deref(),
            Some("did you mean `extends`?")
        );
    }

    #[test]
    fn long_names_are_not_compared() {
        let name = "a".repeat(100_000);
        assert_eq!(
            nearest(&name, [format!("{name}b").as_str()]),
            Vec::<&str>::new()
        );
        assert_eq!(
            nearest("content", [name.as_str(), "contents"]),
            ["contents"]
        );
    }

    #[test]
    fn of_many_names_the_first_get_suggestions() {
        let known: Vec<String> = (0..1_000).map(|number| format!("agent {number}")).collect();
        let mut suggestions = Suggestions::default();
        let mut ask = || {
            suggestions
                .did_you_mean("agnet 7", known.iter().map(String::as_str))
                .is_some()
        };
        let told: Vec<bool> = (0..10_000).map(|_| ask()).collect();
        assert_eq!(told.iter().filter(|told| **told).count(), 200);
        assert!(told[0] && !told[200]);
    }
}
