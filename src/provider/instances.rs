//! Provider instances: whether their client API is known.

use super::{ClientApi, is_in_the_clear, rules};
use crate::diag::{Diagnostic, did_you_mean};
use crate::repo::{Instance, Repo};

/// Findings about provider instances, used or not.
pub fn check_instances(repo: &Repo) -> Vec<Diagnostic> {
    let unknown = |instance: &&Instance| ClientApi::from_name(&instance.client_api.value).is_none();
    let exposed = |instance: &&Instance| instance.api_key_ref.is_some() && is_in_the_clear(&instance.url.value);
    let instances = repo.instances.values();
    instances.clone().filter(unknown).map(unknown_api).chain(instances.filter(exposed).map(plain_http)).collect()
}

fn plain_http(instance: &Instance) -> Diagnostic {
    let message = format!("the key of `{}` would travel in the clear", instance.name.value);
    Diagnostic::new(&rules::PLAIN_HTTP, instance.url.span, message).help("write `https://`, or remove `api_key_ref`")
}

fn unknown_api(instance: &Instance) -> Diagnostic {
    let name = &instance.client_api.value;
    let known = ClientApi::ALL.map(ClientApi::name);
    let help = did_you_mean(name, known).unwrap_or_else(|| format!("known are: {}", known.join(", ")));
    let message = format!("there is no client API `{name}`");
    Diagnostic::new(&rules::UNKNOWN_API, instance.client_api.span, message).help(help)
}
