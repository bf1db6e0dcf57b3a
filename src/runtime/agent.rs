//! An agent that can send requests: the compiler's plan, an environment for its prompts, and a
//! model.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use serde_json::Value;
use tokio::sync::oneshot;

use super::content::{self, ContentLoader};
use super::installed::{InstalledModel, ModelList};
use super::transport::{Outgoing, Transport};
use super::{Category, Error};
use crate::check::prefix::sent;
use crate::compile::live::{Live, LiveBody};
use crate::compile::route::Router;
use crate::compile::{
    Compiler, PolicyOptions, PromptEnvironment, Reporter, STACK_BYTES, Selection,
};
use crate::conversation::log::Sent;
use crate::conversation::{Conversation, TaskKind, Usage};
use crate::diag::{Diagnostic, Severity, did_you_mean};
use crate::provider::{
    ClientApi, HeaderValue, MODEL_PLACEHOLDER, RequestLine, UrlParts, WireFormat, breakpoints_of,
    is_in_the_clear,
};
use crate::repo::{Kept, Price};
use crate::resolve::ProfileId;
use crate::tokens::TokenEstimate;
use crate::unit::{Body, Plan};

/// An agent in a repository, ready to compile requests. Cheap to clone.
#[derive(Clone)]
pub struct Agent {
    compiler: Arc<Compiler>,
    id: ProfileId,
    name: Arc<str>,
    /// The wire format of the agent's requests, cached because determining it requires a merged
    /// profile.
    wire: WireFormat,
    environment: PromptEnvironment,
    model: Option<Arc<str>>,
    policy: Option<Arc<PolicyOptions>>,
    content: Option<Arc<dyn ContentLoader>>,
    /// The latest checked request, reused by the session that sends it next.
    ahead: Arc<Mutex<Option<Ahead>>>,
}

/// A request that was checked in advance, with its conversation and system prompt.
struct Ahead {
    conversation: Conversation,
    checked: Checked,
}

/// A compiled request and the findings about it.
type Checked = (Compiled, Vec<Diagnostic>);

/// A compiled request, exactly as it will be sent except for the key.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Compiled {
    /// Method, URL and headers.
    pub line: RequestLine,
    /// The URL with `${MODEL}` in place of the model, unless the model's name would change the
    /// meaning of the URL.
    pub target: String,
    /// The request body.
    pub body: Body,
    /// The client API.
    pub api: ClientApi,
    /// The wire format.
    pub wire: WireFormat,
    /// The provider instance's name.
    pub instance: Arc<str>,
    /// The model's name.
    model: Arc<str>,
    /// The price of the model's tokens, if known, and the cache lifetime that the body asks for.
    price: Option<(Price, Kept)>,
}

impl Compiled {
    /// Returns the estimated number of tokens in the request, by part.
    pub fn estimate(&self) -> TokenEstimate {
        TokenEstimate::of(self.body.value(), self.wire, &self.model)
    }

    /// Returns the cost of an answer in US dollars, computed from its token counts; `None` if a
    /// required price is unknown.
    pub fn cost(&self, usage: &Usage) -> Option<f64> {
        let (price, kept) = self.price.as_ref()?;
        price.cost(usage, *kept)
    }
}

impl Outgoing for Compiled {
    fn line(&self) -> &RequestLine {
        &self.line
    }

    fn instance(&self) -> &str {
        &self.instance
    }

    fn body(&self) -> Bytes {
        Bytes::from(self.body.compact())
    }
}

/// Returns the cache lifetime that a body asks for; `None` if the body asks for a service tier with
/// separate prices.
fn kept(body: &Value) -> Option<Kept> {
    let is_special = body.get("service_tier").is_some_and(|tier| !is_usual(tier))
        || ["speed", "inference_geo", "prompt_cache_retention"]
            .iter()
            .any(|key| body.get(key).is_some());
    if is_special {
        return None;
    }
    let marks = breakpoints_of(body);
    let (hours, defaults) = (
        marks.iter().filter(|mark| mark["ttl"] == "1h").count(),
        marks
            .iter()
            .filter(|mark| mark.get("ttl").is_none_or(|ttl| ttl == "5m"))
            .count(),
    );
    Some(match (hours, defaults) {
        (0, defaults) if defaults == marks.len() => Kept::Default,
        (hours, _) if hours == marks.len() => Kept::Hour,
        _ => Kept::Mixed,
    })
}

