//! The tool list of an MCP server that is named on the command line.

use std::fmt::Write;
use std::sync::Arc;

use serde_json::Value;

use super::args::ToolsCheck;
use super::options::{Opened, Options};
use super::{Failure, send};
use crate::diag::Severity;
use crate::repo::read_tools;
use crate::runtime::tools::McpServer;
use crate::runtime::{Transport, TransportOptions};
use crate::source::Sources;
use crate::system::{SystemClock, SystemProcesses, SystemSecrets};
use crate::world::MemoryWorld;

/// The environment variables for a program: those needed to find it and its files, but no keys.
const VARIABLES: [&str; 12] = [
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "SSL_CERT_FILE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "SYSTEMROOT",
    "APPDATA",
];

/// A server named on the command line.
pub(super) struct Server<'a> {
    args: &'a ToolsCheck,
}

impl<'a> Server<'a> {
    /// Returns the server, if one is named.
    pub(super) fn of(args: &'a ToolsCheck) -> Option<Server<'a>> {
        (args.mcp_command || args.mcp_url.is_some()).then_some(Server { args })
    }

    /// Returns the displayed name of the server.
    pub(super) fn shown(&self) -> String {
        match &self.args.mcp_url {
            Some(url) => url.clone(),
            None => self.args.command.join(" "),
        }
    }

    /// Starts or connects to the server, requests its tools, and stops or disconnects it.
    pub(super) fn ask(&self, options: &Options, opened: &Opened) -> Result<Vec<Value>, Failure> {
        let mut sources = Sources::default();
        let toml = self.entry();
        let world = MemoryWorld::from_iter([("tools.toml", toml.as_str())]);
        let (file, findings) = read_tools(&world, "tools.toml", &mut sources);
        if let Some(mistake) = findings
            .iter()
            .find(|finding| finding.severity == Severity::Error)
        {
            return Err(Failure::new(format!(
                "this server cannot be queried: {}",
                mistake.message
            )));
        }
        let spec = file
            .servers
            .first()
            .ok_or_else(|| Failure::new("this server cannot be queried"))?;
        let processes = SystemProcesses::new(options.directory())?.supervised();
        let secrets = SystemSecrets::new(&opened.root);
        let transport = Transport::new(Arc::new(secrets), TransportOptions::default())
            .with_clock(Arc::new(SystemClock));
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build();
        let runtime =
            runtime.map_err(|error| Failure::new(format!("the runtime cannot start: {error}")))?;
        crate::system::adopt();
        let listed = runtime.block_on(McpServer::survey(spec, &processes, &transport));
        runtime.shutdown_background();
        crate::system::end_the_rest();
        listed.map_err(send::failure)
    }

    /// Returns the server as an entry of `tools.toml`.
    fn entry(&self) -> String {
        let mut entry = format!(
            "[[server]]\nname = \"server\"\nstartup_timeout_seconds = {}\n",
            self.args.timeout
        );
        // Writing to a string never fails.
        let _ = match &self.args.mcp_url {
            Some(url) => writeln!(entry, "url = {}", quoted(url)),
            None => {
                let command: Vec<String> =
                    self.args.command.iter().map(|part| quoted(part)).collect();
                let names = VARIABLES
                    .into_iter()
                    .chain(self.args.mcp_env.iter().map(String::as_str));
                let names: Vec<String> = names.map(quoted).collect();
                writeln!(
                    entry,
                    "command = [{}]\nenv = [{}]",
                    command.join(", "),
                    names.join(", ")
                )
            }
        };
        if let Some(key) = &self.args.mcp_key {
            let _ = writeln!(entry, "api_key_ref = {}", quoted(key));
        }
        entry
    }
}

/// Quotes a string for TOML, in the same way as for JSON except for one control character.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace('\u{7f}', "\\u007F")
}
