//! The losses in one agent's bodies, each kind reported once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::judged::{content_members, judged_members};
use super::nearest::{Nearest, member_of, nearest};
use crate::compare::limits;
use crate::compile::compiler::Compiler;
use crate::compile::contexts::LoadedContext;
use crate::compile::explain::entrance::at_entrance;
use crate::compile::explain::places::Places;
use crate::compile::leaves_out::{Declarations, Declared};
use crate::compile::pairing::Compiled;
use crate::conversation::{ContentKind, KindSet};
use crate::diag::{Diagnostic, Findings, Rule, Severity};
use crate::flow::{Fate, Judged, Loss, rules};
use crate::source::{FileId, Span};
use crate::unit::{MemberRef, Plan};

/// The losses in one agent's bodies.
pub(in crate::compile) struct AgentFlow<'c> {
    compiler: &'c Compiler,
    limits: KindSet,
    pub(super) declared: Vec<Declared>,
    held: KindSet,
    /// `true` if a body failed to compile.
    is_partial: bool,
    lost: BTreeMap<LossKind, Lost<'c>>,
}

/// A kind of content, and its fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct LossKind {
    content: ContentKind,
    fate: &'static str,
}

/// One kind of loss in all of an agent's contexts.
struct Lost<'c> {
    contexts: BTreeSet<Arc<str>>,
    smallest: Loss,
    shown_by: &'c LoadedContext,
}

