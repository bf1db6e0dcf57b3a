//! `reqc tools check`: tool lists of every form, and MCP servers that behave well or badly.

#![cfg(unix)]
#![expect(
    clippy::disallowed_methods,
    reason = "the test itself writes files and runs the binary"
)]

mod program;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqc::compile::{Compiler, LoadOptions};
use reqc::system::Embedded;
use reqc::tool_list::{Form, ListedTool, Matrix, Status, ToolTarget, lowered};
use reqc::world::MemoryWorld;
use serde_json::{Value, json};
use tempfile::TempDir;

struct Ran {
    code: i32,
    out: String,
    err: String,
}

fn reqc(folder: &Path, arguments: &[&str], input: &str) -> Ran {
    let mut command = Command::new(program::path());
    command
        .args(["tools", "check"])
        .args(arguments)
        .current_dir(folder)
        .env("NO_COLOR", "1");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let _ = child
        .stdin
        .take()
        .expect("a pipe")
        .write_all(input.as_bytes());
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ran {
        code: output.status.code().expect("not killed"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

/// Checks a list given on standard input. Returns the exit status and the JSON document.
fn checked(list: &Value, arguments: &[&str]) -> (i32, Value) {
    let folder = tempfile::tempdir().expect("a folder");
    let ran = reqc(
        folder.path(),
        &[&["-", "--format", "json"], arguments].concat(),
        &list.to_string(),
    );
    assert_eq!(ran.err, "");
    (ran.code, serde_json::from_str(&ran.out).expect("JSON"))
}

/// Returns the status of each tool for a provider.
fn statuses(document: &Value, provider: &str) -> Vec<String> {
    let tools = document["tools"].as_array().expect("tools");
    let of = |tool: &Value| {
        let verdicts = tool["verdicts"].as_array().expect("verdicts");
        let verdict = verdicts
            .iter()
            .find(|verdict| verdict["provider"] == provider)
            .expect("the provider");
        verdict["status"].as_str().expect("a word").to_owned()
    };
    tools.iter().map(of).collect()
}

fn tool(name: &str, schema: &Value) -> Value {
    json!({"name": name, "description": "Does something.", "inputSchema": schema})
}

fn object(properties: &Value) -> Value {
    json!({"type": "object", "properties": properties})
}

#[test]
fn a_plain_tool_is_taken_everywhere_and_costs_something() {
    let (code, document) = checked(
        &json!([tool("look_up", &object(&json!({"q": {"type": "string"}})))]),
        &["--provider", "all"],
    );
    for target in ToolTarget::ALL
        .iter()
        .filter(|target| target.form != Form::Strict)
    {
        assert_eq!(
            statuses(&document, target.name),
            ["accepted"],
            "{}",
            target.name
        );
    }
    let tokens = document["tools"][0]["verdicts"][0]["tokens"]
        .as_u64()
        .expect("a number");
    // Strict targets reject open objects. That fails the command with `all`, but not by default.
    assert!((20..100).contains(&tokens) && code == 1, "{tokens} {code}");
    assert_eq!(
        checked(&json!([tool("search", &object(&json!({})))]), &[]).0,
        0
    );
}

#[test]
fn each_refusal_names_its_evidence() {
    let list = json!([
        tool("a.b", &object(&json!({}))),
        tool(
            "root",
            &json!({"type": "object", "properties": {}, "anyOf": [{"required": ["x"]}]})
        ),
        tool("true", &json!(true)),
        tool("list", &json!({"type": "object", "properties": ["x"]})),
        tool("empty", &json!({})),
        tool(
            "nullable",
            &object(&json!({"x": {"type": ["string", "null"]}}))
        ),
        tool("array", &object(&json!({"x": {"type": "array"}}))),
        tool(
            "pattern",
            &object(&json!({"x": {"type": "string", "pattern": "^a"}}))
        ),
        tool("nullable", &object(&json!({}))),
    ]);
    let (code, document) = checked(&list, &[]);
    assert_eq!(code, 1);
    let of = |provider: &str| statuses(&document, provider).join(" ");
    let (no, yes) = ("rejected", "accepted");
    assert_eq!(
        of("anthropic"),
        [no, no, no, no, no, yes, yes, yes, no].join(" ")
    );
    assert_eq!(
        of("openai"),
        [no, no, no, no, no, yes, no, yes, "doubtful"].join(" ")
    );
    assert_eq!(
        of("gemini-openapi").split(' ').nth(5),
        Some(no),
        "a list of types"
    );
    assert_eq!(of("ollama").split(' ').nth(7), Some("weakened"));
    let mut refusals = 0;
    for verdict in document["tools"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|tool| tool["verdicts"].as_array())
        .flatten()
    {
        for objection in verdict["objections"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|it| it["status"] == "rejected")
        {
            let code = objection["code"].as_str().expect("a code");
            let rule = reqc::compile::rule(code).expect("a rule");
            let has_evidence = objection["evidence"]
                .as_array()
                .is_some_and(|it| !it.is_empty());
            assert!(has_evidence || rule.evidence.is_empty(), "{objection}");
            assert!(
                !objection["message"]
                    .as_str()
                    .unwrap_or_default()
                    .contains("/tools/"),
                "{objection}"
            );
            refusals += 1;
        }
    }
    assert!(refusals > 20);
}

#[test]
fn five_hundred_tools_are_too_many_for_some() {
    let tools: Vec<Value> = (0..500)
        .map(|number| tool(&format!("t{number}"), &object(&json!({}))))
        .collect();
    let (code, document) = checked(&json!(tools), &[]);
    let provider = |name: &str| {
        let all = document["providers"].as_array().expect("providers");
        all.iter()
            .find(|it| it["provider"] == name)
            .expect("there")
            .clone()
    };
    assert_eq!(
        (code, &provider("openai")["list"][0]["code"]),
        (1, &json!("protocol/limit"))
    );
    assert_eq!(provider("anthropic")["rejected"], false);
    assert!(
        statuses(&document, "openai")
            .iter()
            .all(|status| status == "accepted")
    );
}

/// A tool with a closed schema, as strict modes require.
fn closed(name: &str, properties: &Value) -> Value {
    let mut schema = object(properties);
    schema["additionalProperties"] = false.into();
    tool(name, &schema)
}

/// Lists that exceed Claude's limits for all strict tools of a request.
fn beyond_limits() -> [(Vec<Value>, usize); 3] {
    let mut optional = json!({});
    let mut unions = json!({});
    for number in 0..15 {
        optional[format!("p{number}")] = json!({"type": "string"});
        if number < 7 {
            unions[format!("p{number}")] = json!({"type": ["string", "null"]});
        }
    }
    let required: Vec<String> = (0..7).map(|number| format!("p{number}")).collect();
    let with_unions = |number: usize| {
        let mut tool = closed(&format!("u{number}"), &unions);
        tool["inputSchema"]["required"] = json!(required);
        tool
    };
    [
        (
            (0..25)
                .map(|number| closed(&format!("t{number}"), &json!({})))
                .collect(),
            20,
        ),
        (
            (0..3)
                .map(|number| closed(&format!("o{number}"), &optional))
                .collect(),
            1,
        ),
        ((0..4).map(with_unions).collect(), 2),
    ]
}

#[test]
fn limits_on_all_strict_tools_together_are_told_and_kept() {
    for (tools, most) in beyond_limits() {
        let count = tools.len();
        let (code, document) = checked(&json!(tools), &["--provider", "anthropic-strict"]);
        assert_eq!(code, 1, "{document}");
        assert!(
            statuses(&document, "anthropic-strict")
                .iter()
                .all(|status| status == "accepted"),
            "each tool alone is accepted"
        );
        let list = document["providers"][0]["list"].as_array().expect("a list");
        assert_eq!(
            (list.len(), &list[0]["code"]),
            (1, &json!("protocol/strict-schema")),
            "{list:?}"
        );
        let folder = tempfile::tempdir().expect("a folder");
        let ran = reqc(
            folder.path(),
            &["-", "--lower", "anthropic-strict"],
            &json!(tools).to_string(),
        );
        let lowered: Vec<Value> = serde_json::from_str(&ran.out).expect("JSON");
        let strict = lowered.iter().filter(|tool| tool["strict"] == true);
        assert_eq!((ran.code, lowered.len(), strict.count()), (0, count, most));
        let told = ran.err.matches("uses the form `anthropic` instead").count();
        assert_eq!(told, count - most, "{}", ran.err);
    }
}

#[test]
fn a_lowered_list_that_is_still_rejected_is_no_success() {
    let tools: Vec<Value> = (0..129)
        .map(|number| tool(&format!("t{number}"), &object(&json!({}))))
        .collect();
    let folder = tempfile::tempdir().expect("a folder");
    let ran = reqc(
        folder.path(),
        &["-", "--lower", "openai"],
        &json!(tools).to_string(),
    );
    assert_eq!(ran.code, 1);
    assert!(
        ran.err.contains("the list is still rejected: "),
        "{}",
        ran.err
    );
}

#[test]
fn ollama_is_not_marked_for_what_almost_every_tool_has() {
    let items = json!({"type": "array", "items": {"type": "string", "minLength": 2}});
    let list = json!([
        closed("a", &json!({"x": {"type": "string"}})),
        closed("b", &json!({"x": items})),
        closed("c", &json!({"x": {"type": "string", "default": "y"}})),
    ]);
    let (code, document) = checked(&list, &["--provider", "ollama"]);
    assert_eq!(
        (code, statuses(&document, "ollama")),
        (
            0,
            ["accepted", "accepted", "weakened"]
                .map(str::to_owned)
                .to_vec()
        )
    );
    let dropped = &document["tools"][0]["verdicts"][0]["dropped"];
    assert_eq!(dropped[0]["keyword"], "additionalProperties");
    let folder = tempfile::tempdir().expect("a folder");
    let ran = reqc(
        folder.path(),
        &["-", "--lower", "ollama"],
        &list.to_string(),
    );
    assert!(
        ran.err.contains("c: /properties/x: `default` is left out"),
        "{}",
        ran.err
    );
}

#[test]
fn an_objection_shows_the_sources_of_its_message() {
    let root = json!({"type": "object", "properties": {}, "anyOf": [{"required": ["x"]}]});
    let email = object(&json!({"x": {"type": "string", "pattern": "^(?!a)"}}));
    let (_, document) = checked(
        &json!([tool("root", &root), tool("email", &email)]),
        &["--provider", "openai"],
    );
    for (index, source) in [(0, "chatanywhere/GPT_API_free#403"), (1, "vercel/ai#21037")] {
        let objection = &document["tools"][index]["verdicts"][0]["objections"][0];
        let sources = objection["evidence"].as_array().expect("a list");
        assert!(
            sources.len() <= 3 && sources.iter().any(|it| it["source"] == source),
            "{objection}"
        );
    }
}

#[test]
fn what_a_list_says_cannot_act_on_a_terminal_or_in_markdown() {
    let hostile = "a\u{1b}[2J\n::error::x|<img src=x>";
    let list = json!([
        tool(hostile, &json!({"type": hostile})),
        tool("b", &object(&json!({hostile: {"type": "strin\u{1b}"}})))
    ]);
    let folder = tempfile::tempdir().expect("a folder");
    for arguments in [
        &["-"][..],
        &["-", "--format", "markdown"],
        &["-", "--lower", "gemini-openapi"],
    ] {
        let ran = reqc(folder.path(), arguments, &list.to_string());
        let shown = format!(
            "{}{}",
            if arguments.contains(&"--lower") {
                ""
            } else {
                &ran.out
            },
            ran.err
        );
        assert!(
            !shown.contains('\u{1b}') && !shown.contains("\n::error"),
            "{shown}"
        );
        assert!(
            !arguments.contains(&"markdown") || !shown.contains("<img"),
            "{shown}"
        );
    }
}

#[test]
fn what_is_no_list_is_told() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = |arguments: &[&str], input: &str| {
        let ran = reqc(folder.path(), arguments, input);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
        ran.err
    };
    assert!(said(&["-"], "{}").contains("`<stdin>` has no tools"));
    assert!(said(&["-"], "const tools = [];").contains("does not read code"));
    assert!(said(&[], "").contains("no tools given: pass a file"));
    assert!(said(&["-", "--provider", "antropic"], "[]").contains("did you mean `anthropic`?"));
    assert!(said(&["none.json"], "").contains("none.json"));
    assert!(said(&["x.json", "--mcp-command", "--", "cat"], "").contains("cannot be used with"));
}

#[test]
fn a_list_of_which_nothing_can_be_checked_is_no_success() {
    let folder = tempfile::tempdir().expect("a folder");
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let named = json!({"name": "a", "description": "d", "inputSchema": schema});
    let ran = |input: &Value, arguments: &[&str]| {
        reqc(
            folder.path(),
            &[&["-"], arguments].concat(),
            &input.to_string(),
        )
    };
    for arguments in [&[][..], &["--lower", "openai"]] {
        let bare = ran(&schema, arguments);
        assert_eq!((bare.code, bare.out.as_str()), (2, ""), "{}", bare.err);
        assert!(
            bare.err.contains("no name") && bare.err.contains("`title`"),
            "{}",
            bare.err
        );
        let hosted = ran(&json!({"tools": [{"type": "web_search"}]}), arguments);
        assert_eq!(hosted.code, 2, "{}", hosted.out);
        assert!(hosted.err.contains("on a server and ha"), "{}", hosted.err);
        let partly = ran(&json!([named, {"name": 5}]), arguments);
        assert_eq!(partly.code, 1, "{}", partly.err);
        assert!(partly.err.contains("(/1)"), "{}", partly.err);
    }
    let page = ran(&json!({"tools": [named], "nextCursor": "x"}), &[]);
    assert!(
        page.code == 0 && page.err.contains("`nextCursor`"),
        "{}",
        page.err
    );
    let gemini = json!({"tools": [{"functionDeclarations": [{"name": "f", "description": "x"}]}, {"googleSearch": {}}]});
    let gemini = ran(&gemini, &[]);
    assert!(
        gemini.code == 0 && gemini.err.contains("1 tool runs on a server"),
        "{}",
        gemini.err
    );
    let converse =
        json!([{"toolSpec": {"name": "f", "description": "d", "inputSchema": {"json": schema}}}]);
    assert_eq!(ran(&converse, &[]).code, 0);
}

#[test]
fn a_tools_toml_has_its_programs() {
    let folder = tempfile::tempdir().expect("a folder");
    let toml = "[[tool]]\nname = \"now\"\ndescription = \"The time.\"\ncommand = [\"date\"]\n\n[[server]]\nname = \"s\"\nurl = \"https://h.example/mcp\"\n";
    fs::write(folder.path().join("tools.toml"), toml).expect("written");
    let ran = reqc(folder.path(), &["tools.toml"], "");
    assert!(
        ran.code == 0 && ran.out.contains("1 tool of tools.toml"),
        "{} {}",
        ran.out,
        ran.err
    );
    assert!(
        ran.err.contains("these servers are not queried: s"),
        "{}",
        ran.err
    );
}

/// Tools that providers reject, and some that they accept.
fn difficult() -> Vec<ListedTool> {
    let tree = json!({"type": "object", "properties": {"name": {"type": "string"}, "below": {"type": "array", "items": {"$ref": "#/$defs/tree"}}},
        "required": ["name"], "additionalProperties": false});
    let schemas = [
        json!(true),
        json!({}),
        json!({"type": "object", "properties": ["a"]}),
        json!({"type": "string"}),
        json!({"type": "object", "properties": {"tree": {"$ref": "#/$defs/tree"}}, "$defs": {"tree": tree}, "additionalProperties": false}),
        json!({"oneOf": [{"properties": {"a": {"type": "string"}}, "required": ["a"]}, {"properties": {"b": {"type": "array"}}}]}),
        json!({"type": "object", "properties": {"filter[id]": {"type": ["string", "null"]}}, "required": ["filter[id]"], "additionalProperties": false}),
        json!({"type": "object", "properties": {"n": {"type": "integer", "exclusiveMinimum": 0}, "l": {"type": "array", "uniqueItems": true,
            "items": {"type": "string", "format": "uri"}}}, "additionalProperties": false}),
        json!({"type": "object", "properties": {"x": {"allOf": [{"type": "object"}, {"properties": {"y": {"const": 1}}}]}}}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"q": {"not": {"type": "null"}}}}}}),
        json!({"type": "obj", "required": "a"}),
    ];
    let tool = |(index, schema): (usize, Value)| ListedTool {
        name: ["a.b", "a/b", "a b", "ok", "ok"][index % 5].to_owned(),
        description: "d".repeat(index * 200),
        schema,
    };
    schemas.into_iter().enumerate().map(tool).collect()
}

