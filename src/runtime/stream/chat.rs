//! Chat Completions of OpenAI, Mistral and compatible servers, and Mistral's fill-in-the-middle.
//!
//! The chunks are those in the Python SDKs openai 3.54 (`types/chat/chat_completion_chunk.py`) and
//! mistralai 3.7 (`completionchunk.py`, `deltamessage.py`); a whole answer has `message` where a
//! chunk has `delta`. An answer is complete when a chunk had a `finish_reason`; `[DONE]` may
//! follow. Some servers send only `[DONE]` (`vllm-mlx` 0.4.0, waybarrios/vllm-mlx#628; `SGLang`
//! 0.4.4, sgl-project/sglang#4550; models on Groq, ZaguanLabs/groq-go
//! `docs/INVESTIGATION_SUMMARY.md`). In that case, the content up to that point is complete, as in
//! OpenAI's SDK, and the missing reason is reported. If there is no usable content, or only the
//! beginning of a call, there is no answer: LM Studio ends a stream like this when the context is
//! full (vaadin/flow-components#9195). Reasons (openai `chat_completion_chunk.py`, mistralai
//! `completionresponsestreamchoice.py`, <https://api-docs.deepseek.com/api/create-chat-completion>,
//! <https://openrouter.ai/docs/api-reference/overview>):
//!
//! | provider | here |
//! | --- | --- |
//! | `stop` | end of turn, or tool use if there are calls |
//! | `tool_calls`, `function_call` | tool use, or end of turn if there are none |
//! | `length`, Mistral's `model_length` | token limit |
//! | `content_filter`, and an answer with `refusal` | refusal |
//! | Mistral's and OpenRouter's `error`, `DeepSeek`'s `insufficient_system_resource` | an error |
//! | others | the provider's own word |
//!
//! Reasoning is sent as `reasoning_content` (`DeepSeek`, Qwen, llama.cpp), as `reasoning`
//! (OpenRouter, Ollama, `vLLM`), as OpenRouter's `reasoning_details` with signatures, which are
//! also kept unchanged, or as Mistral's chunks of type `thinking`. Usage: `prompt_tokens` includes
//! cached tokens, and `completion_tokens` includes reasoning. If no usage was requested,
//! llama.cpp's `timings` are used instead.
//!
//! Calls of custom tools, audio answers, images, sources, and unknown members and chunks are kept
//! in provider-specific blocks. Choices beyond the first are dropped, with a warning.

use serde_json::{Map, Value, json};

use super::AnswerParser;
use super::builder::{AnswerBuilder, BlockIndex};
use super::infill::TIMINGS;
use super::json::{count, is_first, items, set, text};
use super::shape::{self, Member, Shape};
use super::shape::{
    always, any, beside, beside_in_pieces, ignored, is_nothing, kept, kind, number, within, words,
};
use crate::runtime::{Category, Error, StopReason};

pub(super) static SHAPE: Shape = Shape::new(
    "chunk",
    &[
        shape::text(&["id", "model"]),
        within(&["choices"], &CHOICE),
        within(&["usage"], &USAGE),
        within(&["timings"], &TIMINGS),
        beside(&[
            "citations",
            "search_results",
            "related_questions",
            "images",
            "videos",
        ]),
        beside(&["prompt_logprobs"]),
        ignored(&["object", "created"], "the same in each chunk"),
        ignored(SERVED_BY, "how and by whom the request was served"),
        ignored(&["obfuscation", "p"], "padding that hides the length"),
        ignored(
            &["prompt_filter_results", "content_filter_results"],
            FILTERED,
        ),
        ignored(&["prompt_token_ids"], "a copy of the prompt"),
        ignored(
            &["x_groq", "kv_transfer_params", "metadata"],
            "the server's own bookkeeping",
        ),
        ignored(&["base_resp", "error"], "an actual error ends the answer"),
    ],
);

const SERVED_BY: &[&str] = &["system_fingerprint", "service_tier", "provider"];

const FILTERED: &str = "if anything was filtered, the refusal reports it";

