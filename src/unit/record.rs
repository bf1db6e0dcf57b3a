//! Finds the writer of each value in a body: a profile's literal, a template, or a provider step.
//!
//! Input: a body, and everything that it was compiled from. Assembly and the provider steps record
//! what they did ([`Splice`], [`Steps`](super::body::Steps)); a splice contains the recording of
//! what its template wrote.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::body::Body;
use super::costed::HOLDER;
use super::excerpt::{self, Excerpt};
use super::fragment::FragmentOf;
use super::plan::{KeyOrValue, Plan};
use super::prompt::{SystemPrompt, placeholder};
use super::request::Request;
use super::splices::{Splice, SpliceIndex};
use crate::json::{self, Pointer, Tree};
use crate::memory::{Identity, Question};
use crate::provider::{is_injected, tool_source};
use crate::render::{By, ComputedFrom, ReadFile, Recording, Renderer, Written};
use crate::repo::Repo;
use crate::source::{Sources, Span};

/// A provider step, which a profile setting enables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderStep {
    /// Adds the model's name as the first member.
    Model,
    /// Adds the model's name as specified by the caller.
    GivenModel,
    /// Appends the tool definitions.
    Tools,
    /// Adds the prompt-cache breakpoints.
    Cache,
    /// Sets how long the cached prefixes are kept.
    CacheTtl,
}

impl ProviderStep {
    /// Returns the profile key that enables the step.
    pub fn setting(self) -> &'static str {
        match self {
            ProviderStep::Model | ProviderStep::GivenModel => "model",
            ProviderStep::Tools => "enable_tools",
            ProviderStep::Cache => "cache_prompt",
            ProviderStep::CacheTtl => "cache_ttl",
        }
    }
}

/// The author of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Author {
    /// A literal in a profile, with the literals that it overrides, the nearest first.
    Literal {
        /// The literal in the profile.
        span: Span,
        /// The literals that this literal overrides.
        overrode: Vec<Span>,
    },
    /// A template.
    Template {
        /// The template's literal.
        literal: Span,
        /// The runs of the template's output, with their sources.
        written: Vec<Written>,
    },
    /// A provider step.
    Step {
        /// The step that wrote the value.
        step: ProviderStep,
        /// The setting, if the profile contains it.
        setting: Option<Span>,
        /// The setting that determines where the step writes.
        placed_by: Option<Span>,
        /// The conversation value that the step wrote, as a pointer into the context.
        source: Option<Pointer>,
    },
}

/// The location where a value is written, for a finding.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Provenance {
    pub(crate) span: Span,
    /// The steps that lead to the location, the innermost first.
    pub(crate) steps: Vec<(Span, &'static str)>,
    /// The rendered text around the location.
    pub(crate) excerpt: Option<Excerpt>,
    /// The conversation value that was written.
    pub(crate) data: Option<Arc<Pointer>>,
    /// The first conversation value in an object or list that a tag wrote.
    pub(crate) holds: Option<Arc<Pointer>>,
    /// The first conversation values in a string joined from several parts that begins with
    /// template text.
    pub(crate) parts: Vec<Arc<Pointer>>,
    /// The conversation value that a tag wrote as a part of a larger value, and whether the
    /// location is its key or its value.
    pub(crate) member: Option<(Arc<Pointer>, KeyOrValue)>,
    /// The first literals in the joined text that are located outside the tag that wrote them.
    pub(crate) literals: Vec<Span>,
    /// `true` if no template determines the value: it comes from the conversation, or a provider
    /// step adds it.
    pub(crate) is_in_data: bool,
    /// The first value that a computed string was derived from.
    pub(crate) made_of: Option<ComputedFrom>,
    /// The prompt file that was written, and the range in it.
    pub(crate) file: Option<(Arc<ReadFile>, Range<usize>)>,
}

impl Provenance {
    fn at(span: Span) -> Provenance {
        Provenance {
            span,
            steps: Vec::new(),
            excerpt: None,
            data: None,
            holds: None,
            parts: Vec::new(),
            member: None,
            literals: Vec::new(),
            is_in_data: false,
            made_of: None,
            file: None,
        }
    }

