//! Compiles bodies for conversations that are not contexts, such as those in sessions, in `reqc
//! send` and in hosts.

use std::sync::Arc;

use super::compiler::Compiler;
use super::environment::PromptEnvironment;
use super::finding;
use super::turns::{self, Seen, Told};
use crate::check::Checks;
#[cfg(feature = "runtime")]
use crate::check::families::{self, ModelFacts};
use crate::context::{self, Context, Project, State};
use crate::conversation::{Arrival, Conversation, TaskKind, placed, turn_from};
use crate::diag::Diagnostic;
use crate::provider;
#[cfg(feature = "runtime")]
use crate::provider::{Server, UrlParts};
use crate::render::Renderer;
#[cfg(feature = "runtime")]
use crate::repo::Price;
use crate::source::SourceText;
use crate::unit::{Body, Made, NormalisedConversation, Plan, Record, Request, SystemPrompt};

/// An agent for conversations that are not contexts.
#[derive(Clone, Copy)]
pub struct Live<'a> {
    compiler: &'a Compiler,
    plan: &'a Plan<'a>,
}

/// The body of a live conversation, with its findings.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LiveBody {
    /// The body to send.
    pub body: Body,
    /// The findings from schemas and rules, before any policy.
    pub findings: Vec<Diagnostic>,
    /// The whole system prompt in the body; blank if there is none.
    pub prompt: Arc<str>,
}

impl<'a> Live<'a> {
    /// Creates a `Live` from a compiler and the plan of one of its agents.
    pub fn new(compiler: &'a Compiler, plan: &'a Plan<'a>) -> Live<'a> {
        Live { compiler, plan }
    }

    /// Compiles the body of a conversation, in the normal form that contexts use.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Plan::body`].
    pub fn body(
        &self,
        conversation: Conversation,
        environment: &PromptEnvironment,
        model: Option<&str>,
    ) -> Result<Body, Vec<Diagnostic>> {
        self.with_request(conversation, environment, model, |renderer, request| {
            self.plan.body(self.compiler.sources(), renderer, request)
        })?
    }

    /// Returns the findings from schemas and rules for a conversation's body, before any policy is
    /// applied. The list is empty if the body cannot be compiled.
    pub fn findings(
        &self,
        conversation: Conversation,
        environment: &PromptEnvironment,
        model: Option<&str>,
    ) -> Vec<Diagnostic> {
        let checked = self.body_and_findings(conversation, environment, model);
        checked.map_or_else(|_| Vec::new(), |checked| checked.findings)
    }

    /// Compiles a body and checks it, combining [`Live::body`] and [`Live::findings`]. Problems in
    /// blocks that the provider sent, or in signatures of its thinking, are at most warnings,
    /// because the provider accepts them back unchanged, regardless of the schemas.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Plan::body`].
    pub fn body_and_findings(
        &self,
        conversation: Conversation,
        environment: &PromptEnvironment,
        model: Option<&str>,
    ) -> Result<LiveBody, Vec<Diagnostic>> {
        self.with_request(conversation, environment, model, |renderer, request| {
            let sources = self.compiler.sources();
            let Made { body, prompt, .. } = self.plan.made(sources, renderer, request);
            let body = body?;
            let problems = self.checks(model).problems(&body);
            let record = Record::new(self.plan, sources, renderer, request, &body);
            let findings = finding::of_live_body(self.plan, request, &record, problems);
            Ok(LiveBody {
                body,
                findings,
                prompt: whole_prompt(prompt),
            })
        })?
    }

    /// Reads a conversation written like a context, and returns it as the agent receives it, with
    /// the environment that prompts see. The text does not need a `name` or `why`.
    ///
    /// # Errors
    ///
    /// Returns the mistakes in the text.
    pub fn read(
        &self,
        path: String,
        text: SourceText,
    ) -> Result<(Conversation, PromptEnvironment), Vec<Diagnostic>> {
        let (repo, mut findings) = (self.compiler.repo(), Vec::new());
        let file = repo.sources.add(path, text);
        let origins = provider::origins(repo.instances.values());
        let read = context::read_live(file, repo.sources.get(file).text(), &origins, &mut findings);
        let is_wrong = findings
            .iter()
            .any(|finding| finding.rule != &context::rules::NOT_NORMAL);
        match read {
            Some(context) if !is_wrong => Ok((
                self.conversation_of(&context)?,
                PromptEnvironment::of(&context),
            )),
            _ => Err(findings),
        }
    }

    /// Returns the conversation in a context as the agent receives it in the last turn, for a
    /// session that continues it.
    ///
    /// # Errors
    ///
    /// Returns findings if the agent's surroundings cannot be rendered.
    pub fn conversation_of(&self, context: &Context) -> Result<Conversation, Vec<Diagnostic>> {
        if self.plan.surroundings.is_none()
            || self.plan.kind != TaskKind::Chat
            || context.kind() != TaskKind::Chat
        {
            return Ok(context.conversation.clone());
        }
        let states: Vec<State> = context
            .earlier
            .iter()
            .cloned()
            .chain([context.last()])
            .collect();
        let renderer = self
            .compiler
            .engine
            .renderer(context.conversation.block_count().next_power_of_two());
        let mut texts = Vec::with_capacity(states.len());
        for state in &states {
            let environment = PromptEnvironment::of_state(state);
            let text = self.surroundings(
                &environment,
                &renderer,
                context.conversation.omit_system_prompt,
            );
            texts.push(text.map_err(|finding| vec![*finding])?);
        }
        let Told { states, arrivals } = turns::told(&states, &texts);
        let conversation = states
            .into_iter()
            .next_back()
            .map(|state| state.conversation)
            .unwrap_or_default();
        Ok(Conversation {
            is_told: true,
            known_items: placed(&arrivals),
            ..conversation
        })
    }

    /// Returns the conversation with the agent's surroundings and attached files before the first
    /// user message, unless the host has already added these.
    fn told(
        &self,
        conversation: Conversation,
        environment: &PromptEnvironment,
        renderer: &Renderer<'_>,
    ) -> Result<Conversation, Box<Diagnostic>> {
        if conversation.is_told
            || self.plan.surroundings.is_none()
            || self.plan.kind != TaskKind::Chat
        {
            return Ok(conversation);
        }
        let text = self.surroundings(environment, renderer, conversation.omit_system_prompt)?;
        let language = Arc::clone(&environment.language);
        let state = State {
            language,
            project: Project::default(),
            conversation,
            renewed: false,
        };
        let items = turns::items(&Seen::default(), &state.conversation.files, &text);
        Ok(turns::with(
            &state,
            &[Arrival {
                at: turn_from(state.history(), 0),
                items,
            }],
        )
        .conversation)
    }

    /// Returns the text of the agent's surroundings; empty if they are omitted.
    fn surroundings(
        &self,
        environment: &PromptEnvironment,
        renderer: &Renderer<'_>,
        is_omitted: bool,
    ) -> Result<Arc<str>, Box<Diagnostic>> {
        let Some(template) = self.plan.surroundings.filter(|_| !is_omitted) else {
            return Ok(Arc::from(""));
        };
        let scope = environment.scope(&self.compiler.repo, self.plan.profile.profile.layer);
        let (prompt, _) = renderer.prompt(self.compiler.sources(), template, &scope);
        Ok(Arc::from(prompt.output?.text().trim()))
    }

    /// Calls a function with the request for a conversation.
    pub(super) fn with_request<R>(
        &self,
        conversation: Conversation,
        environment: &PromptEnvironment,
        model: Option<&str>,
        work: impl FnOnce(&Renderer<'_>, &Request<'_>) -> R,
    ) -> Result<R, Vec<Diagnostic>> {
        let scope = environment.scope(&self.compiler.repo, self.plan.profile.profile.layer);
        let conversation = conversation.into_normal_form();
        let renderer = self
            .compiler
            .engine
            .renderer(conversation.block_count().next_power_of_two());
        let conversation = self
            .told(conversation, environment, &renderer)
            .map_err(|finding| vec![*finding])?;
        let conversation = NormalisedConversation::new(conversation);
        Ok(work(
            &renderer,
            &Request {
                conversation: &conversation,
                scope: &scope,
                model,
                memory: None,
            },
        ))
    }

    fn checks(&self, model: Option<&str>) -> Checks {
        Checks::of(
            self.plan,
            &self.compiler.schemas,
            &self.compiler.repo.families,
            model,
        )
    }
}

#[cfg(feature = "runtime")]
impl Live<'_> {
    /// Returns `true` if a request's model accepts thinking only after the unchanged content that
    /// preceded it.
    pub(crate) fn binds_thinking(&self, model: Option<&str>) -> bool {
        self.plan.wire.binds_thinking() && self.checks(model).bound_thinking().is_some()
    }

