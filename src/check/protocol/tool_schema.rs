//! `protocol/tool-schema`: an argument schema that the API cannot use.

use serde_json::Value;

use super::moonshot_schema::{check_moonshot, moonshot_recursion};
use super::pattern::unread_by_grammar;
use super::references;
use super::schemas::{check_groq_patterns, check_openai_patterns, properties_without};
use super::tools::{DeclaredTool, tools};
use super::{Found, Subject, body_rule};
use crate::check::About;
use crate::diag::Severity;
use crate::json::subschemas::{no_schemas, visit};
use crate::provider::{Server, ToolForm};
use crate::text::cut;

body_rule! {
    Error "protocol/tool-schema", "a tool's argument schema is rejected",
    "The arguments of a tool are an object, and the root of their schema must say so:\n\n\
     * OpenAI and Anthropic reject `anyOf`, `oneOf` and `allOf` at the root; OpenAI also rejects `enum` and `not`\n\
     * Anthropic accepts property names at the root that are 1 to 64 letters, digits, `_`, `.` and `-`\n\
     * OpenAI requires `\"type\": \"object\"` and `properties` at the root, and `items` in every array (a warning if the array is in a \
     list of types)\n\
     * OpenAI, Anthropic and Mistral require valid JSON Schema: only existing types, an object as `properties`, a list as `required`. For \
     other providers, an invalid schema is a warning\n\
     * Anthropic and Mistral require numbers as limits: `exclusiveMinimum` was a boolean up to draft 4. Claude Opus 4.8 and newer models \
     reject an array as `items`; in draft 2020-12, the keyword for it is `prefixItems` (reported as a warning)\n\n\
     Ollama passes on types, descriptions, `enum`, `anyOf`, properties, and all of `items` and of `$defs` at the root. It silently drops \
     everything else. A dropped keyword is a warning if it defines which values are allowed (`pattern`, `const`, `oneOf`, `allOf`, \
     `$ref`); dropped limits are not reported. Reports say that Ollama's template for gpt-oss fails for a property without `type`, and \
     that a `pattern` in `items` fails if it contains escapes that grammars do not support, such as `\\/` and `\\-` (reported as \
     warnings).\n\n\
     OpenAI compiles each `pattern` with Python's `re`, which rejects `\\p{L}` and other syntax that only JavaScript has: `\\u{…}`, \
     `(?<name>…)`, `[\\w-.]` (all but `\\p` are warnings, because the known reports mention only `\\p`). It also rejects a `pattern` \
     with lookahead or lookbehind (`(?=`, `(?!`, `(?<=`, `(?<!`), such as Zod's pattern for an email address. Groq compiles patterns with Go's `regexp`, \
     which has no look-around; its other restrictions are warnings, as are those on names in `patternProperties`. Fireworks \
     rejects a `$ref` to a definition that the schema does not contain; so does Anthropic in strict tools. Elsewhere, this is a warning: \
     for Claude, a report and a recording disagree. A `$ref` to a web address \
     is always a warning.\n\n\
     DeepSeek requires `\"type\": \"object\"` at the root, and does not read patterns with `[` within a class or with `\\0`. MiniMax \
     requires a schema for every tool; according to a report, Databricks does too (reported as a warning).\n\n\
     Moonshot requires `\"type\": \"object\"` at the root, a `type` (or alternatives, or a reference) for every property, a single schema \
     as `items`, only existing properties in `required`, and references into `$defs` or to `#`. A property's schema cannot be `true` or \
     `false`. Moonshot rejects `type` next to `$ref`, and properties with the names `$ref`, `$defs`, `anyOf`, `required` or \
     `additionalProperties`. These are warnings: other keywords next to `$ref` that the referenced schema also has, `type` next to `anyOf` \
     (reports disagree), and keywords next to several types. An `enum` must not be empty, and each of its values must have the declared \
     type; a keyword must not be both next to `anyOf` and in one of the schemas in `anyOf`; a schema must not require itself.\n\n\
     Gateways pass requests on, so a schema that DeepSeek, MiniMax or Moonshot rejects is a warning if one of their models is called \
     through OpenRouter or an unknown server.\n\n\
     LM Studio requires `properties` at the root. According to user reports, Groq rejects `required` without properties (an empty \
     list next to empty `properties` is accepted), and Volcengine rejects a list of types. For all other servers, a root whose type is not `object` is a warning.\n\n\
     llama.cpp builds a grammar from the schemas: each schema needs a `type` or alternatives, and each pattern must begin with `^` and end \
     with `$`, without look-around and without escapes that grammars do not support, such as `\\/` and `\\d` (reported as warnings, \
     because not every chat template uses a grammar).\n\n\
     Gemini's `parameters` are covered by `protocol/schema-keyword`.\n\n\
     * wrong: `{ \"anyOf\": [{ \"required\": [\"path\"] }, { \"required\": [\"url\"] }], … }`\n\
     * right: `{ \"type\": \"object\", \"properties\": … }`, with the alternatives in the description",
    seen "2026-11" {
        "pkg:pypi/mistral-common@1.13.1#protocol/instruct/validator.py":
            "Mistral requires a valid JSON Schema",
        "pkg:github/ollama/ollama@fb30760#api/types.go":
            "Ollama's `ToolProperty` reads only some keywords; `Items` and `Defs` are any value",
        "ollama/ollama#17142": "Ollama drops `default` and the limits of values",
        "ollama/ollama#18226": "Ollama: *failed to parse grammar*, for `\\/` and `\\-` in a pattern in `items`, measured",
        "tombii/better-ccflare#357": "OpenAI: *regex lookaround is not supported*; Claude accepts it",
        "vercel/ai#21037": "OpenAI: the same error, measured",
        "anomalyco/opencode#32073": "OpenAI: the same error, for the tools of Figma",
        "BerriAI/litellm#40485": "OpenAI: *is not a 'regex'*, measured with `\\p{Cc}`; Python's `re` decides",
        "bman654/clodex#195": "OpenAI: the same error, measured",
        "langfuse/langfuse#14770": "OpenAI: the same error, with `\\p{L}`",
        "pleaseai/shunt#488": "OpenAI: the same error; lists what `re` rejects, also in names of `patternProperties`",
        "CodeWithCJ/SparkyFitness#1649": "Groq: *is not valid 'regex'*, for a pattern with lookahead",
        "CodeWithCJ/SparkyFitness#1688": "Groq: the same error, with the path of Go's validator",
        "colinhacks/zod#5034": "Groq: the same error, in a response schema",
        "cline/cline#8433": "Claude: *Invalid $ref in schema: … does not exist*",
        "BerriAI/litellm#26692": "Fireworks: *Error resolving schema reference*",
        "recorded: dspy.rb, spec/vcr_cassettes/examples/html_to_markdown/ast_code_block.yml":
            "Claude Haiku 4.5 accepts a lost reference",
        "vercel/ai#18921": "lists what Moonshot's validator rejects, measured",
        "14790897/MiqroForge-Desktop#1165":
            "Moonshot: *parameters.type is required and must be \"object\"*, measured; `type` next to `anyOf` is accepted",
        "MoonshotAI/kimi-cli#178":
            "Moonshot: *missing 'type' or 'anyOf' key in parameter type*",
        "earendil-works/pi#5822": "Moonshot: *At path 'properties.task': type is not defined*",
        "earendil-works/pi#4138": "Moonshot, through OpenCode: the same error",
        "tailcallhq/forgecode#3123": "Moonshot, through OpenRouter, rejects such schemas",
        "end-4/dots-hyprland#3640": "DeepSeek: *must be a JSON Schema of 'type: \"object\"'*, measured with `{}`",
        "vercel/ai#7924": "DeepSeek: the same error, with properties",
        "farion1231/cc-switch#5490": "DeepSeek: the same error, with `oneOf`",
        "zed-industries/zed#64386": "DeepSeek: *is not a \"regex\"*, with `\\0`",
        "Dokploy/mcp#43": "DeepSeek: the same error, with `[` within a class",
        "Yachiyo-5i/xLyra#71": "DeepSeek: the same error",
        "QwenLM/qwen-code#11834": "MiniMax: *function parameters is empty*, measured",
        "QwenLM/qwen-code#11905": "MiniMax: the same error",
        "posit-dev/querychat#273":
            "Databricks: *\"parameters\" is a required property*",
        "pkg:github/MoonshotAI/walle#validator.go":
            "Moonshot's validator rejects `type` next to `$ref`, and reserved property names",
        "lidge-jun/opencodex#2673":
            "Moonshot: *when using $ref, type should be defined in the referenced schema*",
        "pydantic/logfire#2191": "Moonshot: *properties.$ref: $ref must be a string*",
        "olimorris/codecompanion.nvim#1990":
            "Ollama: *error calling index: reflect: slice index out of range*, for a property without `type`",
        "MoonshotAI/kimi-cli#1903":
            "Moonshot: *conflicting keywords found after $ref expansion*",
        "MoonshotAI/kimi-code#2661":
            "Moonshot: *type should be defined in anyOf items*, at the root",
        "MoonshotAI/kimi-code#792": "Moonshot: the same error",
        "MoonshotAI/kimi-cli#2531": "Moonshot: the same error",
        "abhigyanpatwari/GitNexus#2703": "Moonshot: the same error",
        "FTShare-Lab/FTShare-MCP#7": "Moonshot: the same error, for 18 tools",
        "CommandCodeAI/command-code#594":
            "Moonshot: *not a valid moonshot flavored json schema*",
        "Dokploy/mcp#74": "Claude rejects a boolean as `exclusiveMinimum`",
        "anthropics/claude-code#63673":
            "Claude: *JSON schema is invalid. It must match JSON Schema draft 2020-12*",
        "openclaw/openclaw#98588": "Claude Opus 4.8 rejects an array as `items`, 4.7 accepts it",
        "anthropics/claude-code#40075": "Claude rejects `anyOf` at the root",
        "anomalyco/opencode#35516": "Claude: the same error",
        "n8n-io/n8n#30590": "Claude: *Property keys should match pattern*",
        "aws-solutions-library-samples/accelerated-intelligent-document-processing-on-aws#709":
            "Claude on Bedrock: the same error, measured; below the root, any name is accepted",
        "erikmaday/unusual-whales-mcp#57": "Claude: the same error",
        "chatanywhere/GPT_API_free#403":
            "OpenAI: *must have type 'object' and not have \
             'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level*",
        "Mintplex-Labs/anything-llm#6273": "LM Studio requires `properties`",
        "lmstudio-ai/lmstudio-bug-tracker#2203": "LM Studio: the same error",
        "ggml-org/llama.cpp#19716":
            "llama.cpp: *Unrecognized schema*, for a property with only a description",
        "containers/kubernetes-mcp-server#758":
            "llama.cpp: *Pattern must start with '^' and end with '$'*",
        "openclaw/openclaw#107430": "llama.cpp: the same error",
        "ggml-org/llama.cpp#27397": "llama.cpp: *failed to parse grammar*, for `\\/` in a pattern",
        "ggml-org/llama.cpp#27580": "llama.cpp: the same error, for `\\d`, `\\w` and `\\s`",
        "codefuturist/email-mcp#72": "llama.cpp: the same error, for a pattern with lookahead",
        "agno-agi/agno#3004": "Volcengine: *Invalid function format: unhashable type: 'list'*",
        "oracle/langchain-oracle#45": "xAI: *Invalid function schema*",
        "usestrix/strix#1088": "Groq: *'required' present but 'properties' is missing*",
        "livekit/agents#5082": "Groq: the same error, for an empty list",
        "can1357/oh-my-pi#5952": "Moonshot: *must be an object*, for `true`",
        "can1357/oh-my-pi#5918": "Moonshot: the same error",
        "https://github.com/envoyproxy/ai-gateway/blob/main/internal/translator/jsonschema_helper.go":
            "Envoy AI Gateway: *ref paths must start with '#/'*",
        "vercel/ai#2271":
            "OpenAI: *is not of type 'object', 'boolean'*, for a list as `items`",
        "spring-projects/spring-ai#4776": "OpenAI: *object schema missing properties*",
        "tailcallhq/forgecode#1359": "OpenAI: the same error",
        "sigoden/aichat#1049": "OpenAI: *array schema missing items*",
        "modelscope/ms-agent#610": "OpenAI: the same error",
    }
}