    /// Returns `true` if the text comes from the system prompt.
    fn is_prompt(&self) -> bool {
        self.data
            .as_ref()
            .is_some_and(|path| path.tokens().next().as_deref() == Some("system_prompt"))
    }
}

/// The record of one body, which finds the authors of its values.
pub(crate) struct Record<'a> {
    plan: &'a Plan<'a>,
    sources: &'a Sources,
    renderer: &'a Renderer<'a>,
    request: &'a Request<'a>,
    body: &'a Body,
    splices: SpliceIndex<'a>,
    prompt: OnceCell<Option<Arc<Recording>>>,
    recorded: Vec<Recorded>,
    /// The conversation values that a single tag wrote, by recording and start offset; cached
    /// because one value may contain thousands of locations.
    taken_over: RefCell<HashMap<(Identity, usize), Option<TakenOver>>>,
}

/// A conversation value that a tag wrote unchanged.
#[derive(Clone)]
struct TakenOver {
    /// The location in the template's output.
    at: Pointer,
    /// The location in the conversation.
    path: Pointer,
}

/// The views of one template's recording, created on first use.
#[derive(Default)]
struct Recorded {
    text: OnceCell<Option<Text>>,
    /// The text with the placeholder in place of the system prompt.
    hollow: OnceCell<Option<Text>>,
    /// The writers of the output, where the system prompt counts as a data value; only for a hollow
    /// splice.
    apart: OnceCell<Recording>,
    /// The writers of the output, including those of the system prompt.
    whole: OnceCell<Recording>,
}

/// The output of one template, without trailing commas.
struct Text {
    text: String,
    tree: Tree,
}

/// A [`Question`] about the writer of a location in a template's output. The answer is the same for
/// all agents, because a mistake in a shared template appears in all of their bodies.
#[derive(PartialEq, Eq, Hash)]
struct PlaceOf {
    fragment: FragmentOf,
    inner: Pointer,
    target: KeyOrValue,
}

impl Question for PlaceOf {
    type Answer = Option<Provenance>;

    fn weight(&self, answer: &Option<Provenance>) -> usize {
        8 * HOLDER
            + FragmentOf::weight(&self.fragment)
            + answer
                .iter()
                .flat_map(|place| &place.excerpt)
                .map(Excerpt::len)
                .sum::<usize>()
    }
}

/// The owner of the value at a pointer.
enum Owner<'b> {
    Step(ProviderStep, Option<Pointer>),
    /// The index of the splice, and the location in its output.
    Splice(usize, &'b Splice, Pointer),
    /// A value in the profile, with its pointer before the provider steps.
    Literal(Pointer),
}

