//! Executes statements.

use std::sync::Arc;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

use super::super::keep::{Holder, keep};
use super::super::objects::{Module, Namespace};
use super::super::place::Place;
use super::super::tracked::{Absent, AbsentKind, Origin, Tracked};
use super::super::values::Members;
use super::super::{account, inja, writing};
use super::decisions::DecisionKind;
use super::failure::{Failure, Outcome, invalid, undefined};
use super::objects::Loop;
use super::tree::{Emit, Expr, For, If, Imported, Stmt, StmtKind, Target, Template};
use super::variables::Running;
use super::watch::Watch;
use super::{Blocks, Eval, Scope, Step, charge_scope, operators};

/// The length above which literal text has a cost of its own. The cost of a step covers shorter
/// text.
const SHORT_TEXT: usize = 64;

/// The entry into another template.
#[derive(Debug, Clone, Copy)]
struct Entrance {
    step: Step,
    /// The tag without its braces, which is the location of the step in failures.
    inner: Place,
}

impl<'e, W: Watch> Eval<'e, W> {
    /// Evaluates a template with the templates that it extends.
    pub(super) fn template(&mut self, template: &'e Template) -> Outcome<()> {
        let around = (
            std::mem::replace(&mut self.template, template),
            self.parent.take(),
        );
        let mut body = &template.body;
        let result = loop {
            if let Err(failure) = self.body(body) {
                break Err(failure);
            }
            let Some(parent) = self.parent.take() else {
                break Ok(());
            };
            self.out.pop();
            (self.template, body) = (parent, &parent.body);
        };
        (self.template, self.parent) = around;
        result
    }

    pub(super) fn body(&mut self, statements: &'e [Stmt]) -> Outcome<()> {
        statements
            .iter()
            .try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &'e Stmt) -> Outcome<()> {
        let at = statement.at;
        self.step(at)?;
        self.watch.ran(at);
        match &statement.kind {
            StmtKind::Raw(text) => self.raw(text, at),
            StmtKind::Emit(emit) => self.emit_tag(emit, at),
            StmtKind::For(it) => {
                let over = self.iterated(it)?;
                self.branching_loop(it, &over, at)
            }
            StmtKind::If(it) => self.condition(it, at),
            StmtKind::With(assignments, body) => self.with_block(assignments, body, at),
            StmtKind::Set(target, value) => {
                let value = match target.is_in_namespace() {
                    true => self.kept(value, Holder::Namespace, Some(target))?,
                    false => self.kept(value, Holder::Variable, None)?,
                };
                self.assign(target, value)
            }
            StmtKind::SetBlock {
                target,
                filter,
                body,
            } => self.set_block(target, filter.as_ref(), body, at),
            StmtKind::AutoEscape(enabled, body) => self.auto_escape(enabled, body),
            StmtKind::FilterBlock(filter, body) => self.filter_block(filter, body, at),
            StmtKind::Block(name) => self.block_here(name, at),
            StmtKind::Import { from, name } => self.import(from, name, at),
            StmtKind::FromImport { from, names } => self.import_names(from, names, at),
            StmtKind::Extends(name) => self.extend(name, at),
            StmtKind::Include {
                name,
                ignore_missing,
                inner,
            } => self.include(name, *ignore_missing, [at, *inner]),
            StmtKind::Macro(it) => {
                let value = self.declare(it);
                self.variables.set(&it.name, value);
                Ok(())
            }
            StmtKind::CallBlock(call, body) => {
                let written = self.call(call, Some(body), at)?;
                self.emit(&written, call.at, at)
            }
            StmtKind::Do(call) => self.call(call, None, call.at).map(drop),
        }
    }

    /// Writes literal text.
    fn raw(&mut self, text: &str, at: Place) -> Outcome<()> {
        if text.len() > SHORT_TEXT {
            account::make(text.len()).map_err(|error| Failure::at(at, error))?;
        }
        self.write_literal(text, at)
    }

    fn emit_tag(&mut self, emit: &'e Emit, at: Place) -> Outcome<()> {
        match emit {
            Emit::Value(value) => {
                let written = self.value(value)?;
                self.emit(&written, value.at, value.at)
            }
            Emit::Super => self.super_block(at).map(drop),
            Emit::Block(name) => self.block_here(name, at),
            Emit::Loop(over) => {
                let over = self.value(over)?;
                let Some(running) = self.variables.running().cloned() else {
                    return Err(unknown_loop(at));
                };
                self.recurse(&running, &over, at)
            }
        }
    }

