//! A request body in the form that rules read, however it was built.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

use serde_json::Value;

use super::facts::ModelFacts;
use super::history::{History, member_of};
use crate::diag::Severity;
use crate::json::Pointer;
use crate::provider::{ApiHeaders, MODEL_PLACEHOLDER, Server, Software, WireFormat, maker_of};
use crate::repo::{FoundMember, MemberPath};

/// A request body, and the known facts about its destination.
pub(crate) struct Subject<'b> {
    /// The wire format of the body.
    pub(crate) wire: WireFormat,
    /// The server that receives the body.
    pub(crate) server: Server,
    /// The model that receives the body; `None` if it is decided later.
    pub(crate) model: Option<&'b str>,
    /// The headers of the request.
    pub(crate) headers: &'b ApiHeaders,
    /// The known facts about the model.
    pub(crate) facts: &'b ModelFacts,
    /// The server to which a gateway may pass the body on.
    passed_on_to: Option<Server>,
    members: Vec<(&'b str, &'b Value)>,
    history: OnceCell<History<'b>>,
    /// The members that were read since recording began.
    seen: RefCell<Option<Vec<Arc<str>>>>,
    /// `true` as soon as the history has been read.
    is_history_read: Cell<bool>,
}

/// The destination of a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Destination<'b> {
    /// The wire format of the body.
    pub(crate) wire: WireFormat,
    /// The server that receives the body.
    pub(crate) server: Server,
    /// The model that receives the body. The client's model takes precedence over the body's.
    pub(crate) model: Option<&'b str>,
    /// The headers of the request.
    pub(crate) headers: &'b ApiHeaders,
}

/// The vendors to which gateways pass bodies on unchanged.
const RESOLD: [Server; 5] = [
    Server::Moonshot,
    Server::ZAi,
    Server::DeepSeek,
    Server::MiniMax,
    Server::XAi,
];

impl Destination<'_> {
    /// Returns the server to which a gateway passes the body on: the server that a prefix of the
    /// model's name selects, or else the model's vendor. Names with capitals refer to published
    /// weights, which a server runs itself.
    fn passed_on_to(&self) -> Option<Server> {
        let is_gateway = match self.server {
            Server::OpenRouter => true,
            Server::Unknown => !self.headers.runs_models(),
            _ => false,
        };
        let model = self.model.filter(|_| is_gateway)?;
        let is_of_weights =
            model.matches('/').count() == 1 && model.contains(|c: char| c.is_ascii_uppercase());
        if is_of_weights {
            return None;
        }
        let prefix = model.split_once('/').map(|(prefix, _)| prefix);
        let prefix = prefix.filter(|_| self.server == Server::Unknown);
        prefix
            .and_then(Server::by_prefix)
            .or_else(|| maker_of(model).filter(|maker| RESOLD.contains(maker)))
    }
}

