//! The shared cache changes no result: bodies and findings are the same with and without it.

use std::path::Path;
use std::sync::Arc;

use reqc::compile::{Compiler, Selection};
use reqc::diag::Diagnostic;
use reqc::repo::LoadOptions;
use reqc::system::{Disk, Embedded};
use reqc::world::{MemoryWorld, World};

/// Returns every body and every finding of one run.
fn everything(compiler: &Compiler, without_memo: bool) -> (Vec<String>, Vec<Diagnostic>) {
    everything_in(compiler, None, without_memo)
}

fn everything_in(
    compiler: &Compiler,
    contexts: Option<&[Arc<str>]>,
    without_memo: bool,
) -> (Vec<String>, Vec<Diagnostic>) {
    let selection = Selection {
        without_memo,
        contexts: contexts.map(<[_]>::to_vec),
        ..Selection::default()
    };
    let run = compiler.run(&selection, |agent| {
        let bodies = agent.bodies.iter().map(|(ready, body)| {
            format!(
                "{} {} {}",
                agent.plan.name(),
                ready.context.name,
                body.pretty()
            )
        });
        agent.bodies.iter().for_each(|(_, body)| {
            assert_eq!(
                serde_json::from_str::<serde_json::Value>(&body.pretty()).expect("is JSON"),
                *body.value()
            );
        });
        bodies.collect::<Vec<_>>()
    });
    (
        run.results.into_iter().flatten().collect(),
        run.findings.into_vec(),
    )
}

fn assert_invisible(world: Arc<dyn World>) -> usize {
    let compiler = Compiler::load(world, Arc::new(Embedded::bundled()), LoadOptions::default());
    assert_same(&compiler, None, "all")
}

fn assert_same(compiler: &Compiler, contexts: Option<&[Arc<str>]>, what: &str) -> usize {
    let plain = everything_in(compiler, contexts, true);
    // In the second run, all results come from the cache.
    for _ in 0..2 {
        let (bodies, findings) = everything_in(compiler, contexts, false);
        let differs = plain
            .0
            .iter()
            .zip(&bodies)
            .find(|(plain, other)| plain != other);
        assert_eq!(differs, None, "{what}");
        let differs = plain
            .1
            .iter()
            .zip(&findings)
            .find(|(plain, other)| plain != other);
        assert_eq!(differs, None, "{what}");
        assert_eq!(
            (bodies.len(), findings.len()),
            (plain.0.len(), plain.1.len()),
            "{what}"
        );
    }
    plain.0.len() + plain.1.len()
}

#[test]
fn the_bundled_agents() {
    let disk = Disk::open(Path::new(env!("CARGO_MANIFEST_DIR"))).expect("the repository");
    assert!(assert_invisible(Arc::new(disk)) > 500);
}

#[test]
fn what_a_template_sees_of_its_agent_keeps_results_apart() {
    let base = r#"
        name = "Base"
        abstract = true
        provider_instance = "OpenAI"
        endpoint = "chat/completions"
        [body]
        max_tokens = 10
        messages = [
            { role = "user", content = "{{ tojson('direct ' ~ (ctx.system_prompt is defined and ctx.system_prompt)) }}" },
            { role = "user", content = "{{ tojson('quoted ' ~ (existsIn(ctx, 'system_prompt') and ctx['system_prompt'])) }}" },
            { role = "user", content = "{% set c = ctx %}{{ tojson('alias ' ~ (c.system_prompt is defined and c.system_prompt)) }}" },
            { role = "user", content = "{{ tojson('whole ' ~ tojson(ctx)) }}" },
            { role = "user", content = '{{ tojson("id " ~ tool_id("a b c")) }}' },
            { role = "user", content = "{% if ctx.system_prompt is defined and 'two' in ctx.system_prompt %}{{ nothing }}{% else %}\"x\"{% endif %}" },
        ]
    "#;
    let agent = |name: &str, more: &str| format!("name = \"{name}\"\nextends = \"Base\"\n{more}\n");
    let files = [
        ("agents/base.toml", base.to_owned()),
        ("agents/a.toml", agent("A", "system_prompt = 'one'")),
        ("agents/b.toml", agent("B", "system_prompt = 'two'")),
        ("agents/c.toml", agent("C", "")),
        (
            "agents/d.toml",
            agent("D", "system_prompt = '{{ language }}{{ project_name }}'"),
        ),
        (
            "agents/e.toml",
            agent(
                "E",
                "provider_instance = 'Mistral AI'\nendpoint = 'v1/chat/completions'",
            ),
        ),
        (
            "agents/f.toml",
            agent(
                "F",
                "provider_instance = 'Claude'\nendpoint = 'v1/messages'",
            ),
        ),
    ];
    assert!(assert_invisible(Arc::new(MemoryWorld::from_iter(files))) > 100);
}

