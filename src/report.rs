//! Findings and changes as text, one file per format.
//!
//! Input: a [`Report`], or groups of changes. Output: [`Text`] that ends with a new line. Nothing
//! is decided or printed here, and the same report gives the same text on every machine: width and
//! colour are the caller's. A new format is a file here, with a type that implements [`Format`].

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
pub(crate) use fill::fill;
pub use github::Github;
pub use gitlab::Gitlab;
#[cfg(feature = "cli")]
pub use human::Human;
pub use json::Json;
#[cfg(all(feature = "cli", feature = "runtime"))]
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
use crate::source::Sources;
use crate::text::{Text, text};

/// A way to show what a run found.
pub trait Format {
    /// A whole report: its findings, then the figures. `rules` are all that there are.
    fn report(&self, report: &Report, rules: &[&'static Rule]) -> Text;

    /// The same where nothing was counted: the findings are why there is nothing else to show.
    fn findings(&self, report: &Report, rules: &[&'static Rule]) -> Text;
}

/// How text for people is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Columns to wrap at; at least 40 are used. Source lines are not wrapped.
    pub width: usize,
    /// `true` if to use colours.
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

/// The last lines of a report.
fn figures(summary: &Summary) -> Text {
    let lowered = lowered::counted(&summary.lowered).unwrap_or_default();
    text!("{}\n{}", summary.to_string(), lowered)
}

/// `1,234,567`.
fn thousands(number: usize) -> String {
    let digits = number.to_string();
    digits
        .chars()
        .enumerate()
        .flat_map(|(at, digit)| {
            let comma = at > 0 && (digits.len() - at).is_multiple_of(3);
            [comma.then_some(','), Some(digit)].into_iter().flatten()
        })
        .collect()
}

/// The most characters of a message, a help text or a label that are shown to people; programs get
/// all of it.
const LONGEST: usize = 1000;
/// The most characters of a name or a path that a list shows.
const LONGEST_NAME: usize = 100;

/// The most characters of a comment, as GitHub counts them: one may have 65,536, and what wraps a
/// report needs some.
const MOST_OF_COMMENT: usize = 60_000;

/// Characters as GitHub counts them: units of UTF-16.
fn units(text: &str) -> usize {
    text.encode_utf16().count()
}

/// Returns what a finding says to programs that show a text: the message, the help, and how many
/// agents it reaches, a line each.
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

/// A message on one line.
fn one_line(message: &str) -> Text {
    Text::line(message.trim_end()).cut(LONGEST)
}

/// Returns `true` if a finding is about a folder: there are no lines to show.
fn is_of_folder(finding: &Diagnostic, sources: &Sources) -> bool {
    sources.get(finding.primary.span.file).path().ends_with('/') && finding.related.is_empty()
}

/// A name among others.
fn name(name: &str) -> Text {
    Text::line(name).cut(LONGEST_NAME)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::{Diagnostic, Rule, Severity};
    use crate::source::{FileId, SourceText, Sources, Span};
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

    /// The place of `what` in a file.
    pub(super) fn find(sources: &Sources, file: FileId, what: &str) -> Span {
        let start = sources.get(file).text().find(what).expect("it is there");
        Span::new(file, start..start + what.len())
    }

    /// A misspelt field in a partial that an agent includes, reaching 14 agents.
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
