//! Finds where the values in bodies were written, for findings, `reqc explain` and the causes of
//! changes.

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

/// A body, and the origins of its values.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explained {
    /// The compiled body.
    pub body: Body,
    /// The requested values, in body order.
    pub values: Vec<Explanation>,
    /// The tags of the branches and loops that templates entered, if requested.
    pub(in crate::compile) branches: Vec<Span>,
    /// The locations of the members' keys, if requested.
    pub(in crate::compile) keys: Vec<(Pointer, Span)>,
}

/// The origin of a value in a body.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explanation {
    /// The location in the body.
    pub pointer: Pointer,
    /// The value at this location.
    pub value: Value,
    /// The literal in the profile: the value itself, or the template that rendered it. `None` if a
    /// provider step wrote it.
    pub literal: Option<Span>,
    /// The values that this value overrides, at earlier levels of the chain, nearest first.
    pub overrode: Vec<Span>,
    /// The provider step that wrote the value, and its setting.
    pub step: Option<(ProviderStep, Option<Span>)>,
    /// The setting that determines where the step writes the value.
    pub placed_by: Option<Span>,
    /// The provider steps that added to a list or object that they did not create, each with its
    /// setting.
    pub added: Vec<(ProviderStep, Option<Span>)>,
    /// The sources of the runs in a template's output, or the single context value that a step
    /// wrote.
    pub sources: Vec<ValueSource>,
}

/// Explains the origins of the values in bodies.
pub struct Explainer<'a> {
    pub(super) compiler: &'a Compiler,
}

impl<'a> Explainer<'a> {
    /// Returns an explainer for a repository's bodies.
    pub fn new(compiler: &'a Compiler) -> Explainer<'a> {
        Explainer { compiler }
    }

    /// Explains the value at a pointer in one of an agent's bodies or, without a pointer, all of
    /// the body's leaves. Returns `None` if there is no such body.
    ///
    /// # Errors
    ///
    /// Returns the findings that prevent the body from being compiled.
    pub fn explain(
        &self,
        id: ProfileId,
        context: &str,
        model: Option<&str>,
        pointer: Option<&Pointer>,
    ) -> Option<Result<Explained, Vec<Diagnostic>>> {
        self.explain_values(id, context, model, pointer, false)
    }

    /// Explains every leaf of a body, and the branches that its templates took.
    pub(super) fn explain_with_branches(
        &self,
        id: ProfileId,
        context: &str,
        model: Option<&str>,
    ) -> Option<Result<Explained, Vec<Diagnostic>>> {
        self.explain_values(id, context, model, None, true)
    }

    /// Returns the locations where the templates of a body write its structure (brackets and
    /// commas), each with its list or object.
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

    /// Returns the `unset` entry that removes the value at a pointer from an agent's bodies.
    pub fn unset_at(&self, id: ProfileId, pointer: &Pointer) -> Option<Span> {
        self.compiler.plan(id)?.unset_at(pointer)
    }

    /// Returns the location that caused a value. For changed text, this is the origin of the first
    /// byte that differs. For a missing value, it is the `unset` entry that removed the value,
    /// or else the value that should contain it.
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

    /// Replaces the origin of the model's name if the client overrides the profile, in
    /// `models.toml` or in the request.
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

/// Returns the leaves of a value: scalars, empty lists and empty objects.
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

/// Returns the members of all objects in a value.
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

/// Returns the length of the common prefix of two strings, in bytes.
fn common_prefix(a: &str, b: &str) -> usize {
    let alike = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    b.floor_char_boundary(alike)
}
