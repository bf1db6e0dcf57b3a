//! Who wrote a value of a body, in terms of files: for findings, `reqc explain`, and the causes of a diff.

use std::ops::Range;
use std::sync::Arc;

use serde_json::Value;

use super::arrived::{Arrived, Piece};
use super::{Compiler, LoadedContext};
use crate::context::ContextSource;
use crate::conversation::{Block, Message};
use crate::diag::Diagnostic;
use crate::json::Pointer;
use crate::memory::{Identity, Question};
use crate::provider::ClientApi;
use crate::render::{By, ComputedFrom, ReadFile, ReadPlace, Step, TemplateId, Written};
use crate::repo::LayerKind;
use crate::resolve::{ProfileId, ResolvedProfile};
use crate::source::Span;
use crate::unit::{Author, Body, KeyOrValue, Plan, Provenance, ProviderStep, Record};

impl Compiler {
    /// Returns `true` if a place is in a bundled file, while the repository is another one.
    pub(super) fn is_bundled(&self, span: Span) -> bool {
        self.sources().get(span.file).path().starts_with("bundled:")
    }

    /// The place of what a template or a step only put into the body, and how it got there.
    pub(super) fn outside(&self, place: &Provenance, plan: &Plan<'_>, loaded: &LoadedContext) -> Option<Outside> {
        let read =
            place.file.as_ref().and_then(|(file, bytes)| self.file_span(file, Some(bytes.clone()), plan, loaded));
        // Who writes an agent does not write the bundled contexts.
        let is_own = loaded.context.layer != LayerKind::Bundled || plan.profile.profile.layer == LayerKind::Bundled;
        let data = || {
            let is_foreign = !place.is_in_data && self.is_bundled(place.span);
            let is_mended_there = (place.is_in_data && is_own) || is_foreign;
            let path = place.data.as_ref().or(place.parts.first().filter(|_| is_foreign));
            let value = || self.data_span(path?, plan, loaded);
            let span = is_mended_there
                .then(|| {
                    value().or_else(|| self.member_span(place.member.as_ref().filter(|_| is_foreign)?, plan, loaded))
                })
                .flatten()?;
            // Nobody here can edit a bundled template: a value that it takes over as it is is mended where it is from.
            Some(span).filter(|span| !is_foreign || !self.is_bundled(*span))
        };
        let read = read.map(|span| Outside { span, how: PutBy::Reading });
        read.or_else(|| Some(Outside { span: data()?, how: PutBy::Writing }))
    }

    /// The place that made a value of a body what it is: of a text that changed, the first byte that differs; of a value that is not
    /// there the entry of `unset` that removed it, else what should hold it.
    pub fn cause(
        &self,
        id: ProfileId,
        context: &str,
        pointer: &Pointer,
        old: Option<&Value>,
        new: Option<&Value>,
    ) -> Option<Span> {
        let (plan, loaded) = (self.plan(id)?, self.context(context)?);
        if let (None, Some(entry)) = (new, plan.unset_at(pointer)) {
            return Some(entry);
        }
        let renderer = self.engine.renderer(LoadedContext::size_class(&loaded.plain.normalised));
        let version = self.version(&plan, loaded, &renderer).result.ok()?;
        let request = loaded.request(&plan, &version, None);
        let body = plan.body(&self.repo.sources, &renderer, &request).ok()?;
        let record = Record::new(&plan, &self.repo.sources, &renderer, &request, &body);
        let place = match (old.and_then(Value::as_str), new.and_then(Value::as_str)) {
            (Some(old), Some(new)) => record.place_in_text(pointer, common_prefix(old, new)),
            _ => record.place(pointer, KeyOrValue::Value),
        };
        Some(self.outside(&place, &plan, loaded).map_or(place.span, |outside| outside.span))
    }

