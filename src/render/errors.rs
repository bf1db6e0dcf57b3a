//! The engine's errors as findings.

use std::error::Error as _;
use std::ops::Range;

use minijinja::{Error, ErrorKind};

use super::prompt::Refusal;
use super::unclosed::{self, OpenTag, Unbalanced};
use super::{Engine, Step, TemplateKind, functions, rules};
use crate::conversation::TEMPLATE_DATA;
use crate::diag::{Diagnostic, Rule, did_you_mean};
use crate::repo::Dialect;
use crate::source::{SourceText, Sources, Span};
use crate::text::cut;

/// A template that does not parse.
pub(super) fn syntax(engine: &Engine, sources: &Sources, name: &str, text: &str, error: &Error) -> Diagnostic {
    let range = error.range().unwrap_or(text.len()..text.len());
    let detail = error.detail().unwrap_or("the template does not parse");
    let at = |range: Range<usize>| engine.span(sources, name, clamp(&range, text));
    let finding = |range: &Range<usize>, message: String| Diagnostic::new(&rules::SYNTAX, at(range.clone()), message);
    if let Some(tag) = detail.strip_prefix("unknown statement ") {
        return misplaced_tag(
            tag,
            finding(&range, format!("there is no tag `{tag}`")),
            unclosed::find(text, range.end),
            at,
        );
    }
    if detail == "unexpected character" && text[range.start.min(text.len())..].starts_with('^') {
        let help = match engine.dialect {
            Dialect::Inja => "write it with a blank on each side: `a ^ b`",
            Dialect::Jinja => "write `a ** b` for a power; `dialect = \"inja\"` in reqc.toml takes `a ^ b`",
        };
        return finding(&range, "`^` is no operator here".to_owned()).help(help);
    }
    if !detail.starts_with("unexpected end of input") {
        return finding(&range, in_symbols(detail))
            .help("`{{ value }}` writes a value, `{% tag %}` is a tag, `{# … #}` a comment");
    }
    match unclosed::find(text, text.len()) {
        Some(Unbalanced::Open(OpenTag { name, range })) => finding(&range, format!("this `{name}` is never closed"))
            .help(format!("write `{{% end{name} %}}` where it ends")),
        Some(Unbalanced::Delimiter { range, close }) => {
            finding(&range, format!("this tag is never closed: `{close}` is missing"))
                .help(format!("write `{close}` behind it"))
        }
        _ => finding(&range, "the template ends while something is still open".to_owned())
            .help("look for a tag without its `{% end… %}`, or braces that are not closed"),
    }
}

/// The finding of a tag that cannot stand where it stands.
fn misplaced_tag(
    tag: &str,
    finding: Diagnostic,
    unbalanced: Option<Unbalanced>,
    at: impl Fn(Range<usize>) -> Span,
) -> Diagnostic {
    let reworded = |message: String| Diagnostic { message, ..finding.clone() };
    match (TAGS.contains(&tag), unbalanced) {
        (true, Some(Unbalanced::WrongEnd { open } | Unbalanced::Open(open))) => {
            let OpenTag { name, range } = open;
            reworded(format!("`{tag}` stands where `end{name}` is missing"))
                .related(at(range), format!("this `{name}` is still open"))
                .help(format!("write `{{% end{name} %}}` before it"))
        }
        (true, _) if tag.starts_with("end") => {
            reworded(format!("`{tag}` closes nothing")).help("remove it, or write the tag that it should close")
        }
        (true, _) => reworded(format!("`{tag}` stands outside of what it divides"))
            .help("write it between `{% if … %}` or `{% for … %}` and its end"),
        (false, _) => {
            let help = did_you_mean(tag, TAGS).unwrap_or_else(|| format!("known tags: {}", TAGS.join(", ")));
            finding.help(help)
        }
    }
}

/// The tags that open, divide and close.
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

/// The parser's names for tokens, as they are written.
fn in_symbols(detail: &str) -> String {
    let names = [("end of variable block", "`}}`"), ("end of block", "`%}`")];
    names.iter().fold(detail.to_owned(), |text, (name, symbol)| text.replace(name, symbol))
}

