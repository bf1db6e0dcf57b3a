//! A bounded pool of one-shot sessions, for tasks alongside a chat, such as writing a summary, a
//! title or a commit message.
//!
//! Input: an [`Agent`]. Output: a [`PooledSession`] without any trace of its previous user. The
//! number of sessions in use is limited for each agent. Waiting callers are served in order.

use std::fmt;
use std::ops::Deref;
use std::sync::{Arc, Mutex};

use tokio::runtime::Handle;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::agent::Agent;
use super::session::{Session, lock};
use super::transport::Transport;
use crate::conversation::Conversation;

/// A pool with a few one-shot sessions per agent. Cheap to clone; clones share the sessions.
///
/// ```no_run
/// # async fn title(repository: &reqc::system::OpenedRepository) -> Result<String, reqc::runtime::Error> {
/// use reqc::runtime::pool::{PoolOptions, SessionPool};
///
/// let pool = SessionPool::new(repository.transport(), PoolOptions::default());
/// let session = pool.acquire(&repository.agent("Claude Chat")?).await;
/// session.send("A title for a page about monads?").text().await
/// # }
/// ```
#[derive(Clone)]
pub struct SessionPool {
    shared: Arc<Shared>,
}

struct Shared {
    transport: Transport,
    options: PoolOptions,
    /// The sessions of each agent, with the most recently used agent last.
    stocks: Mutex<Vec<Arc<Stock>>>,
}

/// The limits of a [`SessionPool`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolOptions {
    /// The maximum number of sessions that one agent has in use at the same time, 4 by default; 0
    /// is treated as 1.
    pub sessions: usize,
    /// The maximum number of agents whose idle sessions are kept, 32 by default. Agents with
    /// sessions in use are never removed.
    pub agents: usize,
}

impl Default for PoolOptions {
    fn default() -> PoolOptions {
        PoolOptions {
            sessions: 4,
            agents: 32,
        }
    }
}

impl PoolOptions {
    /// Sets the maximum number of sessions that one agent has in use at the same time.
    #[must_use]
    pub fn with_sessions(self, sessions: usize) -> PoolOptions {
        PoolOptions { sessions, ..self }
    }
}

/// The sessions of one agent.
struct Stock {
    agent: Agent,
    /// A permit for each session in use.
    permits: Arc<Semaphore>,
    idle: Mutex<Vec<Session>>,
}

/// A session from a [`SessionPool`]. When it is acquired, it has no history, layers or tools.
/// Dropping it cancels its request and returns the session to the pool. The session's place becomes
/// free once the request has ended.
///
/// A clone of the session that outlives this value can still be used, but does not return to the
/// pool.
pub struct PooledSession {
    /// Present until this value is dropped.
    lease: Option<Lease>,
}

/// A session that is in use.
struct Lease {
    session: Session,
    stock: Arc<Stock>,
    permit: OwnedSemaphorePermit,
    /// The async runtime in which the session was acquired, if any. It waits for the end of the
    /// session's request.
    runtime: Option<Handle>,
}

impl SessionPool {
    /// Returns an empty pool. Sessions are created when they are first needed, and share the
    /// connections of this transport.
    pub fn new(transport: Transport, options: PoolOptions) -> SessionPool {
        SessionPool {
            shared: Arc::new(Shared {
                transport,
                options,
                stocks: Mutex::default(),
            }),
        }
    }

    /// Waits for an empty session of an agent. Callers are served in the order of their requests.
    /// If the future is dropped, the caller leaves the queue, and no session is lost.
    ///
    /// Sessions are shared between equal agents, which have the same compiler, model, policy and
    /// environment.
    pub async fn acquire(&self, agent: &Agent) -> PooledSession {
        self.acquire_for(agent, Conversation::default()).await
    }

