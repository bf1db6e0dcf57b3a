//! The decisions in a template: its conditions, loops and defaults, each with two outcomes and the
//! data required for them.

use super::super::place::Place;
use super::tree::{
    Argument, Call, Callee, Emit, Expr, ExprKind, For, Macro, Stmt, StmtKind, Target, Template,
};
use crate::conversation::{MISSING_IF_EMPTY, NEVER_EMPTY};
use minijinja::machinery::ast::{BinOpKind, CompareOpKind};

/// The path of the messages. No API accepts a request without messages.
const MESSAGES: &str = "ctx.history";

/// The names of the filters, and of inja's function, that replace a missing value.
pub(super) const IS_DEFAULT: [&str; 2] = ["default", "d"];

/// A location where a template takes one of two paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in super::super) struct Decision {
    pub(in super::super) kind: DecisionKind,
    /// The condition, the value that a loop iterates over, the filter, or the parameter.
    pub(in super::super) at: Place,
}

/// The kinds of decisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum DecisionKind {
    /// `{% if %}` and `{% elif %}`: the condition holds or not.
    If,
    /// `{% for %}`: the loop has elements or not.
    Loop,
    /// `{% for … if … %}`: an element passes or not.
    LoopFilter,
    /// `a if b else c`.
    Choice,
    /// `value | default(other)`: the value is present or not.
    Default,
    /// A macro's parameter with a default: the argument is given or not.
    Parameter,
}

impl DecisionKind {
    /// Returns the decision of this kind at a location.
    pub(super) fn at(self, at: Place) -> Decision {
        Decision { kind: self, at }
    }
}

/// The statements and decisions in a template. A render covers a part of them.
pub(in super::super) struct Ground<'t> {
    /// The template's statements, except blank text.
    pub(in super::super) statements: Vec<Place>,
    pub(in super::super) decisions: Vec<Decided>,
    /// The template's macros, with their tags and the statements in their bodies.
    pub(in super::super) macros: Vec<MacroGround>,
    /// The function that returns the text at a location.
    text: &'t dyn Fn(Place) -> String,
    /// The facts about values that follow from the surrounding conditions.
    facts: Vec<Fact>,
}

/// The fact that an expression's value is present and not empty, or that it is not.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Fact {
    of: String,
    is_filled: bool,
}

/// A macro with its own statements.
#[derive(Debug)]
pub(in super::super) struct MacroGround {
    pub(in super::super) name: Box<str>,
    pub(in super::super) at: Place,
    pub(in super::super) body: Vec<Place>,
}

/// A decision with the data required for its outcomes.
#[derive(Debug)]
pub(in super::super) struct Decided {
    pub(in super::super) decision: Decision,
    pub(in super::super) holds_if: Need,
    /// The data required for the decision to fail; `None` if it always holds because of a
    /// surrounding condition.
    pub(in super::super) fails_if: Option<Need>,
    /// The range of statements that run if the decision holds, and of those that run if it fails.
    pub(in super::super) parts: [Option<Place>; 2],
}

/// A requirement on the data.
#[derive(Debug, Clone)]
pub(in super::super) enum Need {
    /// An expression is true, or false.
    True(Place, bool),
    /// A value is present and not empty; or it is empty, zero or missing.
    Filled(Place, bool),
    /// A value is present, or missing.
    There(Place, bool),
    /// A value equals a literal or another value, or differs from it.
    Equal(Place, Place, bool),
    /// All of these requirements.
    All(Vec<Need>),
    /// One of these requirements.
    Any(Vec<Need>),
}

impl Template {
    /// Returns all statements and decisions in the template; `text` returns the text at a location.
    pub(in super::super) fn ground<'t>(&self, text: &'t dyn Fn(Place) -> String) -> Ground<'t> {
        let mut ground = Ground {
            statements: Vec::new(),
            decisions: Vec::new(),
            macros: Vec::new(),
            text,
            facts: Vec::new(),
        };
        ground.body(&self.body);
        for block in &self.blocks {
            ground.body(&block.body);
        }
        ground
    }
}

