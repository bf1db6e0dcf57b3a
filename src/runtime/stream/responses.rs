//! OpenAI Responses.
//!
//! The events are those in `ResponseStreamEvent` of OpenAI's API document and the Python SDK openai
//! 3.54 (`types/responses/`). A whole answer is the `response` object of the terminal events, which
//! are `response.completed`, `response.incomplete`, `response.failed` and `error`. Reasons
//! (`types/responses/response.py`, `status` and `incomplete_details`):
//!
//! | provider | here |
//! | --- | --- |
//! | `completed` | end of turn, or tool use if there are calls; refusal if an item is one |
//! | `incomplete`, `max_output_tokens` | token limit |
//! | `incomplete`, `content_filter` | refusal |
//! | `incomplete`, others | the provider's own word |
//! | `failed`, `cancelled` | an error |
//!
//! The final form of an item is taken from `response.output_item.done`, because the
//! `encrypted_content` of earlier events may be incomplete (`response_reasoning_item.py`). A
//! reasoning item with a summary becomes thinking with the summary as its text; without a summary,
//! it becomes redacted thinking; and without encrypted content, thinking without a signature. Items
//! are identified by `output_index`, or by their ID for servers that omit the index (llama.cpp).
//! Usage: `input_tokens` includes cached tokens, and `output_tokens` includes reasoning.
//!
//! The terminal event repeats the whole answer, and supplies the items that no other event
//! contained.
//!
//! Items of other types, and messages with sources or a `phase`, are kept in provider-specific
//! blocks. IDs that tie an item to a reasoning item are omitted, because reasoning is sent back
//! without its own ID (vercel/ai#7099, continuedev/continue#11994).

use serde_json::{Map, Value, json};

use super::AnswerParser;
use super::builder::{AnswerBuilder, BlockIndex, MOST_BLOCKS};
use super::infill::TIMINGS;
use super::json::{self, count, items, set, text};
use super::shape::{self, EVENTS, Kind, Member, Shape};
use super::shape::{always, any, beside, ignored, is_nothing, kept, kind, number, within};
use crate::runtime::{Category, Error, StopReason, failure};

/// The table of events, and of the whole answer, which has no `type`.
pub(super) static SHAPE: Shape = Shape::new(
    EVENTS,
    &[
        number(&["output_index", "content_index", "summary_index"]),
        shape::text(&["item_id"]),
        ignored(&["sequence_number"], "events come in order"),
        ignored(&["obfuscation"], "padding that hides the length"),
        ignored(
            &["response_id", "event_id", "created_at"],
            "already reported by the first event",
        ),
    ],
)
.with_kinds(KINDS);

const KINDS: &[Kind] = &[
    kind(&["response.output_item.added"], &[any(&["item"])]),
    kind(&["response.output_item.done"], OF_ITEM),
    kind(
        TEXT_DELTAS,
        &[
            shape::text(&["delta"]),
            ignored(&["logprobs"], PART_HAS_THEM),
        ],
    ),
    kind(&["response.function_call_arguments.done"], ARGUMENTS),
    kind(ENDS, OF_END),
    kind(STARTS, OF_START),
    kind(
        &["response.content_part.added", "response.content_part.done"],
        OF_PART,
    ),
    kind(SUMMARY_PARTS, OF_SUMMARY),
    kind(&["response.output_text.annotation.added"], ANNOTATION),
    kind(
        DONE,
        &[ignored(&["text", "refusal", "logprobs"], ITEM_SAYS)],
    ),
    kind(PROGRESS, &[ignored(PROGRESS_MEMBERS, ITEM_SAYS)]),
    kind(&["keepalive", "ping"], &[]),
    kind(&["", "response"], RESPONSE_MEMBERS),
];

const OF_ITEM: &[Member] = &[within(&["item"], &ITEM)];

const OF_END: &[Member] = &[
    within(&["response"], &RESPONSE),
    within(&["timings"], &TIMINGS),
];

const OF_START: &[Member] = &[within(&["response"], &RESPONSE)];

const OF_PART: &[Member] = &[within(&["part"], &PART)];

