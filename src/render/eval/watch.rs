//! Observers of the evaluation of a template.
//!
//! A watch is a type with a method for each event that it observes. To write one, implement
//! [`Watch`] for your type and pass it to [`run`](super::run); a pair combines two watches:
//!
//! ```text
//! /// Counts the branches that a render took.
//! #[derive(Default)]
//! struct Branches(usize);
//!
//! impl Watch for Branches {
//!     const FOLLOWS: bool = false;
//!
//!     fn branched(&mut self, _: Place) {
//!         self.0 += 1;
//!     }
//! }
//! ```

use minijinja::Error;

use super::super::place::Place;
use super::super::rope::{FrameId, Told};
use super::super::tracked::Tracked;
use super::Step;
use super::decisions::Decision;

/// Observes the evaluation of a template.
pub(in super::super) trait Watch {
    /// `true` if it needs the writer of each byte; otherwise the origins of texts are not kept.
    const FOLLOWS: bool;

    /// Called before a statement or an expression is evaluated.
    ///
    /// # Errors
    ///
    /// Returns an error to stop the render there.
    fn step(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Called when another render took steps on behalf of this one.
    ///
    /// # Errors
    ///
    /// Returns an error to stop the render there.
    fn steps(&mut self, _count: u64) -> Result<(), Error> {
        Ok(())
    }

    /// Called when a statement begins; the place is its tag, or its text.
    fn ran(&mut self, _at: Place) {}

    /// Called when a decision has one of its two outcomes.
    fn decided(&mut self, _decision: Decision, _holds: bool) {}

    /// Called when the evaluator enters the body of a branch or loop, whose tag is at this place.
    fn branched(&mut self, _at: Place) {}

    /// Called when a scope begins: an include, a macro, a capture.
    fn entered(&mut self, _step: Step) {}

    /// Called when the current scope ends.
    fn left(&mut self) {}

    /// Returns the current scope of the render.
    fn frame(&self) -> FrameId {
        0
    }

    /// Called before a text is written, by a tag or as literal text.
    fn writes(&mut self, _text: &mut Told, _tag: Place) {}

    /// Called when a block with the given tag has captured a text.
    fn captured(&mut self, _text: &mut Told, _tag: Place) {}

    /// Called when a variable is looked up by name; `is_set` returns `true` if the template, or one
    /// that it includes, has set it.
    fn asked(&mut self, _name: &str, _is_set: &dyn Fn() -> bool) {}

    /// Called at the end of the render, with the names that are set.
    fn ended(&mut self, _set: &mut dyn Iterator<Item = &str>) {}

    /// Called when a value is read from an object or a list, if origins are tracked.
    fn read(&mut self, _value: &Tracked, _at: Place) {}

    /// Called when a value is examined in any way other than passing it on, writing it, or testing
    /// that it exists.
    fn looked_at(&mut self, _value: &Tracked) {}
}

/// Observes nothing.
impl Watch for () {
    const FOLLOWS: bool = false;
}

/// Combines two watches; the second one provides the scopes.
impl<A: Watch, B: Watch> Watch for (A, B) {
    const FOLLOWS: bool = A::FOLLOWS || B::FOLLOWS;

    fn step(&mut self) -> Result<(), Error> {
        self.0.step()?;
        self.1.step()
    }

    fn steps(&mut self, count: u64) -> Result<(), Error> {
        self.0.steps(count)?;
        self.1.steps(count)
    }

    fn ran(&mut self, at: Place) {
        self.0.ran(at);
        self.1.ran(at);
    }

    fn decided(&mut self, decision: Decision, holds: bool) {
        self.0.decided(decision, holds);
        self.1.decided(decision, holds);
    }

    fn branched(&mut self, at: Place) {
        self.0.branched(at);
        self.1.branched(at);
    }

    fn entered(&mut self, step: Step) {
        self.0.entered(step);
        self.1.entered(step);
    }

    fn left(&mut self) {
        self.0.left();
        self.1.left();
    }

    fn frame(&self) -> FrameId {
        self.1.frame()
    }

    fn writes(&mut self, text: &mut Told, tag: Place) {
        self.0.writes(text, tag);
        self.1.writes(text, tag);
    }

    fn captured(&mut self, text: &mut Told, tag: Place) {
        self.0.captured(text, tag);
        self.1.captured(text, tag);
    }

    fn asked(&mut self, name: &str, is_set: &dyn Fn() -> bool) {
        self.0.asked(name, is_set);
        self.1.asked(name, is_set);
    }

    fn ended(&mut self, set: &mut dyn Iterator<Item = &str>) {
        let set: Vec<&str> = set.collect();
        self.0.ended(&mut set.iter().copied());
        self.1.ended(&mut set.iter().copied());
    }

    fn read(&mut self, value: &Tracked, at: Place) {
        self.0.read(value, at);
        self.1.read(value, at);
    }

    fn looked_at(&mut self, value: &Tracked) {
        self.0.looked_at(value);
        self.1.looked_at(value);
    }
}
