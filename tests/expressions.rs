//! Templates that take too much work or memory stop at a limit with a finding, and nothing panics.
//!
//! `REQC_EXPRESSIONS=100000 cargo test --features long-tests --test expressions` tries that many random templates.

use std::fmt::Write as _;
use std::sync::Arc;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use rayon::prelude::*;
use reqc::compile::{Compiler, Selection};
use reqc::diag::Diagnostic;
use reqc::repo::LoadOptions;
use reqc::world::MemoryWorld;

const BASE: &str =
    "name = \"Base\"\nabstract = true\nprovider_instance = \"P\"\nendpoint = \"chat\"\n[body]\n";

/// Compiles a repository with one agent, which has this body template or system prompt, and with
/// these additional files.
fn compiler(template: &str, is_prompt: bool, files: &[(&str, &str)]) -> Compiler {
    let base = MemoryWorld::from_iter([
        (
            "providers/p.toml",
            "name = \"P\"\nclient_api = \"OpenAI Compatible\"\nurl = \"https://p.example/v1\"\n",
        ),
        (
            "contexts/turn.json",
            r#"{"name": "turn", "why": "one turn", "kind": "chat", "golden": true,
                "history": [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "é\n\u0000 x"}]}"#,
        ),
    ]);
    let mut own: Vec<(String, Vec<u8>)> = files
        .iter()
        .map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec()))
        .collect();
    own.push(("agents/base.toml".to_owned(), BASE.as_bytes().to_vec()));
    let (before, after) = match is_prompt {
        true => (format!("system_prompt = '''{template}'''\n"), String::new()),
        false => (String::new(), format!("x = '''{template}'''\n")),
    };
    let agent = format!("name = \"A\"\nextends = \"Base\"\n{before}[body]\n{after}");
    own.push(("agents/a.toml".to_owned(), agent.into_bytes()));
    let own: MemoryWorld = own.into_iter().collect();
    Compiler::load(Arc::new(own), Arc::new(base), LoadOptions::default())
}

/// Returns `true` if a finding is about lost content, which these agents have because they write
/// almost nothing of a conversation.
fn is_loss(finding: &Diagnostic) -> bool {
    finding.rule.code.starts_with("flow/")
}

/// Returns all findings, including those of loading, as `CODE: MESSAGE`.
fn findings(compiler: &Compiler) -> Vec<String> {
    let run = compiler.run(&Selection::default(), |agent| {
        agent
            .bodies
            .iter()
            .map(|(_, body)| body.pretty().len())
            .sum::<usize>()
    });
    let all = compiler
        .findings()
        .iter()
        .cloned()
        .chain(run.findings.into_vec());
    all.filter(|finding| !is_loss(finding))
        .map(|finding| format!("{}: {}", finding.rule.code, finding.message))
        .collect()
}

fn body(template: &str) -> Vec<String> {
    findings(&compiler(template, false, &[]))
}

/// A string of half a megabyte, made without a loop.
const BIG: &str = "{% set big = 'x' * 500000 %}{% set ns = namespace(s='', l=[], x=none) %}";

fn is_bounded(finding: &str) -> bool {
    let codes = [
        "template/too-much-work",
        "template/output-too-large",
        "template/too-many-steps",
        "template/too-deep",
    ];
    codes.iter().any(|code| finding.starts_with(code))
}

