//! No part of an answer is lost silently: each transcript is replayed with additional parts that no
//! decoder can know.
//!
//! Each object of each event gets an additional member, each `type` is replaced, an event of a new
//! kind is inserted before each event, and invalid UTF-8 is added. Each time, the new name must
//! appear in a warning or in a block, or the answer must fail.

use libtest_mimic::Failed;
use reqc::runtime::Event;
use reqc::runtime::stream::Framing;
use serde_json::{Value, json};

use super::{Played, Transcript};

/// The name of the unknown parts.
const NEW: &str = "reqc_future";

/// Members that the decoders' tables ignore on purpose with all their content, or that a later
/// event repeats.
const IGNORED: [&str; 6] = [
    "annotation",
    "annotations",
    "generation_settings",
    "promptTokensDetails",
    "safetyRatings",
    "server_tool_use",
];

/// Tests one transcript.
pub(super) fn check(transcript: &Transcript) -> Result<(), Failed> {
    let original = transcript.play([transcript.bytes.as_slice()]);
    let pieces = Pieces::of(transcript);
    for Variant { what, bytes } in
        (0..pieces.values.len()).flat_map(|at| pieces.variants(at, &original))
    {
        let altered = Transcript {
            bytes,
            ..transcript.clone()
        };
        let played = altered.play([altered.bytes.as_slice()]);
        if !is_told(&played, &original) {
            return Err(format!("{what} is lost:\n{}", super::shown(&played)).into());
        }
    }
    Ok(())
}

/// Returns whether the new part is reported or kept, or the answer fails. For a second choice,
/// which is not kept, one warning is enough.
fn is_told(played: &Played, original: &Played) -> bool {
    let is_warned =
        warnings(played).any(|message| !warnings(original).any(|known| known == message));
    let is_of_another_choice =
        warnings(played).any(|message| message.contains("the first is kept"));
    let is_kept = json!(played.answer.blocks).to_string().contains(NEW);
    is_warned || is_of_another_choice || is_kept || played.outcome.is_err()
}

fn warnings(played: &Played) -> impl Iterator<Item = &str> {
    played.events.iter().filter_map(|event| match event {
        Event::Warning(message) => Some(message.as_str()),
        _ => None,
    })
}

/// A transcript with one change.
struct Variant {
    what: String,
    bytes: Vec<u8>,
}

/// A transcript, split into its JSON values and the text between them.
pub(super) struct Pieces<'t> {
    transcript: &'t Transcript,
    /// The strings before each value, and after the last one.
    between: Vec<String>,
    pub(super) values: Vec<Value>,
}

