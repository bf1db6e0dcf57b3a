//! The front door: a repository in, bodies and findings out.
//!
//! Input: the files of both layers. Output: a [`Compiler`], which has read and checked everything that does not
//! depend on a conversation, and [`Compiler::report`], which makes every selected body in parallel and tells what was found as
//! a [`Report`]. [`Compiler::report_each`] hands the bodies of one agent at a time to a visitor, and
//! [`Compiler::compare_golden`] compares them with files. Results are ordered by agent, whatever the threads do.

mod arrived;
mod baseline;
mod compare;
mod coverage;
mod explain;
mod flow;
mod growth;
mod impact;
mod lint;
mod lowered;
mod mend;
mod misplaced;
mod missing;
mod policy;
mod problems;
mod reach;
mod report;
mod route;
pub(crate) mod rules;
mod secrets;
mod selection;
mod texts;
mod touched;
mod unfollowed;
mod unused;
mod version;
mod work;

pub use baseline::Baseline;
pub use compare::{Before, BrokenAgent, Compared, Purpose, Scope};
pub(crate) use compare::{Outcome, changed};
pub use explain::{Explained, Explanation, SourceKind, ValueSource};
pub use flow::ContentFate;
pub use impact::{ImpactError, ImpactQuery, Reached};
pub use lint::{LintTarget, Linted, LintedBodies, Linting};
pub(crate) use lint::{ModelKnowledge, usual_server};
pub use lowered::{Lowered, LoweredKind, LoweredTo};
pub use mend::{Mended, MendedFile, mend};
pub(crate) use policy::MOST_OF_A_RULE;
use policy::Policy;
pub use policy::{LeftOut, PolicyOptions};
pub(crate) use policy::{check_allowed, check_code};
use problems::Case;
pub use report::{Report, Summary};
pub use route::{PassedOver, Rerouted, Route};
pub use rules::{all_rules, rule};
pub use selection::{Reach, Selection, Shard, ShardError};
pub use touched::{Differing, Named, Touched};

#[doc(inline)]
pub use crate::render::Folders;
#[doc(inline)]
pub use crate::repo::{Date, LoadOptions};
#[doc(inline)]
pub use crate::resolve::ProfileId;
#[doc(inline)]
pub use crate::unit::Body;

use std::collections::HashSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use foldhash::HashMap;
use rayon::prelude::*;

#[cfg(feature = "runtime")]
use crate::check::families::{self, ModelFacts};
use crate::check::{Checks, Schemas, check_families};
use crate::context::{self, Context, ContextSource, Project};
use crate::conversation::{Conversation, TaskKind};
use crate::diag::{Diagnostic, Findings, Severity, did_you_mean};
use crate::memory::{Identity, Memory, MemoryUse};
use crate::panics::{Panic, caught};
use crate::profile;
use crate::provider;
#[cfg(feature = "runtime")]
use crate::provider::{Server, UrlParts};
use crate::render::{Engine, PromptScope, Renderer, rules as render_rules};
#[cfg(feature = "runtime")]
use crate::repo::Price;
use crate::repo::{self, Layer, LayerKind, Repo};
use crate::resolve::{self, Hierarchy, ResolvedProfile};
use crate::source::{FileId, SourceText, Sources};
use crate::unit::{Made, NormalisedConversation, Plan, Record, Request, SystemPrompt};
use crate::world::{MemoryWorld, Remembering, World};
use version::Version;
use work::Ledger;

/// A repository, read and checked.
pub struct Compiler {
    repo: Repo,
    hierarchy: Hierarchy,
    engine: Engine,
    schemas: Arc<Schemas>,
    contexts: Vec<LoadedContext>,
    /// The answers kept for all agents and contexts.
    memory: Arc<Memory>,
    /// The declarations of profiles that their agents leave something out, as far as it was seen.
    declarations: flow::Declarations,
    /// Concrete agents of the compiled layers, sorted by name, and whether they can be compiled.
    agents: Vec<(ProfileId, bool)>,
    findings: Vec<Diagnostic>,
}

/// An agent and a context that is for it: what a single body of theirs is made with.
struct Pairing<'c> {
    plan: Plan<'c>,
    loaded: &'c LoadedContext,
    renderer: Renderer<'c>,
    version: Arc<Version>,
}

impl Pairing<'_> {
    fn request<'a>(&'a self, model: Option<&'a str>) -> Request<'a> {
        self.loaded.request(&self.plan, &self.version, model)
    }
}

/// A context with everything that is made of it once.
pub struct LoadedContext {
    /// The context.
    pub context: Context,
    /// `true` if golden bodies are written for it in this repository.
    pub golden: bool,
    plain: Arc<Version>,
    /// Tells it apart in questions.
    id: Identity,
    scopes: Arc<Scopes>,
    source: OnceLock<Option<ContextSource>>,
    /// The surroundings that prompts see in the earlier turns, for each layer.
    turns: Vec<Arc<Scopes>>,
}

/// The scopes of the prompts of each layer's agents.
type Scopes = HashMap<LayerKind, Arc<PromptScope>>;

/// All bodies of one agent.
#[non_exhaustive]
pub struct AgentBodies<'c> {
    /// The agent.
    pub plan: Plan<'c>,
    /// Its bodies, sorted by context.
    pub bodies: Vec<(&'c LoadedContext, Body)>,
    /// The findings about them, and why some could not be made; before any policy.
    pub findings: Vec<Diagnostic>,
}

/// The body of a live conversation, with what was found in it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct LiveBody {
    /// The body.
    pub body: Body,
    /// The findings of schemas and rules; no policy was applied.
    pub findings: Vec<Diagnostic>,
    /// The whole system prompt in it; blank if there is none.
    pub prompt: Arc<str>,
}

fn whole_prompt(prompt: Option<SystemPrompt>) -> Arc<str> {
    prompt.map_or_else(|| Arc::from(""), |prompt| Arc::from(prompt.as_str()))
}

/// The result of a run.
#[non_exhaustive]
pub struct Run<R> {
    /// The results of the visitor, ordered by the agent's name.
    pub results: Vec<R>,
    /// Findings of this run, without those of loading.
    pub findings: Findings,
    /// How many bodies were made.
    pub bodies: usize,
}

/// The result of one agent.
struct Done<R> {
    /// `None` if it could not be compiled.
    result: Option<R>,
    findings: Vec<Diagnostic>,
    bodies: usize,
    /// Units of work.
    cost: u64,
}

