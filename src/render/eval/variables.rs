//! The variables that a template can see, in nested scopes like the engine's.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::{Error, Value};

use super::super::account::RECURSION_LIMIT;
use super::super::tracked::{Names, Tracked};
use super::failure::invalid;
use super::objects::Loop;
use super::tree::For;

/// The number of a set of variables that a scope's macros capture.
pub(super) type ClosureId = usize;

/// A running loop.
#[derive(Debug, Clone)]
pub(super) struct Running<'e> {
    pub(super) object: Arc<Loop>,
    /// The loop's statement; `None` while the loop's condition is still selecting elements.
    pub(super) node: Option<&'e For>,
    /// The number of the template that contains the loop, and the block.
    pub(super) home: (u32, Option<&'e str>),
}

/// One scope.
#[derive(Debug, Default)]
pub(super) struct Scope<'e> {
    locals: Vec<(&'e str, Tracked)>,
    running: Option<Running<'e>>,
    /// The variables that macros declared here capture, including later assignments.
    closure: Option<ClosureId>,
    /// The variables that the macro running here captured.
    enclosed: Option<ClosureId>,
}

/// All scopes of a render.
#[derive(Debug)]
pub(super) struct Variables<'e> {
    globals: &'e BTreeMap<&'static str, Value>,
    /// The template's data.
    data: Vec<(Arc<str>, Tracked)>,
    /// The open scopes, the innermost last.
    scopes: Vec<Scope<'e>>,
    /// The nesting depth outside `scopes`.
    outside: usize,
    closures: Vec<Vec<(&'e str, Tracked)>>,
}

