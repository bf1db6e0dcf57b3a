//! The `[[server]]` entries in `tools.toml`: MCP servers, each of which is a program or has a URL.

use std::sync::Arc;
use std::time::Duration;

use super::super::{SecretRef, address, headers, instance};
use super::{Known, Limits, ProgramSpec, Reader, check_name, rules};
use crate::diag::Diagnostic;
use crate::source::{Span, Spanned};
use crate::toml::Table;
use crate::world::World;

/// Every key in a `[[server]]` entry.
pub const SERVER_KEYS: [&str; 12] = [
    "name",
    "command",
    "working_directory",
    "env",
    "url",
    "headers",
    "api_key_ref",
    "api_key_header",
    "tools",
    "startup_timeout_seconds",
    "timeout_seconds",
    "max_output_bytes",
];

/// The keys that a server with a URL cannot have.
const OF_PROGRAMS: [&str; 2] = ["working_directory", "env"];

/// The keys that a server that is a program cannot have.
const OF_URLS: [&str; 3] = ["headers", "api_key_ref", "api_key_header"];

/// The maximum length of a server's name, in bytes. It is half the maximum length of a tool's name,
/// because the names of the server's tools begin with it.
pub const MAX_SERVER_NAME: usize = 32;

/// An MCP server, as defined in `tools.toml`.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerSpec {
    /// The server's name, which is the prefix of its tools' names.
    pub name: Spanned<Arc<str>>,
    /// The way the server is reached.
    pub connection: ServerConnection,
    /// The tools that a model may call, by the names that the server uses; `None` for all tools.
    pub tools: Option<Vec<Spanned<Arc<str>>>>,
    /// The time limit for starting the server and reading its list of tools.
    pub startup_limit: Duration,
    /// The time limit for each call.
    pub time_limit: Duration,
    /// The maximum size of the text that one call returns, in bytes.
    pub output_limit: usize,
}

/// The way an MCP server is reached.
#[derive(Debug, Clone, PartialEq)]
pub enum ServerConnection {
    /// A program, through its standard input and output.
    Program(ProgramSpec),
    /// A URL ("streamable HTTP").
    Http(HttpSpec),
}

/// An MCP server at a URL.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpSpec {
    /// The complete URL.
    pub url: Spanned<Arc<str>>,
    /// The headers of every request, in the author's order. None of them contains a key.
    pub headers: Vec<(Arc<str>, Arc<str>)>,
    /// The reference to the key, and the key's header; `None` if the server needs no key.
    pub key: Option<KeyHeader>,
}

/// The key of an MCP server.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyHeader {
    /// The reference to the key.
    pub reference: Spanned<SecretRef>,
    /// The header whose entire value is the key; `None` for `Authorization: Bearer …`.
    pub header: Option<Arc<str>>,
}

impl ServerSpec {
    /// Returns the finding about a server program that is missing or not executable.
    pub fn not_found(&self, program: &ProgramSpec, why: &str) -> Diagnostic {
        program.not_found(&format!("the server `{}`", self.name.value), why)
    }
}

/// Reads a server and its name; returns `None` if a finding makes it unusable.
pub(super) fn read(
    world: &dyn World,
    reader: &mut Reader<'_, '_>,
    entry: Spanned<&Table>,
) -> Option<(ServerSpec, Spanned<Arc<str>>)> {
    reader.only(&Known::flat("[[server]]", &SERVER_KEYS));
    reader.missing("a [[server]] entry", entry.span, &["name"]);
    let name = reader
        .string("name")
        .filter(|name| check_name(reader, "server", name, MAX_SERVER_NAME));
    let connection = read_connection(world, reader, entry.span);
    let tools = reader.strings("tools").map(|tools| tools.value);
    let startup_limit = Limits::time(reader, "startup_timeout_seconds");
    let limits = Limits::read(reader);

    let (name, limits) = (name?, limits?);
    let server = ServerSpec {
        name: name.clone(),
        connection: connection?,
        tools,
        startup_limit: startup_limit?,
        time_limit: limits.time,
        output_limit: limits.output,
    };
    Some((server, name))
}

