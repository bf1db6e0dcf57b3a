//! Calls to functions, macros, methods and loops.

use std::sync::Arc;

use minijinja::value::{DynObject, Kwargs, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use super::super::keep::Holder;
use super::super::objects::Function;
use super::super::place::Place;
use super::super::tracked::{Absent, AbsentKind, Arguments, Native, Origin, Tracked};
use super::decisions::{self, DecisionKind};
use super::failure::{Failure, Outcome, invalid};
use super::objects::{Loop, MacroRef, NOT_CALLABLE};
use super::tree::{Argument, Call, Callee, Expr, Macro, Template};
use super::variables::ClosureId;
use super::watch::Watch;
use super::{Eval, Scope, Step, operators};
use crate::diag::{did_you_mean, listed};

/// The number of nesting levels that a macro counts as.
const MACRO_DEPTH: usize = 4;

/// A declared macro.
#[derive(Debug, Clone, Copy)]
pub(super) struct Declared<'e> {
    node: &'e Macro,
    /// The template that declares the macro.
    template: &'e Template,
    enclosed: Option<ClosureId>,
}

/// The named arguments of a call, as they are collected.
#[derive(Debug, Default)]
struct Named {
    names: Vec<Box<str>>,
    values: Vec<Value>,
    origins: Vec<Origin>,
}

impl Named {
    fn add(&mut self, name: &str, value: Tracked) {
        match self.names.iter().position(|known| **known == *name) {
            Some(at) => (self.values[at], self.origins[at]) = (value.value, value.origin),
            None => {
                self.names.push(name.into());
                self.values.push(value.value);
                self.origins.push(value.origin);
            }
        }
    }

    fn into_argument(self) -> Tracked {
        let pairs = self.names.iter().map(|name| &**name).zip(self.values);
        Tracked {
            value: Value::from(pairs.collect::<Kwargs>()),
            origin: Origin::Map(self.origins.into()),
        }
    }
}

impl<'e, W: Watch> Eval<'e, W> {
    /// Declares a macro, and returns it as a value.
    pub(super) fn declare(&mut self, node: &'e Macro) -> Tracked {
        node.enclosed.iter().for_each(|name| self.note_name(name));
        let enclosed = self.variables.enclose(&node.enclosed);
        let number = self.macros.len();
        self.macros.push(Declared {
            node,
            template: self.template,
            enclosed,
        });
        Tracked::plain(Value::from_object(MacroRef::new(number, node)))
    }

    /// Calls a value. `caller` is the body of a `{% call %}` block; `site` is the location reported
    /// for a call to a macro.
    pub(super) fn call(
        &mut self,
        call: &'e Call,
        caller: Option<&'e Macro>,
        site: Place,
    ) -> Outcome<Tracked> {
        match &call.callee {
            Callee::Name(name) => {
                let arguments = self.arguments(&call.arguments, caller, Arguments::default())?;
                if &**name == "super" {
                    return self.call_super(&arguments, call.at);
                }
                self.note_name(name);
                let Some(function) = self.variables.get(name) else {
                    let error =
                        Error::new(ErrorKind::UnknownFunction, format!("{name} is unknown"));
                    return Err(Failure::of_call(
                        call.at,
                        error,
                        name,
                        &Arguments::default(),
                    ));
                };
                self.call_value(&function, arguments, name, [call.at, site])
            }
            Callee::Block(name) => {
                self.begin_capture();
                if self.parent.is_none() && !self.is_discarding() {
                    self.run_block(name, call.at)?;
                }
                let text = self.end_capture();
                Ok(self.captured(text))
            }
            Callee::Method(object, name, own) => {
                let object = self.value(object)?;
                let arguments = self.arguments(&call.arguments, caller, Arguments::default())?;
                self.call_method(&object, name, arguments, [*own, site])
            }
            Callee::Value(value) => {
                let function = self.value(value)?;
                let arguments = self.arguments(&call.arguments, caller, Arguments::default())?;
                self.call_value(&function, arguments, "", [call.at, site])
            }
        }
    }

    fn call_super(&mut self, arguments: &Arguments, at: Place) -> Outcome<Tracked> {
        if !arguments.values.is_empty() {
            return Err(Failure::at(at, invalid("super() takes no arguments")));
        }
        self.begin_capture();
        self.super_block(at)?;
        let text = self.end_capture();
        Ok(self.captured(text))
    }

