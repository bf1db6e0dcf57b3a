//! Converts a real request body to a context.
//!
//! Input: a body and its wire format. Output: an [`Imported`], with the text of a context file and
//! each value in the body that a context cannot contain. `pick` finds the body in a file. Agent
//! settings (model, sampling, limits) are not part of a conversation. The system prompt becomes
//! layers, because nothing shows which part of it belonged to an agent. This module does not use
//! profiles or write files.

mod lost;
mod media;
mod documents;
mod pairs;
mod pick;
mod prompt;
mod redact;
mod thinking;
mod own;
mod history;
mod tools;
pub(crate) mod forms;
mod write;

pub use pick::{Choice, PickError, Picked, pick};

use serde_json::Value;

use crate::check::history::{self as turns, History};
use crate::context;
use crate::conversation::{self, AttachedFile, Block, Conversation, Task};
use crate::json::Pointer;
use crate::provider::{self, WireFormat};
use crate::repo::LayerKind;
use crate::source::{SourceText, Sources};

use lost::Lost;

/// The input of an import.
#[derive(Debug, Clone, Copy)]
pub struct Request<'b> {
    /// The request body to import.
    pub body: &'b Value,
    /// The body's wire format.
    pub wire: WireFormat,
    /// The context's name.
    pub name: &'b str,
    /// `true` to replace text with text of the same length and character classes.
    pub redact: bool,
}

/// A context, and the losses of the conversion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The context file.
    pub text: String,
    /// The losses, in body order.
    pub losses: Vec<Loss>,
}

/// A value in a body that a context does not contain unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loss {
    /// The location of the value in the body.
    pub pointer: Pointer,
    /// The reason, as one lower-case phrase.
    pub why: String,
}

/// The reason a body cannot become a context, as one lower-case phrase. It is the message of the
/// finding that such a context would cause in a repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportError(String);

impl std::fmt::Display for ImportError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ImportError {}

/// Converts a body to a context. The result is read back, to ensure that no rule about contexts
/// reports it.
///
/// # Errors
///
/// Returns an error if the context would be invalid, because its name is invalid or its values are
/// nested too deeply.
pub fn import(request: &Request<'_>) -> Result<Imported, ImportError> {
    let mut lost = Lost::default();
    let mut conversation = read(request, &mut lost);
    if request.redact {
        redact::conversation(&mut conversation);
    }
    let text = write::context(request, &conversation);
    read_back(&text)?;
    Ok(Imported {
        text,
        losses: lost.placed(request.body),
    })
}

fn read<'b>(request: &Request<'b>, lost: &mut Lost<'b>) -> Conversation {
    match request.wire.facts().gap {
        Some(gap) if gap.needs_after && request.body.get(gap.after).is_none() => {
            generation(request.body, lost)
        }
        Some(gap) => completion(request.body, [gap.before, gap.after], lost),
        None => chat(request, lost),
    }
}

/// The members that contain tools; `functions` is the older name in Chat Completions.
pub(crate) const TOOLS: [&str; 2] = ["tools", "functions"];

/// The members that refer to content that is stored on a server.
const KEPT: [&str; 5] = [
    "previous_response_id",
    "conversation",
    "container",
    "cachedContent",
    "cached_content",
];

/// The reason that agent settings are left out of contexts.
const OF_AGENTS: &str = "this belongs to the agent, not to a context";

