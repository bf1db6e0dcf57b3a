//! Fixes findings that have exactly one correct fix: edits sources, and verifies each edit by
//! compiling again.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::report::Report;
use crate::diag::{Diagnostic, Edit, Severity};
use crate::source::{FileId, SourceText};
use crate::world::{Entry, EntryKind, ReadError, Walk, World};

/// A file that was fixed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MendedFile {
    /// The path below the root of the repository.
    pub path: String,
    /// The content before fixing.
    pub old: Vec<u8>,
    /// The content after fixing.
    pub new: Vec<u8>,
}

/// The result of fixing.
#[non_exhaustive]
pub struct Mended {
    /// The remaining findings, with all files in their fixed state.
    pub report: Report,
    /// The changed files, sorted by path.
    pub files: Vec<MendedFile>,
    /// The number of edits.
    pub edits: usize,
}

/// The maximum number of rounds. A fix may make further fixes possible, which need another round.
const MOST_ROUNDS: usize = 10;
/// The maximum length of a line that is used to distinguish edits, in bytes.
const LONGEST_LINE: usize = 2000;
/// The maximum number of edits that are tried individually.
const MOST_TRIALS: usize = 200;

/// Fixes findings that have one correct fix. `report` compiles a state of the repository. An edit
/// is kept if it reduces the findings and adds no errors.
pub fn mend(world: &Arc<dyn World>, report: impl Fn(Arc<dyn World>) -> Report) -> Mended {
    let mut bench = Bench {
        report: &report,
        trials: MOST_TRIALS,
        refused: HashSet::new(),
    };
    let mut state = State {
        overlay: Overlay::over(world),
        report: report(Arc::clone(world)),
        edits: 0,
    };
    for _ in 0..MOST_ROUNDS {
        match bench.round(&state) {
            Some(better) => state = better,
            None => break,
        }
    }
    let State {
        overlay,
        report,
        edits,
    } = state;
    let files = overlay.files.into_iter().map(|(path, new)| MendedFile {
        old: world.read(&path).unwrap_or_default(),
        new,
        path,
    });
    Mended {
        report,
        files: files.collect(),
        edits,
    }
}

/// The edited files, as they were compiled.
type Texts = HashMap<FileId, Option<SourceText>>;

/// A state of the repository, and its findings.
struct State {
    overlay: Overlay,
    report: Report,
    edits: usize,
}

/// An edit to a file's bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct ByteEdit {
    path: String,
    start: usize,
    end: usize,
    text: String,
    /// The line around the edit, which distinguishes it from equal edits elsewhere.
    line: String,
    cause: Cause,
}

/// The finding that an edit should fix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Cause {
    code: &'static str,
    message: String,
    start: u32,
    /// `true` if the edit corrects a name. Only after the correction can mistakes be found in the
    /// item that the name refers to.
    is_renamed: bool,
}

impl ByteEdit {
    fn overlaps(&self, other: &ByteEdit) -> bool {
        self.path == other.path && self.start <= other.end && other.start <= self.end
    }

    /// Returns `true` if the edit helps even though the number of findings is unchanged: it
    /// corrected a name, or the first syntax error is now later in the text, with more than a comma
    /// between the old and the new location.
    fn is_of_use(&self, after: &Report) -> bool {
        let path = |finding: &Diagnostic| after.sources.get(finding.primary.span.file).path();
        let here = || {
            let same = after
                .findings
                .iter()
                .filter(|it| it.rule.code == self.cause.code && **path(it) == *self.path);
            same.map(|it| (it, it.primary.span.start))
        };
        if self.cause.is_renamed {
            return here()
                .all(|(it, start)| it.message != self.cause.message || start > self.cause.start);
        }
        here().next().is_some()
            && here().all(|(it, start)| {
                let text = after.sources.get(it.primary.span.file).text();
                let passed = text
                    .get(self.cause.start as usize..start as usize)
                    .unwrap_or_default();
                passed.contains(|c: char| !c.is_whitespace() && c != ',')
            })
    }
}

struct Bench<'r> {
    report: &'r dyn Fn(Arc<dyn World>) -> Report,
    /// The number of edits that may still be tried individually.
    trials: usize,
    /// The rejected edits, which improved nothing, by path, line and text.
    refused: HashSet<(String, String, String)>,
}

