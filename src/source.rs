//! Source files, locations in them, and maps from derived text back to the file.
//!
//! Input: bytes read by [`world`](crate::world). Output: [`Sources`], the table of files that every
//! later stage refers to, and [`OffsetMap`], which maps a position in text *derived* from a file
//! (normalised line endings, a decoded TOML string) back to the file. This module does not access
//! the disk or interpret any file.

mod offsets;
mod text;

pub use offsets::OffsetMap;
pub use text::{MAX_SOURCE_BYTES, SourceText, TextError};

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// A file of a [`Sources`] table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(u32);

/// A range of bytes in a file's normalised text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// The file that contains the range.
    pub file: FileId,
    /// First byte.
    pub start: u32,
    /// One past the last byte; never before `start`.
    pub end: u32,
}

impl Span {
    /// Returns the span of the bytes `range` in `file`. Offsets beyond 4 GiB saturate; such files
    /// are rejected when they are read.
    pub fn new(file: FileId, range: Range<usize>) -> Span {
        let start = u32::try_from(range.start).unwrap_or(u32::MAX);
        let end = u32::try_from(range.end).unwrap_or(u32::MAX);
        Span {
            file,
            start,
            end: end.max(start),
        }
    }

    /// Returns an empty span at the start of `file`, for findings about the file as a whole.
    pub fn file_start(file: FileId) -> Span {
        Span {
            file,
            start: 0,
            end: 0,
        }
    }

    /// Returns `true` if `other` starts inside this span.
    pub fn contains(self, other: Span) -> bool {
        other.file == self.file && (self.start..=self.end).contains(&other.start)
    }

    /// Returns the range as `usize` bounds, for slicing.
    pub fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A value and its location. Equality ignores the location.
#[derive(Debug, Clone, Copy)]
pub struct Spanned<T> {
    /// The value, without its location.
    pub value: T,
    /// The location of the value in a source file.
    pub span: Span,
}

impl<T: PartialEq> PartialEq for Spanned<T> {
    fn eq(&self, other: &Spanned<T>) -> bool {
        self.value == other.value
    }
}

/// A one-based line and column; the column counts characters (Unicode scalar values).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// One-based line.
    pub line: usize,
    /// One-based column, in characters.
    pub column: usize,
}

/// One source file: its path relative to the layer's root and its normalised text.
#[derive(Debug, Clone)]
pub struct SourceFile {
    path: Arc<str>,
    text: Arc<SourceText>,
    line_starts: OnceLock<Box<[u32]>>,
    /// The number of characters before each block of bytes.
    characters: OnceLock<Box<[u32]>>,
    /// The spans that must not be shown, sorted by start.
    masked: Vec<Span>,
    /// The location in the file where the text begins; not the start for a part of a file.
    start: Position,
}

/// The minimum length, in bytes, of a piece that reveals something about its key.
const SHORTEST_PIECE: usize = 8;

/// The size, in bytes, of the blocks in which characters are counted.
const BLOCK: usize = 4096;

/// The path prefix of files that come with the program.
pub(crate) const BUNDLED: &str = "bundled:";

/// Returns `true` if a path, as users see it, belongs to a file that comes with the program.
pub(crate) fn is_bundled(path: &str) -> bool {
    path.starts_with(BUNDLED)
}

impl SourceFile {
    /// Returns the path as users see it: relative to the root, separated by `/`.
    pub fn path(&self) -> &Arc<str> {
        &self.path
    }

    /// Returns `true` if the file comes with the program, and not from the repository itself.
    pub(crate) fn is_bundled(&self) -> bool {
        is_bundled(&self.path)
    }

    /// Returns the normalised text: no byte-order mark, `\n` line endings.
    pub fn text(&self) -> &str {
        self.text.as_str()
    }