fn chat<'b>(request: &Request<'b>, lost: &mut Lost<'b>) -> Conversation {
    let Request { body, wire, .. } = *request;
    let history = History::read(wire, |name| body.get(name));
    let leading = history
        .entries
        .iter()
        .take_while(|entry| entry.role == turns::Role::System)
        .count();
    let (prompt, said) = history.entries.split_at(leading);
    let system_layers = prompt::layers(body, wire, prompt, lost);
    let tools = TOOLS
        .iter()
        .flat_map(|name| tools::read(body.get(*name), lost))
        .collect();
    let read = history::read(wire, said, lost);
    let read_members = [
        prompt::members(wire),
        &TOOLS,
        &KEPT,
        turns::member_of(wire).as_slice(),
    ]
    .concat();
    for value in KEPT
        .iter()
        .filter_map(|name| body.get(*name))
        .filter(|value| !value.is_null())
    {
        lost.tell(
            value,
            "this refers to content on the server, which the body does not contain",
        );
    }
    lost.shape(body, &[&TOOLS, turns::member_of(wire).as_slice()].concat());
    lost.rest(body, &read_members, OF_AGENTS);
    let normal = conversation::normalise(&read.messages, &conversation::NormalFormRules::default());
    for change in &normal.changes {
        if let Some(value) = read.values.get(change.message()) {
            lost.tell(
                value,
                format!("{}: contexts do not support this", change.describe()),
            );
        }
    }
    Conversation {
        task: Task::Chat(normal.history),
        tools,
        files: Vec::new(),
        system_layers,
        omit_system_prompt: true,
        bound_from: 0,
        known_prompt: None,
        is_told: false,
        known_items: Vec::new(),
    }
}

/// Reads a completion: the code around a cursor.
fn completion<'b>(
    body: &'b Value,
    [prefix, suffix]: [&'static str; 2],
    lost: &mut Lost<'b>,
) -> Conversation {
    let mut text = |name: &str| match body.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => {
            lost.tell(other, "it is not a string");
            String::new()
        }
        None => String::new(),
    };
    let task = Task::Completion {
        prefix: text(prefix),
        suffix: text(suffix),
    };
    let extra = body
        .get("input_extra")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let files = extra
        .iter()
        .filter_map(|file| attached(file, lost))
        .collect();
    lost.rest(body, &[prefix, suffix, "input_extra"], OF_AGENTS);
    Conversation {
        task,
        files,
        omit_system_prompt: true,
        ..Conversation::default()
    }
}

/// Reads a file that is sent in addition to the code, as in requests to `llama-server`.
fn attached<'b>(file: &'b Value, lost: &mut Lost<'b>) -> Option<AttachedFile> {
    let Some(content) = text_of(file, "text") else {
        lost.tell(file, "a file without text");
        return None;
    };
    let file_path = text_of(file, "filename").unwrap_or("file").into();
    lost.rest(file, &["text", "filename"], "contexts do not support this");
    Some(AttachedFile {
        file_path,
        content: content.into(),
    })
}

fn text_of<'v>(file: &'v Value, name: &str) -> Option<&'v str> {
    file.get(name).and_then(Value::as_str)
}

/// Reads an Ollama `generate` body without a suffix as one question.
fn generation<'b>(body: &'b Value, lost: &mut Lost<'b>) -> Conversation {
    let message = history::question(body, lost)
        .filter(|question| question.blocks.iter().any(Block::says_something));
    lost.rest(body, &["prompt", "system", "images"], OF_AGENTS);
    let texts: Vec<String> = body
        .get("system")
        .and_then(Value::as_str)
        .map(str::to_owned)
        .into_iter()
        .collect();
    let task = Task::Chat(Vec::from_iter(message));
    Conversation {
        task,
        system_layers: prompt::named(texts),
        omit_system_prompt: true,
        ..Conversation::default()
    }
}

/// Reads a context as a repository would, and returns the first finding as an error.
fn read_back(text: &str) -> Result<(), ImportError> {
    let source =
        SourceText::from_bytes(text.as_bytes()).map_err(|error| ImportError(error.to_string()))?;
    let file = Sources::default().add("context", source);
    let mut findings = Vec::new();
    let context = context::read(
        file,
        LayerKind::Own,
        text,
        &provider::origins([]),
        &mut findings,
    );
    // The media types of a body are kept unchanged.
    findings.retain(|finding| finding.rule != &context::rules::MEDIA_TYPE);
    match (context, findings.into_iter().next()) {
        (_, Some(finding)) => Err(ImportError(finding.message)),
        (None, None) => Err(ImportError("it is not a valid context".to_owned())),
        (Some(_), None) => Ok(()),
    }
}
