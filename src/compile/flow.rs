//! Content that agents lose: what `flow` finds in each body, told once for each kind at the place that comes nearest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use super::explain::leaves;
use super::{Compiler, Explanation, LoadedContext, ProfileId};
use crate::check::history;
use crate::compare::limits::{self};
use crate::conversation::{ContentKind, KindSet};
use crate::diag::{Diagnostic, Findings, Severity};
use crate::flow::{self, Expected, Fate, Judged, Loss, rules};
use crate::import::forms;
use crate::json::{self, Pointer};
use crate::memory::{Identity, Question};
use crate::provider::WireFormat;
use crate::render::{DataRead, Renderer};
use crate::source::Span;
use crate::toml::Kind as Toml;
use crate::unit::{Author, Body, MemberRef, Plan, Record, Request, Sameness, SystemPrompt, stand_in};

/// Asks what some members carry of a conversation.
#[derive(PartialEq, Eq, Hash)]
struct JudgedOf {
    data: Identity,
    wire: WireFormat,
    /// The system prompt; `None` if something stands for it, or if there is none.
    prompt: Option<SystemPrompt>,
    is_hollow: bool,
    members: Vec<(Arc<str>, Option<Sameness>)>,
}

impl Question for JudgedOf {
    type Answer = Arc<Judged>;

    fn weight(&self, answer: &Arc<Judged>) -> usize {
        let members = self.members.iter().map(|(_, member)| 32 + member.as_ref().map_or(0, Sameness::weight));
        256 + members.sum::<usize>() + 256 * answer.losses.len()
    }
}

/// Declarations that something is left out, and which of them apply.
#[derive(Debug, Default)]
pub(super) struct Declarations(Mutex<BTreeMap<Span, (ContentKind, bool)>>);

impl Declarations {
    fn note(&self, declared: &Declared, is_used: bool) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(declared.span).or_insert((declared.kind, false)).1 |= is_used;
    }

    /// Findings of those that apply to nothing, where somebody here can edit them.
    pub(super) fn unused(&self, is_editable: impl Fn(Span) -> bool) -> Vec<Diagnostic> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let unused = all.iter().filter(|(span, (_, is_used))| !is_used && is_editable(**span));
        unused
            .map(|(span, (kind, _))| {
                let message = format!("no agent leaves out `{}`, or none has to say so", kind.name());
                Diagnostic::new(&rules::UNUSED_DECLARATION, *span, message).help("remove the entry")
            })
            .collect()
    }
}

/// An entry of `leaves_out`.
struct Declared {
    kind: ContentKind,
    span: Span,
}

/// The losses of one agent's bodies.
pub(super) struct AgentFlow<'c> {
    limits: KindSet,
    declared: Vec<Declared>,
    held: KindSet,
    /// `true` if some body could not be made.
    is_partial: bool,
    /// By kind and fate, the contexts with the smallest loss of each first.
    lost: BTreeMap<(ContentKind, &'static str), Lost<'c>>,
}

/// A kind of loss, over all contexts of an agent.
struct Lost<'c> {
    contexts: BTreeSet<Arc<str>>,
    smallest: Loss,
    shown_by: &'c LoadedContext,
}