const OF_SUMMARY: &[Member] = &[within(&["part"], &SUMMARY), ignored(&["status"], ITEM_SAYS)];

const TEXT_DELTAS: &[&str] = &[
    "response.output_text.delta",
    "response.refusal.delta",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
    "response.function_call_arguments.delta",
];

const PART_HAS_THEM: &str = "the finished part has all of them";

const ITEM_SAYS: &str = "the finished item repeats it";

const ARGUMENTS: &[Member] = &[shape::text(&["arguments"]), ignored(&["name"], ITEM_SAYS)];

const ANNOTATION: &[Member] = &[ignored(&["annotation", "annotation_index"], ITEM_SAYS)];

const ENDS: &[&str] = &[
    "response.completed",
    "response.incomplete",
    "response.failed",
    "response.cancelled",
];

const STARTS: &[&str] = &[
    "response.created",
    "response.in_progress",
    "response.queued",
];

const SUMMARY_PARTS: &[&str] = &[
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_part.done",
];

const DONE: &[&str] = &[
    "response.output_text.done",
    "response.refusal.done",
    "response.reasoning_summary_text.done",
    "response.reasoning_text.done",
];

/// Events that report the progress of a server tool, or contain pieces of its item.
const PROGRESS: &[&str] = &[
    "response.code_interpreter_call.in_progress",
    "response.code_interpreter_call.interpreting",
    "response.code_interpreter_call.completed",
    "response.code_interpreter_call_code.delta",
    "response.code_interpreter_call_code.done",
    "response.file_search_call.in_progress",
    "response.file_search_call.searching",
    "response.file_search_call.completed",
    "response.web_search_call.in_progress",
    "response.web_search_call.searching",
    "response.web_search_call.completed",
    "response.image_generation_call.in_progress",
    "response.image_generation_call.generating",
    "response.image_generation_call.partial_image",
    "response.image_generation_call.completed",
    "response.mcp_call.in_progress",
    "response.mcp_call.completed",
    "response.mcp_call.failed",
    "response.mcp_call_arguments.delta",
    "response.mcp_call_arguments.done",
    "response.mcp_list_tools.in_progress",
    "response.mcp_list_tools.completed",
    "response.mcp_list_tools.failed",
    "response.custom_tool_call_input.delta",
    "response.custom_tool_call_input.done",
    "response.shell_call_command.added",
    "response.shell_call_command.delta",
    "response.shell_call_command.done",
    "response.shell_call_output_content.delta",
    "response.shell_call_output_content.done",
    "response.apply_patch_call_operation_diff.delta",
    "response.apply_patch_call_operation_diff.done",
];

const PROGRESS_MEMBERS: &[&str] = &[
    "delta",
    "code",
    "input",
    "arguments",
    "command",
    "command_index",
    "output",
    "diff",
    "partial_image_b64",
    "partial_image_index",
    "background",
    "output_format",
    "quality",
    "size",
];

static RESPONSE: Shape = Shape::new("response", RESPONSE_MEMBERS);

const RESPONSE_MEMBERS: &[Member] = &[
    shape::text(&["id", "model", "status"]),
    within(&["output"], &ITEM),
    within(&["usage"], &USAGE),
    within(&["incomplete_details"], &INCOMPLETE),
    any(&["error"]),
    beside(&["moderation"]),
    always(&["object", "type"], &["response"]),
    ignored(&["created_at", "completed_at"], "the server's clock"),
    ignored(&["output_text"], "`output` contains it"),
    ignored(&["timings"], "how long it took"),
    ignored(
        &["content_filters"],
        "if anything was filtered, the refusal reports it",
    ),
    ignored(&["billing"], "billing details"),
    ignored(OF_REQUEST, "a copy of request values"),
];

/// The members of a response that repeat its request (`openai` 3.54,
/// `types/responses/response.py`).
const OF_REQUEST: &[&str] = &[
    "background",
    "conversation",
    "frequency_penalty",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "metadata",
    "parallel_tool_calls",
    "presence_penalty",
    "previous_response_id",
    "prompt",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "reasoning",
    "safety_identifier",
    "service_tier",
    "store",
    "temperature",
    "text",
    "tool_choice",
    "tools",
    "top_logprobs",
    "top_p",
    "truncation",
    "user",
];

