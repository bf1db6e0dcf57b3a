//! Tests the compiler and its loop over agents, with invented repositories and the bundled one.

use std::sync::Arc;

use super::contexts::Renderers;
use super::{Chosen, Compiler, LoadOptions, Runner, Selection, budget, surroundings};
use crate::check::Checks;
use crate::conversation::TaskKind;
use crate::system::{Disk, Embedded};
use crate::unit::Request;
use crate::world::MemoryWorld;

const BASE: &str = "name = 'Base'\nabstract = true\nextends = 'OpenAI Chat'\n";

fn load(files: &[(&str, &str)], wanted: Option<&str>) -> Compiler {
    let world: MemoryWorld = files
        .iter()
        .map(|(path, text)| (path.to_string(), text.to_string()))
        .collect();
    let is_wanted = |name: &str| wanted == Some(name);
    let wanted = wanted.map(|_| &is_wanted as &dyn Fn(&str) -> bool);
    Compiler::load_some(
        Arc::new(world),
        Arc::new(Embedded::bundled()),
        LoadOptions::default(),
        wanted,
    )
}

fn usable(compiler: &Compiler) -> Vec<&str> {
    let usable = compiler.agents.iter().filter(|(_, is_usable)| *is_usable);
    usable
        .map(|(id, _)| &*compiler.hierarchy.get(*id).name.value)
        .collect()
}

#[test]
fn only_the_wanted_agents_are_prepared_unless_there_is_something_to_tell() {
    let a = ("agents/a.toml", "name = 'A'\nextends = 'Base'");
    let b = ("agents/b.toml", "name = 'B'\nextends = 'Base'");
    let base = ("agents/base.toml", BASE);
    assert_eq!(usable(&load(&[base, a, b], None)), ["A", "B"]);
    assert_eq!(usable(&load(&[base, a, b], Some("A"))), ["A"]);
    assert_eq!(usable(&load(&[base, a, b], Some("C"))), ["A", "B"]);
    let broken = format!("{BASE}[body]\nmessages = '{{% if %}}'");
    let broken = load(&[("agents/base.toml", &broken), a, b], Some("A"));
    assert_eq!(usable(&broken), [""; 0]);
    let reached: Vec<&str> = broken
        .findings
        .iter()
        .flat_map(|it| &it.agents)
        .map(AsRef::as_ref)
        .collect();
    assert_eq!(reached, ["A", "B"]);
    // Only prepared agents are known to use a partial.
    let partial = ("partials/x.jinja", "{% if %}");
    assert_eq!(usable(&load(&[base, a, b, partial], Some("A"))), ["A", "B"]);
}

/// Even if every agent in a repository fails, each one is reported.
#[test]
fn templates_that_fail_at_once_cost_less_than_a_body_may() {
    let agent = "name = 'A'\nextends = 'Base'\n[body]\nmessages = '{{ ctx.nothing.at_all }}'";
    let compiler = load(
        &[("agents/base.toml", BASE), ("agents/a.toml", agent)],
        None,
    );
    let (id, selection, renderers) = (
        compiler.agents[0].0,
        Selection::default(),
        Renderers::new(&compiler.engine, &compiler.contexts),
    );
    let done = Runner::new(Chosen::new(&compiler, &selection))
        .compile(id, &renderers, &|agent| agent.bodies.len());
    let limit = budget::run_limit(compiler.contexts.len()) - budget::run_limit(0);
    assert!(
        done.findings.len() == 1 && done.bodies == 0 && done.cost < limit,
        "{} of {limit}",
        done.cost
    );
}

/// Compares three results: with the cache, without the cache, and from `lint`. Some of the bodies
/// are valid, and models reject the others.
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "takes long")]
fn check_and_lint_judge_every_bundled_body_alike() {
    let root =
        Disk::open(std::path::Path::new(env!("CARGO_MANIFEST_DIR"))).expect("the crate's root");
    let compiler = Compiler::load(
        Arc::new(root),
        Arc::new(Embedded::bundled()),
        LoadOptions::default(),
    );
    let models = [
        None,
        Some("claude-opus-5-5"),
        Some("gpt-5.1"),
        Some("o1-mini"),
        Some("gemini-3-pro-preview"),
    ];
    let (mut bodies, mut problems) = (0, 0);
    for plan in compiler.hierarchy.ids().filter_map(|id| compiler.plan(id)) {
        for model in models {
            let checks = Checks::of(&plan, &compiler.schemas, &compiler.repo.families, model);
            for loaded in compiler
                .contexts
                .iter()
                .filter(|loaded| loaded.context.kind() == plan.kind)
            {
                let renderer = compiler.engine.renderer(64);
                let version = surroundings::version(&compiler, &plan, loaded, &renderer)
                    .result
                    .expect("a version");
                let request = Request {
                    memory: Some(&compiler.memory),
                    ..loaded.request(&plan, &version, model)
                };
                let body = plan
                    .body(&compiler.repo.sources, &renderer, &request)
                    .expect("a body");
                let of_lint = checks.problems_of(body.value());
                assert_eq!(
                    checks.problems(&body),
                    of_lint,
                    "{} {}",
                    plan.name(),
                    loaded.context.name
                );
                (bodies, problems) = (bodies + 1, problems + of_lint.len());
            }
        }
    }
    assert!(bodies > 10_000 && problems > 100, "{bodies} {problems}");
}