    /// The place that wrote something, and what led there: files that prompts read are places of their own.
    pub(super) fn in_files(
        &self,
        place: &Provenance,
        outside: Option<Outside>,
        plan: &Plan<'_>,
        loaded: &LoadedContext,
    ) -> (Span, Vec<(Span, &'static str)>) {
        let how = outside.map(|outside| (place.span, outside.how.phrase()));
        let mut related: Vec<(Span, &'static str)> = how.into_iter().chain(place.steps.iter().copied()).collect();
        let data =
            place.data.as_ref().filter(|_| outside.is_none()).and_then(|path| self.data_span(path, plan, loaded));
        related.extend(data.map(|span| (span, "the value comes from here")));
        let member = place.member.as_ref().filter(|_| outside.is_none());
        let member = member.and_then(|member| self.member_span(member, plan, loaded));
        related.extend(member.map(|span| (span, "it comes from here")));
        let parts = place.parts.iter().filter_map(|path| self.data_span(path, plan, loaded));
        let parts = parts.filter(|span| outside.is_none_or(|outside| outside.span != *span));
        let parts = parts.chain(place.literals.iter().copied());
        related.extend(parts.map(|span| (span, "a part of it comes from here")));
        let made_of = place.made_of.as_ref().and_then(|from| self.span_of(from, plan, loaded));
        related.extend(made_of.map(|span| (span, "computed from this")));
        (outside.map_or(place.span, |outside| outside.span), related)
    }

    /// Returns what a computed text was made of.
    fn span_of(&self, from: &ComputedFrom, plan: &Plan<'_>, loaded: &LoadedContext) -> Option<Span> {
        match from {
            ComputedFrom::Data(path) => self.data_span(path, plan, loaded),
            ComputedFrom::File(file) => self.file_span(file, None, plan, loaded),
            ComputedFrom::Template(span) => Some(*span),
        }
    }

    /// A range of a file that a prompt read, or all of it.
    fn file_span(
        &self,
        file: &ReadFile,
        bytes: Option<Range<usize>>,
        plan: &Plan<'_>,
        loaded: &LoadedContext,
    ) -> Option<Span> {
        match file.place {
            ReadPlace::Project => loaded.source(self)?.project_file_span(&file.path, usize::MAX),
            ReadPlace::Layer(index) => {
                let layer = self.repo.readable_layers(plan.profile.profile.layer).nth(index)?;
                let id = self.repo.prompt_file(layer, &file.path)?;
                Some(Span::new(id, bytes.unwrap_or_else(|| 0..self.sources().get(id).text().len())))
            }
        }
    }

    /// Where a value of the template data is written in its context file: found once for all agents that get the same conversation.
    pub(super) fn data_span(&self, path: &Pointer, plan: &Plan<'_>, loaded: &LoadedContext) -> Option<Span> {
        let asked = SpanOf {
            context: loaded.id,
            surroundings: plan.surroundings,
            layer: plan.profile.profile.layer,
            api: plan.api,
            path: path.clone(),
        };
        self.memory.ask(asked, || self.find_data_span(path, plan, loaded))
    }

    /// Where a part of a larger value of the template data is written, or its key.
    fn member_span(
        &self,
        (path, target): &(Arc<Pointer>, KeyOrValue),
        plan: &Plan<'_>,
        loaded: &LoadedContext,
    ) -> Option<Span> {
        match target {
            KeyOrValue::Value => self.data_span(path, plan, loaded),
            KeyOrValue::Key => self.in_context(plan, loaded, |source, normal| source.key_span(path, normal)),
        }
    }

    fn find_data_span(&self, path: &Pointer, plan: &Plan<'_>, loaded: &LoadedContext) -> Option<Span> {
        let span = self.in_context(plan, loaded, |source, normal| source.data_span(path, normal));
        span.or_else(|| match self.arrived(path, 0..usize::MAX, plan, loaded)? {
            Arrived::Rendered(_, runs) => runs.first().map(|run| run.span),
            Arrived::Joined(pieces) => pieces.iter().rev().find_map(|piece| piece.span),
        })
    }
}

impl Compiler {
    /// Asks the file of a context for a place; `normal` gives its history as templates see it.
    pub(super) fn in_context<T>(
        &self,
        plan: &Plan<'_>,
        loaded: &LoadedContext,
        find: impl FnOnce(&ContextSource, &dyn Fn(&[Message]) -> Arc<[Message]>) -> Option<T>,
    ) -> Option<T> {
        let renderer = self.engine.renderer(LoadedContext::size_class(&loaded.plain.normalised));
        let version = self.version(plan, loaded, &renderer).result.ok()?;
        find(loaded.source(self)?, &|history: &[Message]| version.normal(history, plan.api))
    }
}

/// A place of the repository by which something wrong in a bundled file reaches an agent: nobody can edit the bundled file there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Entrance {
    /// The place of the repository.
    pub(super) span: Span,
    /// The place of the mistake in the bundled file.
    bundled: Span,
}

impl Entrance {
    /// Returns what tells a problem apart from others that come in by the same place.
    pub(super) fn sense(&self, sense: Option<&str>) -> String {
        let Span { file, start, end } = self.bundled;
        format!("{} {file:?} {start} {end}", sense.unwrap_or_default())
    }