fn is_usual(tier: &Value) -> bool {
    matches!(
        tier.as_str(),
        Some("default" | "standard" | "standard_only")
    )
}

/// A session's compiled request, and the data that the session keeps about it.
pub(super) struct Made {
    pub(super) compiled: Compiled,
    /// The system prompt, for a chat.
    pub(super) prompt: Option<Arc<str>>,
    /// The digest of the request, if the model may bind thinking in its answer to the request.
    pub(super) sent: Option<Sent>,
    /// `true` if the request still begins with the text to which thinking in the history is bound.
    pub(super) is_bound: bool,
    /// The estimated number of tokens.
    pub(super) tokens: u64,
}

/// The reason a request could not be compiled.
///
/// If `main` returns this error, its [`Display`](fmt::Display) form is printed, because the `Debug`
/// form is the same. `{:#?}` prints the findings.
#[non_exhaustive]
pub enum CompileError {
    /// The agent or its templates have errors; the findings contain their locations.
    Findings(Vec<Diagnostic>),
    /// No model is specified. Contains the agent's name.
    NoModel(Arc<str>),
    /// The agent does not support this kind of conversation.
    WrongKind {
        /// The agent's name.
        agent: Arc<str>,
        /// The kind that the agent supports.
        wants: TaskKind,
    },
    /// Stored content cannot be loaded.
    Content(Box<Error>),
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::Findings(findings) => {
                f.write_str(NOT_COMPILED)?;
                findings
                    .first()
                    .map_or(Ok(()), |first| write!(f, ": {}", first.message))?;
                match findings.len() {
                    0 | 1 => Ok(()),
                    more => write!(f, " (+{})", more - 1),
                }
            }
            CompileError::NoModel(agent) => write!(f, "no model for `{agent}`"),
            CompileError::Content(error) => f.write_str(&error.message),
            CompileError::WrongKind { agent, wants } => {
                write!(f, "`{agent}` is a {} agent", wants.name())
            }
        }
    }
}

impl fmt::Debug for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CompileError::Findings(findings) if f.alternate() => {
                f.debug_tuple("Findings").field(findings).finish()
            }
            _ => fmt::Display::fmt(self, f),
        }
    }
}

impl std::error::Error for CompileError {}

const NOT_COMPILED: &str = "the request could not be compiled";

impl Agent {
    /// Returns the agent with this name.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such agent or it cannot be compiled. The detail contains the
    /// likely causes; [`Compiler::findings`] contains all findings of the repository.
    pub fn new(
        compiler: Arc<Compiler>,
        name: &str,
        environment: PromptEnvironment,
    ) -> Result<Agent, Error> {
        let usable = compiler
            .agents()
            .iter()
            .filter(|(_, usable)| *usable)
            .map(|(id, _)| *id);
        match usable.clone().find(|&id| **named(id, &compiler) == *name) {
            Some(id) => {
                let name = Arc::clone(named(id, &compiler));
                let wire = compiler.plan(id).expect("it is usable").wire;
                Ok(Agent {
                    compiler,
                    id,
                    name,
                    wire,
                    environment,
                    model: None,
                    policy: None,
                    content: None,
                    ahead: Arc::default(),
                })
            }
            None => {
                let help = did_you_mean(name, usable.map(|id| named(id, &compiler).as_ref()));
                Err(unusable(&compiler, name, help))
            }
        }
    }

    /// Sets the model, overriding `models.toml` and the profile.
    #[must_use]
    pub fn with_model(mut self, model: Option<impl Into<Arc<str>>>) -> Agent {
        self.model = model.map(Into::into);
        self.ahead = Arc::default();
        self
    }

    /// Sets a policy. Every request of a session is then checked before it is sent, including those
    /// after tool results. A request with an error under this policy is not sent, and fails with
    /// [`Category::Config`].
    #[must_use]
    pub fn checked(mut self, policy: PolicyOptions) -> Agent {
        self.policy = Some(Arc::new(policy));
        self
    }

