//! Records the writer of each byte of a template's output. Findings, explanations and diffs have no
//! other source of this information.
//!
//! Every evaluation of a template tracks its strings. The result is a [`Recording`], which returns
//! the writers of ranges in the output.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::data_path::DataPath;
use super::eval::{Reads, Scope, Trace, Traced};
use super::place::Place;
use super::rope::{self, FrameId, Input, ReadFile, Rope, RopeSlice, Run, Writer};
use super::{BodyInput, Engine, Renderer, TemplateId};
use crate::json::Pointer;
use crate::memory::Identity;
use crate::source::{Sources, Span};

/// The output of a template, with the writer of each byte.
#[derive(Debug)]
pub(crate) struct Recording {
    /// Identifies the recording.
    id: Identity,
    text: Arc<str>,
    runs: Box<[Run]>,
    trace: Arc<Trace>,
    /// The position of each run, determined when a writer is first requested.
    layout: OnceLock<Layout>,
    /// The number of the template, for bytes without a tag.
    template: u32,
    /// The recording of the system prompt, which contains the writers of some bytes.
    prompt: Option<Arc<Recording>>,
}

/// The positions of the runs in an output.
#[derive(Debug)]
struct Layout {
    /// The start offset of each run.
    starts: Vec<usize>,
    /// The range of the value that each run belongs to.
    values: Vec<Range<usize>>,
}

/// A run of output with its writer.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    /// The byte range in the output.
    pub output: Range<usize>,
    /// The writer of the bytes.
    pub by: By,
    /// The template's text that first wrote the bytes: literal text, or the tag.
    pub span: Span,
    /// The tag, if a tag wrote the bytes; in `{{ }}`, this is the expression.
    pub tag: Option<Span>,
    /// The steps that led to the location, the innermost first.
    pub steps: Vec<Step>,
    /// The range of the whole value that a tag wrote there; `None` for literal text.
    pub value: Option<Range<usize>>,
}

impl Written {
    /// Returns the location in the template itself: literal text, or the tag, regardless of what it
    /// wrote.
    pub fn statement(&self) -> Span {
        self.tag
            .filter(|_| self.value.is_some())
            .unwrap_or(self.span)
    }
}

/// The source of bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum By {
    /// Literal text in a template.
    Template,
    /// A data value.
    Data {
        /// The value's location in `ctx`, or the name of another variable.
        path: Arc<Pointer>,
        /// The range in the value's text.
        bytes: Range<usize>,
    },
    /// A file that a prompt read.
    File {
        /// The file that was read.
        file: Arc<ReadFile>,
        /// The range in the file's text.
        bytes: Range<usize>,
    },
    /// A tag that wrote the bytes around values, such as punctuation and member names.
    Tag,
    /// A tag computed the bytes from these values, so the location is inferred.
    Computed(Vec<From>),
}

/// An input of a computed string.
#[derive(Debug, Clone, PartialEq)]
pub enum From {
    /// A data value.
    Data(Arc<Pointer>),
    /// A file.
    File(Arc<ReadFile>),
    /// Text in a template.
    Template(Span),
}

/// A step that led to a location in a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The kind of step.
    pub kind: StepKind,
    /// The tag or the call.
    pub span: Span,
}

/// The kinds of steps from one location in a template to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StepKind {
    /// `{% include %}`.
    Include,
    /// A call to a macro.
    Macro,
    /// `{% call %}`.
    CallBlock,
    /// `{% set %}…{% endset %}`.
    SetBlock,
    /// `{% filter %}`.
    FilterBlock,
}

