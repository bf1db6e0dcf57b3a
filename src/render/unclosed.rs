//! Finds tags that are never closed, and tags that close nothing.

use std::ops::Range;

use minijinja::machinery::{self, Span, Token};
use minijinja::syntax::SyntaxConfig;

/// A mismatch between the tags in a string.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unbalanced {
    /// A tag without its end tag.
    Open(OpenTag),
    /// An end tag, with the tag that must be closed first.
    WrongEnd { open: OpenTag },
    /// An end tag where nothing is open.
    NothingOpen,
    /// `{{` or `{%` without its closing delimiter.
    Delimiter {
        range: Range<usize>,
        close: &'static str,
    },
}

/// A tag that needs an end tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OpenTag {
    /// `for`, `if`, …
    pub(super) name: String,
    /// The range from `{%` to `%}`.
    pub(super) range: Range<usize>,
}

/// The tags that have an end tag.
const WITH_END: [&str; 9] = [
    "autoescape",
    "block",
    "call",
    "filter",
    "for",
    "if",
    "macro",
    "set",
    "with",
];

/// Finds the first mismatch up to byte `end`. At the end of the text, a tag that is still open is a
/// mismatch.
pub(super) fn find(text: &str, end: usize) -> Option<Unbalanced> {
    let mut open: Vec<OpenTag> = Vec::new();
    let mut tag: Option<Tag> = None;
    for token in machinery::tokenize(text, false, SyntaxConfig::default()) {
        let Ok((token, span)) = token else { break };
        let range = range(span);
        match token {
            Token::BlockStart => tag = Some(Tag::new(range.start, "%}")),
            Token::VariableStart => tag = Some(Tag::new(range.start, "}}")),
            Token::VariableEnd => tag = None,
            Token::BlockEnd => {
                let tag = tag.take()?;
                if let Some(found) = tag.close(range.end, &mut open) {
                    return Some(found);
                }
                if range.end > end {
                    return None;
                }
            }
            token => {
                if let Some(tag) = &mut tag {
                    tag.read(&token);
                }
            }
        }
    }
    match tag {
        Some(tag) => Some(Unbalanced::Delimiter {
            range: tag.start..tag.start + "{%".len(),
            close: tag.delimiter,
        }),
        None => open.pop().map(Unbalanced::Open),
    }
}

/// Finds the quote of a string that is never closed, in text that does not parse. Either the text
/// ends in the string, or the string contains the end of its tag and the lines up to another quote.
pub(super) fn string(text: &str) -> Option<usize> {
    let mut end = 0;
    for token in machinery::tokenize(text, false, SyntaxConfig::default()) {
        let Ok((token, span)) = token else {
            let rest = text.get(end..)?.trim_start();
            return rest
                .starts_with(['"', '\''])
                .then(|| text.len() - rest.len());
        };
        let range = range(span);
        let is_string = matches!(token, Token::Str(_) | Token::String(_));
        let inner = text.get(range.clone()).filter(|_| is_string);
        if inner.is_some_and(goes_beyond_its_tag) {
            return Some(range.start);
        }
        end = range.end;
    }
    None
}

/// Returns `true` if a string contains the end of a tag and a line break after it.
fn goes_beyond_its_tag(string: &str) -> bool {
    let end = ["}}", "%}"].iter().find_map(|end| string.find(end));
    end.is_some_and(|at| string[at..].contains('\n'))
}

/// Finds the tag of a `raw` block that is never closed.
pub(super) fn raw(text: &str) -> Option<Range<usize>> {
    let (start, tag) = ["{%- raw", "{% raw", "{%+ raw", "{%raw"]
        .iter()
        .filter_map(|tag| Some((text.rfind(tag)?, *tag)))
        .max_by_key(|(start, _)| *start)?;
    let end = text[start..].find("%}").map_or(tag.len(), |at| at + 2);
    Some(start..start + end)
}

fn range(span: Span) -> Range<usize> {
    span.start_offset as usize..span.end_offset as usize
}

/// A tag that is being read.
struct Tag {
    start: usize,
    /// The characters that close the tag.
    delimiter: &'static str,
    name: Option<String>,
    /// `true` if a value is assigned: `{% set x = 1 %}` has no end tag.
    assigns: bool,
}

impl Tag {
    fn new(start: usize, delimiter: &'static str) -> Tag {
        Tag {
            start,
            delimiter,
            name: None,
            assigns: false,
        }
    }

    fn read(&mut self, token: &Token<'_>) {
        match (token, &self.name) {
            (Token::Ident(name), None) => self.name = Some((*name).to_owned()),
            (Token::Assign, _) => self.assigns = true,
            (_, None) => self.name = Some(String::new()),
            _ => {}
        }
    }

    /// Adds the tag, which ends at a byte, to the open ones; returns the mismatch, if any.
    fn close(self, end: usize, open: &mut Vec<OpenTag>) -> Option<Unbalanced> {
        let name = self.name.unwrap_or_default();
        match name
            .strip_prefix("end")
            .filter(|ended| WITH_END.contains(ended))
        {
            Some(ended) => match open.pop() {
                Some(last) if last.name == ended => None,
                Some(last) => Some(Unbalanced::WrongEnd { open: last }),
                None => Some(Unbalanced::NothingOpen),
            },
            None => {
                let has_end = WITH_END.contains(&name.as_str()) && !(name == "set" && self.assigns);
                open.extend(has_end.then_some(OpenTag {
                    name,
                    range: self.start..end,
                }));
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Option<Unbalanced> {
        find(text, text.len())
    }

    #[test]
    fn the_innermost_open_tag_is_found() {
        let open = |name: &str, range| {
            Some(Unbalanced::Open(OpenTag {
                name: name.into(),
                range,
            }))
        };
        assert_eq!(found("{% if a %}{% for x in y %}z"), open("for", 10..26));
        assert_eq!(found("{% set a = 1 %}{% set b %}"), open("set", 15..26));
        assert_eq!(
            found("{% for x in y %}{% if x %}{% endif %}{% endfor %}"),
            None
        );
        assert_eq!(found("{% raw %}{% if %}{% endraw %}"), None);
    }

    #[test]
    fn ends_that_end_something_else_are_found() {
        let open = OpenTag {
            name: "for".into(),
            range: 10..26,
        };
        assert_eq!(
            found("{% if a %}{% for x in y %}{% endif %}"),
            Some(Unbalanced::WrongEnd { open })
        );
        assert_eq!(
            found("{% if a %}{% endif %}{% endif %}"),
            Some(Unbalanced::NothingOpen)
        );
    }

    #[test]
    fn strings_without_end_are_found() {
        assert_eq!(string("{{ f(\"abc) }}\n{\"role\": \"user\"}"), Some(5));
        assert_eq!(string("{{ f('abc) }}"), Some(5));
        assert_eq!(string("{{ f('a }} b') + }}\n"), None);
        assert_eq!(string("{{ f(a + }}\n{\"role\": 1}"), None);
        assert_eq!(raw("a {%- raw %}b"), Some(2..12));
        assert_eq!(raw("a {% if b %}"), None);
    }

    #[test]
    fn delimiters_without_end_are_found() {
        assert_eq!(
            found("a {{ b"),
            Some(Unbalanced::Delimiter {
                range: 2..4,
                close: "}}"
            })
        );
        assert_eq!(
            found("a {% if b"),
            Some(Unbalanced::Delimiter {
                range: 2..4,
                close: "%}"
            })
        );
    }
}
