//! Finds the result of each call, depending on wire format and server, for the rules about calls
//! and results.

use std::collections::{HashMap, VecDeque};

use serde_json::Value;

use super::super::history::{Call, Entry, History, Outcome, Role};
use super::super::subject::Subject;
use crate::provider::{Server, WireFormat};

/// The maximum number of calls with the same ID or name that a result is compared with, newest
/// first. Real conversations have fewer.
const MOST_CANDIDATES: usize = 32;

/// The location where a server looks for the results of an entry's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    /// In the next entry.
    Next,
    /// In the tool messages directly after the entry.
    Following,
    /// In the tool items after the entry and after any calls that immediately follow it.
    BehindCalls,
    /// In any later item.
    Later,
    /// Anywhere, because the format has no rule.
    Anywhere,
}

impl Answers {
    /// Returns where a server looks for the results of calls. Anthropic: the next message. Chat
    /// Completions and Mistral: the tool messages before any other message. Responses: any later
    /// item, matched by `call_id`; but `DeepSeek` converts items to messages, in which a call
    /// starts a new message unless it follows another call. Gemini: the next content. Ollama:
    /// anywhere, because it renders entries in the order given.
    pub(super) fn of(subject: &Subject<'_>) -> Answers {
        match (subject.wire, subject.server) {
            (WireFormat::AnthropicMessages | WireFormat::GoogleGenerateContent, _) => Answers::Next,
            (WireFormat::OpenAiChat | WireFormat::MistralChat, _) => Answers::Following,
            (WireFormat::OpenAiResponses, Server::DeepSeek) => Answers::BehindCalls,
            (WireFormat::OpenAiResponses, _) => Answers::Later,
            (
                WireFormat::OllamaChat
                | WireFormat::MistralFim
                | WireFormat::OllamaGenerate
                | WireFormat::LlamaCppInfill,
                _,
            ) => Answers::Anywhere,
        }
    }

    /// Returns the index of the first entry after the turn that contains the calls at `at`.
    /// Anthropic and Gemini merge consecutive entries with the same role. `DeepSeek` merges
    /// consecutive calls.
    pub(super) fn start(self, entries: &[Entry<'_>], at: usize) -> usize {
        let later = entries.get(at + 1..).unwrap_or_default();
        let same_turn = match self {
            Answers::Next => later
                .iter()
                .take_while(|entry| entry.role == Role::Assistant)
                .count(),
            Answers::BehindCalls => later
                .iter()
                .take_while(|entry| is_call_or_thinking(entry))
                .count(),
            Answers::Following | Answers::Later | Answers::Anywhere => 0,
        };
        at + 1 + same_turn
    }

    /// Returns the index of the entry where the search for an entry's call results ends.
    pub(super) fn end(self, entries: &[Entry<'_>], at: usize) -> usize {
        let start = self.start(entries, at);
        let later = entries.get(start..).unwrap_or_default();
        let reach = match self {
            Answers::Next => later.len().min(1),
            Answers::Following | Answers::BehindCalls => later
                .iter()
                .take_while(|entry| entry.role == Role::Tool)
                .count(),
            Answers::Later | Answers::Anywhere => later.len(),
        };
        start + reach
    }

    /// Returns the location of the results in words.
    pub(super) fn place(self) -> &'static str {
        match self {
            Answers::Next => "in the next message",
            Answers::Following => "in tool messages right after the call",
            Answers::BehindCalls => "directly after its group of calls",
            Answers::Later | Answers::Anywhere => "after the call",
        }
    }
}

/// The matched calls and results of a history.
pub(super) struct Pairs<'b> {
    /// Every call, oldest first.
    pub(super) calls: Vec<MatchedCall<'b>>,
    /// Every result that matches no open call, oldest first.
    pub(super) strays: Vec<Stray<'b>>,
}

/// A call and its result.
pub(super) struct MatchedCall<'b> {
    /// The index of the entry with the call.
    pub(super) entry: usize,
    /// The call's value in the body.
    pub(super) value: &'b Value,
    /// The call as read from its value.
    pub(super) call: Call<'b>,
    /// The index of the entry with the result, and `true` if the server looks there. `None` if the
    /// call has no result.
    pub(super) answer: Option<(usize, bool)>,
    /// The result's value, if it has the name of another function.
    pub(super) misnamed: Option<&'b Value>,
    /// The index of the first entry where the server looks for the result.
    place: usize,
}

/// A result that matches no open call.
pub(super) struct Stray<'b> {
    /// The index of the entry with the result.
    entry: usize,
    /// The result's value in the body.
    pub(super) value: &'b Value,
    /// The result as read from its value.
    pub(super) result: Outcome<'b>,
    /// `true` if an earlier result answers the same call.
    pub(super) is_second: bool,
}

impl MatchedCall<'_> {
    /// Returns `true` if the server finds the result.
    pub(super) fn is_answered(&self) -> bool {
        self.answer.is_some_and(|(_, is_in_place)| is_in_place)
    }
}

