//! Assembles a member of a body from the output of its templates and the constants around it.

use serde_json::{Map, Value};

use super::members::{Member, Shared};
use super::plan::Part;
use crate::memory::Memory;

/// Returns a member with the output of its templates inserted; `given` contains the output in
/// order.
pub(super) fn assemble(part: &Part, given: Vec<Option<Member>>, memory: Option<&Memory>) -> Member {
    let memory = memory.filter(|_| given.iter().flatten().all(Member::is_shared));
    let value = part.value(&mut given.into_iter()).unwrap_or_default();
    match memory {
        Some(memory) => Member::Shared(Shared::same(value, memory)),
        None => Member::Own(value),
    }
}

impl Part {
    /// Returns the value with the templates' output in place; `None` if the value is left out.
    fn value(&self, given: &mut impl Iterator<Item = Option<Member>>) -> Option<Value> {
        match self {
            Part::Constant(value) => Some(value.clone()),
            Part::Member(shared) => Some(shared.value().clone()),
            Part::Table(parts) => {
                let mut members = Map::with_capacity(parts.len());
                for (key, part) in parts {
                    members.extend(part.value(given).map(|value| (key.to_string(), value)));
                }
                Some(Value::Object(members))
            }
            Part::Array(parts) => Some(parts.iter().filter_map(|part| part.value(given)).collect()),
            Part::Template(..) => given.next().flatten().map(Member::into_value),
        }
    }
}
