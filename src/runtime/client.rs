//! HTTP clients that hosts provide to send the requests of a [`Transport`](super::Transport).

pub use super::transport::{HttpBody, HttpClient, HttpError, HttpErrorKind, ReqwestClient};
/// Re-exports of the crates whose types appear in the [`HttpClient`] API, at the versions that this
/// crate uses.
#[doc(no_inline)]
pub use {bytes::Bytes, http, reqwest};
