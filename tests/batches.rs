//! Files for batch services: a file in `tests/batches/right/` must have no findings, and
//! `tests/batches/wrong/NAME.jsonl` those that `NAME.expected` lists, one `LINE LEVEL CODE` per
//! line. Each file is a test.

#![expect(clippy::disallowed_methods, reason = "the test itself reads the files")]

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use reqc::Compiler;
use reqc::compile::lint::Linting;
use reqc::compile::{LintTarget, PolicyOptions, Report};
use reqc::diag::Diagnostic;
use reqc::repo::LoadOptions;
use reqc::system::Embedded;
use reqc::world::MemoryWorld;

fn main() {
    let arguments = Arguments::from_args();
    let nothing = Arc::new(MemoryWorld::default());
    let compiler = Arc::new(Compiler::load(
        nothing,
        Arc::new(Embedded::bundled()),
        LoadOptions::default(),
    ));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/batches");
    let mut trials = Vec::new();
    for path in files(&root.join("right"))
        .into_iter()
        .chain(files(&root.join("wrong")))
    {
        let name = path
            .strip_prefix(&root)
            .expect("below it")
            .display()
            .to_string();
        let compiler = Arc::clone(&compiler);
        trials.push(Trial::test(name, move || compare(&compiler, &path)));
    }
    let many = Arc::clone(&compiler);
    trials.push(Trial::test("limits/openai", move || too_many(&many)));
    trials.push(Trial::test("limits/bytes", move || too_large(&compiler)));
    libtest_mimic::run(&arguments, trials).exit();
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder of batches");
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    let mut paths: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_none_or(|end| end != "expected"))
        .collect();
    paths.sort();
    paths
}

fn compare(compiler: &Compiler, path: &Path) -> Result<(), Failed> {
    let expected = fs::read_to_string(path.with_extension("expected")).unwrap_or_default();
    let found = told(&lint(compiler, File::open(path)?)?);
    match found == expected {
        true => Ok(()),
        false => Err(format!("expected:\n{expected}found:\n{found}").into()),
    }
}

fn lint(compiler: &Compiler, reader: impl Read) -> Result<Report, Failed> {
    let mut linting = Linting::new(compiler, None, LintTarget::default());
    linting.read("batch", reader)?;
    Ok(linting.report(&PolicyOptions::default()))
}

/// Returns a line for each finding, sorted.
fn told(report: &Report) -> String {
    let mut lines: Vec<(usize, String)> = report
        .findings
        .iter()
        .map(|finding| told_line(report, finding))
        .collect();
    lines.sort();
    lines.into_iter().map(|(_, line)| line).collect()
}

fn told_line(report: &Report, finding: &Diagnostic) -> (usize, String) {
    let span = finding.primary.span;
    let number = report
        .sources
        .get(span.file)
        .position(span.range().start)
        .line;
    (
        number,
        format!(
            "{number} {} {}\n",
            finding.severity.name(),
            finding.rule.code
        ),
    )
}

/// The lines of an OpenAI batch, generated as they are read.
struct Lines {
    next: usize,
    count: usize,
    padding: usize,
    ready: io::Cursor<Vec<u8>>,
}

impl Lines {
    fn new(count: usize, padding: usize) -> Lines {
        Lines {
            next: 0,
            count,
            padding,
            ready: io::Cursor::default(),
        }
    }
}

impl Read for Lines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.ready.read(buffer)?;
        if read > 0 || self.next == self.count {
            return Ok(read);
        }
        let (number, padding) = (self.next, "x".repeat(self.padding));
        let body = format!(
            "{{\"model\":\"gpt-4.1-mini\",\"messages\":[{{\"role\":\"user\",\"content\":\"{padding}\"}}]}}"
        );
        let line = format!(
            "{{\"custom_id\":\"{number}\",\"method\":\"POST\",\"url\":\"/v1/chat/completions\",\"body\":{body}}}\n"
        );
        self.next += 1;
        self.ready = io::Cursor::new(line.into_bytes());
        self.ready.read(buffer)
    }
}

fn too_many(compiler: &Compiler) -> Result<(), Failed> {
    assert_eq!(
        told(&lint(compiler, Lines::new(50_003, 0))?),
        "50001 error lint/batch-limit\n"
    );
    Ok(())
}

fn too_large(compiler: &Compiler) -> Result<(), Failed> {
    let found = told(&lint(compiler, Lines::new(210, 1_000_000))?);
    assert_eq!(found, "200 error lint/batch-limit\n");
    Ok(())
}
