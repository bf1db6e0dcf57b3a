//! The inputs for one body: a conversation in normal form, with its template data, the scope of the
//! system prompt, and a model.

use std::sync::{Arc, OnceLock};

use crate::conversation::{
    Conversation, Message, Normal, NormalFormRules, Task, Tool, depends_on_target, normalise,
};
use crate::memory::{Identity, Memory};
use crate::provider::ClientApi;
use crate::render::{ContextData, PromptScope};

/// A conversation whose history is in normal form, with the template data that all agents share.
pub struct NormalisedConversation {
    /// The offered tools.
    pub tools: Vec<Tool>,
    /// The conversation, with its history in normal form.
    pub conversation: Conversation,
    /// The conversation's identity in cache keys.
    pub(super) id: Identity,
    /// Template data for the normal form that most client APIs use, created when an agent first
    /// needs it.
    base: OnceLock<ContextData>,
    /// Template data for each client API's own normal form, created when an agent first needs it;
    /// `None` if the API uses the common form.
    variants: Vec<(ClientApi, OnceLock<Option<ContextData>>)>,
}

impl NormalisedConversation {
    /// Prepares a conversation whose history is in normal form.
    pub fn new(conversation: Conversation) -> NormalisedConversation {
        let has_variants =
            matches!(&conversation.task, Task::Chat(history) if depends_on_target(history));
        let apis = ClientApi::ALL.into_iter().filter(|_| has_variants);
        let variants = apis.map(|api| (api, OnceLock::new())).collect();
        let (tools, id) = (conversation.tools.clone(), Identity::new());
        NormalisedConversation {
            tools,
            base: OnceLock::new(),
            variants,
            conversation,
            id,
        }
    }

    pub(super) fn data(&self, api: ClientApi) -> &ContextData {
        self.variant(api).unwrap_or_else(|| {
            self.base
                .get_or_init(|| ContextData::new(&self.conversation))
        })
    }

    /// Returns the identity of the template data for a client API, for cache keys.
    pub(crate) fn data_id(&self, api: ClientApi) -> Identity {
        self.data(api).id()
    }

    /// Returns the history in the normal form of a client API; empty for a completion.
    pub(crate) fn history_for(&self, api: ClientApi) -> Vec<Message> {
        match &self.conversation.task {
            Task::Chat(history) => normal_form(history, self.conversation.bound_from, api).history,
            Task::Completion { .. } => Vec::new(),
        }
    }

    /// Returns the template data in the client API's own normal form, if it has one.
    fn variant(&self, api: ClientApi) -> Option<&ContextData> {
        let (_, data) = self.variants.iter().find(|(variant, _)| *variant == api)?;
        data.get_or_init(|| self.normal_form(api)).as_ref()
    }

    /// Returns the template data in the API's own normal form; `None` if the common form suffices.
    fn normal_form(&self, api: ClientApi) -> Option<ContextData> {
        let Task::Chat(history) = &self.conversation.task else {
            return None;
        };
        let normal = normal_form(history, self.conversation.bound_from, api);
        let changed = || Conversation {
            task: Task::Chat(normal.history),
            ..self.conversation.clone()
        };
        (!normal.changes.is_empty()).then(|| ContextData::new(&changed()))
    }
}

/// Returns a history in the normal form of a client API. If the wire format binds thinking to the
/// messages before it, drops the thinking in messages before `bound_from`.
pub(crate) fn normal_form(history: &[Message], bound_from: usize, api: ClientApi) -> Normal {
    let wire = api.chat_wire();
    let bound_from = if wire.binds_thinking() { bound_from } else { 0 };
    normalise(
        history,
        &NormalFormRules {
            bound_from,
            ..wire.normal_form(api.name())
        },
    )
}

/// The inputs for one body, apart from the plan.
pub struct Request<'a> {
    /// The conversation to send.
    pub conversation: &'a NormalisedConversation,
    /// The scope of the system prompt.
    pub scope: &'a Arc<PromptScope>,
    /// The model that the client specifies; if there is none, the profile's model or the
    /// placeholder is used.
    pub model: Option<&'a str>,
    /// The cache of answers shared between agents, if sharing is allowed.
    pub memory: Option<&'a Arc<Memory>>,
}
