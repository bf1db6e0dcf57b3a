//! A yes-or-no property of all models in a family.

/// A respect in which models of one wire format differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Property {
    /// The last turn may be the assistant's.
    Prefill,
    /// Messages within the conversation may have the role `system`.
    SystemMessages,
    /// A user message may directly follow tool results.
    UserAfterResults,
    /// A message with tool results may contain other content after them.
    MixedResults,
    /// Call ids must be nine letters or digits.
    ShortCallIds,
    /// Calls in the current turn must carry their signatures.
    SignedCalls,
    /// A choice among functions is allowed even if all tools are built-in.
    BuiltinChoice,
    /// The model thinks unless the request disables thinking.
    ThinksByDefault,
    /// `tool_choice` may ask for a call while the model thinks.
    ForcedCalls,
    /// Thinking blocks are bound to the messages before them.
    BoundThinking,
    /// The model accepts images.
    Images,
    /// The model accepts audio.
    Audio,
    /// Images and documents may be given by URL.
    MediaUrls,
    /// Tool results may contain images.
    ResultImages,
    /// User text may carry citations.
    UserCitations,
    /// The requested maximum length of the answer counts towards the context window.
    AnswerCounts,
}

impl Property {
    /// Every property.
    pub const ALL: [Property; 16] = [
        Property::Prefill,
        Property::SystemMessages,
        Property::UserAfterResults,
        Property::MixedResults,
        Property::ShortCallIds,
        Property::SignedCalls,
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
    ];

    /// Returns the key in `model-families.toml`.
    pub const fn key(self) -> &'static str {
        match self {
            Property::Prefill => "prefill",
            Property::SystemMessages => "system_messages",
            Property::UserAfterResults => "user_after_results",
            Property::MixedResults => "mixed_results",
            Property::ShortCallIds => "short_call_ids",
            Property::SignedCalls => "signed_calls",
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
        }
    }

    /// Returns the description of a model with the property, or without it.
    pub(super) fn told(self, is: bool) -> &'static str {
        let (yes, no) = match self {
            Property::Prefill => (
                "goes on with a last turn of the assistant",
                "refuses a last turn of the assistant",
            ),
            Property::SystemMessages => (
                "takes `system` messages within the conversation",
                "refuses `system` messages within the conversation",
            ),
            Property::UserAfterResults => (
                "takes a message of the user after results",
                "refuses a message of the user after results",
            ),
            Property::MixedResults => (
                "takes text and images after results of the same message",
                "refuses what comes after results of the same message",
            ),
            Property::ShortCallIds => (
                "wants ids of calls with nine letters or digits",
                "takes ids of calls of any length",
            ),
            Property::SignedCalls => (
                "wants the signatures of calls in the current turn",
                "takes calls without signatures",
            ),
            Property::BuiltinChoice => (
                "takes a choice among functions beside built-in tools alone",
                "refuses a choice among functions beside built-in tools alone",
            ),
            Property::ThinksByDefault => (
                "thinks unless it is told not to",
                "thinks only if it is told to",
            ),
            Property::ForcedCalls => (
                "takes a forced call while it thinks",
                "refuses a forced call while it thinks",
            ),
            Property::BoundThinking => (
                "thinking is bound to what comes before it",
                "thinking is bound to nothing",
            ),
            Property::Images => ("takes images", "takes no images"),
            Property::Audio => ("takes audio", "takes no audio"),
            Property::MediaUrls => (
                "fetches images and documents by their web address",
                "fetches no images or documents by their web address",
            ),
            Property::UserCitations => (
                "takes citations on texts of the user",
                "refuses citations on texts of the user",
            ),
            Property::ResultImages => (
                "takes images in results of tools",
                "takes no images in results of tools",
            ),
            Property::AnswerCounts => (
                "refuses a request whose longest answer does not fit into the context window beside it",
                "takes a request whose longest answer does not fit into the context window beside it",
            ),
        };
        if is { yes } else { no }
    }
}
