//! `protocol/continued-response`: a request that continues a conversation which the server does not
//! store.

use super::{Found, Subject, body_rule};
use crate::provider::Server;

body_rule! {
    Error "protocol/continued-response", "the conversation cannot be continued like this",
    "The Responses API holds conversations itself, if it is asked to: `previous_response_id` names the response before, `conversation` \
     a conversation. They exclude each other. llama.cpp keeps no responses and refuses `previous_response_id`.\n\n\
     * wrong: `previous_response_id` beside `conversation`\n\
     * right: one of them, or the whole history in `input`",
    of OpenAiResponses;
    seen "2026-11" {
        "https://github.com/openai/openai-openapi":
            "`conversation` cannot be used with `previous_response_id`",
        "pkg:github/ggml-org/llama.cpp#tools/server/server-chat.cpp":
            "llama.cpp: *does not support 'previous_response_id'*",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let Some(previous) = subject.member("previous_response_id") else {
        return;
    };
    if subject.server == Server::LlamaCpp {
        found
            .at(previous, "llama.cpp keeps no responses")
            .help("send the whole history in `input`");
    } else if subject.server == Server::OpenAi && subject.member("conversation").is_some() {
        found
            .at(previous, "`conversation` excludes `previous_response_id`")
            .help("keep one of the two");
    }
}
