//! Detects whether a template examines the system prompt instead of just passing it on. A
//! placeholder represents the prompt. If the template examines the placeholder, the output depends
//! on the prompt, so there is no hole into which every prompt fits.

use memchr::memmem;
use minijinja::Value;

use super::super::tracked::Tracked;
use super::watch::Watch;

/// A watch that detects the examination of a string.
#[derive(Debug)]
pub(in super::super) struct Hole<'h> {
    placeholder: &'h memmem::Finder<'h>,
    was_looked_at: bool,
}

impl<'h> Hole<'h> {
    /// Returns a watch for values that contain the placeholder.
    pub(in super::super) fn new(placeholder: &'h memmem::Finder<'h>) -> Hole<'h> {
        Hole {
            placeholder,
            was_looked_at: false,
        }
    }

    /// Returns `true` if a value that contains the placeholder was examined.
    pub(in super::super) fn was_looked_at(&self) -> bool {
        self.was_looked_at
    }
}

impl Watch for Hole<'_> {
    fn looked_at(&mut self, value: &Tracked) {
        self.was_looked_at |= holds(&value.value, self.placeholder, 0);
    }
}

/// Returns `true` if a value, or a value inside it, is a string that contains `text`.
fn holds(value: &Value, text: &memmem::Finder<'_>, depth: usize) -> bool {
    if let Some(found) = value.as_str() {
        return text.find(found.as_bytes()).is_some();
    }
    // The value nests more deeply than data is allowed to.
    if depth > crate::json::MAX_DEPTH {
        return true;
    }
    let Some(object) = value.as_object() else {
        return false;
    };
    match object.try_iter_pairs() {
        Some(mut pairs) => pairs
            .any(|(key, member)| holds(&key, text, depth + 1) || holds(&member, text, depth + 1)),
        None => object
            .try_iter()
            .is_some_and(|mut elements| elements.any(|it| holds(&it, text, depth + 1))),
    }
}
