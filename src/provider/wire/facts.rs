//! The facts that differ between wire formats. Each format states its own in a file of the folder.

use crate::conversation::{NameRule, ProviderBlockKinds};
use crate::provider::{Capability, Server};
use crate::render::IdRule;

/// The facts of a wire format. Names of members refer to the top level of a body.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each says something else")]
pub(crate) struct Facts {
    /// The stable name, also used for its schema.
    pub(crate) name: &'static str,
    /// The endings of its endpoints' paths.
    pub(crate) paths: &'static [&'static str],
    /// The only server to which the paths apply, if another format has the same paths elsewhere.
    pub(crate) only_at: Option<Server>,
    /// Every body has at least one of these members.
    pub(crate) begins_with: &'static [&'static str],
    /// `true` if the body contains the model.
    pub(crate) has_model_in_body: bool,
    /// `true` if members may also be written in snake case: `toolConfig` or `tool_config`.
    pub(crate) has_two_spellings: bool,
    /// The features that profiles can ask for.
    pub(crate) capabilities: &'static [Capability],
    /// The shape of its turns.
    pub(crate) turns: TurnForm,
    /// The member that holds the history; `None` if there is no history.
    pub(crate) history: Option<&'static str>,
    /// Members that refer to conversation state kept by the server.
    pub(crate) continued_by: &'static [&'static str],
    /// The members that hold a system prompt outside the history.
    pub(crate) system: &'static [&'static str],
    /// The members that hold a prompt where there is no history.
    pub(crate) prompt: &'static [&'static str],
    /// The gap in its prompts; `None` if there is none.
    pub(crate) gap: Option<Gap>,
    /// Pointers to the required form of an answer.
    pub(crate) answer_form: &'static [&'static str],
    /// The members that limit the length of the answer, as far as rules read them.
    pub(crate) longest_answer: &'static [&'static str],
    /// `true` if a request must limit the length of the answer.
    pub(crate) needs_limit: bool,
    /// The shape of tool definitions.
    pub(crate) tools: ToolForm,
    /// `true` if servers parse tool schemas into a type of their own and drop unknown keywords.
    pub(crate) drops_keywords: bool,
    /// `true` if the arguments of calls are JSON text; otherwise, they are an object.
    pub(crate) has_arguments_as_text: bool,
    /// The rule for ids of tool calls.
    pub(crate) ids: IdRule,
    /// `true` if calls and results must have ids.
    pub(crate) has_ids: bool,
    /// The allowed tool names, as in the schemas.
    pub(crate) names: NameRule,
    /// `true` if reasoning without a signature is refused, as is a turn that ends with reasoning.
    pub(crate) checks_reasoning: bool,
    /// The clouds that serve it with the model in the URL and the version in the body.
    pub(crate) clouds: &'static [Server],
    /// `true` if models bind thinking to the messages before it.
    pub(crate) binds_thinking: bool,
    /// `true` if bodies can contain prompt-cache breakpoints.
    pub(crate) has_cache_breakpoints: bool,
    /// The format's own blocks that are sent back, and those that are sent back only in pairs.
    pub(crate) own_blocks: ProviderBlockKinds,
    /// The place of its own blocks in a history.
    pub(crate) own_place: OwnPlace,
    /// The batch service that takes its requests.
    pub(crate) batches: Option<BatchService>,
    /// The form of answers.
    #[cfg(feature = "runtime")]
    pub(crate) answers: AnswerForm,
    /// `true` if answers are streamed as one JSON value per line; otherwise, they are server-sent
    /// events.
    #[cfg(feature = "runtime")]
    pub(crate) streams_lines: bool,
    /// The prefixes of its event names, if there are others than `message`.
    #[cfg(feature = "runtime")]
    pub(crate) events: &'static [&'static str],
}

/// The shape of the turns of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnForm {
    /// Messages of blocks, among them calls and results: Anthropic's.
    Blocks,
    /// Messages with a list of calls beside the content, and a message for each result: Chat
    /// Completions and its successors.
    Messages,
    /// Items, with one for each message, call, and result: Responses.
    Items,
    /// Contents of parts: Gemini's.
    Contents,
    /// None: the request is one prompt.
    None,
}

/// The gap in a prompt that the model fills.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gap {
    /// The member that holds the text before the gap.
    pub(crate) before: &'static str,
    /// The member that holds the text after the gap.
    pub(crate) after: &'static str,
    /// `true` if a prompt without text after it has no gap, but is a question.
    pub(crate) needs_after: bool,
}

/// The place of a provider's own blocks in a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnPlace {
    /// Parts of any message.
    Parts,
    /// Parts of assistant messages.
    PartsOfAssistant,
    /// Items beside the messages.
    Items,
    /// Members of an assistant message.
    Members,
    /// Nowhere.
    Nowhere,
}

/// A service that accepts many requests in one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchService {
    /// Anthropic's message batches.
    Anthropic,
    /// OpenAI's, for this endpoint.
    OpenAi(&'static str),
}

/// The shape of a tool definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToolForm {
    /// Name, description and `input_schema`.
    Plain,
    /// `type`, name, description, and the schema as `parameters`.
    Typed,
    /// `type`, and a member `function` with name, description and `parameters`.
    Function,
    /// One element with a `functionDeclarations` list.
    Declarations,
}

/// The form of answers; each has its own decoder.
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
