//! Checks values before they are kept in a variable or in a namespace, and charges for them.

use minijinja::value::DynObject;
use minijinja::{Error, ErrorKind, Value};

use super::account::{self, ELEMENT, LIST, MAP, MEMBER, VISIT};
use super::objects::Module;
use super::values::{Shape, check_depth, shape};

/// The place where a value is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// A variable.
    Variable,
    /// A namespace. It outlives loops, and an assignment could make the namespace contain itself.
    Namespace,
}

/// Charges for a value to keep, and rejects a value that nests too deeply. A namespace accepts only
/// data.
pub(super) fn keep(value: &Value, place: Holder) -> Result<(), Error> {
    keep_at(value, place, 0)
}

fn keep_at(value: &Value, place: Holder, depth: usize) -> Result<(), Error> {
    let Some(object) = value.as_object() else {
        return Ok(());
    };
    check_depth(depth)?;
    match shape(object) {
        Shape::Elements(elements) => {
            account::charge(LIST + ELEMENT * elements.len() as u64)?;
            elements
                .iter()
                .try_for_each(|element| keep_at(element, place, depth + 1))
        }
        Shape::Members(members) => {
            account::charge(MAP + MEMBER * members.len() as u64)?;
            let mut values = members.iter().flat_map(|(key, member)| [key, member]);
            values.try_for_each(|value| keep_at(value, place, depth + 1))
        }
        Shape::Other if place == Holder::Namespace => {
            Err(Error::new(ErrorKind::InvalidOperation, NOT_FOR_NAMESPACES))
        }
        Shape::Other if is_module(object) => {
            account::charge(MAP)?;
            let mut pairs = object.try_iter_pairs().into_iter().flatten();
            pairs.try_for_each(|(_, member)| keep_at(&member, place, depth + 1))
        }
        // Namespaces contain data of bounded depth; other objects contain nothing.
        Shape::Other => account::charge(VISIT),
    }
}

/// The error for a value that a namespace cannot hold.
pub(super) const NOT_FOR_NAMESPACES: &str = "a namespace can hold only strings, numbers, lists and objects, not namespaces, loops, macros or modules";

/// Returns `true` for the result of `import`, which contains the variables of a partial.
fn is_module(object: &DynObject) -> bool {
    object.downcast_ref::<Module>().is_some()
}
