//! Evaluates operators: implements the parts that the engine does not export, and charges for their
//! cost.
//!
//! The engine does the arithmetic, by evaluating a tree of two literals and the operator. Error
//! messages are written here.

use minijinja::machinery::Span;
use minijinja::machinery::ast::{self, BinOpKind, CompareOpKind, Spanned};
use minijinja::value::{Tuple, ValueKind};
use minijinja::{Error, ErrorKind, Value};

use super::super::account::{self, MAX_OUTPUT};
use super::super::keep::{Holder, keep};
use super::super::place::Place;
use super::super::rope::{Cutter, Rope};
use super::super::tracked::{Tracked, elements};
use super::super::values;
use super::Eval;
use super::decisions::DecisionKind;
use super::failure::{Failure, Outcome, invalid, too_large, undefined};
use super::tree::{Expr, ExprKind, Slice, Target};
use super::watch::Watch;

/// The maximum length of a list created by addition or repetition.
const MAX_ELEMENTS: usize = 1_000_000;
/// The maximum size, in bytes, of a small string. The cost of a step covers the comparison of small
/// strings.
const SMALL_TEXT: usize = 1_024;

/// The two operands of an operator.
type Operands<'e> = (&'e Expr, &'e Expr);

/// Charges for a value that may be read completely, once for each reading.
///
/// # Errors
///
/// Returns an error if the charge exceeds the limit, or if the value nests too deeply.
pub(super) fn whole(value: &Value, times: u64) -> Result<(), Error> {
    match value.as_object() {
        // The text of a list or an object is much longer than its parts.
        Some(_) => {
            let units = values::weigh(value)?;
            account::charge(units.saturating_mul(4 * times - 1))
        }
        None => {
            let len = value.as_bytes().map_or(0, <[u8]>::len);
            if len > MAX_OUTPUT {
                return Err(too_large());
            }
            account::charge(2 * times * len as u64)
        }
    }
}

fn is_small(value: &Value) -> bool {
    value.as_object().is_none()
        && value
            .as_bytes()
            .is_none_or(|bytes| bytes.len() <= SMALL_TEXT)
}

/// Charges for a value unless it is small.
///
/// # Errors
///
/// Returns an error if the charge exceeds the limit.
pub(super) fn charge_large(value: &Value) -> Result<(), Error> {
    if is_small(value) {
        Ok(())
    } else {
        whole(value, 1)
    }
}

/// Charges for a comparison, unless one side is small.
fn charge_both(left: &Value, right: &Value) -> Result<(), Error> {
    if is_small(left) || is_small(right) {
        return Ok(());
    }
    whole(left, 1)?;
    whole(right, 1)
}

/// Charges for searching one value in another.
fn charge_search(needle: &Value, hay: &Value) -> Result<(), Error> {
    if hay.as_str().is_some() && !is_small(needle) {
        whole(needle, 1)?;
    }
    match is_small(needle) {
        true => account::read(4 * values::breadth(hay)),
        false => whole(hay, 1),
    }
}

/// Evaluates `left op right`.
pub(super) fn binary<'e, W: Watch>(
    eval: &mut Eval<'e, W>,
    op: BinOpKind,
    (left, right): Operands<'e>,
    at: Place,
) -> Outcome<Tracked> {
    let (one, other) = (eval.value(left)?, eval.value(right)?);
    operated(eval, op, [&one, &other], at)
}

