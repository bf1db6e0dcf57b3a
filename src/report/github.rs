//! GitHub Actions annotations: workflow commands in the log.
//!
//! Format: <https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions>.
//! GitHub shows ten annotations per step and level, so no more are written; the other findings
//! become ordinary log lines.

use super::bound::{Bounded, left_out};
use super::places::{Checkout, Region, bundled_path};
use super::{Format, figures, is_of_folder, short, told};
use crate::compile::Report;
use crate::diag::{Diagnostic, Rule, Severity, count};
use crate::source::Sources;
use crate::text::{Text, Within, text};

/// Writes a command for each of the first findings and a line for each other finding, then the
/// totals.
#[derive(Debug, Clone, Default)]
pub struct Github(pub Checkout);

/// The number of annotations that GitHub shows per step and level.
const MOST: usize = 10;

impl Format for Github {
    fn report(&self, report: &Report, rules: &[&'static Rule]) -> Text {
        text!(
            "{}{}",
            self.findings(report, rules),
            figures(&report.summary)
        )
    }

    fn findings(&self, report: &Report, _: &[&'static Rule]) -> Text {
        let Bounded { shown, more } = Bounded::of(&report.findings);
        let (mut annotated, mut others) = (Vec::new(), Vec::new());
        for severity in [Severity::Error, Severity::Warning] {
            let (first, rest) = split(&shown, severity);
            annotated.extend(first);
            others.extend(rest);
        }
        let commands = annotated
            .into_iter()
            .map(|finding| self.command(finding, &report.sources));
        let lines = others
            .iter()
            .map(|finding| short::line(finding, &report.sources));
        commands
            .chain(notice(&others))
            .chain(lines)
            .chain(left_out(&more, &report.summary.left_out))
            .collect()
    }
}

/// Splits the findings of a level into annotations and the rest.
fn split<'f>(
    shown: &[&'f Diagnostic],
    severity: Severity,
) -> (Vec<&'f Diagnostic>, Vec<&'f Diagnostic>) {
    let mut first: Vec<&Diagnostic> = shown
        .iter()
        .copied()
        .filter(|it| it.severity == severity)
        .collect();
    let rest = first.split_off(first.len().min(MOST));
    (first, rest)
}

/// Returns a line with the number of findings that are not annotations.
fn notice(others: &[&Diagnostic]) -> Option<Text> {
    if others.is_empty() {
        return None;
    }
    let counted = [
        (of(Severity::Error, others), "error"),
        (of(Severity::Warning, others), "warning"),
    ];
    let counted = counted.into_iter().filter(|(many, _)| *many > 0);
    let counted: Vec<String> = counted
        .map(|(many, noun)| count(many, &format!("more {noun}")))
        .collect();
    Some(text!(
        "::notice title=reqc::{}: see the log of this step\n",
        counted.join(" and ")
    ))
}

fn of(severity: Severity, others: &[&Diagnostic]) -> usize {
    others
        .iter()
        .filter(|finding| finding.severity == severity)
        .count()
}

impl Github {
    fn command(&self, finding: &Diagnostic, sources: &Sources) -> Text {
        let level = finding.severity.name();
        let title = Text::line(finding.rule.code).within(Within::CommandProperty);
        let message = text!("{}{}", outside(finding, sources), told(finding));
        let (place, message) = (
            self.place(finding, sources),
            message.within(Within::CommandMessage),
        );
        text!(
            "::{} {}title={}::{}\n",
            Text::line(level),
            place,
            title,
            message
        )
    }

    /// Returns `file=…,line=…,`, or nothing for a bundled file.
    fn place(&self, finding: &Diagnostic, sources: &Sources) -> Text {
        let shown = sources.get(finding.primary.span.file).path();
        if bundled_path(shown).is_some() {
            return Text::new();
        }
        let path = Text::line(&self.0.path(shown)).within(Within::CommandProperty);
        let Region {
            line,
            column,
            end_line,
            end_column,
        } = Region::of(finding.primary.span, sources);
        match (is_of_folder(finding, sources), line == end_line) {
            (true, _) => text!("file={},", path),
            // Columns are valid only if the range is on one line.
            (false, false) => text!("file={},line={},endLine={},", path, line, end_line),
            (false, true) => {
                text!(
                    "file={},line={},endLine={},col={},endColumn={},",
                    path,
                    line,
                    line,
                    column,
                    end_column
                )
            }
        }
    }
}

/// Returns the location of a finding in a file that is not in GitHub's checkout.
fn outside(finding: &Diagnostic, sources: &Sources) -> Text {
    match bundled_path(sources.get(finding.primary.span.file).path()) {
        Some(_) => text!("{}: ", sources.describe(finding.primary.span)),
        None => Text::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ERROR, WARNING, example, report, source};
    use super::*;
    use crate::compile::Summary;
    use crate::source::Span;

    #[test]
    fn a_finding_is_a_command_and_nothing_foreign_is() {
        let (mut sources, mut finding) = example();
        finding.agents.truncate(1);
        let file = source(&mut sources, "agents/a,b:c%.toml\n::error::", "x");
        let hostile = Diagnostic::new(
            &WARNING,
            Span::new(file, 0..1),
            "x\n::error file=a::b%0A::set-env::y",
        );
        let report = report(sources, vec![finding, hostile], Summary::default());
        insta::assert_snapshot!(Github(Checkout::at("team")).report(&report, &[]).as_str(), @r#"
        ::error file=team/partials/p.jinja,line=2,endLine=2,col=14,endColumn=25,title=render/undefined::`msg` has no `contnet`%0Ahelp: did you mean `content`?%0Areaches 1 agent
        ::warning file=team/agents/a%2Cb%3Ac%25.toml␊%3A%3Aerror%3A%3A,line=1,endLine=1,col=1,endColumn=2,title=coverage/unused::x␊::error file=a::b%250A::set-env::y
        0 agents × 0 contexts: 0 bodies, no findings
        "#);
    }

    #[test]
    fn of_many_findings_the_first_are_annotations() {
        let mut sources = Sources::default();
        let file = source(&mut sources, "a", "x");
        let finding = |rule| Diagnostic::new(rule, Span::file_start(file), "m");
        let findings = [vec![finding(&WARNING); 12], vec![finding(&ERROR); 11]].concat();
        let text = Github::default().findings(&report(sources, findings, Summary::default()), &[]);
        let of = |start: &str| text.lines().filter(|line| line.starts_with(start)).count();
        assert_eq!(
            (of("::error "), of("::warning "), of("a:1:1: ")),
            (10, 10, 3)
        );
        assert!(text.contains(
            "::notice title=reqc::1 more error and 2 more warnings: see the log of this step\n"
        ));
    }
}
