//! `refusals/`: the error messages of providers are found, and agree with the rules.

#![expect(
    clippy::disallowed_methods,
    reason = "the test reads the data as it is in the repository"
)]

mod program;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use rayon::prelude::*;
use reqc::compile::{all_rules, rule};
use reqc::diag::Severity;
use reqc::refusal::{Basis, Dictionary, Explanation, Reason, Refusal};
use reqc::toml::{self, Kind, Table};

/// The reasons why no rule finds a refusal: there is no rule yet (`gap`), or a body cannot show the
/// cause.
const UNRULED: [&str; 8] = [
    "gap",
    "auth",
    "quota",
    "server",
    "transport",
    "content",
    "format",
    "unsaid",
];

/// Every key of a `[[refusal]]`.
const KEYS: [&str; 11] = [
    "sentence", "same", "wraps", "status", "type", "rule", "unruled", "meaning", "remedy", "seen",
    "sources",
];

/// An entry and the name of its file.
struct Entry {
    file: String,
    table: Table,
}

impl Entry {
    fn text(&self, key: &str) -> Option<&str> {
        match &self.table.get(key)?.kind {
            Kind::String(text) => Some(text),
            _ => None,
        }
    }

    fn shown(&self) -> String {
        format!(
            "{}: {}",
            self.file,
            self.text("sentence")
                .unwrap_or("an entry without a sentence")
        )
    }

    /// Returns the mistakes of this entry.
    fn flaws(&self) -> Vec<String> {
        let mut flaws = Vec::new();
        for (key, _) in &self.table.entries {
            if !KEYS.contains(&key.name.as_str()) {
                flaws.push(format!("`{}` is not a key of a refusal", key.name));
            }
        }
        for key in ["sentence", "meaning", "remedy", "seen"] {
            if self.text(key).is_none_or(|text| text.trim().is_empty()) {
                flaws.push(format!("it has no `{key}`"));
            }
        }
        match (self.text("rule"), self.text("unruled")) {
            (Some(code), None) if rule(code).is_some() => {}
            (Some(code), None) => flaws.push(format!("there is no rule `{code}`")),
            (None, Some(why)) if UNRULED.contains(&why) => {}
            (None, Some(why)) => flaws.push(format!("`unruled` is none of {UNRULED:?}: {why}")),
            _ => flaws.push("it has both `rule` and `unruled`, or neither".to_owned()),
        }
        if !matches!(self.table.get("sources").map(|node| &node.kind), Some(Kind::Array(all)) if !all.is_empty())
        {
            flaws.push("it has no `sources`".to_owned());
        }
        flaws
            .into_iter()
            .map(|flaw| format!("{}: {flaw}", self.shown()))
            .collect()
    }
}

/// Reads all files in alphabetical order.
fn entries() -> Vec<Entry> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("refusals");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .flatten()
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    let mut entries = Vec::new();
    for path in paths {
        let file = path
            .file_name()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        let text = fs::read_to_string(&path).expect("a text");
        let table = toml::parse(&text).unwrap_or_else(|error| panic!("{file}: {error}"));
        let stem = file.trim_end_matches(".toml");
        assert!(
            matches!(table.get("provider").map(|node| &node.kind), Some(Kind::String(name)) if name == stem),
            "{file}: `provider` is the name of the file"
        );
        let Some(Kind::Array(refusals)) = table.get("refusal").map(|node| &node.kind) else {
            panic!("{file} has no refusals");
        };
        for refusal in refusals {
            let Kind::Table(table) = &refusal.kind else {
                panic!("{file}: a refusal is a table")
            };
            entries.push(Entry {
                file: file.clone(),
                table: table.clone(),
            });
        }
    }
    entries
}

#[test]
fn every_entry_names_a_rule_or_why_there_is_none() {
    let flaws: Vec<String> = entries().iter().flat_map(Entry::flaws).collect();
    assert!(flaws.is_empty(), "{}", flaws.join("\n"));
}

#[test]
fn no_sentence_is_there_twice() {
    let entries = entries();
    let mut seen = BTreeSet::new();
    let twice: Vec<String> = entries
        .iter()
        .filter(|entry| {
            !seen.insert((
                entry.file.clone(),
                entry.text("sentence").map(str::to_owned),
            ))
        })
        .map(Entry::shown)
        .collect();
    assert!(twice.is_empty(), "{}", twice.join("\n"));
    assert!(entries.len() >= 3_700, "{} sentences", entries.len());
}

/// Replaces all placeholders of a sentence with the same one. Doubled braces are literal and not
/// placeholders.
fn without_names(sentence: &str) -> String {
    let sentence = sentence.replace("{{", "\u{1}").replace("}}", "\u{2}");
    let mut parts = sentence.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    let text = parts.fold(first, |text, part| {
        text + "{}" + part.split_once('}').map_or("", |(_, rest)| rest)
    });
    text.trim_end_matches('.').to_lowercase()
}