    /// Sets a loader for the [stored content](crate::conversation::Block::Stored) of conversations.
    #[must_use]
    pub fn with_content(mut self, loader: Arc<dyn ContentLoader>) -> Agent {
        self.content = Some(loader);
        self.ahead = Arc::default();
        self
    }

    fn loaded(&self, conversation: Conversation) -> Result<Conversation, CompileError> {
        content::loaded(conversation, self.content.as_deref())
            .map_err(|error| CompileError::Content(Box::new(error)))
    }

    /// Returns the agent's name.
    pub fn name(&self) -> &Arc<str> {
        &self.name
    }

    /// Asks the agent's server for its models, and returns each with the known facts about it.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`ModelList::fetch`].
    pub async fn installed_models(
        &self,
        transport: &Transport,
    ) -> Result<Vec<InstalledModel>, Error> {
        self.model_list().fetch(transport).await
    }

    /// Returns the request for the server's list of models.
    pub fn model_list(&self) -> ModelList {
        let plan = self
            .compiler
            .plan(self.id)
            .expect("only usable agents are created");
        ModelList::new(
            plan.instance,
            plan.api,
            self.compiler.repo().families.clone(),
        )
    }

    /// Returns the wire format of the agent's requests.
    pub(super) fn wire(&self) -> WireFormat {
        self.wire
    }

    /// Returns `true` if two agents make identical requests because they have the same compiler,
    /// model, policy and environment.
    pub(super) fn is_same(&self, other: &Agent) -> bool {
        let policies = (
            self.policy.as_ref().map(Arc::as_ptr),
            other.policy.as_ref().map(Arc::as_ptr),
        );
        Arc::ptr_eq(&self.compiler, &other.compiler)
            && (self.id, &self.model) == (other.id, &other.model)
            && policies.0 == policies.1
            && self.environment.is_same(&other.environment)
    }

    /// Returns the compiler of the agent's repository.
    pub fn compiler(&self) -> &Arc<Compiler> {
        &self.compiler
    }

    /// Normalises a conversation, and compiles the request for it.
    ///
    /// # Errors
    ///
    /// Returns an error if a template fails for this conversation, or if no model is specified.
    pub fn compile(&self, conversation: Conversation) -> Result<Compiled, CompileError> {
        let (plan, model) = self.plan_for(&conversation)?;
        let conversation = self.loaded(conversation)?;
        let body = Live::new(&self.compiler, &plan).body(conversation, &self.environment, model);
        Ok(self.compiled(&plan, model, body.map_err(CompileError::Findings)?))
    }

    /// Estimates the number of tokens in the request for a conversation, by part.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Agent::compile`].
    pub fn estimate(&self, conversation: Conversation) -> Result<TokenEstimate, Error> {
        let compiled = self
            .compile(conversation)
            .map_err(|error| error.into_error(&self.compiler))?;
        Ok(compiled.estimate())
    }

    /// Returns the agent that compresses this agent's chats: the first agent in the roster
    /// `chat_compression` or, in a repository without that roster, the first agent with the tag
    /// `compression` and the same provider instance. The returned agent uses this agent's model,
    /// unless the repository specifies a model for the returned agent.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such agent.
    pub fn compression_agent(&self) -> Result<Agent, Error> {
        let id = Router::new(&self.compiler).compression_agent(self.id).ok_or_else(|| {
            let message = format!("no agent compresses the chats of `{}`", self.name);
            let help =
                "name one in the roster `chat_compression` of rosters.toml; agents of this roster need no file patterns";
            Error::new(Category::Config, message).detail(help)
        })?;
        let plan = self
            .compiler
            .plan(id)
            .expect("it was routed to, or has a plan");
        let has_model = self
            .compiler
            .repo()
            .client_model(plan.name(), None)
            .or(plan.default_model())
            .is_some();
        let model = self.model.clone().filter(|_| !has_model);
        let (name, wire) = (Arc::clone(plan.name()), plan.wire);
        let (compiler, environment) = (Arc::clone(&self.compiler), self.environment.clone());
        let (policy, content) = (self.policy.clone(), self.content.clone());
        Ok(Agent {
            compiler,
            id,
            name,
            wire,
            environment,
            model,
            policy,
            content,
            ahead: Arc::default(),
        })
    }

