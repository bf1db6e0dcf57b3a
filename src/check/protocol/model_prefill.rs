//! `protocol/model-prefill`: a last message by the assistant, for a model that does not continue
//! answers.

use serde_json::Value;

use super::value::elements;
use super::{Found, Subject, body_rule};
use crate::check::history::member_of;
use crate::repo::Property;
use crate::text::cut;

body_rule! {
    Error "protocol/model-prefill", "the conversation ends with an assistant turn, and the model does not support prefill",
    "A history that ends with an assistant turn asks the model to continue that turn. Claude 4.6 and later reject it: *This model \
     does not support assistant message prefill. The conversation must end with a user message.* So do Gemini after 3.1, and \
     DeepSeek's reasoning models, unless the message has `\"prefix\": true`. A turn that the server paused for its own tools is sent \
     back unchanged, and accepted.\n\n\
     * wrong: user, then assistant with `{`\n\
     * right: user; request the answer format with `output_config.format`, or in the prompt\n\n\
     `model-families.toml` lists these models (`prefill = false`), each with its source.",
    seen "2026-11" {
        "pkg:pypi/anthropic@2.12#types/message_create_params.py":
            "Claude does not support prefill from Opus 4.6 on",
        "https://platform.claude.com/docs/en/models/haiku-5-5/migration-guide":
            "Claude Haiku 5.5 does not support prefill",
        "pipecat-ai/pipecat#5821": "Gemini: *Requests ending with a model turn are not supported*",
        "crewAIInc/crewAI#6973": "Gemini: the same error",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let Some(severity) = subject.facts.refuses(Property::Prefill) else {
        return;
    };
    let messages = member_of(subject.wire)
        .and_then(|name| subject.member(name))
        .and_then(Value::as_array);
    let Some(last) = messages.and_then(|messages| messages.last()) else {
        return;
    };
    if subject.headers.counts_tokens() {
        return;
    }
    let is_assistant = last
        .get("role")
        .is_some_and(|role| role == "assistant" || role == "model");
    // A paused turn continues after its server tools, and compaction can follow any message.
    let goes_on = is_paused(last) || last.get("prefix") == Some(&Value::Bool(true));
    if !is_assistant || goes_on || subject.member("compaction").is_some() {
        return;
    }
    let model = cut(subject.model.unwrap_or("this model"), 60);
    let note = found.at(
        last,
        format!(
            "the conversation ends with an assistant turn, and {model} does not support prefill"
        ),
    );
    note.of_model()
        .level(severity)
        .help("end with a user turn; request the answer format there");
}

/// Returns `true` if a message contains calls or results of tools that the server runs.
pub(super) fn is_paused(message: &Value) -> bool {
    elements(message.get("content"))
        .iter()
        .filter_map(|block| block.get("type")?.as_str())
        .any(|kind| {
            kind == "server_tool_use" || kind == "mcp_tool_use" || kind.ends_with("_tool_result")
        })
}
