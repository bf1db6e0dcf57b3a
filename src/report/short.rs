//! One line per finding, for logs, editors and `grep`.

use super::bound::{Bounded, left_out};
use super::{Summary, count, name, one_line};
use crate::diag::Diagnostic;
use crate::source::Sources;
use crate::text::{Text, text};

/// `path:line:col: error[code]: message (help: …) [reaches N agents]` for each finding, then the summary.
pub fn short(findings: &[Diagnostic], sources: &Sources, summary: &Summary) -> Text {
    text!("{}{}", short_findings(findings, sources), super::figures(summary))
}

/// The same without the summary.
pub fn short_findings(findings: &[Diagnostic], sources: &Sources) -> Text {
    let Bounded { shown, more } = Bounded::of(findings);
    shown.into_iter().map(|finding| line(finding, sources)).chain(left_out(&more)).collect()
}

pub(super) fn line(finding: &Diagnostic, sources: &Sources) -> Text {
    let file = sources.get(finding.primary.span.file);
    let place = file.position(finding.primary.span.start as usize);
    let (severity, code) = (finding.severity.name(), finding.rule.code);
    let (path, message) = (name(file.path()), one_line(&finding.message));
    let help = finding.help.as_ref().map_or(Text::new(), |help| text!(" (help: {})", one_line(help)));
    let reach = match finding.agents.len() {
        0 => Text::new(),
        agents => text!(" [reaches {}]", count(agents, "agent")),
    };
    text!("{}:{}:{}: {}[{}]: {}{}{}\n", path, place.line, place.column, severity, code, message, help, reach)
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
        insta::assert_snapshot!(short(&[error, warning], &sources, &summary).as_str(), @r#"
        partials/p.jinja:2:14: error[render/undefined]: `msg` has no `contnet` (help: did you mean `content`?) [reaches 14 agents]
        empty.toml:1:1: warning[coverage/unused]: two␊lines
        0 agents × 0 contexts: 0 bodies, 1 error, 1 warning
        "#);
    }
}
