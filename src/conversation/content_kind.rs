//! The kinds of content in a conversation.

/// A kind of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ContentKind {
    /// The complete system prompt: the agent's own, and the layers of the conversation.
    SystemPrompt,
    /// Attached files.
    Files,
    /// Text from the user.
    UserText,
    /// Text from the model.
    AssistantText,
    /// Text of typed items, which the host adds.
    SystemItems,
    /// The roles of messages.
    Roles,
    /// The model's thinking.
    Thinking,
    /// Thinking of unknown origin, and its signatures.
    UnknownThinking,
    /// The signatures that prove that thinking was written by the model.
    Signatures,
    /// Thinking that only the provider can read.
    RedactedThinking,
    /// Tool calls.
    ToolCalls,
    /// The arguments of tool calls.
    ToolArguments,
    /// The IDs that link results to calls.
    CallIds,
    /// The text of tool results.
    ToolResults,
    /// The name of the tool that returned a result.
    ResultNames,
    /// The flags that mark results as errors.
    ErrorMarks,
    /// Images in tool results.
    ResultImages,
    /// Images in base64.
    Images,
    /// Images given by URL.
    ImageUrls,
    /// The media types of images, documents and recordings in base64.
    MediaTypes,
    /// Documents of every kind. No content has this kind; in a declaration, it covers all kinds of
    /// documents.
    Documents,
    /// PDF documents in base64.
    PdfDocuments,
    /// Other documents in base64.
    OtherDocuments,
    /// Documents given as text.
    DocumentText,
    /// Documents given by URL.
    DocumentUrls,
    /// Documents given by file ID.
    DocumentFiles,
    /// The titles of documents given as bytes or text.
    DocumentTitles,
    /// The titles of documents given by URL or file ID.
    LinkedTitles,
    /// Recordings.
    Audio,
    /// Provider-specific content.
    ProviderBlocks,
    /// The tools that the request offers.
    Tools,
    /// The code before the gap of a completion.
    Prefix,
    /// The code after the gap of a completion.
    Suffix,
}

use ContentKind as Kind;

impl ContentKind {
    /// All kinds.
    pub const ALL: [Kind; 33] = [
        Kind::SystemPrompt,
        Kind::Files,
        Kind::UserText,
        Kind::AssistantText,
        Kind::SystemItems,
        Kind::Roles,
        Kind::Thinking,
        Kind::UnknownThinking,
        Kind::Signatures,
        Kind::RedactedThinking,
        Kind::ToolCalls,
        Kind::ToolArguments,
        Kind::CallIds,
        Kind::ToolResults,
        Kind::ResultNames,
        Kind::ErrorMarks,
        Kind::ResultImages,
        Kind::Images,
        Kind::ImageUrls,
        Kind::MediaTypes,
        Kind::Documents,
        Kind::PdfDocuments,
        Kind::OtherDocuments,
        Kind::DocumentText,
        Kind::DocumentUrls,
        Kind::DocumentFiles,
        Kind::DocumentTitles,
        Kind::LinkedTitles,
        Kind::Audio,
        Kind::ProviderBlocks,
        Kind::Tools,
        Kind::Prefix,
        Kind::Suffix,
    ];

