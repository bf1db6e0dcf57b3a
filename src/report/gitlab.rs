//! GitLab Code Quality reports:
//! <https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format>.

use serde_json::{Value, json};

use super::places::{Checkout, Fingerprints, Region};
use super::{Format, told};
use crate::compile::Report;
use crate::diag::{Diagnostic, Rule, Severity};
use crate::source::Sources;
use crate::text::Text;

/// Writes an array with an object for each finding.
#[derive(Debug, Clone, Default)]
pub struct Gitlab(pub Checkout);

impl Format for Gitlab {
    fn report(&self, report: &Report, _: &[&'static Rule]) -> Text {
        let mut prints = Fingerprints::default();
        let issues = report.findings.iter().map(|finding| {
            let print = prints.next(finding, &report.sources);
            issue(finding, &report.sources, &self.0, &print)
        });
        Text::json(&issues.collect::<Vec<Value>>())
    }

    fn findings(&self, report: &Report, rules: &[&'static Rule]) -> Text {
        self.report(report, rules)
    }
}

fn issue(finding: &Diagnostic, sources: &Sources, checkout: &Checkout, print: &str) -> Value {
    let severity = match finding.severity {
        Severity::Error => "major",
        Severity::Warning => "minor",
    };
    let path = checkout.path(sources.get(finding.primary.span.file).path());
    let Region { line, end_line, .. } = Region::of(finding.primary.span, sources);
    json!({
        "description": told(finding).as_str(),
        "check_name": finding.rule.code,
        "fingerprint": print,
        "severity": severity,
        "location": {"path": path, "lines": {"begin": line, "end": end_line}},
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::{example, report};
    use super::*;
    use crate::compile::Summary;

    #[test]
    fn an_issue_has_what_gitlab_needs() {
        let (sources, finding) = example();
        let report = report(sources, vec![finding], Summary::default());
        insta::assert_snapshot!(Gitlab(Checkout::at("team")).report(&report, &[]).as_str(), @r#"
        [
          {
            "description": "`msg` has no `contnet`\nhelp: did you mean `content`?\nreaches 14 agents",
            "check_name": "render/undefined",
            "fingerprint": "c9460f39d032b15efa23e95248785cbb",
            "severity": "major",
            "location": {
              "path": "team/partials/p.jinja",
              "lines": {
                "begin": 2,
                "end": 2
              }
            }
          }
        ]
        "#);
    }
}
