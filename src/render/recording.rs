//! Renders that tell who wrote each byte: the one place from which findings, explanations and diffs know it.
//!
//! A template is rendered once more with [`marks`] in it. What the marked render writes must be what the plain one wrote, byte by
//! byte; if it is not, the recording says so and names nobody. Plain renders know nothing of all this.

mod filters;
mod marks;
mod shadow;
mod text;

pub use text::{ReadFile, ReadPlace};

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use minijinja::{Environment, Value};

use super::dialect::PROMPT_VARIABLES;
use super::{BodyInput, Engine, MAX_FUEL, MAX_OUTPUT, PromptScope, Renderer, TemplateId, account, functions};
use crate::json::Pointer;
use crate::source::{Sources, Span};
use marks::{Node, NodeId, NodeKind, Scope};
use shadow::{Frame, Nodes};
use text::{FrameId, Input, Run, Told, Writer};

pub(super) use shadow::{DataPlaces, note_read};

/// Steps that a marked render may take: enough for any that a plain one may take.
const STEPS: u64 = 16 * MAX_FUEL;
/// How many marked templates of profiles are kept: those of the agents at work.
const KEPT: usize = 64;

/// All partials with marks, made when somebody first asks who wrote something.
#[derive(Default)]
pub(super) struct Recorder {
    partials: OnceLock<Marked>,
    templates: Mutex<HashMap<TemplateId, Arc<Marked>>>,
}

/// Marked templates that can be rendered.
struct Marked {
    environment: Environment<'static>,
    nodes: Arc<Nodes>,
    /// The templates' names, by their numbers.
    names: Vec<Arc<str>>,
}

/// What a template wrote, and who wrote each byte.
pub(crate) struct Recording {
    told: Told,
    /// Where each run starts.
    starts: Vec<usize>,
    /// Where the value starts that each run is a part of.
    values: Vec<Range<usize>>,
    frames: Vec<Frame>,
    branches: BTreeSet<NodeId>,
    /// The tag at which the output became too large.
    stopped: Option<NodeId>,
    /// Where the render ended, or failed.
    last_frame: FrameId,
    marked: Arc<Marked>,
    /// From which byte on nobody can be named, and why.
    unknown: Option<(usize, &'static str)>,
    /// That of the system prompt, to which some bytes belong.
    prompt: Option<Arc<Recording>>,
}

/// Who wrote a run of output.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// The bytes of the output.
    pub output: Range<usize>,
    /// Who wrote them.
    pub by: By,
    /// The template's text that wrote them first: literal text, or the tag.
    pub span: Span,
    /// The tag, if one wrote them.
    pub tag: Option<Span>,
    /// How the render got there: the innermost step first.
    pub steps: Vec<Step>,
    /// The bytes of the whole value that a tag wrote there; `None` for literal text.
    pub value: Option<Range<usize>>,
}

impl Written {
    /// What stands in the template itself: literal text, or the tag whatever it wrote.
    pub fn statement(&self) -> Span {
        self.tag.filter(|_| self.value.is_some()).unwrap_or(self.span)
    }
}

/// The source of some bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum By {
    /// Literal text of a template.
    Template,
    /// A value of the data.
    Data {
        /// Its place in `ctx`.
        path: Arc<Pointer>,
        /// The bytes of its text.
        bytes: Range<usize>,
    },
    /// A file that a prompt read.
    File {
        /// The file.
        file: Arc<ReadFile>,
        /// The bytes of its text.
        bytes: Range<usize>,
    },
    /// A tag, with what it writes around values.
    Tag,
    /// Computed from these by the tag: an inferred place.
    Computed(Vec<From>),
    /// Nobody can tell, and why.
    Unknown(&'static str),
}

/// Where `${PROJECT_DIR}` and its like are written in a prompt's own text: a tag of two letters, behind its braces, stands for each.
fn folder_variable(path: &Pointer, tag: Span) -> Option<Span> {
    let name = path.tokens().next()?;
    let (variable, _) = PROMPT_VARIABLES.iter().find(|(_, short)| *short == name)?;
    let start = (tag.start as usize).checked_sub("{{".len())?;
    Some(Span::new(tag.file, start..start + variable.len()))
}

/// What a computed text was made of.
#[derive(Debug, Clone, PartialEq)]
pub enum From {
    /// A value of the data.
    Data(Arc<Pointer>),
    /// A file.
    File(Arc<ReadFile>),
    /// Text of a template.
    Template(Span),
}

