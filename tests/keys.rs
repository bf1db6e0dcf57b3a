//! No output contains a key, wherever the key is in a repository or a body.
//!
//! Every case of `tests/cases/` and every body of `tests/bodies/wrong/` is reported repeatedly,
//! each time with a planted key in place of one of its strings, names or numbers, or of a file
//! name. No report, review or explanation may contain a part of that key. By default, every eighth
//! case is tried, each with a different kind of location and key; `REQC_KEYS=all` tries all cases
//! in all locations.

#![expect(
    clippy::disallowed_methods,
    reason = "the test reads the files of cases"
)]

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use reqc::compile::explain::Explainer;
use reqc::compile::lint::Linting;
use reqc::compile::{
    Compiler, LintTarget, LoadOptions, PolicyOptions, Report, Selection, all_rules,
};
use reqc::lint::WireFormat;
use reqc::repo::LayerKind;
use reqc::report::{
    self, Checkout, Format, Github, Gitlab, Human, Json, Junit, Layout, Markdown, Sarif, Short,
};
use reqc::review::{Review, Reviewing, Side};
use reqc::system::Embedded;
use reqc::text::Text;
use reqc::world::MemoryWorld;

/// A made-up key in the form of a provider's keys, and its part that must stay secret.
struct Key {
    text: &'static str,
    secret: &'static str,
}

const KEYS: [Key; 6] = [
    Key {
        text: "sk-proj-Zq7Wk9Xv3Tn5Rp2Ms8Lf6Hd4",
        secret: "Zq7Wk9Xv3Tn5Rp2Ms8Lf6Hd4",
    },
    Key {
        text: "ghp_Yb4Nc8Qj2Gs6Vw3Ek7Ra9Tu5Pm1Xz0Df",
        secret: "Yb4Nc8Qj2Gs6Vw3Ek7Ra9Tu5Pm1Xz0Df",
    },
    Key {
        text: "AKIAZ7Q3X9W2K5V8T4N6",
        secret: "Z7Q3X9W2K5V8T4N6",
    },
    Key {
        text: "AIzaHu7Ji3Ko9Lp5Mn1Bv8Cx4Za6Sd2Fg0",
        secret: "Hu7Ji3Ko9Lp5Mn1Bv8Cx4Za6Sd2Fg0",
    },
    Key {
        text: "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ4OTJrNyJ9.Wd8Rf4Tg6Yh2Uj9Ik3Ol7Pq5",
        secret: "Wd8Rf4Tg6Yh2Uj9Ik3Ol7Pq5",
    },
    Key {
        text: "sk-ant-api03-Me5Nr9Bt3Vy7Cu2Xi8Zo4Ap6",
        secret: "Me5Nr9Bt3Vy7Cu2Xi8Zo4Ap6",
    },
];

/// The number of characters of a key that identify it.
const PART: usize = 8;

/// The number of locations tried in each case, unless `REQC_KEYS=all`.
const PLACES: usize = 1;

/// One in this many cases is tried, unless `REQC_KEYS=all`.
const EVERY: usize = 8;

type Files = BTreeMap<String, Vec<u8>>;

