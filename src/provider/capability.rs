//! Optional features that profiles can ask for.

/// A feature that a profile can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// Tool definitions and calls.
    Tools,
    /// Reasoning.
    Thinking,
}

impl Capability {
    /// Returns the profile key that asks for the feature.
    pub fn key(self) -> &'static str {
        match self {
            Capability::Tools => "enable_tools",
            Capability::Thinking => "enable_thinking",
        }
    }

    /// Returns the feature's name in plain words.
    pub fn name(self) -> &'static str {
        match self {
            Capability::Tools => "tools",
            Capability::Thinking => "thinking",
        }
    }
}