static INCOMPLETE: Shape = Shape::new("response.incomplete_details", &[shape::text(&["reason"])]);

static USAGE: Shape = Shape::new(
    "response.usage",
    &[
        number(&["input_tokens", "output_tokens"]),
        within(&["input_tokens_details"], &INPUT_DETAILS),
        within(&["output_tokens_details"], &OUTPUT_DETAILS),
        ignored(&["total_tokens"], "the sum of the others"),
        ignored(
            &["cost", "cost_details", "is_byok"],
            "prices come from the model tables",
        ),
    ],
);

static INPUT_DETAILS: Shape = Shape::new(
    "response.usage.input_tokens_details",
    &[
        number(&["cached_tokens", "cache_write_tokens"]),
        ignored(MODALITIES, "the counts above, split by modality"),
    ],
);

static OUTPUT_DETAILS: Shape = Shape::new(
    "response.usage.output_tokens_details",
    &[
        number(&["reasoning_tokens"]),
        ignored(MODALITIES, "the counts above, split by modality"),
    ],
);

const MODALITIES: &[&str] = &["audio_tokens", "text_tokens", "image_tokens"];

static ITEM: Shape = Shape::new("item", &[])
    .with_kinds(ITEMS)
    .keeping_other_kinds();

const ITEMS: &[Kind] = &[
    kind(&["message"], MESSAGE),
    kind(&["reasoning"], REASONING),
    kind(&[CALL], FUNCTION_CALL),
];

const MESSAGE: &[Member] = &[
    shape::text(&["id"]),
    within(&["content"], &PART),
    kept(&["phase"]),
    always(&["role"], &["assistant"]),
    ignored(
        &["status"],
        "the answer's status says whether it is complete",
    ),
];

const REASONING: &[Member] = &[
    shape::text(&["id", "encrypted_content"]),
    within(&["summary", "content"], &SUMMARY),
    ignored(
        &["status"],
        "the answer's status says whether it is complete",
    ),
    ignored(&["format"], "a gateway's name for the model's format"),
];

const FUNCTION_CALL: &[Member] = &[
    shape::text(&["id", "call_id", "name", "status"]),
    any(&["arguments"]),
];

static PART: Shape = Shape::new("item.content[]", &[]).with_kinds(&[
    kind(&["output_text"], OUTPUT_TEXT),
    kind(&["refusal"], &[shape::text(&["refusal"])]),
    // Servers report parts of reasoning like parts of a message.
    kind(
        &["reasoning_text", "summary_text"],
        &[shape::text(&["text"])],
    ),
]);

const OUTPUT_TEXT: &[Member] = &[shape::text(&["text"]), kept(&["annotations", "logprobs"])];

static SUMMARY: Shape = Shape::new("item.summary[]", &[]).with_kinds(&[kind(
    &["summary_text", "reasoning_text", "text"],
    &[shape::text(&["text"])],
)]);

/// The separator between two parts of a summary.
const PARTS: &str = "\n\n";

#[derive(Default)]
pub(super) struct Responses {
    items: Vec<OutputItem>,
    /// Announced items of kinds that are kept whole and have not arrived yet.
    announced: Vec<Announced>,
}

/// An item that was announced.
struct Announced {
    kind: String,
    index: Option<u64>,
    id: String,
}

/// An item that is being received, with the identifiers that the provider uses for it.
struct OutputItem {
    kind: String,
    index: Option<u64>,
    id: String,
    /// The blocks of the item: one for each part of a message.
    places: Vec<BlockIndex>,
    /// The index of the latest part of a message or a summary.
    part: Option<u64>,
    done: bool,
}

impl OutputItem {
    /// Returns the block to which pieces are added.
    fn place(&self) -> BlockIndex {
        *self.places.last().expect("an item has a block")
    }
}

