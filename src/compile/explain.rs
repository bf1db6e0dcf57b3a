//! Finds the files that wrote a value of a body: for findings, `reqc explain`, and the causes of
//! a diff.

pub(super) mod entrance;
pub(super) mod places;
mod sources;

use serde_json::Value;

use self::places::Places;
pub use self::sources::{SourceKind, ValueSource};
use super::compiler::Compiler;
use super::pairing::Pairing;
use crate::diag::Diagnostic;
use crate::json::Pointer;
use crate::resolve::ProfileId;
use crate::source::Span;
use crate::unit::{Author, Body, KeyOrValue, Plan, ProviderStep, Record};

/// A body, and who wrote its values.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explained {
    /// The body.
    pub body: Body,
    /// The values that were asked for, in the order of the body.
    pub values: Vec<Explanation>,
    /// The tags of the branches and loops that templates went into, if they were asked for.
    pub(in crate::compile) branches: Vec<Span>,
    /// Where the keys of members are written, if they were asked for.
    pub(in crate::compile) keys: Vec<(Pointer, Span)>,
}

/// Who wrote a value of a body.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explanation {
    /// Where in the body.
    pub pointer: Pointer,
    /// The value.
    pub value: Value,
    /// The literal of the profile that it is in: the value itself, or the template that rendered
    /// it. `None` if a provider step wrote it.
    pub literal: Option<Span>,
    /// The values of earlier levels of the chain, the nearest first.
    pub overrode: Vec<Span>,
    /// The provider step that wrote it, and its setting.
    pub step: Option<(ProviderStep, Option<Span>)>,
    /// The setting that says where the step writes.
    pub placed_by: Option<Span>,
    /// The provider steps that added to a list or an object that another wrote, each with its
    /// setting.
    pub added: Vec<(ProviderStep, Option<Span>)>,
    /// The output of a template, run by run; or the one value of the context that a step wrote.
    pub sources: Vec<ValueSource>,
}

/// Explains bodies: who wrote which value.
pub struct Explainer<'a> {
    pub(super) compiler: &'a Compiler,
}

