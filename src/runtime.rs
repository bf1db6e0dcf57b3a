//! The runtime: what was compiled is what is sent.
//!
//! Input: an agent of a [`Compiler`](crate::compile::Compiler) and a conversation that grows. Output: typed
//! [`Event`]s while an answer streams in, and one [`Outcome`] per request. A body is made by
//! [`unit`](mod@crate::unit) alone, also after tool results: nothing here edits JSON that was compiled. Profiles and
//! templates are not its business.
//!
//! - [`stream`]: bytes of an answer → events.
//! - [`tools`]: what a tool is.
//! - [`Secrets`]: where keys come from.

mod error;
mod event;
pub(crate) mod failure;
pub mod stream;
mod secret;
pub mod tools;

pub use crate::conversation::Usage;
pub use error::{Category, Error};
pub use event::{Answer, Event, MalformedInput, Outcome, StopReason, ToolCall};
pub use secret::{ExposeSecret, MemorySecrets, SecretError, SecretString, Secrets};
