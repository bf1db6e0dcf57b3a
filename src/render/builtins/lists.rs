//! Filters and functions for lists and objects. Elements that remain keep their origin.

use std::collections::HashSet;

use minijinja::value::{DynObject, Kwargs, Rest, Tuple, ValueKind, from_args};
use minijinja::{Error, ErrorKind, Value};

use super::super::account;
use super::super::keep::{Holder, keep};
use super::super::objects::Namespace;
use super::super::rope::{Rope, Writer};
use super::super::tracked::{Arguments, Native, Origin, Tracked};
use super::super::values::{self, Members, undefined};
use super::super::writing::to_json;
use super::texts::{Text, text_of};
use super::{filter_named, invalid, test_named};

pub(super) fn list(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (_,): (&Value,) = from_args(&native.arguments.values)?;
    native.elements(0).map(Tracked::list)
}

pub(super) fn first(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (value,): (&Value,) = from_args(&native.arguments.values)?;
    match value.kind() {
        ValueKind::Undefined => Err(undefined()),
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            let first = text.chars().next();
            Ok(first
                .map(|first| native.part(text, 0..first.len_utf8()))
                .unwrap_or_default())
        }
        kind => {
            let first = value.try_iter()?.next();
            let is_list = matches!(kind, ValueKind::Seq | ValueKind::Iterable);
            let origin = || {
                if is_list {
                    native.arguments.origins[0].element(0)
                } else {
                    Origin::Unknown
                }
            };
            Ok(first
                .map(|first| Tracked {
                    value: first,
                    origin: origin(),
                })
                .unwrap_or_default())
        }
    }
}

pub(super) fn last(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (value,): (&Value,) = from_args(&native.arguments.values)?;
    Ok(match value.as_str() {
        Some(text) => {
            let last = text.char_indices().next_back();
            last.map(|(at, _)| native.part(text, at..text.len()))
        }
        None => native.elements(0)?.pop(),
    }
    .unwrap_or_default())
}

pub(super) fn items(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (value,): (&Value,) = from_args(&native.arguments.values)?;
    match value.kind() {
        ValueKind::Undefined => Err(undefined()),
        ValueKind::Map => {
            account::list(0)?;
            let pairs = value
                .as_object()
                .and_then(DynObject::try_iter_pairs)
                .into_iter()
                .flatten();
            let origin = &native.arguments.origins[0];
            let mut items = Vec::new();
            for (index, (key, member)) in pairs.enumerate() {
                account::charge(account::LIST + 3 * account::ELEMENT)?;
                let name = key.as_str().unwrap_or_default().to_owned();
                let parts = [Origin::Unknown, origin.member(&name, || Some(index))];
                let pair = Value::from(Tuple::from([key, member]));
                items.push(Tracked {
                    value: pair,
                    origin: Origin::List(parts.into()),
                });
            }
            Ok(Tracked::list(items))
        }
        kind => Err(invalid(format!(
            "`items` takes an object, not {}",
            values::named(kind)
        ))),
    }
}

pub(super) fn reverse(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (value,): (&Value,) = from_args(&native.arguments.values)?;
    match value.kind() {
        ValueKind::Undefined => Err(undefined()),
        ValueKind::String => {
            let text = value.as_str().unwrap_or_default();
            account::make(4 * text.len())?;
            Ok(native.computed(Value::from(text.chars().rev().collect::<String>())))
        }
        _ => {
            let mut elements = native.elements(0)?;
            elements.reverse();
            Ok(Tracked::list(elements))
        }
    }
}

pub(super) fn join(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (_, separator, options): (&Value, Option<Text>, Kwargs) =
        from_args(&native.arguments.values)?;
    let attribute: Option<&str> = options.get("attribute")?;
    let named: Option<&str> = options.get("d")?;
    options.assert_all_used()?;
    let between = match (&separator, named) {
        (Some(separator), _) => native.rope(1, &separator.0),
        (None, named) => Rope::one(named.unwrap_or_default(), Writer::Tag),
    };
    let mut joined = Rope::default();
    for (index, element) in native.elements(0)?.into_iter().enumerate() {
        let element =
            attribute.map_or_else(|| Ok(element.clone()), |path| member(&element, path))?;
        let lead = if index == 0 { 0 } else { between.text.len() };
        account::make(lead + element.value.as_bytes().map_or(0, <[u8]>::len))?;
        if index > 0 {
            joined.push(between.slice());
        }
        match element.value.as_str() {
            Some(text) => joined.push(element.with_runs(text).slice()),
            None => {
                let text = text_of(&element.value)?;
                joined.push(element.with_runs(&text).slice());
            }
        }
    }
    Ok(Tracked::text(joined))
}

