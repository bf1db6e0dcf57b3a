//! The differences between the files of two sides, in parts that can be applied separately.
//!
//! Input: the files of both sides. Output: [`Edit`]s for display, and [`Edits`], which apply any
//! subset of them to the older side. Applying all of them yields the files of the newer side.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Range;
use std::sync::Arc;

use similar::DiffOp;

use super::keys;
use crate::diff::{line_operations, similarity, word_similarity};
use crate::repo::folders;
use crate::secret;
use crate::world::{EntryKind, MemoryWorld, World};

/// One edit to a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Edit {
    /// The file on the newer side, or on the older side if the file was removed.
    pub path: Arc<str>,
    /// The kind of edit.
    pub kind: EditKind,
    /// The lines, with secrets masked. Empty for whole files.
    pub hunks: Vec<Hunk>,
}

/// The kinds of edits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum EditKind {
    /// A file was added.
    Added,
    /// A file was removed.
    Removed,
    /// A file was moved.
    Moved {
        /// The former path.
        from: Arc<str>,
    },
    /// A key in a TOML file was edited. The key includes its tables, as in `body.temperature`.
    Key(Arc<str>),
    /// Comments or blank lines in a TOML file were edited.
    Comments,
    /// The text of a bundled file differs from its text in a different version of reqc.
    Bundled,
    /// Lines were edited in a TOML file that cannot be parsed, or in a file of a different type.
    Lines,
}

/// Consecutive lines that were replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hunk {
    /// The first line on the older side, counted from 1.
    pub old_line: usize,
    /// The first line on the newer side, counted from 1.
    pub new_line: usize,
    /// The removed lines.
    pub removed: Vec<String>,
    /// The added lines.
    pub added: Vec<String>,
}

impl Edit {
    /// Returns `path:line` on the newer side, or only the path for a whole file.
    pub fn place(&self) -> String {
        match self.hunks.first() {
            Some(hunk) => format!("{}:{}", self.path, hunk.new_line),
            None => self.path.to_string(),
        }
    }

    /// Returns `true` if the edit wrote this line on the newer side.
    pub fn has_line(&self, line: usize) -> bool {
        self.hunks
            .iter()
            .any(|hunk| (hunk.new_line..hunk.new_line + hunk.added.len()).contains(&line))
    }

    /// Returns the edited key in the notation used in files; `None` for other kinds of edits.
    pub fn key(&self) -> Option<&str> {
        match &self.kind {
            EditKind::Key(key) => Some(keys::shown(key)),
            _ => None,
        }
    }

    /// Returns `true` if the edit may have an effect even if no body changes: on routing, on the
    /// model that answers, or on a gate.
    pub fn acts(&self) -> bool {
        self.kind != EditKind::Comments
    }

    /// Prepares edits for display by merging edits to consecutive lines.
    pub fn shown<'e>(edits: impl IntoIterator<Item = &'e Edit>) -> Vec<Edit> {
        let mut shown: Vec<Edit> = Vec::new();
        for edit in edits {
            if !shown
                .last_mut()
                .is_some_and(|before| before.takes_next(edit))
            {
                shown.push(edit.clone());
            }
        }
        shown
    }

    /// Merges an edit to the lines that directly follow. Returns `false` if the edit is elsewhere.
    fn takes_next(&mut self, edit: &Edit) -> bool {
        let is_text =
            self.kind == EditKind::Lines && edit.kind == EditKind::Lines && self.path == edit.path;
        let (Some(last), [next]) = (self.hunks.last_mut().filter(|_| is_text), &*edit.hunks) else {
            return false;
        };
        let ends = (
            last.old_line + last.removed.len(),
            last.new_line + last.added.len(),
        );
        let follows = ends == (next.old_line, next.new_line);
        if follows {
            last.removed.extend(next.removed.iter().cloned());
            last.added.extend(next.added.iter().cloned());
        }
        follows
    }

    /// Returns `true` if the edit adds or removes a whole file.
    pub fn is_whole_file(&self) -> bool {
        matches!(self.kind, EditKind::Added | EditKind::Removed)
    }
}

/// All edits between two sides.
#[derive(Debug, Default)]
pub(super) struct Edits {
    /// The edits, by file and position.
    pub(super) all: Vec<Edit>,
    /// The index of each edit's file.
    file_of: Vec<usize>,
    files: Vec<FileEdits>,
}

