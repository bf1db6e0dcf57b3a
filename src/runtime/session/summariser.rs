//! Who writes the summary of a chat: what a session knows of another agent.

use std::ops::Deref;
use std::sync::Arc;

use super::super::future::BoxFuture;
use super::Session;
use crate::conversation::Conversation;

/// Another agent, which writes the summary of a chat.
pub(in super::super) trait Summariser: Send + Sync {
    /// The number of latest turns of the chat that stay as they are.
    fn keep_turns(&self) -> usize;

    /// Waits for a session of the agent about a part of the chat, whose answer is the summary. It
    /// is given back when it is dropped.
    fn session(&self, part: Conversation) -> BoxFuture<'_, BorrowedSession>;
}

/// A session that somebody else gets back.
pub(in super::super) type BorrowedSession = Box<dyn Deref<Target = Session> + Send + Sync>;

/// A summary that is written before a request which is too large.
#[derive(Clone)]
pub(in super::super) struct WhenFull {
    /// Who writes it.
    pub(in super::super) summariser: Arc<dyn Summariser>,
    /// The tokens from which on a request is too large.
    pub(in super::super) tokens: u64,
}