#[test]
fn work_is_bounded_whatever_the_operation() {
    let times = |work: &str| format!("{BIG}{{% for i in range(60000) %}}{work}{{% endfor %}}");
    let each = [
        "{% if big == big ~ 'a' %}{% endif %}",
        "{% set y = big | upper %}",
        "{% set y = big | trim %}",
        "{% set y = big | replace('x', 'yy') %}",
        "{% set y = big | reverse %}",
        "{% set y = big | length %}",
        "{% set y = big | split('') %}",
        "{% set y = big | indent(100) %}",
        "{% set y = 'a' in big %}",
        "{% set y = big in big %}",
        "{% set y = big is in([big]) %}",
        "{% set y = big is eq(big ~ '') %}",
        "{% set y = big[::-1] %}",
        "{% set y = big[-1] %}",
        "{% set y = big ~ i %}",
        "{% set y = big + 'a' %}",
        "{% set y = big * 1 %}",
        "{% set y = [big] | join(big) %}",
        "{% set y = [big, big] | sort %}",
        "{% set y = [big, big] | unique %}",
        "{% set y = [big, big] | map('upper') %}",
        "{% set y = [big, big] | select('eq', big) %}",
        "{% set y = {big: 1} %}",
        "{% set y = {'a': 1}[big] %}",
        "{% set y %}{{ big }}{% endset %}",
        "{% set ns.s %}{{ ns.s }}{{ big }}{% endset %}",
        "{% filter upper %}{{ big }}{% endfilter %}",
        "{% set y = strip_signature_suffix(big) %}",
        "{% set y = tool_id(big) %}",
        "{% set y = big | int(0) %}",
        "{% set y = big is startingwith(big) %}",
        "{{ big }}",
    ];
    each.par_iter().for_each(|work| {
        let found = body(&times(work));
        assert!(
            found.iter().any(|finding| is_bounded(finding)),
            "{work}: {found:?}"
        );
    });
}

#[test]
fn what_cannot_be_made_is_refused_before_it_is() {
    let attacks = [
        (
            "{{ range(100000) | join('x' * 30000000) }}",
            "template/too-much-work",
        ),
        (
            "{{ ('a' * 30000000) | replace('a', 'b' * 1000) }}",
            "template/too-much-work",
        ),
        (
            "{{ ('a' * 3000000) | replace('', 'b' * 1000) }}",
            "template/too-much-work",
        ),
        ("{{ \"a\\nb\" | indent(4000000000) }}", "template/failed"),
        (
            "{{ 'a' | indent(18446744073709551615) }}",
            "template/failed",
        ),
        (
            "{{ [1] | batch(9223372036854775807, 1) | list }}",
            "template/unknown-name",
        ),
        (
            "{{ [1] | slice(9223372036854775807) | list }}",
            "template/unknown-name",
        ),
        (
            "{{ '%1000000000s' | format('a') }}",
            "template/unknown-name",
        ),
        (
            "{{ ('a' * 99999999) | length }}",
            "template/output-too-large",
        ),
        ("{{ (1, 2) * 100000000 }}", "template/failed"),
        ("{{ (1, 2) * 10000000 }}", "template/output-too-large"),
        (
            "{{ ([1] * 100000000) | list }}",
            "template/output-too-large",
        ),
        (
            "{% set a, b = [1] * 100000000 %}",
            "template/output-too-large",
        ),
        ("{{ range(9223372036854775807) }}", "template/failed"),
        (
            "{{ range(-9223372036854775807, 9223372036854775807, 1) }}",
            "template/failed",
        ),
        ("{{ 1 is divisibleby(0) }}", "template/failed"),
        ("{{ loop.cycle() }}", "template/unknown-name"),
        (
            "{% for i in [1] %}{{ loop.changed(loop) }}{% endfor %}",
            "template/unknown-name",
        ),
        ("{{ 1 // 0 }}", "template/failed"),
        ("{{ 1 % 0 }}", "template/failed"),
        ("{{ 9999999999999999999999 ** 9999 }}", "template/failed"),
        ("{{ 1.5 | round(2000000000) }}", "template/failed"),
        ("{{ [3, 'a', none] | sort }}", "template/failed"),
        ("{{ __w(1) }}", "template/unknown-name"),
    ];
    for (template, code) in attacks {
        let found = findings(&compiler(template, false, &[("partials/m.jinja", "")]));
        assert!(
            found.iter().any(|finding| finding.starts_with(code)),
            "{template}: {found:?}"
        );
    }
}