/// A step on the way to a place in a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The kind of step.
    pub kind: StepKind,
    /// The tag or the call.
    pub span: Span,
}

/// What leads from one place of a template to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// `{% include %}`.
    Include,
    /// A call of a macro.
    Macro,
    /// `{% call %}`.
    CallBlock,
    /// `{% set %}…{% endset %}`.
    SetBlock,
    /// `{% filter %}`.
    FilterBlock,
}

impl StepKind {
    /// The name for programs.
    pub fn name(self) -> &'static str {
        match self {
            StepKind::Include => "include",
            StepKind::Macro => "macro",
            StepKind::CallBlock => "call",
            StepKind::SetBlock => "set",
            StepKind::FilterBlock => "filter",
        }
    }

    /// The phrase before its place.
    pub fn at(self) -> &'static str {
        match self {
            StepKind::Include => "included at",
            StepKind::Macro => "called at",
            StepKind::CallBlock => "in `call` at",
            StepKind::SetBlock => "in `set` at",
            StepKind::FilterBlock => "in `filter` at",
        }
    }

    /// As a phrase for messages.
    pub fn phrase(self) -> &'static str {
        match self {
            StepKind::Include => "included from here",
            StepKind::Macro => "the macro is called here",
            StepKind::CallBlock => "inside of this `call` block",
            StepKind::SetBlock => "captured by this `set` block",
            StepKind::FilterBlock => "inside of this `filter` block",
        }
    }
}

impl Engine {
    fn marked_partials(&self) -> &Marked {
        self.recorder.partials.get_or_init(|| {
            let mut environment = super::environment(self.dialect);
            shadow::install(&mut environment);
            // Nobody sees its errors.
            environment.set_debug(false);
            environment.set_fuel(Some(STEPS));
            let (mut nodes, mut names) = (Vec::new(), Vec::new());
            for name in self.partial_names.iter().filter(|name| !self.broken.contains(*name)) {
                self.add_marked(&mut environment, name, &mut names, &mut nodes, 0);
            }
            let nodes = Arc::new(Nodes { shared: Arc::new(nodes), own: Vec::new() });
            Marked { environment, nodes, names }
        })
    }

    fn marked(&self, id: TemplateId) -> Arc<Marked> {
        let lock = || self.recorder.templates.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&id) {
            return Arc::clone(known);
        }
        let partials = self.marked_partials();
        let (mut environment, mut names) = (partials.environment.clone(), partials.names.clone());
        let shared = Arc::clone(&partials.nodes.shared);
        let mut own = Vec::new();
        let first = NodeId::try_from(shared.len()).expect("fewer than 2^32 nodes");
        self.add_marked(&mut environment, &self.templates[id.0 as usize].name, &mut names, &mut own, first);
        let marked = Arc::new(Marked { environment, nodes: Arc::new(Nodes { shared, own }), names });
        let mut known = lock();
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(id, Arc::clone(&marked));
        marked
    }

    /// Adds a template with marks; one that cannot be marked as it is, so that the render can be told from a marked one.
    fn add_marked(
        &self,
        environment: &mut Environment<'static>,
        name: &Arc<str>,
        names: &mut Vec<Arc<str>>,
        nodes: &mut Vec<Node>,
        first: NodeId,
    ) {
        let Some(compiled) = self.compiled_text(name) else { return };
        let template = u32::try_from(names.len()).expect("fewer than 2^32 templates");
        names.push(Arc::clone(name));
        let before = nodes.len();
        let original = |range: Range<usize>| self.original_range(name, range);
        let text = marks::mark((&compiled, self.dialect), template, nodes, first, &original);
        let added = text.and_then(|text| environment.add_template_owned(name.to_string(), text));
        if added.is_err() {
            nodes.truncate(before);
            environment.add_template_owned(name.to_string(), compiled.into_owned()).expect("it was compiled before");
        }
    }
}