impl Ground<'_> {
    fn body(&mut self, statements: &[Stmt]) {
        for statement in statements {
            self.statement(statement);
        }
    }

    fn statement(&mut self, statement: &Stmt) {
        let is_blank = matches!(&statement.kind, StmtKind::Raw(text) if text.trim().is_empty());
        if !is_blank {
            self.statements.push(statement.at);
        }
        match &statement.kind {
            StmtKind::Raw(_) | StmtKind::Block(_) => {}
            StmtKind::Emit(emit) => match emit {
                Emit::Value(value) | Emit::Loop(value) => self.expression(value),
                Emit::Super | Emit::Block(_) => {}
            },
            StmtKind::For(it) => {
                self.target(&it.target);
                self.expression(&it.iter);
                let over = it.iter.at;
                let first = self.decisions.len();
                self.decisions.push(Decided {
                    decision: DecisionKind::Loop.at(over),
                    holds_if: Need::Filled(over, true),
                    fails_if: self
                        .can_go_over_nothing(it)
                        .then_some(Need::Filled(over, false)),
                    parts: [None; 2],
                });
                let mut inside = vec![Need::Filled(over, true)];
                let filter = it.filter.as_ref().map(|filter| {
                    inside.push(Need::of(filter, true));
                    self.condition(DecisionKind::LoopFilter, filter)
                });
                let body = self.part(|ground| ground.body_where(&Need::All(inside), &it.body));
                let otherwise = self.part(|ground| ground.body(&it.otherwise));
                self.decisions[first].parts = [body, otherwise];
                if let Some(filter) = filter {
                    self.decisions[filter].parts = [body, None];
                }
            }
            StmtKind::If(it) => {
                let test = self.condition(DecisionKind::If, &it.test);
                let body =
                    self.part(|ground| ground.body_where(&Need::of(&it.test, true), &it.body));
                let otherwise = self
                    .part(|ground| ground.body_where(&Need::of(&it.test, false), &it.otherwise));
                self.decisions[test].parts = [body, otherwise];
            }
            StmtKind::With(assignments, body) => {
                for (target, value) in assignments {
                    self.target(target);
                    self.expression(value);
                }
                self.body(body);
            }
            StmtKind::Set(target, value) => {
                self.target(target);
                self.expression(value);
            }
            StmtKind::SetBlock {
                target,
                filter,
                body,
            } => {
                self.target(target);
                filter.iter().for_each(|filter| self.expression(filter));
                self.body(body);
            }
            StmtKind::AutoEscape(value, body) | StmtKind::FilterBlock(value, body) => {
                self.expression(value);
                self.body(body);
            }
            StmtKind::Import { from: value, .. }
            | StmtKind::FromImport { from: value, .. }
            | StmtKind::Extends(value)
            | StmtKind::Include { name: value, .. } => self.expression(value),
            StmtKind::Macro(it) => self.macro_(it),
            StmtKind::CallBlock(call, body) => {
                self.call(call);
                self.body(&body.body);
            }
            StmtKind::Do(call) => self.call(call),
        }
    }

    /// Adds statements, and returns their range.
    fn part(&mut self, add: impl FnOnce(&mut Self)) -> Option<Place> {
        let before = self.statements.len();
        add(self);
        let added = &self.statements[before..];
        let first = added.first()?;
        let end = added.iter().map(|at| at.range().end).max()?;
        Some(Place::new(first.template, &(first.range().start..end)))
    }

    /// Adds statements that run if a condition holds.
    fn body_where(&mut self, need: &Need, statements: &[Stmt]) {
        let around = self.facts.len();
        self.learn(need);
        self.body(statements);
        self.facts.truncate(around);
    }

    /// Records the facts that follow from a condition.
    fn learn(&mut self, need: &Need) {
        match need {
            Need::Filled(at, is_filled) => self.facts.push(Fact {
                of: (self.text)(*at),
                is_filled: *is_filled,
            }),
            Need::There(at, true) => {
                let of = (self.text)(*at);
                if last_word_is_in(&of, &MISSING_IF_EMPTY) {
                    self.facts.push(Fact {
                        of,
                        is_filled: true,
                    });
                }
            }
            Need::All(parts) => parts.iter().for_each(|part| self.learn(part)),
            Need::True(..) | Need::There(_, false) | Need::Equal(..) | Need::Any(_) => {}
        }
    }

    /// Returns `false` if a loop always has elements. For the messages, an `{% else %}` means that
    /// the author expects an empty list.
    fn can_go_over_nothing(&self, it: &For) -> bool {
        let expects_messages = it.otherwise.is_empty() && (self.text)(it.iter.at) == MESSAGES;
        !expects_messages && !self.is_always_filled(it.iter.at)
    }

    /// Returns `true` if a value is never empty where it is read, because of a surrounding
    /// condition or the form of conversations.
    fn is_always_filled(&self, at: Place) -> bool {
        let of = (self.text)(at);
        last_word_is_in(&of, &NEVER_EMPTY)
            || self
                .facts
                .iter()
                .rfind(|fact| fact.of == of)
                .is_some_and(|fact| fact.is_filled)
    }

    fn macro_(&mut self, it: &Macro) {
        for parameter in &it.parameters {
            if let Some(default) = &parameter.default {
                let at = parameter.at;
                let kind = DecisionKind::Parameter;
                self.decide(kind.at(at), Need::There(at, true), Need::There(at, false));
                self.expression(default);
            }
        }
        let before = self.statements.len();
        let around = std::mem::take(&mut self.facts);
        self.body(&it.body);
        self.facts = around;
        self.macros.push(MacroGround {
            name: it.name.clone(),
            at: it.at,
            body: self.statements[before..].to_vec(),
        });
    }

    fn target(&mut self, target: &Target) {
        match target {
            Target::Name(_) => {}
            Target::List(_, targets) => targets.iter().for_each(|target| self.target(target)),
            Target::Member { object, .. } => self.expression(object),
        }
    }

    /// Adds a condition, and returns its number.
    fn condition(&mut self, kind: DecisionKind, test: &Expr) -> usize {
        let number = self.decisions.len();
        self.decide(
            kind.at(test.at),
            Need::of(test, true),
            Need::of(test, false),
        );
        self.expression(test);
        number
    }

    fn decide(&mut self, decision: Decision, holds_if: Need, fails_if: Need) {
        let is_certain = matches!(fails_if, Need::Filled(at, false) if self.is_always_filled(at));
        let fails_if = (!is_certain).then_some(fails_if);
        self.decisions.push(Decided {
            decision,
            holds_if,
            fails_if,
            parts: [None; 2],
        });
    }

    fn expression(&mut self, expression: &Expr) {
        match &expression.kind {
            ExprKind::Const(_) | ExprKind::Var(_) | ExprKind::Folder(_) => {}
            ExprKind::Member { base: inner, .. } | ExprKind::Not(inner) | ExprKind::Neg(inner) => {
                self.expression(inner);
            }
            ExprKind::Item {
                base: one,
                key: other,
                ..
            }
            | ExprKind::And(one, other)
            | ExprKind::Or(one, other)
            | ExprKind::Binary(_, one, other) => {
                self.expression(one);
                self.expression(other);
            }
            ExprKind::Slice(it) => {
                self.expression(&it.base);
                [&it.start, &it.stop, &it.step]
                    .into_iter()
                    .flatten()
                    .for_each(|bound| self.expression(bound));
            }
            ExprKind::Compare(first, rest) => {
                self.expression(first);
                rest.iter()
                    .for_each(|(_, operand)| self.expression(operand));
            }
            ExprKind::If(it) => {
                self.condition(DecisionKind::Choice, &it.test);
                self.expression(&it.then);
                it.otherwise.iter().for_each(|other| self.expression(other));
            }
            ExprKind::Filter(it) => {
                if IS_DEFAULT.contains(&it.filter.name) {
                    self.defaulted(it.own, it.input.as_ref());
                }
                it.input.iter().for_each(|input| self.expression(input));
                self.arguments(&it.arguments);
            }
            ExprKind::Test(it) => {
                self.expression(&it.input);
                self.arguments(&it.arguments);
            }
            ExprKind::Call(call) => self.call(call),
            ExprKind::List(items) | ExprKind::Tuple(items) => {
                items.iter().for_each(|item| self.expression(item));
            }
            ExprKind::Map(pairs) => {
                for (key, value) in pairs {
                    self.expression(key);
                    self.expression(value);
                }
            }
        }
    }

    fn defaulted(&mut self, at: Place, value: Option<&Expr>) {
        let of = value.map_or(at, |value| value.at);
        self.decide(
            DecisionKind::Default.at(at),
            Need::There(of, true),
            Need::There(of, false),
        );
    }

    fn call(&mut self, call: &Call) {
        match &call.callee {
            Callee::Name(name) if IS_DEFAULT.contains(&&**name) => {
                self.defaulted(call.at, call.arguments.first().map(Argument::expression));
            }
            Callee::Name(_) | Callee::Block(_) => {}
            Callee::Method(value, ..) | Callee::Value(value) => self.expression(value),
        }
        self.arguments(&call.arguments);
    }

    fn arguments(&mut self, arguments: &[Argument]) {
        for argument in arguments {
            self.expression(argument.expression());
        }
    }
}