impl<'a> Record<'a> {
    pub(crate) fn new(
        plan: &'a Plan<'a>,
        sources: &'a Sources,
        renderer: &'a Renderer<'a>,
        request: &'a Request<'a>,
        body: &'a Body,
    ) -> Record<'a> {
        let splices = SpliceIndex::new(body.splices());
        let recorded = body.splices().iter().map(|_| Recorded::default()).collect();
        Record {
            plan,
            sources,
            renderer,
            request,
            body,
            splices,
            prompt: OnceCell::new(),
            recorded,
            taken_over: RefCell::default(),
        }
    }

    /// Returns the body.
    pub(crate) fn body(&self) -> &'a Body {
        self.body
    }

    /// Returns the cost in units of finding the writer of a location in its template.
    pub(crate) fn cost(&self, pointer: &Pointer) -> u64 {
        match self.owner(pointer) {
            Owner::Splice(_, splice, _) => splice.cost.saturating_mul(RECORDED),
            _ => 0,
        }
    }

    /// Returns the index of the splice that contains a pointer.
    pub(crate) fn splice(&self, pointer: &Pointer) -> Option<usize> {
        match self.owner(pointer) {
            Owner::Splice(index, ..) => Some(index),
            _ => None,
        }
    }

    /// Returns the location where the value at a pointer, or its key, is written.
    pub(crate) fn place(&self, pointer: &Pointer, target: KeyOrValue) -> Provenance {
        match self.owner(pointer) {
            Owner::Step(step, source) => {
                let setting = self.plan.setting(step.setting());
                let place = Provenance::at(
                    setting.unwrap_or_else(|| self.plan.literal(pointer, target, &self.splices)),
                );
                Provenance {
                    data: source.map(Arc::new),
                    is_in_data: true,
                    ..place
                }
            }
            // The key of a template's value is in the profile, regardless of what the template
            // writes.
            Owner::Splice(_, _, inner) if target == KeyOrValue::Key && inner.parent().is_none() => {
                Provenance::at(self.plan.literal(pointer, target, &self.splices))
            }
            Owner::Splice(index, splice, inner) => self.remembered(index, splice, &inner, target),
            Owner::Literal(at) => Provenance::at(self.plan.literal(&at, target, &self.splices)),
        }
    }

    /// Returns the location where the character at a byte offset in a string was written.
    pub(crate) fn place_in_text(&self, pointer: &Pointer, from: usize) -> Provenance {
        let Owner::Splice(index, splice, inner) = self.owner(pointer) else {
            return self.place(pointer, KeyOrValue::Value);
        };
        let found = || {
            let written = self.text(index)?;
            let span = written.tree.locate(&inner)?.span.clone();
            let text: String = serde_json::from_str(written.text.get(span.clone())?).ok()?;
            let before = json::escaped_len(text.get(..from)?);
            let start = (span.start + 1 + before).min(span.end);
            Some(self.place_of(
                (written, self.whole(index)),
                start..(start + 1).min(span.end),
                splice,
            ))
        };
        found().unwrap_or_else(|| self.place(pointer, KeyOrValue::Value))
    }

    /// Returns a location like [`Record::place`] but, for a template's output, only the template's
    /// literal. Used if there are many pointers.
    pub(crate) fn rough_place(&self, pointer: &Pointer, target: KeyOrValue) -> Provenance {
        match self.owner(pointer) {
            Owner::Splice(_, splice, _) => Provenance::at(splice.literal),
            _ => self.place(pointer, target),
        }
    }

    /// Returns the author of the value at a pointer.
    pub(crate) fn author(&self, pointer: &Pointer) -> Author {
        match self.owner(pointer) {
            Owner::Step(step, source) => {
                let is_cache = matches!(step, ProviderStep::Cache | ProviderStep::CacheTtl);
                let placed_by = self.plan.setting("cache_breakpoints").filter(|_| is_cache);
                Author::Step {
                    step,
                    setting: self.plan.setting(step.setting()),
                    placed_by,
                    source,
                }
            }
            Owner::Splice(index, splice, inner) => {
                let written = || {
                    let recording = self.whole(index);
                    let text = self.text(index)?;
                    let range = inside(text, &text.tree.locate(&inner)?.span);
                    Some(self.renderer.written(self.sources, recording, range))
                };
                Author::Template {
                    literal: splice.literal,
                    written: written().unwrap_or_default(),
                }
            }
            Owner::Literal(at) => {
                let (span, overrode) = self.plan.levels(&at, &self.splices);
                Author::Literal { span, overrode }
            }
        }
    }

    /// Returns the location of a member's key; `None` if a provider step wrote it.
    pub(crate) fn key(&self, pointer: &Pointer) -> Option<Span> {
        match self.owner(pointer) {
            Owner::Step(..) => None,
            Owner::Splice(index, _, inner) if inner.parent().is_some() => {
                let recording = self.whole(index);
                let range = range_of(self.text(index)?, &inner, KeyOrValue::Key)?;
                let written = self.renderer.written(self.sources, recording, range);
                Some(written.first()?.span)
            }
            Owner::Splice(..) => Some(self.plan.literal(pointer, KeyOrValue::Key, &self.splices)),
            Owner::Literal(at) => Some(self.plan.literal(&at, KeyOrValue::Key, &self.splices)),
        }
    }

    /// Returns the provider steps that added to the value at a pointer, each with its setting.
    pub(crate) fn added(&self, pointer: &Pointer) -> Vec<(ProviderStep, Option<Span>)> {
        let steps = self.body.steps();
        let model = steps
            .has_model
            .then(|| (ProviderStep::Model, Pointer::root().member("model")));
        let tools = steps.tools_behind.map(|own| {
            (
                ProviderStep::Tools,
                Pointer::root().member("tools").element(own),
            )
        });
        let mark = steps
            .marks
            .iter()
            .map(|mark| (ProviderStep::Cache, mark.pointer()));
        let is_inside = |at: &Pointer| {
            at.parent()
                .is_some_and(|parent| parent.below(pointer).is_some())
        };
        let inside = model
            .into_iter()
            .chain(tools)
            .chain(mark)
            .filter(|(_, at)| is_inside(at));
        let mut added: Vec<_> = inside
            .map(|(step, _)| (step, self.plan.setting(step.setting())))
            .collect();
        added.dedup();
        added
    }

    /// Returns the branches and loops that the templates entered.
    pub(crate) fn branches(&self) -> Vec<Span> {
        let recorded = (0..self.recorded.len()).map(|index| self.whole(index));
        let recordings = recorded.chain(self.prompt().map(|prompt| &**prompt));
        recordings
            .flat_map(|recording| self.renderer.branches(self.sources, recording))
            .collect()
    }

    /// Returns the locations where templates write brackets, braces and commas, each with its list
    /// or object.
    pub(crate) fn structure(&self) -> Vec<(Pointer, Span)> {
        let mut found = Vec::new();
        for (index, splice) in self.body.splices().iter().enumerate() {
            let recording = self.whole(index);
            let Some(text) = self.text(index) else {
                continue;
            };
            let mut gaps = Vec::new();
            text.tree.gaps(&splice.pointer, &mut gaps);
            for (pointer, gap) in gaps {
                for range in signs(&text.text, gap) {
                    let runs = self.renderer.written(self.sources, recording, range);
                    found.extend(runs.iter().map(|run| (pointer.clone(), run.statement())));
                }
            }
        }
        found
    }

    /// Returns the location where the request's model is specified; `None` if the caller specifies
    /// it, or if it is not specified.
    pub(crate) fn model_named_at(&self, repo: &Repo) -> Option<Span> {
        let is_given = self
            .request
            .model
            .is_some_and(|model| !model.trim().is_empty());
        let of_client = || repo.models.get(self.plan.name()).map(|entry| entry.span);
        (!is_given)
            .then(|| of_client().or_else(|| self.plan.setting(ProviderStep::Model.setting())))
            .flatten()
    }

    fn owner(&self, pointer: &Pointer) -> Owner<'_> {
        let steps = self.body.steps();
        if steps.has_model && pointer.below(&Pointer::root().member("model")).is_some() {
            return Owner::Step(ProviderStep::Model, None);
        }
        let mut pointer = pointer.clone();
        for mark in &steps.marks {
            match mark.before(&pointer) {
                Some(before) => pointer = before,
                None if pointer.tokens().last().as_deref() == Some("ttl") => {
                    return Owner::Step(ProviderStep::CacheTtl, None);
                }
                None => return Owner::Step(ProviderStep::Cache, None),
            }
        }
        if let Some(own) = steps.tools_behind
            && let Some(inner) = pointer.below(&Pointer::root().member("tools"))
            && is_injected(own, &inner)
        {
            return Owner::Step(
                ProviderStep::Tools,
                tool_source(self.plan.wire, own, &inner),
            );
        }
        match self.splices.around(&pointer) {
            Some((index, splice, inner)) => Owner::Splice(index, splice, inner),
            None => Owner::Literal(pointer),
        }
    }

    /// Finds the location in the template's output, reusing the result if it was already computed
    /// for another agent.
    fn remembered(
        &self,
        index: usize,
        splice: &Splice,
        inner: &Pointer,
        target: KeyOrValue,
    ) -> Provenance {
        let find = || self.own_place(index, splice, inner, target);
        let place = |prompt: Option<&SystemPrompt>| {
            let fragment =
                self.plan
                    .fragment_of(self.renderer, self.request, splice.template, prompt);
            PlaceOf {
                fragment,
                inner: inner.clone(),
                target,
            }
        };
        let known = match self.request.memory {
            Some(memory) if splice.is_hollow => memory
                .ask(place(Some(placeholder())), || {
                    self.hollow_place(index, splice, inner, target)
                })
                .or_else(find),
            Some(memory)
                if self
                    .plan
                    .shares(self.renderer, splice.template, self.body.prompt()) =>
            {
                memory.ask(place(self.body.prompt()), find)
            }
            _ => find(),
        };
        known.unwrap_or_else(|| Provenance::at(splice.literal))
    }

    /// Finds the location in the output for this prompt. Replaces the prompt with its own recording
    /// only if the location is inside the prompt.
    fn own_place(
        &self,
        index: usize,
        splice: &Splice,
        inner: &Pointer,
        target: KeyOrValue,
    ) -> Option<Provenance> {
        let text = self.text(index)?;
        let range = range_of(text, inner, target)?;
        let place = |recording| {
            let place = self.place_of((text, recording), range.clone(), splice);
            self.with_member(place, (text, recording), (inner, target), &range)
        };
        Some(place(self.apart(index)))
            .filter(|place| !place.is_prompt())
            .or_else(|| Some(place(self.whole(index))))
    }

    /// Finds the location in the prompt-independent output; returns `None` if the location is in
    /// the prompt, or if the prompt would be visible in the excerpt.
    fn hollow_place(
        &self,
        index: usize,
        splice: &Splice,
        inner: &Pointer,
        target: KeyOrValue,
    ) -> Option<Provenance> {
        let recording = &splice.recording;
        let text = self.recorded[index]
            .hollow
            .get_or_init(|| Text::of(recording))
            .as_ref()?;
        let range = range_of(text, inner, target)?;
        let shown = excerpt::shown(&range);
        let place = self.place_of((text, recording), range.clone(), splice);
        let place = self.with_member(place, (text, recording), (inner, target), &range);
        let is_apart =
            !place.is_prompt() && !placeholder().is_in(&shown, &placeholder().found_in(&text.text));
        is_apart.then_some(place)
    }

    fn place_of(
        &self,
        (text, recording): (&Text, &Recording),
        range: Range<usize>,
        splice: &Splice,
    ) -> Provenance {
        let written = |range| self.renderer.written(self.sources, recording, range);
        let whole = written(range.clone());
        // If the template writes the quotes as literal text, only the text between them counts.
        let runs = if one(&whole) {
            whole
        } else {
            written(inside(text, &range))
        };
        // The values inside a list or an object have their own locations.
        let is_whole = matches!(text.text.as_bytes().get(range.start), Some(b'[' | b'{'));
        let Some(first) = runs
            .iter()
            .find(|run| is_whole || run.by != By::Tag)
            .or(runs.first())
        else {
            return Provenance::at(splice.literal);
        };
        let mut steps: Vec<(Span, &'static str)> = first
            .steps
            .iter()
            .map(|step| (step.span, step.kind.phrase()))
            .collect();
        let literal = splice.literal;
        if !literal.contains(first.span) && !steps.iter().any(|(span, _)| literal.contains(*span)) {
            steps.push((splice.literal, "rendered for this value"));
        }
        let (data, file) = match &first.by {
            By::Data { path, .. } => (Some(Arc::clone(path)), None),
            By::File { file, bytes } => (None, Some((Arc::clone(file), bytes.clone()))),
            _ => (None, None),
        };
        let parts = match (&first.by, is_whole) {
            (By::Template, false) => runs.iter().filter_map(data_of).take(MOST_PARTS).collect(),
            _ => Vec::new(),
        };
        let is_joined = first.by == By::Template && !is_whole;
        let others = runs
            .iter()
            .filter(|run| is_joined && is_from_elsewhere(run) && run.span != first.span);
        let literals = others.map(|run| run.span).take(MOST_PARTS).collect();
        let made_of = match &first.by {
            By::Computed(from) => from.first().cloned(),
            _ => None,
        };
        let excerpt = Some(Excerpt::new(&text.text, &range));
        let is_in_data = data
            .as_ref()
            .is_some_and(|path| path.tokens().next().as_deref() == Some("system_layers"));
        let holds = runs
            .iter()
            .filter(|_| is_whole && first.by == By::Tag)
            .find_map(value_in);
        let member = None;
        Provenance {
            span: first.span,
            steps,
            excerpt,
            data,
            holds,
            parts,
            member,
            literals,
            is_in_data,
            made_of,
            file,
        }
    }

    /// Adds the conversation value that contains a location, unless the location is itself a leaf.
    fn with_member(
        &self,
        place: Provenance,
        recorded: (&Text, &Recording),
        asked: (&Pointer, KeyOrValue),
        range: &Range<usize>,
    ) -> Provenance {
        let is_leaf = place.data.is_some() || place.file.is_some();
        let member = if is_leaf {
            None
        } else {
            self.member(recorded, asked, range)
        };
        Provenance { member, ..place }
    }

    /// Returns the conversation value at a pointer, if a tag wrote it as a part of a larger value.
    /// The quotes, brackets and keys of such a value belong to the tag; only its leaves have a
    /// recorded source.
    fn member(
        &self,
        recorded: (&Text, &Recording),
        (inner, target): (&Pointer, KeyOrValue),
        range: &Range<usize>,
    ) -> Option<(Arc<Pointer>, KeyOrValue)> {
        let (text, recording) = recorded;
        let start = range.start..range.end.min(range.start + 1);
        let first = self
            .renderer
            .written(self.sources, recording, start)
            .into_iter()
            .next()?;
        let value = first.value.filter(|_| first.by == By::Tag)?;
        let known = self
            .taken_over
            .borrow()
            .get(&(recording.id(), value.start))
            .cloned();
        let whole = known.unwrap_or_else(|| {
            let found = self.find_taken_over(recorded, inner, value.start);
            self.taken_over
                .borrow_mut()
                .insert((recording.id(), value.start), found.clone());
            found
        })?;
        let at = std::iter::successors(Some(inner.clone()), Pointer::parent)
            .find(|at| text.tree.locate(at).is_some())?;
        let path = whole.path.join(&at.below(&whole.at)?);
        let target = if at == *inner {
            target
        } else {
            KeyOrValue::Value
        };
        Some((Arc::new(path), target))
    }

    /// Finds the innermost value at or above a pointer that begins at a byte, if a tag copied the
    /// whole value from the conversation.
    fn find_taken_over(
        &self,
        (text, recording): (&Text, &Recording),
        inner: &Pointer,
        start: usize,
    ) -> Option<TakenOver> {
        let at = std::iter::successors(Some(inner.clone()), Pointer::parent).find(|at| {
            text.tree
                .locate(at)
                .is_some_and(|it| it.span.start == start)
        })?;
        let tree = text.tree.locate(&at)?;
        let runs = self
            .renderer
            .written(self.sources, recording, tree.span.clone());
        // A value that a template assembled contains keys from the template.
        let is_taken_over = runs
            .iter()
            .all(|run| matches!(run.by, By::Tag | By::Data { .. }));
        let (leaf, data) = runs
            .iter()
            .filter(|_| is_taken_over)
            .find_map(|run| Some((run, data_of(run)?)))?;
        let path = data.without_end(&tree.path_to(leaf.output.start)?)?;
        Some(TakenOver { at, path })
    }

    /// Returns the output of a template.
    fn text(&self, index: usize) -> Option<&Text> {
        self.recorded[index]
            .text
            .get_or_init(|| Text::of(self.apart(index)))
            .as_ref()
    }

    /// Returns the writers of the output, where the system prompt counts as a data value.
    fn apart(&self, index: usize) -> &Recording {
        let splice = &self.body.splices()[index];
        let Some(prompt) = self.body.prompt().filter(|_| splice.is_hollow) else {
            return &splice.recording;
        };
        self.recorded[index].apart.get_or_init(|| {
            let given = Arc::new(Recording::of_given_prompt(prompt));
            splice.recording.with_prompt(Some(placeholder()), &given)
        })
    }

    /// Returns the writers of the whole output, including those of the system prompt.
    fn whole(&self, index: usize) -> &Recording {
        let splice = &self.body.splices()[index];
        let prompt = self
            .prompt()
            .filter(|_| self.renderer.reads_prompt(splice.template));
        let Some(prompt) = prompt else {
            return self.apart(index);
        };
        let placeholder = splice.is_hollow.then(|| placeholder().as_str());
        self.recorded[index]
            .whole
            .get_or_init(|| splice.recording.with_prompt(placeholder, prompt))
    }

    /// Returns the writers of the whole system prompt.
    fn prompt(&self) -> Option<&Arc<Recording>> {
        self.prompt
            .get_or_init(|| {
                let (prompt, request) = (self.body.prompt()?, self.request);
                let own = prompt.own().map(|own| &**own);
                let conversation = &request.conversation.conversation;
                let parts = conversation.prompt_parts(own.map(Recording::text));
                let recording = Recording::of_prompt(own, parts.into_iter());
                // A caller may give a prompt that no template wrote.
                (recording.text() == prompt.as_str()).then(|| Arc::new(recording))
            })
            .as_ref()
    }
}

