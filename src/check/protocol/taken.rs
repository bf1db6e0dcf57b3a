//! Finds the values that a model accepts for a member. Messages list these values, and advice
//! proposes them.
//!
//! Several families may each allow some values of one member. A value is listed only if all of
//! these families allow the value and it causes no other finding in the same body. For example, the
//! value `between_tools` of `thinking.type` is only possible with some efforts.

use serde_json::Value;

use crate::check::families::{Breach, is_met, is_same};
use crate::check::subject::Subject;
use crate::repo::Demand;

/// The values that the model accepts for a member.
#[derive(Debug)]
pub(crate) struct Taken {
    /// The values, in the form of the keys of `[[family.takes]]`; empty if no value is accepted.
    demand: Demand,
    is_nothing: bool,
}

impl Taken {
    /// Returns the values that can replace a rejected one if the rest of the body stays the same.
    pub(crate) fn instead_of(breach: &Breach<'_, '_>, subject: &Subject<'_>) -> Taken {
        let mut demands = subject.facts.demands(subject, breach.place);
        let first = demands
            .by_ref()
            .find(|demand| matches!(demand, Demand::Value { .. }));
        let all = subject.facts.demands(subject, breach.place);
        let mut demand = all.fold(first.cloned().unwrap_or_else(anything), narrowed);
        let is_of_history = crate::check::history::member_of(subject.wire)
            .is_some_and(|name| breach.place.is_below(name));
        if let Demand::Value { one_of, .. } = &mut demand
            && !is_of_history
        {
            one_of.retain(|value| is_harmless(value, breach.value, subject));
        }
        let is_nothing = matches!(&demand, Demand::Value { one_of, least: None, most: None } if one_of.is_empty());
        Taken { demand, is_nothing }
    }

    /// Returns `true` if no value is known to be accepted.
    pub(crate) fn is_nothing(&self) -> bool {
        self.is_nothing
    }

    /// Returns the values in words, if there are any.
    pub(crate) fn told(&self) -> String {
        self.demand.taken()
    }
}

/// Returns a demand that lists no values and that every value meets.
fn anything() -> Demand {
    Demand::Value {
        one_of: Vec::new(),
        least: None,
        most: None,
    }
}

/// Returns the values that two demands both accept.
fn narrowed(known: Demand, other: &Demand) -> Demand {
    let Demand::Value {
        mut one_of,
        least,
        most,
    } = known
    else {
        return known;
    };
    match other {
        Demand::Absent { values, .. } => {
            one_of.retain(|value| {
                !values.is_empty() && !values.iter().any(|refused| is_same(value, refused))
            });
            Demand::Value {
                one_of,
                least,
                most,
            }
        }
        Demand::Value {
            one_of: listed,
            least: lowest,
            most: highest,
        } => {
            let in_range = Demand::Value {
                one_of: Vec::new(),
                least,
                most,
            };
            one_of.retain(|value| is_met(other, value));
            let more: Vec<Value> = listed
                .iter()
                .filter(|value| !one_of.iter().any(|known| is_same(known, value)))
                .filter(|value| is_met(&in_range, value))
                .cloned()
                .collect();
            one_of.extend(more);
            let is_bounded =
                (least.is_some() || most.is_some()) && (lowest.is_some() || highest.is_some());
            let least = least
                .into_iter()
                .chain(*lowest)
                .reduce(f64::max)
                .filter(|_| is_bounded);
            let most = most
                .into_iter()
                .chain(*highest)
                .reduce(f64::min)
                .filter(|_| is_bounded);
            Demand::Value {
                one_of,
                least,
                most,
            }
        }
    }
}

/// Returns `true` if replacing a rejected value with a different one causes no other finding.
fn is_harmless(value: &Value, refused: &Value, subject: &Subject<'_>) -> bool {
    let Some((name, member)) = subject.members().find(|(_, member)| holds(member, refused)) else {
        return true;
    };
    let mended = replaced(member, refused, value);
    let members = subject
        .members()
        .map(|(other, member)| (other, if other == name { &mended } else { member }));
    let changed = subject.with_members(members);
    // The rejected value caused at least one finding, which must disappear.
    subject.facts.count(&changed) < subject.facts.count(subject)
        && super::count_beside_models(&changed) <= super::count_beside_models(subject)
}