#[test]
fn equal_sentences_of_several_providers_have_one_reason() {
    let entries = entries();
    let mut reasons: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for entry in &entries {
        // Self-hosted servers have settings that a body does not show.
        let reason = entry
            .text("rule")
            .or(entry.text("unruled"))
            .unwrap_or_default();
        if reason != "server" {
            let sentence = without_names(entry.text("sentence").unwrap_or_default());
            reasons
                .entry(sentence)
                .or_default()
                .insert(reason.to_owned());
        }
    }
    let several: Vec<_> = reasons
        .iter()
        .filter(|(_, reasons)| reasons.len() > 1)
        .collect();
    assert!(several.is_empty(), "{several:#?}");
}

/// Every rule that reports a refusal names a recorded message, or is listed as not recorded.
#[test]
fn rules_that_claim_a_refusal_name_a_sentence() {
    let named: BTreeSet<String> = entries()
        .iter()
        .filter_map(|entry| entry.text("rule").map(str::to_owned))
        .collect();
    let claims = |rule: &&reqc::diag::Rule| {
        rule.code.starts_with("protocol/") && rule.severity == Severity::Error
    };
    let codes = all_rules()
        .into_iter()
        .filter(claims)
        .map(|rule| rule.code.to_owned());
    let unnamed: Vec<String> = codes
        .filter(|code| !named.contains(code))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/refusals-not-recorded.txt");
    let listed = fs::read_to_string(path).expect("a text");
    let listed: Vec<&str> = listed
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert_eq!(
        unnamed, listed,
        "tests/refusals-not-recorded.txt lists the rules without a sentence"
    );
}

/// Fills the placeholders of a sentence.
fn filled(sentence: &str) -> String {
    let mut filled = String::new();
    let mut chars = sentence.chars().peekable();
    while let Some(c) = chars.next() {
        match (c, chars.peek()) {
            ('{', Some('{')) | ('}', Some('}')) => {
                chars.next();
                filled.push(c);
            }
            ('{', _) => {
                let name: String = chars.by_ref().take_while(|c| *c != '}').collect();
                filled.push_str(match name.as_str() {
                    "path" => "messages.3.content.0",
                    "index" | "limit" | "count" => "7",
                    _ => "some-name",
                });
            }
            (c, _) => filled.push(c),
        }
    }
    filled
}

/// Returns the forms in which users see an error message.
fn wrapped(sentence: &str) -> [String; 5] {
    let json = serde_json::json!({"error": {"message": sentence, "type": "invalid_request_error"}})
        .to_string();
    let quote = if sentence.contains('\'') { '"' } else { '\'' };
    let python = format!(
        "openai.BadRequestError: Error code: 400 - {{'error': {{'message': {quote}{}{quote}, 'code': None}}}}",
        sentence.replace('\n', "\\n")
    );
    let log = format!("2026-11-25T10:00:00Z ERROR request failed body={json} attempt=2");
    let nested =
        serde_json::json!({"error": {"message": "Provider returned error", "metadata": {"raw": json}}}).to_string();
    [sentence.to_owned(), json, python, log, nested]
}

/// Returns strings that a sentence explains. A phrase for one status only needs that status in the
/// text.
fn texts(provider: &str, refusal: &Refusal) -> Vec<String> {
    let sentence = filled(&refusal.sentence);
    match refusal.status.filter(|_| provider == "phrases") {
        Some(status) => vec![format!("HTTP {status}: the odd {sentence}")],
        None => wrapped(&sentence).to_vec(),
    }
}

/// Returns `true` if a string is explained by this sentence, or by one that is as long or has the
/// same reason.
fn is_explained(found: &[Explanation], sentence: &str, reason: &Reason) -> bool {
    let says_more = |it: &Explanation| {
        it.refusal.sentence.len() >= sentence.len() || it.refusal.reason == *reason
    };
    found
        .iter()
        .any(|it| it.refusal.sentence == sentence || says_more(it))
}

/// Returns the forms in which a sentence occurs but is not found.
fn lost(provider: &str, refusal: &Refusal) -> Vec<String> {
    let mut texts = texts(provider, refusal);
    texts.retain(|text| {
        let found = Dictionary::bundled().explain(text);
        !is_explained(&found, &refusal.sentence, &refusal.reason)
    });
    texts
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "takes long")]
fn every_sentence_is_found_in_whatever_wraps_it() {
    let lost: Vec<String> = Dictionary::bundled()
        .providers()
        .par_iter()
        .flat_map(|provider| {
            provider
                .refusals
                .par_iter()
                .flat_map_iter(|refusal| lost(&provider.id, refusal))
        })
        .collect();
    assert!(
        lost.is_empty(),
        "{} of {}:\n{}",
        lost.len(),
        entries().len() * 5,
        lost.join("\n")
    );
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "takes long")]
fn what_is_no_refusal_is_not_explained() {
    let documents = [
        "README.md",
        "docs/templates.md",
        "docs/profiles.md",
        "docs/runtime.md",
        "CONTRIBUTING.md",
    ];
    for path in documents {
        let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path))
            .expect("a document");
        let found: Vec<String> = Dictionary::bundled()
            .explain(&text)
            .into_iter()
            .map(|it| it.refusal.sentence.clone())
            .collect();
        assert!(found.is_empty(), "{path}: {found:?}");
    }
}