/// The cost of one agent's bodies so far.
#[derive(Default)]
struct Spent {
    /// Units of work.
    cost: u64,
    /// Bytes of bodies.
    held: usize,
    /// Values of each body that no template renders.
    static_values: usize,
    /// `true` if a finding says that a template works too much.
    is_told: bool,
}

impl Spent {
    fn is_too_much(&self) -> bool {
        self.held > work::MAX_HELD || self.cost > work::AGENT_LIMIT
    }

    /// Why the agent is not compiled from a context on, unless that is told.
    fn finding(&self, plan: &Plan<'_>, context: &Arc<str>) -> Option<Diagnostic> {
        match self.held > work::MAX_HELD {
            true => Some(rules::agent_too_large(plan, context)),
            false => (!self.is_told).then(|| rules::agent_too_much_work(plan, context)),
        }
    }
}

impl<R> Run<R> {
    fn add(&mut self, agent: Done<R>) {
        self.results.extend(agent.result);
        self.findings.extend(agent.findings);
        self.bodies += agent.bodies;
    }
}

impl Compiler {
    /// Reads and checks a repository. Findings do not stop it: what can be compiled, can be.
    pub fn load(own: Arc<dyn World>, bundled: Arc<dyn World>, options: LoadOptions) -> Compiler {
        Compiler::load_some(own, bundled, options, None)
    }

    /// The same for a few agents: those whose names are wanted. Others cannot be compiled, unless something was found on the way,
    /// or nothing is wanted: then all are prepared, so that findings tell whom they reach.
    pub(crate) fn load_some(
        own: Arc<dyn World>,
        bundled: Arc<dyn World>,
        options: LoadOptions,
        wanted: Option<&dyn Fn(&str) -> bool>,
    ) -> Compiler {
        let loaded = repo::load(own, bundled, options);
        let (mut repo, mut findings) = (loaded.repo, loaded.findings);
        let (profiles, more) = profile::read_all(&repo);
        findings.extend(more);
        // What looks like a key is shown nowhere, not even where it stands.
        findings.extend(secrets::check(&mut repo, &findings));
        let (hierarchy, more) = Hierarchy::build(profiles, repo.config.dialect);
        findings.extend(more);
        let (contexts, more) = context::read_all(&repo, &provider::origins(repo.instances.values()));
        findings.extend(more);
        let memory = Arc::new(Memory::default());
        let (engine, more) = Engine::new(&repo, &memory);
        findings.extend(more);
        findings.extend(provider::check_instances(&repo));
        let (schemas, more) = Schemas::new(&repo, &memory);
        findings.extend(more);
        findings.extend(check_families(&repo));
        let is_unlisted =
            |finding: &Diagnostic| &**repo.sources.get(finding.primary.span.file).path() == repo::folders::AGENTS;
        if repo.is_empty() && !findings.iter().any(is_unlisted) {
            findings.push(rules::empty(&mut repo.sources));
        }
        findings.extend(texts::check(&mut repo, &hierarchy, &findings));
        findings.extend(policy::check_codes(&repo.config));
        findings.extend(rules::unknown_agents(&repo, &hierarchy));
        findings.extend(route::check(&repo, &hierarchy));
        findings.extend(rules::unknown_contexts(&repo, &contexts));
        findings.extend(rules::unknown_instances(&repo));
        let readable = readable(&repo);
        let contexts = contexts.into_iter().map(|context| LoadedContext::new(&repo, context, &readable)).collect();
        let (schemas, agents) = (Arc::new(schemas), Vec::new());
        let declarations = flow::Declarations::default();
        let mut compiler =
            Compiler { repo, hierarchy, engine, schemas, contexts, memory, declarations, agents, findings };
        compiler.prepare_agents(wanted);
        compiler.findings.extend(unused::check(&compiler.repo, &compiler.hierarchy, &compiler.findings));
        compiler.note_reach();
        compiler
    }

    /// Resolves agents once: findings about merged profiles, and the templates that agents bring.
    fn prepare_agents(&mut self, wanted: Option<&dyn Fn(&str) -> bool>) {
        let mut findings: Vec<Diagnostic> = self.refuse_too_many_values().into_iter().collect();
        let ids = self.hierarchy.ids().filter(|&id| is_agent(&self.repo, &self.hierarchy, id));
        let mut agents: Vec<(ProfileId, bool)> = ids.map(|id| (id, false)).collect();
        let is_wanted =
            |compiler: &Compiler, id| wanted.is_none_or(|wanted| wanted(&compiler.hierarchy.get(id).name.value));
        let is_clean = findings.is_empty() && !self.findings.iter().any(|finding| self.may_reach_agents(finding));
        let mut first: Vec<bool> = agents.iter().map(|(id, _)| !is_clean || is_wanted(self, *id)).collect();
        self.prepare_marked(&mut agents, &first, &mut findings);
        if !findings.is_empty() || !first.contains(&true) {
            first.iter_mut().for_each(|is_prepared| *is_prepared = !*is_prepared);
            self.prepare_marked(&mut agents, &first, &mut findings);
        }
        findings.extend(missing::check(&self.repo, &self.hierarchy));
        self.check_folders(&mut agents, &mut findings);
        agents.sort_by(|a, b| self.hierarchy.get(a.0).name.value.cmp(&self.hierarchy.get(b.0).name.value));
        self.agents = agents;
        self.findings.extend(findings);
    }

    fn prepare_marked(&mut self, agents: &mut [(ProfileId, bool)], marked: &[bool], findings: &mut Vec<Diagnostic>) {
        for ((id, is_usable), _) in agents.iter_mut().zip(marked).filter(|(_, is_marked)| **is_marked) {
            *is_usable = self.prepare_agent(*id, findings);
        }
    }

    /// Returns `true` if a finding of loading stands in a file that agents use.
    fn may_reach_agents(&self, finding: &Diagnostic) -> bool {
        let file = finding.primary.span.file;
        let mut profiles = self.hierarchy.ids().map(|id| self.hierarchy.get(id).file);
        profiles.any(|it| it == file)
            || self.repo.partials.values().any(|partial| partial.file == file)
            || self.repo.instances.keys().any(|name| self.repo.instance_files(name).contains(&file))
    }

    /// Returns `true` if an agent can be compiled.
    fn prepare_agent(&mut self, id: ProfileId, findings: &mut Vec<Diagnostic>) -> bool {
        let Some(chain) = self.hierarchy.chain(id) else { return false };
        let before = findings.len();
        let prepared = caught(|| {
            let resolved = resolve::resolve(chain, findings);
            Plan::prepare(&self.repo, &mut self.engine, &resolved, findings)
        });
        if let Some(profile) = self.resolve(id).filter(|_| findings.len() > before) {
            let told: Vec<Diagnostic> = findings.drain(before..).map(|it| self.at_entrance(it, &profile)).collect();
            findings.extend(told);
        }
        prepared.unwrap_or_else(|panic| {
            findings.extend(self.lost::<()>(id, &panic).findings);
            false
        })
    }