#[test]
fn odd_slices_are_what_python_makes_of_them() {
    for template in [
        "{{ tojson([][::-1]) }}",
        "{{ tojson(''[::-1]) }}",
        "{{ tojson('abc'[-9223372036854775807:9223372036854775807:9223372036854775807]) }}",
        "{{ tojson([1, 2][::-9223372036854775807]) }}",
        "{{ tojson((1, 2)[5:1:-1]) }}",
    ] {
        assert_eq!(body(template), [""; 0], "{template}");
    }
}

#[test]
fn loops_call_themselves_by_any_name() {
    let inner = "{% if x is iterable %}{% for y in [x] %}({{ outer(y) }}){% endfor %}{% else %}{{ x }}.{{ outer.index }}{% endif %}";
    for (head, inner) in [
        (
            "{% for x in [1, [2, [3]]] recursive %}{% set outer = loop %}",
            inner,
        ),
        (
            "{% for x in [1, 0, [2, [3]]] if x recursive -%}  {% set outer = loop %}",
            inner,
        ),
        (
            "{% for x in [1, [2, [3]]] recursive %}{% set outer = loop %}{% macro m(x) %}{% set t = outer(x) %}({{ t }}){% endmacro %}",
            "{% if x is iterable %}{{ m(x) }}{% else %}{{ x }}.{{ loop.index }}{% endif %}",
        ),
        (
            "{% for x in [1, [2, [3]]] recursive %}",
            "{% if x is iterable %}({{ loop(x) }}){% else %}{{ x }}.{{ loop['index'] }}{% endif %}",
        ),
    ] {
        let template = format!(
            "{{% set text %}}{head}{inner}{{% endfor %}}{{% endset %}}{{{{ 1 if text == '1.1(2.1(3.1))' else nosuch }}}}"
        );
        assert_eq!(body(&template), [""; 0], "{template}");
    }
}

#[test]
fn nothing_jumps_into_instructions_of_others() {
    let partials = [
        (
            "partials/call.jinja",
            "{% set a = 1 %}{{ other([1]) }}{% set b = [a, 1, 2] %}",
        ),
        // A name that one partial calls and another assigns.
        ("partials/names.jinja", "{% macro other() %}{% endmacro %}"),
        (
            "partials/builtin.jinja",
            "{% set a = 1 %}{{ length([1]) }}{% set b = [a, 1, 2] %}",
        ),
        (
            "partials/read.jinja",
            "{% set a = 1 %}{% set l = loop %}{{ [1, 2, l([1])] }}",
        ),
    ];
    for inner in [
        "{% set other = loop %}{% include 'call.jinja' %}",
        "{% set length = loop %}{% include 'builtin.jinja' %}",
        "{% include 'read.jinja' %}",
        "{% set other = loop %}{% block b %}{% set a = other([1]) %}{{ [a, 1, 2] }}{% endblock %}",
        "{% set other = [loop] | first %}{% block b %}{% set a = other([1]) %}{{ [a, 1, 2] }}{% endblock %}",
        "{% with other = loop %}{% include 'call.jinja' %}{% endwith %}",
        "{% for other in [loop] %}{% include 'call.jinja' %}{% endfor %}",
    ] {
        let template = format!("{{% for x in [[1], [2]] recursive %}}{inner}{{% endfor %}}");
        let found = findings(&compiler(&template, false, &partials));
        assert!(
            found
                .iter()
                .any(|it| it.contains("a loop can be called only inside itself")),
            "{template}: {found:?}"
        );
        assert!(
            !found.iter().any(|it| it.starts_with("internal/")),
            "{template}: {found:?}"
        );
    }
}