static CHOICE: Shape = Shape::new(
    "choices[]",
    &[
        number(&["index"]),
        shape::text(&["finish_reason"]),
        within(&["delta", "message"], &MESSAGE),
        within(&["usage"], &USAGE),
        beside_in_pieces(&["logprobs"]),
        ignored(
            &["content_filter_results", "content_filter_result"],
            FILTERED,
        ),
        ignored(
            &["content_filter_offsets"],
            "the range that the filter checked",
        ),
        ignored(
            &["native_finish_reason"],
            "`finish_reason` gives the same reason in the format's own terms",
        ),
        ignored(
            &["stop_reason", "matched_stop"],
            "the outcome already reports the stop sequence",
        ),
        ignored(&["token_ids"], "a copy of the text, as tokens"),
    ],
);

/// The table of a message or a delta. Members that are not listed are kept, each in a block of its
/// own.
static MESSAGE: Shape = Shape::new("choices[].delta", MESSAGE_MEMBERS).keeping_other_members();

const MESSAGE_MEMBERS: &[Member] = &[
    words(&["content"], &CHUNK),
    shape::text(&["refusal", "reasoning", "reasoning_content"]),
    within(&["tool_calls"], &CALL),
    within(&["function_call"], &FUNCTION),
    kept(&[DETAILS]),
    beside_in_pieces(&["logprobs"]),
    always(&["role"], &["assistant"]),
    ignored(&["name", "prefix"], "copies of request values"),
    ignored(&["token_ids", "prompt_token_ids"], "a copy of the text"),
];

static CHUNK: Shape = Shape::new("choices[].delta.content[]", &[])
    .with_kinds(&[
        kind(&["", "text", "output_text"], &[shape::text(&["text"])]),
        kind(&["thinking"], THINKING),
        kind(&["refusal"], &[shape::text(&["refusal"])]),
    ])
    .keeping_other_kinds();

const THINKING: &[Member] = &[
    words(&["thinking"], &THOUGHT),
    shape::text(&["signature"]),
    ignored(
        &["closed"],
        "the next chunk shows that the thinking has ended",
    ),
];

static THOUGHT: Shape = Shape::new("choices[].delta.content[].thinking[]", &[])
    .with_kinds(&[kind(&["", "text"], &[shape::text(&["text"])])]);

static CALL: Shape = Shape::new(
    "choices[].delta.tool_calls[]",
    &[
        number(&["index"]),
        shape::text(&["id"]),
        within(&["function", "custom"], &FUNCTION),
        always(&["type"], &["function", "custom"]),
    ],
);

static FUNCTION: Shape = Shape::new(
    "choices[].delta.tool_calls[].function",
    &[shape::text(&["name", "input"]), any(&["arguments"])],
);

static USAGE: Shape = Shape::new(
    "usage",
    &[
        number(&[
            "prompt_tokens",
            "completion_tokens",
            "prompt_cache_hit_tokens",
        ]),
        within(&["prompt_tokens_details"], &PROMPT_DETAILS),
        within(&["completion_tokens_details"], &COMPLETION_DETAILS),
        ignored(
            &["total_tokens", "prompt_cache_miss_tokens"],
            "derived from the other counts",
        ),
        ignored(
            &["num_cached_tokens", "cached_tokens"],
            "another name of the cached tokens",
        ),
        ignored(COSTS, "prices come from the model tables"),
        ignored(TIMES, "how long it took"),
        ignored(SEARCHES, "they count calls and seconds, not tokens"),
    ],
);

const COSTS: &[&str] = &["cost", "cost_details", "is_byok", "cost_in_usd_ticks"];

const TIMES: &[&str] = &["queue_time", "prompt_time", "completion_time", "total_time"];

const SEARCHES: &[&str] = &[
    "num_search_queries",
    "search_context_size",
    "citation_tokens",
    "num_sources_used",
    "server_tool_use",
    "prompt_audio_seconds",
    "num_connector_calls",
];

static PROMPT_DETAILS: Shape = Shape::new(
    "usage.prompt_tokens_details",
    &[
        number(&["cached_tokens", "cache_write_tokens"]),
        ignored(MODALITIES, "the counts above, split by modality"),
    ],
);

static COMPLETION_DETAILS: Shape = Shape::new(
    "usage.completion_tokens_details",
    &[
        number(&["reasoning_tokens"]),
        ignored(MODALITIES, "the counts above, split by modality"),
        ignored(
            &["accepted_prediction_tokens", "rejected_prediction_tokens"],
            "parts of the output",
        ),
    ],
);

