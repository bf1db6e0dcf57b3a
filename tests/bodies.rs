//! Bodies that nobody here compiled: those that providers refuse must be found, those that they take must pass.
//!
//! `tests/bodies/wrong/<wire format>/<name>.json` holds a body with one mistake, where it stands and where the fact was found;
//! `tests/bodies/right/<wire format>/<name>.json` one without. Adding a file adds a test. `tests/bodies/open.txt` lists the wrong
//! bodies that are not found yet, and why.

#![expect(clippy::disallowed_methods, reason = "the test itself reads the files")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use reqc::Compiler;
use reqc::check::Problem;
use reqc::compile::LintTarget;
use reqc::diag::Severity;
use reqc::provider::{ApiHeaders, Server, WireFormat};
use reqc::repo::LoadOptions;
use reqc::system::Embedded;
use reqc::world::MemoryWorld;
use serde_json::Value;

fn main() {
    let arguments = Arguments::from_args();
    let compiler = Arc::new(Compiler::load(
        Arc::new(MemoryWorld::default()),
        Arc::new(Embedded::bundled()),
        LoadOptions::default(),
    ));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/bodies");
    let open = std::fs::read_to_string(root.join("open.txt")).unwrap_or_default();
    let open: Arc<BTreeSet<String>> = Arc::new(
        open.lines()
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.split_whitespace().next())
            .map(str::to_owned)
            .collect(),
    );
    let mut trials = Vec::new();
    for verdict in ["wrong", "right"] {
        for (wire, file) in files(&root.join(verdict)) {
            let name = format!("{verdict}/{}/{}", wire.name(), file.file_stem().expect("a file").to_string_lossy());
            let (compiler, open) = (Arc::clone(&compiler), Arc::clone(&open));
            let is_open = open.contains(&name);
            let test = move || match verdict {
                "wrong" => wrong(&compiler, wire, &file, is_open),
                _ => right(&compiler, wire, &file),
            };
            trials.push(Trial::test(name, test));
        }
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// The files of all wire formats, sorted.
fn files(folder: &Path) -> Vec<(WireFormat, PathBuf)> {
    let mut files = Vec::new();
    for wire in WireFormat::ALL {
        let Ok(entries) = std::fs::read_dir(folder.join(wire.name())) else { continue };
        files.extend(entries.map(|entry| (wire, entry.expect("it can be listed").path())));
    }
    files.sort();
    files.retain(|(_, path)| path.extension().is_some_and(|extension| extension == "json"));
    files
}

fn read(file: &Path) -> Result<Value, Failed> {
    Ok(serde_json::from_str(&std::fs::read_to_string(file)?)?)
}

fn problems(compiler: &Compiler, wire: WireFormat, case: &Value) -> Result<Vec<Problem>, Failed> {
    let server = match case.get("provider").and_then(Value::as_str) {
        Some(name) => Some(server(name)),
        None if matches!(wire, WireFormat::OpenAiChat | WireFormat::OpenAiResponses) => Some(Server::OpenAi),
        None => None,
    };
    // The instance brings the fields of its server.
    let instances = &compiler.repo().instances;
    let instance = case.get("provider").and_then(Value::as_str).and_then(|name| instances.get(name));
    let model = case.get("model").and_then(Value::as_str);
    let named = case.get("headers").and_then(Value::as_object);
    let named = named.map(|headers| headers.iter().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?))));
    let headers = named.map(ApiHeaders::read);
    let target = LintTarget { instance, server, model, headers };
    let body = case.get("body").ok_or("the file has no `body`")?;
    Ok(compiler.problems_of_body(body, wire, &target))
}

fn server(name: &str) -> Server {
    Server::ALL.into_iter().find(|server| server.name() == name).unwrap_or(Server::Unknown)
}

fn severity(problem: &Problem) -> Severity {
    problem.severity.unwrap_or(problem.rule.severity)
}

fn told(problems: &[Problem]) -> String {
    let line = |problem: &Problem| format!("{} at {}: {}", problem.rule.code, problem.pointer, problem.message);
    problems.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The mistake is found where it stands, and at its level.
fn wrong(compiler: &Compiler, wire: WireFormat, file: &Path, is_open: bool) -> Result<(), Failed> {
    let case = read(file)?;
    let (at, level) = (text(&case, "at")?, text(&case, "level")?);
    let problems = problems(compiler, wire, &case)?;
    let found =
        problems.iter().any(|problem| is_near(problem.pointer.as_str(), at) && severity(problem).name() == level);
    match (found, is_open) {
        (true, false) | (false, true) => Ok(()),
        (true, true) => Err("this is found now: take it out of tests/bodies/open.txt".into()),
        (false, false) => {
            Err(format!("expected a finding ({level}) at {at}: {}\nfound:\n{}", text(&case, "says")?, told(&problems))
                .into())
        }
    }
}

/// Whether a place is that of the mistake, the object that holds it, or a value in it.
fn is_near(found: &str, expected: &str) -> bool {
    let holds = |outer: &str, inner: &str| {
        inner.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    holds(expected, found) || holds(found, expected) && (!found.is_empty() || expected.matches('/').count() <= 1)
}

/// Nothing is refused; a warning may be given.
fn right(compiler: &Compiler, wire: WireFormat, file: &Path) -> Result<(), Failed> {
    let problems = problems(compiler, wire, &read(file)?)?;
    match problems.iter().any(|problem| severity(problem) == Severity::Error) {
        true => Err(format!("this is right, and refused:\n{}", told(&problems)).into()),
        false => Ok(()),
    }
}

fn text<'v>(case: &'v Value, name: &str) -> Result<&'v str, Failed> {
    Ok(case.get(name).and_then(Value::as_str).ok_or_else(|| format!("the file has no `{name}`"))?)
}
