//! `reqc coverage` reports each gap of a template at its location, with helpful messages, and
//! nothing else. The bundled templates have no gaps.

#![expect(
    clippy::disallowed_methods,
    reason = "the test itself writes files and runs the binary"
)]

mod program;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;

struct Ran {
    code: i32,
    out: String,
    err: String,
}

fn reqc(root: &Path, arguments: &[&str]) -> Ran {
    let output = Command::new(program::path())
        .arg("coverage")
        .args(arguments)
        .current_dir(root)
        .env("NO_COLOR", "1")
        .output()
        .expect("the binary runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    Ran {
        code: output.status.code().expect("not killed"),
        out: text(output.stdout),
        err: text(output.stderr),
    }
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("created");
    fs::write(path, text).expect("written");
}

/// Returns a repository with one agent, whose messages are written by this partial, and its own
/// contexts.
fn repository(partial: &str, contexts: &[&str]) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path();
    write(
        root,
        "agents/a.toml",
        "name = \"A\"\nextends = \"OpenAI Chat\"\n\n\
         [body]\nmessages = '{% include \"partials/messages.jinja\" %}'\n",
    );
    write(root, "partials/messages.jinja", partial);
    for (number, context) in contexts.iter().enumerate() {
        let text = format!(
            "{{\"name\": \"gap-{number}\", \"why\": \"A test.\", \"kind\": \"chat\", {context}}}\n"
        );
        write(root, &format!("contexts/gap-{number}.json"), &text);
    }
    folder
}

/// Returns a partial with this text after its messages.
fn around(inner: &str) -> String {
    format!(
        "{{% set blank = [] %}}{{% set zero = [] %}}[{{% for message in ctx.history %}}1,{{% endfor %}}\n{inner}\n]"
    )
}

const HELLO: &str = r#""history": [{"role": "user", "content": "Hello"}]"#;
const NOTHING: &str = r#""history": []"#;

/// Returns the gaps of a partial in these contexts, each as `LINE KIND: MISSING: NEEDS`.
fn gaps(partial: &str, contexts: &[&str]) -> Vec<String> {
    let folder = repository(partial, contexts);
    let ran = reqc(
        folder.path(),
        &["--format", "json", "--context", "gap-*", "--agent", "A"],
    );
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let found: Value = serde_json::from_str(&ran.out).expect("JSON");
    let files = found["files"].as_array().expect("files");
    let gaps = files
        .iter()
        .flat_map(|file| file["gaps"].as_array().expect("gaps"));
    gaps.map(|gap| {
        let text = |name: &str| gap[name].as_str().unwrap_or("-");
        format!(
            "{} {}: {}: {}",
            gap["line"],
            text("kind"),
            text("missing"),
            text("needs")
        )
    })
    .collect()
}