fn one(written: &[Written]) -> bool {
    matches!(written, [one] if one.by == By::Template)
}

/// Returns the conversation value that a run consists of, or was derived from.
fn value_in(run: &Written) -> Option<Arc<Pointer>> {
    data_of(run).or_else(|| match &run.by {
        By::Computed(from) => from.iter().find_map(|from| match from {
            ComputedFrom::Data(path) => Some(Arc::clone(path)),
            _ => None,
        }),
        _ => None,
    })
}

impl Text {
    /// Returns the output of a recording; `None` if it is not JSON.
    fn of(recording: &Recording) -> Option<Text> {
        let text = recording.text().to_owned();
        let tree = json::parse_tree(&text).ok()?;
        Some(Text { text, tree })
    }
}

/// Returns the range of a value, or of its key, in a template's output.
fn range_of(text: &Text, inner: &Pointer, target: KeyOrValue) -> Option<Range<usize>> {
    let tree = &text.tree;
    let key = || {
        tree.locate(&inner.parent()?)?
            .key_span(&inner.tokens().last()?)
    };
    let key = (target == KeyOrValue::Key).then(key).flatten();
    // For a missing value, the location is the nearest ancestor that exists.
    let ancestors = || {
        std::iter::successors(inner.parent(), Pointer::parent).filter(|at| at.parent().is_some())
    };
    let nearest = || {
        tree.locate(inner)
            .or_else(|| ancestors().find_map(|at| tree.locate(&at)))
    };
    key.or_else(|| Some(nearest()?.span.clone()))
}