/// The JSON Schema types.
const TYPES: [&str; 7] = [
    "string", "number", "integer", "boolean", "object", "array", "null",
];

fn check<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let facts = subject.wire.facts();
    if subject.member("tools").is_none() || facts.tools == ToolForm::Declarations {
        return;
    }
    let (is_openai, is_anthropic) = (subject.server.is_openai(), subject.server.is_claude());
    let is_sure = is_openai || is_anthropic || subject.server == Server::Mistral;
    let (moonshot, deepseek) = (
        subject.level_of(Server::Moonshot),
        subject.level_of(Server::DeepSeek),
    );
    without_parameters(subject, found);
    for tool in tools(subject) {
        let Some(schema) = tool.schema() else {
            continue;
        };
        if is_openai || is_anthropic {
            check_root(schema, is_openai, found);
        }
        if is_anthropic {
            check_names(schema, found);
        }
        visit(schema, &mut |inner| {
            check_node(inner, is_openai, is_sure, found);
            check_values(inner, is_sure && !is_openai, found);
            if is_anthropic {
                check_tuples(inner, found);
            }
        });
        if is_openai {
            visit(schema, &mut |inner| check_openai_patterns(inner, found));
        }
        if moonshot.is_none() {
            let needs_targets =
                subject.server == Server::Fireworks || is_anthropic && tool.is_strict();
            visit(schema, &mut |inner| {
                check_reference(schema, inner, needs_targets, found);
            });
        }
        let from = found.len();
        if let Some(level) = deepseek {
            object_root(schema, "DeepSeek", found);
            visit(schema, &mut |inner| check_pattern(inner, found));
            found.at_most(level, from);
        }
        if let Some(level) = moonshot {
            object_root(schema, "Moonshot", found);
            moonshot_recursion(schema, found);
            visit(schema, &mut |inner| check_moonshot(schema, inner, found));
            found.at_most(level, from);
        }
        if facts.drops_keywords {
            check_ollama(schema, found);
        }
        if subject.server == Server::Ollama && subject.model.is_some_and(is_gpt_oss) {
            untyped_properties(schema, found);
        }
        if is_openai {
            check_object(&tool, schema, found);
        }
        match subject.server {
            Server::LmStudio => lmstudio_root(schema, found),
            Server::Groq => visit(schema, &mut |inner| {
                required_alone(inner, std::ptr::eq(inner, schema), found);
                check_groq_patterns(inner, found);
            }),
            Server::Volcengine => visit(schema, &mut |inner| several_types(inner, found)),
            Server::LlamaCpp => visit(schema, &mut |inner| check_llamacpp(inner, found)),
            _ => {}
        }
        if !is_sure && moonshot.is_none() && deepseek.is_none() {
            other_root(schema, found);
        }
    }
}

