//! Markdown, for a job summary or a comment on a pull request.
//!
//! All text from a repository is put in code blocks, where it cannot form a link, mention, or HTML.

use super::human::with_reach;
use super::{Format, Layout, MOST_OF_COMMENT, figures, units};
use crate::compile::Report;
use crate::diag::{Diagnostic, Rule, Severity, count};
use crate::text::{Text, text};

/// Writes the totals, then the findings, with errors first and a collapsed section for each rule.
/// The text stays within the length limit of a GitHub comment.
#[derive(Debug, Clone, Copy, Default)]
pub struct Markdown;

/// The number of bytes reserved for the totals and the sentence about omitted findings.
const FRAME: usize = 2_000;

impl Format for Markdown {
    fn report(&self, report: &Report, rules: &[&'static Rule]) -> Text {
        let heading = text!("### reqc: {}\n\n", report.summary.found());
        text!(
            "{}{}{}",
            heading,
            figures(&report.summary).fenced(),
            self.findings(report, rules)
        )
    }

    fn findings(&self, report: &Report, _: &[&'static Rule]) -> Text {
        let (mut out, mut left) = (Text::new(), MOST_OF_COMMENT - FRAME);
        let mut omitted = 0;
        for findings in by_rule(&report.findings) {
            let (folded, shown) = folded(&findings, report, left);
            left -= units(&folded).min(left);
            omitted += findings.len() - shown;
            out.push(&folded);
        }
        if omitted > 0 {
            out.push(&text!(
                "\n… and {}: `reqc check` shows all.\n",
                count(omitted, "more finding")
            ));
        }
        out
    }
}

/// Returns the findings by rule and level, errors first.
fn by_rule(findings: &[Diagnostic]) -> Vec<Vec<&Diagnostic>> {
    let mut sorted: Vec<&Diagnostic> = findings.iter().collect();
    // The sort is stable, so findings of a rule keep the report's order.
    sorted.sort_by_key(|finding| (std::cmp::Reverse(finding.severity), finding.rule.code));
    sorted
        .chunk_by(|a, b| (a.severity, a.rule.code) == (b.severity, b.rule.code))
        .map(<[&Diagnostic]>::to_vec)
        .collect()
}

/// Returns a collapsed section with as many findings of a rule as fit, and their number.
fn folded(findings: &[&Diagnostic], report: &Report, room: usize) -> (Text, usize) {
    let (severity, rule) = (findings[0].severity, findings[0].rule);
    let open = if severity == Severity::Error {
        " open"
    } else {
        ""
    };
    let head = text!(
        "\n<details{}><summary><code>{}</code>: {}</summary>\n\n",
        open,
        rule.code,
        count(findings.len(), severity.name())
    );
    let (mut out, end) = (head, text!("\n</details>\n"));
    let (mut used, mut shown) = (units(&out) + units(&end), 0);
    for finding in findings {
        let block = with_reach(finding, &report.sources, Layout::default()).fenced();
        used += units(&block);
        if used > room {
            break;
        }
        out.push(&block);
        shown += 1;
    }
    match shown {
        0 => (Text::new(), 0),
        _ => (text!("{}{}", out, end), shown),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ERROR, WARNING, example, report, source};
    use super::*;
    use crate::compile::Summary;
    use crate::source::{Sources, Span};

    #[test]
    fn errors_stand_first_and_nothing_foreign_acts() {
        let (mut sources, finding) = example();
        let file = source(&mut sources, "a.toml", "````\n</details>\n");
        let warning = Diagnostic::new(
            &WARNING,
            Span::new(file, 0..1),
            "@team `]` | ![x](javascript:y) </details>",
        );
        let summary = Summary {
            errors: 1,
            warnings: 1,
            ..Summary::default()
        };
        let report = report(sources, vec![warning, finding], summary);
        insta::assert_snapshot!(Markdown.report(&report, &[]).as_str(), @r#"
        ### reqc: 1 error, 1 warning

        ```text
        0 agents × 0 contexts: 0 bodies, 1 error, 1 warning
        ```

        <details open><summary><code>render/undefined</code>: 1 error</summary>

        ```text
        render/undefined

          × `msg` has no `contnet`
           ╭─[partials/p.jinja:2:14]
         1 │ {% for msg in ctx.history %}
         2 │     é {{ tojson(msg.contnet) }},
           ·                 ─────┬─────
           ·                      ╰── not there
         3 │ {% endfor %}
           ╰────
           ╭─[agents/base.toml:3:13]
         3 │ messages = "{% include 'p' %}"
           ·             ────────┬────────
           ·                     ╰── included from here
           ╰────
          help: did you mean `content`?
          reaches 14 agents in 1 context (plain-turn): OpenAI Chat 00, … (+13)
        ```

        </details>

        <details><summary><code>coverage/unused</code>: 1 warning</summary>

        `````text
        coverage/unused

          ⚠ @team `]` | ![x](javascript:y) </details>
           ╭─[a.toml:1:1]
         1 │ ````
           · ─
         2 │ </details>
           ╰────
        `````

        </details>
        "#);
    }

    #[test]
    fn a_comment_holds_it_and_errors_come_first() {
        let mut sources = Sources::default();
        let file = source(&mut sources, "a", &"🙂".repeat(90));
        let finding = |rule| Diagnostic::new(rule, Span::file_start(file), "🙂".repeat(900));
        let findings = [vec![finding(&WARNING); 300], vec![finding(&ERROR); 10]].concat();
        let text = Markdown.report(&report(sources, findings, Summary::default()), &[]);
        assert!(units(&text) < MOST_OF_COMMENT, "{}", units(&text));
        assert!(
            text.contains("render/undefined</code>: 10 errors")
                && text.contains(" more findings: `reqc check`")
        );
    }
}
