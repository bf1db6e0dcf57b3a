//! A repository on disk, together with the project in which its agents work. This is where most
//! programs start.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Disk, Embedded, find_root};
use crate::compile::{Compiler, Folders, LoadOptions, PromptEnvironment};
#[cfg(feature = "runtime")]
use crate::conversation::{Conversation, Task, log::Log};
#[cfg(feature = "runtime")]
use crate::runtime::{Agent, Category, Error, Session, SessionStart, Transport, TransportOptions};
use crate::world::{AccessError, World};

/// A repository of agents, loaded from disk.
#[non_exhaustive]
pub struct OpenedRepository {
    /// The repository's root folder.
    pub root: PathBuf,
    /// The compiler for the repository's agents and the bundled ones.
    pub compiler: Arc<Compiler>,
    /// The environment for prompts, with the real folder as the project, and with real paths.
    pub environment: PromptEnvironment,
}

#[cfg(feature = "runtime")]
impl OpenedRepository {
    /// Returns the agent with this name.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Agent::new`].
    pub fn agent(&self, name: &str) -> Result<Agent, Error> {
        Agent::new(Arc::clone(&self.compiler), name, self.environment.clone())
    }

    /// Returns a transport with the default limits, which reads keys from the sources named in the
    /// repository. Sessions that share a transport share its connections.
    ///
    /// The transport does not ask the user for permission. Programs that open untrusted
    /// repositories must check [`trust`](crate::runtime::trust) first.
    pub fn transport(&self) -> Transport {
        let secrets = Arc::new(super::SystemSecrets::new(&self.root));
        Transport::new(secrets, TransportOptions::default())
            .with_clock(Arc::new(super::SystemClock))
    }

    /// Starts the MCP servers in the repository's `tools.toml`, and returns all tools that the file
    /// defines. As with [`OpenedRepository::transport`], the user is not asked for permission. The
    /// servers run until [`RunningTools`](super::RunningTools) is closed or dropped.
    ///
    /// ```no_run
    /// # async fn open() -> Result<(), Box<dyn std::error::Error>> {
    /// let repository = reqc::system::open_repository(".")?;
    /// let session = repository.session("Claude Chat Tools")?;
    /// let tools = repository.start_tools(&repository.transport()).await?;
    /// session.set_tools(tools.set.clone());
    /// println!("{}", session.send("What is in this folder?").text().await?);
    /// tools.close().await;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the file does not exist or contains mistakes, or if a server cannot be
    /// used.
    pub async fn start_tools(&self, transport: &Transport) -> Result<super::RunningTools, Error> {
        let opened = super::OpenedTools::open(self.root.join("tools.toml"));
        opened
            .map_err(|why| Error::new(Category::Config, why))?
            .start(transport)
            .await
    }

    /// Starts a session with an agent, using a new transport. The session is not saved.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Agent::new`].
    pub fn session(&self, agent: &str) -> Result<Session, Error> {
        Ok(Session::new(
            self.agent(agent)?,
            self.transport(),
            Conversation::default(),
        ))
    }

    /// Creates a session in which a completion agent fills a gap, using a new transport.
    /// `proceed()` asks for the text between the prefix and the suffix.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Agent::new`].
    pub fn completion(
        &self,
        agent: &str,
        prefix: impl Into<String>,
        suffix: impl Into<String>,
    ) -> Result<Session, Error> {
        let task = Task::Completion {
            prefix: prefix.into(),
            suffix: suffix.into(),
        };
        let conversation = Conversation {
            task,
            ..Conversation::default()
        };
        Ok(Session::new(
            self.agent(agent)?,
            self.transport(),
            conversation,
        ))
    }