/// Reports a root whose type is not `object`, for servers without more specific rules.
fn other_root<'b>(schema: &'b Value, found: &mut Found<'b>) {
    let root = schema.get("type").filter(|root| root.is_string());
    if root.is_some() && !super::schemas::is_of_type(schema, "object") {
        found
            .at_member(
                schema,
                "type",
                "the arguments must be an object: servers reject or ignore other types",
            )
            .warning()
            .help("wrap it in an object with one property");
    }
}

/// Reports a reference to a definition that the schema does not contain. It is an error for strict
/// tools at Anthropic, and for Fireworks, which reject such a reference. The behaviour of other
/// servers is unknown.
fn check_reference<'b>(
    root: &'b Value,
    inner: &'b Value,
    is_rejected: bool,
    found: &mut Found<'b>,
) {
    if references::is_lost(root, inner) {
        let note = found.at_member(
            inner,
            "$ref",
            "this reference points to a schema that does not exist",
        );
        let note = if is_rejected { note } else { note.warning() };
        note.known_from(&["cline/cline#8433", "BerriAI/litellm#26692"])
            .help("add the schema under `$defs` at the root of the schema, or write it here");
    } else if references::of(inner).is_some_and(|target| is_elsewhere(root, target)) {
        found
            .at_member(
                inner,
                "$ref",
                "servers do not load schemas from other addresses",
            )
            .warning()
            .help("add the schema under `$defs` at the root of the schema, or write it here");
    }
}

