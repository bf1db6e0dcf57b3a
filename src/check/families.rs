//! The facts about a body's model.
//!
//! Input: the families of a repository, a model and the body's destination. Output: the families
//! that match, and the locations in the body that contradict them. All matching families apply,
//! because each fact is stored only once, in the family that covers all models with that fact.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::facts::{FactAt, Standing, is_of_wire};
pub(crate) use super::facts::{ModelFacts, Route};
use super::schema::Proposal;
use super::subject::Subject;
use crate::diag::{Diagnostic, Severity, did_you_mean};
use crate::provider::{ApiHeaders, Server, WireFormat, is_domain};
use crate::repo::{
    Condition, Demand, Fact, Family, FoundMember, MemberPath, PathStart, Repo, State, rules,
};
use crate::source::Spanned;

/// A violation of a known fact.
pub(crate) struct Breach<'f, 'b> {
    /// The family that contains the fact.
    pub(crate) family: &'f Family,
    /// `true` if the violation depends on unknown headers.
    pub(crate) is_conditional: bool,
    /// The violated fact.
    pub(crate) fact: &'f Fact,
    /// The path of the member that violates the fact.
    pub(crate) place: &'f MemberPath,
    /// The value of the member.
    pub(crate) value: &'b Value,
    /// The severity of the violation at this destination.
    pub(crate) severity: Severity,
}

impl ModelFacts {
    /// Returns the demands on a member, from all facts that apply to the body.
    pub(crate) fn demands<'f>(
        &'f self,
        subject: &Subject<'_>,
        place: &MemberPath,
    ) -> impl Iterator<Item = &'f Demand> {
        let facts = self.families.iter().flat_map(|(family, _)| &family.facts);
        facts
            .filter(|fact| {
                fact.at.contains(place) && is_of_wire(fact, subject.wire) && holds(fact, subject)
            })
            .map(|fact| &fact.demand)
    }

    /// Returns `true` if no known fact contradicts a proposed change to a body.
    pub(crate) fn take(&self, subject: &Subject<'_>, proposal: &Proposal<'_>) -> bool {
        let (at, value) = match proposal {
            Proposal::Field { at } => (at, None),
            Proposal::Value { at, text } => (at, Some(Value::from(*text))),
        };
        let tokens: Vec<String> = at.tokens().collect();
        let facts = self.families.iter().flat_map(|(family, _)| &family.facts);
        let mut about = facts.filter(|fact| {
            fact.at.iter().any(|place| place.is_at(&tokens)) && is_of_wire(fact, subject.wire)
        });
        about.all(|fact| {
            is_proposable(&fact.demand, value.as_ref())
                || depends_on_member(fact)
                || !holds(fact, subject)
        })
    }

    /// Returns the number of facts that a body violates.
    pub(crate) fn count(&self, subject: &Subject<'_>) -> usize {
        self.all_breaches(subject).len()
    }

    /// Returns the facts that a body violates; for each value, only the worst violation.
    pub(crate) fn breaches<'f, 'b>(&'f self, subject: &Subject<'b>) -> Vec<Breach<'f, 'b>> {
        let mut breaches = self.all_breaches(subject);
        // If several facts contradict one value, keep the fact that allows the fewest values: a
        // value that satisfies this fact satisfies all of them.
        breaches.sort_by_key(|breach| {
            (
                std::cmp::Reverse(breach.severity),
                breach.fact.demand.choices(),
            )
        });
        let mut told: HashSet<*const Value> = HashSet::new();
        breaches.retain(|breach| told.insert(std::ptr::from_ref(breach.value)));
        breaches
    }

    fn all_breaches<'f, 'b>(&'f self, subject: &Subject<'b>) -> Vec<Breach<'f, 'b>> {
        let mut breaches: Vec<(FactAt, Breach<'f, 'b>)> = Vec::new();
        for place in &self.places {
            let members = subject.at(&place.path);
            if members.is_empty() {
                continue;
            }
            for at in &place.facts {
                let found = self.breaches_of(*at, &place.path, &members, subject);
                breaches.extend(found.map(|breach| (*at, breach)));
            }
        }
        breaches.sort_by_key(|(at, _)| *at);
        breaches.into_iter().map(|(_, breach)| breach).collect()
    }

    /// Returns the members at a place that violate one fact.
    fn breaches_of<'f, 'b>(
        &'f self,
        at: FactAt,
        place: &'f MemberPath,
        members: &[FoundMember<'b>],
        subject: &Subject<'b>,
    ) -> impl Iterator<Item = Breach<'f, 'b>> + use<'f, 'b> {
        let (family, standing) = &self.families[at.family];
        let fact = &family.facts[at.fact];
        let wrong = members.iter().filter(|it| !is_met(&fact.demand, it.value));
        let mut wrong = wrong.peekable();
        // The conditions are checked last, because most values are right.
        let may_be_breached = wrong.peek().is_some() && holds(fact, subject);
        let breached: Vec<&'b Value> = wrong
            .filter(|it| may_be_breached && holds_at(fact, subject, it))
            .map(|it| it.value)
            .collect();
        let severity = standing.at_most(fact.level);
        let is_conditional = *standing == Standing::Conditional;
        breached.into_iter().map(move |value| Breach {
            family,
            is_conditional,
            fact,
            place,
            value,
            severity,
        })
    }
}

