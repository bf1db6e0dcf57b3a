//! One run from start to finish: the findings from loading and from the bodies, after a policy,
//! with a summary.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use super::budgets;
use super::compiler::Compiler;
use super::policy::{Judgement, LeftOut, Lowered, Policy, PolicyOptions};
use super::rules;
use super::run::{AgentBodies, Runner};
use super::selection::{Chosen, Selection};
use crate::diag::{Diagnostic, Findings, Severity, count};
use crate::flow;
use crate::golden;
use crate::provider::WireFormat;
use crate::source::{Sources, Span};

/// The findings and the summary of a run.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Report {
    /// The files that findings point into.
    pub sources: Sources,
    /// The findings, sorted by file and location, with the severities of this run.
    pub findings: Vec<Diagnostic>,
    /// The counts of the run.
    pub summary: Summary,
}

impl Report {
    /// Returns `true` if there is an error.
    pub fn fails(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.severity == Severity::Error)
    }
}

/// The counts of a run.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Summary {
    /// The number of compiled agents.
    pub agents: usize,
    /// The number of selected contexts.
    pub contexts: usize,
    /// The number of bodies.
    pub bodies: usize,
    /// The number of errors, which fail the run.
    pub errors: usize,
    /// The number of warnings, which do not fail the run.
    pub warnings: usize,
    /// The number of selected agents that were left out because something they need is broken.
    pub skipped: usize,
    /// The settings that allow what would otherwise be an error.
    pub lowered: Vec<Lowered>,
    /// The findings that are counted but not included in any output format.
    pub left_out: Vec<LeftOut>,
    /// The bodies in checked files, if files were checked.
    pub linted: Option<LintedBodies>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(linted) = &self.linted {
            return write!(f, "{linted}: {}{}", self.found(), linted.left_out());
        }
        let [agents, contexts] = [count(self.agents, "agent"), count(self.contexts, "context")];
        write!(
            f,
            "{agents} × {contexts}: {}, {}",
            count(self.bodies, "body"),
            self.found()
        )?;
        match self.skipped {
            0 => Ok(()),
            skipped => write!(f, ", {} skipped", count(skipped, "agent")),
        }
    }
}

impl Summary {
    /// Adds the numbers of findings beyond the limit.
    #[must_use]
    pub(super) fn and_left_out(mut self, left_out: Vec<LeftOut>) -> Summary {
        for more in &left_out {
            match more.severity {
                Severity::Error => self.errors += more.findings,
                Severity::Warning => self.warnings += more.findings,
            }
        }
        self.left_out.extend(left_out);
        self
    }

    /// Returns the counts as `2 errors, 1 warning`, or `no findings`.
    pub fn found(&self) -> String {
        match (self.errors, self.warnings) {
            (0, 0) => "no findings".to_owned(),
            (errors, 0) => count(errors, "error"),
            (0, warnings) => count(warnings, "warning"),
            (errors, warnings) => {
                format!("{}, {}", count(errors, "error"), count(warnings, "warning"))
            }
        }
    }
}

/// The numbers of bodies in checked files.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LintedBodies {
    /// The number of checked bodies in each wire format, in the order of [`WireFormat::ALL`].
    pub formats: Vec<(WireFormat, usize)>,
    /// The number of skipped requests, which were sent to endpoints for other kinds of bodies.
    pub passed_over: usize,
    /// The number of checked bodies whose model is unknown, so that no facts about models apply.
    pub without_model: usize,
}

impl fmt::Display for LintedBodies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bodies = self.formats.iter().map(|(_, bodies)| bodies).sum();
        let formats: Vec<String> = self
            .formats
            .iter()
            .map(|(wire, bodies)| format!("{bodies} {}", wire.name()))
            .collect();
        match formats.is_empty() {
            true => f.write_str(&count(bodies, "body")),
            false => write!(f, "{} ({})", count(bodies, "body"), formats.join(", ")),
        }
    }
}

impl LintedBodies {
    /// Returns the last part of the summary: the number of skipped requests, and of bodies that
    /// were not checked against facts about models.
    pub(crate) fn left_out(&self) -> String {
        let skipped = match self.passed_over {
            0 => String::new(),
            more => format!(", {} skipped", count(more, "other request")),
        };
        let without_model = match self.without_model {
            0 => String::new(),
            1 => "; the model is unknown: name it with `--model`".to_owned(),
            more => format!("; the model of {more} bodies is unknown: name it with `--model`"),
        };
        skipped + &without_model
    }
}

