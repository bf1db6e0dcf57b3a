//! The templates that are compared: generated ones, and those of this repository.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::shrink::shrunk;
use super::{Both, Data, Figures, MOST_SHOWN, Source, Verdict};
use super::{compared, data, expect_equal, generate};
use crate::context::{self, Context};
use crate::provider;
use crate::render::{ContextData, Folders, IdRule, PromptScope, analyse, dialect, is_template};
use crate::repo::{self, Dialect, LoadOptions, Repo};
use crate::system::{Disk, Embedded};
use crate::toml::{self, Kind, Table};
use crate::world::{MemoryWorld, World};

/// Returns the seeds for a long run's generated templates: the requested number of seeds, or the
/// range `FROM..TO`.
#[expect(
    clippy::disallowed_methods,
    reason = "the number of templates is an option of the test"
)]
fn long_run() -> Option<Range<u64>> {
    let asked = std::env::var("REQC_DIFFERENTIAL").ok()?;
    let (from, to) = asked.split_once("..").unwrap_or(("0", &asked));
    Some(from.parse().expect("a number")..to.parse().expect("a number"))
}

/// A short run generates [`SHORT_COUNT`] templates, and uses every [`SHORT_STEP`]th repository and
/// the first [`SHORT_CONTEXTS`] contexts of the bundled one.
const SHORT_COUNT: u64 = 1_000;
const SHORT_STEP: usize = 12;
const SHORT_CONTEXTS: usize = 6;

#[test]
fn generated_templates_do_what_they_do_in_the_engine() {
    let (given, shown) = (data(), AtomicUsize::new(0));
    let figures = compared(
        long_run().unwrap_or(0..SHORT_COUNT).collect(),
        |seed, figures| {
            let sources = generate::templates(*seed);
            match compare(&sources, &given) {
                Verdict::Different(_) if shown.fetch_add(1, Ordering::Relaxed) < MOST_SHOWN => {
                    let sources = shrunk(sources, |smaller| {
                        matches!(compare(smaller, &given), Verdict::Different(_))
                    });
                    figures.add(compare(&sources, &given), &sources);
                }
                verdict => figures.add(verdict, &[]),
            }
        },
    );
    let figures = expect_equal(figures);
    let Figures {
        texts,
        unparsable,
        refused,
        panicked,
        ..
    } = &figures;
    assert!(texts * 3 > figures.count(), "most generated templates fail");
    let of_no_use = unparsable.len() + refused + panicked.len();
    assert!(
        of_no_use * 100 < figures.count(),
        "{of_no_use} templates show nothing"
    );
}

fn compare(sources: &[Source], given: &Data) -> Verdict {
    match Both::of(sources.to_vec(), Dialect::Jinja) {
        Ok(both) => both.compare(generate::MAIN, given),
        Err(verdict) => verdict,
    }
}

#[test]
fn bundled_templates_do_what_they_do_in_the_engine() {
    let options = LoadOptions {
        with_bundled: true,
        ..LoadOptions::default()
    };
    let figures = compared(vec![options], |options, figures| {
        let contexts = if long_run().is_some() {
            usize::MAX
        } else {
            SHORT_CONTEXTS
        };
        compare_repository(
            &(Arc::new(MemoryWorld::default()) as Arc<dyn World>),
            *options,
            contexts,
            figures,
        );
    });
    let figures = expect_equal(figures);
    assert!(figures.texts > 400, "{figures:?}");
}

#[test]
fn templates_of_tests_do_what_they_do_in_the_engine() {
    let step = if long_run().is_some() { 1 } else { SHORT_STEP };
    let folders = repositories(Path::new("tests"))
        .into_iter()
        .step_by(step)
        .collect();
    let figures = compared(folders, |folder: &PathBuf, figures| {
        let world = Disk::open(folder).expect("a folder");
        compare_repository(
            &(Arc::new(world) as Arc<dyn World>),
            LoadOptions::default(),
            usize::MAX,
            figures,
        );
    });
    let figures = expect_equal(figures);
    assert!(figures.texts > 200, "{figures:?}");
}

/// Finds the folders that contain profiles, at any depth.
#[expect(
    clippy::disallowed_methods,
    reason = "the test reads the folders of others"
)]
fn repositories(folder: &Path) -> Vec<PathBuf> {
    if folder.join("agents").is_dir() || folder.join("partials").is_dir() {
        return vec![folder.to_owned()];
    }
    let inner = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    inner
        .filter(|path| path.is_dir())
        .flat_map(|path| repositories(&path))
        .collect()
}

/// A template of a profile, or a partial.
struct Root {
    name: String,
    is_prompt: bool,
}

