//! Finds the replaced words in a line.

use similar::DiffTag;

use super::bounded;

/// A part of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Word {
    /// The text of the part.
    pub text: String,
    /// `true` if the other line differs in this part.
    pub is_changed: bool,
}

impl Word {
    /// Returns a whole line as a changed part.
    pub fn whole(line: &str) -> Word {
        Word {
            text: line.to_owned(),
            is_changed: true,
        }
    }
}

/// The maximum combined length in bytes of two lines that are compared word by word.
const LONGEST: usize = 40_000;

/// Returns the parts of two lines, marked as common or changed.
pub fn words(old: &str, new: &str) -> (Vec<Word>, Vec<Word>) {
    if old.len() + new.len() > LONGEST {
        return (vec![Word::whole(old)], vec![Word::whole(new)]);
    }
    let (before, after) = (split(old), split(new));
    let (mut olds, mut news): (Vec<Word>, Vec<Word>) = (Vec::new(), Vec::new());
    for operation in bounded::operations(&before, &after) {
        let (tag, from, to) = operation.as_tag_tuple();
        let is_changed = tag != DiffTag::Equal;
        push(&mut olds, before[from].concat(), is_changed);
        push(&mut news, after[to].concat(), is_changed);
    }
    (olds, news)
}

fn push(words: &mut Vec<Word>, text: String, is_changed: bool) {
    if !text.is_empty() {
        words.push(Word { text, is_changed });
    }
}

/// Splits a line into words and the characters between them.
fn split(line: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut in_word = false;
    for (at, c) in line.char_indices() {
        let continues = c.is_alphanumeric() || c == '_';
        if at > start && !(in_word && continues) {
            parts.push(&line[start..at]);
            start = at;
        }
        in_word = continues;
    }
    parts.push(&line[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs_is_marked() {
        let shown = |words: &[Word]| -> String {
            words
                .iter()
                .map(|word| {
                    if word.is_changed {
                        format!("[{}]", word.text)
                    } else {
                        word.text.clone()
                    }
                })
                .collect()
        };
        let (old, new) = words("be kind, always be brief", "be kind, never be very brief");
        assert_eq!(
            (shown(&old).as_str(), shown(&new).as_str()),
            (
                "be kind, [always] be brief",
                "be kind, [never] be [very ]brief"
            )
        );
        assert_eq!(shown(&words("", "x").1), "[x]");
    }
}
