//! Identifies the change at the first location where two requests differ.

use std::collections::BTreeSet;

use serde_json::Value;

use super::piece::{Piece, Share};
use super::sent::{Sent, fixed};
use super::story::{Break, Change};
use crate::check::prefix::{Part, difference};
use crate::json::Pointer;

/// A change, with its location and the text around it.
#[derive(Debug, Clone)]
pub(super) struct Changed {
    pub(super) change: Change,
    pub(super) at: String,
    pub(super) byte: Option<usize>,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
}

impl Changed {
    pub(super) fn named(change: Change, at: String) -> Changed {
        Changed {
            change,
            at,
            byte: None,
            before: None,
            after: None,
        }
    }
}

impl Break {
    /// Returns `true` if this break and a change are of the same kind and at the same location.
    /// Changes in messages are compared without their locations, because messages move as the
    /// history grows.
    pub(super) fn is_like(&self, changed: &Changed) -> bool {
        match (&self.change, &changed.change) {
            (Change::Removed(_), Change::Removed(_))
            | (Change::Inserted(_), Change::Inserted(_))
            | (Change::Model { .. }, Change::Model { .. })
            | (Change::Thinking, Change::Thinking) => true,
            (one, other) => one == other && self.at == changed.at,
        }
    }
}

/// Determines the change from the first piece that differs.
pub(super) fn find(old: &[Piece], sent: &Sent, shared: usize) -> Changed {
    let new = &sent.pieces;
    let (was, now) = (old.get(shared), new.get(shared));
    let share = [was, now]
        .into_iter()
        .flatten()
        .map(|piece| piece.share)
        .min()
        .unwrap_or(Share::History);
    match share {
        Share::Tools => of_tools(old, sent, shared),
        Share::System => match (was, now) {
            (Some(was), Some(now)) if was.share == now.share => {
                within(was, sent, shared, Change::System)
            }
            (one, other) => {
                let at = one
                    .filter(|piece| piece.share == Share::System)
                    .or(other)
                    .map(Piece::place);
                Changed::named(Change::System, at.unwrap_or_default())
            }
        },
        Share::History | Share::Results => of_history(old, sent, shared),
    }
}

fn tools(pieces: &[Piece]) -> Vec<&Piece> {
    pieces
        .iter()
        .filter(|piece| piece.share == Share::Tools)
        .collect()
}

fn of_tools(old: &[Piece], sent: &Sent, shared: usize) -> Changed {
    let (was, now) = (tools(old), tools(&sent.pieces));
    let (old_names, new_names) = (names(&was), names(&now));
    let at = "tools".to_owned();
    if old_names != new_names {
        let added = new_names.difference(&old_names).cloned().collect();
        let removed = old_names.difference(&new_names).cloned().collect();
        return Changed::named(Change::ToolSet { added, removed }, at);
    }
    let same = |a: &&Piece| now.iter().any(|b| a.hash == b.hash);
    if was.iter().all(same) {
        return Changed::named(Change::ToolOrder, at);
    }
    let Some(first) = was.iter().find(|tool| !same(tool)) else {
        return Changed::named(Change::ToolOrder, at);
    };
    let name = first.label.to_string();
    let twin = sent
        .pieces
        .iter()
        .position(|tool| tool.share == Share::Tools && tool.label == first.label);
    within(first, sent, twin.unwrap_or(shared), Change::Tool(name))
}

fn names(tools: &[&Piece]) -> BTreeSet<String> {
    tools
        .iter()
        .map(|tool| tool.label.to_string())
        .collect::<BTreeSet<_>>()
}

fn of_history(old: &[Piece], sent: &Sent, shared: usize) -> Changed {
    let new = &sent.pieces;
    let (was, now) = (&old[shared.min(old.len())..], &new[shared.min(new.len())..]);
    let at = now
        .first()
        .or(was.first())
        .map(Piece::place)
        .unwrap_or_default();
    let (Some(first_old), Some(first_new)) = (was.first(), now.first()) else {
        return match was.is_empty() {
            true => Changed::named(Change::Inserted(now.len()), at),
            false => Changed::named(Change::Removed(was.len()), at),
        };
    };
    // The new request contains a later message of the old request, so the messages before that
    // message were removed.
    if let Some(gone) = was.iter().position(|piece| piece.hash == first_new.hash) {
        return Changed::named(Change::Removed(gone), at);
    }
    if let Some(more) = now.iter().position(|piece| piece.hash == first_old.hash) {
        return Changed::named(Change::Inserted(more), at);
    }
    let change = if first_new.label == first_old.label && first_new.signed < first_old.signed {
        Change::Thinking
    } else {
        Change::Message
    };
    within(first_old, sent, shared, change)
}

