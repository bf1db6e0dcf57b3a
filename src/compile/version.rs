//! The conversation of a context as an agent gets it.
//!
//! For most agents that is the file's. One with `surroundings` gets what these say, and attached files, as messages of the turns in
//! which they came.

use std::sync::{Arc, OnceLock, Weak};

use super::growth::Earlier;
use super::{Compiler, LoadedContext, PromptEnvironment};
use crate::context::{Context, State};
use crate::conversation::{
    Arrival, AttachedFile, Conversation, Item, Message, Task, TaskKind, arrived_before, placed, turn_from,
    with_arrivals,
};
use crate::diag::Diagnostic;
use crate::memory::{Identity, Question};
use crate::provider::ClientApi;
use crate::render::{PromptScope, Renderer, TemplateId};
use crate::repo::LayerKind;
use crate::unit::{Costed, NormalisedConversation, Plan, Request, normal_form};

/// A conversation, with everything that is made of it once.
pub(super) struct Version {
    pub(super) normalised: NormalisedConversation,
    /// The conversation of each turn.
    pub(super) states: Vec<State>,
    pub(super) earlier: OnceLock<Vec<Earlier>>,
    arrivals: Vec<Arrival>,
    /// By client API, the history of the file as its templates see it, made when places in it are first asked for.
    normal: Vec<(ClientApi, OnceLock<Arc<[Message]>>)>,
}

/// Asks what surroundings say in each turn of a context; the layer is whose files they see.
#[derive(PartialEq, Eq, Hash)]
struct TextsOf(Identity, TemplateId, LayerKind);

impl Question for TextsOf {
    type Answer = Costed<Result<Texts, Box<Diagnostic>>>;

    fn weight(&self, answer: &Self::Answer) -> usize {
        256 + answer.result.as_ref().map_or(0, bytes)
    }
}

/// Asks for the version of a context that agents get whose surroundings say some texts.
#[derive(PartialEq, Eq, Hash, Clone)]
struct VersionOf(Identity, Texts);

impl Question for VersionOf {
    type Answer = Arc<Version>;

    fn weight(&self, version: &Arc<Version>) -> usize {
        version.weight() + bytes(&self.1)
    }
}

/// Asks for such a version while somebody works with it: one of a very long conversation is too large to be remembered, and all places
/// of its bodies ask for it.
#[derive(PartialEq, Eq, Hash)]
struct VersionInUse(VersionOf);

impl Question for VersionInUse {
    type Answer = Weak<Version>;

    fn weight(&self, _: &Weak<Version>) -> usize {
        1024 + bytes(&self.0.1)
    }
}

/// The texts of surroundings, by turn.
type Texts = Vec<Arc<str>>;

fn bytes(texts: &Texts) -> usize {
    texts.iter().map(|text| text.len()).sum()
}

/// A version, and the units of work that its surroundings took.
type Sent = Costed<Result<Arc<Version>, Box<Diagnostic>>>;

impl Version {
    pub(super) fn new(states: Vec<State>, arrivals: Vec<Arrival>) -> Version {
        let last = states.last().map(|state| state.conversation.clone()).unwrap_or_default();
        let (normalised, earlier) = (NormalisedConversation::new(last), OnceLock::new());
        let normal = ClientApi::ALL.into_iter().map(|api| (api, OnceLock::new())).collect();
        Version { normalised, states, earlier, arrivals, normal }
    }

    /// About how many bytes it holds, with the earlier requests that are made of it.
    fn weight(&self) -> usize {
        2 * self.states.iter().map(|state| 4096 + 2048 * state.conversation.block_count()).sum::<usize>()
    }

    /// The history of the context's file with the messages of this version, in the normal form of a client API.
    pub(super) fn normal(&self, of_file: &[Message], api: ClientApi) -> Arc<[Message]> {
        let bound_from = self.normalised.conversation.bound_from;
        let make = || normal_form(&with_arrivals(of_file, &self.arrivals), bound_from, api).history.into();
        let known = self.normal.iter().find(|(of, _)| *of == api);
        known.map_or_else(make, |(_, history)| Arc::clone(history.get_or_init(make)))
    }