    /// Writes a value: `at` is the expression, and `tag` is recorded as the tag that wrote it.
    pub(super) fn emit(&mut self, value: &Tracked, at: Place, tag: Place) -> Outcome<()> {
        if let Some(text) = value.value.as_str() {
            writing::charge_text(text).map_err(|error| Failure::at(at, error))?;
            return self.write(value.with_runs(text).slice(), tag, at);
        }
        if value.is_missing() {
            return Err(undefined(at, value));
        }
        let rope = writing::emitted(value)
            .map_err(|error| Failure::at(at, error).lacking(value.origin.missing()))?;
        self.write(rope.slice(), tag, at)
    }

    fn condition(&mut self, it: &'e If, at: Place) -> Outcome<()> {
        let holds = self.holds(DecisionKind::If, &it.test)?;
        if holds {
            self.trace.branched(at);
            return self.body(&it.body);
        }
        if let Some(at) = it.else_at {
            self.trace.branched(at);
        }
        self.body(&it.otherwise)
    }

    fn with_block(
        &mut self,
        assignments: &'e [(Target, Expr)],
        body: &'e [Stmt],
        at: Place,
    ) -> Outcome<()> {
        self.variables
            .open()
            .map_err(|error| Failure::at(at, error))?;
        for (target, value) in assignments {
            let value = self.kept(value, Holder::Variable, None)?;
            self.assign(target, value)?;
        }
        self.body(body)?;
        self.variables.close();
        Ok(())
    }

    fn set_block(
        &mut self,
        target: &'e Target,
        filter: Option<&'e Expr>,
        body: &'e [Stmt],
        at: Place,
    ) -> Outcome<()> {
        let text = self.capture(Scope::SetBlock, body, at)?;
        let value = match filter {
            None => text,
            Some(filter) => self.filtered(filter, text)?,
        };
        let value = self.claimed(value, at);
        if target.is_in_namespace() {
            keep(&value.value, Holder::Namespace).map_err(|error| Failure::at(at, error))?;
        }
        self.assign(target, value)
    }

    fn filter_block(&mut self, filter: &'e Expr, body: &'e [Stmt], at: Place) -> Outcome<()> {
        let text = self.capture(Scope::FilterBlock, body, at)?;
        let value = self.filtered(filter, text)?;
        let value = self.claimed(value, at);
        self.emit(&value, filter.at, at)
    }

    /// Records the block's tag for captured text that has no tag.
    fn claimed(&mut self, value: Tracked, tag: Place) -> Tracked {
        let Origin::Text(runs) = &value.origin else {
            return value;
        };
        let mut runs = Vec::clone(runs);
        self.trace.captured(&mut runs, tag);
        Tracked {
            origin: Origin::Text(Arc::new(runs)),
            ..value
        }
    }

    fn capture(&mut self, scope: Scope, body: &'e [Stmt], at: Place) -> Outcome<Tracked> {
        self.begin_capture();
        self.within(Step { scope, at }, |eval| eval.body(body))?;
        let text = self.end_capture();
        Ok(self.captured(text))
    }

    fn auto_escape(&mut self, enabled: &'e Expr, body: &'e [Stmt]) -> Outcome<()> {
        let value = self.value(enabled)?;
        let escapes = match (value.value.as_str(), value.value == Value::from(true)) {
            (Some("html"), _) | (None, true) => true,
            (Some("none"), _) | (None, false) => false,
            _ => {
                return Err(Failure::at(
                    enabled.at,
                    invalid("invalid value to autoescape tag"),
                ));
            }
        };
        let around = std::mem::replace(&mut self.escapes, escapes);
        self.body(body)?;
        self.escapes = around;
        Ok(())
    }
}

/// Executes loops.
impl<'e, W: Watch> Eval<'e, W> {
    /// Returns the value that a loop iterates over.
    fn iterated(&mut self, it: &'e For) -> Outcome<Tracked> {
        let over = self.value(&it.iter)?;
        let over = match it.by_pairs {
            true => inja::pairs(over).map_err(|error| Failure::at(it.iter.at, error))?,
            false => over,
        };
        match &it.filter {
            None => Ok(over),
            Some(filter) => self.passing(it, filter, &over),
        }
    }

    /// Returns the elements for which a condition holds.
    fn passing(&mut self, it: &'e For, filter: &'e Expr, over: &Tracked) -> Outcome<Tracked> {
        let elements = elements(over, it.iter.at)?;
        let object = Arc::new(Loop::new(self.next_loop(), Vec::new(), 0, false));
        let running = Running {
            object,
            node: None,
            home: (self.template.number, self.block),
        };
        self.open_loop(running, filter.at)?;
        let mut passing = Vec::new();
        for element in elements {
            self.step(filter.at)?;
            self.variables.clear();
            self.assign(&it.target, element.clone())?;
            if self.holds(DecisionKind::LoopFilter, filter)? {
                passing.push(element);
            }
        }
        self.variables.close();
        Ok(Tracked::list(passing))
    }

