//! `protocol/thinking-signature`: reasoning without a valid signature.

use serde_json::Value;

use super::value::{either, elements, is_type};
use super::{Found, Subject, body_rule};
use crate::diag::Severity;
use crate::provider::{Server, WireFormat};
use crate::repo::Property;
use crate::secret::is_redacted;
use crate::text::cut;

body_rule! {
    Error "protocol/thinking-signature", "thinking or a call lacks its signature, or has an invalid one",
    "Thinking is sent back unchanged, with the signature that its provider made. Anthropic rejects a thinking block with another \
     provider's signature. Gemini 3 requires a signature for each step: in the current turn, which begins after the last content with user \
     text, the first `functionCall` in each model content carries its `thoughtSignature`; parallel calls after it carry none. Each image \
     in an answer from a Gemini 3 model carries its own signature, but images in the model's thoughts do not. Gemini's signatures are \
     base64, and Gemini rejects OpenAI's. Through OpenRouter, Gemini's signatures are in the `reasoning_details` of the message with the \
     calls.\n\n\
     * wrong: `{\"type\": \"thinking\", \"thinking\": \"…\", \"signature\": \"skip_thought_signature_validator\"}`\n\
     * right: the block as the API gave it, or no block\n\
     * wrong: `{\"functionCall\": {…}}` as the first call of a step, with Gemini 3\n\
     * right: `{\"functionCall\": {…}, \"thoughtSignature\": \"…\"}`\n\n\
     For calls that another model made, Gemini accepts `skip_thought_signature_validator` as the signature; thinking from other \
     models cannot be sent.",
    seen "2026-11" {
        "https://ai.google.dev/gemini-api/docs/thought-signatures":
            "Gemini documents which parts carry a signature",
        "vercel/ai#15550":
            "Gemini: *Function call is missing a thought_signature in functionCall parts*",
        "cline/cline#7620": "Claude: *Invalid `signature` in `thinking` block*",
        "router-for-me/CLIProxyAPI#570": "Claude: the same error",
        "massgen/MassGen#624":
            "OpenRouter: *Gemini models require OpenRouter reasoning details to be preserved*",
        "microsoft/agent-framework#2947": "OpenRouter: the same error",
        "janhq/jan#7009": "OpenRouter: the same error",
        "inngest/inngest-js#1180": "Gemini requires a signature for each step of the turn",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    match subject.wire {
        // Other servers with this format use their own signatures, or none.
        WireFormat::AnthropicMessages if subject.server.is_claude() => {
            anthropic(subject, found);
        }
        WireFormat::GoogleGenerateContent => google(subject, found),
        WireFormat::OpenAiChat if subject.server == Server::OpenRouter => {
            openrouter(subject, found);
        }
        WireFormat::AnthropicMessages
        | WireFormat::OpenAiChat
        | WireFormat::OpenAiResponses
        | WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => {}
    }
}

fn anthropic<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let blocks = elements(subject.member("messages"))
        .iter()
        .flat_map(|message| elements(message.get("content")));
    for block in blocks.filter(|block| is_type(block, "thinking")) {
        // The schema reports a missing or empty signature.
        if block
            .get("signature")
            .and_then(Value::as_str)
            .is_some_and(is_foreign)
        {
            let note = found.at_member(
                block,
                "signature",
                "the signature of this thinking was not made by Anthropic",
            );
            note.help(
                "send thinking blocks back as the API gave them, and leave out those of other providers",
            );
        }
    }
}

/// Returns `true` if a signature cannot come from Anthropic, whose signatures are standard Base64
/// with padding. This detects Gemini's placeholder, item IDs and OpenAI's encrypted content.
fn is_foreign(signature: &str) -> bool {
    let digits = signature.trim_end_matches('=');
    let is_plain = digits
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte));
    let is_cut = !signature.len().is_multiple_of(4);
    (!is_plain || is_cut || is_of_openai(signature)) && !is_redacted(signature)
}

/// Returns `true` if a string is OpenAI's encrypted reasoning. This is a Fernet token, which begins
/// with a version and the first bytes of a timestamp.
/// Source: <https://github.com/fernet/spec/blob/master/Spec.md>.
fn is_of_openai(signature: &str) -> bool {
    signature.starts_with("gAAAAA")
}

/// The placeholder that Gemini accepts as the signature of a call made by another model.
const SKIP: &str = "skip_thought_signature_validator";

