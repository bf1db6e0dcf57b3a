//! The turns of a context, with the conversation in each turn as agents receive it. Attached files
//! and the text of the surroundings become messages in the turns in which they arrived.

mod earlier;

use std::sync::{Arc, OnceLock};

pub(super) use self::earlier::Earlier;
use super::environment::Scopes;
use crate::context::State;
use crate::conversation::{
    Arrival, AttachedFile, Conversation, Item, Message, Task, arrived_before, turn_from,
    with_arrivals,
};
use crate::provider::ClientApi;
use crate::unit::{NormalisedConversation, normal_form};

/// The conversation of a context as some agents receive it, together with derived data that is
/// computed only once.
pub(super) struct Version {
    pub(super) normalised: NormalisedConversation,
    /// The conversation of each turn.
    pub(super) states: Vec<State>,
    earlier: OnceLock<Vec<Earlier>>,
    arrivals: Vec<Arrival>,
    /// The history in the file as templates see it, by client API. This history is built when a
    /// location in it is first requested.
    normal: Vec<(ClientApi, OnceLock<Arc<[Message]>>)>,
}

impl Version {
    pub(super) fn new(states: Vec<State>, arrivals: Vec<Arrival>) -> Version {
        let last = states
            .last()
            .map(|state| state.conversation.clone())
            .unwrap_or_default();
        let (normalised, earlier) = (NormalisedConversation::new(last), OnceLock::new());
        let normal = ClientApi::ALL
            .into_iter()
            .map(|api| (api, OnceLock::new()))
            .collect();
        Version {
            normalised,
            states,
            earlier,
            arrivals,
            normal,
        }
    }

    /// Returns the version's approximate size in bytes, including the earlier requests that are
    /// derived from it.
    pub(super) fn weight(&self) -> usize {
        2 * self
            .states
            .iter()
            .map(|state| 4096 + 2048 * state.conversation.block_count())
            .sum::<usize>()
    }

    /// Returns the earlier requests; `turns` contains the files that prompts saw in the earlier
    /// turns.
    pub(super) fn earlier(&self, turns: &[Arc<Scopes>]) -> &[Earlier] {
        self.earlier
            .get_or_init(|| earlier::requests(&self.states, turns))
    }

    /// Returns the history in the context file, with the messages that this version adds, in a
    /// client API's normal form.
    pub(super) fn normal(&self, of_file: &[Message], api: ClientApi) -> Arc<[Message]> {
        match self.normal.iter().find(|(of, _)| *of == api) {
            Some((_, history)) => {
                Arc::clone(history.get_or_init(|| self.make_normal(of_file, api)))
            }
            None => self.make_normal(of_file, api),
        }
    }

    fn make_normal(&self, of_file: &[Message], api: ClientApi) -> Arc<[Message]> {
        let bound_from = self.normalised.conversation.bound_from;
        normal_form(&with_arrivals(of_file, &self.arrivals), bound_from, api)
            .history
            .into()
    }

    /// Returns the version of a file for surroundings with these contents, one for each turn.
    pub(super) fn told(states: &[State], texts: &[Arc<str>]) -> Version {
        let Told { states, arrivals } = told(states, texts);
        Version::new(states, arrivals)
    }
}

/// The states in a context file after messages were added, and the added messages.
pub(super) struct Told {
    pub(super) states: Vec<State>,
    pub(super) arrivals: Vec<Arrival>,
}

/// Adds the new messages of each turn; `texts` contains the text of the surroundings, by turn.
pub(super) fn told(states: &[State], texts: &[Arc<str>]) -> Told {
    let mut arrivals: Vec<Arrival> = Vec::new();
    let mut told = Vec::with_capacity(states.len());
    let (mut files, mut said, mut length): (&[AttachedFile], &str, usize) = (&[], "", 0);
    for (state, text) in states.iter().zip(texts) {
        let messages = state.history();
        let items = items(&Seen { files, said }, &state.conversation.files, text);
        if !items.is_empty() {
            arrivals.push(Arrival {
                at: turn_from(messages, length),
                items,
            });
        }
        (files, said, length) = (&state.conversation.files, text, messages.len());
        told.push(with(state, &arrivals));
    }
    Told {
        states: told,
        arrivals,
    }
}

/// The attached files and the surroundings in the previous turn.
#[derive(Default)]
pub(super) struct Seen<'s> {
    files: &'s [AttachedFile],
    /// The text of the surroundings.
    said: &'s str,
}

/// Returns the new messages of a turn: the text of the surroundings, and the attached files, each
/// only if it is new or has changed.
pub(super) fn items(before: &Seen<'_>, files: &[AttachedFile], text: &Arc<str>) -> Vec<Item> {
    let surroundings =
        (!text.is_empty() && before.said != &**text).then(|| Item::surroundings(Arc::clone(text)));
    let files = files
        .iter()
        .filter(|file| !before.files.contains(file))
        .map(Item::attached);
    surroundings.into_iter().chain(files).collect()
}

/// Returns a state with all messages that have arrived by then.
pub(super) fn with(state: &State, arrivals: &[Arrival]) -> State {
    let bound_from = state.conversation.bound_from;
    let conversation = Conversation {
        task: Task::Chat(with_arrivals(state.history(), arrivals)),
        files: Vec::new(),
        bound_from: bound_from + arrived_before(bound_from, arrivals),
        ..state.conversation.clone()
    };
    State {
        conversation,
        ..state.clone()
    }
}
