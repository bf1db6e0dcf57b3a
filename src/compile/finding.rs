//! A problem of a body as a finding: at the line that wrote the value, or, of a bundled file, where
//! the agent took it over.

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
use crate::source::{FileId, Span};
use crate::toml::Kind;
use crate::unit::{Body, KeyOrValue, Plan, Provenance, Record, Request};

/// Says what is wrong with the bodies of an agent in one context.
pub(super) struct Teller<'a> {
    pub(super) places: Places<'a>,
}

/// A problem, and what wrote the value that it is about.
pub(super) struct Blamed<'p> {
    pub(super) problem: Problem,
    pub(super) place: &'p Provenance,
    /// The place that names the model, if the model is why it is a problem.
    pub(super) model: Option<Span>,
}

impl Teller<'_> {
    /// Reports the problems of a body at the lines that wrote them; once an agent has cost too
    /// much, at the templates. `cost` grows by what looking for places takes.
    pub(super) fn tell_all(
        &self,
        record: &Record<'_>,
        problems: Vec<Problem>,
        cost: &mut u64,
        findings: &mut Findings,
    ) {
        let plan = self.places.plan;
        let mut asked = HashSet::new();
        let other_format = if problems.iter().any(is_of_schema) {
            self.other_format(record.body())
        } else {
            None
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
            if let Some(other) = other_format
                .as_ref()
                .and_then(|other| other.instead_of(&problem, &place))
            {
                let at = FindingAt {
                    rule: other.rule,
                    severity: None,
                    span: other.primary.span,
                    sense: None,
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

    /// Reports a problem at the place that wrote it, once for all agents and contexts that it
    /// reaches. `more` adds to a finding that is new; it gets the span at which the value was
    /// written.
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
        // One that is reported once for all agents is reported in the words of each.
        let is_in_context = outside.is_some_and(Outside::is_in_context);
        if is_in_context || !findings.reach(at, self.places.plan.name(), self.context()) {
            let finding = self.finding_at(problem, place, outside, entrance);
            findings.push(self.reached(more(finding, span)));
        }
    }

    /// Returns the provider instance that the profile names again, if a parent's has another wire
    /// format.
    fn other_format(&self, body: &Body) -> Option<OtherFormat<'_>> {
        let Places { compiler, plan, .. } = self.places;
        let named = plan.profile.merged.get("provider_instance")?;
        let earlier = named
            .overrode
            .iter()
            .find_map(|level| match &level.node.kind {
                Kind::String(name) => compiler.repo.instances.get(name.as_str()),
                _ => None,
            })?;
        let earlier = ClientApi::from_name(&earlier.client_api.value)?.wire(plan.endpoint());
        let below = plan
            .profile
            .chain
            .iter()
            .take_while(|profile| profile.file != named.file)
            .map(|it| it.file);
        (earlier != plan.wire).then(|| OtherFormat {
            span: named.span(),
            instance: &plan.instance.name.value,
            wires: [earlier, plan.wire],
            below: below.chain([named.file]).collect(),
            wrong_before: Judge::new(compiler).problems(
                body.value(),
                earlier,
                &LintTarget::default(),
            ),
        })
    }

    /// Returns a problem as a finding at the place that wrote it, with what led there.
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

    /// Adds to a finding that it reaches this agent in this context.
    fn reached(&self, finding: Diagnostic) -> Diagnostic {
        finding.reaching(self.places.plan.name(), Some(self.context()))
    }

    fn context(&self) -> &Arc<str> {
        &self.places.loaded.context.name
    }
}

/// Returns the entry of `unset` that removed what a problem lacks.
fn unset_of(plan: &Plan<'_>, problem: &Problem) -> Option<Span> {
    problem
        .lacks
        .iter()
        .find_map(|member| plan.unset_at(member))
}

/// The problems of a live body as findings, at what wrote them. What is the provider's own is a
/// warning at most: it goes back as it came.
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

/// The note on a finding in a block that the provider sent.
const GOES_BACK: &str = "the provider sent this itself: it goes back as it came";

/// A provider instance that a profile names again, whose wire format is another one than its
/// parent's.
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
    /// The finding instead of one about a value that is taken over, and right in the parent's
    /// format: nobody fixes it there.
    fn instead_of(&self, problem: &Problem, place: &Provenance) -> Option<Diagnostic> {
        let is_error = problem.severity.unwrap_or(problem.rule.severity) == Severity::Error;
        let mut places = place
            .steps
            .iter()
            .map(|(span, _)| *span)
            .chain([place.span]);
        let is_own = places.any(|span| self.below.contains(&span.file));
        let was_wrong = || {
            self.wrong_before
                .iter()
                .any(|it| is_of_schema(it) && it.pointer == problem.pointer)
        };
        if !is_of_schema(problem) || !is_error || is_own || was_wrong() {
            return None;
        }
        let [earlier, takes] = self.wires.map(WireFormat::name);
        let message = format!(
            "`{}` takes {takes}, and the inherited body is written for {earlier}",
            self.instance
        );
        let finding = Diagnostic::new(&provider::rules::OTHER_FORMAT, self.span, message);
        let help = format!(
            "extend a profile that is written for {takes}, or name an instance of {earlier}"
        );
        Some(
            finding
                .help(help)
                .related(place.span, "for instance, this does not fit"),
        )
    }
}

/// Returns `true` if the body's schema found it.
fn is_of_schema(problem: &Problem) -> bool {
    problem.rule.code.starts_with("schema/")
}

/// Returns what of a value wrote what a problem is about.
fn part_of(problem: &Problem) -> KeyOrValue {
    if problem.is_about_key() {
        KeyOrValue::Key
    } else {
        KeyOrValue::Value
    }
}

/// The same problem, with help on how to drop a literal of a bundled profile: bundled files
/// misspell no names.
fn taken_over(problem: Problem, place: &Provenance, plan: &Plan<'_>) -> Problem {
    let entry = plan
        .unset_entry(&problem.pointer)
        .filter(|_| place.excerpt.is_none());
    let Some(unset) = entry.map(|entry| format!("`unset = [{entry}]` drops what is taken over"))
    else {
        return problem;
    };
    let help = problem.help.as_ref().filter(|_| !problem.is_about_key());
    Problem {
        help: Some(help.map_or(unset.clone(), |help| format!("{help}; {unset}"))),
        ..problem
    }
}

/// Returns a problem of a body as a finding at a place.
pub(super) fn finding(problem: Problem, span: Span) -> Diagnostic {
    let mut finding = Diagnostic::new(problem.rule, span, problem.message).maybe_help(problem.help);
    finding.severity = problem.severity.unwrap_or(finding.severity);
    finding.in_sense(problem.sense)
}

/// Adds to a finding what the value is, if a template wrote it, and the steps that led to its
/// place.
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

/// Returns `true` if a block of the provider's own wrote a value of a body, or it is the signature
/// of thinking with a known origin. `history` is in the normal form of the client API: others'
/// blocks are gone. A key is written by what writes its value, and an object without members by
/// what writes the value that it is in.
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
