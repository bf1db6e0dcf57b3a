//! Texts with the writer of each byte.
//!
//! A [`Told`] is a text with its runs: stretches of bytes with one writer. Filters that keep
//! content pass the runs on, cut and joined like the text; any other result is
//! [`Writer::Computed`].

use std::borrow::Cow;
use std::ops::{Deref, Range};
use std::sync::Arc;

use super::data_path::DataPath;
use super::place::Place;

/// The maximum number of runs in a text: enough for a long history, and too few for a loop that
/// keeps doubling a text.
const MAX_RUNS: usize = 1 << 18;
/// The maximum number of inputs that a computed text names.
pub(super) const MAX_INPUTS: usize = 16;

/// The member of the data that is the system prompt.
const PROMPT: &str = "system_prompt";

/// The number of a frame.
pub(super) type FrameId = u32;

/// A file that a prompt read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReadFile {
    /// The place that contains the file.
    pub place: ReadPlace,
    /// Its path in that place.
    pub path: Arc<str>,
}

/// The place of a prompt's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReadPlace {
    /// The project of the conversation.
    Project,
    /// A layer, by its number among those that the prompt may read.
    Layer(usize),
}

/// The writer of bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Writer {
    /// Text of a template, or a literal of an expression; it has the same length as the bytes,
    /// unless escapes were decoded.
    Template(Place),
    /// A leaf of the data, starting at a byte of its text.
    Data { path: DataPath, at: u32 },
    /// A file that a prompt read, starting at a byte.
    File { file: Arc<ReadFile>, at: u32 },
    /// The tag that wrote them: quotes and JSON commas.
    Tag,
    /// A computation from these inputs.
    Computed(Arc<Vec<Input>>),
}

/// An input of a computed text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Input {
    Data(DataPath),
    File(Arc<ReadFile>),
    Template(Place),
}

impl Input {
    fn is_prompt(&self) -> bool {
        matches!(self, Input::Data(path) if path.is(PROMPT))
    }
}

/// A run of bytes with one writer. Bodies hold many, so it is small.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Run {
    /// The number of bytes: a text is shorter than 2^32.
    len: u32,
    /// The write that first wrote them.
    pub(super) emission: Emission,
    /// The frame of the render at that time.
    pub(super) frame: FrameId,
    /// The number of times that the bytes were escaped as JSON since.
    pub(super) escaped: u8,
    /// `true` if the emission and the frame are those of the system prompt's own recording.
    pub(super) is_of_prompt: bool,
    pub(super) writer: Writer,
}

/// The write that first wrote a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Emission {
    /// None yet: the text is still a value.
    None,
    /// Literal text, which writes itself.
    Literal,
    /// A tag, by the number of its write in the trace.
    Tag(u32),
}

/// A text and its writers, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Told {
    pub(super) text: String,
    pub(super) runs: Vec<Run>,
}

impl Told {
    /// Returns a text with one writer.
    pub(super) fn one(text: &str, writer: Writer) -> Told {
        Told {
            text: text.to_owned(),
            runs: vec![Run::new(text.len(), writer)],
        }
    }

    /// Appends a text with its runs.
    pub(super) fn push(&mut self, text: &str, runs: &[Run]) {
        // An empty text needs no runs, which would only accumulate.
        if text.is_empty() {
            return;
        }
        self.text.push_str(text);
        self.runs.extend_from_slice(runs);
        self.limit_runs();
    }

    /// Appends a text with its writers.
    pub(super) fn push_told(&mut self, other: &Told) {
        self.push(&other.text, &other.runs);
    }

    /// Appends a text with one writer.
    pub(super) fn push_one(&mut self, text: &str, writer: Writer) {
        self.push_run(text, Run::new(text.len(), writer));
    }

    /// Appends a text with its only run.
    pub(super) fn push_run(&mut self, text: &str, run: Run) {
        self.text.push_str(text);
        self.runs.push(run);
        self.limit_runs();
    }

    /// Appends a text as a JSON string, whose quotes the tag writes.
    pub(super) fn push_json(&mut self, text: &str, runs: &[Run]) {
        self.push_one("\"", Writer::Tag);
        for (part, run) in pieces(text, runs) {
            let part = escape(part);
            self.push_run(&part, run.escaped(part.len(), 1));
        }
        self.push_one("\"", Writer::Tag);
    }

    /// Appends the part of a value that a run is, with the value's own runs.
    fn insert_part(&mut self, value: &Told, text: &str, run: &Run) {
        let Writer::Data { at, .. } = run.writer else {
            return self.push_run(text, run.clone());
        };
        let at = at as usize;
        let range = at..at + run.source(text, 0, text.len()).len();
        match value.text.get(range.clone()) {
            Some(_) => self.insert(&part(&value.text, &value.runs, range), run),
            None => self.push_run(text, run.clone()),
        }
    }

