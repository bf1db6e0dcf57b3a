//! Converts the parser's errors to findings.

use std::borrow::Cow;
use std::ops::Range;

use minijinja::Error;

use super::slips::{self, Slip};
use super::unclosed::{self, OpenTag, Unbalanced};
use super::{Engine, rules};
use crate::diag::{Diagnostic, did_you_mean};
use crate::repo::Dialect;
use crate::source::{Sources, Span, clamp};
use crate::text::cut;

/// The help for mistakes that have no specific help.
const DELIMITERS: &str = "`{{ value }}` writes a value, `{% tag %}` is a tag, `{# … #}` a comment";

/// Returns the finding for a template that does not parse.
pub(super) fn finding(
    engine: &Engine,
    sources: &Sources,
    name: &str,
    text: &str,
    error: &Error,
) -> Diagnostic {
    let range = clamp(&error.range().unwrap_or(text.len()..text.len()), text);
    let detail = error.detail().unwrap_or("the template does not parse");
    let at = |range: Range<usize>| engine.span(sources, name, clamp(&range, text));
    let finding = |range: &Range<usize>, message: String| {
        Diagnostic::new(&rules::SYNTAX, at(range.clone()), message)
    };
    if let Some(Slip {
        range,
        message,
        help,
    }) = slips::find(text, range.start)
    {
        return finding(&range, message.into_owned()).help(help);
    }
    if let Some(tag) = detail.strip_prefix("unknown statement ") {
        return misplaced_tag(
            tag,
            finding(&range, format!("there is no tag `{tag}`")),
            unclosed::find(text, range.end),
            at,
        );
    }
    if let Some(start) = unclosed::string(text) {
        return finding(
            &(start..start + 1),
            "this string is never closed".to_owned(),
        )
        .help("write the closing quote");
    }
    if let Some(range) = unclosed::raw(text).filter(|_| detail == "unexpected end of raw block") {
        return finding(&range, "this `raw` is never closed".to_owned())
            .help("write `{% endraw %}` where it ends");
    }
    if detail == "unexpected character" && text[range.start..].starts_with('^') {
        let help = match engine.dialect {
            Dialect::Inja => "write it with spaces: `a ^ b`",
            Dialect::Jinja => {
                "for a power, write `a ** b`; with `dialect = \"inja\"` in reqc.toml, `a ^ b` works too"
            }
        };
        return finding(&range, "`^` is not an operator here".to_owned()).help(help);
    }
    if detail.starts_with("unexpected end of input") {
        return unfinished(text, finding);
    }
    let (message, help) = reworded(detail, &text[range.clone()]);
    finding(&range, message.into_owned()).help(help)
}

/// Returns the finding for a template that ends too early.
fn unfinished(text: &str, finding: impl Fn(&Range<usize>, String) -> Diagnostic) -> Diagnostic {
    match unclosed::find(text, text.len()) {
        Some(Unbalanced::Open(OpenTag { name, range })) => {
            finding(&range, format!("this `{name}` is never closed"))
                .help(format!("write `{{% end{name} %}}` where it ends"))
        }
        Some(Unbalanced::Delimiter { range, close }) => finding(
            &range,
            format!("this tag is never closed: `{close}` is missing"),
        )
        .help(format!("write `{close}` after it")),
        _ => finding(
            &(text.len()..text.len()),
            "the template ends while something is still open".to_owned(),
        )
        .help("look for a tag without its `{% end… %}`, or braces that are not closed"),
    }
}

/// Returns the finding for a misplaced tag.
fn misplaced_tag(
    tag: &str,
    finding: Diagnostic,
    unbalanced: Option<Unbalanced>,
    at: impl Fn(Range<usize>) -> Span,
) -> Diagnostic {
    let with_message = |message: String| Diagnostic {
        message,
        ..finding.clone()
    };
    match (TAGS.contains(&tag), unbalanced) {
        (true, Some(Unbalanced::WrongEnd { open } | Unbalanced::Open(open))) => {
            let OpenTag { name, range } = open;
            with_message(format!("`end{name}` is missing before `{tag}`"))
                .related(at(range), format!("this `{name}` is still open"))
                .help(format!("write `{{% end{name} %}}` before it"))
        }
        (true, _) if tag.starts_with("end") => {
            with_message(format!("`{tag}` has no matching opening tag"))
                .help("remove it, or write the tag that it should close")
        }
        (true, _) => with_message(format!("`{tag}` is not inside an `if` or `for`"))
            .help("write it between `{% if … %}` or `{% for … %}` and the end tag"),
        (false, _) => {
            let help = instead_of_tag(tag)
                .map(str::to_owned)
                .or_else(|| did_you_mean(tag, TAGS))
                .unwrap_or_else(|| format!("known tags: {}", TAGS.join(", ")));
            finding.help(help)
        }
    }
}