    /// Returns the model's context window in tokens; `None` if `model-families.toml` does not
    /// contain it.
    pub fn context_window(&self) -> Option<u64> {
        let plan = self
            .compiler
            .plan(self.id)
            .expect("only usable agents are created");
        let model = self
            .compiler
            .repo()
            .client_model(plan.name(), self.model.as_deref());
        Live::new(&self.compiler, &plan).context_window(model)
    }

    /// Compiles a body and returns it with its findings. Unlike separate calls to
    /// [`Agent::compile`] and [`Agent::findings`], it compiles the body only once. If a session of
    /// this agent sends the same request next, the session reuses the result. Conversely, this
    /// method reuses the result of [`SessionStart::preview`](super::SessionStart::preview).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Agent::compile`].
    pub fn compile_and_check(
        &self,
        conversation: Conversation,
    ) -> Result<(Compiled, Vec<Diagnostic>), CompileError> {
        if let Some(checked) = self.known_request(&conversation) {
            *self.ahead() = Some(Ahead {
                conversation,
                checked: checked.clone(),
            });
            return Ok(checked);
        }
        let asked = conversation.clone();
        let (checked, prompt) = self.checked_request(conversation)?;
        if self.depends_on_prompt_alone(&asked) {
            let conversation = Conversation {
                known_prompt: Some(prompt),
                ..asked
            };
            *self.ahead() = Some(Ahead {
                conversation,
                checked: checked.clone(),
            });
        }
        Ok(checked)
    }

    /// Compiles a request, and returns it with its findings and its system prompt.
    fn checked_request(
        &self,
        conversation: Conversation,
    ) -> Result<(Checked, Arc<str>), CompileError> {
        let (plan, model) = self.plan_for(&conversation)?;
        let conversation = self.loaded(conversation)?;
        let checked = Live::new(&self.compiler, &plan).body_and_findings(
            conversation,
            &self.environment,
            model,
        );
        let LiveBody {
            body,
            findings,
            prompt,
            ..
        } = checked.map_err(CompileError::Findings)?;
        Ok(((self.compiled(&plan, model, body), findings), prompt))
    }

    /// Returns `true` if the request for a conversation no longer depends on the project once the
    /// system prompt is known.
    fn depends_on_prompt_alone(&self, conversation: &Conversation) -> bool {
        let plan = self
            .compiler
            .plan(self.id)
            .expect("only usable agents are created");
        plan.kind == TaskKind::Chat && (conversation.is_told || plan.surroundings.is_none())
    }

    fn ahead(&self) -> MutexGuard<'_, Option<Ahead>> {
        self.ahead.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the latest checked request out of the cache, and returns it if it is for this
    /// conversation.
    fn known_request(&self, conversation: &Conversation) -> Option<Checked> {
        let known = self
            .ahead()
            .take()
            .filter(|known| known.conversation == *conversation);
        known.map(|known| known.checked)
    }

    /// Returns the plan and the model for a conversation; the model is `None` if none is specified.
    fn plan_for(
        &self,
        conversation: &Conversation,
    ) -> Result<(Plan<'_>, Option<&str>), CompileError> {
        let plan = self
            .compiler
            .plan(self.id)
            .expect("only usable agents are created");
        if plan.kind != conversation.kind() {
            return Err(CompileError::WrongKind {
                agent: Arc::clone(&self.name),
                wants: plan.kind,
            });
        }
        let model = self
            .compiler
            .repo()
            .client_model(plan.name(), self.model.as_deref());
        if plan.carries_model() && model.or(plan.default_model()).is_none() {
            return Err(CompileError::NoModel(Arc::clone(&self.name)));
        }
        Ok((plan, model))
    }

