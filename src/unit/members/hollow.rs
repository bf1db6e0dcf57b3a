//! Values that differ only in the system prompt. Where possible, facts about one of these values
//! apply to all of them.
//!
//! A shared template is rendered once with an unguessable placeholder, and each body puts its
//! prompt into the holes. A template is rendered separately for each prompt if it examines the
//! placeholder, if a hole is in a key or escaped differently, if the prompt could exceed a limit,
//! or if there is a mistake next to a hole.

use std::sync::{Arc, OnceLock};

use serde_json::Value;

use super::super::prompt::{SystemPrompt, placeholder};
use super::Shared;

/// The locations of each body's system prompt in a value.
#[derive(Debug)]
pub(super) struct Holes {
    /// The number of occurrences of the prompt.
    pub(super) count: usize,
    /// The start offsets of the placeholder in the indented text.
    cuts: OnceLock<Vec<usize>>,
}

impl Holes {
    /// Finds the holes in a value; returns `None` if there are none.
    pub(super) fn of(value: &Value) -> Option<Holes> {
        let count = count(value);
        (count > 0).then(|| Holes {
            count,
            cuts: OnceLock::new(),
        })
    }
}

fn count(value: &Value) -> usize {
    match value {
        Value::String(text) => placeholder()
            .split(text)
            .map_or(0, |pieces| pieces.len() - 1),
        Value::Array(elements) => elements.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// A value with a system prompt in its holes.
#[derive(Debug, Clone)]
pub(in super::super) struct Spliced {
    shared: Arc<Shared>,
    prompt: SystemPrompt,
    /// The whole value, created on first use.
    value: OnceLock<Value>,
}

impl Spliced {
    /// Returns this body's prompt.
    pub(super) fn prompt(&self) -> &SystemPrompt {
        &self.prompt
    }

    pub(super) fn new(shared: Arc<Shared>, prompt: SystemPrompt) -> Spliced {
        Spliced {
            shared,
            prompt,
            value: OnceLock::new(),
        }
    }

    /// Returns a different value with the same prompt.
    pub(super) fn with(&self, shared: Arc<Shared>) -> Spliced {
        Spliced::new(shared, self.prompt.clone())
    }

    pub(super) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    pub(super) fn value(&self) -> &Value {
        self.value
            .get_or_init(|| filled(&self.shared.value, &self.prompt))
    }

    /// Returns an upper bound on the number of bytes that only this body uses.
    pub(super) fn weight(&self) -> usize {
        self.shared.weight + self.shared.holes() * self.prompt.len()
    }

    /// Returns the text of the value, indented as a member of a body.
    pub(super) fn pretty(&self) -> String {
        let (hollow, prompt, placeholder) = (
            self.shared.pretty(),
            self.prompt.escaped(),
            placeholder().escaped(),
        );
        let cuts = self.shared.holes.iter().flat_map(|holes| {
            holes
                .cuts
                .get_or_init(|| self::placeholder().found_escaped(hollow))
        });
        let holes = self.shared.holes();
        let mut text =
            String::with_capacity(hollow.len() + holes * prompt.len() - holes * placeholder.len());
        let mut from = 0;
        for &cut in cuts {
            text.push_str(&hollow[from..cut]);
            text.push_str(prompt);
            from = cut + placeholder.len();
        }
        text.push_str(&hollow[from..]);
        text
    }
}

/// Returns a value with the prompt in place of the placeholder.
fn filled(value: &Value, prompt: &SystemPrompt) -> Value {
    match value {
        Value::String(text) => match placeholder().split(text) {
            Some(pieces) => pieces.join(prompt.as_str()).into(),
            None => text.clone().into(),
        },
        Value::Array(elements) => elements
            .iter()
            .map(|element| filled(element, prompt))
            .collect(),
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(key, member)| (key.clone(), filled(member, prompt)))
                .collect(),
        ),
        other => other.clone(),
    }
}
