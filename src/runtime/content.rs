//! Content that the host stores. A session contains only references, and the bytes are loaded when
//! a request is compiled.
//!
//! Sessions stay small, and their requests can be reproduced byte for byte, because a reference
//! contains the digest of the bytes. If a file is missing or has changed, the request fails before
//! it is sent, and the session is unaffected.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::digest::digest;
use super::{Category, Error, image};
use crate::conversation::{
    Audio, Block, Conversation, Document, DocumentSource, Image, Message, StoredContent, Task,
};
use crate::world::AccessError;

/// The maximum size of a stored item, in bytes.
pub const MAX_BYTES: u64 = image::MAX_BYTES;

/// The maximum total size of the stored content in one request, in bytes.
pub const MAX_REQUEST_BYTES: u64 = 4 * MAX_BYTES;

/// Loads the bytes of stored content.
pub trait ContentLoader: Send + Sync {
    /// Returns the bytes that a reference identifies. May block, because it is called on a separate
    /// thread.
    ///
    /// # Errors
    ///
    /// Returns a phrase with the reason, such as "there is no such file".
    fn load(&self, reference: &str) -> Result<Vec<u8>, AccessError>;
}

/// Creates a reference to bytes that a loader will return later.
///
/// # Errors
///
/// Returns an error if there are too many bytes, or if their type cannot be part of a message.
/// Allowed types are images, PDF, audio and text.
pub fn stored(reference: impl Into<Arc<str>>, bytes: &[u8]) -> Result<StoredContent, Error> {
    let reference = reference.into();
    if bytes.len() as u64 > MAX_BYTES {
        return Err(config(
            &format!("has {} bytes: the limit is {MAX_BYTES}", bytes.len()),
            &reference,
        ));
    }
    let media_type = media_type(bytes)
        .ok_or_else(|| config("is not an image, PDF, audio recording or text", &reference))?;
    let (bytes, sha256) = (bytes.len() as u64, digest(bytes).into());
    Ok(StoredContent {
        reference,
        media_type: media_type.into(),
        bytes,
        sha256,
    })
}

fn config(why: &str, reference: &Arc<str>) -> Error {
    Error::new(Category::Config, format!("`{reference}` {why}"))
}

/// Returns the media type, determined from the first bytes; `text/plain` for any text, and `None`
/// for an unknown type.
fn media_type(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [b'%', b'P', b'D', b'F', b'-', ..] => Some("application/pdf"),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'A',
            b'V',
            b'E',
            ..,
        ] => Some("audio/wav"),
        [b'I', b'D', b'3', ..] => Some("audio/mpeg"),
        _ => image::sniff(bytes).or_else(|| {
            let is_text = std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0'));
            (is_text && !bytes.is_empty()).then_some("text/plain")
        }),
    }
}

/// Returns the conversation with its references replaced by the bytes.
pub(super) fn loaded(
    mut conversation: Conversation,
    loader: Option<&dyn ContentLoader>,
) -> Result<Conversation, Error> {
    let Task::Chat(history) = &mut conversation.task else {
        return Ok(conversation);
    };
    let mut room = MAX_REQUEST_BYTES;
    for Message { blocks, .. } in history {
        for block in blocks {
            let Block::Stored(content) = &*block else {
                continue;
            };
            room = room.checked_sub(content.bytes).ok_or_else(too_much)?;
            *block = load(content, loader)?;
        }
    }
    Ok(conversation)
}

fn too_much() -> Error {
    let message = format!(
        "the stored contents of the request are larger than {MAX_REQUEST_BYTES} bytes in total"
    );
    Error::new(Category::Config, message)
}

fn load(content: &StoredContent, loader: Option<&dyn ContentLoader>) -> Result<Block, Error> {
    let reference = &content.reference;
    let Some(loader) = loader else {
        let help = "the host must give the agent a `ContentLoader`; `reqc send` reads files next to the session";
        return Err(
            unusable(reference, "cannot be loaded: there is no content loader").detail(help),
        );
    };
    let bytes = loader
        .load(reference)
        .map_err(|why| unusable(reference, &format!("cannot be loaded: {why}")))?;
    if bytes.len() as u64 != content.bytes || digest(&bytes) != *content.sha256 {
        let help = "restore the original content to continue the session";
        return Err(
            unusable(reference, "has changed since it was added to the session").detail(help),
        );
    }
    block(content, bytes)
        .ok_or_else(|| unusable(reference, &format!("is not `{}`", content.media_type)))
}

fn unusable(reference: &str, why: &str) -> Error {
    Error::new(
        Category::Config,
        format!("the stored content `{reference}` {why}"),
    )
}

/// Returns the block for bytes with a given media type; `None` for text that is not UTF-8.
fn block(content: &StoredContent, bytes: Vec<u8>) -> Option<Block> {
    let media_type = Arc::clone(&content.media_type);
    let title = content.reference.rsplit('/').next().map(Into::into);
    let kind = media_type.split('/').next().unwrap_or_default();
    Some(match kind {
        "image" => Block::Image(Image {
            data: STANDARD.encode(bytes).into(),
            media_type,
            is_url: false,
        }),
        "audio" => Block::Audio(Audio {
            data: STANDARD.encode(bytes).into(),
            media_type,
        }),
        "text" => {
            let data = String::from_utf8(bytes).ok()?.into();
            Block::Document(Document {
                source: DocumentSource::Text,
                data,
                media_type,
                title,
            })
        }
        _ => {
            let data = STANDARD.encode(bytes).into();
            Block::Document(Document {
                source: DocumentSource::Base64,
                data,
                media_type,
                title,
            })
        }
    })
}
