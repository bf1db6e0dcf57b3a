//! A session: a conversation that grows, and requests about it.
//!
//! A change is written to the journal before it counts, and a request that fails leaves the history
//! as it was. System prompt and tools stay those of the first request, which the log holds. Only a
//! host renews them; where a model binds thinking to them, older thinking is then left out. A
//! request that no longer begins as the one that thinking is bound to counts as a renewal too.

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

/// A conversation with one agent. The history here is the only one there is: every request, also
/// one that continues after tool results, is compiled from it again.
///
/// A handle: clones refer to the same session. At most one request is in flight; another cancels it
/// and waits until it has ended. Requests run as tokio tasks.
#[derive(Clone)]
pub struct Session {
    shared: Arc<Shared>,
}

struct Shared {
    agent: Agent,
    transport: Transport,
    state: Mutex<State>,
    tool_loop: Mutex<ToolLoop>,
    /// How often tools may run in a request without hooks.
    round_limit: AtomicU32,
    /// The most tools of one answer that run at the same time.
    tools_at_once: AtomicUsize,
    /// How long a run may take as a whole.
    run_timeout: Mutex<Option<Duration>>,
    /// Who writes a summary before a request that is too large, if anybody.
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

/// A session under hooks: [`Session::with_hooks`].
#[derive(Clone)]
pub struct AgentLoop {
    session: Session,
    hooks: Arc<dyn Hooks>,
    messages: Option<Arc<dyn MessageHook>>,
    limit: u32,
}

impl Session {
    /// A session that goes on with a conversation, which may be empty. Tools that the conversation
    /// itself names are offered to the model but not run: a request that calls one is finished, and
    /// the host answers with [`Block::ToolResult`](crate::conversation::Block::ToolResult)s.
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

    /// Makes the session one about another conversation, with the settings and the tools of a new
    /// one. Nothing may be in flight.
    pub(super) fn reset(&self, conversation: Conversation) {
        let shared = &self.shared;
        let state = State::new(&shared.agent, conversation);
        let old = std::mem::replace(&mut *shared.state(), state);
        *lock(&shared.tool_loop) = ToolLoop::default();
        shared.round_limit.store(PLAIN_LIMIT, Ordering::Relaxed);
        shared.tools_at_once.store(TOOLS_AT_ONCE, Ordering::Relaxed);
        *lock(&shared.run_timeout) = None;
        let when_full = lock(&shared.when_full).take();
        // Tools of the host are dropped while nothing is locked.
        drop((old, when_full));
    }

    /// Returns `true` if no request is in flight.
    pub(super) fn is_idle(&self) -> bool {
        lock(&self.shared.flight).ended.is_cancelled()
    }

    /// Returns `true` if nobody else has a handle of this session: neither a clone nor a request.
    pub(super) fn is_only_handle(&self) -> bool {
        Arc::strong_count(&self.shared) == 1
    }

    /// A session whose every step is a line of a journal before the model sees it: a new one, or
    /// one that was loaded. If the loaded one was interrupted in the middle of a turn, it gets an
    /// item that says so.
    ///
    /// # Errors
    ///
    /// The journal cannot be written.
    pub fn journaled(
        agent: Agent,
        transport: Transport,
        restored: SessionStart,
        journal: Box<dyn Journal>,
    ) -> Result<Session, Error> {
        let state = State::restored(&agent, restored, Some(journal))?;
        Ok(Session::of(agent, transport, state))
    }

    /// Adds a message of the user and asks for an answer. Tools of the session run, and their
    /// results go back, up to
    /// [`PLAIN_LIMIT`] times, or as often as [`Session::set_round_limit`] says.
    pub fn send(&self, message: impl Into<Content>) -> Run {
        self.start(Start::Message(message.into().0), self.plain())
    }

    /// Asks for an answer to what is there: after a failure or a cancelled request, after injected
    /// items, or for a completion. A history that ends with a complete answer has nothing to be
    /// answered, and the request fails.
    pub fn proceed(&self) -> Run {
        self.start(Start::Proceed, self.plain())
    }

    /// The agent.
    pub(super) fn agent(&self) -> &Agent {
        &self.shared.agent
    }

    /// Puts a summary by another agent in the place of what was said. The run is that agent's.
    pub(super) fn summarise(&self, summariser: Arc<dyn Summariser>) -> Run {
        self.start(Start::Summarise(summariser), self.plain())
    }

    /// Does the same from now on before a request that is too large; `None` never does.
    pub(super) fn set_when_full(&self, when_full: Option<WhenFull>) {
        *lock(&self.shared.when_full) = when_full;
    }

    /// Estimates the tokens of the request that would be sent now, part by part, corrected by what
    /// answers of this session counted. Makes the body, so it takes as long as that.
    ///
    /// # Errors
    ///
    /// The request cannot be compiled.
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

    /// The same session with hooks around every turn, tool and message, and a limit of
    /// [`AGENT_LIMIT`] rounds. Who wants to look at the hooks later gives an `Arc` of them.
    pub fn with_hooks(&self, hooks: impl Hooks + 'static) -> AgentLoop {
        AgentLoop {
            session: self.clone(),
            hooks: Arc::new(hooks),
            messages: None,
            limit: AGENT_LIMIT,
        }
    }