impl<'c> AgentFlow<'c> {
    pub(in crate::compile) fn new(compiler: &'c Compiler, plan: &Plan<'_>) -> AgentFlow<'c> {
        AgentFlow {
            compiler,
            limits: limits::of(plan.wire, plan.api),
            declared: Declared::of(plan),
            held: KindSet::default(),
            is_partial: false,
            lost: BTreeMap::new(),
        }
    }

    /// Records that a body could not be compiled, so its losses are unknown.
    pub(in crate::compile) fn lacks_a_body(&mut self) {
        self.is_partial = true;
    }

    /// Compares a body's content with its conversation; `loaded` is the context.
    pub(in crate::compile) fn judge(&mut self, compiled: &Compiled<'_>, loaded: &'c LoadedContext) {
        let Compiled {
            plan,
            request,
            body,
            prompt,
            ..
        } = *compiled;
        let names = content_members(plan.wire);
        let usual: Vec<MemberRef<'_>> = body
            .members()
            .filter(|member| names.contains(&member.name))
            .collect();
        let mut judged = judged_members(plan, request, prompt, &usual);
        // Content may also be in unusual members.
        if judged
            .losses
            .iter()
            .any(|loss| !self.is_accepted(loss, &Declarations::default()))
        {
            judged = judged_members(plan, request, prompt, &body.members().collect::<Vec<_>>());
        }
        self.add(&judged, loaded);
    }

    fn add(&mut self, judged: &Judged, loaded: &'c LoadedContext) {
        self.held = self.held.and(judged.held);
        for loss in &judged.losses {
            if self.is_accepted(loss, &self.compiler.declarations) {
                continue;
            }
            let kind = LossKind {
                content: loss.kind,
                fate: loss.fate.name(),
            };
            let lost = self.lost.entry(kind).or_insert_with(|| Lost {
                contexts: BTreeSet::new(),
                smallest: loss.clone(),
                shown_by: loaded,
            });
            lost.contexts.insert(Arc::clone(&loaded.context.name));
            if loss.size < lost.smallest.size {
                (lost.smallest, lost.shown_by) = (loss.clone(), loaded);
            }
        }
    }

    /// Returns `true` if a loss is expected: the wire format cannot express the content, or the
    /// author declared the loss.
    fn is_accepted(&self, loss: &Loss, declarations: &Declarations) -> bool {
        if !matches!(loss.fate, Fate::Dropped | Fate::Altered(_)) {
            return false;
        }
        if kinds(loss).any(|kind| self.limits.has(kind)) {
            return true;
        }
        let covering = self.declaration(loss);
        if let Some(declared) = covering {
            declarations.note(declared, true);
        }
        covering.is_some()
    }

    /// Returns the `leaves_out` entry that covers a loss.
    pub(super) fn declaration(&self, loss: &Loss) -> Option<&Declared> {
        self.declared
            .iter()
            .find(|declared| kinds(loss).any(|kind| declared.kind.covers(kind)))
    }

    /// Reports the losses in the agent's bodies.
    pub(in crate::compile) fn tell(
        &self,
        plan: &Plan<'_>,
        model: Option<&str>,
        findings: &mut Findings,
    ) {
        for declared in &self.declared {
            self.compiler.declarations.note(declared, self.is_partial);
        }
        for (kind, lost) in &self.lost {
            // An agent that never writes images needs no finding about images given by URL.
            if self.is_told_by_another(*kind, lost) || self.is_coincidence(*kind, lost) {
                continue;
            }
            let is_never = !self.held.has(kind.content);
            let places = Places::new(self.compiler, plan, lost.shown_by);
            let mut finding = lost.finding(kind.content, is_never, &self.declared, &places, model);
            finding = finding.explained_at(self.explaining(plan, kind.content));
            for context in &lost.contexts {
                finding = finding.reaching(plan.name(), Some(context));
            }
            findings.push(self.at_cause(finding, plan));
        }
    }

    /// Moves a finding in a bundled file to the location in the repository that brings that file in:
    /// the line that sets the profile's provider instance or, if a bundled file sets it, the
    /// entrance.
    fn at_cause(&self, finding: Diagnostic, plan: &Plan<'_>) -> Diagnostic {
        let sources = self.compiler.sources();
        let instance = plan.profile.string("provider_instance");
        match instance.filter(|it| !sources.get(it.span.file).is_bundled()) {
            Some(instance) if sources.get(finding.primary.span.file).is_bundled() => {
                let Span { file, start, end } = finding.primary.span;
                let sense = finding.sense.clone().unwrap_or_default();
                finding
                    .told_at(instance.span, "this is inherited")
                    .in_sense(Some(format!("{sense} {file:?} {start} {end}")))
            }
            _ => at_entrance(sources, finding, &plan.profile),
        }
    }

    /// Returns the locations where templates certainly misspell a member of the data, which causes
    /// losses. Covers only the templates of the body member that should contain the content.
    fn explaining(&self, plan: &Plan<'_>, content: ContentKind) -> Vec<Span> {
        let Some(places) = self.compiler.impossible.get(plan.name()) else {
            return Vec::new();
        };
        let member = plan.member_at(member_of(plan, content));
        let included = self.included_in(plan, member);
        let places = places.iter().copied();
        places
            .filter(|place| member.contains(*place) || included.contains(&place.file))
            .collect()
    }

    /// Returns the partials that the templates of a member include.
    fn included_in(&self, plan: &Plan<'_>, member: Span) -> BTreeSet<FileId> {
        let mut left = usize::MAX;
        let templates = plan.profile.strings_in_effect().into_iter();
        let (engine, repo) = (&self.compiler.engine, &self.compiler.repo);
        templates
            .filter(|template| member.contains(*template))
            .flat_map(|template| engine.partials_of(template, &mut left))
            .filter_map(|name| repo.partial_file(&name))
            .collect()
    }

    /// Returns `true` if content only seems altered, because a body that lacks the content contains
    /// a similar string. Content that only seems altered never reaches a body, and is reported as
    /// dropped in more contexts than as altered.
    fn is_coincidence(&self, kind: LossKind, lost: &Lost<'_>) -> bool {
        matches!(lost.smallest.fate, Fate::Altered(_))
            && self.lost.iter().any(|(other, dropped)| {
                matches!(dropped.smallest.fate, Fate::Dropped)
                    && other.content.covers(kind.content)
                    && !self.held.has(other.content)
                    && dropped.contexts.len() > lost.contexts.len()
            })
    }

    /// Returns `true` if the loss of a wider kind of content covers this loss.
    fn is_told_by_another(&self, kind: LossKind, lost: &Lost<'_>) -> bool {
        self.lost.iter().any(|(other, wider)| {
            let is_wider = other.content != kind.content
                && other.fate == kind.fate
                && other.content.covers(kind.content);
            is_wider
                && !self.held.has(other.content)
                && (lost.contexts.is_subset(&wider.contexts) || !self.held.has(kind.content))
        })
    }
}