impl AnswerParser for Responses {
    fn read(&mut self, kind: &str, value: &Value, answer: &mut AnswerBuilder) -> Result<(), Error> {
        let delta = text(value, "delta");
        match kind {
            "response.output_item.added" => self.begin(value, &value["item"], answer),
            "response.output_item.done" => self.done(value, &value["item"], answer),
            "response.output_text.delta" => self.text(value, delta, answer),
            "response.refusal.delta" => {
                answer.refuse();
                self.text(value, delta, answer);
            }
            "response.reasoning_summary_text.delta" => {
                self.thinking(value, delta, "summary_index", answer);
            }
            "response.reasoning_text.delta" => self.thinking(value, delta, "content_index", answer),
            "response.function_call_arguments.delta" => self.arguments(value, delta, answer),
            "response.function_call_arguments.done" => {
                self.all_arguments(value, text(value, "arguments"), answer);
            }
            "response.completed"
            | "response.incomplete"
            | "response.failed"
            | "response.cancelled" => {
                return self.end(&value["response"], kind, answer);
            }
            _ if text(value, "object") == "response" => return self.end(value, kind, answer),
            // The table names ignored events, and all others are reported.
            _ => {}
        }
        Ok(())
    }
}

impl Responses {
    /// Returns the position of the item of this kind that an event refers to.
    fn known(&self, event: &Value, id: &str, kind: &str) -> Option<usize> {
        let index = count(event, "/output_index");
        let is_unnamed = index.is_none() && id.is_empty();
        self.items
            .iter()
            .rposition(|item| match (index, item.index) {
                _ if item.kind != kind => false,
                (Some(index), Some(known)) => index == known,
                _ => !id.is_empty() && item.id == id,
            })
            .or_else(|| {
                self.items
                    .iter()
                    .rposition(|item| item.kind == kind && !item.done)
                    .filter(|_| is_unnamed)
            })
    }

    /// Returns the position of the item to which a piece belongs. Opens the item if the provider
    /// did not announce it.
    fn of_piece(
        &mut self,
        event: &Value,
        kind: &str,
        answer: &mut AnswerBuilder,
    ) -> &mut OutputItem {
        let id = text(event, "item_id");
        let at = self.known(event, id, kind).unwrap_or_else(|| {
            let place = if kind == "message" {
                answer.open_text()
            } else {
                answer.open_thinking()
            };
            self.add(event, id, kind, place)
        });
        &mut self.items[at]
    }

    fn begin(&mut self, event: &Value, item: &Value, answer: &mut AnswerBuilder) {
        let (kind, id) = (text(item, "type"), text(item, "id"));
        match open(item, answer) {
            Some(place) => drop(self.add(event, id, kind, place)),
            None => {
                let (kind, index, id) = (
                    kind.to_owned(),
                    count(event, "/output_index"),
                    id.to_owned(),
                );
                self.announced.push(Announced { kind, index, id });
            }
        }
    }

    /// Removes an announced item from the list, because it has arrived.
    fn has_come(&mut self, event: &Value, item: &Value) {
        let (index, id) = (count(event, "/output_index"), text(item, "id"));
        let place = self.announced.iter().position(|known| {
            (known.index.is_some() && known.index == index) || (!id.is_empty() && known.id == id)
        });
        let place = place.or_else(|| {
            let kind = text(item, "type");
            self.announced.iter().position(|known| known.kind == kind)
        });
        place.map(|at| self.announced.remove(at));
    }

    /// Reports announced items that never arrived.
    fn tell_of_missing(&mut self, answer: &mut AnswerBuilder) {
        for Announced { kind, .. } in self.announced.drain(..) {
            let kind = json::name(&kind);
            answer.not_read(&format!(
                "an item of type `{kind}` started but was never completed"
            ));
        }
    }

    fn add(&mut self, event: &Value, id: &str, kind: &str, place: BlockIndex) -> usize {
        let (kind, index, id) = (
            kind.to_owned(),
            count(event, "/output_index"),
            id.to_owned(),
        );
        self.items.push(OutputItem {
            kind,
            index,
            id,
            places: vec![place],
            part: None,
            done: false,
        });
        self.items.len() - 1
    }

    fn text(&mut self, event: &Value, delta: &str, answer: &mut AnswerBuilder) {
        let part = count(event, "/content_index");
        let item = self.of_piece(event, "message", answer);
        if item.part.is_some() && part.is_some() && item.part != part {
            answer.seal(item.place());
            item.places.push(answer.open_text());
        }
        item.part = part.or(item.part);
        answer.text_at(item.place(), delta);
    }

