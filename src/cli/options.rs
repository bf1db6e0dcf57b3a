//! The resolved arguments: the root, the selection, and the policy for failures.

use std::mem::ManuallyDrop;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::args::{Common, Format};
use super::formats::Formats;
use super::{Failure, Terminal};
use crate::compile::selection::{Names, Reach, SelectError, Shard};
use crate::compile::{
    Compiler, PolicyOptions, Report, Reporter, Selection, check_allowed, check_code,
};
use crate::diag::{Diagnostic, Severity};
#[cfg(feature = "runtime")]
use crate::repo::folders;
use crate::repo::{Date, Glob, LoadOptions};
use crate::resolve::ProfileId;
use crate::source::{FileId, Sources};
use crate::system::{Disk, Embedded};
use crate::text::{Text, text};
use crate::world::World;

/// The options of a run.
#[derive(Clone)]
pub(super) struct Options {
    directory: PathBuf,
    /// `true` if the folder was named on the command line; it is then the root.
    is_named: bool,
    agents: Vec<String>,
    contexts: Vec<String>,
    pub(super) model: Option<String>,
    load: LoadOptions,
    /// The format of standard output.
    pub(super) format: Format,
    pub(super) formats: Formats,
    is_verbose: bool,
    deny: Vec<String>,
    allow: Vec<String>,
}

impl Options {
    pub(super) fn resolve(common: Common) -> Result<Options, Failure> {
        common
            .deny
            .iter()
            .try_for_each(|code| check_code(code))
            .map_err(Failure::of)?;
        common
            .allow
            .iter()
            .try_for_each(|code| check_allowed(code))
            .map_err(Failure::of)?;
        let formats = Formats::resolve(common.formats)?;
        Ok(Options {
            is_named: common.directory.is_some(),
            directory: common.directory.unwrap_or_else(|| PathBuf::from(".")),
            agents: common.agents,
            contexts: common.contexts,
            model: common.model,
            is_verbose: common.verbose,
            load: LoadOptions {
                with_bundled: common.bundled,
                without_bundled: common.no_bundled,
            },
            format: formats.shown,
            formats,
            deny: common.deny,
            allow: common.allow,
        })
    }

    /// Returns the options for exactly this folder, with human-readable output.
    pub(super) fn for_people_in(&self, directory: PathBuf) -> Options {
        let formats = Formats::for_people();
        Options {
            format: formats.shown,
            formats,
            ..self.in_folder(directory)
        }
    }

    /// Returns `true` if the folder was named on the command line.
    pub(super) fn is_named(&self) -> bool {
        self.is_named
    }

    /// Prints cache statistics to standard error, if requested.
    pub(super) fn tell_memory(&self, compiler: &Compiler, terminal: &Terminal) {
        if self.is_verbose {
            terminal.note(&compiler.memory_use().to_string());
        }
    }

    /// Returns the options for exactly this folder.
    pub(super) fn in_folder(&self, directory: PathBuf) -> Options {
        Options {
            directory,
            is_named: true,
            ..self.clone()
        }
    }

    /// Returns the options with the bundled agents included, unless they are excluded explicitly.
    #[cfg(feature = "runtime")]
    pub(super) fn with_bundled(&self) -> Options {
        let load = LoadOptions {
            with_bundled: !self.load.without_bundled,
            ..self.load
        };
        Options {
            load,
            ..self.clone()
        }
    }