    /// Renders the agent's surroundings. Returns `None` if the profile has no `surroundings` or is
    /// for completions. If the result is `Some`, even with an empty string, attached files also
    /// become messages.
    ///
    /// # Errors
    ///
    /// Returns the template error.
    pub(super) fn surroundings(&self, is_omitted: bool) -> Result<Option<Arc<str>>, Error> {
        // Templates may be nested more deeply than the stacks of async workers allow.
        std::thread::scope(|scope| {
            let builder = std::thread::Builder::new()
                .name("reqc-compile".into())
                .stack_size(STACK_BYTES);
            let work = builder.spawn_scoped(scope, || self.rendered_surroundings(is_omitted));
            match work.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(told)) => told,
                _ => Err(Error::new(
                    Category::Config,
                    "compiling the request panicked",
                )),
            }
        })
    }

    /// Renders the agent's surroundings on the current thread.
    fn rendered_surroundings(&self, is_omitted: bool) -> Result<Option<Arc<str>>, Error> {
        let plan = self
            .compiler
            .plan(self.id)
            .expect("only usable agents are created");
        let told =
            Live::new(&self.compiler, &plan).said_of_surroundings(&self.environment, is_omitted);
        told.map_err(|finding| CompileError::Findings(vec![*finding]).into_error(&self.compiler))
    }

    /// Adds the system prompt to a conversation, rendering it unless it is already known.
    fn with_prompt(&self, conversation: Conversation) -> Result<Conversation, CompileError> {
        if conversation.known_prompt.is_some() || conversation.kind() != TaskKind::Chat {
            return Ok(conversation);
        }
        let (plan, _) = self.plan_for(&conversation)?;
        let prompt = Live::new(&self.compiler, &plan)
            .prompt(&conversation, &self.environment)
            .map_err(CompileError::Findings)?;
        Ok(Conversation {
            known_prompt: Some(prompt),
            ..conversation
        })
    }

    /// Returns the findings that schemas and rules report for a request, each at the line that
    /// wrote the value. No policy is applied.
    pub fn findings(&self, conversation: Conversation) -> Vec<Diagnostic> {
        let plan = self
            .compiler
            .plan(self.id)
            .expect("only usable agents are created");
        let model = self
            .compiler
            .repo()
            .client_model(plan.name(), self.model.as_deref());
        Live::new(&self.compiler, &plan).findings(conversation, &self.environment, model)
    }

    /// Compiles the request for a conversation, and returns an error if the agent's policy forbids
    /// one of its findings.
    fn compile_checked(&self, conversation: Conversation) -> Result<Compiled, Error> {
        let (compiled, found) = match (self.known_request(&conversation), &self.policy) {
            (Some(known), _) => known,
            (None, None) => {
                return self
                    .compile(conversation)
                    .map_err(|error| error.into_error(&self.compiler));
            }
            (None, Some(_)) => {
                let checked = self.checked_request(conversation);
                checked.map_err(|error| error.into_error(&self.compiler))?.0
            }
        };
        match self
            .policy
            .as_ref()
            .and_then(|policy| self.refusal(policy, found))
        {
            Some(refusal) => Err(refusal),
            None => Ok(compiled),
        }
    }

    /// Returns an error if any finding is an error under the policy, because the request must not
    /// be sent.
    fn refusal(&self, policy: &PolicyOptions, found: Vec<Diagnostic>) -> Option<Error> {
        let compiler = &self.compiler;
        let report = Reporter::new(compiler, &Selection::default(), policy)
            .of(compiler.sources().clone(), found);
        let first = report
            .findings
            .iter()
            .find(|finding| finding.severity == Severity::Error)?;
        Some(
            Error::new(
                Category::Config,
                "the request was not sent because it has errors",
            )
            .detail(told(compiler, first)),
        )
    }

    /// Calls [`Agent::compile_checked`] on a separate thread, because templates may be nested more
    /// deeply than the stacks of async workers allow. `bound_to` is the digest of the request to
    /// which thinking in the history is bound.
    pub(super) async fn compile_apart(
        &self,
        conversation: Conversation,
        bound_to: Option<Sent>,
    ) -> Result<Made, Error> {
        let (sender, receiver) = oneshot::channel();
        let agent = self.clone();
        let spawned = std::thread::Builder::new()
            .name("reqc-compile".into())
            .stack_size(STACK_BYTES)
            .spawn(move || {
                let compiled = agent
                    .with_prompt(conversation)
                    .map_err(|error| error.into_error(&agent.compiler))
                    .and_then(|conversation| {
                        let prompt = conversation.known_prompt.clone();
                        let compiled = agent.compile_checked(conversation)?;
                        let sent = compiled
                            .wire
                            .binds_thinking()
                            .then(|| sent::sent(&compiled.body));
                        let is_bound =
                            bound_to.is_none_or(|earlier| agent.keeps_bound(&compiled, &earlier));
                        let tokens = compiled.estimate().total();
                        Ok(Made {
                            compiled,
                            prompt,
                            sent,
                            is_bound,
                            tokens,
                        })
                    });
                // If the request was cancelled, no receiver is left.
                let _ = sender.send(compiled);
            });
        spawned.map_err(|error| {
            Error::new(
                Category::Config,
                format!("cannot start a thread for compiling: {error}"),
            )
        })?;
        receiver.await.unwrap_or_else(|_| {
            Err(Error::new(
                Category::Config,
                "compiling the request panicked",
            ))
        })
    }
}