impl Need {
    /// Returns the data required to make a condition true, or false.
    fn of(test: &Expr, wanted: bool) -> Need {
        match &test.kind {
            ExprKind::Not(inner) => Need::of(inner, !wanted),
            ExprKind::And(left, right) => Need::joined(left, right, wanted, wanted),
            ExprKind::Or(left, right) => Need::joined(left, right, wanted, !wanted),
            ExprKind::Compare(left, rest) => match rest.as_slice() {
                [(CompareOpKind::Eq, right)] => Need::Equal(left.at, right.at, wanted),
                [(CompareOpKind::Ne, right)] => Need::Equal(left.at, right.at, !wanted),
                _ => Need::True(test.at, wanted),
            },
            ExprKind::Binary(BinOpKind::Eq, left, right) => Need::Equal(left.at, right.at, wanted),
            ExprKind::Binary(BinOpKind::Ne, left, right) => Need::Equal(left.at, right.at, !wanted),
            ExprKind::Test(it) => match it.test.name {
                "defined" => Need::There(it.input.at, wanted),
                "undefined" => Need::There(it.input.at, !wanted),
                _ => Need::True(test.at, wanted),
            },
            ExprKind::Var(_) | ExprKind::Member { .. } | ExprKind::Item { .. } => {
                Need::Filled(test.at, wanted)
            }
            _ => Need::True(test.at, wanted),
        }
    }

