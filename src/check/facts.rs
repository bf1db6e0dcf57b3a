//! The facts about a model at a body's destination, independent of the body's content.

use std::sync::Arc;

use crate::diag::Severity;
use crate::provider::{ApiHeaders, Server, WireFormat};
use crate::repo::{Fact, Family, MemberPath, ModelName, Property};
use crate::source::Spanned;

/// The families that a model belongs to, for one wire format and server.
#[derive(Debug, Default)]
pub(crate) struct ModelFacts {
    pub(super) families: Vec<(Arc<Family>, Standing)>,
    /// The facts about members, grouped by place, so that each place is searched only once.
    pub(super) places: Vec<Place>,
    /// The model's largest context window on other servers, in tokens. It is set only for
    /// OpenRouter, because other facts about other servers do not apply there.
    window_elsewhere: Option<i64>,
}

/// The facts about the members at one place.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) path: MemberPath,
    pub(super) facts: Vec<FactAt>,
}

/// The position of a fact in [`ModelFacts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FactAt {
    /// The index of the family.
    pub(super) family: usize,
    /// The index of the fact in the family.
    pub(super) fact: usize,
}

/// The certainty of a fact for a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// The fact was observed on this server.
    Certain,
    /// The fact was observed with the same model on another server.
    Likely,
    /// The fact applies only to one version of the API, or only without a beta feature, and the
    /// request's version or features are unknown.
    Conditional,
}

/// The properties of a body's destination that facts about models depend on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Route<'r> {
    /// The wire format.
    pub(crate) wire: WireFormat,
    /// The server that the request goes to.
    pub(crate) server: Server,
    /// The API version and the beta features that the request's headers ask for.
    pub(crate) headers: &'r ApiHeaders,
}

impl Route<'_> {
    /// Returns `true` if a family lists the domain of the request's URL or a site in that URL.
    fn is_site_of(&self, family: &Family) -> bool {
        let mut names = family.servers.iter();
        names.any(|name| self.headers.is_named(&name.value))
    }

    /// Returns `true` if a family lists private addresses, and the server is an unknown one that
    /// has such an address or runs models itself. The settings of such a server are unknown.
    fn is_private_of(&self, family: &Family) -> bool {
        let mut names = family.servers.iter();
        self.server == Server::Unknown
            && names.any(|name| self.headers.is_named_privately(&name.value))
    }
}

impl ModelFacts {
    /// Returns the facts about a model; there are none if no family matches. Without a model name,
    /// only the server's facts and those of its API version apply.
    pub(crate) fn of(
        families: &[Arc<Family>],
        route: Route<'_>,
        model: Option<&str>,
    ) -> ModelFacts {
        let model = model.map(ModelName::new);
        let window_elsewhere = (route.server == Server::OpenRouter)
            .then(|| window_elsewhere(families, model.as_ref()?))
            .flatten();
        let families: Vec<_> = families
            .iter()
            .filter(|family| is_named(&family.wires, route.wire.name()))
            .filter_map(|family| Some((family, Standing::of(family, route)?)))
            // This filter comes last, because it compares the name with every pattern of the
            // family.
            .filter(|(family, _)| has(family, model.as_ref(), route.server))
            .map(|(family, standing)| (Arc::clone(family), standing))
            .collect();
        ModelFacts {
            window_elsewhere,
            places: Place::all(&families, route.wire),
            families,
        }
    }

    /// Returns the value of a property for the model, and the severity of violating it at this
    /// destination; `None` if no family specifies the property.
    pub(crate) fn property(&self, property: Property) -> Option<(bool, Severity)> {
        self.value(|family| family.property(property))
    }

    /// Returns `true` if the model is known to have a property.
    pub(crate) fn is(&self, property: Property) -> bool {
        matches!(self.property(property), Some((true, _)))
    }

    /// Returns the severity of using a feature that the model does not support; `None` if the model
    /// supports it, or if that is unknown.
    pub(crate) fn refuses(&self, property: Property) -> Option<Severity> {
        self.property(property)
            .and_then(|(is_taken, level)| (!is_taken).then_some(level))
    }

    /// Returns a value that families specify, and the severity of violating it at this destination.
    /// If several families specify it, the last one wins.
    pub(crate) fn value<T>(&self, of: impl Fn(&Family) -> Option<T>) -> Option<(T, Severity)> {
        let (value, standing) = self
            .families
            .iter()
            .rev()
            .find_map(|(family, standing)| Some((of(family)?, *standing)))?;
        Some((value, standing.at_most(Severity::Error)))
    }

    /// Returns the model's context window in tokens, and the severity of exceeding it at this
    /// destination; `None` if no family specifies it.
    pub(crate) fn context_window(&self) -> Option<(i64, Severity)> {
        self.value(|family| family.context_window)
    }

    /// Returns the model's largest context window on other servers, in tokens. The window is known
    /// only for OpenRouter, because OpenRouter chooses the server.
    pub(crate) fn window_elsewhere(&self) -> Option<i64> {
        self.window_elsewhere
    }