    /// Returns the pieces into which parsers may split a masked string: long runs that contain both
    /// letters and digits.
    pub(crate) fn masked_pieces(&self) -> impl Iterator<Item = &str> {
        let texts = self
            .masked
            .iter()
            .filter_map(|span| self.text().get(span.range()));
        let pieces = texts.flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric()));
        pieces.filter(|piece| {
            piece.len() >= SHORTEST_PIECE
                && piece.bytes().any(|byte| byte.is_ascii_digit())
                && piece.bytes().any(|byte| byte.is_ascii_alphabetic())
        })
    }

    /// Returns a part of the text with secrets replaced by dots, with the same length in bytes.
    pub fn shown(&self, range: Range<usize>) -> std::borrow::Cow<'_, str> {
        let text = &self.text()[range.clone()];
        let start = u32::try_from(range.start).unwrap_or(u32::MAX);
        let mut masked = self
            .masked
            .iter()
            .filter(|span| (span.start as usize) < range.end && span.end > start)
            .peekable();
        if masked.peek().is_none() {
            return std::borrow::Cow::Borrowed(text);
        }
        let mut hidden_to = 0;
        let shown = text.char_indices().map(|(at, c)| {
            let at = range.start + at;
            while let Some(span) = masked.next_if(|span| span.start as usize <= at) {
                hidden_to = hidden_to.max(span.end as usize);
            }
            match at < hidden_to && c != '"' && c != '\'' {
                true => "*".repeat(c.len_utf8()),
                false => c.to_string(),
            }
        });
        std::borrow::Cow::Owned(shown.collect())
    }

    /// Returns the text together with its map back to the bytes on disk.
    pub fn source_text(&self) -> &Arc<SourceText> {
        &self.text
    }

    /// Returns the line and column of a byte offset; an offset past the end yields the position of
    /// the end.
    pub fn position(&self, offset: usize) -> Position {
        let text = self.text();
        let offset = text.floor_char_boundary(offset.min(text.len()));
        let starts = self.line_starts();
        let line = starts.partition_point(|&start| start as usize <= offset);
        let line_start = starts[line - 1] as usize;
        let column = self.characters_before(offset) - self.characters_before(line_start) + 1;
        match line {
            1 => Position {
                line: self.start.line,
                column: column + self.start.column - 1,
            },
            line => Position {
                line: line + self.start.line - 1,
                column,
            },
        }
    }

    /// Returns the location in the file where the text begins: line 1, column 1 for a whole file.
    pub fn start(&self) -> Position {
        self.start
    }

    /// Returns the number of characters before a byte offset. Counting starts at a block boundary,
    /// so that many findings in one long line stay fast.
    fn characters_before(&self, offset: usize) -> usize {
        let bytes = self.text().as_bytes();
        let blocks = self.characters.get_or_init(|| {
            let mut sum = 0;
            bytes
                .chunks(BLOCK)
                .map(|block| {
                    let before = sum;
                    sum += characters(block) as u32;
                    before
                })
                .collect()
        });
        let block = offset / BLOCK;
        match blocks.get(block) {
            Some(before) => *before as usize + characters(&bytes[block * BLOCK..offset]),
            // The offset is the end of a string whose last block is full.
            None => {
                let last = bytes.len().saturating_sub(1) / BLOCK * BLOCK;
                blocks.last().map_or(0, |before| *before as usize) + characters(&bytes[last..])
            }
        }
    }

    /// Returns the range of the line around an offset, without its line ending; `None` if it has
    /// more than `most` bytes. The search stops at that length, so that many findings in one long
    /// line stay fast.
    pub(crate) fn line_around(&self, offset: usize, most: usize) -> Option<Range<usize>> {
        let text = self.text().as_bytes();
        let offset = offset.min(text.len());
        let (from, to) = (
            offset.saturating_sub(most + 1),
            text.len().min(offset + most + 1),
        );
        let start = match text[from..offset].iter().rposition(|byte| *byte == b'\n') {
            Some(newline) => from + newline + 1,
            None => Some(0).filter(|_| from == 0)?,
        };
        let end = match text[offset..to].iter().position(|byte| *byte == b'\n') {
            Some(newline) => offset + newline,
            None => Some(text.len()).filter(|_| to == text.len())?,
        };
        (end - start <= most).then_some(start..end)
    }

    /// Returns the text of a one-based line, without its line ending.
    pub fn line(&self, line: usize) -> &str {
        line.checked_sub(self.start.line)
            .and_then(|line| self.text().lines().nth(line))
            .unwrap_or("")
    }

    fn line_starts(&self) -> &[u32] {
        self.line_starts.get_or_init(|| {
            let newlines = self
                .text()
                .bytes()
                .enumerate()
                .filter(|&(_, byte)| byte == b'\n');
            std::iter::once(0)
                .chain(newlines.map(|(at, _)| at as u32 + 1))
                .collect()
        })
    }
}