    fn open_loop(&mut self, running: Running<'e>, at: Place) -> Outcome<()> {
        self.variables
            .open_loop(running)
            .map_err(|error| Failure::at(at, error))
    }

    fn next_loop(&mut self) -> usize {
        self.loops += 1;
        self.loops
    }

    fn branching_loop(&mut self, it: &'e For, over: &Tracked, at: Place) -> Outcome<()> {
        let is_empty = !self.for_each(it, over, at)?;
        if is_empty && !it.otherwise.is_empty() {
            self.trace.branched(it.else_at);
            return self.body(&it.otherwise);
        }
        Ok(())
    }

    /// Runs a loop's body for each element; returns `true` if there was one.
    fn for_each(&mut self, it: &'e For, over: &Tracked, at: Place) -> Outcome<bool> {
        let elements = elements(over, it.iter.at)?;
        let count = elements.len();
        self.watch
            .decided(DecisionKind::Loop.at(it.iter.at), count > 0);
        let around = self
            .variables
            .running()
            .filter(|around| around.object.recursive);
        let depth = around.map_or(0, |around| around.object.depth() + 1);
        let values = elements
            .iter()
            .map(|element| element.value.clone())
            .collect();
        let object = Arc::new(Loop::new(self.next_loop(), values, depth, it.recursive));
        let home = (self.template.number, self.block);
        let running = Running {
            object: Arc::clone(&object),
            node: Some(it),
            home,
        };
        self.running.push(running.clone());
        self.open_loop(running, it.iter.at)?;
        for (index, element) in elements.into_iter().enumerate() {
            self.step(at)?;
            self.trace.branched(at);
            object.go_to(index);
            self.variables.clear();
            self.watch.read(&element, at);
            self.assign(&it.target, element)?;
            self.body(&it.body)?;
        }
        object.go_to(count);
        self.running.pop();
        self.variables.close();
        Ok(count > 0)
    }

    /// Runs a loop recursively over another value.
    pub(super) fn recurse(
        &mut self,
        running: &Running<'e>,
        over: &Tracked,
        at: Place,
    ) -> Outcome<()> {
        match running.node.filter(|node| node.recursive) {
            Some(node) => self.for_each(node, over, at).map(drop),
            None => Err(Failure::at(
                at,
                invalid("cannot recurse outside of recursive loop"),
            )),
        }
    }
}

fn origin(index: usize, is_known: bool, over: &Tracked) -> Origin {
    if is_known {
        over.origin.element(index)
    } else {
        Origin::Unknown
    }
}

/// Executes assignments.
impl<'e, W: Watch> Eval<'e, W> {
    pub(super) fn assign(&mut self, target: &'e Target, value: Tracked) -> Outcome<()> {
        match target {
            Target::Name(name) => {
                self.variables.set(name, value);
                Ok(())
            }
            Target::List(at, targets) => self.unpack(targets, &value, *at),
            Target::Member { object, name, at } => {
                let object = self.value(object)?;
                match object.value.downcast_object_ref::<Namespace>() {
                    Some(namespace) => {
                        namespace.set(name, value);
                        Ok(())
                    }
                    None => {
                        let error = invalid(format!(
                            "can only assign to namespaces, not {}",
                            object.value.kind()
                        ));
                        Err(Failure::of(*at, error, &object))
                    }
                }
            }
        }
    }

    fn unpack(&mut self, targets: &'e [Target], value: &Tracked, at: Place) -> Outcome<()> {
        let elements = value
            .value
            .as_object()
            .and_then(minijinja::value::DynObject::try_iter);
        let Some(elements) = elements else {
            let error = Error::new(ErrorKind::CannotUnpack, "value is not iterable");
            return Err(Failure::of(at, error, value));
        };
        let elements: Vec<Value> = elements.collect();
        if elements.len() != targets.len() {
            let (expected, got) = (targets.len(), elements.len());
            let message = format!("sequence of wrong length (expected {expected}, got {got})");
            return Err(Failure::at(
                at,
                Error::new(ErrorKind::CannotUnpack, message),
            ));
        }
        for (index, (target, element)) in targets.iter().zip(elements).enumerate() {
            self.assign(
                target,
                Tracked {
                    value: element,
                    origin: value.origin.element(index),
                },
            )?;
        }
        Ok(())
    }

