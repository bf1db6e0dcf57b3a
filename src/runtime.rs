//! The runtime: what was compiled is what is sent.
//!
//! Input: an agent of a [`Compiler`](crate::compile::Compiler) and a conversation that grows.
//! Output: typed
//! [`Event`]s while an answer streams in, and one [`Outcome`] per request. A body is made by
//! [`unit`](mod@crate::unit) alone, also after tool results: nothing here edits JSON that was compiled. Profiles and
//! templates are not its business.
//!
//! ```no_run
//! use reqc::system::open_repository;
//!
//! async fn ask(question: &str) -> Result<String, Box<dyn std::error::Error>> {
//!     let repository = open_repository(".")?;
//!     let session = repository.session("Claude Chat")?;
//!     Ok(session.send(question).text().await?)
//! }
//! ```
//!
//! - [`Agent`]: a compiler's agent with a model and a setting; makes [`Compiled`] requests.
//! - [`Transport`]: HTTP, keys, retries; over an [`HttpClient`], which a host may bring.
//! - [`stream`]: bytes of an answer → events and an [`Answer`], one decoder per wire format. Pure.
//! - [`Session`]: the history, and one [`Run`] at a time about it: a message, the model's answers,
//!   tools, an outcome;
//!   [`AgentLoop`]: the same under [`hooks`].
//! - [`SessionPool`]: a few one-shot sessions of each agent, for work beside a chat.
//! - [`Compression`]: a summary in the place of what was said.
//! - [`tool_loop`]: when tools run, and when that ends.
//! - [`ModelList`]: the models that a server offers.
//! - [`clean`]: answers of completion agents without fences and echoes.
//! - [`tools`]: what a tool is.
//! - [`Secrets`]: where keys come from.
//! - [`trust`]: what a repository asks for that only a person can allow.

mod agent;
pub mod clean;
mod compression;
pub mod content;
mod error;
mod event;
mod exchange;
mod failure;
pub mod hooks;
pub mod image;
mod installed;
mod pool;
mod redact;
mod run;
mod secret;
mod session;
pub mod stream;
mod structured;
pub mod tool_loop;
pub mod tools;
mod transport;
pub mod trust;

pub use crate::conversation::Usage;
#[doc(inline)]
pub use crate::provider::{ClientApi, Header, HeaderValue, RequestLine, WireFormat};
#[doc(inline)]
pub use crate::repo::{
    HttpSpec, KeyHeader, ProgramSpec, SecretRef, ServerConnection, ServerSpec, ToolSpec, ToolsFile,
};
pub use agent::{Agent, CompileError, Compiled};
pub use compression::{AutoCompression, Compression};
pub use error::{Category, Error};
pub(crate) use event::named;
pub use event::{
    Answer, Event, MalformedInput, Outcome, Refusal, ResponseInfo, StopReason, ToolCall,
};
pub use installed::{InstalledModel, ModelList};
pub use pool::{PoolOptions, PooledSession, SessionPool};
pub use run::{Run, TextAnswer};
pub use secret::{ExposeSecret, MemorySecrets, SecretError, SecretString, Secrets};
pub use session::{AgentLoop, Session, SessionStart};
pub use transport::{
    HttpBody, HttpClient, HttpError, HttpErrorKind, ReqwestClient, RetryPolicy, Transport,
    TransportOptions,
};
/// The crates that [`HttpClient`] mentions, in the versions that this crate uses.
#[doc(no_inline)]
pub use {bytes::Bytes, http, reqwest};
