//! `protocol/limit`: members that exceed a limit of the API.

use serde_json::Value;

use super::{Found, Subject, body_rule};
use crate::check::About;
use crate::check::history::elements;
use crate::provider::{Server, Site, VLLM, WireFormat};

body_rule! {
    Error "protocol/limit", "a list or a string is longer than the API accepts",
    "APIs limit the number of tools, the length of identifiers and so on. If two sources disagree about a limit, values between \
     the two limits are a warning. vLLM also rejects the characters `@`, `/`, `\\` and U+0000 in `cache_salt`.\n\n\
     * wrong: 129 tools for OpenAI\n\
     * right: only the tools that this agent needs",
    seen "2026-11" {
        "https://github.com/openai/openai-openapi":
            "OpenAI's `StopConfiguration` and `ModelResponseProperties` set maximum lengths",
        "maximhq/bifrost#1000": "OpenAI accepts at most 64 characters in `user`",
        "ujisati/claude-code-provider-proxy#11":
            "OpenRouter accepts at most 128 characters in `user`",
        "pkg:pypi/openai@3.54": "OpenAI accepts at most 128 characters in `safety_identifier`",
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/sampling_params.py":
            "vLLM limits `logprob_token_ids` (`MAX_LOGPROB_TOKEN_IDS`) and `bad_words`",
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/entrypoints/generate/base/protocol.py":
            "vLLM: *'cache_salt' must be at most 128 characters and must not contain '@', '/', …*",
        "openai/openai-dotnet#317":
            "OpenAI: *Invalid 'messages[2].tool_calls': array too long*, above 128",
        "github/copilot-cli#669": "GitHub Copilot: the same error",
        "https://docs.x.ai/docs/guides/tools/search-tools":
            "xAI: *A maximum of 5 domains can be allowed*",
        "HunorLaczko/ha-groq-cloud-api#25": "Groq: *'tools' : maximum number of items is 128*",
        "anomalyco/opencode#20500": "xAI: *the maximum is 200*",
        "farion1231/cc-switch#6795": "xAI: *the maximum is 350*, later",
        "google-gemini/gemini-cli#19083":
            "Gemini: *At most 512 function declarations can be specified*",
        "google-gemini/gemini-cli#25440": "Gemini: the same error",
        "zai-org/ChatGLM3#798": "Z.ai accepts one stop sequence",
        "BerriAI/litellm#3286": "Claude rejects stop sequences that contain only whitespace",
        "EleutherAI/lm-evaluation-harness#3822": "Claude: the same error",
    }
}

/// A limit on the length of a body's member.
struct Bound {
    wires: &'static [WireFormat],
    servers: &'static [Server],
    member: &'static str,
    most: usize,
    /// The length above which all sources agree that the API rejects the value. A length between
    /// `most` and this value causes only a warning.
    surely: usize,
    what: &'static str,
}

static BOUNDS: &[Bound] = &[
    Bound {
        wires: &[WireFormat::OpenAiChat, WireFormat::OpenAiResponses],
        servers: &[Server::OpenAi],
        member: "tools",
        most: 128,
        surely: 128,
        what: "tools",
    },
    Bound {
        wires: &[WireFormat::OpenAiChat],
        servers: &[Server::Groq],
        member: "tools",
        most: 128,
        surely: usize::MAX,
        what: "tools",
    },
    Bound {
        wires: &[WireFormat::OpenAiChat, WireFormat::OpenAiResponses],
        servers: &[Server::XAi],
        member: "tools",
        most: 200,
        surely: 350,
        what: "tools",
    },
    Bound {
        wires: &[WireFormat::OpenAiChat, WireFormat::OpenAiResponses],
        servers: &[Server::OpenAi],
        member: "safety_identifier",
        most: 64,
        surely: 128,
        what: "characters",
    },
    Bound {
        wires: &[WireFormat::OpenAiChat, WireFormat::OpenAiResponses],
        servers: &[Server::OpenAi],
        member: "user",
        most: 64,
        surely: usize::MAX,
        what: "characters",
    },
    Bound {
        wires: &[WireFormat::OpenAiChat, WireFormat::OpenAiResponses],
        servers: &[Server::OpenRouter],
        member: "user",
        most: 128,
        surely: usize::MAX,
        what: "characters",
    },
    Bound {
        wires: &[WireFormat::OpenAiChat, WireFormat::OpenAiResponses],
        servers: &[Server::OpenAi],
        member: "prompt_cache_key",
        most: 64,
        surely: 64,
        what: "characters",
    },
    Bound {
        wires: &[WireFormat::OpenAiChat],
        servers: &[
            Server::OpenAi,
            Server::OpenRouter,
            Server::Qwen,
            Server::Groq,
            Server::XAi,
        ],
        member: "stop",
        most: 4,
        surely: 4,
        what: "stop sequences",
    },
    Bound {
        wires: &[WireFormat::OpenAiChat, WireFormat::OpenAiResponses],
        servers: &[Server::Unknown],
        member: "cache_salt",
        most: 128,
        // The limit of vLLM before version 0.33.
        surely: 1024,
        what: "characters",
    },
    Bound {
        wires: &[WireFormat::OpenAiChat],
        servers: &[Server::Unknown],
        member: "logprob_token_ids",
        most: 128,
        surely: 128,
        what: "tokens",
    },
    Bound {
        wires: &[WireFormat::OpenAiChat],
        servers: &[Server::Unknown],
        member: "bad_words",
        most: 128,
        // The environment variable `VLLM_MAX_NUM_BAD_WORDS` raises the limit.
        surely: usize::MAX,
        what: "words",
    },
    Bound {
        wires: &[WireFormat::OpenAiChat],
        servers: &[Server::ZAi],
        member: "stop",
        most: 1,
        surely: usize::MAX,
        what: "stop sequences",
    },
    Bound {
        wires: &[WireFormat::OpenAiChat],
        servers: &[Server::DeepSeek],
        member: "stop",
        most: 16,
        surely: 16,
        what: "stop sequences",
    },
];

