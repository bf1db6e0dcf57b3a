//! Checks files of request bodies one after the other, and reports on all of them.

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::ops::Range;
use std::sync::Arc;

use rayon::prelude::*;

use super::document::{DocumentJudge, Judged, Told, problem, unrecognised};
use crate::compile::compiler::{Compiler, STACK_BYTES};
use crate::compile::judge::LintTarget;
use crate::compile::policy::{LeftOut, MOST_OF_A_RULE, PolicyOptions};
use crate::compile::report::{LintedBodies, Report, Reporter};
use crate::compile::selection::Selection;
use crate::diag::{Diagnostic, Severity};
use crate::lint::{
    Batch, BatchPlace, Content, Envelope, Input, InputError, Line, Lines, Places, Stranger,
    Unrecognised, Unsupported, content, rules,
};
use crate::provider::WireFormat;
use crate::repo::rules::NOT_TEXT;
use crate::secret;
use crate::source::{Position, SourceText, Sources, Span, TextError};

/// A sequential check of files of request bodies. Memory use is limited by the largest
/// document or line, and by the number of findings.
///
/// ```
/// use std::sync::Arc;
///
/// use reqc::compile::lint::Linting;
/// use reqc::compile::{Compiler, LintTarget, LoadOptions, PolicyOptions};
/// use reqc::system::Embedded;
/// use reqc::world::MemoryWorld;
///
/// let nothing = Arc::new(MemoryWorld::default());
/// let compiler = Compiler::load(nothing, Arc::new(Embedded::bundled()), LoadOptions::default());
/// let mut linting = Linting::new(&compiler, None, LintTarget::default());
/// linting.read("batch.jsonl", r#"{"contents": []}"#.as_bytes())?;
/// let report = linting.report(&PolicyOptions::default());
/// assert!(report.summary.to_string().starts_with("1 body (1 google-generate-content): 1 error"));
/// # Ok::<(), reqc::lint::InputError>(())
/// ```
pub struct Linting<'c> {
    judge: DocumentJudge<'c>,
    pool: Option<rayon::ThreadPool>,
    sources: Sources,
    findings: Vec<Diagnostic>,
    /// The number of findings so far, by rule.
    found: HashMap<&'static str, usize>,
    formats: BTreeMap<WireFormat, usize>,
    passed_over: usize,
    /// The number of bodies whose model is unknown.
    without_model: usize,
    /// The lines of the current file, if it is a batch.
    batch: Batch,
    /// `true` if the current file is an agent's session, and this has been reported.
    is_session: bool,
    /// The format of a request in the current file that was passed over because this format is not
    /// checked.
    passed_format: Option<Unsupported>,
    /// Findings that apply only if the file turns out to be a batch. They are held back until that
    /// is known.
    undecided: Vec<Diagnostic>,
}