/// Applies an operator to two values.
fn operated<W: Watch>(
    eval: &mut Eval<'_, W>,
    op: BinOpKind,
    [left, right]: [&Tracked; 2],
    at: Place,
) -> Outcome<Tracked> {
    match op {
        BinOpKind::Concat => return joined(eval, left, right, at),
        BinOpKind::Add => return sum(eval, left, right, at),
        _ => {}
    }
    let operator = match op {
        BinOpKind::Eq => CompareOpKind::Eq,
        BinOpKind::Ne => CompareOpKind::Ne,
        BinOpKind::Lt => CompareOpKind::Lt,
        BinOpKind::Lte => CompareOpKind::Lte,
        BinOpKind::Gt => CompareOpKind::Gt,
        BinOpKind::Gte => CompareOpKind::Gte,
        BinOpKind::In => CompareOpKind::In,
        op => {
            [left, right]
                .into_iter()
                .for_each(|operand| eval.watch.looked_at(operand));
            return calculated(op, left, right)
                .map(Tracked::plain)
                .map_err(|error| of_operands(at, error, left, right));
        }
    };
    compared(eval, operator, [left, right], at).map(Tracked::plain)
}

fn of_operands(at: Place, error: Error, left: &Tracked, right: &Tracked) -> Failure {
    let culprit = if left.value.is_undefined() {
        left
    } else {
        right
    };
    Failure::of(at, error, culprit)
}

/// Computes with numbers, and repeats strings and lists.
fn calculated(op: BinOpKind, left: &Tracked, right: &Tracked) -> Result<Value, Error> {
    // The engine would repeat a tuple before its length could be checked.
    let (left, right) = match op {
        BinOpKind::Mul => (untupled(&left.value), untupled(&right.value)),
        _ => (left.value.clone(), right.value.clone()),
    };
    let made = by_engine(op, &left, &right).ok_or_else(|| impossible(op, &left, &right))?;
    match made.kind() {
        ValueKind::String => {
            let len = made.as_bytes().map_or(0, <[u8]>::len);
            if len > MAX_OUTPUT {
                return Err(too_large());
            }
            account::make(len)?;
            Ok(made)
        }
        ValueKind::Seq | ValueKind::Iterable => {
            if made.len().unwrap_or(0) > MAX_ELEMENTS {
                return Err(too_large());
            }
            Ok(Value::from(values::elements(&made)?))
        }
        _ => Ok(made),
    }
}

fn untupled(value: &Value) -> Value {
    match value.downcast_object_ref::<Tuple>() {
        Some(tuple) => Value::from(tuple.to_vec()),
        None => value.clone(),
    }
}

/// Lets the engine evaluate an operator over two literals.
fn by_engine(op: BinOpKind, left: &Value, right: &Value) -> Option<Value> {
    let operation = ast::BinOp {
        op,
        left: literal(left),
        right: literal(right),
    };
    ast::Expr::BinOp(Spanned::new(operation, Span::default())).as_const()
}

fn literal(value: &Value) -> ast::Expr<'_> {
    ast::Expr::Const(Spanned::new(
        ast::Const {
            value: value.clone(),
        },
        Span::default(),
    ))
}

/// Explains why the engine could not evaluate an operator.
fn impossible(op: BinOpKind, left: &Value, right: &Value) -> Error {
    let sign = match op {
        BinOpKind::Add => "+",
        BinOpKind::Sub => "-",
        BinOpKind::Mul => "*",
        BinOpKind::Div => "/",
        BinOpKind::FloorDiv => "//",
        BinOpKind::Rem => "%",
        _ => "**",
    };
    if op_is_mul(op) && (is_repeatable(left) || is_repeatable(right)) {
        return not_repeatable(left, right);
    }
    match is_number(left) && is_number(right) {
        true => invalid(format!("unable to calculate {left} {sign} {right}")),
        false => {
            let has_text = [left, right].iter().any(|value| value.as_str().is_some());
            let instead = match op {
                BinOpKind::Add if has_text => ": `a ~ b` joins strings",
                _ => "",
            };
            let (left, right) = (values::kind_in_words(left), values::kind_in_words(right));
            invalid(format!(
                "`{sign}` cannot combine {left} and {right}{instead}"
            ))
        }
    }
}

fn is_number(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::Number | ValueKind::Bool)
}

fn op_is_mul(op: BinOpKind) -> bool {
    matches!(op, BinOpKind::Mul)
}

