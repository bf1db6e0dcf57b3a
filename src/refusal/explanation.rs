//! An explanation of a refusal: the sentence found in an answer, and the location in a body that
//! the sentence refers to.

use serde_json::Value;

use super::data::{Provider, Reason, Refusal, Unruled};
use super::place;
use crate::json::Pointer;

/// A sentence of a provider, found in a string.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explanation {
    /// The provider that uses the sentence.
    pub provider: &'static Provider,
    /// The matching sentence.
    pub refusal: &'static Refusal,
    /// The sentence as it appears in the text, on one line.
    pub said: String,
    /// The name and the content of each hole in the sentence.
    pub holes: Vec<(String, String)>,
    /// The path into the body that the sentence or the answer names, for example
    /// `messages.3.content.0`.
    pub path: Option<String>,
    /// `true` if the path comes from a field of the answer (`param`, `loc`) rather than from its
    /// words.
    pub is_field: bool,
    /// The part of the text that the explanation is based on.
    pub basis: Basis,
    /// The HTTP status: the one in the text if there is exactly one, or else the one that comes
    /// with the sentence, if known.
    pub status: Option<i64>,
    /// The part of the envelope that the text itself contains.
    pub stated: Stated,
    /// `true` if the text itself identifies the provider. Otherwise, another server may have copied
    /// the sentence.
    pub is_named: bool,
    /// Other providers that use the same sentence.
    pub also: Vec<&'static Provider>,
    /// The name of a hole that the text contains as empty quotes, for example `model`.
    pub empty: Option<String>,
    /// The number of letters that match.
    pub(super) letters: usize,
}

/// The part of a string that an explanation is based on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Basis {
    /// The sentence itself.
    Sentence,
    /// Phrases that show what an unknown sentence is about.
    Words,
    /// Only the status, type or code, because no sentence in the text is known.
    Code,
    /// A similar sentence: the text is cut short, or the provider changed some words.
    Near,
}

impl Basis {
    /// Returns the name used in JSON reports.
    pub fn name(self) -> &'static str {
        match self {
            Basis::Sentence => "sentence",
            Basis::Words => "words",
            Basis::Code => "code",
            Basis::Near => "near",
        }
    }
}

/// The rules about fields that a model or a server rejects.
const MODEL_PARAMETER: &str = "protocol/model-parameter";
const UNKNOWN_FIELD: &str = "schema/unknown-field";

/// The minimum number of characters that two overlapping sentences share.
const LEAST_SHARED: usize = 20;

/// The minimum number of bytes by which a sentence goes beyond a shorter one.
const FEWEST_BEYOND: usize = 16;

/// The part of an envelope that a text contains. The other parts are those that usually accompany
/// the sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stated {
    /// Not even the status.
    Nothing,
    /// The status, but not the type or code.
    Status,
    /// The status, and the type or code.
    StatusAndKind,
}

impl Stated {
    pub(super) fn of(explanation: &Explanation, text: &str, status: Option<u16>) -> Stated {
        let has_kind = explanation.kind().is_some_and(|kind| text.contains(kind));
        match (status, has_kind) {
            (None, _) => Stated::Nothing,
            (Some(_), false) => Stated::Status,
            (Some(_), true) => Stated::StatusAndKind,
        }
    }
}