#[test]
fn bodies_that_differ_in_their_conversation_alone_share_the_verdict_on_the_rest() {
    for base in [
        "OpenAI Chat Tools",
        "Claude Chat Tools",
        "Gemini Chat Tools",
    ] {
        let agent = format!("name = 'A'\nextends = '{base}'");
        let compiler = load(&[("agents/a.toml", &agent)], None);
        let plan = compiler.plan(compiler.agents[0].0).expect("a plan");
        let checks = Checks::of(&plan, &compiler.schemas, &compiler.repo.families, None);
        let mut bodies = 0;
        for loaded in compiler
            .contexts
            .iter()
            .filter(|loaded| loaded.context.kind() == plan.kind)
        {
            let renderer = compiler.engine.renderer(64);
            let version = surroundings::version(&compiler, &plan, loaded, &renderer)
                .result
                .expect("a version");
            let request = Request {
                memory: Some(&compiler.memory),
                ..loaded.request(&plan, &version, None)
            };
            let body = plan
                .body(&compiler.repo.sources, &renderer, &request)
                .expect("a body");
            assert_eq!(checks.problems(&body), []);
            bodies += 1;
        }
        assert!(bodies > 40, "{base}: {bodies}");
    }
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "takes long")]
fn templates_of_one_agent_write_what_they_write_alone() {
    let agent = |at: usize| {
        let own = format!("[{{# {at} #}}{{% include 'openai/messages.jinja' %}}]");
        let text = format!(
            "name = 'A {at}'\nextends = 'Base'\nsystem_prompt = '{at} {{{{ language }}}}'\n[body]\n"
        );
        (
            format!("agents/{at}.toml"),
            format!("{text}messages = \"{own}\"\nstop = '[{{{{ 1 + 1 }}}}]'"),
        )
    };
    let agents: Vec<(String, String)> = (0..80).map(agent).collect();
    let base = [("agents/base.toml", BASE)].into_iter();
    let files: Vec<(&str, &str)> = base
        .chain(
            agents
                .iter()
                .map(|(path, text)| (path.as_str(), text.as_str())),
        )
        .collect();
    let compiler = load(&files, None);
    let run = compiler.run(&Selection::default(), |agent| {
        let texts = agent
            .bodies
            .iter()
            .map(|(loaded, body)| (Arc::clone(&loaded.context.name), body.pretty()));
        (Arc::clone(agent.plan.name()), texts.collect::<Vec<_>>())
    });
    for (name, bodies) in run.results.iter().step_by(13) {
        let id = compiler.hierarchy.by_name(name).expect("an agent");
        assert!(bodies.len() > 40);
        for (context, text) in bodies {
            let again = compiler
                .body(id, context, None)
                .expect("usable")
                .expect("a body");
            assert_eq!(again.pretty(), *text, "{name} {context}");
        }
    }
}

/// The prompt is rendered only once, but each conversation's step limit applies to it.
#[test]
fn a_prompt_that_says_the_same_everywhere_has_the_steps_of_each_context() {
    let agent =
        "name = 'A'\nextends = 'Base'\nsystem_prompt = '{% for i in range(190000) %}{% endfor %}x'";
    let compiler = load(
        &[("agents/base.toml", BASE), ("agents/a.toml", agent)],
        None,
    );
    let id = compiler.agents[0].0;
    let run = compiler.run(&Selection::default(), |agent| {
        agent
            .bodies
            .iter()
            .map(|(loaded, _)| Arc::clone(&loaded.context.name))
            .collect::<Vec<_>>()
    });
    let contexts = compiler
        .contexts
        .iter()
        .filter(|loaded| loaded.context.kind() == TaskKind::Chat);
    let made: Vec<Arc<str>> = contexts
        .clone()
        .filter(|loaded| {
            compiler
                .body(id, &loaded.context.name, None)
                .is_some_and(|it| it.is_ok())
        })
        .map(|it| Arc::clone(&it.context.name))
        .collect();
    assert_eq!(run.results, std::slice::from_ref(&made));
    assert!(
        !made.is_empty() && made.len() < contexts.count(),
        "{made:?}"
    );
}