#[test]
fn shared_and_circular_values_end() {
    let doubled = |start: &str, step: &str, times: usize| {
        let mut template = format!("{{% set l = {start} %}}");
        (0..times).for_each(|_| write!(template, "{{% set l = {step} %}}").expect("memory"));
        template
    };
    for (start, step) in [
        ("[1]", "[l, l]"),
        ("{}", "{'a': l, 'b': l}"),
        ("[1]", "(l, l)"),
        ("[1]", "dict(a=l, b=l)"),
    ] {
        let found = body(&(doubled(start, step, 60) + "1"));
        assert!(
            found.iter().any(|finding| is_bounded(finding)),
            "{step}: {found:?}"
        );
    }
    // Values within the limits cannot be read any number of times.
    for work in [
        "l == l | list",
        "l ~ ''",
        "l | string",
        "l | unique",
        "{l: 1}",
        "tojson(l)",
        "l in [1, l]",
        "l is eq(l)",
    ] {
        let end = format!("{{% for i in range(999) %}}{{% set y = {work} %}}{{% endfor %}}1");
        let found = body(&(doubled("[1]", "[l, l]", 15) + &end));
        assert!(
            found.iter().any(|finding| is_bounded(finding)),
            "{work}: {found:?}"
        );
    }
    for cycle in [
        "{% set ns.x = ns %}{{ ns ~ '' }}",
        "{% set ns.x = [ns] %}{{ ns == ns }}",
        "{% set ns.x = {'a': {'b': (1, ns)}} %}{{ tojson(ns) }}",
        "{% set a = namespace() %}{% set a.x = ns %}{% set ns.x = a %}",
        "{% set ns.x, y = ns, 1 %}",
        "{% set ns.x | default(ns, true) %}{% endset %}",
        "{% for i in [ns] %}{% set ns.x = loop %}{% endfor %}",
        "{% set ns.x = ns if true else 1 %}",
        "{% set ns.x = [1] + [ns] %}",
        "{% set ns.x = [ns][1:] + [ns] %}",
        "{% set ns = namespace(x=ns) %}",
        "{% set ns = namespace({'x': [ns]}) %}",
        "{% set d = {'n': ns} %}{% set ns.x = d.n %}",
        "{% set ns.x = [ns] | first %}",
    ] {
        let found = body(&format!("{BIG}{cycle}1"));
        assert!(
            found
                .iter()
                .any(|finding| finding.contains("a namespace can hold")),
            "{cycle}: {found:?}"
        );
    }
}

#[test]
fn nothing_nests_without_end() {
    let attacks = [
        "{% for i in range(90000) %}{% set ns.l = [ns.l] %}{% endfor %}",
        "{% for i in range(90000) %}{% set l = [l] if i else [] %}{% endfor %}",
        "{% for i in range(90000) %}{% set l = {'a': l} if i else {} %}{% endfor %}",
        "{% for i in range(90000) %}{% set l = (l, 1) if i else () %}{% endfor %}",
        "{% for i in range(90000) %}{% set l = dict(a=l) if i else dict() %}{% endfor %}",
        "{% macro m(x) %}{{ m([x]) }}{% endmacro %}{{ m(1) }}",
        "{% for x in [[1]] recursive %}{{ loop([[x]]) }}{% endfor %}",
    ];
    for attack in attacks {
        let found = body(&format!("{BIG}{attack}1"));
        assert!(
            found.iter().any(|finding| is_bounded(finding)),
            "{attack}: {found:?}"
        );
    }
    // Lists that are concatenated and sliced again do not become nested.
    let flat = "{% for i in range(5000) %}{% set ns.l = (ns.l + [i])[-9:] %}{% endfor %}{{ tojson(ns.l) }}";
    assert_eq!(body(&format!("{BIG}{flat}")), [""; 0]);
}

