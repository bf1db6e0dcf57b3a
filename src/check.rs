//! Rules of content: what is wrong with a body that is valid JSON.
//!
//! Input: a [`Body`] and its plan. Output: [`Problem`]s at JSON pointers; the compiler turns them into findings at the
//! lines that wrote them. `schema` asks the JSON Schemas of wire formats, `protocol` what schemas cannot say. Nothing here reads
//! files or prints.

pub(crate) mod families;
mod found;
pub(crate) mod history;
pub(crate) mod prefix;
pub(crate) mod protocol;
pub(crate) mod schema;
mod subject;
mod taken;

pub use families::check_families;
pub(crate) use found::Places;
pub use schema::{AgentSchemas, Schemas};

use std::cell::LazyCell;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;

use families::{ModelFacts, Route};
use protocol::Scope;
use schema::spelling;
use subject::{Destination, Subject};

use crate::diag::{Rule, Severity};
use crate::json::Pointer;
use crate::provider::{ApiHeaders, ClientApi, MODEL_PLACEHOLDER, Server, WireFormat};
use crate::repo::{Family, Instance};
use crate::source::Span;
use crate::unit::{Body, CheckId, Followed, Kept, MemberRef, Plan};

/// Something wrong at a place of a body.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    /// The rule that is broken.
    pub rule: &'static Rule,
    /// How bad it is, if that is not as bad as the rule usually is.
    pub severity: Option<Severity>,
    /// Where in the body.
    pub pointer: Pointer,
    /// One lower-case phrase.
    pub message: String,
    /// The next step.
    pub help: Option<String>,
    /// What tells it apart from another problem of its rule at its place: formats, servers and models may ask different things of one
    /// value.
    pub sense: Option<String>,
    /// What of the value it is about.
    pub(crate) about: About,
    /// Whether it is one because of the model: what is wrong may be the model's name.
    pub(crate) is_of_model: bool,
    /// The members whose absence it is, the first that counts.
    pub(crate) lacks: Vec<Pointer>,
    /// Where it is to be mended, if that is not what wrote the value.
    pub place: Option<Span>,
}

/// What of a value a problem is about: of one value, one thing is told once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum About {
    /// That it is there at all: whatever else is wrong with it goes when it is left out.
    Presence,
    /// Its form, as the schema sees it.
    Form,
    /// What it means, beside other values or to a server.
    Meaning,
}

impl Problem {
    /// What a message says, whatever the values in it: without what it quotes, and with the places of lists left open in pointers.
    pub(crate) fn words(message: &str) -> String {
        let parts = message.split('`').enumerate();
        let words = parts.map(|(index, part)| match index % 2 == 1 {
            true if part.starts_with('/') => without_numbers(part, '/'),
            true => String::new(),
            false => part.to_owned(),
        });
        words.collect::<Vec<_>>().join("`")
    }

    /// Whether the problem is the member's name rather than its value.
    pub fn is_about_key(&self) -> bool {
        self.rule.is_about_key
    }
}

/// A text with the numbers between separators left out.
pub(crate) fn without_numbers(text: &str, separator: char) -> String {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<&str> = text.split(separator).map(|part| if is_number(part) { "#" } else { part }).collect();
    parts.join(&separator.to_string())
}

/// Drops what is told already: what the schema says inside a value that has to be left out, and what rules say of the form of values
/// that the schema refuses.
fn drop_told(problems: &mut Vec<Problem>, of_schema: usize) {
    if problems.len() == of_schema {
        return;
    }
    let is_error = |problem: &&Problem| problem.severity != Some(Severity::Warning);
    let rules = problems[of_schema..].iter().filter(|problem| problem.about == About::Presence);
    let left_out: Vec<Pointer> = rules.filter(is_error).map(|it| it.pointer.clone()).collect();
    let is_left_out = |problem: &Problem| left_out.iter().any(|value| problem.pointer.below(value).is_some());
    let schema = problems[..of_schema].iter().filter(is_error).filter(|problem| !is_left_out(problem));
    let refused: HashSet<Pointer> = schema.map(|it| it.pointer.clone()).collect();
    let mut index = 0;
    problems.retain(|problem| {
        index += 1;
        match index <= of_schema {
            true => !is_left_out(problem),
            false => problem.about != About::Form || !(refused.contains(&problem.pointer) || is_left_out(problem)),
        }
    });
}

/// Numbers of routes: what verdicts on histories and tools depend on beside these.
#[derive(Debug, Default)]
pub(crate) struct Routes(Mutex<HashMap<RouteKey, usize>>);