    /// A finding of the bundled place, told at the place of the repository.
    pub(super) fn tell(&self, finding: Diagnostic) -> Diagnostic {
        let sense = self.sense(finding.sense.as_deref());
        finding.told_at(self.span, "this is taken over").in_sense(Some(sense))
    }
}

impl Compiler {
    /// A finding that was made at its place, told at the entrance if that is in a bundled file.
    pub(super) fn at_entrance(&self, finding: Diagnostic, profile: &ResolvedProfile<'_>) -> Diagnostic {
        let steps: Vec<(Span, &'static str)> = finding.related.iter().map(|label| (label.span, "")).collect();
        match self.entrance((finding.primary.span, &steps), None, profile) {
            Some(entrance) => entrance.tell(finding),
            None => finding,
        }
    }

    /// The place of the repository to which a finding at a place belongs, if that is in a bundled file. What is wrong because of
    /// the model belongs to the model's name, anything else to what includes the file: a template's tag, or the profile's
    /// `extends`.
    pub(super) fn entrance(
        &self,
        (span, steps): (Span, &[(Span, &'static str)]),
        model: Option<Span>,
        profile: &ResolvedProfile<'_>,
    ) -> Option<Entrance> {
        let is_own = |span: &Span| !self.is_bundled(*span);
        let entrance = || {
            model
                .filter(is_own)
                .or_else(|| steps.iter().map(|(span, _)| *span).find(is_own))
                .or_else(|| profile.bundled_parent())
        };
        self.is_bundled(span).then(entrance).flatten().map(|entrance| Entrance { span: entrance, bundled: span })
    }
}

/// A place outside of templates and profiles: in a context, or in a file that a prompt read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Outside {
    pub(super) span: Span,
    how: PutBy,
}

impl Outside {
    /// Returns `true` if a value of a context is the place: what is told there is told once for all agents.
    pub(super) fn is_in_context(self) -> bool {
        self.how == PutBy::Writing
    }
}

/// Asks where a value of a context is written: names the context, the surroundings that an agent adds to the conversation, the layer
/// that these read from, and the client API in whose normal form the conversation is.
#[derive(PartialEq, Eq, Hash)]
struct SpanOf {
    context: Identity,
    surroundings: Option<TemplateId>,
    layer: LayerKind,
    api: ClientApi,
    path: Pointer,
}

impl Question for SpanOf {
    type Answer = Option<Span>;
}

/// How a value got into a body that is mended where it comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PutBy {
    /// A prompt read it.
    Reading,
    /// A template or a step wrote it.
    Writing,
}

impl PutBy {
    fn phrase(self) -> &'static str {
        match self {
            PutBy::Reading => "read here",
            PutBy::Writing => "put into the body here",
        }
    }
}

/// Returns `true` if a block of the provider's own wrote a value of a body, or it is the signature of thinking with a known origin. `history`
/// is in the normal form of the client API: others' blocks are gone. A key is written by what writes its value, and an object
/// without members by what writes the value that it is in.
pub(super) fn is_providers_own(record: &Record<'_>, pointer: &Pointer, history: &[Message]) -> bool {
    let around = std::iter::successors(Some(pointer.clone()), Pointer::parent);
    let path = around.map(|at| record.place(&at, KeyOrValue::Value)).find_map(|place| place.data.or(place.holds));
    let Some(path) = path else { return false };
    let tokens: Vec<String> = path.tokens().take(5).collect();
    let index = |at: usize| tokens.get(at).and_then(|token| token.parse::<usize>().ok());
    let is_block =
        matches!(tokens.as_slice(), [ctx, _, blocks, _, ..] if ctx == "history" && blocks == "content_blocks");
    let is_signature = tokens.last().is_some_and(|member| member == "signature" || member == "data");
    let block = || history.get(index(1)?)?.blocks.get(index(3)?);
    is_block
        && block().is_some_and(|block| match block {
            Block::Provider(_) => true,
            Block::Thinking { origin, .. } | Block::RedactedThinking { origin, .. } => is_signature && origin.is_some(),
            _ => false,
        })
}

/// A body, and who wrote its values.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explained {
    /// The body.
    pub body: Body,
    /// The values that were asked for, in the order of the body.
    pub values: Vec<Explanation>,
    /// The tags of the branches and loops that templates went into, if they were asked for.
    pub(super) branches: Vec<Span>,
    /// Where the keys of members are written, if they were asked for.
    pub(super) keys: Vec<(Pointer, Span)>,
}

/// Who wrote a value of a body.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Explanation {
    /// Where in the body.
    pub pointer: Pointer,
    /// The value.
    pub value: Value,
    /// The literal of the profile that it stands in: the value itself, or the template that rendered it. `None` if a provider step
    /// wrote it.
    pub literal: Option<Span>,
    /// The values of earlier levels of the chain, the nearest first.
    pub overrode: Vec<Span>,
    /// The provider step that wrote it, and its setting.
    pub step: Option<(ProviderStep, Option<Span>)>,
    /// The setting that says where the step writes.
    pub placed_by: Option<Span>,
    /// The provider steps that added to a list or an object that another wrote, each with its setting.
    pub added: Vec<(ProviderStep, Option<Span>)>,
    /// The output of a template, run by run; or the one value of the context that a step wrote.
    pub sources: Vec<ValueSource>,
}

