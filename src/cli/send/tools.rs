//! Tools of a `tools.toml`: programs at once, those of servers once they run.

use std::path::Path;
use std::sync::Arc;

use tokio::task::JoinSet;

use super::super::options::{Opened, Options};
use super::super::{Failure, Terminal};
use super::failure;
use super::input::Unusable;
use crate::diag::{Diagnostic, Severity};
use crate::repo::{ServerConnection, ServerSpec, ToolsFile, read_tools_below};
use crate::runtime::Transport;
use crate::runtime::tools::{McpServer, ProcessTool, Processes, ToolSet};
use crate::runtime::trust::{Asker, Grant};
use crate::source::Sources;
use crate::system::{Disk, SystemProcesses, SystemSecrets, to_read};
use crate::world::World;

/// What a `tools.toml` gives.
pub(super) struct Tools {
    /// The programs.
    pub(super) set: ToolSet,
    file: ToolsFile,
    processes: Arc<SystemProcesses>,
}

/// Servers that run, with what they are told when there is nothing more to do.
#[derive(Default)]
pub(super) struct Servers(Vec<McpServer>);

impl Tools {
    /// Reads a file. What is only a warning does not stop the request.
    pub(super) fn read(
        options: &Options,
        opened: &Opened,
        given: &Path,
        terminal: &Terminal,
    ) -> Result<Tools, Unusable> {
        let path = options.path(given);
        let place = to_read(&path, options.directory()).map_err(Failure::from)?;
        let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let name = place.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let given = given.to_string_lossy();
        let shown_below = given.strip_suffix(&name).unwrap_or_default();
        let world = Disk::open(folder).map_err(Failure::from)?.with_named(&name);
        if let Err(error) = world.read(&name) {
            return Err(Failure::new(format!("`{}` cannot be read: {error}", path.display())).into());
        }
        let processes = Arc::new(SystemProcesses::new(folder).map_err(Failure::from)?.supervised());
        let mut sources = Sources::default();
        let (file, mut found) = read_tools_below(shown_below, &world, &name, &mut sources);
        found.extend(missing(&file, processes.as_ref()));
        if found.iter().any(|finding| finding.severity == Severity::Error) {
            return Err(Unusable::FindingsIn(sources, found));
        }
        terminal.findings_aside(options.format, &opened.report_in(sources, found));
        let mut set = ToolSet::new();
        let tools = file.tools.iter().cloned();
        tools.for_each(|spec| set.insert(Arc::new(ProcessTool::new(spec, Arc::clone(&processes) as _))));
        Ok(Tools { set, file, processes })
    }

    /// Whether some of the tools are known only once servers run.
    pub(super) fn has_servers(&self) -> bool {
        !self.file.servers.is_empty()
    }

    /// What it asks the person for.
    pub(super) fn grants(&self, root: &Path, secrets: &SystemSecrets) -> Result<Vec<Grant>, Failure> {
        let tool =
            |spec: &crate::repo::ToolSpec| (Asker::Tool(Arc::clone(&spec.definition.name)), spec.program.clone());
        let program = |(asker, program)| self.processes.grant(asker, &program, root).map_err(Failure::from);
        let tools = self.file.tools.iter().map(tool).map(program);
        let server = |spec: &ServerSpec| match &spec.connection {
            ServerConnection::Program(of) => program((Asker::Server(Arc::clone(&spec.name.value)), of.clone())),
            ServerConnection::Http(http) => {
                let file = http.key.as_ref().and_then(|key| secrets.file_of(&key.reference.value));
                let grant = Grant::of_server(&spec.name.value, http, file.as_deref());
                grant.ok_or_else(|| Failure::new(format!("`{}` is no URL", http.url.value)))
            }
        };
        tools.chain(self.file.servers.iter().map(server)).collect()
    }

    /// Starts the servers, all at once, and adds what they offer.
    pub(super) async fn start(&mut self, transport: &Transport) -> Result<Servers, Failure> {
        let mut starting = JoinSet::new();
        for (at, spec) in self.file.servers.iter().cloned().enumerate() {
            let (processes, transport) = (Arc::clone(&self.processes), transport.clone());
            starting.spawn(async move { (at, McpServer::start(&spec, processes.as_ref(), &transport).await) });
        }
        let mut started = starting.join_all().await;
        started.sort_by_key(|(at, _)| *at);
        let mut servers = Servers::default();
        for (_, server) in started {
            let server = server.map_err(failure)?;
            server.warnings().iter().for_each(|warning| Terminal::warn(warning));
            server.add_to(&mut self.set);
            servers.0.push(server);
        }
        Ok(servers)
    }
}

impl Servers {
    /// Ends them, all at once.
    pub(super) async fn close(self) {
        let closing: JoinSet<()> = self.0.into_iter().map(McpServer::close).collect();
        closing.join_all().await;
    }
}

/// The findings of programs that are not there.
fn missing(file: &ToolsFile, processes: &SystemProcesses) -> Vec<Diagnostic> {
    let why = |name: &str| processes.find(name).err().map(|why| why.to_string());
    let tools = file.tools.iter().filter_map(|spec| Some(spec.not_found(&why(&spec.program.name.value)?)));
    let servers = file.servers.iter().filter_map(|spec| match &spec.connection {
        ServerConnection::Program(program) => Some(spec.not_found(program, &why(&program.name.value)?)),
        ServerConnection::Http(_) => None,
    });
    tools.chain(servers).collect()
}