#[test]
fn prompts_have_the_same_account() {
    let file = "y".repeat(1_000_000);
    for work in [
        "{{ read_file('${CONFIG_DIR}/roles/big.md') | length }}",
        "{% set x = agent_role('big') %}",
        "{% set x = file_exists('roles/big.md') %}",
        "{% set x = read_dir('${CONFIG_DIR}/roles') %}",
        "{% set x = head_lines(big, 1) ~ basename(big) ~ dirname(big) ~ ext(big) ~ upper(big) %}",
    ] {
        let template = format!("{BIG}{{% for i in range(60000) %}}{work}{{% endfor %}}");
        let found = findings(&compiler(&template, true, &[("roles/big.md", &file)]));
        assert!(
            found.iter().any(|finding| is_bounded(finding)),
            "{work}: {found:?}"
        );
    }
}

#[test]
fn the_templates_of_a_body_share_an_account() {
    let template = format!(
        "x{{}} = '''{BIG}{{% for i in range(60) %}}{{% set y = big | upper %}}{{% endfor %}}1'''\n"
    );
    let many: String = (0..4)
        .map(|index| template.replacen("{}", &index.to_string(), 1))
        .collect();
    let agent = format!("name = \"B\"\nextends = \"Base\"\n[body]\n{many}");
    let found = findings(&compiler("1", false, &[("agents/b.toml", &agent)]));
    assert_eq!(
        found,
        ["template/too-much-work: the templates of this body process too much data in total"]
    );
}

#[test]
fn ordinary_outputs_of_the_largest_size_pass() {
    let found = body("{% set x = 'x' * 15000000 %}{{ tojson([x, x]) }}");
    assert_eq!(found, [""; 0]);
    let found = body(
        "{% set x = 'x' * 15000000 %}{% macro m(y) %}{{ tojson(y) }}{% endmacro %}[{{ m(x) }}, {{ x | tojson }}]",
    );
    assert_eq!(found, [""; 0]);
}

#[test]
fn a_panic_loses_one_agent() {
    let agent = "name = \"B\"\nextends = \"Base\"\n[body]\nx = 1\n";
    let compiler = compiler("1", false, &[("agents/b.toml", agent)]);
    let run = compiler.run(&Selection::default(), |agent| {
        assert!(&**agent.plan.name() != "A", "no\nmore");
        agent.plan.name().to_string()
    });
    assert_eq!(run.results, ["B"]);
    let findings: Vec<Diagnostic> = run
        .findings
        .into_vec()
        .into_iter()
        .filter(|finding| !is_loss(finding))
        .collect();
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].rule.code, "internal/panic");
    assert_eq!(findings[0].message, "reqc failed on the agent `A`: no");
}

