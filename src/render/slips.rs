//! Common mistakes that the parser would report with an obscure message, or at the wrong location.

use std::borrow::Cow;
use std::ops::Range;

use minijinja::machinery::{self, Token};
use minijinja::syntax::SyntaxConfig;

use super::functions::BODY_FUNCTIONS;
use super::prompt::PROMPT_FUNCTIONS;

/// A mistake that is recognised from the text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Slip {
    pub(super) range: Range<usize>,
    pub(super) message: Cow<'static, str>,
    pub(super) help: Cow<'static, str>,
}

impl Slip {
    fn new(
        range: Range<usize>,
        message: impl Into<Cow<'static, str>>,
        help: impl Into<Cow<'static, str>>,
    ) -> Slip {
        Slip {
            range,
            message: message.into(),
            help: help.into(),
        }
    }
}

/// Returns the known mistake, if any, that prevented a template from parsing at byte `at`.
pub(super) fn find(text: &str, at: usize) -> Option<Slip> {
    conflict(text)
        .or_else(|| comment(text, at))
        .or_else(|| quote(text, at))
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
            return Some(Slip::new(
                range,
                "a merge conflict was left in the template",
                "keep the lines of one side, and remove the conflict markers",
            ));
        }
        start += line.len();
    }
    None
}

/// Operators of other languages, each with its replacement in templates. If one operator begins
/// with another, the longer one comes first.
const OPERATORS: [(&str, &str); 15] = [
    ("===", "to compare, write `==`"),
    ("!==", "to compare, write `!=`"),
    ("&&", "write `and`"),
    ("||", "write `or`"),
    ("??", "write `value | default(other)`"),
    ("?.", "write `value.member`"),
    ("?", "write `a if condition else b`"),
    ("<>", "to compare, write `!=`"),
    ("->", "write `value.member`"),
    (
        "=>",
        "to compare, write `>=`; instead of a function, name an attribute: `list | map(attribute='name')`",
    ),
    ("+=", "write `{% set name = name + value %}`"),
    ("-=", "write `{% set name = name - value %}`"),
    ("&", "write `and`"),
    ("!", "write `not value`"),
    ("$", "write the name of the variable alone"),
];

/// Recognises an operator of a different language around the byte at which the parser stopped. The
/// byte may be in the middle of the operator.
fn operator(text: &str, at: usize) -> Option<Slip> {
    let written = |operator: &str| {
        let starts = (0..operator.len()).filter_map(|before| at.checked_sub(before));
        let mut found = starts.filter(|start| {
            text.get(*start..)
                .is_some_and(|rest| rest.starts_with(operator))
        });
        let start = found.next()?;
        Some(start..start + operator.len())
    };
    let mut foreign = OPERATORS.iter().filter_map(|(operator, help)| {
        let message = format!("`{operator}` is not an operator here");
        Some(Slip::new(written(operator)?, message, *help))
    });
    foreign.next().or_else(|| {
        Some(Slip::new(
            written("=")?,
            "`=` assigns a value, and does not compare",
            "to compare, write `==`",
        ))
    })
}

/// The quotation marks that word processors insert.
const TYPOGRAPHIC_QUOTES: [char; 6] = ['“', '”', '„', '‘', '’', '«'];

/// Recognises a typographic quotation mark.
fn quote(text: &str, at: usize) -> Option<Slip> {
    let mark = text.get(at..)?.chars().next()?;
    TYPOGRAPHIC_QUOTES.contains(&mark).then(|| {
        Slip::new(
            at..at + mark.len_utf8(),
            format!("`{mark}` does not begin a string"),
            "write `\"` or `'`",
        )
    })
}

/// Recognises `{#` without `#}`.
fn comment(text: &str, at: usize) -> Option<Slip> {
    let start = text[..text.floor_char_boundary(at.min(text.len()))].rfind("{#")?;
    (!text[start..].contains("#}")).then(|| {
        Slip::new(
            start..start + 2,
            "this comment is never closed: `#}` is missing",
            "write `#}` after it",
        )
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
    /// `true` if the tag is a `for`.
    is_for: bool,
    /// The last token, if it is a name.
    name: Option<Range<usize>>,
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
        if range.start >= at && !is_stray {
            return tag.slip(false).or_else(|| tag.slip_before(text, &token));
        }
        let name = tag.name.take();
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
            Token::Ident(word) => {
                tag.is_for |= word == "for" && name.is_none();
                tag.name = Some(range.clone());
            }
            _ => {}
        }
        if is_stray {
            return tag.slip(true);
        }
    }
    tag.slip(true)
}

impl Tag {
    /// Returns the mistake in the tag; `is_at_end` is `true` if the text ends here.
    fn slip(&self, is_at_end: bool) -> Option<Slip> {
        if let Some(range) = &self.inner {
            let help = match self.is_block {
                true => "a tag contains the expression without braces: write `{% if value %}`",
                false => "write the expression without braces: `{{ tojson(value) }}`",
            };
            return Some(Slip::new(range.clone(), "`{{` is inside a tag", help));
        }
        let open = self.open.last().filter(|_| is_at_end)?;
        Some(Slip::new(
            open.clone(),
            "this `(` is never closed",
            "write `)` after the last argument",
        ))
    }

    /// Returns the mistake before the token at which the parser stopped.
    fn slip_before(&self, text: &str, token: &Token<'_>) -> Option<Slip> {
        if let (true, [open], Token::Ident("in")) = (self.is_for, &*self.open, token) {
            return Some(Slip::new(
                open.clone(),
                "this `(` is not allowed here",
                "write `{% for item in list %}` without parentheses",
            ));
        }
        let begins_value = matches!(
            token,
            Token::Ident(_) | Token::Str(_) | Token::String(_) | Token::Int(_)
        );
        let range = self.name.clone().filter(|_| begins_value)?;
        let name = &text[range.clone()];
        let mut functions = BODY_FUNCTIONS.iter().chain(&PROMPT_FUNCTIONS);
        functions.any(|known| *known == name).then(|| {
            Slip::new(
                range,
                format!("the argument of `{name}` is not in parentheses"),
                format!("write `{name}(value)`"),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text at the mistake, and its message.
    fn found(text: &str) -> Option<(String, Cow<'static, str>)> {
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
            ("{{ a?.b }}", "?."),
            ("{{ a->b }}", "->"),
            ("{{ a | map(b => b.c) }}", "=>"),
            ("{% if a <> b %}{% endif %}", "<>"),
            ("{% set a += 1 %}", "+="),
            ("{{ $a }}", "$"),
            ("{{ “a” }}", "“"),
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
            ("(".to_owned(), "this `(` is never closed".into())
        );
        assert_eq!(
            told("{% if {{ x }} %}{% endif %}"),
            ("{{".to_owned(), "`{{` is inside a tag".into())
        );
        assert_eq!(told("a {# b\n{{ c }}").0, "{#");
        let conflict =
            "{% for x in y %}\n<<<<<<< HEAD\n{% endfor %}\n=======\n{% endfor %}\n>>>>>>> b\n";
        assert_eq!(
            told(conflict),
            (
                "<<<<<<<".to_owned(),
                "a merge conflict was left in the template".into()
            )
        );
        assert_eq!(told("{% for (a in b) %}{% endfor %}").0, "(");
        assert_eq!(told("{{ a ~ tojson b }}").0, "tojson");
        assert_eq!(found("{{ a b }}"), None);
        assert_eq!(found("{% if x %}{{ y | }}{% endif %}"), None);
        assert_eq!(found("{{ {'a': {'b': 1}} }}"), None);
    }
}