/// Returns the kinds of content that are lost.
pub(super) fn kinds(loss: &Loss) -> impl Iterator<Item = ContentKind> {
    [Some(loss.kind), loss.also].into_iter().flatten()
}

impl Fate {
    fn name(&self) -> &'static str {
        match self {
            Fate::Dropped => "dropped",
            Fate::Altered(_) => "altered",
            Fate::Duplicated => "duplicated",
            Fate::Reordered => "reordered",
        }
    }
}

impl Lost<'_> {
    fn finding(
        &self,
        kind: ContentKind,
        is_never: bool,
        declared: &[Declared],
        places: &Places<'_>,
        model: Option<&str>,
    ) -> Diagnostic {
        let Lost {
            smallest, shown_by, ..
        } = self;
        let (rule, message) = told(kind, &smallest.fate, is_never);
        let Nearest { span, how } = nearest(places, smallest, model);
        // The finding about one agent must not depend on which other agents are compiled.
        let sense = Some(format!("{} {message}", kind.name()));
        let mut finding = Diagnostic::new(rule, span, message)
            .label(how)
            .in_sense(sense);
        if let Some(place) = places.data_span(&smallest.at) {
            let context = &shown_by.context.name;
            finding = finding.related(
                place,
                format!("for example, this content in the context `{context}`"),
            );
        }
        let is_slight = match &smallest.fate {
            Fate::Altered(how) => how.contains("whitespace") || kind.is_optional(),
            Fate::Dropped | Fate::Duplicated | Fate::Reordered => kind.is_optional(),
        };
        if is_slight {
            finding = finding.at_most(Severity::Warning);
        }
        finding.help(help(kind, &smallest.fate, declared))
    }
}

/// Returns the rule and the message of a loss; `is_never` means that no body contains such content.
fn told(kind: ContentKind, fate: &Fate, is_never: bool) -> (&'static Rule, String) {
    let (what, is_one) = kind.phrase();
    let verb = Verb { is_one };
    match fate {
        Fate::Dropped if is_never => (
            &rules::DROPPED,
            format!("{what} never {} the body", verb.of("reaches", "reach")),
        ),
        Fate::Dropped => (
            &rules::DROPPED,
            format!("{what} {} not always reach the body", verb.of("does", "do")),
        ),
        Fate::Altered(how) => (
            &rules::ALTERED,
            format!("{what} {} altered on the way: {how}", verb.of("is", "are")),
        ),
        Fate::Duplicated => (
            &rules::DUPLICATED,
            format!("{what} {} in the body twice", verb.of("is", "are")),
        ),
        Fate::Reordered => (
            &rules::REORDERED,
            format!(
                "{what} {} after later content of the conversation",
                verb.of("comes", "come")
            ),
        ),
    }
}

/// The grammatical number of a verb.
struct Verb {
    is_one: bool,
}

impl Verb {
    fn of(&self, one: &'static str, many: &'static str) -> &'static str {
        if self.is_one { one } else { many }
    }
}

fn help(kind: ContentKind, fate: &Fate, declared: &[Declared]) -> String {
    // A list in a profile replaces the inherited one.
    let names = declared.iter().map(|it| it.kind).chain([kind]);
    let names: Vec<String> = names.map(|kind| format!("\"{}\"", kind.name())).collect();
    let list = names.join(", ");
    match fate {
        Fate::Dropped => {
            format!(
                "write it into the body, or declare in the agent's profile that it is left out: `leaves_out = [{list}]`"
            )
        }
        Fate::Altered(_) => {
            format!(
                "write it once, unchanged: `{{{{ tojson(value) }}}}`; if it is altered on purpose, declare `leaves_out = [{list}]`"
            )
        }
        Fate::Duplicated => "write it in one place only".to_owned(),
        Fate::Reordered => "iterate over `ctx.history` once, from the beginning".to_owned(),
    }
}