impl<'e> Variables<'e> {
    pub(super) fn new(globals: &'e BTreeMap<&'static str, Value>, depth: usize) -> Variables<'e> {
        Variables {
            globals,
            data: Vec::new(),
            scopes: vec![Scope::default()],
            outside: depth,
            closures: Vec::new(),
        }
    }

    /// Adds a variable to the template's data.
    pub(super) fn give(&mut self, name: Arc<str>, value: Tracked) {
        self.data.push((name, value));
    }

    /// Returns the value of a variable.
    pub(super) fn get(&self, name: &str) -> Option<Tracked> {
        let given = || self.data.iter().find(|(known, _)| **known == *name);
        self.set_value(name)
            .or_else(|| given().map(|(_, value)| value.clone()))
            .or_else(|| self.globals.get(name).cloned().map(Tracked::plain))
    }

    /// Returns the value of a variable that a template has set.
    pub(super) fn set_value(&self, name: &str) -> Option<Tracked> {
        for scope in self.scopes.iter().rev() {
            if let Some(value) = find(&scope.locals, name) {
                return Some(value.clone());
            }
            if let Some(running) = scope
                .running
                .as_ref()
                .filter(|running| running.node.is_some() && name == "loop")
            {
                return Some(Tracked::plain(Value::from_dyn_object(Arc::clone(
                    &running.object,
                ))));
            }
            if let Some(value) = scope.enclosed.and_then(|id| find(&self.closures[id], name)) {
                return Some(value.clone());
            }
        }
        None
    }

    /// Returns the names that are set in the outermost scope.
    pub(super) fn set_here(&self) -> impl Iterator<Item = &str> {
        self.scopes
            .first()
            .into_iter()
            .flat_map(|scope| scope.locals.iter().map(|(name, _)| *name))
    }

    /// Returns `true` in the scope of the template itself.
    pub(super) fn is_outermost(&self) -> bool {
        self.outside + self.scopes.len() == 1
    }

    /// Assigns a variable in the innermost scope.
    pub(super) fn set(&mut self, name: &'e str, value: Tracked) {
        let Some(scope) = self.scopes.last_mut() else {
            return;
        };
        if let Some(closure) = scope.closure {
            put(&mut self.closures[closure], name, value.clone());
        }
        put(&mut scope.locals, name, value);
    }

    /// Opens a scope.
    ///
    /// # Errors
    ///
    /// Returns an error if scopes nest too deeply.
    pub(super) fn open(&mut self) -> Result<(), Error> {
        self.scopes.push(Scope::default());
        self.check_depth().inspect_err(|_| drop(self.scopes.pop()))
    }

    /// Opens the scope of a loop.
    ///
    /// # Errors
    ///
    /// Returns an error if scopes nest too deeply.
    pub(super) fn open_loop(&mut self, running: Running<'e>) -> Result<(), Error> {
        self.open()?;
        if let Some(scope) = self.scopes.last_mut() {
            scope.running = Some(running);
        }
        Ok(())
    }

    pub(super) fn close(&mut self) {
        self.scopes.pop();
    }

    /// Closes scopes that a failure left open.
    pub(super) fn close_to(&mut self, depth: usize) {
        self.scopes.truncate(depth);
    }

    pub(super) fn open_scopes(&self) -> usize {
        self.scopes.len()
    }

    /// Removes the variables that the body of a loop assigned.
    pub(super) fn clear(&mut self) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.locals.clear();
        }
    }

    /// Returns the innermost loop.
    pub(super) fn running(&self) -> Option<&Running<'e>> {
        self.scopes
            .iter()
            .rev()
            .find_map(|scope| scope.running.as_ref())
    }

    /// Captures variables for the macros that the innermost scope declares.
    pub(super) fn enclose(&mut self, names: &'e [Box<str>]) -> Option<ClosureId> {
        let known = self.scopes.last().and_then(|scope| scope.closure);
        if names.is_empty() {
            return known;
        }
        let id = known.unwrap_or_else(|| {
            self.closures.push(Vec::new());
            self.closures.len() - 1
        });
        if let Some(scope) = self.scopes.last_mut() {
            scope.closure = Some(id);
        }
        for name in names {
            if find(&self.closures[id], name).is_none() {
                let value = self.get(name).unwrap_or_default();
                put(&mut self.closures[id], name, value);
            }
        }
        Some(id)
    }

    /// Removes and returns the captured variables of the innermost scope;
    /// [`Variables::give_closure`] restores them.
    pub(super) fn take_closure(&mut self) -> Option<ClosureId> {
        self.scopes
            .last_mut()
            .and_then(|scope| scope.closure.take())
    }

    pub(super) fn give_closure(&mut self, closure: Option<ClosureId>) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.closure = closure;
        }
    }

    /// Increases the depth without opening a scope.
    ///
    /// # Errors
    ///
    /// Returns an error if the nesting is too deep.
    pub(super) fn deepen(&mut self, by: usize) -> Result<(), Error> {
        self.outside += by;
        self.check_depth().inspect_err(|_| self.outside -= by)
    }

    pub(super) fn rise(&mut self, by: usize) {
        self.outside -= by;
    }

    /// Replaces all scopes with those of a macro. [`Variables::leave_macro`] restores them.
    ///
    /// # Errors
    ///
    /// Returns an error if the nesting is too deep.
    pub(super) fn enter_macro(
        &mut self,
        enclosed: Option<ClosureId>,
        cost: usize,
    ) -> Result<Outside<'e>, Error> {
        let before = Outside {
            scopes: std::mem::take(&mut self.scopes),
            outside: self.outside,
        };
        self.outside += before.scopes.len() + cost;
        self.scopes.push(Scope::default());
        self.scopes.push(Scope {
            enclosed,
            ..Scope::default()
        });
        match self.check_depth() {
            Ok(()) => Ok(before),
            Err(error) => {
                self.leave_macro(before);
                Err(error)
            }
        }
    }

    pub(super) fn leave_macro(&mut self, before: Outside<'e>) {
        (self.scopes, self.outside) = (before.scopes, before.outside);
    }

    /// Returns the variables in the innermost scope that can be imported, by name.
    pub(super) fn exported(&self) -> Vec<(&'e str, Tracked)> {
        let locals = self
            .scopes
            .last()
            .map(|scope| scope.locals.as_slice())
            .unwrap_or_default();
        let mut exported: Vec<_> = locals
            .iter()
            .filter(|(name, _)| !name.starts_with('_'))
            .cloned()
            .collect();
        exported.sort_by_key(|(name, _)| *name);
        exported
    }

    fn check_depth(&self) -> Result<(), Error> {
        match self.outside + self.scopes.len() > RECURSION_LIMIT {
            true => Err(invalid("recursion limit exceeded")),
            false => Ok(()),
        }
    }
}

/// The scopes around a call to a macro.
#[derive(Debug)]
pub(super) struct Outside<'e> {
    scopes: Vec<Scope<'e>>,
    outside: usize,
}

impl Names for Variables<'_> {
    fn lookup(&self, name: &str) -> Option<Value> {
        self.get(name).map(|found| found.value)
    }

    fn lookup_set(&self, name: &str) -> Option<Value> {
        self.set_value(name).map(|found| found.value)
    }
}

fn find<'v>(variables: &'v [(&str, Tracked)], name: &str) -> Option<&'v Tracked> {
    variables
        .iter()
        .rev()
        .find(|(known, _)| *known == name)
        .map(|(_, value)| value)
}

fn put<'e>(variables: &mut Vec<(&'e str, Tracked)>, name: &'e str, value: Tracked) {
    match variables.iter_mut().find(|(known, _)| *known == name) {
        Some((_, known)) => *known = value,
        None => variables.push((name, value)),
    }
}
