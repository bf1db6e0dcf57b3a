//! Converts a problem in a body to a finding at the line where the value was written. If that line
//! is in a bundled file, the finding is at the location where the agent uses that file.

mod profile_key;

use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::Arc;

use super::budget;
use super::explain::entrance::{Entrance, Trail};
use super::explain::places::{Outside, Places};
use super::judge::{Judge, LintTarget};
use crate::check::Problem;
use crate::conversation::{Block, Message};
use crate::diag::{Diagnostic, FindingAt, Findings, Severity};
use crate::json::Pointer;
use crate::provider::{self, ClientApi, WireFormat};
use crate::repo::LayerKind;
use crate::source::{FileId, Span};
use crate::toml::Kind;
use crate::unit::{Body, KeyOrValue, Plan, Provenance, Record, Request};

/// Reports the problems in an agent's bodies for one context.
pub(super) struct Teller<'a> {
    pub(super) places: Places<'a>,
}

/// A problem, and the origin of its value.
pub(super) struct Blamed<'p> {
    pub(super) problem: Problem,
    pub(super) place: &'p Provenance,
    /// The location of the model's name, if the model is the reason.
    pub(super) model: Option<Span>,
}

impl Teller<'_> {
    /// Reports the problems in a body at the lines where the values were written or, once an agent
    /// has used up its work limit, at the templates. Adds the cost of finding the locations to
    /// `cost`.
    pub(super) fn tell_all(
        &self,
        record: &Record<'_>,
        problems: Vec<Problem>,
        cost: &mut u64,
        findings: &mut Findings,
    ) {
        let plan = self.places.plan;
        let mut asked = HashSet::new();
        let other_instance = if problems.is_empty() {
            None
        } else {
            self.other_instance(record.body())
        };
        for problem in problems {
            if let Some(span) = problem.place.or_else(|| unset_of(plan, &problem)) {
                let problem = Problem {
                    sense: None,
                    ..problem
                };
                findings.push(self.reached(finding(problem, span)));
                continue;
            }
            if record
                .splice(&problem.pointer)
                .is_some_and(|splice| asked.insert(splice))
            {
                *cost = cost.saturating_add(record.cost(&problem.pointer));
            }
            let place = match *cost <= budget::AGENT_LIMIT {
                true => record.place(&problem.pointer, part_of(&problem)),
                false => record.rough_place(&problem.pointer, part_of(&problem)),
            };
            if let Some(other) = other_instance
                .as_ref()
                .and_then(|other| other.instead_of(&problem, &place))
            {
                let sense = other.sense.clone();
                let at = FindingAt {
                    rule: other.rule,
                    severity: Some(other.severity),
                    span: other.primary.span,
                    sense: sense.as_deref(),
                };
                if !findings.reach(at, plan.name(), self.context()) {
                    findings.push(self.reached(other));
                }
                continue;
            }
            let model = record
                .model_named_at(self.places.compiler.repo())
                .filter(|_| problem.is_of_model);
            self.tell(
                Blamed {
                    problem,
                    place: &place,
                    model,
                },
                findings,
                |finding, _| finding,
            );
        }
    }

    /// Reports a problem at the location where the value was written, as one finding for all
    /// affected agents and contexts. `more` adds details when the finding is created; it receives
    /// the span of that location.
    pub(super) fn tell(
        &self,
        blamed: Blamed<'_>,
        findings: &mut Findings,
        more: impl FnOnce(Diagnostic, Span) -> Diagnostic,
    ) {
        let Blamed {
            problem,
            place,
            model,
        } = blamed;
        let outside = self.places.outside(place);
        let span = outside.map_or(place.span, |outside| outside.span);
        let trail = Trail {
            span,
            steps: &place.steps,
        };
        let entrance = Entrance::of(
            self.places.compiler.sources(),
            trail,
            model,
            &self.places.plan.profile,
        );
        let sense = match &entrance {
            Some(entrance) => Some(entrance.sense(problem.sense.as_deref())),
            None => problem.sense.clone(),
        };
        let at = FindingAt {
            rule: problem.rule,
            severity: problem.severity,
            span: entrance.map_or(span, |entrance| entrance.span),
            sense: sense.as_deref(),
        };
        // A finding in a context is reported once for all agents, but it contains the message for
        // each agent.
        let is_in_context = outside.is_some_and(Outside::is_in_context);
        if is_in_context || !findings.reach(at, self.places.plan.name(), self.context()) {
            let finding = self.finding_at(problem, place, outside, entrance);
            findings.push(self.reached(more(finding, span)));
        }
    }

    /// Returns the override of the parent's provider instance, if there is one.
    fn other_instance(&self, body: &Body) -> Option<OtherInstance<'_>> {
        let Places { compiler, plan, .. } = self.places;
        let named = plan.profile.merged.get("provider_instance")?;
        let earlier = named
            .overrode
            .iter()
            .find_map(|level| match &level.node.kind {
                Kind::String(name) => compiler.repo.instances.get(name.as_str()),
                _ => None,
            })?;
        let chain = &plan.profile.chain;
        let at = chain.iter().position(|it| it.file == named.file)?;
        if chain[at].layer != LayerKind::Own {
            return None;
        }
        let wire = ClientApi::from_name(&earlier.client_api.value)?.wire(plan.endpoint());
        let target = LintTarget {
            instance: Some(earlier),
            ..LintTarget::default()
        };
        Some(OtherInstance {
            span: named.span(),
            instance: &plan.instance.name.value,
            wires: [wire, plan.wire],
            below: chain[..=at].iter().map(|it| it.file).collect(),
            wrong_before: Judge::new(compiler).problems(body.value(), wire, &target),
        })
    }

    /// Returns a problem as a finding at its origin, with the steps that led to it.
    fn finding_at(
        &self,
        problem: Problem,
        place: &Provenance,
        outside: Option<Outside>,
        entrance: Option<Entrance>,
    ) -> Diagnostic {
        let problem = if entrance.is_some() {
            taken_over(problem, place, self.places.plan)
        } else {
            problem
        };
        let (span, related) = self.places.in_files(place, outside);
        let pointer = problem.pointer.to_string();
        let finding = written(finding(problem, span), place, related);
        let finding = profile_key::explained(finding, &pointer, self.places.compiler.sources());
        match entrance {
            Some(entrance) => entrance.tell(finding),
            None if outside.is_some_and(Outside::is_in_context) => finding.once_at_its_place(),
            None => finding,
        }
    }

    /// Adds this agent and context to a finding's reach.
    fn reached(&self, finding: Diagnostic) -> Diagnostic {
        finding.reaching(self.places.plan.name(), Some(self.context()))
    }

    fn context(&self) -> &Arc<str> {
        &self.places.loaded.context.name
    }
}