    /// Agents whose golden folder cannot be made, or is another agent's too, cannot be compiled.
    fn check_folders(&self, agents: &mut [(ProfileId, bool)], findings: &mut Vec<Diagnostic>) {
        let mut slugs: HashMap<String, usize> = HashMap::default();
        for at in 0..agents.len() {
            let id = agents[at].0;
            if self.hierarchy.chain(id).is_none() {
                continue;
            }
            let profile = self.hierarchy.get(id);
            if let Some(finding) = rules::unusable_slug(profile) {
                findings.push(finding);
                agents[at].1 = false;
            }
            if let Some(&other) = slugs.get(&profile.slug()) {
                findings.push(rules::slug_collision(profile, self.hierarchy.get(agents[other].0)));
                // Neither of the two may write the folder.
                agents[other].1 = false;
                agents[at].1 = false;
            } else {
                slugs.insert(profile.slug(), at);
            }
        }
    }

    /// Makes agents unusable, from the first one on with which all merge too many values.
    fn refuse_too_many_values(&mut self) -> Option<Diagnostic> {
        let mut merged = 0_usize;
        let mut is_beyond = |hierarchy: &Hierarchy, id: ProfileId| {
            let values = hierarchy.chain(id).map_or(0, |chain| chain.iter().map(|profile| profile.values).sum());
            merged = merged.saturating_add(values);
            merged > work::MAX_MERGED
        };
        let agents = self.hierarchy.ids().filter(|&id| is_agent(&self.repo, &self.hierarchy, id));
        let beyond: Vec<ProfileId> = agents.filter(|&id| is_beyond(&self.hierarchy, id)).collect();
        beyond.iter().for_each(|&id| self.hierarchy.refuse(id));
        Some(rules::too_many_values(&self.hierarchy, *beyond.first()?, beyond.len()))
    }

    /// Findings of loading, in no particular order.
    pub fn findings(&self) -> &[Diagnostic] {
        &self.findings
    }

    /// How much work was shared so far, and how much memory that takes.
    pub(crate) fn memory_use(&self) -> MemoryUse {
        self.memory.usage()
    }

    /// The repository.
    pub fn repo(&self) -> &Repo {
        &self.repo
    }

    /// Every source file.
    pub fn sources(&self) -> &Sources {
        &self.repo.sources
    }

    /// All profiles.
    pub fn hierarchy(&self) -> &Hierarchy {
        &self.hierarchy
    }

    /// All contexts, sorted by name.
    pub fn contexts(&self) -> &[LoadedContext] {
        &self.contexts
    }

    /// The agents that are compiled, sorted by name; the flag tells whether they can be.
    pub fn agents(&self) -> &[(ProfileId, bool)] {
        &self.agents
    }

