//! Images, documents and audio in a body, and their token counts.
//!
//! Sources of the image rules: for Anthropic, measurements
//! (<https://huggingface.co/datasets/JOHNISKING/image-token-cost>: one token for each patch of 28 ×
//! 28 pixels, after the image is scaled down to 1568 tokens, or to 2000 pixels for Claude 5.5) and
//! documentation (<https://platform.claude.com/docs/en/build-with-claude/vision>); for OpenAI, the
//! documentation of tiles and patches (<https://platform.openai.com/docs/guides/images-vision>),
//! and for GPT-5.4 and later, measurements in the same data set; for Gemini, the documentation of
//! tiles of 258 tokens (<https://ai.google.dev/gemini-api/docs/tokens>), and for Gemini 3,
//! measurements in the same data set. No provider publishes token counts for documents and audio,
//! so these are estimated from the size in bytes.

use base64::Engine as _;
use serde_json::{Map, Value};

use crate::provider::WireFormat;
use crate::repo::ModelName;

/// Non-text content in a body.
pub(super) enum Media<'b> {
    /// An image in base64.
    Image(&'b str),
    /// An image that the provider downloads. Its size is unknown here.
    RemoteImage,
    /// A document in base64; `None` if the provider downloads the document.
    Document(Option<&'b str>),
    /// Audio in base64, with its MIME type or format.
    Audio { data: &'b str, format: &'b str },
}

/// Returns the medium that an object represents; `None` if it represents none.
pub(super) fn of(members: &Map<String, Value>) -> Option<Media<'_>> {
    let mime = ["media_type", "mimeType", "mime_type", "format"]
        .iter()
        .find_map(|name| text(members, name));
    match (text(members, "data"), mime, text(members, "type")) {
        (Some(data), Some(mime), _) => of_mime(data, mime),
        (None, _, Some("url")) if text(members, "url").is_some() => Some(Media::RemoteImage),
        _ => None,
    }
}

fn text<'v>(members: &'v Map<String, Value>, name: &str) -> Option<&'v str> {
    members.get(name).and_then(Value::as_str)
}

/// Returns the medium of base64 data with a MIME type. A plain-text document is not a medium.
fn of_mime<'b>(data: &'b str, mime: &'b str) -> Option<Media<'b>> {
    match mime.split_once('/').map_or(mime, |(family, _)| family) {
        "image" => Some(Media::Image(data)),
        "audio" | "wav" | "mp3" | "ogg" | "flac" => Some(Media::Audio { data, format: mime }),
        "application" => Some(Media::Document(Some(data))),
        _ => None,
    }
}

/// Returns the medium that a string represents: a data URL, the URL of an image, or, as Ollama
/// accepts it, an image in base64.
pub(super) fn of_text(text: &str) -> Option<Media<'_>> {
    if let Some((mime, data)) = text
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(";base64,"))
    {
        return of_mime(data, mime);
    }
    let is_bare = text.len() > 64
        && ["iVBORw0KGgo", "/9j/", "R0lGOD", "UklGR"]
            .iter()
            .any(|head| text.starts_with(head));
    is_bare.then_some(Media::Image(text))
}

/// The rule for counting an image's tokens, which depends on the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PictureRule {
    /// One token for each square patch, multiplied by a factor in thousandths. First, the image is
    /// scaled down to a maximum side length and a maximum number of patches.
    Patches {
        side: u32,
        thousandths: u64,
        longest: u32,
        most: u64,
    },
    /// A base plus a number for each tile of 512 pixels. First, the image is scaled down to 2048
    /// pixels, and then until its shorter side has 768 pixels.
    Tiles { base: u64, tile: u64 },
    /// 258 tokens for each tile of 768 pixels.
    GeminiTiles,
    /// The same number of tokens for every image.
    Fixed(u64),
}