const MODALITIES: &[&str] = &[
    "audio_tokens",
    "text_tokens",
    "image_tokens",
    "video_tokens",
    "num_sources_used",
];

#[derive(Default)]
pub(super) struct Chat {
    calls: Vec<Open>,
    detail: Option<Detail>,
    /// The provider-specific members of the message, by name.
    own: Vec<(String, BlockIndex)>,
    /// `true` if calls arrive as `function_call`, the older form for a single call.
    legacy: bool,
    /// Calls of custom tools, by their index.
    customs: Vec<(Option<u64>, BlockIndex)>,
    counted: bool,
    /// `true` if a whole message arrived, and not only deltas.
    is_whole: bool,
}

/// A call that is being received, with the identifiers that the provider uses for it.
struct Open {
    index: Option<u64>,
    id: String,
    place: BlockIndex,
}

impl Open {
    /// Returns `true` if a piece with this index may belong to the call, because the indices are
    /// equal or one of them is missing.
    fn may_have(&self, index: Option<u64>) -> bool {
        index.is_none() || self.index.is_none() || self.index == index
    }
}

/// The latest element of `reasoning_details`. A piece with the same type and index extends it.
struct Detail {
    kind: String,
    index: Option<u64>,
    place: BlockIndex,
}

impl AnswerParser for Chat {
    fn read(&mut self, _: &str, value: &Value, answer: &mut AnswerBuilder) -> Result<(), Error> {
        self.usage(value, answer);
        let choices = items(value, "choices");
        if choices.iter().any(|choice| !is_first(choice)) {
            answer.warn("the answer has several choices: the first is kept");
        }
        let Some(choice) = choices.iter().find(|choice| is_first(choice)) else {
            return Ok(());
        };
        if choice["usage"].is_object() {
            self.usage(choice, answer);
        }
        match choice.get("message").filter(|message| message.is_object()) {
            Some(message) => {
                self.is_whole = true;
                self.message(message, true, answer);
            }
            None => self.message(&choice["delta"], false, answer),
        }
        if let Some(stop) = stop_reason(text(choice, "finish_reason"))? {
            if stop == StopReason::Refusal {
                answer.refused_for(&filtered(&choice["content_filter_results"]), "");
            }
            answer.stop(stop);
            self.own.iter().for_each(|(_, place)| answer.seal(*place));
        }
        Ok(())
    }

    /// Ends the answer. Reasoning alone is not an answer, even in a provider-specific form.
    fn end(&mut self, answer: &mut AnswerBuilder) {
        if let Some((_, place)) = self.own.iter().find(|(name, _)| name == DETAILS) {
            answer.drop_unless_said(*place);
        }
        if self.is_whole || answer.is_closed() {
            answer.stop_without_reason();
        }
    }
}

impl Chat {
    /// Reads a message or a delta.
    fn message(&mut self, message: &Value, whole: bool, answer: &mut AnswerBuilder) {
        self.keep_details(items(message, "reasoning_details"), whole, answer);
        if !self.details(items(message, "reasoning_details"), answer) {
            let reasoning = text(message, "reasoning_content");
            answer.thinking(if reasoning.is_empty() {
                text(message, "reasoning")
            } else {
                reasoning
            });
        }
        match &message["content"] {
            Value::String(piece) => answer.text(piece),
            Value::Array(chunks) => chunks.iter().for_each(|chunk| read_chunk(chunk, answer)),
            _ => {}
        }
        let refusal = text(message, "refusal");
        if !refusal.is_empty() {
            answer.refuse();
            answer.text(refusal);
        }
        self.own_members(message, answer);
        if message["function_call"].is_object() && (self.legacy || self.calls.is_empty()) {
            self.legacy = true;
            return self.call(
                &json!({"function": message["function_call"]}),
                whole,
                answer,
            );
        }
        for call in items(message, "tool_calls") {
            if answer.is_full() {
                return;
            }
            let known = self.known_custom(call);
            if known.is_some() || call["custom"].is_object() {
                self.custom_call(known, call, answer);
            } else {
                self.call(call, whole, answer);
            }
        }
    }