/// A template that failed while it was rendered. `steps` lead to where it did, the innermost first; without any, its includes do.
pub(super) fn runtime(engine: &Engine, sources: &Sources, name: &str, error: &Error, steps: &[Step]) -> Diagnostic {
    let chain = chain(error);
    let innermost = chain[chain.len() - 1];
    let place = |error: &Error| -> Option<Span> {
        let name = error.name().filter(|name| engine.places.contains_key(*name))?;
        Some(engine.compiled_span(sources, name, range_of(engine, error)))
    };
    if innermost.kind() == ErrorKind::OutOfFuel {
        return endless(engine, sources, name, &chain);
    }
    let span = chain.iter().rev().find_map(|error| place(error)).unwrap_or_else(|| engine.span(sources, name, 0..0));
    let refusal = innermost.source().and_then(|source| source.downcast_ref::<Refusal>());
    if let Some((refusal, file)) = refusal.and_then(|refusal| Some((refusal, refusal.file.as_deref()?))) {
        let id = sources.find_or_add(&file.path, || SourceText::salvage(&file.bytes));
        // What is no text stands for itself as one character.
        let text = sources.get(id).text();
        let wrong = clamp(&(file.at..file.at + 1), text);
        let finding = Diagnostic::new(refusal.rule, Span::new(id, wrong), refusal.message.clone());
        return finding.related(span, "read here").maybe_help(refusal.help.clone());
    }
    let mut finding = match refusal {
        Some(refusal) => Diagnostic::new(refusal.rule, span, refusal.message.clone())
            .maybe_help(refusal.help.clone())
            .caused_by(refusal.cause.clone()),
        None => describe(sources, innermost, span, engine.kind_of(name)),
    };
    if !steps.is_empty() {
        return steps.iter().fold(finding, |finding, step| finding.related(step.span, step.kind.phrase()));
    }
    for outer in chain[..chain.len() - 1].iter().rev() {
        if let Some(place) = place(outer).filter(|place| *place != span) {
            finding = finding.related(place, "included from here");
        }
    }
    finding
}

/// Whether a template failed in the body of a macro: the engine does not say who called that.
pub(super) fn is_in_macro(engine: &Engine, error: &Error) -> bool {
    let is_inside = |error: &&Error| {
        let text = engine.compiled_text(error.name()?)?;
        let before = text.get(..error.range()?.start)?;
        let opened = before.rfind("macro")?;
        Some(!before[..opened].ends_with("end"))
    };
    chain(error).iter().any(|error| is_inside(error) == Some(true))
}

/// A template whose output reached the limit at `span`.
pub(super) fn too_large(span: Span) -> Diagnostic {
    let finding = Diagnostic::new(&rules::TOO_LARGE, span, "the template writes more than 32 MiB");
    finding.label("the limit is reached here").help("look for a loop that repeats the whole history")
}

/// The range of an error in its template: at least its line, if the engine knows that.
fn range_of(engine: &Engine, error: &Error) -> Range<usize> {
    let line = || {
        let text = engine.compiled_text(error.name()?)?;
        let line = text.split('\n').nth(error.line()?.checked_sub(1)?)?;
        let start = line.as_ptr() as usize - text.as_ptr() as usize + line.len() - line.trim_start().len();
        Some(start..start + line.trim().len())
    };
    error.range().or_else(line).unwrap_or(0..0)
}

/// A template that ran out of steps. Where exactly depends on the conversation; the outermost loop around does not.
fn endless(engine: &Engine, sources: &Sources, name: &str, chain: &[&Error]) -> Diagnostic {
    let around = chain.iter().find_map(|error| {
        let loops = |name: &str| Some(engine.analyses.get(name)?.loops.as_slice()).filter(|loops| !loops.is_empty());
        let Some((inner, range)) = error.name().zip(error.range()) else {
            // The engine does not always know where it stood: then the first loop is the best guess there is.
            let name = error.name().unwrap_or(name);
            return Some(engine.span(sources, name, loops(name)?[0].clone()));
        };
        let at = engine.original_range(inner, range).start;
        let found = loops(inner)?.iter().find(|range| range.contains(&at))?;
        Some(engine.span(sources, inner, found.clone()))
    });
    let span = around.unwrap_or_else(|| engine.span(sources, name, 0..0));
    let help = "look for a loop that grows with itself; a normal template needs a few hundred steps per message";
    Diagnostic::new(&rules::TOO_MANY_STEPS, span, "the template takes too many steps").help(help)
}

/// The error and what caused it, the outermost first.
pub(super) fn chain(error: &Error) -> Vec<&Error> {
    fn cause(error: &Error) -> Option<&Error> {
        error.source()?.downcast_ref::<Error>()
    }
    std::iter::successors(Some(error), |error| cause(error)).collect()
}

