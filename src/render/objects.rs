//! Objects in templates other than data: functions, namespaces and modules.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use minijinja::value::{Enumerator, Object, ObjectRepr};
use minijinja::{Error, Value};

use super::tracked::{Native, Origin, Tracked};
use super::values::Members;

/// The implementation of a filter or a function.
pub(super) type Apply = for<'n, 'e> fn(&mut Native<'n, 'e>) -> Result<Tracked, Error>;
/// The implementation of one of our functions.
type Does = dyn for<'n, 'e> Fn(&mut Native<'n, 'e>) -> Result<Tracked, Error> + Send + Sync;

/// One of our functions.
pub(super) struct Function {
    pub(super) name: &'static str,
    pub(super) call: Box<Does>,
}

impl Function {
    /// Returns a function as a value.
    pub(super) fn of(name: &'static str, apply: Apply) -> Value {
        Function::with(name, apply)
    }

    /// Returns a function with captured state as a value.
    pub(super) fn with(
        name: &'static str,
        call: impl for<'n, 'e> Fn(&mut Native<'n, 'e>) -> Result<Tracked, Error> + Send + Sync + 'static,
    ) -> Value {
        Value::from_object(Function {
            name,
            call: Box::new(call),
        })
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "<function {}>", self.name)
    }
}

impl Object for Function {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }
}

/// A namespace, the only object whose members templates can assign.
#[derive(Debug, Default)]
pub(super) struct Namespace(Mutex<BTreeMap<Arc<str>, Tracked>>);

impl Namespace {
    /// Returns a namespace with the given members.
    pub(super) fn new(members: impl Iterator<Item = (Arc<str>, Tracked)>) -> Namespace {
        Namespace(Mutex::new(members.collect()))
    }

    pub(super) fn set(&self, name: &str, value: Tracked) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(name.into(), value);
    }

    pub(super) fn get(&self, name: &str) -> Option<Tracked> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .cloned()
    }
}

impl Object for Namespace {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get(key.as_str()?).map(|member| member.value)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let members = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Enumerator::Values(members.keys().cloned().map(Value::from).collect())
    }
}

/// The result of `{% import %}`: the variables of a template, and its output.
#[derive(Debug)]
pub(super) struct Module {
    pub(super) values: Members,
    pub(super) origins: Vec<Origin>,
    pub(super) written: Value,
}

impl Object for Module {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.values.get(key).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.values.keys().cloned().collect())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.written)
    }
}