/// Returns `true` if a reference points to a web address that is not the schema's own `$id`.
fn is_elsewhere(root: &Value, target: &str) -> bool {
    let own = root.get("$id").and_then(Value::as_str);
    target.contains("://") && !own.is_some_and(|own| target.starts_with(own))
}

/// Reports a list of types, which Volcengine may reject.
fn several_types<'b>(inner: &'b Value, found: &mut Found<'b>) {
    if inner.get("type").is_some_and(Value::is_array) {
        found
            .at_member(
                inner,
                "type",
                "a report says that Volcengine rejects a list of types",
            )
            .warning()
            .help("write `anyOf` with a schema for each type");
    }
}

/// Reports an argument schema without `properties`, which LM Studio rejects.
fn lmstudio_root<'b>(schema: &'b Value, found: &mut Found<'b>) {
    if schema.is_object() && schema.get("properties").is_none() && schema.get("$ref").is_none() {
        found
            .at_member(
                schema,
                "properties",
                "LM Studio requires `properties` in the argument schema",
            )
            .help("write `\"properties\": {}` if there are none");
    }
}

/// Reports `required` without properties, which Groq may reject. An empty list is reported only at
/// the root, and only if `properties` is absent.
fn required_alone<'b>(inner: &'b Value, is_root: bool, found: &mut Found<'b>) {
    let properties = inner.get("properties").and_then(Value::as_object);
    let is_empty = properties.is_none_or(serde_json::Map::is_empty);
    let is_missing_at_root = is_root && properties.is_none();
    let required = inner.get("required").and_then(Value::as_array);
    // Recorded: an empty list next to empty properties is accepted (rig, groq/agent_tool_sessions).
    if is_empty && required.is_some_and(|names| is_missing_at_root || !names.is_empty()) {
        found
            .at_member(
                inner,
                "required",
                "according to user reports, Groq rejects `required` without properties",
            )
            .known_from(&["usestrix/strix#1088", "livekit/agents#5082"])
            .warning()
            .help("declare the properties, or leave `required` out");
    }
}

