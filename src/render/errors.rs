//! Converts the engine's errors to findings.

use std::error::Error as _;

use minijinja::machinery::{self, ast::Expr};
use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

use super::builtins::test_names;
use super::eval::Failure;
use super::place::Place;
use super::refusal::Refusal;
use super::slips_of_data::{LIST, NeverEqual};
use super::tracked::{Absent, AbsentKind};
use super::{Engine, TemplateKind, account, rules};
use crate::conversation::{TEMPLATE_DATA, members_of, words_of};
use crate::diag::{Diagnostic, Rule, Severity, did_you_mean, listed};
use crate::source::{SourceText, Sources, Span, clamp};
use crate::text::cut;

/// Returns the finding for a template that failed during rendering.
pub(super) fn runtime(
    engine: &Engine,
    sources: &Sources,
    kind: TemplateKind,
    failure: &Failure,
) -> Diagnostic {
    let span = engine.place_span(sources, failure.at);
    if failure.error.kind() == ErrorKind::OutOfFuel {
        return endless(engine, sources, failure);
    }
    let refusal = failure
        .error
        .source()
        .and_then(|source| source.downcast_ref::<Refusal>());
    if let Some((refusal, file)) =
        refusal.and_then(|refusal| Some((refusal, refusal.file.as_deref()?)))
    {
        let id = sources.find_or_add(&file.path, || SourceText::salvage(&file.bytes));
        // A byte that is not text is represented by one character.
        let text = sources.get(id).text();
        let wrong = clamp(&(file.at..file.at + 1), text);
        let finding = Diagnostic::new(refusal.rule, Span::new(id, wrong), refusal.message.clone());
        return finding
            .related(span, "read here")
            .maybe_help(refusal.help.clone());
    }
    let finding = match refusal {
        Some(refusal) => Diagnostic::new(refusal.rule, span, refusal.message.clone())
            .maybe_help(refusal.help.clone())
            .caused_by(refusal.cause.clone()),
        None => describe(engine, sources, failure, kind),
    };
    let steps = failure
        .steps
        .iter()
        .filter_map(|step| Some((step.scope.kind()?, engine.place_span(sources, step.at))));
    let mut last = finding.primary.span;
    steps.fold(finding, |finding, (kind, place)| {
        // The text of a `call` block is rendered inside the macro that the block calls, so both
        // steps have the same location.
        match std::mem::replace(&mut last, place) == place {
            true => finding,
            false => finding.related(place, kind.phrase()),
        }
    })
}

/// Returns the finding for a template that ran out of steps. The exact location depends on the
/// conversation, so the finding is at the outermost loop around that location.
fn endless(engine: &Engine, sources: &Sources, failure: &Failure) -> Diagnostic {
    let places = failure
        .steps
        .iter()
        .rev()
        .map(|step| step.at)
        .chain([failure.at]);
    let outermost = failure.steps.last().map_or(failure.at, |step| step.at);
    let span = { places }
        .find_map(|place| {
            let loops = &engine
                .analyses
                .get(&engine.numbered[place.template as usize])?
                .loops;
            let found = loops
                .iter()
                .find(|range| range.contains(&place.range().start))?;
            Some(engine.place_span(sources, Place::new(place.template, found)))
        })
        .unwrap_or_else(|| engine.place_span(sources, Place::new(outermost.template, &(0..0))));
    let help = "look for nested loops over the history; a typical template needs a few hundred steps per message";
    Diagnostic::new(
        &rules::TOO_MANY_STEPS,
        span,
        "the template takes too many steps",
    )
    .help(help)
}