/// Returns `true` if a demand allows a value or, for `None`, if the member may be present at all.
fn is_proposable(demand: &Demand, value: Option<&Value>) -> bool {
    match (demand, value) {
        (demand, Some(value)) => is_met(demand, value),
        (Demand::Absent { values, .. }, None) => !values.is_empty(),
        (Demand::Value { .. }, None) => true,
    }
}

/// Returns `true` if a fact applies only to some values of its member, or next to some neighbours.
fn depends_on_member(fact: &Fact) -> bool {
    let mut conditions = fact.when.iter().chain(&fact.unless);
    conditions.any(|condition| condition.from != PathStart::Body)
}

/// Returns `true` if the conditions of a fact on the body hold.
fn holds(fact: &Fact, subject: &Subject<'_>) -> bool {
    let mut when = fact.when.iter();
    let mut unless = fact.unless.iter();
    when.all(|condition| condition.is_met_by_body(subject).unwrap_or(true))
        && !unless.any(|condition| condition.is_met_by_body(subject).unwrap_or(false))
}

/// Returns `true` if the conditions of a fact on a member and its neighbours hold.
fn holds_at(fact: &Fact, subject: &Subject<'_>, member: &FoundMember<'_>) -> bool {
    let mut when = fact.when.iter();
    let mut unless = fact.unless.iter();
    when.all(|condition| condition.is_met_at(subject, member).unwrap_or(true))
        && !unless.any(|condition| condition.is_met_at(subject, member).unwrap_or(false))
}

impl Condition {
    /// Returns `true` if the body meets the condition; `None` if the condition is about a member
    /// and its neighbours.
    fn is_met_by_body(&self, subject: &Subject<'_>) -> Option<bool> {
        (self.from == PathStart::Body).then(|| self.is.is_state_of(&subject.at(&self.at)))
    }

    /// Returns `true` if a member and its neighbours meet the condition; `None` if the condition is
    /// about the body.
    fn is_met_at(&self, subject: &Subject<'_>, member: &FoundMember<'_>) -> Option<bool> {
        let both = subject.wire.facts().has_two_spellings;
        let found = match (self.from, member.holder) {
            (PathStart::Body, _) => return None,
            (PathStart::Member, _) => self.at.find_below(both, member.value),
            (PathStart::Holder, Some(holder)) => self.at.find_below(both, holder),
            // The body contains the member.
            (PathStart::Holder, None) => subject.at(&self.at),
        };
        Some(self.is.is_state_of(&found))
    }
}