/// Returns the alternative to a tag of a different template language.
fn instead_of_tag(tag: &str) -> Option<&'static str> {
    Some(match tag {
        "break" | "continue" => {
            "a loop visits every element: select them with `{% for item in list if condition %}`"
        }
        "while" => "the only loop is `{% for item in list %}`",
        "switch" | "case" | "when" => "write `{% if … %}` and `{% elif … %}`",
        "unless" => "write `{% if not condition %}`",
        "elseif" | "elsif" => "write `{% elif condition %}`",
        "let" | "var" | "const" | "assign" | "capture" => "write `{% set name = value %}`",
        "print" | "echo" => "write `{{ value }}`",
        "comment" => "write `{# … #}`",
        "verbatim" => "write `{% raw %}`",
        "partial" | "render" => "write `{% include 'name.jinja' %}`",
        _ => return None,
    })
}

/// The tags that open, separate and close blocks.
const TAGS: [&str; 26] = [
    "autoescape",
    "block",
    "call",
    "do",
    "elif",
    "else",
    "endautoescape",
    "endblock",
    "endcall",
    "endfilter",
    "endfor",
    "endif",
    "endmacro",
    "endraw",
    "endset",
    "endwith",
    "extends",
    "filter",
    "for",
    "from",
    "if",
    "import",
    "include",
    "macro",
    "set",
    "with",
];

/// Returns the message and the help for a parser error; `found` is the text at its location.
fn reworded(detail: &str, found: &str) -> (Cow<'static, str>, &'static str) {
    if detail.starts_with("mismatching name on block") {
        return (
            "the end tag names a different block".into(),
            "write the name of the block, or none",
        );
    }
    if detail.starts_with("expected call expression") {
        return (
            "this tag needs a call".into(),
            "write a call, such as `{% do name() %}` or `{% call name() %}`",
        );
    }
    let Some((token, wanted)) = expectation(detail) else {
        return (detail.to_owned().into(), DELIMITERS);
    };
    let wanted = wanted.map(Wanted::of);
    let help = wanted.as_ref().and_then(|it| it.help).unwrap_or(DELIMITERS);
    let wanted = wanted.map(|it| it.name);
    let found = match found {
        "" => token.to_owned(),
        found => format!("`{}`", cut(found, 40)),
    };
    let ends_tag = matches!(token, "end of variable block" | "end of block");
    let message = match (ends_tag, wanted) {
        (true, Some(wanted)) => format!("{wanted} is missing before {found}"),
        (true, None) => format!("a value is missing before {found}"),
        (false, Some(wanted)) => format!("expected {wanted}, found {found}"),
        (false, None) => format!("unexpected {found}"),
    };
    (message.into(), help)
}

/// Splits a parser error into the parser's name for the token that it found and, if present, its
/// name for the construct that it expected.
fn expectation(detail: &str) -> Option<(&str, Option<&str>)> {
    if let Some(token) = detail.strip_prefix("unknown ") {
        return Some((
            token.strip_suffix(", expected statement")?,
            Some("block keyword"),
        ));
    }
    let rest = detail.strip_prefix("unexpected ")?;
    Some(match rest.split_once(", expected ") {
        Some((token, wanted)) => (token, Some(wanted)),
        None => (rest, None),
    })
}

/// The construct that the parser expected.
struct Wanted<'d> {
    name: &'d str,
    help: Option<&'static str>,
}

impl<'d> Wanted<'d> {
    /// Returns the construct that the parser calls `name`.
    fn of(name: &'d str) -> Wanted<'d> {
        let (name, help) = match name {
            "identifier" => ("a name", None),
            "identifier or integer" => ("a name or an index", None),
            "expression" => ("a value", None),
            "block keyword" => ("the name of a tag", None),
            "comma" => ("`,`", None),
            "end of variable block" => ("`}}`", None),
            "end of block" => ("`%}`", None),
            "in" => ("`in`", Some("write `{% for item in list %}`")),
            "as" => ("`as`", Some("write `{% import 'file.jinja' as name %}`")),
            "import" => (
                "`import`",
                Some("write `{% from 'file.jinja' import name %}`"),
            ),
            "assignment operator" => ("`=`", Some("write `name = value`")),
            "context" => ("`context`", None),
            "missing keyword" => ("`missing`", Some("write `ignore missing`")),
            name => (name, None),
        };
        Wanted { name, help }
    }
}
