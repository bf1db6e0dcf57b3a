//! Runs over agents in parallel, and compiles and checks every selected body.
//!
//! Results are in the order of agents, independent of how threads are scheduled.

use std::sync::Arc;

use rayon::prelude::*;

use super::budget::{self, Ledger};
use super::budgets::AgentBudgets;
use super::compiler::{Compiler, STACK_BYTES};
use super::contexts::{LoadedContext, Renderers};
use super::explain::entrance::at_entrance;
use super::explain::places::Places;
use super::finding::Teller;
use super::flow::AgentFlow;
use super::growth;
use super::pairing::Compiled;
use super::rules;
use super::selection::Chosen;
use super::surroundings;
use super::turns::Version;
use crate::check::{Checks, history};
use crate::conversation::TaskKind;
use crate::diag::{Diagnostic, Findings};
use crate::json::Pointer;
use crate::panics::{Panic, caught};
use crate::render::{Renderer, rules as render_rules};
use crate::resolve::{Hierarchy, ProfileId};
use crate::unit::{Body, Plan, Record, Request, SystemPrompt};

/// All bodies of one agent.
#[non_exhaustive]
pub struct AgentBodies<'c> {
    /// The agent's plan, from which the bodies were compiled.
    pub plan: Plan<'c>,
    /// The agent's bodies, sorted by context.
    pub bodies: Vec<(&'c LoadedContext, Body)>,
    /// The findings in the bodies, and the reasons why some could not be compiled, before any
    /// policy.
    pub findings: Vec<Diagnostic>,
}

/// The results of a run.
#[non_exhaustive]
pub struct Run<R> {
    /// The results of the visitor, sorted by agent name.
    pub results: Vec<R>,
    /// The findings of this run, without those from loading.
    pub findings: Findings,
    /// The number of bodies.
    pub bodies: usize,
}

impl<R> Run<R> {
    fn add(&mut self, agent: Done<R>) {
        self.results.extend(agent.result);
        self.findings.extend(agent.findings);
        self.bodies += agent.bodies;
    }
}

/// The results of one agent.
pub(super) struct Done<R> {
    /// The visitor's result; `None` if the agent could not be compiled.
    result: Option<R>,
    pub(super) findings: Vec<Diagnostic>,
    pub(super) bodies: usize,
    /// The cost, in units of work.
    pub(super) cost: u64,
}

impl<R> Done<R> {
    /// Returns the result of an agent that was not compiled.
    fn nothing() -> Done<R> {
        Done {
            result: None,
            findings: Vec::new(),
            bodies: 0,
            cost: 0,
        }
    }
}

/// Returns the finding about an agent whose compilation panicked.
pub(super) fn lost(hierarchy: &Hierarchy, id: ProfileId, panic: &Panic) -> Diagnostic {
    let name = &hierarchy.get(id).name;
    panic
        .finding(&format!("the agent `{}`", name.value), name.span)
        .reaching(&name.value, None)
}

/// Compiles agents in parallel.
#[derive(Clone, Copy)]
pub(super) struct Runner<'a> {
    chosen: Chosen<'a>,
    compiler: &'a Compiler,
}