/// Returns a member by its path, which consists of names and element indices separated by dots.
fn member(value: &Tracked, path: &str) -> Result<Tracked, Error> {
    account::charge(account::VISIT + path.len() as u64)?;
    let mut found = value.clone();
    for part in path.split('.') {
        found = match part.parse::<usize>() {
            Ok(index) if found.value.kind() != ValueKind::Map => {
                account::read(4 * values::breadth(&found.value))?;
                Tracked {
                    value: found.value.get_item_by_index(index)?,
                    origin: found.origin.element(index),
                }
            }
            _ => Tracked {
                value: found.value.get_attr(part)?,
                origin: found
                    .origin
                    .member(part, || values::position(&found.value, part)),
            },
        };
    }
    Ok(found)
}

pub(super) fn map(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (_, arguments, options): (&Value, Rest<Value>, Kwargs) =
        from_args(&native.arguments.values)?;
    let elements = native.elements(0)?;
    if let Some(path) = options.get::<Option<&str>>("attribute")? {
        let default: Option<Value> = options.get("default")?;
        options.assert_all_used()?;
        let members = elements
            .iter()
            .map(|element| member_or(element, path, default.as_ref()));
        return members
            .collect::<Result<Vec<Tracked>, Error>>()
            .map(Tracked::list);
    }
    let name = arguments
        .first()
        .ok_or_else(|| invalid("`map` needs a filter, or `attribute=…`"))?;
    let name = name
        .as_str()
        .ok_or_else(|| invalid("`map` takes the name of a filter"))?;
    // Each nested call would deepen the stack.
    if matches!(
        name,
        "map" | "select" | "reject" | "selectattr" | "rejectattr"
    ) {
        return Err(invalid(format!(
            "`map` cannot apply `{name}`: write a loop"
        )));
    }
    let filter = filter_named(name)?;
    let count = arguments.len();
    let mut mapped = Vec::with_capacity(elements.len());
    for element in elements {
        account::charge(account::ELEMENT)?;
        let mut arguments = Arguments::default();
        arguments.push(element);
        (2..=count).for_each(|index| arguments.push(native.arguments.get(index)));
        mapped.push((filter.apply)(&mut native.within(arguments))?);
    }
    Ok(Tracked::list(mapped))
}

fn member_or(element: &Tracked, path: &str, default: Option<&Value>) -> Result<Tracked, Error> {
    match (member(element, path), default) {
        (Ok(found), Some(default)) if found.value.is_undefined() => {
            Ok(Tracked::plain(default.clone()))
        }
        (Err(_), Some(default)) => Ok(Tracked::plain(default.clone())),
        (found, _) => found,
    }
}

pub(super) fn select(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    filtered(native, None, 1, true)
}

pub(super) fn reject(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    filtered(native, None, 1, false)
}

pub(super) fn selectattr(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let path = attribute(native)?;
    filtered(native, Some(&path), 2, true)
}

pub(super) fn rejectattr(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let path = attribute(native)?;
    filtered(native, Some(&path), 2, false)
}

/// Returns the path of the part to test.
fn attribute(native: &Native<'_, '_>) -> Result<String, Error> {
    let (_, arguments): (&Value, Rest<Value>) = from_args(&native.arguments.values)?;
    let path = arguments
        .first()
        .ok_or_else(|| Error::from(ErrorKind::MissingArgument))?;
    path.as_str()
        .map(str::to_owned)
        .ok_or_else(|| invalid("the attribute's name must be a string"))
}

/// Keeps the elements whose part passes or fails a test. Without a test, the part itself is tested
/// for truth. `first` is the index of the argument with the test's name.
fn filtered(
    native: &mut Native<'_, '_>,
    path: Option<&str>,
    first: usize,
    wanted: bool,
) -> Result<Tracked, Error> {
    let (_, _): (&Value, Rest<Value>) = from_args(&native.arguments.values)?;
    let test = native.arguments.values.get(first).cloned();
    let mut kept = Vec::new();
    for element in native.elements(0)? {
        account::charge(account::VISIT)?;
        let part = path.map_or_else(|| Ok(element.clone()), |path| member(&element, path))?;
        let passes = match &test {
            None => part.value.is_true(),
            Some(test) => {
                let name = test
                    .as_str()
                    .ok_or_else(|| invalid("a test's name must be text"))?;
                let test = test_named(name)?;
                let mut arguments = Arguments::default();
                arguments.push(part);
                let count = native.arguments.values.len();
                (first + 1..count).for_each(|index| arguments.push(native.arguments.get(index)));
                (test.ask)(&mut native.within(arguments))?
            }
        };
        if passes == wanted {
            kept.push(element);
        }
    }
    Ok(Tracked::list(kept))
}

