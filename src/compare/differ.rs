//! Finds the differences between two bodies.

use std::collections::BTreeSet;

use serde_json::Value;

use super::align::{self, Alignment, Pair, Regrouped, align, call_partners};
use super::piece::{Content, Piece, canonical, said_by};
use super::settings::{self, Settings, settings};
use super::tools::{self, Offer, offers};
use super::{Comparison, Difference, DifferenceKind, Side, read, texts};
use crate::check::Places;
use crate::json::Pointer;
use crate::provider::WireFormat;

/// Compares two bodies.
pub(super) fn differ(first: Side<'_>, second: Side<'_>) -> Comparison {
    let (a, b) = (read::pieces(first), read::pieces(second));
    let alignment = align(&a, &b);
    let mut notes = Notes::default();
    notes.content(
        &a,
        &b,
        &alignment,
        Wires {
            first: first.wire,
            second: second.wire,
        },
    );
    let shared_tools = notes.tools(&offers(first), &offers(second));
    notes.settings(&settings(first), &settings(second));
    let regrouped: usize = alignment
        .regrouped
        .iter()
        .map(|group| group.first.len())
        .sum();
    let shared = alignment.equal.len() + alignment.moved.len() + regrouped + shared_tools;
    Comparison {
        shared,
        differences: notes.placed(first.body, second.body),
    }
}

/// A difference whose locations are still references to values.
struct Note<'b> {
    kind: DifferenceKind,
    subject: &'static str,
    message: String,
    no_place: Option<&'static str>,
    first: Option<&'b Value>,
    second: Option<&'b Value>,
}

/// The wire formats of both bodies.
#[derive(Clone, Copy)]
struct Wires {
    first: WireFormat,
    second: WireFormat,
}

impl Wires {
    /// Returns why the second format cannot express a piece of the first body, as a sentence.
    fn no_place(self, piece: &Piece<'_>) -> Option<&'static str> {
        if self.are_same() {
            None
        } else {
            piece.no_place(self.second)
        }
    }

    fn are_same(self) -> bool {
        self.first == self.second
    }
}

#[derive(Default)]
struct Notes<'b> {
    told: Vec<Note<'b>>,
}

impl<'b> Notes<'b> {
    fn tell(
        &mut self,
        kind: DifferenceKind,
        subject: &'static str,
        places: (Option<&'b Value>, Option<&'b Value>),
        message: impl Into<String>,
    ) {
        let (first, second) = places;
        self.told.push(Note {
            kind,
            subject,
            message: message.into(),
            no_place: None,
            first,
            second,
        });
    }

    fn content(&mut self, a: &[Piece<'b>], b: &[Piece<'b>], alignment: &Alignment, wires: Wires) {
        for &number in &alignment.lost {
            let piece = &a[number];
            // Only some formats can express blank text.
            let is_no_loss = piece.is_blank() && !wires.are_same();
            self.told.push(Note {
                kind: if is_no_loss {
                    DifferenceKind::Regrouped
                } else {
                    DifferenceKind::Lost
                },
                subject: piece.content.subject(),
                message: format!("{} is lost", piece.describe()),
                no_place: wires.no_place(piece),
                first: Some(piece.value),
                second: None,
            });
        }
        for &pair in &alignment.altered {
            self.altered(&a[pair.first], &b[pair.second]);
        }
        for &pair in &alignment.moved {
            self.moved(a, b, pair);
        }
        for pair in alignment
            .equal
            .iter()
            .chain(&alignment.moved)
            .chain(&alignment.altered)
        {
            self.speaker(&a[pair.first], &b[pair.second]);
        }
        self.answers(a, b, alignment);
        for group in &alignment.regrouped {
            self.regrouped(a, b, group);
        }
        for &number in &alignment.added {
            let piece = &b[number];
            let is_regrouped = piece.is_blank() && !wires.are_same();
            let kind = if is_regrouped {
                DifferenceKind::Regrouped
            } else {
                DifferenceKind::Added
            };
            self.tell(
                kind,
                piece.content.subject(),
                (None, Some(piece.value)),
                format!("{} is added", piece.describe()),
            );
        }
    }