    fn joined(left: &Expr, right: &Expr, wanted: bool, needs_both: bool) -> Need {
        let parts = vec![Need::of(left, wanted), Need::of(right, wanted)];
        match needs_both {
            true => Need::All(parts),
            false => Need::Any(parts),
        }
    }

    /// Describes the requirement in words; `text` returns the text at a location.
    pub(in super::super) fn told(&self, text: &dyn Fn(Place) -> String) -> String {
        match self {
            Need::True(at, true) => format!("`{}` is true", text(*at)),
            Need::True(at, false) => format!("`{}` is false", text(*at)),
            Need::Filled(at, true) => format!("`{}` is not empty", text(*at)),
            Need::Filled(at, false) => format!("`{}` is empty or missing", text(*at)),
            Need::There(at, true) => format!("`{}` is given", text(*at)),
            Need::There(at, false) => format!("`{}` is missing", text(*at)),
            Need::Equal(at, value, true) => format!("`{}` is `{}`", text(*at), text(*value)),
            Need::Equal(at, value, false) => format!("`{}` is not `{}`", text(*at), text(*value)),
            Need::All(parts) => joined(parts, " and ", text),
            Need::Any(parts) => joined(parts, " or ", text),
        }
    }
}

/// Returns `true` if a path of members, such as `result.images`, ends with one of these.
fn last_word_is_in(path: &str, members: &[&str]) -> bool {
    path.rsplit_once('.')
        .is_some_and(|(_, last)| members.contains(&last))
}

fn joined(parts: &[Need], word: &str, text: &dyn Fn(Place) -> String) -> String {
    let parts: Vec<String> = parts.iter().map(|part| part.told(text)).collect();
    parts.join(word)
}