impl<'c> Linting<'c> {
    /// Creates a check of files. `wire` is the wire format of all bodies, if it is known; `target`
    /// is their destination.
    pub fn new(
        compiler: &'c Compiler,
        wire: Option<WireFormat>,
        target: LintTarget<'c>,
    ) -> Linting<'c> {
        Linting {
            judge: DocumentJudge {
                compiler,
                wire,
                target,
                url: None,
            },
            pool: rayon::ThreadPoolBuilder::new()
                .stack_size(STACK_BYTES)
                .build()
                .ok(),
            sources: compiler.sources().clone(),
            findings: Vec::new(),
            found: HashMap::new(),
            formats: BTreeMap::new(),
            passed_over: 0,
            without_model: 0,
            batch: Batch::default(),
            is_session: false,
            passed_format: None,
            undecided: Vec::new(),
        }
    }

    /// Sets the URL that all bodies were sent to, unless the files contain their URLs.
    #[must_use]
    pub fn sent_to(mut self, url: Option<String>) -> Linting<'c> {
        self.judge.url = url;
        self
    }

    /// Reads a file, which findings refer to as `path`. Its content determines whether it is read
    /// as a document or as JSON Lines.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or is too large.
    pub fn read(&mut self, path: &str, reader: impl Read) -> Result<(), InputError> {
        let path: Arc<str> = Arc::from(path);
        self.batch = Batch::default();
        self.is_session = false;
        self.passed_format = None;
        self.undecided.clear();
        let before = (
            self.bodies(),
            self.found.values().sum::<usize>(),
            self.passed_over,
        );
        match Input::open(reader)? {
            Input::Document(bytes) => self.document(&path, &bytes),
            Input::Lines(lines) if lines.are_of_log() => self.log(&path, lines)?,
            Input::Lines(lines) => self.lines(&path, lines)?,
        }
        if before.0 == self.bodies()
            && before.1 == self.found.values().sum::<usize>()
            && !self.batch.is_certain()
        {
            self.nothing(&path, self.passed_over - before.2);
        }
        Ok(())
    }

    /// Adds existing findings in the repository's files.
    pub fn extend(&mut self, findings: impl IntoIterator<Item = Diagnostic>) {
        self.findings.extend(findings);
    }

    /// Applies the repository's policy, and returns the remaining findings.
    pub fn report(self, options: &PolicyOptions) -> Report {
        let mut report = Reporter::new(self.judge.compiler, &Selection::default(), options)
            .of(self.sources, self.findings);
        let mut left_out = Vec::new();
        for (code, found) in self.found {
            let more = found.saturating_sub(MOST_OF_A_RULE);
            if let Some(last) = report
                .findings
                .iter()
                .rfind(|it| it.rule.code == code)
                .filter(|_| more > 0)
            {
                left_out.push(LeftOut::new(code, last.severity, more));
            }
        }
        left_out.sort_by_key(|it| it.code);
        report.summary = report.summary.and_left_out(left_out);
        report.summary.contexts = 0;
        report.summary.bodies = self.formats.values().sum();
        let formats = self.formats.into_iter().collect();
        report.summary.linted = Some(LintedBodies {
            formats,
            passed_over: self.passed_over,
            without_model: self.without_model,
        });
        report
    }

    fn bodies(&self) -> usize {
        self.formats.values().sum()
    }

    fn document(&mut self, path: &Arc<str>, bytes: &[u8]) {
        let text = match SourceText::from_bytes(bytes) {
            Ok(text) => text,
            Err(error) => return self.not_text(path, 1, bytes, &error),
        };
        let Linting { judge, pool, .. } = self;
        let judged = within(pool.as_ref(), || judge.judge(text.as_str()));
        let place = BatchPlace {
            number: 1,
            is_line: false,
            bytes: bytes.len() as u64,
        };
        self.keep(path, 1, text.as_str(), judged, place);
    }

    /// Checks the bodies in a log, whose lines need not be documents.
    fn log(&mut self, path: &Arc<str>, mut lines: Lines<impl Read>) -> Result<(), InputError> {
        loop {
            let (number, bytes) = lines.text()?;
            if bytes.is_empty() {
                return Ok(());
            }
            let text = SourceText::from_bytes(&bytes).or_else(|error| {
                self.not_text(path, number, &bytes, &error);
                let text = String::from_utf8_lossy(&bytes).replace('\0', "\u{fffd}");
                SourceText::from_bytes(text.as_bytes())
            });
            // With the characters that replace its bytes, the text may be too large.
            let Ok(text) = text else { continue };
            let Linting { judge, pool, .. } = self;
            let judged = within(pool.as_ref(), || judge.excerpts(text.as_str()));
            let judged = judged.unwrap_or_default();
            let place = BatchPlace {
                number,
                is_line: false,
                bytes: bytes.len() as u64,
            };
            self.keep(path, number, text.as_str(), judged, place);
        }
    }

    fn lines(&mut self, path: &Arc<str>, mut lines: Lines<impl Read>) -> Result<(), InputError> {
        let mut skipped = Skipped::default();
        loop {
            let chunk = lines.chunk()?;
            if chunk.is_empty() {
                self.told_as_text(path, &skipped);
                return Ok(());
            }
            let Linting { judge, pool, .. } = self;
            let judged: Vec<_> = within(pool.as_ref(), || {
                chunk.par_iter().map(|line| judge.line(line)).collect()
            });
            for (line, judged) in chunk.iter().zip(judged) {
                match judged {
                    Ok((Some(judged), text)) => {
                        let bytes = line.bytes.len() as u64 + 1;
                        let place = BatchPlace {
                            number: line.number,
                            is_line: true,
                            bytes,
                        };
                        self.keep(path, line.number, text.as_str(), judged, place);
                    }
                    Ok((None, text)) => skipped.add(line.number, text.as_str()),
                    Err(error) => self.not_text(path, line.number, &line.bytes, &error),
                }
            }
        }
    }

    /// Reports, once for each log, the number of lines that are plain text.
    fn told_as_text(&mut self, path: &Arc<str>, skipped: &Skipped) {
        let Some((line, text)) = &skipped.first else {
            return;
        };
        let message = match skipped.lines {
            1 => "this line is skipped, because it does not end with a JSON object".to_owned(),
            lines => format!(
                "{lines} lines are skipped, because they do not end with a JSON object; this is the first"
            ),
        };
        let help = "if the file is a log, ignore this warning with `--allow lint/no-body`";
        let mut problem = problem(&rules::NO_BODY, message, Some(help));
        problem.severity = Some(Severity::Warning);
        let finding = self.shown(
            path,
            Position {
                line: *line,
                column: 1,
            },
            text,
            0,
            Told::new(0..text.len(), problem),
        );
        self.findings.push(finding);
    }

    /// Keeps the findings in a string that begins at a line of a file, and only those parts of the
    /// text that the findings show.
    fn keep(
        &mut self,
        path: &Arc<str>,
        line: usize,
        text: &str,
        judged: Judged,
        place: BatchPlace,
    ) {
        judged
            .formats
            .iter()
            .for_each(|wire| *self.formats.entry(*wire).or_default() += 1);
        self.passed_over += judged.passed_over;
        self.without_model += judged.without_model;
        self.passed_format = self.passed_format.or(judged.passed_format);
        let of_batch = self.of_batch(&judged.envelopes, text, place);
        let told = judged.told.into_iter().chain(of_batch.certain);
        let told: Vec<Told> = told.filter(|told| self.is_new(told)).collect();
        let told = self.bounded(told);
        let found = self.shown_all(path, line, text, told);
        self.findings.extend(found);
        let undecided = self.shown_all(path, line, text, of_batch.undecided);
        self.undecided.extend(undecided);
        if self.batch.is_certain() {
            for finding in self.undecided.drain(..) {
                *self.found.entry(finding.rule.code).or_default() += 1;
                self.findings.push(finding);
            }
        }
    }

    /// Returns the mistakes in batch lines, including those that depend on earlier lines.
    fn of_batch(&mut self, envelopes: &[Envelope], text: &str, place: BatchPlace) -> OfBatch {
        let (server, mut found) = (self.judge.server(), OfBatch::default());
        let mut places = None;
        for (index, envelope) in envelopes.iter().enumerate() {
            let place = if index == 0 {
                place
            } else {
                BatchPlace { bytes: 0, ..place }
            };
            let place = if place.is_line {
                place
            } else {
                BatchPlace {
                    number: index + 1,
                    ..place
                }
            };
            let flaws = self.batch.add(envelope, place, server);
            if flaws.is_empty() {
                continue;
            }
            let places = places.get_or_insert_with(|| Places::new(text));
            let told = flaws.into_iter().map(|flaw| Told::of_flaw(places, flaw));
            match envelope.is_certain || self.batch.is_certain() {
                true => found.certain.extend(told),
                false if self.undecided.len() < MOST_UNDECIDED => found.undecided.extend(told),
                false => {}
            }
        }
        found
    }

    /// Returns findings in a string that begins at a line of a file.
    fn shown_all(
        &mut self,
        path: &Arc<str>,
        line: usize,
        text: &str,
        mut told: Vec<Told>,
    ) -> Vec<Diagnostic> {
        told.sort_by_key(|told| told.range.start);
        let mut findings = Vec::new();
        let (mut counted, mut at) = (0, Position { line, column: 1 });
        for told in told {
            let part = part_around(text, &told);
            // The parts are sorted by location, except for a few that are cut differently.
            if part.start < counted {
                (counted, at) = (0, Position { line, column: 1 });
            }
            at = after(at, &text[counted..part.start]);
            counted = part.start;
            findings.push(self.shown(path, at, &text[part.clone()], part.start, told));
        }
        findings
    }

    /// Returns a finding in a part of a file, with all keys masked.
    fn shown(
        &mut self,
        path: &Arc<str>,
        at: Position,
        part: &str,
        start: usize,
        told: Told,
    ) -> Diagnostic {
        let hidden = match told.problem.rule == &rules::SYNTAX {
            true => secret::places_to_hide(part),
            false => secret::keys_in_text(part),
        };
        let file =
            self.sources
                .add_part(Arc::clone(path), SourceText::salvage(part.as_bytes()), at);
        hidden
            .into_iter()
            .for_each(|place| self.sources.mask(Span::new(file, place)));
        told.at(file, start)
    }

    /// Returns `false` for further lines of an agent's session file, because such a file is
    /// reported only once.
    fn is_new(&mut self, told: &Told) -> bool {
        let was_session = self.is_session;
        match told.stranger {
            Some(kind) if kind.is_of_file() => {
                self.is_session = true;
                !was_session
            }
            Some(Stranger::Unknown | Stranger::Message) => !was_session,
            _ => true,
        }
    }

    /// Keeps the first findings of each rule, and counts the others.
    fn bounded(&mut self, told: Vec<Told>) -> Vec<Told> {
        told.into_iter()
            .filter(|told| {
                let found = self.found.entry(told.problem.rule.code).or_default();
                *found += 1;
                *found <= MOST_OF_A_RULE
            })
            .collect()
    }

    /// Reports bytes that are not text; `line` is the line on which they begin.
    fn not_text(&mut self, path: &Arc<str>, line: usize, bytes: &[u8], error: &TextError) {
        let (offset, what) = match *error {
            TextError::Utf16 { .. } => (0, "this is UTF-16"),
            TextError::NotUtf8 { offset } => (offset, "this is not UTF-8"),
            TextError::Nul { offset } => (offset, "this is a NUL byte"),
            TextError::TooLarge { .. } => (0, "this is too large"),
        };
        let text = SourceText::salvage(&bytes[..bytes.len().min(offset + 1)]);
        let place = SourceText::salvage(&bytes[..offset]).as_str().len();
        let problem = problem(&NOT_TEXT, what, Some(help_for(error, bytes)));
        let judged = Judged {
            told: vec![Told::new(place..place, problem)],
            ..Judged::default()
        };
        let place = BatchPlace {
            number: line,
            is_line: true,
            bytes: 0,
        };
        self.keep(path, line, text.as_str(), judged, place);
    }

    /// Reports a file that contains no body, because checking it proves nothing.
    fn nothing(&mut self, path: &Arc<str>, passed_over: usize) {
        let message = match passed_over {
            0 => "there is no request body in this file".to_owned(),
            1 => "the only request in this file goes to an endpoint without a known wire format"
                .to_owned(),
            more => format!(
                "none of the {more} requests in this file goes to an endpoint with a known wire format"
            ),
        };
        let file = self.sources.add(Arc::clone(path), SourceText::salvage(b""));
        let problem = match self.passed_format {
            Some(format) => unrecognised(&Unrecognised::Unsupported(format)),
            None => problem(
                &rules::NO_BODY,
                message,
                Some("if the file does contain one, name its wire format with `--wire`"),
            ),
        };
        self.findings.push(Told::new(0..0, problem).at(file, 0));
    }
}