    /// Keeps the provider-specific members. Pieces of an audio answer are merged.
    fn own_members(&mut self, message: &Value, answer: &mut AnswerBuilder) {
        for (name, value) in message
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, value)| is_own(name, value))
        {
            let place = self.own_place(name, &Value::Null, answer);
            if let Some(data) = answer.own_data(place) {
                merge(&mut data[name], value);
            }
            answer.own_words(place, text(value, "transcript"));
            if !grows(name) {
                answer.seal(place);
            }
        }
    }

    /// Returns the block of a provider-specific member, after opening it with `start` if needed.
    fn own_place(&mut self, name: &str, start: &Value, answer: &mut AnswerBuilder) -> BlockIndex {
        if let Some((_, place)) = self.own.iter().find(|(known, _)| known == name) {
            return *place;
        }
        let place = answer.open_own(json!({ name: start }));
        self.own.push((name.to_owned(), place));
        place
    }

    /// Returns the call to a custom tool that a piece continues, if it is known.
    fn known_custom(&self, call: &Value) -> Option<BlockIndex> {
        let index = count(call, "/index")?;
        self.customs
            .iter()
            .find(|(known, _)| *known == Some(index))
            .map(|(_, place)| *place)
    }

    /// Reads a call to a custom tool, whose input is free text, or a piece of such a call.
    fn custom_call(&mut self, known: Option<BlockIndex>, call: &Value, answer: &mut AnswerBuilder) {
        let place = known.unwrap_or_else(|| {
            let data =
                json!({"id": id_of(call), "type": "custom", "custom": {"name": "", "input": ""}});
            let place = answer.open_own(data);
            self.customs.push((count(call, "/index"), place));
            place
        });
        if let Some(Value::Object(custom)) = answer
            .own_data(place)
            .and_then(|data| data.get_mut("custom"))
        {
            for key in ["name", "input"] {
                if let Some(Value::String(text)) = custom.get_mut(key) {
                    text.push_str(self::text(&call["custom"], key));
                }
            }
        }
        answer.seal(place);
        answer.waits_for_host();
    }

    /// Keeps OpenRouter's reasoning unchanged, with its pieces merged, because it must be sent back
    /// unmodified and in order. It includes details that a history cannot represent.
    fn keep_details(&mut self, details: &[Value], whole: bool, answer: &mut AnswerBuilder) {
        if details.is_empty() {
            return;
        }
        let place = self.own_place(DETAILS, &json!([]), answer);
        let Some(Value::Array(known)) = answer.own_data(place).map(|data| &mut data[DETAILS])
        else {
            return;
        };
        for detail in details {
            match known
                .last_mut()
                .filter(|last| !whole && goes_on(last, detail))
            {
                Some(last) => add_detail(last, detail),
                None => known.push(detail.clone()),
            }
        }
    }

    /// Reads OpenRouter's reasoning (`ReasoningDetailUnion` of its API document). Returns `true` if
    /// it contained text, because `reasoning` then repeats that text.
    fn details(&mut self, details: &[Value], answer: &mut AnswerBuilder) -> bool {
        let mut said = false;
        for detail in details {
            if answer.is_full() {
                break;
            }
            let index = count(detail, "/index");
            if text(detail, "type") == "reasoning.encrypted" {
                answer.redacted(text(detail, "data"));
                self.detail = None;
                continue;
            }
            let words = [text(detail, "text"), text(detail, "summary")].concat();
            let signature = text(detail, "signature");
            if words.is_empty() && signature.is_empty() {
                continue;
            }
            said |= !words.is_empty();
            let place = self.detail_place(text(detail, "type"), index, !words.is_empty(), answer);
            answer.thinking_at(place, &words);
            answer.signature_at(place, signature);
        }
        said
    }

    /// Returns the block for a detail, and opens one if needed. The index alone does not identify
    /// the block, because it is always 0 in some streams (OpenRouterTeam/ai-sdk-provider#520). A
    /// different type, or text after a signature, starts a new block.
    fn detail_place(
        &mut self,
        kind: &str,
        index: Option<u64>,
        words: bool,
        answer: &mut AnswerBuilder,
    ) -> BlockIndex {
        if let Some(detail) = &self.detail
            && detail.index == index
            && detail.kind == kind
            && !(words && answer.is_signed(detail.place))
        {
            return detail.place;
        }
        let place = answer.open_thinking();
        self.detail = Some(Detail {
            kind: kind.to_owned(),
            index,
            place,
        });
        place
    }

    /// Reads a call or a piece of one.
    fn call(&mut self, call: &Value, whole: bool, answer: &mut AnswerBuilder) {
        let function = &call["function"];
        let (id, name) = (id_of(call), text(function, "name"));
        if self.is_repeated(call, answer) {
            return;
        }
        let known = if whole {
            None
        } else {
            self.known(call, answer)
        };
        let place = match known {
            Some(at) => {
                answer.name_call(self.calls[at].place, id, name);
                if self.calls[at].id.is_empty() {
                    id.clone_into(&mut self.calls[at].id);
                }
                self.calls[at].place
            }
            None => {
                let place = answer.open_growing_call(id, name);
                self.calls.push(Open {
                    index: count(call, "/index"),
                    id: id.to_owned(),
                    place,
                });
                place
            }
        };
        answer.arguments_value(place, &function["arguments"]);
    }

    /// Returns `true` if the answer already contains the same call with its ID, its name and all
    /// its arguments. Some servers repeat everything at the end of a stream.
    fn is_repeated(&self, call: &Value, answer: &AnswerBuilder) -> bool {
        let (index, id, function) = (count(call, "/index"), id_of(call), &call["function"]);
        !id.is_empty()
            && self.calls.iter().any(|open| {
                open.index == index
                    && open.id == id
                    && answer.is_call(open.place, text(function, "name"), &function["arguments"])
            })
    }

    /// Returns the position of the call that a piece continues, found by its index. Some servers
    /// send no index, or the same one for all calls. For these, a new ID starts a new call, and so
    /// does a new name after complete arguments.
    fn known(&self, call: &Value, answer: &AnswerBuilder) -> Option<usize> {
        let (index, id, name) = (
            count(call, "/index"),
            id_of(call),
            text(&call["function"], "name"),
        );
        let by_id = self
            .calls
            .iter()
            .rposition(|open| open.may_have(index) && open.id == id)
            .filter(|_| !id.is_empty());
        let at = by_id.or_else(|| self.calls.iter().rposition(|open| open.may_have(index)))?;
        let open = &self.calls[at];
        let other_id = !id.is_empty() && !open.id.is_empty() && open.id != id;
        let goes_on = !id.is_empty() && open.id == id && answer.is_held(open.place);
        let brings_more = !call["function"]["arguments"]
            .as_str()
            .unwrap_or("value")
            .trim()
            .is_empty();
        let begins_anew =
            !name.is_empty() && !goes_on && brings_more && answer.has_whole_arguments(open.place);
        (!other_id && !begins_anew).then_some(at)
    }

    fn usage(&mut self, value: &Value, answer: &mut AnswerBuilder) {
        let usage = answer.usage();
        let tokens = &value["usage"];
        if tokens.is_object() {
            self.counted = true;
            set(&mut usage.input, count(tokens, "/prompt_tokens"));
            set(&mut usage.output, count(tokens, "/completion_tokens"));
            set(
                &mut usage.cache_read,
                count(tokens, "/prompt_cache_hit_tokens"),
            );
            set(
                &mut usage.cache_read,
                count(tokens, "/prompt_tokens_details/cached_tokens"),
            );
            set(
                &mut usage.cache_write,
                count(tokens, "/prompt_tokens_details/cache_write_tokens"),
            );
            set(
                &mut usage.reasoning,
                count(tokens, "/completion_tokens_details/reasoning_tokens"),
            );
        } else if let (Some(fresh), false) = (count(value, "/timings/prompt_n"), self.counted) {
            usage.cache_read = count(value, "/timings/cache_n").unwrap_or_default();
            usage.input = fresh.saturating_add(usage.cache_read);
            set(&mut usage.output, count(value, "/timings/predicted_n"));
        }
    }
}

