//! Facts outside the body that determine what the API accepts: headers, and parts of the URL.

use serde_json::Value;

use super::named::{NamedServer, Software};
use super::server::{Site, is_below};
use super::url::{UrlParts, is_private};
use crate::secret::is_redacted;

/// The version and the beta features that a request asks for, if known from its headers and its
/// URL.
///
/// Anthropic has both in headers: <https://platform.claude.com/docs/en/api/versioning>,
/// <https://platform.claude.com/docs/en/api/beta-headers>. OpenAI has beta features in a header.
/// Azure has the version in the URL.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct ApiHeaders {
    /// The date in `anthropic-version`; `None` if unknown.
    pub version: Option<String>,
    /// The names in `anthropic-beta` and `openai-beta`; `None` if unknown.
    pub betas: Option<Vec<String>>,
    /// The sites that the URL belongs to, in addition to the server.
    pub(crate) sites: Vec<Site>,
    /// The host in the URL; `None` if unknown.
    pub(crate) host: Option<String>,
    /// The software that a user named as the server; `None` if unknown.
    pub(crate) software: Option<Software>,
    /// `true` if `extra-parameters` asks Azure's model inference API not to reject unknown fields:
    /// <https://learn.microsoft.com/en-us/rest/api/aifoundry/model-inference>.
    pub(crate) allows_unknown_fields: bool,
}

/// The name by which families refer to unknown servers in a private network.
const PRIVATE_ADDRESS: &str = "private address";

/// The headers that list beta features.
const BETAS: [&str; 2] = ["anthropic-beta", "openai-beta"];

impl ApiHeaders {
    /// The headers of a request if nothing is known about them.
    pub const UNKNOWN: ApiHeaders = ApiHeaders {
        version: None,
        betas: None,
        sites: Vec::new(),
        host: None,
        software: None,
        allows_unknown_fields: false,
    };

    /// Adds the facts that the URL reveals: the operator of the host, a token-counting endpoint,
    /// and the `api-version` of Azure OpenAI. Azure's other APIs have different versions.
    #[must_use]
    pub fn at(mut self, url: &str) -> ApiHeaders {
        self.sites = Site::of(url);
        // A path alone may look like a host.
        let host = UrlParts::of(url).host().to_ascii_lowercase();
        self.host = (url.contains("://") && !host.is_empty()).then_some(host);
        let is_azure_openai =
            self.is_at(Site::Azure) && UrlParts::of(url).path().starts_with("/openai/");
        let version = url
            .split(['?', '&'])
            .find_map(|part| part.strip_prefix("api-version="))
            .filter(|_| is_azure_openai);
        self.version = self.version.or(version.map(str::to_owned));
        self
    }

    /// Adds the server that a user named, in place of the operator of the host.
    #[must_use]
    pub fn to(mut self, named: NamedServer) -> ApiHeaders {
        self.software = named.software();
        self.sites.retain(|site| !site.is_operator());
        self.sites.extend(named.site());
        self
    }

    /// Returns these headers and sites, or those from a different source if these are unknown.
    #[must_use]
    pub(crate) fn or(self, others: impl FnOnce() -> Option<ApiHeaders>) -> ApiHeaders {
        let others = others().unwrap_or_default();
        let sites = match self.sites.is_empty() {
            true => others.sites.clone(),
            false => self.sites.clone(),
        };
        let host = self.host.clone().or_else(|| others.host.clone());
        let software = self.software.or(others.software);
        let allows_unknown_fields = self.allows_unknown_fields || others.allows_unknown_fields;
        let known = if self.is_unknown() { others } else { self };
        ApiHeaders {
            sites,
            host,
            software,
            allows_unknown_fields,
            ..known
        }
    }

    /// Returns the headers of the inner request, for a token-counting request that contains another
    /// request.
    #[must_use]
    pub(crate) fn of_counted(mut self) -> ApiHeaders {
        for site in &mut self.sites {
            if *site == Site::TokenCount {
                *site = Site::CountedRequest;
            }
        }
        self
    }