impl StepKind {
    /// Returns the name used in JSON.
    pub fn name(self) -> &'static str {
        match self {
            StepKind::Include => "include",
            StepKind::Macro => "macro",
            StepKind::CallBlock => "call",
            StepKind::SetBlock => "set",
            StepKind::FilterBlock => "filter",
        }
    }

    /// Returns the phrase that precedes the step's location.
    pub fn at(self) -> &'static str {
        match self {
            StepKind::Include => "included at",
            StepKind::Macro => "called at",
            StepKind::CallBlock => "in `call` at",
            StepKind::SetBlock => "in `set` at",
            StepKind::FilterBlock => "in `filter` at",
        }
    }

    /// Returns the phrase for messages.
    pub fn phrase(self) -> &'static str {
        match self {
            StepKind::Include => "included from here",
            StepKind::Macro => "the macro is called here",
            StepKind::CallBlock => "inside this `call` block",
            StepKind::SetBlock => "captured by this `set` block",
            StepKind::FilterBlock => "inside this `filter` block",
        }
    }
}

impl Scope {
    /// Returns the kind of step that leads into the scope; `None` for an import, which writes
    /// nothing.
    pub(super) fn kind(self) -> Option<StepKind> {
        match self {
            Scope::Include => Some(StepKind::Include),
            Scope::Import => None,
            Scope::Macro => Some(StepKind::Macro),
            Scope::Caller => Some(StepKind::CallBlock),
            Scope::SetBlock => Some(StepKind::SetBlock),
            Scope::FilterBlock => Some(StepKind::FilterBlock),
        }
    }
}

/// A read of a data value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DataRead {
    /// The location of the value in the data.
    pub(crate) path: Arc<Pointer>,
    /// The expression, or the tag of the loop.
    pub(crate) span: Span,
}

impl Renderer<'_> {
    /// Evaluates a body template, and records the data values that it reads, with the locations of
    /// the reads.
    pub(crate) fn reads_of_body(
        &self,
        sources: &Sources,
        id: TemplateId,
        input: &BodyInput<'_>,
    ) -> Vec<DataRead> {
        let (output, _) = self.run(id, self.engine, input.variables(), Reads::default());
        output
            .watch
            .0
            .into_iter()
            .map(|(path, place)| DataRead {
                path: Arc::new(path.pointer()),
                span: self.engine.place_span(sources, place),
            })
            .collect()
    }
}

impl Recording {
    pub(super) fn new(written: Traced, template: u32) -> Recording {
        Recording::of(written.rope, Arc::new(written.trace), template)
    }

    fn of(rope: Rope, trace: Arc<Trace>, template: u32) -> Recording {
        Recording {
            id: Identity::new(),
            text: rope.text.into(),
            runs: rope.runs.into(),
            trace,
            layout: OnceLock::new(),
            template,
            prompt: None,
        }
    }

    /// Returns the identity of the recording.
    pub(crate) fn id(&self) -> Identity {
        self.id
    }

    /// Returns the approximate size in bytes.
    pub(crate) fn weight(&self) -> usize {
        self.text.len() + size_of_val(&*self.runs) + self.trace.weight()
    }

    /// Returns the recording with a different form of the text, in which the same bytes have the
    /// same writers.
    pub(crate) fn with_text(self, text: Arc<str>) -> Recording {
        debug_assert_eq!(text.len(), self.text.len(), "offsets stay the same");
        Recording { text, ..self }
    }

    /// Returns the recording of a system prompt with several parts, in the order of the whole
    /// prompt: the agent's own part with its recording, and layers of the conversation with their
    /// index. Everything else is attributed to the tag that inserts the prompt.
    pub(crate) fn of_prompt<'p>(
        own: Option<&Recording>,
        parts: impl Iterator<Item = (Option<usize>, &'p str)>,
    ) -> Recording {
        let mut rope = Rope::default();
        for (index, (layer, text)) in parts.enumerate() {
            if index > 0 {
                rope.push_one(crate::conversation::PROMPT_SEPARATOR, Writer::Tag);
            }
            match (layer, own) {
                (Some(layer), _) => {
                    let layers = DataPath::root().member("system_layers");
                    let path = layers.element(layer).member("text");
                    rope.push_one(text, Writer::Data { path, at: 0 });
                }
                (None, Some(own)) => {
                    let start = rope.runs.len();
                    rope.push(own.rope());
                    rope.runs
                        .iter_mut()
                        .skip(start)
                        .for_each(|run| run.is_of_prompt = true);
                }
                (None, None) => rope.push_one(text, Writer::Computed(Arc::default())),
            }
        }
        match own {
            Some(own) => Recording::of(rope, Arc::clone(&own.trace), own.template),
            None => Recording::of(rope, Arc::default(), 0),
        }
    }

