//! Calls that are valid only in some places: `loop(…)` runs the enclosing loop again, and `super()`
//! runs the block that the current one overrides.

use std::ops::Range;

/// A call at a location where it cannot work.
#[derive(Debug)]
pub(super) struct Misplaced {
    pub(super) range: Range<usize>,
    pub(super) message: &'static str,
    pub(super) help: &'static str,
}

/// The scope around a statement in its template or its block.
#[derive(Debug, Default)]
pub(super) struct Scope {
    /// The number of enclosing loops.
    loops: usize,
    /// `true` inside a block, but not inside a macro in the block.
    pub(super) is_block: bool,
}

impl Scope {
    pub(super) fn of_block() -> Scope {
        Scope {
            loops: 0,
            is_block: true,
        }
    }

    pub(super) fn enter_loop(&mut self) {
        self.loops += 1;
    }

    pub(super) fn leave_loop(&mut self) {
        self.loops -= 1;
    }

    /// Checks a call to a function; returns the mistake, if any.
    pub(super) fn called(&self, name: &str, range: &Range<usize>) -> Option<Misplaced> {
        let (message, help) = match name {
            "super" if !self.is_block => (
                "`super()` works only in a `{% block %}`, outside its macros",
                "call it in the block itself, and pass on its text: `{% set above = super() %}`",
            ),
            "loop" if self.loops == 0 => (
                "`loop(…)` works only in a `{% for … recursive %}` of the same template and block",
                "write the loop and its call in one partial, or use a macro that calls itself",
            ),
            _ => return None,
        };
        Some(Misplaced {
            range: range.clone(),
            message,
            help,
        })
    }
}