/// Determines the first difference within a piece that exists in both requests.
fn within(was: &Piece, sent: &Sent, at: usize, change: Change) -> Changed {
    let now = &sent.pieces[at];
    if was.loose == now.loose {
        return Changed::named(Change::KeyOrder, now.place());
    }
    let place = now.place();
    let (Some(older), Some(newer)) = (was.value(), sent.value(at)) else {
        return Changed::named(change, place);
    };
    let (older, newer) = (unwrapped(&older), unwrapped(&newer));
    let part = |value| Part {
        member: now.member,
        index: now.index,
        value,
    };
    // The last message may be extended. An additional part then changes its content from a single
    // text to a list.
    let end = Value::from("");
    let found = difference(&[part(older), part(&end)], &[part(newer), part(&end)]);
    let Some(found) = found else {
        return Changed::named(change, place);
    };
    let excerpt =
        |value: Option<&Value>| value.map(|value| excerpt(value, found.from.unwrap_or(0)));
    let (before, after) = (excerpt(found.older), excerpt(found.newer));
    let texts = found
        .older
        .and_then(Value::as_str)
        .zip(found.newer.and_then(Value::as_str))
        .zip(found.from);
    let kind = texts.and_then(|((older, newer), from)| volatile(older, newer, from));
    let change = match (kind, change) {
        (Some(kind), Change::System | Change::Message | Change::Tool(_)) => kind,
        (_, change) => change,
    };
    Changed {
        change,
        at: spelled(&found.pointer),
        byte: found.from,
        before,
        after,
    }
}

/// Returns the text in a list that consists of one text block; returns any other value unchanged.
fn unwrapped(value: &Value) -> &Value {
    match value.as_array().map(Vec::as_slice) {
        Some([block]) => block.get("text").unwrap_or(value),
        _ => value,
    }
}

/// The number of bytes that are shown before and after the first difference.
const BEFORE: usize = 32;
const BEHIND: usize = 48;

fn excerpt(value: &Value, from: usize) -> String {
    let written = value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned);
    let masked = crate::secret::masked(&written);
    // Masking preserves the length, because each byte of a key is replaced with one character.
    let text: &str = if masked.len() == written.len() {
        &masked
    } else {
        &written
    };
    let start = floor(text, from.saturating_sub(BEFORE));
    let end = floor(text, (from + BEHIND).min(text.len()));
    format!(
        "{}{}{}",
        dots(start > 0),
        &text[start.min(end)..end],
        dots(end < text.len())
    )
}

fn dots(is_cut: bool) -> &'static str {
    if is_cut { "…" } else { "" }
}

