//! Observers of a template's evaluation.
//!
//! A watch is a type with a method for each event that it observes. To write one, implement
//! [`Watch`] for your type and pass it to [`run`](super::run); a pair combines two watches:
//!
//! ```text
//! /// Counts the statements that a render executed.
//! #[derive(Default)]
//! struct Statements(usize);
//!
//! impl Watch for Statements {
//!     fn ran(&mut self, _: Place) {
//!         self.0 += 1;
//!     }
//! }
//! ```

use minijinja::Error;

use super::super::place::Place;
use super::super::tracked::Tracked;
use super::decisions::Decision;

/// Observes the evaluation of a template.
pub(in super::super) trait Watch {
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

    /// Called when a statement begins; the location is its tag, or its text.
    fn ran(&mut self, _at: Place) {}

    /// Called when a decision has one of its two outcomes.
    fn decided(&mut self, _decision: Decision, _holds: bool) {}

    /// Called when a variable is looked up by name; `is_set` returns `true` if the template, or one
    /// that it includes, has set it.
    fn asked(&mut self, _name: &str, _is_set: &dyn Fn() -> bool) {}

    /// Called at the end of the render, with the names that are set.
    fn ended(&mut self, _set: &mut dyn Iterator<Item = &str>) {}

    /// Called when a value is read from an object or a list.
    fn read(&mut self, _value: &Tracked, _at: Place) {}

    /// Called when a value is examined in any way other than passing it on, writing it, or testing
    /// that it exists.
    fn looked_at(&mut self, _value: &Tracked) {}
}

/// Observes nothing.
impl Watch for () {}

/// Combines two watches.
impl<A: Watch, B: Watch> Watch for (A, B) {
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