/// Returns the `unset` entry that removed the member that a problem reports as missing.
fn unset_of(plan: &Plan<'_>, problem: &Problem) -> Option<Span> {
    problem
        .lacks
        .iter()
        .find_map(|member| plan.unset_at(member))
}

/// Converts the problems in a live body to findings at their origins. Problems in content that the
/// provider sent are warnings at most, because such content is sent back unchanged.
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
        let steps = place.steps.clone();
        let finding = written(finding(problem, span), &place, steps).reaching(plan.name(), None);
        findings.push(if is_own {
            finding.at_most(Severity::Warning).help(GOES_BACK)
        } else {
            finding
        });
    }
    findings
}

/// The note for a finding in content that the provider sent.
const GOES_BACK: &str = "this content came from the provider, so it is sent back unchanged";

/// A provider instance that a profile sets in place of its parent's.
struct OtherInstance<'p> {
    /// The location of the instance's name.
    span: Span,
    instance: &'p str,
    /// The wire formats of the parent's instance and of the profile's instance.
    wires: [WireFormat; 2],
    /// The files of the profile that sets the instance, and of its descendants in the chain.
    below: Vec<FileId>,
    /// The body's problems with the parent's instance.
    wrong_before: Vec<Problem>,
}

impl OtherInstance<'_> {
    /// Returns a replacement for a finding about an inherited value that the parent's instance
    /// accepts. In that case, the mistake is the choice of the instance, not the value.
    fn instead_of(&self, problem: &Problem, place: &Provenance) -> Option<Diagnostic> {
        let mut places = place
            .steps
            .iter()
            .map(|(span, _)| *span)
            .chain([place.span]);
        let is_own = places.any(|span| self.below.contains(&span.file));
        if is_own || self.was_wrong(problem) {
            return None;
        }
        let [earlier, takes] = self.wires;
        if earlier != takes {
            return self.other_format(problem, place);
        }
        let finding = finding(problem.clone(), self.span);
        Some(finding.related(
            place.span,
            format!("inherited; `{}` does not accept this", self.instance),
        ))
    }

    fn was_wrong(&self, problem: &Problem) -> bool {
        let is_same = |it: &&Problem| it.pointer == problem.pointer;
        let mut same = self.wrong_before.iter().filter(is_same);
        same.any(|it| match self.wires[0] == self.wires[1] {
            true => it.rule == problem.rule,
            false => is_of_schema(it),
        })
    }

    /// Returns the finding for a body that is written for a different format.
    fn other_format(&self, problem: &Problem, place: &Provenance) -> Option<Diagnostic> {
        let is_error = problem.severity.unwrap_or(problem.rule.severity) == Severity::Error;
        if !is_of_schema(problem) || !is_error {
            return None;
        }
        let [earlier, takes] = self.wires.map(WireFormat::name);
        let message = format!(
            "`{}` accepts {takes}, but the inherited body is written for {earlier}",
            self.instance
        );
        let finding = Diagnostic::new(&provider::rules::OTHER_FORMAT, self.span, message);
        let help = format!(
            "extend a profile that is written for {takes}, or use a provider instance that accepts {earlier}"
        );
        Some(finding.help(help).related(
            place.span,
            format!("for example, {takes} does not accept this"),
        ))
    }
}

