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
//! What most hosts need stands here: an [`Agent`] is a compiler's agent with a model and a setting,
//! and makes [`Compiled`] requests; a [`Transport`] carries them, with keys and retries; a
//! [`Session`] is the history, with one [`Run`] at a time about it: a message, the model's answers,
//! tools, an outcome. An [`AgentLoop`] is the same under hooks. The rooms beside it:
//!
//! | room | for |
//! | --- | --- |
//! | [`tools`] | hosts whose agents call tools: what a tool is |
//! | [`hooks`] | hosts that watch or stop what a run does |
//! | [`secret`] | hosts that keep keys themselves: where keys come from |
//! | [`trust`] | hosts that open other people's repositories: what only a person can allow |
//! | [`content`], [`image`] | hosts whose messages refer to files, or hold images |
//! | [`clean`] | editors: answers of completion agents without fences and echoes |
//! | [`pool`] | hosts with work beside a chat: a few one-shot sessions of each agent |
//! | [`compression`] | hosts with long chats: a summary in the place of what was said |
//! | [`installed`] | hosts that let people choose among the models that a server offers |
//! | [`client`] | hosts with an HTTP client of their own |
//! | [`stream`] | programs that read answers which others received: bytes → events and an [`Answer`] |
//! | [`tool_loop`] | hosts that run rounds themselves: when tools run, and when that ends |

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
