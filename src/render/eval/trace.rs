//! Tracks who writes each byte: the current scopes of the render, the branches that it takes, and
//! the tag that writes each text.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use super::super::data_path::DataPath;
use super::super::place::Place;
use super::super::rope::{FirstWrite, FrameId, Indexed, Input, Rope, Run, Values, Writer};
use super::super::tracked::Tracked;
use super::{Scope, Step, Traced};

/// A scope that the render entered.
#[derive(Debug, Clone)]
pub(in super::super) struct Frame {
    pub(in super::super) parent: Option<FrameId>,
    /// The step that begins the scope; `None` for the template itself.
    pub(in super::super) step: Option<Step>,
    /// For a `set` block, the tag that first wrote the captured text.
    pub(in super::super) written_by: Option<Place>,
}

/// The record of who wrote the text.
#[derive(Debug, Clone)]
pub(in super::super) struct Trace {
    pub(in super::super) frames: Vec<Frame>,
    /// For each frame, the innermost surrounding frame whose `written_by` is not set. Updating it
    /// compresses the path, so that long chains of frames are not walked again.
    unnoted: Vec<Option<FrameId>>,
    /// The current frame of the render.
    frame: FrameId,
    /// The tags of the branches and loops that the render entered.
    pub(in super::super) branches: BTreeSet<Place>,
    /// The tags that wrote text, by the number of the write.
    tags_of_writes: Vec<Place>,
}

impl Default for Trace {
    fn default() -> Trace {
        let outermost = Frame {
            parent: None,
            step: None,
            written_by: None,
        };
        Trace {
            frames: vec![outermost],
            unnoted: vec![None],
            frame: 0,
            branches: BTreeSet::new(),
            tags_of_writes: Vec::new(),
        }
    }
}

impl Trace {
    /// Records that the render enters the body of a branch or loop.
    pub(super) fn branched(&mut self, at: Place) {
        self.branches.insert(at);
    }

    /// Begins a scope.
    pub(super) fn entered(&mut self, step: Step) {
        let parent = Some(self.frame);
        self.frame = self.next_frame();
        self.frames.push(Frame {
            parent,
            step: Some(step),
            written_by: None,
        });
        self.unnoted.push(parent);
    }

    /// Ends the current scope.
    pub(super) fn left(&mut self) {
        self.frame = self
            .frames
            .get(self.frame as usize)
            .and_then(|frame| frame.parent)
            .unwrap_or(0);
    }

    /// Returns the numbers of a frame and of the frames inside it, which the render entered
    /// directly afterwards.
    pub(in super::super) fn inside(&self, frame: FrameId) -> Range<FrameId> {
        let after = self.frames.iter().enumerate().skip(frame as usize + 1);
        let mut outside = after.filter(|(_, other)| other.parent.is_none_or(|it| it < frame));
        let end = outside.next().map_or(self.frames.len(), |(index, _)| index);
        frame..number(end)
    }

    fn next_frame(&self) -> FrameId {
        number(self.frames.len())
    }

    /// Returns the run for literal text in a template.
    pub(super) fn literal(&self, len: usize, at: Place) -> Run {
        Run::new(len, Writer::Template(at)).written_in(FirstWrite::LITERAL, self.frame)
    }

    /// Returns the run for a tag that writes nothing.
    pub(super) fn nothing(&mut self, tag: Place) -> Run {
        let run = Run::new(0, Writer::Computed(Arc::default()));
        run.written_in(self.count_write(tag), self.frame)
    }

    /// Counts a write by a tag.
    fn count_write(&mut self, tag: Place) -> FirstWrite {
        self.tags_of_writes.push(tag);
        FirstWrite::tag(number(self.tags_of_writes.len() - 1))
    }

    /// Returns the tag that first wrote a run; `None` if no tag wrote it.
    pub(in super::super) fn tag(&self, run: &Run) -> Option<Place> {
        self.tags_of_writes
            .get(run.first_write.number()? as usize)
            .copied()
    }

    /// Records that a tag writes runs, some of which may have been captured before.
    pub(super) fn writes(&mut self, runs: &mut [Run], tag: Place) {
        self.captured(runs, tag);
        self.note_captures(runs, tag);
    }

    /// Sets the tag and the current frame of runs that were not written yet.
    pub(super) fn captured(&mut self, runs: &mut [Run], tag: Place) {
        let first_write = self.count_write(tag);
        for run in runs.iter_mut() {
            if run.first_write == FirstWrite::NONE {
                (run.first_write, run.frame) = (first_write, self.frame);
            }
        }
    }