    /// A profile merged over its ancestors; `None` if the chain is broken.
    pub fn resolve(&self, id: ProfileId) -> Option<ResolvedProfile<'_>> {
        // What merging finds was reported while loading.
        Some(resolve::resolve_again(self.hierarchy.chain(id)?))
    }

    /// The plan of an agent; `None` if it has findings that make it unusable.
    pub fn plan(&self, id: ProfileId) -> Option<Plan<'_>> {
        Plan::new(&self.repo, &self.engine, &self.memory, self.resolve(id)?)
    }

    /// Makes every selected body. `visit` is called on worker threads, once per agent. What is found is as it is: no policy
    /// was applied, and what loading found is not among it; [`Compiler::report`] does both.
    pub fn run<R: Send>(&self, selection: &Selection, visit: impl Fn(&AgentBodies<'_>) -> R + Sync) -> Run<R> {
        self.run_after(Findings::default(), selection, visit)
    }

    /// Makes every selected body, with findings that were made before.
    fn run_after<R: Send>(
        &self,
        findings: Findings,
        selection: &Selection,
        visit: impl Fn(&AgentBodies<'_>) -> R + Sync,
    ) -> Run<R> {
        let chosen = self.agents.iter().filter(|(id, usable)| *usable && self.chosen_agent(selection, *id));
        let agents: Vec<ProfileId> = chosen.map(|(id, _)| *id).collect();
        let renderers = Renderers::new(self);
        let limit = work::run_limit(agents.len().saturating_mul(self.chosen_contexts(selection).count()));
        let ledger = Ledger::new(limit);
        let all = || {
            agents
                .par_iter()
                .enumerate()
                .map(|(index, &id)| {
                    if ledger.is_spent() {
                        return None;
                    }
                    let done = caught(|| self.compile(id, selection, &renderers, &visit));
                    let done = done.unwrap_or_else(|panic| self.lost(id, &panic));
                    ledger.enter(index, done.cost);
                    Some(done)
                })
                .collect::<Vec<_>>()
        };
        let done = match rayon::ThreadPoolBuilder::new().stack_size(STACK_BYTES).build() {
            Ok(pool) => pool.install(all),
            Err(_) => all(),
        };
        let run = Run { results: Vec::new(), findings, bodies: 0 };
        self.put_together(run, &agents, done, limit)
    }

    /// The agents that have a place in the run, in their order.
    fn put_together<R>(&self, mut run: Run<R>, agents: &[ProfileId], done: Vec<Option<Done<R>>>, limit: u64) -> Run<R> {
        let places = work::places(done.iter().map(|done| done.as_ref().map(|done| done.cost)), limit);
        done.into_iter().take(places).flatten().for_each(|done| run.add(done));
        if let Some(&first) = agents.get(places) {
            run.findings.extend([rules::run_too_much_work(&self.hierarchy, first, agents.len() - places)]);
        }
        run
    }

    /// An agent on which we failed ourselves.
    fn lost<R>(&self, id: ProfileId, panic: &Panic) -> Done<R> {
        let name = &self.hierarchy.get(id).name;
        let finding = panic.finding(&format!("the agent `{}`", name.value), name.span);
        Done { result: None, findings: vec![finding.reaching(&name.value, None)], bodies: 0, cost: work::AGENT_LIMIT }
    }

    fn compile<R>(
        &self,
        id: ProfileId,
        selection: &Selection,
        renderers: &Renderers<'_>,
        visit: &impl Fn(&AgentBodies<'_>) -> R,
    ) -> Done<R> {
        let Some(plan) = self.plan(id) else {
            return Done { result: None, findings: Vec::new(), bodies: 0, cost: 0 };
        };
        let checks =
            Checks::of(&plan, &self.schemas, &self.repo.families, self.client_model(&plan, selection.model.as_deref()));
        let mut findings = Findings::default();
        let mut spent = Spent { static_values: plan.static_values(), ..Spent::default() };
        let mut flow = flow::AgentFlow::new(&plan);
        let mut agent = AgentBodies { plan, bodies: Vec::new(), findings: Vec::new() };
        let contexts = self.chosen_contexts_of(selection, agent.plan.name());
        for loaded in contexts.filter(|loaded| loaded.context.kind() == agent.plan.kind) {
            if spent.is_too_much() {
                findings.extend(spent.finding(&agent.plan, &loaded.context.name));
                break;
            }
            let renderer = renderers.get(&loaded.plain.normalised);
            let version = self.version(&agent.plan, loaded, renderer);
            spent.cost = spent.cost.saturating_add(version.cost);
            let version = match version.result {
                Ok(version) => version,
                Err(finding) => {
                    findings.push(finding.reaching(agent.plan.name(), Some(&loaded.context.name)));
                    continue;
                }
            };
            let memory = (!selection.without_memo).then_some(&self.memory);
            let request = Request { memory, ..loaded.request(&agent.plan, &version, selection.model.as_deref()) };
            let body = self.make((&agent.plan, &checks), loaded, renderer, &request, (&mut spent, &mut findings));
            if let Some((body, prompt)) = &body
                && agent.plan.kind == TaskKind::Chat
            {
                let (plan, request, checks, version) = (&agent.plan, &request, &checks, &version);
                let later = growth::Later { plan, checks, loaded, version, renderer, request, body, prompt };
                self.prove_growth(&later, &mut spent, &mut findings);
            }
            match &body {
                Some((body, prompt)) => {
                    self.judge_flow(&mut flow, (&agent.plan, loaded), &request, (body, prompt.as_ref()));
                }
                None => flow.lacks_a_body(),
            }
            let body = body.map(|(body, _)| body.checked());
            // What is found in a body does not make it go away: a repository may lower such findings.
            agent.bodies.extend(body.map(|body| (loaded, body)));
        }
        self.tell_flow(&flow, &agent.plan, selection.model.as_deref(), &mut findings);
        agent.findings = findings.into_vec();
        let bodies = agent.bodies.len();
        let result = visit(&agent);
        Done { result: Some(result), findings: agent.findings, bodies, cost: spent.cost }
    }

    /// One body; what is found in it goes to the findings of its agent.
    fn make(
        &self,
        (plan, checks): (&Plan<'_>, &Checks),
        loaded: &LoadedContext,
        renderer: &Renderer<'_>,
        request: &Request<'_>,
        (spent, findings): (&mut Spent, &mut Findings),
    ) -> Option<(Body, Option<SystemPrompt>)> {
        let made = plan.made(&self.repo.sources, renderer, request);
        spent.cost = spent.cost.saturating_add(made.cost);
        match made.body {
            Ok(body) => {
                spent.held = spent.held.saturating_add(body.weight());
                let problems = checks.problems(&body);
                spent.cost = spent.cost.saturating_add(work::of_body(spent.static_values, problems.len()));
                if !problems.is_empty() {
                    let record = Record::new(plan, &self.repo.sources, renderer, request, &body);
                    self.tell_problems(Case { plan, loaded }, &record, problems, (&mut spent.cost, findings));
                }
                Some((body, made.prompt))
            }
            Err(found) => {
                spent.is_told |= found.iter().any(|finding| finding.rule == &render_rules::TOO_MUCH_WORK);
                let reach = |finding: Diagnostic| finding.reaching(plan.name(), Some(&loaded.context.name));
                findings.extend(found.into_iter().map(|finding| reach(self.at_entrance(finding, &plan.profile))));
                None
            }
        }
    }

    /// Registers a file that findings can point into, for instance a golden file.
    pub fn add_source(&self, path: String, text: SourceText) -> FileId {
        self.repo.sources.add(path, text)
    }

    /// One body of one agent; `None` if the agent is unusable or the context is not for it, `Err` with findings.
    pub fn body(&self, id: ProfileId, context: &str, model: Option<&str>) -> Option<Result<Body, Vec<Diagnostic>>> {
        let pairing = match self.pairing(id, context)? {
            Ok(pairing) => pairing,
            Err(finding) => return Some(Err(vec![*finding])),
        };
        Some(pairing.plan.body(&self.repo.sources, &pairing.renderer, &pairing.request(model)))
    }

    /// An agent and a context; `None` if the agent is unusable or the context is not for it, `Err` if a prompt fails that tells the
    /// agent what surrounds it.
    fn pairing(&self, id: ProfileId, context: &str) -> Option<Result<Pairing<'_>, Box<Diagnostic>>> {
        let (plan, loaded) = (self.plan(id)?, self.context(context)?);
        if loaded.context.kind() != plan.kind {
            return None;
        }
        let renderer = self.engine.renderer(LoadedContext::size_class(&loaded.plain.normalised));
        let version = self.version(&plan, loaded, &renderer).result;
        Some(version.map(|version| Pairing { plan, loaded, renderer, version }))
    }

    /// The body of a conversation that is not one of the contexts, in the normal form that contexts are in.
    ///
    /// # Errors
    ///
    /// As [`Plan::body`].
    pub fn live_body(
        &self,
        plan: &Plan<'_>,
        conversation: Conversation,
        environment: &PromptEnvironment,
        model: Option<&str>,
    ) -> Result<Body, Vec<Diagnostic>> {
        self.with_request(plan, conversation, environment, model, |renderer, request| {
            plan.body(&self.repo.sources, renderer, request)
        })?
    }

    /// A conversation that is written like a context, as an agent gets it, and what prompts see with it. It needs no name and no reason.
    ///
    /// # Errors
    ///
    /// What is wrong with the text.
    pub fn conversation_of(
        &self,
        plan: &Plan<'_>,
        path: String,
        text: SourceText,
    ) -> Result<(Conversation, PromptEnvironment), Vec<Diagnostic>> {
        let mut findings = Vec::new();
        let file = self.add_source(path, text);
        let origins = provider::origins(self.repo.instances.values());
        let read = context::read_live(file, self.sources().get(file).text(), &origins, &mut findings);
        let read = read.filter(|_| !findings.iter().any(|finding| finding.rule != &context::rules::NOT_NORMAL));
        let context = read.ok_or(findings)?;
        Ok((self.conversation_for(plan, &context)?, PromptEnvironment::of(&context)))
    }

    /// Returns what schemas and rules find in that body, as it is: no policy was applied. Nothing, if there is no body.
    pub fn live_findings(
        &self,
        plan: &Plan<'_>,
        conversation: Conversation,
        environment: &PromptEnvironment,
        model: Option<&str>,
    ) -> Vec<Diagnostic> {
        let checked = self.live_body_and_findings(plan, conversation, environment, model);
        checked.map_or_else(|_| Vec::new(), |checked| checked.findings)
    }

    /// Both [`Compiler::live_body`] and [`Compiler::live_findings`], of one body. What stands in a block of the provider's own, or
    /// signs its thinking, is a warning at most: the provider sent it, and takes it back as it came, whatever the schemas know of it.
    ///
    /// # Errors
    ///
    /// As [`Plan::body`].
    pub fn live_body_and_findings(
        &self,
        plan: &Plan<'_>,
        conversation: Conversation,
        environment: &PromptEnvironment,
        model: Option<&str>,
    ) -> Result<LiveBody, Vec<Diagnostic>> {
        self.with_request(plan, conversation, environment, model, |renderer, request| {
            let Made { body, prompt, .. } = plan.made(&self.repo.sources, renderer, request);
            let body = body.map(Body::checked)?;
            let problems = Checks::of(plan, &self.schemas, &self.repo.families, model).problems(&body);
            let record = Record::new(plan, &self.repo.sources, renderer, request, &body);
            let findings = problems::of_live_body(plan, request, &record, problems);
            Ok(LiveBody { body, findings, prompt: whole_prompt(prompt) })
        })?
    }

    /// Returns `true` if thinking is bound to what stands before it, for the model of a request.
    #[cfg(feature = "runtime")]
    pub(crate) fn binds_thinking(&self, plan: &Plan<'_>, model: Option<&str>) -> bool {
        plan.wire.binds_thinking()
            && Checks::of(plan, &self.schemas, &self.repo.families, model).bound_thinking().is_some()
    }

    /// The whole system prompt of a live conversation; blank if there is none.
    #[cfg(feature = "runtime")]
    pub(crate) fn live_prompt(
        &self,
        plan: &Plan<'_>,
        conversation: &Conversation,
        environment: &PromptEnvironment,
    ) -> Result<Arc<str>, Vec<Diagnostic>> {
        // It depends on nothing that was said.
        let conversation = NormalisedConversation::new(Conversation {
            system_layers: conversation.system_layers.clone(),
            omit_system_prompt: conversation.omit_system_prompt,
            known_prompt: conversation.known_prompt.clone(),
            ..Conversation::default()
        });
        let scope = environment.scope(&self.repo, plan.profile.profile.layer);
        let request = Request { conversation: &conversation, scope: &scope, model: None, memory: None };
        let prompt = plan.system_prompt(&self.repo.sources, &self.engine.renderer(1), &request);
        Ok(whole_prompt(prompt.map_err(|finding| vec![*finding])?))
    }

    /// The request for a conversation that is not one of the contexts.
    fn with_request<R>(
        &self,
        plan: &Plan<'_>,
        conversation: Conversation,
        environment: &PromptEnvironment,
        model: Option<&str>,
        work: impl FnOnce(&Renderer<'_>, &Request<'_>) -> R,
    ) -> Result<R, Vec<Diagnostic>> {
        let scope = environment.scope(&self.repo, plan.profile.profile.layer);
        let conversation = conversation.into_normal_form();
        let renderer = self.engine.renderer(conversation.block_count().next_power_of_two());
        let conversation =
            self.live_version(plan, conversation, environment, &renderer).map_err(|finding| vec![*finding])?;
        let conversation = NormalisedConversation::new(conversation);
        Ok(work(&renderer, &Request { conversation: &conversation, scope: &scope, model, memory: None }))
    }

    /// The model that the client names for an agent: the given one, else that of `models.toml`.
    pub fn client_model<'m>(&'m self, plan: &Plan<'_>, given: Option<&'m str>) -> Option<&'m str> {
        let own = || self.repo.models.get(plan.name()).map(|model| &*model.value);
        // A blank name is none.
        given.filter(|model| !model.trim().is_empty()).or_else(own).filter(|model| !model.trim().is_empty())
    }

    /// The context window of a model in tokens, if that is known.
    #[cfg(feature = "runtime")]
    pub(crate) fn context_window(&self, plan: &Plan<'_>, model: Option<&str>) -> Option<u64> {
        let server = Server::by_host(UrlParts::of(&plan.instance.url.value).host()).unwrap_or(Server::Unknown);
        let route = families::Route { wire: plan.wire, server, headers: &plan.api_headers() };
        let facts = ModelFacts::of(&self.repo.families, route, Some(plan.model(model)));
        facts.value(|family| family.context_window).and_then(|(window, _)| u64::try_from(window).ok())
    }

    /// Returns what tokens of a request cost, where that is known of its server and model. A server is known by the host of its URL alone: a
    /// proxy has prices of its own.
    #[cfg(feature = "runtime")]
    pub(crate) fn price(&self, plan: &Plan<'_>, model: Option<&str>) -> Option<Price> {
        let server = Server::by_host(UrlParts::of(&plan.instance.url.value).host()).unwrap_or(Server::Unknown);
        let route = families::Route { wire: plan.wire, server, headers: &plan.api_headers() };
        ModelFacts::of(&self.repo.families, route, Some(plan.model(model))).price()
    }

    /// The context with a name.
    pub fn context(&self, name: &str) -> Option<&LoadedContext> {
        self.contexts.iter().find(|loaded| &*loaded.context.name == name)
    }

    /// The ids of the agents whose name matches; an error with suggestions if none does.
    ///
    /// # Errors
    ///
    /// A phrase that says what was looked for and what is near; with the abstract profile's place if the name is that of
    /// one.
    pub fn select_agents(
        &self,
        matches: impl Fn(&str) -> bool,
        wanted: &str,
    ) -> Result<Vec<ProfileId>, Box<SelectError>> {
        let name = |id: ProfileId| self.hierarchy.get(id).name.value.as_ref();
        let found: Vec<ProfileId> = self.agents.iter().map(|(id, _)| *id).filter(|&id| matches(name(id))).collect();
        if !found.is_empty() {
            return Ok(found);
        }
        if let Some(id) = self.hierarchy.ids().find(|&id| matches(name(id)) && self.hierarchy.get(id).is_abstract()) {
            return Err(Box::new(SelectError::Abstract(rules::abstract_selected(self, id))));
        }
        let near = did_you_mean(wanted, self.agents.iter().map(|(id, _)| name(*id)));
        Err(Box::new(SelectError::Unknown { what: "agent", wanted: wanted.to_owned(), help: near }))
    }

    /// The names of the contexts that match; an error with suggestions if none does.
    ///
    /// # Errors
    ///
    /// As [`Compiler::select_agents`].
    pub fn select_contexts(
        &self,
        matches: impl Fn(&str) -> bool,
        wanted: &str,
    ) -> Result<Vec<Arc<str>>, Box<SelectError>> {
        let names = || self.contexts.iter().map(|loaded| &loaded.context.name);
        let found: Vec<Arc<str>> = names().filter(|name| matches(name)).cloned().collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let is_read = |file| self.contexts.iter().any(|loaded| loaded.context.file == file);
        if let Some((_, file)) = context::left_out(&self.repo, is_read).into_iter().find(|(name, _)| matches(name)) {
            let path = self.sources().get(file).path().to_string();
            return Err(Box::new(SelectError::LeftOut { wanted: wanted.to_owned(), path }));
        }
        let near = did_you_mean(wanted, names().map(AsRef::as_ref));
        Err(Box::new(SelectError::Unknown { what: "context", wanted: wanted.to_owned(), help: near }))
    }

    /// Returns `true` if every file said what it defines. If not, there may be agents and contexts that nobody knows of.
    pub fn is_fully_read(&self) -> bool {
        let profiles: HashSet<FileId> = self.hierarchy.ids().map(|id| self.hierarchy.get(id).file).collect();
        !self
            .findings
            .iter()
            .any(|finding| finding.severity == Severity::Error && !profiles.contains(&finding.primary.span.file))
    }

    /// How many of the selected agents cannot be compiled.
    pub fn skipped(&self, selection: &Selection) -> usize {
        self.agents.iter().filter(|(id, is_usable)| !is_usable && self.chosen_agent(selection, *id)).count()
    }
}

