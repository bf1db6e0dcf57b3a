//! Tools of MCP servers: starts or connects to a server, reads its list of tools, and calls them.
//!
//! Input: a [`ServerSpec`]. Output: [`Tool`]s with names that every wire format accepts. This is
//! the only module that uses `rmcp`. Servers are not trusted: their messages are limited in size
//! and time, and any protocol violation ends in an error that describes it.
//!
//! The list of tools is read once, at the start. Later changes are ignored, because the tools of a
//! conversation stay the same. A server cannot make its own requests: it cannot use the model
//! (sampling), ask the user, or read files.

mod lines;
mod names;
mod result;
mod call;

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResult, ClientCapabilities, ClientConfig, Implementation,
    PaginatedRequestParams, ProtocolVersion,
};
use rmcp::service::{ClientInitializeError, RunningService};
use rmcp::transport::Transport as Pipes;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::common::client_side_sse::ExponentialBackoff;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::{
    ClientHandler, ClientLifecycleMode, Peer, RoleClient, ServiceError, serve_client_with_lifecycle,
};
use serde_json::Value;
use tokio::time::timeout;

use super::process::seconds;
use super::{
    BoxFuture, Complaint, Processes, RunningProgram, Tool, ToolContext, ToolOutput, ToolSet,
};
use crate::conversation::Tool as Definition;
use crate::diag::did_you_mean;
use crate::provider::{Header, HeaderValue};
use crate::repo::{HttpSpec, ServerConnection, ServerSpec};
use crate::runtime::{Category, Error, Transport, failure, transport};
use call::{Calls, Heard, News};
use lines::{Lines, Watch};

/// The maximum size of a message from a server, in bytes.
const MAX_MESSAGE: usize = 16 * 1024 * 1024;

/// The maximum number of tools from one server.
const MAX_TOOLS: usize = 1_000;

/// The maximum number of pages in a server's list of tools.
const MAX_PAGES: usize = 100;

/// The maximum total size of the names, descriptions and schemas of one server's tools, in bytes of
/// JSON.
const MAX_LIST: usize = 4 * 1024 * 1024;

/// The maximum number of attempts to reconnect a broken stream.
const MAX_RECONNECTS: usize = 3;

/// Limits the duration of the second connection attempt, which is made without a handshake after
/// the server rejected the handshake of the first attempt. The limit is half of this constant, or
/// half of the startup limit if the startup limit is shorter.
const PATIENCE: Duration = Duration::from_secs(10);

/// The maximum duration of a call that reports progress, as a multiple of the call's time limit.
const MOST_LIMITS: u32 = 10;

/// The time that a server has to exit after it is asked to.
const FAREWELL: Duration = Duration::from_secs(2);

type Service = RunningService<RoleClient, Client>;

/// This program's name, version and capabilities, as sent to servers.
struct Client {
    config: ClientConfig,
    calls: Arc<Calls>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        self.config.clone()
    }
}

/// A running or connected MCP server. Dropping it stops or disconnects the server, and its tools
/// fail from then on.
pub struct McpServer {
    spec: ServerSpec,
    remote: Arc<Remote>,
    service: Service,
    program: Option<BoxFuture<'static, Option<i32>>>,
    offers: Vec<Definition>,
    warnings: Vec<String>,
}

/// The facts about a server that errors mention.
struct Remote {
    name: Arc<str>,
    watch: Arc<Watch>,
    complaint: Complaint,
}

/// An established connection. If the server is a program, also contains a future that returns the
/// program's exit status.
struct Connected {
    service: Service,
    program: Option<BoxFuture<'static, Option<i32>>>,
}

/// The reason no connection was established.
enum Failed {
    /// The server rejected the handshake.
    Refused(Error),
    Otherwise(Error),
}

impl McpServer {
    /// Starts or connects to a server, and reads its list of tools. Its key, if any, is read from
    /// the secrets of `transport`, and removed from everything that sessions of that transport
    /// report. Does not check whether the user trusts the server.
    ///
    /// # Errors
    ///
    /// Returns why the server cannot be used, with the end of its standard error output.
    pub async fn start(
        spec: &ServerSpec,
        processes: &dyn Processes,
        transport: &Transport,
    ) -> Result<McpServer, Error> {
        let remote = Arc::new(Remote {
            name: Arc::clone(&spec.name.value),
            watch: Arc::default(),
            complaint: Complaint::default(),
        });
        let started = timeout(
            spec.startup_limit,
            McpServer::open(spec, processes, transport, &remote),
        )
        .await;
        started
            .unwrap_or_else(|_| Err(late(&remote, spec)))
            .map_err(|error| transport.redactor().error(error))
    }