/// Reports functions without a schema, for servers that require one.
fn without_parameters<'b>(subject: &Subject<'b>, found: &mut Found<'b>) {
    let (server, is_sure) = match subject.level_of(Server::MiniMax) {
        Some(level) => (Server::MiniMax, level == Severity::Error),
        None if [Server::Databricks, Server::Volcengine].contains(&subject.server) => {
            (subject.server, false)
        }
        None => return,
    };
    for tool in tools(subject)
        .iter()
        .filter(|tool| tool.is_function() && tool.schema().is_none())
    {
        let message = format!(
            "{} requires `{}` for every tool",
            server.name(),
            tool.schema_key
        );
        let note = found.at_member(tool.object, tool.schema_key, message);
        let note = if is_sure { note } else { note.warning() };
        note.help("write `{ \"type\": \"object\", \"properties\": {} }` if there are no arguments");
    }
}

/// Reports a pattern that `DeepSeek`'s regex engine cannot parse.
fn check_pattern<'b>(inner: &'b Value, found: &mut Found<'b>) {
    let pattern = inner.get("pattern").and_then(Value::as_str);
    if let Some(what) = pattern.and_then(unread_by_deepseek) {
        found
            .at_member(
                inner,
                "pattern",
                format!("DeepSeek cannot read this pattern: {what}"),
            )
            .known_from(&[
                "zed-industries/zed#64386",
                "Dokploy/mcp#43",
                "Yachiyo-5i/xLyra#71",
            ])
            .help("remove `pattern`, and describe the form in the description");
    }
}

/// Returns a phrase for the part of a pattern that only JavaScript accepts: a null character, or a
/// class that contains an unescaped bracket.
pub(crate) fn unread_by_deepseek(pattern: &str) -> Option<&'static str> {
    let mut characters = pattern.chars();
    let mut depth = 0_usize;
    while let Some(c) = characters.next() {
        match c {
            // This test also consumes the escaped character.
            '\\' if characters.next() == Some('0') => return Some("it contains `\\0`"),
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    (depth > 0).then_some("a class contains `[` without a backslash")
}

fn check_root<'b>(schema: &'b Value, is_openai: bool, found: &mut Found<'b>) {
    let refused: &[&str] = if is_openai {
        &["anyOf", "oneOf", "allOf", "enum", "not"]
    } else {
        &["anyOf", "oneOf", "allOf"]
    };
    for name in refused.iter().filter(|name| schema.get(**name).is_some()) {
        let note = found.at_member(
            schema,
            name,
            format!("the argument schema cannot contain `{name}` at its root"),
        );
        note.known_from(&["chatanywhere/GPT_API_free#403", "anthropics/claude-code#40075", "anomalyco/opencode#35516"]).help(
            "declare an object with all properties, and explain in the description which ones belong together",
        );
    }
}

