//! The interface through which a session uses a separate agent to summarise a chat.

use std::ops::Deref;
use std::sync::Arc;

use super::super::future::BoxFuture;
use super::Session;
use crate::conversation::Conversation;

/// An agent that writes summaries of chats.
pub(in super::super) trait Summariser: Send + Sync {
    /// Returns the number of the chat's most recent turns that are kept unchanged.
    fn keep_turns(&self) -> usize;

    /// Waits for a session of the agent that contains `part`, the beginning of the chat, and
    /// answers with the summary. The session is returned to its owner when it is dropped.
    fn session(&self, part: Conversation) -> BoxFuture<'_, BorrowedSession>;
}

/// A session that returns to its owner when it is dropped.
pub(in super::super) type BorrowedSession = Box<dyn Deref<Target = Session> + Send + Sync>;

/// The settings for summarising a chat before a request that is too large.
#[derive(Clone)]
pub(in super::super) struct WhenFull {
    /// The agent that writes the summary.
    pub(in super::super) summariser: Arc<dyn Summariser>,
    /// The number of tokens above which a request is too large.
    pub(in super::super) tokens: u64,
}