#[test]
fn each_kind_of_gap_is_found_and_its_counterpart_is_not() {
    let cases: [(&str, &[&str]); 18] = [
        (
            "{% if blank %}1{% endif %}",
            &["2 condition: the condition is never true: `blank` is not empty"],
        ),
        (
            "{% if not blank %}1{% endif %}",
            &["2 condition: the condition is always true: `blank` is not empty"],
        ),
        (
            "{% if ctx.history[0].role == \"assistant\" %}1{% endif %}",
            &["2 condition: the condition is never true: `ctx.history[0].role` is `\"assistant\"`"],
        ),
        (
            "{% if blank %}1\n{% elif ctx.history[0].role != \"user\" %}2{% endif %}",
            &[
                "2 condition: the condition is never true: `blank` is not empty",
                "3 condition: the condition is never true: `ctx.history[0].role` is not `\"user\"`",
            ],
        ),
        (
            "{% if blank and zero %}1{% endif %}",
            &[
                "2 condition: the condition is never true: `blank` is not empty and `zero` is not empty",
            ],
        ),
        (
            "{% if blank or zero %}1{% endif %}",
            &[
                "2 condition: the condition is never true: `blank` is not empty or `zero` is not empty",
            ],
        ),
        (
            "{% for tool in blank %}{{ tojson(tool.name) }},{% endfor %}",
            &["2 loop: the loop is always empty: `blank` is not empty"],
        ),
        (
            "{% for message in ctx.history %}1,{% else %}2{% endfor %}",
            &["2 loop: the loop is never empty: `ctx.history` is empty or missing"],
        ),
        (
            "{% for message in ctx.history if message.role == \"user\" %}1,{% endfor %}",
            &[
                "2 condition: the loop's condition accepts every element: `message.role` is not `\"user\"`",
            ],
        ),
        (
            "{% set x = 1 if blank else 2 %}{{ x }}",
            &["2 condition: the condition is never true: `blank` is not empty"],
        ),
        // A list that is defined is not empty, and every request has messages.
        (
            "{% if ctx.tools is defined %}{% for tool in ctx.tools %}1,{% endfor %}{% endif %}",
            &["2 condition: the condition is never true: `ctx.tools` is given"],
        ),
        (
            "{{ 1 if blank else 2 }}",
            &["2 condition: the condition is never true: `blank` is not empty"],
        ),
        (
            "{{ ctx.tools | default([]) | length }}",
            &["2 default: the default is always used: `ctx.tools` is given"],
        ),
        (
            "{% macro m(a, b=1) %}{{ a }}{{ b }}{% endmacro %}{{ m(1) }}",
            &["2 default: the parameter is never passed: `b` is given"],
        ),
        (
            "{% macro m(a) %}{{ a }}{% endmacro %}",
            &["2 macro: nothing calls the macro `m`: -"],
        ),
        // Code inside a gap belongs to that gap.
        (
            "{% if blank %}{% if zero %}1{% endif %}{% endif %}",
            &["2 condition: the condition is never true: `blank` is not empty"],
        ),
        // The condition ensures that the list is not empty, so only the condition is reported.
        (
            "{% if ctx.history %}{% for message in ctx.history %}1,{% endfor %}{% endif %}",
            &["2 condition: the condition is always true: `ctx.history` is empty or missing"],
        ),
        (
            "{% for message in ctx.history %}{% for block in message.content_blocks %}1,{% endfor %}{% endfor %}",
            &[],
        ),
    ];
    for (inner, expected) in cases {
        let found = gaps(&around(inner), &[HELLO]);
        let found: Vec<&str> = found
            .iter()
            .map(String::as_str)
            .filter(|gap| !gap.starts_with("1 "))
            .collect();
        assert_eq!(found, expected, "{inner}");
    }
}

#[test]
fn what_contexts_reach_has_no_gaps() {
    let partial = around(
        "{% if ctx.tools is defined %}1{% else %}{{ 2 if ctx.system_prompt is defined else 3 }}{% endif %}",
    );
    let tools = r#""history": [{"role": "user", "content": "x"}], "tools": [{"name": "t", "description": "d", "schema": {"type": "object"}}]"#;
    let bare = r#""history": [{"role": "user", "content": "x"}], "system_prompt": "omit""#;
    assert_eq!(
        gaps(&partial, &[HELLO, NOTHING, tools, bare]),
        Vec::<String>::new()
    );
}

#[test]
fn an_excuse_counts_on_its_line_and_only_where_it_is_needed() {
    let excused =
        around("{% if ctx.tools is defined %}1{% endif %}{# no coverage: nobody has tools #}");
    assert_eq!(gaps(&excused, &[HELLO, NOTHING]), Vec::<String>::new());
    let unreasoned = around("{% if ctx.tools is defined %}1{% endif %}{# no coverage: #}");
    assert_eq!(gaps(&unreasoned, &[HELLO, NOTHING]).len(), 1);
    let needless = around("1{# no coverage: for nothing #}");
    assert_eq!(
        gaps(&needless, &[HELLO, NOTHING]),
        ["2 excuse: everything on this line is covered: remove the comment: -"]
    );
}

#[test]
fn what_an_excuse_leaves_behind_does_not_count() {
    let excused = around(
        "{% if ctx.tools is defined %}{# no coverage: nobody has tools #}\n{% if zero %}\n1\n{% endif %}\n{% endif %}",
    );
    let folder = repository(&excused, &[HELLO]);
    let ran = reqc(
        folder.path(),
        &["--context", "gap-*", "--fail-under", "100"],
    );
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert!(
        ran.out.contains("outcomes 100 % (2 of 2), no gaps"),
        "{}",
        ran.out
    );
}