    /// Sets how often tools may run in one request without hooks; 0 for no limit.
    pub fn set_round_limit(&self, limit: u32) {
        self.shared.round_limit.store(limit, Ordering::Relaxed);
    }

    /// Sets how many tools of one answer run at the same time, [`TOOLS_AT_ONCE`] by default. With
    /// 1, also for 0, they run one after another. Tools begin in the order in which the model
    /// called them, and their results reach the model in that order; the events report each result
    /// as soon as it is there. Holds from the next answer on, also under hooks. What a tool itself
    /// says of this ([`Tool::is_concurrent`](super::tools::Tool::is_concurrent)) holds too.
    pub fn set_tools_at_once(&self, most: usize) {
        self.shared.tools_at_once.store(most, Ordering::Relaxed);
    }

    /// Sets how long a run may take as a whole, from the call that starts it: all rounds, retries,
    /// hooks and tools. There is no such limit by default; those of
    /// [`TransportOptions`](super::TransportOptions) hold for one answer each. A run that takes
    /// longer fails as
    /// [`Category::Timeout`](super::Category::Timeout). What came of an answer is kept and marked, tools that ended keep their results, the
    /// others are stopped, which may take a second more. Holds for the runs that start from here
    /// on, also under hooks.
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
                // Cancelled requests end at once; waiting keeps their last words before ours.
                last.ended.cancelled().await;
                let outcome = RequestTask::new(&shared, policy, emitter, &cancel, deadline)
                    .run(start)
                    .await;
                // Whoever waits for the end may want the journal's file next.
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

    /// Resolves when no request is in flight.
    pub async fn idle(&self) {
        let ended = lock(&self.shared.flight).ended.clone();
        ended.cancelled().await;
    }

    /// Adds a typed item: logged with the exact text before the model sees it. It waits while a
    /// request is in flight, until the tools of a round have returned or the request has ended, and
    /// while calls of the model have no results. The request that runs then, or the next one,
    /// reports it with [`Event::Item`](super::Event::Item).
    ///
    /// # Errors
    ///
    /// The journal cannot be written, or the session is a completion. An item that could not be
    /// written waits.
    pub fn inject(&self, item: Item) -> Result<(), Error> {
        self.shared.state().inject(item)
    }

    /// Takes the last messages and items of the history back, for instance a question that was
    /// refused and what came of its answer: providers go on refusing while it is there. The log
    /// keeps both.
    ///
    /// # Errors
    ///
    /// A request is in flight, there are not so many messages, or the journal cannot be written.
    pub fn take_back(&self, messages: usize) -> Result<(), Error> {
        self.shared.state().take_back(messages)
    }

    /// Renders the system prompt again for the next round. Until then a session says what it said
    /// in its first request, whatever became of the files that the prompt reads. A renewal is an
    /// [`Event::Renewed`](super::Event::Renewed), and leaves earlier thinking out where models bind
    /// it.
    pub fn renew(&self) {
        self.shared.state().renew();
    }

    /// Replaces the tools, from the next round on. Once something was sent, other tools than before
    /// are a [renewal](Session::renew).
    pub fn set_tools(&self, tools: ToolSet) {
        self.shared.state().set_tools(tools);
    }

    /// Sets a named layer of the system prompt, from the next round on; a blank text removes it.
    /// Once something was sent, another text than before is a [renewal](Session::renew).
    pub fn set_layer(&self, layer: SystemLayer) {
        self.shared.state().set_layer(layer);
    }

    /// The history as it is now.
    pub fn history(&self) -> Vec<Message> {
        self.shared.state().history().to_vec()
    }

    /// The tokens of all requests so far.
    pub fn usage(&self) -> Usage {
        self.shared.state().usage()
    }

    /// Returns what the answers of this session cost since it was made or restored, in US dollars:
    /// their tokens alone. `None` if that is not known of one of them.
    pub fn cost(&self) -> Option<f64> {
        self.shared.state().cost()
    }

    /// Begins counting from what was used before this session.
    pub fn seed_usage(&self, usage: Usage) {
        self.shared.state().seed_usage(usage);
    }

    /// Returns what schemas and rules find in the request that would be sent now; no policy was
    /// applied.
    pub fn findings(&self) -> Vec<Diagnostic> {
        let conversation = self.shared.state().to_ask().conversation;
        self.shared.agent.findings(conversation)
    }

    /// Returns how many requests the tool loop knows: 0 when none is in flight.
    pub fn open_requests(&self) -> usize {
        lock(&self.shared.tool_loop).open_requests()
    }
}

impl AgentLoop {
    /// With another limit of rounds; 0 for none.
    #[must_use]
    pub fn with_limit(self, limit: u32) -> AgentLoop {
        AgentLoop { limit, ..self }
    }

    /// With a hook that sees each message before it is shown: its text is held back until it is
    /// complete.
    #[must_use]
    pub fn with_message_hook(self, hook: impl MessageHook + 'static) -> AgentLoop {
        AgentLoop {
            messages: Some(Arc::new(hook)),
            ..self
        }
    }

    /// As [`Session::send`].
    pub fn send(&self, message: impl Into<Content>) -> Run {
        self.session
            .start(Start::Message(message.into().0), self.policy())
    }

    /// As [`Session::proceed`].
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

/// A lock that outlives panics of other holders: what it guards is changed in single steps.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
