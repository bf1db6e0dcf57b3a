//! `reqc send`: one request to a real server, its answer as it comes.

mod input;
mod output;

use std::sync::Arc;

use super::args::Send;
use super::options::{Opened, Options};
use super::render::{curl_command, show_findings};
use super::{Failure, Outcome, Status, Terminal};
use crate::conversation::{Conversation, Message, Role, Task};
use crate::runtime::{
    Agent, CompileError, Error, Event, Outcome as Ended, Restored, Session, Transport, TransportOptions, Turn,
};
use crate::system::{JournalFile, SystemSecrets};
use crate::world::Journal;
use input::{Input, Unusable};
use output::Printer;

pub(super) fn run(options: &Options, send: &Send, terminal: &mut Terminal) -> Outcome {
    let mut opened = options.with_bundled().open()?;
    let input = match Input::read(options, send, &mut opened) {
        Ok(input) => input,
        Err(Unusable::Failure(failure)) => return Err(failure),
        Err(Unusable::Findings(found)) => return Ok(show_findings(options, &opened, found, terminal)),
    };
    let agent = Agent::new(Arc::clone(&opened.compiler), &send.agent, input.setting.clone()).map_err(failure)?;
    let agent = agent.with_model(options.model.as_deref());
    let compiled = match agent.compile(preview(&input)) {
        Ok(compiled) => compiled,
        Err(CompileError::Findings(found)) => return Ok(show_findings(options, &opened, found, terminal)),
        Err(error) => return Err(failure(error.into_error(agent.compiler()))),
    };
    if compiled.exposes_key() {
        Terminal::warn(&format!("the key travels in the clear to {}: use https", compiled.line.url));
    }
    match (send.curl, send.dry_run) {
        (true, _) => terminal.text(&curl_command(&compiled.line, &compiled.body.pretty())),
        (_, true) => terminal.text(&output::dry_run(&compiled)),
        (false, false) => {
            let (session, blocks) = open_session(options, send, &opened, agent, input)?;
            let mut printer = Printer::new(options.format, terminal);
            let ended = talk(&session, blocks.map_or(Begin::Proceed, Begin::Message), &mut printer)?;
            printer.end(&session, &compiled, &ended);
            return Ok(status(&ended));
        }
    }
    Ok(Status::Clean)
}

fn failure(error: Error) -> Failure {
    let failure = Failure::new(error.message);
    error.detail.into_iter().fold(failure, Failure::help)
}

fn status(ended: &Ended) -> Status {
    match ended {
        Ended::Finished(_) => Status::Clean,
        Ended::Failed(_) => Status::Failed,
        Ended::Cancelled => Status::Cancelled,
    }
}

/// The conversation as the first request will see it.
fn preview(input: &Input) -> Conversation {
    let mut conversation = input.base.clone();
    if let Task::Chat(history) = &mut conversation.task {
        let restored = input.restored.iter().flat_map(|restored| restored.log.history()).cloned();
        *history = restored.chain(std::mem::take(history)).collect();
        let message = |blocks| Message { role: Role::User, blocks, item: None };
        history.extend(input.blocks.clone().map(message));
    }
    conversation
}

/// The session that is sent from, and the message.
fn open_session(
    options: &Options,
    send: &Send,
    opened: &Opened,
    agent: Agent,
    input: Input,
) -> Result<(Session, Option<Vec<crate::conversation::Block>>), Failure> {
    let secrets = Arc::new(SystemSecrets::new(&opened.root));
    let transport = Transport::new(secrets, TransportOptions::default()).map_err(failure)?;
    let saved = send.save.as_deref().map(|path| JournalFile::create(&options.path(path))).transpose()?;
    let (restored, journal) = match (input.restored, saved) {
        (None, None) => (None, None),
        (None, Some(saved)) => (None, Some(saved)),
        (Some(old), None) => (Some(old.log), Some(old.journal)),
        (Some(old), Some(mut saved)) => {
            old.log.lines().try_for_each(|line| saved.append(line))?;
            (Some(old.log), Some(saved))
        }
    };
    let session = match (restored, journal) {
        (_, None) => Session::new(agent, transport, input.base),
        (restored, Some(journal)) => {
            let restored = match restored {
                Some(log) => Restored::Loaded(log, input.base),
                None => Restored::New(input.base),
            };
            Session::journaled(agent, transport, restored, Box::new(journal)).map_err(failure)?
        }
    };
    if let Some(tools) = input.tools {
        session.set_tools(tools);
    }
    Ok((session, input.blocks))
}

enum Begin {
    Message(Vec<crate::conversation::Block>),
    Proceed,
}

fn talk(session: &Session, begin: Begin, printer: &mut Printer<'_>) -> Result<Ended, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.map_err(|error| Failure::new(format!("the runtime cannot start: {error}")))?;
    let ended = runtime.block_on(async {
        let turn = match begin {
            Begin::Message(blocks) => session.send(blocks),
            Begin::Proceed => session.proceed(),
        };
        watch(turn, printer).await
    });
    runtime.shutdown_background();
    Ok(ended)
}

/// Prints events until the request has ended. Ctrl-C and a reader that goes away cancel it.
async fn watch(mut turn: Turn, printer: &mut Printer<'_>) -> Ended {
    loop {
        tokio::select! {
            event = turn.next() => match event {
                Some(Event::Done(ended)) => return ended,
                Some(event) => printer.event(&event),
                None => return Ended::Cancelled,
            },
            Ok(()) = tokio::signal::ctrl_c() => turn.cancel(),
        }
        if printer.is_closed() {
            turn.cancel();
        }
    }
}
