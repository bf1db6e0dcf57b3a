//! What one body is made for: a conversation in normal form, with its template data, the scope of
//! the system prompt, and a model.

use std::sync::{Arc, OnceLock};

use crate::conversation::{
    Conversation, Message, Normal, NormalFormRules, Task, Tool, depends_on_target, normalise,
};
use crate::memory::{Identity, Memory};
use crate::provider::ClientApi;
use crate::render::{ContextData, PromptScope};

/// A conversation whose history is in normal form, with the template data that is made of it once
/// for all agents.
pub struct NormalisedConversation {
    /// The tools that are offered.
    pub tools: Vec<Tool>,
    /// The conversation.
    pub conversation: Conversation,
    /// Tells it apart in questions.
    pub(super) id: Identity,
    /// Template data of the history in the normal form that most client APIs want, made when an
    /// agent first asks.
    base: OnceLock<ContextData>,
    /// By client API, template data of its own normal form, made when an agent first asks; `None`
    /// if it wants the same as most.
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

    /// Tells the template data for a client API apart in questions.
    pub(crate) fn data_id(&self, api: ClientApi) -> Identity {
        self.data(api).id()
    }

    /// The history in the normal form of a client API; empty for a completion.
    pub(crate) fn history_for(&self, api: ClientApi) -> Vec<Message> {
        match &self.conversation.task {
            Task::Chat(history) => normal_form(history, self.conversation.bound_from, api).history,
            Task::Completion { .. } => Vec::new(),
        }
    }

    /// The client API's own normal form of the conversation, if it has one.
    fn variant(&self, api: ClientApi) -> Option<&ContextData> {
        let (_, data) = self.variants.iter().find(|(variant, _)| *variant == api)?;
        data.get_or_init(|| self.normal_form(api)).as_ref()
    }

    /// Returns what differs from the form that most want.
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

/// A history in the normal form of a client API. Where thinking is bound to what is before it, that
/// of messages before `bound_from` is left out.
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

/// Everything that one body is made from, beside the plan.
pub struct Request<'a> {
    /// The conversation.
    pub conversation: &'a NormalisedConversation,
    /// The scope of the system prompt.
    pub scope: &'a Arc<PromptScope>,
    /// The model, if the client names one; else the profile's, else a placeholder.
    pub model: Option<&'a str>,
    /// The answers for other agents, if they may be shared.
    pub memory: Option<&'a Arc<Memory>>,
}