/// Returns the last character boundary at or before an offset.
fn floor(text: &str, offset: usize) -> usize {
    (0..=offset.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

/// Converts `/messages/3/content/0/text` to `messages[3].content[0].text`.
fn spelled(pointer: &Pointer) -> String {
    let mut place = String::new();
    for token in pointer.tokens() {
        match token.parse::<usize>() {
            Ok(index) => place.push_str(&format!("[{index}]")),
            Err(_) if place.is_empty() => place.push_str(&token),
            Err(_) => place.push_str(&format!(".{token}")),
        }
    }
    place
}

/// Returns the kind of a value that changes on its own: a date, a time or an ID. Returns `None` for
/// other values.
fn volatile(older: &str, newer: &str, from: usize) -> Option<Change> {
    let around = [older, newer].map(|text| Around::of(text, from));
    if around.iter().all(Around::is_time) {
        return Some(Change::Time);
    }
    around.iter().all(Around::is_id).then_some(Change::Id)
}

/// The text around the first difference between two strings.
struct Around<'t> {
    /// The text nearby, on the same line.
    near: &'t str,
    /// The word that contains the difference.
    word: &'t str,
}

/// The number of bytes before and after a difference that are searched for a date.
const NEAR: usize = 28;

impl<'t> Around<'t> {
    fn of(text: &'t str, from: usize) -> Around<'t> {
        let from = floor(text, from);
        let (start, end) = (
            floor(text, from.saturating_sub(NEAR)),
            floor(text, from + NEAR),
        );
        let start = text[start..from]
            .rfind('\n')
            .map_or(start, |at| start + at + 1);
        let end = text[from..end].find('\n').map_or(end, |at| from + at);
        let is_of_word =
            |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '.' | '+' | '/' | '_');
        let word_start = text[..from].rfind(|c| !is_of_word(c)).map_or(0, |at| {
            at + text[at..].chars().next().map_or(1, char::len_utf8)
        });
        let word_end = text[from..]
            .find(|c| !is_of_word(c))
            .map_or(text.len(), |at| from + at);
        Around {
            near: &text[start..end],
            word: &text[word_start..word_end],
        }
    }

    /// Returns `true` for a date, a time of day, a weekday or month with a number, or seconds since
    /// 1970.
    fn is_time(&self) -> bool {
        let word = self.word.trim_end_matches('.');
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let is_stamp =
            digits == word.len() && matches!(word.len(), 10 | 13) && word.starts_with(['1', '2']);
        let is_written = digits >= 3
            && word.contains([':', '-', '/'])
            && word
                .bytes()
                .all(|b| !b.is_ascii_alphabetic() || b"TZ".contains(&b));
        let named = DAYS_AND_MONTHS.iter().any(|name| self.near.contains(name))
            && self.near.bytes().any(|b| b.is_ascii_digit());
        is_stamp
            || is_written
            || named && (digits > 0 || DAYS_AND_MONTHS.iter().any(|name| word.starts_with(name)))
    }

    /// Returns `true` for a UUID, a long hexadecimal or decimal number, or an ID with a prefix.
    fn is_id(&self) -> bool {
        let word = self.word;
        let digits = word.bytes().filter(u8::is_ascii_digit).count();
        let is_hex = word.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-');
        word.len() >= 12 && digits >= 3 && (is_hex || !word.contains(['/', ':']))
    }
}

const DAYS_AND_MONTHS: [&str; 19] = [
    "Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", "Jan", "Feb", "Mar", "Apr", "May", "Jun",
    "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// Returns `true` if the same agent probably sent both requests, because parts of their tools or
/// system prompts are identical.
pub(super) fn is_same_agent(old: &[Piece], sent: &Sent) -> bool {
    let (was, now) = (&old[..fixed(old)], &sent.pieces[..sent.fixed()]);
    if was.is_empty() || now.is_empty() {
        // Tools or a prompt may be added later, if the conversation has been the same so far.
        let shared = super::relation::common(&old[fixed(old)..], sent.history());
        let has_answer = sent.history()[..shared].iter().any(super::piece::is_answer);
        return has_answer || is_small(was) && is_small(now);
    }
    if is_same_prompt(was, now) {
        return true;
    }
    let hashes: BTreeSet<u64> = was
        .iter()
        .filter(|piece| piece.tokens >= LEAST_TOKENS)
        .map(|piece| piece.hash)
        .collect();
    if now.iter().any(|piece| hashes.contains(&piece.hash)) {
        return true;
    }
    let of_system =
        |pieces: &'_ [Piece]| pieces.iter().position(|piece| piece.share == Share::System);
    match (of_system(was), of_system(now)) {
        (Some(old), Some(new)) => {
            let written = sent.value(new).map(|value| value.to_string());
            was[old]
                .text
                .as_deref()
                .zip(written.as_deref())
                .is_some_and(|(a, b)| super::relation::is_alike(a, b))
        }
        _ => false,
    }
}

/// The minimum number of tokens that a tool or a part of a prompt must have to identify an agent.
const LEAST_TOKENS: u64 = 8;

/// Returns `true` if two requests have the same system prompt, however short it is.
fn is_same_prompt(was: &[Piece], now: &[Piece]) -> bool {
    let prompt = hashes_of_prompt(was);
    !prompt.is_empty() && prompt == hashes_of_prompt(now)
}

fn hashes_of_prompt(pieces: &[Piece]) -> Vec<u64> {
    let pieces = pieces.iter().filter(|piece| piece.share == Share::System);
    pieces.map(|piece| piece.hash).collect()
}

/// Returns `true` if the prompt and tools are so small that they may be added or dropped during a
/// conversation.
fn is_small(pieces: &[Piece]) -> bool {
    pieces.iter().map(|piece| piece.tokens).sum::<u64>() < 64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(older: &str, newer: &str) -> Option<Change> {
        let from = older
            .bytes()
            .zip(newer.bytes())
            .take_while(|(a, b)| a == b)
            .count();
        volatile(older, newer, from)
    }

    #[test]
    fn dates_and_ids_are_known() {
        for (older, newer) in [
            ("Today is 2026-11-24.", "Today is 2026-11-25."),
            ("It is Tue Nov 24 2026", "It is Wed Nov 25 2026"),
            ("now: 10:15:02Z", "now: 10:15:09Z"),
            ("Date: November 24, 2026", "Date: November 25, 2026"),
            ("t=1764065000", "t=1764065123"),
            (
                "Current time 2026-11-25T10:15:02.123Z ok",
                "Current time 2026-11-25T10:16:02.123Z ok",
            ),
        ] {
            assert_eq!(kind(older, newer), Some(Change::Time), "{older}");
        }
        assert_eq!(
            kind("id 0b8a3d6e-1111-4c2f", "id 9c8a3d6e-2222-4c2f"),
            Some(Change::Id)
        );
        for (older, newer) in [
            ("The file is Rust.", "The file is Python."),
            ("at most 20 lines", "at most 40 lines"),
        ] {
            assert_eq!(kind(older, newer), None, "{older}");
        }
    }
}