/// A file that differs.
#[derive(Debug)]
struct FileEdits {
    old: Option<(String, Vec<u8>)>,
    new: Option<(String, Vec<u8>)>,
    /// The edit that adds, removes, or moves the file, if there is one.
    whole: Option<usize>,
    pieces: Vec<Piece>,
}

/// A part of a string: unchanged, or changed by an edit.
#[derive(Debug, Clone)]
enum Piece {
    Same(Range<usize>),
    Edited {
        edit: usize,
        old: Range<usize>,
        new: Range<usize>,
    },
}

/// The maximum number of hunks in a file that are separate edits.
const MOST_HUNKS: usize = 8;
/// The similarity, from 0 to 1, above which a file is treated as moved and a line as changed.
const ALIKE: f32 = 0.6;
/// If more files than this were removed, moved files are found only if their content is unchanged.
const MOST_COMPARED: usize = 200;

impl Edits {
    /// Returns the edits that turn the older side into the newer one.
    pub(super) fn between(old: &MemoryWorld, new: &MemoryWorld) -> Edits {
        let (olds, news): (BTreeMap<_, _>, BTreeMap<_, _>) =
            (old.iter().collect(), new.iter().collect());
        let mut edits = Edits::default();
        let mut gone = Gone::of(&olds, &news);
        for (path, bytes) in news {
            let before = olds
                .get_key_value(path)
                .map(|(path, bytes)| (*path, *bytes));
            let before = before.or_else(|| gone.take(bytes).map(|from| (from, olds[from])));
            if before != Some((path, bytes)) {
                edits.add_file(before, Some((path, bytes)));
            }
        }
        gone.paths()
            .for_each(|path| edits.add_file(Some((path, olds[path])), None));
        edits
    }

    fn add_file(&mut self, old: Option<(&str, &[u8])>, new: Option<(&str, &[u8])>) {
        let path: Arc<str> = new.or(old).map_or("", |(path, _)| path).into();
        let kind = match (old, new) {
            (None, _) => Some(EditKind::Added),
            (_, None) => Some(EditKind::Removed),
            (Some((from, _)), Some((to, _))) if from != to => {
                Some(EditKind::Moved { from: from.into() })
            }
            _ => None,
        };
        let whole = kind.map(|kind| {
            self.push(Edit {
                path: Arc::clone(&path),
                kind,
                hunks: Vec::new(),
            })
        });
        let pieces = match (old, new) {
            (Some((_, old)), Some((_, new))) if old != new => self.pieces(&path, old, new),
            _ => Vec::new(),
        };
        self.files.push(FileEdits {
            old: owned(old),
            new: owned(new),
            whole,
            pieces,
        });
    }

    fn push(&mut self, edit: Edit) -> usize {
        self.all.push(edit);
        // The file's entry is added after its edits.
        self.file_of.push(self.files.len());
        self.all.len() - 1
    }

    /// Returns the parts of a file, given both versions.
    fn pieces(&mut self, path: &Arc<str>, old: &[u8], new: &[u8]) -> Vec<Piece> {
        let (Ok(old_text), Ok(new_text)) = (std::str::from_utf8(old), std::str::from_utf8(new))
        else {
            let edit = self.push(Edit {
                path: Arc::clone(path),
                kind: EditKind::Lines,
                hunks: Vec::new(),
            });
            return vec![Piece::Edited {
                edit,
                old: 0..old.len(),
                new: 0..new.len(),
            }];
        };
        let (old, new) = (Lines::of(path, old_text), Lines::of(path, new_text));
        let operations = line_operations(&old.texts, &new.texts);
        let is_toml = old.keys.is_some() && new.keys.is_some();
        let runs: Vec<Run> = operations
            .into_iter()
            .flat_map(|operation| runs(operation, &old, &new, is_toml))
            .collect();
        let runs = if folders::is_in(path, folders::PARTIALS) {
            by_line(runs, &old, &new)
        } else {
            runs
        };
        let owners = owners(
            &runs,
            path.ends_with(".toml") || folders::is_in(path, folders::CONTEXTS),
        );
        let without_key = if is_toml {
            EditKind::Comments
        } else {
            EditKind::Lines
        };
        let mut known: HashMap<usize, usize> = HashMap::new();
        let mut pieces = Vec::new();
        for (run, owner) in runs.iter().zip(owners) {
            pieces.push(match owner {
                None => Piece::Same(old.bytes(&run.old)),
                Some(owner) => {
                    let kind = || {
                        runs[owner]
                            .key
                            .clone()
                            .map_or_else(|| without_key.clone(), EditKind::Key)
                    };
                    let edit = *known.entry(owner).or_insert_with(|| {
                        self.push(Edit {
                            path: Arc::clone(path),
                            kind: kind(),
                            hunks: Vec::new(),
                        })
                    });
                    self.all[edit].hunks.push(hunk(run, &old, &new));
                    Piece::Edited {
                        edit,
                        old: old.bytes(&run.old),
                        new: new.bytes(&run.new),
                    }
                }
            });
        }
        pieces
    }

