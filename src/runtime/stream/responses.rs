//! OpenAI Responses.
//!
//! Events as in `ResponseStreamEvent` of OpenAI's API document and the Python SDK openai 3.54
//! (`types/responses/`); a whole answer is the `response` object that the terminal events carry. Those are
//! `response.completed`, `response.incomplete`, `response.failed` and `error`. Reasons (`types/responses/response.py`,
//! `status` and `incomplete_details`):
//!
//! | provider | here |
//! | --- | --- |
//! | `completed` | end of turn, or tool use if there are calls; refusal if an item is one |
//! | `incomplete`, `max_output_tokens` | limit of tokens |
//! | `incomplete`, `content_filter` | refusal |
//! | `incomplete`, others | in their own word |
//! | `failed`, `cancelled` | an error |
//!
//! What an item finally is, `response.output_item.done` says: the `encrypted_content` of the event before may be
//! incomplete (`response_reasoning_item.py`). A reasoning item is thinking whose text is its summary, or, without a
//! summary, redacted thinking; one without encrypted content is thinking without a signature. Items are told apart by
//! `output_index`, or where servers leave that out (llama.cpp) by their id. Usage: cached tokens are part of
//! `input_tokens`, reasoning of `output_tokens`.
//!
//! Items of other types are kept as the provider's own, and so are messages with sources or a `phase`. Ids that tie an item to
//! a reasoning item are left out, since reasoning goes back without its own (vercel/ai#7099, continuedev/continue#11994).

use serde_json::{Map, Value, json};

use super::AnswerParser;
use super::builder::{AnswerBuilder, BlockIndex};
use super::json::{count, items, set, text};
use crate::runtime::{Category, Error, StopReason, failure};

/// What stands between two parts of a summary.
const PARTS: &str = "\n\n";

#[derive(Default)]
pub(super) struct Responses {
    items: Vec<OutputItem>,
}

/// An item on its way, as the provider names it.
struct OutputItem {
    index: Option<u64>,
    id: String,
    place: BlockIndex,
    /// The part of a summary that was last said.
    part: Option<u64>,
    done: bool,
}

impl AnswerParser for Responses {
    fn read(&mut self, kind: &str, value: &Value, answer: &mut AnswerBuilder) -> Result<(), Error> {
        let delta = text(value, "delta");
        match kind {
            "response.output_item.added" => drop(self.open(value, &value["item"], answer)),
            "response.output_item.done" => self.done(value, &value["item"], answer),
            "response.output_text.delta" => self.text(value, delta, answer),
            "response.refusal.delta" => {
                answer.refuse();
                self.text(value, delta, answer);
            }
            "response.reasoning_summary_text.delta" => self.thinking(value, delta, "summary_index", answer),
            "response.reasoning_text.delta" => self.thinking(value, delta, "content_index", answer),
            "response.function_call_arguments.delta" => self.arguments(value, delta, answer),
            "response.function_call_arguments.done" => self.all_arguments(value, text(value, "arguments"), answer),
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                return self.end(&value["response"], kind, answer);
            }
            _ if text(value, "object") == "response" => return self.end(value, kind, answer),
            _ => {}
        }
        Ok(())
    }
}

impl Responses {
    /// The item that an event speaks of.
    fn known(&self, event: &Value, id: &str) -> Option<usize> {
        let index = count(event, "/output_index");
        let same = |item: &OutputItem| match (index, item.index) {
            (Some(index), Some(known)) => index == known,
            _ => !id.is_empty() && item.id == id,
        };
        let unnamed = || self.items.len().checked_sub(1).filter(|_| index.is_none() && id.is_empty());
        self.items.iter().rposition(same).or_else(unnamed)
    }

    /// A new item, if it is of a kind that is read.
    fn open(&mut self, event: &Value, item: &Value, answer: &mut AnswerBuilder) -> Option<usize> {
        let place = match text(item, "type") {
            "message" => answer.open_text(),
            "reasoning" => answer.open_thinking(),
            "function_call" => answer.open_call(call_id(item), text(item, "name")),
            _ => return None,
        };
        let (index, id) = (count(event, "/output_index"), text(item, "id").to_owned());
        self.items.push(OutputItem { index, id, place, part: None, done: false });
        Some(self.items.len() - 1)
    }

    fn text(&mut self, event: &Value, delta: &str, answer: &mut AnswerBuilder) {
        let Some(at) = self.known(event, text(event, "item_id")) else { return answer.text(delta) };
        let (item, part) = (&mut self.items[at], count(event, "/content_index"));
        if item.part.is_some() && part.is_some() && item.part != part {
            answer.seal(item.place);
            item.place = answer.open_text();
        }
        item.part = part.or(item.part);
        answer.text_at(item.place, delta);
    }

    fn thinking(&mut self, event: &Value, delta: &str, part: &str, answer: &mut AnswerBuilder) {
        let Some(at) = self.known(event, text(event, "item_id")) else { return answer.thinking(delta) };
        let item = &mut self.items[at];
        let part = event.get(part).and_then(Value::as_u64).unwrap_or_default();
        if item.part.is_some_and(|last| last != part) {
            answer.thinking_at(item.place, PARTS);
        }
        item.part = Some(part);
        answer.thinking_at(item.place, delta);
    }

