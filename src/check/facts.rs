//! The facts known of a model where a body goes, whatever the body says.

use std::sync::Arc;

use crate::diag::Severity;
use crate::provider::{ApiHeaders, Server, WireFormat};
use crate::repo::{Family, ModelName, Property};
use crate::source::Spanned;

/// The families that a model belongs to, for one wire format and server.
#[derive(Debug, Default)]
pub(crate) struct ModelFacts {
    pub(super) families: Vec<(Arc<Family>, Standing)>,
}

/// How far what is known holds where a body goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Standing {
    /// It was seen there.
    Certain,
    /// It was seen elsewhere, with the same model.
    Likely,
    /// It holds for a version of the API, or without a beta feature, and nobody says what this
    /// request asks for.
    Conditional,
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

    /// Returns how bad something is that is known to be as bad as this.
    pub(super) fn at_most(self, level: Severity) -> Severity {
        if self == Standing::Certain {
            level
        } else {
            Severity::Warning
        }
    }
}

/// Returns `true` if a family mentions a model. Of one that nobody names yet, a rule of the server
/// holds, and what holds for a version of Anthropic's API: no other server has those.
fn has(family: &Family, model: Option<&ModelName>, server: Server) -> bool {
    let is_of_version = family.from_version.is_some() && server == Server::Anthropic;
    model.map_or(family.of_server || is_of_version, |model| family.has(model))
}

pub(super) fn is_named(names: &[Spanned<Arc<str>>], name: &str) -> bool {
    names.iter().any(|known| &*known.value == name)
}
