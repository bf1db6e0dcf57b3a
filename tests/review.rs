//! Reviews: the effects of edits on bodies, by cause.
//!
//! `tests/review/repository/` is the older side of all reviews. Each folder of
//! `tests/review/kinds/` contains the changed files of a newer side, and the list of removed files
//! in `gone`. Each folder is a test; the expected review is stored in it as text, Markdown and JSON
//! (`INSTA_UPDATE=always cargo test --test review` writes it).

#![expect(clippy::disallowed_methods, reason = "the test reads folders")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use proptest::prelude::*;
use reqc::compile::{Compiler, LoadOptions, PolicyOptions, Selection};
use reqc::diag::Severity;
use reqc::diff::ChangedFile;
use reqc::report::{self, Layout};
use reqc::review::{self, Class, Edit, Review, Reviewing, Side};
use reqc::system::Embedded;
use reqc::world::{MemoryWorld, World as _};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/review")
}

fn files(below: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![below.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => folders.push(path),
                false => {
                    let name = path
                        .strip_prefix(below)
                        .expect("below")
                        .to_string_lossy()
                        .replace('\\', "/");
                    found.push((name, fs::read(&path).expect("a file")));
                }
            }
        }
    }
    found
}

fn load(world: MemoryWorld) -> Compiler {
    Compiler::load(
        Arc::new(world),
        Arc::new(Embedded::bundled()),
        LoadOptions::default(),
    )
}

fn side(world: &MemoryWorld) -> Side {
    Side::new(world, Arc::new(load(world.clone())))
}

fn reviewed(older: &MemoryWorld, newer: &MemoryWorld) -> Review {
    let load = |world: MemoryWorld, _: &dyn Fn(&str) -> bool| load(world);
    let (selection, policy) = (Selection::default(), PolicyOptions::default());
    let reviewing = Reviewing {
        selection: &selection,
        policy: &policy,
        all_contexts: false,
        load: &load,
    };
    Review::between(&side(older), &side(newer), &reviewing)
}

/// Returns every body and request line, by agent and context.
fn bodies(world: &MemoryWorld) -> Bodies {
    let compiler = load(world.clone());
    let run = compiler.run(&Selection::default(), |agent| {
        (agent.plan.name().to_string(), agent.golden_files(false))
    });
    let files = run.results.into_iter().flat_map(|(agent, files)| {
        files.into_iter().map(move |file| {
            (
                (agent.clone(), file.context.map(|it| it.to_string())),
                file.text,
            )
        })
    });
    files.collect()
}

fn kinds() -> Vec<String> {
    names_in("kinds")
}

