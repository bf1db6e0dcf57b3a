//! Common mistakes that the parser would report with an obscure message, or at the wrong location.

use std::ops::Range;

use minijinja::machinery::{self, Token};
use minijinja::syntax::SyntaxConfig;

/// A mistake that is recognised from the text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Slip {
    pub(super) range: Range<usize>,
    pub(super) message: &'static str,
    pub(super) help: &'static str,
}

/// Returns the known mistake that made a template fail to parse at byte `at`, if any.
pub(super) fn find(text: &str, at: usize) -> Option<Slip> {
    conflict(text)
        .or_else(|| comment(text, at))
        .or_else(|| operator(text, at))
        .or_else(|| within_tag(text, at))
}

/// The markers that git writes around the sides of a conflict.
const CONFLICT_MARKS: [&str; 3] = ["<<<<<<< ", ">>>>>>> ", "||||||| "];

fn conflict(text: &str) -> Option<Slip> {
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if let Some(mark) = CONFLICT_MARKS.iter().find(|mark| line.starts_with(**mark)) {
            let range = start..start + mark.trim_end().len();
            let (message, help) = (
                "a merge conflict was left in the template",
                "keep the lines of one side, and remove the conflict markers",
            );
            return Some(Slip {
                range,
                message,
                help,
            });
        }
        start += line.len();
    }
    None
}

/// Operators of other languages, with those of templates.
const OPERATORS: [(&str, &str, &str); 8] = [
    (
        "===",
        "`===` is not an operator here",
        "to compare, write `==`",
    ),
    (
        "!==",
        "`!==` is not an operator here",
        "to compare, write `!=`",
    ),
    ("&&", "`&&` is not an operator here", "write `and`"),
    ("||", "`||` is not an operator here", "write `or`"),
    (
        "??",
        "`??` is not an operator here",
        "write `value | default(other)`",
    ),
    (
        "?",
        "`?` is not an operator here",
        "write `a if condition else b`",
    ),
    ("!", "`!` is not an operator here", "write `not value`"),
    (
        "=",
        "`=` sets a value, and does not compare",
        "to compare, write `==`",
    ),
];

/// Recognises an operator of another language around the byte at which the parser stopped, which may
/// be in its middle.
fn operator(text: &str, at: usize) -> Option<Slip> {
    OPERATORS.iter().find_map(|(written, message, help)| {
        let starts = (0..written.len()).filter_map(|before| at.checked_sub(before));
        let mut found = starts.filter(|start| {
            text.get(*start..)
                .is_some_and(|rest| rest.starts_with(written))
        });
        let start = found.next()?;
        Some(Slip {
            range: start..start + written.len(),
            message,
            help,
        })
    })
}

/// Recognises `{#` without `#}`.
fn comment(text: &str, at: usize) -> Option<Slip> {
    let start = text[..text.floor_char_boundary(at.min(text.len()))].rfind("{#")?;
    (!text[start..].contains("#}")).then_some(Slip {
        range: start..start + 2,
        message: "this comment is never closed: `#}` is missing",
        help: "write `#}` after it",
    })
}

/// A tag that is being read.
#[derive(Default)]
struct Tag {
    is_block: bool,
    /// The open parentheses.
    open: Vec<Range<usize>>,
    /// The number of open braces.
    braces: usize,
    /// `{{` inside the tag.
    inner: Option<Range<usize>>,
}

/// Recognises a mistake in the tag where the parser stopped. Between parentheses, the tokenizer
/// reads `}}` as two braces.
fn within_tag(text: &str, at: usize) -> Option<Slip> {
    let mut tag = Tag::default();
    for (token, span) in
        machinery::tokenize(text, false, SyntaxConfig::default()).map_while(Result::ok)
    {
        let range = span.start_offset as usize..span.end_offset as usize;
        let is_stray = matches!(token, Token::BraceClose) && tag.braces == 0;
        match token {
            Token::BlockStart => {
                tag = Tag {
                    is_block: true,
                    ..Tag::default()
                }
            }
            Token::VariableStart => tag = Tag::default(),
            Token::ParenOpen => tag.open.push(range.clone()),
            Token::ParenClose => drop(tag.open.pop()),
            Token::BraceClose => tag.braces = tag.braces.saturating_sub(1),
            Token::BraceOpen => {
                if text[range.start..].starts_with("{{") {
                    tag.inner.get_or_insert(range.start..range.start + 2);
                }
                tag.braces += 1;
            }
            _ => {}
        }
        if is_stray || range.start >= at {
            return tag.slip(is_stray);
        }
    }
    tag.slip(true)
}

impl Tag {
    /// Returns the mistake in the tag; `is_at_end` is `true` if the text ends here.
    fn slip(mut self, is_at_end: bool) -> Option<Slip> {
        if let Some(range) = self.inner {
            let help = match self.is_block {
                true => "a tag contains the expression without braces: write `{% if value %}`",
                false => "write the expression without braces: `{{ tojson(value) }}`",
            };
            return Some(Slip {
                range,
                message: "`{{` is inside a tag",
                help,
            });
        }
        self.open.pop().filter(|_| is_at_end).map(|range| Slip {
            range,
            message: "this `(` is never closed",
            help: "write `)` after the last argument",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text at the mistake, and its message.
    fn found(text: &str) -> Option<(String, &'static str)> {
        let error = machinery::parse(text, "", SyntaxConfig::default()).err()?;
        let at = error.range().map_or(text.len(), |range| range.start);
        find(text, at).map(|slip| (text[slip.range].to_owned(), slip.message))
    }

    #[test]
    fn operators_of_other_languages_are_recognised() {
        let told = |text: &str| found(text).map(|(at, _)| at);
        for (text, operator) in [
            ("{% if a = 'b' %}{% endif %}", "="),
            ("{% if a === 'b' %}{% endif %}", "==="),
            ("{% if a !== 'b' %}{% endif %}", "!=="),
            ("{% if a && b %}{% endif %}", "&&"),
            ("{% if a || b %}{% endif %}", "||"),
            ("{% if !a %}{% endif %}", "!"),
            ("{{ a ? b : c }}", "?"),
            ("{{ a ?? b }}", "??"),
        ] {
            assert_eq!(told(text).as_deref(), Some(operator), "{text}");
        }
        for text in ["{{ a @ b }}", "{{ a == }}", "{{ a != }}", "{{ a | }}"] {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn slips_are_told_where_they_were_made() {
        let told = |text: &str| found(text).unwrap_or_else(|| panic!("{text}"));
        assert_eq!(told("{{ tojson(x }}").0, "(");
        assert_eq!(
            told("{{ tojson((x) }} {{ y }}"),
            ("(".to_owned(), "this `(` is never closed")
        );
        assert_eq!(
            told("{% if {{ x }} %}{% endif %}"),
            ("{{".to_owned(), "`{{` is inside a tag")
        );
        assert_eq!(told("a {# b\n{{ c }}").0, "{#");
        let conflict =
            "{% for x in y %}\n<<<<<<< HEAD\n{% endfor %}\n=======\n{% endfor %}\n>>>>>>> b\n";
        assert_eq!(
            told(conflict),
            (
                "<<<<<<<".to_owned(),
                "a merge conflict was left in the template"
            )
        );
        assert_eq!(found("{% if x %}{{ y | }}{% endif %}"), None);
        assert_eq!(found("{{ {'a': {'b': 1}} }}"), None);
    }
}
