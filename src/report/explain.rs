//! Reports on the sources of a body's values: one value in detail, a whole body with a margin, or
//! JSON.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;

use super::json::Location;
use crate::compile::explain::{Explanation, SourceKind, ValueSource};
use crate::compile::flow::ContentFate;
use crate::json::Pointer;
use crate::render::Step;
use crate::source::{Sources, Span};
use crate::text::{Text, cut, text};
use crate::unit::ProviderStep;

/// The version of the document's format. It is increased when a key is removed or its meaning
/// changes.
const VERSION: u32 = 1;
/// The maximum length of a displayed string, in bytes.
const SHOWN: usize = 120;

/// Describes a value in detail: its source, the steps that produced it, and the data from which it
/// was built.
pub fn explanation_text(explanation: &Explanation, sources: &Sources) -> Text {
    let mut shown = text!(
        "{} = {}\n",
        explanation.pointer.to_string(),
        excerpt(&explanation.value.to_string())
    );
    if let Some((step, setting)) = explanation.step {
        shown.push(&step_text(step, setting, sources));
        explanation
            .placed_by
            .iter()
            .for_each(|span| shown.push(&span_line("placed by", *span, sources)));
    } else if let (Some(literal), true) = (explanation.literal, explanation.sources.is_empty()) {
        shown.push(&span_line("written at", literal, sources));
    }
    for (index, span) in explanation.overrode.iter().enumerate() {
        let what = if index == 0 {
            "replaces"
        } else {
            "which replaced"
        };
        shown.push(&text!(
            "  {} {}{}\n",
            padded(what),
            at(sources, *span),
            said(sources, *span)
        ));
    }
    let mut before: &[Step] = &[];
    for source in &explanation.sources {
        let is_alone = explanation.sources.len() == 1;
        let is_space = source.kind == SourceKind::Template
            && source
                .span
                .is_some_and(|span| sources.slice(span).trim().is_empty());
        if is_alone || source.kind != SourceKind::Tag && !is_space {
            shown.push(&source_text(source, source.steps != before, sources));
            before = &source.steps;
        }
    }
    if let Some(literal) = explanation
        .literal
        .filter(|_| !explanation.sources.is_empty())
    {
        shown.push(&text!(
            "  {} {}\n",
            padded("rendered for"),
            at(sources, literal)
        ));
    }
    if !explanation.added.is_empty() {
        shown.push(&text!("  a part was added by:\n"));
        explanation
            .added
            .iter()
            .for_each(|(step, setting)| shown.push(&step_text(*step, *setting, sources)));
    }
    shown
}

/// Describes a provider step, and the setting that enabled it.
fn step_text(step: ProviderStep, setting: Option<Span>, sources: &Sources) -> Text {
    match setting {
        Some(setting) => span_line(step_phrase(step), setting, sources),
        None if step == ProviderStep::GivenModel => {
            text!("  {} given with the request\n", padded(step_phrase(step)))
        }
        None => text!(
            "  {} default, not set in the profile\n",
            padded(step_phrase(step))
        ),
    }
}

/// Describes the source of a run. Its steps are omitted if the previous run has the same ones.
fn source_text(source: &ValueSource, with_steps: bool, sources: &Sources) -> Text {
    let mut shown = Text::new();
    match (source.kind, source.span) {
        (SourceKind::Data, Some(span)) => shown.push(&span_line("comes from", span, sources)),
        (SourceKind::File, Some(span)) => shown.push(&span_line("read from", span, sources)),
        (SourceKind::Template, Some(span)) => shown.push(&span_line("written at", span, sources)),
        _ => {}
    }
    match (source.kind, source.tag) {
        (SourceKind::Computed, Some(tag)) => shown.push(&span_line("computed by", tag, sources)),
        (SourceKind::Tag, Some(tag)) => shown.push(&span_line("written by", tag, sources)),
        (SourceKind::Template, _) | (_, None) => {}
        (_, Some(tag)) if Some(tag) == source.span => {}
        (_, Some(tag)) => shown.push(&span_line("written by", tag, sources)),
    }
    source
        .made_of
        .iter()
        .for_each(|span| shown.push(&span_line("  made of", *span, sources)));
    source.steps.iter().filter(|_| with_steps).for_each(|step| {
        shown.push(&span_line(
            &format!("  {}", step.kind.at()),
            step.span,
            sources,
        ));
    });
    if let (SourceKind::Data, None, Some(path)) = (source.kind, source.span, &source.data) {
        shown.push(&text!(
            "  {} `ctx{}`\n",
            padded("comes from"),
            path.as_str()
        ));
    }
    shown
}

/// Describes a location that contributed to a value.
fn span_line(what: &str, span: Span, sources: &Sources) -> Text {
    text!(
        "  {} {}{}\n",
        padded(what),
        at(sources, span),
        said(sources, span)
    )
}