fn why400(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(program::path());
    command
        .current_dir(folder)
        .arg("why400")
        .args(arguments)
        .env_remove("CI");
    command.output().expect("it runs")
}

const SENTENCE: &str = "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1. Each \
     `tool_use` block must have a corresponding `tool_result` block in the next message.";

const BODY: &str = r#"{
  "model": "claude-opus-5-5",
  "max_tokens": 100,
  "messages": [
    {"role": "user", "content": "Weather?"},
    {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {}}]},
    {"role": "user", "content": "Go on"}
  ]
}"#;

#[test]
fn the_basis_of_an_explanation_is_told() {
    let basis = |text: &str| Dictionary::bundled().explain(text)[0].basis;
    for text in [
        "API Error: Overloaded",
        "当前分组上游负载已饱和，请稍后再试",
    ] {
        assert_eq!(basis(text), Basis::Sentence, "{text}");
    }
    let unknown =
        r#"{"error": {"type": "rate_limit_error", "message": "this is new to everybody"}}"#;
    for text in [unknown, "503 this is new to everybody"] {
        assert_eq!(basis(text), Basis::Code, "{text}");
    }
    for text in [
        "400 this region is new to everybody",
        r#"{"error": {"type": "invalid_request_error", "message": "a role that is new to everybody"}}"#,
    ] {
        assert_eq!(basis(text), Basis::Words, "{text}");
    }
}

/// Gateways and clients add text around a provider's message, which must still be found.
#[test]
fn what_stands_around_a_message_does_not_hide_it() {
    let wrappers = [
        "{}",
        "Failed to create stream: inference request failed: failed to generate stream from Odd: failed to \
         invoke model 'odd/odd-1' with streaming: request failed with status 400 {}",
        "Failed to create stream: inference request failed:\nfailed to generate stream from Odd: failed to \
         invoke model\n'odd/odd-1' with streaming: request failed with status 400\n\n{}\n\nCheck your model connection.",
        "The model returned the following errors: {}",
        "An error occurred (ValidationException) when calling the ConverseStream operation: {}",
        "Error from provider (Odd): Upstream request failed: {}",
        "Upstream error from Odd: {}",
        "Failed to generate content with model odd-1: {}",
        "Encountered retryable error from model provider: {}",
        "bad response status code 400, message: {}",
        "Request failed with status code 400: {}",
        "API request failed with status 400. Body: {}",
        "An error occurred in model serving, error message is: [{}]",
        "Invalid error response format: Gateway request failed: {}",
        "Sorry, the upstream provider rejected the request as malformed. Please check the input or try a \
         different model. {}",
        "400 provider API error (status 400): {}",
        "Provider returned error: {}",
        "failed to stream request: Request failed: {}",
    ];
    let messages = [
        (
            "`odd` is not supported with this model",
            "model does not support",
        ),
        ("messages.0.content.2.odd: Field required", "is missing"),
        (
            "unknown field `odd`, expected one of `a`, `b`",
            "does not recognise",
        ),
        (
            "messages: text content blocks must be non-empty",
            "text block is empty",
        ),
        (
            "an odd regex lookaround in the schema is unsupported",
            "mentions a schema",
        ),
        ("this odd image was unwelcome", "mentions an image"),
    ];
    for wrapper in wrappers {
        for (message, meaning) in messages {
            let text = wrapper.replace("{}", message);
            let found = Dictionary::bundled().explain(&text);
            let told = &found.first().expect("an explanation").refusal.meaning;
            assert!(told.contains(meaning), "{text}\n{told}");
        }
        let text = wrapper.replace("{}", "this is new to everybody");
        let found = Dictionary::bundled().explain(&text);
        let by_words = found.iter().find(|it| it.basis == Basis::Words);
        let told = by_words.map(|it| &it.refusal.meaning);
        assert_eq!(told, None, "{text}");
    }
}

#[test]
fn words_blame_what_the_message_is_about() {
    let of_schema = "mentions a schema";
    let of_server = "mentions the model on the server";
    for (text, meaning) in [
        (
            "tools.1.custom.input_schema: an odd $ref. Learn more about tool use at https://a.example/tool-use.",
            of_schema,
        ),
        (
            "400 the function call 'odd' has 'image' in the schema twice",
            of_schema,
        ),
        (
            "400 odd: property 'credentials' in schema lacks a kind",
            of_schema,
        ),
        (
            "400 the tool 'purchase' has an odd description",
            "mentions tools",
        ),
        ("400 model is missing a tokenizer", of_server),
        (
            "400 the odd model has no chat template for tools",
            of_server,
        ),
        ("400 odd tools: the server lacks a tool parser", of_server),
        (
            "400 this is a base model, use the completions endpoint",
            of_server,
        ),
        (
            "400 the worker is missing an odd environment variable",
            of_server,
        ),
        (
            "400 the odd tool choice is not welcome with tool calls",
            "mentions the tool choice",
        ),
        (
            "400 the model produced an odd tool call that does not match",
            "model answered",
        ),
        (
            "400 empty tool_calls is an odd thing in a message",
            "is empty or `null`",
        ),
        ("400 the odd tool_call_id is null", "is empty or `null`"),
        (
            "400 odd: cannot decode the upstream response",
            "cannot read the response",
        ),
        (
            "400 odd must be one of a, b",
            "has a type, a form or a size",
        ),
        (
            "400 there are no available tools like this",
            "mentions tools",
        ),
    ] {
        let found = Dictionary::bundled().explain(text);
        assert_eq!(found[0].basis, Basis::Words, "{text}");
        let told = &found[0].refusal.meaning;
        assert!(told.contains(meaning), "{text}\n{told}");
    }
}

