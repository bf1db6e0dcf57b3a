//! Determines how a request relates to the previous one in a conversation.

use foldhash::HashSet;

use super::piece::{Piece, Share};
use super::sent::{Sent, fixed};

/// The way a request continues the previous one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Relation {
    /// The history is the same.
    Same,
    /// Messages were added at the end of the history.
    Grown,
    /// The history is only the beginning of the previous one.
    Earlier,
    /// The history differs somewhere, but the conversation continues.
    Changed,
    /// A summary replaced the history.
    Compacted,
}

/// Returns the number of pieces at the beginning that two requests have in common.
pub(super) fn common(old: &[Piece], new: &[Piece]) -> usize {
    old.iter()
        .zip(new)
        .take_while(|(old, new)| old.hash == new.hash)
        .count()
}

/// Returns the relation of a request to the last one in a conversation; `None` if it does not
/// continue the conversation, because it is a fork or unrelated.
pub(super) fn relation(old: &[Piece], sent: &Sent) -> Option<Relation> {
    let shared = common(old, &sent.pieces);
    let (was, now) = (&old[fixed(old)..], sent.history());
    if sent.is_compacted || is_summary(old, sent) {
        return Some(Relation::Compacted);
    }
    let of_history = common(was, now);
    let is_same_prompt = shared >= fixed(old).max(sent.fixed()) && fixed(old) == sent.fixed();
    let grown = match (of_history == was.len(), of_history == now.len()) {
        (true, true) => Relation::Same,
        (true, false) => Relation::Grown,
        (false, true) => Relation::Earlier,
        (false, false) => return goes_on(was, now, of_history).then_some(Relation::Changed),
    };
    Some(if is_same_prompt {
        grown
    } else {
        Relation::Changed
    })
}

/// Returns `true` if two histories that differ somewhere belong to the same conversation: they have
/// a later message in common, or the differing messages are similar.
fn goes_on(was: &[Piece], now: &[Piece], from: usize) -> bool {
    let behind: HashSet<u64> = was[from..]
        .iter()
        .filter(|piece| piece.tokens >= LEAST_TOKENS)
        .map(|piece| piece.hash)
        .collect();
    now[from..].iter().any(|piece| behind.contains(&piece.hash))
        || is_rewritten(&was[from], &now[from])
}

/// The minimum number of tokens in a message that can identify a conversation.
const LEAST_TOKENS: u64 = 16;

/// Returns `true` if a piece is a new version of an older one, with the same role and most of its
/// text.
fn is_rewritten(old: &Piece, new: &Piece) -> bool {
    if old.loose == new.loose {
        return true;
    }
    let (Some(a), Some(b)) = (&old.text, &new.text) else {
        return false;
    };
    old.label == new.label && is_alike(a, b)
}

/// Returns `true` if two strings have more than half of their content in common, at the beginning
/// and the end.
pub(super) fn is_alike(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let start = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    let end = a[start..]
        .iter()
        .rev()
        .zip(b[start..].iter().rev())
        .take_while(|(x, y)| x == y)
        .count();
    // Quotes, member names, and the role occur in every message; a string alone has only quotes.
    let [begin, finish] = if a.starts_with(b"\"") && b.starts_with(b"\"") {
        [1, 1]
    } else {
        [FRAME, FRAME_END]
    };
    let frame = begin.min(start) + finish.min(end);
    (start + end).saturating_sub(frame) * 2 > a.len().max(b.len()).saturating_sub(begin + finish)
}

/// The number of JSON bytes before the content of every message: `{"role":"user","content":"`.
const FRAME: usize = 26;
const FRAME_END: usize = 2;

/// Returns `true` if a request begins with a summary of a longer history.
fn is_summary(old: &[Piece], sent: &Sent) -> bool {
    let (was, now) = (&old[fixed(old)..], sent.history());
    let same = common(was, now);
    now.len() < was.len() && (same..now.len().min(same + 2)).any(|at| says_summary(sent, at))
}

/// Returns `true` if a message appears to be a summary of the conversation so far.
pub(super) fn says_summary(sent: &Sent, at: usize) -> bool {
    let Some(piece) = sent
        .history()
        .get(at)
        .filter(|piece| piece.share == Share::History)
    else {
        return false;
    };
    if piece.tokens < LEAST_TOKENS {
        return false;
    }
    let value = sent.value(sent.fixed() + at);
    value.is_some_and(|value| {
        let text = value.to_string();
        let head = &text[..text.floor_char_boundary(HEAD)];
        SUMMARIES.iter().any(|words| head.contains(words))
    })
}

/// The number of bytes at the beginning of a message that are searched for the phrases of a
/// summary.
const HEAD: usize = 4000;

/// Phrases that introduce a summary that replaces the history. The first three are from Claude
/// Code, Codex CLI (`openai/codex`, `codex-rs/core/templates/compact/summary_prefix.md`), and
/// Gemini CLI (`google-gemini/gemini-cli`, the prompt for its compression); the others are in
/// common use.
const SUMMARIES: [&str; 8] = [
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem and produced a summary",
    "<state_snapshot>",
    "<conversation_summary>",
    "<summary>",
    "ummary of the conversation so far",
    "is a summary of the conversation",
    "is a summary of our conversation",
];

#[cfg(test)]
mod tests {
    use super::is_alike;

    #[test]
    fn texts_are_alike_by_their_own_content() {
        let message = |text: &str| format!("{{\"role\":\"user\",\"content\":\"{text}\"}}");
        let quoted = |text: &str| format!("\"{text}\"");
        for (a, b, expected) in [
            ("Be terse. It is 10:00.", "Be terse. It is 10:07.", true),
            ("Be terse.", "Be brief.", false),
            ("Be terse.", "Answer in French.", false),
        ] {
            assert_eq!(is_alike(&message(a), &message(b)), expected, "{a}");
            assert_eq!(is_alike(&quoted(a), &quoted(b)), expected, "{a}");
        }
    }
}
