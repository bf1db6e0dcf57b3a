//! The objects that exist only while a render runs: macros and loops.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use minijinja::value::{Enumerator, Object};
use minijinja::{Error, ErrorKind, State, Value};

/// A reference to a macro, by its number in the render that declared it.
#[derive(Debug)]
pub(super) struct MacroRef {
    pub(super) number: usize,
    pub(super) name: Box<str>,
    parameters: Vec<Value>,
    wants_caller: bool,
}

impl MacroRef {
    pub(super) fn new(number: usize, declared: &super::tree::Macro) -> MacroRef {
        let parameters = declared
            .parameters
            .iter()
            .map(|parameter| Value::from(&*parameter.name))
            .collect();
        MacroRef {
            number,
            name: declared.name.clone(),
            parameters,
            wants_caller: declared.wants_caller,
        }
    }
}

impl Object for MacroRef {
    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Str(&["name", "arguments", "caller"])
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        match key.as_str()? {
            "name" => Some(Value::from(&*self.name)),
            "arguments" => Some(self.parameters.iter().cloned().collect()),
            "caller" => Some(Value::from(self.wants_caller)),
            _ => None,
        }
    }

    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, _: &[Value]) -> Result<Value, Error> {
        Err(Error::new(
            ErrorKind::InvalidOperation,
            "only templates can call a macro",
        ))
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<macro {}>", self.name)
    }
}

/// The `loop` object, which contains the position of a loop.
#[derive(Debug)]
pub(super) struct Loop {
    /// The number of the loop in the render.
    pub(super) number: usize,
    elements: Vec<Value>,
    index: AtomicUsize,
    depth: usize,
    /// `true` if the loop can be called.
    pub(super) recursive: bool,
}

/// The index of a loop that has not started.
const NOT_BEGUN: usize = usize::MAX;

impl Loop {
    pub(super) fn new(number: usize, elements: Vec<Value>, depth: usize, recursive: bool) -> Loop {
        Loop {
            number,
            elements,
            index: AtomicUsize::new(NOT_BEGUN),
            depth,
            recursive,
        }
    }

    /// Moves to an element, or past the last one.
    pub(super) fn go_to(&self, index: usize) {
        self.index.store(index, Ordering::Relaxed);
    }

    /// Returns the recursion depth.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }
}

impl Object for Loop {
    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Str(&[
            "index0",
            "index",
            "length",
            "revindex",
            "revindex0",
            "first",
            "last",
            "depth",
            "depth0",
            "previtem",
            "nextitem",
        ])
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        let (index, len) = (self.index.load(Ordering::Relaxed), self.elements.len());
        if index == NOT_BEGUN {
            return Some(Value::UNDEFINED);
        }
        let element = |at: Option<usize>| {
            at.and_then(|at| self.elements.get(at))
                .cloned()
                .unwrap_or_default()
        };
        Some(match key {
            "index" => Value::from(index + 1),
            "index0" => Value::from(index),
            "length" => Value::from(len),
            "revindex" => Value::from(len.saturating_sub(index)),
            "revindex0" => Value::from(len.saturating_sub(index).saturating_sub(1)),
            "first" => Value::from(index == 0),
            "last" => Value::from(len == 0 || index == len - 1),
            "depth" => Value::from(self.depth + 1),
            "depth0" => Value::from(self.depth),
            "previtem" => element(index.checked_sub(1)),
            "nextitem" => element(index.checked_add(1)),
            _ => return None,
        })
    }

    fn call(self: &Arc<Self>, _: &mut State<'_, '_>, _: &[Value]) -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, NOT_CALLABLE))
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "<loop {}/{}>",
            self.index.load(Ordering::Relaxed),
            self.elements.len()
        )
    }
}

/// The message for a loop that is called from outside.
pub(super) const NOT_CALLABLE: &str = "a loop can be called only inside itself, as `loop(…)` or by a name set with `{% set name = loop %}`";
