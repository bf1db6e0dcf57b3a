//! The points at which a host can intervene.

use std::sync::Arc;

use serde_json::Value;

pub use super::future::BoxFuture;
use super::{Event, ToolCall};

/// A host's hooks into an agent's work. By default, the methods change nothing. [`before_tool`]
/// turns a closure into hooks.
pub trait Hooks: Send + Sync {
    /// Called before a request is sent. May stop the request, which then finishes with the given
    /// reason. `round` is counted from 1.
    fn before_turn(&self, round: u32) -> BoxFuture<'_, RoundDecision> {
        let _ = round;
        Box::pin(async { RoundDecision::Go })
    }

    /// Called before a tool runs. All calls in an answer are passed in order, before any of their
    /// tools runs.
    fn before_tool<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolDecision> {
        let _ = call;
        Box::pin(async { ToolDecision::Run })
    }

    /// Called with every event, in order, before the receiver gets it. Events include user messages
    /// and items that are added to the history.
    fn observe(&self, event: &Event) {
        let _ = event;
    }
}

/// A hook that sees messages before they are shown:
/// [`AgentLoop::with_message_hook`](super::AgentLoop::with_message_hook).
pub trait MessageHook: Send + Sync {
    /// Called before the text of a complete answer is shown. The history keeps the original text.
    fn before_message<'a>(&'a self, text: &'a str) -> BoxFuture<'a, MessageDecision>;
}

/// The decision on a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoundDecision {
    /// Send the request.
    Go,
    /// Skip the round, and finish the request with this reason. An empty reason is replaced by a
    /// default.
    Stop(String),
}

/// The decision on a tool call.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolDecision {
    /// Run the tool.
    Run,
    /// Do not run the tool. The model gets the reason as the tool's error; an empty reason is
    /// replaced by a default.
    Refuse(String),
    /// Run the tool with these arguments. The history keeps the model's arguments. A value that is
    /// not an object is ignored.
    Rewrite(Value),
}

impl ToolDecision {
    /// Returns the decision not to run the tool, with a reason.
    pub fn refuse(reason: impl Into<String>) -> ToolDecision {
        ToolDecision::Refuse(reason.into())
    }
}

/// The decision on a message before it is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageDecision {
    /// Show the whole text.
    AsIs,
    /// Show no text.
    Suppress,
    /// Show this text instead.
    Replace(String),
}

/// Hooks that change nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {}

/// Creates hooks with a synchronous closure that decides on each call before its tool runs.
///
/// ```
/// use reqc::runtime::hooks::{ToolDecision, before_tool};
///
/// let careful = before_tool(|call| match &*call.name {
///     "remove" => ToolDecision::refuse("nobody removes anything here"),
///     _ => ToolDecision::Run,
/// });
/// ```
pub fn before_tool<F>(decide: F) -> impl Hooks
where
    F: Fn(&ToolCall) -> ToolDecision + Send + Sync,
{
    BeforeTool(decide)
}

struct BeforeTool<F>(F);

impl<F: Fn(&ToolCall) -> ToolDecision + Send + Sync> Hooks for BeforeTool<F> {
    fn before_tool<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolDecision> {
        Box::pin(async { (self.0)(call) })
    }
}

impl<H: Hooks + ?Sized> Hooks for Arc<H> {
    fn before_turn(&self, round: u32) -> BoxFuture<'_, RoundDecision> {
        (**self).before_turn(round)
    }

    fn before_tool<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolDecision> {
        (**self).before_tool(call)
    }

    fn observe(&self, event: &Event) {
        (**self).observe(event);
    }
}

impl<H: MessageHook + ?Sized> MessageHook for Arc<H> {
    fn before_message<'a>(&'a self, text: &'a str) -> BoxFuture<'a, MessageDecision> {
        (**self).before_message(text)
    }
}