fn describe(
    engine: &Engine,
    sources: &Sources,
    failure: &Failure,
    kind: TemplateKind,
) -> Diagnostic {
    let (error, span) = (&failure.error, engine.place_span(sources, failure.at));
    let detail = error.detail().unwrap_or_default();
    // The missing value is the cause, regardless of what the template does with it.
    if let Some(missing) = failure.missing {
        return undefined(engine, sources, missing, failure, kind);
    }
    let called = failure.called.as_deref().unwrap_or_default();
    let (rule, message): (&'static Rule, String) = match error.kind() {
        ErrorKind::UndefinedError if sources.slice(span).trim() == called => (
            &rules::UNDEFINED,
            format!("a value that `{called}` reads is undefined"),
        ),
        ErrorKind::UndefinedError => {
            let here = Absent {
                at: failure.at,
                kind: AbsentKind::Value,
            };
            return undefined(engine, sources, here, failure, kind);
        }
        ErrorKind::UnknownFunction => return unknown_function(called, span, kind),
        ErrorKind::MissingArgument | ErrorKind::TooManyArguments => {
            return wrong_arguments(called, error, span);
        }
        ErrorKind::WriteFailure if detail == account::TOO_LARGE => (
            &rules::TOO_LARGE,
            "the template writes more than 32 MiB".into(),
        ),
        ErrorKind::InvalidOperation if detail.contains("recursion limit") => (
            &rules::TOO_DEEP,
            "macros or includes nest too deeply".into(),
        ),
        ErrorKind::UnknownMethod => return unknown_method(detail, span),
        ErrorKind::UnknownFilter | ErrorKind::UnknownTest => {
            (&rules::UNKNOWN_NAME, detail.to_owned())
        }
        ErrorKind::TemplateNotFound => (&rules::INCLUDE_MISSING, detail.to_owned()),
        kind => (
            &rules::FAILED,
            if detail.is_empty() {
                kind.to_string()
            } else {
                detail.to_owned()
            },
        ),
    };
    let finding = Diagnostic::new(rule, span, message);
    match error.kind() {
        ErrorKind::InvalidOperation if rule == &rules::TOO_DEEP => {
            finding.help("look for a macro that calls itself endlessly, or for a long chain of includes")
        }
        ErrorKind::UnknownFilter | ErrorKind::UnknownTest => {
            finding.help("`reqc rule template/unknown-name` explains which names are available where")
        }
        ErrorKind::CannotUnpack => {
            finding.help("to loop over an object by key and value, write `{% for key, value in object | items %}`")
        }
        ErrorKind::UndefinedError => finding.help(ASK),
        _ if rule == &rules::TOO_LARGE => {
            finding.label("the limit is reached here").help("look for a loop that repeats the whole history")
        }
        _ => finding
            .help("this expression fails for the values in this context; `reqc render` shows the rest"),
    }
}

/// The replacements for Python and JavaScript methods in templates.
const METHODS: [(&str, &str); 16] = [
    ("append", "`list + [value]`"),
    ("endswith", "`text is endingwith('…')`"),
    ("format", "`\"…\" ~ value`"),
    (
        "get",
        "`object.member`, or `object.member | default('')` if it may be absent",
    ),
    ("includes", "`value in list`"),
    ("items", "`object | items`"),
    ("join", "`list | join(', ')`"),
    ("keys", "`object | items`, which gives `[name, value]`"),
    ("lower", "`text | lower`"),
    ("replace", "`text | replace('a', 'b')`"),
    ("split", "`text | split(',')`"),
    ("splitlines", "`text | lines`"),
    ("startswith", "`text is startingwith('…')`"),
    ("strip", "`text | trim`"),
    ("upper", "`text | upper`"),
    ("values", "`object | items`, which gives `[name, value]`"),
];

/// Returns the finding for a call to a member that is not a function. `detail` is the engine's
/// message, such as `map has no method named get`.
fn unknown_method(detail: &str, span: Span) -> Diagnostic {
    let (kind, method) = detail
        .split_once(" has no method named ")
        .unwrap_or(("value", detail));
    let owner = match kind {
        "map" => "an object",
        "sequence" => "a list",
        "string" => "a string",
        "number" => "a number",
        _ => "the value",
    };
    let instead = METHODS.iter().find(|(name, _)| *name == method);
    let message = format!("{owner} has no method `{}`", cut(method, 60));
    let finding = Diagnostic::new(&rules::UNKNOWN_NAME, span, message);
    finding.help(match instead {
        Some((_, instead)) => format!("write {instead}"),
        None if kind == "map" => {
            "template values have no methods; if you meant a macro, the imported template defines none with this name".to_owned()
        }
        None => "template values have no methods: use a filter, for example `text | trim`".to_owned(),
    })
}

