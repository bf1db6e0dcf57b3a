//! No input causes a panic or runs without end: every mistake in a repository becomes a finding.

use std::collections::BTreeMap;
use std::sync::Arc;

use proptest::prelude::*;
use reqc::compile::{AgentBodies, Compiler, PolicyOptions, Selection};
use reqc::diag::Diagnostic;
use reqc::repo::LoadOptions;
use reqc::report::{Format as _, Human, Json, Layout, Short};
use reqc::world::MemoryWorld;

/// Returns a small bundled layer with few contexts, so that tests are fast.
fn base() -> MemoryWorld {
    MemoryWorld::from_iter([
        (
            "providers/p.toml",
            "name = \"P\"\nclient_api = \"OpenAI Compatible\"\nurl = \"https://p.example/v1\"\n",
        ),
        (
            "agents/base.toml",
            "name = \"Base\"\nabstract = true\nprovider_instance = \"P\"\nendpoint = \"chat\"\n\
             [body]\nmessages = \"[{% include 'm.jinja' %}]\"\n",
        ),
        (
            "partials/m.jinja",
            "{% for m in ctx.history %}{\"role\": {{ tojson(m.role) }}},{% endfor %}",
        ),
        (
            "contexts/turn.json",
            r#"{"name": "turn", "why": "one turn", "kind": "chat", "golden": true,
                "history": [{"role": "user", "content": "hello"}]}"#,
        ),
        (
            "contexts/code.json",
            r#"{"name": "code", "why": "a cursor", "kind": "completion", "golden": true,
                "prefix": "a", "suffix": "b"}"#,
        ),
    ])
}

/// Compiles everything, writes every kind of report, and returns the findings.
fn compile(files: impl IntoIterator<Item = (String, Vec<u8>)>) -> Vec<Diagnostic> {
    let own: MemoryWorld = files.into_iter().collect();
    let compiler = Compiler::load(Arc::new(own), Arc::new(base()), LoadOptions::default());
    let write = |agent: &AgentBodies<'_>| {
        agent
            .bodies
            .iter()
            .map(|(_, body)| body.pretty().len())
            .sum::<usize>()
    };
    let (report, _) = compiler.report_each(&Selection::default(), &PolicyOptions::default(), write);
    let layout = Layout {
        width: 80,
        colour: true,
    };
    assert!(!Human(layout).report(&report, &[]).is_empty());
    Short(layout).report(&report, &[]);
    Json.report(&report, &[]);
    report.findings
}

fn agent(body: &str) -> String {
    format!("name = \"A\"\nextends = \"Base\"\n[body]\n{body}\n")
}

fn compile_agent(body: &str) -> Vec<Diagnostic> {
    compile([("agents/a.toml".to_owned(), agent(body).into_bytes())])
}

/// Returns the codes of findings, except those about lost content: these agents write almost
/// nothing of a conversation.
fn codes(findings: &[Diagnostic]) -> Vec<&'static str> {
    findings
        .iter()
        .map(|finding| finding.rule.code)
        .filter(|code| !code.starts_with("flow/"))
        .collect()
}

const PATHS: [&str; 11] = [
    "agents/a.toml",
    "partials/m2.jinja",
    "contexts/c.json",
    "reqc.toml",
    "providers/q.toml",
    "models.toml",
    "rosters.toml",
    "model-families.toml",
    "roles/r.md",
    "agents/deep/partials/x.jinja",
    "schemas/openai-chat.json",
];

/// A profile that uses the files at the other paths.
const USER: &str = "name = \"User\"\nextends = \"Base\"\nprovider_instance = \"P\"\n\
    system_prompt = \"{{ read_file(':/roles/r.md') }}\"\n\
    [body]\nx = \"{% include 'm2.jinja' ignore missing %}\"\ny = \"{% include 'x.jinja' ignore missing %}\"\n";

/// Tokens of templates, to be joined at random.
const TOKENS: [&str; 52] = [
    "{{",
    "}}",
    "{%",
    "%}",
    "{#",
    "#}",
    "{%-",
    "-%}",
    " if ",
    " else ",
    " else if ",
    " elif ",
    "endif",
    " for ",
    " in ",
    "endfor",
    "x",
    "ctx",
    ".history",
    ".prefix",
    "loop",
    ".index",
    ".is_last",
    ".parent",
    " set ",
    "=",
    " + ",
    " ~ ",
    " - ",
    " * ",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "\"",
    "'",
    "1",
    "99999999999999999999",
    " not ",
    " and ",
    " | ",
    "tojson",
    "existsIn",
    " include ",
    " macro ",
    " raw ",
    "\n",
    "é\u{202e}😀",
];

