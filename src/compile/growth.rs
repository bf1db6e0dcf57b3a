//! Finds out if an agent's requests only add to each other as a conversation grows.
//!
//! A context stands for the requests that came before it too: those of its earlier turns, and one after each message of the person
//! and each result. Each is compiled as far as servers read it from the beginning, and compared with the body of the whole.

use std::sync::Arc;

use super::problems::Case;
use super::{Compiler, LoadedContext, Scopes, Spent, Version, work};
use crate::check::Checks;
use crate::check::prefix::{Broken, is_compared};
use crate::context::State;
use crate::conversation::{Block, Conversation, Message, Role, Task, turn_from};
use crate::diag::Findings;
use crate::provider::LOOKBACK;
use crate::render::Renderer;
use crate::unit::{Body, Costed, KeyOrValue, NormalisedConversation, Plan, Record, Request, SystemPrompt};

/// A request that came before the one of a context.
pub(super) struct Earlier {
    normalised: NormalisedConversation,
    /// The surroundings that prompts saw, if they were different.
    scopes: Option<Arc<Scopes>>,
    /// `true` if the system prompt is the same text: it depends on nothing that changed.
    is_same_prompt: bool,
    /// `true` if the host renewed system prompt and tools since.
    is_renewed: bool,
}

/// A body, and everything that it was made from.
pub(super) struct Later<'a> {
    pub(super) plan: &'a Plan<'a>,
    pub(super) checks: &'a Checks,
    pub(super) loaded: &'a LoadedContext,
    pub(super) version: &'a Version,
    pub(super) renderer: &'a Renderer<'a>,
    pub(super) request: &'a Request<'a>,
    pub(super) body: &'a Body,
    pub(super) prompt: &'a Option<SystemPrompt>,
}

/// Says of a place that it wrote what is something else now.
const WRITTEN_BEFORE: &str = "written here in the request before";

impl Version {
    /// The requests that came before.
    fn earlier(&self, loaded: &LoadedContext) -> &[Earlier] {
        self.earlier.get_or_init(|| {
            cuts(&self.states).into_iter().filter_map(|(turn, length)| self.cut(loaded, turn, length)).collect()
        })
    }

    /// The request of a turn after so many messages.
    fn cut(&self, loaded: &LoadedContext, turn: usize, length: usize) -> Option<Earlier> {
        let states = &self.states;
        let (state, last) = (&states[turn], states.last()?);
        let Task::Chat(history) = &state.conversation.task else { return None };
        let conversation = Conversation {
            task: Task::Chat(history[..length.min(history.len())].to_vec()),
            bound_from: state.conversation.bound_from.min(length),
            ..state.conversation.clone()
        };
        let is_same_scope = state.language == last.language && state.project == last.project;
        let layers = |state: &State| state.conversation.system_layers.clone();
        Some(Earlier {
            normalised: NormalisedConversation::new(conversation),
            scopes: loaded.turns.get(turn).filter(|_| !is_same_scope).map(Arc::clone),
            is_same_prompt: is_same_scope && layers(state) == layers(last),
            is_renewed: states[turn + 1..].iter().any(|state| state.renewed),
        })
    }
}

/// The requests before the last, each by its turn and how many messages there were.
fn cuts(states: &[State]) -> Vec<(usize, usize)> {
    let length = |state: &State| history(state).len();
    let Some(last) = states.last() else { return Vec::new() };
    let ends: Vec<(usize, usize)> = { states[..states.len() - 1].iter().enumerate() }
        .filter(|(_, state)| !is_open(history(state)))
        .map(|(turn, state)| (turn, length(state)))
        .collect();
    let turn_of = |cut: usize| {
        (0..states.len())
            .rev()
            .find(|turn| *turn == 0 || turn_from(history(&states[*turn]), length(&states[turn - 1])) < cut)
            .unwrap_or(0)
    };
    let messages = history(last);
    let within: Vec<(usize, usize)> = (1..messages.len())
        .filter(|at| {
            messages[*at].role == Role::Assistant
                && messages[at - 1].role != Role::Assistant
                && messages[*at].blocks.iter().any(goes_everywhere)
        })
        .map(|cut| (turn_of(cut), cut))
        .filter(|cut| !ends.contains(cut))
        .collect();
    let mut cuts: Vec<(usize, usize)> = chosen(&within, messages).into_iter().chain(ends).collect();
    cuts.sort_unstable_by_key(|&(turn, length)| (length, turn));
    cuts
}

