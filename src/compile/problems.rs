//! A problem of a body as a finding: at the line that wrote the value, or, of a bundled file, where the agent took it over.

use std::cell::OnceCell;
use std::collections::HashSet;

use super::explain::{Entrance, Outside, is_providers_own};
use super::{Compiler, LintTarget, LoadedContext, misplaced, work};
use crate::check::Problem;
use crate::diag::{Diagnostic, Findings, Severity};
use crate::provider::{self, ClientApi, WireFormat};
use crate::source::{FileId, Span};
use crate::toml::Kind;
use crate::unit::{Body, KeyOrValue, Plan, Provenance, Record, Request};

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
        let other_format =
            problems.iter().any(is_of_schema).then(|| self.other_format(case.plan, record.body())).flatten();
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
            if let Some(other) = other_format.as_ref().and_then(|other| other.instead_of(&problem, &place)) {
                let at = (other.rule, None, other.primary.span, None);
                if !findings.reach(at, case.plan.name(), &case.loaded.context.name) {
                    findings.push(case.reached_by(other));
                }
                continue;
            }
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

    /// The provider instance that a profile names anew, if a parent's has another wire format.
    fn other_format<'p>(&self, plan: &'p Plan<'_>, body: &Body) -> Option<OtherFormat<'p>> {
        let named = plan.profile.merged.get("provider_instance")?;
        let earlier = named.overrode.iter().find_map(|level| match &level.node.kind {
            Kind::String(name) => self.repo.instances.get(name.as_str()),
            _ => None,
        })?;
        let earlier = ClientApi::from_name(&earlier.client_api.value)?.wire(plan.endpoint());
        let below = plan.profile.chain.iter().take_while(|profile| profile.file != named.file).map(|it| it.file);
        (earlier != plan.wire).then(|| OtherFormat {
            span: named.span(),
            instance: &plan.instance.name.value,
            wires: [earlier, plan.wire],
            below: below.chain([named.file]).collect(),
            wrong_before: self.problems_of_body(body.value(), earlier, &LintTarget::default()),
        })
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

/// The note on a finding in a block that the provider sent.
const GOES_BACK: &str = "the provider sent this itself: it goes back as it came";

/// A provider instance that a profile names anew, whose wire format is another one than its parent's.
struct OtherFormat<'p> {
    /// Where it is named.
    span: Span,
    instance: &'p str,
    /// The parent's, and the instance's.
    wires: [WireFormat; 2],
    /// The files of the profile that names it and of those that extend it.
    below: Vec<FileId>,
    /// The problems that the parent's format finds in the body.
    wrong_before: Vec<Problem>,
}

impl OtherFormat<'_> {
    /// The finding instead of one about a value that is taken over, and right in the parent's format: nobody mends it there.
    fn instead_of(&self, problem: &Problem, place: &Provenance) -> Option<Diagnostic> {
        let is_error = problem.severity.unwrap_or(problem.rule.severity) == Severity::Error;
        let mut places = place.steps.iter().map(|(span, _)| *span).chain([place.span]);
        let is_own = places.any(|span| self.below.contains(&span.file));
        let was_wrong = || self.wrong_before.iter().any(|it| is_of_schema(it) && it.pointer == problem.pointer);
        if !is_of_schema(problem) || !is_error || is_own || was_wrong() {
            return None;
        }
        let [earlier, takes] = self.wires.map(WireFormat::name);
        let message = format!("`{}` takes {takes}, and the inherited body is written for {earlier}", self.instance);
        let finding = Diagnostic::new(&provider::rules::OTHER_FORMAT, self.span, message);
        let help = format!("extend a profile that is written for {takes}, or name an instance of {earlier}");
        Some(finding.help(help).related(place.span, "for instance, this does not fit"))
    }
}

/// Returns `true` if the body's schema found it.
fn is_of_schema(problem: &Problem) -> bool {
    problem.rule.code.starts_with("schema/")
}

/// Returns what of a value wrote what a problem is about.
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
