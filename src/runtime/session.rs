//! A session, which is a growing conversation together with the requests for it.
//!
//! A change is written to the journal before it takes effect. A request that fails before its
//! answer begins leaves the history unchanged. The system prompt and tools of the first request are
//! kept and recorded in the log; only the host can renew them. If the model binds thinking to them, a
//! renewal omits older thinking. A request that no longer begins with the text to which its
//! thinking is bound is treated as a renewal too.

mod summariser;
mod state;
mod drive;
mod calls;
mod compress;

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Error;
use super::agent::Agent;
use super::hooks::{Hooks, MessageHook, NoHooks};
use super::run::{self, Run};
use super::tool_loop::{AGENT_LIMIT, PLAIN_LIMIT, TOOLS_AT_ONCE, ToolLoop};
use super::tools::ToolSet;
use super::transport::Transport;
use crate::conversation::{Content, Conversation, Item, Message, SystemLayer, Usage};
use crate::diag::Diagnostic;
use crate::tokens::TokenEstimate;
use crate::world::Journal;
use drive::{Deadline, Policy, RequestTask};
pub use state::SessionStart;
use state::{Start, State};
pub(super) use summariser::{BorrowedSession, Summariser, WhenFull};

/// A conversation with one agent. The history exists only here: every request, including those
/// after tool results, is compiled from it.
///
/// This is a handle: clones refer to the same session. At most one request is in flight; a new
/// request cancels the current one and waits for its end. Requests run as tokio tasks.
#[derive(Clone)]
pub struct Session {
    shared: Arc<Shared>,
}

struct Shared {
    agent: Agent,
    transport: Transport,
    state: Mutex<State>,
    tool_loop: Mutex<ToolLoop>,
    /// The maximum number of tool rounds in a request without hooks.
    round_limit: AtomicU32,
    /// The maximum number of tools from one answer that run at the same time.
    tools_at_once: AtomicUsize,
    /// The time limit for a whole run.
    run_timeout: Mutex<Option<Duration>>,
    /// The agent that summarises the chat before a request that is too large; `None` if nothing is
    /// summarised.
    when_full: Mutex<Option<WhenFull>>,
    flight: Mutex<Flight>,
}

/// The latest request.
#[derive(Clone, Default)]
struct Flight {
    cancel: CancellationToken,
    /// Cancelled when the request has ended.
    ended: CancellationToken,
}

/// A session with hooks, returned by [`Session::with_hooks`].
#[derive(Clone)]
pub struct AgentLoop {
    session: Session,
    hooks: Arc<dyn Hooks>,
    messages: Option<Arc<dyn MessageHook>>,
    limit: u32,
}

impl Session {
    /// Creates a session that continues a conversation, which may be empty. Tools in the
    /// conversation itself are offered to the model but not run. A request in which the model calls
    /// one of them finishes, and the host sends the results as
    /// [`Block::ToolResult`](crate::conversation::Block::ToolResult)s.
    pub fn new(agent: Agent, transport: Transport, conversation: Conversation) -> Session {
        let state = State::new(&agent, conversation);
        Session::of(agent, transport, state)
    }

    fn of(agent: Agent, transport: Transport, state: State) -> Session {
        let flight = Flight::default();
        flight.ended.cancel();
        let shared = Shared {
            agent,
            transport,
            state: Mutex::new(state),
            tool_loop: Mutex::default(),
            round_limit: AtomicU32::new(PLAIN_LIMIT),
            tools_at_once: AtomicUsize::new(TOOLS_AT_ONCE),
            run_timeout: Mutex::default(),
            when_full: Mutex::default(),
            flight: Mutex::new(flight),
        };
        Session {
            shared: Arc::new(shared),
        }
    }

    /// Replaces the conversation, and resets settings and tools to those of a new session. Call
    /// this only while no request is in flight.
    pub(super) fn reset(&self, conversation: Conversation) {
        let shared = &self.shared;
        let state = State::new(&shared.agent, conversation);
        let old = std::mem::replace(&mut *shared.state(), state);
        *lock(&shared.tool_loop) = ToolLoop::default();
        shared.round_limit.store(PLAIN_LIMIT, Ordering::Relaxed);
        shared.tools_at_once.store(TOOLS_AT_ONCE, Ordering::Relaxed);
        *lock(&shared.run_timeout) = None;
        let when_full = lock(&shared.when_full).take();
        // Drop the host's tools only after all locks are released.
        drop((old, when_full));
    }

    /// Returns `true` if no request is in flight.
    pub(super) fn is_idle(&self) -> bool {
        lock(&self.shared.flight).ended.is_cancelled()
    }

    /// Returns `true` if no clone and no request holds another handle to this session.
    pub(super) fn is_only_handle(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }

    /// Creates a session, new or loaded, that writes every step to a journal before the model sees
    /// it. If a loaded session was interrupted in the middle of a turn, adds an item that informs
    /// the model.
    ///
    /// # Errors
    ///
    /// Returns an error if the journal cannot be written.
    pub fn journaled(
        agent: Agent,
        transport: Transport,
        restored: SessionStart,
        journal: Box<dyn Journal>,
    ) -> Result<Session, Error> {
        let state = State::restored(&agent, restored, Some(journal))?;
        Ok(Session::of(agent, transport, state))
    }

    /// Adds a user message and asks for an answer. The session's tools are run, and their results
    /// are sent back, in up to [`PLAIN_LIMIT`] rounds or the number set by
    /// [`Session::set_round_limit`].
    pub fn send(&self, message: impl Into<Content>) -> Run {
        self.start(Start::Message(message.into().0), self.plain())
    }

    /// Asks for an answer to the unchanged history: after a failed or cancelled request, after
    /// injected items, or for a completion. If the history ends with a complete answer, the request
    /// fails.
    pub fn proceed(&self) -> Run {
        self.start(Start::Proceed, self.plain())
    }

    /// Returns the agent.
    pub(super) fn agent(&self) -> &Agent {
        &self.shared.agent
    }

    /// Replaces the history with a summary written by a separate agent. The returned run belongs to
    /// that agent.
    pub(super) fn summarise(&self, summariser: Arc<dyn Summariser>) -> Run {
        self.start(Start::Summarise(summariser), self.plain())
    }

    /// Sets the agent that summarises the chat before each request that is too large; `None`
    /// disables this.
    pub(super) fn set_when_full(&self, when_full: Option<WhenFull>) {
        *lock(&self.shared.when_full) = when_full;
    }

    /// Estimates the number of tokens in the next request, by part, corrected by the token counts
    /// of this session's answers. Takes as long as compiling the body.
    ///
    /// # Errors
    ///
    /// Returns an error if the request cannot be compiled.
    pub fn estimate(&self) -> Result<TokenEstimate, Error> {
        let (conversation, calibration) = {
            let state = self.shared.state();
            (state.to_ask().conversation, state.calibration().clone())
        };
        Ok(self
            .shared
            .agent
            .estimate(conversation)?
            .calibrated(&calibration))
    }

    /// Returns this session with hooks around every turn, tool and message, and a limit of
    /// [`AGENT_LIMIT`] rounds. To keep access to the hooks, pass an `Arc`.
    pub fn with_hooks(&self, hooks: impl Hooks + 'static) -> AgentLoop {
        AgentLoop {
            session: self.clone(),
            hooks: Arc::new(hooks),
            messages: None,
            limit: AGENT_LIMIT,
        }
    }

    /// Sets the maximum number of tool rounds in one request without hooks; 0 means no limit.
    pub fn set_round_limit(&self, limit: u32) {
        self.shared.round_limit.store(limit, Ordering::Relaxed);
    }

    /// Sets the maximum number of tools from one answer that run at the same time,
    /// [`TOOLS_AT_ONCE`] by default. With 1 or 0, they run one after another. Tools start in the
    /// order of the model's calls, and the model gets their results in that order; events report
    /// each result as soon as it is available. Takes effect with the next answer, with or without
    /// hooks. In addition, a tool may have to run alone
    /// ([`Tool::is_concurrent`](super::tools::Tool::is_concurrent)).
    pub fn set_tools_at_once(&self, most: usize) {
        self.shared.tools_at_once.store(most, Ordering::Relaxed);
    }

    /// Sets a time limit for a whole run, from the call that starts it, including all rounds,
    /// retries, hooks and tools. By default there is none; the limits of
    /// [`TransportOptions`](super::TransportOptions) apply to each answer. A run that exceeds the
    /// limit fails with [`Category::Timeout`](super::Category::Timeout). A partial answer is kept
    /// and marked, and finished tools keep their results; the other tools are stopped, which may
    /// take another second. Takes effect for runs that start after this call, with or without
    /// hooks.
    pub fn set_run_timeout(&self, timeout: Option<Duration>) {
        *lock(&self.shared.run_timeout) = timeout;
    }

    fn plain(&self) -> Policy {
        let limit = self.shared.round_limit.load(Ordering::Relaxed);
        Policy {
            hooks: Arc::new(NoHooks),
            messages: None,
            limit,
            keep_text_beside_calls: true,
        }
    }

    fn start(&self, start: Start, policy: Policy) -> Run {
        let next = Flight::default();
        let last = std::mem::replace(&mut *lock(&self.shared.flight), next.clone());
        last.cancel.cancel();
        let shared = Arc::clone(&self.shared);
        let ended = next.ended.drop_guard();
        let cancel = next.cancel.clone();
        let deadline = lock(&self.shared.run_timeout).map(Deadline::after);
        run::start(
            Arc::clone(&policy.hooks),
            next.cancel,
            |emitter| async move {
                // Cancelled requests end at once. Waiting ensures that their last events precede
                // ours.
                last.ended.cancelled().await;
                let outcome = RequestTask::new(&shared, policy, emitter, &cancel, deadline)
                    .run(start)
                    .await;
                // A caller that waits for the end may immediately open the journal's file.
                drop(shared);
                drop(ended);
                outcome
            },
        )
    }