/// Templates that read values that a partial sets: before the include, after it, and through other
/// partials. Some partials read a name only if another name is set.
const SEEING: [&str; 9] = [
    "{% include \"sets.jinja\" %}[{% include \"asks.jinja\" %}]",
    "[{% include \"asks.jinja\" %}]{% include \"sets.jinja\" %}",
    "{% set a = 1 %}[{% include \"asks.jinja\" %}]",
    "{% set a = 1 %}{% set b = 2 %}[{% include \"asks.jinja\" %}]",
    "{% set a = 1 %}{% set b = [2] %}[{% include \"asks.jinja\" %}]",
    "{% include \"sets.jinja\" %}[{{ tojson(a) }}]",
    "{% set a = 7 %}{% include \"sets.jinja\" %}[{{ tojson(a) }}]",
    "{% include \"sets.jinja\" %}{% macro m() %}{{ tojson(a) }}{% endmacro %}[{{ m() }}]",
    "{% include \"sets.jinja\" %}{% set a = 8 %}[{{ tojson(a) }}, {% include \"asks.jinja\" %}]",
];

/// Agents that include the same partials in different ways: name, base, and template.
const SHARING: [(&str, &str, &str); 6] = [
    (
        "a",
        "OpenAI Chat",
        "messages = '[{% include \"partials/openai/messages.jinja\" %}]'",
    ),
    (
        "b",
        "OpenAI Chat",
        "messages = '[{% include \"openai/messages.jinja\" %} ]'",
    ),
    (
        "e",
        "OpenAI Chat",
        "messages = '{% set closing = \"Go\" %}[{% include \"openai/messages.jinja\" %}]'",
    ),
    (
        "f",
        "OpenAI Chat",
        "messages = '{% set closing = [1] %}[{% include \"openai/messages.jinja\" %}]'",
    ),
    (
        "c",
        "Gemini Chat",
        "contents = '[{% include \"google/contents.jinja\" %}]'",
    ),
    (
        "d",
        "Gemini Chat",
        "contents = '[{% if ctx.history %}{% include \"google/contents.jinja\" %}{% endif %}]'",
    ),
];

#[test]
fn what_partials_wrote_for_another_agent_costs_the_same() {
    let agents = SHARING.map(|(name, base, body)| {
        (
            format!("agents/{name}.toml"),
            format!("name = '{name}'\nextends = '{base}'\n[body]\n{body}"),
        )
    });
    let seeing = SEEING.iter().enumerate().map(|(at, template)| {
        (
            format!("agents/seeing{at}.toml"),
            format!("name = 's{at}'\nextends = 'OpenAI Chat'\n[body]\nmetadata = '{template}'"),
        )
    });
    let agents: Vec<(String, String)> = agents.into_iter().chain(seeing).collect();
    let partials = [
        ("partials/sets.jinja", "{% set a = 5 %}{% set b = 6 %}"),
        (
            "partials/asks.jinja",
            "{% if a is defined %}\"{{ a }} {{ b | default(0) }}\",{% endif %} {{ ctx.history | length }}",
        ),
    ];
    let files: Vec<(&str, &str)> = agents
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .chain(partials)
        .collect();
    let compiler = load(&files, None);
    let sources = &compiler.repo.sources;
    let ids = compiler
        .hierarchy
        .ids()
        .filter(|&id| !compiler.hierarchy.get(id).is_abstract());
    for plan in ids.filter_map(|id| compiler.plan(id)) {
        for loaded in compiler
            .contexts
            .iter()
            .filter(|loaded| loaded.context.kind() == plan.kind)
        {
            let renderer = compiler.engine.renderer(64);
            let version = surroundings::version(&compiler, &plan, loaded, &renderer)
                .result
                .expect("a version");
            let made = |memory| {
                plan.made(
                    sources,
                    &renderer,
                    &Request {
                        memory,
                        ..loaded.request(&plan, &version, None)
                    },
                )
            };
            let (plain, first, again) = (
                made(None),
                made(Some(&compiler.memory)),
                made(Some(&compiler.memory)),
            );
            assert_eq!(
                [first.cost, again.cost],
                [plain.cost; 2],
                "{} {}",
                plan.name(),
                loaded.context.name
            );
            let texts = [plain, first, again].map(|made| made.body.expect("a body").pretty());
            assert!(
                texts[0] == texts[1] && texts[1] == texts[2],
                "{} {}",
                plan.name(),
                loaded.context.name
            );
        }
    }
}

#[test]
fn agents_with_prompts_of_their_own_share_what_is_written_around_them() {
    let agents: Vec<(String, String)> = (0..4)
        .map(|index| {
            (
                format!("agents/{index}.toml"),
                format!("name = 'A{index}'\nextends = 'Base'\nsystem_prompt = 'p{index}'"),
            )
        })
        .collect();
    let mut files: Vec<(&str, &str)> = agents
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    files.push(("agents/base.toml", BASE));
    let compiler = load(&files, None);
    let run = compiler.run(&Selection::default(), |agent| agent.bodies.len());
    assert!(run.results.len() == 4 && run.findings.into_vec().is_empty());
}
