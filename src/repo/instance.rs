//! Provider instances, which specify the API, the URL and the key.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use indexmap::IndexMap;

use super::address::NoAddress;
use super::{Known, LayerKind, Reader, address, headers, rules};
use crate::diag::{Diagnostic, Suggestions, did_you_mean, listed};
use crate::secret::is_key_for_reference;
use crate::source::{FileId, Span, Spanned};
use crate::toml::Table;

/// A provider instance, with inherited settings.
#[derive(Debug, Clone)]
pub struct Instance {
    /// The name by which profiles refer to the instance.
    pub name: Spanned<Arc<str>>,
    /// The instances that it inherits from, nearest first.
    pub bases: Vec<Arc<str>>,
    /// The layer that contains the instance.
    pub layer: LayerKind,
    /// The name of the client API, which [`provider`](crate::provider) checks.
    pub client_api: Spanned<Arc<str>>,
    /// The base URL.
    pub url: Spanned<Arc<str>>,
    /// The name of the server or its software, if the instance specifies it.
    /// [`provider`](crate::provider) checks the name.
    pub server: Option<Spanned<Arc<str>>>,
    /// The reference to the key, if the instance needs one.
    pub api_key_ref: Option<Spanned<SecretRef>>,
    /// The description for users.
    pub description: Option<Arc<str>>,
    /// Additional headers, in the author's order.
    pub headers: Vec<(Arc<str>, Arc<str>)>,
    /// The locations of the headers, in the same order.
    pub header_spans: Vec<Span>,
}

impl Instance {
    /// Returns `true` if the instance has this name or inherits from an instance that has it.
    pub fn is_a(&self, name: &str) -> bool {
        *self.name.value == *name || self.bases.iter().any(|base| **base == *name)
    }
}

/// A reference to a secret. It never contains the secret itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretRef {
    /// The name of an environment variable.
    Env(Arc<str>),
    /// The path of a file.
    File(Arc<str>),
    /// An entry in the system's keyring.
    Keyring {
        /// The service name of the keyring entry.
        service: Arc<str>,
        /// The user name of the keyring entry.
        user: Arc<str>,
    },
}

impl SecretRef {
    /// Parses a reference.
    fn parse(text: &str) -> Result<SecretRef, NoSecretRef> {
        // The path of a file may contain any text.
        if is_key_for_reference(text.strip_prefix("file:").map_or(text, file_name)) {
            return Err(NoSecretRef::Key);
        }
        match text.split_once(':') {
            Some(("env", name)) => match is_variable(name) {
                true => Ok(SecretRef::Env(name.into())),
                false => malformed("this is not the name of an environment variable"),
            },
            Some(("file", "")) => malformed("the path is missing"),
            Some(("file", path)) => Ok(SecretRef::File(path.into())),
            Some(("keyring", entry)) => match entry.split_once('/') {
                Some((service, user)) if !service.is_empty() && !user.is_empty() => {
                    Ok(SecretRef::Keyring {
                        service: service.into(),
                        user: user.into(),
                    })
                }
                _ => malformed("write `keyring:SERVICE/USER`"),
            },
            Some((kind, rest)) => {
                let near = did_you_mean(kind, ["env", "file", "keyring"]).map(|_| "env");
                Err(NoSecretRef::Malformed(match near {
                    Some(_) => format!("did you mean `env:{rest}`?"),
                    None => format!("`{kind}:` is not a known kind of reference"),
                }))
            }
            None if text.is_empty() => malformed("it is empty"),
            None => match text.strip_prefix('$').or(is_constant(text).then_some(text)) {
                Some(name) => Err(NoSecretRef::Malformed(format!(
                    "did you mean `env:{}`?",
                    name.trim_matches(['{', '}'])
                ))),
                None => Ok(SecretRef::Keyring {
                    service: "reqc".into(),
                    user: text.into(),
                }),
            },
        }
    }
}

fn malformed(why: &str) -> Result<SecretRef, NoSecretRef> {
    Err(NoSecretRef::Malformed(why.to_owned()))
}

/// Formats the reference as it is written in files; a bare name is written with its prefix.
impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SecretRef::Env(name) => write!(f, "env:{name}"),
            SecretRef::File(path) => write!(f, "file:{path}"),
            SecretRef::Keyring { service, user } => write!(f, "keyring:{service}/{user}"),
        }
    }
}

