//! The source lines at a finding's labels, in the form that miette expects.
//!
//! The lines of all files are joined into one string, with a block for each run of consecutive
//! lines, so that one drawing shows a whole include chain. No label extends beyond one line. Long
//! lines are cut to the part around their first label, and control characters are replaced. Line
//! and column numbers match the file.

use std::ops::Range;

use miette::{LabeledSpan, MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

use super::{LONGEST, LONGEST_NAME};
use crate::diag::{Diagnostic, Label};
use crate::secret::masked;
use crate::source::{FileId, Position, SourceFile, Sources};
use crate::text::Text;

/// The maximum length of a line that is shown as a whole, in bytes.
const WHOLE_LINE: usize = 400;
/// The number of bytes shown from a longer line, before its first label and in total.
const CUT: (usize, usize) = (60, 160);

/// The part of a source that miette draws for one finding.
#[derive(Debug, Default)]
pub(super) struct Excerpt {
    text: String,
    blocks: Vec<Block>,
    marks: Vec<Mark>,
}

/// A run of lines in one file.
#[derive(Debug)]
struct Block {
    path: Text,
    /// The position in the excerpt's text.
    range: Range<usize>,
    /// The first line, counted from 0.
    first_line: usize,
    lines: usize,
}

/// A label, with its position in the excerpt's text and in its file.
#[derive(Debug)]
struct Mark {
    range: Range<usize>,
    message: Option<String>,
    is_primary: bool,
    position: Position,
}

/// A label, cut to its first line, as a byte range of its file.
struct LabelledRange<'a> {
    label: &'a Label,
    range: Range<usize>,
    is_primary: bool,
}

impl Excerpt {
    /// Returns the lines for a finding. The lines from the primary location's file come first,
    /// followed by those of related locations in order.
    pub(super) fn new(finding: &Diagnostic, sources: &Sources) -> Excerpt {
        let mut excerpt = Excerpt::default();
        let labels = std::iter::once(&finding.primary).chain(&finding.related);
        let places: Vec<LabelledRange<'_>> = labels
            .map(|label| LabelledRange::new(label, finding, sources))
            .collect();
        let mut files: Vec<FileId> = Vec::new();
        for place in &places {
            if !files.contains(&place.label.span.file) {
                files.push(place.label.span.file);
            }
        }
        for (index, file) in files.into_iter().enumerate() {
            let here: Vec<&LabelledRange<'_>> = places
                .iter()
                .filter(|place| place.label.span.file == file)
                .collect();
            let source = sources.get(file);
            for run in runs(source.text(), &here, usize::from(index == 0)) {
                excerpt.block(source, run, &here);
            }
        }
        excerpt
    }