/// Returns the finding for a call to an unknown function, whose name may belong to a value
/// elsewhere in a template.
fn unknown_function(name: &str, span: Span, kind: TemplateKind) -> Diagnostic {
    let known = super::function_names(kind);
    let near = did_you_mean(name, known.iter().copied());
    let help = near
        .or_else(|| {
            known
                .iter()
                .find(|known| name.len() > 2 && known.contains(name))
                .map(|it| format!("did you mean `{it}`?"))
        })
        .unwrap_or_else(|| format!("known functions: {}", known.join(", ")));
    Diagnostic::new(
        &rules::UNKNOWN_NAME,
        span,
        format!("there is no function `{}`", cut(name, 60)),
    )
    .help(help)
}

/// The members of `loop`.
const LOOP: [&str; 8] = [
    "index", "index0", "first", "last", "length", "revindex", "previtem", "nextitem",
];

/// Returns the members in conversations and loops that templates can read.
fn members() -> impl Iterator<Item = &'static str> {
    let data = TEMPLATE_DATA
        .iter()
        .flat_map(|(_, members)| members.iter().copied());
    data.chain(["first", "index", "index0", "last", "length", "revindex"])
}

/// Returns the help for a variable that this kind of template does not have.
fn variable_help(name: &str, kind: TemplateKind) -> String {
    if let Some(help) = known_elsewhere(name) {
        return help;
    }
    let (known, about): (&[&str], _) = match kind {
        TemplateKind::Prompt => (
            &["language", "project_name"],
            "a system prompt can use `language` and `project_name`",
        ),
        TemplateKind::Body => match member_of_ctx(name) {
            Some(member) => return format!("write `ctx.{member}`"),
            None => (
                &["ctx", "loop"],
                "everything about the conversation is a member of `ctx`",
            ),
        },
    };
    did_you_mean(name, known.iter().copied()).unwrap_or_else(|| {
        format!("{about}; put literal braces between `{{% raw %}}` and `{{% endraw %}}`")
    })
}

/// Returns the help for a name that has a meaning elsewhere: in other languages, as a test, or in a
/// loop.
fn known_elsewhere(name: &str) -> Option<String> {
    match name {
        "null" | "nil" | "None" | "undefined" => Some("write `none`".to_owned()),
        "JSON" => Some("write `tojson(value)`".to_owned()),
        "loop" => Some("`loop` exists only inside a `for`".to_owned()),
        name if test_names().any(|test| test == name) => Some(format!(
            "`{name}` is a test: write `value is {name}`, also after `or` and `and`"
        )),
        _ => None,
    }
}

/// Returns the member of `ctx` that a name without `ctx` refers to.
fn member_of_ctx(name: &str) -> Option<&str> {
    match name {
        "messages" | "conversation" => Some("history"),
        "system" | "system_message" => Some("system_prompt"),
        name => members_of("ctx").contains(&name).then_some(name),
    }
}