/// Returns the number of characters that start in a range of bytes.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

/// The table of all files in a run. Files are never removed, so a [`FileId`] stays valid. It is
/// also valid in a copy of the table, which shares the files.
#[derive(Debug, Default)]
pub struct Sources {
    files: Box<boxcar::Vec<Arc<SourceFile>>>,
    /// Files that were added on demand.
    asked: Mutex<HashMap<Arc<str>, FileId>>,
}

impl Clone for Sources {
    fn clone(&self) -> Sources {
        // The index is copied before the files, so a file added in between is missing only from the
        // copied index.
        let asked = self
            .asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        Sources {
            files: self.files.clone(),
            asked: Mutex::new(asked),
        }
    }
}

impl Sources {
    /// Adds a file and returns its ID.
    pub fn add(&self, path: impl Into<Arc<str>>, text: SourceText) -> FileId {
        self.add_part(path, text, Position { line: 1, column: 1 })
    }

    /// Adds the part of a file that begins at `start`, and returns its ID. For a file too large to
    /// keep in memory, only the parts that locations refer to are added.
    pub fn add_part(&self, path: impl Into<Arc<str>>, text: SourceText, start: Position) -> FileId {
        let index = self.files.push(Arc::new(SourceFile {
            path: path.into(),
            text: Arc::new(text),
            line_starts: OnceLock::new(),
            characters: OnceLock::new(),
            masked: Vec::new(),
            start,
        }));
        FileId(u32::try_from(index).expect("fewer than 2^32 files"))
    }

    /// Returns the file with the given path, adding it on first use. This is for files that are
    /// read while bodies are built.
    pub(crate) fn find_or_add(&self, path: &str, text: impl FnOnce() -> SourceText) -> FileId {
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&known) = asked.get(path) {
            return known;
        }
        let path: Arc<str> = Arc::from(path);
        let file = self.add(Arc::clone(&path), text());
        asked.insert(path, file);
        file
    }

    /// Hides a part of a file wherever its text is shown.
    pub fn mask(&mut self, span: Span) {
        let file = self
            .files
            .get_mut(span.file.0 as usize)
            .expect("every id belongs to a file");
        let masked = &mut Arc::make_mut(file).masked;
        let place = masked.partition_point(|known| known.start <= span.start);
        masked.insert(place, span);
    }

    /// Returns the file with the given ID.
    pub fn get(&self, id: FileId) -> &SourceFile {
        &self.files[id.0 as usize]
    }

    /// Returns the text that a span covers.
    pub fn slice(&self, span: Span) -> &str {
        self.get(span.file).text().get(span.range()).unwrap_or("")
    }

    /// Returns the start of a span as `path:line`, the form used in messages.
    pub fn describe(&self, span: Span) -> String {
        let file = self.get(span.file);
        format!(
            "{}:{}",
            file.path(),
            file.position(span.start as usize).line
        )
    }

    /// Returns all files with their IDs.
    pub fn iter(&self) -> impl Iterator<Item = (FileId, &SourceFile)> {
        (0..)
            .map(FileId)
            .zip(self.files.iter().map(|(_, file)| file.as_ref()))
    }

    /// Returns the number of files.
    pub fn len(&self) -> usize {
        self.files.count()
    }

    /// Returns `true` if no file was added.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }
}