    /// Returns the files of the older side with some edits applied.
    pub(super) fn applied(
        &self,
        older: &MemoryWorld,
        chosen: impl Fn(usize) -> bool,
    ) -> MemoryWorld {
        let mut world = older.clone();
        for file in &self.files {
            if let Some((path, _)) = &file.old {
                world.remove(path);
            }
            if let Some((path, bytes)) = file.made(&chosen) {
                world.insert(path, bytes);
            }
        }
        world
    }

    /// Returns the paths of an edit on both sides.
    pub(super) fn paths(&self, edit: usize) -> BTreeSet<&str> {
        let file = &self.files[self.file_of[edit]];
        [&file.old, &file.new]
            .into_iter()
            .flatten()
            .map(|(path, _)| path.as_str())
            .collect()
    }
}

fn owned(side: Option<(&str, &[u8])>) -> Option<(String, Vec<u8>)> {
    side.map(|(path, bytes)| (path.to_owned(), bytes.to_vec()))
}

impl FileEdits {
    fn made(&self, chosen: &impl Fn(usize) -> bool) -> Option<(String, Vec<u8>)> {
        let is_moved = self.whole.is_none_or(chosen);
        let (path, _) = if is_moved {
            self.new.as_ref()?
        } else {
            self.old.as_ref()?
        };
        let (old, new) = match (&self.old, &self.new) {
            (Some((_, old)), Some((_, new))) => (old, new),
            (_, Some((_, bytes))) | (Some((_, bytes)), _) => {
                return Some((path.clone(), bytes.clone()));
            }
            (None, None) => return None,
        };
        if self.pieces.is_empty() {
            return Some((path.clone(), old.clone()));
        }
        Some((
            path.clone(),
            self.pieces
                .iter()
                .flat_map(|piece| match piece {
                    Piece::Edited {
                        edit, new: range, ..
                    } if chosen(*edit) => new[range.clone()].to_vec(),
                    Piece::Same(range) | Piece::Edited { old: range, .. } => {
                        old[range.clone()].to_vec()
                    }
                })
                .collect(),
        ))
    }
}

/// Files that exist only on the older side.
struct Gone<'g> {
    files: BTreeMap<&'g str, &'g [u8]>,
    /// The paths of the files, by content.
    by_bytes: HashMap<&'g [u8], Vec<&'g str>>,
}

impl<'g> Gone<'g> {
    fn of(olds: &BTreeMap<&'g str, &'g [u8]>, news: &BTreeMap<&str, &[u8]>) -> Gone<'g> {
        let files = olds
            .iter()
            .filter(|(path, _)| !news.contains_key(*path))
            .map(|(path, bytes)| (*path, *bytes));
        let files: BTreeMap<&str, &[u8]> = files.collect();
        let mut by_bytes: HashMap<&[u8], Vec<&str>> = HashMap::new();
        // `take` removes the last element of a list first.
        files
            .iter()
            .rev()
            .for_each(|(path, bytes)| by_bytes.entry(bytes).or_default().push(path));
        Gone { files, by_bytes }
    }

    fn paths(&self) -> impl Iterator<Item = &'g str> {
        self.files.keys().copied()
    }

    /// Takes the removed file that is equal to a new one or, if there is none, most similar to it.
    fn take(&mut self, new: &[u8]) -> Option<&'g str> {
        if new.is_empty() {
            return None;
        }
        let same = self.by_bytes.get_mut(new).and_then(|paths| {
            std::iter::from_fn(|| paths.pop()).find(|path| self.files.contains_key(path))
        });
        let found = same.or_else(|| self.most_like(new))?;
        self.files.remove(found);
        Some(found)
    }

    fn most_like(&self, new: &[u8]) -> Option<&'g str> {
        if self.files.len() > MOST_COMPARED {
            return None;
        }
        self.files
            .iter()
            .filter_map(|(path, old)| {
                let likeness = similarity(
                    std::str::from_utf8(old).ok()?,
                    std::str::from_utf8(new).ok()?,
                );
                Some((likeness, *path)).filter(|_| likeness >= ALIKE)
            })
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, path)| path)
    }
}