    /// Evaluates the value for a variable or a namespace, and checks values that could nest ever
    /// more deeply.
    pub(super) fn kept(
        &mut self,
        expression: &'e Expr,
        holder: Holder,
        target: Option<&'e Target>,
    ) -> Outcome<Tracked> {
        operators::kept(self, expression, holder, target)
    }
}

/// Executes blocks, includes and imports.
impl<'e, W: Watch> Eval<'e, W> {
    /// Runs a block in place, unless another template writes it.
    fn block_here(&mut self, name: &'e str, at: Place) -> Outcome<()> {
        match self.parent.is_none() && !self.is_discarding() {
            true => self.run_block(name, at),
            false => Ok(()),
        }
    }

    pub(super) fn run_block(&mut self, name: &'e str, at: Place) -> Outcome<()> {
        let found = self
            .blocks
            .get_key_value(name)
            .and_then(|(name, it)| Some((*name, it.all.get(it.depth)?, it)));
        let Some((name, block, blocks)) = found else {
            let error = Error::new(ErrorKind::UnknownBlock, format!("block '{name}' not found"));
            return Err(Failure::at(at, error));
        };
        if blocks.all.len() == 1 && block.required {
            return Err(Failure::at(
                at,
                invalid(format!("Required block '{name}' not found")),
            ));
        }
        let body = &block.body;
        self.in_block(name, body, at)
    }

    fn in_block(&mut self, name: &'e str, body: &'e [Stmt], at: Place) -> Outcome<()> {
        let depth = self.variables.open_scopes();
        self.variables
            .open()
            .map_err(|error| Failure::at(at, error))?;
        let around = (self.block.replace(name), self.parent.take());
        let result = self.body(body);
        (self.block, self.parent) = around;
        self.variables.close_to(depth);
        result
    }

    /// Runs the block that the running block overrides.
    pub(super) fn super_block(&mut self, at: Place) -> Outcome<()> {
        let Some(name) = self.block else {
            return Err(Failure::at(at, invalid("cannot super outside of block")));
        };
        let Some(Blocks { all, depth }) = self.blocks.get_mut(name) else {
            return Ok(());
        };
        let Some(block) = all.get(*depth + 1) else {
            return Err(Failure::at(at, invalid("no parent block exists")));
        };
        let body = &block.body;
        *depth += 1;
        let result = self.in_block(name, body, at);
        if let Some(blocks) = self.blocks.get_mut(name) {
            blocks.depth = blocks.depth.saturating_sub(1);
        }
        result
    }

    fn extend(&mut self, name: &'e Expr, at: Place) -> Outcome<()> {
        let named = self.value(name)?;
        if self.parent.is_some() {
            return Err(Failure::at(
                at,
                invalid("tried to extend a second time in a template"),
            ));
        }
        let Some(text) = named.value.as_str() else {
            return Err(Failure::at(
                name.at,
                invalid("template name was not a string"),
            ));
        };
        let library = self.library;
        let Some(parent) = library.find(text) else {
            let error = Error::new(
                ErrorKind::TemplateNotFound,
                format!("template {text:?} does not exist"),
            );
            return Err(Failure::at(name.at, error));
        };
        if !self.extended.insert(parent.number) {
            let message =
                format!("cycle in template inheritance. {text:?} was referenced more than once");
            return Err(Failure::at(at, invalid(message)));
        }
        self.add_blocks(parent);
        self.parent = Some(parent);
        self.begin_discard();
        Ok(())
    }

    fn include(
        &mut self,
        name: &'e Expr,
        ignore_missing: bool,
        [at, inner]: [Place; 2],
    ) -> Outcome<()> {
        let named = self.value(name)?;
        let step = Step {
            scope: Scope::Include,
            at,
        };
        if self.is_outermost()
            && let Some(text) = named.value.as_str()
        {
            let known = self.library.known(text, &self.variables);
            if let Some(known) = known.map_err(|error| Failure::at(at, error))? {
                self.watch
                    .steps(known.steps)
                    .map_err(|error| Failure::at(at, error))?;
                return self.write_known(&known, step);
            }
        }
        let include = Entrance { step, inner };
        self.included(&named, name.at, ignore_missing, include)
    }

    /// Returns `true` outside loops, macros and blocks.
    fn is_outermost(&self) -> bool {
        self.variables.is_outermost() && self.blocks.is_empty() && self.parent.is_none()
    }