    /// Appends a value in place of a run. Its runs keep the tags that wrote them before.
    fn insert(&mut self, value: &Told, run: &Run) {
        for (text, own) in pieces(&value.text, &value.runs) {
            let mut text = Cow::Borrowed(text);
            for _ in 0..run.escaped {
                text = Cow::Owned(escape(&text).into_owned());
            }
            let inserted = own.escaped(text.len(), run.escaped);
            let inserted = match own.emission {
                Emission::None => Run {
                    emission: run.emission,
                    frame: run.frame,
                    is_of_prompt: run.is_of_prompt,
                    ..inserted
                },
                Emission::Literal | Emission::Tag(_) => inserted,
            };
            self.push_run(&text, inserted);
        }
    }

    /// Notes the writer of an empty text.
    pub(super) fn push_nothing(&mut self, run: Run) {
        if self.runs.len() < MAX_RUNS {
            self.runs.push(run);
        }
    }

    fn limit_runs(&mut self) {
        if self.runs.len() > MAX_RUNS {
            self.forget();
        }
    }

    /// Replaces all runs by one that was computed from their first inputs.
    pub(super) fn forget(&mut self) {
        let from = inputs(&self.runs).take(MAX_INPUTS).collect();
        self.runs = vec![Run::new(self.text.len(), Writer::Computed(Arc::new(from)))];
    }
}

/// Returns the start offset of each run.
pub(super) fn starts(runs: &[Run]) -> Vec<usize> {
    let mut end = 0;
    let starts = runs.iter().map(|run| {
        end += run.len();
        end - run.len()
    });
    starts.collect()
}

/// Returns the range of the value that each run belongs to, together with its neighbours of the
/// same emission.
pub(super) fn values(runs: &[Run]) -> Vec<Range<usize>> {
    let values = runs.chunk_by(|one, next| emission(one) == emission(next));
    let mut end = 0;
    let values = values.flat_map(|runs| {
        let start = end;
        end += runs.iter().map(Run::len).sum::<usize>();
        std::iter::repeat_n(start..end, runs.len())
    });
    values.collect()
}

/// Returns the runs of a text, each with its part of the text. Runs end at character boundaries,
/// since each writer wrote text.
fn pieces<'t>(text: &'t str, runs: &'t [Run]) -> impl Iterator<Item = (&'t str, &'t Run)> {
    let mut end = 0;
    runs.iter().map(move |run| {
        end += run.len();
        (&text[end - run.len()..end], run)
    })
}

/// Returns a part of a text with its runs.
pub(super) fn part(text: &str, runs: &[Run], range: Range<usize>) -> Told {
    let (mut kept, mut start) = (Vec::new(), 0);
    for run in runs {
        let end = start + run.len();
        let (from, to) = (range.start.max(start), range.end.min(end));
        if from < to {
            kept.push(run.cut(&text[start..end], from - start, to - from));
        }
        start = end;
    }
    Told {
        text: text[range].to_owned(),
        runs: kept,
    }
}

/// Returns the writer of a system prompt that counts as a value of the data.
pub(super) fn whole_prompt() -> Writer {
    Writer::Data {
        path: DataPath::root().member(PROMPT),
        at: 0,
    }
}

/// Returns a text with a system prompt's own runs in place of those of the value that the template
/// `inserted`. If that value was a placeholder, the prompt also replaces it in the text.
pub(super) fn with_prompt(text: &str, runs: &[Run], inserted: &str, prompt: &Told) -> Told {
    let mut made = Told::default();
    for (text, run) in pieces(text, runs) {
        let is_prompt = run.data().is_some_and(|path| path.is(PROMPT));
        let is_whole = is_prompt && run.source(text, 0, text.len()) == (0..inserted.len());
        match (is_prompt, is_whole && run.starts_at(0)) {
            (true, true) => made.insert(prompt, run),
            (true, false) => made.insert_part(prompt, text, run),
            (false, _) => made.push_run(text, run.computed_from(prompt)),
        }
    }
    made
}

/// Returns a text with the runs of some values of the data replaced by others; each of them is the
/// value's text with its writers.
pub(super) fn replaced(told: &Told, by: impl Fn(&DataPath) -> Option<Told>) -> Told {
    let mut made = Told::default();
    for (text, run) in pieces(&told.text, &told.runs) {
        match run.data().and_then(&by) {
            Some(value) => made.insert_part(&value, text, run),
            None => made.push_run(text, run.clone()),
        }
    }
    made
}