    /// Starts a server, reads its list of tools, and stops it. Returns each tool as the server
    /// describes it, in the protocol's terms, even if it cannot be offered to a model. The limits
    /// of time and size are the same as for [`McpServer::start`].
    ///
    /// # Errors
    ///
    /// Returns why the server cannot be used, with the end of its standard error output.
    pub async fn survey(
        spec: &ServerSpec,
        processes: &dyn Processes,
        transport: &Transport,
    ) -> Result<Vec<Value>, Error> {
        let remote = Arc::new(Remote {
            name: Arc::clone(&spec.name.value),
            watch: Arc::default(),
            complaint: Complaint::default(),
        });
        let reached = timeout(
            spec.startup_limit,
            McpServer::reach(spec, processes, transport, &remote),
        )
        .await;
        let reached = reached.unwrap_or_else(|_| Err(late(&remote, spec)));
        let (
            Connected {
                mut service,
                program,
            },
            listed,
        ) = reached.map_err(|error| transport.redactor().error(error))?;
        let _ = service.close_with_timeout(FAREWELL).await;
        if let Some(ended) = program {
            let _ = timeout(FAREWELL, ended).await;
        }
        Ok(listed
            .iter()
            .filter_map(|tool| {
                let text = serde_json::to_string(tool).ok()?;
                serde_json::from_str(&transport.redactor().text(&text)).ok()
            })
            .collect())
    }

    async fn open(
        spec: &ServerSpec,
        processes: &dyn Processes,
        transport: &Transport,
        remote: &Arc<Remote>,
    ) -> Result<McpServer, Error> {
        let (Connected { service, program }, listed) =
            McpServer::reach(spec, processes, transport, remote).await?;
        let (offers, warnings) = choose(spec, listed);
        let offers = offers
            .into_iter()
            .filter_map(|offer| without_keys(offer, transport))
            .collect();
        Ok(McpServer {
            spec: spec.clone(),
            remote: Arc::clone(remote),
            service,
            program,
            offers,
            warnings,
        })
    }

    /// Connects to the server, and reads its list of tools.
    async fn reach(
        spec: &ServerSpec,
        processes: &dyn Processes,
        transport: &Transport,
        remote: &Arc<Remote>,
    ) -> Result<(Connected, Vec<rmcp::model::Tool>), Error> {
        let first = connect(
            spec,
            processes,
            transport,
            remote,
            ClientLifecycleMode::Initialize,
        )
        .await;
        let connected = match first {
            Ok(connected) => connected,
            // The server may support only the newest protocol, which has no handshake.
            Err(Failed::Refused(refused)) => {
                let mode = ClientLifecycleMode::Discover {
                    preferred_versions: vec![ProtocolVersion::LATEST],
                };
                let patience = spec.startup_limit.min(PATIENCE) / 2;
                match timeout(patience, connect(spec, processes, transport, remote, mode)).await {
                    Ok(Ok(connected)) => connected,
                    _ => return Err(refused),
                }
            }
            Err(Failed::Otherwise(error)) => return Err(error),
        };
        let listed = list(&connected.service)
            .await
            .map_err(|why| remote.unusable(&why))?;
        Ok((connected, listed))
    }

    /// Returns warnings for the user about configured tools that do not exist or cannot be offered.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Adds the server's tools to a set, in the server's order. Their names begin with the server's
    /// name and two underscores. A name that is already used, or too long for the wire formats,
    /// ends with a digest.
    pub fn add_to(&self, tools: &mut ToolSet) {
        for offer in &self.offers {
            let name = names::unique(&self.spec.name.value, &offer.name, |name| {
                tools.get(name).is_some()
            });
            tools.insert(Arc::new(McpTool {
                definition: Definition {
                    name: name.into(),
                    ..offer.clone()
                },
                name: Arc::clone(&offer.name),
                peer: self.service.peer().clone(),
                calls: Arc::clone(&self.service.service().calls),
                remote: Arc::clone(&self.remote),
                time_limit: self.spec.time_limit,
                output_limit: self.spec.output_limit,
            }));
        }
    }

    /// Stops the server: asks it to end, waits briefly, and kills any remaining processes of a
    /// program.
    pub async fn close(mut self) {
        let _ = self.service.close_with_timeout(FAREWELL).await;
        if let Some(ended) = self.program.take() {
            let _ = timeout(FAREWELL, ended).await;
        }
    }
}

fn late(remote: &Arc<Remote>, spec: &ServerSpec) -> Error {
    remote.unusable(&format!(
        "it was not ready after {}",
        seconds(spec.startup_limit)
    ))
}