/// Why nothing was selected.
#[derive(Debug)]
#[non_exhaustive]
pub enum SelectError {
    /// Nothing has the name.
    Unknown {
        /// `agent` or `context`.
        what: &'static str,
        /// The name that was asked for.
        wanted: String,
        /// A suggestion of a similar name.
        help: Option<String>,
    },
    /// The name is that of an abstract profile.
    Abstract(Diagnostic),
    /// The context is left out, since something is wrong with its file.
    LeftOut {
        /// The name that was asked for.
        wanted: String,
        /// The file, as reports show it.
        path: String,
    },
}

impl fmt::Display for SelectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SelectError::Unknown { what, wanted, .. } => write!(f, "there is no {what} `{wanted}`"),
            SelectError::Abstract(finding) => f.write_str(&finding.message),
            SelectError::LeftOut { wanted, path } => {
                write!(f, "the context `{wanted}` is left out: something is wrong with `{path}`")
            }
        }
    }
}

impl std::error::Error for SelectError {}

/// Stack of the worker threads: deep but limited recursion in templates needs more than the usual 2 MiB.
pub(crate) const STACK_BYTES: usize = 16 * 1024 * 1024;

fn is_agent(repo: &Repo, hierarchy: &Hierarchy, id: ProfileId) -> bool {
    let profile = hierarchy.get(id);
    !profile.is_abstract() && repo.is_compiled(profile.layer) && !hierarchy.is_taken(id)
}

