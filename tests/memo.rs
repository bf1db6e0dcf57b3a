//! What agents share is rendered once, and nobody can tell: with and without it, the same bytes and findings.

use std::path::Path;
use std::sync::Arc;

use reqc::compile::{Compiler, Selection};
use reqc::diag::Diagnostic;
use reqc::repo::LoadOptions;
use reqc::system::{Disk, Embedded};
use reqc::world::{MemoryWorld, World};

/// Every body as it is sent, and every finding, of one run.
fn everything(compiler: &Compiler, without_memo: bool) -> (Vec<String>, Vec<Diagnostic>) {
    let selection = Selection { without_memo, ..Selection::default() };
    let run = compiler.run(&selection, |agent| {
        let bodies = agent
            .bodies
            .iter()
            .map(|(ready, body)| format!("{} {} {}", agent.plan.name(), ready.context.name, body.compact()));
        bodies.collect::<Vec<_>>()
    });
    (run.results.into_iter().flatten().collect(), run.findings.into_vec())
}

fn assert_invisible(world: Arc<dyn World>) -> usize {
    let compiler = Compiler::load(world, Arc::new(Embedded::bundled()), LoadOptions::default());
    let plain = everything(&compiler, true);
    // Twice: the second run finds everything remembered.
    assert_eq!(everything(&compiler, false), plain);
    assert_eq!(everything(&compiler, false), plain);
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
        ("agents/d.toml", agent("D", "system_prompt = '{{ language }}{{ project_name }}'")),
        ("agents/e.toml", agent("E", "provider_instance = 'Mistral AI'\nendpoint = 'v1/chat/completions'")),
        ("agents/f.toml", agent("F", "provider_instance = 'Claude'\nendpoint = 'v1/messages'")),
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
    let quoted = base.replace("{{ message.role }}{{ \"1\" }}", "{{ tojson(message.role) }}").replace("Base", "Quoted");
    let agent = |name: &str, more: &str| format!("name = \"{name}\"\n{more}\n");
    let files = [
        ("agents/base.toml", base.to_owned()),
        ("agents/quoted.toml", quoted),
        ("agents/a.toml", agent("A", "extends = 'Base'\nsystem_prompt = 'one'")),
        ("agents/b.toml", agent("B", "extends = 'Base'")),
        ("agents/c.toml", agent("C", "extends = 'Quoted'\nsystem_prompt = 'one'")),
        ("agents/d.toml", agent("D", "extends = 'Quoted'\nsystem_prompt = 'two'")),
        ("agents/e.toml", agent("E", "extends = 'Quoted'")),
        ("agents/f.toml", agent("F", "extends = 'Quoted'\nendpoint = 'x'\n[body]\nseed = 1")),
    ];
    let world = Arc::new(MemoryWorld::from_iter(files));
    assert_invisible(Arc::clone(&world) as Arc<dyn World>);
    let compiler = Compiler::load(world, Arc::new(Embedded::bundled()), LoadOptions::default());
    let (_, findings) = everything(&compiler, false);
    let places: Vec<&str> = findings.iter().map(|finding| compiler.sources().slice(finding.primary.span)).collect();
    for place in ["\"contents\"", "\"contnet\"", "\"usr\""] {
        assert!(places.contains(&place), "{place} in {places:?}");
    }
}