    /// Returns the names that families use for addresses, in addition to server names.
    pub fn names_of_addresses() -> impl Iterator<Item = &'static str> {
        Site::names()
            .chain(Software::names())
            .chain([PRIVATE_ADDRESS])
    }

    /// Returns `true` if a family's `servers` entry names one of the sites that the URL belongs to,
    /// the server's software, or the domain of its host.
    pub(crate) fn is_named(&self, name: &str) -> bool {
        self.sites.iter().any(|site| site.name() == name)
            || self.software.is_some_and(|software| software.name == name)
            || is_domain(name) && self.is_below(name)
    }

    /// Returns `true` if a family's `servers` entry names private addresses, and the host has one,
    /// or the software is known to run models itself.
    pub(crate) fn is_named_privately(&self, name: &str) -> bool {
        name == PRIVATE_ADDRESS
            && (self.is_private() || self.software.is_some_and(|software| software.runs_models))
    }

    /// Returns `true` if the server is known to run models itself, unlike a gateway.
    pub(crate) fn runs_models(&self) -> bool {
        self.sites.iter().any(|site| site.runs_models())
            || self.software.is_some_and(|software| software.runs_models)
    }

    /// Returns `true` if the host is in a private network and no known site.
    pub(crate) fn is_private(&self) -> bool {
        self.sites.is_empty() && self.host.as_deref().is_some_and(is_private)
    }

    /// Returns `true` if the request only counts tokens and gets no answer from a model.
    pub(crate) fn counts_tokens(&self) -> bool {
        self.sites.iter().any(|site| site.counts_tokens())
    }

    /// Returns `true` if a known operator runs the host.
    pub(crate) fn is_at_operator(&self) -> bool {
        self.sites.iter().any(|site| site.is_operator())
    }

    /// Returns `true` if the host is a domain or one of its subdomains.
    pub(crate) fn is_below(&self, domain: &str) -> bool {
        let host = self.host.as_deref();
        host.is_some_and(|host| is_below(host, domain))
    }

    /// Returns `true` if the URL belongs to the site.
    pub(crate) fn is_at(&self, site: Site) -> bool {
        self.sites.contains(&site)
    }

    /// Reads headers by name and value, ignoring the case of names. If a header occurs twice, the
    /// last value is used, but lists of beta features are joined. If the headers contain a version,
    /// they are considered complete, so without `anthropic-beta` they ask for no beta feature. Logs
    /// that omit headers omit both the version and the beta features. If a log masks a list, its
    /// features are unknown.
    pub fn read<'h>(headers: impl IntoIterator<Item = (&'h str, &'h str)>) -> ApiHeaders {
        let mut read = ApiHeaders::default();
        for (name, value) in headers {
            if name.eq_ignore_ascii_case("anthropic-version") && is_date(value.trim()) {
                read.version = Some(value.trim().to_owned());
            } else if BETAS.iter().any(|beta| name.eq_ignore_ascii_case(beta)) {
                let names = value
                    .split(',')
                    .map(str::trim)
                    .filter(|name| !name.is_empty());
                read.betas
                    .get_or_insert_default()
                    .extend(names.map(str::to_owned));
            } else if name.eq_ignore_ascii_case("extra-parameters") {
                let value = value.trim();
                read.allows_unknown_fields = ["pass-through", "drop"].contains(&value);
            }
        }
        if read.version.is_some() {
            read.betas.get_or_insert_default();
        }
        read.betas = read
            .betas
            .filter(|names| !names.iter().any(|name| is_masked(name)));
        read
    }

    /// Adds the beta features that the body asks for, because the clouds that serve Claude read
    /// them from the body. Bedrock reads them nowhere else, so for Bedrock the features are known.
    pub(crate) fn with_betas_of(mut self, body: &Value) -> ApiHeaders {
        let is_of_bedrock = body
            .get("anthropic_version")
            .and_then(Value::as_str)
            .is_some_and(|version| version.starts_with("bedrock-"));
        if is_of_bedrock {
            self.betas.get_or_insert_default();
        }
        let Some(named) = body.get("anthropic_beta").and_then(Value::as_array) else {
            return self;
        };
        let named = named.iter().filter_map(Value::as_str).map(str::to_owned);
        self.betas.get_or_insert_default().extend(named);
        self
    }

    /// Returns `true` if nothing is known about the headers.
    pub fn is_unknown(&self) -> bool {
        self.version.is_none() && self.betas.is_none() && !self.allows_unknown_fields
    }

    /// Returns `true` if the request asks for a beta feature, or for one whose name begins with the
    /// part before a final `*`; `None` if that is unknown.
    pub fn has_beta(&self, name: &str) -> Option<bool> {
        if self.is_at(Site::Azure) && self.version.as_deref() == Some("preview") {
            return Some(true);
        }
        let betas = self.betas.as_ref()?;
        let is_asked = match name.strip_suffix('*') {
            Some(start) => betas.iter().any(|beta| beta.starts_with(start)),
            None => betas.iter().any(|beta| beta == name),
        };
        Some(is_asked)
    }
}