fn main() {
    let arguments = Arguments::from_args();
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let cases = folders(&tests.join("cases"))
        .into_iter()
        .flat_map(|stage| folders(&stage));
    let mut trials: Vec<Trial> = cases.map(|case| trial(&tests, case, of_case)).collect();
    let wires = folders(&tests.join("bodies/wrong"))
        .into_iter()
        .flat_map(|wire| entries(&wire));
    trials.extend(wires.map(|body| trial(&tests, body, of_body)));
    if !all() {
        trials = trials.into_iter().step_by(EVERY).collect();
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// Returns `true` if all cases are tried, in all locations.
fn all() -> bool {
    std::env::var("REQC_KEYS").is_ok_and(|value| value == "all")
}

fn trial(root: &Path, path: PathBuf, run: fn(&Path) -> Result<(), Failed>) -> Trial {
    let name = path
        .strip_prefix(root)
        .expect("below it")
        .to_string_lossy()
        .replace('\\', "/");
    Trial::test(name, move || run(&path))
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .collect();
    entries.sort();
    entries
}

fn folders(root: &Path) -> Vec<PathBuf> {
    entries(root)
        .into_iter()
        .filter(|path| path.is_dir())
        .collect()
}

/// Tests a case with a key planted in each chosen location.
fn of_case(case: &Path) -> Result<(), Failed> {
    let files = files_of(case);
    let plain = side(&files);
    for (number, planted) in chosen(planted(&files), case) {
        let key = planted.key(&files, number);
        let changed = planted.with(&files, key.text);
        let newer = side(&changed);
        let report = newer
            .1
            .report(&selection(&newer.1), &PolicyOptions::default());
        let mut shown = reports(&report);
        shown.extend(reviews(&plain, &newer));
        shown.extend(explanations(&newer.1));
        holds_none(&shown, key, &format!("{planted:?}"))?;
    }
    Ok(())
}

/// Tests a body with a key planted in each chosen location.
fn of_body(file: &Path) -> Result<(), Failed> {
    let case: serde_json::Value = serde_json::from_slice(&std::fs::read(file)?)?;
    let wire = file
        .parent()
        .and_then(Path::file_name)
        .expect("a folder")
        .to_string_lossy()
        .into_owned();
    let wire = WireFormat::ALL.into_iter().find(|it| it.name() == wire);
    let body = serde_json::to_vec_pretty(&case["body"])?;
    let files: Files = [("body.json".to_owned(), body)].into();
    let compiler = load(&Files::new());
    for (number, planted) in chosen(planted(&files), file) {
        let key = planted.key(&files, number);
        let changed = planted.with(&files, key.text);
        let mut linting = Linting::new(&compiler, wire, LintTarget::default());
        for (path, bytes) in &changed {
            linting
                .read(path, bytes.as_slice())
                .map_err(|error| error.to_string())?;
        }
        holds_none(
            &reports(&linting.report(&PolicyOptions::default())),
            key,
            &format!("{planted:?}"),
        )?;
    }
    Ok(())
}

/// The location of a planted key: a part of a file, or its name.
#[derive(Debug)]
struct Planted {
    path: String,
    place: Option<Range<usize>>,
}

impl Planted {
    /// Returns the key to plant. Without quotes around it, a key with dots would be read as three
    /// names.
    fn key(&self, files: &Files, number: usize) -> &'static Key {
        let key = &KEYS[number % KEYS.len()];
        let is_quoted = |place: &Range<usize>| files[&self.path][..place.start].ends_with(b"\"");
        let is_whole = self.place.as_ref().is_some_and(is_quoted);
        if key.text.contains('.') && !is_whole {
            &KEYS[0]
        } else {
            key
        }
    }

    fn with(&self, files: &Files, key: &str) -> Files {
        let mut files = files.clone();
        let bytes = files.remove(&self.path).expect("it is there");
        match &self.place {
            Some(place) => {
                let bytes = [&bytes[..place.start], key.as_bytes(), &bytes[place.end..]].concat();
                files.insert(self.path.clone(), bytes);
            }
            None => {
                let (folder, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
                let end = name.find('.').map_or("", |at| &name[at..]);
                files.insert(
                    format!("{folder}/{key}{end}")
                        .trim_start_matches('/')
                        .to_owned(),
                    bytes,
                );
            }
        }
        files
    }
}

/// Returns every location in these files: quoted strings, words, and file names.
fn planted(files: &Files) -> Vec<Planted> {
    let mut all = Vec::new();
    for (path, bytes) in files {
        let Ok(text) = std::str::from_utf8(bytes) else {
            continue;
        };
        let places = words(text).into_iter().chain(quoted(text));
        all.extend(places.map(|place| Planted {
            path: path.clone(),
            place: Some(place),
        }));
        all.push(Planted {
            path: path.clone(),
            place: None,
        });
    }
    all
}

fn words(text: &str) -> Vec<Range<usize>> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let words = text.split(|c| !is_word(c)).filter(|word| !word.is_empty());
    words
        .map(|word| word.as_ptr() as usize - text.as_ptr() as usize)
        .map(|at| at..at + length(&text[at..], is_word))
        .collect()
}

fn length(text: &str, is_word: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is_word(c)).unwrap_or(text.len())
}

fn quoted(text: &str) -> Vec<Range<usize>> {
    let quotes: Vec<usize> = text.match_indices('"').map(|(at, _)| at + 1).collect();
    quotes
        .windows(2)
        .map(|pair| pair[0]..pair[1] - 1)
        .filter(|place| !place.is_empty())
        .collect()
}

/// Chooses a few locations far from each other, and numbers them. They differ between cases, but do
/// not depend on the path of the checkout.
fn chosen(places: Vec<Planted>, case: &Path) -> Vec<(usize, Planted)> {
    let name = case
        .strip_prefix(env!("CARGO_MANIFEST_DIR"))
        .expect("below it");
    let seed: usize = name.to_string_lossy().bytes().map(usize::from).sum();
    let step = if all() {
        1
    } else {
        places.len().div_ceil(PLACES).max(1)
    };
    let numbered = (seed..).zip(places);
    numbered
        .skip(seed % step)
        .step_by(step)
        .map(|(number, planted)| (number / step.min(7), planted))
        .collect()
}

