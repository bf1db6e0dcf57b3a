//! Human-readable output for a terminal: source lines with labels, drawn by miette.

use std::fmt;

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode};
use owo_colors::Style;

use super::bound::{Bounded, left_out};
use super::excerpt::Excerpt;
use super::fill::wrapped;
use super::{Format, Layout, is_of_folder, name, one_line, pointer_in_long_line, short};
use crate::compile::Report;
use crate::diag::{Diagnostic, Rule, Severity, count};
use crate::source::Sources;
use crate::text::{Text, text};

/// Writes each finding with its source lines and its reach, then the summary.
#[derive(Debug, Clone, Copy, Default)]
pub struct Human(pub Layout);

impl Format for Human {
    fn report(&self, report: &Report, rules: &[&'static Rule]) -> Text {
        let mut out = self.findings(report, rules);
        if !report.findings.is_empty() {
            out.push(&text!("\n"));
        }
        out.push(&super::figures(&report.summary));
        out
    }

    fn findings(&self, report: &Report, _: &[&'static Rule]) -> Text {
        let layout = Layout {
            width: self.0.width.max(40),
            ..self.0
        };
        let handler = handler(layout);
        let Bounded { shown, more } = Bounded::of(&report.findings);
        let drawn = shown
            .into_iter()
            .map(|finding| drawing_with_reach(&handler, finding, &report.sources, layout));
        let mut parts: Vec<Text> = drawn.collect();
        parts.extend(left_out(&more, &report.summary.left_out));
        Text::join(&parts, "\n")
    }
}

fn handler(layout: Layout) -> GraphicalReportHandler {
    let theme = if layout.colour {
        GraphicalTheme::unicode()
    } else {
        GraphicalTheme::unicode_nocolor()
    };
    GraphicalReportHandler::new_themed(theme)
        .with_width(layout.width)
        .with_wrap_lines(false)
        .with_context_lines(1)
        .with_links(false)
        .with_break_words(false)
        .without_syntax_highlighting()
}

/// Writes a finding with its source lines and its reach.
pub(super) fn with_reach(finding: &Diagnostic, sources: &Sources, layout: Layout) -> Text {
    drawing_with_reach(&handler(layout), finding, sources, layout)
}

fn drawing_with_reach(
    handler: &GraphicalReportHandler,
    finding: &Diagnostic,
    sources: &Sources,
    layout: Layout,
) -> Text {
    let mut out = drawing(handler, finding, sources, layout.width);
    if let Some(pointer) = pointer_in_long_line(finding, sources) {
        let line = text!("  at {} in the body", Text::line(pointer));
        out.push(&text!(
            "{}\n",
            line.styled(Style::new().dimmed(), layout.colour)
        ));
    }
    if let Some(reach) = reach(finding, layout.width) {
        out.push(&text!(
            "{}\n",
            reach.styled(Style::new().dimmed(), layout.colour)
        ));
    }
    out
}

fn drawing(
    handler: &GraphicalReportHandler,
    finding: &Diagnostic,
    sources: &Sources,
    width: usize,
) -> Text {
    let mut out = String::new();
    let is_of_folder = is_of_folder(finding, sources);
    let drawn = Drawn {
        finding,
        excerpt: Excerpt::new(finding, sources),
        is_of_folder,
        width,
    };
    match handler.render_report(&mut out, &drawn) {
        Ok(()) => Text::drawn(
            &out.lines()
                .flat_map(|line| [line.trim_end(), "\n"])
                .collect::<String>(),
        ),
        Err(fmt::Error) => short::line(finding, sources),
    }
}

/// Returns `  reaches 14 agents in 9 contexts: OpenAI Chat, … (+13)`, with as many names as fit,
/// but at least one.
fn reach(finding: &Diagnostic, width: usize) -> Option<Text> {
    let (first, rest) = finding.agents.split_first()?;
    let contexts = match finding.contexts.len() {
        0 => Text::new(),
        1 => text!(" in 1 context ({})", name(&finding.contexts[0])),
        // One name is enough to look at a body: `reqc render AGENT --context NAME`.
        contexts => text!(
            " in {} ({}, …)",
            count(contexts, "context"),
            name(&finding.contexts[0])
        ),
    };
    let mut line = text!(
        "  reaches {}{}: {}",
        count(finding.agents.len(), "agent"),
        contexts,
        name(first)
    );
    for (index, agent) in rest.iter().enumerate() {
        let more = match rest.len() - index - 1 {
            0 => Text::new(),
            more => text!(", … (+{})", more),
        };
        let longer = text!("{}, {}", line, name(agent));
        if longer.width() + more.width() > width {
            return Some(text!("{}, … (+{})", line, rest.len() - index));
        }
        line = longer;
    }
    Some(line)
}

/// A finding as an error for miette.
#[derive(Debug)]
struct Drawn<'a> {
    finding: &'a Diagnostic,
    excerpt: Excerpt,
    /// `true` if the finding points at a folder, which has no lines.
    is_of_folder: bool,
    /// The width of the whole report, in columns.
    width: usize,
}

/// The indentation of a message and of a help text, in columns.
const INDENTS: (usize, usize) = (4, 8);

impl fmt::Display for Drawn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&wrapped(
            &one_line(&self.finding.message),
            self.width - INDENTS.0,
        ))
    }
}