/// The findings, before the policy.
pub(super) struct Found {
    /// The repository's files and the compared files.
    pub(super) sources: Sources,
    pub(super) findings: Findings,
    pub(super) agents: usize,
    pub(super) bodies: usize,
}

/// Runs a selection, and applies a policy to its findings.
#[derive(Clone, Copy)]
pub(crate) struct Reporter<'a> {
    compiler: &'a Compiler,
    selection: &'a Selection,
    options: &'a PolicyOptions,
}

impl<'a> Reporter<'a> {
    pub(crate) fn new(
        compiler: &'a Compiler,
        selection: &'a Selection,
        options: &'a PolicyOptions,
    ) -> Reporter<'a> {
        Reporter {
            compiler,
            selection,
            options,
        }
    }

    /// Runs the selection, and passes the bodies of each agent to a visitor, which is called on
    /// worker threads.
    pub(super) fn each<R: Send>(
        &self,
        visit: impl Fn(&AgentBodies<'_>) -> R + Sync,
    ) -> (Report, Vec<R>) {
        let (found, results) = self.found(visit);
        (self.judged(found), results)
    }

    /// Builds a report with only these findings, sorted and with the severities of a run. `sources`
    /// are the files that the findings point into.
    pub(crate) fn of(&self, sources: Sources, found: Vec<Diagnostic>) -> Report {
        let mut findings = Findings::default();
        findings.extend(found);
        let Judgement { findings, left_out } = self.policy(false).judge(&sources, findings);
        let summary = self.summary(&findings).and_left_out(left_out);
        Report {
            sources,
            findings,
            summary,
        }
    }

    /// Returns `true` if an agent's bodies, or the files that it is compiled from, have errors.
    /// Golden files of a broken agent are not touched. Lost content and exceeded budgets do not
    /// count, because bodies with these findings can still be sent, and golden files and reviews
    /// exist to show such findings.
    pub(super) fn is_broken(&self, agent: &AgentBodies<'_>) -> bool {
        let mut findings = Findings::default();
        findings.extend(
            agent
                .findings
                .iter()
                .filter(|finding| !is_kept_aside(finding))
                .cloned(),
        );
        let name = agent.plan.name();
        let errors = self
            .compiler
            .findings
            .iter()
            .filter(|finding| finding.severity == Severity::Error);
        let reaching = errors.filter(|finding| finding.agents.binary_search(name).is_ok());
        findings.extend(
            reaching.map(|it| Diagnostic::new(it.rule, it.primary.span, "").reaching(name, None)),
        );
        let Judgement { findings, .. } =
            self.policy(false).judge(self.compiler.sources(), findings);
        findings
            .iter()
            .any(|finding| finding.severity == Severity::Error)
    }

    /// Runs the selection, and combines the loading findings that concern it with the run's
    /// findings.
    pub(super) fn found<R: Send>(
        &self,
        visit: impl Fn(&AgentBodies<'_>) -> R + Sync,
    ) -> (Found, Vec<R>) {
        let chosen = Chosen::new(self.compiler, self.selection);
        let mut findings = Findings::default();
        findings.extend(
            self.compiler
                .findings
                .iter()
                .filter(|finding| chosen.is_about(finding))
                .cloned(),
        );
        let mut run = Runner::new(chosen).run(findings, visit);
        let slips = self.compiler.slips.iter();
        run.findings
            .extend_where_nothing_is(slips.filter(|slip| chosen.is_about(slip)));
        let (agents, sources) = (run.results.len(), self.compiler.sources().clone());
        (
            Found {
                sources,
                findings: run.findings,
                agents,
                bodies: run.bodies,
            },
            run.results,
        )
    }

    /// Applies the policy. A run without bodies is an error, unless other errors explain it.
    pub(super) fn judged(&self, found: Found) -> Report {
        let Found {
            sources,
            mut findings,
            agents,
            bodies,
        } = found;
        let is_everything = self.selection.is_everything();
        if self.options.complete.unwrap_or(is_everything) && agents == self.compiler.agents.len() {
            let compiler = self.compiler;
            findings.extend(unused_extensions(compiler));
            findings.extend(budgets::unused(compiler));
            findings.extend(
                compiler
                    .declarations
                    .unused(|span| !compiler.sources().get(span.file).is_bundled()),
            );
        }
        let Judgement {
            mut findings,
            left_out,
        } = self.policy(is_everything).judge(&sources, findings);
        if !findings.iter().any(tells_why_no_body) {
            findings.extend(Chosen::new(self.compiler, self.selection).unmade(bodies));
        }
        let summary = self.summary(&findings).and_left_out(left_out);
        let summary = Summary {
            agents,
            bodies,
            ..summary
        };
        Report {
            sources,
            findings,
            summary,
        }
    }

    fn summary(&self, findings: &[Diagnostic]) -> Summary {
        let chosen = Chosen::new(self.compiler, self.selection);
        let errors = findings
            .iter()
            .filter(|finding| finding.severity == Severity::Error)
            .count();
        Summary {
            agents: 0,
            contexts: chosen.contexts().count(),
            bodies: 0,
            errors,
            warnings: findings.len() - errors,
            skipped: chosen.unusable().len(),
            lowered: self.policy(false).lowered(self.compiler),
            left_out: Vec::new(),
            linted: None,
        }
    }

    fn policy(&self, complete: bool) -> Policy<'a> {
        Policy::of(self.compiler, self.options, complete)
    }
}

