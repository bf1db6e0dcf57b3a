//! A problem of a body as a finding: at the line that wrote the value, or, of a bundled file, where the agent took it over.

use std::cell::OnceCell;
use std::collections::HashSet;

use super::explain::{Entrance, Outside, is_providers_own};
use super::{Compiler, LoadedContext, misplaced, work};
use crate::check::Problem;
use crate::diag::{Diagnostic, Findings, Severity};
use crate::source::Span;
use crate::unit::{KeyOrValue, Plan, Provenance, Record, Request};

/// An agent and the context whose body has a problem.
#[derive(Clone, Copy)]
pub(super) struct Case<'c, 'p> {
    pub(super) plan: &'c Plan<'p>,
    pub(super) loaded: &'c LoadedContext,
}

impl Case<'_, '_> {
    /// The finding, of this agent in this context.
    fn reached_by(&self, finding: Diagnostic) -> Diagnostic {
        finding.reaching(self.plan.name(), Some(&self.loaded.context.name))
    }
}

impl Compiler {
    /// Tells the problems of a body at the lines that wrote them; once an agent has cost too much, at the templates.
    pub(super) fn tell_problems(
        &self,
        case: Case<'_, '_>,
        record: &Record<'_>,
        problems: Vec<Problem>,
        (cost, findings): (&mut u64, &mut Findings),
    ) {
        let mut asked = HashSet::new();
        for problem in problems {
            let unset = || problem.lacks.iter().find_map(|member| case.plan.unset_at(member));
            if let Some(span) = problem.place.or_else(unset) {
                let problem = Problem { sense: None, ..problem };
                findings.push(case.reached_by(finding(problem, span, None, Vec::new())));
                continue;
            }
            if record.splice(&problem.pointer).is_some_and(|splice| asked.insert(splice)) {
                *cost = cost.saturating_add(record.cost(&problem.pointer));
            }
            let target = part_of(&problem);
            let place = match *cost <= work::AGENT_LIMIT {
                true => record.place(&problem.pointer, target),
                false => record.rough_place(&problem.pointer, target),
            };
            let model = record.model_named_at(&self.repo).filter(|_| problem.is_of_model);
            self.tell_problem(case, problem, &place, model, findings, |finding, _| finding);
        }
    }

    /// Tells a problem at the place that wrote it, once for all agents and contexts that it reaches. `more` adds to a finding that is
    /// new; it gets the span at which the value was written.
    pub(super) fn tell_problem(
        &self,
        case: Case<'_, '_>,
        problem: Problem,
        place: &Provenance,
        model: Option<Span>,
        findings: &mut Findings,
        more: impl FnOnce(Diagnostic, Span) -> Diagnostic,
    ) {
        let Case { plan, loaded } = case;
        let outside = self.outside(place, plan, loaded);
        let span = outside.map_or(place.span, |outside| outside.span);
        let entrance = self.entrance((span, &place.steps), model, &plan.profile);
        let sense = match &entrance {
            Some(entrance) => Some(entrance.sense(problem.sense.as_deref())),
            None => problem.sense.clone(),
        };
        let at = entrance.map_or(span, |entrance| entrance.span);
        let at = (problem.rule, problem.severity, at, sense.as_deref());
        // One that is told once for all agents is told in the words of each.
        let is_in_context = outside.is_some_and(Outside::is_in_context);
        if is_in_context || !findings.reach(at, plan.name(), &loaded.context.name) {
            let finding = self.finding_at(case, problem, place, (outside, entrance));
            findings.push(case.reached_by(more(finding, span)));
        }
    }

    /// A problem as a finding at the place that wrote it, with what led there.
    fn finding_at(
        &self,
        Case { plan, loaded }: Case<'_, '_>,
        problem: Problem,
        place: &Provenance,
        (outside, entrance): (Option<Outside>, Option<Entrance>),
    ) -> Diagnostic {
        let problem = if entrance.is_some() { taken_over(problem, place, plan) } else { problem };
        let (span, related) = self.in_files(place, outside, plan, loaded);
        let pointer = problem.pointer.to_string();
        let finding = finding(problem, span, place.excerpt.as_ref().map(ToString::to_string), related);
        let finding = misplaced::explained(finding, &pointer, self.sources());
        match entrance {
            Some(entrance) => entrance.tell(finding),
            None if outside.is_some_and(Outside::is_in_context) => finding.once_at_its_place(),
            None => finding,
        }
    }
}

/// The problems of a live body as findings, at what wrote them. What is the provider's own is a warning at most: it goes back as
/// it came.
pub(super) fn of_live_body(
    plan: &Plan<'_>,
    request: &Request<'_>,
    record: &Record<'_>,
    problems: Vec<Problem>,
) -> Vec<Diagnostic> {
    let history = OnceCell::new();
    let mut findings = Vec::with_capacity(problems.len());
    for problem in problems {
        let place = record.place(&problem.pointer, part_of(&problem));
        let history = history.get_or_init(|| request.conversation.history_for(plan.api));
        let is_own = is_providers_own(record, &problem.pointer, history);
        let span = problem.place.unwrap_or(place.span);
        let excerpt = place.excerpt.map(|excerpt| excerpt.to_string());
        let finding = finding(problem, span, excerpt, place.steps).reaching(plan.name(), None);
        findings.push(if is_own { finding.at_most(Severity::Warning).help(GOES_BACK) } else { finding });
    }
    findings
}

/// What is said of a finding in a block that the provider sent.
const GOES_BACK: &str = "the provider sent this itself: it goes back as it came";

/// What of a value wrote what a problem is about.
fn part_of(problem: &Problem) -> KeyOrValue {
    if problem.is_about_key() { KeyOrValue::Key } else { KeyOrValue::Value }
}

/// The same problem, with what drops a literal of a bundled profile: in a file that comes with the program no name is misspelt.
fn taken_over(problem: Problem, place: &Provenance, plan: &Plan<'_>) -> Problem {
    let entry = plan.unset_entry(&problem.pointer).filter(|_| place.excerpt.is_none());
    let Some(unset) = entry.map(|entry| format!("`unset = [{entry}]` drops what is taken over")) else {
        return problem;
    };
    let help = problem.help.as_ref().filter(|_| !problem.is_about_key());
    Problem { help: Some(help.map_or(unset.clone(), |help| format!("{help}; {unset}"))), ..problem }
}

/// A problem of a body as a finding at what wrote it, with the steps that led there.
fn finding(problem: Problem, span: Span, excerpt: Option<String>, steps: Vec<(Span, &'static str)>) -> Diagnostic {
    let mut finding = Diagnostic::new(problem.rule, span, problem.message).maybe_help(problem.help);
    finding.severity = problem.severity.unwrap_or(finding.severity);
    finding = finding.in_sense(problem.sense).label(excerpt.unwrap_or_default());
    steps.into_iter().fold(finding, |finding, (span, what)| finding.related(span, what))
}