impl<'a> Runner<'a> {
    pub(super) fn new(chosen: Chosen<'a>) -> Runner<'a> {
        Runner {
            chosen,
            compiler: chosen.compiler,
        }
    }

    /// Compiles every selected body. `findings` are the findings so far.
    pub(super) fn run<R: Send>(
        &self,
        findings: Findings,
        visit: impl Fn(&AgentBodies<'_>) -> R + Sync,
    ) -> Run<R> {
        let agents = self.chosen.usable();
        let renderers = Renderers::new(&self.compiler.engine, &self.compiler.contexts);
        let limit = budget::run_limit(agents.len().saturating_mul(self.chosen.contexts().count()));
        let ledger = Ledger::new(limit);
        let compile_all = || -> Vec<Option<Done<R>>> {
            let numbered = agents.par_iter().enumerate();
            numbered
                .map(|(index, id)| self.compile_within(&ledger, index, *id, &renderers, &visit))
                .collect()
        };
        let done = match rayon::ThreadPoolBuilder::new()
            .stack_size(STACK_BYTES)
            .build()
        {
            Ok(pool) => pool.install(compile_all),
            Err(_) => compile_all(),
        };
        let run = Run {
            results: Vec::new(),
            findings,
            bodies: 0,
        };
        self.put_together(run, &agents, done, limit)
    }

    /// Combines the agents' results within the run's limit, in order.
    fn put_together<R>(
        &self,
        mut run: Run<R>,
        agents: &[ProfileId],
        done: Vec<Option<Done<R>>>,
        limit: u64,
    ) -> Run<R> {
        let places = budget::places(
            done.iter().map(|done| done.as_ref().map(|done| done.cost)),
            limit,
        );
        done.into_iter()
            .take(places)
            .flatten()
            .for_each(|done| run.add(done));
        if let Some(&first) = agents.get(places) {
            let left = agents.len() - places;
            run.findings.extend([rules::run_too_much_work(
                &self.compiler.hierarchy,
                first,
                left,
            )]);
        }
        run
    }

    /// Compiles an agent; returns `None` if earlier agents have used up the limit.
    fn compile_within<R>(
        &self,
        ledger: &Ledger,
        index: usize,
        id: ProfileId,
        renderers: &Renderers<'a>,
        visit: &impl Fn(&AgentBodies<'_>) -> R,
    ) -> Option<Done<R>> {
        if ledger.is_spent() {
            return None;
        }
        let done = caught(|| self.compile(id, renderers, visit)).unwrap_or_else(|panic| {
            let findings = vec![lost(&self.compiler.hierarchy, id, &panic)];
            Done {
                findings,
                cost: budget::AGENT_LIMIT,
                ..Done::nothing()
            }
        });
        ledger.enter(index, done.cost);
        Some(done)
    }

    pub(super) fn compile<R>(
        &self,
        id: ProfileId,
        renderers: &Renderers<'a>,
        visit: &impl Fn(&AgentBodies<'_>) -> R,
    ) -> Done<R> {
        let Some(plan) = self.compiler.plan(id) else {
            return Done::nothing();
        };
        let mut agent = AgentRun::new(self.chosen, &plan);
        let mut bodies = Vec::new();
        for loaded in self
            .chosen
            .contexts_of(plan.name())
            .filter(|loaded| loaded.context.kind() == plan.kind)
        {
            if agent.spent.is_too_much() {
                let finding = agent.spent.finding(&plan, &loaded.context.name);
                agent.findings.extend(finding);
                break;
            }
            if let Some(body) = agent.compile(loaded, renderers.get(loaded)) {
                // A body with findings is kept, because a repository may lower their severity.
                bodies.push((loaded, body));
            }
        }
        let (cost, findings) = agent.finish();
        let agent = AgentBodies {
            plan,
            bodies,
            findings,
        };
        let result = visit(&agent);
        Done {
            result: Some(result),
            bodies: agent.bodies.len(),
            findings: agent.findings,
            cost,
        }
    }
}

/// The state of an agent while its bodies are being compiled.
struct AgentRun<'a> {
    compiler: &'a Compiler,
    plan: &'a Plan<'a>,
    checks: Checks,
    model: Option<&'a str>,
    without_memo: bool,
    findings: Findings,
    spent: Spent,
    flow: AgentFlow<'a>,
    budgets: AgentBudgets,
}

impl<'a> AgentRun<'a> {
    fn new(chosen: Chosen<'a>, plan: &'a Plan<'a>) -> AgentRun<'a> {
        let (compiler, selection) = (chosen.compiler, chosen.selection);
        let model = selection.model.as_deref();
        let client_model = compiler.repo.client_model(plan.name(), model);
        AgentRun {
            compiler,
            plan,
            checks: Checks::of(
                plan,
                &compiler.schemas,
                &compiler.repo.families,
                client_model,
            ),
            model,
            without_memo: selection.without_memo,
            findings: Findings::default(),
            spent: Spent {
                static_values: plan.static_values(),
                ..Spent::default()
            },
            flow: AgentFlow::new(compiler, plan),
            budgets: AgentBudgets::default(),
        }
    }

    /// Compiles the body for a context, and records its findings; returns `None` if the body cannot
    /// be compiled.
    fn compile(&mut self, loaded: &'a LoadedContext, renderer: &Renderer<'_>) -> Option<Body> {
        let version = surroundings::version(self.compiler, self.plan, loaded, renderer);
        self.spent.add(version.cost);
        let version = match version.result {
            Ok(version) => version,
            Err(finding) => {
                self.findings
                    .push(finding.reaching(self.plan.name(), Some(&loaded.context.name)));
                return None;
            }
        };
        let memory = (!self.without_memo).then_some(&self.compiler.memory);
        let request = Request {
            memory,
            ..loaded.request(self.plan, &version, self.model)
        };
        let Some(made) = self.make(loaded, renderer, &request) else {
            self.flow.lacks_a_body();
            return None;
        };
        self.look_at(loaded, renderer, &version, &request, &made);
        Some(made.body)
    }

    /// Compiles a body, and adds the findings from schemas and rules.
    fn make(
        &mut self,
        loaded: &LoadedContext,
        renderer: &Renderer<'_>,
        request: &Request<'_>,
    ) -> Option<MadeBody> {
        let (plan, sources) = (self.plan, self.compiler.sources());
        let made = plan.made(sources, renderer, request);
        self.spent.add(made.cost);
        match made.body {
            Ok(body) => {
                self.spent.held = self.spent.held.saturating_add(body.weight());
                let problems = self.checks.problems(&body);
                let history = history::member_of(plan.wire).map(|it| Pointer::root().member(it));
                let lacks_history = history
                    .is_some_and(|history| problems.iter().any(|it| it.lacks.contains(&history)));
                self.spent
                    .add(budget::of_body(self.spent.static_values, problems.len()));
                if !problems.is_empty() {
                    let record = Record::new(plan, sources, renderer, request, &body);
                    let places = Places::new(self.compiler, plan, loaded);
                    Teller { places }.tell_all(
                        &record,
                        problems,
                        &mut self.spent.cost,
                        &mut self.findings,
                    );
                }
                Some(MadeBody {
                    body,
                    prompt: made.prompt,
                    lacks_history,
                })
            }
            Err(found) => {
                self.spent.is_told |= found
                    .iter()
                    .any(|finding| finding.rule == &render_rules::TOO_MUCH_WORK);
                for finding in found {
                    let finding = at_entrance(sources, finding, &plan.profile);
                    self.findings
                        .push(finding.reaching(plan.name(), Some(&loaded.context.name)));
                }
                None
            }
        }
    }

    /// Compares a body with earlier requests and with its conversation.
    fn look_at(
        &mut self,
        loaded: &'a LoadedContext,
        renderer: &Renderer<'_>,
        version: &Version,
        request: &Request<'_>,
        made: &MadeBody,
    ) {
        let compiled = Compiled {
            compiler: self.compiler,
            plan: self.plan,
            checks: &self.checks,
            loaded,
            version,
            renderer,
            request,
            body: &made.body,
            prompt: made.prompt.as_ref(),
        };
        if self.plan.kind == TaskKind::Chat {
            growth::prove(&compiled, &mut self.spent.cost, &mut self.findings);
        }
        self.budgets.hold(&compiled, self.model);
        match made.lacks_history {
            true => self.flow.lacks_a_body(),
            false => self.flow.judge(&compiled, loaded),
        }
    }

    /// Reports the losses and exceeded budgets in the bodies, and returns the total cost and all
    /// findings.
    fn finish(mut self) -> (u64, Vec<Diagnostic>) {
        self.flow.tell(self.plan, self.model, &mut self.findings);
        self.budgets.tell(self.plan, &mut self.findings);
        (self.spent.cost, self.findings.into_vec())
    }
}

/// A body, with the findings of its checks.
struct MadeBody {
    body: Body,
    prompt: Option<SystemPrompt>,
    /// `true` if a finding reports that the member with the conversation is missing, in which case
    /// the body cannot contain any of the conversation.
    lacks_history: bool,
}

/// The work and memory that the bodies of one agent have used so far.
#[derive(Default)]
struct Spent {
    /// The cost so far, in units of work.
    cost: u64,
    /// The total size of the bodies, in bytes.
    held: usize,
    /// The number of values in each body that are not rendered by templates.
    static_values: usize,
    /// `true` if a finding already reports that a template exceeds its work limit.
    is_told: bool,
}

impl Spent {
    fn add(&mut self, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
    }

    fn is_too_much(&self) -> bool {
        self.held > budget::MAX_HELD || self.cost > budget::AGENT_LIMIT
    }

    /// Returns a finding with the context at which the agent's compilation stopped, or `None` if
    /// the reason was already reported.
    fn finding(&self, plan: &Plan<'_>, context: &Arc<str>) -> Option<Diagnostic> {
        match self.held > budget::MAX_HELD {
            true => Some(rules::agent_too_large(plan, context)),
            false => (!self.is_told).then(|| rules::agent_too_much_work(plan, context)),
        }
    }
}
