//! What may be kept, in a variable or in a namespace; charged.

use minijinja::value::DynObject;
use minijinja::{Error, ErrorKind, Value};

use super::account::{self, ELEMENT, LIST, MAP, MEMBER, VISIT};
use super::objects::Module;
use super::values::{Shape, check_depth, shape};

/// Where a value is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holder {
    /// In a variable.
    Variable,
    /// In a namespace, which outlives loops: it could come to hold itself.
    Namespace,
}

/// Charges for a value that is kept, and refuses one that nests too deeply; a namespace takes
/// nothing but data.
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
        Shape::Other if place == Holder::Namespace => Err(Error::new(
            ErrorKind::InvalidOperation,
            "a namespace holds texts, numbers, lists and objects only: no namespaces, loops, macros or modules",
        )),
        Shape::Other if is_module(object) => {
            account::charge(MAP)?;
            let mut pairs = object.try_iter_pairs().into_iter().flatten();
            pairs.try_for_each(|(_, member)| keep_at(&member, place, depth + 1))
        }
        // Namespaces hold data of bounded depth; the rest holds nothing.
        Shape::Other => account::charge(VISIT),
    }
}

/// Returns what `import` gives: it holds the variables of a partial.
fn is_module(object: &DynObject) -> bool {
    object.downcast_ref::<Module>().is_some()
}