impl Pieces<'_> {
    pub(super) fn of(transcript: &Transcript) -> Pieces<'_> {
        let text = String::from_utf8_lossy(&transcript.bytes).into_owned();
        let mut pieces = Pieces {
            transcript,
            between: vec![String::new()],
            values: Vec::new(),
        };
        if transcript.framing == Framing::Whole {
            pieces.take("", &text, "");
        } else {
            text.split_inclusive('\n')
                .for_each(|line| pieces.line(line));
        }
        pieces
    }

    fn line(&mut self, line: &str) {
        let data = line.strip_prefix("data:").map_or(line, str::trim_start);
        let head = &line[..line.len() - data.len()];
        let body = data.trim_end();
        self.take(head, body, &data[body.len()..]);
    }

    /// Adds a value with the text before and after it. Anything except an object or a list stays
    /// text.
    fn take(&mut self, head: &str, body: &str, tail: &str) {
        self.between
            .last_mut()
            .expect("there is one")
            .push_str(head);
        let value = serde_json::from_str(body)
            .ok()
            .filter(|it: &Value| it.is_object() || it.is_array());
        match value {
            Some(value) => {
                self.values.push(value);
                self.between.push(tail.to_owned());
            }
            None => self
                .between
                .last_mut()
                .expect("there is one")
                .push_str(&format!("{body}{tail}")),
        }
    }

    /// All variants of the value at an index. Objects that are already reported as unknown are not
    /// changed.
    fn variants(&self, at: usize, original: &Played) -> Vec<Variant> {
        let value = &self.values[at];
        let mut variants = Vec::new();
        for pointer in objects(value)
            .into_iter()
            .filter(|pointer| !is_unknown(value, pointer, original))
        {
            let mut more = value.clone();
            more.pointer_mut(&pointer).expect("it is there")[NEW] = "Hello.".into();
            let what = format!("a member in `{pointer}` of {value}");
            variants.push(Variant {
                what,
                bytes: self.with(at, &more.to_string()),
            });
            if value
                .pointer(&format!("{pointer}/type"))
                .is_some_and(Value::is_string)
            {
                more.pointer_mut(&pointer).expect("it is there")["type"] = NEW.into();
                let what = format!("a type in `{pointer}` of {value}");
                variants.push(Variant {
                    what,
                    bytes: self.with(at, &more.to_string()),
                });
            }
        }
        let invalid = value
            .to_string()
            .replacen('{', "{\"reqc_no_text\":\"#\",", 1);
        let bytes = broken(self.with(at, &invalid));
        variants.push(Variant {
            what: "bytes that are no text".to_owned(),
            bytes,
        });
        let event = self.event_before(at);
        variants.extend(event.map(|bytes| Variant {
            what: "an event".to_owned(),
            bytes,
        }));
        variants
    }

    /// The transcript with another string in place of one value.
    pub(super) fn with(&self, at: usize, text: &str) -> Vec<u8> {
        let mut whole = String::new();
        for (index, between) in self.between.iter().enumerate() {
            whole.push_str(between);
            match self.values.get(index) {
                Some(_) if index == at => whole.push_str(text),
                Some(value) => whole.push_str(&value.to_string()),
                None => {}
            }
        }
        whole.into_bytes()
    }

    /// The transcript with a new kind of event before a value. `None` if it is not a stream.
    fn event_before(&self, at: usize) -> Option<Vec<u8>> {
        let new = json!({"type": NEW, NEW: {"text": "Hello."}});
        let value = &self.values[at];
        match self.transcript.framing {
            Framing::Sse if self.between[at].ends_with(": ") || self.between[at].ends_with(':') => {
                Some(self.with(
                    at,
                    &format!("{new}\n\nevent: {NEW}\ndata: {new}\n\ndata: {value}"),
                ))
            }
            Framing::Lines => Some(self.with(at, &format!("{new}\n{value}"))),
            Framing::Sse | Framing::Whole => None,
        }
    }
}

/// Returns whether a warning names the type of this object, or of one that contains it.
pub(super) fn is_unknown(value: &Value, pointer: &str, original: &Played) -> bool {
    let ends = pointer
        .match_indices('/')
        .map(|(at, _)| at)
        .chain([pointer.len()]);
    ends.filter_map(|end| value.pointer(&pointer[..end])?["type"].as_str())
        .any(|kind| warnings(original).any(|message| message.contains(&format!("`{kind}`"))))
}

/// Replaces the mark with a byte that is not valid UTF-8.
fn broken(mut bytes: Vec<u8>) -> Vec<u8> {
    let mark = b"\"reqc_no_text\":\"#";
    if let Some(at) = bytes.windows(mark.len()).position(|window| window == mark) {
        bytes[at + mark.len() - 1] = 0xFF;
    }
    bytes
}

/// Pointers to the objects of a value, except inside ignored members. The item in the event that
/// begins it is left out too, because a later event repeats it.
fn objects(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), value)];
    while let Some((pointer, value)) = open.pop() {
        match value {
            Value::Object(members) => {
                let is_beginning = members
                    .get("type")
                    .is_some_and(|kind| kind == "response.output_item.added");
                found.push(pointer.clone());
                let inner = members.iter().filter(|(name, _)| {
                    !(IGNORED.contains(&name.as_str()) || is_beginning && *name == "item")
                });
                let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
                open.extend(
                    inner.map(|(name, value)| (format!("{pointer}/{}", escaped(name)), value)),
                );
            }
            Value::Array(items) => {
                open.extend(
                    items
                        .iter()
                        .enumerate()
                        .map(|(at, item)| (format!("{pointer}/{at}"), item)),
                );
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    found
}
