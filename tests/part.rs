//! Parts of a repository: all shards together are the complete repository, and `--affected` selects
//! everything that a change affects.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;

use reqc::compile::reach::{Differing, FileReach, Named, differently_usable};
use reqc::compile::selection::{Reach, Shard};
use reqc::compile::{Compiler, LoadOptions, PolicyOptions, Report, Selection};
use reqc::source::Span;
use reqc::system::Embedded;
use reqc::world::{MemoryWorld, World};

type Files = BTreeMap<String, String>;

fn load(files: &Files) -> (Arc<dyn World>, Compiler) {
    let world: MemoryWorld = files
        .iter()
        .map(|(path, text)| (path.clone(), text.clone()))
        .collect();
    let world: Arc<dyn World> = Arc::new(world);
    let compiler = Compiler::load(
        Arc::clone(&world),
        Arc::new(Embedded::bundled()),
        LoadOptions::default(),
    );
    (world, compiler)
}

/// The results of a run: each body by its agent and context, each request line by its agent.
type Bodies = BTreeMap<(String, Option<String>), String>;

fn run(compiler: &Compiler, selection: &Selection) -> (Bodies, Report) {
    let (report, made) = compiler.report_each(selection, &PolicyOptions::default(), |agent| {
        let of = |context: Option<&Arc<str>>| {
            (
                agent.plan.name().to_string(),
                context.map(ToString::to_string),
            )
        };
        agent
            .golden_files(true)
            .into_iter()
            .map(|file| (of(file.context.as_ref()), file.text))
            .collect::<Vec<_>>()
    });
    (made.into_iter().flatten().collect(), report)
}

/// The findings of an agent by code and message, with the files that each points to. Line numbers
/// are left out, because they change.
type Told = BTreeMap<String, BTreeSet<String>>;

fn findings(report: &Report) -> BTreeMap<String, Told> {
    let mut by_agent: BTreeMap<String, Told> = BTreeMap::new();
    for finding in &report.findings {
        let path = |span: Span| report.sources.get(span.file).path().to_string();
        let spans = std::iter::once(finding.primary.span)
            .chain(finding.related.iter().map(|label| label.span));
        let paths: BTreeSet<String> = spans.map(path).collect();
        let told = format!("{} {}", finding.rule.code, finding.message);
        for agent in &finding.agents {
            let known = by_agent.entry(agent.to_string()).or_default();
            known.entry(told.clone()).or_default().extend(paths.clone());
        }
    }
    by_agent
}

/// Compares the findings of an agent: they must be the same, each with a file in common. A finding
/// that several agents share is reported at the first of their files, so that it moves when that
/// file is removed.
fn agree(one: &Told, other: &Told) -> bool {
    one.len() == other.len()
        && one.iter().all(|(told, paths)| {
            other
                .get(told)
                .is_some_and(|others| !paths.is_disjoint(others))
        })
}

const CONTEXT: &str = r#"{"name": "NAME", "kind": "chat", "why": "w", "golden": true, "language": "LANG",
  "history": [{"role": "user", "content": "TEXT"}]}"#;
const INSTANCE: &str = "name = \"Team\"\nclient_api = \"OpenAI Compatible\"\nurl = \"https://llm.example/NAME\"\napi_key_ref = \"env:KEY\"\n";

/// Returns several versions of a file, some of them with mistakes.
fn versions(path: &str) -> Vec<String> {
    let agent = |number: usize, rest: &str| {
        format!(
            "name = \"A{number}\"\nextends = \"Base {}\"\n{rest}",
            number % 2
        )
    };
    let texts: Vec<String> = match path {
        "agents/base0.toml" | "agents/base1.toml" => {
            let head = format!(
                "name = \"Base {}\"\nabstract = true\nextends = \"OpenAI Compatible Chat\"\n",
                &path[11..12]
            );
            [
                "model = \"m\"\n",
                "model = \"n\"\nsystem_prompt = '{{ read_file(\":/roles/x.md\") }}'\n",
                "model = \"m\"\nx y\n",
            ]
            .map(|rest| format!("{head}{rest}"))
            .to_vec()
        }
        "agents/a0.toml" => {
            vec![
                agent(0, ""),
                agent(0, "provider_instance = \"Team\"\n"),
                agent(0, "[body]\ntop_p = 2\n"),
            ]
        }
        "agents/a1.toml" => vec![
            agent(1, "system_prompt = '{{ agent_role(\"y\") }}'\n"),
            agent(
                1,
                "system_prompt = '{% if file_exists(\":/roles/z.md\") %}yes{% endif %}'\n",
            ),
            agent(
                1,
                "system_prompt = '{% for n in read_dir(\":/roles\") %}{{ n }} {% endfor %}'\n",
            ),
        ],
        "agents/a2.toml" => vec![
            agent(2, "[body]\nuser = \"{% include 'partials/p.jinja' %}\"\n"),
            agent(2, "system_prompt = \"{% include 'partials/p.jinja' %}\"\n"),
            agent(3, ""),
        ],
        "partials/p.jinja" => vec![
            "p".into(),
            "{% include 'partials/q.jinja' %}".into(),
            "{% if %}".into(),
        ],
        "partials/q.jinja" => vec!["q".into(), "{{ read_file(':/roles/x.md') }}".into()],
        "roles/x.md" | "roles/y.md" | "roles/z.md" => vec!["one".into(), "two".into()],
        "providers/team.toml" => vec![
            INSTANCE.replace("NAME", "a"),
            INSTANCE.replace("NAME", "b"),
            "name = 1".into(),
        ],
        "contexts/c.json" => ["a", "b"].map(|text| context("c", "rust", text)).to_vec(),
        "contexts/d.json" => vec![context("d", "go", "a"), context("c", "go", "a"), "{".into()],
        "models.toml" => vec![
            "A0 = \"x\"\n".into(),
            "[models]\nA0 = \"y\"\nA1 = \"z\"\n".into(),
        ],
        "reqc.toml" => vec![
            String::new(),
            "[golden]\ncontexts = [\"c\"]\n".into(),
            "dialect = \"inja\"\n".into(),
        ],
        other => panic!("{other}"),
    };
    texts
}