#[test]
fn lowered_tools_are_taken() {
    let nothing = Arc::new(MemoryWorld::default());
    let compiler = Compiler::load(
        nothing,
        Arc::new(Embedded::bundled()),
        LoadOptions::default(),
    );
    let tools = difficult();
    for target in ToolTarget::ALL {
        let list = lowered(&compiler, &tools, target);
        assert!(
            list.told.iter().all(|tool| tool.refused.is_none()),
            "{}: {:#?}",
            target.name,
            list.told
        );
        let names: std::collections::BTreeSet<&str> = list
            .told
            .iter()
            .map(|tool| tool.renamed.as_deref().unwrap_or(&tool.name))
            .collect();
        assert_eq!(names.len(), tools.len(), "{}", target.name);
        for told in &list.told {
            let form = told.instead.as_ref().map_or(target, |(form, _)| *form);
            let name = told.renamed.clone().unwrap_or_else(|| told.name.clone());
            let one = ListedTool {
                name,
                description: "d".to_owned(),
                schema: told.schema.clone(),
            };
            let matrix = Matrix::of(&compiler, vec![one], &[form]);
            let verdict = &matrix.columns[0].verdicts[0];
            assert_ne!(
                verdict.status,
                Status::Rejected,
                "{} {:?}: {:#?}",
                target.name,
                told.schema,
                verdict.objections
            );
        }
    }
}

