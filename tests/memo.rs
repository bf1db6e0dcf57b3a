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
        direct = "{{ tojson(ctx.system_prompt is defined and ctx.system_prompt) }}"
        quoted = "{{ tojson(existsIn(ctx, 'system_prompt') and ctx['system_prompt']) }}"
        alias = "{% set c = ctx %}{{ tojson(c.system_prompt is defined and c.system_prompt) }}"
        whole = "{{ tojson(ctx) }}"
        ids = '{{ tojson(tool_id("a b c")) }}'
        max_tokens = 5
        messages = [{ role = "user", content = "{{ tojson(ctx.history[0].role) }}" }]
        broken = "{% if ctx.system_prompt is defined and 'two' in ctx.system_prompt %}{{ nothing }}{% endif %}"
    "#;
    let agent = |name: &str, more: &str| format!("name = \"{name}\"\nextends = \"Base\"\n{more}\n");
    let allowed = |instance: &str| {
        let fields = r#"["/direct", "/quoted", "/alias", "/whole", "/ids"]"#;
        format!("[[extension]]\nprovider_instance = '{instance}'\nfields = {fields}\nreason = 'made up'\n")
    };
    let files = [
        ("reqc.toml", ["OpenAI", "Mistral AI", "Claude"].map(allowed).concat()),
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