    fn altered(&mut self, before: &Piece<'b>, after: &Piece<'b>) {
        let how = match (&before.content, &after.content) {
            (Content::Result(answer), Content::Result(other)) if answer.text == other.text => {
                match other.is_error {
                    true => "it is now marked as an error".to_owned(),
                    false => "it is no longer marked as an error".to_owned(),
                }
            }
            (Content::Result(answer), Content::Result(other)) => {
                texts::alteration(&answer.text, &other.text)
            }
            (Content::Text(text), Content::Text(other))
            | (Content::Thinking(text), Content::Thinking(other))
            | (Content::Gap(_, text), Content::Gap(_, other)) => texts::alteration(text, other),
            (Content::Call(call), Content::Call(other)) if call.name != other.name => {
                format!("it now calls `{}`", other.name)
            }
            (Content::Call(call), Content::Call(other)) => {
                format!(
                    "in its arguments, {}",
                    texts::alteration(&call.arguments, &other.arguments)
                )
            }
            _ => "its content is different".to_owned(),
        };
        let message = format!("{} is altered: {how}", before.describe());
        let subject = before.content.subject();
        self.tell(
            DifferenceKind::Altered,
            subject,
            (Some(before.value), Some(after.value)),
            message,
        );
    }

    fn moved(&mut self, a: &[Piece<'b>], b: &[Piece<'b>], pair: Pair) {
        let (piece, other) = (&a[pair.first], &b[pair.second]);
        let before = pair.second.checked_sub(1).map(|at| b[at].describe());
        let place = before.map_or_else(|| "first".to_owned(), |before| format!("after {before}"));
        let message = format!("{} has moved: it comes {place}", piece.describe());
        self.tell(
            DifferenceKind::Moved,
            piece.content.subject(),
            (Some(piece.value), Some(other.value)),
            message,
        );
    }

    fn speaker(&mut self, piece: &Piece<'b>, other: &Piece<'b>) {
        if !align::is_same_speaker(piece.role, other.role) {
            let message = format!("{} is now {}", piece.describe(), said_by(other.role));
            self.tell(
                DifferenceKind::Role,
                piece.content.subject(),
                (Some(piece.value), Some(other.value)),
                message,
            );
        }
    }

    /// Adds results that are equal in both bodies but answer a different call, or none.
    fn answers(&mut self, a: &[Piece<'b>], b: &[Piece<'b>], alignment: &Alignment) {
        let partners = call_partners(a, b, alignment);
        for pair in alignment.equal.iter().chain(&alignment.moved) {
            let (piece, other) = (&a[pair.first], &b[pair.second]);
            let (Content::Result(answer), Content::Result(answered)) =
                (&piece.content, &other.content)
            else {
                continue;
            };
            let Some(call) = answer.call else { continue };
            let how = match (partners.get(&call), answered.call) {
                (Some(partner), Some(call)) if *partner == call => continue,
                (None, _) => continue,
                (Some(_), None) => "it has no matching call",
                (Some(_), Some(_)) => "it answers a different call",
            };
            let message = format!("{} is altered: {how}", piece.describe());
            self.tell(
                DifferenceKind::Altered,
                "result",
                (Some(piece.value), Some(other.value)),
                message,
            );
        }
    }

    fn regrouped(&mut self, a: &[Piece<'b>], b: &[Piece<'b>], group: &Regrouped) {
        let (first, second) = (&a[group.first[0]], &b[group.second[0]]);
        let message = format!(
            "{} is now in {} instead of {}",
            first.describe(),
            parts(group.second.len()),
            parts(group.first.len())
        );
        self.tell(
            DifferenceKind::Regrouped,
            "text",
            (Some(first.value), Some(second.value)),
            message,
        );
    }

    /// Compares tools by name; returns the number of tools in both bodies.
    fn tools(&mut self, a: &[Offer<'b>], b: &[Offer<'b>]) -> usize {
        let mut shared = Vec::new();
        for offer in a {
            let Some(at) = b.iter().position(|other| other.name == offer.name) else {
                let message = format!("the tool `{}` is lost", offer.name);
                self.tell(
                    DifferenceKind::Lost,
                    "tool",
                    (Some(offer.value), None),
                    message,
                );
                continue;
            };
            shared.push(at);
            let told = tools::alterations(offer, &b[at]);
            if !told.is_empty() {
                let message = format!("the tool `{}` is altered: {}", offer.name, told.join("; "));
                self.tell(
                    DifferenceKind::Altered,
                    "tool",
                    (Some(offer.value), Some(b[at].value)),
                    message,
                );
            }
        }
        if !shared.is_sorted() {
            let places = (
                a.first().map(|offer| offer.value),
                b.first().map(|offer| offer.value),
            );
            self.tell(
                DifferenceKind::Moved,
                "tool",
                places,
                "the tools are in a different order",
            );
        }
        for (_, offer) in b.iter().enumerate().filter(|(at, _)| !shared.contains(at)) {
            let message = format!("the tool `{}` is added", offer.name);
            self.tell(
                DifferenceKind::Added,
                "tool",
                (None, Some(offer.value)),
                message,
            );
        }
        shared.len()
    }

