//! `protocol/constraint`: a grammar or pattern for the answer that the server cannot parse.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::tools::{DeclaredTool, tools};
use super::{Found, Subject, body_rule};
use crate::json::subschemas::visit;
use crate::provider::{Server, VLLM};
use crate::text::cut;

mod grammar;

use grammar::{MOST_REPETITIONS, Mistake};

body_rule! {
    Error "protocol/constraint", "the server cannot parse the grammar or the pattern for the answer",
    "llama.cpp parses `grammar` as GBNF: rules `name ::= …` with strings, character classes, groups and repetitions. One rule must be \
     `root`, and every name that is used must be defined. llama.cpp rejects more than 2,000 repetitions, including those that result from \
     limits in tool and response schemas (`minItems`; before August 2026 also `maxLength` and `maxItems`, reported as a warning). vLLM \
     compiles patterns (`structured_outputs.regex`, `guided_regex`) to automata, which support neither look-arounds nor backreferences; a \
     quantifier must repeat something, and U+0000 is rejected.\n\n\
     * wrong: `\"grammar\": \"root ::= (\\\"yes\\\" | \\\"no\\\"\"`\n\
     * right: `\"grammar\": \"root ::= (\\\"yes\\\" | \\\"no\\\")\"`\n\
     * wrong: `\"regex\": \"(?=.*[0-9])[a-z0-9]+\"`\n\
     * right: `\"regex\": \"[a-z]*[0-9][a-z0-9]*\"`",
    of OpenAiChat, OpenAiResponses, LlamaCppInfill;
    seen "2026-11" {
        "pkg:github/ggml-org/llama.cpp#src/llama-grammar.cpp":
            "llama.cpp's parser defines which grammars it accepts",
        "pkg:github/ggml-org/llama.cpp#grammars/README.md":
            "llama.cpp describes its grammar format, GBNF",
        "ggml-org/llama.cpp#24144": "llama.cpp: *Failed to parse grammar*",
        "ggml-org/llama.cpp#17473":
            "llama.cpp: *number of repetitions exceeds sane defaults*",
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/v1/structured_output/backend_lm_format_enforcer.py":
            "vLLM: *Failed to compile regex*",
        "https://github.com/vllm-project/vllm/blob/v0.33.0/vllm/entrypoints/generate/base/protocol.py":
            "vLLM: *Invalid structural_tag specification*",
        "pkg:github/vllm-project/vllm#vllm/v1/structured_output/backend_outlines.py":
            "vLLM: *Regex uses unsupported feature for structured outputs*",
    }
}

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    match subject.server {
        Server::LlamaCpp => {
            if let Some(grammar) = subject.member("grammar") {
                check_grammar(grammar, found);
            }
            for schema in schemas(subject) {
                visit(schema, &mut |inner| check_bounds(inner, found));
            }
        }
        Server::Unknown if subject.may_run(VLLM) => {
            let outputs = subject.member("structured_outputs");
            let patterns = [
                outputs.and_then(|outputs| outputs.get("regex")),
                subject.member("guided_regex"),
            ];
            for pattern in patterns.into_iter().flatten() {
                check_pattern(pattern, found);
            }
            if let Some(tag) = outputs.and_then(|outputs| outputs.get("structural_tag")) {
                check_tag(tag, found);
            }
        }
        _ => {}
    }
}

/// Returns the schemas from which llama.cpp generates grammars.
fn schemas<'b>(subject: &Subject<'b>) -> Vec<&'b Value> {
    let of_tools = match subject.member("tools") {
        Some(_) => tools(subject),
        None => Vec::new(),
    };
    let format = subject.member("response_format");
    let named = format.and_then(|format| format.get("json_schema"));
    let of_answer = [
        subject.member("json_schema"),
        format.and_then(|format| format.get("schema")),
        named.and_then(|named| named.get("schema")),
    ];
    let of_tools = of_tools.iter().filter_map(DeclaredTool::schema);
    of_tools.chain(of_answer.into_iter().flatten()).collect()
}

/// Reports length limits for strings and arrays that are too large for llama.cpp to unroll.
fn check_bounds<'b>(inner: &'b Value, found: &mut Found<'b>) {
    for (name, is_least) in [
        ("minLength", true),
        ("minItems", true),
        ("maxLength", false),
        ("maxItems", false),
    ] {
        let bound = inner.get(name).and_then(Value::as_u64);
        let Some(bound) = bound.filter(|bound| *bound > MOST_REPETITIONS) else {
            continue;
        };
        let message = match is_least {
            true => {
                format!("{bound} repetitions, but llama.cpp accepts at most {MOST_REPETITIONS}")
            }
            false => of_some(bound),
        };
        let note = found.at_member(inner, name, message);
        let note = if is_least { note } else { note.warning() };
        note.help("remove the limit, and state it in the description");
    }
}

fn of_some(times: u64) -> String {
    format!(
        "up to {times} repetitions, but builds before August 2026 accept at most {MOST_REPETITIONS}"
    )
}

