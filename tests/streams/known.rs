//! Content that the decoders' tables list as read has an effect: each value of each transcript is
//! altered and removed. For each member, this must change a result somewhere, or the table must
//! list it as ignored on purpose.

use std::collections::BTreeMap;

use libtest_mimic::Failed;
use reqc::runtime::stream::markdown_of;
use serde_json::{Value, json};

use super::Transcript;
use super::lost::{Pieces, is_unknown};

/// A string that replaces another one.
const OTHER: &str = "reqc_other";

/// Tests all transcripts of a table.
pub(super) fn check(transcripts: &[&Transcript]) -> Result<(), Failed> {
    let mut places: BTreeMap<String, bool> = BTreeMap::new();
    transcripts
        .iter()
        .for_each(|transcript| try_all(transcript, &mut places));
    let ignored = ignored_names(&markdown_of(transcripts[0].source.wire));
    let silent = places
        .iter()
        .filter(|(_, has_effect)| !**has_effect)
        .map(|(place, _)| place);
    let silent: Vec<&str> = silent
        .map(String::as_str)
        .filter(|path| {
            !path
                .split('/')
                .any(|name| ignored.iter().any(|known| known == name))
        })
        .collect();
    match silent.is_empty() {
        true => Ok(()),
        false => Err(format!(
            "these members change no result, and no table explains why:\n{}",
            silent.join("\n")
        )
        .into()),
    }
}

fn try_all(transcript: &Transcript, places: &mut BTreeMap<String, bool>) {
    let original = transcript.play([transcript.bytes.as_slice()]);
    // For an error, only its message is used, so its other fields can have no effect.
    if original.outcome.is_err() {
        return;
    }
    let pieces = Pieces::of(transcript);
    for (at, value) in pieces.values.iter().enumerate() {
        for pointer in leaves(value)
            .into_iter()
            .filter(|pointer| !is_unknown(value, pointer, &original))
        {
            let has_effect = places.entry(place(value, &pointer)).or_default();
            *has_effect = *has_effect
                || alterations(value, &pointer).any(|altered| {
                    let bytes = pieces.with(at, &altered.to_string());
                    transcript.play([bytes.as_slice()]) != original
                });
        }
    }
}

/// Pointers to the members with values other than objects and lists.
fn leaves(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut open = vec![(String::new(), value)];
    while let Some((pointer, value)) = open.pop() {
        match value {
            Value::Object(members) => {
                open.extend(
                    members
                        .iter()
                        .map(|(name, inner)| (format!("{pointer}/{}", escaped(name)), inner)),
                );
            }
            Value::Array(items) => {
                open.extend(
                    items
                        .iter()
                        .enumerate()
                        .map(|(index, inner)| (format!("{pointer}/{index}"), inner)),
                );
            }
            Value::Null => {}
            Value::String(text) if text.is_empty() => {}
            _ => found.push(pointer),
        }
    }
    found
}

fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// The names on the path from the nearest object with a type to the member, which is the same for
/// all transcripts.
fn place(value: &Value, pointer: &str) -> String {
    let mut parents = pointer.match_indices('/').map(|(at, _)| at);
    let nearest = parents.rfind(|at| {
        value
            .pointer(&pointer[..*at])
            .is_some_and(|it| it["type"].is_string())
    });
    let names = pointer[nearest.unwrap_or_default()..].split('/').skip(1);
    names
        .map(|name| {
            if name.parse::<usize>().is_ok() {
                "*"
            } else {
                name
            }
        })
        .collect::<Vec<_>>()
        .join("/")
}

/// The value with a different value at the pointer, and with null there.
fn alterations(value: &Value, pointer: &str) -> impl Iterator<Item = Value> {
    let other = match value.pointer(pointer).expect("it is there") {
        Value::String(_) => json!(OTHER),
        Value::Number(_) => json!(7_319),
        Value::Bool(is_so) => json!(!is_so),
        other => other.clone(),
    };
    [other, Value::Null].into_iter().map(|other| {
        let mut altered = value.clone();
        *altered.pointer_mut(pointer).expect("it is there") = other;
        altered
    })
}

/// The names that a table lists as ignored on purpose.
fn ignored_names(table: &str) -> Vec<String> {
    let columns = table.lines().filter_map(|row| row.split(" | ").nth(3));
    let reasons = columns.flat_map(|column| column.split("; "));
    let named = reasons
        .filter(|reason| reason.trim_start().starts_with('`'))
        .filter_map(|reason| reason.split_once(": "));
    named
        .flat_map(|(names, _)| {
            names
                .split(", ")
                .map(|name| name.trim().trim_matches('`').to_owned())
        })
        .collect()
}