impl<'b> Pairs<'b> {
    /// Matches calls and results by ID or, in formats without IDs, by name and order. Of the rest,
    /// a result with a name that stands where the server looks for that of a call answers it.
    pub(super) fn of(history: &History<'b>, answers: Answers) -> Pairs<'b> {
        let mut pairs = Pairs {
            calls: Vec::new(),
            strays: Vec::new(),
        };
        let mut index = Index::default();
        let mut turn = Turn::default();
        for (at, part) in history.parts() {
            if let Some(call) = part.call() {
                if at >= turn.start {
                    turn = Turn::of(answers, &history.entries, at);
                }
                index.add(&call, pairs.calls.len());
                pairs.calls.push(MatchedCall {
                    entry: at,
                    value: part.value,
                    call,
                    answer: None,
                    misnamed: None,
                    place: turn.start,
                });
            } else if let Some(result) = part.outcome() {
                pairs.answer(at, part.value, result, &index, |call| match answers {
                    Answers::Later | Answers::Anywhere => true,
                    Answers::Next | Answers::Following | Answers::BehindCalls => {
                        (turn.first..turn.start).contains(&call.entry) && at < turn.end
                    }
                });
            }
        }
        if answers == Answers::Next {
            pairs.match_by_place();
        }
        pairs
    }

    /// Matches results that have a name, but no ID, with calls by their place alone, because Gemini
    /// counts results and does not compare their names.
    fn match_by_place(&mut self) {
        let mut open: HashMap<usize, VecDeque<usize>> = HashMap::new();
        for (index, call) in self.calls.iter().enumerate() {
            if call.answer.is_none() && call.call.id.is_none() {
                open.entry(call.place).or_default().push_back(index);
            }
        }
        for stray in std::mem::take(&mut self.strays) {
            let is_by_place = stray.result.id.is_none() && stray.result.name.is_some();
            let calls = open.get_mut(&stray.entry).filter(|_| is_by_place);
            match calls.and_then(VecDeque::pop_front) {
                Some(index) => {
                    self.calls[index].answer = Some((stray.entry, true));
                    self.calls[index].misnamed = Some(stray.value);
                }
                None => self.strays.push(stray),
            }
        }
    }

    fn answer(
        &mut self,
        at: usize,
        value: &'b Value,
        result: Outcome<'b>,
        index: &Index<'b>,
        is_in_reach: impl Fn(&MatchedCall<'_>) -> bool,
    ) {
        let candidates = index.candidates(&result, &self.calls);
        let calls = &mut self.calls;
        let open = |calls: &[MatchedCall<'_>], index: &usize| calls[*index].answer.is_none();
        // Calls with the same name are answered in order.
        let in_place = candidates
            .iter()
            .rev()
            .find(|index| open(calls, index) && is_in_reach(&calls[**index]));
        let late = candidates.iter().find(|index| open(calls, index));
        match (in_place, late) {
            (Some(index), _) => calls[*index].answer = Some((at, true)),
            (None, Some(index)) => calls[*index].answer = Some((at, false)),
            (None, None) => {
                let is_second = candidates
                    .iter()
                    .any(|index| result.id.is_some() || is_in_reach(&calls[*index]));
                self.strays.push(Stray {
                    entry: at,
                    value,
                    result,
                    is_second,
                });
            }
        }
    }
}

/// Consecutive entries whose calls are answered together.
#[derive(Default)]
struct Turn {
    /// The index of the first entry in the turn.
    first: usize,
    /// The index of the first entry after the turn.
    start: usize,
    /// The index of the entry where the search for the results ends.
    end: usize,
}

impl Turn {
    /// Returns the turn that begins with an entry.
    fn of(answers: Answers, entries: &[Entry<'_>], first: usize) -> Turn {
        Turn {
            first,
            start: answers.start(entries, first),
            end: answers.end(entries, first),
        }
    }
}

/// Returns `true` if an entry contains only calls, or only calls and reasoning.
fn is_call_or_thinking(entry: &Entry<'_>) -> bool {
    entry.role == Role::Assistant
        && entry
            .parts
            .iter()
            .all(|part| part.call().is_some() || part.is_thinking())
}

/// Indexes of calls, by the keys that results refer to.
#[derive(Default)]
struct Index<'b> {
    by_id: HashMap<&'b str, Vec<usize>>,
    by_name: HashMap<&'b str, Vec<usize>>,
}

impl<'b> Index<'b> {
    fn add(&mut self, call: &Call<'b>, index: usize) {
        if let Some(id) = call.id {
            self.by_id.entry(id).or_default().push(index);
        }
        if let Some(name) = call.name {
            self.by_name.entry(name).or_default().push(index);
        }
    }

    /// Returns the calls that a result may answer, newest first.
    fn candidates(&self, result: &Outcome<'b>, calls: &[MatchedCall<'b>]) -> Vec<usize> {
        if let Some(id) = result.id.filter(|id| self.by_id.contains_key(id)) {
            return newest(self.by_id.get(id));
        }
        // If a call and a result both have an ID, they are matched only by this ID.
        let mut found = match result.name {
            Some(name) => newest(self.by_name.get(name)),
            None => (0..calls.len()).rev().take(MOST_CANDIDATES).collect(),
        };
        found.retain(|index| calls[*index].call.id.is_none() || result.id.is_none());
        found
    }
}

fn newest(indices: Option<&Vec<usize>>) -> Vec<usize> {
    indices
        .into_iter()
        .flatten()
        .rev()
        .take(MOST_CANDIDATES)
        .copied()
        .collect()
}

/// Returns `true` if the server rejects unmatched calls and results.
pub(super) fn is_refused(subject: &Subject<'_>) -> bool {
    match subject.wire {
        WireFormat::OpenAiChat => subject.server.refuses_unpaired_calls(),
        WireFormat::AnthropicMessages
        | WireFormat::OpenAiResponses
        | WireFormat::GoogleGenerateContent
        | WireFormat::MistralChat
        | WireFormat::MistralFim
        | WireFormat::OllamaChat
        | WireFormat::OllamaGenerate
        | WireFormat::LlamaCppInfill => true,
    }
}