fn read_connection(
    world: &dyn World,
    reader: &mut Reader<'_, '_>,
    entry: Span,
) -> Option<ServerConnection> {
    // Read both in any case, so that all mistakes are reported at once.
    let program = reader
        .has("command")
        .then(|| ProgramSpec::read(world, reader));
    let http = reader.has("url").then(|| read_http(reader));
    match (program, http) {
        (Some(program), None) => {
            let is_clear = only_of(reader, &OF_URLS, "a server that is a program", "`url`");
            program.filter(|_| is_clear).map(ServerConnection::Program)
        }
        (None, Some(http)) => {
            let is_clear = only_of(reader, &OF_PROGRAMS, "a server at a URL", "`command`");
            http.filter(|_| is_clear).map(ServerConnection::Http)
        }
        (Some(_), Some(_)) => {
            let message = "a server is a program or at a URL, not both";
            reader.report(
                Diagnostic::new(&rules::SERVER_CONNECTION, entry, message)
                    .help("remove `command` or `url`"),
            );
            None
        }
        (None, None) => {
            let help =
                "write `command = [\"PROGRAM\", \"ARGUMENT\"]`, or `url = \"https://HOST/mcp\"`";
            let message = "a [[server]] entry needs `command` or `url`";
            reader.report(Diagnostic::new(&rules::SERVER_CONNECTION, entry, message).help(help));
            None
        }
    }
}

/// Reports keys that do not apply to `what` but belong to `beside`. Returns `true` if
/// there are none.
fn only_of(reader: &mut Reader<'_, '_>, keys: &[&str], what: &str, beside: &str) -> bool {
    let strangers: Vec<(&str, Span)> = keys
        .iter()
        .filter_map(|key| Some((*key, reader.get(key).map(|node| reader.span(node))?)))
        .collect();
    for (key, span) in &strangers {
        let message = format!("`{key}` has no meaning for {what}");
        let finding = Diagnostic::new(&rules::SERVER_CONNECTION, *span, message);
        reader.report(finding.help(format!("remove it: it belongs to {beside}")));
    }
    strangers.is_empty()
}

fn read_http(reader: &mut Reader<'_, '_>) -> Option<HttpSpec> {
    let url = reader
        .string("url")
        .filter(|url| instance::check_url(reader, url, address::server_url));
    let headers = reader
        .table("headers")
        .map(|table| headers::read(reader, table.value))
        .unwrap_or_default();
    let headers = headers
        .into_iter()
        .filter(|(name, _)| check_header(reader, "headers", name));
    let headers = headers.collect();
    let reference = reader.string("api_key_ref");
    let reference = reference.map(|text| instance::read_secret(reader, &text));
    let header = read_key_header(reader);
    let key = match reference {
        Some(reference) => Some(KeyHeader {
            reference: reference?,
            header: header?,
        }),
        None => None,
    };
    Some(HttpSpec {
        url: url?,
        headers,
        key,
    })
}

/// Reads the name of the key's header; returns `None` if a finding was reported, `Some(None)` if
/// the name is absent.
#[expect(
    clippy::option_option,
    reason = "invalid, absent and present are three different cases"
)]
fn read_key_header(reader: &mut Reader<'_, '_>) -> Option<Option<Arc<str>>> {
    if !reader.has("api_key_header") {
        return Some(None);
    }
    let header = reader.string("api_key_header")?;
    if !reader.has("api_key_ref") {
        let finding = Diagnostic::new(
            &rules::SERVER_CONNECTION,
            header.span,
            "`api_key_header` is set without a key",
        );
        reader.report(finding.help("add `api_key_ref`, or remove `api_key_header`"));
        return None;
    }
    match headers::is_key_header(&header.value) {
        true => check_header(reader, "api_key_header", &header.value)
            .then(|| Some(header.value.to_ascii_lowercase().into())),
        false => {
            let finding = Diagnostic::new(
                &rules::INVALID_VALUE,
                header.span,
                "this header cannot carry a key",
            );
            reader.report(finding.help("write a header name, for example `x-api-key`"));
            None
        }
    }
}

/// Reports a header that the protocol itself uses. Returns `true` for any other header.
fn check_header(reader: &mut Reader<'_, '_>, key: &str, name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_own = name.starts_with("mcp-") || matches!(&*name, "accept" | "last-event-id");
    if is_own {
        let span = reader
            .get(key)
            .map(|node| reader.span(node))
            .expect("it was read");
        let message = format!("the `{name}` header cannot be set here");
        let finding = Diagnostic::new(&rules::INVALID_VALUE, span, message)
            .label("it belongs to the protocol");
        reader.report(finding.help("remove it"));
    }
    !is_own
}

#[cfg(test)]
mod tests {
    use super::super::tests::file;
    use super::*;

    fn servers(text: &str) -> (Vec<ServerSpec>, String) {
        let (file, findings) = file(text);
        (file.servers, findings.join("; "))
    }