/// Returns the help for bytes that are not text.
fn help_for(error: &TextError, bytes: &[u8]) -> &'static str {
    const GZIP: [u8; 2] = [0x1f, 0x8b];
    const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    if bytes.starts_with(&GZIP) || bytes.starts_with(&ZSTD) {
        return "the file is compressed: decompress it first";
    }
    match error {
        TextError::Nul { .. } => {
            "JSON text has no NUL bytes: in a string, write `\\u0000`; elsewhere, remove them"
        }
        TextError::TooLarge { .. } => "a document or a line can be at most 64 MiB in size",
        TextError::Utf16 { .. } | TextError::NotUtf8 { .. } => {
            "JSON must be UTF-8: convert the file to UTF-8"
        }
    }
}

/// The mistakes in batch lines.
#[derive(Default)]
struct OfBatch {
    certain: Vec<Told>,
    /// The findings that are reported only if the file turns out to be a batch.
    undecided: Vec<Told>,
}

/// The maximum number of findings that are kept until it is known whether the file is a batch.
const MOST_UNDECIDED: usize = 100;

/// The lines of a log that are plain text.
#[derive(Default)]
struct Skipped {
    lines: usize,
    /// The number of the first plain-text line, and the text to show.
    first: Option<(usize, String)>,
}

impl Skipped {
    fn add(&mut self, number: usize, text: &str) {
        self.lines += 1;
        let shown = || {
            text[..text.floor_char_boundary(AROUND)]
                .trim_end()
                .to_owned()
        };
        self.first.get_or_insert_with(|| (number, shown()));
    }
}