fn template() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(&TOKENS[..]), 0..24)
        .prop_map(|tokens| tokens.concat())
}

/// Generates templates that usually parse.
fn likely_template() -> impl Strategy<Value = String> {
    let expression = prop::sample::select(vec![
        "ctx",
        "ctx.history",
        "ctx.history[0].content",
        "ctx.nothing",
        "1",
        "-1",
        "1.5",
        "true",
        "none",
        "'s'",
        "[1, 's']",
        "{'a': [none]}",
        "loop.index",
        "loop.is_last",
        "ctx.history | length",
        "tojson(ctx)",
        "tojson(tojson(1))",
        "existsIn(ctx, 'prefix')",
        "length(3)",
        "length('é')",
        "filter_by_type(ctx.history, 'x')",
        "range(3)",
        "ctx.prefix + '<cursor>' + ctx.suffix",
        "1 / 0",
        "1 % 0",
        "2 ** 200",
        "'a' * 3",
        "[0] * -1",
        "'a' < 1",
        "9223372036854775807 + 1",
        "18446744073709551615",
        "-9223372036854775808",
        "'😀'[0]",
        "'abc'[5:1:-1]",
        "[1,2][::0]",
        "ctx.history | map(attribute='role') | join(',')",
        "'%d' | format('x')",
        "namespace(a=1)",
        "'a' | indent(3)",
        "tool_id(1)",
        "tool_id('')",
        "strip_signature_suffix(1)",
        "dict(a=1)",
        "range(5, 1, -2)",
        "[3, 'a'] | sort",
        "ctx | items | list",
        "'a,b' | split(',')",
        "[] | first",
        "[[1]] | sum",
        "'x' | int",
    ]);
    let shape = prop::sample::select(vec![
        "{{ E }}",
        "\"{{ E }}\"",
        "{{ tojson(E) }}",
        "{{ E | tojson }}",
        "[{{ E }},]",
        "{% if E %}1{% else if E %}2{% endif %}",
        "[{% for x in E %}{{ x }},{% endfor %}]",
        "{% set x = E %}{{ x }}",
        "{% set x %}{{ E }}{% endset %}{{ tojson(x) }}",
        "{% for k, v in E %}{{ k }}{% endfor %}",
        "{# E #}{{ 1 }}",
        "{% raw %}{{ E }}{% endraw %}",
        "{\"a\": {{ E }}, \"a\": 1}",
        "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(E) }}",
        "{% with a = E %}{{ a }}{% endwith %}",
        "{% filter upper %}{{ E }}{% endfilter %}",
    ]);
    (shape, expression).prop_map(|(shape, expression)| shape.replace('E', expression))
}

/// Generates the text of a TOML value.
fn toml_value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        any::<i64>().prop_map(|value| value.to_string()),
        any::<f64>().prop_map(|value| format!("{value:?}").replace("NaN", "nan")),
        any::<bool>().prop_map(|value| value.to_string()),
        template().prop_map(|text| quoted(&text)),
        likely_template().prop_map(|text| quoted(&text)),
        Just("1979-05-27T07:32:00Z".to_owned()),
        Just("'''\n{{ ctx.x }}'''".to_owned()),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let table = prop::collection::btree_map(key(), inner.clone(), 0..4).prop_map(|members| {
            let members: Vec<String> = members
                .into_iter()
                .map(|(key, value)| format!("{key} = {value}"))
                .collect();
            format!("{{ {} }}", members.join(", "))
        });
        prop_oneof![
            prop::collection::vec(inner, 0..4)
                .prop_map(|elements| format!("[{}]", elements.join(", "))),
            table
        ]
    })
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        prop::sample::select(vec![
            "a",
            "model",
            "messages",
            "tools",
            "system",
            "max_tokens",
            "stream"
        ])
        .prop_map(str::to_owned),
        "[a-z/~.\"é ]{0,6}".prop_map(|text| quoted(&text)),
    ]
}

