//! Tools that a model may call: closures, functions with Rust types, trait objects, programs, or
//! tools of MCP servers.
//!
//! Input: arguments as JSON. Output: a [`ToolOutput`], which the model sees.
//! [`tool_loop`](super::tool_loop) decides when tools run, and for how many rounds.

mod arguments;
mod process;
mod mcp;
mod typed;

pub use super::future::BoxFuture;
pub use super::tool_output::ToolOutput;
#[doc(inline)]
pub use crate::repo::{
    HttpSpec, KeyHeader, ProgramSpec, ServerConnection, ServerSpec, ToolSpec, ToolsFile,
};
pub(super) use arguments::{mistakes, validator};
pub use mcp::McpServer;
pub(super) use mcp::headers;
pub use process::{Complaint, Ended, Process, ProcessTool, Processes, RunningProgram};
pub use typed::{TypedTool, schema_of};

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Event;
use crate::conversation::Tool as Definition;
use arguments::Arguments;

/// A tool that a model can call.
pub trait Tool: Send + Sync {
    /// Returns the tool's name, its description and the JSON Schema of its arguments.
    fn definition(&self) -> &Definition;

    /// Runs the tool. The future is dropped when the request is cancelled, so use a drop guard for
    /// any cleanup. If the tool panics, the model gets an error.
    ///
    /// A session passes only arguments that conform to the schema. For other arguments, the model
    /// is told what is wrong.
    fn call(&self, input: Value, context: ToolContext) -> BoxFuture<'_, ToolOutput>;

    /// Returns `true` if the tool may run at the same time as other tools of the same answer, which
    /// is the default. Return `false` if, for example, the tool writes data that others read. It
    /// then runs alone: after the calls before it have ended, and before later ones start.
    fn is_concurrent(&self) -> bool {
        true
    }
}

/// The context of a call, passed to the running tool.
pub struct ToolContext {
    /// The call's ID.
    pub id: Arc<str>,
    /// A token that is cancelled together with the request.
    pub cancelled: CancellationToken,
    events: mpsc::Sender<Event>,
}

impl ToolContext {
    /// Returns the context of one call. Progress is sent to `events`.
    pub fn new(
        id: Arc<str>,
        cancelled: CancellationToken,
        events: mpsc::Sender<Event>,
    ) -> ToolContext {
        ToolContext {
            id,
            cancelled,
            events,
        }
    }

    /// Reports the progress of the tool. Does nothing if there is no receiver.
    pub async fn progress(&self, text: impl Into<String>) {
        let event = Event::ToolProgress {
            id: Arc::clone(&self.id),
            text: text.into(),
        };
        // A dropped receiver is not an error.
        let _ = self.events.send(event).await;
    }
}

/// The tools of a session, by name, in the order in which they are offered.
#[derive(Clone, Default)]
pub struct ToolSet {
    tools: IndexMap<Arc<str>, Offered>,
}

/// A tool, with the checker for its arguments.
#[derive(Clone)]
struct Offered {
    tool: Arc<dyn Tool>,
    arguments: Arc<Arguments>,
}

impl ToolSet {
    /// Returns an empty set.
    pub fn new() -> ToolSet {
        ToolSet::default()
    }

    /// Adds a tool, replacing the tool with the same name, if any.
    #[must_use]
    pub fn with(mut self, tool: impl Tool + 'static) -> ToolSet {
        self.insert(Arc::new(tool));
        self
    }

    /// Adds a tool, replacing the tool with the same name, if any.
    pub fn insert(&mut self, tool: Arc<dyn Tool>) {
        let name = Arc::clone(&tool.definition().name);
        self.tools.insert(
            name,
            Offered {
                tool,
                arguments: Arc::default(),
            },
        );
    }

    /// Returns the tool with this name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.get(name).map(|offered| &offered.tool)
    }

    /// Checks arguments against a tool's schema. Returns the mistakes on one line for the model;
    /// `None` if there are none, or if there is no such tool.
    pub fn mistake(&self, name: &str, input: &Value) -> Option<String> {
        let Offered { tool, arguments } = self.tools.get(name)?;
        arguments.mistake(tool.definition(), input)
    }

    /// Returns the definitions of the tools for the model.
    pub fn definitions(&self) -> Vec<Definition> {
        self.tools
            .values()
            .map(|offered| offered.tool.definition().clone())
            .collect()
    }

    /// Returns `true` if there are no tools.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// Returns the tool names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(AsRef::as_ref)
    }
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// A tool that consists of a definition and an async closure.
pub struct FnTool<F> {
    definition: Definition,
    function: F,
    is_concurrent: bool,
}

impl<F, R> FnTool<F>
where
    F: Fn(Value, ToolContext) -> R + Send + Sync,
    R: Future<Output = ToolOutput> + Send + 'static,
{
    /// Returns a tool that calls `function` with its arguments.
    pub fn new(definition: Definition, function: F) -> FnTool<F> {
        FnTool {
            definition,
            function,
            is_concurrent: true,
        }
    }

    /// Makes the tool run alone; see [`Tool::is_concurrent`].
    #[must_use]
    pub fn not_concurrent(self) -> FnTool<F> {
        FnTool {
            is_concurrent: false,
            ..self
        }
    }
}

impl<F, R> Tool for FnTool<F>
where
    F: Fn(Value, ToolContext) -> R + Send + Sync,
    R: Future<Output = ToolOutput> + Send + 'static,
{
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call(&self, input: Value, context: ToolContext) -> BoxFuture<'_, ToolOutput> {
        Box::pin((self.function)(input, context))
    }

    fn is_concurrent(&self) -> bool {
        self.is_concurrent
    }
}
