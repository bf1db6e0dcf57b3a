//! Provider instances: whether their client API is known.

use super::{ClientApi, rules};
use crate::diag::{Diagnostic, did_you_mean};
use crate::repo::{Instance, Repo};

/// Findings about provider instances, used or not.
pub fn check_instances(repo: &Repo) -> Vec<Diagnostic> {
    let unknown = |instance: &&Instance| ClientApi::from_name(&instance.client_api.value).is_none();
    repo.instances.values().filter(unknown).map(unknown_api).collect()
}

fn unknown_api(instance: &Instance) -> Diagnostic {
    let name = &instance.client_api.value;
    let known = ClientApi::ALL.map(ClientApi::name);
    let help = did_you_mean(name, known).unwrap_or_else(|| format!("known are: {}", known.join(", ")));
    let message = format!("there is no client API `{name}`");
    Diagnostic::new(&rules::UNKNOWN_API, instance.client_api.span, message).help(help)
}