/// Wire format, server, version and beta features of the API, and model.
type RouteKey = (WireFormat, Server, ApiHeaders, Option<String>);

impl Routes {
    /// The numbers of a route. `None` beyond what can be counted: then everything is looked at.
    fn numbers(&self, key: RouteKey) -> Option<RouteIds> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let next = known.len();
        let first = 3 * *known.entry(key).or_insert(next);
        let id = |more: usize| u16::try_from(first + more).ok().map(CheckId);
        Some(RouteIds { whole: id(0)?, continued: id(1)?, tools: id(2)? })
    }
}

/// What stands for the rules of a route, where they look at one value alone.
#[derive(Debug, Clone, Copy)]
struct RouteIds {
    /// At a history that is whole.
    whole: CheckId,
    /// At one of which the server holds a part.
    continued: CheckId,
    /// At tools.
    tools: CheckId,
}

/// Where a body goes that no plan made.
pub struct Recipient<'r> {
    /// The wire format.
    pub wire: WireFormat,
    /// The server.
    pub server: Server,
    /// The provider instance, whose fields are taken too.
    pub instance: Option<(&'r Instance, ClientApi)>,
    /// The model, unless the body names it.
    pub model: Option<&'r str>,
    /// The headers that the request has.
    pub headers: ApiHeaders,
}

/// What bodies that go to one place are checked by.
pub struct Checks {
    schemas: AgentSchemas,
    wire: WireFormat,
    server: Server,
    model: Option<String>,
    headers: ApiHeaders,
    families: Vec<Arc<Family>>,
    /// What is known of `model`.
    facts: ModelFacts,
    /// What verdicts on histories and tools depend on beside these.
    ids: Option<RouteIds>,
    /// The members beside the conversation in which no rule found anything, as the last bodies held them.
    options: Mutex<Vec<KnownOptions>>,
}

/// Members beside the conversation in which no rule finds anything.
struct KnownOptions {
    members: Vec<Kept>,
    /// Whether the schemas take each of them too.
    are_right: bool,
}

/// The most sets of members that are remembered: contexts differ in their tools, for instance.
const MOST_OPTIONS: usize = 16;

impl Checks {
    /// The checks of a plan; `model` is the one that the client names.
    pub fn of(plan: &Plan<'_>, schemas: &Schemas, families: &[Arc<Family>], model: Option<&str>) -> Checks {
        let server = Server::of(plan.instance, plan.api);
        let checks = Checks {
            schemas: schemas.of(plan.wire, Some((plan.instance, plan.api))).at(server),
            wire: plan.wire,
            server,
            model: Some(plan.model(model).to_owned()),
            headers: plan.api_headers(),
            families: families.to_vec(),
            facts: ModelFacts::default(),
            ids: None,
            options: Mutex::default(),
        };
        let key = (checks.wire, server, checks.headers.clone(), checks.model.clone());
        Checks { ids: schemas.routes.numbers(key), ..checks.with_facts() }
    }

    /// The checks of bodies that no plan made.
    pub fn of_recipient(schemas: &Schemas, families: &[Arc<Family>], to: Recipient<'_>) -> Checks {
        let Recipient { wire, server, instance, model, headers } = to;
        let schemas = schemas.for_server(wire, Some(server), instance).at(server);
        let (model, families) = (model.map(str::to_owned), families.to_vec());
        let (facts, options) = (ModelFacts::default(), Mutex::default());
        Checks { schemas, wire, server, model, headers, families, facts, ids: None, options }.with_facts()
    }

    fn with_facts(self) -> Checks {
        let facts = self.facts_of(self.model.as_deref());
        Checks { facts, ..self }
    }

    fn facts_of(&self, model: Option<&str>) -> ModelFacts {
        let route = Route { wire: self.wire, server: self.server, headers: &self.headers };
        ModelFacts::of(&self.families, route, model.filter(|model| *model != MODEL_PLACEHOLDER))
    }

    /// What is wrong with a body: what its schema does not take first, in the order of the schema.
    ///
    /// A body is not marked as checked: whether one with problems may be used is decided by the policy of a run, which may
    /// lower what was found.
    pub fn problems(&self, body: &Body) -> Vec<Problem> {
        let known = self.known_options(body);
        let asked = known.filter(|are_right| *are_right).map(|_| history::members_of_conversation(self.wire));
        // Made once: a body may have as many problems as members.
        let subject = LazyCell::new(|| {
            let members = body.members().map(|member| (member.name, member.value()));
            Subject::new(self.destination(), &self.facts, members)
        });
        let schema::Verdict { mut problems, respelt } =
            self.schemas.ask_of_body(body, asked, &|proposal| self.facts.take(&subject, proposal));
        let of_schema = problems.len();
        match respelt {
            Some(respelt) => {
                let more = self.protocol_problems_of(&respelt, self.is_readable(&problems));
                problems.extend(at_places_of(body.value(), more));
            }
            None => {
                let accepts_options = || known.is_some() || self.accepts_options(body, of_schema == 0);
                problems.extend(self.protocol_problems(body, self.is_readable(&problems), accepts_options));
            }
        }
        drop_told(&mut problems, of_schema);
        problems
    }