/// The runs of a value that is written.
pub(super) enum Runs<'r> {
    One(Run),
    Many(&'r [Run]),
}

impl Deref for Runs<'_> {
    type Target = [Run];

    fn deref(&self) -> &[Run] {
        match self {
            Runs::One(run) => std::slice::from_ref(run),
            Runs::Many(runs) => runs,
        }
    }
}

/// Returns the inputs that a text was computed from.
pub(super) fn inputs(runs: &[Run]) -> impl Iterator<Item = Input> {
    runs.iter().flat_map(|run| match &run.writer {
        Writer::Data { path, .. } => vec![Input::Data(path.clone())],
        Writer::File { file, .. } => vec![Input::File(Arc::clone(file))],
        Writer::Template(place) => vec![Input::Template(*place)],
        Writer::Computed(from) => from.to_vec(),
        Writer::Tag => Vec::new(),
    })
}

fn emission(run: &Run) -> (Emission, bool) {
    (run.emission, run.is_of_prompt)
}

/// Takes successive parts out of a text in a single pass, however many there are.
pub(super) struct Cutter<'t> {
    text: &'t str,
    runs: &'t [Run],
    /// The next run.
    next: usize,
    /// Its offset in the text.
    start: usize,
    /// The length of its text that was passed, and that length before escaping.
    passed: (usize, usize),
}

impl<'t> Cutter<'t> {
    pub(super) fn new(text: &'t str, runs: &'t [Run]) -> Cutter<'t> {
        Cutter {
            text,
            runs,
            next: 0,
            start: 0,
            passed: (0, 0),
        }
    }

    /// Appends a part to another text.
    pub(super) fn cut(&mut self, range: Range<usize>, into: &mut Told) {
        let mut runs = Vec::new();
        while let Some(run) = self.runs.get(self.next).filter(|_| self.start < range.end) {
            let (text, end) = (
                &self.text[self.start..self.start + run.len()],
                self.start + run.len(),
            );
            let (from, to) = (range.start.max(self.start), range.end.min(end));
            if from < to {
                let source = |range: Range<usize>| {
                    text.get(range)
                        .map_or(0, |part| unescaped_len(part, run.escaped))
                };
                let (from, to) = (from - self.start, to - self.start);
                let first = self.passed.1 + source(self.passed.0..from);
                let last = first + source(from..to);
                self.passed = (to, last);
                runs.push(run.part(text, to - from, first..last));
            }
            if end > range.end {
                break;
            }
            (self.next, self.start, self.passed) = (self.next + 1, end, (0, 0));
        }
        into.push(&self.text[range], &runs);
    }
}

impl Run {
    /// Returns a run that no tag has written yet.
    pub(super) fn new(len: usize, writer: Writer) -> Run {
        Run {
            len: small(len),
            emission: Emission::None,
            frame: 0,
            escaped: 0,
            is_of_prompt: false,
            writer,
        }
    }

    /// Returns the run with the write that first wrote it.
    pub(super) fn written_in(self, emission: Emission, frame: FrameId) -> Run {
        Run {
            emission,
            frame,
            ..self
        }
    }

    /// Returns the run with the numbers of its frame and its write in a trace that has adopted its
    /// own, after a number of others.
    pub(super) fn moved(&self, frames: FrameId, emissions: u32) -> Run {
        let emission = match self.emission {
            Emission::Tag(number) => Emission::Tag(number.saturating_add(emissions)),
            other @ (Emission::None | Emission::Literal) => other,
        };
        let frame = self.frame.saturating_add(frames);
        self.clone().written_in(emission, frame)
    }

    /// Returns the number of bytes.
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns the run of its text after it was escaped, with the new length.
    fn escaped(&self, len: usize, times: u8) -> Run {
        Run {
            len: small(len),
            escaped: self.escaped + times,
            ..self.clone()
        }
    }