/// Runs each template that a repository compiles with each of its first contexts.
fn compare_repository(
    world: &Arc<dyn World>,
    options: LoadOptions,
    contexts: usize,
    figures: &mut Figures,
) {
    let loaded = repo::load(Arc::clone(world), Arc::new(Embedded::bundled()), options);
    let repo = &loaded.repo;
    let dialect = repo.config.dialect;
    let (mut sources, mut roots) = (Vec::new(), Vec::new());
    for (name, partial) in &repo.partials {
        let text = repo.sources.get(partial.file).text();
        let is_added = add(
            rewritten(name, text, dialect, false),
            dialect,
            &mut sources,
            figures,
        );
        if is_added && repo.is_compiled(partial.layer) {
            roots.push(Root {
                name: name.to_string(),
                is_prompt: false,
            });
        }
    }
    for source in of_profiles(repo) {
        let root = Root {
            name: source.name.clone(),
            is_prompt: source.name.ends_with("system_prompt"),
        };
        if add(source, dialect, &mut sources, figures) {
            roots.push(root);
        }
    }
    let Ok(both) = Both::of(sources, dialect) else {
        return;
    };
    let (all, _) = context::read_all(repo, &provider::origins(repo.instances.values()));
    for context in all.iter().take(contexts) {
        let (body, prompt) = (of_body(context), of_prompt(world, dialect));
        for root in &roots {
            let verdict = both.compare(&root.name, if root.is_prompt { &prompt } else { &body });
            let is_different = matches!(verdict, Verdict::Different(_));
            let sources = both
                .sources
                .iter()
                .filter(|source| is_different && source.name == root.name);
            figures.add(verdict, &sources.cloned().collect::<Vec<_>>());
        }
    }
}

/// Adds a template if both the evaluator and the engine can parse it, and if it does not call a
/// loop where the checks reject such a call. After such a call, the engine would continue in an
/// arbitrary place.
fn add(source: Source, dialect: Dialect, sources: &mut Vec<Source>, figures: &mut Figures) -> bool {
    let analysis = analyse::analyse(&source.text, &source.name);
    if analysis.is_ok_and(|analysis| !analysis.misplaced.is_empty()) {
        return false;
    }
    match Both::of(vec![source.clone()], dialect) {
        Ok(_) => {
            sources.push(source);
            true
        }
        Err(verdict) => {
            figures.add(verdict, &[source]);
            false
        }
    }
}

/// Returns a template in the engine's spelling, under the name that includes use.
fn rewritten(name: &str, text: &str, dialect: Dialect, is_prompt: bool) -> Source {
    let rewritten = dialect::rewrite(text, dialect, is_prompt);
    Source {
        name: name.to_owned(),
        text: rewritten.text,
        pairs: rewritten.pair_loops,
    }
}

/// Returns the templates of profiles, each named after its file and its key.
fn of_profiles(repo: &Repo) -> Vec<Source> {
    let mut found = Vec::new();
    let own = repo
        .profiles
        .iter()
        .filter(|profile| repo.is_compiled(profile.layer));
    for (number, profile) in own.enumerate() {
        if let Ok(table) = toml::parse(repo.sources.get(profile.file).text()) {
            strings(&table, &number.to_string(), repo.config.dialect, &mut found);
        }
    }
    found
}

fn strings(table: &Table, path: &str, dialect: Dialect, found: &mut Vec<Source>) {
    for (key, node) in &table.entries {
        let name = format!("{path}.{}", key.name);
        match &node.kind {
            Kind::String(text) if is_template(text) || key.name == "system_prompt" => {
                found.push(rewritten(&name, text, dialect, key.name == "system_prompt"));
            }
            Kind::Table(inner) => strings(inner, &name, dialect, found),
            _ => {}
        }
    }
}

fn of_body(context: &Context) -> Data {
    let ctx =
        ContextData::new(&context.conversation).with_system_prompt(Some("You are \"brief\".\n"));
    vec![
        (Arc::from("ctx"), ctx),
        (Arc::from("tool_id"), IdRule::Word.function()),
    ]
}

fn of_prompt(world: &Arc<dyn World>, dialect: Dialect) -> Data {
    let project = MemoryWorld::from_iter([("a.md", "# A\n"), ("src/b.rs", "fn b() {}\n")]);
    let folders = Folders {
        project: "/p".into(),
        config: "/c".into(),
        home: "/h".into(),
    };
    let scope = PromptScope {
        project: Arc::new(project),
        project_name: "p".into(),
        language: "Rust".into(),
        layers: vec![Arc::clone(world), Arc::new(Embedded::bundled())],
        shown_below: vec!["", "bundled:"],
        folders,
    };
    Arc::new(scope).variables(dialect)
}