impl<'a> Explainer<'a> {
    /// Begins to explain the bodies of a repository.
    pub fn new(compiler: &'a Compiler) -> Explainer<'a> {
        Explainer { compiler }
    }

    /// One body of one agent, and who wrote the value at a pointer of it, or without a pointer each
    /// of its leaves. `None` if there is no such body.
    ///
    /// # Errors
    ///
    /// Why the body cannot be made.
    pub fn explain(
        &self,
        id: ProfileId,
        context: &str,
        model: Option<&str>,
        pointer: Option<&Pointer>,
    ) -> Option<Result<Explained, Vec<Diagnostic>>> {
        self.explain_values(id, context, model, pointer, false)
    }

    /// Every leaf of a body, and the branches that its templates took.
    pub(super) fn explain_with_branches(
        &self,
        id: ProfileId,
        context: &str,
        model: Option<&str>,
    ) -> Option<Result<Explained, Vec<Diagnostic>>> {
        self.explain_values(id, context, model, None, true)
    }

    /// Returns the places at which the templates of a body write what holds its values together,
    /// each with the list or object that it is of.
    pub(super) fn structure(
        &self,
        id: ProfileId,
        context: &str,
        model: Option<&str>,
    ) -> Vec<(Pointer, Span)> {
        let Some(Ok(pairing)) = Pairing::of(self.compiler, id, context) else {
            return Vec::new();
        };
        let request = pairing.request(model);
        let Ok(body) = pairing.body(&request) else {
            return Vec::new();
        };
        pairing.record(&request, &body).structure()
    }

    /// The entry of `unset` by which an agent's bodies lack what is at a pointer.
    pub fn unset_at(&self, id: ProfileId, pointer: &Pointer) -> Option<Span> {
        self.compiler.plan(id)?.unset_at(pointer)
    }

    /// The place that made a value of a body what it is: of a text that changed, the first byte
    /// that differs; of a value that is not there the entry of `unset` that removed it, else what
    /// should hold it.
    pub fn cause(
        &self,
        id: ProfileId,
        context: &str,
        pointer: &Pointer,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> Option<Span> {
        if new.is_none()
            && let Some(entry) = self.unset_at(id, pointer)
        {
            return Some(entry);
        }
        let pairing = Pairing::of(self.compiler, id, context)?.ok()?;
        let request = pairing.request(None);
        let body = pairing.body(&request).ok()?;
        let record = pairing.record(&request, &body);
        let place = match (old.and_then(Value::as_str), new.and_then(Value::as_str)) {
            (Some(old), Some(new)) => record.place_in_text(pointer, common_prefix(old, new)),
            _ => record.place(pointer, KeyOrValue::Value),
        };
        let outside = Places::new(self.compiler, &pairing.plan, pairing.loaded).outside(&place);
        Some(outside.map_or(place.span, |outside| outside.span))
    }

    fn explain_values(
        &self,
        id: ProfileId,
        context: &str,
        model: Option<&str>,
        pointer: Option<&Pointer>,
        with_branches: bool,
    ) -> Option<Result<Explained, Vec<Diagnostic>>> {
        let pairing = match Pairing::of(self.compiler, id, context)? {
            Ok(pairing) => pairing,
            Err(findings) => return Some(Err(findings)),
        };
        let request = pairing.request(model);
        let body = match pairing.body(&request) {
            Ok(body) => body,
            Err(findings) => return Some(Err(findings)),
        };
        let record = pairing.record(&request, &body);
        let places = Places::new(self.compiler, &pairing.plan, pairing.loaded);
        let mut values = Vec::new();
        for pointer in pointer.map_or_else(|| leaves(body.value()), |pointer| vec![pointer.clone()])
        {
            if let Some(value) = body.value().pointer(pointer.as_str()) {
                let explanation = places.explanation(&record, pointer, value.clone());
                values.push(self.with_model(explanation, &pairing.plan, model));
            }
        }
        let (mut branches, mut keys) = (Vec::new(), Vec::new());
        if with_branches {
            branches = record.branches();
            keys.extend(
                members(body.value())
                    .into_iter()
                    .filter_map(|at| record.key(&at).map(|key| (at, key))),
            );
        }
        drop(record);
        Some(Ok(Explained {
            body,
            values,
            branches,
            keys,
        }))
    }

    /// The model's name, if the client says another than the profile: in `models.toml`, or with the
    /// request.
    fn with_model(
        &self,
        explanation: Explanation,
        plan: &Plan<'_>,
        client: Option<&str>,
    ) -> Explanation {
        let Some(client) = client else {
            return explanation;
        };
        let entry = self
            .compiler
            .repo
            .models
            .get(plan.name())
            .filter(|entry| *entry.value == *client);
        let given = match entry {
            Some(entry) => (ProviderStep::Model, Some(entry.span)),
            None => (ProviderStep::GivenModel, None),
        };
        let mut explanation = explanation;
        for step in explanation.step.iter_mut().chain(&mut explanation.added) {
            if step.0 == ProviderStep::Model {
                *step = given;
            }
        }
        explanation
    }
}

impl Places<'_> {
    fn explanation(&self, record: &Record<'_>, pointer: Pointer, value: Value) -> Explanation {
        let mut explanation = Explanation {
            value,
            literal: None,
            overrode: Vec::new(),
            step: None,
            placed_by: None,
            added: record.added(&pointer),
            sources: Vec::new(),
            pointer,
        };
        match record.author(&explanation.pointer) {
            Author::Literal { span, overrode } => {
                (explanation.literal, explanation.overrode) = (Some(span), overrode);
            }
            Author::Template { literal, written } => {
                explanation.literal = Some(literal);
                explanation.sources = written
                    .into_iter()
                    .flat_map(|it| self.sources_of(it))
                    .collect();
            }
            Author::Step {
                step,
                setting,
                placed_by,
                source,
            } => {
                explanation.added.retain(|(added, _)| *added != step);
                (explanation.step, explanation.placed_by) = (Some((step, setting)), placed_by);
                explanation
                    .sources
                    .extend(source.map(|path| self.source_of_step(path)));
            }
        }
        explanation
    }
}

/// The leaves of a value: scalars, empty lists and empty objects.
pub(super) fn leaves(value: &Value) -> Vec<Pointer> {
    fn walk(value: &Value, at: Pointer, found: &mut Vec<Pointer>) {
        match value {
            Value::Array(elements) if !elements.is_empty() => {
                elements
                    .iter()
                    .enumerate()
                    .for_each(|(index, element)| walk(element, at.element(index), found));
            }
            Value::Object(members) if !members.is_empty() => {
                members
                    .iter()
                    .for_each(|(key, member)| walk(member, at.member(key), found));
            }
            _ => found.push(at),
        }
    }
    let mut found = Vec::new();
    walk(value, Pointer::root(), &mut found);
    found
}

/// The members of all objects in a value.
fn members(value: &Value) -> Vec<Pointer> {
    fn walk(value: &Value, at: &Pointer, found: &mut Vec<Pointer>) {
        match value {
            Value::Array(elements) => {
                elements
                    .iter()
                    .enumerate()
                    .for_each(|(index, element)| walk(element, &at.element(index), found));
            }
            Value::Object(members) => members.iter().for_each(|(key, member)| {
                found.push(at.member(key));
                walk(member, &at.member(key), found);
            }),
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(value, &Pointer::root(), &mut found);
    found
}

/// Returns how many bytes two texts begin with alike.
fn common_prefix(a: &str, b: &str) -> usize {
    let alike = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    b.floor_char_boundary(alike)
}