    /// Returns the named context; `None` if none was named. It is an error to name several.
    #[cfg(feature = "runtime")]
    pub(super) fn one_context(&self) -> Result<Option<&str>, Failure> {
        match self.contexts.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            _ => Err(Failure::new("`--context` must name exactly one context")),
        }
    }

    /// Returns the file that `--context` names instead of a context: `-` for standard input, or the
    /// path of a JSON file.
    pub(super) fn conversation_file(&self) -> Option<&str> {
        match self.contexts.as_slice() {
            [one] if one == "-" || one.ends_with(".json") => Some(one),
            _ => None,
        }
    }

    /// Resolves a path given on the command line.
    pub(super) fn path(&self, path: &Path) -> PathBuf {
        match self.directory == Path::new(".") {
            true => path.to_owned(),
            false => self.directory.join(path),
        }
    }

    /// Returns a command line for the same repository and agents.
    pub(super) fn command(&self, name: &str) -> Text {
        let folder = match self.directory == Path::new(".") {
            true => Text::new(),
            false => text!(" -C {}", shell_word(&self.directory.to_string_lossy())),
        };
        let agents: Text = self
            .agents
            .iter()
            .map(|glob| text!(" --agent {}", shell_word(glob)))
            .collect();
        let contexts: Text = self
            .contexts
            .iter()
            .map(|glob| text!(" --context {}", shell_word(glob)))
            .collect();
        let layers = match (self.load.with_bundled, self.load.without_bundled) {
            (true, _) => " --bundled",
            (_, true) => " --no-bundled",
            _ => "",
        };
        text!("reqc {}{}{}{}{}", name, folder, agents, contexts, layers)
    }

    /// Returns `true` if standard output is human-readable.
    pub(super) fn is_for_people(&self) -> bool {
        matches!(self.format, Format::Human | Format::Short)
    }

    /// Returns the folder given to the command.
    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the root of the repository around the folder.
    pub(super) fn root(&self) -> Result<PathBuf, Failure> {
        Ok(crate::system::find_root(&self.directory, self.is_named)?)
    }

    /// Opens the repository around the folder.
    pub(super) fn open(&self) -> Result<Opened, Failure> {
        self.open_for(None)
    }

    /// Opens the repository with only the selected agents; no others can be compiled.
    pub(super) fn open_selected(&self) -> Result<Opened, Failure> {
        let selected = matcher(&self.agents);
        self.open_for((!self.agents.is_empty()).then_some(&selected))
    }

    /// Opens the repository with only one agent.
    pub(super) fn open_one(&self, agent: &str) -> Result<Opened, Failure> {
        self.open_for(Some(&|name| name == agent))
    }

    fn open_for(&self, wanted: Option<&dyn Fn(&str) -> bool>) -> Result<Opened, Failure> {
        let root = self.root()?;
        let disk = Arc::new(Disk::open(&root)?);
        let compiler = self.load_some(Arc::clone(&disk) as Arc<dyn World>, wanted);
        let compiler = ManuallyDrop::new(Arc::new(compiler));
        let selection = self.select(&compiler);
        let policy = self.policy(&disk);
        Ok(Opened {
            root,
            disk,
            compiler,
            selection,
            policy,
        })
    }

    /// Loads all agents of a repository from any world, with these options.
    pub(super) fn load_all(&self, world: Arc<dyn World>) -> Compiler {
        self.load_some(world, None)
    }

    /// Loads the selected agents of a repository from any world, with these options.
    pub(super) fn load_selected(&self, world: Arc<dyn World>) -> Compiler {
        let selected = matcher(&self.agents);
        self.load_some(world, (!self.agents.is_empty()).then_some(&selected))
    }

    fn load_some(&self, world: Arc<dyn World>, wanted: Option<&dyn Fn(&str) -> bool>) -> Compiler {
        Compiler::load_some(world, Arc::new(Embedded::bundled()), self.load, wanted)
    }

    /// Loads the selected agents whose names `wanted` accepts.
    pub(super) fn load_wanted(
        &self,
        world: Arc<dyn World>,
        wanted: &dyn Fn(&str) -> bool,
    ) -> Compiler {
        self.load_some(world, Some(wanted))
    }

    /// Resolves the selection in a repository loaded from any world.
    pub(super) fn selection_of(&self, compiler: &Compiler) -> Result<Selection, Failure> {
        self.select(compiler)
            .map_err(|error| select_failure(compiler, &error))
    }

    /// Resolves the selection in a repository.
    pub(super) fn select(&self, compiler: &Compiler) -> Result<Selection, Box<SelectError>> {
        let agents = match self.agents.as_slice() {
            [] => None,
            globs => Some(Names::of(compiler).agents(matcher(globs), &globs.join(", "))?),
        };
        let contexts = match self.contexts.as_slice() {
            [] => None,
            globs => Some(Names::of(compiler).contexts(matcher(globs), &globs.join(", "))?),
        };
        Ok(Selection {
            agents,
            contexts,
            ..Selection::default()
        })
    }

    fn policy(&self, disk: &Disk) -> PolicyOptions {
        let today = disk
            .today()
            .map(|(year, month, day)| Date { year, month, day });
        PolicyOptions {
            deny: self.deny.clone(),
            allow: self.allow.clone(),
            today,
            ..PolicyOptions::default()
        }
    }

    /// Returns the selection. If nothing is selected and some files could not be read, shows the
    /// errors of these files, because one of them may contain the requested item.
    pub(super) fn selection<'o>(
        &self,
        opened: &'o Opened,
        terminal: &mut Terminal,
    ) -> Result<&'o Selection, Failure> {
        if opened.selection.is_err() && !Names::of(&opened.compiler).are_all_known() {
            self.formats.write(
                &opened.report_of(opened.errors(|_| true)),
                &opened.root,
                terminal,
            )?;
        }
        opened.selection()
    }
}

/// An opened repository.
pub(super) struct Opened {
    pub(super) root: PathBuf,
    pub(super) disk: Arc<Disk>,
    /// The compiler is never dropped: the process ends with the command, and dropping a compiler
    /// takes longer than many commands do.
    pub(super) compiler: ManuallyDrop<Arc<Compiler>>,
    selection: Result<Selection, Box<SelectError>>,
    /// The policy of this run for findings.
    pub(super) policy: PolicyOptions,
}