/// The error of a client that cannot read an answer contains words that servers use for requests.
#[test]
fn an_answer_that_a_client_cannot_read_is_no_refusal() {
    let unreadable = "cannot read the response";
    for text in [
        "Error: failed to deserialize api response: invalid type: integer `400`, expected a string at line 1 column 87",
        "Failed to parse the provider response: unknown variant `developer`, expected one of `system`, `user` at line 1 column 9",
        "error decoding stream response: missing field `tool_calls` at line 1 column 2",
    ] {
        let found = Dictionary::bundled().explain(text);
        assert_eq!(found.len(), 1, "{text}");
        let told = &found[0].refusal.meaning;
        assert!(told.contains(unreadable), "{text}\n{told}");
    }
    let text = "failed to deserialize api response: error: missing field `id` content:{\"error\": {\"message\": \"Overloaded\"}}";
    let told = &Dictionary::bundled().explain(text)[0].refusal.meaning;
    assert!(told.contains("too many requests"), "{told}");
}

#[test]
fn a_page_instead_of_an_answer_is_told() {
    let reason = |text: &str| {
        let found = Dictionary::bundled().explain(text);
        found[0].refusal.meaning.clone()
    };
    let page = "<!DOCTYPE html><html lang=\"en\"><title>An odd page</title></html>";
    let told = reason(&format!("bad response status code 404, body: {page}"));
    assert!(told.contains("web page"), "{told}");
    let told = reason(&format!("HTTP 403: {page}"));
    assert!(told.contains("web page"), "{told}");
    let told = reason(&format!("HTTP 502: {page}"));
    assert!(!told.contains("web page"), "{told}");
}

/// Moonshot and AWS join several reasons in one message.
#[test]
fn each_reason_of_a_joined_message_is_a_sentence() {
    let moonshot = "tools.function.parameters is not a valid moonshot flavored json schema, details: <At path 'properties.odd': ";
    let bedrock = "Malformed input request: ";
    for (start, rest, meaning) in [
        (
            moonshot,
            "when using anyOf, type should be defined in anyOf items instead of the parent schema>",
            "`type` next to `anyOf`",
        ),
        (moonshot, "type is not defined>", "has no `type`"),
        (moonshot, "items must be an object>", "`items` is a list"),
        (moonshot, "an odd reason>", "the end of the message says"),
        (
            bedrock,
            "#: required key [prompt] not found#: required key [odd] not found#: extraneous key [Messages] is not \
             permitted#: extraneous key [Odd] is not permitted, please reformat your input and try again.",
            "this model's own format",
        ),
        (
            bedrock,
            "#: extraneous key [Messages] is not permitted#: required key [prompt] not found, please reformat your \
             input and try again.",
            "this model's own format",
        ),
        (
            "Parameter validation failed: ",
            "Unknown parameter in input: \"tools\", must be one of: modelId, messages\nUnknown parameter in input: \
             \"tool_choice\", must be one of: modelId, messages",
            "OpenAI's `tools`",
        ),
        (
            bedrock,
            "#: extraneous key [odd] is not permitted, please reformat your input and try again.",
            "not in the model's schema",
        ),
        (
            bedrock,
            "#: required key [odd] not found, please reformat your input and try again.",
            "lacks a field",
        ),
        (
            bedrock,
            "#/odd: an odd reason, please reformat your input and try again.",
            "before the comma",
        ),
    ] {
        let text = format!("{start}{rest}");
        let found = Dictionary::bundled().explain(&text);
        assert_eq!(found.len(), 1, "{text}");
        let told = &found[0].refusal.meaning;
        assert!(told.contains(meaning), "{text}\n{told}");
    }
}

#[test]
fn words_after_a_general_sentence_count_more() {
    let general = "Invalid API parameter, please check the documentation";
    for (rest, meaning) in [
        (".invalid gzip request body", "could not decompress"),
        (". this odd image was unwelcome", "mentions an image"),
        (
            ": unknown field `odd`, expected one of `a`, `b`",
            "does not recognise",
        ),
        (
            "', 'code': 'this odd image was unwelcome'}}",
            "does not say which field",
        ),
        (". invalid input", "does not say which field"),
        (
            ". Something went wrong, try again",
            "does not say which field",
        ),
    ] {
        let text = format!("{{'error': {{'message': '{general}{rest}");
        let told = &Dictionary::bundled().explain(&text)[0].refusal.meaning;
        assert!(told.contains(meaning), "{text}\n{told}");
    }
}