impl Bound {
    /// Returns `true` if the limit applies to a body. The limits for unknown servers are vLLM's.
    fn is_of(&self, subject: &Subject<'_>) -> bool {
        self.servers.contains(&subject.server)
            && (subject.server != Server::Unknown || subject.may_run(VLLM))
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    for bound in BOUNDS
        .iter()
        .filter(|bound| bound.wires.contains(&subject.wire))
    {
        let Some(value) = subject
            .member(bound.member)
            .filter(|_| bound.is_of(subject))
        else {
            continue;
        };
        let len = match value {
            Value::Array(elements) => elements.len(),
            // A single stop sequence has no length limit.
            Value::String(text) if bound.what == "characters" => text.chars().count(),
            _ => continue,
        };
        if len > bound.most {
            let message = format!(
                "{len} {}, but {} accepts at most {}",
                bound.what,
                subject.server.name(),
                bound.most
            );
            let note = found.at(value, message).about(About::Form);
            let note = if len > bound.surely {
                note
            } else {
                note.warning()
            };
            note.help(format!("keep {} or fewer", bound.most));
        }
    }
    salt(subject, found);
    match subject.wire {
        WireFormat::AnthropicMessages => blank_stops(subject, found),
        WireFormat::GoogleGenerateContent => declarations(subject, found),
        WireFormat::OpenAiChat => many_calls(subject, found),
        WireFormat::OpenAiResponses => domains(subject, found),
        WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => {}
    }
}

/// Reports a character in `cache_salt` that vLLM rejects.
fn salt<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let salt = subject.member("cache_salt");
    let refused = salt
        .and_then(Value::as_str)
        .and_then(|text| text.chars().find(|c| matches!(c, '@' | '/' | '\\' | '\0')));
    let Some((salt, refused)) = salt.zip(refused) else {
        return;
    };
    if let Some(level) = subject.level_with(VLLM) {
        found
            .at(
                salt,
                format!(
                    "`cache_salt` contains `{}`, which vLLM rejects",
                    refused.escape_default()
                ),
            )
            .level(level)
            .help("use letters, digits, `-` and `_`");
    }
}

/// The maximum number of function declarations in one tool for Gemini.
const MOST_DECLARATIONS: usize = 512;

fn declarations<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    for tool in elements(subject.member("tools")) {
        let functions = tool
            .get("functionDeclarations")
            .or_else(|| tool.get("function_declarations"));
        let functions = elements(functions);
        if let Some(further) = functions.get(MOST_DECLARATIONS) {
            let message = format!(
                "{} function declarations, but Gemini accepts at most {MOST_DECLARATIONS}",
                functions.len()
            );
            found
                .at(further, message)
                .help(format!("keep {MOST_DECLARATIONS} or fewer"));
        }
    }
}

/// The maximum number of domains in each list of xAI's web search.
const MOST_DOMAINS: usize = 5;

fn domains<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if subject.server != Server::XAi {
        return;
    }
    for filters in elements(subject.member("tools"))
        .iter()
        .filter_map(|tool| tool.get("filters"))
    {
        let lists = ["allowed_domains", "excluded_domains"].map(|name| filters.get(name));
        for list in lists.into_iter().flatten() {
            let count = elements(Some(list)).len();
            if count > MOST_DOMAINS {
                let message = format!("{count} domains, but xAI accepts at most {MOST_DOMAINS}");
                found
                    .at(list, message)
                    .help(format!("list at most {MOST_DOMAINS} domains"));
            }
        }
    }
}

/// The maximum number of tool calls in one message for OpenAI.
const MOST_CALLS: usize = 128;

fn many_calls<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    if !subject.server.is_openai() && !subject.headers.is_at(Site::GitHubCopilot) {
        return;
    }
    for entry in &subject.history().entries {
        let calls = entry.value.get("tool_calls");
        if let Some(further) = elements(calls).get(MOST_CALLS) {
            let message = format!(
                "{} tool calls in one message, but the API accepts at most {MOST_CALLS}",
                elements(calls).len()
            );
            found
                .at(further, message)
                .help("omit some of the calls together with their results, or set `parallel_tool_calls` to `false`");
        }
    }
}

fn blank_stops<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let stops = subject
        .member("stop_sequences")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    for stop in stops
        .iter()
        .filter(|stop| stop.as_str().is_some_and(|text| text.trim().is_empty()))
    {
        found
            .at(stop, "a stop sequence must not consist only of whitespace")
            .help("leave it out");
    }
}
