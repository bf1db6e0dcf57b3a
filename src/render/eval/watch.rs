//! Observers of the evaluation of a template.
//!
//! A watch is a type with a method for each thing that it wants to know. To write a new one,
//! implement [`Watch`] for a type of yours and give it to [`run`](super::run); two are watched
//! together as a pair:
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

/// Is told what happens.
pub(in super::super) trait Watch {
    /// `true` if it asks who wrote each byte: else origins of texts are not kept.
    const FOLLOWS: bool;

    /// A statement or an expression is about to be evaluated.
    ///
    /// # Errors
    ///
    /// To end the render there.
    fn step(&mut self) -> Result<(), Error> {
        Ok(())
    }

    /// Steps were taken by another render for this one.
    ///
    /// # Errors
    ///
    /// To end the render there.
    fn steps(&mut self, _count: u64) -> Result<(), Error> {
        Ok(())
    }

    /// A statement begins; the place is its tag, or its text.
    fn ran(&mut self, _at: Place) {}

    /// A decision came to one of its two outcomes.
    fn decided(&mut self, _decision: Decision, _holds: bool) {}

    /// The body of a branch or a loop is gone into; the place is its tag.
    fn branched(&mut self, _at: Place) {}

    /// A scope begins: an include, a macro, a capture.
    fn entered(&mut self, _step: Step) {}

    /// The scope that began last ends.
    fn left(&mut self) {}

    /// Returns the scope that the render is in.
    fn frame(&self) -> FrameId {
        0
    }

    /// A text is about to be written, by a tag or as literal text.
    fn writes(&mut self, _text: &mut Told, _tag: Place) {}

    /// A text was captured by a block whose tag is given.
    fn captured(&mut self, _text: &mut Told, _tag: Place) {}

    /// A variable is asked for by its name; the question is whether the template, or something that
    /// it includes, has set it.
    fn asked(&mut self, _name: &str, _is_set: &dyn Fn() -> bool) {}

    /// The render ends: these names are set.
    fn ended(&mut self, _set: &mut dyn Iterator<Item = &str>) {}

    /// A value was taken out of an object or a list. It is reported where origins are followed.
    fn read(&mut self, _value: &Tracked, _at: Place) {}

    /// A value is looked at in another way than by handing it on, writing it, or asking whether it
    /// is there.
    fn looked_at(&mut self, _value: &Tracked) {}
}

/// Watches nothing.
impl Watch for () {
    const FOLLOWS: bool = false;
}

/// Two watches together; scopes are those of the second.
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