/// A gateway's complete message must not match the beginning of a longer one.
#[test]
fn a_whole_sentence_is_not_cut_off() {
    let text =
        r#"{"error":{"message":"Error from provider (Odd): Upstream request failed","code":400}}"#;
    let found = Dictionary::bundled().explain(text);
    assert!(found[0].refusal.wraps, "{:?}", found[0].refusal.sentence);
    let found = Dictionary::bundled().explain(&text.replace(
        "failed",
        "failed: [invalid_request_error] invalid request body: json: unk...",
    ));
    assert!(!found[0].refusal.wraps, "{:?}", found[0].refusal.sentence);
}

#[test]
fn a_sentence_does_not_end_inside_a_path() {
    let shown = |text: &str| {
        Dictionary::bundled().explain(text)[0]
            .refusal
            .sentence
            .clone()
    };
    assert!(
        shown("Missing required parameter: 'response_format.json_schema'.")
            .contains(".json_schema'")
    );
    assert!(shown("Missing required parameter: 'response_format.json_schema.odd'.").contains('{'));
}

#[test]
fn a_status_for_sizes_counts_more_than_a_parser() {
    for text in [
        "413 failed to parse request",
        "413 the odd server cannot parse this body",
    ] {
        let told = &Dictionary::bundled().explain(text)[0].refusal.meaning;
        assert!(told.contains("more bytes"), "{text}\n{told}");
    }
    let told = &Dictionary::bundled().explain("400 the odd server cannot parse this body")[0]
        .refusal
        .meaning;
    assert!(told.contains("as JSON"), "{told}");
}

#[test]
fn a_provider_is_named_only_if_the_text_names_it() {
    let is_named = |text: &str| {
        let found = Dictionary::bundled().explain(&format!("{text} {SENTENCE}"));
        assert_eq!(found[0].provider.name, "Anthropic", "{text}");
        found[0].is_named
    };
    for text in [
        "Anthropic:",
        "The Anthropic API says:",
        "调用Anthropic失败:",
        "POST https://api.anthropic.com/v1/messages 400",
    ] {
        assert!(is_named(text), "{text}");
    }
    for text in [
        "",
        "anthropic.BadRequestError: Error code: 400:",
        "litellm.BadRequestError: AnthropicException:",
        "model anthropic/claude-sonnet-5:",
        "an anthropic-compatible server:",
    ] {
        assert!(!is_named(text), "{text}");
    }
}

#[test]
fn one_meaning_of_several_sentences_is_told_once() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let error = |place: &str, value: &str| {
        format!(
            "{{'type': 'literal_error', 'loc': ('body', '{place}'), 'msg': \"Input should be '{value}'\"}}"
        )
    };
    let answer = format!(
        "OddError: 400 2 validation errors:\n  {}\n  {}",
        error("odd", "odd-1"),
        error("even", "odd-2")
    );
    let told = why400(folder.path(), &[&answer]);
    let out = String::from_utf8_lossy(&told.stdout);
    assert!(out.contains("status 400"), "{out}");
    assert!(out.contains("odd-1") && out.contains("odd-2"), "{out}");
    assert_eq!(out.matches("What to do").count(), 1, "{out}");
}

/// The phrase about the size of a body is used only together with its status.
#[test]
fn words_for_a_status_count_only_with_it() {
    let status = |text: &str| Dictionary::bundled().explain(text)[0].refusal.status;
    let words = "the odd frame with its image has 17 bytes, which exceeds 16";
    for start in ["413 ", "unexpected status 413 Payload Too Large: "] {
        assert_eq!(status(&format!("{start}{words}")), Some(413), "{start}");
    }
    assert_eq!(status(&format!("400 {words}")), None);
    // The name of the status adds nothing to its number.
    let named = Dictionary::bundled().explain("unexpected status 413 Payload Too Large");
    assert_eq!(named[0].basis, Basis::Code);
}