    #[test]
    fn an_entry_is_read_with_its_defaults() {
        let text = "[[server]]\nname = \"a\"\ncommand = [\"p\", \"-x\"]\nenv = [\"PATH\"]\nworking_directory = \"in\"\n\
                    tools = [\"one.two\"]\n\n\
                    [[server]]\nname = \"b\"\nurl = \"https://h.example/mcp?x=1\"\nheaders = { X-Title = \"t\" }\n\
                    api_key_ref = \"env:KEY\"\napi_key_header = \"X-Api-Key\"\nstartup_timeout_seconds = 7\ntimeout_seconds = 5\nmax_output_bytes = 9\n";
        let (servers, found) = servers(text);
        assert_eq!(found, "");
        let [a, b] = &servers[..] else {
            panic!("two servers")
        };
        let ServerConnection::Program(program) = &a.connection else {
            panic!("{a:?}")
        };
        assert_eq!(
            (
                &*program.name.value,
                program.arguments.len(),
                program.environment.len()
            ),
            ("p", 1, 1)
        );
        assert_eq!(
            (
                a.startup_limit.as_secs(),
                a.time_limit.as_secs(),
                a.output_limit,
                program.working_directory.as_str()
            ),
            (60, 60, 65_536, "in")
        );
        assert_eq!(
            a.tools
                .as_ref()
                .map(|tools| tools[0].value.to_string())
                .as_deref(),
            Some("one.two")
        );
        let ServerConnection::Http(http) = &b.connection else {
            panic!("{b:?}")
        };
        let key = http.key.as_ref().expect("it has one");
        assert_eq!(
            (&*http.url.value, key.header.as_deref()),
            ("https://h.example/mcp?x=1", Some("x-api-key"))
        );
        assert_eq!(http.headers, [("x-title".into(), "t".into())]);
        assert_eq!(
            (
                b.startup_limit.as_secs(),
                b.time_limit.as_secs(),
                b.output_limit,
                &b.tools
            ),
            (7, 5, 9, &None)
        );
    }

    #[test]
    fn mistakes_are_findings() {
        let said = |lines: &str| servers(&format!("[[server]]\nname = \"a\"\n{lines}")).1;
        let program = |line: &str| said(&format!("command = [\"p\"]\n{line}"));
        let url = |line: &str| said(&format!("url = \"https://h.example/mcp\"\n{line}"));
        assert_eq!(
            servers("[[server]]\ncommand = [\"p\"]").1,
            "a [[server]] entry needs `name`"
        );
        assert_eq!(said(""), "a [[server]] entry needs `command` or `url`");
        assert_eq!(
            program("url = \"https://h.example\""),
            "a server is a program or at a URL, not both"
        );
        assert_eq!(
            program("args = [\"x\"]"),
            "unknown key `args` in [[server]]"
        );
        assert_eq!(
            program("headers = {}"),
            "`headers` has no meaning for a server that is a program"
        );
        assert_eq!(
            program("tools = \"x\""),
            "`tools` must be an array of strings, not a string"
        );
        assert_eq!(
            url("env = [\"A\"]"),
            "`env` has no meaning for a server at a URL"
        );
        assert_eq!(
            url("headers = { Authorization = \"Bearer x\" }"),
            "a header contains a key"
        );
        assert_eq!(
            url("headers = { x-api-key = \"x\" }"),
            "a header contains a key"
        );
        assert_eq!(
            url("headers = { Mcp-Session-Id = \"x\" }"),
            "the `mcp-session-id` header cannot be set here"
        );
        assert_eq!(
            url("headers = { accept = \"x\" }"),
            "the `accept` header cannot be set here"
        );
        assert_eq!(
            url("api_key_ref = \"sk-a1B2c3D4e5F6g7H8\""),
            "`api_key_ref` is not a reference to a key"
        );
        assert_eq!(
            url("api_key_header = \"x-api-key\""),
            "`api_key_header` is set without a key"
        );
        let header = |name: &str| {
            url(&format!(
                "api_key_ref = \"env:K\"\napi_key_header = \"{name}\""
            ))
        };
        assert_eq!(header("host"), "this header cannot carry a key");
        assert_eq!(header("a b"), "this header cannot carry a key");
        assert_eq!(
            header("mcp-session-id"),
            "the `mcp-session-id` header cannot be set here"
        );
        assert_eq!(
            said("url = \"https://u:p@h.example\""),
            "`url` contains a key"
        );
        assert_eq!(
            said("url = \"https://h.example/?api_key=x\""),
            "`url` contains a key"
        );
        assert_eq!(
            said("url = \"ftp://h.example\""),
            "`url` is not a usable address"
        );
        assert_eq!(
            said("url = \"https://h.example/#x\""),
            "`url` is not a usable address"
        );
        let one = "[[server]]\nname = \"a\"\ncommand = [\"p\"]\n";
        assert_eq!(servers(&one.repeat(2)).1, "there are two servers `a`");
        let long = servers(&one.replace("\"a\"", "\"abcdefghijklmnopqrstuvwxyz0123456\"")).1;
        assert!(long.ends_with("is not a valid server name"), "{long}");
    }
}
