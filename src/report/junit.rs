//! `JUnit` XML, which most CI systems show as tests. There is no standard; this follows the
//! description at <https://github.com/testmoapp/junitxml>.

use super::{Format, figures, is_of_folder, short, told};
use crate::compile::Report;
use crate::diag::{Diagnostic, Rule, Severity};
use crate::source::Sources;
use crate::text::{Text, Within, text};

/// Writes a suite for each file with findings, in which errors are failures, then a suite that
/// contains the totals and passes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Junit;

impl Format for Junit {
    fn report(&self, report: &Report, _: &[&'static Rule]) -> Text {
        let path = |finding: &Diagnostic| report.sources.get(finding.primary.span.file).path();
        // Findings are sorted by file.
        let files = report.findings.chunk_by(|a, b| path(a) == path(b));
        let suites: Text = files
            .map(|findings| suite(path(&findings[0]), findings, &report.sources))
            .collect();
        let (tests, failures) = (report.findings.len() + 1, failures(&report.findings));
        let figures = figures(&report.summary).within(Within::Xml);
        text!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <testsuites name=\"reqc\" tests=\"{}\" failures=\"{}\">\n{}\
             <testsuite name=\"reqc\" tests=\"1\" failures=\"0\">\n\
             <testcase name=\"run\" classname=\"reqc\">\n<system-out>{}</system-out>\n</testcase>\n\
             </testsuite>\n</testsuites>\n",
            tests,
            failures,
            suites,
            figures
        )
    }

    fn findings(&self, report: &Report, rules: &[&'static Rule]) -> Text {
        self.report(report, rules)
    }
}

fn failures(findings: &[Diagnostic]) -> usize {
    findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .count()
}

fn suite(path: &str, findings: &[Diagnostic], sources: &Sources) -> Text {
    let cases: Text = findings
        .iter()
        .map(|finding| case(path, finding, sources))
        .collect();
    let (name, tests, failures) = (xml(path), findings.len(), failures(findings));
    text!(
        "<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\">\n{}</testsuite>\n",
        name,
        tests,
        failures,
        cases
    )
}

fn case(path: &str, finding: &Diagnostic, sources: &Sources) -> Text {
    let place = sources
        .get(finding.primary.span.file)
        .position(finding.primary.span.start as usize);
    let place = match is_of_folder(finding, sources) {
        true => Text::new(),
        false => text!(" at {}:{}", place.line, place.column),
    };
    let said = text!(
        "{}\n{}",
        short::line(finding, sources).trimmed_end(),
        told(finding)
    )
    .within(Within::Xml);
    let said = match finding.severity {
        Severity::Error => {
            text!(
                "<failure type=\"{}\" message=\"{}\">{}</failure>",
                xml(finding.rule.code),
                xml(&finding.message),
                said
            )
        }
        Severity::Warning => text!("<system-out>{}</system-out>", said),
    };
    let name = text!("{}{}", xml(finding.rule.code), place);
    text!(
        "<testcase name=\"{}\" classname=\"{}\">\n{}\n</testcase>\n",
        name,
        xml(path),
        said
    )
}

/// Escapes untrusted text for one line of XML.
fn xml(foreign: &str) -> Text {
    Text::line(foreign).within(Within::Xml)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{WARNING, example, report, source};
    use super::*;
    use crate::compile::Summary;
    use crate::source::Span;

    #[test]
    fn suites_are_files_and_nothing_foreign_is_mark_up() {
        let (mut sources, mut finding) = example();
        finding.agents.truncate(1);
        let file = source(&mut sources, "agents/\"<a>&.toml", "x");
        let warning = Diagnostic::new(
            &WARNING,
            Span::new(file, 0..1),
            "]]></failure>\u{1b}[2J\u{ffff}",
        );
        let summary = Summary {
            errors: 1,
            warnings: 1,
            ..Summary::default()
        };
        let report = report(sources, vec![finding, warning], summary);
        insta::assert_snapshot!(Junit.report(&report, &[]).as_str(), @r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="reqc" tests="3" failures="1">
        <testsuite name="partials/p.jinja" tests="1" failures="1">
        <testcase name="render/undefined at 2:14" classname="partials/p.jinja">
        <failure type="render/undefined" message="`msg` has no `contnet`">partials/p.jinja:2:14: error[render/undefined]: `msg` has no `contnet` (help: did you mean `content`?) [reaches 1 agent]
        `msg` has no `contnet`
        help: did you mean `content`?
        reaches 1 agent</failure>
        </testcase>
        </testsuite>
        <testsuite name="agents/&quot;&lt;a&gt;&amp;.toml" tests="1" failures="0">
        <testcase name="coverage/unused at 1:1" classname="agents/&quot;&lt;a&gt;&amp;.toml">
        <system-out>agents/&quot;&lt;a&gt;&amp;.toml:1:1: warning[coverage/unused]: ]]&gt;&lt;/failure&gt;␛[2J&lt;U+FFFF&gt;
        ]]&gt;&lt;/failure&gt;␛[2J&lt;U+FFFF&gt;</system-out>
        </testcase>
        </testsuite>
        <testsuite name="reqc" tests="1" failures="0">
        <testcase name="run" classname="reqc">
        <system-out>0 agents × 0 contexts: 0 bodies, 1 error, 1 warning
        </system-out>
        </testcase>
        </testsuite>
        </testsuites>
        "#);
    }
}
