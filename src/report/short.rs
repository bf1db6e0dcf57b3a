//! One line per finding, for logs, editors and `grep`.

use super::bound::{Bounded, left_out};
use super::{Format, Layout, is_of_folder, name, one_line, pointer_in_long_line};
use crate::compile::Report;
use crate::diag::{Diagnostic, Rule, count};
use crate::source::Sources;
use crate::text::{Text, text};

/// Writes `path:line:col: error[code]: message (help: …) [at POINTER] [reaches N agents]` for each
/// finding, then the summary. The pointer is written only for long lines.
#[derive(Debug, Clone, Copy, Default)]
pub struct Short(pub Layout);

impl Format for Short {
    fn report(&self, report: &Report, rules: &[&'static Rule]) -> Text {
        text!(
            "{}{}",
            self.findings(report, rules),
            super::figures(&report.summary)
        )
    }

    fn findings(&self, report: &Report, _: &[&'static Rule]) -> Text {
        let Bounded { shown, more } = Bounded::of(&report.findings);
        shown
            .into_iter()
            .map(|finding| line(finding, &report.sources))
            .chain(left_out(&more, &report.summary.left_out))
            .collect()
    }
}

pub(super) fn line(finding: &Diagnostic, sources: &Sources) -> Text {
    let file = sources.get(finding.primary.span.file);
    let place = file.position(finding.primary.span.start as usize);
    let (severity, code) = (finding.severity.name(), finding.rule.code);
    let (path, message) = (name(file.path()), one_line(&finding.message));
    let help = finding
        .help
        .as_ref()
        .map_or(Text::new(), |help| text!(" (help: {})", one_line(help)));
    let pointer = pointer_in_long_line(finding, sources).map_or(Text::new(), |pointer| {
        text!(" [at {}]", Text::line(pointer))
    });
    let reach = match finding.agents.len() {
        0 => Text::new(),
        agents => text!(" [reaches {}]", count(agents, "agent")),
    };
    let place = match is_of_folder(finding, sources) {
        true => path,
        false => text!("{}:{}:{}", path, place.line, place.column),
    };
    text!(
        "{}: {}[{}]: {}{}{}{}\n",
        place,
        severity,
        code,
        message,
        help,
        pointer,
        reach
    )
}

#[cfg(test)]
mod tests {
    use super::super::tests::{WARNING, example, report, source};
    use super::*;
    use crate::compile::Summary;
    use crate::source::Span;

    #[test]
    fn every_finding_is_one_line() {
        let (mut sources, error) = example();
        let empty = source(&mut sources, "empty.toml", "");
        let warning = Diagnostic::new(&WARNING, Span::file_start(empty), "two\nlines");
        let summary = Summary {
            errors: 1,
            warnings: 1,
            ..Summary::default()
        };
        let report = report(sources, vec![error, warning], summary);
        insta::assert_snapshot!(Short::default().report(&report, &[]).as_str(), @r#"
        partials/p.jinja:2:14: error[render/undefined]: `msg` has no `contnet` (help: did you mean `content`?) [reaches 14 agents]
        empty.toml:1:1: warning[coverage/unused]: two␊lines
        0 agents × 0 contexts: 0 bodies, 1 error, 1 warning
        "#);
    }
}
