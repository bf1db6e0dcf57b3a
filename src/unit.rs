//! Builds one request body from one agent and one conversation, for both the compiler and the
//! runtime.
//!
//! Input: a [`ResolvedProfile`](crate::resolve::ResolvedProfile) and a conversation in normal form.
//! Output: a [`Body`], which only this module can create. This module reads no files and applies no
//! content rules.

pub(crate) mod rules;
mod request;
mod costed;
mod excerpt;
mod fix;
mod prompt;
mod members;
mod fragment;
mod splices;
mod plan;
mod assembled;
mod body;
mod record;

pub use body::Body;
pub(crate) use body::Made;
pub(crate) use costed::Costed;
pub(crate) use members::{Check, CheckId, MemberRef, Sameness};
pub use plan::{KeyOrValue, Plan};
pub use prompt::SystemPrompt;
pub(crate) use prompt::stand_in;
pub use record::{Author, ProviderStep};
pub(crate) use record::{Provenance, Record};
pub(crate) use request::normal_form;
pub use request::{NormalisedConversation, Request};
pub use splices::Splice;