fn is_repeatable(value: &Value) -> bool {
    matches!(
        value.kind(),
        ValueKind::String | ValueKind::Seq | ValueKind::Iterable
    )
}

/// Explains why a string or a list could not be repeated.
fn not_repeatable(left: &Value, right: &Value) -> Error {
    let is_text = left.as_str().is_some() || right.as_str().is_some();
    let times = if is_repeatable(left) && (left.as_str().is_some() || !is_text) {
        right
    } else {
        left
    };
    match (is_text, times.as_usize()) {
        (true, None) => invalid("strings can only be multiplied with integers"),
        (true, Some(_)) => invalid("repeated string is too large"),
        (false, None) => invalid("sequences and iterables can only be multiplied with integers"),
        (false, Some(_)) => invalid("repeated sequence is too large"),
    }
}

/// Evaluates `-value`.
pub(super) fn negated(value: &Tracked, at: Place) -> Outcome<Tracked> {
    let literal = ast::Expr::Const(Spanned::new(
        ast::Const {
            value: value.value.clone(),
        },
        Span::default(),
    ));
    let negation = ast::UnaryOp {
        op: ast::UnaryOpKind::Neg,
        expr: literal,
    };
    let made = ast::Expr::UnaryOp(Spanned::new(negation, Span::default())).as_const();
    made.map(Tracked::plain)
        .ok_or_else(|| Failure::of(at, error(value), value))
}

fn error(value: &Tracked) -> Error {
    match value.value.kind() {
        ValueKind::Number => invalid("overflow"),
        _ => Error::from(ErrorKind::InvalidOperation),
    }
}

/// Evaluates `left ~ right`.
fn joined<W: Watch>(
    eval: &mut Eval<'_, W>,
    left: &Tracked,
    right: &Tracked,
    at: Place,
) -> Outcome<Tracked> {
    for operand in [right, left] {
        if operand.is_missing() {
            return Err(undefined(at, operand));
        }
    }
    let mut made = Rope::default();
    for operand in [left, right] {
        whole(&operand.value, 1).map_err(|error| Failure::at(at, error))?;
        match operand.value.as_str() {
            Some(text) => made.push(operand.with_runs(text).slice()),
            None => {
                eval.watch.looked_at(operand);
                let text = operand.value.to_string();
                made.push(operand.with_runs(&text).slice());
            }
        }
    }
    Ok(Tracked::text(made))
}

/// Evaluates `left + right`.
fn sum<W: Watch>(
    eval: &mut Eval<'_, W>,
    left: &Tracked,
    right: &Tracked,
    at: Place,
) -> Outcome<Tracked> {
    if let (Some(one), Some(other)) = (left.value.as_str(), right.value.as_str()) {
        let len = one.len() + other.len();
        let error = if len > MAX_OUTPUT {
            Err(too_large())
        } else {
            account::make(len)
        };
        error.map_err(|error| Failure::at(at, error))?;
        let mut made = Rope::default();
        made.push(left.with_runs(one).slice());
        made.push(right.with_runs(other).slice());
        return Ok(Tracked::text(made));
    }
    if is_list(left) && is_list(right) && left.value.is_tuple() == right.value.is_tuple() {
        return added(left, right).map_err(|error| Failure::at(at, error));
    }
    [left, right]
        .into_iter()
        .for_each(|operand| eval.watch.looked_at(operand));
    let made = calculated(BinOpKind::Add, left, right);
    made.map(Tracked::plain)
        .map_err(|error| of_operands(at, error, left, right))
}

fn is_list(value: &Tracked) -> bool {
    matches!(value.value.kind(), ValueKind::Seq | ValueKind::Iterable)
}