fn named(id: ProfileId, compiler: &Arc<Compiler>) -> &Arc<str> {
    &compiler.hierarchy().get(id).name.value
}

impl Agent {
    /// Returns `true` if the request for a conversation still begins with the text to which its
    /// thinking is bound. Also returns `true` if the model does not bind thinking, or if the
    /// request cannot be compiled. Keeps the compiled request for later.
    pub(super) fn continues(&self, conversation: Conversation, bound_to: &Sent) -> bool {
        !self.binds_thinking()
            || self
                .compile_and_check(conversation)
                .map_or(true, |(compiled, _)| {
                    sent::begins_with(&compiled.body, bound_to)
                })
    }

    /// Returns `true` if a request begins with the text of an earlier one, or if its model does not
    /// bind thinking.
    fn keeps_bound(&self, compiled: &Compiled, earlier: &Sent) -> bool {
        sent::begins_with(&compiled.body, earlier) || !self.binds_thinking()
    }

    /// Returns `true` if the model binds thinking to the messages that precede it.
    pub(super) fn binds_thinking(&self) -> bool {
        let plan = self
            .compiler
            .plan(self.id)
            .expect("only usable agents are created");
        let model = self
            .compiler
            .repo()
            .client_model(plan.name(), self.model.as_deref());
        Live::new(&self.compiler, &plan).binds_thinking(model)
    }

    /// Combines a body with the other parts of its request.
    fn compiled(&self, plan: &Plan<'_>, model: Option<&str>, body: Body) -> Compiled {
        let (line, instance) = (
            plan.request_line(model),
            Arc::clone(&plan.instance.name.value),
        );
        let target = match is_plain(plan.model(model)) {
            true => plan.request_line(Some(MODEL_PLACEHOLDER)).url,
            false => line.url.clone(),
        };
        let price = Live::new(&self.compiler, plan)
            .price(model)
            .and_then(|price| Some((price, kept(body.value())?)));
        let model = plan.model(model).into();
        Compiled {
            line,
            target,
            body,
            api: plan.api,
            wire: plan.wire,
            instance,
            model,
            price,
        }
    }
}

impl CompileError {
    /// Converts this into a request's error, with the message on one line.
    pub fn into_error(self, compiler: &Compiler) -> Error {
        match &self {
            CompileError::NoModel(_) => {
                Error::new(Category::Config, self.to_string()).detail(MODEL_HELP)
            }
            CompileError::WrongKind { .. } => Error::new(Category::Config, self.to_string()),
            CompileError::Content(error) => Error::clone(error),
            CompileError::Findings(findings) => {
                let first = findings
                    .first()
                    .map_or_else(String::new, |finding| told(compiler, finding));
                Error::new(Category::Config, NOT_COMPILED).detail(first)
            }
        }
    }
}