/// Returns a range within a text, widened to whole characters.
pub(crate) fn clamp(range: &Range<usize>, text: &str) -> Range<usize> {
    let start = text.floor_char_boundary(range.start.min(text.len()));
    start..text.ceil_char_boundary(range.end.clamp(start, text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bundled_files_are_known_by_their_paths() {
        let sources = Sources::default();
        for (path, is_bundled) in [
            ("bundled:agents/a.toml", true),
            ("agents/bundled:a.toml", false),
            ("bundled/a.toml", false),
        ] {
            let id = sources.add(path, SourceText::salvage(b""));
            assert_eq!(sources.get(id).is_bundled(), is_bundled, "{path}");
        }
    }

    #[test]
    fn positions_count_characters_and_clamp() {
        let sources = Sources::default();
        let id = sources.add(
            "a",
            SourceText::from_bytes("é\nxyz".as_bytes()).expect("valid"),
        );
        let file = sources.get(id);
        assert_eq!(file.position(0), Position { line: 1, column: 1 });
        assert_eq!(file.position(2), Position { line: 1, column: 2 });
        assert_eq!(file.position(4), Position { line: 2, column: 2 });
        assert_eq!(file.position(999), Position { line: 2, column: 4 });
    }

    #[test]
    fn lines_are_found_unless_they_are_long() {
        let sources = Sources::default();
        let id = sources.add("a", SourceText::from_bytes(b"ab\ncde\n").expect("valid"));
        let line = |offset, most| sources.get(id).line_around(offset, most);
        assert_eq!(
            (line(0, 2), line(2, 2), line(3, 3), line(6, 3)),
            (Some(0..2), Some(0..2), Some(3..6), Some(3..6))
        );
        assert_eq!(
            (line(4, 2), line(7, 3), line(99, 3)),
            (None, Some(7..7), Some(7..7))
        );
    }

    #[test]
    fn parts_know_where_they_begin() {
        let sources = Sources::default();
        let text = SourceText::from_bytes(b"bc\nd").expect("valid");
        let id = sources.add_part("a", text, Position { line: 7, column: 3 });
        assert_eq!(sources.get(id).position(1), Position { line: 7, column: 4 });
        assert_eq!(sources.get(id).position(3), Position { line: 8, column: 1 });
        assert_eq!(
            (sources.get(id).line(7), sources.get(id).line(8)),
            ("bc", "d")
        );
    }

    #[test]
    fn columns_of_long_lines_are_those_that_counting_gives() {
        let text = format!("a\n{}\n{}", "é€x".repeat(BLOCK), "y".repeat(BLOCK * 2 - 5));
        let sources = Sources::default();
        let id = sources.add("a", SourceText::from_bytes(text.as_bytes()).expect("valid"));
        let file = sources.get(id);
        for (offset, _) in text.char_indices().step_by(997).chain([(text.len(), ' ')]) {
            let start = text[..offset].rfind('\n').map_or(0, |newline| newline + 1);
            assert_eq!(
                file.position(offset).column,
                text[start..offset].chars().count() + 1,
                "{offset}"
            );
        }
    }

    #[test]
    fn masked_parts_may_overlap() {
        let mut sources = Sources::default();
        let id = sources.add("a", SourceText::from_bytes(b"ab\"cd\"efgh").expect("valid"));
        for range in [7..9, 2..6, 3..4] {
            sources.mask(Span::new(id, range));
        }
        assert_eq!(sources.get(id).shown(0..10), "ab\"**\"e**h");
        assert_eq!(sources.get(id).shown(0..2), "ab");
    }
}