    fn arguments(&mut self, event: &Value, delta: &str, answer: &mut AnswerBuilder) {
        if let Some(at) = self.known(event, text(event, "item_id")) {
            answer.arguments(self.items[at].place, delta);
        }
    }

    /// All the arguments at once: news only if no pieces came.
    fn all_arguments(&mut self, event: &Value, arguments: &str, answer: &mut AnswerBuilder) {
        if let Some(at) = self.known(event, text(event, "item_id"))
            && answer.is_blank(self.items[at].place)
        {
            answer.arguments(self.items[at].place, arguments);
        }
    }

    /// An item as it finally is.
    fn done(&mut self, event: &Value, item: &Value, answer: &mut AnswerBuilder) {
        if !matches!(text(item, "type"), "" | "message" | "reasoning" | "function_call") {
            return own_item(item, answer);
        }
        let known = self.known(event, text(item, "id")).filter(|at| !self.items[*at].done);
        let Some(at) = known.or_else(|| self.open(event, item, answer)) else { return };
        self.items[at].done = true;
        let place = self.items[at].place;
        match text(item, "type") {
            "message" => end_message(place, item, answer),
            "reasoning" => end_reasoning(place, item, answer),
            "function_call" => end_call(place, item, answer),
            _ => {}
        }
    }

    fn end(&mut self, response: &Value, kind: &str, answer: &mut AnswerBuilder) -> Result<(), Error> {
        usage(&response["usage"], answer);
        if self.items.is_empty() && answer.block_count() == 0 {
            for (index, item) in items(response, "output").iter().enumerate() {
                if answer.is_full() {
                    break;
                }
                self.done(&serde_json::json!({"output_index": index}), item, answer);
            }
        }
        let status = match text(response, "status") {
            "" => kind.strip_prefix("response.").unwrap_or(kind),
            status => status,
        };
        answer.stop(stop_reason(status, response)?);
        answer.close();
        Ok(())
    }
}

/// The id that a result must name.
fn call_id(item: &Value) -> &str {
    match text(item, "call_id") {
        "" => text(item, "id"),
        id => id,
    }
}

/// Items that wait for the host.
const OF_HOST: [&str; 6] =
    ["custom_tool_call", "computer_call", "shell_call", "local_shell_call", "apply_patch_call", "mcp_approval_request"];

/// Items whose id ties them to a reasoning item.
const TIED: [&str; 2] = ["web_search_call", "custom_tool_call"];

/// An item in the provider's own form.
fn own_item(item: &Value, answer: &mut AnswerBuilder) {
    let (kind, mut data) = (text(item, "type"), item.clone());
    if let Some(members) = data.as_object_mut().filter(|_| TIED.contains(&kind)) {
        members.shift_remove("id");
    }
    if OF_HOST.contains(&kind) {
        answer.waits_for_host();
    }
    answer.own(data);
}

/// A message with sources or a phase, as it goes back.
fn own_message(item: &Value) -> Option<Value> {
    let parts = items(item, "content");
    let phase = text(item, "phase");
    if phase.is_empty() && parts.iter().all(|part| items(part, "annotations").is_empty()) {
        return None;
    }
    let content: Vec<Value> = parts.iter().map(own_part).collect();
    let mut message = json!({"type": "message", "role": "assistant", "content": content});
    if !phase.is_empty() {
        message["phase"] = phase.into();
    }
    Some(message)
}

/// A part of a message without what is for the host alone.
fn own_part(part: &Value) -> Value {
    let goes_back =
        |(key, value): &(&String, &Value)| *key != "logprobs" && value.as_array().is_none_or(|it| !it.is_empty());
    let members = part.as_object().into_iter().flatten().filter(goes_back);
    Value::Object(members.map(|(key, value)| (key.clone(), value.clone())).collect::<Map<_, _>>())
}

fn end_message(place: BlockIndex, item: &Value, answer: &mut AnswerBuilder) {
    let blank = answer.is_blank(place);
    let mut place = place;
    let several = items(item, "content").len() > 1;
    for part in items(item, "content") {
        let refusal = text(part, "refusal");
        if !refusal.is_empty() {
            answer.refuse();
        }
        if blank {
            if several && own_message(item).is_none() && !answer.is_blank(place) {
                answer.seal(place);
                place = answer.open_text();
            }
            answer.text_at(place, text(part, "text"));
            answer.text_at(place, refusal);
        }
    }
    match own_message(item) {
        Some(message) => answer.text_as_own(place, |_| message),
        None => answer.seal(place),
    }
}

fn end_reasoning(place: BlockIndex, item: &Value, answer: &mut AnswerBuilder) {
    let joined = |key| items(item, key).iter().map(|part| text(part, "text")).collect::<Vec<_>>().join(PARTS);
    let (summary, encrypted) = (joined("summary"), text(item, "encrypted_content"));
    if answer.is_blank(place) {
        answer.thinking_at(place, if summary.is_empty() { joined("content") } else { summary.clone() }.as_str());
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
    set(&mut usage.cache_read, count(value, "/input_tokens_details/cached_tokens"));
    set(&mut usage.cache_write, count(value, "/input_tokens_details/cache_write_tokens"));
    set(&mut usage.reasoning, count(value, "/output_tokens_details/reasoning_tokens"));
}