/// Who wrote a run of a value's text.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ValueSource {
    /// The kind of source.
    pub kind: SourceKind,
    /// The text to edit, if it is in a file.
    pub span: Option<Span>,
    /// The template's text or tag that wrote it.
    pub tag: Option<Span>,
    /// The steps that led there, the innermost first.
    pub steps: Vec<Step>,
    /// The place in the template data, for values of a conversation.
    pub data: Option<Pointer>,
    /// The values that a computed text was made of.
    pub made_of: Vec<Span>,
    /// How many bytes of the rendered JSON these are.
    pub len: usize,
}

/// A kind of source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SourceKind {
    /// Literal text of a template.
    Template,
    /// A value of the conversation.
    Data,
    /// A file that a prompt read.
    File,
    /// A tag, with what it writes around values.
    Tag,
    /// Computed by a tag: an inferred place.
    Computed,
}

impl SourceKind {
    /// Returns `true` if the place is inferred: what stands there takes part, but is not what was written.
    pub fn is_inferred(self) -> bool {
        self == SourceKind::Computed
    }

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            SourceKind::Template => "template",
            SourceKind::Data => "data",
            SourceKind::File => "file",
            SourceKind::Tag => "tag",
            SourceKind::Computed => "computed",
        }
    }
}

impl Compiler {
    /// One body of one agent, and who wrote the value at a pointer of it, or without a pointer each of its leaves. `None` if
    /// there is no such body.
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