impl fmt::Debug for McpServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpServer")
            .field("spec", &self.spec)
            .finish_non_exhaustive()
    }
}

async fn connect(
    spec: &ServerSpec,
    processes: &dyn Processes,
    transport: &Transport,
    remote: &Remote,
    mode: ClientLifecycleMode,
) -> Result<Connected, Failed> {
    match &spec.connection {
        ServerConnection::Program(program) => {
            let started = processes.start(program, remote.complaint.clone());
            let RunningProgram {
                input,
                output,
                mut ended,
            } = started.map_err(|why| Failed::Otherwise(remote.unusable(&why.to_string())))?;
            let output = Lines::new(output, MAX_MESSAGE, Arc::clone(&remote.watch));
            let pipes =
                AsyncRwTransport::new_client(output, input).with_max_line_length(usize::MAX);
            match serve(pipes, mode).await {
                Ok(service) => Ok(Connected {
                    service,
                    program: Some(ended),
                }),
                Err(error) => {
                    let status = timeout(Duration::from_millis(500), &mut ended).await;
                    let end = status.ok().map(|code| match code {
                        Some(code) => format!("it ended with exit status {code}"),
                        None => "it was killed by a signal".to_owned(),
                    });
                    Err(remote.no_handshake(&error, end))
                }
            }
        }
        ServerConnection::Http(http) => {
            let pipes = streamable(http, transport)
                .await
                .map_err(Failed::Otherwise)?;
            let service = serve(pipes, mode)
                .await
                .map_err(|error| hinted(remote.no_handshake(&error, None), http))?;
            Ok(Connected {
                service,
                program: None,
            })
        }
    }
}

/// Adds a hint if the address of a server looks like one of MCP's older transport.
fn hinted(failed: Failed, http: &HttpSpec) -> Failed {
    let path = http.url.value.split(['?', '#']).next().unwrap_or_default();
    match failed {
        Failed::Otherwise(error) if path.trim_end_matches('/').ends_with("/sse") => {
            Failed::Otherwise(Error {
                message: format!(
                    "{}; its URL ends with `/sse`, but only MCP's streamable HTTP is supported, not the older SSE transport: \
                     try the server's URL for it, which often ends with `/mcp`",
                    error.message
                ),
                ..error
            })
        }
        failed => failed,
    }
}

/// Returns this program's capabilities, as sent to servers: it only calls tools.
fn client() -> Client {
    let own = Implementation::new("reqc", env!("CARGO_PKG_VERSION"));
    let config = ClientConfig::new(ClientCapabilities::default(), own);
    let config = config.with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE);
    Client {
        config,
        calls: Arc::default(),
    }
}

/// Performs the handshake. The future is boxed because the compiler cannot infer its lifetimes
/// otherwise.
fn serve<T>(
    pipes: T,
    mode: ClientLifecycleMode,
) -> BoxFuture<'static, Result<Service, ClientInitializeError>>
where
    T: Pipes<RoleClient> + 'static,
{
    let client = client();
    let pipes = Heard::new(pipes, Arc::clone(&client.calls));
    Box::pin(serve_client_with_lifecycle(client, pipes, mode))
}