    /// Cancels the request in flight, if there is one.
    pub fn cancel(&self) {
        lock(&self.shared.flight).cancel.cancel();
    }

    /// Waits until no request is in flight.
    pub async fn idle(&self) {
        let ended = lock(&self.shared.flight).ended.clone();
        ended.cancelled().await;
    }

    /// Adds a typed item, whose exact text is logged before the model sees it. During a request,
    /// the item waits until the tools of a round have returned or the request has ended, and until
    /// all of the model's calls have results. The current request, or else the next one, reports
    /// the item with [`Event::Item`](super::Event::Item).
    ///
    /// # Errors
    ///
    /// Returns an error if the journal cannot be written, or if the session is a completion. An
    /// item that could not be written is kept and tried again.
    pub fn inject(&self, item: Item) -> Result<(), Error> {
        self.shared.state().inject(item)
    }

    /// Removes the last messages and items from the history, for example a refused question and its
    /// partial answer. A provider keeps refusing as long as the question is in the history. The log
    /// keeps the removed messages.
    ///
    /// # Errors
    ///
    /// Returns an error if a request is in flight, there are too few messages, or the journal
    /// cannot be written.
    pub fn take_back(&self, messages: usize) -> Result<(), Error> {
        self.shared.state().take_back(messages)
    }

    /// Makes the next round render the system prompt again. Otherwise, a session keeps the prompt
    /// of its first request, even if the files that the prompt includes have changed. A renewal
    /// emits [`Event::Renewed`](super::Event::Renewed) and, for models that bind thinking, omits
    /// earlier thinking.
    pub fn renew(&self) {
        self.shared.state().renew();
    }

    /// Replaces the tools, beginning with the next round. After the first request, changing the
    /// tools is a [renewal](Session::renew).
    pub fn set_tools(&self, tools: ToolSet) {
        self.shared.state().set_tools(tools);
    }

    /// Sets a named layer of the system prompt, beginning with the next round; a blank string
    /// removes the layer. After the first request, changing its text is a
    /// [renewal](Session::renew).
    pub fn set_layer(&self, layer: SystemLayer) {
        self.shared.state().set_layer(layer);
    }

    /// Returns the current history.
    pub fn history(&self) -> Vec<Message> {
        self.shared.state().history().to_vec()
    }

    /// Returns the number of tokens used by all requests so far.
    pub fn usage(&self) -> Usage {
        self.shared.state().usage()
    }

    /// Returns the cost of all answers since the session was created or restored, in US dollars;
    /// `None` if the cost of any answer is unknown.
    pub fn cost(&self) -> Option<f64> {
        self.shared.state().cost()
    }

    /// Adds earlier usage, for example that of a previous session, to the session's token counts.
    pub fn seed_usage(&self, usage: Usage) {
        self.shared.state().seed_usage(usage);
    }

    /// Returns the findings that schemas and rules report for the next request. No policy is
    /// applied.
    pub fn findings(&self) -> Vec<Diagnostic> {
        let conversation = self.shared.state().to_ask().conversation;
        self.shared.agent.findings(conversation)
    }

    /// Returns the number of open requests in the tool loop; 0 if no request is in flight.
    pub fn open_requests(&self) -> usize {
        lock(&self.shared.tool_loop).open_requests()
    }
}

impl AgentLoop {
    /// Sets the round limit; 0 means no limit.
    #[must_use]
    pub fn with_limit(self, limit: u32) -> AgentLoop {
        AgentLoop { limit, ..self }
    }

    /// Adds a hook that gets each message before it is shown. The text is held back until it is
    /// complete.
    #[must_use]
    pub fn with_message_hook(self, hook: impl MessageHook + 'static) -> AgentLoop {
        AgentLoop {
            messages: Some(Arc::new(hook)),
            ..self
        }
    }

    /// Sends a message like [`Session::send`].
    pub fn send(&self, message: impl Into<Content>) -> Run {
        self.session
            .start(Start::Message(message.into().0), self.policy())
    }

    /// Asks for an answer like [`Session::proceed`].
    pub fn proceed(&self) -> Run {
        self.session.start(Start::Proceed, self.policy())
    }

    fn policy(&self) -> Policy {
        Policy {
            hooks: Arc::clone(&self.hooks),
            messages: self.messages.clone(),
            limit: self.limit,
            keep_text_beside_calls: false,
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

/// Locks a mutex even if another thread panicked while holding it, because each change to the data
/// is a single step.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
