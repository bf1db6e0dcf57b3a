//! The parts of URLs.

use std::fmt;

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

    /// Returns the path, with its leading `/`.
    pub(crate) fn path(&self) -> &'u str {
        self.path
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