/// Concatenates two lists.
fn added(left: &Tracked, right: &Tracked) -> Result<Tracked, Error> {
    let len = left.value.len().unwrap_or(0) + right.value.len().unwrap_or(0);
    if len > MAX_ELEMENTS {
        return Err(too_large());
    }
    let mut all = elements(left)?;
    all.extend(elements(right)?);
    let Tracked { value, origin } = Tracked::list(all);
    match left.value.is_tuple() {
        true => {
            let values: Vec<Value> = value.try_iter()?.collect();
            Ok(Tracked {
                value: Value::from(Tuple::from(values)),
                origin,
            })
        }
        false => Ok(Tracked { value, origin }),
    }
}

/// Evaluates `first op a op b …`.
pub(super) fn compare<'e, W: Watch>(
    eval: &mut Eval<'e, W>,
    first: &'e Expr,
    rest: &'e [(CompareOpKind, Expr)],
    at: Place,
) -> Outcome<Tracked> {
    let mut left = eval.value(first)?;
    for (op, operand) in rest {
        let right = eval.value(operand)?;
        if !compared(eval, *op, [&left, &right], at)? {
            return Ok(Tracked::plain(false));
        }
        left = right;
    }
    Ok(Tracked::plain(true))
}

/// Compares two values.
fn compared<W: Watch>(
    eval: &mut Eval<'_, W>,
    op: CompareOpKind,
    [left, right]: [&Tracked; 2],
    at: Place,
) -> Outcome<bool> {
    let is_search = matches!(op, CompareOpKind::In | CompareOpKind::NotIn);
    let order = if is_search {
        [right, left]
    } else {
        [left, right]
    };
    for operand in order {
        if operand.is_missing() {
            return Err(undefined(at, operand));
        }
    }
    let charged = match is_search {
        true => charge_search(&left.value, &right.value),
        false => charge_both(&left.value, &right.value),
    };
    charged.map_err(|error| Failure::at(at, error))?;
    note_looks(eval, op, [left, right]);
    let (one, other) = (&left.value, &right.value);
    Ok(match op {
        CompareOpKind::Eq => one == other,
        CompareOpKind::Ne => one != other,
        CompareOpKind::Lt => one < other,
        CompareOpKind::Lte => one <= other,
        CompareOpKind::Gt => one > other,
        CompareOpKind::Gte => one >= other,
        CompareOpKind::In | CompareOpKind::NotIn => {
            let found = by_engine(BinOpKind::In, one, other);
            let error = || invalid("cannot perform a containment check on this value");
            let found = found
                .ok_or_else(|| of_operands(at, error(), left, right))?
                .is_true();
            found != matches!(op, CompareOpKind::NotIn)
        }
    })
}

/// Notifies the watch of compared values. An existing string is neither empty nor a number, so
/// comparing it for equality with an empty string or a number reveals nothing about it.
fn note_looks<W: Watch>(eval: &mut Eval<'_, W>, op: CompareOpKind, operands: [&Tracked; 2]) {
    let is_equality = matches!(op, CompareOpKind::Eq | CompareOpKind::Ne);
    if is_equality && operands.iter().any(|operand| says_nothing(&operand.value)) {
        return;
    }
    operands
        .into_iter()
        .for_each(|operand| eval.watch.looked_at(operand));
}

fn says_nothing(value: &Value) -> bool {
    value.as_object().is_none() && value.as_str().is_none_or(str::is_empty)
}

/// Evaluates `base[start:stop:step]` with Python's semantics.
pub(super) fn slice<'e, W: Watch>(
    eval: &mut Eval<'e, W>,
    it: &'e Slice,
    at: Place,
) -> Outcome<Tracked> {
    let base = eval.value(&it.base)?;
    let mut values = [const { None }; 3];
    for (value, given) in values.iter_mut().zip([&it.start, &it.stop, &it.step]) {
        *value = given.as_ref().map(|given| eval.value(given)).transpose()?;
    }
    if base.value.is_undefined() {
        return Err(undefined(at, &base));
    }
    let mut indices = [None; 3];
    for (index, value) in indices.iter_mut().zip(values) {
        if let Some(value) = value {
            *index = bound(&value.value).map_err(|error| Failure::of(at, error, &value))?;
        }
    }
    eval.watch.looked_at(&base);
    let picked = Picked {
        start: indices[0],
        stop: indices[1],
        step: indices[2].unwrap_or(1),
    };
    if picked.step == 0 {
        return Err(Failure::at(at, invalid("cannot slice by a step of 0")));
    }
    sliced(&base, &picked).map_err(|error| Failure::of(at, error, &base))
}

