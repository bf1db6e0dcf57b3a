//! The reasons why an answer may be incomplete.

/// The reason an answer is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CutOff {
    /// The request was cancelled.
    Cancelled,
    /// The connection or the provider failed.
    Broken,
    /// The model or a provider filter refused to answer.
    Refused,
    /// The output-token limit or the context limit was reached.
    MaxTokens,
    /// The provider paused its turn and did not continue it.
    Paused,
    /// The host's time limit for the whole run was exceeded.
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

    /// Returns the stable name.
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

    /// Returns the reason with this name.
    pub fn from_name(name: &str) -> Option<CutOff> {
        CutOff::ALL.into_iter().find(|reason| reason.name() == name)
    }
}
