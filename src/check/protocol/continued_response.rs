//! `protocol/continued-response`: a request to continue a conversation that the server does not
//! store.

use super::{Found, Subject, body_rule};
use crate::provider::Server;

body_rule! {
    Error "protocol/continued-response", "the conversation cannot be continued in this way",
    "The Responses API can store conversations itself: `previous_response_id` names the previous response, `conversation` names a \
     conversation (its ID begins with `conv` if OpenAI stores it). They cannot be combined. llama.cpp stores no responses and rejects \
     `previous_response_id`.\n\n\
     * wrong: `previous_response_id` next to `conversation`\n\
     * right: one of them, or the whole history in `input`",
    of OpenAiResponses;
    seen "2026-11" {
        "https://github.com/openai/openai-openapi":
            "`conversation` cannot be used with `previous_response_id`",
        "https://platform.openai.com/docs/api-reference/conversations":
            "OpenAI: *Expected an ID that begins with 'conv'*",
        "https://github.com/llamastack/llama-stack/blob/d1b6632946ca1bb953d47ea3317b8f3c30771d88/src/ogx/providers/inline/responses/builtin/responses/openai_responses.py":
            "Llama Stack: *previous_response_id and conversation are both provided*",
        "pkg:github/ggml-org/llama.cpp#tools/server/server-chat.cpp":
            "llama.cpp: *does not support 'previous_response_id'*",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if subject.server == Server::OpenAi {
        other_id(subject, found);
    }
    let Some(previous) = subject.member("previous_response_id") else {
        return;
    };
    if subject.server == Server::LlamaCpp {
        found
            .at(previous, "llama.cpp stores no responses")
            .help("send the whole history in `input`");
    } else if matches!(subject.server, Server::OpenAi | Server::Unknown)
        && subject.member("conversation").is_some()
    {
        found
            .at(
                previous,
                "`conversation` and `previous_response_id` cannot be combined",
            )
            .help("keep one of the two");
    }
}

/// Reports a conversation ID that was not created by OpenAI.
fn other_id<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let conversation = subject.member("conversation");
    let id = conversation.map(|it| it.get("id").unwrap_or(it));
    if let Some(id) = id.filter(|id| id.as_str().is_some_and(|id| !id.starts_with("conv"))) {
        found
            .at(id, "the ID of a conversation begins with `conv`")
            .help("write the ID of a stored conversation");
    }
}
