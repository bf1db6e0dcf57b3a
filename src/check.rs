//! Checks the content of bodies that are valid JSON.
//!
//! Input: a [`Body`] and its plan. Output: [`Problem`]s at JSON pointers, which the compiler turns
//! into findings at the corresponding source lines. `schema` validates against the JSON Schemas of
//! the wire formats; `protocol` checks the rules that schemas cannot express. Nothing here reads
//! files or prints.

mod facts;
pub(crate) mod history;
pub(crate) mod prefix;
pub(crate) mod schema;
mod subject;
pub(crate) mod families;
mod found;
pub(crate) mod protocol;
mod silence;

pub use families::check_families;
pub(crate) use found::Places;
pub use schema::{AgentSchemas, Schemas};

use std::cell::LazyCell;
use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use families::{ModelFacts, Route};
use schema::spelling;
use silence::{Known, RouteOf};
use subject::{Destination, Subject};

use crate::diag::{Rule, Severity};
use crate::json::Pointer;
use crate::memory::{Identity, Memory, Question};
use crate::provider::{ApiHeaders, ClientApi, MODEL_PLACEHOLDER, Server, WireFormat};
use crate::repo::{Family, Instance};
use crate::source::Span;
use crate::unit::{Body, Plan};

/// A problem at one location in a body.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// The rule that is broken.
    pub rule: &'static Rule,
    /// The severity of the problem, if it differs from the rule's default.
    pub severity: Option<Severity>,
    /// The location in the body.
    pub pointer: Pointer,
    /// The message: one lower-case phrase.
    pub message: String,
    /// Advice on how to fix the problem.
    pub help: Option<String>,
    /// A key that distinguishes problems reported by one rule at the same location. Formats,
    /// servers and models may place different requirements on the same value.
    pub sense: Option<String>,
    /// The aspect of the value that the problem concerns.
    pub(crate) about: About,
    /// The rule's sources that support this message; empty if any of the rule's sources may support
    /// it.
    pub(crate) sources: &'static [&'static str],
    /// `true` if the problem depends on the model, so the mistake may be the model's name.
    pub(crate) is_of_model: bool,
    /// The missing members that cause the problem, the most important one first.
    pub(crate) lacks: Vec<Pointer>,
    /// The location to fix, if it differs from the location where the value was written.
    pub place: Option<Span>,
}

/// The aspect of a value that a problem concerns. It determines which problems are redundant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// The presence of the value: the value must be removed, and its other problems disappear with
    /// it.
    Presence,
    /// The form of the value, as described by the schema.
    Form,
    /// The meaning of the value, in relation to other values or to a server.
    Meaning,
    /// The effect of the value: the server ignores it.
    Effect,
}

impl Problem {
    /// Returns the constant part of a message: drops quoted values, and replaces list indexes in
    /// pointers with `#`.
    pub(crate) fn words(message: &str) -> String {
        let parts = message.split('`').enumerate();
        let words = parts.map(|(index, part)| match index % 2 == 1 {
            true if part.starts_with('/') => without_numbers(part, '/'),
            true => String::new(),
            false => part.to_owned(),
        });
        words.collect::<Vec<_>>().join("`")
    }

    /// Returns `true` if the server accepts the value, but ignores it.
    pub(crate) fn is_ignored(&self) -> bool {
        self.about == About::Effect
    }

    /// Returns `true` if the problem is about the member's name rather than its value.
    pub fn is_about_key(&self) -> bool {
        self.rule.is_about_key
    }
}

/// Replaces the numbers between separators with `#`.
pub(crate) fn without_numbers(text: &str, separator: char) -> String {
    let parts: Vec<&str> = text
        .split(separator)
        .map(|part| if is_number(part) { "#" } else { part })
        .collect();
    parts.join(&separator.to_string())
}

fn is_number(part: &str) -> bool {
    !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit())
}

/// Drops redundant problems: schema problems inside a value that must be removed, and rule problems
/// about the form of a value that the schema already rejects.
fn drop_told(problems: &mut Vec<Problem>, of_schema: usize) {
    if problems.len() == of_schema {
        return;
    }
    let rules = problems[of_schema..]
        .iter()
        .filter(|problem| problem.about == About::Presence);
    let left_out: Vec<Pointer> = rules
        .filter(|problem| is_error(problem))
        .map(|it| it.pointer.clone())
        .collect();
    let schema = problems[..of_schema]
        .iter()
        .filter(|problem| is_error(problem))
        .filter(|problem| !is_left_out(problem, &left_out));
    let refused: HashSet<Pointer> = schema.map(|it| it.pointer.clone()).collect();
    let mut index = 0;
    problems.retain(|problem| {
        index += 1;
        match index <= of_schema {
            true => !is_left_out(problem, &left_out),
            false => {
                problem.about != About::Form
                    || !(refused.contains(&problem.pointer) || is_left_out(problem, &left_out))
            }
        }
    });
}