/// Returns the ID of a call. The text `null` is Mistral's default for a missing ID (`toolcall.py`).
fn id_of(call: &Value) -> &str {
    match text(call, "id") {
        "null" => "",
        id => id,
    }
}

/// Reads a content chunk: Mistral's text and thinking (`thinkchunk.py`), and the parts that some
/// compatible servers send.
fn read_chunk(chunk: &Value, answer: &mut AnswerBuilder) {
    match text(chunk, "type") {
        "thinking" => {}
        "refusal" => {
            answer.refuse();
            return answer.text(text(chunk, "refusal"));
        }
        "" | "text" | "output_text" => return answer.text(text(chunk, "text")),
        _ => {
            answer.own(chunk.clone());
            return;
        }
    }
    answer.thinking(text(chunk, "thinking"));
    items(chunk, "thinking")
        .iter()
        .for_each(|part| answer.thinking(text(part, "text")));
    let signature = text(chunk, "signature");
    if !signature.is_empty() {
        answer.sign_next(signature);
    }
}

/// Returns `true` if a member of a message is provider-specific and not empty.
fn is_own(name: &str, value: &Value) -> bool {
    !is_nothing(value) && !value.is_boolean() && !MESSAGE.names(name)
}

/// The member that contains OpenRouter's reasoning.
const DETAILS: &str = "reasoning_details";