#[test]
fn a_body_is_checked_for_the_server_that_rejected_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write =
        |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("writable");
    // The message belongs to Groq, so the body is checked for Groq. Nothing in the body shows the
    // format.
    write(
        "groq.json",
        r#"{"model": "llama-3.1-70b-versatile", "messages": [{"role": "user", "content": "Hi"}]}"#,
    );
    let gone = "The model `llama-3.1-70b-versatile` has been decommissioned and is no longer supported. Please refer to https://console.groq.com/docs/deprecations for a recommendation on which model to use instead.";
    let told = why400(folder.path(), &[gone, "--body", "groq.json"]);
    let out = String::from_utf8_lossy(&told.stdout);
    assert!(out.contains("Groq has decommissioned it"), "{out}");
    let told = why400(
        folder.path(),
        &["Overloaded", "--body", "groq.json", "--wire=openai-chat"],
    );
    let out = String::from_utf8_lossy(&told.stdout);
    assert!(
        out.contains("\nThe rules find no mistake in the body.\n"),
        "{out}"
    );

    // The URL of a captured request identifies the format, the server and the model.
    let refused = serde_json::json!({"log": {"entries": [{
        "request": {
            "url": "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/us-central1/publishers/google/models/gemini-3.5-flash:generateContent",
            "postData": {"text": r#"{"contents": [{"role": "user", "parts": [{"text": "Hi"}]}], "generationConfig": {"responseLogprobs": true}}"#},
        },
        "response": {"status": 400, "content": {"text": r#"{"error": {"code": 400, "message": "Unable to submit request because Logprobs is not supported for this model."}}"#}},
    }]}});
    write("vertex.har", &refused.to_string());
    let told = why400(folder.path(), &["vertex.har"]);
    let out = String::from_utf8_lossy(&told.stdout);
    assert!(
        out.contains("`generationConfig.responseLogprobs` with gemini-3.5-flash"),
        "{out}"
    );
}

#[test]
fn the_command_tells_the_place_in_the_body() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write =
        |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("writable");
    write("body.json", BODY);
    let told = why400(folder.path(), &[SENTENCE, "--body", "body.json"]);
    let out = String::from_utf8_lossy(&told.stdout);
    assert_eq!(told.status.code(), Some(0), "{out}");
    assert!(
        out.starts_with("The request is rejected, usually with status 400, `invalid_request_error`. This is a known error message from Anthropic:\n"),
        "{out}"
    );
    assert!(
        out.contains("It refers to /messages/1/content/0 in the body")
            && out.contains("body.json:6:"),
        "{out}"
    );

    // A HAR file contains both body and answer; accepted requests are ignored.
    let answer = serde_json::json!({"type": "error", "error": {"type": "invalid_request_error", "message": SENTENCE}});
    let entry = |status: u16, answer: &str| {
        serde_json::json!({
            "request": {"url": "https://api.anthropic.com/v1/messages", "postData": {"text": BODY}},
            "response": {"status": status, "content": {"text": answer}},
        })
    };
    let har = serde_json::json!({"log": {"entries": [entry(200, "{}"), entry(400, &answer.to_string())]}});
    write("session.har", &har.to_string());
    let told = why400(folder.path(), &["session.har", "--format", "json"]);
    let document: serde_json::Value = serde_json::from_slice(&told.stdout).expect("JSON");
    assert_eq!(document.as_array().map(Vec::len), Some(1), "{document}");
    assert_eq!(
        document[0]["explanations"][0]["rule"],
        "protocol/unanswered-call"
    );
    assert_eq!(
        document[0]["explanations"][0]["pointer"],
        "/messages/1/content/0"
    );
    assert_eq!(
        document[0]["findings"][0]["code"],
        "protocol/unanswered-call"
    );

    // A dump of curl, then an unknown message with a wrong body.
    write(
        "dump.txt",
        &format!("> POST /v1/messages HTTP/2\n{BODY}\n< HTTP/2 400\n{answer}\n"),
    );
    let told = why400(folder.path(), &["dump.txt"]);
    let out = String::from_utf8_lossy(&told.stdout);
    assert!(
        told.status.code() == Some(0) && out.contains("the request:12:"),
        "{out}"
    );
    let told = why400(
        folder.path(),
        &["the request is odd", "--body", "body.json"],
    );
    let out = String::from_utf8_lossy(&told.stdout);
    assert!(
        told.status.code() == Some(1) && out.contains("protocol/unanswered-call"),
        "{out}"
    );

    // An unknown message, of which only the status is explained.
    let told = why400(folder.path(), &["429 the request is odd"]);
    let out = String::from_utf8_lossy(&told.stdout);
    assert!(
        told.status.code() == Some(0)
            && out.starts_with("This text contains no known error message."),
        "{out}"
    );

    // Unreadable input is reported, and no key is printed.
    assert_eq!(
        why400(folder.path(), &["-", "--body", "-"]).status.code(),
        Some(2)
    );
    let told = why400(
        folder.path(),
        &["the request is odd", "--body", "no-such-file.json"],
    );
    let err = String::from_utf8_lossy(&told.stderr);
    assert!(
        told.status.code() == Some(2) && err.contains("no-such-file.json"),
        "{err}"
    );
    let key = format!("sk-proj-{}", "aB3dE5fG7h".repeat(5));
    let told = why400(
        folder.path(),
        &[&format!(
            "Incorrect API key provided: {key}. You can find your API key at x."
        )],
    );
    assert!(!String::from_utf8_lossy(&told.stdout).contains(&key));
}

#[test]
fn the_command_finds_the_place_that_a_message_names_in_other_ways() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write =
        |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("writable");
    let told = |arguments: &[&str]| {
        let told = why400(folder.path(), arguments);
        String::from_utf8_lossy(&told.stdout).replace('\n', " ")
    };

    // The name of a tool, which a call repeats, and a place in the tool's schema.
    let tool = serde_json::json!({
        "model": "gpt-5.1",
        "messages": [
            {"role": "assistant", "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "grant", "arguments": "{}"}}]},
            {"role": "tool", "tool_call_id": "call_1", "content": "done"},
        ],
        "tools": [{"type": "function", "function": {"name": "grant", "strict": true, "parameters": {
            "type": "object", "properties": {"rights": {"type": "object", "properties": {}}}, "required": ["rights"], "additionalProperties": false,
        }}}],
    });
    write("tool.json", &tool.to_string());
    let strict = "Invalid schema for function 'grant': In context=('properties', 'rights'), 'additionalProperties' is required to be supplied and to be false.";
    let out = told(&[strict, "--body", "tool.json"]);
    let place = "It refers to /tools/0/function/parameters/properties/rights in the body";
    assert!(out.contains(place), "{out}");

    // Google's messages refer to the properties of a schema by index.
    let gemini = serde_json::json!({
        "contents": [{"role": "user", "parts": [{"text": "Hi"}]}],
        "tools": [{"functionDeclarations": [{"name": "f", "parameters": {"type": "object", "properties": {
            "a": {"type": "string"}, "b": {"type": "array", "items": {"type": "string", "$schema": "x"}},
        }}}]}],
    });
    write("gemini.json", &gemini.to_string());
    let unknown = |name: &str| {
        format!(
            "Invalid JSON payload received. Unknown name \"{name}\" at 'tools[0].function_declarations[0].parameters.properties[1].value.items': Cannot find field."
        )
    };
    let two = format!(
        "{}\n{}",
        unknown("$schema"),
        unknown("additionalProperties")
    );
    let out = told(&[&two, "--body", "gemini.json"]);
    let place = "/tools/0/functionDeclarations/0/parameters/properties/b/items in the body";
    assert!(out.contains(place), "{out}");
    // Both errors are shown, although they are at the same place.
    assert!(
        out.contains("$schema") && out.contains("additionalProperties"),
        "{out}"
    );
    assert!(out.contains("The body does not name its model"), "{out}");
    let with_model = told(&[&two, "--body", "gemini.json", "--model", "gemini-3-pro"]);
    assert!(
        !with_model.contains("does not name its model"),
        "{with_model}"
    );

    // A number is no index into a body of another form, and a word is no tool.
    let out = told(&[
        "messages.0.content.0.text: Field required",
        "--body",
        "gemini.json",
    ]);
    assert!(!out.contains("It refers to"), "{out}");
    let enumerated = serde_json::json!({"messages": [], "tools": [
        {"type": "function", "function": {"name": "a", "parameters": {"type": "object", "properties": {"mode": {"enum": ["grant"]}}}}},
        {"type": "function", "function": {"name": "grant", "parameters": {"type": "object"}}},
    ]});
    write("enum.json", &enumerated.to_string());
    let out = told(&[strict, "--body", "enum.json"]);
    assert!(
        out.contains("It refers to /tools/1/function/parameters in the body"),
        "{out}"
    );

    // A body without the ID in the message, and several bodies in one file.
    write("body.json", BODY);
    let elsewhere = SENTENCE.replace("toolu_1", "toolu_01ABCdef");
    let out = told(&[&elsewhere, "--body", "body.json"]);
    assert!(
        out.contains("The body has no `toolu_01ABCdef`") && !out.contains("It refers to"),
        "{out}"
    );
    let one = serde_json::from_str::<serde_json::Value>(BODY).expect("JSON");
    write("two.jsonl", &format!("{one}\n{one}\n"));
    let out = told(&[SENTENCE, "--body", "two.jsonl"]);
    assert!(
        out.contains("protocol/unanswered-call") && !out.contains("It refers to"),
        "{out}"
    );

    // No setting hides the mistake in a rejected request.
    let out = told(&[
        SENTENCE,
        "--body",
        "body.json",
        "--allow",
        "protocol/unanswered-call",
    ]);
    assert!(out.contains("In the body:"), "{out}");
}

#[test]
fn the_command_takes_words_without_quotes_and_refuses_empty_files() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let words: Vec<&str> = SENTENCE.split(' ').collect();
    let told = why400(folder.path(), &words);
    assert_eq!(told.status.code(), Some(0));

    fs::write(folder.path().join("empty.err"), "\n").expect("writable");
    let told = why400(folder.path(), &["empty.err"]);
    let err = String::from_utf8_lossy(&told.stderr);
    assert!(
        told.status.code() == Some(2) && err.contains("`empty.err` is empty"),
        "{err}"
    );
    fs::write(folder.path().join("odd.err"), "the odd thing").expect("writable");
    let told = why400(folder.path(), &["odd.err"]);
    let out = String::from_utf8_lossy(&told.stdout);
    assert!(!out.contains("There is no file"), "{out}");
    let told = why400(folder.path(), &["the", "odd.err"]);
    let err = String::from_utf8_lossy(&told.stderr);
    assert!(
        told.status.code() == Some(2) && err.contains("--body odd.err"),
        "{err}"
    );
    let told = why400(folder.path(), &["missing.err"]);
    let out = String::from_utf8_lossy(&told.stdout);
    assert!(out.contains("There is no file `missing.err`"), "{out}");
}