/// Returns a basic TOML string, which has the escapes of JSON.
fn quoted(text: &str) -> String {
    serde_json::to_string(text)
        .expect("a string")
        .replace('\u{7f}', "\\u007f")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_bytes_anywhere(path in prop::sample::select(&PATHS[..]), bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        compile([(path.to_owned(), bytes), ("agents/user.toml".to_owned(), USER.into())]);
    }

    #[test]
    fn arbitrary_text_anywhere(path in prop::sample::select(&PATHS[..]), text in "\\PC{0,80}", prefix in prop::sample::select(vec!["", "name = \"A\"\n", "{\"name\": \"c\", ", "[body]\nx = ", "[[allow]]\n"])) {
        compile([(path.to_owned(), format!("{prefix}{text}").into_bytes()), ("agents/user.toml".to_owned(), USER.into())]);
    }

    #[test]
    fn random_profiles(members in prop::collection::btree_map(key(), toml_value(), 0..5), top in prop::collection::btree_map(prop::sample::select(vec!["model", "abstract", "tags", "unset", "match", "system_prompt", "enable_tools", "cache_prompt", "cache_breakpoints", "provider_instance", "endpoint", "role"]), toml_value(), 0..3)) {
        let line = |(key, value): (&str, &String)| format!("{key} = {value}\n");
        let top: String = top.iter().map(|(key, value)| line((key, value))).collect();
        let body: String = members.iter().map(|(key, value)| line((key, value))).collect();
        let text = format!("name = \"A\"\nextends = \"Base\"\n{top}[body]\n{body}");
        compile([("agents/a.toml".to_owned(), text.into_bytes())]);
    }

    #[test]
    fn random_templates(body in template(), likely in likely_template(), prompt in template(), partial in template()) {
        let text = format!(
            "name = \"A\"\nextends = \"Base\"\nsystem_prompt = {}\n[body]\na = {}\nb = {}\nc = \"{{% include 'm2.jinja' %}}\"\n",
            quoted(&prompt), quoted(&body), quoted(&likely)
        );
        compile([("agents/a.toml".to_owned(), text.into_bytes()), ("partials/m2.jinja".to_owned(), partial.into_bytes())]);
        compile_agent(&format!("b = {}", quoted(&likely)));
    }

    #[test]
    fn random_templates_count_from_0(likely in likely_template(), partial in template()) {
        let text = agent(&format!("x = {}\ny = \"{{% include 'm2.jinja' %}}\"", quoted(&likely)));
        compile([
            ("reqc.toml".to_owned(), b"dialect = \"inja\"".to_vec()),
            ("agents/a.toml".to_owned(), text.into_bytes()),
            ("partials/m2.jinja".to_owned(), partial.into_bytes()),
        ]);
    }

    #[test]
    fn any_name(name in prop_oneof!["\\PC{0,12}", "[/\\\\.: é😀]{0,5}", Just("x".repeat(5000)), Just("../../x".to_owned()), Just("request".to_owned())]) {
        let text = format!("name = {}\nextends = \"Base\"\n", quoted(&name));
        let context = format!(
            "{{\"name\": {}, \"why\": \"w\", \"kind\": \"chat\", \"golden\": true, \"history\": [{{\"role\": \"user\", \"content\": \"x\"}}]}}",
            serde_json::to_string(&name).expect("a string")
        );
        compile([("agents/a.toml".to_owned(), text.into_bytes()), ("contexts/c.json".to_owned(), context.into_bytes())]);
    }
}

#[test]
fn large_files_compile() {
    let megabyte = "long \\\" text ".repeat(80_000);
    assert_eq!(
        codes(&compile_agent(&format!("x = \"{megabyte}\""))),
        [""; 0]
    );
    assert_eq!(
        codes(&compile_agent(&format!(
            "x = \"{{{{ tojson('{}') }}}}\"",
            "y".repeat(1 << 20)
        ))),
        [""; 0]
    );
    let lines: Vec<String> = (0..5000)
        .map(|index| format!("key_{index} = \"{{{{ {index} }}}}\"\n"))
        .collect();
    let lines = lines.concat();
    assert_eq!(codes(&compile_agent(&lines)), [""; 0]);
    let elements = (0..10_000)
        .map(|index| index.to_string())
        .collect::<Vec<_>>()
        .join(", ");
    assert_eq!(codes(&compile_agent(&format!("x = [{elements}]"))), [""; 0]);
    let loops = "{% for i in range(10000) %}{{ i }},{% endfor %}";
    assert_eq!(
        codes(&compile_agent(&format!("x = \"[{loops}]\""))),
        [""; 0]
    );
}

