//! Says whether a template does more with the system prompt than to hand it on: a placeholder
//! stands for the prompt, and whoever looks at it makes a hole that is not one.

use minijinja::Value;

use super::super::tracked::Tracked;
use super::watch::Watch;

/// Watches for looks at a text.
#[derive(Debug)]
pub(in super::super) struct Hole<'h> {
    placeholder: &'h str,
    was_looked_at: bool,
}

impl<'h> Hole<'h> {
    /// Returns a watch for looks at values that hold a text.
    pub(in super::super) fn new(placeholder: &'h str) -> Hole<'h> {
        Hole {
            placeholder,
            was_looked_at: false,
        }
    }

    /// Returns whether something looked at it.
    pub(in super::super) fn was_looked_at(&self) -> bool {
        self.was_looked_at
    }
}

impl Watch for Hole<'_> {
    const FOLLOWS: bool = false;

    fn looked_at(&mut self, value: &Tracked) {
        self.was_looked_at |= holds(&value.value, self.placeholder, 0);
    }
}

/// Returns `true` if a value, or something in it, is a text with another one in it.
fn holds(value: &Value, text: &str, depth: usize) -> bool {
    if let Some(found) = value.as_str() {
        return found.contains(text);
    }
    // Deeper than data may nest.
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
