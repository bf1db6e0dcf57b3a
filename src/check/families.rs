//! The facts known of the model that a body is for.
//!
//! Input: the families of a repository, a model and where the body goes. Output: those that fit,
//! and what in a body they speak against. All that fit count, together: a fact is once, in the
//! family of all models that it is true of.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use super::schema::Proposal;
use super::subject::Subject;
use crate::diag::{Diagnostic, Severity, did_you_mean};
use crate::provider::{ApiHeaders, Server, WireFormat};
use crate::repo::{
    Condition, Demand, Fact, Family, MemberPath, ModelName, Property, Repo, State, rules,
};
use crate::source::Spanned;

/// The families that a model belongs to, for one wire format and server.
#[derive(Debug, Default)]
pub(crate) struct ModelFacts {
    families: Vec<(Arc<Family>, Standing)>,
}

/// How far what is known holds where a body goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// It was seen there.
    Certain,
    /// It was seen elsewhere, with the same model.
    Likely,
    /// It holds for a version of the API, or without a beta feature, and nobody says what this
    /// request asks for.
    Conditional,
}

/// Something that a body does against what is known.
pub(crate) struct Breach<'f, 'b> {
    /// The family that says so.
    pub(crate) family: &'f Family,
    /// `true` if it depends on headers that are not known.
    pub(crate) is_conditional: bool,
    /// The fact.
    pub(crate) fact: &'f Fact,
    /// The member.
    pub(crate) place: &'f MemberPath,
    /// Its value.
    pub(crate) value: &'b Value,
    /// How bad it is here.
    pub(crate) severity: Severity,
}

/// Where a body goes, as far as it matters for what is known of a model.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route<'r> {
    /// The wire format.
    pub(crate) wire: WireFormat,
    /// The server.
    pub(crate) server: Server,
    /// The version and the beta features of the API that its headers ask for.
    pub(crate) headers: &'r ApiHeaders,
}

impl ModelFacts {
    /// Returns what is known of a model; nothing of one that no family has. Of a model that is not
    /// known yet, what holds for a version of the API: only one server has those.
    pub(crate) fn of(
        families: &[Arc<Family>],
        route: Route<'_>,
        model: Option<&str>,
    ) -> ModelFacts {
        let model = model.map(ModelName::new);
        ModelFacts {
            families: families
                .iter()
                .filter(|family| {
                    is_named(&family.wires, route.wire.name())
                        && has(family, model.as_ref(), route.server)
                })
                .filter_map(|family| Some((Arc::clone(family), Standing::of(family, route)?)))
                .collect(),
        }
    }

    /// Returns whether it is so of the model, and how bad it is here to do otherwise.
    pub(crate) fn property(&self, property: Property) -> Option<(bool, Severity)> {
        self.value(|family| family.property(property))
    }

    /// Returns `true` if it is known to be so of the model.
    pub(crate) fn is(&self, property: Property) -> bool {
        matches!(self.property(property), Some((true, _)))
    }

    /// Returns how bad it is to do what the model does not take; `None` if it is not known to be
    /// refused.
    pub(crate) fn refuses(&self, property: Property) -> Option<Severity> {
        self.property(property)
            .and_then(|(is_taken, level)| (!is_taken).then_some(level))
    }

    /// A value that families set, and how bad it is here to do otherwise; of several that set it,
    /// the last counts.
    pub(crate) fn value<T>(&self, of: impl Fn(&Family) -> Option<T>) -> Option<(T, Severity)> {
        let (value, standing) = self
            .families
            .iter()
            .rev()
            .find_map(|(family, standing)| Some((of(family)?, *standing)))?;
        Some((value, standing.at_most(Severity::Error)))
    }

    /// Returns what tokens cost, if that is known of the server itself; of several families that
    /// say it, the last counts.
    pub(crate) fn price(&self) -> Option<crate::repo::Price> {
        let mut certain = self
            .families
            .iter()
            .rev()
            .filter(|(_, standing)| *standing == Standing::Certain);
        certain.find_map(|(family, _)| family.price.clone())
    }

