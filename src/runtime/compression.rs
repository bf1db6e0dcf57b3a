//! Settings for compressing a chat: the agent that writes the summary, and the request size that
//! triggers compression.

use std::sync::Arc;

use super::agent::Agent;
use super::future::BoxFuture;
use super::pool::SessionPool;
use super::session::{BorrowedSession, Session, Summariser, WhenFull};
use super::{Category, Error, Run};
use crate::conversation::{Conversation, DEFAULT_PRIORITY, SystemLayer};

/// The settings for compressing a chat. A separate agent writes a summary in a one-shot session,
/// and the chat continues with the summary in place of the summarised messages. See
/// [`Session::compress`](super::Session::compress).
#[derive(Clone)]
#[non_exhaustive]
pub struct Compression {
    /// The pool that provides the agent's session. A session from this pool must not be compressed
    /// by its own agent: if all of that agent's sessions were in use, the session would wait for
    /// itself.
    pub pool: SessionPool,
    /// The agent that writes the summary, for example the [`Agent::compression_agent`] of the
    /// chat's agent.
    pub agent: Agent,
    /// The number of most recent turns that are kept unchanged, 0 by default. A turn without a
    /// complete answer is always kept.
    pub keep_turns: usize,
    /// The text for the layer `compression` of the agent's system prompt, in addition to its own
    /// prompt.
    pub guidance: Arc<str>,
}

/// The layer of the agent's system prompt that contains [`Compression::guidance`].
const LAYER: &str = "compression";

/// The default guidance for the agent.
const GUIDANCE: &str = "Your summary replaces the conversation: whoever continues it sees only the summary, and nothing else of what was \
     said. Write names, numbers, paths and quoted code exactly as they are.";

impl Compression {
    /// Returns settings for an agent that compresses chats, in a session of a pool.
    pub fn new(pool: SessionPool, agent: Agent) -> Compression {
        Compression {
            pool,
            agent,
            keep_turns: 0,
            guidance: Arc::from(GUIDANCE),
        }
    }

    /// Sets the number of most recent turns that are kept unchanged.
    #[must_use]
    pub fn keeping(self, turns: usize) -> Compression {
        Compression {
            keep_turns: turns,
            ..self
        }
    }

    /// Replaces the guidance for the agent; a blank string removes it.
    #[must_use]
    pub fn guided(self, guidance: impl Into<Arc<str>>) -> Compression {
        Compression {
            guidance: guidance.into(),
            ..self
        }
    }

    fn layer(&self) -> SystemLayer {
        SystemLayer {
            name: Arc::from(LAYER),
            priority: DEFAULT_PRIORITY,
            text: Arc::clone(&self.guidance),
        }
    }
}

impl Summariser for Compression {
    fn keep_turns(&self) -> usize {
        self.keep_turns
    }

    fn session(&self, part: Conversation) -> BoxFuture<'_, BorrowedSession> {
        Box::pin(async move {
            let session = self.pool.acquire_for(&self.agent, part).await;
            session.set_layer(self.layer());
            Box::new(session) as BorrowedSession
        })
    }
}

/// The settings for automatic compression of a chat; see
/// [`Session::set_auto_compression`](super::Session::set_auto_compression).
#[derive(Clone)]
#[non_exhaustive]
pub struct AutoCompression {
    /// The agent and the pool.
    pub compression: Compression,
    /// The share of the context window that a request may fill before the chat is compressed, 0.8
    /// by default.
    pub share: f64,
    /// The context window in tokens. The default is the model's window, if `model-families.toml`
    /// contains it.
    pub window: Option<u64>,
}

/// The default share of the context window for the request; the rest is left for the answer.
const SHARE: f64 = 0.8;

impl AutoCompression {
    /// Returns settings that compress a chat at 80% of the model's context window.
    pub fn new(compression: Compression) -> AutoCompression {
        AutoCompression {
            compression,
            share: SHARE,
            window: None,
        }
    }

    /// Sets the share of the context window.
    #[must_use]
    pub fn at_share(self, share: f64) -> AutoCompression {
        AutoCompression { share, ..self }
    }

    /// Sets the context window, in tokens.
    #[must_use]
    pub fn with_window(self, tokens: u64) -> AutoCompression {
        AutoCompression {
            window: Some(tokens),
            ..self
        }
    }

    /// Returns the number of tokens above which a request of this agent is too large.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "windows are small and not negative"
    )]
    fn most(&self, agent: &Agent) -> Result<u64, Error> {
        if !(self.share > 0.0 && self.share <= 1.0) {
            let detail = format!("it is {}; the value must be between 0 and 1", self.share);
            return Err(Error::new(
                Category::Config,
                "the share of the context window is not between 0 and 1",
            )
            .detail(detail));
        }
        let window = self
            .window
            .or_else(|| agent.context_window())
            .ok_or_else(|| {
                let message = format!("the context window of `{}` is unknown", agent.name());
                Error::new(Category::Config, message).detail("set `AutoCompression::window`")
            })?;
        Ok((window as f64 * self.share) as u64)
    }
}

impl Session {
    /// Has an agent summarise the history, and continues with the summary in its place. The
    /// returned run belongs to the summarising agent: its text is the summary, and its usage and
    /// cost are added to those of this session. “Summaries” in `docs/sessions.md` describes which
    /// parts are kept, how thinking, images, calls and items are treated, and what is logged.
    ///
    /// Fails with [`Category::Config`](super::Category::Config) if there is nothing to compress,
    /// and with the agent's error if its request fails. A failed or cancelled compression leaves
    /// the session unchanged.
    pub fn compress(&self, compression: &Compression) -> Run {
        self.summarise(Arc::new(compression.clone()))
    }

    /// Enables automatic compression, or disables it with `None`, the default. Before each request,
    /// including those between tool rounds, the chat is compressed if the request would exceed a
    /// share of the model's context window. The run reports this with
    /// [`Event::Compressed`](super::Event::Compressed). If no summary can be made, the request is
    /// sent uncompressed, with a warning. Takes effect with the next request.
    ///
    /// # Errors
    ///
    /// Returns an error if the context window is unknown, or the share is not between 0 and 1.
    pub fn set_auto_compression(&self, auto: Option<AutoCompression>) -> Result<(), Error> {
        let when_full = match auto {
            None => None,
            Some(auto) => Some(WhenFull {
                tokens: auto.most(self.agent())?,
                summariser: Arc::new(auto.compression),
            }),
        };
        self.set_when_full(when_full);
        Ok(())
    }
}