fn step_phrase(step: ProviderStep) -> &'static str {
    match step {
        ProviderStep::Model | ProviderStep::GivenModel => "the model",
        ProviderStep::Tools => "the tools step",
        ProviderStep::Cache | ProviderStep::CacheTtl => "the cache step",
    }
}

fn padded(what: &str) -> Text {
    Text::line(what).padded(16)
}

fn at(sources: &Sources, span: Span) -> Text {
    let file = sources.get(span.file);
    let place = file.position(span.start as usize);
    text!(
        "{}:{}:{}",
        &**file.path(),
        place.line.to_string(),
        place.column.to_string()
    )
}

/// Returns the source text at a location, on one line.
fn said(sources: &Sources, span: Span) -> Text {
    let file = sources.get(span.file);
    let range = span.range();
    match file.text().get(range.clone()) {
        Some(found) if !found.trim().is_empty() => text!("  {}", excerpt(&file.shown(range))),
        _ => Text::new(),
    }
}

fn excerpt(found: &str) -> Text {
    let squeezed: Vec<&str> = found.split_whitespace().collect();
    Text::line(&cut(&squeezed.join(" "), SHOWN))
}

/// Writes a whole body, each line with its source in a margin.
pub fn margin_text(
    body: &Value,
    explanations: &[Explanation],
    sources: &Sources,
    width: usize,
) -> Text {
    let known: HashMap<&Pointer, &Explanation> =
        explanations.iter().map(|it| (&it.pointer, it)).collect();
    let mut lines = Vec::new();
    pretty(body, &Pointer::root(), "", "", 0, &mut lines);
    let most = (width / 2).max(20);
    let room = lines
        .iter()
        .map(|(line, _)| line.chars().count())
        .max()
        .unwrap_or(0)
        .min(most);
    let rows = lines.iter().map(|(line, pointer)| {
        let source = pointer
            .as_ref()
            .and_then(|pointer| known.get(pointer))
            .map(|it| margin(it, sources));
        match source {
            Some(source) => text!("{} │ {}\n", Text::line(line).cut(room).padded(room), source),
            None => text!("{} │\n", Text::line(line).cut(room).padded(room)),
        }
    });
    rows.collect()
}

fn margin(explanation: &Explanation, sources: &Sources) -> Text {
    if let Some((step, setting)) = explanation.step {
        let without = if step == ProviderStep::GivenModel {
            "given with the request"
        } else {
            "default"
        };
        let place = setting.map_or_else(|| text!("{}", without), |setting| at(sources, setting));
        let mut data = explanation
            .sources
            .iter()
            .filter(|source| source.kind == SourceKind::Data);
        let from = data.find_map(|source| source.span);
        let from = from
            .map(|span| text!(" ← {}", at(sources, span)))
            .unwrap_or_default();
        return text!("{} {}{}", step_phrase(step), place, from);
    }
    let first = explanation
        .sources
        .iter()
        .find(|source| source.kind != SourceKind::Tag)
        .or(explanation.sources.first());
    let Some(source) = first else {
        return explanation
            .literal
            .map(|literal| at(sources, literal))
            .unwrap_or_default();
    };
    let tag = source
        .tag
        .or(source.span)
        .map(|span| at(sources, span))
        .unwrap_or_default();
    let more = explanation
        .sources
        .iter()
        .filter(|source| source.kind != SourceKind::Tag)
        .count()
        .saturating_sub(1);
    let more = if more > 0 {
        text!(" and {} more", more.to_string())
    } else {
        Text::new()
    };
    match (source.kind, source.span) {
        (SourceKind::Data | SourceKind::File, Some(span)) => {
            text!("{} ← {}{}", tag, at(sources, span), more)
        }
        (SourceKind::Computed, _) => text!("{} (computed){}", tag, more),
        _ => text!("{}{}", tag, more),
    }
}

/// Adds the lines of a value, indented by two spaces per level. The line of a leaf is paired with
/// the leaf's pointer.
fn pretty(
    value: &Value,
    at: &Pointer,
    lead: &str,
    tail: &str,
    depth: usize,
    lines: &mut Vec<(String, Option<Pointer>)>,
) {
    let indent = "  ".repeat(depth);
    let mut each = |open: char, close: char, inner: Vec<(String, Pointer, &Value)>| {
        lines.push((format!("{indent}{lead}{open}"), None));
        let last = inner.len().saturating_sub(1);
        for (index, (lead, at, value)) in inner.into_iter().enumerate() {
            pretty(
                value,
                &at,
                &lead,
                if index < last { "," } else { "" },
                depth + 1,
                lines,
            );
        }
        lines.push((format!("{indent}{close}{tail}"), None));
    };
    match value {
        Value::Array(elements) if !elements.is_empty() => {
            let inner = elements
                .iter()
                .enumerate()
                .map(|(index, value)| (String::new(), at.element(index), value));
            each('[', ']', inner.collect());
        }
        Value::Object(members) if !members.is_empty() => {
            let inner = members.iter().map(|(key, value)| {
                (
                    format!("{}: ", Value::from(key.as_str())),
                    at.member(key),
                    value,
                )
            });
            each('{', '}', inner.collect());
        }
        scalar => lines.push((format!("{indent}{lead}{scalar}{tail}"), Some(at.clone()))),
    }
}

