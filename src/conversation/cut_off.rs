//! Why answers are not complete.

/// Why an answer is not complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CutOff {
    /// Somebody cancelled the request.
    Cancelled,
    /// The connection or the provider failed.
    Broken,
    /// The model or a filter of the provider refused.
    Refused,
    /// The limit of output tokens, or of the context, was reached.
    MaxTokens,
    /// The provider paused its turn, and did not go on with it.
    Paused,
    /// The time that the host gives a whole run was over.
    TimedOut,
}

impl CutOff {
    /// All reasons.
    pub const ALL: [CutOff; 6] = [
        CutOff::Cancelled,
        CutOff::Broken,
        CutOff::Refused,
        CutOff::MaxTokens,
        CutOff::Paused,
        CutOff::TimedOut,
    ];

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            CutOff::Cancelled => "cancelled",
            CutOff::Broken => "broken",
            CutOff::Refused => "refused",
            CutOff::MaxTokens => "max_tokens",
            CutOff::Paused => "paused",
            CutOff::TimedOut => "timed_out",
        }
    }

    /// The reason with a name.
    pub fn from_name(name: &str) -> Option<CutOff> {
        CutOff::ALL.into_iter().find(|reason| reason.name() == name)
    }
}