/// An MCP server as a shell script. `$id` is the ID of the request.
const SERVER: &str = r#"#!/bin/sh
answer() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
hello() { answer '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}'; }
tools() { answer '{"tools":[{"name":"a.b","inputSchema":{"type":"object","anyOf":[{}]}},{"name":"env","description":"'"$SECRET$PLAIN"'","inputSchema":{"type":"object"}}]}'; }
OVERRIDES
while IFS= read -r line; do
  id=${line#*\"id\":}; id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*) hello;;
    *'"method":"tools/list"'*) tools;;
  esac
done
"#;

fn server(overrides: &str) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("server");
    fs::write(&path, SERVER.replace("OVERRIDES", overrides)).expect("written");
    fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("ours");
    folder
}

/// Checks a server that overrides some functions.
fn asked(overrides: &str, more: &[&str]) -> Ran {
    let folder = server(overrides);
    let arguments = [more, &["--timeout", "3", "--mcp-command", "--", "./server"]].concat();
    let began = Instant::now();
    let ran = reqc(folder.path(), &arguments, "");
    assert!(began.elapsed() < Duration::from_secs(30), "it is bounded");
    ran
}

#[test]
fn a_server_is_asked_as_it_is() {
    let ran = asked("", &["--format", "json"]);
    let document: Value = serde_json::from_str(&ran.out).expect("JSON");
    assert_eq!(
        (ran.code, statuses(&document, "openai")),
        (1, vec!["rejected".to_owned(), "rejected".to_owned()]),
        "{}",
        ran.err
    );
    assert_eq!(statuses(&document, "ollama")[1], "accepted");
    let logs = asked("echo 'Starting ...'", &[]);
    assert!(
        logs.out.contains("2 tools of ./server"),
        "{} {}",
        logs.out,
        logs.err
    );
}

