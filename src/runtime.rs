//! The runtime sends requests exactly as they were compiled.
//!
//! Input: an agent of a [`Compiler`](crate::compile::Compiler) and a growing conversation. Output:
//! typed [`Event`]s while an answer streams in, and one [`Outcome`] per request. All bodies,
//! including those sent after tool results, are built by [`unit`](mod@crate::unit). The runtime
//! never edits compiled JSON, and does not depend on profiles or templates.
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
//! This module contains the types that most hosts need. An [`Agent`] is one of a compiler's agents
//! together with a model and settings; it compiles conversations to [`Compiled`] requests. A
//! [`Transport`] sends the requests, adds keys, and retries. A [`Session`] contains the history and
//! has at most one [`Run`] at a time: a message, the model's answers, tool calls, and an outcome.
//! An [`AgentLoop`] is a session with hooks. The other modules:
//!
//! | module | for |
//! | --- | --- |
//! | [`tools`] | hosts whose agents call tools: the definition of a tool |
//! | [`hooks`] | hosts that watch or control a run |
//! | [`secret`] | hosts that store keys themselves: the source of keys |
//! | [`trust`] | hosts that open other people's repositories: permissions that only a user can grant |
//! | [`content`], [`image`] | hosts whose messages refer to files, or contain images |
//! | [`clean`] | editors: answers of completion agents without fences and echoes |
//! | [`pool`] | hosts with small tasks alongside a chat: a few one-shot sessions of each agent |
//! | [`compression`] | hosts with long chats: a summary in place of older messages |
//! | [`installed`] | hosts that let users choose among the models of a server |
//! | [`client`] | hosts with their own HTTP client |
//! | [`stream`] | programs that decode answers received elsewhere: bytes → events and an [`Answer`] |
//! | [`tool_loop`] | hosts that run rounds themselves: when tools run, and when to stop |

mod digest;
mod future;
mod error;
mod failure;
pub mod image;
mod tool_output;
mod event;
mod redact;
pub mod secret;
pub mod stream;
mod transport;
pub mod client;
pub mod content;
pub mod installed;
mod agent;
pub mod tools;
pub mod trust;
pub mod clean;
pub mod hooks;
mod structured;
mod run;
pub mod tool_loop;
mod exchange;
mod session;
pub mod pool;
pub mod compression;

pub use crate::conversation::Usage;
#[doc(inline)]
pub use crate::provider::{ClientApi, Header, HeaderValue, RequestLine, WireFormat};
pub use agent::{Agent, CompileError, Compiled};
pub use error::{Category, Error, ResponseInfo};
#[cfg(feature = "cli")]
pub(crate) use event::named;
pub use event::{Answer, Event, MalformedInput, Outcome, Refusal, StopReason, ToolCall};
pub use run::{Run, TextAnswer};
pub use session::{AgentLoop, Session, SessionStart};
pub use transport::{RetryPolicy, Transport, TransportOptions};