/// Returns the files of a case that belong to its repository.
fn files_of(case: &Path) -> Files {
    let (mut found, mut open) = (Files::new(), vec![case.to_path_buf()]);
    while let Some(folder) = open.pop() {
        for path in entries(&folder)
            .into_iter()
            .filter(|path| !path.is_symlink())
        {
            let name = path
                .strip_prefix(case)
                .expect("below")
                .to_string_lossy()
                .replace('\\', "/");
            match path.is_dir() {
                true => open.push(path),
                false
                    if name.starts_with("report.snap")
                        || ["expected", "sizes", "select"].contains(&&*name) => {}
                false => drop(found.insert(name, std::fs::read(&path).expect("a file"))),
            }
        }
    }
    found
}

fn load(files: &Files) -> Compiler {
    let world: MemoryWorld = files.clone().into_iter().collect();
    Compiler::load(
        Arc::new(world),
        Arc::new(Embedded::bundled()),
        LoadOptions::default(),
    )
}

/// The files of a repository, and its compiler.
type Loaded = (MemoryWorld, Arc<Compiler>);

fn side(files: &Files) -> Loaded {
    (files.clone().into_iter().collect(), Arc::new(load(files)))
}

/// Selects one bundled context and those of the case.
fn selection(compiler: &Compiler) -> Selection {
    let all = compiler.contexts().iter().map(|it| &it.context);
    let taken = all.filter(|it| it.layer == LayerKind::Own || &*it.name == "tool-round-trip");
    Selection {
        contexts: Some(taken.map(|it| Arc::clone(&it.name)).collect()),
        ..Selection::default()
    }
}

/// Writes a report in all formats.
fn reports(report: &Report) -> Vec<Text> {
    let checkout = Checkout::default();
    let formats: [Box<dyn Format>; 9] = [
        Box::new(Human(Layout::default())),
        Box::new(Human(Layout {
            width: 100,
            colour: true,
        })),
        Box::new(Short::default()),
        Box::new(Json),
        Box::new(Sarif(checkout.clone())),
        Box::new(Github(checkout.clone())),
        Box::new(Gitlab(checkout)),
        Box::new(Junit),
        Box::new(Markdown),
    ];
    formats
        .iter()
        .map(|format| format.report(report, &all_rules()))
        .collect()
}

/// Writes a review in all formats.
fn reviews(older: &Loaded, newer: &Loaded) -> Vec<Text> {
    let wanted = |world: MemoryWorld, wanted: &dyn Fn(&str) -> bool| {
        let _ = wanted;
        Compiler::load(
            Arc::new(world),
            Arc::new(Embedded::bundled()),
            LoadOptions::default(),
        )
    };
    let (selection, policy) = (selection(&newer.1), PolicyOptions::default());
    let reviewing = Reviewing {
        selection: &selection,
        policy: &policy,
        all_contexts: false,
        load: &wanted,
    };
    let [older, newer] =
        [older, newer].map(|(world, compiler)| Side::new(world, Arc::clone(compiler)));
    let review = Review::between(&older, &newer, &reviewing);
    let layout = Layout {
        width: 60,
        colour: false,
    };
    let mut shown = vec![
        report::review_text(&review, None, layout),
        report::review_text(
            &review,
            None,
            Layout {
                width: 100,
                colour: true,
            },
        ),
        report::review_markdown(&review, None),
        report::review_json(&review, None),
        report::review_html(&review, None),
    ];
    shown.extend(
        report::review_items(&review, layout)
            .into_iter()
            .map(|(text, _)| text),
    );
    shown
}

/// Explains the values in a body of each agent.
fn explanations(compiler: &Compiler) -> Vec<Text> {
    let mut shown = Vec::new();
    for (id, _) in compiler.agents().iter().take(3) {
        let name = &compiler.hierarchy().get(*id).name.value;
        for loaded in compiler.contexts().iter().take(3) {
            let context = &loaded.context.name;
            let Some(Ok(explained)) = Explainer::new(compiler).explain(*id, context, None, None)
            else {
                continue;
            };
            let (values, sources) = (&explained.values, compiler.sources());
            shown.push(report::explanation_json(name, context, values, sources));
            shown.push(report::margin_text(
                explained.body.value(),
                values,
                sources,
                80,
            ));
            shown.extend(
                values
                    .iter()
                    .map(|it| report::explanation_text(it, sources)),
            );
        }
    }
    shown
}

/// Fails if an output contains a part of the key.
fn holds_none(shown: &[Text], key: &Key, planted: &str) -> Result<(), Failed> {
    let secret = key.secret.to_ascii_lowercase();
    for text in shown {
        let lower = text.to_ascii_lowercase();
        let mut parts = (0..=secret.len() - PART).map(|at| &secret[at..at + PART]);
        if let Some(at) = parts.find_map(|part| lower.find(part)) {
            let (start, end) = (
                text.floor_char_boundary(at.saturating_sub(200)),
                text.ceil_char_boundary(at + 100),
            );
            return Err(format!(
                "{planted} with {}:\n…{}…",
                key.text,
                &text[start..end.min(text.len())]
            )
            .into());
        }
    }
    Ok(())
}