async fn streamable(
    http: &HttpSpec,
    transport: &Transport,
) -> Result<StreamableHttpClientTransport<reqwest::Client>, Error> {
    let (client, headers) = transport.client_of(&http.url.value, &headers(http)).await?;
    let headers = headers
        .into_iter()
        .filter_map(|(name, value)| Some((name?, value)))
        .collect();
    let mut config = StreamableHttpClientTransportConfig::with_uri(Arc::clone(&http.url.value))
        .custom_headers(headers)
        .max_sse_event_size(MAX_MESSAGE)
        .max_json_response_size(MAX_MESSAGE);
    let mut backoff = ExponentialBackoff::default();
    backoff.max_times = Some(MAX_RECONNECTS);
    config.retry_config = Arc::new(backoff);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// Returns the headers for requests to a server, with the reference to the key in place of the key.
pub(in crate::runtime) fn headers(http: &HttpSpec) -> Vec<Header> {
    let key = http.key.as_ref().map(|key| Header {
        name: key.header.as_deref().unwrap_or("authorization").to_owned(),
        value: HeaderValue::Key {
            prefix: if key.header.is_none() { "Bearer " } else { "" },
            key: key.reference.value.clone(),
        },
    });
    http.headers
        .iter()
        .map(|(name, value)| Header {
            name: name.to_string(),
            value: HeaderValue::Plain(value.to_string()),
        })
        .chain(key)
        .collect()
}

/// Returns a server's tools, from all pages of its list.
async fn list(service: &Service) -> Result<Vec<rmcp::model::Tool>, String> {
    let (mut tools, mut cursor, mut size) = (Vec::new(), None, 0);
    for _ in 0..MAX_PAGES {
        let page = service
            .list_tools(Some(PaginatedRequestParams::default().with_cursor(cursor)))
            .await;
        let page = page.map_err(|error| match error {
            ServiceError::McpError(error) => {
                format!("it did not list its tools: {}", snippet(&error.message))
            }
            error => problem(&error),
        })?;
        size += serde_json::to_vec(&page.tools).map_or(0, |text| text.len());
        tools.extend(page.tools);
        if tools.len() > MAX_TOOLS || size > MAX_LIST {
            return Err(format!(
                "it offers more than {MAX_TOOLS} tools, or more than 4 MiB of tool descriptions"
            ));
        }
        cursor = page.next_cursor;
        if cursor.is_none() {
            return Ok(tools);
        }
    }
    Err(format!("it lists its tools on more than {MAX_PAGES} pages"))
}

/// Returns the listed tools that are offered to the model, and warnings about the others.
fn choose(spec: &ServerSpec, listed: Vec<rmcp::model::Tool>) -> (Vec<Definition>, Vec<String>) {
    let mut offers = Vec::<Definition>::new();
    let mut remarks = Vec::new();
    for name in spec.tools.iter().flatten() {
        if !listed.iter().any(|tool| *tool.name == *name.value) {
            let known = listed.iter().map(|tool| &*tool.name);
            let help = did_you_mean(&name.value, known)
                .map(|help| format!(": {help}"))
                .unwrap_or_default();
            remarks.push(format!("has no tool `{}`{help}", name.value));
        }
    }
    for tool in listed {
        let is_wanted = spec
            .tools
            .as_ref()
            .is_none_or(|names| names.iter().any(|name| *name.value == *tool.name));
        if !is_wanted {
            continue;
        }
        let is_known = offers.iter().any(|offer| *offer.name == *tool.name);
        match definition(&tool).filter(|_| !is_known) {
            Some(offer) => offers.push(offer),
            None if is_known => remarks.push(format!(
                "lists `{}` twice; the first one is used",
                snippet(&tool.name)
            )),
            None => {
                let name = snippet(&tool.name);
                remarks.push(format!(
                    "has a tool `{name}` whose input schema is not of the type `object`; the tool is ignored"
                ));
            }
        }
    }
    if offers.is_empty() {
        remarks.push("offers no tools".to_owned());
    }
    let warnings = remarks
        .iter()
        .map(|remark| format!("the MCP server `{}` {remark}", spec.name.value))
        .collect();
    (offers, warnings)
}

/// Returns the definition of a server's tool; `None` if its input schema is not of the type
/// `object`. If `type` or `properties` is missing from the schema, adds it, because providers
/// require both members.
fn definition(tool: &rmcp::model::Tool) -> Option<Definition> {
    let mut schema = tool.input_schema.as_ref().clone();
    let kind = schema
        .entry("type")
        .or_insert_with(|| Value::from("object"));
    if kind != "object" {
        return None;
    }
    schema
        .entry("properties")
        .or_insert_with(|| Value::Object(serde_json::Map::new()));
    let described = tool
        .description
        .as_deref()
        .or(tool.title.as_deref())
        .unwrap_or_default();
    Some(Definition {
        name: tool.name.as_ref().into(),
        description: described.into(),
        schema,
    })
}

/// Removes keys from a server's description of a tool; `None` if the result is no longer a valid
/// definition.
fn without_keys(offer: Definition, transport: &Transport) -> Option<Definition> {
    let redactor = transport.redactor();
    if redactor.is_idle() {
        return Some(offer);
    }
    let schema = redactor.text(&serde_json::to_string(&offer.schema).ok()?);
    let schema = serde_json::from_str(&schema).ok()?;
    Some(Definition {
        description: redactor.text(&offer.description).into(),
        schema,
        ..offer
    })
}

impl Remote {
    /// Returns the error for a server that cannot be used.
    fn unusable(&self, why: &str) -> Error {
        let seen = self
            .watch
            .problem()
            .map(|problem| format!("; {problem}"))
            .unwrap_or_default();
        let error = Error::new(
            Category::Tool,
            format!("the MCP server `{}` cannot be used: {why}{seen}", self.name),
        );
        match self.complaint.text().trim() {
            "" => error,
            complaint => error.detail(format!("it wrote to standard error: {complaint}")),
        }
    }

    /// Returns the error for a failed handshake. `end` describes how the server's program ended, if
    /// it has.
    fn no_handshake(&self, error: &ClientInitializeError, end: Option<String>) -> Failed {
        let why = match (error, end) {
            (ClientInitializeError::JsonRpcError(refused), _) => {
                let why = format!(
                    "it rejected the initialization: {}",
                    snippet(&refused.message)
                );
                return Failed::Refused(self.unusable(&why));
            }
            (ClientInitializeError::ConnectionClosed(_), end) => {
                end.unwrap_or_else(|| "it closed the connection".to_owned())
            }
            (ClientInitializeError::TransportError { error, .. }, end) => {
                end.unwrap_or_else(|| cause(&*error.error))
            }
            (error, _) => format!("it does not speak MCP: {}", snippet(&error.to_string())),
        };
        Failed::Otherwise(self.unusable(&why))
    }

    /// Returns the output that tells the model about a call without a result.
    fn failure(&self, error: &ServiceError) -> ToolOutput {
        let why = match error {
            ServiceError::McpError(refused) => {
                return ToolOutput::error(format!("the call was refused: {}", refused.message));
            }
            error => problem(error),
        };
        let mut text = format!("the MCP server `{}` failed: {why}", self.name);
        text.extend(self.watch.problem().map(|problem| format!("; {problem}")));
        match self.complaint.text().trim() {
            "" => {}
            complaint => text.push_str(&format!(":\n{complaint}")),
        }
        ToolOutput::error(text)
    }
}

/// Describes an error in our own words, without text from the server.
fn problem(error: &ServiceError) -> String {
    match error {
        ServiceError::TransportClosed => "the connection is closed".to_owned(),
        ServiceError::TransportSend(error) => cause(&*error.error),
        ServiceError::UnexpectedResponse => "its answer is not a tool result".to_owned(),
        error => snippet(&error.to_string()),
    }
}

/// Returns the innermost cause of an error, which is the most specific. Never contains a URL.
fn cause(error: &(dyn StdError + 'static)) -> String {
    match error.downcast_ref::<StreamableHttpError<reqwest::Error>>() {
        Some(StreamableHttpError::Client(error)) => transport::cause(error),
        Some(StreamableHttpError::AuthRequired(_)) => {
            "it requires a key, or a different one (HTTP 401)".to_owned()
        }
        Some(StreamableHttpError::InsufficientScope(_)) => {
            "the key is not allowed to do this (HTTP 403)".to_owned()
        }
        _ => error
            .source()
            .map_or_else(|| snippet(&error.to_string()), cause),
    }
}

fn snippet(text: &str) -> String {
    failure::snippet(text.as_bytes())
}

/// A tool of an MCP server.
struct McpTool {
    definition: Definition,
    /// The tool's name as used by the server.
    name: Arc<str>,
    peer: Peer<RoleClient>,
    calls: Arc<Calls>,
    remote: Arc<Remote>,
    time_limit: Duration,
    output_limit: usize,
}

impl McpTool {
    /// Runs a call. Dropping this future tells the server that the call is cancelled.
    async fn run(&self, input: Value, context: &ToolContext) -> ToolOutput {
        let Value::Object(arguments) = input else {
            return ToolOutput::error("the arguments are not a JSON object");
        };
        let request = CallToolRequestParams::new(self.name.to_string()).with_arguments(arguments);
        let most = self.time_limit.saturating_mul(MOST_LIMITS);
        match timeout(most, self.unless_silent(request, context)).await {
            Ok(Some(Ok(result))) => result::output(result, self.output_limit),
            Ok(Some(Err(error))) => self.remote.failure(&error),
            Ok(None) => ToolOutput::error(format!(
                "the tool did not answer within {}",
                seconds(self.time_limit)
            )),
            Err(_) => {
                ToolOutput::error(format!("the tool did not answer within {}", seconds(most)))
            }
        }
    }

    /// Returns the result if it arrives within the time limit, which restarts whenever the server
    /// reports progress.
    async fn unless_silent(
        &self,
        request: CallToolRequestParams,
        context: &ToolContext,
    ) -> Option<Result<CallToolResult, ServiceError>> {
        let mut call = match timeout(self.time_limit, self.calls.begin(&self.peer, request))
            .await
            .ok()?
        {
            Ok(call) => call,
            Err(error) => return Some(Err(error)),
        };
        loop {
            match timeout(self.time_limit, call.next()).await.ok()? {
                News::Progress(text) => context.progress(text).await,
                News::Result(result) => return Some(*result),
            }
        }
    }
}

impl Tool for McpTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call(&self, input: Value, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin(async move {
            tokio::select! {
                output = self.run(input, &context) => output,
                () = context.cancelled.cancelled() => ToolOutput::cancelled(),
            }
        })
    }
}