/// The key for sorting lists.
#[derive(Debug, Clone, PartialEq)]
enum Key {
    Integer(i128),
    Float(f64),
    Text(String),
}

impl Key {
    fn of(value: &Value, with_case: bool) -> Result<Key, Error> {
        match value.kind() {
            ValueKind::Undefined => Err(undefined()),
            ValueKind::Bool => Ok(Key::Integer(i128::from(value.is_true()))),
            ValueKind::Number => Ok(match i128::try_from(value.clone()) {
                Ok(integer) if value.is_integer() => Key::Integer(integer),
                _ => Key::Float(f64::try_from(value.clone())?),
            }),
            ValueKind::String => {
                let text = value.as_str().unwrap_or_default();
                account::make(text.len())?;
                Ok(Key::Text(if with_case {
                    text.to_owned()
                } else {
                    text.to_lowercase()
                }))
            }
            kind => Err(invalid(format!(
                "only strings and numbers can be sorted, but this is {}: specify an `attribute`",
                values::named(kind)
            ))),
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "the order of integers and floats need not be exact"
    )]
    fn compare(&self, other: &Key) -> std::cmp::Ordering {
        match (self, other) {
            (Key::Integer(a), Key::Integer(b)) => a.cmp(b),
            (Key::Integer(a), Key::Float(b)) => (*a as f64).total_cmp(b),
            (Key::Float(a), Key::Integer(b)) => a.total_cmp(&(*b as f64)),
            (Key::Float(a), Key::Float(b)) => a.total_cmp(b),
            (Key::Text(a), Key::Text(b)) => a.cmp(b),
            (Key::Text(_), _) => std::cmp::Ordering::Greater,
            (_, Key::Text(_)) => std::cmp::Ordering::Less,
        }
    }

    #[expect(
        clippy::cast_precision_loss,
        reason = "the order of integers and floats need not be exact"
    )]
    fn make_float(&mut self) {
        if let Key::Integer(integer) = self {
            *self = Key::Float(*integer as f64);
        }
    }

    fn len(&self) -> usize {
        match self {
            Key::Text(text) => text.len(),
            _ => size_of::<Key>(),
        }
    }
}

pub(super) fn sort(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    sorted(native).map(Tracked::list)
}

pub(super) fn min(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    Ok(sorted(native)?
        .into_iter()
        .next()
        .unwrap_or(Tracked::plain(())))
}

pub(super) fn max(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    Ok(sorted(native)?.pop().unwrap_or(Tracked::plain(())))
}

/// Returns a list's elements, sorted.
fn sorted(native: &Native<'_, '_>) -> Result<Vec<Tracked>, Error> {
    let (_, options): (&Value, Kwargs) = from_args(&native.arguments.values)?;
    let attribute: Option<&str> = options.get("attribute")?;
    let with_case = options
        .get::<Option<bool>>("case_sensitive")?
        .unwrap_or(false);
    let reverse = options.get::<Option<bool>>("reverse")?.unwrap_or(false);
    options.assert_all_used()?;
    let mut keyed = Vec::new();
    for element in native.elements(0)? {
        let part = attribute.map_or_else(|| Ok(element.clone()), |path| member(&element, path))?;
        keyed.push((Key::of(&part.value, with_case)?, element));
    }
    // Integers mixed with floats are compared as floats, so that one order applies to all of them.
    if keyed.iter().any(|(key, _)| matches!(key, Key::Float(_))) {
        keyed.iter_mut().for_each(|(key, _)| key.make_float());
    }
    let bytes: usize = keyed.iter().map(|(key, _)| key.len()).sum();
    account::read(bytes.saturating_mul(keyed.len().max(1).ilog2() as usize + 1))?;
    keyed.sort_by(|(a, _), (b, _)| if reverse { b.compare(a) } else { a.compare(b) });
    Ok(keyed.into_iter().map(|(_, element)| element).collect())
}