/// The call syntax of our functions.
const CALLS: [(&str, &str); 17] = [
    ("agent_role", "agent_role('id')"),
    ("basename", "basename(path)"),
    ("dirname", "dirname(path)"),
    ("existsIn", "existsIn(object, 'key')"),
    ("ext", "ext(path)"),
    ("file_exists", "file_exists('path')"),
    (
        "filter_by_type",
        "filter_by_type(message.content_blocks, 'text')",
    ),
    (
        "filter_skip_role",
        "filter_skip_role(ctx.history, 'system')",
    ),
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

/// Returns the finding for a call with too few or too many arguments.
fn wrong_arguments(called: &str, error: &Error, span: Span) -> Diagnostic {
    let what = match error.kind() {
        ErrorKind::MissingArgument => "too few arguments",
        _ => "too many arguments",
    };
    let message = match (error.detail(), called) {
        (Some(detail), _) => detail.to_owned(),
        (None, "") => what.to_owned(),
        (None, name) => format!("`{name}` has {what}"),
    };
    let finding = Diagnostic::new(&rules::FAILED, span, message);
    match CALLS.iter().find(|(name, _)| *name == called) {
        Some((_, call)) => finding.help(format!("write `{call}`")),
        None => finding.help(
            "compare the call with the macro's parameters, or with the function's parameters in docs/templates.md",
        ),
    }
}

/// Returns the finding for an undefined value.
fn undefined(
    engine: &Engine,
    sources: &Sources,
    absent: Absent,
    failure: &Failure,
    kind: TemplateKind,
) -> Diagnostic {
    let (missing, at) = (
        engine.place_span(sources, absent.at),
        engine.place_span(sources, failure.at),
    );
    let expression = sources.slice(missing).trim();
    match absent.kind {
        AbsentKind::Parameter => {
            let message =
                format!("`{expression}` is a parameter, but the macro call gives it no value");
            let finding = Diagnostic::new(&rules::UNDEFINED, at, message);
            finding
                .related(missing, "the parameter")
                .help("pass it in the call, or declare a default: `name=\"\"`")
        }
        AbsentKind::Import => no_import(missing, expression).related(at, "used here"),
        AbsentKind::Value => {
            // The location is the expression that produced the value, if the expression is in the
            // tag that uses the value.
            let is_here = failure.at.contains(absent.at)
                || engine.is_in_one_tag(absent.at, failure.at, sources);
            let (message, help) = absence(expression, failure.object.as_ref(), kind);
            Diagnostic::new(
                &rules::UNDEFINED,
                if is_here { missing } else { at },
                message,
            )
            .help(help)
        }
    }
}

/// Returns the finding for an imported name that the imported template lacks.
pub(super) fn no_import(at: Span, name: &str) -> Diagnostic {
    let message = format!("the imported template has no `{name}`");
    Diagnostic::new(&rules::UNDEFINED, at, message)
        .help("import a macro or a variable that the other template sets at its top level")
}

/// Returns the finding for a comparison that is never true.
pub(super) fn never_equal(at: Span, it: &NeverEqual) -> Diagnostic {
    let word = cut(&it.word, 60);
    let owner = match it.member {
        "source" => "document",
        _ => it.object,
    };
    let message = format!("no {owner} has the {} `{word}`", it.member);
    let known = words_of(it.object, it.member).map_or(&[][..], |(_, words)| words);
    let near = did_you_mean(&it.word, known.iter().copied());
    let is_sure = near.is_some() && !it.is_guess;
    let help = near.unwrap_or_else(|| format!("it is one of: {}", listed(known.iter().copied())));
    let finding = Diagnostic::new(&rules::IMPOSSIBLE_WORD, at, message).help(help);
    match is_sure {
        true => finding,
        false => finding.at_most(Severity::Warning),
    }
}

/// Returns the finding for a read of a member that objects of this kind never have, without running
/// the template. This is the same finding that [`undefined`] returns at run time.
pub(super) fn never_there(sources: &Sources, at: Span, kind: &'static str) -> Option<Diagnostic> {
    let expression = sources.slice(at).trim();
    // The engine's range for a chain begins after the chain's last index.
    let (holder, member) = member_of(expression).filter(|(holder, _)| begins_with_name(holder))?;
    let message = format!("`{holder}` has no `{member}`");
    let help = slip_help(&member, kind);
    Some(Diagnostic::new(&rules::UNDEFINED, at, message).help(help))
}

/// Returns the finding for a name that no template of a kind has, without running the template.
pub(super) fn no_variable(sources: &Sources, at: Span, kind: TemplateKind) -> Diagnostic {
    let (message, help) = absence(sources.slice(at).trim(), None, kind);
    Diagnostic::new(&rules::UNDEFINED, at, message).help(help)
}

/// The help for a value that may be absent.
const ASK: &str = "if it may be absent, check first with `is defined`";

/// Returns the message and the help for an expression without a value.
fn absence(expression: &str, object: Option<&Value>, kind: TemplateKind) -> (String, String) {
    if let Some((holder, member)) = member_of(expression) {
        return (
            format!("`{holder}` has no `{member}`"),
            member_help(expression, &member, object),
        );
    }
    if expression == "ctx" {
        let help = "it is rendered before the conversation; it can use `language`, `project_name` and the file functions";
        return (
            "a system prompt cannot use `ctx`".to_owned(),
            help.to_owned(),
        );
    }
    match (is_name(expression), is_path(expression)) {
        (true, _) => (
            format!("there is no variable `{expression}`"),
            variable_help(expression, kind),
        ),
        (_, true) => (
            format!("`{}` is undefined", cut(expression, 61)),
            ASK.to_owned(),
        ),
        _ => ("a value here is undefined".to_owned(), ASK.to_owned()),
    }
}

/// Returns the help for a member that an object lacks.
///
/// The members of `ctx`, messages, blocks and tools are known. An object never has the members of
/// another kind of object, and a guard would only hide the mistake.
fn member_help(expression: &str, member: &str, object: Option<&Value>) -> String {
    let ask = || format!("if it may be absent, check first: `{{% if {expression} is defined %}}`");
    if object.is_some_and(|object| object.kind() == ValueKind::String) {
        return "it is a string, which has no members".to_owned();
    }
    if expression.split(['.', '[']).next() == Some("loop") {
        return format!("`loop` has `{}`", LOOP.join("`, `"));
    }
    let Some(kind) = object.and_then(kind_of_object) else {
        // A member that only some conversations have is not a mistake.
        let is_known = members().any(|known| known == member);
        return did_you_mean(member, members())
            .filter(|_| !is_known)
            .unwrap_or_else(ask);
    };
    if members_of(kind).contains(&member) {
        return ask();
    }
    slip_help(member, kind)
}

/// Returns the help for a member that no object of a kind has.
pub(super) fn slip_help(member: &str, kind: &str) -> String {
    if kind == LIST {
        return "it is a list, which has no named members: `{% for element in list %}` visits its elements, `list | first` is the first \
                one, and `length(list)` counts them".to_owned();
    }
    let known = members_of(kind);
    did_you_mean(member, known.iter().copied()).unwrap_or_else(|| {
        let article = if kind == "ctx" { "" } else { "a " };
        format!("{article}{kind} has `{}`", known.join("`, `"))
    })
}

/// Returns the kind of template data that an object represents.
fn kind_of_object(object: &Value) -> Option<&'static str> {
    Some(match () {
        () if object.kind() == ValueKind::Seq => LIST,
        () if has("history", object) => "ctx",
        () if has("role", object) && has("content_blocks", object) => "message",
        () if has("type", object) => "block",
        () if has("file_path", object) => "file",
        () if has("schema", object) && has("name", object) => "tool",
        () => return None,
    })
}

