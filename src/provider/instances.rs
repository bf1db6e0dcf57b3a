//! Provider instances: checks of their client APIs, their servers, and the origins that contexts
//! can name.

use super::url::UrlParts;
use super::{ClientApi, NamedServer, Server, is_in_the_clear, maker_of, rules};
use crate::context::Origins;
use crate::diag::{Diagnostic, did_you_mean, listed, one_of};
use crate::repo::{Instance, Repo};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Returns the findings about provider instances, whether or not agents use them.
pub fn check_instances(repo: &Repo) -> Vec<Diagnostic> {
    let instances = repo.instances.values();
    instances
        .clone()
        .filter(|instance| ClientApi::from_name(&instance.client_api.value).is_none())
        .map(unknown_api)
        .chain(
            instances
                .filter(|instance| {
                    instance.api_key_ref.is_some() && is_in_the_clear(&instance.url.value)
                })
                .map(plain_http),
        )
        .chain(repo.instances.values().filter_map(unknown_server))
        .collect()
}

/// Returns help for a name that no provider instance has: the instances of the vendor that the name
/// refers to (`Anthropic`, `Gemini`), or else all instances.
pub(crate) fn which_instance(name: &str, instances: &BTreeMap<Arc<str>, Instance>) -> String {
    let mut servers = Server::ALL.into_iter();
    let meant = servers
        .find(|server| server.name().eq_ignore_ascii_case(name))
        .or_else(|| maker_of(&format!("{name}-")));
    let of_maker = instances
        .values()
        .filter(|it| {
            meant.is_some() && Server::by_host(UrlParts::of(&it.url.value).host()) == meant
        })
        .map(|it| &*it.name.value);
    one_of(&of_maker.collect::<Vec<_>>()).unwrap_or_else(|| {
        let names = instances.keys().map(AsRef::as_ref);
        format!("known instances: {}", listed(names))
    })
}

/// Returns the known origins of blocks: the client APIs, which contexts name, and the repository's
/// instances, which contexts should not name.
pub fn origins<'i>(instances: impl IntoIterator<Item = &'i Instance>) -> Origins {
    let apis = ClientApi::ALL
        .into_iter()
        .map(|api| (api.name(), api.chat_wire().own_blocks()));
    let known = instances
        .into_iter()
        .filter(|instance| ClientApi::from_name(&instance.client_api.value).is_some());
    let instances = known.map(|it| (Arc::clone(&it.name.value), Arc::clone(&it.client_api.value)));
    Origins::new(apis.collect(), instances.collect())
}

fn plain_http(instance: &Instance) -> Diagnostic {
    let message = format!(
        "the key of `{}` would be sent unencrypted",
        instance.name.value
    );
    Diagnostic::new(&rules::PLAIN_HTTP, instance.url.span, message)
        .help("write `https://`, or remove `api_key_ref`")
}

/// Returns the finding about a `server` that does not exist.
fn unknown_server(instance: &Instance) -> Option<Diagnostic> {
    let name = instance.server.as_ref()?;
    if NamedServer::from_name(&name.value).is_some() {
        return None;
    }
    let message = format!("there is no known server `{}`", name.value);
    let finding = Diagnostic::new(&rules::UNKNOWN_SERVER, name.span, message);
    Some(finding.help(which_server(&name.value)))
}

/// Returns the help for an unknown server name.
pub(crate) fn which_server(name: &str) -> String {
    did_you_mean(name, NamedServer::names()).unwrap_or_else(|| {
        let names: Vec<&str> = NamedServer::names().collect();
        format!("known servers: {}", names.join(", "))
    })
}

fn unknown_api(instance: &Instance) -> Diagnostic {
    let name = &instance.client_api.value;
    let known = ClientApi::ALL.map(ClientApi::name);
    let help = did_you_mean(name, known)
        .unwrap_or_else(|| format!("known client APIs: {}", known.join(", ")));
    let message = format!("there is no client API `{name}`");
    Diagnostic::new(&rules::UNKNOWN_API, instance.client_api.span, message).help(help)
}

impl Server {
    /// Returns a provider instance's server: the named one, or else the one at the host of its URL,
    /// or else the one that its client API is designed for.
    pub fn of(instance: &Instance, api: ClientApi) -> Server {
        Server::named_or_by_host(instance).unwrap_or_else(|| Server::by_api(api))
    }

    /// Returns the server that a provider instance names, or else the one at the host of its URL.
    pub(crate) fn named_or_by_host(instance: &Instance) -> Option<Server> {
        let named = instance.named_server().and_then(NamedServer::server);
        named.or_else(|| Server::by_host(UrlParts::of(&instance.url.value).host()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::LoadOptions;
    use crate::system::Embedded;
    use crate::world::MemoryWorld;

    #[test]
    fn instances_are_found_by_their_makers() {
        let (world, bundled) = (MemoryWorld::default(), Embedded::bundled());
        let loaded = crate::repo::load(Arc::new(world), Arc::new(bundled), LoadOptions::default());
        let which = |name: &str| which_instance(name, &loaded.repo.instances);
        assert_eq!(which("anthropic"), "did you mean `Claude`?");
        assert_eq!(which("Gemini"), "did you mean `Google AI`?");
        assert!(which("GPT").starts_with("did you mean `OpenAI`"));
        for unknown in ["Kimi", "", "odd"] {
            assert!(which(unknown).starts_with("known instances: "), "{unknown}");
        }
    }
}
