//! The yes-or-no properties that all models in a family share.

/// A property in which models with the same wire format differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Property {
    /// The last message may have the role `assistant`.
    Prefill,
    /// Messages with the role `system` may occur within the conversation.
    SystemMessages,
    /// A user message may directly follow tool results.
    UserAfterResults,
    /// User and assistant messages must alternate.
    AlternatingTurns,
    /// A message with tool results may contain other content after the results.
    MixedResults,
    /// Call IDs must consist of nine letters or digits.
    ShortCallIds,
    /// Calls in the current turn must have signatures.
    SignedCalls,
    /// Images that the model generated must have signatures.
    SignedImages,
    /// `tool_choice` may specify functions even if all tools are built-in.
    BuiltinChoice,
    /// The model thinks unless the request disables this.
    ThinksByDefault,
    /// `tool_choice` may require a call while thinking is enabled.
    ForcedCalls,
    /// Thinking blocks are bound to the messages that precede them.
    BoundThinking,
    /// The model accepts images.
    Images,
    /// The model accepts audio.
    Audio,
    /// Images and documents may be given by URL.
    MediaUrls,
    /// Tool results may contain images.
    ResultImages,
    /// Text from the user may have citations.
    UserCitations,
    /// The requested maximum length of the answer is included in the context window.
    AnswerCounts,
    /// The weights are published, so a gateway may route the model to a server that renders the
    /// history with the model's own template.
    OpenWeights,
}

impl Property {
    /// Every property.
    pub const ALL: [Property; 19] = [
        Property::Prefill,
        Property::SystemMessages,
        Property::UserAfterResults,
        Property::AlternatingTurns,
        Property::MixedResults,
        Property::ShortCallIds,
        Property::SignedCalls,
        Property::SignedImages,
        Property::BuiltinChoice,
        Property::ThinksByDefault,
        Property::ForcedCalls,
        Property::BoundThinking,
        Property::Images,
        Property::Audio,
        Property::MediaUrls,
        Property::ResultImages,
        Property::UserCitations,
        Property::AnswerCounts,
        Property::OpenWeights,
    ];

    /// Returns the property's key in `model-families.toml`.
    pub const fn key(self) -> &'static str {
        match self {
            Property::Prefill => "prefill",
            Property::SystemMessages => "system_messages",
            Property::UserAfterResults => "user_after_results",
            Property::AlternatingTurns => "alternating_turns",
            Property::MixedResults => "mixed_results",
            Property::ShortCallIds => "short_call_ids",
            Property::SignedCalls => "signed_calls",
            Property::SignedImages => "signed_images",
            Property::BuiltinChoice => "builtin_choice",
            Property::ThinksByDefault => "thinks_by_default",
            Property::ForcedCalls => "forced_calls",
            Property::BoundThinking => "bound_thinking",
            Property::Images => "images",
            Property::Audio => "audio",
            Property::MediaUrls => "media_urls",
            Property::ResultImages => "result_images",
            Property::UserCitations => "user_citations",
            Property::AnswerCounts => "answer_counts",
            Property::OpenWeights => "open_weights",
        }
    }

    /// Returns a phrase for a model that has the property if `is` is `true`, or else for a model
    /// that lacks it.
    pub(super) fn told(self, is: bool) -> &'static str {
        let (yes, no) = match self {
            Property::Prefill => (
                "continues a final assistant turn",
                "rejects a final assistant turn",
            ),
            Property::SystemMessages => (
                "accepts `system` messages within the conversation",
                "rejects `system` messages within the conversation",
            ),
            Property::UserAfterResults => (
                "accepts a user message after results",
                "rejects a user message after results",
            ),
            Property::AlternatingTurns => (
                "requires user and assistant messages to alternate",
                "accepts several messages with the same role in a row",
            ),
            Property::MixedResults => (
                "accepts text and images after results in the same message",
                "rejects content after results in the same message",
            ),
            Property::ShortCallIds => (
                "requires call IDs of nine letters or digits",
                "accepts call IDs of any length",
            ),
            Property::SignedCalls => (
                "requires the signatures of calls in the current turn",
                "accepts calls without signatures",
            ),
            Property::SignedImages => (
                "requires the signatures of its images",
                "accepts its images without signatures",
            ),
            Property::BuiltinChoice => (
                "accepts a `tool_choice` of functions even if the request has only built-in tools",
                "rejects a `tool_choice` of functions if the request has only built-in tools",
            ),
            Property::ThinksByDefault => ("thinks by default", "thinks only on request"),
            Property::ForcedCalls => (
                "accepts a forced tool call while thinking is enabled",
                "rejects a forced tool call while thinking is enabled",
            ),
            Property::BoundThinking => (
                "thinking is bound to the content before it",
                "thinking is not bound to other content",
            ),
            Property::Images => ("accepts images", "does not accept images"),
            Property::Audio => ("accepts audio", "does not accept audio"),
            Property::MediaUrls => (
                "fetches images and documents from URLs",
                "does not fetch images or documents from URLs",
            ),
            Property::UserCitations => (
                "accepts citations on user text",
                "rejects citations on user text",
            ),
            Property::ResultImages => (
                "accepts images in tool results",
                "does not accept images in tool results",
            ),
            Property::AnswerCounts => (
                "rejects a request if it and its maximum answer together exceed the context window",
                "accepts a request even if it and its maximum answer together exceed the context window",
            ),
            Property::OpenWeights => ("has open weights", "does not have open weights"),
        };
        if is { yes } else { no }
    }
}
