//! `reqc send --compress`: replaces the conversation so far with a summary.

use super::input::Input;
use super::output::Printer;
use super::{Checked, Command, Compilation, Ended, failure, signals};
use crate::cli::Failure;
use crate::conversation::{Conversation, Message, Task};
use crate::runtime::compression::Compression;
use crate::runtime::pool::{PoolOptions, SessionPool};
use crate::runtime::{Agent, CompileError, Event, Session, Transport};

/// Compiles the known part of the request for the summary, before the session exists.
pub(super) fn compile(agent: &Agent, input: &Input) -> Result<Compilation, Failure> {
    let history = input
        .resumed
        .iter()
        .flat_map(|resumed| resumed.log.history());
    let own = match &input.base.task {
        Task::Chat(history) => history.as_slice(),
        Task::Completion { .. } => &[],
    };
    let history: Vec<Message> = history.chain(own).cloned().collect();
    if history.is_empty() {
        let help =
            "`--resume FILE` continues a session, `--context NAME` starts with a conversation";
        return Err(Failure::new("there is nothing to compress").help(help));
    }
    let conversation = Conversation {
        bound_from: history.len(),
        task: Task::Chat(history),
        is_told: true,
        ..Conversation::default()
    };
    match agent.compile_and_check(conversation) {
        Ok((compiled, found)) => Ok(Ok(Checked { compiled, found })),
        Err(CompileError::Findings(found)) => Ok(Err(found)),
        Err(error) => Err(failure(error.into_error(agent.compiler()))),
    }
}

/// Returns the settings for compressing the session with an agent. Unless `--force` is given, the
/// agent checks its requests under the repository's policy.
pub(super) fn compression(
    command: &Command<'_>,
    agent: Agent,
    transport: &Transport,
) -> Compression {
    let agent = if command.send.force {
        agent
    } else {
        agent.checked(command.opened.policy.clone())
    };
    Compression::new(
        SessionPool::new(transport.clone(), PoolOptions::default()),
        agent,
    )
}

/// Compresses the session. The summary is printed if no answer follows; otherwise, only a note is.
pub(super) async fn first(
    session: &Session,
    compression: &Compression,
    is_followed: bool,
    printer: &mut Printer<'_>,
) -> Ended {
    let mut run = session.compress(compression);
    tokio::spawn(signals::watch(session.clone(), run.cancellation()));
    while let Some(event) = run.next().await {
        let is_shown = matches!(
            event,
            Event::Compressed { .. } | Event::Retry { .. } | Event::Warning(_)
        );
        match event {
            Event::Done(ended) => return ended,
            event if is_shown || !is_followed => printer.event(&event),
            _ => {}
        }
        if printer.is_closed() {
            run.cancel();
        }
    }
    Ended::Cancelled
}