fn names_in(below: &str) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder().join(below))
        .expect("a folder")
        .map(|entry| {
            entry
                .expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

fn newer(kind: &str) -> MemoryWorld {
    newer_of("kinds", kind)
}

fn newer_of(below: &str, kind: &str) -> MemoryWorld {
    let mut world: MemoryWorld = files(&folder().join("repository")).into_iter().collect();
    for (path, bytes) in files(&folder().join(below).join(kind)) {
        match path.as_str() {
            "gone" => String::from_utf8_lossy(&bytes)
                .lines()
                .for_each(|path| world.remove(path)),
            path if path.starts_with("review.") => {}
            _ => world.insert(path, bytes),
        }
    }
    world
}

/// Compares a string with the stored one next to the files, or stores it first if `INSTA_UPDATE` is
/// `always`.
fn keep(kind: &str, name: &str, text: &str) {
    keep_in("kinds", kind, name, text);
}

fn keep_in(below: &str, kind: &str, name: &str, text: &str) {
    let path = folder().join(below).join(kind).join(name);
    if std::env::var("INSTA_UPDATE").is_ok_and(|it| it == "always") {
        fs::write(&path, text).expect("writable");
    }
    let kept = fs::read_to_string(&path)
        .unwrap_or_default()
        .replace("\r\n", "\n");
    assert_eq!(kept, text, "{kind}/{name}");
}

#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "takes long")]
fn each_kind_of_edit_is_told_by_its_cause() {
    let older: MemoryWorld = files(&folder().join("repository")).into_iter().collect();
    for kind in kinds() {
        let newer = newer(&kind);
        let review = reviewed(&older, &newer);
        assert!(
            !review.report.fails(),
            "{kind}: {:?}",
            review.report.findings
        );
        assert!(
            review.unexplained.is_empty(),
            "{kind}: {:?}",
            review.unexplained
        );
        if review.roll.renamed.is_empty() && review.roll.renamed_contexts.is_empty() {
            is_true(&kind, &older, &newer, &review);
        }
        keep(
            &kind,
            "review.txt",
            &report::review_text(&review, None, Layout::default()),
        );
        keep(&kind, "review.md", &report::review_markdown(&review, None));
        keep(&kind, "review.json", &report::review_json(&review, None));
        let html = report::review_html(&review, None);
        assert_eq!(
            html.matches("<section id=\"cause-").count(),
            review.causes.len(),
            "{kind}"
        );
    }
}

type Bodies = BTreeMap<(String, Option<String>), String>;

/// Returns the agents and contexts of bodies that differ.
fn differing(one: &Bodies, other: &Bodies) -> BTreeSet<(String, Option<String>)> {
    let keys: BTreeSet<_> = one.keys().chain(other.keys()).cloned().collect();
    keys.into_iter()
        .filter(|key| one.get(key) != other.get(key))
        .collect()
}

fn told(changes: &[ChangedFile]) -> BTreeSet<(String, Option<String>)> {
    let subject = |file: &ChangedFile| {
        (
            file.subject.agent.to_string(),
            file.subject.context.as_ref().map(ToString::to_string),
        )
    };
    changes.iter().map(subject).collect()
}

/// Checks that exactly the bodies that differ are reported. Each cause must have the reported
/// effect: applied alone to the older side, left out of the newer one, and together with the
/// others.
fn is_true(kind: &str, older: &MemoryWorld, newer: &MemoryWorld, review: &Review) {
    let (before, after) = (bodies(older), bodies(newer));
    assert_eq!(told(&review.changes), differing(&before, &after), "{kind}");
    let mut so_far: Vec<&Edit> = Vec::new();
    for cause in &review.causes {
        let place = cause.edits[0].place();
        let alone = bodies(&review::applied(older, newer, |edit| {
            cause.edits.contains(edit)
        }));
        for file in &cause.changes {
            let key = (
                file.subject.agent.to_string(),
                file.subject.context.as_ref().map(ToString::to_string),
            );
            assert_eq!(
                alone.get(&key),
                file.new.as_ref(),
                "{kind}: {place} alone: {}",
                file.path
            );
        }
        let without = bodies(&review::applied(older, newer, |edit| {
            !cause.edits.contains(edit)
        }));
        let restored: BTreeSet<_> = differing(&without, &after)
            .into_iter()
            .filter(|key| before.contains_key(key))
            .collect();
        assert_eq!(restored, told(&cause.changes), "{kind}: without {place}");
        so_far.extend(&cause.edits);
    }
    let causes = bodies(&review::applied(older, newer, |edit| {
        so_far.contains(&edit)
    }));
    let known = |bodies: Bodies| -> Bodies {
        bodies
            .into_iter()
            .filter(|(key, _)| before.contains_key(key))
            .collect()
    };
    if review.roll.is_empty() {
        assert_eq!(known(causes), known(after), "{kind}: all causes");
    }
}

/// Returns the agents that compile without errors on one side.
fn compiled(world: &MemoryWorld) -> BTreeSet<Arc<str>> {
    let compiler = load(world.clone());
    let report = compiler.report(&Selection::default(), &PolicyOptions::default());
    let errors = report
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error);
    let broken: BTreeSet<&Arc<str>> = errors.flat_map(|finding| &finding.agents).collect();
    let usable = compiler.agents().iter().filter(|(_, is_usable)| *is_usable);
    let names = usable.map(|(id, _)| Arc::clone(&compiler.hierarchy().get(*id).name.value));
    names.filter(|name| !broken.contains(name)).collect()
}

/// Returns the given agents that one side does not compile without errors.
fn broken(all: &BTreeSet<Arc<str>>, world: &MemoryWorld) -> BTreeSet<Arc<str>> {
    all.difference(&compiled(world)).cloned().collect()
}

/// `tests/review/breaks/` contains edits that break agents. The review names these agents first,
/// with edits that are proven to break them; the reverse edit fixes them.
#[test]
#[cfg_attr(not(feature = "long-tests"), ignore = "takes long")]
fn agents_that_an_edit_breaks_are_named_first_and_with_the_edit() {
    let older: MemoryWorld = files(&folder().join("repository")).into_iter().collect();
    let before = compiled(&older);
    std::thread::scope(|threads| {
        for kind in names_in("breaks") {
            let (older, before) = (&older, &before);
            threads.spawn(move || breaks_are_told(&kind, older, before));
        }
    });
}

/// Reviews an edit that breaks some of the agents, and its reverse.
fn breaks_are_told(kind: &str, older: &MemoryWorld, before: &BTreeSet<Arc<str>>) {
    let newer = newer_of("breaks", kind);
    let review = reviewed(older, &newer);
    let names: BTreeSet<Arc<str>> = review.newly_broken().cloned().collect();
    let mut all = before.clone();
    all.extend(review.new_and_broken().cloned());
    assert_eq!(names, broken(&all, &newer), "{kind}");
    assert!(
        !names.is_empty() && review.class() == Class::Broken && !review.is_empty(),
        "{kind}"
    );
    assert_eq!(review.broken_by_nothing_known().next(), None, "{kind}");
    for cause in review
        .causes
        .iter()
        .filter(|cause| !cause.broken.is_empty())
    {
        let alone = review::applied(older, &newer, |edit| cause.edits.contains(edit));
        assert!(cause.broken.is_subset(&broken(&all, &alone)), "{kind}");
    }
    let breaks = |edit: &Edit| {
        review
            .causes
            .iter()
            .any(|cause| !cause.broken.is_empty() && cause.edits.contains(edit))
    };
    let without = review::applied(older, &newer, |edit| !breaks(edit));
    assert_eq!(broken(before, &without), BTreeSet::new(), "{kind}");
    let text = report::review_text(&review, None, Layout::default());
    let html = report::review_html(&review, None);
    for name in &names {
        assert!(
            text.lines()
                .next()
                .is_some_and(|line| line.contains(&**name)),
            "{kind}: {name}"
        );
        assert!(
            html.split("<section")
                .next()
                .is_some_and(|head| head.contains(&**name)),
            "{kind}: {name}"
        );
    }
    keep_in("breaks", kind, "review.txt", &text);
    keep_in(
        "breaks",
        kind,
        "review.md",
        &report::review_markdown(&review, None),
    );
    keep_in(
        "breaks",
        kind,
        "review.json",
        &report::review_json(&review, None),
    );
    let back = reviewed(&newer, older);
    let mended: BTreeSet<&Arc<str>> = back.causes.iter().flat_map(|cause| &cause.mended).collect();
    let kept: BTreeSet<&Arc<str>> = names
        .iter()
        .filter(|name| back.mended.contains(*name))
        .collect();
    assert_eq!(mended, kept, "{kind}");
    // In the reverse review, an agent that could not be read before is a new one.
    assert!(
        ["new_agent", "unreadable_agent"].contains(&kind) || kept.len() == names.len(),
        "{kind}"
    );
    assert!(
        back.broken.is_empty() && (kind == "new_agent" || back.class() > Class::Text),
        "{kind}"
    );
}

#[test]
fn an_edit_beside_one_that_breaks_agents_is_told_as_if_alone() {
    let older: MemoryWorld = files(&folder().join("repository")).into_iter().collect();
    let newer = newer_of("breaks", "value_in_a_base");
    let role = |edit: &Edit| &*edit.path == "roles/writer.md";
    let alone = reviewed(&older, &review::applied(&older, &newer, role));
    let beside = reviewed(&older, &newer);
    let cause = beside
        .causes
        .iter()
        .find(|cause| cause.edits.iter().any(role))
        .expect("it is told");
    assert_eq!(told(&cause.changes), told(&alone.changes));
    assert!(cause.broken.is_empty() && cause.class() == Class::Text);
}

#[test]
fn a_context_that_cannot_be_read_is_not_gone() {
    let older: MemoryWorld = files(&folder().join("repository")).into_iter().collect();
    let mut newer = older.clone();
    newer.insert("contexts/release-notes.json", "{");
    let review = reviewed(&older, &newer);
    assert_eq!(
        (
            review.roll.broken_contexts.len(),
            review.roll.gone_contexts.len()
        ),
        (1, 0)
    );
    assert!(review.class() == Class::Broken && review.lowered.is_empty());
}

#[test]
fn contexts_that_come_and_go_have_a_class() {
    let older: MemoryWorld = files(&folder().join("repository")).into_iter().collect();
    let class = |kind: &str| reviewed(&older, &newer(kind)).class();
    assert_eq!(class("gone_context"), Class::Removed);
    assert_eq!(
        (class("new_context"), class("renamed_context")),
        (Class::Value, Class::Value)
    );
    let renamed = reviewed(&older, &newer("renamed_context"));
    assert!(renamed.changes.is_empty() && renamed.lowered.is_empty());
}

#[test]
fn an_agent_with_another_name_is_compared_with_what_it_was() {
    let older: MemoryWorld = files(&folder().join("repository")).into_iter().collect();
    let mut newer = newer("renamed_agent");
    newer.insert(
        "agents/editor.toml",
        "name = \"Shortener\"\ndescription = \"x\"\nextends = \"Team Base\"\n[body]\ntemperature = 0.1\n",
    );
    let review = reviewed(&older, &newer);
    assert_eq!((review.roll.renamed.len(), review.causes.len()), (1, 1));
    assert_eq!(review.causes[0].edits[0].key(), Some("body.temperature"));
    assert!(
        review.roll.gone_agents.is_empty()
            && review.roll.agents.is_empty()
            && review.lowered.is_empty()
    );
}

#[test]
fn neighbouring_lines_of_a_partial_are_causes_of_their_own() {
    let mut older: MemoryWorld = files(&folder().join("repository")).into_iter().collect();
    let lines = |closing: &str, opening: &str| {
        let closing = format!(
            "{{% macro closing(name) %}}You are {{{{ name }}}}: {closing} with a summary.{{% endmacro %}}"
        );
        format!(
            "{closing}\n{{% macro opening(name) %}}{opening} your work, {{{{ name }}}}.{{% endmacro %}}\n"
        )
    };
    older.insert("partials/shared.jinja", lines("end", "Begin"));
    let editor =
        String::from_utf8(older.read("agents/editor.toml").expect("it is there")).expect("text");
    let prompt =
        "system_prompt = \"{% from 'shared.jinja' import opening %}{{ opening('Editor') }}\"\n";
    older.insert("agents/editor.toml", format!("{prompt}{editor}"));
    let edited = |closing: &str, opening: &str| {
        let mut newer = older.clone();
        newer.insert("partials/shared.jinja", lines(closing, opening));
        let review = reviewed(&older, &newer);
        is_true(&format!("{closing}, {opening}"), &older, &newer, &review);
        review
    };
    let review = edited("close", "Start");
    let agents: BTreeSet<BTreeSet<&str>> = review
        .causes
        .iter()
        .map(|cause| cause.agents().into_iter().map(|name| &**name).collect())
        .collect();
    assert_eq!(
        agents,
        BTreeSet::from([BTreeSet::from(["Editor"]), BTreeSet::from(["Reader"])])
    );
    let places: BTreeSet<String> = review
        .causes
        .iter()
        .map(|cause| cause.edits[0].place())
        .collect();
    assert_eq!(
        places,
        ["partials/shared.jinja:1", "partials/shared.jinja:2"]
            .map(str::to_owned)
            .into()
    );
    // A macro that spans both lines: neither edit alone changes a body.
    let one = "{% macro closing(name) %}You are {{ name }}:\nend with a summary.{% endmacro %}\n";
    older.insert("partials/shared.jinja", one);
    let mut newer = older.clone();
    newer.insert(
        "partials/shared.jinja",
        one.replace("You are", "We are")
            .replace("end with", "close with"),
    );
    let review = reviewed(&older, &newer);
    assert_eq!(review.causes.len(), 1);
    let shown = Edit::shown(&review.causes[0].edits);
    assert_eq!((shown.len(), shown[0].hunks[0].added.len()), (1, 2));
}

/// Edits of the repository's files: a path, a string in it, and its replacement.
const EDITS: [(&str, &str, &str); 18] = [
    ("agents/team_base.toml", "4096", "1024"),
    ("agents/team_base.toml", "temperature = 0.7\n", ""),
    (
        "agents/team_base.toml",
        "seed = 7\n",
        "seed = 8\nuser = \"x\"\n",
    ),
    (
        "agents/team_base.toml",
        "{{ agent_role('writer') }}",
        "{{ agent_role('writer') | upper }}",
    ),
    ("agents/editor.toml", "0.2", "0.7"),
    ("agents/editor.toml", "\"Team Base\"", "\"Writer\""),
    (
        "agents/writer.toml",
        "match.file_patterns = [\"*.md\"]\n",
        "[body]\ntemperature = 0.9\nmax_completion_tokens = 99\n",
    ),
    (
        "agents/reader.toml",
        "Summarise what you are given.",
        "Summarise it.",
    ),
    (
        "agents/reader.toml",
        "closing('Reader')",
        "closing('X' ~ 'Y')",
    ),
    ("agents/local.toml", "OpenAI Chat", "Team Base"),
    (
        "partials/house_rules.jinja",
        "Never invent a version number.\n",
        "",
    ),
    (
        "partials/house_rules.jinja",
        "Keep to the facts",
        "{{ 'Keep' | upper }} to the facts",
    ),
    ("partials/shared.jinja", "end with", "close with"),
    ("roles/writer.md", "for people who use", "for those who use"),
    (
        "roles/writer.md",
        "Name the files of no change.\n",
        "Name no file.\nQuote no commit.\n",
    ),
    ("roles/writer.md", "Write in the present tense.\nEnd", "End"),
    ("contexts/release-notes.json", "fewer crashes", "no crashes"),
    ("providers/house.toml", "llm.house", "llm2.house"),
];

/// Applies the edits whose bits are set in a number.
fn edited(older: &MemoryWorld, chosen: u32) -> MemoryWorld {
    let mut world = older.clone();
    for (_, (path, from, to)) in EDITS
        .iter()
        .enumerate()
        .filter(|(at, _)| chosen & (1 << at) != 0)
    {
        let text = String::from_utf8(world.read(path).expect("it is there")).expect("text");
        assert!(text.contains(from), "{path}: {from}");
        world.insert(*path, text.replacen(from, to, 1));
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    #[cfg_attr(not(feature = "long-tests"), ignore = "takes long")]
    fn any_edits_are_told_by_proven_causes(chosen in 1..1_u32 << EDITS.len()) {
        let older: MemoryWorld = files(&folder().join("repository")).into_iter().collect();
        let newer = edited(&older, chosen);
        let review = reviewed(&older, &newer);
        prop_assert!(review.unexplained.is_empty());
        is_true(&format!("edits {chosen:#b}"), &older, &newer, &review);
    }
}