impl State {
    /// Returns `true` if the members at a place have the state; `null` counts as absent.
    fn is_state_of(&self, found: &[FoundMember<'_>]) -> bool {
        let mut values = found.iter().map(|it| it.value).filter(|it| !it.is_null());
        match self {
            State::Present(wanted) => values.next().is_some() == *wanted,
            State::OneOf(wanted) => {
                values.any(|value| wanted.iter().any(|other| is_same(value, other)))
            }
        }
    }
}

/// Returns `true` if a value meets a demand.
pub(super) fn is_met(demand: &Demand, value: &Value) -> bool {
    match demand {
        Demand::Absent { even_null, .. } if value.is_null() => !even_null,
        Demand::Value { .. } if value.is_null() => true,
        Demand::Absent { values, .. } => {
            !values.is_empty() && !values.iter().any(|other| is_same(value, other))
        }
        Demand::Value {
            one_of,
            least,
            most,
        } => {
            one_of.iter().any(|other| is_same(value, other))
                || value.as_f64().is_some_and(|number| {
                    (least.is_some() || most.is_some())
                        && least.is_none_or(|least| number >= least)
                        && most.is_none_or(|most| number <= most)
                })
        }
    }
}

/// Returns `true` if a server treats two values as equal. As in proto3 JSON, numbers are compared
/// by value, and the case of words is ignored.
pub(super) fn is_same(value: &Value, other: &Value) -> bool {
    match (value, other) {
        (Value::String(value), Value::String(other)) => value.eq_ignore_ascii_case(other),
        (Value::Number(value), Value::Number(other)) => value.as_f64() == other.as_f64(),
        _ => value == other,
    }
}

/// Reports wire formats and servers that families refer to but that do not exist.
pub fn check_families(repo: &Repo) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    let wires = WireFormat::ALL.map(WireFormat::name);
    let servers = Server::ALL
        .into_iter()
        .filter(|server| *server != Server::Unknown)
        .map(Server::name)
        .chain(ApiHeaders::names_of_addresses());
    let servers: Vec<&str> = servers.collect();
    for family in &repo.families {
        let of_facts = family.facts.iter().flat_map(|fact| &fact.wires);
        let of_wires = family.wires.iter().chain(of_facts);
        findings.extend(of_wires.filter_map(|name| unknown("wires", "wire format", name, &wires)));
        findings.extend(
            family
                .servers
                .iter()
                .filter(|name| !is_domain(&name.value))
                .filter_map(|name| unknown("servers", "server", name, &servers)),
        );
    }
    findings
}