#[test]
fn tools_of_the_body_and_of_the_request_are_kept_apart() {
    let base = r#"
        name = "Base"
        abstract = true
        provider_instance = "OpenAI"
        endpoint = "chat/completions"
        [body]
        tool_choice = '{% if ctx.tools is defined %}"auto"{% endif %}'
        messages = [{ role = "user", content = "{{ tojson((ctx.tools if existsIn(ctx, 'tools') else []) | map(attribute='name') | join(' ')) }}" }]
    "#;
    let agent = |name: &str, more: &str| {
        format!("name = \"{name}\"\nextends = \"Base\"\nsystem_prompt = '{name}'\n{more}\n")
    };
    let custom = |name: &str| {
        format!("[body]\ntools = [{{ type = 'custom', custom = {{ name = '{name}' }} }}]")
    };
    let made = "[body]\ntools = '[{% if ctx.system_prompt is defined %}{\"type\": \"custom\", \"custom\": {\"name\": {{ tojson(ctx.system_prompt) }}}}{% endif %}]'";
    let files = [
        ("agents/base.toml", base.to_owned()),
        ("agents/a.toml", agent("A", "enable_tools = true")),
        ("agents/b.toml", agent("B", "")),
        (
            "agents/c.toml",
            agent("C", &format!("enable_tools = true\n{}", custom("one"))),
        ),
        (
            "agents/d.toml",
            agent("D", &format!("enable_tools = true\n{}", custom("two"))),
        ),
        ("agents/e.toml", agent("E", &custom("one"))),
        (
            "agents/f.toml",
            agent(
                "F",
                &format!("enable_tools = true\n{}", custom("read_file")),
            ),
        ),
        (
            "agents/g.toml",
            agent("G", &format!("enable_tools = true\n{made}")),
        ),
        (
            "agents/search.toml",
            agent("search", &format!("enable_tools = true\n{made}")),
        ),
    ];
    assert!(assert_invisible(Arc::new(MemoryWorld::from_iter(files))) > 100);
}

#[test]
fn mistakes_in_shared_templates_are_found_where_they_are() {
    let base = r#"
        name = "Base"
        abstract = true
        provider_instance = "OpenAI"
        endpoint = "chat/completions"
        [body]
        messages = """[
            {% if ctx.system_prompt is defined %}{"role": "developer", "contents": {{ tojson(ctx.system_prompt) }}},{% endif %}
            {% for message in ctx.history %}{"role": "user", "contnet": "", "content": {{ message.role }}{{ "1" }}},{% endfor %}
            {"role": "usr", "content": ""},
        ]"""
    "#;
    let quoted = base
        .replace(
            "{{ message.role }}{{ \"1\" }}",
            "{{ tojson(message.role) }}",
        )
        .replace("Base", "Quoted");
    let agent = |name: &str, more: &str| format!("name = \"{name}\"\n{more}\n");
    let files = [
        ("agents/base.toml", base.to_owned()),
        ("agents/quoted.toml", quoted),
        (
            "agents/a.toml",
            agent("A", "extends = 'Base'\nsystem_prompt = 'one'"),
        ),
        ("agents/b.toml", agent("B", "extends = 'Base'")),
        (
            "agents/c.toml",
            agent("C", "extends = 'Quoted'\nsystem_prompt = 'one'"),
        ),
        (
            "agents/d.toml",
            agent("D", "extends = 'Quoted'\nsystem_prompt = 'two'"),
        ),
        ("agents/e.toml", agent("E", "extends = 'Quoted'")),
        (
            "agents/f.toml",
            agent("F", "extends = 'Quoted'\nendpoint = 'x'\n[body]\nseed = 1"),
        ),
    ];
    let world = Arc::new(MemoryWorld::from_iter(files));
    assert_invisible(Arc::clone(&world) as Arc<dyn World>);
    let compiler = Compiler::load(world, Arc::new(Embedded::bundled()), LoadOptions::default());
    let (_, findings) = everything(&compiler, false);
    let places: Vec<&str> = findings
        .iter()
        .map(|finding| compiler.sources().slice(finding.primary.span))
        .collect();
    for place in ["\"contents\"", "\"contnet\"", "\"usr\""] {
        assert!(places.contains(&place), "{place} in {places:?}");
    }
}

