//! The output of a tool, and its conversion for the history.

use std::sync::Arc;

use super::{failure, image};
use crate::conversation::{Block, Image};

/// The output of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// The text that the model sees.
    pub content: Arc<str>,
    /// `true` if the tool failed.
    pub is_error: bool,
    /// Images that the model sees: PNG, JPEG, GIF or WebP, in base64 or at a web URL. Any other
    /// image is omitted from the history and mentioned in the text.
    pub images: Vec<Image>,
}

impl ToolOutput {
    /// Returns an output that consists of text.
    pub fn text(content: impl Into<Arc<str>>) -> ToolOutput {
        ToolOutput {
            content: content.into(),
            ..ToolOutput::default()
        }
    }

    /// Returns the output of a failed tool, with a message for the model.
    pub fn error(content: impl Into<Arc<str>>) -> ToolOutput {
        ToolOutput {
            is_error: true,
            ..ToolOutput::text(content)
        }
    }

    /// Removes content that would break every later request. Images that no server accepts are
    /// omitted and mentioned in the text: formats other than PNG, JPEG, GIF and WebP, images that
    /// are too large, and URLs that are not on the web. The media type of an image is determined
    /// from its bytes. NUL is replaced with U+FFFD, because it makes models behind llama.cpp end
    /// all later answers early (aebrer/dreb#352).
    pub(super) fn fit_for_history(self) -> ToolOutput {
        let mut content = self.content.replace('\0', "\u{fffd}");
        let mut images = Vec::with_capacity(self.images.len());
        let mut room = image::MAX_BYTES;
        for image in self.images {
            let size = if image.is_url {
                0
            } else {
                image.data.len() as u64
            };
            let usable = match image.is_url {
                true => Some(image.clone()).filter(|image| image::is_url(&image.data)),
                false => image::of_base64(&image.data).filter(|_| size <= room),
            };
            if let Some(usable) = usable {
                room -= size;
                images.push(usable);
                continue;
            }
            if !content.is_empty() {
                content.push('\n');
            }
            content.push_str(&match image.is_url {
                true => format!(
                    "[image at {}, left out]",
                    failure::snippet(image.data.as_bytes())
                ),
                false => image::left_out("image", &image.media_type, &image.data),
            });
        }
        ToolOutput {
            content: content.into(),
            images,
            ..self
        }
    }

    /// Returns the output of a tool that was cancelled before it returned anything.
    pub(super) fn cancelled() -> ToolOutput {
        ToolOutput::error(CANCELLED)
    }

    /// Returns `true` if the output only reports the cancellation.
    pub(super) fn is_cancelled(&self) -> bool {
        self.is_error && &*self.content == CANCELLED
    }

    /// Converts the output to the block that answers a call.
    pub(super) fn into_block(self, id: Arc<str>) -> Block {
        Block::ToolResult {
            id,
            content: self.content,
            is_error: self.is_error,
            images: self.images,
        }
    }
}

/// The output text of a cancelled tool.
const CANCELLED: &str = "the tool was cancelled";