/// Returns `true` if `wanted` is part of a value. Compares addresses in memory, not contents.
fn holds(value: &Value, wanted: &Value) -> bool {
    std::ptr::eq(value, wanted)
        || match value {
            Value::Array(elements) => elements.iter().any(|element| holds(element, wanted)),
            Value::Object(members) => members.values().any(|member| holds(member, wanted)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        }
}

/// Returns a copy of a value with `wanted` replaced by a different value.
fn replaced(value: &Value, wanted: &Value, by: &Value) -> Value {
    if std::ptr::eq(value, wanted) {
        return by.clone();
    }
    match value {
        Value::Array(elements) => elements
            .iter()
            .map(|element| replaced(element, wanted, by))
            .collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| (name.clone(), replaced(member, wanted, by)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::check::{About, Checks, Problem, Recipient, Schemas};
    use crate::diag::Severity;
    use crate::json::Pointer;
    use crate::provider::{ApiHeaders, Server, WireFormat};
    use crate::repo::{Condition, Fact, Family, LoadOptions, PathStart, Repo, State, load};
    use crate::system::Embedded;
    use crate::world::MemoryWorld;

    /// The bundled files and their schemas.
    struct Bundled {
        repo: Repo,
        schemas: Schemas,
    }

    /// A body's destination, and the fact that it violates.
    struct Case<'c> {
        wire: WireFormat,
        server: Server,
        model: String,
        fact: &'c Fact,
    }

    impl Bundled {
        fn load() -> Bundled {
            let nothing = Arc::new(MemoryWorld::default());
            let repo = load(
                nothing,
                Arc::new(Embedded::bundled()),
                LoadOptions::default(),
            )
            .repo;
            Bundled {
                schemas: Schemas::new(&repo, &Arc::default()).0,
                repo,
            }
        }

        /// Returns a case for each fact, wire format and model pattern of each family.
        fn cases(&self) -> Vec<Case<'_>> {
            let mut cases = Vec::new();
            for family in &self.repo.families {
                for wire in family
                    .wires
                    .iter()
                    .filter_map(|name| WireFormat::from_name(&name.value))
                {
                    for fact in &family.facts {
                        let is_known = fact.wires.is_empty()
                            || fact.wires.iter().any(|it| &*it.value == wire.name());
                        let server = server(family);
                        let models = models(family).into_iter().filter(|_| is_known);
                        cases.extend(models.map(|model| Case {
                            wire,
                            server,
                            model,
                            fact,
                        }));
                    }
                }
            }
            cases
        }
    }

    /// Returns a model name for each pattern of a family.
    fn models(family: &Family) -> Vec<String> {
        let plain = family
            .models
            .iter()
            .map(|pattern| pattern.text.value.replace('*', ""));
        plain
            .filter(|name| !name.is_empty() && !name.contains(['[', '{', '?']))
            .collect()
    }

    /// Returns the server where a family's facts were observed.
    fn server(family: &Family) -> Server {
        let named = family.servers.first().map(|name| name.value.to_string());
        named
            .and_then(|name| Server::ALL.into_iter().find(|server| server.name() == name))
            .unwrap_or(Server::Unknown)
    }

    /// Inserts a value at a location, and creates missing parents.
    fn put(body: &mut Value, place: &Pointer, value: Value) {
        let mut at = body;
        for token in place.tokens() {
            if token == "*" {
                if !at.is_array() {
                    *at = json!([{}]);
                }
                at = &mut at[0];
            } else {
                if !at.is_object() {
                    *at = json!({});
                }
                at = &mut at[token.as_str()];
            }
        }
        *at = value;
    }

    /// Returns the location in the body that a condition of a fact is about.
    fn pointer_of(condition: &Condition, place: &Pointer) -> Pointer {
        let start = match condition.from {
            PathStart::Body => Some(Pointer::root()),
            PathStart::Member => Some(place.clone()),
            PathStart::Holder => place.parent(),
        };
        let start = start.unwrap_or_else(Pointer::root);
        Pointer::parse(&format!("{start}{}", condition.at.pointer))
    }

    /// Returns a body to which a fact applies, with a value at one of the fact's locations.
    fn body(fact: &Fact, place: &Pointer, model: &str, value: Value) -> Value {
        let mut body = json!({"model": model});
        put(&mut body, place, value);
        for condition in &fact.when {
            let at = pointer_of(condition, place);
            match &condition.is {
                State::Present(false) => {}
                State::Present(true) => put(&mut body, &at, json!("some")),
                State::OneOf(values) => put(&mut body, &at, values[0].clone()),
            }
        }
        body
    }

    fn problems(bundled: &Bundled, case: &Case<'_>, body: &Value) -> Vec<Problem> {
        let Case {
            wire,
            server,
            model,
            ..
        } = case;
        let headers = ApiHeaders::UNKNOWN;
        let to = Recipient {
            wire: *wire,
            server: *server,
            instance: None,
            model: Some(model),
            headers,
        };
        Checks::of_recipient(&bundled.schemas, &bundled.repo.families, to).problems_of(body)
    }

    /// Returns the text between each pair of backticks.
    fn quoted(text: &str) -> impl Iterator<Item = &str> {
        text.split('`').skip(1).step_by(2)
    }

    /// Returns all strings that any fact about a wire format lists at a location. Advice about the
    /// location proposes such strings as values.
    fn values(repo: &Repo, place: &Pointer, wire: WireFormat) -> BTreeSet<String> {
        let is_about = |family: &&Arc<Family>| {
            let mut wires = family.wires.iter();
            wires.any(|known| *known.value == *wire.name())
        };
        let facts = repo
            .families
            .iter()
            .filter(is_about)
            .flat_map(|family| &family.facts);
        let about = facts.filter(|fact| fact.at.iter().any(|at| at.pointer == *place));
        let listed = about.flat_map(|fact| match &fact.demand {
            Demand::Value { one_of, .. } => one_of.as_slice(),
            Demand::Absent { values, .. } => values.as_slice(),
        });
        listed
            .filter_map(|value| value.as_str().map(str::to_owned))
            .collect()
    }

    fn is_error_at(problem: &Problem, place: &Pointer) -> bool {
        let is_error = problem.severity.unwrap_or(problem.rule.severity) == Severity::Error;
        is_error && problem.pointer == *place
    }

    /// The model accepts every proposal in the message or the help of a finding, at the location of
    /// the finding.
    #[test]
    #[cfg_attr(not(feature = "long-tests"), ignore = "takes long")]
    fn no_advice_leads_to_the_next_refusal() {
        let bundled = Bundled::load();
        let places = |case: &Case<'_>| {
            case.fact
                .at
                .iter()
                .map(|place| place.pointer.clone())
                .collect::<Vec<_>>()
        };
        let mut asked = 0;
        for case in bundled.cases() {
            asked += places(&case)
                .iter()
                .map(|place| advice_holds(&bundled, &case, place))
                .sum::<usize>();
        }
        assert!(asked > 500, "{asked}");
    }

    /// Tries each proposal in place of a wrong value. Returns the number of proposals.
    fn advice_holds(bundled: &Bundled, case: &Case<'_>, place: &Pointer) -> usize {
        let at = Pointer::parse(&place.as_str().replace("/*", "/0"));
        let known = values(&bundled.repo, place, case.wire);
        let mut asked = 0;
        for value in known.iter().map(String::as_str).chain(["nonsense"]) {
            let broken = body(case.fact, place, &case.model, json!(value));
            for problem in problems(bundled, case, &broken)
                .iter()
                .filter(|it| is_error_at(it, &at))
            {
                let text = format!(
                    "{} {}",
                    problem.help.as_deref().unwrap_or_default(),
                    taken_in(&problem.message)
                );
                for proposed in quoted(&text).filter(|word| known.contains(*word)) {
                    asked += 1;
                    let mended = body(case.fact, place, &case.model, json!(proposed));
                    let after = problems(bundled, case, &mended);
                    let still: Vec<_> = after
                        .iter()
                        .filter(|it| is_error_at(it, &at))
                        .map(|it| &it.message)
                        .collect();
                    let model = &case.model;
                    assert!(
                        still.is_empty(),
                        "{model} at {at}: {} → `{proposed}`: {still:?}",
                        problem.message
                    );
                    let more = more_errors(&problems(bundled, case, &broken), &after);
                    assert!(
                        more.is_empty(),
                        "{model} at {at}: {} → `{proposed}`: {more:?}",
                        problem.message
                    );
                }
            }
        }
        asked
    }

    /// Returns the errors in a fixed body that the broken body does not have. Errors about missing
    /// members are left out, because the new value may require these members, as the finding says.
    fn more_errors<'p>(broken: &[Problem], mended: &'p [Problem]) -> Vec<&'p String> {
        let known: BTreeSet<(&str, &str)> = broken
            .iter()
            .map(|it| (it.pointer.as_str(), it.rule.code))
            .collect();
        mended
            .iter()
            .filter(|it| is_error_at(it, &it.pointer))
            .filter(|it| {
                it.rule.code != "schema/missing-field"
                    && !known.contains(&(it.pointer.as_str(), it.rule.code))
            })
            .map(|it| &it.message)
            .collect()
    }

    /// Returns the part of a message that lists accepted values.
    fn taken_in(message: &str) -> &str {
        message.split_once(" accepts ").map_or("", |(_, taken)| {
            taken.split(", while").next().unwrap_or(taken)
        })
    }

    /// The model accepts each member that is proposed as a replacement for another member.
    #[test]
    fn no_member_is_proposed_that_is_refused() {
        let bundled = Bundled::load();
        let mut asked = 0;
        for case in bundled.cases() {
            let Demand::Absent {
                instead: Some(instead),
                ..
            } = &case.fact.demand
            else {
                continue;
            };
            let place = match instead.split_once('.') {
                Some(_) => Pointer::parse(&format!("/{}", instead.replace('.', "/"))),
                None => case.fact.at[0]
                    .pointer
                    .parent()
                    .unwrap_or_else(Pointer::root)
                    .member(instead),
            };
            asked += 1;
            let wrong = problems(
                &bundled,
                &case,
                &body(case.fact, &place, &case.model, json!(1024)),
            );
            let refused = wrong
                .iter()
                .filter(|it| it.pointer == place)
                .find(|it| it.about == About::Presence || it.rule.code == "schema/unknown-field");
            assert!(refused.is_none(), "{}: {refused:?}", case.model);
        }
        assert!(asked > 5, "{asked}");
    }
}