    fn thinking(&mut self, event: &Value, delta: &str, part: &str, answer: &mut AnswerBuilder) {
        let item = self.of_piece(event, "reasoning", answer);
        let part = event.get(part).and_then(Value::as_u64).unwrap_or_default();
        if item.part.is_some_and(|last| last != part) {
            answer.thinking_at(item.place(), PARTS);
        }
        item.part = Some(part);
        answer.thinking_at(item.place(), delta);
    }

    fn arguments(&mut self, event: &Value, delta: &str, answer: &mut AnswerBuilder) {
        if let Some(at) = self.known(event, text(event, "item_id"), CALL) {
            answer.arguments(self.items[at].place(), delta);
        }
    }

    /// Reads complete arguments, which are used only if no pieces arrived.
    fn all_arguments(&mut self, event: &Value, arguments: &str, answer: &mut AnswerBuilder) {
        if let Some(at) = self.known(event, text(event, "item_id"), CALL)
            && answer.is_blank(self.items[at].place())
        {
            answer.arguments(self.items[at].place(), arguments);
        }
    }

    /// Reads the final form of an item.
    fn done(&mut self, event: &Value, item: &Value, answer: &mut AnswerBuilder) {
        match self
            .known(event, text(item, "id"), text(item, "type"))
            .filter(|at| !self.items[*at].done)
        {
            Some(at) => self.end_item(at, item, answer),
            None => drop(self.whole_item(event, item, answer)),
        }
    }

    /// Reads an item that had no earlier events.
    fn whole_item(
        &mut self,
        event: &Value,
        item: &Value,
        answer: &mut AnswerBuilder,
    ) -> Option<usize> {
        let (id, kind) = (text(item, "id"), text(item, "type"));
        if kind.is_empty() {
            return None;
        }
        self.has_come(event, item);
        let place = open(item, answer).unwrap_or_else(|| own_item(item, answer));
        let at = self.add(event, id, kind, place);
        self.end_item(at, item, answer);
        Some(at)
    }

    fn end_item(&mut self, at: usize, item: &Value, answer: &mut AnswerBuilder) {
        let known = &mut self.items[at];
        if std::mem::replace(&mut known.done, true) {
            return;
        }
        match known.kind.as_str() {
            "message" => end_message(&mut known.places, item, answer),
            "reasoning" => end_reasoning(known.place(), item, answer),
            CALL => end_call(known.place(), item, answer),
            // Items of other kinds are kept whole.
            _ => {}
        }
    }

    /// Compares the items in the terminal event with the answer. Adds items that no event
    /// contained, at their place in the order, and ends items that no event ended.
    fn output(&mut self, output: &[Value], answer: &mut AnswerBuilder) {
        let came = self.items.len();
        let mut order = Vec::new();
        for (item, known) in output.iter().zip(self.pairs(output)) {
            if answer.is_full() {
                return;
            }
            if let Some(at) = known {
                self.end_item(at, item, answer);
                self.take_over(at, item, answer);
            }
            order.extend(known.or_else(|| self.whole_item(&Value::Null, item, answer)));
        }
        if self.items.len() > came {
            let places: Vec<BlockIndex> = order
                .iter()
                .flat_map(|at| &self.items[*at].places)
                .copied()
                .collect();
            answer.put_in_order(&places);
        }
    }

    /// Replaces an item that is kept whole with its final form in the terminal event.
    fn take_over(&self, at: usize, item: &Value, answer: &mut AnswerBuilder) {
        let known = &self.items[at];
        let is_kept_whole = !matches!(known.kind.as_str(), "message" | "reasoning" | CALL);
        let Some(data) = answer.own_data(known.place()).filter(|_| is_kept_whole) else {
            return;
        };
        add_news(data, item);
        untie(&known.kind, data);
    }