    /// Records that a tag writes text that was captured before.
    fn note_captures(&mut self, runs: &[Run], tag: Place) {
        let here = self.frame;
        for runs in runs.chunk_by(|one, next| one.frame == next.frame) {
            let mut noted = Vec::new();
            let mut next = Some(runs[0].frame);
            while let Some(id) = next.filter(|id| *id != here)
                && let Some(frame) = self.frames.get_mut(id as usize)
            {
                if frame.step.is_some_and(|step| step.scope == Scope::SetBlock) {
                    frame.written_by.get_or_insert(tag);
                }
                noted.push(id);
                next = self.unnoted[id as usize];
            }
            for id in noted {
                self.unnoted[id as usize] = next;
            }
        }
    }

    /// Adds the scopes of a partial that was evaluated separately, inside a new scope that `step`
    /// begins. Returns the partial's output. `gave` contains the variables that the template passed
    /// to the partial.
    pub(super) fn adopt(&mut self, step: Step, partial: &Traced, gave: &[Given]) -> Rope {
        let Traced { rope, trace } = partial;
        self.entered(step);
        let (first, writes) = (self.frame, number(self.tags_of_writes.len()));
        let inner = trace.frames.iter().skip(1).map(|frame| Frame {
            parent: frame.parent.map(|parent| first.saturating_add(parent)),
            ..frame.clone()
        });
        self.frames.extend(inner);
        let parents = self.frames.iter().skip(self.unnoted.len());
        self.unnoted.extend(parents.map(|frame| frame.parent));
        self.left();
        self.branches.extend(&trace.branches);
        self.tags_of_writes.extend(&trace.tags_of_writes);
        let runs = rope.runs.iter().map(|run| run.moved(first, writes));
        let adopted = Rope {
            text: rope.text.clone(),
            runs: runs.collect(),
        };
        if gave.is_empty() {
            return adopted;
        }
        let values = GivenValues::new(gave);
        for (text, run) in adopted.slice().pieces() {
            if let (Some(tag), Some(runs)) = (self.tag(run), values.runs(text, run)) {
                self.note_captures(runs, tag);
            }
        }
        adopted.slice().replaced(&values)
    }

    /// Drops data that is needed only during the render.
    pub(super) fn finish(&mut self) {
        self.unnoted = Vec::new();
        self.frames.shrink_to_fit();
        self.tags_of_writes.shrink_to_fit();
    }

    /// Returns the approximate size in bytes.
    pub(in super::super) fn weight(&self) -> usize {
        self.frames.len() * size_of::<Frame>()
            + (self.branches.len() + self.tags_of_writes.len()) * size_of::<Place>()
    }
}

/// Returns the number of a frame or a write.
fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// A variable that a template passed to a partial.
pub(super) struct Given {
    name: Arc<str>,
    value: Tracked,
    /// The text with its writers, if the value is a string.
    text: Option<Rope>,
}

impl Given {
    pub(super) fn new(name: &Arc<str>, value: Tracked) -> Given {
        Given {
            name: Arc::clone(name),
            text: value.value.as_str().map(|text| value.rope(text)),
            value,
        }
    }
}

/// A variable that a template passed to a partial, whose parts are found by offset.
struct GivenValue<'g> {
    given: &'g Given,
    /// The text, if the value is text.
    text: Option<Indexed<'g>>,
}

/// The variables that a template passed to a partial, with their writers.
struct GivenValues<'g>(Vec<GivenValue<'g>>);

impl<'g> GivenValues<'g> {
    fn new(gave: &'g [Given]) -> GivenValues<'g> {
        let values = gave.iter().map(|given| GivenValue {
            given,
            text: given.text.as_ref().map(|text| Indexed::new(text.slice())),
        });
        GivenValues(values.collect())
    }

    fn find(&self, path: &DataPath) -> Option<&GivenValue<'g>> {
        let name = path.variable()?;
        self.0.iter().find(|value| *value.given.name == *name)
    }

    /// Returns the runs in the part of a variable that a run of the partial copied.
    fn runs(&self, text: &str, run: &Run) -> Option<&'g [Run]> {
        let value = self.find(run.data()?)?;
        Some(value.text.as_ref()?.runs(&run.range(text)?))
    }
}

impl Values for GivenValues<'_> {
    fn part(&self, path: &DataPath, range: Range<usize>, text: &str) -> Option<Rope> {
        let GivenValue { given, text: whole } = self.find(path)?;
        match whole {
            Some(whole) => Some(whole.part(range)),
            None if range.start == 0 => Some(given.value.rope(text)),
            // For other values, the writers are known only if the text starts at the beginning of
            // the value.
            None => Some(Rope::default()),
        }
    }

    fn inputs(&self, path: &DataPath) -> Option<Vec<Input>> {
        Some(self.find(path)?.given.value.origin.inputs())
    }
}