impl Renderer<'_> {
    /// Renders a template of a body again, to tell who wrote what. `text` is what it wrote; `enough` is how much of it is asked
    /// for: what is behind may be unknown.
    pub(crate) fn record_body(
        &self,
        id: TemplateId,
        input: &BodyInput<'_>,
        prompt: Option<&Arc<Recording>>,
        (text, enough): (&str, usize),
    ) -> Recording {
        let (root, data) = (input.root(), Some(input.context.places()));
        let told = prompt.map(|prompt| &prompt.told);
        let mut recording = self.record(id, (&root, data), told, (Some(text), enough));
        recording.prompt = prompt.cloned();
        recording
    }

    /// The same for a system prompt.
    pub(crate) fn record_prompt(&self, id: TemplateId, scope: &Arc<PromptScope>, text: &str) -> Recording {
        self.record(id, (&scope.root(self.engine.dialect), None), None, (Some(text), usize::MAX))
    }

    /// What wrote the byte at which the output became too large.
    pub(super) fn record_limit(&self, sources: &Sources, id: TemplateId, root: &Value) -> Option<Span> {
        let recording = self.record(id, (root, None), None, (None, usize::MAX));
        if let Some(tag) = recording.stopped {
            return Some(recording.node_span(self.engine, sources, tag));
        }
        let len = recording.told.text.len();
        let last = recording.written(self.engine, sources, len.saturating_sub(1)..len).pop();
        last.map(|written| written.span)
    }

    /// The steps that led to where a template failed, the innermost first.
    pub(super) fn record_failure(&self, sources: &Sources, id: TemplateId, root: &Value) -> Vec<Step> {
        let recording = self.record(id, (root, None), None, (None, usize::MAX));
        recording.steps(self.engine, sources, recording.last_frame)
    }

    /// `data` says where the values of a conversation are; without it, the root is gone through.
    fn record(
        &self,
        id: TemplateId,
        (root, data): (&Value, Option<&Arc<DataPlaces>>),
        prompt: Option<&Told>,
        (text, enough): (Option<&str>, usize),
    ) -> Recording {
        let marked = self.engine.marked(id);
        let name = &self.engine.templates[id.0 as usize].name;
        let mut output = functions::Limited::new(MAX_OUTPUT);
        let render = || {
            let template = marked.environment.get_template(name);
            let rendered = template.map(|it| it.render_captured_to(root.clone(), &mut output));
            // What was written before a failure is as good as all of it.
            drop(rendered);
        };
        let ((told, log), _) =
            account::metered(|| shadow::follow(Arc::clone(&marked.nodes), (root, data), prompt, enough, render));
        let output = output.into_text();
        let (told, unknown) = match text {
            Some(text) if !told.is(text) || output != told.text => {
                let reason = match log.gave_up() {
                    true => "the template makes too many texts of texts to be followed",
                    false => "the engine cannot be followed here",
                };
                let (told, known) = told.up_to(text);
                (told, Some((known, reason)))
            }
            _ => (told, None),
        };
        let stopped = log.stopped_at();
        let (frames, branches, last_frame) = (log.frames, log.branches, log.frame);
        let (starts, values) = (told.starts(), told.values());
        Recording { starts, values, told, frames, branches, stopped, last_frame, marked, unknown, prompt: None }
    }
}

impl Recording {
    /// A system prompt of several parts, in order: the agent's own part with its recording, layers of the conversation with
    /// their number; joined as the whole prompt is. What the agent did not write, the tag writes that asks for the prompt.
    pub(crate) fn of_prompt<'p>(
        own: Option<&Recording>,
        parts: impl Iterator<Item = (Option<usize>, &'p str)>,
        renderer: &Renderer<'_>,
    ) -> Recording {
        let mut told = Told::default();
        for (index, (layer, text)) in parts.enumerate() {
            if index > 0 {
                told.push_one(crate::conversation::PROMPT_SEPARATOR, Writer::Tag);
            }
            match (layer, own) {
                (Some(layer), _) => {
                    let path = Pointer::root().member("system_layers").element(layer).member("text");
                    told.push_one(text, Writer::Data { path: Arc::new(path), at: 0 });
                }
                (None, Some(own)) => {
                    let start = told.runs.len();
                    told.push(&own.told);
                    told.runs.iter_mut().skip(start).for_each(|run| run.recording = 1);
                }
                (None, None) => told.push_one(text, Writer::Computed { from: Arc::new([]) }),
            }
        }
        let (frames, branches, marked) = match own {
            Some(own) => (own.frames.clone(), own.branches.clone(), Arc::clone(&own.marked)),
            None => (Vec::new(), BTreeSet::new(), Arc::new(renderer.engine.no_marks())),
        };
        // Where its own part begins does not matter: what is unknown of it is unknown of all.
        let unknown = own.and_then(|own| own.unknown).map(|(_, reason)| (0, reason));
        let (starts, values) = (told.starts(), told.values());
        let (stopped, last_frame) = (None, 0);
        Recording { starts, values, told, frames, branches, stopped, last_frame, marked, unknown, prompt: None }
    }