    /// Returns the path of the value of the data that it is.
    pub(super) fn data(&self) -> Option<&DataPath> {
        match &self.writer {
            Writer::Data { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Returns `true` if it is a value of the data, from a byte of its text.
    fn starts_at(&self, byte: u32) -> bool {
        matches!(self.writer, Writer::Data { at, .. } if at == byte)
    }

    /// Returns this run; if it was computed from the system prompt, with the prompt's own inputs.
    fn computed_from(&self, prompt: &Told) -> Run {
        let Writer::Computed(from) = &self.writer else {
            return self.clone();
        };
        let from = from.iter().flat_map(|input| match input.is_prompt() {
            true => inputs(&prompt.runs).take(MAX_INPUTS).collect(),
            false => vec![input.clone()],
        });
        Run {
            writer: Writer::Computed(Arc::new(from.take(MAX_INPUTS).collect())),
            ..self.clone()
        }
    }

    /// Returns a part of a run, whose text is `text`.
    fn cut(&self, text: &str, from: usize, len: usize) -> Run {
        self.part(text, len, self.source(text, from, len))
    }

    /// Returns `len` bytes of a run, whose unescaped form is at `source`.
    fn part(&self, text: &str, len: usize, source: Range<usize>) -> Run {
        let is_exact = |whole: usize| match self.escaped {
            0 => whole == text.len(),
            times => whole == unescaped_len(text, times),
        };
        let writer = match &self.writer {
            Writer::Template(place) if is_exact(place.len()) => {
                Writer::Template(place.part(&source))
            }
            Writer::Data { path, at } => Writer::Data {
                path: path.clone(),
                at: at + small(source.start),
            },
            Writer::File { file, at } => Writer::File {
                file: Arc::clone(file),
                at: at + small(source.start),
            },
            other => other.clone(),
        };
        Run {
            len: small(len),
            writer,
            ..self.clone()
        }
    }

    /// Returns the range of a part of a run before it was escaped.
    pub(super) fn source(&self, text: &str, from: usize, len: usize) -> Range<usize> {
        let start = unescaped_len(text.get(..from).unwrap_or(text), self.escaped);
        let end = unescaped_len(text.get(..from + len).unwrap_or(text), self.escaped);
        start..end
    }
}

/// Returns an offset in a text, or a length of one, in the form that runs store.
fn small(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// Returns the length of a text before it was escaped as JSON `times` times.
pub(super) fn unescaped_len(text: &str, times: u8) -> usize {
    match times {
        0 => text.len(),
        1 => unescape(text).map(char::len_utf8).sum(),
        times => unescaped_len(&unescape(text).collect::<String>(), times - 1),
    }
}

/// Returns the characters that a part of a JSON string represents; an incomplete escape at its end
/// is left out.
fn unescape(text: &str) -> impl Iterator<Item = char> + '_ {
    let mut chars = text.chars();
    std::iter::from_fn(move || match chars.next()? {
        '\\' => match chars.next()? {
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            // Only control characters are escaped like this.
            'u' => {
                let digits: String = chars.by_ref().take(4).collect();
                char::from_u32(u32::from_str_radix(&digits, 16).ok()?)
            }
            same => Some(same),
        },
        c => Some(c),
    })
}

/// Returns a text in the form that it has in a JSON string.
fn escape(text: &str) -> Cow<'_, str> {
    if text
        .bytes()
        .all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\')
    {
        return Cow::Borrowed(text);
    }
    let mut json = serde_json::to_string(text).expect("a string serialises into memory");
    json.pop();
    json.remove(0);
    Cow::Owned(json)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(text: &str, at: u32) -> Told {
        Told::one(
            text,
            Writer::Data {
                path: DataPath::root().member("a"),
                at,
            },
        )
    }

    fn escaped(told: &Told) -> Told {
        let mut json = Told::default();
        json.push_json(&told.text, &told.runs);
        json
    }

    #[test]
    fn runs_are_small() {
        assert!(size_of::<Run>() <= 40, "{}", size_of::<Run>());
    }

    #[test]
    fn parts_keep_their_places() {
        let mut told = data("abc", 0);
        told.push_one("-", Writer::Tag);
        told.push_told(&data("de", 7));
        let part = part(&told.text, &told.runs, 1..5);
        assert_eq!(part.text, "bc-d");
        let places: Vec<_> = part
            .runs
            .iter()
            .map(|run| (run.len(), run.writer.clone()))
            .collect();
        assert_eq!(
            places,
            [
                (2, data("", 1).runs[0].writer.clone()),
                (1, Writer::Tag),
                (1, data("", 7).runs[0].writer.clone())
            ]
        );
    }

    #[test]
    fn escapes_make_runs_longer() {
        let mut told = data("a\n", 0);
        told.push_told(&data("é\"", 2));
        let json = escaped(&told);
        assert_eq!(json.text, "\"a\\né\\\"\"");
        assert_eq!(
            json.runs.iter().map(Run::len).collect::<Vec<_>>(),
            [1, 3, 4, 1]
        );
        assert_eq!(json.runs[1].source("a\\n", 1, 2), 1..2);
        // The text has two pairs of quotes.
        let twice = escaped(&json);
        assert_eq!(unescaped_len(&twice.text, 2), told.text.len() + 4);
        assert_eq!(
            twice.text,
            serde_json::to_string(&json.text).expect("serialises")
        );
    }
}