/// Any kind of nesting deeper than the limits is a finding.
#[test]
fn deep_nesting_is_a_finding() {
    let nested = |open: &str, middle: &str, close: &str, depth: usize| {
        format!("{}{middle}{}", open.repeat(depth), close.repeat(depth))
    };
    let array = |depth| format!("x = {}", nested("[", "", "]", depth));
    let template = |text: String| format!("x = {}", quoted(&text));
    let cases: BTreeMap<&str, String> = BTreeMap::from([
        ("TOML arrays", array(200)),
        ("TOML arrays, more", array(20_000)),
        (
            "TOML tables",
            format!("x = {}", nested("{ a = ", "1", " }", 200)),
        ),
        (
            "dotted keys",
            format!("{} = 1", vec!["a"; 20_000].join(".")),
        ),
        (
            "parentheses",
            template(
                nested("{{ (", "1", "", 1).replace('(', &"(".repeat(20_000))
                    + &")".repeat(20_000)
                    + " }}",
            ),
        ),
        (
            "lists",
            template(format!("{{{{ {} }}}}", nested("[", "1", "]", 20_000))),
        ),
        (
            "nots",
            template(format!("{{{{ {}1 }}}}", "not ".repeat(20_000))),
        ),
        (
            "minuses",
            template(format!("{{{{ {}1 }}}}", "-".repeat(20_000))),
        ),
        (
            "ifs",
            template(nested("{% if 1 %}", "1", "{% endif %}", 20_000)),
        ),
        (
            "fors",
            template(nested("{% for i in [1] %}", "1", "{% endfor %}", 5_000)),
        ),
        (
            "JSON",
            template(format!(
                "{{% if 1 %}}{}{{% endif %}}",
                nested("[", "", "]", 20_000)
            )),
        ),
    ]);
    for (what, body) in cases {
        assert!(!compile_agent(&body).is_empty(), "{what}");
    }
    let context = format!(
        "{{\"name\": \"deep\", \"history\": {}}}",
        nested("[", "", "]", 20_000)
    );
    assert!(!compile([("contexts/deep.json".to_owned(), context.into_bytes())]).is_empty());
}

#[test]
fn long_chains_of_operators_do_not_panic() {
    for operator in [
        " + ",
        " ~ ",
        " and ",
        " or ",
        " == ",
        " | upper | ",
        ".a.",
        " if 1 else ",
    ] {
        let chain = vec!["a"; 20_000].join(operator);
        compile_agent(&format!(
            "x = {}",
            quoted(&format!("{{% set a = 'b' %}}{{{{ {chain} }}}}"))
        ));
    }
}

/// Templates that would run or grow without end.
#[test]
fn endless_templates_end_with_an_error() {
    let limits = [
        "template/too-many-steps",
        "template/too-much-work",
        "template/too-deep",
        "template/output-too-large",
        "template/failed",
    ];
    let forever = "{% for a in range(9999) %}{% for b in range(9999) %}";
    let end = "{% endfor %}{% endfor %}";
    let cases = [
        ("nested loops", format!("{forever}{{% set x = a %}}{end}1")),
        ("loops that write", format!("\"{forever}x{end}\"")),
        ("a long range", "{% for a in range(99999999999) %}{% endfor %}1".to_owned()),
        ("recursion", "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}".to_owned()),
        ("two macros", "{% macro f(x) %}{{ g(x) }}{% endmacro %}{% macro g(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}".to_owned()),
        ("a growing string", "{% set s = 'xxxxxxxxxxxxxxxx' %}{% for i in range(9999) %}{% set s = s + s %}{% for j in range(9999) %}{% set s = s + s %}{{ s }}{% endfor %}{% endfor %}".to_owned()),
        ("a growing capture", format!("{{% set n = namespace(s='xx') %}}{forever}{{% set t %}}{{{{ n.s }}}}{{{{ n.s }}}}{{% endset %}}{{% set n.s = t %}}{end}1")),
        ("growing lists", format!("{{% set n = namespace(s=[1]) %}}{forever}{{% set n.s = [n.s, n.s] %}}{end}1").replace("9999", "60") + "{{ tojson(n.s) }}"),
        ("written lists", "{% set n = namespace(s=['x' * 9999]) %}{% for a in range(60) %}{% set n.s = [n.s, n.s] %}{% endfor %}{{ n.s }}".to_owned()),
        ("deep lists", "{% set n = namespace(s=[1]) %}{% for a in range(9999) %}{% set n.s = [n.s] %}{% endfor %}{{ tojson(n.s) }}".to_owned()),
        ("a string that doubles", "{% set n = namespace(s='x') %}{% for a in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}1".to_owned()),
        ("a string that doubles, joined", "{% set n = namespace(s='x') %}{% for a in range(99) %}{% set n.s = n.s ~ n.s %}{% endfor %}1".to_owned()),
        ("a string that doubles on its way down", "{% macro f(s) %}{{ f(s + s) }}{% endmacro %}{{ f('x') }}".to_owned()),
        ("a string that doubles line by line", format!("{{% set s = 'x' %}}{}1", "{% set s = s + s %}".repeat(60))),
        ("a string that doubles loop by loop", format!("{{% set s = 'x' %}}{}1{}", "{% for i in [1] %}{% set s = s + s %}".repeat(60), "{% endfor %}".repeat(60))),
        ("a list that doubles", "{% set n = namespace(s=[1]) %}{% for a in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}1".to_owned()),
        ("a string that is multiplied", "{% set n = namespace(s='x') %}{% for a in range(99) %}{% set n.s = n.s * 9 %}{% endfor %}1".to_owned()),
        ("repeated strings", "{{ 'x' * 99999999999 }}".to_owned()),
    ];
    for (what, template) in cases {
        let found = codes(&compile_agent(&format!("x = {}", quoted(&template))));
        assert!(
            found.iter().any(|code| limits.contains(code)),
            "{what}: {found:?}"
        );
    }
}

