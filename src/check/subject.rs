//! A request body in the form that rules read, whatever made it.

use std::cell::{Cell, OnceCell, RefCell};
use std::sync::Arc;

use serde_json::Value;

use super::facts::ModelFacts;
use super::history::{History, member_of};
use crate::diag::Severity;
use crate::json::Pointer;
use crate::provider::{ApiHeaders, MODEL_PLACEHOLDER, Server, WireFormat};
use crate::repo::MemberPath;

/// A request body, and the known facts about its destination.
pub(crate) struct Subject<'b> {
    /// Its wire format.
    pub(crate) wire: WireFormat,
    /// The server that it goes to.
    pub(crate) server: Server,
    /// The model that receives it; `None` if that is decided later.
    pub(crate) model: Option<&'b str>,
    /// The headers of the request.
    pub(crate) headers: &'b ApiHeaders,
    /// The known facts about the model.
    pub(crate) facts: &'b ModelFacts,
    members: Vec<(&'b str, &'b Value)>,
    history: OnceCell<History<'b>>,
    /// The members that were read since recording began.
    seen: RefCell<Option<Vec<Arc<str>>>>,
    /// `true` once the history was read.
    is_history_read: Cell<bool>,
}

/// The destination of a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Destination<'b> {
    /// Its wire format.
    pub(crate) wire: WireFormat,
    /// The server.
    pub(crate) server: Server,
    /// The model that receives it: the client's model takes precedence over the body's.
    pub(crate) model: Option<&'b str>,
    /// The headers of the request.
    pub(crate) headers: &'b ApiHeaders,
}

impl<'b> Subject<'b> {
    /// Returns a body with these members.
    pub(crate) fn new(
        destination: Destination<'b>,
        facts: &'b ModelFacts,
        members: impl IntoIterator<Item = (&'b str, &'b Value)>,
    ) -> Subject<'b> {
        let members: Vec<(&str, &Value)> = members.into_iter().collect();
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
            members,
            history: OnceCell::new(),
            seen: RefCell::default(),
            is_history_read: Cell::new(false),
        }
    }

    /// Returns a body with other members and the same destination.
    pub(crate) fn with_members<'o>(
        &'o self,
        members: impl Iterator<Item = (&'o str, &'o Value)>,
    ) -> Subject<'o>
    where
        'b: 'o,
    {
        let destination = Destination {
            wire: self.wire,
            server: self.server,
            model: self.model,
            headers: self.headers,
        };
        Subject::new(destination, self.facts, members)
    }

    /// Returns the level of a violation of a server's rules: an error if the body goes to this
    /// server, a warning if it goes to a gateway that may pass it on to it as the maker of the model,
    /// and otherwise `None`.
    pub(crate) fn level_of(&self, server: Server) -> Option<Severity> {
        if self.server == server {
            return Some(Severity::Error);
        }
        let model = self.model.filter(|_| self.may_be_passed_on())?;
        (Server::of_maker(model) == Some(server)).then_some(Severity::Warning)
    }

    /// Returns `true` if the server may pass the body on to the maker of the model. Names with
    /// capitals are those of published weights, which a server runs itself.
    fn may_be_passed_on(&self) -> bool {
        let is_gateway = match self.server {
            Server::OpenRouter => true,
            Server::Unknown => !self.headers.sites.iter().any(|site| site.runs_models()),
            _ => false,
        };
        let is_of_weights = self.model.is_some_and(|model| {
            model.contains('/') && model.contains(|c: char| c.is_ascii_uppercase())
        });
        is_gateway && !is_of_weights
    }

    /// Returns a member of the body; `null` counts as absent.
    pub(crate) fn member(&self, name: &str) -> Option<&'b Value> {
        self.note(name);
        self.find(name)
    }

    fn find(&self, name: &str) -> Option<&'b Value> {
        let found = self
            .members
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| *value);
        found.filter(|value| !value.is_null())
    }

    /// Returns a member of the body under either of two spellings, as Gemini accepts them.
    pub(crate) fn either(&self, camel: &str, snake: &str) -> Option<&'b Value> {
        self.member(camel).or_else(|| self.member(snake))
    }

    /// Returns the values at a place, in either of Gemini's spellings; `null` counts as absent.
    pub(crate) fn at(&self, place: &MemberPath) -> Vec<&'b Value> {
        place.find(self.wire.facts().has_two_spellings, |name| {
            self.member(name)
        })
    }

    /// Returns the members in order, for code that fixes or locates findings. Rules must not use
    /// it, because it does not record the reads.
    pub(crate) fn members(&self) -> impl Iterator<Item = (&'b str, &'b Value)> {
        self.members.iter().copied()
    }

    /// Returns the history, which is read on first use.
    pub(crate) fn history(&self) -> &History<'b> {
        member_of(self.wire)
            .into_iter()
            .for_each(|name| self.note(name));
        self.is_history_read.set(true);
        self.history
            .get_or_init(|| History::read(self.wire, |name| self.find(name)))
    }

    /// Returns the place of the history.
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

    /// Returns `true` if the server stores a part of the history.
    pub(crate) fn is_continued(&self) -> bool {
        let members = self.wire.facts().continued_by;
        members.iter().any(|name| self.member(name).is_some())
    }
}