    /// Returns what is asked of a member, of everything that is known and holds for a body.
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

    /// Returns `true` if nothing that is known speaks against a proposal for a body.
    pub(crate) fn take(&self, subject: &Subject<'_>, proposal: &Proposal<'_>) -> bool {
        let (at, value) = match proposal {
            Proposal::Field { at } => (at, None),
            Proposal::Value { at, text } => (at, Some(Value::from(*text))),
        };
        let facts = self.families.iter().flat_map(|(family, _)| &family.facts);
        let mut about = facts.filter(|fact| {
            fact.at.iter().any(|place| place.is_at(at)) && is_of_wire(fact, subject.wire)
        });
        about.all(|fact| is_proposable(&fact.demand, value.as_ref()) || !holds(fact, subject))
    }

    /// Returns how much a body does against what is known.
    pub(crate) fn count(&self, subject: &Subject<'_>) -> usize {
        self.all_breaches(subject).len()
    }

    /// Returns what a body does against what is known: the worst of each value.
    pub(crate) fn breaches<'f, 'b>(&'f self, subject: &Subject<'b>) -> Vec<Breach<'f, 'b>> {
        let mut breaches = self.all_breaches(subject);
        // Of several that speak against one value, the one that leaves the fewest has the help that
        // holds for all.
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
        let mut breaches: Vec<Breach<'f, 'b>> = Vec::new();
        for known in &self.families {
            known
                .0
                .facts
                .iter()
                .for_each(|fact| fact_breaches(known, fact, subject, &mut breaches));
        }
        breaches
    }
}

/// Returns `true` if a fact is known of a wire format.
fn is_of_wire(fact: &Fact, wire: WireFormat) -> bool {
    fact.wires.is_empty() || is_named(&fact.wires, wire.name())
}

/// Returns `true` if a family mentions a model. Of one that nobody names yet, a rule of the server
/// holds, and what holds for a version of Anthropic's API: no other server has those.
fn has(family: &Family, model: Option<&ModelName>, server: Server) -> bool {
    let is_of_version = family.from_version.is_some() && server == Server::Anthropic;
    model.map_or(family.of_server || is_of_version, |model| family.has(model))
}

/// Adds what a body does against a fact.
fn fact_breaches<'f, 'b>(
    (family, standing): &'f (Arc<Family>, Standing),
    fact: &'f Fact,
    subject: &Subject<'b>,
    breaches: &mut Vec<Breach<'f, 'b>>,
) {
    if !is_of_wire(fact, subject.wire) {
        return;
    }
    for place in &fact.at {
        let mut wrong = subject.at(place);
        wrong.retain(|value| !is_met(&fact.demand, value));
        if wrong.is_empty() || !holds(fact, subject) {
            continue;
        }
        let severity = standing.at_most(fact.level);
        let is_conditional = *standing == Standing::Conditional;
        breaches.extend(wrong.into_iter().map(|value| Breach {
            family,
            is_conditional,
            fact,
            place,
            value,
            severity,
        }));
    }
}

impl Standing {
    /// `None` if nothing of it is known to hold there. Servers on one's own machine run what they
    /// like under any name, and OpenRouter maps efforts and drops what a model does not take
    /// (enricoros/big-AGI#940, 2026-01).
    fn of(family: &Family, route: Route<'_>) -> Option<Standing> {
        let is_own_rule = matches!(
            route.server,
            Server::LmStudio | Server::Ollama | Server::LlamaCpp | Server::OpenRouter
        );
        let at_server = match is_named(&family.servers, route.server.name()) {
            true => Standing::Certain,
            false if is_own_rule || family.of_server => return None,
            false if family.servers.is_empty() => Standing::Certain,
            false => Standing::Likely,
        };
        let of_version = match (
            family.from_version.as_deref(),
            route.headers.version.as_deref(),
        ) {
            (None, _) => at_server,
            // The versions of clouds are their own.
            (Some(_), _) if route.server.is_cloud_of_claude() => return None,
            (Some(_), None) => Standing::Conditional,
            // Versions are dates.
            (Some(first), Some(version)) if version >= first => at_server,
            (Some(_), Some(_)) => return None,
        };
        match family
            .without_beta
            .as_deref()
            .map(|beta| route.headers.has_beta(beta))
        {
            None | Some(Some(false)) => Some(of_version),
            Some(None) => Some(Standing::Conditional),
            Some(Some(true)) => None,
        }
    }
}