#[test]
fn a_debug_log_has_the_message_and_the_body() {
    let sent = |role: &str, status: &str| {
        format!(
            "[12:00 - anthropic._base_client:482 - DEBUG] Request options: {{'method': 'post', 'url': '/v1/messages', 'json_data': {{'model': \
             'claude-sonnet-5-5', 'max_tokens': 10, 'messages': [{{'role': '{role}', 'content': \"It's error 429: rate limit\"}}]}}}}\n\
             [12:00 - httpx:1025 - INFO] HTTP Request: POST https://api.anthropic.com/v1/messages \"HTTP/1.1 {status}\"\n"
        )
    };
    let log = format!(
        "{}{}Traceback (most recent call last):\nanthropic.BadRequestError: Error code: 400 - {{'type': 'error', 'error': {{'type': \
         'invalid_request_error', 'message': 'messages: Unexpected role \"tool\". Allowed roles are \"user\" or \"assistant\"'}}}}\n",
        sent("user", "200 OK"),
        sent("tool", "400 Bad Request"),
    );
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("debug.log"), log).expect("written");
    let told = why400(folder.path(), &["debug.log", "--format", "json"]);
    let all: serde_json::Value = serde_json::from_slice(&told.stdout).expect("JSON");
    assert_eq!(all.as_array().map(Vec::len), Some(1), "{all}");
    assert_eq!(all[0]["explanations"][0]["basis"], "sentence");
    assert_eq!(all[0]["explanations"][0]["provider"], "anthropic");
    let found = all[0]["findings"][0].to_string();
    assert!(found.contains("/messages/0/role"), "{all}");
    // A Python dictionary is a body, too.
    let body = "{'model': 'claude-sonnet-5-5', 'max_tokens': 10, 'messages': [{'role': 'tool', 'content': 'a'}]}";
    fs::write(folder.path().join("body.txt"), body).expect("written");
    let told = why400(
        folder.path(),
        &["messages: Unexpected role", "--body", "body.txt"],
    );
    let told = String::from_utf8(told.stdout).expect("UTF-8");
    assert!(
        told.contains("body.txt:1:") && !told.contains("lint/syntax"),
        "{told}"
    );
}