/// Returns the error for an agent that cannot be used. Its detail lists the repository's errors as
/// possible causes.
fn unusable(compiler: &Compiler, name: &str, help: Option<String>) -> Error {
    let mistakes: Vec<&Diagnostic> = compiler
        .findings()
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .collect();
    let mut told: Vec<String> = mistakes
        .iter()
        .take(MOST_TOLD)
        .map(|finding| told(compiler, finding))
        .collect();
    if mistakes.len() > MOST_TOLD {
        told.push(format!("{} more", mistakes.len() - MOST_TOLD));
    }
    told.splice(..0, help);
    let error = Error::new(
        Category::Config,
        format!("there is no usable agent `{name}`"),
    );
    if told.is_empty() {
        error
    } else {
        error.detail(told.join("; "))
    }
}

/// The maximum number of repository errors that an error lists.
const MOST_TOLD: usize = 8;

/// Formats a finding on one line.
fn told(compiler: &Compiler, finding: &Diagnostic) -> String {
    format!(
        "{} {} {}",
        finding.rule.code,
        compiler.sources().describe(finding.primary.span),
        finding.message
    )
}

/// The help for a request without a model.
const MODEL_HELP: &str = "name one with `--model`, in `models.toml`, or as the profile's `model`";

/// Returns `true` if a model's name is a single plain word, so it cannot change the path of a URL.
fn is_plain(model: &str) -> bool {
    model
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
        && model.bytes().any(|byte| byte.is_ascii_alphanumeric())
}

impl Compiled {
    /// Returns the URL for display, without credentials and query.
    pub fn address(&self) -> String {
        UrlParts::of(&self.line.url).to_string()
    }