    /// Where the templates of a body write what holds its values together, each place with the list or object that it is of.
    pub(super) fn structure(&self, id: ProfileId, context: &str, model: Option<&str>) -> Vec<(Pointer, Span)> {
        let Some(Ok(pairing)) = self.pairing(id, context) else { return Vec::new() };
        let (plan, request) = (&pairing.plan, pairing.request(model));
        let Ok(body) = plan.body(&self.repo.sources, &pairing.renderer, &request) else { return Vec::new() };
        Record::new(plan, &self.repo.sources, &pairing.renderer, &request, &body).structure()
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

    /// The entry of `unset` by which an agent's bodies lack what is at a pointer.
    pub fn unset_at(&self, id: ProfileId, pointer: &Pointer) -> Option<Span> {
        self.plan(id)?.unset_at(pointer)
    }

    fn explain_values(
        &self,
        id: ProfileId,
        context: &str,
        model: Option<&str>,
        pointer: Option<&Pointer>,
        with_branches: bool,
    ) -> Option<Result<Explained, Vec<Diagnostic>>> {
        let pairing = match self.pairing(id, context)? {
            Ok(pairing) => pairing,
            Err(finding) => return Some(Err(vec![*finding])),
        };
        let (plan, loaded, request) = (&pairing.plan, pairing.loaded, pairing.request(model));
        let body = match plan.body(&self.repo.sources, &pairing.renderer, &request) {
            Ok(body) => body,
            Err(findings) => return Some(Err(findings)),
        };
        let record = Record::new(plan, &self.repo.sources, &pairing.renderer, &request, &body);
        let pointers = pointer.map_or_else(|| leaves(body.value()), |pointer| vec![pointer.clone()]);
        let values = pointers
            .into_iter()
            .filter_map(|pointer| {
                let value = body.value().pointer(pointer.as_str())?.clone();
                let explanation = self.explanation(&record, pointer, value, plan, loaded);
                Some(self.with_model(explanation, plan, model))
            })
            .collect();
        let (branches, members) = match with_branches {
            true => (record.branches(), members(body.value())),
            false => (Vec::new(), Vec::new()),
        };
        let keys =
            members.into_iter().filter_map(|at| Some((record.key(&at)?, at))).map(|(key, at)| (at, key)).collect();
        drop(record);
        Some(Ok(Explained { body, values, branches, keys }))
    }

    fn explanation(
        &self,
        record: &Record<'_>,
        pointer: Pointer,
        value: Value,
        plan: &Plan<'_>,
        loaded: &LoadedContext,
    ) -> Explanation {
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
                explanation.sources = written.into_iter().flat_map(|it| self.sources_of(it, plan, loaded)).collect();
            }
            Author::Step { step, setting, placed_by, source } => {
                explanation.added.retain(|(added, _)| *added != step);
                (explanation.step, explanation.placed_by) = (Some((step, setting)), placed_by);
                explanation.sources.extend(source.map(|path| ValueSource {
                    kind: SourceKind::Data,
                    span: self.data_span(&path, plan, loaded),
                    tag: None,
                    steps: Vec::new(),
                    data: Some(path),
                    made_of: Vec::new(),
                    len: 0,
                }));
            }
        }
        explanation
    }

    /// The model's name, if the client says another than the profile: in `models.toml`, or with the request.
    fn with_model(&self, explanation: Explanation, plan: &Plan<'_>, client: Option<&str>) -> Explanation {
        let Some(client) = client else { return explanation };
        let entry = self.repo.models.get(plan.name()).filter(|entry| *entry.value == *client);
        let given = match entry {
            Some(entry) => (ProviderStep::Model, Some(entry.span)),
            None => (ProviderStep::GivenModel, None),
        };
        let said = |step: (ProviderStep, Option<Span>)| if step.0 == ProviderStep::Model { given } else { step };
        let added = explanation.added.into_iter().map(said).collect();
        Explanation { step: explanation.step.map(said), added, ..explanation }
    }

    /// Who wrote a run; what came with a turn has its own template, or its text in the context.
    fn sources_of(&self, written: Written, plan: &Plan<'_>, loaded: &LoadedContext) -> Vec<ValueSource> {
        let arrived = match &written.by {
            By::Data { path, bytes } => self.arrived(path, bytes.clone(), plan, loaded),
            _ => None,
        };
        match arrived {
            Some(Arrived::Rendered(turn, runs)) => {
                runs.into_iter().map(|it| self.source_in_turn(turn, it, plan, loaded)).collect()
            }
            Some(Arrived::Joined(pieces)) => {
                let source = self.source(written, plan, loaded);
                pieces.iter().map(|piece| source.piece(piece)).collect()
            }
            None => vec![self.source(written, plan, loaded)],
        }
    }

    /// Who wrote a run of what surroundings say in a turn.
    fn source_in_turn(&self, turn: usize, written: Written, plan: &Plan<'_>, loaded: &LoadedContext) -> ValueSource {
        let context = loaded.source(self);
        let span = match &written.by {
            By::Data { path, .. } => context.and_then(|it| it.setting_span(path, turn)),
            By::File { file, .. } if file.place == ReadPlace::Project => {
                context.and_then(|it| it.project_file_span(&file.path, turn))
            }
            _ => None,
        };
        let source = self.source(written, plan, loaded);
        ValueSource { span: span.or(source.span), ..source }
    }

    fn source(&self, written: Written, plan: &Plan<'_>, loaded: &LoadedContext) -> ValueSource {
        let mut source = ValueSource {
            kind: SourceKind::Template,
            span: Some(written.span),
            tag: Some(written.statement()),
            steps: written.steps,
            data: None,
            made_of: Vec::new(),
            len: written.output.len(),
        };
        match written.by {
            By::Template => {}
            By::Tag => source.kind = SourceKind::Tag,
            // Which role the message gets that stands for an item is the program's matter.
            By::Data { path, .. } if self.is_role_of_item(&path, plan, loaded) => {
                source.kind = SourceKind::Computed;
                source.made_of.extend(self.data_span(&path, plan, loaded));
            }
            By::Data { path, .. } => {
                source.kind = SourceKind::Data;
                source.span = self.data_span(&path, plan, loaded);
                source.data = Some((*path).clone());
            }
            By::File { file, bytes } => {
                source.kind = SourceKind::File;
                source.span = self.file_span(&file, Some(bytes), plan, loaded);
            }
            By::Computed(from) => {
                source.kind = SourceKind::Computed;
                source.made_of = from.iter().filter_map(|from| self.span_of(from, plan, loaded)).collect();
            }
        }
        source
    }
}