/// Compiles so many or such large files that quadratic work would take minutes.
fn many(count: usize, file: impl Fn(usize) -> (String, String)) -> Vec<Diagnostic> {
    compile(
        (0..count)
            .map(file)
            .map(|(path, text)| (path, text.into_bytes())),
    )
}

fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

fn count(findings: &[Diagnostic], code: &str) -> usize {
    findings
        .iter()
        .filter(|finding| finding.rule.code == code)
        .count()
}

#[test]
fn large_circles_and_long_chains_are_told_once() {
    let profile = |index: usize, parent: usize| {
        (
            format!("agents/p{index:05}.toml"),
            format!("name = \"P{index}\"\nextends = \"P{parent}\"\n"),
        )
    };
    let circle = many(4_000, |index| profile(index, (index + 1) % 4_000));
    assert_eq!(codes(&circle), ["extends/cycle"]);
    assert!(
        circle[0].message.len() < 200 && circle[0].related.len() < 10,
        "{}",
        circle[0].message
    );
    let chain = many(4_000, |index| profile(index, index + 1));
    assert_eq!(count(&chain, "extends/unknown-parent"), 1);

    let instance = |index: usize, parent: usize| {
        (
            format!("providers/p{index:05}.toml"),
            format!("name = \"P{index:05}\"\nextends = \"P{parent:05}\"\n"),
        )
    };
    assert_eq!(
        count(
            &many(4_000, |index| instance(index, (index + 1) % 4_000)),
            "provider/extends"
        ),
        1
    );
    assert_eq!(
        count(
            &many(4_000, |index| instance(index, index + 1)),
            "provider/extends"
        ),
        1
    );
}

#[test]
fn partials_that_all_include_each_other_are_told_once() {
    let text = lines(120, |at| format!("{{% include 'p{at}.jinja' %}}"));
    let findings = many(120, |index| {
        (format!("partials/p{index}.jinja"), text.clone())
    });
    assert_eq!(count(&findings, "include/cycle"), 1);
    let ring = |index: usize| {
        (
            format!("partials/p{index}.jinja"),
            format!("{{% include 'p{}.jinja' %}}", (index + 1) % 2_000),
        )
    };
    assert_eq!(count(&many(2_000, ring), "include/cycle"), 1);
}

#[test]
fn names_that_nobody_has_are_compared_in_bounded_time() {
    let findings = many(3_000, |index| {
        let text =
            format!("name = \"agent number {index}\"\nextends = \"agent numbre {index}x\"\n");
        (format!("agents/p{index}.toml"), text)
    });
    assert_eq!(count(&findings, "extends/unknown-parent"), 3_000);
    let name = "a".repeat(200_000);
    let long = compile([
        (
            "agents/a.toml".to_owned(),
            format!("name = \"{name}x\"\n").into_bytes(),
        ),
        (
            "agents/b.toml".to_owned(),
            format!("name = \"B\"\nextends = \"{name}y\"\n").into_bytes(),
        ),
    ]);
    assert_eq!(count(&long, "extends/unknown-parent"), 1);
}

