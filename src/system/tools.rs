//! A `tools.toml` on disk, with its definitions, the permissions that it requires, and its tools
//! while its servers run.

use std::path::Path;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::{Disk, SystemProcesses, SystemSecrets};
use crate::diag::{Diagnostic, Severity};
use crate::repo::{ServerConnection, ToolsFile, read_tools_below};
use crate::runtime::tools::{McpServer, ProcessTool, Processes, ToolSet};
use crate::runtime::trust::{Asker, Grant};
use crate::runtime::{Category, Error, Transport};
use crate::source::Sources;
use crate::world::{AccessError, World};

/// A `tools.toml` that has been read, but whose servers have not been started.
#[non_exhaustive]
pub struct OpenedTools {
    /// The definitions that have no mistakes.
    pub file: ToolsFile,
    /// The findings about mistakes in the file. Missing programs are warnings, and their tools
    /// return an error.
    pub findings: Vec<Diagnostic>,
    /// The source files of the findings.
    pub sources: Sources,
    processes: Arc<SystemProcesses>,
}

/// Tools that can be called, and the servers that provide some of them. Dropping this value stops
/// the servers, and their tools fail from then on.
#[non_exhaustive]
pub struct RunningTools {
    /// The tools: first those that are programs, then those of servers, each in the order of the
    /// file.
    pub set: ToolSet,
    servers: Vec<McpServer>,
}

impl OpenedTools {
    /// Reads a file. Mistakes in it are reported as findings.
    ///
    /// # Errors
    ///
    /// Returns a phrase if the file cannot be read.
    pub fn open(path: impl AsRef<Path>) -> Result<OpenedTools, AccessError> {
        OpenedTools::open_as(path.as_ref(), "", path.as_ref())
    }

    /// Reads a file, which the user knows by the path `known`. Findings show its folder as `shown`,
    /// which includes the trailing `/`.
    pub(crate) fn open_as(
        known: &Path,
        shown: &str,
        path: &Path,
    ) -> Result<OpenedTools, AccessError> {
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let world = Disk::open(folder)?.with_named(&name);
        if let Err(error) = world.read(&name) {
            return Err(format!("`{}` cannot be read: {error}", known.display()).into());
        }
        let processes = SystemProcesses::new(folder)?;
        let mut sources = Sources::default();
        let (file, mut findings) = read_tools_below(shown, &world, &name, &mut sources);
        findings.extend(missing(&file, &processes));
        Ok(OpenedTools {
            file,
            findings,
            sources,
            processes: Arc::new(processes),
        })
    }

    /// Adds a supervisor to each program; see [`SystemProcesses::supervised`].
    #[must_use]
    pub fn supervised(self) -> OpenedTools {
        let processes = Arc::unwrap_or_clone(self.processes).supervised();
        OpenedTools {
            processes: Arc::new(processes),
            ..self
        }
    }

    /// Returns the permissions that the file requires in the repository with this root; see
    /// [`trust`](crate::runtime::trust).
    ///
    /// # Errors
    ///
    /// Returns a phrase if a program cannot be read, or if a server's URL is invalid.
    pub fn grants(&self, root: &Path, secrets: &SystemSecrets) -> Result<Vec<Grant>, AccessError> {
        self.file
            .tools
            .iter()
            .map(|spec| {
                let asker = Asker::Tool(Arc::clone(&spec.definition.name));
                self.processes.grant(asker, &spec.program, root)
            })
            .chain(self.file.servers.iter().map(|spec| match &spec.connection {
                ServerConnection::Program(program) => self.processes.grant(
                    Asker::Server(Arc::clone(&spec.name.value)),
                    program,
                    root,
                ),
                ServerConnection::Http(http) => {
                    let file = http
                        .key
                        .as_ref()
                        .and_then(|key| secrets.file_of(&key.reference.value));
                    let grant = Grant::of_server(&spec.name.value, http, file.as_deref());
                    grant.ok_or_else(|| format!("`{}` is not a URL", http.url.value).into())
                }
            }))
            .collect()
    }

    /// Returns only the tools that are programs.
    pub fn programs(&self) -> ToolSet {
        let mut set = ToolSet::new();
        let tools = self.file.tools.iter().cloned();
        tools.for_each(|spec| {
            set.insert(Arc::new(ProcessTool::new(
                spec,
                Arc::clone(&self.processes) as _,
            )));
        });
        set
    }

    /// Starts all servers at once. Their keys are read from the secrets of `transport`. The user is
    /// not asked for permission.
    ///
    /// # Errors
    ///
    /// Returns an error if the file has mistakes or a server cannot be used. If several servers
    /// cannot be used, the first is reported.
    pub async fn start(&self, transport: &Transport) -> Result<RunningTools, Error> {
        let mistake = self
            .findings
            .iter()
            .find(|finding| finding.severity == Severity::Error);
        if let Some(mistake) = mistake {
            let place = self.sources.describe(mistake.primary.span);
            let told = format!("{} {place} {}", mistake.rule.code, mistake.message);
            return Err(Error::new(Category::Config, "the tools cannot be used").detail(told));
        }
        let mut starting = JoinSet::new();
        for (at, spec) in self.file.servers.iter().cloned().enumerate() {
            let (processes, transport) = (Arc::clone(&self.processes), transport.clone());
            starting.spawn(async move {
                (
                    at,
                    McpServer::start(&spec, processes.as_ref(), &transport).await,
                )
            });
        }
        let mut started = starting.join_all().await;
        started.sort_by_key(|(at, _)| *at);
        let servers = started
            .into_iter()
            .map(|(_, server)| server)
            .collect::<Result<Vec<McpServer>, Error>>()?;
        let mut set = self.programs();
        servers.iter().for_each(|server| server.add_to(&mut set));
        Ok(RunningTools { set, servers })
    }
}

impl RunningTools {
    /// Returns warnings about the servers: tools that do not exist, or that cannot be offered to a
    /// model.
    pub fn warnings(&self) -> impl Iterator<Item = &str> {
        self.servers
            .iter()
            .flat_map(McpServer::warnings)
            .map(String::as_str)
    }

    /// Stops all servers at once, after giving them a moment to exit on their own.
    pub async fn close(self) {
        let closing: JoinSet<()> = self.servers.into_iter().map(McpServer::close).collect();
        closing.join_all().await;
    }
}

/// Returns the findings for missing programs.
fn missing(file: &ToolsFile, processes: &SystemProcesses) -> Vec<Diagnostic> {
    let tools = file
        .tools
        .iter()
        .filter_map(|spec| Some(spec.not_found(&why(&spec.program.name.value, processes)?)));
    let servers = file
        .servers
        .iter()
        .filter_map(|spec| match &spec.connection {
            ServerConnection::Program(program) => {
                Some(spec.not_found(program, &why(&program.name.value, processes)?))
            }
            ServerConnection::Http(_) => None,
        });
    tools.chain(servers).collect()
}

fn why(name: &str, processes: &SystemProcesses) -> Option<String> {
    processes.find(name).err().map(|why| why.to_string())
}
