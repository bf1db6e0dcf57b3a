//! Findings and changes as text, one file per format.
//!
//! Input: findings in the order to tell them, the [`Sources`](crate::source::Sources) they point into, and a
//! [`Summary`]; or groups of changes. Output: [`Text`] that ends with a new line. Nothing is decided or printed here, and the same
//! findings give the same text on every machine: width and colour are the caller's.

mod bound;
mod diff;
mod excerpt;
mod explain;
mod human;
mod json;
mod lowered;
mod short;

pub use diff::{DiffGroup, diff_json, diff_text};
pub use explain::{explanation_json, explanation_text, margin_text};
pub use human::{Look, human, human_findings};
pub use json::json;
pub use lowered::lowered_text;
pub use short::{short, short_findings};

use std::fmt;

use crate::compile::Lowered;
use crate::text::{Text, text};

/// What a run covered and what it found.
#[derive(Debug, Clone, Default)]
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
    /// Agents that were left out because something they need is broken.
    pub skipped: usize,
    /// What lets through what would be refused without it.
    pub lowered: Vec<Lowered>,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [agents, contexts] = [count(self.agents, "agent"), count(self.contexts, "context")];
        write!(f, "{agents} × {contexts}: {}", count(self.bodies, "body"))?;
        match (self.errors, self.warnings) {
            (0, 0) => f.write_str(", no findings")?,
            (errors, 0) => write!(f, ", {}", count(errors, "error"))?,
            (0, warnings) => write!(f, ", {}", count(warnings, "warning"))?,
            (errors, warnings) => write!(f, ", {}, {}", count(errors, "error"), count(warnings, "warning"))?,
        }
        match self.skipped {
            0 => Ok(()),
            skipped => write!(f, ", {} skipped", count(skipped, "agent")),
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
    let commas = |(at, digit): (usize, char)| {
        let comma = at > 0 && (digits.len() - at).is_multiple_of(3);
        [comma.then_some(','), Some(digit)].into_iter().flatten()
    };
    digits.chars().enumerate().flat_map(commas).collect()
}

/// `1 agent`, `2 agents`, `2 bodies`.
pub(crate) fn count(number: usize, noun: &str) -> String {
    match (number, noun.strip_suffix('y')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{number} {stem}ies"),
        (_, None) => format!("{number} {noun}s"),
    }
}

/// How many characters of a message, a help text or a label are shown to people; programs get all of it.
const LONGEST: usize = 1000;
/// How many characters of a name or a path are shown in a list.
const LONGEST_NAME: usize = 100;

/// A message on one line.
fn one_line(message: &str) -> Text {
    Text::line(message.trim_end()).cut(LONGEST)
}

/// A name among others.
fn name(name: &str) -> Text {
    Text::line(name).cut(LONGEST_NAME)
}

/// A line broken at spaces into lines of up to `width` characters; what stands in backticks stays together if it is
/// not long.
fn wrapped(line: &str, width: usize) -> String {
    let mut lines: Vec<String> = Vec::new();
    for word in words(line, width * 3 / 4) {
        match lines.last_mut() {
            Some(last) if last.chars().count() + 1 + word.chars().count() <= width => last.extend([" ", word]),
            _ => lines.push(word.to_owned()),
        }
    }
    lines.join("\n")
}

/// The words of a line; text in backticks is one word unless it has more than `longest` characters.
fn words(line: &str, longest: usize) -> Vec<&str> {
    let mut quoted = false;
    let parts = line.split(move |c| {
        quoted ^= c == '`';
        c == ' ' && !quoted
    });
    let split = |part: &'_ str| part.chars().count() > longest;
    parts.flat_map(|part| if split(part) { part.split(' ').collect() } else { vec![part] }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::{Diagnostic, Rule, Severity};
    use crate::source::{FileId, SourceText, Sources, Span};
    use std::sync::Arc;

    pub(super) static ERROR: Rule =
        Rule { code: "render/undefined", severity: Severity::Error, summary: "s", page: "p" };
    pub(super) static WARNING: Rule =
        Rule { code: "coverage/unused", severity: Severity::Warning, summary: "s", page: "p" };

    pub(super) fn source(sources: &mut Sources, path: &str, text: &str) -> FileId {
        sources.add(path, SourceText::from_bytes(text.as_bytes()).expect("valid text"))
    }

    /// The place of `what` in a file.
    pub(super) fn find(sources: &Sources, file: FileId, what: &str) -> Span {
        let start = sources.get(file).text().find(what).expect("it is there");
        Span::new(file, start..start + what.len())
    }

    /// A misspelt field in a partial that an agent includes, reaching 14 agents.
    pub(super) fn example() -> (Sources, Diagnostic) {
        let mut sources = Sources::default();
        let agent =
            source(&mut sources, "agents/base.toml", "name = \"b\"\n[body]\nmessages = \"{% include 'p' %}\"\n");
        let text = "{% for msg in ctx.history %}\n\té {{ tojson(msg.contnet) }},\n{% endfor %}\n";
        let partial = source(&mut sources, "partials/p.jinja", text);
        let mut finding = Diagnostic::new(&ERROR, find(&sources, partial, "msg.contnet"), "`msg` has no `contnet`")
            .label("not there")
            .related(find(&sources, agent, "{% include 'p' %}"), "included from here")
            .help("did you mean `content`?");
        for index in 0..14 {
            let agent: Arc<str> = Arc::from(format!("OpenAI Chat {index:02}"));
            finding = finding.reaching(&agent, Some(&Arc::from("plain-turn")));
        }
        (sources, finding)
    }

    #[test]
    fn summaries_count_in_words() {
        let run = Summary { agents: 28, contexts: 24, bodies: 516, ..Summary::default() };
        assert_eq!(run.to_string(), "28 agents × 24 contexts: 516 bodies, no findings");
        let found = Summary { errors: 2, warnings: 1, ..run.clone() };
        assert_eq!(found.to_string(), "28 agents × 24 contexts: 516 bodies, 2 errors, 1 warning");
        let small =
            Summary { agents: 1, contexts: 1, bodies: 1, errors: 1, warnings: 0, skipped: 3, lowered: Vec::new() };
        assert_eq!(small.to_string(), "1 agent × 1 context: 1 body, 1 error, 3 agents skipped");
        assert_eq!(Summary::default().to_string(), "0 agents × 0 contexts: 0 bodies, no findings");
    }

    #[test]
    fn messages_stand_on_one_line_and_end() {
        assert_eq!(one_line("a\n b\u{7}\n").as_str(), "a␊ b␇");
        assert_eq!(one_line(&"x".repeat(5000)).width(), LONGEST);
    }
}