/// The elements that a slice selects from a list; the step is not 0.
struct Picked {
    start: Option<i64>,
    stop: Option<i64>,
    step: i64,
}

fn sliced(base: &Tracked, picked: &Picked) -> Result<Tracked, Error> {
    match base.value.kind() {
        ValueKind::None => Ok(Tracked::plain(Vec::<Value>::new())),
        ValueKind::String => {
            let text = base.value.as_str().unwrap_or_default();
            // The locations of the characters take more memory than the text.
            account::make(16 * text.len())?;
            let starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let base = base.with_runs(text);
            let mut cutter = Cutter::new(base.slice());
            let mut indices: Vec<usize> = picked.of(starts.len()).collect();
            let is_backwards = picked.step < 0;
            if is_backwards {
                indices.reverse();
            }
            let mut made = Rope::default();
            for indices in indices.chunk_by(|one, next| !is_backwards && one + 1 == *next) {
                let behind = indices[indices.len() - 1] + 1;
                let end = starts.get(behind).copied().unwrap_or(text.len());
                cutter.cut(starts[indices[0]]..end, &mut made);
            }
            match is_backwards {
                true => Ok(Tracked::text(made.reversed())),
                false => Ok(Tracked::text(made)),
            }
        }
        ValueKind::Seq | ValueKind::Iterable => {
            let all = elements(base)?;
            let Tracked { value, origin } = Tracked::list(
                picked
                    .of(all.len())
                    .map(|index| all[index].clone())
                    .collect(),
            );
            match base.value.is_tuple() {
                true => {
                    let values: Vec<Value> = value.try_iter()?.collect();
                    Ok(Tracked {
                        value: Value::from(Tuple::from(values)),
                        origin,
                    })
                }
                false => Ok(Tracked { value, origin }),
            }
        }
        kind => Err(invalid(format!("value of type {kind} cannot be sliced"))),
    }
}

fn bound(value: &Value) -> Result<Option<i64>, Error> {
    match value.is_none() {
        true => Ok(None),
        false => i64::try_from(value.clone()).map(Some),
    }
}

impl Picked {
    /// Returns the selected indices of a list with `len` elements.
    fn of(&self, len: usize) -> impl Iterator<Item = usize> + use<> {
        let Picked { start, stop, step } = *self;
        let count = i64::try_from(len).unwrap_or(i64::MAX);
        let (lowest, highest) = if step > 0 {
            (0, count)
        } else {
            (-1, count - 1)
        };
        let clamped = |index: i64| {
            let from_start = if index < 0 {
                index.saturating_add(count)
            } else {
                index
            };
            from_start.clamp(lowest, highest)
        };
        let first = start.map_or(if step > 0 { lowest } else { highest }, clamped);
        let end = stop.map_or(if step > 0 { highest } else { lowest }, clamped);
        let indices = std::iter::successors(Some(first), move |index| index.checked_add(step))
            .take_while(move |index| if step > 0 { *index < end } else { *index > end });
        indices.filter_map(move |index| usize::try_from(index).ok().filter(|index| *index < len))
    }
}