/// Reports property names that Anthropic does not accept. Anthropic checks only the names at the
/// root.
fn check_names<'b>(schema: &'b Value, found: &mut Found<'b>) {
    let properties = schema.get("properties").and_then(Value::as_object);
    for (name, value) in properties.into_iter().flatten() {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
        if (1..=64).contains(&name.len()) && name.chars().all(is_plain) {
            continue;
        }
        let message = format!(
            "the argument name `{}` must consist of 1 to 64 letters, digits, `_`, `.` and `-`",
            cut(name, 40)
        );
        found
            .at(value, message)
            .known_from(&["n8n-io/n8n#30590", "aws-solutions-library-samples/accelerated-intelligent-document-processing-on-aws#709", "erikmaday/unusual-whales-mcp#57"])
            .help("rename it, and explain it in the description");
    }
}

/// A function that tests whether a keyword's value has the type that JSON Schema requires.
type IsRight<'f> = &'f dyn Fn(&Value) -> bool;

/// Keywords that restrict a value, but that Ollama drops.
const OLLAMA_DROPS: [&str; 5] = ["pattern", "const", "oneOf", "allOf", "$ref"];

/// Reports a root that does not declare the arguments as an object.
fn object_root<'b>(schema: &'b Value, server: &str, found: &mut Found<'b>) {
    if schema.is_object() && !super::schemas::is_of_type(schema, "object") {
        let message =
            format!("{server} requires `\"type\": \"object\"` at the root of the argument schema");
        found
            .at_member(schema, "type", message)
            .known_from(&[
                "14790897/MiqroForge-Desktop#1165",
                "end-4/dots-hyprland#3640",
                "vercel/ai#7924",
                "farion1231/cc-switch#5490",
            ])
            .help("add it");
    }
}

/// Returns `true` for the models whose template in Ollama reads the type of each property.
fn is_gpt_oss(model: &str) -> bool {
    model.starts_with("gpt-oss")
}

/// Reports argument properties without a type.
fn untyped_properties<'b>(schema: &'b Value, found: &mut Found<'b>) {
    for property in properties_without(schema, &["type"]) {
        found
            .at(
                property,
                "a report says that Ollama's template for this model fails for a property without `type`",
            )
            .warning()
            .help("add `type`");
    }
}

/// The keywords that llama.cpp can convert to a grammar. A schema with none of them is rejected,
/// unless it is empty.
const LLAMACPP_READS: [&str; 12] = [
    "$ref",
    "oneOf",
    "anyOf",
    "allOf",
    "type",
    "const",
    "enum",
    "properties",
    "additionalProperties",
    "items",
    "prefixItems",
    "pattern",
];

fn check_llamacpp<'b>(inner: &'b Value, found: &mut Found<'b>) {
    let is_read = |members: &serde_json::Map<String, Value>| {
        members.is_empty()
            || LLAMACPP_READS
                .iter()
                .any(|name| members.contains_key(*name))
    };
    if inner.as_object().is_some_and(|members| !is_read(members)) {
        found
            .at(
                inner,
                "llama.cpp cannot convert this schema to a grammar, because it has no `type`",
            )
            .warning()
            .help("add `type`");
    }
    let pattern = inner.get("pattern").and_then(Value::as_str);
    let is_anchored = |it: &str| it.starts_with('^') && it.ends_with('$');
    if pattern.is_some_and(|it| !is_anchored(it)) {
        found
            .at_member(
                inner,
                "pattern",
                "llama.cpp rejects a pattern that does not begin with `^` and end with `$`",
            )
            .known_from(&[
                "containers/kubernetes-mcp-server#758",
                "openclaw/openclaw#107430",
            ])
            .warning()
            .help("anchor the pattern, or remove it and describe the form in the description");
    } else if let Some(what) = unread_pattern(inner) {
        found
            .at_member(
                inner,
                "pattern",
                format!("llama.cpp cannot convert a pattern that contains `{what}` to a grammar"),
            )
            .warning()
            .known_from(&[
                "ggml-org/llama.cpp#27397",
                "ggml-org/llama.cpp#27580",
                "codefuturist/email-mcp#72",
            ])
            .help(WITHOUT_ESCAPE);
    }
}

