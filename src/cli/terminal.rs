//! Every word on the terminal goes through here.

use std::io::{self, IsTerminal, Write};
use std::io::{BufRead, Read};
use std::process::ExitCode;

use serde_json::Value;

use super::Failure;
use super::args::{Color, Format};
use crate::compile::{Report, all_rules};
use crate::diff::CausedGroup;
use crate::report::{
    self, Checkout, Github, Gitlab, Human, Json, Junit, Layout, Markdown, Sarif, Short,
};
use crate::review::Review;
use crate::text::{Printer, Text, text};

/// The answer of a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Yes,
    No,
    /// This and all that follow.
    All,
    /// Nothing more.
    Quit,
    /// There is nobody to ask.
    Nobody,
}

/// Standard output and error, and how they may be used.
pub(super) struct Terminal {
    pub(super) color: bool,
    pub(super) quiet: bool,
    width: usize,
    /// The printer, which knows what is in the current line of standard output.
    printer: Printer,
    /// `true` if the reader of standard output went away.
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
        Terminal {
            color,
            quiet,
            width,
            printer: Printer::of_stream(),
            closed: false,
            broken: None,
        }
    }

    /// Returns how many columns there are.
    pub(super) fn width(&self) -> usize {
        self.width
    }

    /// Writes text to standard output.
    pub(super) fn text(&mut self, text: &Text) {
        let fit = self.printer.own(text).into_owned();
        self.write(&fit);
    }

    /// Writes a report for programs to standard output, without keys.
    pub(super) fn json(&mut self, value: &Value) {
        self.text(&Text::json(value));
    }

    /// Writes a value that is asked for as it is, such as a request, to standard output.
    pub(super) fn json_data(&mut self, value: &Value) {
        self.text(&Text::json_data(value));
    }

    /// Writes a value for programs to standard output, on a line of its own.
    #[cfg(feature = "runtime")]
    pub(super) fn json_line(&mut self, value: &Value) {
        self.text(&Text::json_line(value));
    }

    /// Writes a request body to standard output: byte for byte, but on a terminal with escapes for
    /// what cannot be seen.
    pub(super) fn body(&mut self, json: &str) {
        match io::stdout().is_terminal() {
            true => self.text(&Text::json_text(json)),
            false => self.write(json),
        }
    }

    /// Writes a script of ours to standard output: byte for byte, but on a terminal without what
    /// cannot be seen.
    pub(super) fn script(&mut self, script: &str) {
        match io::stdout().is_terminal() {
            true => self.text(&Text::script(script)),
            false => self.write(script),
        }
    }

    /// A reader that went away is not an error.
    fn write(&mut self, text: &str) {
        if self.closed || text.is_empty() {
            return;
        }
        let mut out = io::stdout().lock();
        if let Err(error) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
            self.closed = true;
            self.broken = (error.kind() != io::ErrorKind::BrokenPipe).then(|| error.to_string());
        }
    }

    /// Returns why results were lost, if they were: a reader that has gone away is not an error, a
    /// full disk is.
    pub(super) fn lost(&self) -> Option<&str> {
        self.broken.as_deref()
    }

    /// Writes a line to standard output, unless `-q` was given.
    pub(super) fn say(&mut self, line: &Text) {
        if !self.quiet {
            self.text(&text!("{}\n", line));
        }
    }

    /// Writes findings and figures.
    pub(super) fn report(&mut self, format: Format, report: &Report, checkout: &Checkout) {
        let is_for_programs = !matches!(format, Format::Human | Format::Short);
        if self.quiet && report.findings.is_empty() && !is_for_programs {
            return;
        }
        let text = self
            .format(format, self.color, checkout)
            .report(report, &all_rules());
        match format {
            // Its commands are ours; all that is foreign in them is escaped.
            Format::Github => self.write(&text),
            _ => self.text(&text),
        }
    }

    /// The same for a file.
    pub(super) fn report_for_file(format: Format, report: &Report, checkout: &Checkout) -> Text {
        layouted(format, Layout::default(), checkout).report(report, &all_rules())
    }

    /// Writes findings where nothing was counted.
    pub(super) fn findings(&mut self, format: Format, report: &Report) {
        let text = self
            .format(format, self.color, &Checkout::default())
            .findings(report, &all_rules());
        self.text(&text);
    }

    /// Writes changes of bodies, for people.
    pub(super) fn changes(&mut self, groups: &[CausedGroup]) {
        self.text(&report::changes_text(groups, self.layout()));
    }

    /// Writes what a change of sources does.
    pub(super) fn review(&mut self, format: Format, review: &Review, base: Option<&Text>) {
        self.text(&review_text(format, self.layout(), review, base));
    }

    /// The same for a file.
    pub(super) fn review_for_file(format: Format, review: &Review, base: Option<&Text>) -> Text {
        review_text(format, Layout::default(), review, base)
    }

    /// Writes findings beside the result to standard error; where the result is for programs, on
    /// one line each.
    #[cfg(feature = "runtime")]
    pub(super) fn findings_aside(&self, format: Format, report: &Report) {
        let format = if format == Format::Human {
            format
        } else {
            Format::Short
        };
        let colour = self.color && io::stderr().is_terminal();
        print_aside(
            &self
                .format(format, colour, &Checkout::default())
                .findings(report, &all_rules()),
        );
    }

    fn format(&self, format: Format, colour: bool, checkout: &Checkout) -> Box<dyn report::Format> {
        layouted(
            format,
            Layout {
                width: self.width,
                colour,
            },
            checkout,
        )
    }

    /// Returns `true` if the reader of standard output went away.
    #[cfg(feature = "runtime")]
    pub(super) fn is_closed(&self) -> bool {
        self.closed
    }

    /// Writes a piece of what somebody else wrote, in its own lines. Programs take it from JSON.
    #[cfg(feature = "runtime")]
    pub(super) fn foreign(&mut self, text: &str) {
        let fit = self.printer.foreign(text);
        self.write(&fit);
    }

    /// Writes a line beside the result to standard error, unless `-q` was given.
    pub(super) fn note(&self, line: &str) {
        if !self.quiet {
            print_aside(&text!("{}\n", line));
        }
    }

    /// Writes what is told of a result to standard error, unless `-q` was given.
    pub(super) fn remark(&self, text: &Text) {
        if !self.quiet {
            print_aside(text);
        }
    }

    /// Asks on standard error whether to go on; without a person at a terminal the answer is no.
    #[cfg(feature = "runtime")]
    pub(super) fn asks(question: &Text) -> Result<bool, Failure> {
        if !io::stdin().is_terminal() || !io::stderr().is_terminal() || crate::system::is_ci() {
            return Ok(false);
        }
        print_aside(question);
        let mut answer = String::new();
        let read = io::stdin().lock().take(64).read_line(&mut answer);
        read.map_err(|error| format!("standard input cannot be read: {error}"))?;
        Ok(matches!(
            answer.trim().to_ascii_lowercase().as_str(),
            "y" | "yes"
        ))
    }

    /// Returns what a person at the terminal chooses.
    pub(super) fn choice(question: &Text) -> Result<Answer, Failure> {
        if !io::stdin().is_terminal() || crate::system::is_ci() {
            return Ok(Answer::Nobody);
        }
        loop {
            print_aside(question);
            let mut answer = String::new();
            let read = io::stdin().lock().take(64).read_line(&mut answer);
            read.map_err(|error| format!("standard input cannot be read: {error}"))?;
            match answer.trim().to_ascii_lowercase().as_str() {
                "y" | "yes" => return Ok(Answer::Yes),
                "n" | "no" => return Ok(Answer::No),
                "a" | "all" => return Ok(Answer::All),
                "q" | "quit" => return Ok(Answer::Quit),
                "" if answer.is_empty() => return Ok(Answer::Quit),
                _ => {}
            }
        }
    }

    /// Returns how text is laid out.
    pub(super) fn layout(&self) -> Layout {
        Layout {
            width: self.width,
            colour: self.color,
        }
    }

    /// Writes something to think about to standard error.
    pub(super) fn warn(message: &str) {
        print_aside(&text!("warning: {}\n", message));
    }

    /// Writes what clap says: help to standard output, and what is wrong with the arguments to
    /// standard error. It was made from arguments that can be shown.
    pub(super) fn usage(error: &clap::Error) -> ExitCode {
        // Nothing is left to do if nobody reads it.
        let _ = error.print();
        ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
    }

    /// Writes what panics say as everything else is written. They are bugs.
    pub(super) fn tell_of_panics() {
        std::panic::set_hook(Box::new(|panic| {
            let place = panic
                .location()
                .map_or_else(String::new, |place| format!(" at {place}"));
            let why = panic.payload_as_str().unwrap_or("for no known reason");
            Terminal::fail(
                &format!("reqc panicked{place}: {why}"),
                Some("this is a bug of reqc: please report it"),
            );
        }));
    }

    /// Writes why the command could not run to standard error.
    pub(super) fn fail(message: &str, help: Option<&str>) {
        let mut text = text!("error: {}\n", Text::line(message).cut(LONGEST));
        help.iter()
            .for_each(|help| text.push(&text!("  help: {}\n", Text::line(help).cut(LONGEST))));
        print_aside(&text);
    }
}