    /// Returns the received item that matches each item of the terminal event: by ID or index, or
    /// else the next one of the same kind.
    fn pairs(&self, output: &[Value]) -> Vec<Option<usize>> {
        let mut free: Vec<usize> = (0..self.items.len()).collect();
        let mut pairs = vec![None; output.len()];
        let ways: [fn(&OutputItem, usize, &Value) -> bool; 2] = [is_named_alike, is_of_kind];
        for is_alike in ways {
            for (index, item) in output.iter().enumerate() {
                if pairs[index].is_none()
                    && let Some(found) = free
                        .iter()
                        .position(|at| is_alike(&self.items[*at], index, item))
                {
                    pairs[index] = Some(free.remove(found));
                }
            }
        }
        pairs
    }

    fn end(
        &mut self,
        response: &Value,
        kind: &str,
        answer: &mut AnswerBuilder,
    ) -> Result<(), Error> {
        usage(&response["usage"], answer);
        let output = items(response, "output");
        self.output(&output[..output.len().min(MOST_BLOCKS + 1)], answer);
        self.tell_of_missing(answer);
        let status = match text(response, "status") {
            "" => kind.strip_prefix("response.").unwrap_or(kind),
            status => status,
        };
        answer.stop(stop_reason(status, response)?);
        answer.close();
        Ok(())
    }
}

/// The type of a function call.
const CALL: &str = "function_call";

/// Opens a block for an item of a known kind; `None` for other kinds.
fn open(item: &Value, answer: &mut AnswerBuilder) -> Option<BlockIndex> {
    Some(match text(item, "type") {
        "message" => answer.open_text(),
        "reasoning" => answer.open_thinking(),
        CALL => answer.open_call(call_id(item), text(item, "name")),
        _ => return None,
    })
}

/// Returns `true` if a received item has the ID or the index of an item in the terminal event.
fn is_named_alike(came: &OutputItem, index: usize, item: &Value) -> bool {
    let same_id =
        !came.id.is_empty() && [text(item, "id"), call_id(item)].contains(&came.id.as_str());
    let same_index = came.index.is_some() && came.index == u64::try_from(index).ok();
    is_of_kind(came, index, item) && (same_id || same_index)
}

fn is_of_kind(came: &OutputItem, _: usize, item: &Value) -> bool {
    came.kind == text(item, "type")
}

/// Returns the ID to which a result must refer.
fn call_id(item: &Value) -> &str {
    match text(item, "call_id") {
        "" => text(item, "id"),
        id => id,
    }
}

/// The types of items that wait for the host.
const OF_HOST: [&str; 6] = [
    "custom_tool_call",
    "computer_call",
    "shell_call",
    "local_shell_call",
    "apply_patch_call",
    "mcp_approval_request",
];

/// The types of items whose ID ties them to a reasoning item.
const TIED: [&str; 2] = ["web_search_call", "custom_tool_call"];

/// Removes the ID that ties an item to a reasoning item.
fn untie(kind: &str, item: &mut Value) {
    if let Some(members) = item.as_object_mut().filter(|_| TIED.contains(&kind)) {
        members.shift_remove("id");
    }
}

/// Merges a later version of a value into an earlier one, keeping members that only the earlier one
/// has.
fn add_news(known: &mut Value, later: &Value) {
    match (known, later) {
        (Value::Object(known), Value::Object(later)) => {
            for (name, value) in later {
                add_news(known.entry(name.as_str()).or_insert(Value::Null), value);
            }
        }
        (Value::Array(known), Value::Array(later)) if known.len() == later.len() => {
            known
                .iter_mut()
                .zip(later)
                .for_each(|(known, later)| add_news(known, later));
        }
        (known, later) if !is_nothing(later) => known.clone_from(later),
        _ => {}
    }
}

/// Adds an item as a provider-specific block.
fn own_item(item: &Value, answer: &mut AnswerBuilder) -> BlockIndex {
    let (kind, mut data) = (text(item, "type"), item.clone());
    untie(kind, &mut data);
    if OF_HOST.contains(&kind) {
        answer.waits_for_host();
    }
    answer.own(data)
}

