//! HTTP clients of a host's own: what carries the requests of a [`Transport`](super::Transport).

pub use super::transport::{HttpBody, HttpClient, HttpError, HttpErrorKind, ReqwestClient};
/// The crates that [`HttpClient`] mentions, in the versions that this crate uses.
#[doc(no_inline)]
pub use {bytes::Bytes, http, reqwest};