/// Generates expressions that combine hostile values in all ways.
fn expression() -> impl Strategy<Value = String> {
    let leaf = prop::sample::select(vec![
        "0",
        "1",
        "-1",
        "2",
        "64",
        "65",
        "1.5",
        "-0.0",
        "1e308",
        "(1e308 * 10)",
        "(0.0 * (1e308 * 10))",
        "9223372036854775807",
        "-9223372036854775808",
        "18446744073709551615",
        "170141183460469231731687303715884105727",
        "340282366920938463463374607431768211455",
        "true",
        "none",
        "nope",
        "''",
        "'a'",
        "'é\\n\\u0000'",
        "big",
        "('x' * 1000000)",
        "[]",
        "[1, 2, 3]",
        "[[], [[1]], {}]",
        "(1, 'a')",
        "()",
        "{}",
        "{'a': [1], 'b': none}",
        "{1: 2}",
        "ns",
        "ns.l",
        "l",
        "loop",
        "loop.previtem",
        "m",
        "m(1)",
        "mod",
        "mod.v",
        "ctx",
        "ctx.history",
        "range",
        "range(100)",
        "dict(a=1)",
        "namespace(a=1)",
        "tojson",
        "caller",
        "i",
        "'upper'",
        "'length'",
        "'map'",
    ])
    .prop_map(str::to_owned);
    leaf.prop_recursive(5, 40, 4, |inner| {
        let op = prop::sample::select(vec![
            "+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or",
        ]);
        let filter = prop::sample::select(vec![
            "abs", "capitalize", "count", "d", "default", "first", "float", "indent", "int", "items", "join", "last", "length", "lines",
            "list", "lower", "map", "max", "min", "reject", "rejectattr", "replace", "reverse", "round", "select", "selectattr", "sort",
            "split", "string", "title", "tojson", "trim", "unique", "upper",
        ]);
        let test = prop::sample::select(vec![
            "boolean", "defined", "divisibleby", "endingwith", "eq", "even", "false", "float", "ge", "gt", "in", "integer", "iterable",
            "le", "lt", "mapping", "ne", "none", "number", "odd", "sequence", "startingwith", "string", "true", "undefined",
        ]);
        let function = prop::sample::select(vec![
            "range", "dict", "namespace", "tojson", "existsIn", "length", "filter_by_type", "filter_skip_role", "strip_signature_suffix",
            "tool_id", "m", "mod.f", "ns.f", "l",
        ]);
        let some = || prop::collection::vec(inner.clone(), 0..3);
        prop_oneof![
            3 => (inner.clone(), op, inner.clone()).prop_map(|(a, op, b)| format!("({a} {op} {b})")),
            3 => (inner.clone(), filter, some()).prop_map(|(a, filter, args)| format!("({a} | {filter}({}))", args.join(", "))),
            2 => (inner.clone(), test, some()).prop_map(|(a, test, args)| format!("({a} is {test}({}))", args.join(", "))),
            2 => (function, some()).prop_map(|(function, args)| format!("{function}({})", args.join(", "))),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{a}[{b}]")),
            1 => prop::collection::vec(inner.clone(), 4).prop_map(|it| format!("{}[{}:{}:{}]", it[0], it[1], it[2], it[3])),
            1 => inner.clone().prop_map(|a| format!("{a}[::-1]")),
            1 => inner.clone().prop_map(|a| format!("(-{a})")),
            1 => inner.clone().prop_map(|a| format!("(not {a})")),
            1 => some().prop_map(|items| format!("[{}]", items.join(", "))),
            1 => (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("{{{a}: {b}}}")),
            1 => (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} if {b} else {c})")),
            1 => (inner.clone(), inner.clone(), inner.clone()).prop_map(|(a, b, c)| format!("({a} < {b} <= {c})")),
            1 => (inner.clone(), prop::sample::select(vec!["a", "x", "l", "name", "0"])).prop_map(|(a, name)| format!("{a}.{name}")),
            1 => inner.clone().prop_map(|a| format!("m(*{a})")),
            1 => inner.prop_map(|a| format!("dict(**{a})")),
        ]
    })
}

/// Generates statements with expressions, in a loop.
fn template() -> impl Strategy<Value = String> {
    let statement = (expression(), expression(), 0..13_usize).prop_map(|(a, b, kind)| match kind {
        0 => format!("{{{{ {a} }}}}"),
        1 => format!("{{% set l = {a} %}}"),
        2 => format!("{{% set ns.l = {a} %}}"),
        3 => format!("{{% set l = [l, {a}] %}}"),
        4 => format!("{{% set ns.l = ns.l + [{a}] %}}"),
        5 => format!("{{% for y in {a} %}}{{{{ {b} }}}}{{% endfor %}}"),
        6 => format!("{{% if {a} %}}{{{{ {b} }}}}{{% endif %}}"),
        7 => format!("{{% set l %}}{{{{ {a} }}}}{{{{ l }}}}{{% endset %}}"),
        8 => format!("{{% set ns.l | default({a}) %}}{{{{ {b} }}}}{{% endset %}}"),
        9 => format!("{{% with z = {a} %}}{{{{ {b} }}}}{{% endwith %}}"),
        10 => format!("{{% call(q) m({a}) %}}{{{{ {b} }}}}{{% endcall %}}"),
        11 => format!("{{% filter upper %}}{{{{ {a} }}}}{{% endfilter %}}"),
        _ => format!("{{% for y in [{a}] recursive %}}{{{{ loop({b}) }}}}{{% endfor %}}"),
    });
    prop::collection::vec(statement, 1..4).prop_map(|statements| {
        format!(
            "{BIG}{{% import 'm.jinja' as mod %}}{{% set l = [1] %}}{{% macro m(x=1) %}}{{{{ x }}}}{{% if caller is defined %}}{{{{ caller(x) }}}}\
             {{% endif %}}{{% endmacro %}}{{% for i in range(200) %}}{}{{% endfor %}}",
            statements.concat()
        )
    })
}