/// Returns a message with sources or a phase as it is sent back; `None` for other
/// messages.
fn own_message(item: &Value) -> Option<Value> {
    let parts = items(item, "content");
    let phase = text(item, "phase");
    if phase.is_empty()
        && parts
            .iter()
            .all(|part| items(part, "annotations").is_empty())
    {
        return None;
    }
    let content: Vec<Value> = parts.iter().map(own_part).collect();
    let mut message = json!({"type": "message", "role": "assistant", "content": content});
    if !phase.is_empty() {
        message["phase"] = phase.into();
    }
    Some(message)
}

/// Returns a part of a message without the members that are only for the host.
fn own_part(part: &Value) -> Value {
    let members = part.as_object().into_iter().flatten();
    let members = members.filter(|(key, value)| {
        *key != "logprobs" && value.as_array().is_none_or(|it| !it.is_empty())
    });
    Value::Object(
        members
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect::<Map<_, _>>(),
    )
}

/// Ends a message, given its final form. Received text is kept, and missing text is added from the
/// parts.
fn end_message(places: &mut Vec<BlockIndex>, item: &Value, answer: &mut AnswerBuilder) {
    let (own, parts) = (own_message(item), items(item, "content"));
    for part in parts
        .iter()
        .filter(|part| !items(part, "logprobs").is_empty())
    {
        answer.beside_in_pieces("logprobs", &part["logprobs"]);
    }
    if parts.iter().any(|part| !text(part, "refusal").is_empty()) {
        answer.refuse();
    }
    if places.iter().all(|place| answer.is_blank(*place)) {
        for part in parts {
            if !places.last().is_some_and(|place| answer.is_blank(*place)) {
                places.push(answer.open_text());
            }
            let place = places[places.len() - 1];
            answer.text_at(place, text(part, "text"));
            answer.text_at(place, text(part, "refusal"));
        }
    }
    match own {
        Some(message) => answer.texts_as_own(places, message),
        None => places.iter().for_each(|place| answer.seal(*place)),
    }
}

/// Joins the text of the parts in a list.
fn joined(item: &Value, key: &str) -> String {
    items(item, key)
        .iter()
        .map(|part| text(part, "text"))
        .collect::<Vec<_>>()
        .join(PARTS)
}

fn end_reasoning(place: BlockIndex, item: &Value, answer: &mut AnswerBuilder) {
    let (summary, encrypted) = (joined(item, "summary"), text(item, "encrypted_content"));
    if answer.is_blank(place) {
        let thinking = if summary.is_empty() {
            &joined(item, "content")
        } else {
            &summary
        };
        answer.thinking_at(place, thinking);
    }
    if summary.is_empty() && !encrypted.is_empty() {
        return answer.redact(place, encrypted);
    }
    answer.signature_at(place, encrypted);
    answer.seal(place);
}

fn end_call(place: BlockIndex, item: &Value, answer: &mut AnswerBuilder) {
    answer.name_call(place, call_id(item), text(item, "name"));
    if answer.is_blank(place) {
        answer.arguments_value(place, &item["arguments"]);
    }
    match text(item, "status") {
        "incomplete" => answer.cut_call(place),
        _ => answer.end_call(place),
    }
}

fn stop_reason(status: &str, response: &Value) -> Result<StopReason, Error> {
    Ok(match status {
        "completed" => StopReason::EndTurn,
        "incomplete" => match text(&response["incomplete_details"], "reason") {
            "max_output_tokens" => StopReason::MaxTokens,
            "content_filter" => StopReason::Refusal,
            "" => StopReason::Other("incomplete".to_owned()),
            other => StopReason::Other(other.to_owned()),
        },
        "failed" => return Err(failure::in_stream(response)),
        other => {
            let message = format!("the provider ended the answer with the status `{other}`");
            return Err(Error::new(Category::Provider, message));
        }
    })
}

fn usage(value: &Value, answer: &mut AnswerBuilder) {
    let usage = answer.usage();
    set(&mut usage.input, count(value, "/input_tokens"));
    set(&mut usage.output, count(value, "/output_tokens"));
    set(
        &mut usage.cache_read,
        count(value, "/input_tokens_details/cached_tokens"),
    );
    set(
        &mut usage.cache_write,
        count(value, "/input_tokens_details/cache_write_tokens"),
    );
    set(
        &mut usage.reasoning,
        count(value, "/output_tokens_details/reasoning_tokens"),
    );
}
