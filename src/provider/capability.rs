//! Abilities that profiles ask for.

/// Something that a profile can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Capability {
    /// Tool definitions and calls.
    Tools,
    /// Reasoning.
    Thinking,
}

impl Capability {
    /// The profile key that asks for it.
    pub fn key(self) -> &'static str {
        match self {
            Capability::Tools => "enable_tools",
            Capability::Thinking => "enable_thinking",
        }
    }

    /// The plain word.
    pub fn name(self) -> &'static str {
        match self {
            Capability::Tools => "tools",
            Capability::Thinking => "thinking",
        }
    }
}
