//! Where a host can step in.

use serde_json::Value;

use super::tools::BoxFuture;
use super::{Event, ToolCall};

/// What a host does while an agent works. Every method has a default that lets things go their way.
pub trait Hooks: Send + Sync {
    /// Before a body is sent; rounds count from 1. May stop the request, which then is finished with the reason.
    fn before_turn(&self, round: u32) -> BoxFuture<'_, Turning> {
        let _ = round;
        Box::pin(async { Turning::Go })
    }

    /// Before a tool runs; calls of one answer are asked about in order, before any of them runs.
    fn before_tool<'a>(&'a self, call: &'a ToolCall) -> BoxFuture<'a, Permission> {
        let _ = call;
        Box::pin(async { Permission::Run })
    }

    /// Whether [`Hooks::before_message`] wants to see messages before they are shown. Text is then held back until the
    /// message is complete.
    fn holds_messages(&self) -> bool {
        false
    }

    /// Before the text of an answer is shown. The history keeps the original.
    fn before_message<'a>(&'a self, text: &'a str) -> BoxFuture<'a, Showing> {
        let _ = text;
        Box::pin(async { Showing::AsIs })
    }

    /// Sees every event, in order, before the receiver does.
    fn observe(&self, event: &Event) {
        let _ = event;
    }
}

/// Whether a turn takes place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turning {
    /// It does.
    Go,
    /// It does not, for this reason.
    Stop(String),
}

/// Whether a tool runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Permission {
    /// It does.
    Run,
    /// It does not; the model sees the reason as the tool's error.
    Refuse(String),
    /// It runs with these arguments; the history keeps those of the model. What is no object is ignored.
    Rewrite(Value),
}

/// What is shown of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Showing {
    /// All of it.
    AsIs,
    /// Nothing.
    Suppress,
    /// Something else.
    Replace(String),
}

/// No hooks.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoHooks;

impl Hooks for NoHooks {}