#[test]
fn a_server_that_misbehaves_is_told_as_what_it_is() {
    let said = |overrides: &str| {
        let ran = asked(overrides, &[]);
        assert_eq!((ran.code, ran.out.as_str()), (2, ""), "{}", ran.err);
        ran.err
    };
    assert!(said("tools() { sleep 60; }").contains("it was not ready after 3 seconds"));
    assert!(said("hello() { :; }").contains("it was not ready after 3 seconds"));
    assert!(said("tools() { yes noise; }").contains("more than 1 MiB"));
    assert!(
        said(r#"tools() { answer '{"tools":[],"nextCursor":"again"}'; }"#)
            .contains("on more than 100 pages")
    );
    let refuses = r#"tools() { printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"no \\u001b[31mtools"}}\n' "$id"; }"#;
    let told = said(refuses);
    assert!(
        told.contains("it did not list its tools") && !told.contains('\u{1b}'),
        "{told}"
    );
    assert!(said("echo 'no database' >&2; exit 3").contains("no database"));
    assert!(said(r#"tools() { answer '{"tools":[]}'; }"#).contains("lists no tools"));
    assert!(said("hello() { answer 1; }").contains("cannot be used"));
}

#[test]
fn a_server_gets_only_the_variables_that_are_named() {
    let folder = server("");
    let arguments =
        |more: &[&'static str]| [more, &["--lower", "compatible", "--mcp-command"]].concat();
    let run = |more: &[&'static str]| {
        let mut command = Command::new(program::path());
        command
            .args(["tools", "check"])
            .args(arguments(more))
            .args(["--", "./server"])
            .current_dir(folder.path());
        command
            .env("SECRET", "from-my-shell")
            .env("PLAIN", "-and-more");
        String::from_utf8(command.output().expect("it runs").stdout).expect("UTF-8")
    };
    assert!(!run(&[]).contains("from-my-shell"));
    let named = run(&["--mcp-env", "SECRET"]);
    assert!(
        named.contains("from-my-shell") && !named.contains("-and-more"),
        "{named}"
    );
}
