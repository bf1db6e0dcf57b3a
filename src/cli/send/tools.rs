//! Tools of a `tools.toml`: programs at once, those of servers once they run.

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
    /// The programs; once servers run, their tools too.
    pub(super) set: ToolSet,
    opened: OpenedTools,
}

impl Tools {
    /// Reads a file. What is only a warning does not stop the request.
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

    /// Returns `true` if some of the tools are known only once servers run.
    pub(super) fn has_servers(&self) -> bool {
        !self.opened.file.servers.is_empty()
    }

    /// Returns what it asks the person for.
    pub(super) fn grants(
        &self,
        root: &Path,
        secrets: &SystemSecrets,
    ) -> Result<Vec<Grant>, Failure> {
        self.opened.grants(root, secrets).map_err(Failure::from)
    }

    /// Starts the servers, and adds what they offer.
    pub(super) async fn start(&mut self, transport: &Transport) -> Result<RunningTools, Failure> {
        let running = self.opened.start(transport).await.map_err(failure)?;
        running.warnings().for_each(Terminal::warn);
        self.set = running.set.clone();
        Ok(running)
    }
}