    /// The states of a file with what came in each.
    fn told(states: &[State], texts: &[Arc<str>]) -> Version {
        let (told, arrivals) = told(states, texts);
        Version::new(told, arrivals)
    }
}

/// The states of a file with what came in each, and all that came.
fn told(states: &[State], texts: &[Arc<str>]) -> (Vec<State>, Vec<Arrival>) {
    let mut arrivals: Vec<Arrival> = Vec::new();
    let mut told = Vec::with_capacity(states.len());
    let (mut files, mut said, mut length): (&[AttachedFile], &str, usize) = (&[], "", 0);
    for (state, text) in states.iter().zip(texts) {
        let history = state.history();
        let items = items(files, &state.conversation.files, (said, text));
        if !items.is_empty() {
            arrivals.push(Arrival { at: turn_from(history, length), items });
        }
        (files, said, length) = (&state.conversation.files, text, history.len());
        told.push(state.with(&arrivals));
    }
    (told, arrivals)
}

/// Returns what comes with a turn.
fn items(before: &[AttachedFile], files: &[AttachedFile], (said, text): (&str, &Arc<str>)) -> Vec<Item> {
    let surroundings = (!text.is_empty() && said != &**text).then(|| Item::surroundings(Arc::clone(text)));
    let files = files.iter().filter(|file| !before.contains(file)).map(Item::attached);
    surroundings.into_iter().chain(files).collect()
}

impl State {
    fn history(&self) -> &[Message] {
        match &self.conversation.task {
            Task::Chat(history) => history,
            Task::Completion { .. } => &[],
        }
    }

    fn with(&self, arrivals: &[Arrival]) -> State {
        let bound_from = self.conversation.bound_from;
        let conversation = Conversation {
            task: Task::Chat(with_arrivals(self.history(), arrivals)),
            files: Vec::new(),
            bound_from: bound_from + arrived_before(bound_from, arrivals),
            ..self.conversation.clone()
        };
        State { conversation, ..self.clone() }
    }
}

impl Compiler {
    /// The conversation of a context as an agent gets it.
    pub(super) fn version(&self, plan: &Plan<'_>, loaded: &LoadedContext, renderer: &Renderer<'_>) -> Sent {
        let as_written = || Costed { result: Ok(Arc::clone(&loaded.plain)), cost: 0 };
        let Some(template) = plan.surroundings.filter(|_| plan.kind == TaskKind::Chat) else { return as_written() };
        let layer = plan.profile.profile.layer;
        let asked = TextsOf(loaded.id, template, layer);
        let Costed { result, cost } = self.memory.ask(asked, || self.texts(template, layer, loaded, renderer));
        Costed { result: result.map(|texts| self.version_with(texts, loaded)), cost }
    }

    /// The version of a context whose surroundings say some texts.
    fn version_with(&self, texts: Texts, loaded: &LoadedContext) -> Arc<Version> {
        let asked = VersionOf(loaded.id, texts);
        let in_use = VersionInUse(asked.clone());
        let living = || self.memory.recall(&in_use)?.upgrade();
        if let Some(known) = self.memory.recall(&asked).or_else(living) {
            return known;
        }
        let version = Arc::new(Version::told(&loaded.plain.states, &asked.1));
        self.memory.note(in_use, Arc::downgrade(&version));
        self.memory.note(asked, Arc::clone(&version));
        version
    }

    /// Returns what surroundings say in each turn.
    fn texts(
        &self,
        template: TemplateId,
        layer: LayerKind,
        loaded: &LoadedContext,
        renderer: &Renderer<'_>,
    ) -> Costed<Result<Vec<Arc<str>>, Box<Diagnostic>>> {
        let scopes = loaded.turns.iter().chain([&loaded.scopes]).map(|scopes| &scopes[&layer]);
        let mut cost = 0_u64;
        let mut text = |scope: &Arc<PromptScope>| {
            if loaded.context.conversation.omit_system_prompt {
                return Ok(Arc::from(""));
            }
            let prompt = renderer.prompt(&self.repo.sources, template, scope);
            cost = cost.saturating_add(prompt.cost);
            prompt.text.map(|text| Arc::from(text.trim()))
        };
        let texts = scopes.map(&mut text).collect();
        Costed { result: texts, cost }
    }

