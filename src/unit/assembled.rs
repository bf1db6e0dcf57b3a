//! Members of a body that are put together from what several templates give, or from one and what
//! is around it.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::members::{Member, Shared};
use super::plan::Part;
use crate::memory::{Identity, Memory, Question};

/// Asks for a member of a plan, by what its templates gave that other bodies hold too.
#[derive(PartialEq, Eq, Hash)]
struct AssembledOf {
    plan: Identity,
    name: Arc<str>,
    given: Vec<Option<Identity>>,
}

impl Question for AssembledOf {
    type Answer = Arc<Shared>;

    fn weight(&self, answer: &Arc<Shared>) -> usize {
        2 * answer.weight()
    }
}

/// Returns a member of a plan with what its templates gave, in order.
pub(super) fn assemble(
    plan: Identity,
    name: &Arc<str>,
    part: &Part,
    given: Vec<Option<Member>>,
    memory: Option<&Memory>,
) -> Member {
    match memory.filter(|_| given.iter().flatten().all(Member::is_shared)) {
        Some(memory) => {
            let ids = given
                .iter()
                .map(|given| given.as_ref().and_then(Member::id))
                .collect();
            let asked = AssembledOf {
                plan,
                name: Arc::clone(name),
                given: ids,
            };
            Member::Shared(memory.ask(asked, || {
                Arc::new(Shared::new(
                    part.value(&mut given.into_iter()).unwrap_or_default(),
                ))
            }))
        }
        None => Member::Own(part.value(&mut given.into_iter()).unwrap_or_default()),
    }
}

impl Part {
    /// The value, with what the templates gave; `None` if it is left out.
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