/// The reason a string cannot be a reference to a secret.
enum NoSecretRef {
    /// The text looks like the secret itself.
    Key,
    /// The text does not have a known form; the string describes the mistake.
    Malformed(String),
}

fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// Returns `true` if a name looks like that of an environment variable, such as `SOME_KEY`.
fn is_constant(name: &str) -> bool {
    name.contains('_')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// A provider file, before `extends` is resolved.
pub(super) struct RawInstance {
    pub(super) file: FileId,
    pub(super) layer: LayerKind,
    pub(super) name: Spanned<Arc<str>>,
    extends: Option<Spanned<Arc<str>>>,
    client_api: Option<Spanned<Arc<str>>>,
    url: Option<Spanned<Arc<str>>>,
    server: Option<Spanned<Arc<str>>>,
    api_key_ref: Option<Spanned<SecretRef>>,
    description: Option<Arc<str>>,
    headers: Vec<PlacedHeader>,
    /// `true` if a finding makes the instance unusable.
    pub(super) broken: bool,
}

/// Every key in a provider instance.
pub const INSTANCE_KEYS: [&str; 9] = [
    "schema_version",
    "name",
    "description",
    "extends",
    "client_api",
    "url",
    "server",
    "api_key_ref",
    "headers",
];

impl RawInstance {
    pub(super) fn read(
        file: FileId,
        layer: LayerKind,
        table: &Table,
        findings: &mut Vec<Diagnostic>,
    ) -> Option<RawInstance> {
        let before = findings.len();
        let mut reader = Reader::new(file, table, findings);
        reader.only(&Known::flat("a provider instance", &INSTANCE_KEYS));
        let is_misspelt = reader.found_unusable(before);
        let current = reader.schema_version(1);
        let name = reader.string("name");
        let secret = reader.string("api_key_ref");
        let api_key_ref = secret.and_then(|text| read_secret(&mut reader, &text));
        let headers = reader
            .table("headers")
            .map(|table| headers_of(&mut reader, table.value))
            .unwrap_or_default();
        let raw = (
            reader.string("extends"),
            reader.string("client_api"),
            reader.string("url"),
            reader.string("description"),
        );
        let server = reader.string("server");
        let is_usable = raw
            .2
            .as_ref()
            .is_none_or(|url| check_url(&mut reader, url, address::base_url));
        if !reader.has("name") {
            const HELP: &str = "add `name = \"…\"` at the top of the file; profiles refer to it as `provider_instance`";
            let what = "a provider instance needs a `name`";
            reader.report(
                Diagnostic::new(&rules::MISSING_KEY, Span::file_start(file), what).help(HELP),
            );
        }
        let (extends, client_api, url, description) = raw;
        let description = description.map(|it| it.value);
        let broken = !current || !is_usable || is_misspelt;
        Some(RawInstance {
            file,
            layer,
            name: name?,
            extends,
            client_api,
            url,
            server,
            api_key_ref,
            description,
            headers,
            broken,
        })
    }
}

/// A header's name, with its value and its location.
type PlacedHeader = (Arc<str>, (Arc<str>, Span));

/// Reads the headers and their locations.
fn headers_of(reader: &mut Reader<'_, '_>, table: &Table) -> Vec<PlacedHeader> {
    let spans: BTreeMap<String, Span> = table
        .entries
        .iter()
        .map(|(key, node)| (key.name.to_ascii_lowercase(), reader.span(node)))
        .collect();
    headers::read(reader, table)
        .into_iter()
        .filter_map(|(name, value)| Some((Arc::clone(&name), (value, *spans.get(&*name)?))))
        .collect()
}

pub(super) fn read_secret(
    reader: &mut Reader<'_, '_>,
    text: &Spanned<Arc<str>>,
) -> Option<Spanned<SecretRef>> {
    const HELP: &str = "write `env:NAME`, `file:PATH` or `keyring:SERVICE/USER`";
    let what = "`api_key_ref` is not a reference to a key";
    match SecretRef::parse(&text.value) {
        Ok(value) => {
            return Some(Spanned {
                value,
                span: text.span,
            });
        }
        Err(NoSecretRef::Malformed(why)) => {
            reader.report(
                Diagnostic::new(&rules::INVALID_VALUE, text.span, what)
                    .label(why)
                    .help(HELP),
            );
        }
        Err(NoSecretRef::Key) => {
            let finding = Diagnostic::new(&rules::LITERAL_SECRET, text.span, what)
                .label("this looks like the key itself");
            reader.report(finding.help(format!("{HELP}; if a real key was committed, revoke it")));
        }
    }
    None
}

/// Reports a URL to which no request may be sent, and returns `false` for it.
pub(super) fn check_url(
    reader: &mut Reader<'_, '_>,
    url: &Spanned<Arc<str>>,
    check: fn(&str) -> Result<(), NoAddress>,
) -> bool {
    const HELP: &str =
        "write `https://HOST/PATH`, or `http://localhost:PORT/PATH` for a server on this machine";
    let Err(problem) = check(&url.value) else {
        return true;
    };
    let finding = match problem.holds_secret {
        true => Diagnostic::new(&rules::LITERAL_SECRET, url.span, "`url` contains a key"),
        false => Diagnostic::new(
            &rules::INVALID_VALUE,
            url.span,
            "`url` is not a usable address",
        )
        .help(HELP),
    };
    reader.report(finding.label(problem.why).maybe_help(problem.help));
    false
}

/// Resolves `extends` among instances. An instance inherits the settings that it does not set
/// itself; headers are combined.
pub(super) fn resolve(
    raw: &BTreeMap<Arc<str>, RawInstance>,
    findings: &mut Vec<Diagnostic>,
) -> BTreeMap<Arc<str>, Instance> {
    findings.extend(circles(raw));
    let mut instances = BTreeMap::new();
    let mut suggestions = Suggestions::default();
    for (name, instance) in raw {
        if let Some(resolved) = resolve_one(instance, raw, &mut suggestions, findings) {
            instances.insert(Arc::clone(name), resolved);
        }
    }
    instances
}

/// Returns the files of each instance, including its ancestors' files.
pub(super) fn files(raw: &BTreeMap<Arc<str>, RawInstance>) -> BTreeMap<Arc<str>, Vec<FileId>> {
    raw.iter()
        .map(|(name, leaf)| {
            let files = chain(leaf, raw)
                .into_iter()
                .map(|instance| instance.file)
                .collect();
            (Arc::clone(name), files)
        })
        .collect()
}

/// The maximum number of instances in a chain, including the first.
const MAX_CHAIN: usize = 32;

/// Returns an instance and its ancestors. Stops before a repeated instance, and one instance beyond
/// the maximum length.
fn chain<'i>(
    leaf: &'i RawInstance,
    raw: &'i BTreeMap<Arc<str>, RawInstance>,
) -> Vec<&'i RawInstance> {
    let mut chain = vec![leaf];
    while let Some(parent) =
        parent(chain[chain.len() - 1], raw).filter(|_| chain.len() <= MAX_CHAIN)
    {
        if chain.iter().any(|seen| std::ptr::eq(*seen, parent)) {
            break;
        }
        chain.push(parent);
    }
    chain
}

