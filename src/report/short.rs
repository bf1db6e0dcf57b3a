//! One line per finding, for logs, editors and `grep`.

use super::{Summary, count, one_line};
use crate::diag::Diagnostic;
use crate::source::Sources;

/// `path:line:col: error[code]: message (help: …) [reaches N agents]` for each finding, then the summary.
pub fn short(findings: &[Diagnostic], sources: &Sources, summary: &Summary) -> String {
    format!("{}{summary}\n", short_findings(findings, sources))
}

/// The same without the summary.
pub fn short_findings(findings: &[Diagnostic], sources: &Sources) -> String {
    findings.iter().map(|finding| line(finding, sources)).collect()
}

pub(super) fn line(finding: &Diagnostic, sources: &Sources) -> String {
    let file = sources.get(finding.primary.span.file);
    let place = file.position(finding.primary.span.start as usize);
    let (severity, code) = (finding.severity.name(), finding.rule.code);
    let (path, message) = (one_line(file.path()), one_line(&finding.message));
    let help = finding.help.as_ref().map_or(String::new(), |help| format!(" (help: {})", one_line(help)));
    let reach = match finding.agents.len() {
        0 => String::new(),
        agents => format!(" [reaches {}]", count(agents, "agent")),
    };
    format!("{path}:{}:{}: {severity}[{code}]: {message}{help}{reach}\n", place.line, place.column)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{WARNING, example, source};
    use super::*;
    use crate::source::Span;

    #[test]
    fn every_finding_is_one_line() {
        let (mut sources, error) = example();
        let empty = source(&mut sources, "empty.toml", "");
        let warning = Diagnostic::new(&WARNING, Span::file_start(empty), "two\nlines");
        let summary = Summary { errors: 1, warnings: 1, ..Summary::default() };
        insta::assert_snapshot!(short(&[error, warning], &sources, &summary), @r#"
        partials/p.jinja:2:14: error[render/undefined]: `msg` has no `contnet` (help: did you mean `content`?) [reaches 14 agents]
        empty.toml:1:1: warning[coverage/unused]: two lines
        0 agents × 0 contexts: 0 bodies, 1 error, 1 warning
        "#);
    }
}