impl DocumentJudge<'_> {
    /// Checks a line, and returns the result and the text. The result is `None` if the line is not
    /// JSON. Text before a document is blanked, so that locations stay the same.
    fn line(&self, line: &Line) -> Result<(Option<Judged>, SourceText), TextError> {
        let text = SourceText::from_bytes(&line.bytes)?;
        let judged = match content(text.as_str()) {
            Content::Document => Some(self.judge(text.as_str())),
            Content::DocumentFrom(start) => {
                Some(self.judge(&format!("{}{}", " ".repeat(start), &text.as_str()[start..])))
            }
            Content::Text => self.excerpts(text.as_str()),
        };
        Ok((judged, text))
    }
}

/// The number of bytes that are kept on each side of a finding.
const AROUND: usize = 1024;

/// Returns the part of a string to keep: the line of a finding and its neighbours or, if these are
/// long, only some bytes on each side of the finding.
fn part_around(text: &str, told: &Told) -> Range<usize> {
    let Range {
        start: least,
        end: most,
    } = told.within.clone().unwrap_or(0..text.len());
    let (start, end) = (told.range.start.max(least), told.range.end.min(most));
    let lowest = text.ceil_char_boundary(start.saturating_sub(AROUND).max(least));
    let highest = text.floor_char_boundary(end.saturating_add(AROUND).min(most));
    let line =
        memchr::memrchr(b'\n', &text.as_bytes()[lowest..start]).map(|newline| lowest + newline);
    let before = line.and_then(|newline| memchr::memrchr(b'\n', &text.as_bytes()[lowest..newline]));
    let begin = match (before, line) {
        (Some(before), _) => lowest + before + 1,
        (None, Some(newline)) if lowest > least => newline + 1,
        _ => lowest,
    };
    let after = memchr::memchr_iter(b'\n', &text.as_bytes()[end..highest]).nth(1);
    begin..after.map_or(highest, |newline| end + newline)
}

/// Returns the position after a string that begins at a given position.
fn after(at: Position, text: &str) -> Position {
    let newlines = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    let rest = text.rsplit('\n').next().unwrap_or_default().chars().count();
    match newlines {
        0 => Position {
            line: at.line,
            column: at.column + rest,
        },
        more => Position {
            line: at.line + more,
            column: 1 + rest,
        },
    }
}

fn within<R: Send>(pool: Option<&rayon::ThreadPool>, work: impl FnOnce() -> R + Send) -> R {
    match pool {
        Some(pool) => pool.install(work),
        None => work(),
    }
}