    /// Returns the token price, if a family specifies it for exactly this server. If several
    /// families specify it, the last one wins.
    pub(crate) fn price(&self) -> Option<crate::repo::Price> {
        let mut certain = self
            .families
            .iter()
            .rev()
            .filter(|(_, standing)| *standing == Standing::Certain);
        certain.find_map(|(family, _)| family.price.clone())
    }
}

impl Place {
    /// Returns the places of all facts that apply to a wire format.
    fn all(families: &[(Arc<Family>, Standing)], wire: WireFormat) -> Vec<Place> {
        let mut places: Vec<Place> = Vec::new();
        for (family, (of_family, _)) in families.iter().enumerate() {
            for (fact, known) in of_family.facts.iter().enumerate() {
                let at = FactAt { family, fact };
                for path in known.at.iter().filter(|_| is_of_wire(known, wire)) {
                    match places.iter_mut().find(|place| place.path == *path) {
                        Some(place) => place.facts.push(at),
                        None => places.push(Place {
                            path: path.clone(),
                            facts: vec![at],
                        }),
                    }
                }
            }
        }
        places
    }
}

impl Standing {
    /// Returns the certainty of a family's facts at the destination; `None` if the family does not
    /// apply there. Local servers run any model under any name, and OpenRouter maps efforts and
    /// drops anything that a model does not accept (enricoros/big-AGI#940, 2026-01).
    fn of(family: &Family, route: Route<'_>) -> Option<Standing> {
        let is_own_rule = matches!(
            route.server,
            Server::LmStudio | Server::Ollama | Server::LlamaCpp | Server::OpenRouter
        );
        let is_openai = route.server.is_openai() && !family.of_server;
        let is_here = is_named(&family.servers, route.server.name())
            || is_openai && is_named(&family.servers, Server::OpenAi.name())
            || route.is_site_of(family);
        let at_server = match is_here {
            true => Standing::Certain,
            false if route.is_private_of(family) => Standing::Likely,
            // LM Studio uses llama.cpp to render chat templates.
            false
                if route.server == Server::LmStudio
                    && !family.of_server
                    && is_named(&family.servers, Server::LlamaCpp.name()) =>
            {
                Standing::Likely
            }
            false if is_own_rule || family.of_server => return None,
            false if family.servers.is_empty() => Standing::Certain,
            false => Standing::Likely,
        };
        let of_version = match (
            family.from_version.as_deref(),
            route.headers.version.as_deref(),
        ) {
            (None, _) => at_server,
            // Clouds have their own API versions.
            (Some(_), _) if route.server.is_cloud_of_claude() => return None,
            (Some(_), None) => Standing::Conditional,
            // Versions are dates, so they can be compared as text.
            (Some(first), Some(version)) if version >= first => at_server,
            (Some(_), Some(_)) => return None,
        };
        if let Some(before) = family.before_version.as_deref()
            && route
                .headers
                .version
                .as_deref()
                .is_none_or(|version| version >= before)
        {
            return None;
        }
        match has_any_beta(family, route.headers) {
            None => Some(Standing::Conditional),
            Some(true) => None,
            Some(false) => Some(of_version),
        }
    }

    /// Lowers a severity to a warning unless the fact is certain.
    pub(super) fn at_most(self, level: Severity) -> Severity {
        if self == Standing::Certain {
            level
        } else {
            Severity::Warning
        }
    }
}

/// Returns `true` if a request asks for one of the beta features that make a family's facts
/// invalid; `None` if the request's beta features are unknown.
fn has_any_beta(family: &Family, headers: &ApiHeaders) -> Option<bool> {
    let mut is_asked = false;
    for beta in &family.without_beta {
        is_asked |= headers.has_beta(&beta.value)?;
    }
    Some(is_asked)
}

/// Returns the largest context window that a model has on any server, in tokens. Windows that
/// depend on a version or a beta feature, or that only one server has, are ignored.
fn window_elsewhere(families: &[Arc<Family>], model: &ModelName) -> Option<i64> {
    let unconditional = families.iter().filter(|family| {
        let versions = [&family.from_version, &family.before_version];
        !family.of_server
            && family.without_beta.is_empty()
            && versions.into_iter().all(Option::is_none)
    });
    unconditional
        .filter(|family| family.context_window.is_some() && family.has(model))
        .filter_map(|family| family.context_window)
        .max()
}

/// Returns `true` if a family applies to a model. If no model is named, only the server's rules
/// apply and, for Anthropic, the rules of an API version. No other server has such versions.
fn has(family: &Family, model: Option<&ModelName>, server: Server) -> bool {
    let is_of_version = family.from_version.is_some() && server == Server::Anthropic;
    model.map_or(family.is_of_whole_server() || is_of_version, |model| {
        family.has(model)
    })
}

/// Returns `true` if a fact applies to a wire format.
pub(super) fn is_of_wire(fact: &Fact, wire: WireFormat) -> bool {
    fact.wires.is_empty() || is_named(&fact.wires, wire.name())
}

fn is_named(names: &[Spanned<Arc<str>>], name: &str) -> bool {
    names.iter().any(|known| &*known.value == name)
}
