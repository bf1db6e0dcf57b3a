//! Mistakes in agent repositories: `tests/cases/<stage>/<name>/` is a small repository whose files
//! mark the expected findings, at the line of the mistake. Each folder is a test.
//!
//! A mark is `~ CODE` after a comment sign at the line itself, or `~^ CODE` in the line below (one
//! `^` per line): `#~ extends/cycle` in TOML, `{#~ template/undefined #}` in templates. Where no
//! comment is possible, the file `expected` lists `PATH:LINE CODE`. The file `select` names the
//! agent to compile, and `sizes` lists files to create with a given size. Bodies are compared with
//! the folder `golden/`, and the report with `report.snap`. `tests/cases/README.md` describes how
//! to add a case.

#![expect(
    clippy::disallowed_methods,
    reason = "the test itself reads the case folders"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use reqc::compile::compare::{Comparing, Purpose};
use reqc::compile::selection::{Names, SelectError};
use reqc::compile::{Compiler, PolicyOptions, Report, Selection};
use reqc::diag::{Diagnostic, Severity};
use reqc::golden::GoldenFolder;
use reqc::repo::{Date, LayerKind, LoadOptions};
use reqc::report::{Format as _, Human};
use reqc::source::Sources;
use reqc::system::{Disk, Embedded};
use reqc::world::World;
use tempfile::TempDir;

/// The date that decides whether entries have expired.
const TODAY: &str = "2026-01-01";
/// The bundled contexts that cases are compiled against.
const BUNDLED_CONTEXTS: [&str; 3] = ["completion-prefix-suffix", "plain-turn", "tool-round-trip"];

fn main() {
    let arguments = Arguments::from_args();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let trials = folders(&root)
        .into_iter()
        .flat_map(|stage| folders(&stage))
        .map(|case| {
            let name = case
                .strip_prefix(&root)
                .expect("below the root")
                .to_string_lossy()
                .replace('\\', "/");
            Trial::test(name, move || run(&case))
        });
    let mut trials: Vec<Trial> = trials.collect();
    trials.push(Trial::test("every rule has a case", move || {
        every_rule_has_a_case(&root)
    }));
    libtest_mimic::run(&arguments, trials).exit();
}

/// Rules that no case can show, each with the file that tests it.
const SHOWN_ELSEWHERE: [(&str, &str); 18] = [
    ("golden/foreign", "tests/cli.rs"),
    ("internal/panic", "tests/expressions.rs"),
    (
        "lint/batch-duplicate-id",
        "tests/batches/wrong/gemini-keys.expected",
    ),
    (
        "lint/batch-id",
        "tests/batches/wrong/openai-no-ids-at-all.expected",
    ),
    ("lint/batch-limit", "tests/batches.rs"),
    (
        "lint/batch-mixed",
        "tests/batches/wrong/openai-request-beside-id.expected",
    ),
    (
        "lint/batch-request",
        "tests/batches/wrong/openai-missing-method-and-url.expected",
    ),
    (
        "lint/batch-stream",
        "tests/batches/wrong/anthropic-stream.expected",
    ),
    ("lint/no-body", "tests/lint.rs"),
    ("lint/syntax", "tests/lint.rs"),
    ("lint/unknown-format", "tests/lint.rs"),
    ("lint/unsupported-format", "tests/lint.rs"),
    ("lint/wrong-path", "tests/lint.rs"),
    (
        "protocol/reserved-prompt",
        "tests/bodies/right/anthropic-messages/billing-header.json",
    ),
    ("select/no-body", "tests/cli.rs"),
    ("tools/no-program", "tests/cli.rs"),
    ("tools/repeated-name", "src/repo/tools.rs"),
    ("tools/server-connection", "tests/cli.rs"),
];

/// Fails if a rule has neither a case nor an entry in [`SHOWN_ELSEWHERE`], or has both.
fn every_rule_has_a_case(root: &Path) -> Result<(), Failed> {
    let cases = folders(root).into_iter().flat_map(|stage| folders(&stage));
    let shown: BTreeSet<String> = cases
        .flat_map(|case| expected(&case))
        .map(|(_, _, code)| code)
        .collect();
    let mut wrong = Vec::new();
    for rule in reqc::compile::all_rules() {
        let elsewhere = SHOWN_ELSEWHERE.iter().find(|(code, _)| *code == rule.code);
        let is_tested = |(code, path): &(&str, &str)| {
            let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path))
                .unwrap_or_default();
            text.contains(code)
        };
        match (shown.contains(rule.code), elsewhere) {
            (true, None) => {}
            (false, Some(test)) if is_tested(test) => {}
            (true, Some(_)) => wrong.push(format!(
                "{} has a case: take it out of `SHOWN_ELSEWHERE`",
                rule.code
            )),
            (false, _) => wrong.push(format!("{} has no case in tests/cases", rule.code)),
        }
    }
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n").into())
    }
}

