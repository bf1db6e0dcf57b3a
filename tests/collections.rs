//! Collections of agents that compile without changes: `tests/collections/flat/` is a folder of
//! profiles for the original engine, without a `reqc.toml`; `tests/collections/nested/` sets
//! `dialect = "inja"`.

use std::path::Path;
use std::sync::Arc;

use reqc::compile::{Compiler, PolicyOptions, Selection};
use reqc::diag::{Diagnostic, Severity};
use reqc::repo::LoadOptions;
use reqc::system::{Disk, Embedded};

fn load(name: &str) -> Compiler {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/collections")
        .join(name);
    let disk = Disk::open(&root).expect("the collection is there");
    Compiler::load(
        Arc::new(disk),
        Arc::new(Embedded::bundled()),
        LoadOptions::default(),
    )
}

/// Returns all findings of a complete run.
fn findings(compiler: &Compiler) -> Vec<Diagnostic> {
    compiler
        .report(&Selection::default(), &PolicyOptions::default())
        .findings
}

/// Returns errors and findings about the dialect, as `PATH:LINE CODE`. Other warnings are about
/// style, and their number may grow.
fn notable(compiler: &Compiler) -> Vec<String> {
    let notable = |finding: &&Diagnostic| {
        finding.severity == Severity::Error || finding.rule.code.starts_with("dialect/")
    };
    let shown = |finding: &Diagnostic| {
        let place = compiler.sources().describe(finding.primary.span);
        match finding.severity {
            Severity::Error => format!("{place} {}: {}", finding.rule.code, finding.message),
            Severity::Warning => format!("{place} {}", finding.rule.code),
        }
    };
    // Lost content has its own list.
    let is_loss = |finding: &&Diagnostic| finding.rule.code.starts_with("flow/");
    findings(compiler)
        .iter()
        .filter(notable)
        .filter(|finding| !is_loss(finding))
        .map(shown)
        .collect()
}

fn body(compiler: &Compiler, agent: &str, context: &str) -> String {
    let id = compiler
        .hierarchy()
        .by_name(agent)
        .unwrap_or_else(|| panic!("there is no `{agent}`"));
    let body = compiler
        .body(id, context, None)
        .unwrap_or_else(|| panic!("`{agent}` has no body for `{context}`"));
    body.unwrap_or_else(|findings| panic!("{findings:#?}"))
        .pretty()
}

/// Compares a body with the snapshot named after its agent and context, next to the collection.
fn assert_body(compiler: &Compiler, collection: &str, agent: &str, context: &str) {
    let name = format!("{} {context}", agent.to_lowercase()).replace(' ', "-");
    assert_snapshot(collection, &name, &body(compiler, agent, context));
}

fn assert_snapshot(collection: &str, name: &str, text: &str) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/collections/snapshots")
        .join(collection);
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(root);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn a_flat_folder_of_the_original_dialect_compiles_unmodified() {
    let compiler = load("flat");
    // All findings are correct: tools are written only if a conversation has some, Codestral
    // accepts no images, Mistral rejects the order of roles, and the base's prompt loses its last
    // line end. These templates do not support documents or provider blocks, so messages with only
    // these are empty or missing, as are turns with only thinking, which Mistral's format rejects
    // too.
    let expected = [
        "claude_base.toml:9 dialect/prompt-text",
        "mistral_chat.toml:3 provider/other-format: `Relay Mistral` accepts mistral-chat, but the inherited body is written for openai-chat",
        "openai_tools.toml:6 protocol/choice-without-tools: `parallel_tool_calls` is accepted only together with `tools`",
        "partials/chat/image.jinja:1 protocol/model-media: codestral-latest does not accept images",
        "partials/chat/messages.jinja:9 protocol/turn-order: a `system` message cannot follow a tool message",
        "partials/chat/messages.jinja:9 protocol/turn-order: a `system` message cannot follow an assistant message",
        "partials/chat/messages.jinja:12 protocol/prefill: the last message has the role `assistant`, but no `\"prefix\": true`",
        "partials/chat/messages.jinja:13 schema/invalid-value: `/messages/2/content` must not be empty",
        "partials/chat/messages.jinja:25 protocol/orphan-result: the result of `call_x1` has no matching call before it",
        "partials/claude_messages.jinja:6 schema/invalid-value: `/messages/0/content` must not be an empty list",
        "partials/claude_messages.jinja:11 protocol/thinking-turn: the last block of an assistant message cannot be thinking",
        "partials/claude_messages.jinja:20 schema/invalid-value: `/messages/2/content` must not be an empty list",
        "partials/gemini_contents.jinja:3 schema/invalid-value: `/contents/2/parts` must not be an empty list",
        "partials/outline.jinja:4 dialect/loop-index",
    ];
    assert_eq!(notable(&compiler), expected);
    assert!(compiler.agents().len() >= 20, "{}", compiler.agents().len());
    assert!(compiler.agents().iter().all(|(_, usable)| *usable));
}

