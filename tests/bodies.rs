//! Request bodies from other programs: reqc must report the mistake in those that providers reject,
//! and no error in those that they accept.
//!
//! `tests/bodies/wrong/<wire format>/<name>.json` contains a body with one mistake, the location of
//! the mistake, and the source of the fact; `tests/bodies/right/<wire format>/<name>.json` contains
//! a correct body. Each file is a test. `tests/bodies/open.txt` lists wrong bodies that are not
//! reported yet, with reasons.
//!
//! `provider`, `model`, `headers`, `url` and `server` (software that anyone can run) define the
//! destination; a `url` or a `server` alone is enough.
//! `source` contains addresses that `reqc::diag::citations` finds; the rank of a body is the best
//! rank of its addresses. In a right body, `near` names the rules that it almost breaks. `repeat`
//! repeats strings of the body, given by their pointer: `{"/messages/0/content": 9000}`.
//! `tests/bodies/recorded.txt` lists the rules for which recordings show both a rejected and an
//! accepted body.

#![expect(clippy::disallowed_methods, reason = "the test itself reads the files")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use libtest_mimic::{Arguments, Failed, Trial};
use reqc::Compiler;
use reqc::check::Problem;
use reqc::compile::{Judge, LintTarget, all_rules, rule};
use reqc::diag::{Rank, Severity, citations};
use reqc::lint::find;
use reqc::provider::{ApiHeaders, NamedServer, Server, WireFormat};
use reqc::repo::LoadOptions;
use reqc::system::Embedded;
use reqc::world::MemoryWorld;
use serde_json::{Value, json};

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
    let mut trials = of_evidence(&compiler, &root);
    for verdict in ["wrong", "right"] {
        for (wire, file) in files(&root.join(verdict)) {
            let name = format!(
                "{verdict}/{}/{}",
                wire.name(),
                file.file_stem().expect("a file").to_string_lossy()
            );
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

/// Returns the tests that examine all bodies together.
fn of_evidence(compiler: &Arc<Compiler>, root: &Path) -> Vec<Trial> {
    let (compiler, root) = (Arc::clone(compiler), root.to_owned());
    let bodies = root.clone();
    let covered = (Arc::clone(&compiler), root.clone());
    vec![
        Trial::test("evidence/each body names its source", move || {
            each_has_a_source(&bodies)
        }),
        Trial::test("evidence/recorded both ways", move || {
            recorded_both_ways(&compiler, &root)
        }),
        Trial::test("evidence/coverage of rules", move || {
            coverage_is_up_to_date(&covered.0, &covered.1)
        }),
    ]
}

/// Formats that complete a single piece of text, without messages and tools.
const COMPLETIONS: [WireFormat; 3] = [
    WireFormat::MistralFim,
    WireFormat::OllamaGenerate,
    WireFormat::LlamaCppInfill,
];

/// Rules that apply to completion formats too.
const OF_ANY_FORMAT: [&str; 8] = [
    "protocol/constraint",
    "protocol/context-window",
    "protocol/exclusive-members",
    "protocol/limit",
    "protocol/missing-companion",
    "protocol/model-media",
    "protocol/model-parameter",
    "protocol/sampling",
];

/// Rules about features that only some formats have: cache breakpoints, items with IDs, named
/// caches.
const OF_FORMATS: [(&str, &[WireFormat]); 13] = [
    (
        "protocol/cache-breakpoints",
        &[WireFormat::AnthropicMessages, WireFormat::OpenAiChat],
    ),
    (
        "protocol/late-breakpoint",
        &[WireFormat::AnthropicMessages, WireFormat::OpenAiChat],
    ),
    (
        "protocol/cached-content",
        &[WireFormat::GoogleGenerateContent],
    ),
    ("protocol/citations", &[WireFormat::AnthropicMessages]),
    (
        "protocol/continued-response",
        &[WireFormat::OpenAiResponses],
    ),
    ("protocol/item-id", &[WireFormat::OpenAiResponses]),
    ("protocol/item-kind", &[WireFormat::OpenAiResponses]),
    ("protocol/safety-check", &[WireFormat::OpenAiResponses]),
    (
        "protocol/constraint",
        &[WireFormat::OpenAiChat, WireFormat::LlamaCppInfill],
    ),
    ("protocol/context-edits", &[WireFormat::AnthropicMessages]),
    (
        "protocol/reserved-prompt",
        &[WireFormat::AnthropicMessages, WireFormat::OpenAiChat],
    ),
    (
        "protocol/empty-error-result",
        &[WireFormat::AnthropicMessages],
    ),
    (
        "protocol/participant-name",
        &[WireFormat::OpenAiChat, WireFormat::MistralChat],
    ),
];

/// Returns `true` if no body of a format can break a rule.
fn cannot_happen(code: &str, wire: WireFormat) -> bool {
    let is_completion = COMPLETIONS.contains(&wire) && !OF_ANY_FORMAT.contains(&code);
    is_completion
        || OF_FORMATS
            .iter()
            .any(|(of, wires)| *of == code && !wires.contains(&wire))
}

/// The servers for which a wrong body breaks a rule, by rule and format.
type Covered = BTreeMap<(&'static str, WireFormat), BTreeSet<&'static str>>;

fn covered(compiler: &Compiler, root: &Path) -> Result<Covered, Failed> {
    let mut covered = Covered::new();
    for (wire, file) in files(&root.join("wrong")) {
        let case = read(&file)?;
        let host = host(&case, wire);
        let at = text(&case, "at")?;
        let mut found = problems(compiler, wire, &case)?;
        found
            .retain(|it| it.rule.code.starts_with("protocol/") && is_near(it.pointer.as_str(), at));
        for problem in found {
            covered
                .entry((problem.rule.code, wire))
                .or_default()
                .insert(host);
        }
    }
    Ok(covered)
}

/// Returns the common name of the server that a case goes to.
fn host(case: &Value, wire: WireFormat) -> &'static str {
    if let Ok(Some(named)) = named_server(case) {
        return named.name();
    }
    if let Some(url) = case.get("url").and_then(Value::as_str) {
        let host = url.split('/').nth(2).unwrap_or_default();
        return Server::by_host(host).map_or("compatible servers", Server::name);
    }
    match case.get("provider").and_then(Value::as_str).map(server) {
        Some(Server::Unknown) => "compatible servers",
        Some(server) => server.name(),
        None => match wire {
            WireFormat::AnthropicMessages => Server::Anthropic.name(),
            WireFormat::OpenAiChat | WireFormat::OpenAiResponses => Server::OpenAi.name(),
            WireFormat::GoogleGenerateContent => Server::Google.name(),
            WireFormat::MistralChat | WireFormat::MistralFim => Server::Mistral.name(),
            WireFormat::OllamaChat | WireFormat::OllamaGenerate => Server::Ollama.name(),
            WireFormat::LlamaCppInfill => Server::LlamaCpp.name(),
        },
    }
}

/// Returns the server that a case names.
fn named_server(case: &Value) -> Result<Option<NamedServer>, Failed> {
    let Some(name) = case.get("server").and_then(Value::as_str) else {
        return Ok(None);
    };
    let named = NamedServer::from_name(name);
    named
        .map(Some)
        .ok_or_else(|| format!("there is no server `{name}`").into())
}

/// Checks `docs/rules-by-format.md`, which lists, for each rule and format, the servers in
/// `tests/bodies/`.
fn coverage_is_up_to_date(compiler: &Compiler, root: &Path) -> Result<(), Failed> {
    let covered = covered(compiler, root)?;
    let mut table = String::from(
        "# Rules, wire formats and hosts\n\n<!-- Generated by tests/bodies.rs from tests/bodies/. Add bodies there, then run \
         REQC_UPDATE_DOCS=1 cargo test --test bodies -->\n\n\
         A cell names the hosts for which a wrong body in `tests/bodies/` shows that the rule is *checked*. *Cannot happen*: the format \
         cannot express what the rule checks. *Not yet*: no test body covers it, but the rule may still apply.\n\n| rule |",
    );
    for wire in WireFormat::ALL {
        table.push_str(&format!(" `{}` |", wire.name()));
    }
    table.push_str(&format!(
        "\n| --- |{}\n",
        " --- |".repeat(WireFormat::ALL.len())
    ));
    let mut codes: Vec<&str> = all_rules().into_iter().map(|rule| rule.code).collect();
    codes.retain(|code| code.starts_with("protocol/"));
    codes.sort_unstable();
    for code in codes {
        table.push_str(&format!(
            "| [`{code}`](rules/protocol.md#{}) |",
            code.replace('/', "")
        ));
        for wire in WireFormat::ALL {
            let cell = match covered.get(&(code, wire)) {
                Some(hosts) => format!(
                    "checked: {}",
                    hosts.iter().copied().collect::<Vec<_>>().join(", ")
                ),
                None if cannot_happen(code, wire) => "cannot happen".to_owned(),
                None => "not yet".to_owned(),
            };
            table.push_str(&format!(" {cell} |"));
        }
        table.push('\n');
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/rules-by-format.md");
    if std::env::var_os("REQC_UPDATE_DOCS").is_some() {
        std::fs::write(&path, &table)?;
    }
    let contradicted = covered
        .keys()
        .find(|(code, wire)| cannot_happen(code, *wire));
    match (
        std::fs::read_to_string(&path).unwrap_or_default() == table,
        contradicted,
    ) {
        (true, None) => Ok(()),
        (_, Some((code, wire))) => Err(format!(
            "{code} is said to be impossible in {}, and a body shows it",
            wire.name()
        )
        .into()),
        (false, None) => Err(
            "docs/rules-by-format.md is out of date: run REQC_UPDATE_DOCS=1 cargo test --test bodies"
                .into(),
        ),
    }
}

/// Returns the files of all wire formats, sorted.
fn files(folder: &Path) -> Vec<(WireFormat, PathBuf)> {
    let mut files = Vec::new();
    for wire in WireFormat::ALL {
        let Ok(entries) = std::fs::read_dir(folder.join(wire.name())) else {
            continue;
        };
        files.extend(entries.map(|entry| (wire, entry.expect("it can be listed").path())));
    }
    files.sort();
    files.retain(|(_, path)| {
        path.extension()
            .is_some_and(|extension| extension == "json")
    });
    files
}

/// Prefixes of sources without an address: bodies written for this test, and code that cannot be
/// cited.
const UNCITED: [&str; 2] = ["made for this test", "public code that quotes"];

/// Returns the best rank of a body's sources.
fn rank(case: &Value) -> Result<Option<Rank>, Failed> {
    Ok(citations(text(case, "source")?)
        .first()
        .map(|found| found.rank))
}

fn each_has_a_source(root: &Path) -> Result<(), Failed> {
    let mut wrong = Vec::new();
    for (_, file) in ["wrong", "right"]
        .into_iter()
        .flat_map(|verdict| files(&root.join(verdict)))
    {
        let case = read(&file)?;
        let source = text(&case, "source")?;
        if rank(&case)?.is_none() && !UNCITED.iter().any(|begin| source.starts_with(begin)) {
            wrong.push(format!("{}: {source}", file.display()));
        }
    }
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(format!("no address in `source`:\n{}", wrong.join("\n")).into()),
    }
}

/// The evidence of bodies whose source is a recording.
#[derive(Default)]
struct Recordings {
    /// Rules broken by a body that the provider rejected.
    wrong: BTreeSet<&'static str>,
    /// Rules almost broken by a body that the provider accepted.
    right: BTreeSet<&'static str>,
    /// The recordings.
    sources: BTreeSet<String>,
}

impl Recordings {
    fn read(compiler: &Compiler, root: &Path) -> Result<Recordings, Failed> {
        let mut recordings = Recordings::default();
        for (wire, file) in files(&root.join("wrong")) {
            let case = read(&file)?;
            if rank(&case)? == Some(Rank::Recorded) {
                recordings.add_wrong(problems(compiler, wire, &case)?, &case)?;
            }
        }
        for (_, file) in files(&root.join("right")) {
            let case = read(&file)?;
            if rank(&case)? == Some(Rank::Recorded) {
                recordings.add_right(&case)?;
            }
        }
        Ok(recordings)
    }

    fn add_wrong(&mut self, found: Vec<Problem>, case: &Value) -> Result<(), Failed> {
        let at = text(case, "at")?;
        let found = found
            .into_iter()
            .filter(|problem| is_near(problem.pointer.as_str(), at));
        self.wrong.extend(found.map(|problem| problem.rule.code));
        self.add_sources(case)
    }

    fn add_right(&mut self, case: &Value) -> Result<(), Failed> {
        for near in case
            .get("near")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
        {
            let rule = near
                .as_str()
                .and_then(rule)
                .ok_or_else(|| format!("`near` names no rule: {near}"))?;
            self.right.insert(rule.code);
        }
        self.add_sources(case)
    }

    fn add_sources(&mut self, case: &Value) -> Result<(), Failed> {
        self.sources.extend(
            citations(text(case, "source")?)
                .into_iter()
                .map(|found| found.address),
        );
        Ok(())
    }

    /// Returns the recordings that rules cite as evidence, but that no body comes from.
    fn unshown(&self) -> Vec<&'static str> {
        let evidence = all_rules().into_iter().flat_map(|rule| rule.evidence);
        let recorded = evidence.filter(|evidence| evidence.rank() == Rank::Recorded);
        recorded
            .map(|evidence| evidence.source)
            .filter(|source| !self.sources.contains(*source))
            .collect()
    }
}

/// `recorded.txt` lists the rules with recordings of both kinds, and every recording that a rule
/// cites has a body.
fn recorded_both_ways(compiler: &Compiler, root: &Path) -> Result<(), Failed> {
    let recordings = Recordings::read(compiler, root)?;
    let unshown = recordings.unshown();
    if !unshown.is_empty() {
        return Err(format!("recordings that rules name, and no body shows: {unshown:#?}").into());
    }
    let both: Vec<&str> = recordings
        .wrong
        .intersection(&recordings.right)
        .copied()
        .collect();
    let path = root.join("recorded.txt");
    let listed = std::fs::read_to_string(&path)?;
    let listed: Vec<&str> = listed
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    match both == listed {
        true => Ok(()),
        false => Err(format!(
            "{} lists {listed:#?}, and recordings show {both:#?}",
            path.display()
        )
        .into()),
    }
}

fn read(file: &Path) -> Result<Value, Failed> {
    Ok(serde_json::from_str(&std::fs::read_to_string(file)?)?)
}

fn problems(compiler: &Compiler, wire: WireFormat, case: &Value) -> Result<Vec<Problem>, Failed> {
    let server_by_name = named_server(case)?;
    if let Some(url) = case.get("url") {
        let request = json!({"url": url, "headers": case.get("headers"), "body": body(case)?});
        let found = find(request, None).bodies.pop().ok_or("no body")?;
        let endpoint = found.endpoint.ok_or("an address of no wire format")?;
        let target = LintTarget {
            server: endpoint.likely_server(),
            model: endpoint.model.as_deref(),
            headers: Some(found.headers),
            named: server_by_name,
            ..LintTarget::default()
        };
        let linted = compiler.lint(&found.value, Some(wire), &target)?;
        return Ok(linted.problems);
    }
    let server = match case.get("provider").and_then(Value::as_str) {
        Some(name) => Some(server(name)),
        None if matches!(wire, WireFormat::OpenAiChat | WireFormat::OpenAiResponses) => {
            Some(Server::OpenAi)
        }
        None => None,
    };
    // The provider instance determines the fields that its server adds.
    let instances = &compiler.repo().instances;
    let instance = case
        .get("provider")
        .and_then(Value::as_str)
        .and_then(|name| instances.get(name));
    let model = case.get("model").and_then(Value::as_str);
    let named = case.get("headers").and_then(Value::as_object);
    let named = named.map(|headers| {
        headers
            .iter()
            .filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
    });
    let headers = named.map(ApiHeaders::read);
    let target = LintTarget {
        instance,
        server,
        named: server_by_name,
        model,
        headers,
    };
    Ok(Judge::new(compiler).problems(&body(case)?, wire, &target))
}

/// Returns the body of a case, with repeated strings expanded.
fn body(case: &Value) -> Result<Value, Failed> {
    let mut body = case.get("body").ok_or("the file has no `body`")?.clone();
    for (pointer, times) in case
        .get("repeat")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
    {
        let times = times
            .as_u64()
            .and_then(|times| usize::try_from(times).ok())
            .ok_or("`repeat` counts")?;
        match body.pointer_mut(pointer) {
            Some(Value::String(text)) => *text = text.repeat(times),
            _ => return Err(format!("`repeat` names no text: {pointer}").into()),
        }
    }
    Ok(body)
}

fn server(name: &str) -> Server {
    Server::ALL
        .into_iter()
        .find(|server| server.name() == name)
        .unwrap_or(Server::Unknown)
}

fn severity(problem: &Problem) -> Severity {
    problem.severity.unwrap_or(problem.rule.severity)
}

fn told(problems: &[Problem]) -> String {
    let line = |problem: &Problem| {
        format!(
            "{} at {}: {}",
            problem.rule.code, problem.pointer, problem.message
        )
    };
    problems.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The mistake is reported at its location and with its level.
fn wrong(compiler: &Compiler, wire: WireFormat, file: &Path, is_open: bool) -> Result<(), Failed> {
    let case = read(file)?;
    let (at, level) = (text(&case, "at")?, text(&case, "level")?);
    let problems = problems(compiler, wire, &case)?;
    let found = problems
        .iter()
        .any(|problem| is_near(problem.pointer.as_str(), at) && severity(problem).name() == level);
    match (found, is_open) {
        (true, false) | (false, true) => Ok(()),
        (true, true) => Err("this is found now: take it out of tests/bodies/open.txt".into()),
        (false, false) => Err(format!(
            "expected a finding ({level}) at {at}: {}\nfound:\n{}",
            text(&case, "says")?,
            told(&problems)
        )
        .into()),
    }
}

/// Returns `true` if a location is that of the mistake, or contains it, or is inside it.
fn is_near(found: &str, expected: &str) -> bool {
    let holds = |outer: &str, inner: &str| {
        inner
            .strip_prefix(outer)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    holds(expected, found)
        || holds(found, expected) && (!found.is_empty() || expected.matches('/').count() <= 1)
}

/// No errors are reported; warnings are permitted.
fn right(compiler: &Compiler, wire: WireFormat, file: &Path) -> Result<(), Failed> {
    let problems = problems(compiler, wire, &read(file)?)?;
    match problems
        .iter()
        .any(|problem| severity(problem) == Severity::Error)
    {
        true => Err(format!("this is right, and refused:\n{}", told(&problems)).into()),
        false => Ok(()),
    }
}

fn text<'v>(case: &'v Value, name: &str) -> Result<&'v str, Failed> {
    Ok(case
        .get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| format!("the file has no `{name}`"))?)
}