impl std::error::Error for Drawn<'_> {}

impl miette::Diagnostic for Drawn<'_> {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.finding.rule.code))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(match self.finding.severity {
            Severity::Error => miette::Severity::Error,
            Severity::Warning => miette::Severity::Warning,
        })
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        let help = self.finding.help.as_ref()?;
        Some(Box::new(wrapped(&one_line(help), self.width - INDENTS.1)))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        (!self.is_of_folder).then_some(&self.excerpt as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(
            self.excerpt.labels().filter(|_| !self.is_of_folder),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ERROR, WARNING, example, find, report, source};
    use super::*;
    use crate::compile::Summary;
    use crate::source::{SourceText, Span};
    use insta::assert_snapshot;
    use proptest::prelude::*;

    #[expect(
        clippy::needless_pass_by_value,
        reason = "tests build the finding in place"
    )]
    fn draw(finding: Diagnostic, sources: &Sources) -> Text {
        drawing(&handler(Layout::default()), &finding, sources, 80)
    }

    #[test]
    fn a_chain_over_files_with_reach_and_summary() {
        let (sources, finding) = example();
        let summary = Summary {
            agents: 28,
            contexts: 24,
            bodies: 516,
            errors: 1,
            ..Summary::default()
        };
        let report = report(sources, vec![finding], summary);
        assert_snapshot!(Human::default().report(&report, &[]).as_str(), @r#"
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

        28 agents × 24 contexts: 516 bodies, 1 error
        "#);
    }

    #[test]
    fn a_simple_error_with_help() {
        let mut sources = Sources::default();
        let file = source(
            &mut sources,
            "agents/a.toml",
            "name = \"a\"\nextend = \"b\"\n\n[body]\n",
        );
        let finding = Diagnostic::new(
            &ERROR,
            find(&sources, file, "extend"),
            "`extend` is not a key of a profile",
        )
        .help("did you mean `extends`?");
        assert_snapshot!(draw(finding, &sources).as_str(), @r#"
        render/undefined

          × `extend` is not a key of a profile
           ╭─[agents/a.toml:2:1]
         1 │ name = "a"
         2 │ extend = "b"
           · ──────
         3 │
           ╰────
          help: did you mean `extends`?
        "#);
    }

    #[test]
    fn two_places_far_apart_in_one_file() {
        let mut sources = Sources::default();
        let text = format!("name = \"a\"\n{}name = \"b\"\nx = 1", "\n".repeat(20));
        let file = source(&mut sources, "agents/a.toml", &text);
        let finding = Diagnostic::new(&WARNING, find(&sources, file, "name = \"b\""), "twice")
            .related(find(&sources, file, "name = \"a\""), "first here");
        assert_snapshot!(draw(finding, &sources).as_str(), @r#"
        coverage/unused

          ⚠ twice
            ╭─[agents/a.toml:22:1]
         21 │
         22 │ name = "b"
            · ──────────
         23 │ x = 1
            ╰────
           ╭─[agents/a.toml:1:1]
         1 │ name = "a"
           · ─────┬────
           ·      ╰── first here
         2 │
           ╰────
        "#);
    }

    #[test]
    fn a_warning_about_an_empty_file() {
        let mut sources = Sources::default();
        let file = source(&mut sources, "partials/unused.jinja", "");
        let finding = Diagnostic::new(
            &WARNING,
            Span::file_start(file),
            "nobody includes this partial",
        )
        .label("empty");
        assert_snapshot!(draw(finding, &sources).as_str(), @r#"
        coverage/unused

          ⚠ nobody includes this partial
           ╭─[partials/unused.jinja:1:1]
         1 │
           · ▲
           · ╰── empty
           ╰────
        "#);
    }

    #[test]
    fn the_end_of_a_file_can_be_pointed_at() {
        let mut sources = Sources::default();
        let file = source(&mut sources, "a.json", "{\n  \"a\": 1\n");
        assert_snapshot!(draw(Diagnostic::new(&ERROR, Span::new(file, 99..120), "unclosed").label("here"), &sources).as_str(), @r#"
        render/undefined

          × unclosed
           ╭─[a.json:3:1]
         2 │   "a": 1
         3 │
           · ▲
           · ╰── here
           ╰────
        "#);
    }

    #[test]
    fn long_lines_are_cut_around_the_label() {
        let mut sources = Sources::default();
        let text = format!(
            "{{\n\"{}\": \"needle\", \"{}\"",
            "é".repeat(500_000),
            "y".repeat(1_000_000)
        );
        let file = source(&mut sources, "a.json", &text);
        let finding =
            Diagnostic::new(&ERROR, find(&sources, file, "needle"), "sharp").label("here");
        assert_snapshot!(draw(finding, &sources).as_str(), @r#"
        render/undefined

          × sharp
           ╭─[a.json:2:500006]
         1 │ {
         2 │ …éééééééééééééééééééééééééééé": "needle", "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy…
           ·                                  ───┬──
           ·                                     ╰── here
           ╰────
        "#);
    }

    #[test]
    fn spans_over_lines_are_cut_to_the_first() {
        let mut sources = Sources::default();
        let file = source(&mut sources, "a.toml", "a = [\n  1,\n  2,\n]\n");
        let finding =
            Diagnostic::new(&ERROR, Span::new(file, 4..17), "a list\nin two").label("this");
        assert_snapshot!(draw(finding, &sources).as_str(), @r#"
        render/undefined

          × a list␊in two
           ╭─[a.toml:1:5]
         1 │ a = [
           ·     ┬
           ·     ╰── this
         2 │   1,
           ╰────
        "#);
    }

    #[test]
    fn what_stands_in_backticks_stays_together() {
        assert_eq!(
            wrapped("write `extends = \"A\"` here", 20),
            "write\n`extends = \"A\"` here"
        );
        assert_eq!(
            wrapped("one `two three four five` six", 12),
            "one `two\nthree four\nfive` six"
        );
        assert_eq!(wrapped("", 12), "");
    }

    #[test]
    fn reach_fits_the_width() {
        let (_, mut finding) = example();
        finding.agents.truncate(2);
        finding.contexts.clear();
        assert_eq!(
            reach(&finding, 80).as_deref(),
            Some("  reaches 2 agents: OpenAI Chat 00, OpenAI Chat 01")
        );
        assert_eq!(
            reach(&finding, 10).as_deref(),
            Some("  reaches 2 agents: OpenAI Chat 00, … (+1)")
        );
        finding.agents.clear();
        assert_eq!(reach(&finding, 80), None);
    }

    #[test]
    fn colours_are_the_callers_choice() {
        let (sources, finding) = example();
        let report = report(sources, vec![finding], Summary::default());
        let text = |colour| Human(Layout { width: 80, colour }).report(&report, &[]);
        assert!(!text(false).contains('\u{1b}'));
        assert!(text(true).contains("\u{1b}[31m"));
    }

    proptest! {
        #[test]
        fn any_place_can_be_drawn(
            text in "([a-zé漢🙂\t\r\n\u{1b}\u{301}]|\n\n){0,30}",
            spans in prop::collection::vec((0usize..70, 0usize..70, any::<bool>()), 1..5),
        ) {
            let mut sources = Sources::default();
            let normal = SourceText::from_bytes(text.as_bytes()).expect("no NUL");
            let files = [sources.add("a", normal), source(&mut sources, "b", "x\ny")];
            let place = |&(start, len, other): &(usize, usize, bool)| Span::new(files[usize::from(other)], start..start + len);
            let mut finding = Diagnostic::new(&ERROR, place(&spans[0]), "m").label("l");
            for span in &spans[1..] {
                finding = finding.related(place(span), "r");
            }
            let mut out = String::new();
            let drawn = Drawn {
                finding: &finding,
                excerpt: Excerpt::new(&finding, &sources),
                is_of_folder: false,
                width: 80,
            };
            prop_assert!(handler(Layout::default()).render_report(&mut out, &drawn).is_ok());
            prop_assert!(!out.contains("Failed to read"));
            let raw = out.contains(['\u{1b}', '\r']);
            prop_assert!(!raw);
        }
    }
}
