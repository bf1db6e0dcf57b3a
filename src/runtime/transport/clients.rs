//! HTTP clients, made when they are first needed.

use std::sync::OnceLock;

use reqwest::redirect::Policy;
use reqwest::{Client, Url};

use super::{TransportOptions, cause};
use crate::provider::is_loopback;
use crate::runtime::{Category, Error};

/// The clients of a transport: to this machine and to others, in the clear and by TLS.
pub(super) struct Clients {
    options: TransportOptions,
    made: [OnceLock<Result<Client, Error>>; 4],
}

impl Clients {
    pub(super) fn new(options: &TransportOptions) -> Clients {
        Clients { options: options.clone(), made: Default::default() }
    }

    /// The client for a URL.
    pub(super) fn get(&self, url: &Url) -> Result<&Client, Error> {
        let (near, tls) = (url.host_str().is_some_and(is_loopback), url.scheme() != "http");
        let client = &self.made[usize::from(near) * 2 + usize::from(tls)];
        client.get_or_init(|| self.make(near, tls)).as_ref().map_err(Clone::clone)
    }

    /// No proxy leads to this machine. Without TLS no certificates are looked for: a slim container may have none.
    fn make(&self, near: bool, tls: bool) -> Result<Client, Error> {
        // Another part of the program may have installed a provider: then that one is used.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder()
            .user_agent(concat!("reqc/", env!("CARGO_PKG_VERSION")))
            .redirect(Policy::none())
            .connect_timeout(self.options.connect_timeout)
            .read_timeout(self.options.idle_timeout);
        let builder = if near { builder.no_proxy() } else { builder };
        let builder = if tls { builder } else { builder.tls_certs_only([]) };
        let failed = |error| Error::new(Category::Config, "the HTTP client cannot be set up").detail(cause(&error));
        builder.build().map_err(failed)
    }
}