impl<'b> Subject<'b> {
    /// Returns the subject for a body with these members.
    pub(crate) fn new(
        destination: Destination<'b>,
        facts: &'b ModelFacts,
        members: impl IntoIterator<Item = (&'b str, &'b Value)>,
    ) -> Subject<'b> {
        let Destination {
            wire,
            server,
            model,
            headers,
        } = destination;
        let model = model.filter(|name| *name != MODEL_PLACEHOLDER);
        Subject {
            wire,
            server,
            model,
            headers,
            facts,
            passed_on_to: destination.passed_on_to(),
            members: members.into_iter().collect(),
            history: OnceCell::new(),
            seen: RefCell::default(),
            is_history_read: Cell::new(false),
        }
    }

    /// Returns the subject for a body with different members and the same destination.
    pub(crate) fn with_members<'o>(
        &'o self,
        members: impl Iterator<Item = (&'o str, &'o Value)>,
    ) -> Subject<'o>
    where
        'b: 'o,
    {
        Subject {
            wire: self.wire,
            server: self.server,
            model: self.model,
            headers: self.headers,
            facts: self.facts,
            passed_on_to: self.passed_on_to,
            members: members.collect(),
            history: OnceCell::new(),
            seen: RefCell::default(),
            is_history_read: Cell::new(false),
        }
    }

    /// Returns the severity of violating a server's rules: an error if the body goes to this
    /// server, a warning if it goes to a gateway that may pass it on to the server, and otherwise
    /// `None`.
    pub(crate) fn level_of(&self, server: Server) -> Option<Severity> {
        if self.server == server {
            return Some(Severity::Error);
        }
        (self.passed_on_to == Some(server)).then_some(Severity::Warning)
    }

    /// Returns the severity of violating the rules of software that anyone can run: an error if a
    /// user named it, a warning if it may run at an unknown server, and otherwise `None`.
    pub(crate) fn level_with(&self, software: Software) -> Option<Severity> {
        if self.headers.software == Some(software) {
            return Some(Severity::Error);
        }
        let is_possible = self.server == Server::Unknown && self.headers.software.is_none();
        is_possible.then_some(Severity::Warning)
    }

    /// Returns `true` if the server may run this software: a user named the software, or nothing is
    /// known about the server.
    pub(crate) fn may_run(&self, software: Software) -> bool {
        self.level_with(software).is_some()
    }

    /// Returns a member of the body; `null` counts as absent.
    pub(crate) fn member(&self, name: &str) -> Option<&'b Value> {
        self.note(name);
        self.find(name).filter(|value| !value.is_null())
    }

    /// Returns a member of the body, even if it is `null`.
    fn find(&self, name: &str) -> Option<&'b Value> {
        let mut members = self.members.iter();
        let found = members.find(|(known, _)| *known == name);
        found.map(|(_, value)| *value)
    }

    /// Returns a member of the body, by either of the two spellings that Gemini accepts.
    pub(crate) fn either(&self, camel: &str, snake: &str) -> Option<&'b Value> {
        self.member(camel).or_else(|| self.member(snake))
    }

    /// Returns the members at a location, by either of Gemini's spellings, even if they are `null`.
    pub(crate) fn at(&self, place: &MemberPath) -> Vec<FoundMember<'b>> {
        place.find(self.wire.facts().has_two_spellings, |name| {
            self.note(name);
            self.find(name)
        })
    }

    /// Returns the members in order, for code that fixes or locates findings. Rules must not call
    /// this function, because it does not record which members they read.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&'b str, &'b Value)> {
        self.members.iter().copied()
    }

    /// Returns the history, which is parsed on first use.
    pub(crate) fn history(&self) -> &History<'b> {
        member_of(self.wire)
            .into_iter()
            .for_each(|name| self.note(name));
        self.is_history_read.set(true);
        self.history
            .get_or_init(|| History::read(self.wire, |name| self.find(name)))
    }

    /// Returns the pointer to the history; `None` in formats without one.
    pub(crate) fn history_at(&self) -> Option<Pointer> {
        member_of(self.wire).map(|name| Pointer::root().member(name))
    }

    /// Runs a function, and returns its result and the members that it read.
    pub(crate) fn watched<T>(&self, run: impl FnOnce() -> T) -> (T, Vec<Arc<str>>) {
        self.seen.replace(Some(Vec::new()));
        let result = run();
        (result, self.seen.take().unwrap_or_default())
    }

    /// Runs a function, and returns `true` if it read the history.
    pub(crate) fn reads_history(&self, run: impl FnOnce()) -> bool {
        self.is_history_read.set(false);
        run();
        self.is_history_read.get()
    }

    fn note(&self, name: &str) {
        if let Some(seen) = &mut *self.seen.borrow_mut()
            && !seen.iter().any(|known| **known == *name)
        {
            seen.push(name.into());
        }
    }

    /// Returns `true` if the request refers to conversation state that the server keeps.
    pub(crate) fn is_continued(&self) -> bool {
        let members = self.wire.facts().continued_by;
        members.iter().any(|name| self.member(name).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the severities of Moonshot's rules for a subject, and for a subject with different
    /// members.
    fn levels(server: Server, model: &str) -> [Option<Severity>; 2] {
        let (headers, facts) = (ApiHeaders::default(), ModelFacts::default());
        let destination = Destination {
            wire: WireFormat::OpenAiChat,
            server,
            model: Some(model),
            headers: &headers,
        };
        let subject = Subject::new(destination, &facts, []);
        let other = subject.with_members([].into_iter());
        [&subject, &other].map(|subject| subject.level_of(Server::Moonshot))
    }

    #[test]
    fn gateways_pass_bodies_on_to_makers() {
        let (error, warning) = (Some(Severity::Error), Some(Severity::Warning));
        for (server, model, expected) in [
            (Server::Moonshot, "any", error),
            (Server::OpenRouter, "moonshotai/kimi-k2.5", warning),
            (Server::Unknown, "k3", warning),
            (Server::Unknown, "k3s-helper", None),
            (Server::Unknown, "moonshotai/Kimi-K2.5", None),
            (Server::Groq, "moonshotai/kimi-k2", None),
            (Server::OpenRouter, "anthropic/claude-opus-4.5", None),
        ] {
            assert_eq!(levels(server, model), [expected; 2], "{server:?} {model}");
        }
    }
}