/// A string split into lines.
struct Lines<'t> {
    texts: Vec<&'t str>,
    /// The beginning of each line, followed by the end of the last one.
    starts: Vec<usize>,
    /// The lines with secrets masked.
    shown: Vec<String>,
    /// The key to which each line belongs; `None` if the text is not TOML.
    keys: Option<Vec<Option<Arc<str>>>>,
}

impl<'t> Lines<'t> {
    fn of(path: &str, text: &'t str) -> Lines<'t> {
        let texts: Vec<&str> = text.split_inclusive('\n').collect();
        let mut starts = vec![0];
        texts
            .iter()
            .for_each(|line| starts.push(starts[starts.len() - 1] + line.len()));
        let shown = masked(text)
            .split_inclusive('\n')
            .map(|line| line.trim_end_matches(['\n', '\r']).to_owned())
            .collect();
        let keys = path
            .ends_with(".toml")
            .then(|| keys::of_lines(text, &starts))
            .flatten();
        Lines {
            texts,
            starts,
            shown,
            keys,
        }
    }

    fn bytes(&self, lines: &Range<usize>) -> Range<usize> {
        self.starts[lines.start]..self.starts[lines.end]
    }

    fn key(&self, line: usize) -> Option<Arc<str>> {
        self.keys.as_ref()?.get(line)?.clone()
    }

    fn shown(&self, lines: &Range<usize>) -> Vec<String> {
        self.shown.get(lines.clone()).unwrap_or_default().to_vec()
    }
}

/// Masks secrets in a string without changing the number of bytes or lines.
fn masked(text: &str) -> String {
    let mut bytes = secret::masked(text).into_owned().into_bytes();
    let keys = secret::places_to_hide(text).into_iter();
    keys.for_each(|place| {
        bytes[place]
            .iter_mut()
            .filter(|byte| **byte != b'\n')
            .for_each(|byte| *byte = b'*');
    });
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Corresponding lines on both sides, which are equal or belong to the same key.
#[derive(Debug)]
struct Run {
    old: Range<usize>,
    new: Range<usize>,
    is_same: bool,
    key: Option<Arc<str>>,
}

/// Returns the runs of a diff operation. Differing TOML lines are split by key, in an order
/// compatible with both sides.
fn runs(operation: DiffOp, old: &Lines<'_>, new: &Lines<'_>, is_toml: bool) -> Vec<Run> {
    let (tag, old_range, new_range) = operation.as_tag_tuple();
    if tag == similar::DiffTag::Equal {
        return vec![Run {
            old: old_range,
            new: new_range,
            is_same: true,
            key: None,
        }];
    }
    if !is_toml {
        return vec![Run {
            old: old_range,
            new: new_range,
            is_same: false,
            key: None,
        }];
    }
    let (before, after) = (by_key(old, old_range), by_key(new, new_range.clone()));
    let mut runs = Vec::new();
    let (mut left, mut at) = (before.as_slice(), new_range.start);
    for (key, lines) in after {
        let here = left.iter().position(|(other, _)| *other == key);
        if let Some(here) = here {
            runs.extend(
                left[..here]
                    .iter()
                    .map(|(key, lines)| gone(key.as_ref(), lines, at)),
            );
            runs.push(Run {
                old: left[here].1.clone(),
                new: lines.clone(),
                is_same: false,
                key,
            });
            left = &left[here + 1..];
        } else {
            let place = left.first().map_or_else(
                || before.last().map_or(0, |(_, it)| it.end),
                |(_, it)| it.start,
            );
            runs.push(Run {
                old: place..place,
                new: lines.clone(),
                is_same: false,
                key,
            });
        }
        at = lines.end;
    }
    runs.extend(
        left.iter()
            .map(|(key, lines)| gone(key.as_ref(), lines, at)),
    );
    runs
}

/// Splits runs of a template into single lines if the lines were edited rather than rewritten,
/// because such edits are often independent. If this would result in too many runs, the runs are
/// left unchanged.
fn by_line(runs: Vec<Run>, old: &Lines<'_>, new: &Lines<'_>) -> Vec<Run> {
    let parts = runs.iter().map(|run| {
        if is_edited(run, old, new) {
            run.old.len()
        } else {
            usize::from(!run.is_same)
        }
    });
    if parts.sum::<usize>() > MOST_HUNKS {
        return runs;
    }
    runs.into_iter()
        .flat_map(|run: Run| -> Vec<Run> {
            if !is_edited(&run, old, new) {
                return vec![run];
            }
            let pairs = run.old.clone().zip(run.new.clone());
            pairs
                .map(|(old, new)| Run {
                    old: old..old + 1,
                    new: new..new + 1,
                    is_same: false,
                    key: None,
                })
                .collect()
        })
        .collect()
}

fn is_edited(run: &Run, old: &Lines<'_>, new: &Lines<'_>) -> bool {
    let mut pairs = run.old.clone().zip(run.new.clone());
    !run.is_same
        && run.old.len() == run.new.len()
        && pairs.all(|(old_line, new_line)| {
            word_similarity(old.texts[old_line], new.texts[new_line]) >= ALIKE
        })
}

fn gone(key: Option<&Arc<str>>, lines: &Range<usize>, at: usize) -> Run {
    Run {
        old: lines.clone(),
        new: at..at,
        is_same: false,
        key: key.cloned(),
    }
}

/// Groups consecutive lines that belong to the same key.
fn by_key(lines: &Lines<'_>, range: Range<usize>) -> Vec<(Option<Arc<str>>, Range<usize>)> {
    let mut found: Vec<(Option<Arc<str>>, Range<usize>)> = Vec::new();
    for line in range {
        let key = lines.key(line);
        match found.last_mut().filter(|(last, _)| *last == key) {
            Some((_, range)) => range.end = line + 1,
            None => found.push((key, line..line + 1)),
        }
    }
    found
}

/// Returns, for each differing run, the index of the first run of the same edit. Each run is a
/// separate edit, unless there are too many runs or `one` is set. In that case, runs of the same
/// key form one edit, and so do all runs without a key. Keys in a table whose header was added or
/// removed belong to the header's edit, since without it they would be in a different table.
fn owners(runs: &[Run], one: bool) -> Vec<Option<usize>> {
    let differing = runs.iter().filter(|run| !run.is_same);
    let is_one = one || differing.clone().count() > MOST_HUNKS;
    let headers: Vec<&Arc<str>> = differing
        .filter_map(|run| keys::header(run.key.as_ref()?))
        .collect();
    let mut first: HashMap<Option<Arc<str>>, usize> = HashMap::new();
    runs.iter()
        .enumerate()
        .map(|(at, run)| {
            (!run.is_same).then(|| {
                if is_one {
                    *first.entry(group(run, &headers)).or_insert(at)
                } else {
                    at
                }
            })
        })
        .collect()
}

fn group(run: &Run, headers: &[&Arc<str>]) -> Option<Arc<str>> {
    let key = run.key.as_ref()?;
    Some(Arc::clone(
        headers
            .iter()
            .find(|header| keys::is_in(key, header))
            .unwrap_or(&key),
    ))
}

fn hunk(run: &Run, old: &Lines<'_>, new: &Lines<'_>) -> Hunk {
    Hunk {
        old_line: run.old.start + 1,
        new_line: run.new.start + 1,
        removed: old.shown(&run.old),
        added: new.shown(&run.new),
    }
}

/// Returns a side's handwritten files: those in the folders of a repository, and TOML files at the
/// root.
pub(super) fn files_of(world: &dyn World) -> MemoryWorld {
    let below = folders::ALL
        .into_iter()
        .flat_map(|folder| world.walk(folder).entries);
    let at_root = world
        .list("")
        .unwrap_or_default()
        .into_iter()
        .filter(|entry| entry.path.ends_with(".toml"));
    let files = below
        .chain(at_root)
        .filter(|entry| entry.kind == EntryKind::File);
    files
        .filter_map(|entry| {
            world
                .read(&entry.path)
                .ok()
                .map(|bytes| (entry.path, bytes))
        })
        .collect()
}