pub(super) fn unique(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (_, options): (&Value, Kwargs) = from_args(&native.arguments.values)?;
    let attribute: Option<&str> = options.get("attribute")?;
    let with_case = options
        .get::<Option<bool>>("case_sensitive")?
        .unwrap_or(false);
    options.assert_all_used()?;
    let (mut seen, mut kept) = (HashSet::new(), Vec::new());
    for element in native.elements(0)? {
        let part = attribute.map_or_else(|| Ok(element.clone()), |path| member(&element, path))?;
        let text = to_json(&part.value)?;
        account::make(text.len() + size_of::<String>())?;
        if seen.insert(if with_case { text } else { text.to_lowercase() }) {
            kept.push(element);
        }
    }
    Ok(Tracked::list(kept))
}

pub(super) fn range(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    const MAX: usize = 100_000;
    let (lower, upper, step): (i64, Option<i64>, Option<i64>) =
        from_args(&native.arguments.values)?;
    let (start, end) = upper.map_or((0, lower), |upper| (lower, upper));
    let step = step.unwrap_or(1);
    if step == 0 {
        return Err(invalid("cannot create a range with a step of 0"));
    }
    let numbers = std::iter::successors(Some(start), move |number| number.checked_add(step))
        .take_while(move |number| {
            if step > 0 {
                *number < end
            } else {
                *number > end
            }
        });
    let numbers: Vec<Value> = numbers.take(MAX + 1).map(Value::from).collect();
    if numbers.len() > MAX {
        return Err(invalid(format!("a range has at most {MAX} numbers")));
    }
    account::list(numbers.len())?;
    Ok(Tracked::plain(numbers))
}

pub(super) fn dict(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (made, origins) = members(native)?;
    let made = Value::from_object(made);
    keep(&made, Holder::Variable)?;
    Ok(Tracked {
        value: made,
        origin: Origin::Map(origins.into()),
    })
}

/// Returns the members of an object built from another object and named arguments, with their
/// origins.
fn members(native: &Native<'_, '_>) -> Result<(Members, Vec<Origin>), Error> {
    let (value, named): (Option<&Value>, Kwargs) = from_args(&native.arguments.values)?;
    let (mut made, mut origins) = (Members::new(), Vec::new());
    if let Some(value) = value.filter(|value| !value.is_none()) {
        if value.kind() != ValueKind::Map {
            return Err(invalid("`dict` takes an object, or `name=value`"));
        }
        let pairs = value
            .as_object()
            .and_then(DynObject::try_iter_pairs)
            .into_iter()
            .flatten();
        for (index, (key, member)) in pairs.enumerate() {
            account::charge(account::MEMBER.saturating_add(4 * values::weigh(&key)?))?;
            origins.push(
                native.arguments.origins[0]
                    .member(key.as_str().unwrap_or_default(), || Some(index)),
            );
            made.insert(key, member);
        }
    }
    let given = native.arguments.origins.last();
    for (index, name) in named.args().enumerate() {
        account::make(name.len())?;
        let origin = given.map_or(Origin::Unknown, |given| given.member(name, || Some(index)));
        match made.insert_full(Value::from(name), named.get::<Value>(name)?) {
            (at, Some(_)) => origins[at] = origin,
            (_, None) => origins.push(origin),
        }
    }
    Ok((made, origins))
}

pub(super) fn namespace(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    const MAX: usize = 256;
    let (made, origins) = members(native)?;
    let value = Value::from_object(made.clone());
    keep(&value, Holder::Variable)?;
    keep(&value, Holder::Namespace)?;
    if made.len() > MAX {
        return Err(invalid(format!(
            "a namespace can be created with at most {MAX} members"
        )));
    }
    let named = made
        .into_iter()
        .zip(origins)
        .filter_map(|((key, value), origin)| {
            let name = std::sync::Arc::from(key.as_str()?);
            Some((name, Tracked { value, origin }))
        });
    Ok(Tracked::plain(Value::from_object(Namespace::new(named))))
}

/// Returns the number of elements, members or characters.
pub(in super::super) fn length(native: &mut Native<'_, '_>) -> Result<Tracked, Error> {
    let (value,): (&Value,) = from_args(&native.arguments.values)?;
    account::read(value.as_bytes().map_or(0, <[u8]>::len))?;
    match value.kind() {
        ValueKind::Undefined => Err(undefined()),
        kind => value.len().map(Tracked::plain).ok_or_else(|| {
            Error::new(
                ErrorKind::InvalidOperation,
                format!("{} has no length", values::named(kind)),
            )
        }),
    }
}