/// Returns `true` if a piece of reasoning continues the previous one: see [`Chat::detail_place`].
/// Encrypted reasoning arrives whole, and sometimes twice.
fn goes_on(last: &Value, detail: &Value) -> bool {
    if !is_in_words(detail) {
        return last == detail;
    }
    let is_signed = !text(last, "signature").is_empty();
    let brings_words = !text(detail, "text").is_empty() || !text(detail, "summary").is_empty();
    last["type"] == detail["type"]
        && same("index", last, detail)
        && same("id", last, detail)
        && !(is_signed && brings_words)
}

fn same(key: &str, last: &Value, detail: &Value) -> bool {
    last[key] == detail[key] || last[key].is_null() || detail[key].is_null()
}

fn is_in_words(detail: &Value) -> bool {
    matches!(text(detail, "type"), "reasoning.text" | "reasoning.summary")
}

/// Adds a piece to a detail: text and signatures are appended, and other members arrive only once.
fn add_detail(last: &mut Value, detail: &Value) {
    let Some(known) = last.as_object_mut().filter(|_| is_in_words(detail)) else {
        return;
    };
    for (key, piece) in detail
        .as_object()
        .into_iter()
        .flatten()
        .filter(|(_, piece)| !piece.is_null())
    {
        match (known.get_mut(key), piece) {
            (Some(Value::String(said)), Value::String(piece))
                if ["text", "summary", "signature"].contains(&key.as_str()) =>
            {
                said.push_str(piece);
            }
            (None | Some(Value::Null), _) => drop(known.insert(key.clone(), piece.clone())),
            _ => {}
        }
    }
}

/// Returns `true` if a provider-specific member arrives in pieces, so it is complete only at the
/// end of the answer.
fn grows(name: &str) -> bool {
    matches!(name, "audio" | DETAILS)
}

/// Merges a piece into a value: lists and audio data are extended, other values are replaced.
fn merge(into: &mut Value, piece: &Value) {
    match (into, piece) {
        (Value::Array(known), Value::Array(more)) => known.extend(more.iter().cloned()),
        (Value::Object(known), Value::Object(more)) => merge_members(known, more),
        (into, piece) => *into = piece.clone(),
    }
}

fn merge_members(known: &mut Map<String, Value>, more: &Map<String, Value>) {
    for (key, piece) in more {
        match (known.get_mut(key), piece) {
            (Some(Value::String(text)), Value::String(piece))
                if key == "data" || key == "transcript" =>
            {
                text.push_str(piece);
            }
            _ => drop(known.insert(key.clone(), piece.clone())),
        }
    }
}

/// Returns the categories that Azure's filter blocked (`content_filter_results`).
fn filtered(results: &Value) -> String {
    let results = results.as_object().into_iter().flatten();
    let filtered = results.filter(|(_, result)| result["filtered"] == Value::Bool(true));
    filtered
        .map(|(category, _)| category.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

fn stop_reason(reason: &str) -> Result<Option<StopReason>, Error> {
    Ok(Some(match reason {
        "" => return Ok(None),
        "stop" => StopReason::EndTurn,
        "tool_calls" | "function_call" => StopReason::ToolUse,
        "length" | "model_length" => StopReason::MaxTokens,
        "content_filter" => StopReason::Refusal,
        "error" | "insufficient_system_resource" => {
            let error = Error::new(Category::Provider, "the provider aborted the answer");
            return Err(error.detail(reason).retryable());
        }
        other => StopReason::Other(other.to_owned()),
    }))
}