impl LoadedContext {
    fn new(repo: &Repo, context: Context, layers: &Readable) -> LoadedContext {
        let golden = match &repo.config.golden_contexts {
            Some(globs) => globs.value.iter().any(|glob| glob.value.is_match(&context.name)),
            None => context.golden,
        };
        let scopes = |environment: &PromptEnvironment| {
            let scope =
                |layer: &Layer| (layer.kind, environment.scope_of(repo, layer.kind, layers[&layer.kind].clone()));
            Arc::new(repo.layers.iter().map(scope).collect::<Scopes>())
        };
        let turns =
            context.earlier.iter().map(|state| scopes(&PromptEnvironment::of_state(&state.project, &state.language)));
        let (turns, scopes) = (turns.collect(), scopes(&PromptEnvironment::of(&context)));
        let states = context.earlier.iter().cloned().chain([context.last()]).collect();
        let plain = Arc::new(Version::new(states, Vec::new()));
        let source = OnceLock::new();
        LoadedContext { context, golden, plain, id: Identity::new(), scopes, source, turns }
    }

    /// How many content blocks the conversation has, rounded up to a power of two.
    fn size_class(normalised: &NormalisedConversation) -> usize {
        normalised.conversation.block_count().next_power_of_two()
    }
}

/// The surroundings of a conversation: what system prompts can see of it.
#[derive(Clone)]
pub struct PromptEnvironment {
    /// The project's files.
    pub project: Arc<dyn World>,
    /// The project's name.
    pub project_name: Arc<str>,
    /// The language of the file in front of the person.
    pub language: Arc<str>,
    /// The paths of the folders.
    pub folders: Folders,
}

impl PromptEnvironment {
    /// Returns `true` if two show the same: the very same project, under the same names.
    #[cfg(feature = "runtime")]
    pub(crate) fn is_same(&self, other: &PromptEnvironment) -> bool {
        let names = (&self.project_name, &self.language, &self.folders);
        Arc::ptr_eq(&self.project, &other.project) && names == (&other.project_name, &other.language, &other.folders)
    }

    /// The virtual project of a context.
    pub fn of(context: &Context) -> PromptEnvironment {
        PromptEnvironment::of_state(&context.project, &context.language)
    }

    fn of_state(project: &Project, language: &Arc<str>) -> PromptEnvironment {
        let files = project.files.iter().map(|(path, text)| (path.clone(), text.as_bytes().to_vec()));
        PromptEnvironment {
            project: Arc::new(files.collect::<MemoryWorld>()),
            project_name: Arc::clone(&project.name),
            language: Arc::clone(language),
            folders: Folders::placeholders(),
        }
    }

    /// Returns what the prompts of a layer's agents may read.
    fn scope(&self, repo: &Repo, layer: LayerKind) -> Arc<PromptScope> {
        let layers = repo.readable_layers(layer).map(|layer| Arc::clone(&layer.world));
        self.scope_of(repo, layer, layers.collect())
    }