/// Of a few requests the last, for the contexts that all agents are compiled against are of many lengths. Of more the first and the last
/// but one: between that one and the body stand an answer and what it is about, so that whatever is cut or left out by its age, or by how
/// many follow it, differs there wherever the limit is. The last one is looked at too if the body adds so much to it that the cache may
/// not look back that far.
fn chosen(within: &[(usize, usize)], messages: &[Message]) -> Vec<(usize, usize)> {
    let [first, .., before, last] = within else { return within.last().copied().into_iter().collect() };
    let added: usize = messages[last.1.saturating_sub(2)..].iter().map(|message| message.blocks.len()).sum();
    let is_long = 2 * added > LOOKBACK;
    [first, before].into_iter().chain(Some(last).filter(|_| is_long)).copied().collect()
}

/// Returns `true` if a block is in the normal form for every target: an answer of which nothing is left is none.
fn goes_everywhere(block: &Block) -> bool {
    block.says_something() && !matches!(block, Block::Provider(_))
}

/// Returns `true` if a history ends with calls: no request is made before their results are there.
fn is_open(history: &[Message]) -> bool {
    history.last().is_some_and(|last| last.blocks.iter().any(|block| matches!(block, Block::ToolUse { .. })))
}

fn history(state: &State) -> &[Message] {
    match &state.conversation.task {
        Task::Chat(history) => history,
        Task::Completion { .. } => &[],
    }
}

impl Compiler {
    /// Finds what of earlier requests changed in a body: the first that it finds.
    pub(super) fn prove_growth(&self, later: &Later<'_>, spent: &mut Spent, findings: &mut Findings) {
        for earlier in later.version.earlier(later.loaded) {
            if spent.cost > work::AGENT_LIMIT {
                return;
            }
            let own = &later.plan.profile.profile.layer;
            let scope = earlier.scopes.as_ref().map_or(later.request.scope, |scopes| &scopes[own]);
            let request = Request { conversation: &earlier.normalised, scope, ..*later.request };
            let broken = self.prove_earlier(later, (earlier, &request), spent);
            if let Some((broken, body)) = broken {
                self.tell_broken(later, (&request, &body), broken, findings);
                return;
            }
        }
    }

    /// Returns what of an earlier request changed in a body, and its own.
    fn prove_earlier(
        &self,
        later: &Later<'_>,
        (earlier, request): (&Earlier, &Request<'_>),
        spent: &mut Spent,
    ) -> Option<(Broken, Body)> {
        let sources = &self.repo.sources;
        let prompt = match earlier.is_same_prompt {
            true => Costed { result: Ok(later.prompt.clone()), cost: 0 },
            false => later.plan.prompt(sources, later.renderer, request),
        };
        let made = later.plan.made_of(prompt, Some(is_compared), (sources, later.renderer, request));
        spent.cost = spent.cost.saturating_add(made.cost);
        let body = made.body.ok()?;
        let broken = later.checks.prefix_problem((&body, later.body), earlier.is_renewed)?;
        Some((broken, body))
    }

    /// The finding, at what wrote the first place that differs.
    fn tell_broken(&self, later: &Later<'_>, earlier: (&Request<'_>, &Body), broken: Broken, findings: &mut Findings) {
        let (plan, loaded) = (later.plan, later.loaded);
        let (pointer, from) = (broken.problem.pointer.clone(), broken.from);
        let place_in = |(request, body): (&Request<'_>, &Body)| {
            let record = Record::new(plan, &self.repo.sources, later.renderer, request, body);
            match from {
                Some(from) => record.place_in_text(&pointer, from),
                None => record.place(&pointer, KeyOrValue::Value),
            }
        };
        let place = place_in(if broken.is_in_later { (later.request, later.body) } else { earlier });
        // Something else may have stood there: what wrote that may be the cause.
        let before = || {
            let before = place_in(earlier);
            self.outside(&before, plan, loaded).map_or(before.span, |outside| outside.span)
        };
        let is_in_both = broken.is_in_both;
        self.tell_problem(Case { plan, loaded }, broken.problem, &place, None, findings, |finding, span| {
            match is_in_both.then(before).filter(|before| *before != span) {
                Some(before) => finding.related(before, WRITTEN_BEFORE),
                None => finding,
            }
        });
    }
}