    /// The output.
    pub(crate) fn text(&self) -> &str {
        &self.told.text
    }

    /// Who wrote a range of the output, in order. What wrote nothing inside of it is left out, but not at the start of an
    /// empty range.
    pub(crate) fn written(&self, engine: &Engine, sources: &Sources, range: Range<usize>) -> Vec<Written> {
        let first = self.starts.partition_point(|&start| start < range.start).saturating_sub(1);
        let mut written = Vec::new();
        for (index, run) in self.told.runs.iter().enumerate().skip(first) {
            let output = self.starts[index]..self.starts[index] + run.len;
            let overlaps = output.start < range.end && output.end > range.start;
            let touches = range.is_empty() && output.start <= range.start && range.start < output.end;
            if output.start > range.end {
                break;
            }
            if overlaps || touches {
                written.push(self.written_by(engine, sources, index, output, &range));
            }
        }
        written
    }

    /// The tags of the branches and loops that were gone into.
    pub(crate) fn branches(&self, engine: &Engine, sources: &Sources) -> Vec<Span> {
        self.branches.iter().map(|&id| self.node_span(engine, sources, id)).collect()
    }

    /// The tag that wrote nothing, somewhere in a range of the output.
    pub(crate) fn empty_tag(&self, engine: &Engine, sources: &Sources, range: &Range<usize>) -> Option<Span> {
        let runs = self.told.runs.iter().zip(&self.starts).rev();
        let is_there = |(run, start): &(&Run, &usize)| {
            run.len == 0 && run.emission > 0 && (range.start..=range.end).contains(*start)
        };
        { runs }.find(is_there).map(|(run, _)| run).and_then(|run| self.owner(run).tag_span(engine, sources, run))
    }

    /// The outermost call of a macro, or the outermost tag that writes a capture, that gives a text and no JSON, as far as a byte of its
    /// output: where the output begins, and the tag. None of the macro's own words before that byte is a quote or a bracket.
    pub(crate) fn call_for_text(&self, engine: &Engine, sources: &Sources, at: usize) -> Option<(usize, Span)> {
        let index = self.starts.partition_point(|&start| start <= at).checked_sub(1)?;
        let mut next = Some(self.told.runs[index].frame);
        let mut found = None;
        while let Some((id, frame)) = next.and_then(|id| Some((id, self.frames.get(id as usize)?))) {
            next = frame.parent;
            let gives_text =
                |node| matches!(self.marked.nodes.get(node).kind, NodeKind::Enter(Scope::Macro(_) | Scope::Set));
            if !frame.node.is_some_and(gives_text) {
                continue;
            }
            let Some(start) = self.text_before(id, index, at) else { break };
            let call = frame.call.or_else(|| self.running_call(frame));
            found = call.map(|call| (start, self.node_span(engine, sources, call)));
        }
        found
    }

    /// Where the output of a frame begins that a run is in; `None` if the templates' own words from there to a byte are JSON.
    fn text_before(&self, frame: FrameId, index: usize, at: usize) -> Option<usize> {
        let is_within = |run: &Run| {
            let parent = |id: &FrameId| self.frames.get(*id as usize).and_then(|frame| frame.parent);
            std::iter::successors(Some(run.frame), parent).any(|id| id == frame)
        };
        let runs = self.told.runs[..=index].iter().zip(&self.starts).rev();
        let mut begin = self.starts[index];
        for (run, &start) in runs.take_while(|(run, _)| is_within(run)) {
            let words = &self.told.text[start..(start + run.len).min(at.max(start))];
            if matches!(run.writer, Writer::Template { .. }) && words.contains(['"', '{', '}', '[', ']']) {
                return None;
            }
            begin = start;
        }
        Some(begin)
    }

    /// The recording that knows a run's tag and frame.
    fn owner(&self, run: &Run) -> &Recording {
        match &self.prompt {
            Some(prompt) if run.recording == 1 => prompt,
            _ => self,
        }
    }