impl<'c> AgentFlow<'c> {
    pub(super) fn new(plan: &Plan<'_>) -> AgentFlow<'c> {
        let limits = limits::of(plan.wire, plan.api);
        AgentFlow {
            limits,
            declared: declared(plan),
            held: KindSet::default(),
            is_partial: false,
            lost: BTreeMap::new(),
        }
    }

    /// Notes that a body could not be made: nobody knows what it would have lost.
    pub(super) fn lacks_a_body(&mut self) {
        self.is_partial = true;
    }

    fn add(&mut self, judged: &Judged, loaded: &'c LoadedContext, declarations: &Declarations) {
        self.held = self.held.and(judged.held);
        for loss in &judged.losses {
            if self.is_accepted(loss, declarations) {
                continue;
            }
            let lost = self.lost.entry((loss.kind, loss.fate.name())).or_insert_with(|| Lost {
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

    /// Returns `true` if a format or the author accounts for a loss.
    fn is_accepted(&self, loss: &Loss, declarations: &Declarations) -> bool {
        if !matches!(loss.fate, Fate::Dropped | Fate::Altered(_)) {
            return false;
        }
        let kinds = [Some(loss.kind), loss.also];
        if kinds.into_iter().flatten().any(|kind| self.limits.has(kind)) {
            return true;
        }
        let covering =
            self.declared.iter().find(|declared| kinds.into_iter().flatten().any(|kind| declared.kind.covers(kind)));
        covering.into_iter().for_each(|declared| declarations.note(declared, true));
        covering.is_some()
    }
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

impl Compiler {
    /// Judges what a body carries of its conversation.
    pub(super) fn judge_flow<'c>(
        &'c self,
        agent: &mut AgentFlow<'c>,
        (plan, loaded): (&Plan<'_>, &'c LoadedContext),
        request: &Request<'_>,
        (body, prompt): (&Body, Option<&SystemPrompt>),
    ) {
        let names = content_members(plan.wire);
        let some: Vec<MemberRef<'_>> = body.members().filter(|member| names.contains(&member.name)).collect();
        let judged = judged_members(plan, request, prompt, &some);
        // Content may stand in members that are no usual place for it.
        let is_loud = judged.losses.iter().any(|loss| !agent.is_accepted(loss, &Declarations::default()));
        let judged = match is_loud {
            true => judged_members(plan, request, prompt, &body.members().collect::<Vec<_>>()),
            false => judged,
        };
        agent.add(&judged, loaded, &self.declarations);
    }

    /// Tells what the bodies of an agent lose.
    pub(super) fn tell_flow(
        &self,
        agent: &AgentFlow<'_>,
        plan: &Plan<'_>,
        model: Option<&str>,
        findings: &mut Findings,
    ) {
        agent.declared.iter().for_each(|declared| self.declarations.note(declared, agent.is_partial));
        let is_told = |of: &str, kind: ContentKind, lost: &Lost<'_>| {
            let covers = |(other, fate): &(ContentKind, &str)| *other != kind && *fate == of && other.covers(kind);
            let mut wider = agent.lost.iter().filter(|(key, _)| covers(key) && !agent.held.has(key.0));
            wider.any(|(_, other)| lost.contexts.is_subset(&other.contexts) || !agent.held.has(kind))
        };
        for ((kind, fate), lost) in &agent.lost {
            // Who never writes images writes none by URL.
            if is_told(fate, *kind, lost) {
                continue;
            }
            let is_never = !agent.held.has(*kind);
            let mut finding = self.lost_content(*kind, is_never, lost, plan, model);
            for context in &lost.contexts {
                finding = finding.reaching(plan.name(), Some(context));
            }
            findings.push(self.at_entrance(finding, &plan.profile));
        }
    }

    fn lost_content(
        &self,
        kind: ContentKind,
        is_never: bool,
        lost: &Lost<'_>,
        plan: &Plan<'_>,
        model: Option<&str>,
    ) -> Diagnostic {
        let Lost { smallest, shown_by, .. } = lost;
        let (what, is_one) = kind.phrase();
        let verb = |one: &'static str, many: &'static str| if is_one { one } else { many };
        let (rule, message) = match &smallest.fate {
            Fate::Dropped if is_never => {
                (&rules::DROPPED, format!("{what} never {} the body", verb("reaches", "reach")))
            }
            Fate::Dropped => (&rules::DROPPED, format!("{what} {} not always reach the body", verb("does", "do"))),
            Fate::Altered(how) => (&rules::ALTERED, format!("{what} {} altered on the way: {how}", verb("is", "are"))),
            Fate::Duplicated => (&rules::DUPLICATED, format!("{what} {} in the body twice", verb("is", "are"))),
            Fate::Reordered => {
                (&rules::REORDERED, format!("{what} {} behind what was said later", verb("stands", "stand")))
            }
        };
        let near = self.nearest(smallest, plan, shown_by, model);
        let context = &shown_by.context.name;
        // What is told of an agent must not depend on which others are compiled.
        let sense = Some(format!("{} {message}", kind.name()));
        let finding = Diagnostic::new(rule, near.span, message).label(near.how).in_sense(sense);
        let finding = match self.data_span(&smallest.at, plan, shown_by) {
            Some(place) => finding.related(place, format!("for instance this, of the context `{context}`")),
            None => finding,
        };
        let finding = match &smallest.fate {
            Fate::Altered(how) if how.contains("white space") => finding.at_most(Severity::Warning),
            _ if kind.is_optional() => finding.at_most(Severity::Warning),
            _ => finding,
        };
        finding.help(help(kind, &smallest.fate))
    }

    /// The place of a template that comes nearest to writing some content.
    fn nearest(&self, loss: &Loss, plan: &Plan<'_>, loaded: &LoadedContext, model: Option<&str>) -> Nearest {
        let renderer = self.engine.renderer(LoadedContext::size_class(&loaded.plain.normalised));
        let member = member_of(plan, loss.kind);
        let (reads, written) = self.reads_and_writer(&renderer, (plan, loaded), model, member);
        let written_in = plan.member_at(member);
        // A prompt stands in the profile, or has a file of its own that writes nothing of the body's form.
        let is_of_body = !matches!(loss.kind, ContentKind::SystemPrompt | ContentKind::Files);
        let of_partial = written.filter(|span| is_of_body && span.file != written_in.file);
        let elsewhere = || Nearest { span: of_partial.unwrap_or(written_in), how: "nothing here reads it" };
        let best = reads.iter().map(|read| closeness(&read.path, &loss.at)).max();
        match best {
            Some(best) if best.shared > 0 => {
                let read = reads.iter().rev().find(|read| closeness(&read.path, &loss.at) == best);
                let how = match best.shared == loss.at.tokens().count() {
                    true if loss.fate == Fate::Dropped => "it is read here, and not written",
                    true => "it is read here",
                    false => "nothing more is read of it than this",
                };
                read.map_or_else(elsewhere, |read| Nearest { span: read.span, how })
            }
            _ => elsewhere(),
        }
    }

    /// Returns what the templates of a body read, and the template's place that wrote the last text of a member.
    fn reads_and_writer(
        &self,
        renderer: &Renderer<'_>,
        (plan, loaded): (&Plan<'_>, &LoadedContext),
        model: Option<&str>,
        member: &str,
    ) -> (Vec<DataRead>, Option<Span>) {
        let Ok(version) = self.version(plan, loaded, renderer).result else { return Default::default() };
        let request = loaded.request(plan, &version, model);
        let Ok(body) = plan.body(&self.repo.sources, renderer, &request) else { return Default::default() };
        let record = Record::new(plan, &self.repo.sources, renderer, &request, &body);
        let writer = last_text(&body, member).and_then(|at| match record.author(&at) {
            Author::Template { written, .. } => written.last().map(|written| written.span),
            Author::Literal { .. } | Author::Step { .. } => None,
        });
        (plan.data_reads(&self.repo.sources, renderer, &request, &body), writer)
    }
}

/// Where a piece of a conversation went.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ContentFate {
    /// `true` if the context has something at the place.
    pub is_there: bool,
    /// The values of the body that hold it, or that were computed from it, in the order of the body.
    pub values: Vec<Explanation>,
    /// The losses, each with its reason as a sentence.
    pub lost: Vec<String>,
}

impl Compiler {
    /// Where a piece of a context went in one body of an agent; the pointer leads into the context file. `None` if there is no such body.
    ///
    /// # Errors
    ///
    /// Why the body cannot be made.
    pub fn content_fate(
        &self,
        id: ProfileId,
        context: &str,
        model: Option<&str>,
        wanted: &Pointer,
    ) -> Option<Result<ContentFate, Vec<Diagnostic>>> {
        let explained = match self.explain(id, context, model, None)? {
            Ok(explained) => explained,
            Err(findings) => return Some(Err(findings)),
        };
        let (plan, loaded) = (self.plan(id)?, self.context(context)?);
        let Some(place) = self.place_in_context(loaded, wanted) else {
            return Some(Ok(ContentFate { is_there: false, values: Vec::new(), lost: Vec::new() }));
        };
        let values = explained
            .values
            .into_iter()
            .filter(|value| {
                value.sources.iter().any(|source| {
                    source.span.iter().chain(&source.made_of).any(|span| place.contains(*span) || span.contains(place))
                })
            })
            .collect();
        let lost = self.lost_of((&plan, loaded), model, &|at| {
            self.data_span(at, &plan, loaded).is_some_and(|span| place.contains(span))
        });
        Some(Ok(ContentFate { is_there: true, values, lost }))
    }

    /// The place of a value in a context file. Blocks are called `content` there; a message that is a text alone has no list of them.
    fn place_in_context(&self, loaded: &LoadedContext, wanted: &Pointer) -> Option<Span> {
        let file = loaded.context.file;
        let source = self.sources().get(file);
        let tree = json::parse_tree(source.text()).ok()?;
        let wanted = wanted.as_str().replace("/content_blocks", "/content").replace("/blocks", "/content");
        let as_text = wanted.split_once("/content/").map(|(message, _)| format!("{message}/content"));
        let mut pointers = [Some(wanted), as_text].into_iter().flatten();
        let found = pointers.find_map(|pointer| tree.locate(&Pointer::parse(&pointer)))?;
        Some(Span::new(file, found.span.clone()))
    }

    /// Returns what of some content a body lacks, and why.
    fn lost_of(
        &self,
        (plan, loaded): (&Plan<'_>, &LoadedContext),
        model: Option<&str>,
        is_wanted: &dyn Fn(&Pointer) -> bool,
    ) -> Vec<String> {
        let renderer = self.engine.renderer(LoadedContext::size_class(&loaded.plain.normalised));
        let Ok(version) = self.version(plan, loaded, &renderer).result else { return Vec::new() };
        let request = loaded.request(plan, &version, model);
        let made = plan.made(&self.repo.sources, &renderer, &request);
        let Ok(body) = made.body else { return Vec::new() };
        let members: Vec<MemberRef<'_>> = body.members().collect();
        let judged = judged_members(plan, &request, made.prompt.as_ref(), &members);
        let agent = AgentFlow::new(plan);
        judged
            .losses
            .iter()
            .filter(|loss| is_wanted(&loss.at))
            .map(|loss| {
                let (what, is_one) = loss.kind.phrase();
                let kinds = [Some(loss.kind), loss.also];
                let limit = limits::all()
                    .iter()
                    .filter(|limit| limit.holds(plan.wire, plan.api))
                    .find(|limit| kinds.into_iter().flatten().any(|kind| limit.kinds.contains(&kind)));
                let declared = agent
                    .declared
                    .iter()
                    .find(|declared| kinds.into_iter().flatten().any(|kind| declared.kind.covers(kind)));
                let fate = match (&loss.fate, is_one) {
                    (Fate::Altered(how), _) => format!("{what}: {how}"),
                    (Fate::Duplicated, _) => format!("{what}: it is there twice"),
                    (Fate::Reordered, _) => format!("{what}: it stands elsewhere"),
                    (Fate::Dropped, true) => format!("{what} is not in the body"),
                    (Fate::Dropped, false) => format!("{what} are not in the body"),
                };
                match (limit, declared) {
                    (Some(limit), _) => format!("{fate}. {} ({})", limit.reason, limit.source),
                    (None, Some(declared)) => {
                        format!("{fate}: `leaves_out` at {}", self.sources().describe(declared.span))
                    }
                    (None, None) => fate,
                }
            })
            .collect()
    }
}

/// The place that comes nearest, and how near.
struct Nearest {
    span: Span,
    how: &'static str,
}

/// How near a value that is read is to some content.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Closeness {
    /// The number of steps that both have in common.
    shared: usize,
    /// `true` if it is the content, what holds it or a member beside it, and nothing deep in another value.
    is_beside: bool,
    /// How much the value has to do with the content: a role says only who speaks, a type only which kind of content there is.
    weight: u8,
}

/// Returns the last text below a member of a body, one without content first: that is where content may be missing.
fn last_text(body: &Body, member: &str) -> Option<Pointer> {
    let value = body.value().get(member)?;
    let texts: Vec<Pointer> =
        leaves(value).into_iter().filter(|at| value.pointer(at.as_str()).is_some_and(Value::is_string)).collect();
    let blank = texts.iter().rev().find(|at| value.pointer(at.as_str()) == Some(&Value::from("")));
    let last = blank.or(texts.last())?;
    Some(Pointer::root().member(member).join(last))
}

fn closeness(path: &Pointer, wanted: &Pointer) -> Closeness {
    let shared = path.tokens().zip(wanted.tokens()).take_while(|(one, other)| one == other).count();
    let last = path.tokens().last();
    let is_beside = path.tokens().count() <= shared + 1;
    let weight = match last.as_deref() {
        Some("role") => 0,
        Some(name) if name.bytes().all(|byte| byte.is_ascii_digit()) => 1,
        Some("type") => 2,
        _ => 3,
    };
    Closeness { shared, is_beside, weight }
}

fn help(kind: ContentKind, fate: &Fate) -> String {
    let name = kind.name();
    match fate {
        Fate::Dropped => {
            format!("write it into the body, or say in the profile that it is left out: `leaves_out = [\"{name}\"]`")
        }
        Fate::Altered(_) => {
            format!(
                "write it once, as it is: `{{{{ tojson(value) }}}}`; what is altered on purpose goes into `leaves_out = [\"{name}\"]`"
            )
        }
        Fate::Duplicated => "write it at one place only".to_owned(),
        Fate::Reordered => "go over `ctx.history` once, from its beginning".to_owned(),
    }
}

/// Judges what some members of a body carry.
fn judged_members(
    plan: &Plan<'_>,
    request: &Request<'_>,
    prompt: Option<&SystemPrompt>,
    members: &[MemberRef<'_>],
) -> Arc<Judged> {
    let is_hollow = members.iter().any(|member| member.prompt().is_some());
    let judge = || {
        let values: Vec<_> = members.iter().map(|member| (member.name, member.shared_value())).collect();
        let history = request.conversation.history_for(plan.api);
        let expected = Expected {
            conversation: &request.conversation.conversation,
            history: &history,
            system_prompt: if is_hollow { Some(stand_in()) } else { prompt.map(SystemPrompt::as_str) },
            offers_tools: false,
        };
        Arc::new(flow::judge(plan.wire, &values, &expected))
    };
    let known = members.iter().map(|member| Some((Arc::from(member.name), Some(member.sameness()?))));
    match (request.memory, known.collect::<Option<Vec<_>>>()) {
        (Some(memory), Some(members)) => {
            let data = request.conversation.data_id(plan.api);
            let prompt = prompt.filter(|_| !is_hollow).cloned();
            memory.ask(JudgedOf { data, wire: plan.wire, prompt, is_hollow, members }, judge)
        }
        _ => judge(),
    }
}

/// The members that hold content.
fn content_members(wire: WireFormat) -> Vec<&'static str> {
    const WITHOUT_HISTORY: [&str; 7] =
        ["prompt", "suffix", "input_prefix", "input_suffix", "input_extra", "images", "system"];
    let of_history = history::member_of(wire).into_iter().collect::<Vec<_>>();
    let of_history = if of_history.is_empty() { WITHOUT_HISTORY.to_vec() } else { of_history };
    forms::prompt_members(wire).iter().copied().chain(of_history).collect()
}

/// The member that should hold what is nowhere.
fn member_of(plan: &Plan<'_>, kind: ContentKind) -> &'static str {
    let first = |names: &[&'static str]| {
        names.iter().find(|name| plan.profile.body().is_some_and(|body| body.get(name).is_some())).copied()
    };
    let usual = || history::member_of(plan.wire).or_else(|| first(&["prompt", "input_prefix"])).unwrap_or("prompt");
    match kind {
        ContentKind::Suffix => first(&["suffix", "input_suffix"]).unwrap_or_else(usual),
        ContentKind::SystemPrompt | ContentKind::Files => first(forms::prompt_members(plan.wire)).unwrap_or_else(usual),
        _ => usual(),
    }
}

/// The entries of `leaves_out`.
fn declared(plan: &Plan<'_>) -> Vec<Declared> {
    let Some(merged) = plan.profile.merged.get("leaves_out") else { return Vec::new() };
    let Toml::Array(elements) = &merged.node.kind else { return Vec::new() };
    let entries = elements.iter().filter_map(|element| match &element.kind {
        Toml::String(name) => {
            let kind = ContentKind::from_name(name)?;
            Some(Declared { kind, span: Span::new(merged.file, element.span.clone()) })
        }
        _ => None,
    });
    entries.collect()
}