    /// Continues the session in a file with an agent, or starts a session if there is no file,
    /// using a new transport. Each step is written to the file before the model sees it. To supply
    /// a transport, use [`SessionFile`].
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Agent::new`] and [`SessionFile::open_or_create`], and fails if the
    /// file cannot be written.
    pub fn session_in(&self, agent: &str, file: impl AsRef<Path>) -> Result<Session, Error> {
        let agent = self.agent(agent)?;
        let file =
            SessionFile::open_or_create(file).map_err(|why| Error::new(Category::Config, why))?;
        file.session(agent, self.transport())
    }
}

/// A session in a file: its content so far, and the journal for further lines.
#[cfg(feature = "runtime")]
#[non_exhaustive]
pub struct SessionFile {
    /// The content of the file, without a last line that a killed process left incomplete.
    pub start: SessionStart,
    /// The journal, locked against other writers.
    pub journal: super::JournalFile,
}

#[cfg(feature = "runtime")]
impl SessionFile {
    /// Opens the file, or creates it if it is missing.
    ///
    /// # Errors
    ///
    /// Returns a phrase if the file cannot be opened, is in use, or does not contain a session.
    pub fn open_or_create(path: impl AsRef<Path>) -> Result<SessionFile, AccessError> {
        let path = path.as_ref();
        let opened = super::JournalFile::open_or_create(path)?;
        let loaded =
            Log::parse(&opened.bytes).map_err(|why| why.of_file(&path.display().to_string()))?;
        let start = match loaded.log {
            Some(log) => SessionStart::Resumed(log, Conversation::default()),
            None => SessionStart::New(Conversation::default()),
        };
        Ok(SessionFile {
            start,
            journal: opened.journal,
        })
    }

    /// Starts the session. Each step is written to the file before the model sees it.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn session(self, agent: Agent, transport: Transport) -> Result<Session, Error> {
        Session::journaled(agent, transport, self.start, Box::new(self.journal))
    }
}

/// Loads the repository that contains a folder. The folder is also the project in which the agents
/// work. Mistakes in the repository are reported by [`Compiler::findings`].
///
/// # Errors
///
/// Returns a phrase if the folder does not exist or cannot be read.
pub fn open_repository(folder: impl AsRef<Path>) -> Result<OpenedRepository, AccessError> {
    let folder = folder.as_ref();
    let root = find_root(folder, false)?;
    let options = LoadOptions {
        with_bundled: true,
        ..LoadOptions::default()
    };
    let compiler = Compiler::load(
        Arc::new(Disk::open(&root)?),
        Arc::new(Embedded::bundled()),
        options,
    );
    let environment = project_environment(folder, &root)?;
    Ok(OpenedRepository {
        root,
        compiler: Arc::new(compiler),
        environment,
    })
}

/// Returns the environment for prompts, with the real paths of a project on disk. `config` is the
/// folder of the agent repository.
///
/// # Errors
///
/// Returns a phrase if the project's folder does not exist or cannot be read.
pub fn project_environment(
    project: &Path,
    config: &Path,
) -> Result<PromptEnvironment, AccessError> {
    let disk = Disk::open(project)?;
    let name = disk
        .root()
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let home = std::env::home_dir().unwrap_or_else(|| PathBuf::from("/"));
    let folders = Folders {
        project: text(disk.root()),
        config: text(config),
        home: text(&home),
    };
    let project: Arc<dyn World> = Arc::new(disk);
    Ok(PromptEnvironment {
        project,
        project_name: name.into(),
        language: Arc::from(""),
        folders,
    })
}

fn text(path: &Path) -> Arc<str> {
    Arc::from(path.to_string_lossy().as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_project_is_the_folder_and_the_agents_are_those_around_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let project = folder.path().join("project");
        std::fs::create_dir_all(folder.path().join("agents")).expect("writable");
        std::fs::create_dir_all(&project).expect("writable");
        std::fs::write(folder.path().join("reqc.toml"), "").expect("writable");
        let opened = open_repository(&project).expect("it is there");
        assert!(opened.compiler.findings().is_empty() && !opened.compiler.agents().is_empty());
        let place = project.canonicalize().expect("it is there");
        assert_eq!(
            (
                &*opened.environment.project_name,
                Path::new(&*opened.environment.folders.project)
            ),
            ("project", &*place)
        );
        assert_eq!(
            opened.root,
            folder.path().canonicalize().expect("it is there")
        );
        assert!(open_repository(folder.path().join("none")).is_err());
    }
}
