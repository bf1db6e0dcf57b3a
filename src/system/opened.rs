//! A repository on disk and the project that its agents work in: what a program starts from.

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
    /// Its root.
    pub root: PathBuf,
    /// Its agents and the bundled ones.
    pub compiler: Arc<Compiler>,
    /// The surroundings that prompts see: the real folder as the project, the real paths.
    pub environment: PromptEnvironment,
}

#[cfg(feature = "runtime")]
impl OpenedRepository {
    /// The agent with a name.
    ///
    /// # Errors
    ///
    /// As [`Agent::new`].
    pub fn agent(&self, name: &str) -> Result<Agent, Error> {
        Agent::new(Arc::clone(&self.compiler), name, self.environment.clone())
    }

    /// A transport that takes keys from where the repository says, with the usual limits. Sessions
    /// that share one share its connections.
    ///
    /// Nobody is asked: who opens other people's repositories settles
    /// [`trust`](crate::runtime::trust) first.
    pub fn transport(&self) -> Transport {
        let secrets = Arc::new(super::SystemSecrets::new(&self.root));
        Transport::new(secrets, TransportOptions::default())
            .with_clock(Arc::new(super::SystemClock))
    }

    /// The tools of the repository's `tools.toml`, with those of its MCP servers, which are
    /// started. Nobody is asked, as above. They run until
    /// [`RunningTools`](super::RunningTools) is closed or dropped.
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
    /// There is no such file, it has mistakes, or a server cannot be used.
    pub async fn start_tools(&self, transport: &Transport) -> Result<super::RunningTools, Error> {
        let opened = super::OpenedTools::open(self.root.join("tools.toml"));
        opened
            .map_err(|why| Error::new(Category::Config, why))?
            .start(transport)
            .await
    }

    /// A new session with an agent, with a transport of its own, that nobody writes down.
    ///
    /// # Errors
    ///
    /// As [`Agent::new`].
    pub fn session(&self, agent: &str) -> Result<Session, Error> {
        Ok(Session::new(
            self.agent(agent)?,
            self.transport(),
            Conversation::default(),
        ))
    }

    /// A gap that an agent for completions fills, with a transport of its own: `proceed()` asks
    /// what is between the two texts.
    ///
    /// # Errors
    ///
    /// As [`Agent::new`].
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

    /// The session of a file with an agent, with a transport of its own: the one that the file
    /// holds, or a new one. Each step of it is in the file before the model sees it.
    /// [`SessionFile`] is the same for a transport of the host's.
    ///
    /// # Errors
    ///
    /// As [`Agent::new`] and [`SessionFile::open_or_create`]; the file cannot be written.
    pub fn session_in(&self, agent: &str, file: impl AsRef<Path>) -> Result<Session, Error> {
        let agent = self.agent(agent)?;
        let file =
            SessionFile::open_or_create(file).map_err(|why| Error::new(Category::Config, why))?;
        file.session(agent, self.transport())
    }
}

/// A session in a file: where it begins or goes on, and where its next lines go.
#[cfg(feature = "runtime")]
#[non_exhaustive]
pub struct SessionFile {
    /// The content of the file. A line that a killed process left unfinished does not count.
    pub start: SessionStart,
    /// The file, which nobody else may write meanwhile.
    pub journal: super::JournalFile,
}

#[cfg(feature = "runtime")]
impl SessionFile {
    /// Opens the file, or creates it.
    ///
    /// # Errors
    ///
    /// A phrase, if it cannot be opened, is in use, or holds something other than a session.
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

    /// The session: each step of it is in the file before the model sees it.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn session(self, agent: Agent, transport: Transport) -> Result<Session, Error> {
        Session::journaled(agent, transport, self.start, Box::new(self.journal))
    }
}

/// Loads the repository around a folder. The folder is the project that its agents work in.
/// Mistakes of the repository are in
/// [`Compiler::findings`].
///
/// # Errors
///
/// A phrase, if the folder does not exist or cannot be read.
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

/// Returns what prompts see of a project on disk, with the paths as they are; `config` is the
/// folder of the repository.
///
/// # Errors
///
/// A phrase, if the project's folder does not exist or cannot be read.
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
