//! Replaces messages with a summary: selects the messages, gets the summary, and cleans up after a
//! failed request.
//!
//! The change consists of a single journal line. Without this line, the chat is unchanged; with it,
//! the summary applies. Therefore, the process may be killed at any time.

use std::sync::Arc;

use super::super::{Category, Error, Event, Outcome, Run, StopReason, TextAnswer};
use super::drive::{RequestTask, Stop};
use super::lock;
use super::state::{Compressible, State};
use super::summariser::Summariser;
use crate::conversation::log::Summary;
use crate::conversation::{Block, Conversation, Message, Role, Task};

/// The text that precedes a summary in the history.
const BEFORE: &str = "[Summary of the conversation so far, which it replaces]\n\n";

/// Returns a summary as the chat's model sees it.
fn shown(summary: &str) -> Arc<str> {
    format!("{BEFORE}{}", summary.trim()).into()
}

/// Selects the events of the summarising agent that the reader of the chat receives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    /// All events: the summary was requested explicitly.
    All,
    /// Only retries and warnings: compression was triggered by another request.
    Little,
}

impl State {
    /// Returns the beginning of the history that a summary can replace; `None` if it contains no
    /// answer.
    pub(super) fn compressible(&self, keep_turns: usize) -> Option<Compressible> {
        let messages = self.cut(keep_turns)?;
        let history = self.history()[..messages].to_vec();
        // Thinking is bound to the chat's requests, so this conversation omits it. The history
        // already contains the surroundings and files of each turn.
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

    /// Returns the number of messages to replace with a summary. It never separates a call from its
    /// result, and keeps the required number of recent turns and everything after the last answer.
    /// In a single long turn that is still running, all rounds except the last can be replaced.
    fn cut(&self, keep_turns: usize) -> Option<usize> {
        let history = self.history();
        let is_open = self.is_open();
        let end = history.iter().rposition(|message| message.item.is_none())? + 1;
        let turns = self.turns(end);
        let by_turn = match keep_turns.max(usize::from(is_open)) {
            0 => end,
            // If there are fewer turns, all are kept.
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

    /// Returns the indices at which the user's turns begin, including the items that precede each
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

    /// Returns `true` if the user wrote the message, that is, if it contains no results.
    fn is_written(&self, message: &Message) -> bool {
        let brings_results = message.blocks.iter().any(|block| self.is_result(block));
        message.role == Role::User && message.item.is_none() && !brings_results
    }
}

/// Returns `true` if the messages include a model answer. A summary alone is not an answer.
fn says_something(history: &[Message]) -> bool {
    let mut answers = history
        .iter()
        .filter(|message| message.role == Role::Assistant);
    answers.any(|answer| answer.blocks.iter().any(Block::says_something))
}

impl RequestTask<'_> {
    /// Compresses the chat because the host asked for it.
    pub(super) async fn compress(&self, summariser: &dyn Summariser) -> Result<StopReason, Stop> {
        let compressible = self
            .shared
            .state()
            .begin_compression(summariser.keep_turns())?;
        self.summarise(summariser, compressible, Told::All).await?;
        Ok(StopReason::EndTurn)
    }

    /// Compresses the chat if a request is too large, and returns `true` if it was compressed. If
    /// compression fails, the request is sent uncompressed, because its server may still accept it.
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
                    "{error}: the request is sent uncompressed"
                )));
                Ok(false)
            }
            Err(stop) => Err(stop),
        }
    }

    /// Returns the agent that summarises the chat if a request with this many tokens is too large.
    fn if_too_large(&self, tokens: u64) -> Option<Arc<dyn Summariser>> {
        let full = lock(&self.shared.when_full).clone()?;
        let tokens = self.shared.state().calibration().corrected(tokens);
        let is_full = tokens >= full.tokens;
        (is_full && !self.has_given_up_compression()).then_some(full.summariser)
    }

    /// Makes the agent write a summary, and replaces the summarised messages with it.
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

    /// Reads the agent's events, and forwards those selected by `told` to the reader of the chat.
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

/// Returns the summary in an answer, or an error if the answer is incomplete or empty.
fn summary_of(answer: &TextAnswer) -> Result<&str, Error> {
    match answer.complete()? {
        text if text.trim().is_empty() => Err(Error::new(
            Category::Provider,
            "the agent's answer has no text",
        )),
        text => Ok(text),
    }
}

/// Returns the error for a failed compression.
fn not_compressed(error: Error) -> Error {
    let message = format!("the conversation was not compressed: {}", error.message);
    Error { message, ..error }
}