/// The maximum number of values in a joined string that a finding lists.
const MOST_PARTS: usize = 3;

/// Returns `true` if a run is a literal outside the tag that wrote it.
fn is_from_elsewhere(run: &Written) -> bool {
    run.by == By::Template && run.tag.is_some_and(|tag| !tag.contains(run.span))
}

/// Returns the conversation value that a run consists of.
fn data_of(run: &Written) -> Option<Arc<Pointer>> {
    match &run.by {
        By::Data { path, .. } => Some(Arc::clone(path)),
        _ => None,
    }
}

/// The cost of reading a template's output as a tree and looking up its locations, as a multiple of
/// rendering the template.
const RECORDED: u64 = 4;

/// Returns the parts of a range that are not whitespace.
fn signs(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    text[range]
        .split_ascii_whitespace()
        .map(|word| start(word, text)..start(word, text) + word.len())
        .collect()
}

fn start(word: &str, text: &str) -> usize {
    word.as_ptr() as usize - text.as_ptr() as usize
}

/// Returns the range of a string without its quotes; the range of any other value is unchanged.
fn inside(text: &Text, range: &Range<usize>) -> Range<usize> {
    let is_text = text.text.as_bytes().get(range.start) == Some(&b'"');
    match is_text && range.len() > 2 {
        true => range.start + 1..range.end - 1,
        false => range.clone(),
    }
}
