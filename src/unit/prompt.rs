//! The system prompt of a request.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::Arc;

/// The whole system prompt of a request. Hashed once: it is part of the key of everything that reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemPrompt {
    hash: u64,
    text: Arc<str>,
}

impl SystemPrompt {
    pub(super) fn new(text: String) -> SystemPrompt {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        SystemPrompt { hash: hasher.finish(), text: text.into() }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl Deref for SystemPrompt {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl Hash for SystemPrompt {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}
