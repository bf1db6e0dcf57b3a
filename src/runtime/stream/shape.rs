//! The parts that an answer in a wire format may have, and how each is treated, so that nothing is
//! dropped silently.
//!
//! Input: a table from each parser, and a JSON value of an answer. Output: a warning for each part
//! that the table does not list, once per answer, and blocks for values that are kept separately
//! from the message. The parser itself interprets the parts.

use serde_json::Value;

use super::builder::AnswerBuilder;
use super::json;

/// A location in an answer, with the members that an object at that location may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    place: &'static str,
    members: &'static [Member],
    kinds: &'static [Kind],
    other_members: Others,
    other_kinds: Others,
}

/// Names of members that are treated alike.
#[derive(Debug, Clone, Copy)]
pub(super) struct Member {
    names: &'static [&'static str],
    fate: Fate,
}

/// Kinds of objects, distinguished by `type`, and the members that only these kinds have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kind {
    names: &'static [&'static str],
    members: &'static [Member],
}

/// The treatment of a member.
#[derive(Debug, Clone, Copy)]
enum Fate {
    /// Read; must be a string.
    Text,
    /// Read; must be a number.
    Number,
    /// Read; must be `true` or `false`.
    Flag,
    /// Read; may have any content.
    Any,
    /// Read; must be an object or a list of objects.
    Within(&'static Shape),
    /// Read; must be a string or a list of parts.
    Words(&'static Shape),
    /// Read by a parser that checks the members itself.
    Apart(&'static Shape),
    /// Kept unchanged in its block.
    Kept,
    /// Kept in a separate block, which is not sent back to the provider. A later value replaces an
    /// earlier one.
    Beside,
    /// Arrives in pieces, and is kept in a separate block, which is not sent back to the provider.
    BesideInPieces,
    /// Ignored; contains the reason.
    Ignored(&'static str),
    /// Ignored as long as it is one of these strings, because they carry no information.
    Always(&'static [&'static str]),
}

/// The treatment of members or kinds that a table does not list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Others {
    Warned,
    Kept,
}

impl Shape {
    /// Creates a location with exactly these members.
    pub(super) const fn new(place: &'static str, members: &'static [Member]) -> Shape {
        Shape {
            place,
            members,
            kinds: &[],
            other_members: Others::Warned,
            other_kinds: Others::Warned,
        }
    }

    /// Adds kinds of objects, distinguished by `type`.
    pub(super) const fn with_kinds(self, kinds: &'static [Kind]) -> Shape {
        Shape { kinds, ..self }
    }

    /// Keeps members that are not listed, except for flags.
    pub(super) const fn keeping_other_members(self) -> Shape {
        Shape {
            other_members: Others::Kept,
            ..self
        }
    }

    /// Keeps whole objects of kinds that are not listed.
    pub(super) const fn keeping_other_kinds(self) -> Shape {
        Shape {
            other_kinds: Others::Kept,
            ..self
        }
    }

    /// Returns `true` if the table lists a member that all kinds may have.
    pub(super) fn names(&self, name: &str) -> bool {
        self.members
            .iter()
            .any(|member| member.names.contains(&name))
    }

    /// Checks a value at this location. `kind` is the kind of an event; if it is empty, the value's
    /// own `type` is used.
    pub(super) fn look_over(&self, kind: &str, value: &Value, answer: &mut AnswerBuilder) {
        match value {
            Value::Array(values) => values
                .iter()
                .for_each(|value| self.look_over("", value, answer)),
            Value::Object(members) => {
                let Some(own) = self.members_of_kind(kind, value, answer) else {
                    return;
                };
                for (name, value) in members.iter().filter(|(_, value)| !is_nothing(value)) {
                    self.member(name, value, own, answer);
                }
            }
            value if is_nothing(value) => {}
            value => answer.not_read(&format!("`{}` is {}", self.place, json_type(value))),
        }
    }

    /// Returns the members of the value's kind; `None` if the table does not list the kind.
    fn members_of_kind(
        &self,
        kind: &str,
        value: &Value,
        answer: &mut AnswerBuilder,
    ) -> Option<&'static [Member]> {
        if self.kinds.is_empty() {
            return Some(&[]);
        }
        let kind = if kind.is_empty() {
            json::text(value, "type")
        } else {
            kind
        };
        let known = self.kinds.iter().find(|known| known.names.contains(&kind));
        if known.is_none() && self.other_kinds == Others::Warned {
            answer.not_read(&self.unknown_kind(kind));
        }
        known.map(|known| known.members)
    }

    fn unknown_kind(&self, kind: &str) -> String {
        match (self.place, kind) {
            (EVENTS, "") => "an event has no `type`".to_owned(),
            (EVENTS, kind) => format!("the event `{}` is unknown", json::name(kind)),
            (place, "") => format!("`{place}` has no `type`"),
            (place, kind) => format!("`{place}` has the unknown type `{}`", json::name(kind)),
        }
    }

    fn member(
        &self,
        name: &str,
        value: &Value,
        own: &'static [Member],
        answer: &mut AnswerBuilder,
    ) {
        let mut members = self.members.iter().chain(own);
        if let Some(known) = members.find(|member| member.names.contains(&name)) {
            return known
                .fate
                .look_over(&Place { shape: self, name }, value, answer);
        }
        let is_type = name == "type" && !self.kinds.is_empty();
        let is_kept = self.other_members == Others::Kept && !value.is_boolean();
        if !is_type && !is_kept {
            let name = json::name(name);
            answer.not_read(&format!("`{}` has the unknown member `{name}`", self.place));
        }
    }
}

/// The name of the location for events, in formats that have several kinds of events.
pub(super) const EVENTS: &str = "event";

/// A member, with the location in the answer where it occurs.
struct Place<'p> {
    shape: &'p Shape,
    name: &'p str,
}