fn describe(sources: &Sources, error: &Error, span: Span, kind: TemplateKind) -> Diagnostic {
    let detail = error.detail().unwrap_or_default();
    let (rule, message): (&'static Rule, String) = match error.kind() {
        ErrorKind::UndefinedError => return undefined(sources, detail, span, kind),
        // Whatever the engine wanted to do with it.
        _ if detail.contains("` is undefined") => return undefined(sources, detail, span, kind),
        ErrorKind::UnknownFunction => return unknown_function(sources, span, kind),
        ErrorKind::MissingArgument | ErrorKind::TooManyArguments => return wrong_arguments(sources, error, span),
        ErrorKind::WriteFailure if detail == functions::TOO_LARGE => {
            (&rules::TOO_LARGE, "the template writes more than 32 MiB".into())
        }
        ErrorKind::InvalidOperation if detail.contains("recursion limit") => {
            (&rules::TOO_DEEP, "macros or includes nest too deeply".into())
        }
        ErrorKind::UnknownFilter | ErrorKind::UnknownTest | ErrorKind::UnknownMethod => {
            (&rules::UNKNOWN_NAME, detail.to_owned())
        }
        ErrorKind::TemplateNotFound => (&rules::INCLUDE_MISSING, detail.to_owned()),
        kind => (&rules::FAILED, if detail.is_empty() { kind.to_string() } else { detail.to_owned() }),
    };
    let finding = Diagnostic::new(rule, span, message);
    match error.kind() {
        ErrorKind::UnknownMethod => {
            finding.help("strings and lists have no methods here: use a filter, for instance `text | trim`")
        }
        ErrorKind::InvalidOperation if rule == &rules::TOO_DEEP => {
            finding.help("look for a macro that calls itself in every case; it may nest as deep as the data, up to 300")
        }
        ErrorKind::UnknownFilter | ErrorKind::UnknownTest => {
            finding.help("`reqc rule template/unknown-name` says where names are known")
        }
        ErrorKind::CannotUnpack => {
            finding.help("a loop over an object by key and value is written `{% for key, value in object | items %}`")
        }
        _ if rule == &rules::TOO_LARGE => finding.help("look for a loop that repeats the whole history"),
        _ => finding
            .help("the values of this context do not fit what the tag does with them: `reqc render` shows the rest"),
    }
}

/// A call of something that is no function where it is called; elsewhere a template gives the name to a value.
fn unknown_function(sources: &Sources, span: Span, kind: TemplateKind) -> Diagnostic {
    let written = sources.slice(span);
    let name =
        written.split(|c: char| !c.is_alphanumeric() && c != '_').find(|part| !part.is_empty()).unwrap_or_default();
    let known = super::function_names(kind);
    let near = did_you_mean(name, known.iter().copied());
    let holding =
        || known.iter().find(|known| name.len() > 2 && known.contains(name)).map(|it| format!("did you mean `{it}`?"));
    let help = near.or_else(holding).unwrap_or_else(|| format!("known functions: {}", known.join(", ")));
    Diagnostic::new(&rules::UNKNOWN_NAME, span, format!("there is no function `{}`", cut(name, 60))).help(help)
}

/// What templates can read: of a conversation, and of a loop.
fn members() -> impl Iterator<Item = &'static str> {
    let data = TEMPLATE_DATA.iter().flat_map(|(_, members)| members.iter().copied());
    data.chain(["first", "index", "index0", "last", "length", "revindex"])
}

/// What to write for a variable that a template of a kind does not have.
fn variable_help(name: &str, kind: TemplateKind) -> String {
    const AS_TEXT: &str = "braces that are meant as text stand between `{% raw %}` and `{% endraw %}`";
    let (known, about): (&[&str], _) = match kind {
        TemplateKind::Prompt => (&["language", "project_name"], "a system prompt knows `language` and `project_name`"),
        TemplateKind::Body => (&["ctx", "loop"], "everything about the conversation is a member of `ctx`"),
    };
    did_you_mean(name, known.iter().copied()).unwrap_or_else(|| format!("{about}; {AS_TEXT}"))
}

/// How functions of ours are called.
const CALLS: [(&str, &str); 17] = [
    ("agent_role", "agent_role('id')"),
    ("basename", "basename(path)"),
    ("dirname", "dirname(path)"),
    ("existsIn", "existsIn(object, 'key')"),
    ("ext", "ext(path)"),
    ("file_exists", "file_exists('path')"),
    ("filter_by_type", "filter_by_type(message.content_blocks, 'text')"),
    ("filter_skip_role", "filter_skip_role(ctx.history, 'system')"),
    ("head_lines", "head_lines(text, 10)"),
    ("length", "length(value)"),
    ("lower", "lower(text)"),
    ("read_dir", "read_dir('path')"),
    ("read_file", "read_file('path')"),
    ("strip_signature_suffix", "strip_signature_suffix(text)"),
    ("tojson", "tojson(value)"),
    ("tool_id", "tool_id(block.id)"),
    ("upper", "upper(text)"),
];

