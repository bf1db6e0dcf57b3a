//! Members of a body that are put together from what several templates give, or from one and what stands around it.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Map, Value};

use super::members::{Member, Shared};
use super::memo::Weight;
use super::plan::Part;

/// What an agent put together last for each member: most often its next body has the same.
#[derive(Default)]
pub(super) struct KnownMembers(Mutex<Vec<Known>>);

struct Known {
    name: Arc<str>,
    /// What the templates gave.
    given: Vec<Given>,
    made: Arc<Shared>,
    weight: usize,
}

/// What a template gave that other bodies hold too; `None` if that was nothing.
type Given = Option<Arc<Shared>>;

/// A member that was put together.
pub(super) struct Assembled {
    pub(super) member: Member,
    /// About how many bytes it holds beside what [`Member`]s of the agent's own do.
    pub(super) weight: usize,
}

impl KnownMembers {
    /// A member with what its templates gave, in order.
    pub(super) fn assemble(&self, name: &Arc<str>, part: &Part, given: Vec<Option<Member>>) -> Assembled {
        if !given.iter().flatten().all(Member::is_shared) {
            let value = part.value(&mut given.into_iter());
            return Assembled { member: Member::Own(value.unwrap_or_default()), weight: 0 };
        }
        let key: Vec<Given> = given.iter().map(|given| shared(given.as_ref())).collect();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = known.iter().position(|known| known.name == *name);
        if let Some(known) = at.map(|at| &known[at]).filter(|known| is_same(&known.given, &key)) {
            return Assembled { member: Member::Shared(Arc::clone(&known.made)), weight: known.weight };
        }
        let value = part.value(&mut given.into_iter()).unwrap_or_default();
        let (weight, made) = (value.weight(), Arc::new(Shared::new(value)));
        at.map(|at| known.swap_remove(at));
        known.push(Known { name: Arc::clone(name), given: key, made: Arc::clone(&made), weight });
        Assembled { member: Member::Shared(made), weight }
    }
}

/// What a template gave for all bodies.
fn shared(given: Option<&Member>) -> Given {
    match given? {
        Member::Shared(shared) => Some(Arc::clone(shared)),
        Member::Own(_) | Member::Spliced(_) => None,
    }
}

fn is_same(known: &[Given], given: &[Given]) -> bool {
    let same = |pair: (&Given, &Given)| match pair {
        (Some(known), Some(given)) => Arc::ptr_eq(known, given),
        (known, given) => known.is_none() && given.is_none(),
    };
    known.len() == given.len() && known.iter().zip(given).all(same)
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