impl Fate {
    fn look_over(self, place: &Place<'_>, value: &Value, answer: &mut AnswerBuilder) {
        let fits = match self {
            Fate::Text => value.is_string(),
            Fate::Number => value.is_number(),
            Fate::Flag => value.is_boolean(),
            Fate::Words(_) if value.is_string() => true,
            Fate::Within(inner) | Fate::Words(inner) if value.is_object() || value.is_array() => {
                inner.look_over("", value, answer);
                true
            }
            Fate::Within(_) | Fate::Words(_) => false,
            Fate::Beside => {
                answer.beside(place.name, value);
                true
            }
            Fate::BesideInPieces => {
                answer.beside_in_pieces(place.name, value);
                true
            }
            Fate::Always(known) => {
                return place.expect_one_of(known, value, answer);
            }
            Fate::Any | Fate::Apart(_) | Fate::Kept | Fate::Ignored(_) => true,
        };
        // Some servers send `false` for a missing value.
        if !fits && *value != Value::Bool(false) {
            let (name, at) = (json::name(place.name), place.shape.place);
            answer.not_read(&format!("`{name}` in `{at}` is {}", json_type(value)));
        }
    }
}

impl Place<'_> {
    fn expect_one_of(&self, known: &[&str], value: &Value, answer: &mut AnswerBuilder) {
        if !value.as_str().is_some_and(|text| known.contains(&text)) {
            let (name, at) = (json::name(self.name), self.shape.place);
            let value = json::name(
                &value
                    .as_str()
                    .map_or_else(|| value.to_string(), str::to_owned),
            );
            answer.not_read(&format!("`{name}` in `{at}` is `{value}`"));
        }
    }
}

/// Returns `true` if a value is null or empty.
pub(super) fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
}

/// Returns the name of a value's type, with its article.
fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a Boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// Lists members that are read and must be strings.
pub(super) const fn text(names: &'static [&'static str]) -> Member {
    Member {
        names,
        fate: Fate::Text,
    }
}

/// Lists members that are read and must be numbers.
pub(super) const fn number(names: &'static [&'static str]) -> Member {
    Member {
        names,
        fate: Fate::Number,
    }
}

/// Lists members that are read and must be flags.
pub(super) const fn flag(names: &'static [&'static str]) -> Member {
    Member {
        names,
        fate: Fate::Flag,
    }
}

/// Lists members that are read and may have any content.
pub(super) const fn any(names: &'static [&'static str]) -> Member {
    Member {
        names,
        fate: Fate::Any,
    }
}

/// Lists members that are read and must be objects or lists of objects.
pub(super) const fn within(names: &'static [&'static str], shape: &'static Shape) -> Member {
    Member {
        names,
        fate: Fate::Within(shape),
    }
}

/// Lists members that are read and must be strings or lists of parts.
pub(super) const fn words(names: &'static [&'static str], shape: &'static Shape) -> Member {
    Member {
        names,
        fate: Fate::Words(shape),
    }
}

/// Lists members that a parser checks itself.
pub(super) const fn apart(names: &'static [&'static str], shape: &'static Shape) -> Member {
    Member {
        names,
        fate: Fate::Apart(shape),
    }
}

/// Lists members that are kept in their block.
pub(super) const fn kept(names: &'static [&'static str]) -> Member {
    Member {
        names,
        fate: Fate::Kept,
    }
}

/// Lists members that are kept in a separate block, which is not sent back.
pub(super) const fn beside(names: &'static [&'static str]) -> Member {
    Member {
        names,
        fate: Fate::Beside,
    }
}

/// Lists members that arrive in pieces and are merged in a separate block, which is not sent back.
pub(super) const fn beside_in_pieces(names: &'static [&'static str]) -> Member {
    Member {
        names,
        fate: Fate::BesideInPieces,
    }
}