fn folders(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// A finding as expected or found: path, one-based line, code.
type Place = (String, usize, String);

fn run(case: &Path) -> Result<(), Failed> {
    let stretched = stretched(case)?;
    let disk = Arc::new(Disk::open(stretched.as_ref().map_or(case, TempDir::path))?);
    let own: Arc<dyn World> = Arc::clone(&disk) as Arc<dyn World>;
    let compiler = Compiler::load(own, Arc::new(Embedded::bundled()), LoadOptions::default());
    let selection = Selection {
        contexts: Some(contexts(&compiler)),
        ..Selection::default()
    };
    let policy = PolicyOptions {
        today: Date::parse(TODAY),
        complete: Some(true),
        ..PolicyOptions::default()
    };
    let mut report = match case.join("golden").is_dir() {
        true => {
            let folder = GoldenFolder::of_repository(disk);
            let (selection, options) = (&selection, &policy);
            Comparing {
                compiler: &compiler,
                selection,
                options,
                all_contexts: false,
            }
            .golden(&folder, Purpose::Check, || ())?
            .0
        }
        false => compiler.report(&selection, &policy),
    };
    if !case.parent().is_some_and(|stage| stage.ends_with("flow")) {
        leave_flow_out(&mut report);
    }
    let selected = selected(case, &compiler);
    report.summary.errors += selected.iter().count();
    report.findings.extend(selected);

    let found: BTreeSet<Place> = report
        .findings
        .iter()
        .map(|finding| place(&report.sources, finding))
        .collect();
    let expected = expected(case);
    if expected.is_empty() {
        return Err(format!("{} expects nothing: a case shows a mistake", case.display()).into());
    }
    let missing: Vec<&Place> = expected.difference(&found).collect();
    let surplus: Vec<&Place> = found.difference(&expected).collect();
    let shown = Human::default().report(&report, &[]);
    if !missing.is_empty() || !surplus.is_empty() {
        return Err(format!(
            "expected but not found: {missing:#?}\nfound but not expected: {surplus:#?}\n{shown}"
        )
        .into());
    }
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(case);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!("report", shown));
    Ok(())
}

/// Removes findings about lost content from a report: most cases are too small to write a whole
/// conversation.
fn leave_flow_out(report: &mut Report) {
    report
        .findings
        .retain(|finding| !finding.rule.code.starts_with("flow/"));
    let count = |severity| {
        report
            .findings
            .iter()
            .filter(|finding| finding.severity == severity)
            .count()
    };
    (report.summary.errors, report.summary.warnings) =
        (count(Severity::Error), count(Severity::Warning));
}

/// Copies a case and adds sparse files of the sizes that its file `sizes` lists, as lines of `PATH
/// BYTES`.
fn stretched(case: &Path) -> Result<Option<TempDir>, Failed> {
    let Ok(sizes) = fs::read_to_string(case.join("sizes")) else {
        return Ok(None);
    };
    let copy = tempfile::tempdir()?;
    for path in files(case) {
        let to = copy.path().join(path.strip_prefix(case)?);
        fs::create_dir_all(to.parent().expect("below the copy"))?;
        fs::copy(&path, to)?;
    }
    for line in sizes.lines() {
        let (path, bytes) = line.split_once(' ').expect("PATH BYTES");
        fs::File::create(copy.path().join(path))?.set_len(bytes.parse()?)?;
    }
    Ok(Some(copy))
}

/// Returns the finding that results from selecting the agent named in the file `select`.
fn selected(case: &Path, compiler: &Compiler) -> Option<Diagnostic> {
    let name = fs::read_to_string(case.join("select")).ok()?;
    match Names::of(compiler).agents(|agent| agent == name.trim(), name.trim()) {
        Err(error) => match *error {
            SelectError::Abstract(finding) => Some(*finding),
            _ => None,
        },
        Ok(_) => None,
    }
}

/// Returns the case's own contexts and a few bundled ones, so that new bundled contexts change no
/// report.
fn contexts(compiler: &Compiler) -> Vec<Arc<str>> {
    let all = compiler.contexts().iter().map(|ready| &ready.context);
    let taken = all.filter(|context| {
        context.layer == LayerKind::Own || BUNDLED_CONTEXTS.contains(&&*context.name)
    });
    taken.map(|context| Arc::clone(&context.name)).collect()
}

fn place(sources: &Sources, finding: &Diagnostic) -> Place {
    let file = sources.get(finding.primary.span.file);
    let line = file.position(finding.primary.span.start as usize).line;
    (file.path().to_string(), line, finding.rule.code.to_owned())
}

fn expected(case: &Path) -> BTreeSet<Place> {
    let mut places = BTreeSet::new();
    for path in files(case) {
        let name = path
            .strip_prefix(case)
            .expect("below the case")
            .to_string_lossy()
            .replace('\\', "/");
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        if name == "expected" {
            places.extend(
                text.lines()
                    .filter(|line| !line.trim().is_empty())
                    .map(listed),
            );
        } else if name != "report.snap" && !name.ends_with(".snap.new") {
            let lines = text.lines().enumerate();
            places.extend(
                lines
                    .flat_map(|(index, line)| {
                        marks(line).map(move |(up, code)| (index + 1 - up, code))
                    })
                    .map(|(line, code)| (name.clone(), line, code)),
            );
        }
    }
    places
}

/// Reads a line `PATH:LINE CODE`.
fn listed(line: &str) -> Place {
    let (place, code) = line.trim().rsplit_once(' ').expect("PATH:LINE CODE");
    let (path, line) = place.rsplit_once(':').expect("PATH:LINE");
    (
        path.to_owned(),
        line.parse().expect("a line number"),
        code.to_owned(),
    )
}

/// Returns the marks of a line: the number of lines above it, and the code.
fn marks(line: &str) -> impl Iterator<Item = (usize, String)> + '_ {
    line.split("#~").skip(1).map(|mark| {
        let rest = mark.trim_start_matches('^');
        let code: String = rest
            .trim_start()
            .chars()
            .take_while(|c| !c.is_whitespace() && *c != '#')
            .collect();
        (mark.len() - rest.len(), code)
    })
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    // The targets of symbolic links are not part of the case.
    for path in entries
        .map(|entry| entry.path())
        .filter(|path| !path.is_symlink())
    {
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found.sort();
    found
}
