//! `protocol/call-id`: call IDs that the server may reject.

use std::collections::HashSet;

use super::{Found, Subject, body_rule};
use crate::diag::Severity;
use crate::provider::{Server, WireFormat, is_claude_model};
use crate::repo::Property;
use crate::secret::is_redacted;

body_rule! {
    Error "protocol/call-id", "the id of a tool call has a form that the server may reject",
    "Call ids are not portable: each server has its own form, and may reject an id that another server made. If every server of a format \
     rejects an id, the format's schema reports it: Anthropic allows letters, digits, `_` and `-`; OpenAI allows at most 64 characters.\n\n\
     | server | form |\n\
     | --- | --- |\n\
     | Mistral, models before June 2025, and Devstral, Large and Medium (`short_call_ids` in `model-families.toml`) | exactly nine \
     letters or digits; anything else is rejected |\n\
     | Mistral, other models | mistral-common accepts any id for tokenizer 13 and later, but the API rejected some up to September 2026 (a \
     warning) |\n\
     | unknown servers, with Mistral's models from before June 2025 | the chat template requires exactly nine letters or digits (reported \
     as a warning) |\n\
     | unknown gateways, with Claude | letters, digits, `_` and `-`, as for Anthropic (reported as a warning) |\n\
     | OpenAI, Chat Completions | at most 40 characters according to reports from 2025, at most 64 according to reports from 2026 (lengths \
     in between are a warning) |\n\n\
     If you generate an id, use the same one for the call and its result, and in every later request: the template function `tool_id` \
     generates such ids.\n\n\
     * wrong, for Mistral: `call_9pw1qnYScqvGrCH58HWCvFH6`\n\
     * right, for all servers: `dnEN4JsJy`",
    seen "2026-11" {
        "pkg:pypi/mistral-common@1.13.1#protocol/instruct/validator.py":
            "Mistral requires nine letters or digits before tokenizer 13; later it accepts any id",
        "https://github.com/ikawrakow/ik_llama.cpp/blob/8337e4cd3861406fc04e0854b1409cd1b027fbc9/models/templates/Mistral-Small-3.2-24B-Instruct-2506.jinja":
            "a chat template: *Tool call IDs should be alphanumeric strings with length 9!*",
        "nearai/ironclaw#1241": "Mistral rejected it in March 2026",
        "mistralai/mistral-vibe#1075": "Mistral rejected it in September 2026",
        "karthink/gptel#1203": "Mistral: the same error, from api.mistral.ai",
        "anomalyco/opencode#1680": "Mistral Large: the same error",
        "router-for-me/CLIProxyAPI#578": "Claude: *tool_use.id: String should match pattern*",
        "vercel/ai#5171": "OpenAI accepts at most 40 characters",
        "agno-agi/agno#5382": "OpenAI accepts at most 40 characters",
        "jin-bo/agentao#321": "OpenAI accepts at most 64 characters",
    }
}

/// A mistake in an ID. `is_sure` is `true` if the server certainly rejects the ID.
struct Fault {
    message: String,
    is_sure: bool,
    help: &'static str,
}

const NINE: &str =
    "give the call and its result the same id of nine letters or digits in every request";
const SHORTER: &str =
    "give the call and its result the same shorter id of letters and digits in every request";
const PLAIN: &str =
    "give the call and its result the same id of letters and digits in every request";

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let fault: fn(&Subject<'_>, &str) -> Option<Fault> = match subject.wire {
        WireFormat::MistralChat => of_mistral,
        WireFormat::OpenAiChat if subject.server == Server::OpenAi => of_openai,
        WireFormat::OpenAiChat if subject.facts.is(Property::ShortCallIds) => of_template,
        WireFormat::OpenAiChat if is_claude_at_gateway(subject) => of_claude,
        WireFormat::AnthropicMessages
        | WireFormat::OpenAiChat
        | WireFormat::OpenAiResponses
        | WireFormat::GoogleGenerateContent
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => return,
    };
    let mut seen = HashSet::new();
    for (_, part) in subject.history().parts() {
        let named = part
            .call()
            .map(|call| (call.id, call.identified, call.id_key));
        let named = named.or_else(|| {
            part.outcome()
                .map(|result| (result.id, result.identified, result.id_key))
        });
        let Some((Some(id), object, key)) = named else {
            continue;
        };
        let Some(fault) = fault(subject, id).filter(|_| seen.insert(id)) else {
            continue;
        };
        let note = found.at_member(object, key, fault.message);
        let note = if fault.is_sure { note } else { note.warning() };
        note.help(fault.help);
    }
}

fn of_openai(_: &Subject<'_>, id: &str) -> Option<Fault> {
    let length = id.chars().count();
    let is_between = (41..=64).contains(&length);
    let message = format!(
        "the id `{}` has {length} characters; the limit was 40, and is 64 according to newer reports",
        crate::text::cut(id, 24)
    );
    is_between.then_some(Fault {
        message,
        is_sure: false,
        help: SHORTER,
    })
}

fn is_claude_at_gateway(subject: &Subject<'_>) -> bool {
    subject.server == Server::Unknown && subject.model.is_some_and(is_claude_model)
}

/// Returns the mistake in an ID that a gateway passes on to Anthropic; `None` for a valid ID.
fn of_claude(_: &Subject<'_>, id: &str) -> Option<Fault> {
    let is_accepted = id
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    let message = format!(
        "Claude rejects the id `{}`, unless the gateway changes it: ids may contain only letters, digits, `_` and `-`",
        crate::text::cut(id, 40)
    );
    (!is_accepted).then_some(Fault {
        message,
        is_sure: false,
        help: PLAIN,
    })
}

/// Returns the mistake in an ID, for a model whose chat template accepts only short IDs.
fn of_template(_: &Subject<'_>, id: &str) -> Option<Fault> {
    let message = format!(
        "the chat template of this model accepts only ids of nine letters or digits, not `{}`",
        crate::text::cut(id, 40)
    );
    (!is_short(id) && !is_redacted(id)).then_some(Fault {
        message,
        is_sure: false,
        help: NINE,
    })
}

/// Returns `true` if an ID has exactly nine characters, all letters or digits.
fn is_short(id: &str) -> bool {
    id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

fn of_mistral(subject: &Subject<'_>, id: &str) -> Option<Fault> {
    if id == "null" {
        return Some(Fault {
            message: "a call ID cannot be the string `null`".to_owned(),
            is_sure: true,
            help: NINE,
        });
    }
    let is_nine = is_short(id);
    let is_sure = matches!(
        subject.facts.property(Property::ShortCallIds),
        Some((true, Severity::Error))
    );
    let models = if is_sure {
        "this model accepts"
    } else {
        "some of Mistral's models accept"
    };
    let message = format!(
        "{models} only ids of nine letters or digits, not `{}`",
        crate::text::cut(id, 40)
    );
    // The schema reports an empty ID.
    (!is_nine && !id.is_empty() && !is_redacted(id)).then_some(Fault {
        message,
        is_sure,
        help: NINE,
    })
}