fn is_error(problem: &Problem) -> bool {
    problem.severity != Some(Severity::Warning)
}

fn is_left_out(problem: &Problem, left_out: &[Pointer]) -> bool {
    left_out
        .iter()
        .any(|value| problem.pointer.below(value).is_some())
}

/// The destination of a body that was built without a plan.
pub struct Recipient<'r> {
    /// The wire format.
    pub wire: WireFormat,
    /// The server that the body goes to.
    pub server: Server,
    /// The provider instance; its extra fields are accepted.
    pub instance: Option<(&'r Instance, ClientApi)>,
    /// The model, unless the body specifies one.
    pub model: Option<&'r str>,
    /// The headers of the request.
    pub headers: ApiHeaders,
}

/// The checks for all bodies with the same destination.
pub struct Checks {
    schemas: AgentSchemas,
    wire: WireFormat,
    server: Server,
    model: Option<String>,
    headers: ApiHeaders,
    families: Vec<Arc<Family>>,
    /// The known facts about `model`.
    facts: Arc<ModelFacts>,
    /// The cached results of the rules for this destination.
    known: OnceLock<Arc<Known>>,
}

/// The [`Question`] of which facts are known about a model at a destination.
#[derive(PartialEq, Eq, Hash)]
struct FactsOf {
    /// The schemas of the repository whose families contain the facts.
    schemas: Identity,
    wire: WireFormat,
    server: Server,
    headers: ApiHeaders,
    model: Option<String>,
}

impl Question for FactsOf {
    type Answer = Arc<ModelFacts>;
}

impl Checks {
    /// Returns the checks for a plan's bodies. `model` is the model that the client specifies.
    pub fn of(
        plan: &Plan<'_>,
        schemas: &Schemas,
        families: &[Arc<Family>],
        model: Option<&str>,
    ) -> Checks {
        let server = Server::of(plan.instance, plan.api);
        let headers = plan.api_headers();
        let checks = Checks {
            schemas: schemas
                .of(plan.wire, Some((plan.instance, plan.api)))
                .at(server, &headers),
            wire: plan.wire,
            server,
            model: Some(plan.model(model).to_owned()),
            headers,
            families: families.to_vec(),
            facts: Arc::default(),
            known: OnceLock::new(),
        };
        checks.with_facts(schemas)
    }

    /// Returns the checks for bodies that were built without a plan.
    pub fn of_recipient(schemas: &Schemas, families: &[Arc<Family>], to: Recipient<'_>) -> Checks {
        let Recipient {
            wire,
            server,
            instance,
            model,
            headers,
        } = to;
        let of_server = schemas
            .for_server(wire, Some(server), instance, &headers)
            .at(server, &headers);
        let (model, families) = (model.map(str::to_owned), families.to_vec());
        let (facts, known) = (Arc::default(), OnceLock::new());
        Checks {
            schemas: of_server,
            wire,
            server,
            model,
            headers,
            families,
            facts,
            known,
        }
        .with_facts(schemas)
    }

    fn with_facts(self, schemas: &Schemas) -> Checks {
        let asked = FactsOf {
            schemas: schemas.id(),
            wire: self.wire,
            server: self.server,
            headers: self.headers.clone(),
            model: self.model.clone(),
        };
        let facts = schemas
            .memory()
            .ask(asked, || Arc::new(self.facts_of(self.model.as_deref())));
        Checks { facts, ..self }
    }

    fn facts_of(&self, model: Option<&str>) -> ModelFacts {
        let route = Route {
            wire: self.wire,
            server: self.server,
            headers: &self.headers,
        };
        ModelFacts::of(
            &self.families,
            route,
            model.filter(|model| *model != MODEL_PLACEHOLDER),
        )
    }

    /// Returns the problems in a body: first those of its schema, in the schema's order.
    ///
    /// The body is not marked as checked, because a run's policy, which may lower findings, decides
    /// whether a body with problems can be used.
    pub fn problems(&self, body: &Body) -> Vec<Problem> {
        // The subject is built at most once, because a body can have as many problems as members.
        let subject = LazyCell::new(|| {
            self.subject(body.members().map(|member| (member.name, member.value())))
        });
        let schema::Verdict {
            mut problems,
            respelt,
        } = self
            .schemas
            .ask_of_body(body, &|proposal| self.facts.take(&subject, proposal));
        let of_schema = problems.len();
        match respelt {
            Some(respelt) => {
                let more = self.protocol_problems_of(&respelt, self.is_readable(&problems));
                problems.extend(at_places_of(body.value(), more));
            }
            None => {
                let is_readable = self.is_readable(&problems);
                problems.extend(self.protocol_problems(body, &subject, is_readable));
            }
        }
        drop_told(&mut problems, of_schema);
        problems
    }