    /// Returns the kind's name in profiles and `wire-limits.toml`.
    pub fn name(self) -> &'static str {
        match self {
            Kind::SystemPrompt => "system-prompt",
            Kind::Files => "files",
            Kind::UserText => "user-text",
            Kind::AssistantText => "assistant-text",
            Kind::SystemItems => "system-items",
            Kind::Roles => "roles",
            Kind::Thinking => "thinking",
            Kind::UnknownThinking => "unknown-thinking",
            Kind::Signatures => "signatures",
            Kind::RedactedThinking => "redacted-thinking",
            Kind::ToolCalls => "tool-calls",
            Kind::ToolArguments => "tool-arguments",
            Kind::CallIds => "call-ids",
            Kind::ToolResults => "tool-results",
            Kind::ResultNames => "result-names",
            Kind::ErrorMarks => "error-marks",
            Kind::ResultImages => "result-images",
            Kind::Images => "images",
            Kind::ImageUrls => "image-urls",
            Kind::MediaTypes => "media-types",
            Kind::Documents => "documents",
            Kind::PdfDocuments => "pdf-documents",
            Kind::OtherDocuments => "other-documents",
            Kind::DocumentText => "document-text",
            Kind::DocumentUrls => "document-urls",
            Kind::DocumentFiles => "document-files",
            Kind::DocumentTitles => "document-titles",
            Kind::LinkedTitles => "linked-titles",
            Kind::Audio => "audio",
            Kind::ProviderBlocks => "provider-blocks",
            Kind::Tools => "tools",
            Kind::Prefix => "prefix",
            Kind::Suffix => "suffix",
        }
    }

    /// Returns the kind with this name.
    pub fn from_name(name: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// Returns a phrase for messages that can be the subject of a sentence, and `true` if it is
    /// singular.
    pub(crate) fn phrase(self) -> (&'static str, bool) {
        match self {
            Kind::SystemPrompt => ("the system prompt", true),
            Kind::Files => ("attached files", false),
            Kind::UserText => ("user text", true),
            Kind::AssistantText => ("assistant text", true),
            Kind::SystemItems => ("text of system items", true),
            Kind::Roles => ("the role of the speaker", true),
            Kind::Thinking => ("thinking", true),
            Kind::UnknownThinking => ("thinking of unknown origin", true),
            Kind::Signatures => ("thinking signatures", false),
            Kind::RedactedThinking => ("redacted thinking", true),
            Kind::ToolCalls => ("tool calls", false),
            Kind::ToolArguments => ("tool call arguments", false),
            Kind::CallIds => ("ids that link results to calls", false),
            Kind::ToolResults => ("tool results", false),
            Kind::ResultNames => ("tool names of results", false),
            Kind::ErrorMarks => ("error flags of failed tool calls", false),
            Kind::ResultImages => ("images in tool results", false),
            Kind::Images => ("images", false),
            Kind::ImageUrls => ("images given by URL", false),
            Kind::MediaTypes => ("media types", false),
            Kind::Documents => ("documents", false),
            Kind::PdfDocuments => ("PDF documents", false),
            Kind::OtherDocuments => ("documents that are not PDF", false),
            Kind::DocumentText => ("text documents", false),
            Kind::DocumentUrls => ("documents given by URL", false),
            Kind::DocumentFiles => ("documents given by file ID", false),
            Kind::DocumentTitles => ("document titles", false),
            Kind::LinkedTitles => ("titles of documents given by URL or file ID", false),
            Kind::Audio => ("recordings", false),
            Kind::ProviderBlocks => ("blocks in the provider's own form", false),
            Kind::Tools => ("tool definitions", false),
            Kind::Prefix => ("the code before the cursor", true),
            Kind::Suffix => ("the code after the cursor", true),
        }
    }

    /// Returns `true` if a declaration of this kind also covers the other kind. For example,
    /// omitting images also omits their media types.
    pub fn covers(self, other: Kind) -> bool {
        let more: &[Kind] = match self {
            Kind::Images => &[Kind::ImageUrls, Kind::ResultImages, Kind::MediaTypes],
            Kind::Documents => &[
                Kind::PdfDocuments,
                Kind::OtherDocuments,
                Kind::DocumentText,
                Kind::DocumentUrls,
                Kind::DocumentFiles,
                Kind::DocumentTitles,
                Kind::LinkedTitles,
                Kind::MediaTypes,
            ],
            Kind::Thinking => &[
                Kind::UnknownThinking,
                Kind::Signatures,
                Kind::RedactedThinking,
            ],
            Kind::ToolCalls => &[Kind::ToolArguments, Kind::CallIds],
            Kind::ToolResults => &[
                Kind::ResultNames,
                Kind::ErrorMarks,
                Kind::ResultImages,
                Kind::CallIds,
            ],
            _ => &[],
        };
        self == other || more.contains(&other)
    }

    /// Returns `true` if only some models and servers accept this kind, so users should know about
    /// its loss.
    pub(crate) fn is_optional(self) -> bool {
        matches!(
            self,
            Kind::Thinking
                | Kind::UnknownThinking
                | Kind::Signatures
                | Kind::RedactedThinking
                | Kind::ResultNames
                | Kind::MediaTypes
                | Kind::OtherDocuments
                | Kind::DocumentUrls
                | Kind::DocumentFiles
                | Kind::DocumentTitles
                | Kind::LinkedTitles
                | Kind::Audio
        )
    }

    fn bit(self) -> u64 {
        1 << self as u8
    }
}

/// A set of kinds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct KindSet(u64);

impl KindSet {
    pub(crate) fn add(&mut self, kind: Kind) {
        self.0 |= kind.bit();
    }

    pub(crate) fn has(self, kind: Kind) -> bool {
        self.0 & kind.bit() != 0
    }

    pub(crate) fn and(self, other: KindSet) -> KindSet {
        KindSet(self.0 | other.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_kinds() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_name(kind.name()), Some(kind));
        }
    }
}
