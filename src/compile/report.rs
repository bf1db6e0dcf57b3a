//! One run from beginning to end: what loading found and what bodies show, judged by a policy, with
//! figures.

use std::fmt;

use super::budgets;
use super::compiler::Compiler;
use super::explain::entrance::is_bundled;
use super::policy::{Judgement, LeftOut, Lowered, Policy, PolicyOptions};
use super::rules;
use super::run::{AgentBodies, Runner};
use super::selection::{Chosen, Selection};
use crate::diag::{Diagnostic, Findings, Severity, count};
use crate::flow;
use crate::golden;
use crate::provider::WireFormat;
use crate::source::Sources;

/// The coverage and the findings of a run.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Report {
    /// The files that findings point into.
    pub sources: Sources,
    /// Sorted by file and place, with the severities of this run.
    pub findings: Vec<Diagnostic>,
    /// The figures.
    pub summary: Summary,
}

impl Report {
    /// Returns `true` if an error was found.
    pub fn fails(&self) -> bool {
        self.findings
            .iter()
            .any(|finding| finding.severity == Severity::Error)
    }
}

/// The figures of a run.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Agents that were compiled.
    pub agents: usize,
    /// Contexts that took part.
    pub contexts: usize,
    /// Bodies that were made.
    pub bodies: usize,
    /// Findings that fail the run.
    pub errors: usize,
    /// Findings that do not.
    pub warnings: usize,
    /// Selected agents that were left out because something they need is broken.
    pub skipped: usize,
    /// The settings that let pass what would be refused without them.
    pub lowered: Vec<Lowered>,
    /// Findings that are counted, and that no format has.
    pub left_out: Vec<LeftOut>,
    /// The bodies that files held, if such files were judged.
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
    /// Counts findings that are too many to be held.
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

    /// `2 errors, 1 warning`, or that there are no findings.
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

/// The bodies that files held.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LintedBodies {
    /// The number of bodies of each wire format that were judged, in the order of
    /// [`WireFormat::ALL`].
    pub formats: Vec<(WireFormat, usize)>,
    /// The number of requests to endpoints that take no body of these formats.
    pub passed_over: usize,
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
    /// Returns what the figures end with.
    pub(crate) fn left_out(&self) -> String {
        match self.passed_over {
            0 => String::new(),
            more => format!(", {} skipped", count(more, "other request")),
        }
    }
}

/// The findings before they are judged.
pub(super) struct Found {
    /// The files of the repository, and those that were compared.
    pub(super) sources: Sources,
    pub(super) findings: Findings,
    pub(super) agents: usize,
    pub(super) bodies: usize,
}

/// Runs a selection, and judges by a policy what was found.
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

    /// Runs, and hands each agent's bodies to a visitor; it is called on worker threads.
    pub(super) fn each<R: Send>(
        &self,
        visit: impl Fn(&AgentBodies<'_>) -> R + Sync,
    ) -> (Report, Vec<R>) {
        let (found, results) = self.found(visit);
        (self.judged(found), results)
    }

    /// Makes a report of some findings, and no others: with the severities of a run, sorted.
    /// `sources` are the files that they point into.
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

    /// Returns `true` if what was found in an agent's bodies, or in the files that it is made of,
    /// is an error: then its golden files are left alone. What its bodies lose, and what they cost,
    /// does not count: they are sent so, and golden files and reviews are there to show it.
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

    /// Runs, and puts together what loading found about the selection and what the run found.
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

    /// Applies the policy. A run that made no body is an error, unless errors tell why.
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
            findings.extend(compiler.schemas.unused().map(rules::unused_extension));
            findings.extend(budgets::unused(compiler));
            findings.extend(
                compiler
                    .declarations
                    .unused(|span| !is_bundled(compiler.sources(), span)),
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

/// Returns `true` for errors that may be why a run makes no body.
fn tells_why_no_body(finding: &Diagnostic) -> bool {
    finding.severity == Severity::Error && finding.rule != &golden::rules::DRIFT
}

/// Returns `true` for a finding about a body that is sent as it is.
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