#[test]
fn what_is_no_answer_or_another_request_is_told() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let write =
        |name: &str, text: &str| fs::write(folder.path().join(name), text).expect("writable");
    write("body.json", BODY);
    let elsewhere = SENTENCE.replace("messages.1", "messages.7");
    assert_ne!(elsewhere, SENTENCE);
    let told = why400(folder.path(), &[&elsewhere, "--body", "body.json"]);
    let out = String::from_utf8_lossy(&told.stdout);
    assert!(
        out.contains("it may not be the request that was rejected") && out.contains("In the body:"),
        "{out}"
    );
    assert!(!out.contains("It refers to"), "{out}");

    let told = why400(folder.path(), &["body.json"]);
    let out = String::from_utf8_lossy(&told.stdout);
    assert!(
        told.status.code() == Some(1) && out.contains("this is a request, not an error response"),
        "{out}"
    );
    let told = why400(folder.path(), &["session.har"]);
    let err = String::from_utf8_lossy(&told.stderr);
    assert!(
        told.status.code() == Some(2) && err.contains("there is no file `session.har`"),
        "{err}"
    );

    // A LiteLLM record contains both body and answer.
    let record = serde_json::json!({
        "call_type": "anthropic_messages", "litellm_call_id": "a", "status": "failure",
        "model": "claude-sonnet-5", "model_parameters": {"max_tokens": 9}, "messages": serde_json::from_str::<serde_json::Value>(BODY).expect("JSON")["messages"],
        "error_str": format!("litellm.BadRequestError: AnthropicException - {SENTENCE}"),
    });
    write("record.json", &record.to_string());
    let told = why400(folder.path(), &["record.json"]);
    let out = String::from_utf8_lossy(&told.stdout);
    assert!(
        told.status.code() == Some(0) && out.contains("protocol/unanswered-call"),
        "{out}"
    );
    assert!(!out.contains("unknown-field"), "{out}");
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "takes long")]
fn a_sentence_is_found_in_a_large_log() {
    let mut noise = String::new();
    for number in 0..50_000 {
        writeln!(noise, "{number} INFO {{ 'a': b model: none {number:x}")
            .expect("a string takes it");
    }
    let found = Dictionary::bundled().explain(&format!("{noise}ERROR {SENTENCE}\n{noise}"));
    assert_eq!(
        found[0].refusal.reason,
        Reason::Rule("protocol/unanswered-call".to_owned())
    );
    // Messages on every line: at least some are reported.
    let quoted: String = noise.replace("model: none", "'Model not found: none");
    assert!(!Dictionary::bundled().explain(&quoted).is_empty());
    assert!(Dictionary::bundled().explain("").is_empty());
    assert!(
        Dictionary::bundled()
            .explain(&"{".repeat(100_000))
            .is_empty()
    );
}

#[test]
fn what_a_conversation_says_is_no_answer() {
    let body =
        serde_json::json!({"model": "m", "messages": [{"role": "user", "content": SENTENCE}]})
            .to_string();
    assert!(Dictionary::bundled().explain(&body).is_empty());
}