impl Opened {
    /// Returns the selection, or a failure with similar names if it is empty.
    pub(super) fn selection(&self) -> Result<&Selection, Failure> {
        self.selection
            .as_ref()
            .map_err(|error| select_failure(&self.compiler, error))
    }

    /// Limits the selection to the items that a change to some files can affect.
    pub(super) fn limit_to(&mut self, reach: Reach) {
        if let Ok(selection) = &mut self.selection {
            selection.reached = Some(reach);
        }
    }

    /// Limits the selection to a shard of the agents.
    pub(super) fn limit_to_shard(&mut self, shard: Option<Shard>) {
        if let Ok(selection) = &mut self.selection {
            selection.shard = shard;
        }
    }

    /// Creates a report with only these findings.
    pub(super) fn report_of(&self, found: Vec<Diagnostic>) -> Report {
        self.report_in(self.compiler.sources().clone(), found)
    }

    /// Creates a report with findings in files that are not part of the repository.
    pub(super) fn report_in(&self, sources: Sources, found: Vec<Diagnostic>) -> Report {
        let everything = Selection::default();
        let selection = self.selection.as_ref().unwrap_or(&everything);
        Reporter::new(&self.compiler, selection, &self.policy).of(sources, found)
    }

    /// Returns the agent with this name.
    pub(super) fn agent(&self, name: &str) -> Result<ProfileId, Failure> {
        let found = Names::of(&self.compiler).agents(|candidate| candidate == name, name);
        found
            .map(|ids| ids[0])
            .map_err(|error| select_failure(&self.compiler, &error))
    }

    /// Returns the findings from loading the repository that concern an agent.
    pub(super) fn findings_of(&self, id: ProfileId) -> Vec<Diagnostic> {
        let name = &self.compiler.hierarchy().get(id).name.value;
        self.compiler
            .findings()
            .iter()
            .filter(|finding| finding.agents.contains(name))
            .cloned()
            .collect()
    }

    /// Returns the errors in the files that determine where an agent's requests are sent, and with
    /// which key and model: the file of its provider instance, `models.toml`, and `reqc.toml`.
    #[cfg(feature = "runtime")]
    pub(super) fn errors_of_settings(&self, instance: &str) -> Vec<Diagnostic> {
        let (sources, files) = (
            self.compiler.sources(),
            self.compiler.repo().instance_files(instance),
        );
        self.errors(|file| {
            files.contains(&file)
                || matches!(&**sources.get(file).path(), "models.toml" | folders::CONFIG)
        })
    }

    /// Returns the errors found in some files when the repository was loaded.
    pub(super) fn errors(&self, stands_in: impl Fn(FileId) -> bool) -> Vec<Diagnostic> {
        let errors = self
            .compiler
            .findings()
            .iter()
            .filter(|finding| finding.severity == Severity::Error);
        errors
            .filter(|finding| stands_in(finding.primary.span.file))
            .cloned()
            .collect()
    }

    /// Returns the profile with this name, which may be abstract.
    pub(super) fn profile(&self, name: &str) -> Result<ProfileId, Failure> {
        match self.compiler.hierarchy().by_name(name) {
            Some(id) => Ok(id),
            None => self.agent(name),
        }
    }
}

fn select_failure(compiler: &Compiler, error: &SelectError) -> Failure {
    match error {
        SelectError::Unknown { what, help, .. } => {
            let listing = if *what == "agent" {
                "`reqc list --all` shows every agent"
            } else {
                "`reqc contexts` shows every context"
            };
            Failure::new(error.to_string()).help(help.clone().unwrap_or_else(|| listing.to_owned()))
        }
        SelectError::LeftOut { .. } => {
            Failure::new(error.to_string()).help("`reqc check` shows the errors")
        }
        SelectError::Abstract(finding) => {
            let place = compiler.sources().describe(finding.primary.span);
            let failure = Failure::new(format!("{} ({place})", finding.message));
            finding
                .help
                .iter()
                .fold(failure, |failure, help| failure.help(help.clone()))
        }
    }
}

/// Quotes a word for the shell.
fn shell_word(word: &str) -> String {
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "-_./=:@%+,".contains(c)
}

/// Returns a function that matches names against globs. A glob that cannot be parsed matches only
/// itself.
fn matcher(globs: &[String]) -> impl Fn(&str) -> bool + use<> {
    let patterns: Vec<Glob> = globs
        .iter()
        .filter(|text| text.contains(['*', '?', '[', '{', '\\']))
        .filter_map(|text| Glob::new(text).ok())
        .collect();
    // A name may itself contain brackets or stars.
    let literal = globs.to_vec();
    move |name: &str| {
        patterns.iter().any(|glob| glob.is_match(name)) || literal.iter().any(|text| text == name)
    }
}