#[test]
fn the_bundled_contexts_reach_all_of_the_bundled_templates() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let ran = reqc(root, &["--bundled", "--fail-under", "100"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
}

#[test]
fn a_partial_that_nothing_includes_is_a_gap() {
    let folder = repository(&around("1"), &[HELLO, NOTHING]);
    write(folder.path(), "partials/unused.jinja", "{{ ctx.histroy }}");
    let ran = reqc(folder.path(), &["--context", "gap-*"]);
    assert!(
        ran.out
            .contains("  partials/unused.jinja:1:1  nothing renders this template\n"),
        "{}",
        ran.out
    );
}

#[test]
fn what_stands_behind_a_failure_is_a_gap() {
    let found = gaps(
        &around("{{ ctx.tools }}{{ 1 }}\n{{ 2 }}"),
        &[HELLO, NOTHING],
    );
    assert_eq!(
        found,
        ["2 statement: this never runs, because the template fails before it: -"]
    );
}

#[test]
fn no_context_is_asked_for_where_a_loop_loses_a_value() {
    let count = "{% set n = 0 %}{% for m in ctx.history %}{% set n = n + 1 %}{% endfor %}";
    let found = gaps(
        &around(&format!("{count}{{% if n > 3 %}}1{{% endif %}}")),
        &[HELLO, NOTHING],
    );
    assert_eq!(
        found,
        [
            "2 condition: the condition is never true, and `n` loses the value that a loop sets (template/set-in-loop): -"
        ]
    );
}

#[test]
fn a_gate_compares_what_is_reached() {
    let folder = repository(
        &around("{% if ctx.tools is defined %}1{% endif %}"),
        &[HELLO, NOTHING],
    );
    let of = |arguments: &[&str]| {
        reqc(
            folder.path(),
            &[&["--context", "gap-*"], arguments].concat(),
        )
    };
    assert_eq!(of(&["--fail-under", "100"]).code, 1);
    assert_eq!(of(&["--fail-under", "50%"]).code, 0);
    assert_eq!(of(&["--fail-under", "101"]).code, 2);
    let out = of(&[]).out;
    assert!(
        out.ends_with(
            "1 agent × 2 contexts, 2 files: lines 100 % (4 of 4), outcomes 75 % (3 of 4), 1 gap\n"
        ),
        "{out}"
    );
}

#[test]
fn a_context_is_written_that_reaches_a_gap() {
    let folder = repository(
        &around("{% if ctx.tools is defined %}1{% endif %}"),
        &[HELLO, NOTHING],
    );
    let root = folder.path();
    let ran = reqc(
        root,
        &[
            "--context",
            "gap-*",
            "--gap",
            "partials/messages.jinja:2",
            "--write-context",
            "contexts/gap-9.json",
        ],
    );
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let written = fs::read_to_string(root.join("contexts/gap-9.json")).expect("written");
    let context: Value = serde_json::from_str(&written).expect("JSON");
    assert_eq!(context["name"], "gap-9");
    assert!(context["tools"][0]["name"].is_string(), "{written}");
    let ran = reqc(root, &["--context", "gap-*", "--fail-under", "100"]);
    assert_eq!(ran.code, 0, "{}", ran.out);
    let again = reqc(
        root,
        &[
            "--context",
            "gap-*",
            "--write-context",
            "contexts/gap-10.json",
        ],
    );
    assert_eq!(again.code, 2);
    assert!(again.err.contains("there is no gap"), "{}", again.err);
}

#[test]
fn lines_and_branches_are_written_for_editors_and_pages_cannot_act() {
    let hostile = around("{% if ctx.tools is defined %}\"<script>\u{1b}[2J\"{% endif %}");
    let folder = repository(&hostile, &[HELLO, NOTHING]);
    let of = |format: &str| {
        let ran = reqc(folder.path(), &["--context", "gap-*", "--format", format]);
        assert_eq!(ran.code, 0, "{}", ran.err);
        ran.out
    };
    let lcov = of("lcov");
    for record in [
        "SF:partials/messages.jinja\n",
        "BRDA:2,1,0,0\n",
        "BRDA:2,1,1,2\n",
        "BRF:4\n",
        "BRH:3\n",
        "DA:1,2\n",
        "LF:3\n",
        "end_of_record\n",
    ] {
        assert!(lcov.contains(record), "{record}: {lcov}");
    }
    let html = of("html");
    assert!(html.starts_with("<!doctype html>") && html.contains("default-src 'none'"));
    assert!(
        !html.contains("<script") && !html.contains('\u{1b}'),
        "{html}"
    );
    assert!(!of("human").contains('\u{1b}'));
}