/// Returns `true` if a server's name in a family is the domain of its hosts, such as `ollama.com`.
pub(crate) fn is_domain(name: &str) -> bool {
    name.contains('.')
        && !name.split('.').any(str::is_empty)
        && name
            .bytes()
            .all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.'))
}

/// Returns `true` if a log replaced the value of a header.
fn is_masked(value: &str) -> bool {
    value.contains('*') || is_redacted(value)
}

/// Returns `true` if a string is a date such as `2023-06-01`, unlike placeholders in logs.
fn is_date(text: &str) -> bool {
    let form = b"dddd-dd-dd";
    text.len() == form.len()
        && text.bytes().zip(form).all(|(byte, form)| match form {
            b'd' => byte.is_ascii_digit(),
            other => byte == *other,
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_betas_are_read_in_any_case() {
        let read = ApiHeaders::read([
            ("Anthropic-Version", "2023-06-01"),
            ("ANTHROPIC-BETA", "files-api-2025-04-14, skills-2025-10-02"),
        ]);
        assert_eq!(read.version.as_deref(), Some("2023-06-01"));
        assert_eq!(read.has_beta("skills-2025-10-02"), Some(true));
        assert_eq!(read.has_beta("skills"), Some(false));
        assert_eq!(read.has_beta("skills-*"), Some(true));
        assert_eq!(read.has_beta("mcp-client-*"), Some(false));
    }

    #[test]
    fn a_masked_list_of_betas_is_unknown() {
        for masked in ["***", "[REDACTED]", "files-api-2025-04-14, ***"] {
            let read = ApiHeaders::read([
                ("anthropic-version", "2023-06-01"),
                ("anthropic-beta", masked),
            ]);
            assert_eq!(read.version.as_deref(), Some("2023-06-01"));
            assert_eq!(read.has_beta("skills-2025-10-02"), None, "{masked}");
        }
    }

    #[test]
    fn what_is_not_there_is_unknown_unless_the_version_is() {
        assert!(ApiHeaders::read([("content-type", "application/json")]).is_unknown());
        assert!(ApiHeaders::read([("anthropic-version", "**REDACTED**")]).is_unknown());
        assert_eq!(
            ApiHeaders::read([("anthropic-version", "2023-06-01")]).has_beta("x"),
            Some(false)
        );
        assert_eq!(ApiHeaders::read([("anthropic-beta", "x")]).version, None);
        let openai = ApiHeaders::read([("OpenAI-Beta", "responses_multi_agent=v1")]);
        assert_eq!(openai.has_beta("responses_multi_agent=v1"), Some(true));
    }
}