    /// Renders the whole system prompt of a conversation; blank if there is none.
    pub(crate) fn prompt(
        &self,
        conversation: &Conversation,
        environment: &PromptEnvironment,
    ) -> Result<Arc<str>, Vec<Diagnostic>> {
        // The prompt does not depend on the messages.
        let conversation = NormalisedConversation::new(Conversation {
            system_layers: conversation.system_layers.clone(),
            omit_system_prompt: conversation.omit_system_prompt,
            known_prompt: conversation.known_prompt.clone(),
            ..Conversation::default()
        });
        let scope = environment.scope(&self.compiler.repo, self.plan.profile.profile.layer);
        let request = Request {
            conversation: &conversation,
            scope: &scope,
            model: None,
            memory: None,
        };
        let renderer = self.compiler.engine.renderer(1);
        let prompt = self
            .plan
            .system_prompt(self.compiler.sources(), &renderer, &request);
        Ok(whole_prompt(prompt.map_err(|finding| vec![*finding])?))
    }

    /// Returns the text of the agent's surroundings; `None` if the agent has none.
    pub(crate) fn said_of_surroundings(
        &self,
        environment: &PromptEnvironment,
        is_omitted: bool,
    ) -> Result<Option<Arc<str>>, Box<Diagnostic>> {
        if self.plan.surroundings.is_none() || self.plan.kind != TaskKind::Chat {
            return Ok(None);
        }
        self.surroundings(environment, &self.compiler.engine.renderer(1), is_omitted)
            .map(Some)
    }

    /// Returns the context window of a model in tokens, if known.
    pub(crate) fn context_window(&self, model: Option<&str>) -> Option<u64> {
        let facts = self.facts(model);
        facts
            .context_window()
            .and_then(|(window, _)| u64::try_from(window).ok())
    }

    /// Returns the price of a request's tokens, if the price is known for the server and the model.
    /// Only the host of the URL identifies the server, because a proxy has its own prices.
    pub(crate) fn price(&self, model: Option<&str>) -> Option<Price> {
        self.facts(model).price()
    }

    fn facts(&self, model: Option<&str>) -> ModelFacts {
        let plan = self.plan;
        let server = Server::by_host(UrlParts::of(&plan.instance.url.value).host())
            .unwrap_or(Server::Unknown);
        let route = families::Route {
            wire: plan.wire,
            server,
            headers: &plan.api_headers(),
        };
        ModelFacts::of(&self.compiler.repo.families, route, Some(plan.model(model)))
    }
}

fn whole_prompt(prompt: Option<SystemPrompt>) -> Arc<str> {
    prompt.map_or_else(|| Arc::from(""), |prompt| Arc::from(prompt.as_str()))
}