fn has(member: &str, object: &Value) -> bool {
    object
        .get_attr(member)
        .is_ok_and(|member| !member.is_undefined())
}

impl Engine {
    /// Returns `true` if the first location is before the second, and both are in the same tag.
    fn is_in_one_tag(&self, first: Place, second: Place, sources: &Sources) -> bool {
        if first.template != second.template || first.range().end > second.range().start {
            return false;
        }
        let between = Place::new(first.template, &(first.range().end..second.range().start));
        let between = sources.slice(self.place_span(sources, between));
        !between.contains("}}") && !between.contains("%}")
    }
}

/// Splits an expression that reads a member into the object and the member's name.
fn member_of(expression: &str) -> Option<(String, String)> {
    let tree = machinery::parse_expr(expression).ok()?;
    let (object, member) = match &tree {
        Expr::GetAttr(it) => (&expression[..expression.rfind('.')?], it.name.to_owned()),
        Expr::GetItem(it) => {
            let Expr::Const(name) = &it.subscript_expr else {
                return None;
            };
            (
                &expression[..expression.rfind('[')?],
                name.value.as_str()?.to_owned(),
            )
        }
        _ => return None,
    };
    let object = object.trim();
    (is_path(object) && is_name(&member)).then(|| (object.to_owned(), member))
}

/// Returns `true` if a string is a variable with members and elements, or a literal, and all its
/// brackets are closed.
fn is_path(text: &str) -> bool {
    text.chars()
        .all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '[' | ']' | '\'' | '"' | '-'))
        && text.matches('[').count() == text.matches(']').count()
}

fn begins_with_name(path: &str) -> bool {
    path.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::function_names;

    #[test]
    fn each_function_of_ours_shows_how_it_is_called() {
        for name in [TemplateKind::Body, TemplateKind::Prompt]
            .into_iter()
            .flat_map(function_names)
        {
            assert!(
                CALLS
                    .iter()
                    .any(|(known, call)| known == name && call.starts_with(name)),
                "{name}"
            );
        }
    }
}
