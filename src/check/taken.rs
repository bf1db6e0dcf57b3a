//! Which values a member may have, by everything that is known of the model: what a message lists and a help proposes.
//!
//! Several families may each allow some values of one member. Only what all of them allow is listed, and of that only what leads
//! to no other finding in the same body: `between_tools` for `thinking.type`, for instance, goes with some efforts alone.

use serde_json::Value;

use super::families::{Breach, is_met, is_same};
use super::protocol;
use super::subject::Subject;
use crate::repo::Demand;

/// The values of a member that the model takes.
#[derive(Debug)]
pub(crate) struct Taken {
    /// As the keys of a `[[family.takes]]` say it. Nothing at all if no value is taken.
    demand: Demand,
    is_nothing: bool,
}

impl Taken {
    /// The values that may stand in the place of a refused one, the rest of the body as it is.
    pub(crate) fn instead_of(breach: &Breach<'_, '_>, subject: &Subject<'_>) -> Taken {
        let mut demands = subject.facts.demands(subject, breach.place);
        let first = demands.by_ref().find(|demand| matches!(demand, Demand::Value { .. }));
        let all = subject.facts.demands(subject, breach.place);
        let mut demand = all.fold(first.cloned().unwrap_or_else(anything), narrowed);
        let is_of_history = super::history::member_of(subject.wire).is_some_and(|name| breach.place.is_below(name));
        if let Demand::Value { one_of, .. } = &mut demand
            && !is_of_history
        {
            one_of.retain(|value| is_harmless(value, breach.value, subject));
        }
        let is_nothing = matches!(&demand, Demand::Value { one_of, least: None, most: None } if one_of.is_empty());
        Taken { demand, is_nothing }
    }

    /// Whether no value is known to be taken.
    pub(crate) fn is_nothing(&self) -> bool {
        self.is_nothing
    }

    /// The values in words.
    pub(crate) fn told(&self) -> String {
        match self.is_nothing {
            true => "no value that goes with the rest of the body".to_owned(),
            false => self.demand.taken(),
        }
    }

    /// The single values, without those of a range.
    #[cfg(test)]
    pub(crate) fn values(&self) -> &[Value] {
        match &self.demand {
            Demand::Value { one_of, .. } => one_of,
            Demand::Absent { .. } => &[],
        }
    }
}

/// A demand that no value breaks, and that lists none.
fn anything() -> Demand {
    Demand::Value { one_of: Vec::new(), least: None, most: None }
}

/// What two demands both take.
fn narrowed(known: Demand, other: &Demand) -> Demand {
    let Demand::Value { mut one_of, least, most } = known else { return known };
    match other {
        Demand::Absent { values, .. } => {
            one_of.retain(|value| !values.is_empty() && !values.iter().any(|refused| is_same(value, refused)));
            Demand::Value { one_of, least, most }
        }
        Demand::Value { one_of: listed, least: lowest, most: highest } => {
            let in_range = Demand::Value { one_of: Vec::new(), least, most };
            one_of.retain(|value| is_met(other, value));
            let missing = |value: &&Value| !one_of.iter().any(|known| is_same(known, value));
            let more: Vec<Value> = listed.iter().filter(missing).filter(|value| is_met(&in_range, value)).cloned().collect();
            one_of.extend(more);
            let is_bounded = (least.is_some() || most.is_some()) && (lowest.is_some() || highest.is_some());
            let least = least.into_iter().chain(*lowest).reduce(f64::max).filter(|_| is_bounded);
            let most = most.into_iter().chain(*highest).reduce(f64::min).filter(|_| is_bounded);
            Demand::Value { one_of, least, most }
        }
    }
}

/// Whether a value in the place of a refused one leads to no other finding.
fn is_harmless(value: &Value, refused: &Value, subject: &Subject<'_>) -> bool {
    let Some((name, member)) = subject.members().find(|(_, member)| holds(member, refused)) else { return true };
    let mended = replaced(member, refused, value);
    let members = subject.members().map(|(other, member)| (other, if other == name { &mended } else { member }));
    let changed = subject.with_members(members);
    // The refused value is one finding at least, which is to be gone.
    subject.facts.count(&changed) < subject.facts.count(subject)
        && protocol::count_options(&changed) <= protocol::count_options(subject)
}

/// Whether a value stands in another one, by its address.
fn holds(value: &Value, wanted: &Value) -> bool {
    std::ptr::eq(value, wanted)
        || match value {
            Value::Array(elements) => elements.iter().any(|element| holds(element, wanted)),
            Value::Object(members) => members.values().any(|member| holds(member, wanted)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
}

/// A copy of a value with another one in the place of `wanted`.
fn replaced(value: &Value, wanted: &Value, by: &Value) -> Value {
    if std::ptr::eq(value, wanted) {
        return by.clone();
    }
    match value {
        Value::Array(elements) => elements.iter().map(|element| replaced(element, wanted, by)).collect(),
        Value::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), replaced(member, wanted, by))).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