    pub(super) fn labels(&self) -> impl Iterator<Item = LabeledSpan> + '_ {
        self.marks.iter().map(|mark| {
            let span = SourceSpan::new(mark.range.start.into(), mark.range.len());
            match mark.is_primary {
                true => LabeledSpan::new_primary_with_span(mark.message.clone(), span),
                false => LabeledSpan::new_with_span(mark.message.clone(), span),
            }
        })
    }

    fn block(&mut self, file: &SourceFile, run: Range<usize>, places: &[&LabelledRange<'_>]) {
        let (start, mut at, mut lines) = (self.text.len(), run.start, 0);
        // Whole lines are masked, because part of a key would not be recognised.
        for line in masked(&file.shown(run.clone())).split('\n') {
            let here = places
                .iter()
                .filter(|place| (at..=at + line.len()).contains(&place.range.start));
            self.line(file, at, line, &here.copied().collect::<Vec<_>>());
            at += line.len() + 1;
            lines += 1;
        }
        let first_line = file.position(run.start).line - 1;
        self.blocks.push(Block {
            path: Text::line(file.path()).cut(LONGEST_NAME),
            range: start..self.text.len(),
            first_line,
            lines,
        });
    }

    /// Adds the line that starts at byte `at` of its file, with its labels.
    fn line(&mut self, file: &SourceFile, at: usize, line: &str, places: &[&LabelledRange<'_>]) {
        let shown = cut(
            line,
            places.iter().map(|place| place.range.start - at).min(),
        );
        let lead = if shown.start > 0 { "…" } else { "" };
        let start = self.text.len() + lead.len();
        let place_of = |offset: usize| {
            let offset = (offset - at).clamp(shown.start, shown.end);
            start + Text::source_length(&line[shown.clone()], offset - shown.start)
        };
        for place in places {
            self.marks.push(Mark {
                range: place_of(place.range.start)..place_of(place.range.end),
                message: Some(Text::line(&place.label.message).cut(LONGEST).to_string())
                    .filter(|message| !message.is_empty()),
                is_primary: place.is_primary,
                position: file.position(place.range.start),
            });
        }
        let trail = if shown.end < line.len() {
            "…\n"
        } else {
            "\n"
        };
        self.text.extend([lead, &Text::source(&line[shown]), trail]);
    }
}

impl<'a> LabelledRange<'a> {
    fn new(label: &'a Label, finding: &Diagnostic, sources: &Sources) -> LabelledRange<'a> {
        let text = sources.get(label.span.file).text();
        let span = label.span.range();
        let start = clamp(span.start, text);
        let end = clamp(span.end, text).min(line_end(text, start)).max(start);
        LabelledRange {
            label,
            range: start..end,
            is_primary: std::ptr::eq(label, &raw const finding.primary),
        }
    }
}

fn clamp(offset: usize, text: &str) -> usize {
    text.floor_char_boundary(offset.min(text.len()))
}

/// Returns the runs of whole lines around locations of one file; the run with the primary location
/// comes first.
fn runs(text: &str, places: &[&LabelledRange<'_>], context: usize) -> Vec<Range<usize>> {
    let mut around: Vec<Range<usize>> = places
        .iter()
        .map(|place| lines(text, place.range.start, context))
        .collect();
    around.sort_by_key(|run| run.start);
    let mut runs: Vec<Range<usize>> = Vec::new();
    for run in around {
        match runs.last_mut() {
            Some(last) if run.start <= last.end + 1 => last.end = last.end.max(run.end),
            _ => runs.push(run),
        }
    }
    let is_primary = |run: &Range<usize>| {
        places
            .iter()
            .any(|place| place.is_primary && run_holds(run, place.range.start))
    };
    runs.sort_by_key(|run| !is_primary(run));
    runs
}

fn run_holds(run: &Range<usize>, offset: usize) -> bool {
    run.start <= offset && offset <= run.end
}

/// Returns the line that contains a byte and up to `context` lines before and after it, without the
/// last line ending.
fn lines(text: &str, at: usize, context: usize) -> Range<usize> {
    let (mut start, mut end) = (line_start(text, at), line_end(text, at));
    for _ in 0..context {
        start = if start > 0 {
            line_start(text, start - 1)
        } else {
            start
        };
        end = if end + 1 < text.len() {
            line_end(text, end + 1)
        } else {
            end
        };
    }
    start..end
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

fn line_end(text: &str, at: usize) -> usize {
    text[at..]
        .find('\n')
        .map_or(text.len(), |newline| at + newline)
}

/// Returns the part of a line to show.
fn cut(line: &str, label: Option<usize>) -> Range<usize> {
    if line.len() <= WHOLE_LINE {
        return 0..line.len();
    }
    let start = line.floor_char_boundary(label.unwrap_or(0).saturating_sub(CUT.0));
    start..line.floor_char_boundary((start + CUT.1).min(line.len()))
}

impl SourceCode for Excerpt {
    /// Returns the block that contains `span`, or, if no context is requested, the location of the
    /// label that starts there.
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        _after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let range = span.offset()..span.offset() + span.len();
        // A block ends with a newline, which no label covers, so a position at its end belongs to
        // the next block.
        let block = self
            .blocks
            .iter()
            .find(|block| block.range.start <= range.start && range.end < block.range.end)
            .ok_or(MietteError::OutOfBounds)?;
        let mark = self
            .marks
            .iter()
            .find(|mark| before == 0 && mark.range == range);
        let contents = |shown: Range<usize>, line, column| {
            let span = SourceSpan::new(shown.start.into(), shown.len());
            let data = &self.text.as_bytes()[shown];
            MietteSpanContents::new_named(
                block.path.to_string(),
                data,
                span,
                line,
                column,
                block.lines,
            )
        };
        Ok(Box::new(match mark {
            Some(mark) => contents(range, mark.position.line - 1, mark.position.column - 1),
            None => contents(block.range.clone(), block.first_line, 0),
        }))
    }
}
