//! Tools: what a model may call, as closures, functions of Rust types, trait objects, programs, or
//! tools of MCP servers.
//!
//! Input: arguments as JSON. Output: a [`ToolOutput`], which the model sees. When tools run, and
//! how often, is the business of the loops.

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

/// Something that a model can call.
pub trait Tool: Send + Sync {
    /// Its name, description and the JSON Schema of its arguments.
    fn definition(&self) -> &Definition;

    /// Runs it. Dropped when the request is cancelled; what must be cleaned up then belongs in a
    /// drop guard. A panic is caught, and the model sees an error.
    ///
    /// A session calls it only with arguments that its schema accepts; the model is told what is
    /// wrong with others.
    fn call(&self, input: Value, context: ToolContext) -> BoxFuture<'_, ToolOutput>;

    /// Returns `true` if it may run while other tools of the same answer do, which is the default.
    /// One that may not, for instance because it writes what others read, runs alone: after the
    /// calls before its own have ended, and before later ones begin.
    fn is_concurrent(&self) -> bool {
        true
    }
}

/// The facts of its call that a running tool knows.
pub struct ToolContext {
    /// The call's id.
    pub id: Arc<str>,
    /// Cancelled when the request is.
    pub cancelled: CancellationToken,
    events: mpsc::Sender<Event>,
}

impl ToolContext {
    /// The context of one call, whose progress goes to `events`.
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

    /// Says how far the tool is. Lost if nobody listens.
    pub async fn progress(&self, text: impl Into<String>) {
        let event = Event::ToolProgress {
            id: Arc::clone(&self.id),
            text: text.into(),
        };
        // Whoever stopped listening does not want to know.
        let _ = self.events.send(event).await;
    }
}

/// The tools of a session, by name, in the order in which they are offered.
#[derive(Clone, Default)]
pub struct ToolSet {
    tools: IndexMap<Arc<str>, Offered>,
}

/// A tool, and what it takes.
#[derive(Clone)]
struct Offered {
    tool: Arc<dyn Tool>,
    arguments: Arc<Arguments>,
}

impl ToolSet {
    /// No tools.
    pub fn new() -> ToolSet {
        ToolSet::default()
    }

    /// With one more tool; one of the same name is replaced.
    #[must_use]
    pub fn with(mut self, tool: impl Tool + 'static) -> ToolSet {
        self.insert(Arc::new(tool));
        self
    }

    /// Adds a tool; one of the same name is replaced.
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

    /// The tool with a name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.get(name).map(|offered| &offered.tool)
    }

    /// Returns what the schema of a tool says against arguments: one line for the model. `None` if
    /// they fit, or if there is no such tool.
    pub fn mistake(&self, name: &str, input: &Value) -> Option<String> {
        let Offered { tool, arguments } = self.tools.get(name)?;
        arguments.mistake(tool.definition(), input)
    }

    /// Returns what the model is told of the tools.
    pub fn definitions(&self) -> Vec<Definition> {
        self.tools
            .values()
            .map(|offered| offered.tool.definition().clone())
            .collect()
    }

    /// Returns `true` if there are none.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    /// The names, in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(AsRef::as_ref)
    }
}

impl fmt::Debug for ToolSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

/// A tool made of a definition and an async closure.
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
    /// A tool that calls `function` with its arguments.
    pub fn new(definition: Definition, function: F) -> FnTool<F> {
        FnTool {
            definition,
            function,
            is_concurrent: true,
        }
    }

    /// The same, to run alone: see [`Tool::is_concurrent`].
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