impl Explanation {
    /// Returns the type or the code that comes with the sentence, unless the text has a different
    /// status.
    pub fn kind(&self) -> Option<&'static str> {
        let is_other = self.refusal.status.is_some() && self.status != self.refusal.status;
        self.refusal.kind.as_deref().filter(|_| !is_other)
    }

    pub(super) fn of(
        provider: &'static Provider,
        refusal: &'static Refusal,
        said: String,
        basis: Basis,
    ) -> Explanation {
        Explanation {
            provider,
            refusal,
            said,
            holes: Vec::new(),
            path: None,
            is_field: false,
            basis,
            status: refusal.status,
            stated: Stated::Nothing,
            letters: refusal.pattern.letters(),
            is_named: false,
            also: Vec::new(),
            empty: None,
        }
    }

    /// Returns `true` if the sentence has a variable part, which may show where the mistake is.
    pub(super) fn says_where(&self) -> bool {
        self.path.is_some() || !self.holes.is_empty()
    }

    /// Returns `true` if another explanation contains the sentence or its beginning. Also returns
    /// `true` if the other explanation has the same sentence, but keeps the beginning of a path, or
    /// spaces at line breaks, that are missing here. Words around a message contain it, but do not
    /// replace it.
    pub(super) fn is_part_of(&self, other: &Explanation) -> bool {
        if other.refusal.wraps && !self.refusal.wraps {
            return false;
        }
        let paths = self.path.as_deref().zip(other.path.as_deref());
        let is_same = std::ptr::eq(self.refusal, other.refusal);
        let is_tail = paths.is_some_and(|(tail, whole)| whole.ends_with(tail))
            && self.names_besides_path().eq(other.names_besides_path());
        is_same && (is_tail || without_spaces(&other.said).contains(&without_spaces(&self.said)))
            || other.said.contains(&self.said)
            || self.begins_within(other)
    }

    /// Returns `true` if the sentence begins like the other explanation's and goes on with several
    /// words, which the other one leaves out.
    pub(super) fn goes_beyond(&self, shorter: &Explanation) -> bool {
        let (longer, shorter) = (without_spaces(&self.said), without_spaces(&shorter.said));
        longer.starts_with(&shorter) && longer.len() >= shorter.len() + FEWEST_BEYOND
    }

    /// Returns the contents of the holes other than the path.
    fn names_besides_path(&self) -> impl Iterator<Item = &str> {
        let holes = self.holes.iter().filter(|(name, _)| name != "path");
        holes.map(|(_, value)| value.as_str())
    }

    /// Returns `true` if the other sentence ends with the beginning of this one, so that the two
    /// overlap in the text. Returns `false` if this sentence begins with the whole other sentence,
    /// and thus contains it.
    fn begins_within(&self, other: &Explanation) -> bool {
        if self.said.starts_with(&other.said) {
            return false;
        }
        self.said
            .char_indices()
            .skip(LEAST_SHARED)
            .any(|(end, _)| other.said.ends_with(&self.said[..end]))
    }

    /// Returns `true` if this is the same sentence, but contains spaces, from line breaks, that the
    /// other explanation's sentence lacks.
    pub(super) fn is_less_joined_than(&self, other: &Explanation) -> bool {
        std::ptr::eq(self.refusal, other.refusal)
            && self.path == other.path
            && self.said.len() > other.said.len()
            && without_spaces(&self.said) == without_spaces(&other.said)
    }

    /// Returns `true` if a rule predicts the refusal.
    pub(super) fn has_rule(&self) -> bool {
        matches!(self.refusal.reason, Reason::Rule(_))
    }

    /// Returns `true` if the message does not say what is wrong.
    pub(super) fn is_unsaid(&self) -> bool {
        self.refusal.reason == Reason::Unruled(Unruled::Unsaid)
    }

    pub(super) fn named_if(self, is_named: bool) -> Explanation {
        Explanation { is_named, ..self }
    }

    /// Returns the field that the sentence rejects: the first word that it quotes.
    fn rejected_field(&self) -> Option<&str> {
        let rejects_field = [MODEL_PARAMETER, UNKNOWN_FIELD]
            .iter()
            .any(|code| self.refusal.reason == Reason::Rule((*code).to_owned()));
        let quoted = self.said.split('\'').nth(1).filter(|_| rejects_field)?;
        let is_field = quoted.contains('_')
            && quoted
                .chars()
                .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
        is_field.then_some(quoted)
    }

    /// Returns the item that the sentence names but the body lacks: the path to a list element, a
    /// field that the sentence rejects, or the ID of a call or an item. In that case, the sentence
    /// is about a different request.
    pub fn outside(&self, body: &Value) -> Option<String> {
        let path = self.path.as_deref();
        if let Some(path) = path.filter(|path| place::is_outside(body, path)) {
            return Some(path.to_owned());
        }
        if let Some(field) = self
            .rejected_field()
            .filter(|it| !place::has_member(body, it))
        {
            return Some(field.to_owned());
        }
        let mut ids = self.words_of(&["id", "ids"]).filter(|id| is_id(id));
        let first = ids.clone().next()?;
        let is_inside = ids.any(|id| place::of_value(body, id).is_some());
        (!is_inside).then(|| first.to_owned())
    }

    /// Returns the location in a body that the sentence names: by its path, or by an ID or a tool
    /// name that the sentence quotes, if that is more exact. An ID refers to the item that has it.
    pub fn place(&self, body: &Value) -> Option<Pointer> {
        let by_path = self
            .path
            .as_deref()
            .and_then(|path| place::of_path(body, path));
        let mut ids = self.words_of(&["id", "ids"]);
        let by_name = ids
            .find_map(|word| place::of_value(body, word)?.parent())
            .or_else(|| self.place_in_tool(body));
        match (by_path, by_name) {
            (Some(path), Some(name)) if is_inside(&name, &path) => Some(name),
            (path, name) => path.or(name),
        }
    }

    /// Returns the location of the tool that the sentence names or, if the sentence also names a
    /// place in the tool's schema (`In context=('properties', 'a')`), the location of that place.
    fn place_in_tool(&self, body: &Value) -> Option<Pointer> {
        let mut names = self.words_of(&["tool"]);
        let tool = names.find_map(|name| place::of_tool(body, name))?;
        let place = self.holes.iter().find(|(name, _)| name == "place");
        Some(place.map_or(tool.clone(), |(_, place)| {
            place::in_schema(body, &tool, place)
        }))
    }

    /// Returns the words in the holes with these names.
    fn words_of(&self, holes: &'static [&str]) -> impl Iterator<Item = &str> + Clone {
        self.holes
            .iter()
            .filter(move |(name, _)| holes.contains(&name.as_str()))
            .flat_map(|(_, value)| place::words(value))
    }
}

/// Returns `true` if a location is inside another one, or the same.
fn is_inside(inner: &Pointer, outer: &Pointer) -> bool {
    let rest = inner.as_str().strip_prefix(outer.as_str());
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns `true` for an identifier that a program generated, such as `toolu_01Abc`. Words and short
/// numbers in a sentence may mean anything.
fn is_id(word: &str) -> bool {
    word.len() >= 8 && word.contains(|c: char| c.is_ascii_digit()) && word.contains(['_', '-'])
}

fn without_spaces(text: &str) -> String {
    text.split_whitespace().collect()
}
