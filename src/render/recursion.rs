//! Calls that the engine makes by a jump: `loop(…)` goes to the instructions of a loop, `super()` to those of a block.
//!
//! The engine does not ask whose instructions it is in. Each template and each block has its own, so a call from any other
//! place runs whatever stands at the loop's number there. So `loop(…)` must stand in a loop of its own template or block, and
//! `super()` directly in a block. A loop that is called by another name stays usable: `{% set outer = loop %}` keeps a view
//! of the loop, which has its members and cannot be called, and `outer(…)` calls a variable that only guards know.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::operators::LOOP;

/// Something that stands where the engine cannot run it.
#[derive(Debug)]
pub(super) struct Misplaced {
    pub(super) range: Range<usize>,
    pub(super) message: &'static str,
    pub(super) help: &'static str,
}

/// What the loops of a template need, so that only their own instructions are jumped to.
#[derive(Debug, Default)]
pub(super) struct Recursion {
    /// Reads of a `loop` that could be called.
    pub(super) reads: Vec<Range<usize>>,
    /// Where calls of a loop by another name begin.
    pub(super) calls: Vec<usize>,
    /// The other names of loops: each begins in the first tag that ends behind the offset.
    pub(super) names: Vec<(usize, String)>,
}

/// What is around a statement in the instructions that it becomes part of: those of its template or of its block.
#[derive(Debug, Default)]
pub(super) struct Scope {
    loops: Vec<Loop>,
    /// Whether this is a block, and no macro in it.
    pub(super) is_block: bool,
}

#[derive(Debug)]
struct Loop {
    is_recursive: bool,
    /// Behind this, its first tag ends.
    head: usize,
    /// Variables that hold it, and whether they are called.
    names: Vec<(String, bool)>,
}

impl Scope {
    pub(super) fn of_block() -> Scope {
        Scope { loops: Vec::new(), is_block: true }
    }

    pub(super) fn enter_loop(&mut self, is_recursive: bool, head: usize) {
        self.loops.push(Loop { is_recursive, head, names: Vec::new() });
    }

    pub(super) fn leave_loop(&mut self, recursion: &mut Recursion) {
        let Some(Loop { head, names, .. }) = self.loops.pop() else { return };
        let called = names.into_iter().filter(|(_, is_called)| *is_called);
        recursion.names.extend(called.map(|(name, _)| (head, name)));
    }

    /// Whether `loop` may be one that can be called: the next one around, or one of another template.
    pub(super) fn has_callable_loop(&self) -> bool {
        self.loops.last().is_none_or(|innermost| innermost.is_recursive)
    }

    /// A variable gets the innermost loop, or anything else.
    pub(super) fn assigned(&mut self, name: &str, is_loop: bool) {
        self.loops.iter_mut().for_each(|it| it.names.retain(|(known, is_called)| *is_called || known != name));
        if let Some(innermost) = self.loops.last_mut().filter(|it| is_loop && it.is_recursive) {
            innermost.names.push((name.to_owned(), false));
        }
    }

    /// Looks at the call of a function; gives what is wrong with it.
    pub(super) fn called(&mut self, name: &str, range: &Range<usize>, recursion: &mut Recursion) -> Option<Misplaced> {
        let misplaced = |message, help| Some(Misplaced { range: range.clone(), message, help });
        match name {
            "super" if !self.is_block => misplaced(
                "`super()` works only in a `{% block %}`, outside of its macros",
                "call it in the block itself, and hand its text on: `{% set above = super() %}`",
            ),
            "loop" if self.loops.is_empty() => misplaced(
                "`loop(…)` works only in a `{% for … recursive %}` of the same template and block",
                "write the loop and its call in one partial, or use a macro that calls itself",
            ),
            name => {
                let mut names = self.loops.iter_mut().rev().flat_map(|it| &mut it.names);
                if let Some((_, is_called)) = names.find(|(known, _)| known == name) {
                    *is_called = true;
                    recursion.calls.push(range.start);
                }
                None
            }
        }
    }
}

/// Before the other name of a loop: the variable that only guards know.
pub(super) const HIDDEN: &str = "__loop_";

pub(super) fn install(environment: &mut Environment<'static>) {
    environment.add_function(LOOP, |value: Value| match value.as_object() {
        Some(object) if object.type_name().ends_with("::Loop") => Value::from_object(View(value)),
        _ => value,
    });
}

/// A loop that cannot be called.
#[derive(Debug)]
struct View(Value);

impl Object for View {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.as_object()?.get_value(key)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.0.as_object().map_or(Enumerator::Empty, minijinja::value::DynObject::enumerate)
    }

    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, _: &[Value]) -> Result<Value, Error> {
        let message = "a loop can be called only inside of itself, by `loop(…)` or by a name that `{% set name = loop %}` gives it";
        Err(Error::new(ErrorKind::InvalidOperation, message))
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}
