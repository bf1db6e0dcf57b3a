//! The facts that differ between wire formats: each format states its own in a file beside this.

use crate::conversation::{NameRule, ProviderBlockKinds};
use crate::provider::{Capability, Server};
use crate::render::IdRule;

/// The facts of a wire format. Names are those of a body's top-level members.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each says something else")]
pub(crate) struct Facts {
    /// The stable name, also of its schema.
    pub(crate) name: &'static str,
    /// The ends of the paths of its endpoints.
    pub(crate) paths: &'static [&'static str],
    /// The server whose paths are meant, if another format has the same paths everywhere else.
    pub(crate) only_at: Option<Server>,
    /// Each of its bodies has one of these members at least.
    pub(crate) begins_with: &'static [&'static str],
    /// `true` if the body carries the model.
    pub(crate) has_model_in_body: bool,
    /// `true` if members may also be written in snake case: `toolConfig` or `tool_config`.
    pub(crate) has_two_spellings: bool,
    /// What profiles can ask for.
    pub(crate) capabilities: &'static [Capability],
    /// The shape of its turns.
    pub(crate) turns: TurnForm,
    /// The member that holds the history; `None` if there is no history.
    pub(crate) history: Option<&'static str>,
    /// Members that name what the server keeps of the conversation.
    pub(crate) continued_by: &'static [&'static str],
    /// The members that hold a system prompt apart from the history.
    pub(crate) system: &'static [&'static str],
    /// The members that hold a prompt where there is no history.
    pub(crate) prompt: &'static [&'static str],
    /// The gap that its prompts have; `None` if there is none.
    pub(crate) gap: Option<Gap>,
    /// The pointers to the form that an answer must have.
    pub(crate) answer_form: &'static [&'static str],
    /// The members that limit the length of the answer, as far as rules read them.
    pub(crate) longest_answer: &'static [&'static str],
    /// `true` if a request has to limit the length of the answer.
    pub(crate) needs_limit: bool,
    /// The shape of definitions of tools.
    pub(crate) tools: ToolForm,
    /// `true` if servers read schemas of tools into a type of their own, and drop what it lacks.
    pub(crate) drops_keywords: bool,
    /// `true` if the arguments of calls are a text of JSON; else they are an object.
    pub(crate) has_arguments_as_text: bool,
    /// The ids that calls of tools may have.
    pub(crate) ids: IdRule,
    /// `true` if a call and its result must have ids.
    pub(crate) has_ids: bool,
    /// The names that tools may have; the schemas say the same.
    pub(crate) names: NameRule,
    /// `true` if reasoning without a signature is refused, and a turn that ends with reasoning.
    pub(crate) checks_reasoning: bool,
    /// The clouds that serve it with the model in the address and the version in the body.
    pub(crate) clouds: &'static [Server],
    /// `true` if models bind thinking to what comes before it.
    pub(crate) binds_thinking: bool,
    /// `true` if bodies carry breakpoints of a prompt cache.
    pub(crate) has_cache_breakpoints: bool,
    /// Which of its own blocks go back in the next request, and which only in pairs.
    pub(crate) own_blocks: ProviderBlockKinds,
    /// The place of its own blocks in a history.
    pub(crate) own_place: OwnPlace,
    /// The batch service that takes its requests.
    pub(crate) batches: Option<BatchService>,
    /// The form of answers.
    #[cfg(feature = "runtime")]
    pub(crate) answers: AnswerForm,
    /// `true` if answers are streamed as one JSON value a line; else they are server-sent events.
    #[cfg(feature = "runtime")]
    pub(crate) streams_lines: bool,
    /// The beginnings of the names of its events, if these are more than `message`.
    #[cfg(feature = "runtime")]
    pub(crate) events: &'static [&'static str],
}

/// The shape of the turns of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnForm {
    /// Messages of blocks, among them calls and results: Anthropic's.
    Blocks,
    /// Messages with a list of calls beside the content, and a message for each result: Chat
    /// Completions and what was made after them.
    Messages,
    /// Items: a message, a call and a result are one each: Responses.
    Items,
    /// Contents of parts: Gemini's.
    Contents,
    /// There are none: the request is one prompt.
    None,
}

/// The gap of a prompt that a model is to fill.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gap {
    /// The member that holds the text before it.
    pub(crate) before: &'static str,
    /// The member that holds the text behind it.
    pub(crate) after: &'static str,
    /// `true` if a prompt without a text behind it has no gap: it is a question.
    pub(crate) needs_after: bool,
}

/// The place of a provider's own blocks in a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnPlace {
    /// Parts of any message.
    Parts,
    /// Parts of messages of the assistant.
    PartsOfAssistant,
    /// Items beside the messages.
    Items,
    /// Members of a message of the assistant.
    Members,
    /// There is none.
    Nowhere,
}

/// A service that takes many requests in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchService {
    /// Anthropic's message batches.
    Anthropic,
    /// OpenAI's, for this endpoint.
    OpenAi(&'static str),
}

/// The shape of the definition of a tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolForm {
    /// Name, description and `input_schema`.
    Plain,
    /// The same with `type`, and the schema as `parameters`.
    Typed,
    /// `type`, and a member `function` with name, description and `parameters`.
    Function,
    /// One element with a list `functionDeclarations`.
    Declarations,
}

/// The form of answers: each has a decoder of its own.
#[cfg(feature = "runtime")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AnswerForm {
    /// Anthropic's messages.
    Claude,
    /// Chat Completions.
    Chat,
    /// Responses.
    Responses,
    /// Gemini's candidates.
    Gemini,
    /// Ollama's messages and responses.
    Ollama,
    /// llama.cpp's content.
    Infill,
}