const CLAUDE: PictureRule = PictureRule::Patches {
    side: 28,
    thousandths: 1_000,
    longest: 1_568,
    most: 1_568,
};
const LATE_CLAUDE: PictureRule = PictureRule::Patches {
    side: 28,
    thousandths: 1_000,
    longest: 2_000,
    most: 4_784,
};
const LATE_GPT: PictureRule = PictureRule::Patches {
    side: 32,
    thousandths: 1_200,
    longest: 6_000,
    most: 10_000,
};
/// The rule for most vision models that run locally.
const OPEN: PictureRule = PictureRule::Patches {
    side: 28,
    thousandths: 1_000,
    longest: 4_096,
    most: 4_096,
};

/// Prefixes of model names in normal form, and their rules. The first match applies.
const RULES: [(&str, PictureRule); 21] = [
    ("claude-opus-5-5", LATE_CLAUDE),
    ("claude-sonnet-5-5", LATE_CLAUDE),
    ("claude-fable", LATE_CLAUDE),
    ("claude-mythos", LATE_CLAUDE),
    ("claude", CLAUDE),
    (
        "gpt-4o-mini",
        PictureRule::Tiles {
            base: 2_833,
            tile: 5_667,
        },
    ),
    (
        "gpt-4-1-mini",
        PictureRule::Patches {
            side: 32,
            thousandths: 1_620,
            longest: 2_048,
            most: 1_536,
        },
    ),
    (
        "gpt-4-1-nano",
        PictureRule::Patches {
            side: 32,
            thousandths: 2_460,
            longest: 2_048,
            most: 1_536,
        },
    ),
    (
        "o4-mini",
        PictureRule::Patches {
            side: 32,
            thousandths: 1_720,
            longest: 2_048,
            most: 1_536,
        },
    ),
    (
        "gpt-5-mini",
        PictureRule::Patches {
            side: 32,
            thousandths: 1_620,
            longest: 2_048,
            most: 1_536,
        },
    ),
    (
        "gpt-5-nano",
        PictureRule::Patches {
            side: 32,
            thousandths: 2_460,
            longest: 2_048,
            most: 1_536,
        },
    ),
    (
        "gpt-5-1",
        PictureRule::Tiles {
            base: 70,
            tile: 140,
        },
    ),
    (
        "gpt-5-2",
        PictureRule::Tiles {
            base: 70,
            tile: 140,
        },
    ),
    (
        "gpt-5-3",
        PictureRule::Tiles {
            base: 70,
            tile: 140,
        },
    ),
    ("gpt-5-", LATE_GPT),
    (
        "gpt-5",
        PictureRule::Tiles {
            base: 70,
            tile: 140,
        },
    ),
    ("gpt-6", LATE_GPT),
    (
        "o1",
        PictureRule::Tiles {
            base: 75,
            tile: 150,
        },
    ),
    (
        "o3",
        PictureRule::Tiles {
            base: 75,
            tile: 150,
        },
    ),
    ("gemini-2", PictureRule::GeminiTiles),
    ("gemini-1", PictureRule::GeminiTiles),
];

/// The assumed numbers of bytes and tokens per document page.
const PAGE: (u64, u64) = (50_000, 2_000);

/// The maximum length of base64 that is decoded to find an image's size. In the worst case, the
/// size follows a thumbnail.
const HEAD: usize = 256 * 1024;

impl PictureRule {
    pub(super) fn of(model: &str, wire: WireFormat) -> PictureRule {
        let name = ModelName::new(model);
        let known = RULES
            .iter()
            .find(|(begins, _)| name.normal().starts_with(begins));
        known.map_or_else(|| usual(wire), |(_, rule)| *rule)
    }

    /// Returns the number of tokens in a medium. `count` counts the tokens in a plain-text
    /// document.
    pub(super) fn tokens(self, media: &Media<'_>, count: &dyn Fn(&str) -> u64) -> u64 {
        match media {
            Media::Image(data) => self.picture(size(data)),
            Media::RemoteImage => self.picture(None),
            Media::Document(Some(data)) if data.len() > 64 => {
                let bytes = data.len() as u64 / 4 * 3;
                bytes.div_ceil(PAGE.0) * PAGE.1
            }
            Media::Document(Some(text)) => count(text),
            Media::Document(None) => PAGE.1,
            Media::Audio { data, format } => seconds(data.len() as u64 / 4 * 3, format) * 32,
        }
    }