impl Standing {
    /// Returns how bad something is that is known to be as bad as this.
    fn at_most(self, level: Severity) -> Severity {
        if self == Standing::Certain {
            level
        } else {
            Severity::Warning
        }
    }
}

/// Returns `true` if a demand takes a value; without one, some value of the member.
fn is_proposable(demand: &Demand, value: Option<&Value>) -> bool {
    match (demand, value) {
        (demand, Some(value)) => is_met(demand, value),
        (Demand::Absent { values, .. }, None) => !values.is_empty(),
        (Demand::Value { .. }, None) => true,
    }
}

/// Returns `true` if what a fact presupposes is so.
fn holds(fact: &Fact, subject: &Subject<'_>) -> bool {
    fact.when.iter().all(|condition| is_so(condition, subject))
        && !fact
            .unless
            .iter()
            .any(|condition| is_so(condition, subject))
}

fn is_so(condition: &Condition, subject: &Subject<'_>) -> bool {
    let found = subject.at(&condition.at);
    match &condition.is {
        State::Present(wanted) => found.is_empty() != *wanted,
        State::OneOf(values) => found
            .iter()
            .any(|value| values.iter().any(|other| is_same(value, other))),
    }
}

/// Returns `true` if a value is what is asked.
pub(super) fn is_met(demand: &Demand, value: &Value) -> bool {
    match demand {
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

/// Returns `true` if two values are the same to a server: numbers by value, words without case, as
/// proto3 JSON reads them.
pub(super) fn is_same(value: &Value, other: &Value) -> bool {
    match (value, other) {
        (Value::String(value), Value::String(other)) => value.eq_ignore_ascii_case(other),
        (Value::Number(value), Value::Number(other)) => value.as_f64() == other.as_f64(),
        _ => value == other,
    }
}

fn is_named(names: &[Spanned<Arc<str>>], name: &str) -> bool {
    names.iter().any(|known| &*known.value == name)
}

/// Findings about wire formats and servers that families name and that do not exist.
pub fn check_families(repo: &Repo) -> Vec<Diagnostic> {
    let mut findings = Vec::new();
    let wires = WireFormat::ALL.map(WireFormat::name);
    let servers = Server::ALL
        .into_iter()
        .filter(|server| *server != Server::Unknown)
        .map(Server::name);
    let servers: Vec<&str> = servers.collect();
    for family in &repo.families {
        let of_facts = family.facts.iter().flat_map(|fact| &fact.wires);
        let of_wires = family.wires.iter().chain(of_facts);
        findings.extend(of_wires.filter_map(|name| unknown("wires", "wire format", name, &wires)));
        findings.extend(
            family
                .servers
                .iter()
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
    let help = help.unwrap_or_else(|| format!("write one of: {}", known.join(", ")));
    Some(Diagnostic::new(&rules::INVALID_VALUE, name.span, message).help(help))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::{LoadOptions, load};
    use crate::world::MemoryWorld;

    const UNKNOWN: ApiHeaders = ApiHeaders::UNKNOWN;
    const ROUTE: Route<'_> = Route {
        wire: WireFormat::OpenAiChat,
        server: Server::OpenAi,
        headers: &UNKNOWN,
    };

    /// Families by name, pattern and further keys.
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
