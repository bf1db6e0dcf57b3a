//! Compressing a chat: which agent writes the summary, and when.

use std::sync::Arc;

use super::agent::Agent;
use super::future::BoxFuture;
use super::pool::SessionPool;
use super::session::{BorrowedSession, Session, Summariser, WhenFull};
use super::{Category, Error, Run};
use crate::conversation::{Conversation, DEFAULT_PRIORITY, SystemLayer};

/// The way a chat is compressed: an agent of its own, in a one-shot session, writes a summary, and
/// the chat goes on with that in the place of what it stands for. See
/// [`Session::compress`](super::Session::compress).
#[derive(Clone)]
#[non_exhaustive]
pub struct Compression {
    /// The pool that the agent's session comes from. Give a session of this pool no compression by
    /// the same agent: it would wait for itself where all places are taken.
    pub pool: SessionPool,
    /// The agent that writes the summary, for instance [`Agent::compression_agent`] of that of the
    /// chat.
    pub agent: Agent,
    /// The number of latest turns that stay as they are, 0 by default. A turn that has no complete
    /// answer always stays.
    pub keep_turns: usize,
    /// The text that the agent gets in the layer `compression` of its system prompt, beside its own
    /// prompt.
    pub guidance: Arc<str>,
}

/// The layer of the agent's system prompt that [`Compression::guidance`] is in.
const LAYER: &str = "compression";

/// The guidance of an agent unless the host gives another.
const GUIDANCE: &str = "Your summary takes the place of the conversation: whoever goes on sees the summary and nothing else of what was said. \
                        Write names, numbers, paths and quoted code exactly as they are.";

impl Compression {
    /// Compression by an agent, with a session of a pool.
    pub fn new(pool: SessionPool, agent: Agent) -> Compression {
        Compression {
            pool,
            agent,
            keep_turns: 0,
            guidance: Arc::from(GUIDANCE),
        }
    }

    /// With this many of the latest turns kept as they are.
    #[must_use]
    pub fn keeping(self, turns: usize) -> Compression {
        Compression {
            keep_turns: turns,
            ..self
        }
    }

    /// With other words for the agent; blank ones for none.
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

/// Automatic compression of a chat:
/// [`Session::set_auto_compression`](super::Session::set_auto_compression).
#[derive(Clone)]
#[non_exhaustive]
pub struct AutoCompression {
    /// The agent and the pool.
    pub compression: Compression,
    /// The share of the context window from which on a request is too large, 0.8 by default.
    pub share: f64,
    /// The context window in tokens. By default that of the model, if `model-families.toml` knows
    /// it.
    pub window: Option<u64>,
}

/// The share of the window that is used unless the host says something else: the rest is for the
/// answer.
const SHARE: f64 = 0.8;

impl AutoCompression {
    /// Compression at 80 % of the model's context window.
    pub fn new(compression: Compression) -> AutoCompression {
        AutoCompression {
            compression,
            share: SHARE,
            window: None,
        }
    }

    /// With another share of the window.
    #[must_use]
    pub fn at_share(self, share: f64) -> AutoCompression {
        AutoCompression { share, ..self }
    }

    /// With a context window of so many tokens.
    #[must_use]
    pub fn with_window(self, tokens: u64) -> AutoCompression {
        AutoCompression {
            window: Some(tokens),
            ..self
        }
    }

    /// The tokens from which on a request of an agent is too large.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "windows are small and not negative"
    )]
    fn most(&self, agent: &Agent) -> Result<u64, Error> {
        if !(self.share > 0.0 && self.share <= 1.0) {
            let detail = format!("it is {}: write one between 0 and 1", self.share);
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
                let message = format!("the context window of `{}` is not known", agent.name());
                Error::new(Category::Config, message).detail("set `AutoCompression::window`")
            })?;
        Ok((window as f64 * self.share) as u64)
    }
}

impl Session {
    /// Lets an agent write a summary of what was said, and goes on with it in the place of that.
    /// The run is the agent's: its text is the summary, its usage and cost become the session's.
    /// What stays as it is, what becomes of thinking, images, calls and items, and what the log
    /// holds is described in `docs/sessions.md`, “Summaries”.
    ///
    /// Fails as [`Category::Config`](super::Category::Config) if there is nothing to compress, and
    /// as the agent's request does. Then, and if it is cancelled, the session is as it was.
    pub fn compress(&self, compression: &Compression) -> Run {
        self.summarise(Arc::new(compression.clone()))
    }

    /// Compresses the chat by itself before a request that takes more than a share of the model's
    /// context window, also between rounds of tools; `None`, the default, never does. The run
    /// reports it with [`Event::Compressed`](super::Event::Compressed). If the summary fails, a
    /// warning says so and the request is sent as it is. Holds for the requests from here on.
    ///
    /// # Errors
    ///
    /// The context window is not known, or the share is not between 0 and 1.
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
