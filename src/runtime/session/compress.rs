//! A summary in the place of what was said: what it can stand for, how it is made, and what is left
//! of a request that fails.
//!
//! One line of the journal makes the difference: before it the chat is as it was, after it the
//! summary counts. Nothing else is written, so that a process may be killed anywhere in between.

use std::sync::Arc;

use super::super::{Category, Error, Event, Outcome, Run, StopReason, TextAnswer};
use super::drive::{RequestTask, Stop};
use super::lock;
use super::state::{Compressible, State};
use super::summariser::Summariser;
use crate::conversation::log::Summary;
use crate::conversation::{Block, Conversation, Message, Role, Task};

/// The words before a summary in the history.
const BEFORE: &str = "[Summary of the conversation so far, which it replaces]\n\n";

/// The text of a summary as the model of the chat sees it.
fn shown(summary: &str) -> Arc<str> {
    format!("{BEFORE}{}", summary.trim()).into()
}

/// The part of the agent's events that the reader of the chat gets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    /// All of them: the summary is what was asked for.
    All,
    /// Retries and warnings: something else was asked for.
    Little,
}

impl State {
    /// Returns the part of the history that a summary can stand for; `None` if no answer is in it.
    pub(super) fn compressible(&self, keep_turns: usize) -> Option<Compressible> {
        let messages = self.cut(keep_turns)?;
        let history = self.history()[..messages].to_vec();
        // Thinking is bound to the requests of the chat. What came with turns is part of the
        // history.
        let conversation = Conversation {
            task: Task::Chat(history),
            bound_from: messages,
            is_told: true,
            ..Conversation::default()
        };
        Some(Compressible {
            conversation,
            messages,
        })
    }

    /// Returns the number of messages that a summary replaces. It parts no call from its result,
    /// keeps the latest turns that it has to, and what came since the last answer. Of a single long
    /// turn that still runs, all but its last round can go.
    fn cut(&self, keep_turns: usize) -> Option<usize> {
        let history = self.history();
        let is_open = self.is_open();
        let end = history.iter().rposition(|message| message.item.is_none())? + 1;
        let turns = self.turns(end);
        let by_turn = match keep_turns.max(usize::from(is_open)) {
            0 => end,
            // With fewer turns than that, all of them stay.
            keep => turns
                .len()
                .checked_sub(keep)
                .map_or(0, |first| turns[first]),
        };
        let last_answer = history
            .iter()
            .rposition(|message| message.role == Role::Assistant);
        let within = last_answer.filter(|_| is_open && keep_turns == 0);
        [Some(by_turn), within]
            .into_iter()
            .flatten()
            .find(|&cut| says_something(&history[..cut]))
    }

    /// Returns the places where turns of the person begin, with the items that came before the
    /// message.
    fn turns(&self, end: usize) -> Vec<usize> {
        let history = &self.history()[..end];
        let written = history
            .iter()
            .enumerate()
            .filter(|(_, message)| self.is_written(message))
            .map(|(at, _)| at);
        let begins = written.map(|at| {
            let items = history[..at]
                .iter()
                .rev()
                .take_while(|message| message.item.is_some())
                .count();
            at - items
        });
        begins.collect()
    }

    /// Returns `true` if a person wrote the message: it brings no results.
    fn is_written(&self, message: &Message) -> bool {
        let brings_results = message.blocks.iter().any(|block| self.is_result(block));
        message.role == Role::User && message.item.is_none() && !brings_results
    }
}

/// Returns `true` if the model answered in some messages: a summary alone is not an answer.
fn says_something(history: &[Message]) -> bool {
    let mut answers = history
        .iter()
        .filter(|message| message.role == Role::Assistant);
    answers.any(|answer| answer.blocks.iter().any(Block::says_something))
}

impl RequestTask<'_> {
    /// Compresses the chat because somebody asked for it.
    pub(super) async fn compress(&self, summariser: &dyn Summariser) -> Result<StopReason, Stop> {
        let compressible = self
            .shared
            .state()
            .begin_compression(summariser.keep_turns())?;
        self.summarise(summariser, compressible, Told::All).await?;
        Ok(StopReason::EndTurn)
    }

    /// Compresses the chat if a request is too large, and says whether it did. If that fails the
    /// request is sent as it is: its server may take it.
    pub(super) async fn compress_if_full(&self, tokens: u64) -> Result<bool, Stop> {
        let Some(summariser) = self.if_too_large(tokens) else {
            return Ok(false);
        };
        let compressible = self.shared.state().compressible(summariser.keep_turns());
        let Some(compressible) = compressible else {
            return Ok(false);
        };
        match self
            .summarise(&*summariser, compressible, Told::Little)
            .await
        {
            Ok(()) => Ok(true),
            Err(Stop::Failed(error)) => {
                self.give_up_compression();
                self.emitter.emit(Event::Warning(format!(
                    "{error}: the request is sent as it is"
                )));
                Ok(false)
            }
            Err(stop) => Err(stop),
        }
    }

    /// Returns who compresses the chat, if a request with so many tokens is too large.
    fn if_too_large(&self, tokens: u64) -> Option<Arc<dyn Summariser>> {
        let full = lock(&self.shared.when_full).clone()?;
        let tokens = self.shared.state().calibration().corrected(tokens);
        let is_full = tokens >= full.tokens;
        (is_full && !self.has_given_up_compression()).then_some(full.summariser)
    }

    /// Lets the agent write a summary, and replaces what it summarises.
    async fn summarise(
        &self,
        summariser: &dyn Summariser,
        part: Compressible,
        told: Told,
    ) -> Result<(), Stop> {
        let Compressible {
            conversation,
            messages,
        } = part;
        let session = self
            .unless_cancelled(summariser.session(conversation))
            .await?;
        let answer = self
            .unless_cancelled(self.read(session.proceed(), told))
            .await?;
        let text = summary_of(&answer).map_err(not_compressed);
        let mut state = self.shared.state();
        state.add_cost(session.cost());
        let summary = Summary {
            agent: Some(session.agent().name().clone()),
            usage: session.usage(),
            ..Summary::new(messages, shown(text?))
        };
        state.summarise(summary.clone()).map_err(not_compressed)?;
        drop(state);
        self.emitter.emit(Event::Compressed {
            messages,
            summary: summary.text,
            usage: summary.usage,
        });
        Ok(())
    }

    /// Reads what the agent says, and mentions it as much as the reader of the chat wants.
    async fn read(&self, mut run: Run, told: Told) -> TextAnswer {
        let mut text = String::new();
        while let Some(event) = run.next().await {
            match event {
                Event::Done(outcome) => return TextAnswer { text, outcome },
                Event::TurnStart { .. } => text.clear(),
                Event::Text(ref piece) => text.push_str(piece),
                _ => {}
            }
            let is_trouble = matches!(event, Event::Retry { .. } | Event::Warning(_));
            if told == Told::All || is_trouble {
                self.emitter.emit(event);
            }
        }
        TextAnswer {
            text,
            outcome: Outcome::Cancelled,
        }
    }
}

/// The summary that an answer is: whole, and not empty.
fn summary_of(answer: &TextAnswer) -> Result<&str, Error> {
    match answer.complete()? {
        text if text.trim().is_empty() => Err(Error::new(
            Category::Provider,
            "the agent's answer has no text",
        )),
        text => Ok(text),
    }
}

/// Returns why a chat is as it was.
fn not_compressed(error: Error) -> Error {
    let message = format!("the conversation was not compressed: {}", error.message);
    Error { message, ..error }
}