/// Checks the parts of a schema that Ollama parses: the root, the root's properties, and the
/// properties of those. Ollama passes `items` and `$defs` on unchanged.
fn check_ollama<'b>(root: &'b Value, found: &mut Found<'b>) {
    if root.get("anyOf").is_some() {
        ollama_drops(root, "anyOf", found);
    }
    ollama_schema(root, found);
    visit(root, &mut |inner| {
        if let Some(items) = inner.get("items") {
            visit(items, &mut |inner| ollama_grammar(inner, found));
        }
    });
}

/// Reports the keywords that Ollama drops from a schema and from the schema's properties and
/// alternatives. Bodies have a maximum depth, which ends the recursion.
fn ollama_schema<'b>(inner: &'b Value, found: &mut Found<'b>) {
    for name in OLLAMA_DROPS
        .iter()
        .filter(|name| inner.get(**name).is_some())
    {
        ollama_drops(inner, name, found);
    }
    let properties = inner.get("properties").and_then(Value::as_object);
    let alternatives = inner.get("anyOf").and_then(Value::as_array);
    properties
        .into_iter()
        .flat_map(serde_json::Map::values)
        .chain(alternatives.into_iter().flatten())
        .for_each(|inner| ollama_schema(inner, found));
}

fn ollama_drops<'b>(inner: &'b Value, name: &str, found: &mut Found<'b>) {
    let note = found.at_member(
        inner,
        name,
        format!("Ollama drops `{name}` before the model sees the schema"),
    );
    note.about(About::Effect)
        .known_from(&[
            "pkg:github/ollama/ollama@fb30760#api/types.go",
            "ollama/ollama#17142",
        ])
        .warning()
        .help("describe this constraint in the description instead");
}

/// Finds a pattern that Ollama keeps, because it is in `items`, and that llama.cpp cannot convert.
fn ollama_grammar<'b>(inner: &'b Value, found: &mut Found<'b>) {
    if let Some(what) = unread_pattern(inner) {
        found
            .at_member(
                inner,
                "pattern",
                format!(
                    "according to a user report, Ollama cannot convert a pattern in `items` to a grammar if it contains `{what}`"
                ),
            )
            .warning()
            .known_from(&["ollama/ollama#18226"])
            .help(WITHOUT_ESCAPE);
    }
}

/// The advice about a pattern that llama.cpp cannot convert to a grammar.
const WITHOUT_ESCAPE: &str = "write it without this part, such as `/` for `\\/`, `[0-9]` for `\\d` and `-` at the end of a class, \
     or leave out the pattern";

/// Returns the part of a schema's pattern that llama.cpp cannot convert to a grammar.
fn unread_pattern(inner: &Value) -> Option<String> {
    let pattern = inner.get("pattern").and_then(Value::as_str)?;
    unread_by_grammar(pattern)
}

fn check_object<'b>(tool: &DeclaredTool<'b>, schema: &'b Value, found: &mut Found<'b>) {
    let composed = ["anyOf", "oneOf", "allOf", "enum", "not", "$ref"];
    if composed.iter().any(|name| schema.get(*name).is_some()) {
        return;
    }
    if schema.get("type") != Some(&"object".into()) {
        let note = found.at(
            schema,
            "the argument schema must have `\"type\": \"object\"`",
        );
        note.known_from(&["chatanywhere/GPT_API_free#403"])
            .help(format!(
                "if the tool has no arguments, leave out `{}`",
                tool.schema_key
            ));
    } else if schema.get("properties").is_none() {
        let note = found.at_member(
            schema,
            "properties",
            "the argument schema has no `properties`",
        );
        note.known_from(&[
            "spring-projects/spring-ai#4776",
            "tailcallhq/forgecode#1359",
        ])
        .help("write `\"properties\": {}` if there are none");
    }
}