    /// As [`Checks::problems`], of a body that no plan made.
    pub fn problems_of(&self, body: &Value) -> Vec<Problem> {
        let facts = self.facts_of_body(body);
        let facts = facts.as_ref().unwrap_or(&self.facts);
        let subject = LazyCell::new(|| self.subject_of(body, facts));
        let schema::Verdict { mut problems, respelt } =
            self.schemas.ask(body, &|proposal| facts.take(&subject, proposal));
        let of_schema = problems.len();
        let more = self.protocol_problems_of(respelt.as_ref().unwrap_or(body), self.is_readable(&problems));
        problems.extend(if respelt.is_some() { at_places_of(body, more) } else { more });
        drop_told(&mut problems, of_schema);
        problems
    }

    /// What is known of the model that a body names, if it is another one than the client's.
    fn facts_of_body(&self, body: &Value) -> Option<ModelFacts> {
        let named = body.get("model").and_then(Value::as_str);
        named.filter(|named| self.model.as_deref() != Some(named)).map(|named| self.facts_of(Some(named)))
    }

    fn subject_of<'b>(&'b self, body: &'b Value, facts: &'b ModelFacts) -> Subject<'b> {
        let members = body.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value));
        let destination = self.destination();
        let model = body.get("model").and_then(Value::as_str).or(destination.model);
        Subject::new(Destination { model, ..destination }, facts, members)
    }

    /// What the rules of protocols find in a body that no plan made, or that its schema spells in another way.
    fn protocol_problems_of(&self, body: &Value, is_readable: bool) -> Vec<Problem> {
        let facts = self.facts_of_body(body);
        let subject = self.subject_of(body, facts.as_ref().unwrap_or(&self.facts));
        let history: &[Scope] = if is_readable { &[Scope::History] } else { &[] };
        let mut problems = protocol::check(&subject, history);
        problems.extend(protocol::check(&subject, Scope::OF_OTHERS));
        problems
    }

    /// Whether the history is what its schema says. In one that is not, calls and results may not even be recognised: what
    /// rules would find there has its cause in what the schema found.
    fn is_readable(&self, problems: &[Problem]) -> bool {
        let Some(name) = history::member_of(self.wire) else { return true };
        let is_in_history = |problem: &Problem| problem.pointer.tokens().next().is_some_and(|token| token == name);
        !problems.iter().any(|problem| problem.severity != Some(Severity::Warning) && is_in_history(problem))
    }

    /// What the rules of protocols find. They look at values as bodies share them, with a placeholder for an agent's own
    /// system prompt; only where something is found there, at the values of this body.
    fn protocol_problems(
        &self,
        body: &Body,
        is_readable: bool,
        accepts_options: impl FnOnce() -> bool,
    ) -> Vec<Problem> {
        let subject = |is_shared: bool| {
            let members = body.members().map(|member| (member.name, value_of(member, is_shared)));
            Subject::new(self.destination(), &self.facts, members)
        };
        let history = body.members().find(|member| Some(member.name) == history::member_of(self.wire));
        let followed = history.and_then(|member| member.followed()).filter(|_| is_readable);
        let followed = followed.zip(self.history_id(body));
        let is_known = !is_readable || followed.is_some_and(|(followed, id)| followed.alone.is_noted(id));
        let of_history = !is_known && !protocol::check(&subject(true), &[Scope::History]).is_empty();
        if let Some((followed, id)) = followed.filter(|_| !of_history) {
            followed.alone.note(id);
        }
        if !of_history && accepts_options() && self.accepts_conversation(body, followed) {
            return Vec::new();
        }
        let own = subject(false);
        let mut problems = if is_known { Vec::new() } else { protocol::check(&own, &[Scope::History]) };
        problems.extend(protocol::check(&own, Scope::OF_OTHERS));
        problems
    }

    /// What the verdict on the history of a body depends on beside it.
    fn history_id(&self, body: &Body) -> Option<CheckId> {
        let ids = self.ids?;
        let is_there = |name: &str| body.members().any(|member| member.name == name && !member.value().is_null());
        Some(if subject::is_continued(self.wire, is_there) { ids.continued } else { ids.whole })
    }

    /// Whether nothing is found by the rules that look at the history and some members beside it.
    fn accepts_conversation(&self, body: &Body, followed: Option<(&Followed, CheckId)>) -> bool {
        let is_history = |member: &MemberRef<'_>| Some(member.name) == history::member_of(self.wire);
        let seen = protocol::beside_history(self.wire);
        let is_beside = |member: &MemberRef<'_>| seen.contains(&member.name);
        let (history, others): (Vec<_>, Vec<_>) = body.members().partition(is_history);
        let beside: Vec<_> = others.into_iter().filter(is_beside).collect();
        if followed.is_some_and(|(followed, id)| followed.is_noted(id, &beside)) {
            return true;
        }
        let members = history.iter().chain(&beside).map(|member| (member.name, member.shared_value()));
        let subject = Subject::new(self.destination(), &self.facts, members);
        let is_accepted = protocol::check(&subject, &[Scope::Body]).is_empty();
        if let Some((followed, id)) = followed.filter(|_| is_accepted) {
            followed.note(id, &beside);
        }
        is_accepted
    }

    /// How many sets of members beside the conversation were looked at, of those in which nothing was found.
    #[cfg(test)]
    pub(crate) fn looked_at(&self) -> usize {
        self.options.lock().expect("not poisoned").len()
    }

    /// The members of a body beside the conversation.
    fn options<'b>(&self, body: &'b Body) -> impl Iterator<Item = MemberRef<'b>> {
        let of_conversation = history::members_of_conversation(self.wire);
        body.members().filter(|member| !of_conversation.contains(&member.name))
    }

    /// Whether schemas take each of the members beside the conversation, if it is known that rules find nothing in them: most bodies
    /// of an agent share them.
    fn known_options(&self, body: &Body) -> Option<bool> {
        let known = self.options.lock().unwrap_or_else(PoisonError::into_inner);
        let same = known.iter().find(|known| MemberRef::are_kept(self.options(body), &known.members))?;
        Some(same.are_right)
    }

    /// Whether nothing is found in the members beside the conversation, by what they alone decide; `are_right` if schemas take them.
    fn accepts_options(&self, body: &Body, are_right: bool) -> bool {
        let of_conversation = history::members_of_conversation(self.wire);
        // What is known of a model may be about its conversation.
        let is_apart = !of_conversation.iter().any(|name| self.facts.speak_of(self.wire, name));
        let members: Vec<_> = if is_apart { self.options(body).collect() } else { body.members().collect() };
        let members = members.into_iter().map(|member| (member.name, member.shared_value()));
        let subject = Subject::new(self.destination(), &self.facts, members);
        let is_accepted = self.accepts_tools(body) && protocol::check(&subject, &[Scope::Options]).is_empty();
        let kept: Option<Vec<Kept>> = self.options(body).map(|member| member.keep()).collect();
        // Schemas may tell one system prompt from another, rules do not look at it here.
        let are_right = are_right && self.options(body).all(|member| member.prompt().is_none());
        if let Some(members) = kept.filter(|_| is_accepted && is_apart) {
            let mut known = self.options.lock().unwrap_or_else(PoisonError::into_inner);
            if known.len() < MOST_OPTIONS {
                known.push(KnownOptions { members, are_right });
            }
        }
        is_accepted
    }

    /// Whether nothing is found in the tools alone.
    fn accepts_tools(&self, body: &Body) -> bool {
        let Some(tools) = body.members().find(|member| member.name == "tools") else { return true };
        let followed = tools.followed().zip(self.ids);
        if followed.is_some_and(|(followed, ids)| followed.alone.is_noted(ids.tools)) {
            return true;
        }
        let subject = Subject::new(self.destination(), &self.facts, [(tools.name, tools.shared_value())]);
        let is_accepted = protocol::check(&subject, &[Scope::Tools]).is_empty();
        if let Some((followed, ids)) = followed.filter(|_| is_accepted) {
            followed.alone.note(ids.tools);
        }
        is_accepted
    }

    fn destination(&self) -> Destination<'_> {
        Destination { wire: self.wire, server: self.server, model: self.model.as_deref() }
    }
}

/// Problems of a respelt body, at the places of the body as it was written.
fn at_places_of(body: &Value, problems: Vec<Problem>) -> Vec<Problem> {
    problems
        .into_iter()
        .map(|problem| Problem { pointer: spelling::original(problem.pointer.as_str(), body), ..problem })
        .collect()
}

fn value_of(member: MemberRef<'_>, is_shared: bool) -> &Value {
    if is_shared { member.shared_value() } else { member.value() }
}