impl Bench<'_> {
    /// Returns a better state than this one; `None` if no edit produces one.
    fn round(&mut self, state: &State) -> Option<State> {
        let edits = self.edits(state);
        if edits.is_empty() {
            return None;
        }
        if let Some(better) = self.better(state, &edits) {
            return Some(better);
        }
        for edit in edits {
            self.trials = self.trials.checked_sub(1)?;
            match self.better(state, std::slice::from_ref(&edit)) {
                Some(better) => return Some(better),
                None => drop(self.refused.insert((edit.path, edit.line, edit.text))),
            }
        }
        None
    }

    /// Returns the edits that a report proposes, without rejected edits. Of overlapping edits, only
    /// the first is included.
    fn edits(&self, state: &State) -> Vec<ByteEdit> {
        let sources = &state.report.sources;
        let mut texts = HashMap::new();
        let edits = state
            .report
            .findings
            .iter()
            .filter_map(|finding| Some((finding, finding.fix(sources)?)));
        let mut edits: Vec<ByteEdit> = edits
            .filter_map(|(finding, edit)| state.byte_edit(&mut texts, finding, &edit))
            .collect();
        edits.sort();
        edits.dedup_by(|a, b| {
            (&a.path, a.start, a.end, &a.text) == (&b.path, b.start, b.end, &b.text)
        });
        edits.retain(|it| {
            !self
                .refused
                .contains(&(it.path.clone(), it.line.clone(), it.text.clone()))
        });
        let mut apart: Vec<ByteEdit> = Vec::new();
        for edit in edits {
            if apart.last().is_none_or(|last| !last.overlaps(&edit)) {
                apart.push(edit);
            }
        }
        apart
    }

    fn better(&self, state: &State, edits: &[ByteEdit]) -> Option<State> {
        let overlay = state.overlay.with(edits);
        let report = (self.report)(Arc::new(overlay.clone()));
        let (before, after) = (state.report.findings.len(), report.findings.len());
        let is_no_worse = errors(&report) <= errors(&state.report) && after <= before;
        let is_better = after < before || edits.iter().all(|edit| edit.is_of_use(&report));
        (is_no_worse && is_better).then(|| State {
            overlay,
            report,
            edits: state.edits + edits.len(),
        })
    }
}

fn errors(report: &Report) -> usize {
    report
        .findings
        .iter()
        .filter(|finding| finding.severity == Severity::Error)
        .count()
}

impl State {
    /// Converts an edit to a source into an edit to its file; returns `None` if the file is not
    /// part of the repository, or has changed since it was compiled.
    fn byte_edit(&self, texts: &mut Texts, finding: &Diagnostic, edit: &Edit) -> Option<ByteEdit> {
        let file = self.report.sources.get(edit.span.file);
        let read = || {
            let source = SourceText::from_bytes(&self.overlay.read(file.path()).ok()?).ok()?;
            (source.as_str() == file.text()).then_some(source)
        };
        let source = texts.entry(edit.span.file).or_insert_with(read).as_ref()?;
        let range: Range<usize> = edit.span.range();
        if range.end > file.text().len() {
            return None;
        }
        let offset = |at: usize| source.to_file_offset(at);
        let line = file
            .line_around(range.start, LONGEST_LINE)
            .map(|line| file.text()[line].to_owned())
            .unwrap_or_default();
        let (path, text) = (file.path().to_string(), edit.text.clone());
        let (code, message) = (finding.rule.code, finding.message.clone());
        let cause = Cause {
            code,
            message,
            start: finding.primary.span.start,
            is_renamed: finding.fix.is_none(),
        };
        Some(ByteEdit {
            path,
            start: offset(range.start),
            end: offset(range.end),
            text,
            line,
            cause,
        })
    }
}

/// A world with the content of some files replaced.
#[derive(Clone)]
struct Overlay {
    world: Arc<dyn World>,
    files: BTreeMap<String, Vec<u8>>,
}

impl Overlay {
    fn over(world: &Arc<dyn World>) -> Overlay {
        Overlay {
            world: Arc::clone(world),
            files: BTreeMap::new(),
        }
    }

    /// Returns the overlay with edits applied. The edits must be sorted and must not overlap.
    fn with(&self, edits: &[ByteEdit]) -> Overlay {
        let mut overlay = self.clone();
        for edit in edits.iter().rev() {
            let bytes = overlay
                .files
                .entry(edit.path.clone())
                .or_insert_with(|| self.read(&edit.path).unwrap_or_default());
            bytes.splice(edit.start..edit.end, edit.text.bytes());
        }
        overlay
    }
}

impl World for Overlay {
    fn read_within(&self, path: &str, limit: u64) -> Result<Vec<u8>, ReadError> {
        match self.files.get(path) {
            Some(bytes) if bytes.len() as u64 > limit => Err(ReadError::TooLarge {
                size: bytes.len() as u64,
                limit,
            }),
            Some(bytes) => Ok(bytes.clone()),
            None => self.world.read_within(path, limit),
        }
    }

    fn walk(&self, folder: &str) -> Walk {
        self.world.walk(folder)
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>, ReadError> {
        self.world.list(folder)
    }

    fn list_counted(&self, folder: &str) -> Result<(Vec<Entry>, usize), ReadError> {
        self.world.list_counted(folder)
    }

    fn kind(&self, path: &str) -> Result<EntryKind, ReadError> {
        self.world.kind(path)
    }

    fn today(&self) -> Option<(i32, u8, u8)> {
        self.world.today()
    }
}
