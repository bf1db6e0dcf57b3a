//! The client APIs that contexts may specify as the origin of a block, and the kinds of
//! provider-specific blocks that requests to each may contain.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::conversation::{ProviderBlock, ProviderBlockKind, ProviderBlockKinds};
use crate::diag::{did_you_mean, nearest, one_of};

/// The known client APIs. By default there are none, and nothing is checked.
#[derive(Debug, Default)]
pub struct Origins {
    /// The name of each client API, and its kinds of provider-specific blocks.
    apis: Vec<(&'static str, ProviderBlockKinds)>,
    /// The client API of each provider instance, because authors may write the name of the instance
    /// instead.
    instances: BTreeMap<Arc<str>, Arc<str>>,
}

impl Origins {
    /// Creates the set of known origins from the client APIs and a repository's provider instances.
    pub(crate) fn new(
        apis: Vec<(&'static str, ProviderBlockKinds)>,
        instances: BTreeMap<Arc<str>, Arc<str>>,
    ) -> Origins {
        Origins { apis, instances }
    }

    /// Returns the help for an origin that is not the name of a client API; `None` if the origin is
    /// valid.
    pub(super) fn help_for(&self, origin: &str) -> Option<String> {
        if self.apis.is_empty() || self.kinds_of(origin).is_some() {
            return None;
        }
        if let Some(api) = self.instances.get(origin) {
            return Some(format!(
                "`{origin}` is a provider instance: write its client API, `{api}`"
            ));
        }
        let known = self.apis.iter().map(|(name, _)| *name);
        let instances = self.instances.keys().map(AsRef::as_ref);
        let mut near: Vec<&str> = Vec::new();
        for name in nearest(origin, known.clone().chain(instances)) {
            let api = self.instances.get(name).map_or(name, AsRef::as_ref);
            if !near.contains(&api) {
                near.push(api);
            }
        }
        Some(one_of(&near).unwrap_or_else(|| {
            format!(
                "known client APIs: {}",
                known.collect::<Vec<_>>().join(", ")
            )
        }))
    }

    /// Returns the help for a block whose origin has no blocks of this kind, neither in requests
    /// nor in answers; `None` if the origin has such blocks.
    pub(super) fn help_for_kind(&self, own: &ProviderBlock) -> Option<String> {
        let kinds = self.kinds_of(&own.origin)?;
        let is_known = kinds.known.iter().any(|(known, _)| *known == own.kind());
        if is_known || kinds.of(&own.data) != ProviderBlockKind::Kept {
            return None;
        }
        let known: Vec<&str> = kinds.known.iter().map(|(known, _)| *known).collect();
        Some(match known.as_slice() {
            [] => "this API has no provider-specific blocks: remove the block".to_owned(),
            known => did_you_mean(own.kind(), known.iter().copied())
                .unwrap_or_else(|| format!("this API has only: {}", known.join(", "))),
        })
    }

    /// Returns a client API that has blocks of this kind, if there is one.
    pub(super) fn with_kind(&self, kind: &str) -> Option<&'static str> {
        self.apis
            .iter()
            .find(|(_, kinds)| kinds.known.iter().any(|(known, _)| *known == kind))
            .map(|(name, _)| *name)
    }

    fn kinds_of(&self, origin: &str) -> Option<ProviderBlockKinds> {
        self.apis
            .iter()
            .find(|(name, _)| *name == origin)
            .map(|(_, kinds)| *kinds)
    }
}
