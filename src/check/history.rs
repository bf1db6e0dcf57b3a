//! The history in a request body, in one form for all wire formats. The rules about calls, results
//! and turns use this form.
//!
//! Input: the members of a body. Output: [`Entry`]s in order, each with its [`Part`]s, which borrow
//! from the body. This module neither checks nor drops anything: a value of an unknown kind becomes
//! a part of an unknown kind.

mod anthropic;
mod chat;
mod google;
mod responses;

use serde_json::Value;

use crate::provider::{TurnForm, WireFormat};

/// The turns of a body, oldest first.
#[derive(Debug, Default)]
pub(crate) struct History<'b> {
    /// The messages, contents or items, depending on the format.
    pub(crate) entries: Vec<Entry<'b>>,
}

/// A message, a content or an item.
#[derive(Debug)]
pub(crate) struct Entry<'b> {
    /// The author's role.
    pub(crate) role: Role,
    /// The entry's value in the body.
    pub(crate) value: &'b Value,
    /// The parts of the entry's content.
    pub(crate) parts: Vec<Part<'b>>,
}

/// The role of an author, independent of a format's names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// Instructions: `system` or `developer`.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// A tool.
    Tool,
    /// An unknown or missing role.
    Other,
}

/// A piece of an entry.
#[derive(Debug)]
pub(crate) struct Part<'b> {
    /// The kind of part.
    pub(crate) kind: Kind<'b>,
    /// The part's value in the body.
    pub(crate) value: &'b Value,
}

/// The kinds of parts.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind<'b> {
    /// Text.
    Text(&'b str),
    /// A call to a tool that the client runs.
    Call(Call<'b>),
    /// The result of a call to a tool that the client runs.
    Result(Outcome<'b>),
    /// Reasoning of the model.
    Thinking,
    /// An image, a document, audio or video.
    Media,
    /// A part of any other type; contains the type's name.
    Other(&'b str),
}

/// A call to a tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Call<'b> {
    /// The ID that the call's result refers to; formats without IDs have none.
    pub(crate) id: Option<&'b str>,
    /// The name of the member that contains the ID.
    pub(crate) id_key: &'static str,
    /// The object that contains the ID.
    pub(crate) identified: &'b Value,
    /// The tool name.
    pub(crate) name: Option<&'b str>,
    /// The call's arguments: text in some formats, an object in others.
    pub(crate) arguments: Option<&'b Value>,
}

/// The result of a call.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outcome<'b> {
    /// The ID of the call.
    pub(crate) id: Option<&'b str>,
    /// The name of the member that contains the ID.
    pub(crate) id_key: &'static str,
    /// The object that contains the ID.
    pub(crate) identified: &'b Value,
    /// The tool name, in formats that repeat it.
    pub(crate) name: Option<&'b str>,
    /// `true` if the result reports an error.
    pub(crate) is_error: bool,
    /// `true` if the result has no content.
    pub(crate) is_empty: bool,
}

impl<'b> History<'b> {
    /// Reads the history of a body; `member` returns a member of the body by name.
    pub(crate) fn read(
        wire: WireFormat,
        member: impl Fn(&'static str) -> Option<&'b Value>,
    ) -> History<'b> {
        let Some(name) = member_of(wire) else {
            return History::default();
        };
        let value = member(name);
        let entries = match wire.facts().turns {
            TurnForm::Blocks => anthropic::read(value),
            TurnForm::Messages => chat::read(value),
            TurnForm::Items => responses::read(value),
            TurnForm::Contents => google::read(value),
            TurnForm::None => Vec::new(),
        };
        History { entries }
    }

    /// Returns all parts, oldest first, each with the index of its entry.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (usize, &Part<'b>)> {
        self.entries
            .iter()
            .enumerate()
            .flat_map(|(at, entry)| entry.parts.iter().map(move |part| (at, part)))
    }

    /// Returns all calls, each with the index of its entry.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (usize, &Part<'b>, Call<'b>)> {
        self.parts()
            .filter_map(|(at, part)| part.call().map(|call| (at, part, call)))
    }

    /// Returns all results, each with the index of its entry.
    pub(crate) fn results(&self) -> impl Iterator<Item = (usize, &Part<'b>, Outcome<'b>)> {
        self.parts()
            .filter_map(|(at, part)| part.outcome().map(|outcome| (at, part, outcome)))
    }
}

/// Returns the name of the member that contains the history; `None` in formats without one.
pub(crate) fn member_of(wire: WireFormat) -> Option<&'static str> {
    wire.facts().history
}

impl<'b> Part<'b> {
    /// Returns the call if the part is a call.
    pub(crate) fn call(&self) -> Option<Call<'b>> {
        match self.kind {
            Kind::Call(call) => Some(call),
            _ => None,
        }
    }

    /// Returns the result if the part is a result.
    pub(crate) fn outcome(&self) -> Option<Outcome<'b>> {
        match self.kind {
            Kind::Result(outcome) => Some(outcome),
            _ => None,
        }
    }

    /// Returns `true` if the part is text.
    pub(crate) fn is_text(&self) -> bool {
        matches!(self.kind, Kind::Text(_))
    }

    /// Returns `true` if the part is reasoning.
    pub(crate) fn is_thinking(&self) -> bool {
        matches!(self.kind, Kind::Thinking)
    }
}

impl Role {
    fn named(name: Option<&str>) -> Role {
        match name {
            Some("system" | "developer") => Role::System,
            Some("user") => Role::User,
            Some("assistant" | "model") => Role::Assistant,
            Some("tool" | "function") => Role::Tool,
            _ => Role::Other,
        }
    }
}

/// Returns a member of an object if its value is a string.
pub(crate) fn text_of<'b>(object: &'b Value, name: &str) -> Option<&'b str> {
    object.get(name)?.as_str()
}

/// Returns the elements in a list; an empty slice for any other value.
pub(crate) fn elements(value: Option<&Value>) -> &[Value] {
    value
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// Returns `true` if a value has no content: neither text nor parts.
fn is_blank(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.is_empty(),
        Some(Value::Array(parts)) => parts
            .iter()
            .all(|part| text_of(part, "text").is_some_and(str::is_empty)),
        Some(Value::Object(members)) => members.is_empty(),
        Some(_) => false,
    }
}