fn review_text(format: Format, layout: Layout, review: &Review, base: Option<&Text>) -> Text {
    match format {
        Format::Json => report::review_json(review, base),
        Format::Markdown => report::review_markdown(review, base),
        Format::Html => report::review_html(review, base),
        _ => report::review_text(review, base, layout),
    }
}

fn layouted(format: Format, layout: Layout, checkout: &Checkout) -> Box<dyn report::Format> {
    match format {
        Format::Human => Box::new(Human(layout)),
        Format::Short => Box::new(Short(layout)),
        Format::Json | Format::Lcov => Box::new(Json),
        Format::Sarif => Box::new(Sarif(checkout.clone())),
        Format::Github => Box::new(Github(checkout.clone())),
        Format::Gitlab => Box::new(Gitlab(checkout.clone())),
        Format::Junit => Box::new(Junit),
        Format::Markdown | Format::Html => Box::new(Markdown),
        #[cfg(feature = "runtime")]
        Format::Events => Box::new(Json),
    }
}

/// The number of characters of a message that are shown.
const LONGEST: usize = 2000;

/// Writes text to standard error, from the start of a line.
fn print_aside(text: &Text) {
    let fit = Printer::of_stream().own(text).into_owned();
    // Nothing is left to do if standard error is gone too.
    let _ = io::stderr().lock().write_all(fit.as_bytes());
}

fn console_width() -> usize {
    usize::from(console::Term::stdout().size().1)
}