fn parent<'i>(
    child: &RawInstance,
    raw: &'i BTreeMap<Arc<str>, RawInstance>,
) -> Option<&'i RawInstance> {
    raw.get(&child.extends.as_ref()?.value)
}

/// Returns the findings about cycles of instances that extend each other, each located at the
/// cycle's first member.
fn circles(raw: &BTreeMap<Arc<str>, RawInstance>) -> Vec<Diagnostic> {
    let index: BTreeMap<&Arc<str>, usize> = raw
        .keys()
        .enumerate()
        .map(|(at, name)| (name, at))
        .collect();
    let members: Vec<&RawInstance> = raw.values().collect();
    let parents: Vec<Option<usize>> = members
        .iter()
        .map(|it| index.get(&it.extends.as_ref()?.value).copied())
        .collect();
    crate::chain::circles(&parents)
        .iter()
        .filter_map(|circle| {
            let names: Vec<&str> = circle
                .iter()
                .map(|&at| members[at].name.value.as_ref())
                .collect();
            let message = match names.as_slice() {
                [only] => format!("provider instance `{only}` extends itself"),
                _ => format!(
                    "provider instances form a cycle: {}",
                    crate::chain::describe(&names)
                ),
            };
            let place = members[circle[0]].extends.as_ref()?.span;
            let finding = Diagnostic::new(&rules::INSTANCE_EXTENDS, place, message);
            Some(finding.help("remove one `extends`, and write out what it provided"))
        })
        .collect()
}