    /// The conversation of a context as an agent gets it in the last turn, for a session that goes on with it.
    ///
    /// # Errors
    ///
    /// What the agent says of its surroundings cannot be rendered.
    pub fn conversation_for(&self, plan: &Plan<'_>, context: &Context) -> Result<Conversation, Vec<Diagnostic>> {
        if plan.surroundings.is_none() || plan.kind != TaskKind::Chat || context.kind() != TaskKind::Chat {
            return Ok(context.conversation.clone());
        }
        let states: Vec<State> = context.earlier.iter().cloned().chain([context.last()]).collect();
        let renderer = self.engine.renderer(context.conversation.block_count().next_power_of_two());
        let texts = states
            .iter()
            .map(|state| {
                let environment = PromptEnvironment::of_state(&state.project, &state.language);
                self.surroundings(plan, &environment, &renderer, context.conversation.omit_system_prompt)
            })
            .collect::<Result<Vec<_>, _>>()
            .map_err(|finding| vec![*finding])?;
        let (told, arrivals) = told(&states, &texts);
        let conversation = told.into_iter().next_back().map(|state| state.conversation).unwrap_or_default();
        Ok(Conversation { is_told: true, known_items: placed(&arrivals), ..conversation })
    }

    /// A live conversation as an agent gets it: what it says of its surroundings, and attached files, stand before the first message of
    /// the person, unless the host has told them.
    pub(super) fn live_version(
        &self,
        plan: &Plan<'_>,
        conversation: Conversation,
        environment: &PromptEnvironment,
        renderer: &Renderer<'_>,
    ) -> Result<Conversation, Box<Diagnostic>> {
        if conversation.is_told || plan.surroundings.is_none() || plan.kind != TaskKind::Chat {
            return Ok(conversation);
        }
        let text = self.surroundings(plan, environment, renderer, conversation.omit_system_prompt)?;
        let PromptEnvironment { language, .. } = environment;
        let (language, project) = (Arc::clone(language), crate::context::Project::default());
        let state = State { language, project, conversation, renewed: false };
        let items = items(&[], &state.conversation.files, ("", &text));
        Ok(state.with(&[Arrival { at: turn_from(state.history(), 0), items }]).conversation)
    }

    /// Returns what an agent says of its surroundings; `None` if it has no words for them.
    #[cfg(feature = "runtime")]
    pub(crate) fn live_surroundings(
        &self,
        plan: &Plan<'_>,
        environment: &PromptEnvironment,
        is_omitted: bool,
    ) -> Result<Option<Arc<str>>, Box<Diagnostic>> {
        if plan.surroundings.is_none() || plan.kind != TaskKind::Chat {
            return Ok(None);
        }
        self.surroundings(plan, environment, &self.engine.renderer(1), is_omitted).map(Some)
    }

    /// Returns what an agent says of its surroundings; empty if it says nothing.
    fn surroundings(
        &self,
        plan: &Plan<'_>,
        environment: &PromptEnvironment,
        renderer: &Renderer<'_>,
        is_omitted: bool,
    ) -> Result<Arc<str>, Box<Diagnostic>> {
        let Some(template) = plan.surroundings.filter(|_| !is_omitted) else { return Ok(Arc::from("")) };
        let scope = environment.scope(&self.repo, plan.profile.profile.layer);
        let text = renderer.prompt(&self.repo.sources, template, &scope).text?;
        Ok(Arc::from(text.trim()))
    }
}

impl LoadedContext {
    /// The request of an agent that gets a version.
    pub(super) fn request<'a>(&'a self, plan: &Plan<'_>, version: &'a Version, model: Option<&'a str>) -> Request<'a> {
        let scope = &self.scopes[&plan.profile.profile.layer];
        Request { conversation: &version.normalised, scope, model, memory: None }
    }
}
