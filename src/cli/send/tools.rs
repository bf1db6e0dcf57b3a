//! The tools of a `tools.toml`. Programs are available immediately, and servers' tools after the
//! servers have started.

use std::path::Path;

use super::super::options::{Opened, Options};
use super::super::{Failure, Terminal};
use super::failure;
use super::unusable::Unusable;
use crate::diag::Severity;
use crate::runtime::Transport;
use crate::runtime::tools::ToolSet;
use crate::runtime::trust::Grant;
use crate::system::{OpenedTools, RunningTools, SystemSecrets, to_read};

/// The tools of a `tools.toml`.
pub(super) struct Tools {
    /// The programs, and also the tools of servers once they run.
    pub(super) set: ToolSet,
    opened: OpenedTools,
}

impl Tools {
    /// Reads a file. Warnings do not stop the request.
    pub(super) fn read(
        options: &Options,
        opened: &Opened,
        given: &Path,
        terminal: &Terminal,
    ) -> Result<Tools, Unusable> {
        let known = options.path(given);
        let place = to_read(&known, options.directory()).map_err(Failure::from)?;
        let name = place
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let given = given.to_string_lossy();
        let shown_below = given.strip_suffix(&name).unwrap_or_default();
        let mut tools = OpenedTools::open_as(&known, shown_below, &place)
            .map_err(Failure::from)?
            .supervised();
        let (found, sources) = (
            std::mem::take(&mut tools.findings),
            std::mem::take(&mut tools.sources),
        );
        if found
            .iter()
            .any(|finding| finding.severity == Severity::Error)
        {
            return Err(Unusable::FindingsIn(sources, found));
        }
        terminal.findings_aside(options.format, &opened.report_in(sources, found));
        Ok(Tools {
            set: tools.programs(),
            opened: tools,
        })
    }

    /// Returns `true` if some tools are known only after servers have started.
    pub(super) fn has_servers(&self) -> bool {
        !self.opened.file.servers.is_empty()
    }

    /// Returns the permissions that the file needs from the user.
    pub(super) fn grants(
        &self,
        root: &Path,
        secrets: &SystemSecrets,
    ) -> Result<Vec<Grant>, Failure> {
        self.opened.grants(root, secrets).map_err(Failure::from)
    }

    /// Starts the servers, and adds their tools.
    pub(super) async fn start(&mut self, transport: &Transport) -> Result<RunningTools, Failure> {
        let running = self.opened.start(transport).await.map_err(failure)?;
        running.warnings().for_each(Terminal::warn);
        self.set = running.set.clone();
        Ok(running)
    }
}