    fn written_by(
        &self,
        engine: &Engine,
        sources: &Sources,
        index: usize,
        output: Range<usize>,
        asked: &Range<usize>,
    ) -> Written {
        let run = &self.told.runs[index];
        let owner = self.owner(run);
        let inside = asked.start.max(output.start)..asked.end.min(output.end).max(asked.start.max(output.start));
        let text = &self.told.text[output.clone()];
        let source = run.source(text, inside.start - output.start, inside.len());
        let shifted = |at: usize| at + source.start..at + source.end;
        let mut tag = owner.tag_span(engine, sources, run);
        let start_of_file = || engine.span(sources, owner.marked.names.last().map_or("", |name| name), 0..0);
        let mut span = tag.unwrap_or_else(start_of_file);
        let by = match (&run.writer, self.unknown) {
            (_, Some((known, reason))) if output.end > known => By::Unknown(reason),
            (Writer::Template { template, at, len }, _) => {
                let is_exact = *len == text::unescaped_len(text, run.escaped);
                let range = if is_exact { shifted(*at) } else { *at..at + len };
                span = owner.template_span(engine, sources, *template, range);
                By::Template
            }
            (Writer::Data { path, .. }, _) if let Some(variable) = tag.and_then(|tag| folder_variable(path, tag)) => {
                (span, tag) = (variable, Some(variable));
                By::Template
            }
            (Writer::Data { path, at }, _) => By::Data { path: Arc::clone(path), bytes: shifted(*at) },
            (Writer::File { file, at }, _) => By::File { file: Arc::clone(file), bytes: shifted(*at) },
            (Writer::Tag, _) => By::Tag,
            (Writer::Computed { from }, _) => {
                By::Computed(from.iter().map(|input| owner.input(engine, sources, input)).collect())
            }
        };
        let value = (run.emission > 0).then(|| self.values[index].clone());
        Written { output: inside, by, span, tag, steps: owner.steps(engine, sources, run.frame), value }
    }

    fn input(&self, engine: &Engine, sources: &Sources, input: &Input) -> From {
        match input {
            Input::Data(path) => From::Data(Arc::clone(path)),
            Input::File(file) => From::File(Arc::clone(file)),
            Input::Template { template, at, len } => {
                From::Template(self.template_span(engine, sources, *template, *at..at + len))
            }
        }
    }

    fn template_span(&self, engine: &Engine, sources: &Sources, template: u32, range: Range<usize>) -> Span {
        engine.span(sources, &self.marked.names[template as usize], range)
    }

    fn node_span(&self, engine: &Engine, sources: &Sources, id: NodeId) -> Span {
        let node = self.marked.nodes.get(id);
        self.template_span(engine, sources, node.template, node.range.clone())
    }

    fn tag_span(&self, engine: &Engine, sources: &Sources, run: &Run) -> Option<Span> {
        run.tag.map(|tag| self.node_span(engine, sources, tag))
    }

    fn steps(&self, engine: &Engine, sources: &Sources, frame: FrameId) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut next = Some(frame);
        while let Some(frame) = next.and_then(|frame| self.frames.get(frame as usize)) {
            next = frame.parent;
            let Some(node) = frame.node else { continue };
            let kind = match &self.marked.nodes.get(node).kind {
                NodeKind::Include => StepKind::Include,
                NodeKind::Enter(Scope::Macro(_)) => StepKind::Macro,
                NodeKind::Enter(Scope::Caller) => StepKind::CallBlock,
                NodeKind::Enter(Scope::Filter) => StepKind::FilterBlock,
                NodeKind::Enter(Scope::Set) => StepKind::SetBlock,
                _ => continue,
            };
            let call = || frame.call.or_else(|| self.call_block(frame)).or_else(|| self.running_call(frame));
            let at = match kind {
                StepKind::Macro => call(),
                _ => Some(node),
            };
            let Some(at) = at else { continue };
            let span = self.node_span(engine, sources, at);
            // The text of a `call` block is in the macro that the block calls.
            if steps.last().is_none_or(|step: &Step| step.span != span) {
                steps.push(Step { kind, span });
            }
        }
        steps
    }

    /// The `call` block that runs a macro.
    fn call_block(&self, called: &Frame) -> Option<NodeId> {
        let node = self.frames.get(called.parent? as usize)?.node?;
        matches!(self.marked.nodes.get(node).kind, NodeKind::CallBlock).then_some(node)
    }

    /// The call of a macro that has not ended.
    fn running_call(&self, called: &Frame) -> Option<NodeId> {
        let NodeKind::Enter(Scope::Macro(name)) = &self.marked.nodes.get(called.node?).kind else { return None };
        self.marked.nodes.call_from(called.before?, name)
    }
}

impl Engine {
    /// No template at all: for prompts that none wrote.
    fn no_marks(&self) -> Marked {
        let partials = self.marked_partials();
        let nodes = Arc::new(Nodes { shared: Arc::clone(&partials.nodes.shared), own: Vec::new() });
        Marked { environment: partials.environment.clone(), nodes, names: partials.names.clone() }
    }
}
