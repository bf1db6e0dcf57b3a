//! Every word on the terminal goes through here.

use std::io::{self, IsTerminal, Write};
#[cfg(feature = "runtime")]
use std::io::{BufRead, Read};

use super::args::{Color, Format};
use crate::diag::Diagnostic;
use crate::report::{self, Look, Summary};
use crate::source::Sources;

/// Standard output and error, and how they may be used.
pub(super) struct Terminal {
    pub(super) color: bool,
    pub(super) quiet: bool,
    width: usize,
    /// Whether the reader of standard output went away.
    closed: bool,
    /// Why standard output cannot be written, if it is not that.
    broken: Option<String>,
}

impl Terminal {
    pub(super) fn new(color: Color, quiet: bool) -> Terminal {
        let color = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => io::stdout().is_terminal() && !crate::system::no_color(),
        };
        let width = match io::stdout().is_terminal() {
            true => console_width().clamp(60, 100),
            false => 80,
        };
        Terminal { color, quiet, width, closed: false, broken: None }
    }

    /// How many columns there are.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Writes text to standard output, as it is. A reader that went away is no error.
    pub(super) fn text(&mut self, text: &str) {
        if self.closed || text.is_empty() {
            return;
        }
        let mut out = io::stdout().lock();
        if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            self.closed = true;
            self.broken = (error.kind() != io::ErrorKind::BrokenPipe).then(|| error.to_string());
        }
    }

    /// Why results were lost, if they were: a reader that went away wants no more, a full disk does.
    pub(super) fn lost(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// Writes a line to standard output, unless `-q` was given.
    pub(super) fn say(&mut self, line: &str) {
        if !self.quiet {
            self.text(&format!("{line}\n"));
        }
    }

    /// Writes findings and figures.
    pub(super) fn report(&mut self, format: Format, sources: &Sources, summary: &Summary, findings: &[Diagnostic]) {
        let text = match format {
            Format::Human => report::human(findings, sources, summary, Look { width: self.width, colour: self.color }),
            Format::Short => report::short(findings, sources, summary),
            Format::Json => report::json(findings, sources, summary),
            #[cfg(feature = "runtime")]
            Format::Events => report::json(findings, sources, summary),
        };
        let silent = self.quiet && findings.is_empty() && format != Format::Json;
        if !silent {
            self.text(&text);
        }
    }

    /// Writes findings where nothing was counted. Programs get the same document as ever.
    pub(super) fn findings(&mut self, format: Format, sources: &Sources, summary: &Summary, findings: &[Diagnostic]) {
        let text = match format {
            Format::Human => report::human_findings(findings, sources, Look { width: self.width, colour: self.color }),
            Format::Short => report::short_findings(findings, sources),
            Format::Json => report::json(findings, sources, summary),
            #[cfg(feature = "runtime")]
            Format::Events => report::json(findings, sources, summary),
        };
        self.text(&text);
    }

    /// Writes findings beside the result to standard error; where the result is for programs, on one line each.
    #[cfg(feature = "runtime")]
    pub(super) fn findings_aside(&self, format: Format, sources: &Sources, findings: &[Diagnostic]) {
        let colour = self.color && io::stderr().is_terminal();
        let text = match format {
            Format::Human => report::human_findings(findings, sources, Look { width: self.width, colour }),
            _ => report::short_findings(findings, sources),
        };
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }

    /// Whether the reader of standard output went away.
    #[cfg(feature = "runtime")]
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Writes what somebody else wrote: on a terminal without the characters that steer it.
    #[cfg(feature = "runtime")]
    pub(super) fn foreign(&mut self, text: &str) {
        match io::stdout().is_terminal() {
            true => self.text(&harmless(text)),
            false => self.text(text),
        }
    }

    /// Writes a line beside the result to standard error, unless `-q` was given.
    #[cfg(feature = "runtime")]
    pub(super) fn note(&self, line: &str) {
        if !self.quiet {
            let _ = writeln!(io::stderr().lock(), "{}", harmless(line));
        }
    }

    /// Asks on standard error whether to go on; without a person at a terminal the answer is no.
    #[cfg(feature = "runtime")]
    pub(super) fn asks(question: &str) -> Result<bool, String> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() || crate::system::is_ci() {
            return Ok(false);
        }
        let _ = io::stderr().lock().write_all(harmless(question).as_bytes());
        let mut answer = String::new();
        let read = io::stdin().lock().take(64).read_line(&mut answer);
        read.map_err(|error| format!("standard input cannot be read: {error}"))?;
        Ok(matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes"))
    }

    /// Writes something to think about to standard error.
    #[cfg(feature = "runtime")]
    pub(super) fn warn(message: &str) {
        let _ = writeln!(io::stderr().lock(), "warning: {message}");
    }

    /// Writes why the command could not run to standard error.
    pub(super) fn fail(message: &str, help: Option<&str>) {
        let mut text = format!("error: {message}\n");
        help.iter().for_each(|help| text.push_str(&format!("  help: {help}\n")));
        // Nothing is left to do if standard error is gone too.
        let _ = io::stderr().lock().write_all(text.as_bytes());
    }
}

/// A text without control characters, but for line ends and tabs.
#[cfg(feature = "runtime")]
fn harmless(text: &str) -> String {
    text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\t')).collect()
}

fn console_width() -> usize {
    usize::from(console::Term::stdout().size().1)
}