impl ValueSource {
    /// The source of a part of a text that was joined; what no file says is written by the tag.
    fn piece(&self, piece: &Piece) -> ValueSource {
        let (kind, span) = match piece.span {
            Some(span) => (SourceKind::Data, Some(span)),
            None => (SourceKind::Tag, self.tag),
        };
        ValueSource { kind, span, len: piece.len, ..self.clone() }
    }
}

/// The leaves of a value: scalars, empty lists and empty objects.
pub(super) fn leaves(value: &Value) -> Vec<Pointer> {
    fn walk(value: &Value, at: Pointer, found: &mut Vec<Pointer>) {
        match value {
            Value::Array(elements) if !elements.is_empty() => {
                elements.iter().enumerate().for_each(|(index, element)| walk(element, at.element(index), found));
            }
            Value::Object(members) if !members.is_empty() => {
                members.iter().for_each(|(key, member)| walk(member, at.member(key), found));
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
                elements.iter().enumerate().for_each(|(index, element)| walk(element, &at.element(index), found));
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

impl LoadedContext {
    /// The file, with the places of its values.
    pub(super) fn source(&self, compiler: &Compiler) -> Option<&ContextSource> {
        let text = || compiler.repo.sources.get(self.context.file).text();
        self.source.get_or_init(|| ContextSource::read(&self.context, text())).as_ref()
    }
}

/// How many bytes two texts begin with alike.
fn common_prefix(a: &str, b: &str) -> usize {
    let alike = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
    b.floor_char_boundary(alike)
}