/// All findings are correct: these templates do not support documents, recordings or provider
/// blocks. They write no attached files, error marks, or images in results; one ignores the user's
/// text next to results; some write only a part of a conversation.
#[test]
fn what_the_collections_lose_is_told() {
    for collection in ["flat", "nested"] {
        let compiler = load(collection);
        let is_loss = |finding: &&Diagnostic| finding.rule.code.starts_with("flow/");
        let line = |finding: &Diagnostic| {
            let place = compiler.sources().describe(finding.primary.span);
            format!(
                "{place} {} {}: {}\n",
                finding.severity.name(),
                finding.rule.code,
                finding.message
            )
        };
        let told: String = findings(&compiler)
            .iter()
            .filter(is_loss)
            .map(line)
            .collect();
        assert_snapshot(collection, "losses", &told);
    }
}

#[test]
fn every_agent_of_the_flat_folder_has_bodies() {
    let compiler = load("flat");
    let run = compiler.run(&Selection::default(), |agent| {
        (agent.plan.name().to_string(), agent.bodies.len())
    });
    let without: Vec<&(String, usize)> = run
        .results
        .iter()
        .filter(|(_, bodies)| *bodies < 3)
        .collect();
    assert!(without.is_empty(), "{without:?}");
}

#[test]
fn bodies_of_the_flat_folder() {
    let compiler = load("flat");
    for (agent, context) in [
        ("Relay Claude Chat", "hostile-text"),
        ("Relay Claude Chat", "attached-files"),
        ("Relay Claude Chat", "image-in-tool-result"),
        ("Relay Claude Tools", "tool-error"),
        ("Relay Claude Thinking", "thinking"),
        ("Relay Claude Compression", "several-turns"),
        ("Relay Claude Refactor", "hostile-text"),
        ("Relay Claude Completion", "completion-prefix-suffix"),
        ("Relay Claude Completion", "completion-empty-suffix"),
        ("Relay Chat Plain", "attached-files"),
        ("Relay Chat Tools", "parallel-tools"),
        ("Relay Chat Compression", "several-turns"),
        ("Relay Chat Outline", "tool-round-trip"),
        ("Relay Chat Refactor", "plain-turn"),
        ("Relay Chat Completion", "completion-empty-prefix"),
        ("Relay Responses Tools", "tool-round-trip"),
        ("Relay Responses Completion", "completion-prefix-suffix"),
        ("Relay Gemini Chat", "tool-round-trip"),
        ("Relay Gemini Completion", "completion-prefix-suffix"),
        ("Relay Mistral Chat", "plain-turn"),
        ("Relay Mistral FIM", "completion-empty-suffix"),
        ("Relay Codestral FIM", "completion-prefix-suffix"),
        ("Relay Ollama Chat", "tool-round-trip"),
        ("Relay Ollama FIM", "completion-prefix-suffix"),
        ("Relay Llama Infill", "completion-prefix-suffix"),
    ] {
        assert_body(&compiler, "flat", agent, context);
    }
}

#[test]
fn a_repository_that_says_inja_has_its_loops_counted_from_0() {
    let compiler = load("nested");
    assert_eq!(notable(&compiler), [""; 0]);
    assert_eq!(compiler.agents().len(), 3);
    for (agent, context) in [
        ("Depot Numbered", "plain-turn"),
        ("Depot Chat", "several-turns"),
        ("Depot Completion", "completion-prefix-suffix"),
    ] {
        assert_body(&compiler, "nested", agent, context);
    }
}

#[test]
fn what_the_original_engine_prints_bare_is_json_here() {
    let compiler = load("flat");
    let tool_error = body(&compiler, "Relay Claude Tools", "tool-error");
    assert!(tool_error.contains("\"is_error\": true"), "{tool_error}");
    let deep = body(&compiler, "Relay Ollama Chat", "deep-tool-input");
    assert!(deep.contains("\"arguments\": {"), "{deep}");
}