    /// Returns the number of tokens in an image. If the size is unknown, 1024 × 1024 pixels are
    /// assumed.
    fn picture(self, size: Option<Size>) -> u64 {
        let size = size.unwrap_or(Size {
            width: 1_024,
            height: 1_024,
        });
        match self {
            PictureRule::Patches {
                side,
                thousandths,
                longest,
                most,
            } => {
                let patches = size.within(longest).patches(side).min(most);
                (patches * thousandths).div_ceil(1_000)
            }
            PictureRule::Tiles { base, tile } => {
                base + tile * size.within(2_048).shorter_within(768).patches(512)
            }
            PictureRule::GeminiTiles if size.width.max(size.height) <= 384 => 258,
            PictureRule::GeminiTiles => 258 * size.patches(768),
            PictureRule::Fixed(tokens) => tokens,
        }
    }
}

/// Returns the rule that applies to most models with a wire format.
fn usual(wire: WireFormat) -> PictureRule {
    match wire {
        WireFormat::AnthropicMessages => CLAUDE,
        WireFormat::OpenAiChat | WireFormat::OpenAiResponses => PictureRule::Tiles {
            base: 85,
            tile: 170,
        },
        WireFormat::GoogleGenerateContent => PictureRule::Fixed(1_090),
        WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => OPEN,
    }
}

/// An image's size in pixels.
#[derive(Debug, Clone, Copy)]
struct Size {
    width: u32,
    height: u32,
}

impl Size {
    /// Scales the image down until its longer side has at most this many pixels.
    fn within(self, longest: u32) -> Size {
        self.scaled(longest, self.width.max(self.height))
    }

    /// Scales the image down until its shorter side has at most this many pixels.
    fn shorter_within(self, shortest: u32) -> Size {
        self.scaled(shortest, self.width.min(self.height))
    }

    fn scaled(self, wanted: u32, is: u32) -> Size {
        if is <= wanted {
            return self;
        }
        Size {
            width: side(self.width, wanted, is).max(1),
            height: side(self.height, wanted, is).max(1),
        }
    }

    /// Returns the number of squares with this side length that cover the image.
    fn patches(self, side: u32) -> u64 {
        u64::from(self.width.div_ceil(side)) * u64::from(self.height.div_ceil(side))
    }
}

fn side(pixels: u32, wanted: u32, is: u32) -> u32 {
    u32::try_from(u64::from(pixels) * u64::from(wanted) / u64::from(is)).unwrap_or(wanted)
}

/// Returns the longer side of a base64 image, in pixels; `None` if the image's header does not
/// contain it.
pub(super) fn longest_side(data: &str) -> Option<u32> {
    size(data).map(|size| size.width.max(size.height))
}

/// Returns the shorter side of a base64 image, in pixels; `None` if the image's header does not
/// contain it.
pub(super) fn shortest_side(data: &str) -> Option<u32> {
    size(data).map(|size| size.width.min(size.height))
}

/// Returns the size of a base64 image; `None` if the image's header does not contain it.
fn size(data: &str) -> Option<Size> {
    let data = data.as_bytes();
    // Base64 is decoded in groups of four characters.
    let head = &data[..data.len().min(HEAD) / 4 * 4];
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(head)
        .ok()?;
    let size = imagesize::blob_size(&bytes).ok()?;
    Some(Size {
        width: u32::try_from(size.width).ok()?.max(1),
        height: u32::try_from(size.height).ok()?.max(1),
    })
}

/// Returns the length of audio in seconds. It is estimated from the number of bytes: 32 KB per
/// second if the format is uncompressed, otherwise 16 KB.
fn seconds(bytes: u64, format: &str) -> u64 {
    let each = if format.contains("wav") {
        32_000
    } else {
        16_000
    };
    bytes.div_ceil(each)
}