/// Returns the finding about an instance whose parent does not exist.
fn unknown_parent(
    extends: &Spanned<Arc<str>>,
    raw: &BTreeMap<Arc<str>, RawInstance>,
    suggestions: &mut Suggestions,
) -> Diagnostic {
    let message = format!("there is no provider instance `{}`", extends.value);
    let known = raw.keys().map(AsRef::as_ref);
    let help = suggestions
        .did_you_mean(&extends.value, known.clone())
        .unwrap_or_else(|| format!("known instances: {}", listed(known)));
    Diagnostic::new(&rules::INSTANCE_EXTENDS, extends.span, message).help(help)
}

/// Returns `true` if a chain is valid. A mistake is reported only at the instance that contains it,
/// and not at instances that inherit from it.
fn ends_well(
    chain: &[&RawInstance],
    raw: &BTreeMap<Arc<str>, RawInstance>,
    suggestions: &mut Suggestions,
    findings: &mut Vec<Diagnostic>,
) -> bool {
    let (first, end) = (chain[0], chain[chain.len() - 1]);
    match (&first.extends, &end.extends) {
        (_, Some(extends)) => {
            if !raw.contains_key(&extends.value) && chain.len() == 1 {
                findings.push(unknown_parent(extends, raw, suggestions));
            }
            false
        }
        (Some(extends), None) if chain.len() > MAX_CHAIN => {
            let message = format!("this chain of provider instances is longer than {MAX_CHAIN}");
            let finding = Diagnostic::new(&rules::INSTANCE_EXTENDS, extends.span, message);
            findings.push(finding.help("merge some of the levels in between"));
            false
        }
        _ => true,
    }
}

fn resolve_one(
    leaf: &RawInstance,
    raw: &BTreeMap<Arc<str>, RawInstance>,
    suggestions: &mut Suggestions,
    findings: &mut Vec<Diagnostic>,
) -> Option<Instance> {
    let chain = chain(leaf, raw);
    if chain.iter().any(|instance| instance.broken) {
        return None;
    }
    if !ends_well(&chain, raw, suggestions, findings) {
        return None;
    }
    let (client_api, url) = (
        first(|it| it.client_api.clone(), &chain),
        first(|it| it.url.clone(), &chain),
    );
    let missing: Vec<&str> = [("client_api", client_api.is_none()), ("url", url.is_none())]
        .iter()
        .filter(|it| it.1)
        .map(|it| it.0)
        .collect();
    // If the parent lacks a setting, too, this is reported at the parent.
    if !missing.is_empty() && chain.len() == 1 {
        let message = format!(
            "provider instance `{}` needs `{}`",
            leaf.name.value,
            missing.join("` and `")
        );
        let help = "set it here, or start from another instance: `extends = \"…\"`";
        findings.push(Diagnostic::new(&rules::MISSING_KEY, leaf.name.span, message).help(help));
    }
    let headers: IndexMap<Arc<str>, (Arc<str>, Span)> = chain
        .iter()
        .rev()
        .flat_map(|instance| instance.headers.iter().cloned())
        .collect();
    Some(Instance {
        name: leaf.name.clone(),
        bases: chain[1..]
            .iter()
            .map(|base| Arc::clone(&base.name.value))
            .collect(),
        layer: leaf.layer,
        client_api: client_api?,
        url: url?,
        server: first(|it| it.server.clone(), &chain),
        api_key_ref: chain
            .iter()
            .find_map(|instance| instance.api_key_ref.clone()),
        description: leaf.description.clone(),
        header_spans: headers.values().map(|(_, span)| *span).collect(),
        headers: headers
            .into_iter()
            .map(|(name, (value, _))| (name, value))
            .collect(),
    })
}

fn first(
    get: fn(&RawInstance) -> Option<Spanned<Arc<str>>>,
    chain: &[&RawInstance],
) -> Option<Spanned<Arc<str>>> {
    chain.iter().find_map(|instance| get(instance))
}
