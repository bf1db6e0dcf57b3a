//! `--format`: the format of standard output, and the reports in files.

use std::path::{Path, PathBuf};

use super::args::{Format, FormatTo, Writes};
use super::{Failure, Terminal};
use crate::compile::Report;
use crate::report::{Checkout, stories_html, stories_json, stories_markdown, stories_text};
use crate::review::Review;
use crate::system;
use crate::text::Text;
use crate::traffic::Stories;

/// The output formats of a run.
#[derive(Debug, Clone)]
pub(super) struct Formats {
    /// The format of standard output.
    pub(super) shown: Format,
    /// `true` if annotations follow on standard output.
    annotated: bool,
    /// Reports in files.
    files: Vec<(Format, PathBuf)>,
}

impl Formats {
    /// Resolves the requested formats: one for standard output, optionally with annotations, and
    /// any number of files.
    pub(super) fn resolve(asked: Vec<FormatTo>) -> Result<Formats, Failure> {
        let (mut shown, mut files): (Vec<Format>, Vec<(Format, PathBuf)>) =
            (Vec::new(), Vec::new());
        for FormatTo { format, file } in asked {
            match file {
                None => shown.push(format),
                Some(file) if files.iter().any(|(_, known)| *known == file) => {
                    return Err(Failure::new(format!(
                        "two reports would be written to `{}`",
                        file.display()
                    )));
                }
                Some(file) => files.push((format, file)),
            }
        }
        let annotated = shown.len() > 1 && shown.contains(&Format::Github);
        shown.retain(|format| !annotated || *format != Format::Github);
        match shown.as_slice() {
            [] => Ok(Formats { shown: Format::Human, annotated, files }),
            [one] if !annotated || matches!(one, Format::Human | Format::Short) => {
                Ok(Formats { shown: *one, annotated, files })
            }
            _ => Err(Failure::new("standard output can have only one format: write the others to files")
                .help("write `--format FORMAT=FILE`; only `github` can be combined with `human` or `short`")),
        }
    }

    /// Returns the formats for human-readable output, without files.
    pub(super) fn for_people() -> Formats {
        Formats {
            shown: Format::Human,
            annotated: false,
            files: Vec::new(),
        }
    }

    /// Rejects formats that are not available for a command's output.
    pub(super) fn refuse_others(&self, writes: Writes) -> Result<(), Failure> {
        let annotations = self.annotated.then_some(Format::Github);
        let asked = [self.shown]
            .into_iter()
            .chain(annotations)
            .chain(self.files.iter().map(|(format, _)| *format));
        let why = match (
            asked.into_iter().find(|format| !format.is_form_of(writes)),
            self.files.first(),
        ) {
            (Some(format), _) => format!(
                "this command does not support the format `{}`",
                format.name()
            ),
            (None, Some((_, file)))
                if matches!(
                    writes,
                    Writes::Answers | Writes::Others | Writes::Comparisons
                ) =>
            {
                format!("this command cannot write a report to `{}`", file.display())
            }
            (None, _) => return Ok(()),
        };
        Err(Failure::new(why).help(match writes {
            Writes::Comparisons => "`compare` writes `human`, `json` and `markdown`",
            Writes::Coverage => "`coverage` writes `human`, `json`, `lcov` and `html`",
            Writes::Stories => "`lint --session` writes `human`, `json`, `markdown` and `html`",
            Writes::Reviews => "`compile --diff` writes `human`, `json`, `markdown` and `html`",
            _ => "`check`, `compile --check` and `lint` write reports; `compile --diff` writes `markdown` and `html`",
        }))
    }

    /// Shows a review and writes it to the requested files.
    pub(super) fn write_review(
        &self,
        review: &Review,
        base: Option<&Text>,
        terminal: &mut Terminal,
    ) -> Result<(), Failure> {
        terminal.review(self.shown, review, base);
        for (format, file) in &self.files {
            let text = Terminal::review_for_file(*format, review, base);
            write_file(file, &text)?;
        }
        Ok(())
    }

    /// Shows a report and writes it to the requested files. The report's paths start from `folder`.
    pub(super) fn write(
        &self,
        report: &Report,
        folder: &Path,
        terminal: &mut Terminal,
    ) -> Result<(), Failure> {
        let checkout = Checkout::at(system::below_checkout(folder).unwrap_or_default());
        terminal.report(self.shown, report, &checkout);
        if self.annotated {
            terminal.report(Format::Github, report, &checkout);
        }
        for (format, file) in &self.files {
            write_file(file, &Terminal::report_for_file(*format, report, &checkout))?;
        }
        Ok(())
    }
}

impl Formats {
    /// Shows the stories of conversations and writes them to the requested files.
    pub(super) fn write_stories(
        &self,
        stories: &Stories,
        terminal: &mut Terminal,
    ) -> Result<(), Failure> {
        terminal.text(&stories_as(self.shown, stories));
        self.write_files(|format| stories_as(format, stories))
    }

    /// Writes the requested files.
    pub(super) fn write_files(&self, text: impl Fn(Format) -> Text) -> Result<(), Failure> {
        self.files
            .iter()
            .try_for_each(|(format, file)| write_file(file, &text(*format)))
    }
}

fn stories_as(format: Format, stories: &Stories) -> Text {
    match format {
        Format::Json => Text::json(&stories_json(stories)),
        Format::Markdown => stories_markdown(stories),
        Format::Html => stories_html(stories),
        _ => stories_text(stories),
    }
}

fn write_file(file: &Path, text: &Text) -> Result<(), Failure> {
    let written = system::write_named(file, text.as_bytes());
    written.map_err(|why| Failure::new(format!("`{}` cannot be written: {why}", file.display())))
}