/// Evaluates the value for a variable or a namespace, and checks values that could nest ever more
/// deeply.
///
/// A variable may keep data without a check; only lists and objects that the template creates are
/// checked. A namespace outlives loops and could end up containing itself, so everything that it
/// keeps is checked, except its current content.
pub(super) fn kept<'e, W: Watch>(
    eval: &mut Eval<'e, W>,
    expression: &'e Expr,
    holder: Holder,
    target: Option<&'e Target>,
) -> Outcome<Tracked> {
    let at = expression.at;
    match &expression.kind {
        ExprKind::If(it) => match (eval.holds(DecisionKind::Choice, &it.test)?, &it.otherwise) {
            (true, _) => kept(eval, &it.then, holder, target),
            (false, Some(otherwise)) => kept(eval, otherwise, holder, target),
            (false, None) => Ok(Tracked::nothing()),
        },
        ExprKind::Binary(BinOpKind::Add, left, right) => {
            let one = kept(eval, left, holder, target)?;
            let other = kept(eval, right, holder, target)?;
            operated(eval, BinOpKind::Add, [&one, &other], at)
        }
        _ if target.is_some_and(|target| is_same(expression, target)) => eval.value(expression),
        _ => {
            let value = eval.value(expression)?;
            if holder == Holder::Namespace || makes(expression) {
                keep(&value.value, holder).map_err(|error| Failure::at(at, error))?;
            }
            Ok(value)
        }
    }
}

/// Returns `true` if an expression may create a list or an object from other values.
fn makes(expression: &Expr) -> bool {
    match &expression.kind {
        ExprKind::List(items) | ExprKind::Tuple(items) => items.iter().any(|item| !is_flat(item)),
        ExprKind::Map(pairs) => pairs.iter().any(|(_, value)| !is_flat(value)),
        ExprKind::Binary(BinOpKind::Mul, left, right)
        | ExprKind::And(left, right)
        | ExprKind::Or(left, right) => makes(left) || makes(right),
        ExprKind::Slice(it) => makes(&it.base),
        ExprKind::Filter(it) => {
            matches!(it.filter.name, "items" | "map")
                || it.input.as_ref().is_some_and(makes)
                || it
                    .arguments
                    .iter()
                    .any(|argument| makes(argument.expression()))
        }
        _ => false,
    }
}

/// Returns `true` if an expression yields a string or a number.
fn is_flat(expression: &Expr) -> bool {
    matches!(
        expression.kind,
        ExprKind::Const(_)
            | ExprKind::Binary(BinOpKind::Concat, ..)
            | ExprKind::Compare(..)
            | ExprKind::Test(_)
            | ExprKind::Not(_)
            | ExprKind::Neg(_)
    )
}

/// Returns `true` if an expression reads the present value of the target.
fn is_same(expression: &Expr, target: &Target) -> bool {
    let (
        ExprKind::Member { base, name, .. },
        Target::Member {
            object,
            name: assigned,
            ..
        },
    ) = (&expression.kind, target)
    else {
        return false;
    };
    let (ExprKind::Var(read), ExprKind::Var(written)) = (&base.kind, &object.kind) else {
        return false;
    };
    name == assigned && read == written
}

/// Returns `true` if a value is truthy.
pub(super) fn is_true(value: &Tracked, at: Place) -> Outcome<bool> {
    match value.is_missing() {
        true => Err(undefined(at, value)),
        false => Ok(value.value.is_true()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_are_those_of_python() {
        let slice = |start, stop, step| Picked { start, stop, step }.of(5).collect::<Vec<_>>();
        assert_eq!(slice(None, None, -1), [4, 3, 2, 1, 0]);
        assert_eq!(slice(Some(-2), None, 1), [3, 4]);
        assert_eq!(slice(None, Some(-2), 2), [0, 2]);
        assert_eq!(slice(Some(3), Some(0), -2), [3, 1]);
        assert_eq!(slice(Some(1), Some(-9), -1), [1, 0]);
        assert_eq!(slice(Some(i64::MIN), Some(i64::MAX), i64::MAX), [0]);
        assert_eq!(slice(Some(i64::MAX), Some(i64::MIN), i64::MIN), [4]);
        assert_eq!(slice(Some(9), None, 1), [0; 0]);
        assert_eq!(
            Picked {
                start: None,
                stop: None,
                step: -1
            }
            .of(0)
            .count(),
            0
        );
    }
}
