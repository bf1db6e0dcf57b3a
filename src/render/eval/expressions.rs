//! Evaluates expressions.

use minijinja::Value;
use minijinja::value::{Tuple, ValueKind};

use super::super::account;
use super::super::builtins::texts;
use super::super::objects::{Module, Namespace};
use super::super::place::Place;
use super::super::tracked::{Absent, Arguments, Origin, Tracked};
use super::super::values::{self, Members};
use super::decisions::{self, DecisionKind};
use super::failure::{Failure, Outcome, undefined};
use super::lower::literal;
use super::tree::{Choice, Expr, ExprKind, Filtered, Tested};
use super::watch::Watch;
use super::{Eval, operators};

impl<'e, W: Watch> Eval<'e, W> {
    /// Evaluates an expression.
    pub(super) fn value(&mut self, expression: &'e Expr) -> Outcome<Tracked> {
        let at = expression.at;
        self.step(at)?;
        match &expression.kind {
            ExprKind::Const(value) => Ok(constant(value, at)),
            ExprKind::Var(name) => Ok(self.variable(name, at)),
            ExprKind::Folder(name) => Ok(self.folder(name, at)),
            ExprKind::Member {
                base,
                name,
                optional,
            } => {
                let base = self.value(base)?;
                self.member(base, name, *optional, at)
            }
            ExprKind::Item {
                base,
                key,
                optional,
            } => {
                let value = self.value(base)?;
                self.item(value, key, *optional, at)
            }
            ExprKind::Slice(it) => operators::slice(self, it, at),
            ExprKind::Not(inner) => {
                let value = self.value(inner)?;
                Ok(Tracked::plain(!operators::is_true(&value, inner.at)?))
            }
            ExprKind::Neg(inner) => {
                let value = self.value(inner)?;
                operators::negated(&value, at)
            }
            ExprKind::And(left, right) => self.either(left, right, false),
            ExprKind::Or(left, right) => self.either(left, right, true),
            ExprKind::Binary(op, left, right) => operators::binary(self, *op, (left, right), at),
            ExprKind::Compare(first, rest) => operators::compare(self, first, rest, at),
            ExprKind::If(it) => self.choice(it),
            ExprKind::Filter(it) => self.filter(it),
            ExprKind::Test(it) => self.test(it, at).map(Tracked::plain),
            ExprKind::Call(call) => self.call(call, None, at),
            ExprKind::List(items) => Ok(Tracked::list(self.values(items)?)),
            ExprKind::Tuple(items) => {
                let Tracked { value, origin } = Tracked::list(self.values(items)?);
                let tuple: Vec<Value> = value.try_iter().into_iter().flatten().collect();
                Ok(Tracked {
                    value: Value::from(Tuple::from(tuple)),
                    origin,
                })
            }
            ExprKind::Map(pairs) => self.map(pairs),
        }
    }

    fn values(&mut self, items: &'e [Expr]) -> Outcome<Vec<Tracked>> {
        items.iter().map(|item| self.value(item)).collect()
    }

    fn variable(&mut self, name: &str, at: Place) -> Tracked {
        self.note_name(name);
        let found = self.variables.get(name);
        let found = found.unwrap_or_default();
        match (&found.origin, found.value.is_undefined()) {
            (Origin::Unknown, true) => missing(at),
            _ => found,
        }
    }

    /// Notifies the watch that a variable is looked up.
    pub(super) fn note_name(&mut self, name: &str) {
        let variables = &self.variables;
        self.watch
            .asked(name, &|| variables.set_value(name).is_some());
    }

    fn folder(&mut self, name: &str, at: Place) -> Tracked {
        let found = self.variable(name, at);
        match found.value.as_str() {
            Some(_) => Tracked {
                origin: Origin::Literal(at),
                ..found
            },
            None => found,
        }
    }

    /// Returns a member of an object; with `optional`, the object may be missing.
    fn member(&mut self, base: Tracked, name: &str, optional: bool, at: Place) -> Outcome<Tracked> {
        if let Some(namespace) = base.value.downcast_object_ref::<Namespace>() {
            return Ok(namespace.get(name).unwrap_or_else(|| missing(at)));
        }
        if base.value.is_undefined() {
            return if optional {
                Ok(missing(at))
            } else {
                Err(undefined(at, &base))
            };
        }
        let value = base
            .value
            .get_attr(name)
            .map_err(|error| Failure::of(at, error, &base))?;
        if value.is_undefined() {
            let origin = member_origin(&base, name);
            self.lacking.insert(at, base.value);
            return Ok(missing_or_nothing(&origin, at));
        }
        let member = Tracked {
            origin: member_origin(&base, name),
            value,
        };
        self.watch.read(&member, at);
        Ok(member)
    }

    fn item(
        &mut self,
        base: Tracked,
        key: &'e Expr,
        optional: bool,
        at: Place,
    ) -> Outcome<Tracked> {
        let of_key = self.value(key)?;
        if literal(key).is_none() || base.value.as_str().is_some() {
            account::read(4 * values::breadth(&base.value))
                .map_err(|error| Failure::at(at, error))?;
            operators::charge_large(&of_key.value).map_err(|error| Failure::at(at, error))?;
        }
        self.watch.looked_at(&of_key);
        if let Some(name) = of_key
            .value
            .as_str()
            .filter(|_| base.value.kind() == ValueKind::Map)
        {
            return self.member(base, name, optional, at);
        }
        if base.value.is_undefined() {
            return if optional {
                Ok(missing(at))
            } else {
                Err(undefined(at, &base))
            };
        }
        if base.value.as_str().is_some() {
            self.watch.looked_at(&base);
        }
        let value = base
            .value
            .get_item(&of_key.value)
            .map_err(|error| Failure::of(at, error, &base))?;
        let origin = match index(&of_key.value, &base.value) {
            Some(index) if base.value.as_str().is_none() => base.origin.element(index),
            _ => Origin::Unknown,
        };
        if value.is_undefined() {
            return Ok(missing_or_nothing(&origin, at));
        }
        let element = Tracked { value, origin };
        self.watch.read(&element, at);
        Ok(element)
    }