    /// Returns the recording of a system prompt whose own writers do not matter.
    pub(crate) fn of_given_prompt(text: &str) -> Recording {
        Recording::of(Rope::one(text, rope::whole_prompt()), Arc::default(), 0)
    }

    /// Returns this recording with the system prompt's own writers in place of the value that the
    /// template inserted. If that was a placeholder, the prompt replaces it in the text.
    pub(crate) fn with_prompt(
        &self,
        placeholder: Option<&str>,
        prompt: &Arc<Recording>,
    ) -> Recording {
        let rope = self.rope().with_prompt(placeholder, prompt.rope());
        Recording {
            prompt: Some(Arc::clone(prompt)),
            ..Recording::of(rope, Arc::clone(&self.trace), self.template)
        }
    }

    fn rope(&self) -> RopeSlice<'_> {
        RopeSlice {
            text: &self.text,
            runs: &self.runs,
        }
    }

    fn layout(&self) -> &Layout {
        self.layout.get_or_init(|| Layout {
            starts: rope::starts(&self.runs),
            values: rope::values(&self.runs),
        })
    }

    fn starts(&self) -> &[usize] {
        &self.layout().starts
    }

    /// Returns the output.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the writers of a range in the output, in order, including those that wrote nothing
    /// inside the range.
    pub(crate) fn written(
        &self,
        engine: &Engine,
        sources: &Sources,
        range: Range<usize>,
    ) -> Vec<Written> {
        let starts = self.starts();
        let first = starts
            .partition_point(|&start| start < range.start)
            .saturating_sub(1);
        let mut written = Vec::new();
        for (index, run) in self.runs.iter().enumerate().skip(first) {
            let output = starts[index]..starts[index] + run.len();
            let overlaps = output.start < range.end && output.end > range.start;
            let touches =
                range.is_empty() && output.start <= range.start && range.start < output.end;
            if output.start > range.end {
                break;
            }
            if overlaps || touches {
                written.push(self.written_by(engine, sources, index, output, &range));
            }
        }
        written
    }

    /// Returns the tags of the branches and loops that the evaluator entered.
    pub(crate) fn branches(&self, engine: &Engine, sources: &Sources) -> Vec<Span> {
        self.trace
            .branches
            .iter()
            .map(|&place| engine.place_span(sources, place))
            .collect()
    }

    /// Returns a tag in a range of the output that wrote nothing.
    pub(crate) fn empty_tag(
        &self,
        engine: &Engine,
        sources: &Sources,
        range: &Range<usize>,
    ) -> Option<Span> {
        let runs = self.runs.iter().zip(self.starts()).rev();
        { runs }
            .find(|(run, start)| {
                let is_tag = run.first_write.number().is_some();
                run.is_empty() && is_tag && (range.start..=range.end).contains(*start)
            })
            .map(|(run, _)| run)
            .and_then(|run| self.tag_span(engine, sources, run))
    }

    /// Returns the outermost macro call, or the outermost tag that writes a capture, whose output
    /// up to a byte is text rather than JSON. This means that no literal text in the macro before
    /// that byte contains a quote or a bracket. Also returns the offset where the output of this
    /// call or tag begins.
    pub(crate) fn call_for_text(
        &self,
        engine: &Engine,
        sources: &Sources,
        at: usize,
    ) -> Option<(usize, Span)> {
        let index = self
            .starts()
            .partition_point(|&start| start <= at)
            .checked_sub(1)?;
        let mut next = Some(self.runs[index].frame);
        let mut found = None;
        while let Some((id, frame)) =
            next.and_then(|id| Some((id, self.trace.frames.get(id as usize)?)))
        {
            next = frame.parent;
            let call = match frame.step.map(|step| (step.scope, step.at)) {
                Some((Scope::Macro, call)) => Some(call),
                Some((Scope::SetBlock, _)) => frame.written_by,
                _ => continue,
            };
            let Some(start) = self.text_before(id, index, at) else {
                break;
            };
            found = call.map(|call| (start, engine.place_span(sources, call)));
        }
        found
    }

    /// Returns the offset where the output of the frame around a run begins; `None` if the
    /// templates' literal text from there to a byte is JSON.
    fn text_before(&self, frame: FrameId, index: usize, at: usize) -> Option<usize> {
        let inside = self.trace.inside(frame);
        let runs = self.runs[..=index].iter().zip(self.starts()).rev();
        let mut begin = self.starts()[index];
        for (run, &start) in runs.take_while(|(run, _)| inside.contains(&run.frame)) {
            let words = &self.text[start..(start + run.len()).min(at.max(start))];
            if matches!(run.writer, Writer::Template(_))
                && words.contains(['"', '{', '}', '[', ']'])
            {
                return None;
            }
            begin = start;
        }
        Some(begin)
    }

    /// Returns the location of the tag that first wrote a run.
    fn tag_span(&self, engine: &Engine, sources: &Sources, run: &Run) -> Option<Span> {
        let tag = self.owner(run).trace.tag(run)?;
        Some(engine.place_span(sources, tag))
    }

    /// Returns the recording that contains a run's tag and frame.
    fn owner(&self, run: &Run) -> &Recording {
        match &self.prompt {
            Some(prompt) if run.is_of_prompt => prompt,
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
        let run = &self.runs[index];
        let owner = self.owner(run);
        let inside = asked.start.max(output.start)
            ..asked.end.min(output.end).max(asked.start.max(output.start));
        let text = &self.text[output.clone()];
        let source = run.source(text, inside.start - output.start, inside.len());
        let tag = self.tag_span(engine, sources, run);
        let mut span =
            tag.unwrap_or_else(|| engine.place_span(sources, Place::new(owner.template, &(0..0))));
        let by = match &run.writer {
            Writer::Template(place) => {
                let is_exact = place.len() == rope::unescaped_len(text, run.escaped);
                let place = if is_exact {
                    place.part(&source)
                } else {
                    *place
                };
                span = engine.place_span(sources, place);
                By::Template
            }
            Writer::Data { path, at } => By::Data {
                path: Arc::new(path.pointer()),
                bytes: shifted(&source, *at),
            },
            Writer::File { file, at } => By::File {
                file: Arc::clone(file),
                bytes: shifted(&source, *at),
            },
            Writer::Tag => By::Tag,
            Writer::Computed(from) => By::Computed(
                from.iter()
                    .map(|input| computed_from(engine, sources, input))
                    .collect(),
            ),
        };
        let number = run.first_write.number();
        let value = number.map(|_| self.layout().values[index].clone());
        Written {
            output: inside,
            by,
            span,
            tag,
            steps: owner.steps(engine, sources, run.frame),
            value,
        }
    }

    fn steps(&self, engine: &Engine, sources: &Sources, frame: FrameId) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut next = Some(frame);
        while let Some(frame) = next.and_then(|frame| self.trace.frames.get(frame as usize)) {
            next = frame.parent;
            let Some((kind, at)) = frame
                .step
                .and_then(|step| Some((step.scope.kind()?, step.at)))
            else {
                continue;
            };
            let span = engine.place_span(sources, at);
            // The text of a `call` block is rendered inside the macro that the block calls, so both
            // steps have the same location.
            if steps.last().is_none_or(|step: &Step| step.span != span) {
                steps.push(Step { kind, span });
            }
        }
        steps
    }
}

/// Returns a range moved by an offset.
fn shifted(range: &Range<usize>, at: u32) -> Range<usize> {
    at as usize + range.start..at as usize + range.end
}

fn computed_from(engine: &Engine, sources: &Sources, input: &Input) -> From {
    match input {
        Input::Data(path) => From::Data(Arc::new(path.pointer())),
        Input::File(file) => From::File(Arc::clone(file)),
        Input::Template(place) => From::Template(engine.place_span(sources, *place)),
    }
}