fn not_a_schema(name: &str, found: &Value, says: &str) -> String {
    let found = match found {
        Value::String(text) => format!("`{}`", cut(text, 40)),
        other => crate::json::kind_of(other).to_owned(),
    };
    format!("this is not a JSON Schema: `{name}` is {found}, but must be {says}")
}

fn check_node<'b>(inner: &'b Value, is_openai: bool, is_sure: bool, found: &mut Found<'b>) {
    if is_openai {
        super::schemas::check_items(inner, found);
    }
    if is_openai && inner.get("items").is_some_and(Value::is_array) {
        found
            .at_member(inner, "items", "OpenAI rejects a list as `items`")
            .known_from(&["vercel/ai#2271"])
            .help("write one schema for all elements");
    }
    let rules: [(&str, IsRight<'_>, &str); 7] = [
        (
            "type",
            &|value| {
                is_name(value)
                    || value
                        .as_array()
                        .is_some_and(|names| names.iter().all(is_name))
            },
            "a type of JSON Schema, or a list of types",
        ),
        ("required", &is_list, "a list of names"),
        ("enum", &is_list, "a list of values"),
        ("properties", &|value| value.is_object(), "an object"),
        ("anyOf", &is_list, "a list of schemas"),
        ("description", &|value| value.is_string(), "a string"),
        ("$defs", &|value| value.is_object(), "an object"),
    ];
    for value in no_schemas(inner) {
        let kind = crate::json::kind_of(value);
        let note = found
            .at(value, format!("expected a JSON Schema, not {kind}"))
            .about(About::Form);
        let note = if is_sure { note } else { note.warning() };
        note.help("write an object: `{ \"type\": … }`");
    }
    for (name, is_right, says) in rules {
        check_keyword(inner, name, is_right, says, is_sure, found);
    }
}

/// The keywords whose value must be a number since draft 6.
const NUMBERS: [&str; 5] = [
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minimum",
    "maximum",
    "multipleOf",
];
/// The keywords whose value must be a non-negative integer.
const COUNTS: [&str; 6] = [
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
];

/// Reports keywords whose value the meta-schema does not allow.
fn check_values<'b>(inner: &'b Value, is_sure: bool, found: &mut Found<'b>) {
    let kinds: [(&[&str], IsRight<'_>, &str); 3] = [
        (&NUMBERS, &|value| value.is_number(), "a number"),
        (&["pattern"], &|value| value.is_string(), "a string"),
        (&COUNTS, &is_count, "a non-negative integer"),
    ];
    for (names, is_right, says) in kinds {
        for name in names.iter().copied() {
            check_keyword(inner, name, is_right, says, is_sure, found);
        }
    }
}

/// Reports a keyword whose value does not have the expected form.
fn check_keyword<'b>(
    inner: &'b Value,
    name: &str,
    is_right: IsRight<'_>,
    says: &str,
    is_sure: bool,
    found: &mut Found<'b>,
) {
    if inner.get(name).is_some_and(|value| !is_right(value)) {
        let note = found
            .at_member(inner, name, not_a_schema(name, &inner[name], says))
            .about(About::Form);
        let note = if is_sure { note } else { note.warning() };
        note.help("write valid JSON Schema");
    }
}

/// Reports an array as `items`. In draft 2020-12, the keyword for an array is `prefixItems`.
fn check_tuples<'b>(inner: &'b Value, found: &mut Found<'b>) {
    if let Some(items) = inner.get("items").filter(|items| items.is_array()) {
        found
            .at(
                items,
                "Anthropic's newer models reject an array here: in draft 2020-12, `items` is a single schema",
            )
            .about(About::Form)
            .warning()
            .known_from(&["openclaw/openclaw#98588"])
            .help("write `prefixItems`, or one schema for all elements");
    }
}

fn is_count(value: &Value) -> bool {
    value
        .as_f64()
        .is_some_and(|number| number >= 0.0 && number.fract() == 0.0)
}

fn is_list(value: &Value) -> bool {
    value.is_array()
}

fn is_name(value: &Value) -> bool {
    value.as_str().is_some_and(|name| TYPES.contains(&name))
}