fn google<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let contents = elements(subject.member("contents"));
    for part in contents
        .iter()
        .flat_map(|content| elements(content.get("parts")))
    {
        let Some(name) = ["thoughtSignature", "thought_signature"]
            .into_iter()
            .find(|name| part.get(name).is_some())
        else {
            continue;
        };
        let Some(signature) = part.get(name).and_then(Value::as_str) else {
            continue;
        };
        if !is_base64(signature) {
            found
                .at_member(part, name, "this signature is not base64")
                .help("send it back unchanged");
        } else if is_of_openai(signature) {
            found
                .at_member(
                    part,
                    name,
                    "this signature was made by OpenAI, not by Gemini",
                )
                .help(format!("for a call from another model, write \"{SKIP}\""));
        }
    }
    if let Some((true, severity)) = subject.facts.property(Property::SignedImages) {
        unsigned_images(contents, severity, found);
    }
    if let Some((true, severity)) = subject.facts.property(Property::SignedCalls) {
        unsigned_steps(subject, contents, severity, found);
    }
}

/// Reports calls in the current turn whose message lacks the reasoning that the model sent with
/// them.
fn openrouter<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let Some((true, severity)) = subject.facts.property(Property::SignedCalls) else {
        return;
    };
    let messages = elements(subject.member("messages"));
    let start = messages
        .iter()
        .rposition(|message| message.get("role").is_some_and(|role| role == "user"))
        .unwrap_or(0);
    for message in &messages[start..] {
        let Some(calls) = message
            .get("tool_calls")
            .filter(|calls| !elements(Some(*calls)).is_empty())
        else {
            continue;
        };
        if !elements(message.get("reasoning_details")).is_empty() {
            continue;
        }
        let model = cut(subject.model.unwrap_or("this model"), 60);
        found
            .at(
                calls,
                format!(
                    "this message has no `reasoning_details`, and {model} rejects calls without them in the current turn"
                ),
            )
            .level(severity)
            .help("send back the `reasoning_details` that came with the calls");
    }
}

/// Reports model content in the current turn if its first call has no signature.
fn unsigned_steps<'b>(
    subject: &Subject<'b>,
    contents: &'b [Value],
    severity: Severity,
    found: &mut Found<'b>,
) {
    let start = contents
        .iter()
        .rposition(|content| {
            !is_model(content)
                && elements(content.get("parts"))
                    .iter()
                    .any(|part| response(part).is_none())
        })
        .unwrap_or(0);
    for content in contents[start..].iter().filter(|content| is_model(content)) {
        let Some(first) = elements(content.get("parts"))
            .iter()
            .find(|part| call(part).is_some())
        else {
            continue;
        };
        if either(first, "thoughtSignature", "thought_signature")
            .is_some_and(|signature| signature != "")
        {
            continue;
        }
        let model = cut(subject.model.unwrap_or("this model"), 60);
        let note = found.at(
            first,
            format!("this call has no `thoughtSignature`, and {model} rejects calls without it in the current turn"),
        );
        note.level(severity)
            .help(format!("send back the signature that came with it; for a call from another model, write \"{SKIP}\""));
    }
}

/// Reports images from the model that lack a signature.
fn unsigned_images<'b>(contents: &'b [Value], severity: Severity, found: &mut Found<'b>) {
    let parts = contents
        .iter()
        .filter(|content| is_model(content))
        .flat_map(|content| elements(content.get("parts")));
    for part in parts.filter(|part| either(part, "inlineData", "inline_data").is_some()) {
        let is_thought = part.get("thought") == Some(&Value::Bool(true));
        if !is_thought && either(part, "thoughtSignature", "thought_signature").is_none() {
            found
                .at(part, "this image from the model has no `thoughtSignature`")
                .level(severity)
                .help("send back the signature that came with the image");
        }
    }
}

fn is_model(content: &Value) -> bool {
    content.get("role").is_some_and(|role| role == "model")
}

fn call(part: &Value) -> Option<&Value> {
    either(part, "functionCall", "function_call")
}

fn response(part: &Value) -> Option<&Value> {
    either(part, "functionResponse", "function_response")
}

/// Returns `true` if a string is Base64 in either alphabet, as proto3 JSON accepts it for bytes.
/// Trailing `=` may be missing.
fn is_base64(text: &str) -> bool {
    let digits = text.trim_end_matches('=');
    digits.len() % 4 != 1
        && digits
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"+/-_".contains(&byte))
}
