//! One run from beginning to end: what loading found and what bodies show, judged by a policy, with figures.
//!
//! [`Compiler::report`] is what tests, editors, hosts and the command line all want; [`Compiler::report_each`] also gives the
//! bodies to a visitor. Comparing with golden files and with an older side build on them.

use std::fmt;

use super::policy::Judgement;
use super::{AgentBodies, Compiler, LeftOut, LintedBodies, Lowered, Policy, PolicyOptions, Selection, rules};
use crate::diag::{Diagnostic, Findings, Severity, count};
use crate::flow;
use crate::golden;
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
        self.findings.iter().any(|finding| finding.severity == Severity::Error)
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
        write!(f, "{agents} × {contexts}: {}, {}", count(self.bodies, "body"), self.found())?;
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
            (errors, warnings) => format!("{}, {}", count(errors, "error"), count(warnings, "warning")),
        }
    }
}

/// The findings before they are judged.
pub(super) struct Found {
    /// Those of the repository, and what was compared.
    pub(super) sources: Sources,
    pub(super) findings: Findings,
    pub(super) agents: usize,
    pub(super) bodies: usize,
}

impl Compiler {
    /// Makes every selected body and reports what was found on the way, while loading too.
    pub fn report(&self, selection: &Selection, options: &PolicyOptions) -> Report {
        self.report_each(selection, options, |_| ()).0
    }

    /// The same, and what `visit` gave for each agent, in the order of their names. It is called on worker threads.
    pub fn report_each<R: Send>(
        &self,
        selection: &Selection,
        options: &PolicyOptions,
        visit: impl Fn(&AgentBodies<'_>) -> R + Sync,
    ) -> (Report, Vec<R>) {
        let (found, results) = self.found(selection, visit);
        (self.judged(found, selection, options), results)
    }

    /// Some findings, and no others, as a report: with the severities of a run, sorted. `sources` are the files that they point
    /// into.
    pub fn report_of(
        &self,
        sources: Sources,
        found: Vec<Diagnostic>,
        selection: &Selection,
        options: &PolicyOptions,
    ) -> Report {
        let mut findings = Findings::default();
        findings.extend(found);
        let Judgement { findings, left_out } = self.policy(options, false).judge(&sources, findings);
        let summary = self.summary(selection, options, &findings).and_left_out(left_out);
        Report { sources, findings, summary }
    }

    /// Returns `true` if what was found in an agent's bodies, or in the files that it is made of, is an error: then its golden files are left alone.
    /// What its bodies lose does not count: they are sent so, and golden files and reviews are there to show it.
    pub(super) fn is_broken(&self, agent: &AgentBodies<'_>, options: &PolicyOptions) -> bool {
        let mut findings = Findings::default();
        let is_loss = |finding: &&Diagnostic| flow::rules::RULES.contains(&finding.rule);
        findings.extend(agent.findings.iter().filter(|finding| !is_loss(finding)).cloned());
        let name = agent.plan.name();
        let errors = self.findings.iter().filter(|finding| finding.severity == Severity::Error);
        let reaching = errors.filter(|finding| finding.agents.binary_search(name).is_ok());
        findings.extend(reaching.map(|it| Diagnostic::new(it.rule, it.primary.span, "").reaching(name, None)));
        let Judgement { findings, .. } = self.policy(options, false).judge(self.sources(), findings);
        findings.iter().any(|finding| finding.severity == Severity::Error)
    }

    /// Runs, and puts together what loading found about the selection and what the run found.
    pub(super) fn found<R: Send>(
        &self,
        selection: &Selection,
        visit: impl Fn(&AgentBodies<'_>) -> R + Sync,
    ) -> (Found, Vec<R>) {
        let mut findings = Findings::default();
        findings.extend(self.findings.iter().filter(|finding| self.is_about(finding, selection)).cloned());
        let run = self.run_after(findings, selection, visit);
        let (agents, sources) = (run.results.len(), self.sources().clone());
        (Found { sources, findings: run.findings, agents, bodies: run.bodies }, run.results)
    }

    /// Applies the policy. A run that made no body is an error, unless errors tell why.
    pub(super) fn judged(&self, found: Found, selection: &Selection, options: &PolicyOptions) -> Report {
        let Found { sources, mut findings, agents, bodies } = found;
        if options.complete.unwrap_or(selection.is_everything()) && agents == self.agents.len() {
            findings.extend(self.schemas.unused().map(rules::unused_extension));
            findings.extend(self.declarations.unused(|span| !self.is_bundled(span)));
        }
        let policy = self.policy(options, selection.is_everything());
        let Judgement { mut findings, left_out } = policy.judge(&sources, findings);
        let tells_why = |it: &Diagnostic| it.severity == Severity::Error && it.rule != &golden::rules::DRIFT;
        if !findings.iter().any(tells_why) {
            findings.extend(self.unmade(selection, bodies));
        }
        let summary = self.summary(selection, options, &findings).and_left_out(left_out);
        let summary = Summary { agents, bodies, ..summary };
        Report { sources, findings, summary }
    }

    fn summary(&self, selection: &Selection, options: &PolicyOptions, findings: &[Diagnostic]) -> Summary {
        let count = |severity| findings.iter().filter(|finding| finding.severity == severity).count();
        Summary {
            agents: 0,
            contexts: self.chosen_contexts(selection).count(),
            bodies: 0,
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            skipped: self.skipped(selection),
            lowered: self.policy(options, false).lowered(self),
            left_out: Vec::new(),
            linted: None,
        }
    }

    pub(super) fn policy<'o>(&'o self, options: &'o PolicyOptions, complete: bool) -> Policy<'o> {
        Policy { config: &self.repo.config, options, complete: options.complete.unwrap_or(complete) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider::WireFormat;

    #[test]
    fn summaries_count_in_words() {
        let run = Summary { agents: 28, contexts: 24, bodies: 516, ..Summary::default() };
        assert_eq!(run.to_string(), "28 agents × 24 contexts: 516 bodies, no findings");
        let found = Summary { errors: 2, warnings: 1, ..run.clone() };
        assert_eq!(found.to_string(), "28 agents × 24 contexts: 516 bodies, 2 errors, 1 warning");
        let small = Summary { agents: 1, contexts: 1, bodies: 1, errors: 1, skipped: 3, ..Summary::default() };
        assert_eq!(small.to_string(), "1 agent × 1 context: 1 body, 1 error, 3 agents skipped");
        let formats = vec![(WireFormat::AnthropicMessages, 2), (WireFormat::OpenAiChat, 1)];
        let mut linted = LintedBodies { formats, ..LintedBodies::default() };
        let of = |linted: &LintedBodies| Summary { linted: Some(linted.clone()), errors: 1, ..Summary::default() };
        assert_eq!(of(&linted).to_string(), "3 bodies (2 anthropic-messages, 1 openai-chat): 1 error");
        linted.passed_over = 4;
        assert!(of(&linted).to_string().ends_with("1 error, 4 other requests passed over"));
        assert_eq!(of(&LintedBodies::default()).to_string(), "0 bodies: 1 error");
        assert_eq!(Summary::default().to_string(), "0 agents × 0 contexts: 0 bodies, no findings");
    }
}