/// Returns `true` if the schema found the problem.
fn is_of_schema(problem: &Problem) -> bool {
    problem.rule.code.starts_with("schema/")
}

/// Returns the part that a problem is about: the key or the value.
fn part_of(problem: &Problem) -> KeyOrValue {
    if problem.is_about_key() {
        KeyOrValue::Key
    } else {
        KeyOrValue::Value
    }
}

/// Adds help on removing a literal in a bundled profile. Problems with keys get only this help,
/// because bundled files have no misspelled names.
fn taken_over(problem: Problem, place: &Provenance, plan: &Plan<'_>) -> Problem {
    let entry = plan
        .unset_entry(&problem.pointer)
        .filter(|_| place.excerpt.is_none());
    let Some(unset) = entry.map(|entry| format!("`unset = [{entry}]` removes the inherited value"))
    else {
        return problem;
    };
    let help = problem.help.as_ref().filter(|_| !problem.is_about_key());
    Problem {
        help: Some(help.map_or(unset.clone(), |help| format!("{help}; {unset}"))),
        ..problem
    }
}

/// Returns a problem in a body as a finding at a location.
pub(super) fn finding(problem: Problem, span: Span) -> Diagnostic {
    let mut finding = Diagnostic::new(problem.rule, span, problem.message).maybe_help(problem.help);
    finding.severity = problem.severity.unwrap_or(finding.severity);
    finding.in_sense(problem.sense)
}

/// Adds two things to a finding: an excerpt of the value, if a template wrote it, and the steps
/// that led to the value's location.
fn written(
    finding: Diagnostic,
    place: &Provenance,
    steps: Vec<(Span, &'static str)>,
) -> Diagnostic {
    let excerpt = place.excerpt.as_ref().map(ToString::to_string);
    let finding = finding.label(excerpt.unwrap_or_default());
    steps
        .into_iter()
        .fold(finding, |finding, (span, what)| finding.related(span, what))
}

/// Returns `true` if a value in a body comes from a provider-specific block, or is the signature of
/// a thinking block whose origin is known. `history` is in the client API's normal form, without
/// other providers' blocks. A key is attributed to the source of its value, and an empty object to
/// the source of the enclosing object.
fn is_providers_own(record: &Record<'_>, pointer: &Pointer, history: &[Message]) -> bool {
    let around = std::iter::successors(Some(pointer.clone()), Pointer::parent);
    let path = around
        .map(|at| record.place(&at, KeyOrValue::Value))
        .find_map(|place| place.data.or(place.holds));
    let Some(path) = path else { return false };
    let tokens: Vec<String> = path.tokens().take(5).collect();
    let index = |at: usize| tokens.get(at).and_then(|token| token.parse::<usize>().ok());
    let is_block = matches!(tokens.as_slice(), [ctx, _, blocks, _, ..] if ctx == "history" && blocks == "content_blocks");
    let is_signature = tokens
        .last()
        .is_some_and(|member| member == "signature" || member == "data");
    let block = || history.get(index(1)?)?.blocks.get(index(3)?);
    is_block
        && block().is_some_and(|block| match block {
            Block::Provider(_) => true,
            Block::Thinking { origin, .. } | Block::RedactedThinking { origin, .. } => {
                is_signature && origin.is_some()
            }
            _ => false,
        })
}