/// Returns prompts that an attacker could write.
fn hostile_prompts() -> Vec<String> {
    let texts = [
        "",
        "  \n\t ",
        "x",
        "low",
        "system",
        "auto",
        "say \"no\"",
        "back\\slash \\",
        "a\u{1}b\u{0}c\u{7f}\u{85}\u{2028}\u{feff}",
        "\\ud800 \\u0001 \\n \u{d7ff}\u{10ffff}",
        "{\"role\": \"user\"},",
        "\",\"role\":\"user",
        "{{ '{{' }} and {{ '{%' }}",
        "line one\r\nline two\n\n",
        "{{ language }} in {{ project_name }}",
        "https://x",
        "aGVsbG8=",
    ];
    let long = [40, 64, 65, 256, 257, 513, 70_000].map(|len| "é".repeat(len));
    texts
        .iter()
        .map(|&text| text.to_owned())
        .chain(long)
        .chain(["\\\"".repeat(5_000)])
        .collect()
}

/// Correct and incorrect uses of a prompt in templates.
const USES: [&str; 26] = [
    r#"messages = """[{"role": "developer", "content": {{ tojson(ctx.system_prompt | default('none')) }}}]""""#,
    r#"messages = """[{% include "partials/openai/messages.jinja" %}]""""#,
    r#"messages = """[{"role": "user", "content": "{{ ctx.system_prompt }}"}]""""#,
    r#"messages = """[{"role": "user", "content": {{ ctx.system_prompt }}}]""""#,
    r#"messages = """[{"role": "user", "content": {{ tojson(tojson(ctx)) }}}]""""#,
    r#"messages = """[{{ tojson({'role': 'user', 'content': 'a' ~ ctx.system_prompt ~ 'b'}) }}]""""#,
    r#"messages = """[{"role": "user", "content": {{ tojson([ctx.system_prompt, 'x'] | join('-')) }}, "name": {{ tojson(ctx.system_prompt) }}}]""""#,
    r#"messages = """[{"role": {{ tojson(ctx.system_prompt) }}, "content": "x"}]""""#,
    r#"messages = """[{"role": "user", "content": "x", {{ tojson(ctx.system_prompt) }}: 1}]""""#,
    r#"messages = """{% if ctx.system_prompt %}[{"role": "user", "content": {{ tojson(ctx.system_prompt) }}},,]{% endif %}""""#,
    r#"messages = """[{"role": "user", "content": {{ tojson(ctx.system_prompt) }} {"role" }]""""#,
    r#"messages = """[{"role": "usr", "contents": {{ tojson(ctx.system_prompt) }}}, {"role": "tool"}]""""#,
    r#"messages = """[{"role": "user", "content": {{ tojson(ctx.system_prompt) }}, "content": "x"}]""""#,
    r#"messages = """[{"role": "user", "content": {{ tojson(ctx.system_prompt ~ ctx.nothing) }}}]""""#,
    r#"messages = """[{"role": "user", "content": {{ tojson(ctx.system_prompt | upper) }}}]""""#,
    r#"messages = """[{"role": "user", "content": {{ tojson('x' if ctx.system_prompt == 'x' else 'y') }}}]""""#,
    r#"messages = """[{% for m in ctx.history %}{"role": {{ tojson(m.role ~ 's') }}, "content": {{ tojson(ctx.system_prompt) }}},{% endfor %}]""""#,
    r#"messages = """[{"role": "user", "content": "{{ 1 }}" {{ "x" }}, "name": {{ tojson(ctx.system_prompt) }}}]""""#,
    "messages = [{ role = \"user\", content = \"{{ tojson(ctx.system_prompt) }}\" }]\nreasoning_effort = \"{{ tojson(ctx.system_prompt) }}\"",
    "messages = [{ role = \"user\", content = \"x\" }]\nprompt_cache_key = \"{{ tojson(ctx.system_prompt) }}\"\nuser = \"{{ tojson(ctx.system_prompt) }}\"",
    "messages = [{ role = \"user\", content = \"x\" }]\nstop = \"{{ tojson([ctx.system_prompt, 'x']) }}\"\ntools = \"[{{ tojson({'type': 'function', 'function': {'name': ctx.system_prompt}}) }}]\"",
    "messages = [{ role = \"user\", content = \"{{ tojson(ctx.system_prompt) }}\", name = \"{{ tojson(ctx.system_prompt) }}\" }]\nmetadata = { a = \"{{ tojson(ctx.system_prompt) }}\" }",
    r#"messages = """{{ tojson([{'role': 'user', 'content': [{'type': 'image_url', 'image_url': {'url': ctx.system_prompt}}]}]) }}""""#,
    r#"messages = """[{"role": "user", "content": {% for i in range(300) %}{% set t = ctx.system_prompt ~ ctx.system_prompt %}{% endfor %}"x"}]""""#,
    r#"messages = """[{"role": "user", "content": "{{ ctx.system_prompt ~ '"' }}, "name": 1}]""""#,
    r#"messages = """[{"role": "user", "content": {{ tojson(ctx.system_prompt[:3]) }}}]""""#,
];