    /// Runs the first existing template among those that a value names.
    fn included(
        &mut self,
        named: &Tracked,
        at: Place,
        ignore_missing: bool,
        by: Entrance,
    ) -> Outcome<()> {
        let choices: Vec<Value> = match named.value.as_object() {
            Some(list) => list.try_iter().into_iter().flatten().collect(),
            None => vec![named.value.clone()],
        };
        let library = self.library;
        for choice in &choices {
            let Some(name) = choice.as_str() else {
                return Err(Failure::at(at, invalid("template name was not a string")));
            };
            if let Some(template) = library.find(name) {
                return self.run_included(template, by);
            }
        }
        match ignore_missing || choices.is_empty() {
            true => Ok(()),
            false => Err(Failure::at(at, not_found(&choices))),
        }
    }

    fn run_included(&mut self, template: &'e Template, by: Entrance) -> Outcome<()> {
        charge_scope(by.step.at)?;
        self.variables
            .deepen(account::INCLUDE_DEPTH)
            .map_err(|error| Failure::at(by.inner, error))?;
        let depth = self.variables.open_scopes();
        let closure = self.variables.take_closure();
        let blocks = (
            std::mem::take(&mut self.blocks),
            std::mem::take(&mut self.extended),
        );
        let escapes = std::mem::replace(&mut self.escapes, false);
        self.add_blocks(template);
        self.trace.entered(by.step);
        let result = self.template(template);
        self.trace.left();
        self.escapes = escapes;
        (self.blocks, self.extended) = blocks;
        self.variables.close_to(depth);
        self.variables.give_closure(closure);
        self.variables.rise(account::INCLUDE_DEPTH);
        result.map_err(|failure| {
            failure.through(Step {
                at: by.inner,
                ..by.step
            })
        })
    }

    fn import(&mut self, from: &'e Expr, name: &'e str, at: Place) -> Outcome<()> {
        self.begin_capture();
        self.variables
            .open()
            .map_err(|error| Failure::at(at, error))?;
        let named = self.value(from)?;
        self.included(
            &named,
            from.at,
            false,
            Entrance {
                step: Step {
                    scope: Scope::Import,
                    at,
                },
                inner: at,
            },
        )?;
        let written = self.end_capture();
        let written = self.captured(written).value;
        let (mut values, mut origins) = (Members::new(), Vec::new());
        for (name, exported) in self.variables.exported() {
            values.insert(Value::from(name), exported.value);
            origins.push(exported.origin);
        }
        self.variables.close();
        let module = Value::from_object(Module {
            values,
            origins,
            written,
        });
        keep(&module, Holder::Variable).map_err(|error| Failure::at(at, error))?;
        self.variables.set(name, Tracked::plain(module));
        Ok(())
    }

    fn import_names(&mut self, from: &'e Expr, names: &'e [Imported], at: Place) -> Outcome<()> {
        self.begin_discard();
        self.variables
            .open()
            .map_err(|error| Failure::at(at, error))?;
        let template = self.value(from)?;
        self.included(
            &template,
            from.at,
            false,
            Entrance {
                step: Step {
                    scope: Scope::Import,
                    at,
                },
                inner: at,
            },
        )?;
        let mut values = Vec::with_capacity(names.len());
        for imported in names {
            let value = self.value(&imported.name)?;
            values.push(match value.is_missing() {
                true => Tracked::missing(Absent {
                    at: imported.name.at,
                    kind: AbsentKind::Import,
                }),
                false => value,
            });
        }
        self.variables.close();
        for (imported, value) in names.iter().zip(values).rev() {
            self.assign(&imported.target, value)?;
        }
        self.out.pop();
        Ok(())
    }
}

/// Returns the elements that a loop iterates over.
fn elements(over: &Tracked, at: Place) -> Outcome<Vec<Tracked>> {
    if over.is_missing() {
        return Err(undefined(at, over));
    }
    let values = over
        .value
        .try_iter()
        .map_err(|error| Failure::at(at, error))?;
    let is_list = matches!(over.value.kind(), ValueKind::Seq | ValueKind::Iterable);
    let is_known = is_list || matches!(over.origin, Origin::List(_));
    let mut elements = Vec::with_capacity(values.size_hint().0);
    for (index, value) in values.enumerate() {
        let origin = origin(index, is_known, over);
        elements.push(Tracked { value, origin });
    }
    Ok(elements)
}

fn unknown_loop(at: Place) -> Failure {
    Failure::at(
        at,
        Error::new(ErrorKind::UnknownFunction, "loop is unknown"),
    )
    .calling("loop")
}

fn not_found(tried: &[Value]) -> Error {
    let message = match tried {
        [one] => format!("tried to include non-existing template {one:?}"),
        all => {
            let all = Value::from(all.to_vec());
            format!("tried to include one of multiple templates, none of which existed {all}")
        }
    };
    Error::new(ErrorKind::TemplateNotFound, message)
}