    fn settings(&mut self, a: &Settings<'b>, b: &Settings<'b>) {
        let names: BTreeSet<&'static str> = a.known.keys().chain(b.known.keys()).copied().collect();
        for name in names {
            let (one, other) = (a.known.get(name), b.known.get(name));
            // A default value that is written explicitly has a location.
            let one = one.or_else(|| a.defaults.get(name));
            let other = other.or_else(|| b.defaults.get(name));
            let message = match (one, other) {
                (Some(one), Some(other)) if settings::is_same(&one.meaning, &other.meaning) => {
                    continue;
                }
                (Some(one), Some(other)) => {
                    format!(
                        "`{name}` changed from {} to {}",
                        settings::shown(&one.meaning),
                        settings::shown(&other.meaning)
                    )
                }
                (Some(one), None) => format!(
                    "`{name}` was {} and is no longer set",
                    settings::shown(&one.meaning)
                ),
                (None, Some(other)) => format!(
                    "`{name}` was not set and is {}",
                    settings::shown(&other.meaning)
                ),
                (None, None) => continue,
            };
            let places = (one.map(|it| it.value), other.map(|it| it.value));
            let kind = if places.0.is_some() {
                DifferenceKind::Setting
            } else {
                DifferenceKind::Added
            };
            self.tell(kind, name, places, message);
        }
        self.other_members(a, b);
        if a.model != b.model {
            let message = format!(
                "the model changed from {} to {}",
                model_name(a.model),
                model_name(b.model)
            );
            self.tell(DifferenceKind::Model, "model", (a.model, b.model), message);
        }
    }

    /// Compares members without a common meaning, by name.
    fn other_members(&mut self, a: &Settings<'b>, b: &Settings<'b>) {
        let names: BTreeSet<&String> = a.other.keys().chain(b.other.keys()).collect();
        for name in names {
            let (one, other) = (a.other.get(name).copied(), b.other.get(name).copied());
            let (kind, message) = match (one, other) {
                (Some(one), Some(other)) if canonical(one) == canonical(other) => continue,
                (Some(_), Some(_)) => (
                    DifferenceKind::Setting,
                    format!("`{name}` has a different value"),
                ),
                (Some(_), None) => (DifferenceKind::Setting, format!("`{name}` is not set")),
                (None, _) => (DifferenceKind::Added, format!("`{name}` was not set")),
            };
            self.tell(kind, "member", (one, other), message);
        }
    }

    /// Returns the differences with their locations, in the first body's order.
    fn placed(self, first: &Value, second: &Value) -> Vec<Difference> {
        let (mut in_first, mut in_second) = (Places::default(), Places::default());
        self.told
            .iter()
            .filter_map(|note| note.first)
            .for_each(|value| in_first.want(value));
        self.told
            .iter()
            .filter_map(|note| note.second)
            .for_each(|value| in_second.want(value));
        in_first.walk(first, &Pointer::root);
        in_second.walk(second, &Pointer::root);
        self.told
            .into_iter()
            .map(|note| Difference {
                kind: note.kind,
                subject: note.subject,
                message: note.message,
                no_place: note.no_place,
                first: note
                    .first
                    .and_then(|value| in_first.pointer(value).cloned()),
                second: note
                    .second
                    .and_then(|value| in_second.pointer(value).cloned()),
            })
            .collect()
    }
}

fn parts(count: usize) -> String {
    if count == 1 {
        "one part".to_owned()
    } else {
        format!("{count} parts")
    }
}

fn model_name(model: Option<&Value>) -> String {
    model
        .and_then(Value::as_str)
        .map_or_else(|| "not named".to_owned(), settings::shown)
}
