//! The failure of a render, with its location.

use std::ops::{Deref, DerefMut};

use minijinja::{Error, ErrorKind, Value};

use super::super::account::TOO_LARGE;
use super::super::place::Place;
use super::super::tracked::{Absent, Arguments, Tracked};
use super::Step;

/// The result of part of a render.
pub(super) type Outcome<T> = Result<T, Failure>;

/// A failed render. It has the size of a pointer, so that an [`Outcome`] stays small.
#[derive(Debug)]
pub(in super::super) struct Failure(Box<Failed>);

/// The parts of a failure.
#[derive(Debug)]
pub(in super::super) struct Failed {
    /// The error that caused the failure.
    pub(in super::super) error: Error,
    /// The expression or the tag.
    pub(in super::super) at: Place,
    /// The missing value, if the error is about one.
    pub(in super::super) missing: Option<Absent>,
    /// The object that lacks the missing value, if that value is a member.
    pub(in super::super) object: Option<Value>,
    /// The called name, if the function does not exist or got the wrong arguments.
    pub(in super::super) called: Option<Box<str>>,
    /// The steps that led to the failure, the innermost first.
    pub(in super::super) steps: Vec<Step>,
}

impl Deref for Failure {
    type Target = Failed;

    fn deref(&self) -> &Failed {
        &self.0
    }
}

impl DerefMut for Failure {
    fn deref_mut(&mut self) -> &mut Failed {
        &mut self.0
    }
}

impl Failure {
    pub(super) fn at(at: Place, error: Error) -> Failure {
        let steps = Vec::new();
        Failure(Box::new(Failed {
            error,
            at,
            missing: None,
            object: None,
            called: None,
            steps,
        }))
    }

    /// Returns a failure about a value. If the value is undefined, the failure records this.
    pub(super) fn of(at: Place, error: Error, value: &Tracked) -> Failure {
        let missing = if value.value.is_undefined() {
            value.origin.missing().or(Some(Absent::value(at)))
        } else {
            None
        };
        Failure::at(at, error).lacking(missing)
    }

    /// Returns the failure of a call.
    pub(super) fn of_call(at: Place, error: Error, name: &str, arguments: &Arguments) -> Failure {
        let missing = arguments
            .missing()
            .filter(|_| is_undefined(&error) || has_undefined(&arguments.values));
        Failure::at(at, error).lacking(missing).calling(name)
    }

    /// Adds the missing value to the failure.
    pub(super) fn lacking(mut self, missing: Option<Absent>) -> Failure {
        self.missing = missing;
        self
    }

    /// Adds the called name to the failure.
    pub(super) fn calling(mut self, name: &str) -> Failure {
        self.called = Some(name.into());
        self
    }

    /// Adds a step that led to the failure.
    pub(super) fn through(mut self, step: Step) -> Failure {
        self.steps.push(step);
        self
    }
}

fn is_undefined(error: &Error) -> bool {
    error.kind() == ErrorKind::UndefinedError
}

fn has_undefined(values: &[Value]) -> bool {
    values.iter().any(Value::is_undefined)
}

/// Returns the failure for an undefined value that must not be used.
pub(super) fn undefined(at: Place, value: &Tracked) -> Failure {
    Failure::of(at, Error::from(ErrorKind::UndefinedError), value)
}

/// Returns the error for an invalid operation.
pub(super) fn invalid(message: impl Into<std::borrow::Cow<'static, str>>) -> Error {
    Error::new(ErrorKind::InvalidOperation, message)
}

/// Returns the error for output above the limit.
pub(super) fn too_large() -> Error {
    Error::new(ErrorKind::WriteFailure, TOO_LARGE)
}
