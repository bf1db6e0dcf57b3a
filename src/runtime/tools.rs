//! Tools that a model may call: closures, functions with Rust types, trait objects, programs, or
//! tools of MCP servers.
//!
//! Input: arguments as JSON. Output: a [`ToolOutput`], which the model sees. The loops decide when
//! and how often tools run.

mod arguments;
mod process;
mod mcp;
mod typed;

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
use std::pin::Pin;
use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::{Event, failure, image};
use crate::conversation::{Block, Image, Tool as Definition};
use arguments::Arguments;

/// A future that a trait object returns.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// A tool that a model can call.
pub trait Tool: Send + Sync {
    /// Returns its name, description and the JSON Schema of its arguments.
    fn definition(&self) -> &Definition;

    /// Runs the tool. The future is dropped when the request is cancelled; put any cleanup into a
    /// drop guard. A panic is caught, and the model sees an error.
    ///
    /// A session passes only arguments that fit the schema; for others, the model gets the mistake.
    fn call(&self, input: Value, context: ToolContext) -> BoxFuture<'_, ToolOutput>;

    /// Returns `true` if the tool may run together with other tools of the same answer, which is
    /// the default. A tool that may not, for example because it writes data that others read, runs
    /// alone: after the calls before it have ended, and before later ones start.
    fn is_concurrent(&self) -> bool {
        true
    }
}

/// The context of a call, for the running tool.
pub struct ToolContext {
    /// The call's id.
    pub id: Arc<str>,
    /// Cancelled together with the request.
    pub cancelled: CancellationToken,
    events: mpsc::Sender<Event>,
}

impl ToolContext {
    /// Returns the context of one call, whose progress is sent to `events`.
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

    /// Reports the progress of the tool. Ignored if there is no receiver.
    pub async fn progress(&self, text: impl Into<String>) {
        let event = Event::ToolProgress {
            id: Arc::clone(&self.id),
            text: text.into(),
        };
        // A dropped receiver is not an error.
        let _ = self.events.send(event).await;
    }
}

/// The output of a tool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolOutput {
    /// The text that the model sees.
    pub content: Arc<str>,
    /// `true` if the tool failed.
    pub is_error: bool,
    /// Images that the model sees: PNG, JPEG, GIF or WebP, in base64 or at a web URL. Others are
    /// left out of the history, and the text mentions them.
    pub images: Vec<Image>,
}

impl ToolOutput {
    /// Returns a text.
    pub fn text(content: impl Into<Arc<str>>) -> ToolOutput {
        ToolOutput {
            content: content.into(),
            ..ToolOutput::default()
        }
    }

    /// Returns a failure with a message for the model.
    pub fn error(content: impl Into<Arc<str>>) -> ToolOutput {
        ToolOutput {
            is_error: true,
            ..ToolOutput::text(content)
        }
    }

    /// Removes content that would break every later request. Omits images that no server accepts,
    /// and mentions them in the text: formats other than PNG, JPEG, GIF and WebP, images that are
    /// too large, and URLs that are not on the web. The media type of an image is taken from its
    /// bytes. NUL becomes U+FFFD: it makes models behind llama.cpp end all later answers early
    /// (aebrer/dreb#352).
    pub(super) fn fit_for_history(self) -> ToolOutput {
        let mut content = self.content.replace('\0', "\u{fffd}");
        let mut images = Vec::with_capacity(self.images.len());
        let mut room = image::MAX_BYTES;
        for image in self.images {
            let size = if image.is_url {
                0
            } else {
                image.data.len() as u64
            };
            let usable = match image.is_url {
                true => Some(image.clone()).filter(|image| image::is_url(&image.data)),
                false => image::of_base64(&image.data).filter(|_| size <= room),
            };
            if let Some(usable) = usable {
                room -= size;
                images.push(usable);
                continue;
            }
            if !content.is_empty() {
                content.push('\n');
            }
            content.push_str(&match image.is_url {
                true => format!(
                    "[image at {}, left out]",
                    failure::snippet(image.data.as_bytes())
                ),
                false => image::left_out("image", &image.media_type, &image.data),
            });
        }
        ToolOutput {
            content: content.into(),
            images,
            ..self
        }
    }

    /// Returns the output of a tool that was cancelled before it returned anything.
    pub(super) fn cancelled() -> ToolOutput {
        ToolOutput::error(CANCELLED)
    }

    /// Returns `true` if the output is only the cancellation.
    pub(super) fn is_cancelled(&self) -> bool {
        self.is_error && &*self.content == CANCELLED
    }

    /// Converts the output to the block that answers a call.
    pub(super) fn into_block(self, id: Arc<str>) -> Block {
        Block::ToolResult {
            id,
            content: self.content,
            is_error: self.is_error,
            images: self.images,
        }
    }
}

/// The output of a tool that was cancelled.
const CANCELLED: &str = "the tool was cancelled";

/// The tools of a session, by name, in the order in which they are offered.
#[derive(Clone, Default)]
pub struct ToolSet {
    tools: IndexMap<Arc<str>, Offered>,
}

/// A tool with its argument checker.
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

    /// Adds a tool, replacing any other with its name.
    #[must_use]
    pub fn with(mut self, tool: impl Tool + 'static) -> ToolSet {
        self.insert(Arc::new(tool));
        self
    }

    /// Adds a tool, replacing any other with its name.
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

    /// Returns the tool with a name.
    pub fn get(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.tools.get(name).map(|offered| &offered.tool)
    }

    /// Checks arguments against a tool's schema, and returns the mistakes in one line for the
    /// model. `None` if they fit, or if there is no such tool.
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

    /// Returns the names, in order.
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

    /// Makes the tool run alone: see [`Tool::is_concurrent`].
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