    /// Calls a method of an object. Loops have two methods, which templates must not use; other
    /// objects have none.
    fn call_method(
        &mut self,
        object: &Tracked,
        name: &str,
        arguments: Arguments,
        [at, site]: [Place; 2],
    ) -> Outcome<Tracked> {
        let member = object
            .value
            .as_object()
            .and_then(|it| it.get_value(&Value::from(name)));
        match member {
            Some(member) => self.call_value(&Tracked::plain(member), arguments, name, [at, site]),
            None => {
                let message = format!("{} has no method named {name}", object.value.kind());
                Err(Failure::of(
                    at,
                    Error::new(ErrorKind::UnknownMethod, message),
                    object,
                ))
            }
        }
    }

    fn call_value(
        &mut self,
        value: &Tracked,
        arguments: Arguments,
        name: &str,
        [at, site]: [Place; 2],
    ) -> Outcome<Tracked> {
        let Some(object) = value.value.as_object() else {
            let error = invalid(format!(
                "value of type {} is not callable",
                value.value.kind()
            ));
            return Err(Failure::of(at, error, value));
        };
        if let Some(function) = object.downcast::<Function>() {
            self.look_at(&arguments, function.name == "tojson");
            if decisions::IS_DEFAULT.contains(&function.name) {
                self.decide_default(&arguments, at);
            }
            return self.native(arguments, function.name, at, |native| {
                (function.call)(native)
            });
        }
        if let Some(called) = object.downcast::<MacroRef>() {
            return self.call_macro(&called, &arguments, [at, site]);
        }
        match object.downcast::<Loop>() {
            Some(called) => self.call_loop(&called, &arguments, name, at),
            None => {
                let error = object.call(&mut self.state, &arguments.values).err();
                let error = error.unwrap_or_else(|| invalid("this value is not callable"));
                Err(Failure::of_call(at, error, name, &arguments))
            }
        }
    }

    /// Calls one of our own functions, filters or tests.
    pub(super) fn native<R>(
        &mut self,
        arguments: Arguments,
        name: &str,
        at: Place,
        call: impl for<'n> FnOnce(&mut Native<'n, 'e>) -> Result<R, Error>,
    ) -> Outcome<R> {
        let mut native = Native {
            arguments,
            state: &mut self.state,
            names: &self.variables,
        };
        let result = call(&mut native);
        result.map_err(|error| Failure::of_call(at, error, name, &native.arguments))
    }

    /// Notifies the watch that the arguments are examined. If `passes_on` is `true`, the first
    /// argument is skipped, because it is only passed on.
    pub(super) fn look_at(&mut self, arguments: &Arguments, passes_on: bool) {
        let skipped = usize::from(passes_on);
        for (value, origin) in arguments
            .values
            .iter()
            .zip(&arguments.origins)
            .skip(skipped)
        {
            self.watch.looked_at(&Tracked {
                value: value.clone(),
                origin: origin.clone(),
            });
        }
    }

    fn call_loop(
        &mut self,
        called: &Arc<Loop>,
        arguments: &Arguments,
        name: &str,
        at: Place,
    ) -> Outcome<Tracked> {
        let home = (self.template.number, self.block);
        let running = self
            .running
            .iter()
            .find(|running| running.object.number == called.number && running.home.0 == home.0)
            .filter(|it| !name.is_empty() && it.home.1 == home.1)
            .cloned();
        let Some(running) = running else {
            return Err(Failure::at(at, invalid(NOT_CALLABLE)));
        };
        if arguments.values.len() != 1 {
            return Err(Failure::at(at, invalid("loop() takes one argument")));
        }
        self.begin_capture();
        self.recurse(&running, &arguments.get(0), at)?;
        let text = self.end_capture();
        Ok(self.captured(text))
    }
}

/// Calls macros.
impl<'e, W: Watch> Eval<'e, W> {
    fn call_macro(
        &mut self,
        callable: &MacroRef,
        arguments: &Arguments,
        [at, site]: [Place; 2],
    ) -> Outcome<Tracked> {
        let Some(&declared) = self.macros.get(callable.number) else {
            return Err(Failure::at(at, invalid("only templates can call a macro")));
        };
        let bound = bind(declared.node, arguments);
        let (values, caller) =
            bound.map_err(|error| Failure::of_call(at, error, &callable.name, arguments))?;
        let step = match &*callable.name {
            "caller" => Step {
                scope: Scope::Caller,
                at: declared.node.at,
            },
            _ => Step {
                scope: Scope::Macro,
                at: site,
            },
        };
        let before = self.variables.enter_macro(declared.enclosed, MACRO_DEPTH);
        let before = before.map_err(|error| Failure::at(at, error))?;
        let blocks = self
            .blocks
            .iter()
            .map(|(name, it)| (*name, (it.all.len(), it.depth)))
            .collect::<Vec<_>>();
        let extended = self.extended.clone();
        let around = (
            std::mem::replace(&mut self.template, declared.template),
            self.block.take(),
            self.parent.take(),
        );
        self.begin_capture();
        let result = self.within(step, |eval| {
            if let Some(caller) = caller {
                eval.variables.set("caller", caller);
            }
            eval.run_macro(declared.node, values)
        });
        let text = self.end_capture();
        (self.template, self.block, self.parent) = around;
        self.restore_blocks(&blocks);
        self.extended = extended;
        self.variables.leave_macro(before);
        result?;
        Ok(self.captured(text))
    }

