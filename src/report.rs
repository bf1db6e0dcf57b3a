//! Findings and changes as text, one file per format.
//!
//! Input: a [`Report`], or groups of changes. Output: a [`Text`] that ends with a newline. This
//! module makes no decisions and prints nothing, and its output does not depend on the machine: the
//! caller sets width and colours. Each format has its own file, with a type that implements
//! [`Format`].

mod bound;
mod diff;
mod escape;
#[cfg(feature = "cli")]
mod fill;
mod comparison;
mod coverage;
#[cfg(feature = "cli")]
mod excerpt;
mod lowered;
mod places;
mod gitlab;
mod json;
mod explain;
mod review;
mod sarif;
mod short;
mod github;
#[cfg(feature = "cli")]
mod human;
mod junit;
#[cfg(feature = "cli")]
mod markdown;
mod stories;
mod tools;

pub use comparison::{comparison_json, comparison_markdown, comparison_text};
pub use coverage::{coverage_html, coverage_json, coverage_lcov, coverage_text};
pub use diff::changes_text;
pub use explain::{content_json, content_text, explanation_json, explanation_text, margin_text};
#[cfg(feature = "cli")]
pub(crate) use fill::{fill, words};
pub use github::Github;
pub use gitlab::Gitlab;
#[cfg(feature = "cli")]
pub use human::Human;
pub use json::Json;
#[cfg(feature = "cli")]
pub(crate) use json::findings as findings_json;
pub use junit::Junit;
pub use lowered::lowered_text;
#[cfg(feature = "cli")]
pub use markdown::Markdown;
pub use places::Checkout;
pub use review::{
    review_broken, review_html, review_items, review_json, review_markdown, review_text,
};
pub use sarif::Sarif;
pub use short::Short;
pub use stories::{stories_html, stories_json, stories_markdown, stories_text};
pub use tools::{losses_text, lowered_json, tools_json, tools_markdown, tools_text};

use crate::compile::{Report, Summary};
use crate::diag::{Diagnostic, Rule, count};
use crate::source::{Sources, Span};
use crate::text::{Text, text, thousands};

/// A format for the results of a run.
pub trait Format {
    /// Writes a whole report: the findings, then the totals. `rules` are all existing rules.
    fn report(&self, report: &Report, rules: &[&'static Rule]) -> Text;

    /// Writes only the findings, for a run that ended before anything could be counted.
    fn findings(&self, report: &Report, rules: &[&'static Rule]) -> Text;
}

/// The layout of human-readable text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// The number of columns to wrap at, at least 40. Source lines are not wrapped.
    pub width: usize,
    /// `true` to use colours.
    pub colour: bool,
}

impl Default for Layout {
    fn default() -> Layout {
        Layout {
            width: 80,
            colour: false,
        }
    }
}

/// Returns the last lines of a report.
fn figures(summary: &Summary) -> Text {
    let lowered = lowered::counted(&summary.lowered).unwrap_or_default();
    text!("{}\n{}", summary.to_string(), lowered)
}

/// The maximum length in characters of a message, a help text, or a label in human-readable output;
/// programs get the full text.
const LONGEST: usize = 1000;
/// The maximum length in characters of a name or path in a list.
const LONGEST_NAME: usize = 100;

/// The maximum length of a comment, in characters as GitHub counts them. GitHub accepts 65,536, but
/// some are needed for the text around the report.
const MOST_OF_COMMENT: usize = 60_000;

/// Counts characters as GitHub does, in UTF-16 units.
fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Returns a finding as text for machine-readable reports. The message, the help, and the number of
/// agents that the finding reaches are each on their own line.
fn told(finding: &Diagnostic) -> Text {
    let help = finding
        .help
        .as_ref()
        .map(|help| text!("\nhelp: {}", one_line(help)));
    let agents = finding.agents.len();
    let reach = (agents > 0).then(|| text!("\nreaches {}", count(agents, "agent")));
    std::iter::once(one_line(&finding.message))
        .chain(help)
        .chain(reach)
        .collect()
}

/// Returns a message on one line.
fn one_line(message: &str) -> Text {
    Text::line(message.trim_end()).cut(LONGEST)
}

/// Returns `true` if a finding points at a folder, which has no lines to show.
fn is_of_folder(finding: &Diagnostic, sources: &Sources) -> bool {
    sources.get(finding.primary.span.file).path().ends_with('/') && finding.related.is_empty()
}

/// The last column at which a location is easy to find in an editor. Bodies written by programs are
/// usually on a single long line.
const LAST_COLUMN: usize = 200;

/// Returns the JSON pointer of a finding that is far from the beginning of its line.
fn pointer_in_long_line<'f>(finding: &'f Diagnostic, sources: &Sources) -> Option<&'f str> {
    let Span { file, start, .. } = finding.primary.span;
    let column = sources.get(file).position(start as usize).column;
    finding.pointer.as_deref().filter(|_| column > LAST_COLUMN)
}

/// Returns a name for a list, shortened if it is long.
fn name(name: &str) -> Text {
    Text::line(name).cut(LONGEST_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::{Diagnostic, Rule, Severity};
    use crate::source::{FileId, SourceText};
    use std::sync::Arc;

    pub(super) static ERROR: Rule = Rule::new("render/undefined", Severity::Error, "s", "p");
    pub(super) static WARNING: Rule = Rule::new("coverage/unused", Severity::Warning, "s", "p");

    pub(super) fn source(sources: &mut Sources, path: &str, text: &str) -> FileId {
        sources.add(
            path,
            SourceText::from_bytes(text.as_bytes()).expect("valid text"),
        )
    }

    pub(super) fn report(sources: Sources, findings: Vec<Diagnostic>, summary: Summary) -> Report {
        let mut report = Report::default();
        (report.sources, report.findings, report.summary) = (sources, findings, summary);
        report
    }

    /// Returns the location of `what` in a file.
    pub(super) fn find(sources: &Sources, file: FileId, what: &str) -> Span {
        let start = sources.get(file).text().find(what).expect("it is there");
        Span::new(file, start..start + what.len())
    }

    /// Returns a finding about a misspelled field in a partial that an agent includes; it reaches
    /// 14 agents.
    pub(super) fn example() -> (Sources, Diagnostic) {
        let mut sources = Sources::default();
        let agent = source(
            &mut sources,
            "agents/base.toml",
            "name = \"b\"\n[body]\nmessages = \"{% include 'p' %}\"\n",
        );
        let text = "{% for msg in ctx.history %}\n\té {{ tojson(msg.contnet) }},\n{% endfor %}\n";
        let partial = source(&mut sources, "partials/p.jinja", text);
        let mut finding = Diagnostic::new(
            &ERROR,
            find(&sources, partial, "msg.contnet"),
            "`msg` has no `contnet`",
        )
        .label("not there")
        .related(
            find(&sources, agent, "{% include 'p' %}"),
            "included from here",
        )
        .help("did you mean `content`?");
        for index in 0..14 {
            let agent: Arc<str> = Arc::from(format!("OpenAI Chat {index:02}"));
            finding = finding.reaching(&agent, Some(&Arc::from("plain-turn")));
        }
        (sources, finding)
    }

    #[test]
    fn messages_stand_on_one_line_and_end() {
        assert_eq!(one_line("a\n b\u{7}\n").as_str(), "a␊ b␇");
        assert_eq!(one_line(&"x".repeat(5000)).width(), LONGEST);
    }
}