    /// Waits like [`SessionPool::acquire`], for a session that starts from a conversation with a
    /// history, layers, or a gap to fill.
    pub async fn acquire_for(&self, agent: &Agent, conversation: Conversation) -> PooledSession {
        let stock = self.shared.stock(agent);
        let permit = Arc::clone(&stock.permits)
            .acquire_owned()
            .await
            .expect("the semaphore is never closed");
        // A separate statement, so that the lock is not held while a session is created.
        let idle = lock(&stock.idle).pop();
        let session = match idle {
            // The session was cleared when it was returned.
            Some(session) if conversation == Conversation::default() => session,
            Some(session) => {
                session.reset(conversation);
                session
            }
            None => Session::new(
                stock.agent.clone(),
                self.shared.transport.clone(),
                conversation,
            ),
        };
        let runtime = Handle::try_current().ok();
        PooledSession {
            lease: Some(Lease {
                session,
                stock,
                permit,
                runtime,
            }),
        }
    }

    /// Returns the number of an agent's sessions in use, including returned ones whose request has
    /// not ended yet.
    pub fn in_use(&self, agent: &Agent) -> usize {
        let stocks = lock(&self.shared.stocks);
        let stock = stocks.iter().find(|stock| stock.agent.is_same(agent));
        stock.map_or(0, |stock| {
            self.shared.options.sessions.max(1) - stock.permits.available_permits()
        })
    }

    /// Returns the number of an agent's idle sessions.
    pub fn idle(&self, agent: &Agent) -> usize {
        let stocks = lock(&self.shared.stocks);
        let stock = stocks.iter().find(|stock| stock.agent.is_same(agent));
        stock.map_or(0, |stock| lock(&stock.idle).len())
    }
}

impl Shared {
    /// Returns an agent's sessions, and marks the agent as the most recently used one.
    fn stock(&self, agent: &Agent) -> Arc<Stock> {
        let mut stocks = lock(&self.stocks);
        let known = stocks.iter().position(|stock| stock.agent.is_same(agent));
        let stock = match known {
            Some(at) => stocks.remove(at),
            None => Arc::new(Stock::new(agent, self.options.sessions)),
        };
        stocks.push(Arc::clone(&stock));
        forget_oldest(&mut stocks, self.options.agents.max(1));
        stock
    }
}

/// Removes unused stocks, the least recently used first, until at most `most` are left.
fn forget_oldest(stocks: &mut Vec<Arc<Stock>>, most: usize) {
    while stocks.len() > most
        && let Some(unused) = stocks
            .iter()
            .position(|stock| Arc::strong_count(stock) == 1)
    {
        stocks.remove(unused);
    }
}

impl Stock {
    fn new(agent: &Agent, sessions: usize) -> Stock {
        let permits = Arc::new(Semaphore::new(sessions.clamp(1, Semaphore::MAX_PERMITS)));
        Stock {
            agent: agent.clone(),
            permits,
            idle: Mutex::default(),
        }
    }
}

impl Lease {
    /// Returns the session to the pool, at once if it is idle, otherwise after its request has
    /// ended.
    fn end(self) {
        let waiting = if self.session.is_idle() {
            None
        } else {
            self.runtime.clone()
        };
        match waiting {
            None => self.put_back(),
            Some(runtime) => drop(runtime.spawn(async move {
                self.session.idle().await;
                self.put_back();
            })),
        }
    }

    /// Keeps the session for the next caller, unless another handle to it exists.
    fn put_back(self) {
        let Lease {
            session,
            stock,
            permit,
            ..
        } = self;
        if session.is_idle() && session.is_only_handle() {
            // Free the conversation now, not at the next use.
            session.reset(Conversation::default());
            lock(&stock.idle).push(session);
        }
        // Release the permit last, so that the next caller finds the session.
        drop(permit);
    }
}

impl PooledSession {
    /// Cancels the request, waits for its end, and returns the session to the pool. Dropping the
    /// session has the same effect without waiting.
    pub async fn release(self) {
        self.cancel();
        self.idle().await;
    }
}

impl Deref for PooledSession {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self
            .lease
            .as_ref()
            .expect("the lease is taken only on drop")
            .session
    }
}

impl Drop for PooledSession {
    fn drop(&mut self) {
        if let Some(lease) = self.lease.take() {
            lease.session.cancel();
            lease.end();
        }
    }
}

impl fmt::Debug for PooledSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let agent = self.lease.as_ref().map(|lease| lease.stock.agent.name());
        f.debug_struct("PooledSession")
            .field("agent", &agent)
            .finish_non_exhaustive()
    }
}