fn unknown(key: &str, what: &str, name: &Spanned<Arc<str>>, known: &[&str]) -> Option<Diagnostic> {
    if known.contains(&&*name.value) {
        return None;
    }
    let message = format!(
        "`{key}` cannot be `{}`: there is no such {what}",
        name.value
    );
    let help = did_you_mean(&name.value, known.iter().copied());
    let help = help.unwrap_or_else(|| match key {
        "servers" => format!(
            "write a domain in lower case, or one of: {}",
            known.join(", ")
        ),
        _ => format!("write one of: {}", known.join(", ")),
    });
    Some(Diagnostic::new(&rules::INVALID_VALUE, name.span, message).help(help))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::Property;
    use crate::repo::{LoadOptions, load};
    use crate::world::MemoryWorld;

    const UNKNOWN: ApiHeaders = ApiHeaders::UNKNOWN;
    const ROUTE: Route<'_> = Route {
        wire: WireFormat::OpenAiChat,
        server: Server::OpenAi,
        headers: &UNKNOWN,
    };

    /// Loads families, given by name, pattern and further keys.
    fn families(entries: &[(&str, &str, &str)]) -> Vec<Arc<Family>> {
        let mut text = String::new();
        for (name, models, more) in entries {
            text.push_str(&format!(
                "[[family]]\nname = \"{name}\"\nmodels = [\"{models}\"]\nwires = [\"openai-chat\"]\nsource = \"s\"\n\
                 seen = 2026-11-22\n{more}\n"
            ));
        }
        let own = MemoryWorld::from_iter([("model-families.toml", text.as_str())]);
        let loaded = load(
            Arc::new(own),
            Arc::new(MemoryWorld::default()),
            LoadOptions::default(),
        );
        assert!(loaded.findings.is_empty(), "{:?}", loaded.findings);
        loaded.repo.families
    }

    #[test]
    fn all_families_that_fit_count_and_the_last_value_holds() {
        let families = families(&[
            ("All", "m*", "prefill = false\ncache_minimum = 10"),
            ("One", "m-1", "prefill = true"),
            ("Other", "n", "cache_minimum = 20"),
        ]);
        let facts = |model| ModelFacts::of(&families, ROUTE, Some(model));
        assert_eq!(
            facts("M-1@latest").property(Property::Prefill),
            Some((true, Severity::Error))
        );
        assert_eq!(
            facts("m-1").value(|it| it.cache_minimum),
            Some((10, Severity::Error))
        );
        assert_eq!(
            facts("m-2").property(Property::Prefill),
            Some((false, Severity::Error))
        );
        assert_eq!(facts("x").property(Property::Prefill), None);
        assert!(ModelFacts::of(&families, ROUTE, None).families.is_empty());
        let other = Route {
            wire: WireFormat::MistralChat,
            ..ROUTE
        };
        assert!(
            ModelFacts::of(&families, other, Some("m-1"))
                .families
                .is_empty()
        );
    }

    #[test]
    fn a_family_can_name_the_domain_of_a_host_and_private_addresses() {
        let families = families(&[
            (
                "Host",
                "m",
                "servers = [\"example.com\"]\nof_server = true\nprefill = false",
            ),
            (
                "Private",
                "p",
                "servers = [\"private address\"]\nof_server = true\nprefill = false",
            ),
        ]);
        let severity = |model, server, url: &str| {
            let headers = ApiHeaders::default().at(url);
            let route = Route {
                server,
                headers: &headers,
                ..ROUTE
            };
            let facts = ModelFacts::of(&families, route, Some(model));
            facts.property(Property::Prefill).map(|(_, level)| level)
        };
        let unknown = Server::Unknown;
        assert_eq!(
            severity("m", unknown, "https://llm.Example.com/v1/chat/completions"),
            Some(Severity::Error)
        );
        assert_eq!(severity("m", unknown, "https://notexample.com/v1"), None);
        assert_eq!(
            severity("p", unknown, "http://vllm:8000/v1/chat/completions"),
            Some(Severity::Warning)
        );
        assert_eq!(
            severity("p", Server::Ollama, "http://localhost:11434/v1"),
            None
        );
        assert_eq!(severity("p", unknown, "https://llm.example.com/v1"), None);
        let docker = "http://localhost:12434/engines/v1/chat/completions";
        assert_eq!(severity("p", unknown, docker), None);
        // The URL contains only a path, so the server's address is unknown.
        assert_eq!(severity("p", unknown, "chat/completions"), None);
    }

    #[test]
    fn what_was_seen_elsewhere_is_likely_and_own_servers_have_their_own_rules() {
        let families = families(&[
            ("Seen", "m", "servers = [\"OpenAI\"]\nprefill = false"),
            (
                "Dated",
                "d",
                "from_version = \"2026-10-21\"\nprefill = false",
            ),
        ]);
        let severity = |model, server, version: Option<&str>| {
            let named = version.map(|version| ("anthropic-version", version));
            let headers = ApiHeaders::read(named);
            let facts = ModelFacts::of(
                &families,
                Route {
                    server,
                    headers: &headers,
                    ..ROUTE
                },
                Some(model),
            );
            facts
                .property(Property::Prefill)
                .map(|(_, severity)| severity)
        };
        assert_eq!(severity("m", Server::OpenAi, None), Some(Severity::Error));
        assert_eq!(
            severity("m", Server::Unknown, None),
            Some(Severity::Warning)
        );
        assert_eq!(severity("m", Server::Ollama, None), None);
        assert_eq!(severity("m", Server::OpenRouter, None), None);
        assert_eq!(severity("d", Server::OpenAi, None), Some(Severity::Warning));
        assert_eq!(severity("d", Server::OpenAi, Some("2023-06-01")), None);
        assert_eq!(
            severity("d", Server::OpenAi, Some("2026-10-21")),
            Some(Severity::Error)
        );
    }
}
