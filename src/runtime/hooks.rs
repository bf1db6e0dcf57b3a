//! The points at which a host can step in.

use std::sync::Arc;

use serde_json::Value;

pub use super::future::BoxFuture;
use super::{Event, ToolCall};

/// The hooks of a host while an agent works. Every method has a default that changes nothing.
/// [`before_tool`] makes hooks of a closure.
pub trait Hooks: Send + Sync {
    /// Before a body is sent; rounds count from 1. May stop the request, which then is finished
    /// with the reason.
    fn before_turn(&self, round: u32) -> BoxFuture<'_, RoundDecision> {
        let _ = round;
        Box::pin(async { RoundDecision::Go })
    }

    /// Before a tool runs; calls of one answer are asked about in order, before any of them runs.
    fn before_tool<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, ToolDecision> {
        let _ = call;
        Box::pin(async { ToolDecision::Run })
    }

    /// Sees every event, in order, before the receiver does: also messages of the person and items
    /// that join the history.
    fn observe(&self, event: &Event) {
        let _ = event;
    }
}

/// Who sees messages before they are shown:
/// [`AgentLoop::with_message_hook`](super::AgentLoop::with_message_hook).
pub trait MessageHook: Send + Sync {
    /// Before the text of an answer is shown, once it is complete. The history keeps the original.
    fn before_message<'a>(&'a self, text: &'a str) -> BoxFuture<'a, MessageDecision>;
}

/// The decision on a round.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RoundDecision {
    /// Its body is sent.
    Go,
    /// It does not take place, and the request is finished with this reason; an empty one is
    /// replaced.
    Stop(String),
}

/// The decision on a tool call.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolDecision {
    /// The tool runs.
    Run,
    /// The tool does not run; the model sees the reason as the tool's error; an empty one is
    /// replaced.
    Refuse(String),
    /// The tool runs with these arguments; the history keeps those of the model. What is not an
    /// object is ignored.
    Rewrite(Value),
}

impl ToolDecision {
    /// The tool does not run, for this reason.
    pub fn refuse(reason: impl Into<String>) -> ToolDecision {
        ToolDecision::Refuse(reason.into())
    }
}

/// The decision on a message that is shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MessageDecision {
    /// The whole text.
    AsIs,
    /// No text.
    Suppress,
    /// This text instead.
    Replace(String),
}

/// No hooks.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {}

/// Hooks that look at each call before its tool runs, and decide at once.
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
