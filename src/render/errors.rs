//! The engine's errors as findings.

use std::error::Error as _;
use std::ops::Range;

use minijinja::{Error, ErrorKind};

use super::prompt::Refusal;
use super::{Engine, functions, rules};
use crate::diag::{Diagnostic, Rule, did_you_mean};
use crate::source::{Sources, Span};

/// A template that does not parse.
pub(super) fn syntax(engine: &Engine, sources: &Sources, name: &str, text: &str, error: &Error) -> Diagnostic {
    let range = error.range().unwrap_or(text.len()..text.len());
    let message = error.detail().unwrap_or("the template does not parse").to_owned();
    Diagnostic::new(&rules::SYNTAX, engine.span(sources, name, clamp(&range, text)), message)
}

/// A template that failed while it was rendered.
pub(super) fn runtime(engine: &Engine, sources: &Sources, name: &str, error: &Error, is_full: bool) -> Diagnostic {
    let chain = chain(error);
    let innermost = chain[chain.len() - 1];
    let place = |error: &Error| -> Option<Span> {
        let name = error.name().filter(|name| engine.places.contains_key(*name))?;
        Some(engine.compiled_span(sources, name, error.range().unwrap_or(0..0)))
    };
    let span = chain.iter().rev().find_map(|error| place(error)).unwrap_or_else(|| engine.span(sources, name, 0..0));
    let refusal = innermost.source().and_then(|source| source.downcast_ref::<Refusal>());
    let mut finding = match refusal {
        Some(refusal) => Diagnostic::new(refusal.rule, span, refusal.message.clone()).maybe_help(refusal.help.clone()),
        None => describe(sources, innermost, span, is_full),
    };
    for outer in chain[..chain.len() - 1].iter().rev() {
        if let Some(place) = place(outer).filter(|place| *place != span) {
            finding = finding.related(place, "included from here");
        }
    }
    finding
}

/// The error and what caused it, the outermost first.
fn chain(error: &Error) -> Vec<&Error> {
    fn cause(error: &Error) -> Option<&Error> {
        error.source()?.downcast_ref::<Error>()
    }
    std::iter::successors(Some(error), |error| cause(error)).collect()
}

fn describe(sources: &Sources, error: &Error, span: Span, is_full: bool) -> Diagnostic {
    let detail = error.detail().unwrap_or_default();
    let (rule, message): (&'static Rule, String) = match error.kind() {
        ErrorKind::UndefinedError => return undefined(sources, detail, span),
        ErrorKind::OutOfFuel => (&rules::TOO_MANY_STEPS, "the template takes too many steps".into()),
        ErrorKind::WriteFailure if is_full || detail == functions::TOO_LARGE => {
            (&rules::TOO_LARGE, "the template writes more than 32 MiB".into())
        }
        ErrorKind::InvalidOperation if detail.contains("recursion limit") => {
            (&rules::TOO_DEEP, "macros or includes nest too deeply".into())
        }
        ErrorKind::UnknownFilter | ErrorKind::UnknownFunction | ErrorKind::UnknownTest => {
            (&rules::UNKNOWN_NAME, detail.to_owned())
        }
        ErrorKind::UnknownMethod => (&rules::UNKNOWN_NAME, detail.to_owned()),
        ErrorKind::TemplateNotFound => (&rules::INCLUDE_MISSING, detail.to_owned()),
        kind => (&rules::FAILED, if detail.is_empty() { kind.to_string() } else { format!("{kind}: {detail}") }),
    };
    let finding = Diagnostic::new(rule, span, message);
    match error.kind() {
        ErrorKind::UnknownMethod => {
            finding.help("strings and lists have no methods here: use a filter, for instance `text | trim`")
        }
        ErrorKind::OutOfFuel => finding
            .help("look for a loop that grows with itself; a normal template needs a few hundred steps per message"),
        _ => finding,
    }
}

/// What templates can read of a conversation: for suggestions.
const MEMBERS: [&str; 29] = [
    "content",
    "content_blocks",
    "data",
    "file_path",
    "files_metadata",
    "first",
    "history",
    "id",
    "images",
    "index",
    "index0",
    "input",
    "is_error",
    "is_url",
    "last",
    "length",
    "media_type",
    "name",
    "origin",
    "prefix",
    "revindex",
    "role",
    "signature",
    "suffix",
    "system_prompt",
    "text",
    "thinking",
    "tool_use_id",
    "type",
];

const VARIABLES: [&str; 4] = ["ctx", "loop", "language", "project_name"];

fn undefined(sources: &Sources, detail: &str, span: Span) -> Diagnostic {
    // The engine quotes the expression that gave the undefined value; else the tag itself is the best there is.
    let quoted = detail.split('`').nth(1).map(str::to_owned);
    let expression = quoted.unwrap_or_else(|| sources.slice(span).trim().to_owned());
    let (message, help) = match expression.rsplit_once('.') {
        Some((object, member)) if is_name(member) => {
            let near = did_you_mean(member, MEMBERS);
            let guard = format!("if it may be absent, ask first: `{{% if {expression} is defined %}}`");
            (format!("`{object}` has no `{member}`"), near.unwrap_or(guard))
        }
        _ if is_name(&expression) => {
            let near = did_you_mean(&expression, VARIABLES);
            (
                format!("there is no variable `{expression}`"),
                near.unwrap_or_else(|| "everything about the conversation is a member of `ctx`".into()),
            )
        }
        _ => (
            format!("`{}` is undefined", shorten(&expression)),
            "if it may be absent, ask first with `is defined`".to_owned(),
        ),
    };
    Diagnostic::new(&rules::UNDEFINED, span, message).help(help)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(60) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn clamp(range: &Range<usize>, text: &str) -> Range<usize> {
    let start = text.floor_char_boundary(range.start.min(text.len()));
    start..text.ceil_char_boundary(range.end.clamp(start, text.len()))
}