    /// Returns the problems in a body that was built without a plan, like [`Checks::problems`].
    pub fn problems_of(&self, body: &Value) -> Vec<Problem> {
        let facts = self.facts_of_body(body);
        let facts = facts.as_ref().unwrap_or(&*self.facts);
        let subject = LazyCell::new(|| self.subject_of(body, facts));
        let schema::Verdict {
            mut problems,
            respelt,
        } = self
            .schemas
            .ask(body, &|proposal| facts.take(&subject, proposal));
        let of_schema = problems.len();
        let more = self.protocol_problems_of(
            respelt.as_ref().unwrap_or(body),
            self.is_readable(&problems),
        );
        problems.extend(if respelt.is_some() {
            at_places_of(body, more)
        } else {
            more
        });
        drop_told(&mut problems, of_schema);
        problems
    }

    /// Returns the facts about the model that a body specifies; `None` if the body specifies the
    /// client's model or no model at all.
    fn facts_of_body(&self, body: &Value) -> Option<ModelFacts> {
        let named = body.get("model").and_then(Value::as_str);
        named
            .filter(|named| self.model.as_deref() != Some(named))
            .map(|named| self.facts_of(Some(named)))
    }

    fn subject_of<'b>(&'b self, body: &'b Value, facts: &'b ModelFacts) -> Subject<'b> {
        let members = body
            .as_object()
            .into_iter()
            .flatten()
            .map(|(name, value)| (name.as_str(), value));
        let destination = self.destination();
        let model = body
            .get("model")
            .and_then(Value::as_str)
            .or(destination.model);
        Subject::new(
            Destination {
                model,
                ..destination
            },
            facts,
            members,
        )
    }

    /// Returns the protocol problems in a body that was built without a plan, or that was respelled
    /// for its schema.
    fn protocol_problems_of(&self, body: &Value, is_readable: bool) -> Vec<Problem> {
        let facts = self.facts_of_body(body);
        protocol::check(
            protocol::EVERY,
            &self.subject_of(body, facts.as_ref().unwrap_or(&*self.facts)),
            is_readable,
        )
    }

    /// Returns the protocol problems in a body. All rules first run on the shared values, which
    /// have a placeholder for the agent's own system prompt. Only the rules that find something
    /// there then run on this body's own values.
    fn protocol_problems(&self, body: &Body, own: &Subject<'_>, is_readable: bool) -> Vec<Problem> {
        let loud = body.memory().map(|memory| {
            self.known(memory).loud(
                body,
                || {
                    self.subject(
                        body.members()
                            .map(|member| (member.name, member.shared_value())),
                    )
                },
                memory,
            )
        });
        protocol::check(loud.unwrap_or(protocol::EVERY), own, is_readable)
    }

    /// Returns the cached results of the rules for this destination.
    fn known(&self, memory: &Memory) -> &Known {
        self.known.get_or_init(|| {
            let (wire, server, headers) = (self.wire, self.server, self.headers.clone());
            memory.ask(
                RouteOf {
                    wire,
                    server,
                    headers,
                    model: self.model.clone(),
                },
                || Arc::new(Known::new()),
            )
        })
    }

    /// Returns `true` if the history conforms to its schema.
    fn is_readable(&self, problems: &[Problem]) -> bool {
        let Some(name) = history::member_of(self.wire) else {
            return true;
        };
        !problems.iter().any(|problem| {
            problem.severity != Some(Severity::Warning) && is_in_history(problem, name)
        })
    }

    fn subject<'b>(&'b self, members: impl Iterator<Item = (&'b str, &'b Value)>) -> Subject<'b> {
        Subject::new(self.destination(), &self.facts, members)
    }

    fn destination(&self) -> Destination<'_> {
        Destination {
            wire: self.wire,
            server: self.server,
            model: self.model.as_deref(),
            headers: &self.headers,
        }
    }
}

fn is_in_history(problem: &Problem, name: &str) -> bool {
    problem
        .pointer
        .tokens()
        .next()
        .is_some_and(|token| token == name)
}

/// Moves problems of a respelled body to the matching locations in the original body.
fn at_places_of(body: &Value, problems: Vec<Problem>) -> Vec<Problem> {
    problems
        .into_iter()
        .map(|problem| Problem {
            pointer: spelling::original(problem.pointer.as_str(), body),
            ..problem
        })
        .collect()
}