#[test]
fn long_lines_with_many_mistakes_are_read_once() {
    let keys: Vec<String> = (0..5_000)
        .map(|at| format!("k{at} = \"{}\"", "é".repeat(50)))
        .collect();
    let text = format!(
        "name = \"A\"\nextends = \"Base\"\nmatch = {{ {} }}\n",
        keys.join(", ")
    );
    let findings = compile([("agents/a.toml".to_owned(), text.into_bytes())]);
    assert_eq!(
        count(&findings, "key/unknown"),
        1_000,
        "the maximum for one file"
    );
}

#[test]
fn unset_and_models_of_thousands_are_linear() {
    let keys = lines(20_000, |at| format!("k{at} = 1\n"));
    let unset: Vec<String> = (0..20_000).map(|at| format!("\"k{at}\"")).collect();
    let models = lines(20_000, |at| format!("m{at} = \"x\"\n"));
    let findings = compile([
        (
            "agents/a.toml".to_owned(),
            format!("name = \"A\"\nextends = \"Base\"\n[body]\n{keys}").into_bytes(),
        ),
        (
            "agents/b.toml".to_owned(),
            format!(
                "name = \"B\"\nextends = \"A\"\nunset = [{}]\n",
                unset.join(",")
            )
            .into_bytes(),
        ),
        ("models.toml".to_owned(), models.into_bytes()),
    ]);
    let told = (
        count(&findings, "extends/unset-nothing"),
        count(&findings, "config/unknown-agent"),
    );
    assert_eq!(told, (0, 10_000), "as many as a report holds of one rule");
}

/// Unusable schemas in a repository are errors, and checking them always ends.
#[test]
fn schemas_that_cannot_be_used_fail_the_run() {
    let found = |text: &str| {
        let schema = (
            "schemas/wire/openai-chat.schema.json".to_owned(),
            text.as_bytes().to_vec(),
        );
        codes(&compile([
            schema,
            ("agents/a.toml".to_owned(), agent("x = 1").into_bytes()),
        ]))
    };
    let doubled = |level: usize| {
        format!(
            "\"{level}\":{{\"allOf\":[{{\"$ref\":\"#/$defs/{0}\"}},{{\"$ref\":\"#/$defs/{0}\"}}]}},",
            level + 1
        )
    };
    let levels: String = (0..40).map(doubled).collect();
    for text in [
        "{\"type\": \"nosuch\"}",
        "{\"$ref\": \"#/no\"}",
        "{\"oneOf\": [{\"$ref\": \"#\"}]}",
        "5",
        "{\"pattern\": \"(\"}",
        &format!("{{\"$ref\":\"#/$defs/0\",\"$defs\":{{{levels}\"40\":true}}}}"),
        &format!("{{\"enum\": [{}1]}}", "1,".repeat(60_000)),
        &format!("{}{{}}{}", "{\"not\":".repeat(60), "}".repeat(60)),
    ] {
        assert_eq!(
            found(text),
            ["schema/unusable"],
            "{}",
            &text[..text.len().min(200)]
        );
    }
}

/// The time to check this schema doubles with each level of the body. It is reported instead of
/// checked.
#[test]
fn bodies_that_take_too_long_to_check_are_told() {
    let twice = r##"{"$ref": "#/$defs/t", "$defs": {"t": {"allOf": [
        {"properties": {"a": {"$ref": "#/$defs/t"}}}, {"properties": {"a": {"$ref": "#/$defs/t"}}}]}}}"##;
    let body = (0..60).fold("1".to_owned(), |inner, _| format!("{{ a = {inner} }}"));
    let body = format!("a = {body}");
    let findings = compile([
        (
            "schemas/wire/openai-chat.schema.json".to_owned(),
            twice.as_bytes().to_vec(),
        ),
        ("agents/a.toml".to_owned(), agent(&body).into_bytes()),
    ]);
    assert_eq!(codes(&findings), ["schema/unusable"]);
    let unusable = findings
        .iter()
        .find(|finding| finding.rule.code == "schema/unusable")
        .expect("it is told");
    assert!(
        unusable.message.contains("work limit"),
        "{}",
        unusable.message
    );
}