    fn restore_blocks(&mut self, known: &[(&'e str, (usize, usize))]) {
        self.blocks
            .retain(|name, _| known.iter().any(|(known, _)| known == name));
        for (name, (count, depth)) in known {
            if let Some(blocks) = self.blocks.get_mut(name) {
                blocks.all.truncate(*count);
                blocks.depth = *depth;
            }
        }
    }

    fn run_macro(&mut self, node: &'e Macro, mut values: Vec<Tracked>) -> Outcome<()> {
        for parameter in node.parameters.iter().rev() {
            let given = values.pop().unwrap_or_default();
            let value = match &parameter.default {
                Some(default) => self.given_or(given, default, parameter.at)?,
                None => given,
            };
            self.variables.set(&parameter.name, value);
        }
        self.body(&node.body)
    }

    /// Returns an argument of a macro, or its default.
    fn given_or(&mut self, given: Tracked, default: &'e Expr, at: Place) -> Outcome<Tracked> {
        let is_given = !given.value.is_undefined();
        self.watch.decided(DecisionKind::Parameter.at(at), is_given);
        match is_given {
            true => Ok(given),
            false => self.kept(default, Holder::Variable, None),
        }
    }
}

/// Returns the values of a macro's parameters, and the caller if the macro uses one.
fn bind(node: &Macro, arguments: &Arguments) -> Result<(Vec<Tracked>, Option<Tracked>), Error> {
    let named = arguments.values.last().filter(|last| last.is_kwargs());
    let count = arguments.values.len() - usize::from(named.is_some());
    if count > node.parameters.len() {
        return Err(Error::from(ErrorKind::TooManyArguments));
    }
    let by_name =
        |name: &str| named.and_then(|named| member(named, arguments.origins.last(), name));
    let mut used: Vec<&str> = Vec::new();
    let mut values = Vec::with_capacity(node.parameters.len());
    for (index, parameter) in node.parameters.iter().enumerate() {
        let name = &*parameter.name;
        values.push(match (index < count, by_name(name)) {
            (true, Some(_)) => {
                let message = format!("`{}` has two values for `{name}`", node.name);
                return Err(Error::new(ErrorKind::TooManyArguments, message));
            }
            (true, None) => arguments.get(index),
            (false, Some(given)) => {
                used.push(name);
                given
            }
            (false, None) => Tracked::missing(Absent {
                at: parameter.at,
                kind: AbsentKind::Parameter,
            }),
        });
    }
    let caller = node.wants_caller.then(|| {
        used.push("caller");
        by_name("caller").unwrap_or_default()
    });
    let mut given = named
        .and_then(|named| named.try_iter().ok())
        .into_iter()
        .flatten();
    if let Some(key) = given.find(|key| key.as_str().is_some_and(|key| !used.contains(&key))) {
        let key = key.as_str().unwrap_or_default();
        return Err(unknown_parameter(node, key));
    }
    Ok((values, caller))
}

/// Returns the error for an argument whose name matches no parameter.
fn unknown_parameter(node: &Macro, name: &str) -> Error {
    let parameters = || node.parameters.iter().map(|parameter| &*parameter.name);
    let known = did_you_mean(name, parameters()).unwrap_or_else(|| match node.parameters.len() {
        0 => "it has none".to_owned(),
        _ => format!("it has {}", listed(parameters())),
    });
    let message = format!("`{}` has no parameter `{name}`: {known}", node.name);
    Error::new(ErrorKind::TooManyArguments, message)
}

/// Returns an argument by its name.
fn member(named: &Value, origin: Option<&Origin>, name: &str) -> Option<Tracked> {
    let object = named.as_object()?;
    let mut pairs = object.try_iter_pairs()?.enumerate();
    let (index, (_, value)) = pairs.find(|(_, (key, _))| key.as_str() == Some(name))?;
    let origin = origin.map_or(Origin::Unknown, |origin| {
        origin.member(name, || Some(index))
    });
    Some(Tracked { value, origin })
}

/// Evaluates arguments.
impl<'e, W: Watch> Eval<'e, W> {
    /// Appends the arguments of a call.
    pub(super) fn arguments(
        &mut self,
        given: &'e [Argument],
        caller: Option<&'e Macro>,
        mut arguments: Arguments,
    ) -> Outcome<Arguments> {
        if given
            .iter()
            .any(|it| matches!(it, Argument::Spread(_) | Argument::SpreadNamed(_)))
        {
            return self.spread_arguments(given, caller, arguments);
        }
        for argument in given.iter().filter(|it| !it.is_named()) {
            let value = self.value(argument.expression())?;
            arguments.push(value);
        }
        let mut named = Named::default();
        for argument in given {
            if let Argument::Named(name, value) = argument {
                let value = self.value(value)?;
                named.add(name, value);
            }
        }
        if let Some(caller) = caller {
            named.add("caller", self.declare(caller));
        }
        if !named.names.is_empty() {
            arguments.push(named.into_argument());
        }
        Ok(arguments)
    }

    /// Adds arguments that include spread lists or objects: all are evaluated before the first is
    /// spread.
    fn spread_arguments(
        &mut self,
        given: &'e [Argument],
        caller: Option<&'e Macro>,
        mut arguments: Arguments,
    ) -> Outcome<Arguments> {
        let in_order = given
            .iter()
            .filter(|it| !it.is_named())
            .chain(given.iter().filter(|it| it.is_named()));
        let mut evaluated = Vec::with_capacity(given.len());
        for argument in in_order {
            evaluated.push((argument, self.value(argument.expression())?));
        }
        let has_names = caller.is_some() || given.iter().any(Argument::is_named);
        // The caller captures variables only now. Other macros declared here also see the captured
        // variables.
        let named = named(&evaluated, caller.map(|caller| self.declare(caller)))?;
        for (argument, value) in evaluated {
            match argument {
                Argument::Value(_) => arguments.push(value),
                Argument::Spread(list) => spread_list(&value, list.at, &mut arguments)?,
                Argument::Named(..) | Argument::SpreadNamed(_) => {}
            }
        }
        if has_names {
            arguments.push(named.into_argument());
        }
        Ok(arguments)
    }
}

/// Collects the named arguments.
fn named(evaluated: &[(&Argument, Tracked)], caller: Option<Tracked>) -> Outcome<Named> {
    let mut named = Named::default();
    for (argument, value) in evaluated {
        match argument {
            Argument::Named(name, _) => named.add(name, value.clone()),
            Argument::SpreadNamed(map) => spread_map(value, map.at, &mut named)?,
            Argument::Value(_) | Argument::Spread(_) => {}
        }
    }
    if let Some(caller) = caller {
        named.add("caller", caller);
    }
    Ok(named)
}

/// Adds a list's elements to arguments.
fn spread_list(list: &Tracked, at: Place, arguments: &mut Arguments) -> Outcome<()> {
    operators::whole(&list.value, 1).map_err(|error| Failure::at(at, error))?;
    let elements = list
        .value
        .try_iter()
        .map_err(|error| Failure::of(at, error, list))?;
    for (index, element) in elements.enumerate() {
        arguments.push(Tracked {
            value: element,
            origin: list.origin.element(index),
        });
    }
    Ok(())
}

/// Adds an object's members to the named arguments.
fn spread_map(map: &Tracked, at: Place, named: &mut Named) -> Outcome<()> {
    operators::whole(&map.value, 1).map_err(|error| Failure::at(at, error))?;
    if map.is_missing() {
        return Err(super::failure::undefined(at, map));
    }
    let pairs = map
        .value
        .as_object()
        .filter(|_| map.value.kind() == ValueKind::Map);
    let Some(pairs) = pairs.and_then(DynObject::try_iter_pairs) else {
        let kind = map.value.kind();
        let error = invalid(format!(
            "attempted to apply keyword arguments from non map (got {kind})"
        ));
        return Err(Failure::at(at, error));
    };
    for (index, (key, value)) in pairs.enumerate() {
        // Every parameter's name is text, so the engine ignores keys that are not text.
        let Some(name) = key.as_str() else { continue };
        named.add(
            name,
            Tracked {
                value,
                origin: map.origin.member(name, || Some(index)),
            },
        );
    }
    Ok(())
}