    fn scope_of(&self, repo: &Repo, layer: LayerKind, layers: Vec<Arc<dyn World>>) -> Arc<PromptScope> {
        Arc::new(PromptScope {
            project: Arc::clone(&self.project),
            project_name: Arc::clone(&self.project_name),
            language: Arc::clone(&self.language),
            layers,
            shown_below: repo.readable_layers(layer).map(|layer| repo.shown_below(layer.kind)).collect(),
            folders: self.folders.clone(),
        })
    }
}

/// The files that the prompts of each layer's agents may read in all contexts, each file once.
type Readable = HashMap<LayerKind, Vec<Arc<dyn World>>>;

fn readable(repo: &Repo) -> Readable {
    let remembering = |layer: &Layer| Arc::new(Remembering::new(Arc::clone(&layer.world))) as Arc<dyn World>;
    let all: HashMap<LayerKind, Arc<dyn World>> =
        repo.layers.iter().map(|layer| (layer.kind, remembering(layer))).collect();
    let of = |layer: &Layer| repo.readable_layers(layer.kind).map(|layer| Arc::clone(&all[&layer.kind])).collect();
    repo.layers.iter().map(|layer| (layer.kind, of(layer))).collect()
}

/// One renderer per size of conversation.
struct Renderers<'e> {
    by_size: HashMap<usize, Renderer<'e>>,
}