    /// Returns `true` if the key would be sent unencrypted, that is, over plain HTTP to another
    /// machine.
    pub fn exposes_key(&self) -> bool {
        let has_key = self
            .line
            .headers
            .iter()
            .any(|header| matches!(header.value, HeaderValue::Key { .. }));
        has_key && is_in_the_clear(&self.line.url)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::compile::{Folders, LoadOptions};
    use crate::conversation::{Message, Task};
    use crate::system::Embedded;
    use crate::world::MemoryWorld;

    fn agent(more: &str, file: &str) -> Agent {
        let profile = format!("name = \"A\"\nextends = \"OpenAI Chat\"\n{more}\n");
        let own = MemoryWorld::from_iter([("agents/a.toml", profile.as_str())]);
        let compiler = Compiler::load(
            Arc::new(own),
            Arc::new(Embedded::bundled()),
            LoadOptions::default(),
        );
        Agent::new(Arc::new(compiler), "A", environment(file)).expect("usable")
    }

    fn environment(file: &str) -> PromptEnvironment {
        PromptEnvironment {
            project: Arc::new(MemoryWorld::from_iter([("a.md", file)])),
            project_name: "test".into(),
            language: "".into(),
            folders: Folders::placeholders(),
        }
    }

    fn conversation(text: &str) -> Conversation {
        Conversation {
            task: Task::Chat(vec![Message::user(text)]),
            is_told: true,
            ..Conversation::default()
        }
    }

    #[test]
    fn what_is_kept_is_read_where_breakpoints_stand() {
        let hour = json!({"type": "ephemeral", "ttl": "1h"});
        let body = |system: Value, result: Value, input: Value| {
            let call = json!({"type": "tool_use", "id": "t", "name": "keep", "input": input});
            json!({
                "system": [{"type": "text", "text": "Hi", "cache_control": system}],
                "messages": [
                    {"role": "assistant", "content": [call]},
                    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": [
                        {"type": "text", "text": "ok", "cache_control": result},
                    ]}]},
                ],
            })
        };
        let data = json!({"type": "ephemeral", "ttl": "1h", "cache_control": hour});
        let default = json!({"type": "ephemeral"});
        let five = json!({"type": "ephemeral", "ttl": "5m"});
        assert_eq!(
            kept(&body(default.clone(), Value::Null, data.clone())),
            Some(Kept::Default)
        );
        assert_eq!(
            kept(&body(five, default.clone(), data.clone())),
            Some(Kept::Default)
        );
        assert_eq!(
            kept(&body(hour.clone(), hour.clone(), data)),
            Some(Kept::Hour)
        );
        assert_eq!(
            kept(&body(
                hour.clone(),
                Value::Null,
                json!({"type": "ephemeral"})
            )),
            Some(Kept::Hour)
        );
        assert_eq!(kept(&body(default, hour, json!({}))), Some(Kept::Mixed));
        assert_eq!(
            kept(&body(
                json!({"type": "ephemeral", "ttl": "30m"}),
                Value::Null,
                json!({})
            )),
            Some(Kept::Mixed)
        );
    }

    #[test]
    fn a_request_that_was_checked_is_compiled_again_only_if_it_is_another() {
        let agent = agent(
            "system_prompt = \"{{ read_file('${PROJECT_DIR}/a.md') }}\"",
            "Be short.",
        );
        let asked = |agent: &Agent, text| {
            agent
                .with_prompt(conversation(text))
                .expect("it is rendered")
        };
        let checked = agent
            .compile_and_check(conversation("Hi"))
            .expect("it is compiled");
        assert_eq!(
            agent.known_request(&asked(&agent, "Hi")),
            Some(checked.clone())
        );
        assert_eq!(
            agent.compile(asked(&agent, "Hi")).expect("it is compiled"),
            checked.0
        );
        assert_eq!(
            agent.known_request(&asked(&agent, "Hi")),
            None,
            "it was taken"
        );

        let elsewhere = Agent {
            environment: environment("Be long."),
            ..agent.clone()
        };
        let again = || {
            agent
                .compile_and_check(conversation("Hi"))
                .expect("it is compiled")
        };
        again();
        assert_eq!(
            elsewhere.known_request(&asked(&elsewhere, "Hi")),
            None,
            "the prompt is another"
        );
        again();
        assert_eq!(
            agent.known_request(&asked(&agent, "Ho")),
            None,
            "the message is another"
        );
        again();
        let other = agent.clone().with_model(Some("gpt-5"));
        assert_eq!(
            other.known_request(&asked(&other, "Hi")),
            None,
            "the model is another"
        );
    }

    #[test]
    fn what_a_session_compiles_to_see_whether_it_goes_on_is_not_compiled_again() {
        let agent = |model: &str| {
            let profile = format!(
                "name = \"A\"\nextends = \"Claude Chat\"\nmodel = \"{model}\"\nsystem_prompt = \"Be short.\"\n"
            );
            let own = MemoryWorld::from_iter([("agents/a.toml", profile.as_str())]);
            let compiler = Compiler::load(
                Arc::new(own),
                Arc::new(Embedded::bundled()),
                LoadOptions::default(),
            );
            Agent::new(Arc::new(compiler), "A", environment("")).expect("usable")
        };
        let asked = Conversation {
            known_prompt: Some("Be short.".into()),
            ..conversation("Hi")
        };
        let binding = agent("claude-opus-5-5");
        let bound_to = sent::sent(&binding.compile(asked.clone()).expect("it is compiled").body);
        assert!(binding.continues(asked.clone(), &bound_to));
        let known = binding.known_request(&asked).expect("it is known");
        assert!(binding.continues(asked.clone(), &bound_to));
        assert_eq!(
            binding
                .compile_and_check(asked.clone())
                .expect("it is compiled"),
            known
        );
        assert_eq!(
            binding.known_request(&asked),
            Some(known),
            "the session that sends it finds it too"
        );
        let other = Conversation {
            known_prompt: Some("Be long.".into()),
            ..conversation("Hi")
        };
        assert!(
            !binding.continues(other, &bound_to),
            "it begins with another prompt"
        );

        let free = agent("claude-3-5-haiku-20241022");
        assert!(free.continues(asked.clone(), &bound_to));
        assert_eq!(
            free.known_request(&asked),
            None,
            "a model that binds nothing needs no look at the request"
        );
    }

    #[test]
    fn a_request_that_says_what_surrounds_it_is_compiled_anew() {
        let own = "system_prompt = \"Be short.\"\nsurroundings = \"{{ read_file('${PROJECT_DIR}/a.md') }}\"";
        let agent = agent(own, "A project.");
        let untold = || Conversation {
            is_told: false,
            ..conversation("Hi")
        };
        agent.compile_and_check(untold()).expect("it is compiled");
        let asked = agent.with_prompt(untold()).expect("it is rendered");
        assert_eq!(agent.known_request(&asked), None);
    }
}