fn context(name: &str, language: &str, text: &str) -> String {
    CONTEXT
        .replace("NAME", name)
        .replace("LANG", language)
        .replace("TEXT", text)
}

const PATHS: [&str; 15] = [
    "agents/base0.toml",
    "agents/base1.toml",
    "agents/a0.toml",
    "agents/a1.toml",
    "agents/a2.toml",
    "partials/p.jinja",
    "partials/q.jinja",
    "roles/x.md",
    "roles/y.md",
    "roles/z.md",
    "providers/team.toml",
    "contexts/c.json",
    "contexts/d.json",
    "models.toml",
    "reqc.toml",
];

/// Generates a repository in which each file has one of its versions or is missing.
fn repository() -> impl Strategy<Value = Files> {
    prop::collection::vec((any::<prop::sample::Index>(), 0_u8..10), PATHS.len()).prop_map(
        |choices| {
            let files = PATHS
                .iter()
                .zip(choices)
                .filter(|(_, (_, there))| *there > 0);
            files
                .map(|(path, (version, _))| {
                    ((*path).to_owned(), version.get(&versions(path)).clone())
                })
                .collect()
        },
    )
}

/// Generates a repository, and the same repository with some files edited, added or removed.
fn edited() -> impl Strategy<Value = (Files, Files)> {
    let edits = prop::collection::vec(
        (0..PATHS.len(), any::<prop::sample::Index>(), 0_u8..4),
        1..3,
    );
    (repository(), edits).prop_map(|(old, edits)| {
        let mut new = old.clone();
        for (path, version, there) in edits {
            let path = PATHS[path];
            match there {
                0 => drop(new.remove(path)),
                _ => drop(new.insert(path.to_owned(), version.get(&versions(path)).clone())),
            }
        }
        (old, new)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    #[test]
    fn what_is_affected_holds_all_that_differs((old, new) in edited()) {
        let ((old_world, before), (new_world, now)) = (load(&old), load(&new));
        let differing = Differing { old: old_world, new: new_world };
        let usable = differently_usable(&now, &before);
        let mut reach = FileReach::new(&now).of(&differing, false).or(FileReach::new(&before).of(&differing, false));
        reach.agents.extend(usable);
        let ((then, told_then), (bodies, told)) =
            (run(&before, &Selection::default()), run(&now, &Selection::default()));
        for (key, body) in &bodies {
            let (agent, context) = (key.0.as_str(), key.1.as_deref());
            let is_reached = reach.agents.contains(agent) || context.is_some_and(|it| reach.contexts.contains(it));
            prop_assert!(is_reached || then.get(key) == Some(body), "{key:?}");
        }
        let (told_then, told) = (findings(&told_then), findings(&told));
        for (agent, told) in &told {
            let is_reached = reach.agents.contains(agent.as_str()) || !reach.contexts.is_empty();
            let is_told_before = told_then.get(agent).is_some_and(|before| agree(before, told));
            prop_assert!(is_reached || is_told_before, "{agent}: {told:?}");
        }
        // The results of a selection equal those of a complete run.
        let part = run(&now, &Selection { reached: Some(reach), ..Selection::default() }).0;
        prop_assert!(part.iter().all(|(key, body)| bodies.get(key) == Some(body)));
    }

    #[test]
    fn the_union_of_shards_is_the_whole(files in repository(), count in 1_usize..5) {
        let (_, compiler) = load(&files);
        let (whole, report) = run(&compiler, &Selection::default());
        let (mut bodies, mut found, mut repository) = (Bodies::new(), BTreeMap::<String, Told>::new(), 0);
        for index in 1..=count {
            let shard: Shard = format!("{index}/{count}").parse().expect("a shard");
            let (part, report) = run(&compiler, &Selection { shard: Some(shard), ..Selection::default() });
            for (key, body) in part {
                prop_assert_eq!(bodies.insert(key, body), None);
            }
            repository += report.findings.iter().filter(|finding| finding.agents.is_empty()).count();
            findings(&report).into_iter().for_each(|(agent, told)| found.entry(agent).or_default().extend(told));
        }
        prop_assert_eq!(bodies, whole);
        let no_body = |told: &Told| told.keys().any(|told| told.starts_with("select/no-body"));
        let expected: BTreeMap<_, _> = findings(&report).into_iter().filter(|(_, told)| !no_body(told)).collect();
        prop_assert!(found.keys().eq(expected.keys()), "{found:?}\n{expected:?}");
        for (agent, told) in &found {
            prop_assert!(agree(told, &expected[agent]), "{agent}: {told:?}\n{:?}", expected[agent]);
        }
        let of_repository = |finding: &&reqc::diag::Diagnostic| {
            finding.agents.is_empty() && !["select/no-body", "allow/unused"].contains(&finding.rule.code)
        };
        prop_assert_eq!(repository, report.findings.iter().filter(of_repository).count());
    }
}

fn example() -> Files {
    let files = PATHS
        .iter()
        .map(|path| ((*path).to_owned(), versions(path)[0].clone()));
    files
        .chain([(
            "agents/base1.toml".to_owned(),
            versions("agents/base1.toml")[1].clone(),
        )])
        .collect()
}

fn reached(files: &Files, named: &[&str]) -> Reach {
    FileReach::new(&load(files).1).of(
        &Named(named.iter().map(ToString::to_string).collect()),
        false,
    )
}

#[test]
fn files_reach_what_is_made_of_them() {
    let files = example();
    let agents = |named: &[&str]| {
        reached(&files, named)
            .agents
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(agents(&["agents/a0.toml"]), ["A0"]);
    assert_eq!(agents(&["agents/base1.toml"]), ["A1"]);
    assert_eq!(
        agents(&["agents/base0.toml", "roles/y.md"]),
        ["A0", "A1", "A2"]
    );
    assert_eq!(agents(&["partials"]), ["A2"]);
    assert_eq!(agents(&["roles/y.md"]), ["A1"]);
    assert_eq!(
        agents(&["roles/x.md"]),
        [""; 0],
        "A1 has a prompt of its own"
    );
    assert_eq!(agents(&["models.toml"]), ["A0"]);
    assert_eq!(agents(&["reqc.toml"]), ["A0", "A1", "A2"]);
    let context = reached(&files, &["contexts/c.json"]);
    assert!(context.agents.is_empty() && context.contexts.iter().eq([&Arc::from("c")]));
}

/// Returns the agents for which a complete run reports a missing file of a prompt, and those for
/// which one of eight shards does.
fn told_of_missing_file(files: &Files) -> [BTreeSet<String>; 2] {
    let (_, compiler) = load(files);
    let missing = |selection: &Selection| -> BTreeSet<String> {
        let told = findings(&run(&compiler, selection).1).into_iter();
        told.filter(|(_, told)| told.keys().any(|it| it.starts_with("prompt/missing-file")))
            .map(|(agent, _)| agent)
            .collect()
    };
    let shards = (1..=8).flat_map(|index| {
        let shard = Some(format!("{index}/8").parse().expect("a shard"));
        missing(&Selection {
            shard,
            ..Selection::default()
        })
    });
    [missing(&Selection::default()), shards.collect()]
}

/// A base's prompt reads a missing file: A0 uses the prompt, and A2 replaces it.
#[test]
fn a_missing_file_is_told_for_the_users_of_the_prompt_in_each_shard() {
    let mut files = example();
    files.remove("roles/x.md");
    let write = |files: &mut Files, path: &str, version: usize| {
        files.insert(path.to_owned(), versions(path)[version].clone());
    };
    write(&mut files, "agents/base0.toml", 1);
    write(&mut files, "agents/a2.toml", 1);
    let users = BTreeSet::from(["A0".to_owned()]);
    assert_eq!(told_of_missing_file(&files), [users.clone(), users]);

    // An agent that cannot be compiled is reached by the file that its prompt names.
    write(&mut files, "agents/a0.toml", 1);
    files.remove("providers/team.toml");
    files.insert("roles/x.md".to_owned(), "one".to_owned());
    assert!(reached(&files, &["roles/x.md"]).agents.contains("A0"));
}

/// A0 and A2 use a prompt that reads a missing file, and A2 cannot be compiled.
#[test]
fn a_missing_file_is_told_for_agents_that_cannot_be_compiled_too() {
    let mut files = example();
    files.remove("roles/x.md");
    files.insert(
        "agents/base0.toml".to_owned(),
        versions("agents/base0.toml")[1].clone(),
    );
    files.insert(
        "agents/a2.toml".to_owned(),
        "name = \"A2\"\nextends = \"Base 0\"\n[body]\nuser = \"{% include 'partials/none.jinja' %}\"\n".to_owned(),
    );
    let users = BTreeSet::from(["A0".to_owned(), "A2".to_owned()]);
    assert_eq!(told_of_missing_file(&files), [users.clone(), users]);
}
