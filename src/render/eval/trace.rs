//! Tracks who writes each byte: the current scopes of the render, the branches that it takes, and
//! the tag that writes each text.

use std::collections::BTreeSet;

use super::super::place::Place;
use super::super::rope::{FrameId, Told};
use super::watch::Watch;
use super::{Scope, Step};

/// A scope that the render entered.
#[derive(Debug, Clone)]
pub(in super::super) struct Frame {
    pub(in super::super) parent: Option<FrameId>,
    /// The step that begins it; `None` for the template itself.
    pub(in super::super) step: Option<Step>,
    /// For a `set` block, the tag that first wrote the captured text.
    pub(in super::super) written_by: Option<Place>,
}

/// The record of the writers of text.
#[derive(Debug)]
pub(in super::super) struct Trace {
    pub(in super::super) frames: Vec<Frame>,
    /// The current frame of the render.
    pub(in super::super) frame: FrameId,
    pub(in super::super) branches: BTreeSet<Place>,
    emissions: u32,
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
            frame: 0,
            branches: BTreeSet::new(),
            emissions: 0,
        }
    }
}

impl Trace {
    /// Records a tag and the current frame as the writer of text that no tag wrote.
    fn claim(&mut self, text: &mut Told, tag: Place) {
        self.emissions += 1;
        for run in text
            .runs
            .iter_mut()
            .filter(|run| run.tag.is_none() && run.recording == 0)
        {
            (run.tag, run.emission, run.frame) = (Some(tag), self.emissions, self.frame);
        }
    }

    /// Records that a tag writes text that was captured before.
    fn note_captures(&mut self, text: &Told, tag: Place) {
        let here = self.frame;
        for runs in text
            .runs
            .chunk_by(|one, next| one.frame == next.frame && one.recording == next.recording)
        {
            let run = &runs[0];
            let mut next = Some(run.frame).filter(|frame| *frame != here && run.recording == 0);
            while let Some(frame) = next.and_then(|id| self.frames.get_mut(id as usize)) {
                next = frame.parent.filter(|parent| *parent != here);
                if frame.written_by.is_none()
                    && frame.step.is_some_and(|step| step.scope == Scope::SetBlock)
                {
                    frame.written_by = Some(tag);
                }
            }
        }
    }
}

impl Watch for Trace {
    const FOLLOWS: bool = true;

    fn branched(&mut self, at: Place) {
        self.branches.insert(at);
    }

    fn entered(&mut self, step: Step) {
        let parent = Some(self.frame);
        self.frame = FrameId::try_from(self.frames.len()).unwrap_or(FrameId::MAX);
        self.frames.push(Frame {
            parent,
            step: Some(step),
            written_by: None,
        });
    }

    fn left(&mut self) {
        self.frame = self
            .frames
            .get(self.frame as usize)
            .and_then(|frame| frame.parent)
            .unwrap_or(0);
    }

    fn frame(&self) -> FrameId {
        self.frame
    }

    fn writes(&mut self, text: &mut Told, tag: Place) {
        self.claim(text, tag);
        self.note_captures(text, tag);
        if text.text.is_empty() {
            text.note_nothing(tag, self.emissions, self.frame);
        }
    }

    fn captured(&mut self, text: &mut Told, tag: Place) {
        self.claim(text, tag);
    }
}
