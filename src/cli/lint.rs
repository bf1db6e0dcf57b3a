//! `reqc lint`: checks request bodies from any program with the schemas and rules for compiled
//! bodies.

use std::io::Read;
use std::path::Path;

use super::args::Lint;
use super::options::{Opened, Options};
use super::progress::Progress;
use super::{Failure, Outcome, Status, Terminal, report_from};
use crate::compile::LintTarget;
use crate::compile::lint::Linting;
use crate::diag::{Diagnostic, did_you_mean, listed};
use crate::provider::{ClientApi, NamedServer, WireFormat, which_instance, which_server};
use crate::repo::{Instance, folders};
use crate::system;
use crate::traffic::Traffic;

pub(super) fn run(options: &Options, lint: &Lint, terminal: &mut Terminal) -> Outcome {
    let opened = options.open()?;
    let wire = lint.wire.as_deref().map(wire_named).transpose()?;
    let instance = lint
        .provider
        .as_deref()
        .map(|name| instance_named(&opened, name))
        .transpose()?;
    if let (Some(wire), Some(instance)) = (wire, instance) {
        speaks(instance, wire)?;
    }
    if lint.session {
        return session(options, &opened, wire, lint, terminal);
    }
    let target = LintTarget {
        named: lint.server.as_deref().map(server_named).transpose()?,
        instance,
        model: options.model.as_deref(),
        ..LintTarget::default()
    };
    let mut linting = Linting::new(&opened.compiler, wire, target);
    linting.extend(errors_of_settings(&opened, lint.provider.as_deref()));
    for file in &lint.files {
        let (shown, reader) = open(options, &opened.root, file)?;
        linting
            .read(&shown, reader)
            .map_err(|why| Failure::new(format!("`{shown}` {why}")))?;
    }
    let report = linting.report(&opened.policy);
    report_from(
        options.directory(),
        options,
        &report,
        lint.deny_warnings,
        terminal,
    )
}

/// Reports the stories of the conversations in the files.
fn session(
    options: &Options,
    opened: &Opened,
    wire: Option<WireFormat>,
    lint: &Lint,
    terminal: &mut Terminal,
) -> Outcome {
    let mut traffic = Traffic::new(&opened.compiler, wire);
    let sizes = lint
        .files
        .iter()
        .map(|file| system::size(&options.path(file)));
    let progress = Progress::of_bytes(sizes.sum(), terminal.quiet);
    for file in &lint.files {
        let (shown, reader) = open(options, &opened.root, file)?;
        let counted = Counting {
            reader,
            progress: &progress,
        };
        traffic
            .read(&shown, counted)
            .map_err(|why| Failure::new(format!("`{shown}` {why}")))?;
    }
    drop(progress);
    let stories = traffic.end();
    if stories.forms.iter().all(|(_, requests)| *requests == 0) {
        let failure = Failure::new("no request was found");
        return Err(failure.help(
            "reqc reads request logs, and session files of Claude Code, Codex CLI, Gemini CLI, OpenCode, Cline and SWE-agent: docs/lint.md lists their formats",
        ));
    }
    options.formats.write_stories(&stories, terminal)?;
    Ok(if stories.has_findings() {
        Status::Findings
    } else {
        Status::Clean
    })
}

/// A reader that counts its bytes.
struct Counting<'p, R> {
    reader: R,
    progress: &'p Progress,
}

impl<R: Read> Read for Counting<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.progress.add(read);
        Ok(read)
    }
}

/// Opens a file named on the command line. Returns the name to display, and a reader.
pub(super) fn open(
    options: &Options,
    root: &Path,
    file: &Path,
) -> Result<(String, Box<dyn Read>), Failure> {
    if system::is_input(file) {
        return Ok(("<stdin>".to_owned(), Box::new(std::io::stdin().lock())));
    }
    let shown = file.to_string_lossy().into_owned();
    if let Some(opened) = system::open_descriptor(file) {
        let reader = opened.map_err(|why| Failure::new(format!("`{shown}` {why}")))?;
        return Ok((shown, Box::new(reader)));
    }
    // A link in a repository must not decide which file is displayed.
    let path = system::to_read(&options.path(file), root)?;
    let reader = system::open(&path).map_err(|why| Failure::new(format!("`{shown}` {why}")))?;
    Ok((shown, Box::new(reader)))
}

pub(super) fn wire_named(name: &str) -> Result<WireFormat, Failure> {
    WireFormat::from_name(name).ok_or_else(|| {
        let help = did_you_mean(name, wire_names())
            .unwrap_or_else(|| format!("wire formats: {}", listed(wire_names())));
        Failure::new(format!("there is no wire format `{name}`")).help(help)
    })
}

fn wire_names() -> impl Iterator<Item = &'static str> {
    WireFormat::ALL.into_iter().map(WireFormat::name)
}

fn instance_named<'o>(opened: &'o Opened, name: &str) -> Result<&'o Instance, Failure> {
    let instances = &opened.compiler.repo().instances;
    instances.get(name).ok_or_else(|| {
        let spelt = did_you_mean(name, instances.keys().map(AsRef::as_ref));
        let help = spelt.unwrap_or_else(|| which_instance(name, instances));
        Failure::new(format!("there is no provider instance `{name}`")).help(help)
    })
}

fn server_named(name: &str) -> Result<NamedServer, Failure> {
    NamedServer::from_name_in_any_case(name).ok_or_else(|| {
        Failure::new(format!("there is no known server `{name}`")).help(which_server(name))
    })
}

fn speaks(instance: &Instance, wire: WireFormat) -> Result<(), Failure> {
    let api = ClientApi::from_name(&instance.client_api.value);
    match api.is_none_or(|api| api.speaks(wire)) {
        true => Ok(()),
        false => {
            let (name, api) = (&instance.name.value, &instance.client_api.value);
            Err(Failure::new(format!(
                "`{name}` does not accept `{}`: its client API is `{api}`",
                wire.name()
            )))
        }
    }
}

/// Returns the errors in repository files that affect how bodies are checked.
fn errors_of_settings(opened: &Opened, provider: Option<&str>) -> Vec<Diagnostic> {
    let repo = opened.compiler.repo();
    let files = provider
        .map(|name| repo.instance_files(name))
        .unwrap_or_default();
    let sources = opened.compiler.sources();
    opened.errors(|file| {
        let path = sources.get(file).path();
        files.contains(&file)
            || &**path == folders::CONFIG
            || folders::is_in(path, folders::SCHEMAS)
    })
}