/// Returns `true` if an error may explain why a run compiled no bodies.
fn tells_why_no_body(finding: &Diagnostic) -> bool {
    finding.severity == Severity::Error && finding.rule != &golden::rules::DRIFT
}

/// Returns findings about `[[extension]]` entries that allowed nothing.
fn unused_extensions(compiler: &Compiler) -> Vec<Diagnostic> {
    let unused: Vec<Span> = compiler.schemas.unused().collect();
    if unused.is_empty() {
        return Vec::new();
    }
    let agents = compiler.agents.iter();
    let instances = agents.filter_map(|(id, _)| Some(compiler.plan(*id)?.instance));
    let used: BTreeSet<Arc<str>> = instances
        .flat_map(|instance| std::iter::once(&instance.name.value).chain(&instance.bases))
        .map(Arc::clone)
        .collect();
    let unused = unused.into_iter();
    unused
        .map(|place| rules::unused_extension(&compiler.repo, place, &used))
        .collect()
}

/// Returns `true` for a finding about a body that can still be sent.
fn is_kept_aside(finding: &Diagnostic) -> bool {
    flow::rules::RULES.contains(&finding.rule) || finding.rule == &rules::BUDGET_EXCEEDED
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_count_in_words() {
        let run = Summary {
            agents: 28,
            contexts: 24,
            bodies: 516,
            ..Summary::default()
        };
        assert_eq!(
            run.to_string(),
            "28 agents × 24 contexts: 516 bodies, no findings"
        );
        let found = Summary {
            errors: 2,
            warnings: 1,
            ..run.clone()
        };
        assert_eq!(
            found.to_string(),
            "28 agents × 24 contexts: 516 bodies, 2 errors, 1 warning"
        );
        let small = Summary {
            agents: 1,
            contexts: 1,
            bodies: 1,
            errors: 1,
            skipped: 3,
            ..Summary::default()
        };
        assert_eq!(
            small.to_string(),
            "1 agent × 1 context: 1 body, 1 error, 3 agents skipped"
        );
        let formats = vec![
            (WireFormat::AnthropicMessages, 2),
            (WireFormat::OpenAiChat, 1),
        ];
        let mut linted = LintedBodies {
            formats,
            ..LintedBodies::default()
        };
        let of = |linted: &LintedBodies| Summary {
            linted: Some(linted.clone()),
            errors: 1,
            ..Summary::default()
        };
        assert_eq!(
            of(&linted).to_string(),
            "3 bodies (2 anthropic-messages, 1 openai-chat): 1 error"
        );
        linted.passed_over = 4;
        assert!(
            of(&linted)
                .to_string()
                .ends_with("1 error, 4 other requests skipped")
        );
        assert_eq!(
            of(&LintedBodies::default()).to_string(),
            "0 bodies: 1 error"
        );
        assert_eq!(
            Summary::default().to_string(),
            "0 agents × 0 contexts: 0 bodies, no findings"
        );
    }
}