/// Returns the sources of the values as JSON.
pub fn explanation_json(
    agent: &str,
    context: &str,
    explanations: &[Explanation],
    sources: &Sources,
) -> Text {
    let values = explanations
        .iter()
        .map(|it| Explained::new(it, sources))
        .collect();
    Text::json(&Document {
        version: VERSION,
        agent,
        context,
        values,
    })
}

/// Describes where a piece of a context is used, in human-readable form.
pub fn content_text(fate: &ContentFate, sources: &Sources) -> Text {
    let mut shown = Text::new();
    if fate.values.is_empty() {
        shown.push(&text!("it affects no value in the body\n"));
    }
    fate.values
        .iter()
        .for_each(|value| shown.push(&explanation_text(value, sources)));
    fate.lost
        .iter()
        .for_each(|why| shown.push(&text!("{}\n", &**why)));
    shown
}

/// Describes where a piece of a context is used, as JSON.
pub fn content_json(
    agent: &str,
    context: &str,
    piece: &str,
    fate: &ContentFate,
    sources: &Sources,
) -> Text {
    let values = fate
        .values
        .iter()
        .map(|it| Explained::new(it, sources))
        .collect();
    Text::json(&ContentDocument {
        version: VERSION,
        agent,
        context,
        content: piece,
        values,
        lost: &fate.lost,
    })
}

#[derive(Serialize)]
struct ContentDocument<'a> {
    version: u32,
    agent: &'a str,
    context: &'a str,
    content: &'a str,
    values: Vec<Explained<'a>>,
    lost: &'a [String],
}

#[derive(Serialize)]
struct Document<'a> {
    version: u32,
    agent: &'a str,
    context: &'a str,
    values: Vec<Explained<'a>>,
}

#[derive(Serialize)]
struct Explained<'a> {
    pointer: &'a str,
    value: &'a Value,
    literal: Option<Location<'a>>,
    overrode: Vec<Location<'a>>,
    step: Option<StepOf<'a>>,
    added: Vec<StepOf<'a>>,
    sources: Vec<SourceOf<'a>>,
}

#[derive(Serialize)]
struct StepOf<'a> {
    setting: &'static str,
    place: Option<Location<'a>>,
    placed_by: Option<Location<'a>>,
}

#[derive(Serialize)]
struct SourceOf<'a> {
    kind: &'static str,
    inferred: bool,
    bytes: usize,
    data: Option<&'a str>,
    place: Option<Location<'a>>,
    tag: Option<Location<'a>>,
    steps: Vec<StepTo<'a>>,
    made_of: Vec<Location<'a>>,
}

#[derive(Serialize)]
struct StepTo<'a> {
    kind: &'static str,
    place: Location<'a>,
}

impl<'a> Explained<'a> {
    fn new(it: &'a Explanation, sources: &'a Sources) -> Explained<'a> {
        let place = |span: Span| Location::new(span, sources);
        Explained {
            pointer: it.pointer.as_str(),
            value: &it.value,
            literal: it.literal.map(place),
            overrode: it.overrode.iter().copied().map(place).collect(),
            step: it.step.map(|(step, setting)| StepOf {
                placed_by: it.placed_by.map(place),
                ..StepOf::new(step, setting, sources)
            }),
            added: it
                .added
                .iter()
                .map(|(step, setting)| StepOf::new(*step, *setting, sources))
                .collect(),
            sources: it
                .sources
                .iter()
                .map(|source| SourceOf::new(source, sources))
                .collect(),
        }
    }
}

impl<'a> StepOf<'a> {
    fn new(step: ProviderStep, setting: Option<Span>, sources: &'a Sources) -> StepOf<'a> {
        let place = setting.map(|span| Location::new(span, sources));
        StepOf {
            setting: step.setting(),
            place,
            placed_by: None,
        }
    }
}

impl<'a> SourceOf<'a> {
    fn new(source: &'a ValueSource, sources: &'a Sources) -> SourceOf<'a> {
        let place = |span: Span| Location::new(span, sources);
        SourceOf {
            kind: source.kind.name(),
            inferred: source.kind.is_inferred(),
            bytes: source.len,
            data: source.data.as_ref().map(Pointer::as_str),
            place: source.span.map(place),
            tag: source.tag.map(place),
            steps: source
                .steps
                .iter()
                .map(|step| StepTo {
                    kind: step.kind.name(),
                    place: place(step.span),
                })
                .collect(),
            made_of: source.made_of.iter().copied().map(place).collect(),
        }
    }
}
