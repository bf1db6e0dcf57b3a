//! The parts of URLs.

use std::fmt;
use std::net::IpAddr;

/// The endings of host names that only private networks resolve.
const PRIVATE: [&str; 5] = [".localhost", ".local", ".internal", ".lan", ".home.arpa"];

/// The parts of a URL that may be reported, even if the URL is malformed: everything except the
/// credentials, the query, and the fragment.
pub(crate) struct UrlParts<'u> {
    scheme: Option<&'u str>,
    /// The host and port. An IPv6 address is in brackets.
    server: &'u str,
    path: &'u str,
}

impl<'u> UrlParts<'u> {
    pub(crate) fn of(url: &'u str) -> UrlParts<'u> {
        let url = url.split(['?', '#']).next().unwrap_or_default();
        let (scheme, rest) = url
            .split_once("://")
            .map_or((None, url), |(scheme, rest)| (Some(scheme), rest));
        let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
        UrlParts {
            scheme,
            server: authority.rsplit('@').next().unwrap_or_default(),
            path,
        }
    }

    /// Returns the host without its port.
    pub(crate) fn host(&self) -> &'u str {
        match self.server.strip_prefix('[') {
            Some(v6) => v6.split(']').next().unwrap_or_default(),
            None => self.server.split(':').next().unwrap_or_default(),
        }
    }

    /// Returns the port; `None` if the URL has none or if it is the scheme's default.
    pub(crate) fn port(&self) -> Option<u16> {
        let after = self.server.rsplit(']').next().unwrap_or_default();
        let port = after.rsplit_once(':')?.1.parse().ok()?;
        let usual = match self.scheme {
            Some("http") => 80,
            _ => 443,
        };
        (port != usual).then_some(port)
    }

    /// Returns `true` if the host is in a private network.
    pub(crate) fn is_private(&self) -> bool {
        is_private(self.host())
    }

    /// Returns the path, with its leading `/`.
    pub(crate) fn path(&self) -> &'u str {
        self.path
    }
}

/// Returns `true` if a host is in a private network, judged by its IP address or by a name that
/// public DNS does not resolve.
pub(super) fn is_private(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    match host.parse() {
        Ok(IpAddr::V4(address)) => {
            address.is_loopback()
                || address.is_private()
                || address.is_link_local()
                || address.is_unspecified()
        }
        Ok(IpAddr::V6(address)) => {
            address.is_loopback()
                || address.is_unspecified()
                || address.is_unique_local()
                || address.is_unicast_link_local()
        }
        Err(_) => {
            !host.is_empty() && !host.contains('.') || PRIVATE.iter().any(|end| host.ends_with(end))
        }
    }
}

impl fmt::Display for UrlParts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let UrlParts {
            scheme,
            server,
            path,
        } = self;
        match scheme {
            Some(scheme) => write!(f, "{scheme}://{server}{path}"),
            None => write!(f, "{server}{path}"),
        }
    }
}
