//! Finds request bodies in text from any program, with their wire formats and the locations of
//! their values.
//!
//! Input: a JSON document, or one line of many. It contains a body, a list of bodies, a batch, a
//! log, or a HAR file. Output: a [`Harvest`] of [`FoundBody`]s, each with the facts from its URL.
//! [`recognise`] finds the wire format of a body by its shape, and `Places` maps a pointer back to
//! the text. [`Compiler::lint`](crate::compile::Compiler::lint), not this module, checks the
//! bodies.

mod unsupported;
mod address;
mod encoded;
pub(crate) mod cassette;
mod excerpt;
mod lines;
mod place;
mod recognise;
pub(crate) mod rules;
mod session;
mod stranger;
mod litellm;
mod wrapper;
mod batch;
mod find;

pub use address::Endpoint;
pub(crate) use batch::rules::RULES as BATCH_RULES;
pub(crate) use batch::{Batch, Envelope, Flaw, Place as BatchPlace};
pub(crate) use encoded::Decoder;
pub(crate) use excerpt::{Excerpt, Unsearched, excerpts};
pub use find::{FoundBody, Harvest, ModelAt, find};
pub(crate) use find::{WrongUrl, find_near, find_sent};
pub use lines::InputError;
pub(crate) use lines::{Content, Input, Line, Lines, content};
pub(crate) use litellm::{Settings, is_of_litellm, place as place_in_record};
pub(crate) use place::Places;
pub(crate) use recognise::recognise_among;
pub use recognise::{Unrecognised, recognise};
pub(crate) use session::Agent;
pub(crate) use stranger::Stranger;
pub use unsupported::Unsupported;

#[doc(inline)]
pub use crate::check::Problem;
#[doc(inline)]
pub use crate::json::Pointer;
#[doc(inline)]
pub use crate::provider::{Server, WireFormat};