impl<'e> Renderers<'e> {
    fn new(compiler: &'e Compiler) -> Renderers<'e> {
        let sizes = compiler.contexts.iter().map(|loaded| LoadedContext::size_class(&loaded.plain.normalised));
        let mut by_size = HashMap::default();
        for size in sizes {
            by_size.entry(size).or_insert_with(|| compiler.engine.renderer(size));
        }
        Renderers { by_size }
    }

    fn get(&self, normalised: &NormalisedConversation) -> &Renderer<'e> {
        &self.by_size[&LoadedContext::size_class(normalised)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::{Disk, Embedded};

    const BASE: &str = "name = 'Base'\nabstract = true\nextends = 'OpenAI Chat'\n";

    fn load(files: &[(&str, &str)], wanted: Option<&str>) -> Compiler {
        let world: MemoryWorld = files.iter().map(|(path, text)| (path.to_string(), text.to_string())).collect();
        let is_wanted = |name: &str| wanted == Some(name);
        let wanted = wanted.map(|_| &is_wanted as &dyn Fn(&str) -> bool);
        Compiler::load_some(Arc::new(world), Arc::new(Embedded::bundled()), LoadOptions::default(), wanted)
    }

    fn usable(compiler: &Compiler) -> Vec<&str> {
        let usable = compiler.agents.iter().filter(|(_, is_usable)| *is_usable);
        usable.map(|(id, _)| &*compiler.hierarchy.get(*id).name.value).collect()
    }

    #[test]
    fn only_the_wanted_agents_are_prepared_unless_there_is_something_to_tell() {
        let a = ("agents/a.toml", "name = 'A'\nextends = 'Base'");
        let b = ("agents/b.toml", "name = 'B'\nextends = 'Base'");
        let base = ("agents/base.toml", BASE);
        assert_eq!(usable(&load(&[base, a, b], None)), ["A", "B"]);
        assert_eq!(usable(&load(&[base, a, b], Some("A"))), ["A"]);
        assert_eq!(usable(&load(&[base, a, b], Some("C"))), ["A", "B"]);
        let broken = format!("{BASE}[body]\nmessages = '{{% if %}}'");
        let broken = load(&[("agents/base.toml", &broken), a, b], Some("A"));
        assert_eq!(usable(&broken), [""; 0]);
        let reached: Vec<&str> = broken.findings.iter().flat_map(|it| &it.agents).map(AsRef::as_ref).collect();
        assert_eq!(reached, ["A", "B"]);
        // Whom a partial reaches is known of prepared agents alone.
        let partial = ("partials/x.jinja", "{% if %}");
        assert_eq!(usable(&load(&[base, a, b, partial], Some("A"))), ["A", "B"]);
    }

    /// All agents of a repository may fail: each is told.
    #[test]
    fn templates_that_fail_at_once_cost_less_than_a_body_may() {
        let agent = "name = 'A'\nextends = 'Base'\n[body]\nmessages = '{{ ctx.nothing.at_all }}'";
        let compiler = load(&[("agents/base.toml", BASE), ("agents/a.toml", agent)], None);
        let (id, selection, renderers) = (compiler.agents[0].0, Selection::default(), Renderers::new(&compiler));
        let done = compiler.compile(id, &selection, &renderers, &|agent| agent.bodies.len());
        let limit = work::run_limit(compiler.contexts.len()) - work::run_limit(0);
        assert!(done.findings.len() == 1 && done.bodies == 0 && done.cost < limit, "{} of {limit}", done.cost);
    }

    /// With a memory, without one, and as `lint` judges a body that nobody here made; right ones, and such as models refuse.
    #[test]
    fn check_and_lint_judge_every_bundled_body_alike() {
        let root = Disk::open(std::path::Path::new(env!("CARGO_MANIFEST_DIR"))).expect("the crate's root");
        let compiler = Compiler::load(Arc::new(root), Arc::new(Embedded::bundled()), LoadOptions::default());
        let models = [None, Some("claude-opus-5-5"), Some("gpt-5.1"), Some("o1-mini"), Some("gemini-3-pro-preview")];
        let (mut bodies, mut problems) = (0, 0);
        for plan in compiler.hierarchy.ids().filter_map(|id| compiler.plan(id)) {
            for model in models {
                let checks = Checks::of(&plan, &compiler.schemas, &compiler.repo.families, model);
                for loaded in compiler.contexts.iter().filter(|loaded| loaded.context.kind() == plan.kind) {
                    let renderer = compiler.engine.renderer(64);
                    let version = compiler.version(&plan, loaded, &renderer).result.expect("a version");
                    let request = Request { memory: Some(&compiler.memory), ..loaded.request(&plan, &version, model) };
                    let body = plan.body(&compiler.repo.sources, &renderer, &request).expect("a body");
                    let of_lint = checks.problems_of(body.value());
                    assert_eq!(checks.problems(&body), of_lint, "{} {}", plan.name(), loaded.context.name);
                    (bodies, problems) = (bodies + 1, problems + of_lint.len());
                }
            }
        }
        assert!(bodies > 10_000 && problems > 100, "{bodies} {problems}");
    }

    #[test]
    fn bodies_that_differ_in_their_conversation_alone_share_the_verdict_on_the_rest() {
        for base in ["OpenAI Chat Tools", "Claude Chat Tools", "Gemini Chat Tools"] {
            let agent = format!("name = 'A'\nextends = '{base}'");
            let compiler = load(&[("agents/a.toml", &agent)], None);
            let plan = compiler.plan(compiler.agents[0].0).expect("a plan");
            let checks = Checks::of(&plan, &compiler.schemas, &compiler.repo.families, None);
            let mut bodies = 0;
            for loaded in compiler.contexts.iter().filter(|loaded| loaded.context.kind() == plan.kind) {
                let renderer = compiler.engine.renderer(64);
                let version = compiler.version(&plan, loaded, &renderer).result.expect("a version");
                let request = Request { memory: Some(&compiler.memory), ..loaded.request(&plan, &version, None) };
                let body = plan.body(&compiler.repo.sources, &renderer, &request).expect("a body");
                assert_eq!(checks.problems(&body), []);
                bodies += 1;
            }
            assert!(bodies > 40, "{base}: {bodies}");
        }
    }

    #[test]
    fn templates_of_one_agent_write_what_they_write_alone() {
        let agent = |at: usize| {
            let own = format!("[{{# {at} #}}{{% include 'openai/messages.jinja' %}}]");
            let text =
                format!("name = 'A {at}'\nextends = 'Base'\nsystem_prompt = '{at} {{{{ language }}}}'\n[body]\n");
            (format!("agents/{at}.toml"), format!("{text}messages = \"{own}\"\nstop = '[{{{{ 1 + 1 }}}}]'"))
        };
        let agents: Vec<(String, String)> = (0..80).map(agent).collect();
        let base = [("agents/base.toml", BASE)].into_iter();
        let files: Vec<(&str, &str)> =
            base.chain(agents.iter().map(|(path, text)| (path.as_str(), text.as_str()))).collect();
        let compiler = load(&files, None);
        let run = compiler.run(&Selection::default(), |agent| {
            let texts = agent.bodies.iter().map(|(loaded, body)| (Arc::clone(&loaded.context.name), body.pretty()));
            (Arc::clone(agent.plan.name()), texts.collect::<Vec<_>>())
        });
        for (name, bodies) in run.results.iter().step_by(13) {
            let id = compiler.hierarchy.by_name(name).expect("an agent");
            assert!(bodies.len() > 40);
            for (context, text) in bodies {
                let again = compiler.body(id, context, None).expect("usable").expect("a body");
                assert_eq!(again.pretty(), *text, "{name} {context}");
            }
        }
    }

    /// It is rendered once, and may take as many steps as each conversation allows all the same.
    #[test]
    fn a_prompt_that_says_the_same_everywhere_has_the_steps_of_each_context() {
        let agent = "name = 'A'\nextends = 'Base'\nsystem_prompt = '{% for i in range(190000) %}{% endfor %}x'";
        let compiler = load(&[("agents/base.toml", BASE), ("agents/a.toml", agent)], None);
        let id = compiler.agents[0].0;
        let run = compiler.run(&Selection::default(), |agent| {
            agent.bodies.iter().map(|(loaded, _)| Arc::clone(&loaded.context.name)).collect::<Vec<_>>()
        });
        let contexts = compiler.contexts.iter().filter(|loaded| loaded.context.kind() == TaskKind::Chat);
        let is_made =
            |loaded: &&LoadedContext| compiler.body(id, &loaded.context.name, None).is_some_and(|it| it.is_ok());
        let made: Vec<Arc<str>> = contexts.clone().filter(is_made).map(|it| Arc::clone(&it.context.name)).collect();
        assert_eq!(run.results, std::slice::from_ref(&made));
        assert!(!made.is_empty() && made.len() < contexts.count(), "{made:?}");
    }

    #[test]
    fn what_partials_wrote_for_another_agent_costs_the_same() {
        let agents = [
            ("a", "OpenAI Chat", "messages = '[{% include \"partials/openai/messages.jinja\" %}]'"),
            ("b", "OpenAI Chat", "messages = '[{% include \"openai/messages.jinja\" %} ]'"),
            ("e", "OpenAI Chat", "messages = '{% set closing = \"Go\" %}[{% include \"openai/messages.jinja\" %}]'"),
            ("f", "OpenAI Chat", "messages = '{% set closing = [1] %}[{% include \"openai/messages.jinja\" %}]'"),
            ("c", "Gemini Chat", "contents = '[{% include \"google/contents.jinja\" %}]'"),
            (
                "d",
                "Gemini Chat",
                "contents = '[{% if ctx.history %}{% include \"google/contents.jinja\" %}{% endif %}]'",
            ),
        ];
        let agents = agents.map(|(name, base, body)| {
            (format!("agents/{name}.toml"), format!("name = '{name}'\nextends = '{base}'\n[body]\n{body}"))
        });
        let files: Vec<(&str, &str)> = agents.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        let compiler = load(&files, None);
        let sources = &compiler.repo.sources;
        let ids = compiler.hierarchy.ids().filter(|&id| !compiler.hierarchy.get(id).is_abstract());
        for plan in ids.filter_map(|id| compiler.plan(id)) {
            for loaded in compiler.contexts.iter().filter(|loaded| loaded.context.kind() == plan.kind) {
                let renderer = compiler.engine.renderer(64);
                let version = compiler.version(&plan, loaded, &renderer).result.expect("a version");
                let made = |memory| {
                    plan.made(sources, &renderer, &Request { memory, ..loaded.request(&plan, &version, None) })
                };
                let (plain, first, again) = (made(None), made(Some(&compiler.memory)), made(Some(&compiler.memory)));
                assert_eq!([first.cost, again.cost], [plain.cost; 2], "{} {}", plan.name(), loaded.context.name);
                let texts = [plain, first, again].map(|made| made.body.expect("a body").pretty());
                assert!(texts[0] == texts[1] && texts[1] == texts[2], "{} {}", plan.name(), loaded.context.name);
            }
        }
    }

    #[test]
    fn agents_with_prompts_of_their_own_share_what_is_written_around_them() {
        let agents: Vec<(String, String)> = (0..4)
            .map(|index| {
                (
                    format!("agents/{index}.toml"),
                    format!("name = 'A{index}'\nextends = 'Base'\nsystem_prompt = 'p{index}'"),
                )
            })
            .collect();
        let mut files: Vec<(&str, &str)> = agents.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        files.push(("agents/base.toml", BASE));
        let compiler = load(&files, None);
        let run = compiler.run(&Selection::default(), |agent| agent.bodies.len());
        assert!(run.results.len() == 4 && run.findings.into_vec().is_empty());
    }
}