/// Lists string members that carry no information as long as they have one of these values.
pub(super) const fn always(
    names: &'static [&'static str],
    texts: &'static [&'static str],
) -> Member {
    Member {
        names,
        fate: Fate::Always(texts),
    }
}

/// Lists members that are ignored, with the reason.
pub(super) const fn ignored(names: &'static [&'static str], why: &'static str) -> Member {
    Member {
        names,
        fate: Fate::Ignored(why),
    }
}

/// Lists kinds, with the members that only these kinds have.
pub(super) const fn kind(names: &'static [&'static str], members: &'static [Member]) -> Kind {
    Kind { names, members }
}

/// A row of the documentation, which describes how the members in one location are treated.
#[derive(Debug, Default)]
struct Row {
    place: String,
    read: Vec<String>,
    kept: Vec<String>,
    ignored: Vec<String>,
    others: &'static str,
}

/// Returns the tables of a format as one Markdown table, with each location once.
pub(super) fn markdown(shape: &'static Shape) -> String {
    let mut shapes = vec![shape];
    let mut at = 0;
    while let Some(shape) = shapes.get(at).copied() {
        for inner in shape.all_members().filter_map(|member| member.fate.inner()) {
            if !shapes.iter().any(|known| std::ptr::eq(*known, inner)) {
                shapes.push(inner);
            }
        }
        at += 1;
    }
    let head = "| place | read | kept | ignored on purpose | anything else |\n| --- | --- | --- | --- | --- |\n";
    let rows = shapes.iter().flat_map(|shape| shape.rows());
    rows.fold(head.to_owned(), |text, row| text + &row.markdown())
}

impl Shape {
    fn all_members(&self) -> impl Iterator<Item = &'static Member> + use<> {
        let of_kinds = self.kinds.iter().flat_map(|kind| kind.members);
        self.members.iter().chain(of_kinds)
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        if !self.members.is_empty() || self.kinds.is_empty() {
            rows.push(Row::new(
                format!("`{}`", self.place),
                self.members,
                self.other_members,
            ));
        }
        for kind in self.kinds {
            let names = quoted(kind.names).join(", ");
            let place = format!("`{}` of type {names}", self.place);
            rows.push(Row::new(place, kind.members, self.other_members));
        }
        if !self.kinds.is_empty() {
            let place = format!("`{}` of a different type", self.place);
            rows.push(Row::new(place, &[], self.other_kinds));
        }
        rows
    }
}

impl Fate {
    fn inner(self) -> Option<&'static Shape> {
        match self {
            Fate::Within(shape) | Fate::Words(shape) | Fate::Apart(shape) => Some(shape),
            Fate::Text
            | Fate::Number
            | Fate::Flag
            | Fate::Any
            | Fate::Kept
            | Fate::Beside
            | Fate::BesideInPieces
            | Fate::Always(_)
            | Fate::Ignored(_) => None,
        }
    }
}

impl Row {
    fn new(place: String, members: &[Member], others: Others) -> Row {
        let others = match others {
            Others::Warned => "warning",
            Others::Kept => "kept",
        };
        let mut row = Row {
            place,
            others,
            ..Row::default()
        };
        members.iter().for_each(|member| row.add(*member));
        row
    }

    fn add(&mut self, member: Member) {
        let names = quoted(member.names).into_iter();
        match member.fate {
            Fate::Text
            | Fate::Number
            | Fate::Flag
            | Fate::Any
            | Fate::Within(_)
            | Fate::Words(_)
            | Fate::Apart(_) => {
                self.read.extend(names);
            }
            Fate::Kept => self.kept.extend(names),
            Fate::Beside | Fate::BesideInPieces => {
                self.kept
                    .extend(names.map(|name| format!("{name} (not sent back)")));
            }
            Fate::Always(texts) => {
                let texts = quoted(texts).join(" or ");
                self.ignored.push(format!(
                    "{}: always {texts}",
                    names.collect::<Vec<_>>().join(", ")
                ));
            }
            Fate::Ignored(why) => {
                self.ignored
                    .push(format!("{}: {why}", names.collect::<Vec<_>>().join(", ")));
            }
        }
    }

    fn markdown(&self) -> String {
        let (read, kept) = (self.read.join(", "), self.kept.join(", "));
        let ignored = self.ignored.join("; ");
        format!(
            "| {} | {read} | {kept} | {ignored} | {} |\n",
            self.place, self.others
        )
    }
}

fn quoted(names: &[&str]) -> Vec<String> {
    names
        .iter()
        .map(|name| {
            if name.is_empty() {
                "none".to_owned()
            } else {
                format!("`{name}`")
            }
        })
        .collect()
}