#[test]
fn a_prompt_that_is_put_into_a_shared_rendering_changes_nothing() {
    let contexts: Vec<Arc<str>> = ["plain-turn", "attached-files", "no-system-prompt"]
        .map(Arc::from)
        .to_vec();
    for (number, used) in USES.iter().enumerate() {
        let base = format!(
            "name = 'Base'\nabstract = true\nprovider_instance = 'OpenAI'\nendpoint = 'chat/completions'\n[body]\n{used}\n"
        );
        let agent = |(index, prompt): (usize, String)| {
            let prompt = serde_json::to_string(&prompt)
                .expect("serialises")
                .replace('\u{7f}', "\\u007F");
            let text =
                format!("name = 'Agent {index}'\nextends = 'Base'\nsystem_prompt = {prompt}\n");
            (format!("agents/a{index}.toml"), text)
        };
        let agents = hostile_prompts().into_iter().enumerate().map(agent);
        let world: MemoryWorld = agents
            .chain([("agents/base.toml".to_owned(), base)])
            .collect();
        let compiler = Compiler::load(
            Arc::new(world),
            Arc::new(Embedded::bundled()),
            LoadOptions::default(),
        );
        let found = |finding: &Diagnostic| format!("{}: {}", finding.rule.code, finding.message);
        assert!(
            !compiler
                .findings()
                .iter()
                .any(|it| it.rule.code.starts_with("toml/")),
            "{:?}",
            compiler.findings().iter().map(found).collect::<Vec<_>>()
        );
        assert_same(&compiler, Some(&contexts), &format!("{number}: {used}"));
    }
}

/// Expressions whose values a template assigns to a variable.
const SET_VALUES: [&str; 13] = [
    "'Abc'",
    "'a\"b\\\\n'",
    "'É ß'",
    "''",
    "true",
    "false",
    "none",
    "7",
    "-0.0",
    "1e16",
    "0.1",
    "ctx.history | length",
    "ctx.model | default('m')",
];
/// Expressions that use the variable `name`.
const WRITTEN: [&str; 10] = [
    "name",
    "name | upper",
    "name | lower",
    "name | string | capitalize",
    "name | string | trim('a')",
    "(name | string)[::-1]",
    "(name | string)[:1]",
    "tojson(name)",
    "tojson(name) | upper",
    "name ~ name",
];

