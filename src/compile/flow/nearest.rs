//! Finds the location in a template that comes nearest to writing content that a body lacks.

use serde_json::Value;

use crate::check::history;
use crate::compile::explain::leaves;
use crate::compile::explain::places::Places;
use crate::compile::surroundings;
use crate::conversation::ContentKind;
use crate::flow::{Fate, Loss};
use crate::import::forms;
use crate::json::Pointer;
use crate::render::DataRead;
use crate::source::Span;
use crate::unit::{Author, Body, Plan, Record};

/// The nearest location, and a description.
pub(super) struct Nearest {
    pub(super) span: Span,
    pub(super) how: &'static str,
}

/// A measure of how close a value read by a template is to some content.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Closeness {
    /// The number of steps that the two paths share.
    shared: usize,
    /// `true` if the value is the content, its parent or its sibling, and not deep inside another
    /// value.
    is_beside: bool,
    /// The value's relevance to the content, which is low for a role or a type.
    weight: u8,
}

/// Returns the location in a template that comes nearest to writing some content.
pub(super) fn nearest(places: &Places<'_>, loss: &Loss, model: Option<&str>) -> Nearest {
    let plan = places.plan;
    let member = member_of(plan, loss.kind);
    let Looked { reads, writer } = looked(places, model, member).unwrap_or_default();
    let best = reads
        .iter()
        .map(|read| closeness(&read.path, &loss.at))
        .max();
    if let Some(best) = best.filter(|best| best.shared > 0)
        && let Some(read) = reads
            .iter()
            .rev()
            .find(|read| closeness(&read.path, &loss.at) == best)
    {
        let how = match best.shared == loss.at.tokens().count() {
            true if loss.fate == Fate::Dropped => "it is read here, but not written",
            true => "it is read here",
            false => "only this part of it is read",
        };
        return Nearest {
            span: read.span,
            how,
        };
    }
    let written_in = plan.member_at(member);
    // A prompt is in the profile or in a separate file, and does not write the body's structure.
    let is_of_body = !matches!(loss.kind, ContentKind::SystemPrompt | ContentKind::Files);
    let of_partial = writer.filter(|span| is_of_body && span.file != written_in.file);
    Nearest {
        span: of_partial.unwrap_or(written_in),
        how: "nothing here reads it",
    }
}

/// The data that a body's templates read, and the writer of the last text in a member.
#[derive(Default)]
struct Looked {
    reads: Vec<DataRead>,
    /// The location in a template where the last text in a member was written.
    writer: Option<Span>,
}

/// Recompiles a body, and records the data that its templates read and the writer of the last text
/// in a member.
fn looked(places: &Places<'_>, model: Option<&str>, member: &str) -> Option<Looked> {
    let Places {
        compiler,
        plan,
        loaded,
    } = *places;
    let renderer = loaded.renderer(&compiler.engine);
    let version = surroundings::version(compiler, plan, loaded, &renderer)
        .result
        .ok()?;
    let request = loaded.request(plan, &version, model);
    let body = plan.body(compiler.sources(), &renderer, &request).ok()?;
    let record = Record::new(plan, compiler.sources(), &renderer, &request, &body);
    let writer = last_text(&body, member).and_then(|at| match record.author(&at) {
        Author::Template { written, .. } => written.last().map(|written| written.span),
        Author::Literal { .. } | Author::Step { .. } => None,
    });
    let reads = plan.data_reads(compiler.sources(), &renderer, &request, &body);
    Some(Looked { reads, writer })
}

/// Returns the path of the last string in a member of a body. An empty string takes precedence,
/// because content may be missing from it.
fn last_text(body: &Body, member: &str) -> Option<Pointer> {
    let value = body.value().get(member)?;
    let texts: Vec<Pointer> = leaves(value)
        .into_iter()
        .filter(|at| value.pointer(at.as_str()).is_some_and(Value::is_string))
        .collect();
    let blank = texts
        .iter()
        .rev()
        .find(|at| value.pointer(at.as_str()) == Some(&Value::from("")));
    let last = blank.or(texts.last())?;
    Some(Pointer::root().member(member).join(last))
}

fn closeness(path: &Pointer, wanted: &Pointer) -> Closeness {
    let shared = path
        .tokens()
        .zip(wanted.tokens())
        .take_while(|(one, other)| one == other)
        .count();
    let last = path.tokens().last();
    let is_beside = path.tokens().count() <= shared + 1;
    let weight = match last.as_deref() {
        Some("role") => 0,
        Some(name) if name.bytes().all(|byte| byte.is_ascii_digit()) => 1,
        Some("type") => 2,
        _ => 3,
    };
    Closeness {
        shared,
        is_beside,
        weight,
    }
}

/// Returns the body member in which a kind of content belongs, for content that the body does not
/// contain anywhere.
pub(super) fn member_of(plan: &Plan<'_>, kind: ContentKind) -> &'static str {
    let of_kind = match kind {
        ContentKind::Suffix => first(plan, &["suffix", "input_suffix"]),
        ContentKind::SystemPrompt | ContentKind::Files => {
            first(plan, forms::prompt_members(plan.wire))
        }
        _ => None,
    };
    let usual = of_kind.or_else(|| history::member_of(plan.wire));
    usual
        .or_else(|| first(plan, &["prompt", "input_prefix"]))
        .unwrap_or("prompt")
}

/// Returns the first of the given members that the profile sets.
fn first(plan: &Plan<'_>, names: &[&'static str]) -> Option<&'static str> {
    let body = plan.profile.body()?;
    names.iter().find(|name| body.get(name).is_some()).copied()
}
