//! Recognises prompts, thinking, media and tools in bodies, for other modules that read bodies.

use serde_json::{Map, Value};

use super::{documents, media, prompt, thinking, tools};
use crate::conversation::{Block, Image};
use crate::provider::WireFormat;

pub(crate) use super::TOOLS;
pub(crate) use super::thinking::BESIDE;

/// Returns the names of the members that contain a system prompt.
pub(crate) fn prompt_members(wire: WireFormat) -> &'static [&'static str] {
    prompt::members(wire)
}

/// Returns the image in a part; `None` for anything else.
pub(crate) fn image(part: &Value) -> Option<Image> {
    media::image(part)
}

/// Returns the document or recording in a part; `None` for any other part, or if there is no data.
pub(crate) fn document(part: &Value) -> Option<Block> {
    documents::block(part)
}

/// Returns the reasoning in a part; `None` if it only refers to content stored on the server.
pub(crate) fn thinking(part: &Value) -> Option<Block> {
    thinking::block(part)
}

/// Returns the reasoning next to a message's content.
pub(crate) fn thinking_beside(message: &Value) -> Vec<Block> {
    thinking::beside(message)
}

/// Returns Gemini's signature on a part; `None` if there is none.
pub(crate) fn signature(part: &Value) -> Option<&str> {
    thinking::signature(part)
}

/// Returns the schema of a function's arguments. A function without a schema has no arguments.
pub(crate) fn schema(function: &Value) -> Map<String, Value> {
    tools::schema(function)
}