#[test]
fn random_templates_end_without_a_panic() {
    #[expect(clippy::disallowed_methods, reason = "a person asks for more cases")]
    let wanted = std::env::var("REQC_EXPRESSIONS");
    let cases = wanted
        .ok()
        .and_then(|cases| cases.parse().ok())
        .unwrap_or(200);
    let config = Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    };
    let partial = (
        "partials/m.jinja",
        "{% set v = [1, {'a': 2}] %}{% macro f(x) %}{{ x }}{% endmacro %}",
    );
    let run = |text: String| {
        let found = findings(&compiler(&text.replace("'''", ""), false, &[partial]));
        let is_ours = |finding: &&String| finding.starts_with("internal/panic");
        prop_assert_eq!(found.iter().find(is_ours), None, "{}", text);
        Ok(())
    };
    TestRunner::new(config)
        .run(&template(), run)
        .unwrap_or_else(|error| panic!("{error}"));
}

/// The deepest recursion of each kind that the limits permit fits into half of the stack of our
/// threads.
#[test]
fn recursion_fits_the_stack() {
    const HALF: usize = 8 * 1024 * 1024;
    let parens = |depth: usize| format!("{{{{ {}1{} }}}}", "(".repeat(depth), ")".repeat(depth));
    let lists = |depth: usize| {
        format!(
            "{{{{ tojson({}1{}) }}}}",
            "[".repeat(depth),
            "]".repeat(depth)
        )
    };
    let chain =
        |link: &str, count: usize| format!("{{% set a = 'b' %}}{{{{ a{} }}}}", link.repeat(count));
    let mut templates = vec![
        "{% macro f(x) %}{% if x %}{{ f([x]) ~ 'a' }}{% endif %}{% endmacro %}{{ f(1) }}"
            .to_owned(),
        "{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{% endmacro %}{{ f() }}"
            .to_owned(),
        "{% for x in [[1]] recursive %}{{ loop([[x]]) }}{% endfor %}".to_owned(),
        "{% include 'deep0.jinja' %}".to_owned(),
        chain(" ~ a", 249),
        chain(" | upper", 249),
        chain(".a", 249),
        chain(" if 1 else a", 120),
        format!("{{% if a %}}{}{{% endif %}}", "{% elif a %}".repeat(249)),
        format!("{}1{}", "{% if 1 %}".repeat(70), "{% endif %}".repeat(70)),
    ];
    for depth in [30, 60, 70, 74, 75, 140, 149, 150] {
        templates.extend([parens(depth), lists(depth)]);
    }
    let partials: Vec<(String, String)> = (0..40)
        .map(|depth| {
            (
                format!("partials/deep{depth}.jinja"),
                format!("{{% include 'deep{}.jinja' ignore missing %}}1", depth + 1),
            )
        })
        .collect();
    let files: Vec<(&str, &str)> = partials
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    for template in templates {
        let compiler = compiler(&template, false, &files);
        std::thread::scope(|scope| {
            let render = || {
                let id = compiler.hierarchy().by_name("A").expect("it is there");
                compiler.body(id, "turn", None).map(|body| body.is_ok())
            };
            let thread = std::thread::Builder::new()
                .stack_size(HALF)
                .spawn_scoped(scope, render)
                .expect("a thread");
            thread.join().expect("it ends");
        });
    }
}