/// A call with too few or too many arguments.
fn wrong_arguments(sources: &Sources, error: &Error, span: Span) -> Diagnostic {
    let written = sources.slice(span);
    let name =
        |text: &str| text.trim_start().chars().take_while(|&c| c.is_alphanumeric() || c == '_').collect::<String>();
    let called = written.rsplit_once('|').map_or_else(|| name(written), |(_, filter)| name(filter));
    let what = match error.kind() {
        ErrorKind::MissingArgument => "too few arguments",
        _ => "too many arguments",
    };
    let message = if called.is_empty() { what.to_owned() } else { format!("`{called}` has {what}") };
    let finding = Diagnostic::new(&rules::FAILED, span, message);
    match CALLS.iter().find(|(name, _)| *name == called) {
        Some((_, call)) => finding.help(format!("write `{call}`")),
        None => finding.help("docs/templates.md shows how functions and filters are called"),
    }
}

fn undefined(sources: &Sources, detail: &str, span: Span, kind: TemplateKind) -> Diagnostic {
    // The engine quotes the expression that gave the undefined value; else the tag itself is the best there is.
    let quoted = detail.split('`').nth(1).map(|quoted| match quoted.split_once("(...)") {
        Some((_, behind)) => with_object(sources, span, behind),
        None => quoted.to_owned(),
    });
    let expression = quoted.unwrap_or_else(|| sources.slice(span).trim().to_owned());
    let (message, help) = match expression.rsplit_once('.') {
        Some((object, member)) if is_name(member) && is_path(object) => {
            // A member that some conversations have is no slip.
            let is_known = members().any(|known| known == member);
            let near = did_you_mean(member, members()).filter(|_| !is_known);
            let guard = format!("if it may be absent, ask first: `{{% if {expression} is defined %}}`");
            (format!("`{object}` has no `{member}`"), near.unwrap_or(guard))
        }
        _ if expression == "ctx" => (
            "a system prompt sees no `ctx`".to_owned(),
            "it is rendered before the conversation is: known are `language`, `project_name` and the file functions"
                .to_owned(),
        ),
        _ if is_name(&expression) => (format!("there is no variable `{expression}`"), variable_help(&expression, kind)),
        _ => (
            match is_path(&expression) {
                true => format!("`{}` is undefined", cut(&expression, 61)),
                false => "a value here is undefined".to_owned(),
            },
            "if it may be absent, ask first with `is defined`".to_owned(),
        ),
    };
    Diagnostic::new(&rules::UNDEFINED, narrowed(sources, span, &expression), message).help(help)
}

/// An expression of which the engine knows only the end, since its object went through a guard: completed from the text before
/// `span`.
fn with_object(sources: &Sources, span: Span, end: &str) -> String {
    let text = sources.get(span.file).text();
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '[' | ']');
    let start = text[..span.start as usize].trim_end_matches(is_part).len();
    let whole = &text[start..span.end as usize];
    let found = whole.find(end).map_or(whole, |at| &whole[..at + end.len()]);
    found.trim().to_owned()
}

/// The place of an expression inside a larger one, if it stands there as it is.
fn narrowed(sources: &Sources, span: Span, expression: &str) -> Span {
    let whole = sources.slice(span);
    let is_apart = |at: usize| {
        let before = whole[..at].chars().next_back();
        let after = whole[at + expression.len()..].chars().next();
        [before, after].iter().flatten().all(|c| !c.is_alphanumeric() && *c != '_') && before != Some('.')
    };
    let found = whole.match_indices(expression).map(|(at, _)| at).find(|&at| is_apart(at));
    let start = found.map(|at| span.start as usize + at).or_else(|| before(sources, span, expression));
    start.map_or(span, |start| Span::new(span.file, start..start + expression.len()))
}

/// Where an expression stands before a place in the same tag: the engine names a filter for what it is given.
fn before(sources: &Sources, span: Span, expression: &str) -> Option<usize> {
    let text = sources.get(span.file).text().get(..span.start as usize)?;
    let tag = text.rfind("{{").max(text.rfind("{%"))?;
    text[tag..].rfind(expression).filter(|_| is_path(expression)).map(|at| tag + at)
}

/// Whether a text is a variable, with members and elements behind it, or a literal: nothing that is open.
fn is_path(text: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '[' | ']' | '\'' | '"' | '-');
    text.chars().all(is_part) && text.matches('[').count() == text.matches(']').count()
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn clamp(range: &Range<usize>, text: &str) -> Range<usize> {
    let start = text.floor_char_boundary(range.start.min(text.len()));
    start..text.ceil_char_boundary(range.end.clamp(start, text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::function_names;

    #[test]
    fn each_function_of_ours_shows_how_it_is_called() {
        for name in [TemplateKind::Body, TemplateKind::Prompt].into_iter().flat_map(function_names) {
            assert!(CALLS.iter().any(|(known, call)| known == name && call.starts_with(name)), "{name}");
        }
    }
}
