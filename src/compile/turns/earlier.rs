//! The requests that preceded a context's request: those of its earlier turns, and one after each
//! user message and each result.

use std::sync::Arc;

use crate::compile::environment::Scopes;
use crate::context::State;
use crate::conversation::{Block, Conversation, Message, Role, Task, turn_from};
use crate::provider::LOOKBACK;
use crate::unit::NormalisedConversation;

/// A request that preceded a context's request.
pub(in crate::compile) struct Earlier {
    pub(in crate::compile) normalised: NormalisedConversation,
    /// The files that prompts saw, if they differ from the files in the last request.
    pub(in crate::compile) scopes: Option<Arc<Scopes>>,
    /// `true` if the system prompt is the same, because it does not depend on anything that
    /// changed.
    pub(in crate::compile) is_same_prompt: bool,
    /// `true` if the host has renewed the system prompt and the tools since.
    pub(in crate::compile) is_renewed: bool,
}

/// The end of a request, given by its turn and its number of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    turn: usize,
    length: usize,
}

/// Returns the requests before the last one; `turns` contains the files that prompts saw in the
/// earlier turns.
pub(super) fn requests(states: &[State], turns: &[Arc<Scopes>]) -> Vec<Earlier> {
    cuts(states)
        .into_iter()
        .filter_map(|cut| request(states, turns, cut))
        .collect()
}

fn request(states: &[State], turns: &[Arc<Scopes>], cut: Cut) -> Option<Earlier> {
    let (state, last) = (&states[cut.turn], states.last()?);
    let Task::Chat(messages) = &state.conversation.task else {
        return None;
    };
    let conversation = Conversation {
        task: Task::Chat(messages[..cut.length.min(messages.len())].to_vec()),
        bound_from: state.conversation.bound_from.min(cut.length),
        ..state.conversation.clone()
    };
    let is_same_scope = state.language == last.language && state.project == last.project;
    let is_same_prompt =
        is_same_scope && state.conversation.system_layers == last.conversation.system_layers;
    Some(Earlier {
        normalised: NormalisedConversation::new(conversation),
        scopes: turns
            .get(cut.turn)
            .filter(|_| !is_same_scope)
            .map(Arc::clone),
        is_same_prompt,
        is_renewed: states[cut.turn + 1..].iter().any(|state| state.renewed),
    })
}

/// Returns the ends of the requests before the last one, the shortest first.
fn cuts(states: &[State]) -> Vec<Cut> {
    let Some((last, earlier)) = states.split_last() else {
        return Vec::new();
    };
    let ends = earlier
        .iter()
        .enumerate()
        .filter(|(_, state)| !is_open(state.history()));
    let ends: Vec<Cut> = ends
        .map(|(turn, state)| Cut {
            turn,
            length: state.history().len(),
        })
        .collect();
    let messages = last.history();
    let mut within = Vec::new();
    for length in (1..messages.len()).filter(|at| is_answered(messages, *at)) {
        let cut = Cut {
            turn: turn_of(states, length),
            length,
        };
        if !ends.contains(&cut) {
            within.push(cut);
        }
    }
    let mut cuts: Vec<Cut> = chosen(&within, messages).into_iter().chain(ends).collect();
    cuts.sort_unstable_by_key(|cut| (cut.length, cut.turn));
    cuts
}

/// Returns the turn of a request with this number of messages.
fn turn_of(states: &[State], length: usize) -> usize {
    let mut turns = (1..states.len()).rev();
    turns
        .find(|turn| turn_from(states[*turn].history(), states[turn - 1].history().len()) < length)
        .unwrap_or(0)
}

/// Returns `true` if a message answers a request: it has the role `assistant` and content, and
/// follows a message with a different role.
fn is_answered(messages: &[Message], at: usize) -> bool {
    messages[at].role == Role::Assistant
        && messages[at - 1].role != Role::Assistant
        && messages[at].blocks.iter().any(goes_everywhere)
}

/// Selects the earlier requests to compare with a body. If there are at most two, it selects the
/// last one; this is enough because the contexts for all agents have many different lengths.
/// Otherwise, it selects the first and the second-to-last request. The body has an answer and
/// another message that the second-to-last request lacks. Content that is cut or left out because
/// of its age, or because of the number of messages after it, therefore differs between the body
/// and that request, whatever the limit is. It also selects the last request if the body adds so
/// many blocks that the cache may not look back that far.
fn chosen(within: &[Cut], messages: &[Message]) -> Vec<Cut> {
    let [first, .., before, last] = within else {
        return within.last().copied().into_iter().collect();
    };
    let added: usize = messages[last.length.saturating_sub(2)..]
        .iter()
        .map(|message| message.blocks.len())
        .sum();
    let is_long = 2 * added > LOOKBACK;
    [first, before]
        .into_iter()
        .chain(Some(last).filter(|_| is_long))
        .copied()
        .collect()
}

/// Returns `true` if a block is sent to every target. A message without any such block is not an
/// answer.
fn goes_everywhere(block: &Block) -> bool {
    block.says_something() && !matches!(block, Block::Provider(_))
}

/// Returns `true` if a history ends with calls, whose results must come before the next request.
fn is_open(history: &[Message]) -> bool {
    history.last().is_some_and(|last| {
        last.blocks
            .iter()
            .any(|block| matches!(block, Block::ToolUse { .. }))
    })
}
