//! HTTP clients that hosts provide to carry the requests of a [`Transport`](super::Transport).

pub use super::transport::{HttpBody, HttpClient, HttpError, HttpErrorKind, ReqwestClient};
/// The crates whose types occur in the interface of [`HttpClient`], in the versions that this crate
/// uses.
#[doc(no_inline)]
pub use {bytes::Bytes, http, reqwest};