    /// Evaluates `left or right`, or `left and right`.
    fn either(&mut self, left: &'e Expr, right: &'e Expr, wanted: bool) -> Outcome<Tracked> {
        let value = self.value(left)?;
        match operators::is_true(&value, left.at)? == wanted {
            true => Ok(value),
            false => self.value(right),
        }
    }

    /// Evaluates a condition, and returns `true` if it holds.
    pub(super) fn holds(&mut self, kind: DecisionKind, test: &'e Expr) -> Outcome<bool> {
        let value = self.value(test)?;
        let holds = operators::is_true(&value, test.at)?;
        self.watch.decided(kind.at(test.at), holds);
        Ok(holds)
    }

    fn choice(&mut self, it: &'e Choice) -> Outcome<Tracked> {
        if self.holds(DecisionKind::Choice, &it.test)? {
            return self.value(&it.then);
        }
        match &it.otherwise {
            Some(otherwise) => self.value(otherwise),
            None => Ok(Tracked::nothing()),
        }
    }

    fn filter(&mut self, it: &'e Filtered) -> Outcome<Tracked> {
        let input = match &it.input {
            Some(input) => self.value(input)?,
            None => Tracked::default(),
        };
        self.apply(it, input)
    }

    fn apply(&mut self, it: &'e Filtered, input: Tracked) -> Outcome<Tracked> {
        let mut arguments = Arguments::default();
        arguments.push(input);
        let arguments = self.arguments(&it.arguments, None, arguments)?;
        self.look_at(&arguments, it.filter.passes_on);
        if decisions::IS_DEFAULT.contains(&it.filter.name) {
            self.decide_default(&arguments, it.own);
        }
        self.native(arguments, it.filter.name, it.own, |native| {
            (it.filter.apply)(native)
        })
    }

    /// Notifies the watch whether a value is kept or replaced by its default.
    pub(super) fn decide_default(&mut self, arguments: &Arguments, at: Place) {
        let is_kept = texts::keeps_value(&arguments.values);
        self.watch.decided(DecisionKind::Default.at(at), is_kept);
    }

    /// Applies a block's filters to a captured string.
    pub(super) fn filtered(&mut self, filters: &'e Expr, text: Tracked) -> Outcome<Tracked> {
        let ExprKind::Filter(it) = &filters.kind else {
            return Ok(text);
        };
        self.step(filters.at)?;
        let input = match &it.input {
            Some(inner) => self.filtered(inner, text)?,
            None => text,
        };
        self.apply(it, input)
    }

    fn test(&mut self, it: &'e Tested, at: Place) -> Outcome<bool> {
        let mut arguments = Arguments::default();
        let input = self.value(&it.input)?;
        arguments.push(input);
        let arguments = self.arguments(&it.arguments, None, arguments)?;
        self.look_at(&arguments, it.test.asks_kind);
        self.native(arguments, it.test.name, at, |native| (it.test.ask)(native))
    }

    fn map(&mut self, pairs: &'e [(Expr, Expr)]) -> Outcome<Tracked> {
        let (mut members, mut origins) = (
            Members::with_capacity(pairs.len()),
            Vec::with_capacity(pairs.len()),
        );
        for (key, value) in pairs {
            let (at, key) = (key.at, self.value(key)?);
            self.watch.looked_at(&key);
            operators::charge_large(&key.value).map_err(|error| Failure::at(at, error))?;
            let value = self.value(value)?;
            match members.insert_full(key.value, value.value) {
                (at, Some(_)) => origins[at] = value.origin,
                (_, None) => origins.push(value.origin),
            }
        }
        Ok(Tracked {
            value: Value::from_object(members),
            origin: Origin::Map(origins.into()),
        })
    }
}

/// Returns the value of a literal.
fn constant(value: &Value, at: Place) -> Tracked {
    // Without escapes, the text is exactly the part between the quotes.
    let is_exact = value
        .as_str()
        .is_some_and(|text| at.len() == text.len() + 2);
    let place = if is_exact { at.inside() } else { at };
    Tracked {
        value: value.clone(),
        origin: Origin::Literal(place),
    }
}

/// Returns the origin of an object's member.
fn member_origin(base: &Tracked, name: &str) -> Origin {
    if let Some(module) = base.value.downcast_object_ref::<Module>() {
        let index = module.values.get_index_of(&Value::from(name));
        return index
            .and_then(|index| module.origins.get(index))
            .cloned()
            .unwrap_or_default();
    }
    base.origin
        .member(name, || values::position(&base.value, name))
}

/// Returns a missing value with the expression that read it.
fn missing(at: Place) -> Tracked {
    Tracked::missing(Absent::value(at))
}

/// Returns an undefined value that was read from a list or an object. If that value comes from an
/// inline `if` without `else`, so does the result.
fn missing_or_nothing(origin: &Origin, at: Place) -> Tracked {
    match origin {
        Origin::Nothing => Tracked::nothing(),
        _ => missing(at),
    }
}

/// Returns the list index for a key. A negative key counts from the end of the list.
fn index(key: &Value, list: &Value) -> Option<usize> {
    match key.as_usize() {
        Some(index) => Some(index),
        None => {
            let back = usize::try_from(key.as_i64()?.unsigned_abs()).ok()?;
            list.len()?.checked_sub(back)
        }
    }
}