fn check_grammar<'b>(grammar: &'b Value, found: &mut Found<'b>) {
    let text = grammar.as_str().filter(|text| !text.is_empty());
    let Some(mistake) = text.and_then(grammar::mistake) else {
        return;
    };
    let is_of_some = matches!(mistake, Mistake::RepeatedForSome(_));
    let message = match mistake {
        Mistake::Unread { line, expected } => {
            format!("line {line} of the grammar cannot be parsed: expected {expected}")
        }
        Mistake::Undefined(name) => format!("the grammar has no rule `{}`", cut(&name, 60)),
        Mistake::Rootless => "the grammar has no rule `root`".to_owned(),
        Mistake::Repeated(times) => {
            format!("{times} repetitions, but llama.cpp accepts at most {MOST_REPETITIONS}")
        }
        Mistake::RepeatedForSome(times) => of_some(times),
        Mistake::TooDeep => return,
    };
    let note = found.at(grammar, message);
    let note = if is_of_some { note.warning() } else { note };
    note.help("see llama.cpp's `grammars/README.md`");
}

/// Reports a structural tag that is not valid JSON text.
fn check_tag<'b>(tag: &'b Value, found: &mut Found<'b>) {
    let is_json = tag
        .as_str()
        .is_none_or(|text| serde_json::from_str::<IgnoredAny>(text).is_ok());
    if !is_json {
        found
            .at(tag, "the structural tag is not JSON")
            .help("write it as the text of a JSON object");
    }
}

/// Prefixes of look-around groups.
const LOOKS: [&str; 4] = ["(?=", "(?!", "(?<=", "(?<!"];

fn check_pattern<'b>(pattern: &'b Value, found: &mut Found<'b>) {
    let Some(text) = pattern.as_str() else { return };
    // Escapes are removed, so that an escaped bracket does not begin a group. `outside` is the part
    // that is not in a class.
    let mut refers_back = false;
    let mut plain = String::with_capacity(text.len());
    let mut outside = String::with_capacity(text.len());
    let mut is_in_class = false;
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        if c == '\\' {
            let escaped = characters.next();
            refers_back |= !is_in_class && escaped.is_some_and(|c| matches!(c, '1'..='9' | 'k'));
            // The backslash represents the escaped character, which a quantifier may follow.
            outside.push('\\');
            continue;
        }
        plain.push(c);
        match (is_in_class, c) {
            (false, '[') => is_in_class = true,
            (true, ']') => is_in_class = false,
            (true, _) => continue,
            (false, _) => {}
        }
        outside.push(c);
    }
    let message = if let Some(look) = LOOKS.iter().find(|look| plain.contains(**look)) {
        format!("the pattern contains a look-around (`{look}`), which vLLM does not support")
    } else if refers_back || outside.contains("(?P=") {
        "the pattern contains a backreference, which vLLM does not support".to_owned()
    } else if text.contains("\\b") || text.contains("\\B") {
        found
            .at(
                pattern,
                "the pattern contains a word boundary, which some vLLM backends do not support",
            )
            .warning()
            .help("rewrite the pattern without it, or check the answer afterwards");
        return;
    } else if text.contains('\0') {
        found
            .at(
                pattern,
                "the pattern contains the character U+0000, which vLLM rejects",
            )
            .help("leave the character out");
        return;
    } else if repeats_nothing(&outside) {
        found
            .at(pattern, "a quantifier in the pattern has nothing to repeat")
            .help("if it is a literal character, escape it with `\\`");
        return;
    } else if !is_closed(&plain) {
        found
            .at(pattern, "a bracket in the pattern is not closed")
            .help("close it or, if it is a literal character, escape it with `\\`");
        return;
    } else {
        return;
    };
    found
        .at(pattern, message)
        .help("rewrite the pattern without it, or check the answer afterwards");
}

/// Returns `true` if a quantifier is at the beginning of a pattern, a group or an alternative.
/// `outside` is the pattern without escaped characters and without the content of classes.
fn repeats_nothing(outside: &str) -> bool {
    let follows = |start: &str| {
        ["*", "+"]
            .iter()
            .any(|it| outside.contains(&format!("{start}{it}")))
    };
    outside.starts_with(['*', '+', '?']) || outside.contains("|?") || follows("|") || follows("(")
}

/// Returns `true` if all brackets of a pattern are closed. `plain` is the pattern without escaped
/// characters.
fn is_closed(plain: &str) -> bool {
    let (mut depth, mut class): (i32, Option<usize>) = (0, None);
    for c in plain.chars() {
        class = match (class, c) {
            // A bracket directly after the start of a class is an ordinary character.
            (Some(length), ']') if length > 0 => None,
            (Some(0), '^') | (None, '[') => Some(0),
            (Some(length), _) => Some(length + 1),
            (None, _) => None,
        };
        if class.is_none() {
            depth += i32::from(c == '(') - i32::from(c == ')');
        }
    }
    depth == 0 && class.is_none()
}
