//! The facts that differ between wire formats. Each format has its own file of facts in this
//! folder.

use crate::conversation::{NameRule, ProviderBlockKinds};
use crate::provider::{Capability, Server};
use crate::render::IdRule;

/// The facts of a wire format. Here, *member* means a member at the top level of a body.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each states an independent fact"
)]
pub(crate) struct Facts {
    /// The stable name, which is also used for the schema.
    pub(crate) name: &'static str,
    /// The path suffixes of the format's endpoints.
    pub(crate) paths: &'static [&'static str],
    /// The only server to which these paths apply, if a different format uses the same paths on
    /// other servers.
    pub(crate) only_at: Option<Server>,
    /// The format's characteristic members. Every body contains at least one of them.
    pub(crate) begins_with: &'static [&'static str],
    /// `true` if the body contains the model.
    pub(crate) has_model_in_body: bool,
    /// `true` if members can also be written in snake case, for example `tool_config` instead of
    /// `toolConfig`.
    pub(crate) has_two_spellings: bool,
    /// The features that profiles can ask for.
    pub(crate) capabilities: &'static [Capability],
    /// The shape of the turns in the history.
    pub(crate) turns: TurnForm,
    /// The member that contains the history; `None` if the format has no history.
    pub(crate) history: Option<&'static str>,
    /// The members that refer to conversation state on the server.
    pub(crate) continued_by: &'static [&'static str],
    /// The members that contain a system prompt outside the history.
    pub(crate) system: &'static [&'static str],
    /// The members that contain the prompt, for formats without a history.
    pub(crate) prompt: &'static [&'static str],
    /// The gap in the format's prompts; `None` if they have no gap.
    pub(crate) gap: Option<Gap>,
    /// Pointers to the values that specify the answer format.
    pub(crate) answer_form: &'static [&'static str],
    /// The members that limit the response length; only those that rules use.
    pub(crate) longest_answer: &'static [&'static str],
    /// `true` if a request must limit the response length.
    pub(crate) needs_limit: bool,
    /// The shape of tool definitions.
    pub(crate) tools: ToolForm,
    /// `true` if servers convert tool schemas to their own type and drop unknown keywords.
    pub(crate) drops_keywords: bool,
    /// `true` if the arguments of a call are a string that contains JSON; otherwise, they are an
    /// object.
    pub(crate) has_arguments_as_text: bool,
    /// The rule for IDs of tool calls.
    pub(crate) ids: IdRule,
    /// `true` if calls and results must have IDs.
    pub(crate) has_ids: bool,
    /// The rule for tool names, as in the schemas.
    pub(crate) names: NameRule,
    /// `true` if the format's servers reject reasoning without a signature, and turns that end with
    /// reasoning.
    pub(crate) checks_reasoning: bool,
    /// The clouds that serve the format with the model in the URL and the version in the body.
    pub(crate) clouds: &'static [Server],
    /// `true` if models reject thinking after a change in the messages before it.
    pub(crate) binds_thinking: bool,
    /// `true` if bodies can contain prompt-cache breakpoints.
    pub(crate) has_cache_breakpoints: bool,
    /// The format's own blocks that are sent back, some of them only in pairs.
    pub(crate) own_blocks: ProviderBlockKinds,
    /// The location of the format's own blocks in a history.
    pub(crate) own_place: OwnPlace,
    /// The batch service that accepts requests in this format.
    pub(crate) batches: Option<BatchService>,
    /// The form of answers.
    #[cfg(feature = "runtime")]
    pub(crate) answers: AnswerForm,
    /// `true` if streamed answers consist of one JSON value per line; otherwise, they are
    /// server-sent events.
    #[cfg(feature = "runtime")]
    pub(crate) streams_lines: bool,
    /// The prefixes of the format's event names; empty if all events are called `message`.
    #[cfg(feature = "runtime")]
    pub(crate) events: &'static [&'static str],
}

/// The shape of the turns in a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TurnForm {
    /// Messages that consist of blocks, including calls and results (Anthropic).
    Blocks,
    /// Messages with a list of calls next to the content, and a separate message for each result
    /// (Chat Completions and its successors).
    Messages,
    /// Items, one for each message, call, and result (Responses).
    Items,
    /// Contents that consist of parts (Gemini).
    Contents,
    /// No turns: the request is a single prompt.
    None,
}

/// The gap in a prompt that the model fills.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gap {
    /// The member that contains the text before the gap.
    pub(crate) before: &'static str,
    /// The member that contains the text after the gap.
    pub(crate) after: &'static str,
    /// `true` if there must be text after the gap: a prompt without such text has no gap and is a
    /// question.
    pub(crate) needs_after: bool,
}

/// The location of a provider's own blocks in a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OwnPlace {
    /// Blocks are parts of any message.
    Parts,
    /// Blocks are parts of assistant messages.
    PartsOfAssistant,
    /// Blocks are separate items, next to the messages.
    Items,
    /// Blocks are members of an assistant message.
    Members,
    /// The format has no blocks of its own in a history.
    Nowhere,
}

/// A service that accepts many requests in one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BatchService {
    /// Anthropic's message batches.
    Anthropic,
    /// OpenAI's batches, for this endpoint.
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

/// The form of answers. Each form has its own decoder.
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
    /// The `content` of llama.cpp's `/infill`.
    Infill,
}