/// Renders expressions as values in a body, with these settings in `reqc.toml`.
fn rendered(reqc: &str, prompt: &str, expressions: &[&str]) -> Result<Vec<String>, Vec<String>> {
    let members: Vec<String> = expressions
        .iter()
        .enumerate()
        .map(|(at, it)| format!("x{at} = '''{{% if true %}}{it}{{% endif %}}'''"))
        .collect();
    let agent = format!(
        "name = \"A\"\nprovider_instance = \"OpenAI Compatible\"\nendpoint = \"chat/completions\"\nmodel = \"m\"\n\
         system_prompt = '''{prompt}'''\n[body]\nprompt = '{{{{ tojson(ctx.system_prompt) }}}}'\n{}\n",
        members.join("\n")
    );
    let context = r#"{"name": "c", "why": "w", "kind": "chat", "project": {"name": "p", "files": {"src/a.rs": "one\ntwo\n"}},
        "history": [{"role": "user", "content": "hi"}]}"#;
    let files = [
        ("reqc.toml", reqc),
        ("agents/a.toml", &agent),
        ("contexts/c.json", context),
    ];
    let world = reqc::world::MemoryWorld::from_iter(
        files.map(|(path, text)| (path.to_owned(), text.to_owned())),
    );
    let compiler = Compiler::load(
        Arc::new(world),
        Arc::new(Embedded::bundled()),
        LoadOptions::default(),
    );
    let told = |findings: Vec<Diagnostic>| {
        findings
            .iter()
            .map(|it| format!("{}: {}", it.rule.code, it.message))
            .collect()
    };
    let id = compiler.hierarchy().by_name("A").expect("it was read");
    match compiler.body(id, "c", None) {
        Some(Ok(body)) => Ok(body
            .value()
            .as_object()
            .expect("a body")
            .iter()
            .skip(1)
            .map(|(_, it)| it.to_string())
            .collect()),
        Some(Err(findings)) => Err(told(findings)),
        None => Err(told(findings(&compiler))),
    }
}

#[test]
fn expressions_of_inja_give_what_inja_gives() {
    let cases = [
        ("{{ at([4, 5], 1) }}", "5"),
        ("{{ tojson(at({\"a\": \"b\"}, \"a\")) }}", "\"b\""),
        ("{{ first([7, 8]) }}", "7"),
        ("{{ last([7, 8]) }}", "8"),
        ("{{ tojson(join([1, \"a\"], \"-\")) }}", "\"1-a\""),
        ("{{ exists(\"ctx.history\") }}", "true"),
        ("{{ exists(\"ctx.history.0.role\") }}", "true"),
        ("{{ exists(\"ctx.nothing\") }}", "false"),
        ("{{ exists(\"nothing.at.all\") }}", "false"),
        (
            "[{{ isString(\"a\") }}, {{ isNumber(1) }}, {{ isInteger(1.5) }}, {{ isFloat(1.5) }}]",
            "[true,true,false,true]",
        ),
        (
            "[{{ isArray([]) }}, {{ isObject({}) }}, {{ isBoolean(1) }}]",
            "[true,true,false]",
        ),
        (
            "[{{ even(2) }}, {{ odd(2) }}, {{ divisibleBy(9, 3) }}]",
            "[true,false,true]",
        ),
        (
            "[{{ max([1, 3]) }}, {{ min([1, 3]) }}, {{ sort([2, 1]) }}]",
            "[3,1,[1,2]]",
        ),
        (
            "[{{ round(2.5, 0) }}, {{ int(\"3\") }}, {{ float(\"1.5\") }}]",
            "[3,3,1.5]",
        ),
        (
            "{{ tojson(upper(\"a\") + lower(\"B\") + capitalize(\"c\") + replace(\"d\", \"d\", \"e\")) }}",
            "\"AbCe\"",
        ),
        ("{{ default(ctx.nothing, 4) }}", "4"),
        ("[{{ 2 ^ 3 }}, {{ 1 + 2 ^ 2 }}]", "[8,5]"),
        (
            "[{% for k, v in {\"b\": 2, \"a\": 1} %}{{ tojson(k) }}, {{ v }},{% endfor %}]",
            "[\"a\",1,\"b\",2]",
        ),
        (
            "[{% for m in ctx.history %}{{ loop.index }}{% endfor %}]",
            "[0]",
        ),
    ];
    let (expressions, expected): (Vec<&str>, Vec<&str>) = cases.iter().copied().unzip();
    let prompt = "{{ head_lines(read_file(\"src/a.rs\"), 1) }}|{{ dirname(\"c.txt\") }}|{{ ext(\".bashrc\") }}|\
                  {{ file_exists(\"src\") }}|{{ even(2) }}{% for k, v in {\"x\": 1} %}{{ k }}{% endfor %}\n";
    let given = rendered("dialect = \"inja\"", prompt, &expressions).expect("it renders");
    assert_eq!(given[0], r#""one|.|bashrc|true|truex\n""#);
    assert_eq!(given[1..], expected);
    // Without the dialect, the prompt renders differently.
    let given = rendered(
        "",
        &prompt
            .replace("even(2)", "true")
            .replace("{% for k, v in {\"x\": 1} %}{{ k }}{% endfor %}", ""),
        &[],
    );
    assert_eq!(
        given.expect("it renders"),
        [r#""one\n||||true""#.replace("||||", "|||false|")]
    );
}

#[test]
fn without_the_dialect_functions_of_inja_have_advice() {
    for (expression, advice) in [
        ("{{ at([1], 0) }}", "at"),
        ("{{ isString(1) }}", "isString"),
        ("{{ exists(\"ctx.x\") }}", "exists"),
    ] {
        let told = rendered("", "x", &[expression]).expect_err("it is not known");
        assert_eq!(
            told,
            [format!(
                "template/unknown-name: there is no function `{advice}`"
            )]
        );
    }
}