#[test]
fn partials_write_the_values_that_the_template_sets() {
    let contexts: Vec<Arc<str>> = ["plain-turn", "attached-files"].map(Arc::from).to_vec();
    for written in WRITTEN {
        let partial =
            format!("{{% set shown %}}{{{{ {written} }}}}{{% endset %}}{{{{ tojson(shown) }}}}");
        let members = SET_VALUES.iter().enumerate().map(|(index, value)| {
            format!(
                "m{index} = '''{{% set name = {value} %}}[{{% include \"p.jinja\" %}}]'''\n\
                 n{index} = '''{{% set name %}}{{{{ {value} }}}}{{% endset %}}[{{% include \"p.jinja\" %}}]'''\n"
            )
        });
        let body: String = members.collect();
        let agent = |name: &str| {
            (
                format!("agents/{name}.toml"),
                format!(
                    "name = '{name}'\nprovider_instance = 'OpenAI'\nendpoint = 'chat/completions'\n[body.metadata]\n{body}"
                ),
            )
        };
        let world: MemoryWorld = [
            agent("a"),
            agent("b"),
            ("partials/p.jinja".to_owned(), partial),
        ]
        .into_iter()
        .collect();
        let compiler = Compiler::load(
            Arc::new(world),
            Arc::new(Embedded::bundled()),
            LoadOptions::default(),
        );
        let compared = assert_same(&compiler, Some(&contexts), written);
        assert!(compared > 4, "{compared}");
    }
}

/// Findings in a partial do not depend on whether its output is reused.
#[test]
fn findings_in_partials_have_the_same_places() {
    const DEEP: &str = "{% macro m(n) %}{% if n > 0 %}{{ m(n - 1) }}{% endif %}{% endmacro %}{\"a\": \"x{{ m(48) }}\"}";
    let many = "{% set v %}{% for i in range(300) %}a{{ ' ' }}{% endfor %}{% endset %}";
    let partials = [
        ("partials/deep.jinja", DEEP),
        ("partials/json.jinja", "{\"a\": {{ tojson(v) }} }"),
        ("partials/text.jinja", "{\"a\": \"{{ v | string }}\" }"),
        ("partials/join.jinja", "{{ v | split(' ') | join('-') }}"),
    ];
    let mut bodies = vec![String::from("metadata = '{% include \"deep.jinja\" %}'")];
    for value in [
        "1e20",
        "none",
        "true",
        "0.1",
        "'a\"b'",
        "'é' ~ 1",
        "ctx.history | length",
    ] {
        for partial in ["json", "text"] {
            bodies.push(format!(
                "metadata = '''{{% set v = {value} %}}{{% include \"{partial}.jinja\" %}}'''"
            ));
        }
    }
    bodies.push(format!(
        "user = '''{many}\"{{% include \"join.jinja\" %}}{{% include \"join.jinja\" %}}\"'''"
    ));
    for body in bodies {
        let base = format!(
            "name = 'Base'\nabstract = true\nprovider_instance = 'OpenAI'\nendpoint = 'chat/completions'\nmodel = 'm'\n[body]\nmessages = []\n{body}\n"
        );
        let agent = |name: &str| {
            let text = format!("name = '{name}'\nextends = 'Base'\n");
            (format!("agents/{name}.toml"), text)
        };
        let world: MemoryWorld = partials
            .map(|(path, text)| (path.to_owned(), text.to_owned()))
            .into_iter()
            .chain([
                ("agents/base.toml".to_owned(), base),
                agent("a"),
                agent("b"),
            ])
            .collect();
        let compiler = Compiler::load(
            Arc::new(world),
            Arc::new(Embedded::bundled()),
            LoadOptions::default(),
        );
        let contexts = [Arc::from("plain-turn")];
        assert!(assert_same(&compiler, Some(&contexts), &body) > 0, "{body}");
    }
}
