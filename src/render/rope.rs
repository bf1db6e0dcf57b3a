//! Strings with the writer of each byte.
//!
//! A [`Rope`] is a string with its runs, which are stretches of bytes with one writer. Filters that
//! keep content pass the runs on, cut and joined like the text. Any other result is
//! [`Writer::Computed`].

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use super::data_path::DataPath;
use super::place::Place;

/// The maximum number of runs in a string: enough for a long history, and too few for a loop that
/// keeps doubling a string.
const MAX_RUNS: usize = 1 << 18;
/// The maximum number of times that a run can be escaped before its writer becomes
/// [`Writer::Computed`].
const MAX_ESCAPES: u8 = 4;
/// The maximum number of inputs that are recorded for a computed string.
pub(super) const MAX_INPUTS: usize = 16;

/// The member of the data that contains the system prompt.
const PROMPT: &str = "system_prompt";

/// The number of a frame.
pub(super) type FrameId = u32;

/// A file that a prompt read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReadFile {
    /// The location that contains the file.
    pub place: ReadPlace,
    /// The file's path in that location.
    pub path: Arc<str>,
}

/// The location of a prompt's file.
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
    /// Text in a template, or a literal in an expression. Its length may differ from that of the
    /// bytes, for example if escapes were decoded.
    Template(Place),
    /// A leaf of the data, starting at a byte of its text.
    Data { path: DataPath, at: u32 },
    /// A file that a prompt read, starting at a byte.
    File { file: Arc<ReadFile>, at: u32 },
    /// The tag that wrote the bytes, such as quotes and JSON commas.
    Tag,
    /// A computation from these inputs.
    Computed(Arc<Vec<Input>>),
}

impl Writer {
    /// Returns the writer of a string that was computed from other strings. The writer contains
    /// their first inputs.
    pub(super) fn computed_from(runs: &[Run]) -> Writer {
        Writer::Computed(Arc::new(inputs(runs).take(MAX_INPUTS).collect()))
    }
}

/// An input of a computed string.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Input {
    Data(DataPath),
    File(Arc<ReadFile>),
    Template(Place),
}

impl Input {
    /// Returns the inputs of a known data value.
    fn known(&self, values: &impl Values) -> Option<Vec<Input>> {
        match self {
            Input::Data(path) => values.inputs(path),
            Input::File(_) | Input::Template(_) => None,
        }
    }
}

/// A run of bytes with one writer. Bodies contain many runs, so the type is small.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Run {
    /// The number of bytes. A string is shorter than 2^32 bytes.
    len: u32,
    /// The write that first wrote the bytes.
    pub(super) first_write: FirstWrite,
    /// The frame of the render at the time of that write.
    pub(super) frame: FrameId,
    /// The number of times that the bytes have been escaped as JSON since then.
    pub(super) escaped: u8,
    /// `true` if the first write and the frame belong to the system prompt's own recording.
    pub(super) is_of_prompt: bool,
    pub(super) writer: Writer,
}

/// The first write of a run: the number of a tag's write in the trace, or one of the constants.
/// Takes no more memory than a plain number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FirstWrite(u32);

impl FirstWrite {
    /// No write yet, because the text is still a value.
    pub(super) const NONE: FirstWrite = FirstWrite(u32::MAX);
    /// Literal text, which no tag wrote.
    pub(super) const LITERAL: FirstWrite = FirstWrite(u32::MAX - 1);

    /// Returns a write by a tag.
    pub(super) fn tag(number: u32) -> FirstWrite {
        FirstWrite(number.min(FirstWrite::LITERAL.0 - 1))
    }

    /// Returns the number of a write by a tag.
    pub(super) fn number(self) -> Option<u32> {
        (self.0 < FirstWrite::LITERAL.0).then_some(self.0)
    }
}

/// A string and its writers, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Rope {
    pub(super) text: String,
    pub(super) runs: Vec<Run>,
}

/// A borrowed string and its writers, in order.
#[derive(Debug, Clone, Copy)]
pub(super) struct RopeSlice<'t> {
    pub(super) text: &'t str,
    pub(super) runs: &'t [Run],
}

impl Rope {
    /// Returns a string with one writer.
    pub(super) fn one(text: &str, writer: Writer) -> Rope {
        Rope {
            text: text.to_owned(),
            runs: vec![Run::new(text.len(), writer)],
        }
    }

    /// Returns the whole text with its writers.
    pub(super) fn slice(&self) -> RopeSlice<'_> {
        RopeSlice {
            text: &self.text,
            runs: &self.runs,
        }
    }

    /// Appends a string with its writers.
    pub(super) fn push(&mut self, other: RopeSlice<'_>) {
        // An empty string needs no runs, which would only accumulate.
        if other.text.is_empty() {
            return;
        }
        // If several empty runs follow one another, the last one is kept.
        if other.runs.first().is_some_and(Run::is_empty) {
            self.runs.pop_if(|last| last.is_empty());
        }
        self.text.push_str(other.text);
        self.runs.extend_from_slice(other.runs);
        self.limit_runs();
    }

    /// Appends a string with one writer.
    pub(super) fn push_one(&mut self, text: &str, writer: Writer) {
        self.push_run(text, Run::new(text.len(), writer));
    }

    /// Appends a string with its only run.
    pub(super) fn push_run(&mut self, text: &str, run: Run) {
        self.text.push_str(text);
        self.runs.push(run);
        self.limit_runs();
    }

    /// Appends a string as a JSON string. The quotes are attributed to the tag.
    pub(super) fn push_json(&mut self, other: RopeSlice<'_>) {
        self.push_one("\"", Writer::Tag);
        for (part, run) in other.pieces() {
            let part = escape(part);
            self.push_run(&part, run.escaped(part.len(), 1));
        }
        self.push_one("\"", Writer::Tag);
    }

    /// Appends a value in place of a run. The value's runs keep the tags that already wrote them.
    fn push_value(&mut self, value: RopeSlice<'_>, run: &Run) {
        for (text, own) in value.pieces() {
            let mut text = Cow::Borrowed(text);
            for _ in 0..run.escaped {
                text = Cow::Owned(escape(&text).into_owned());
            }
            let inserted = own.escaped(text.len(), run.escaped);
            let inserted = match own.first_write == FirstWrite::NONE {
                true => Run {
                    first_write: run.first_write,
                    frame: run.frame,
                    is_of_prompt: run.is_of_prompt,
                    ..inserted
                },
                false => inserted,
            };
            self.push_run(&text, inserted);
        }
    }

    /// Appends the text of a run that is a part of a value, with the runs of that `part`. If the
    /// text differs from the part in more than case, it is recorded as computed from the value's
    /// `inputs`.
    fn push_replaced(&mut self, text: &str, run: &Run, part: &Rope, inputs: Vec<Input>) {
        let mut replaced = Rope::default();
        replaced.push_value(part.slice(), run);
        if replaced.text.eq_ignore_ascii_case(text) {
            let runs = &replaced.runs;
            return self.push(RopeSlice { text, runs });
        }
        let writer = Writer::Computed(Arc::new(inputs));
        let run = run.clone();
        self.push_run(text, Run { writer, ..run });
    }

    /// Records the writer of an empty string. If several follow one another, the last one is kept.
    pub(super) fn push_nothing(&mut self, run: Run) {
        self.runs.pop_if(|last| last.is_empty());
        self.runs.push(run);
        self.limit_runs();
    }

    /// Returns the text backwards. Each run must be a single character, or computed.
    pub(super) fn reversed(mut self) -> Rope {
        self.runs.reverse();
        Rope {
            text: self.text.chars().rev().collect(),
            runs: self.runs,
        }
    }

    fn limit_runs(&mut self) {
        if self.runs.len() > MAX_RUNS {
            self.forget();
        }
    }

    /// Replaces all runs with one that was computed from their first inputs. The new run keeps the
    /// last run's tag.
    pub(super) fn forget(&mut self) {
        let whole = Run::new(self.text.len(), Writer::computed_from(&self.runs));
        let last = self.runs.pop().unwrap_or_else(|| whole.clone());
        self.runs = vec![Run {
            first_write: last.first_write,
            frame: last.frame,
            is_of_prompt: last.is_of_prompt,
            ..whole
        }];
    }
}

impl<'t> RopeSlice<'t> {
    /// Returns the runs, each with its part of the text. Runs end at character boundaries, since
    /// each writer wrote text.
    pub(super) fn pieces(self) -> impl Iterator<Item = (&'t str, &'t Run)> {
        let mut end = 0;
        self.runs.iter().map(move |run| {
            end += run.len();
            (&self.text[end - run.len()..end], run)
        })
    }

    /// Returns a part of the text with its runs.
    pub(super) fn part(self, range: Range<usize>) -> Rope {
        Cutter::new(self).part(range)
    }

    /// Returns the text with the writers of some data values in place of the runs that have these
    /// values as their writers.
    pub(super) fn replaced(self, values: &impl Values) -> Rope {
        let mut made = Rope::default();
        for (text, run) in self.pieces() {
            let known = match &run.writer {
                Writer::Data { path, .. } => run
                    .range(text)
                    .and_then(|range| values.part(path, range, text))
                    .zip(values.inputs(path)),
                _ => None,
            };
            match known {
                Some((part, inputs)) => made.push_replaced(text, run, &part, inputs),
                None => made.push_run(text, run.computed_from(values)),
            }
        }
        made
    }

    /// Returns the text with the writers of a system prompt in place of the runs that have the
    /// prompt as their writer. If the template inserted a placeholder, the prompt replaces it in
    /// the text.
    pub(super) fn with_prompt(self, placeholder: Option<&str>, prompt: RopeSlice<'_>) -> Rope {
        let values = Prompt(Indexed::new(prompt));
        let Some(placeholder) = placeholder else {
            return self.replaced(&values);
        };
        let mut made = Rope::default();
        for (text, run) in self.pieces() {
            let is_prompt = run.data().is_some_and(|path| path.is(PROMPT));
            match is_prompt && run.is_whole(text, placeholder) {
                true => made.push_value(prompt, run),
                false => made.push_run(text, run.computed_from(&values)),
            }
        }
        made
    }
}

/// Data values whose writers are known.
pub(super) trait Values {
    /// Returns the part at `range` of the value at a path; `text` is the part as the template wrote
    /// it. Returns `None` if the value is unknown.
    fn part(&self, path: &DataPath, range: Range<usize>, text: &str) -> Option<Rope>;

    /// Returns the inputs of strings that are computed from the value at a path; `None` if the
    /// value is unknown.
    fn inputs(&self, path: &DataPath) -> Option<Vec<Input>>;
}

/// The system prompt, whose writers are known.
struct Prompt<'t>(Indexed<'t>);

impl Values for Prompt<'_> {
    fn part(&self, path: &DataPath, range: Range<usize>, _: &str) -> Option<Rope> {
        path.is(PROMPT).then(|| self.0.part(range))
    }

    fn inputs(&self, path: &DataPath) -> Option<Vec<Input>> {
        path.is(PROMPT).then(|| self.0.inputs())
    }
}

/// A string whose runs are found by their offsets.
pub(super) struct Indexed<'t> {
    whole: RopeSlice<'t>,
    /// The start offset of each run.
    starts: Vec<usize>,
}

impl<'t> Indexed<'t> {
    pub(super) fn new(whole: RopeSlice<'t>) -> Indexed<'t> {
        let starts = starts(whole.runs);
        Indexed { whole, starts }
    }

    /// Returns the index of the run that contains an offset.
    fn run_at(&self, offset: usize) -> usize {
        let behind = self.starts.partition_point(|start| *start <= offset);
        behind.saturating_sub(1)
    }

    /// Returns the runs in a part of the text.
    pub(super) fn runs(&self, range: &Range<usize>) -> &'t [Run] {
        let end = self.starts.partition_point(|start| *start < range.end);
        let first = self.run_at(range.start).min(end);
        &self.whole.runs[first..end]
    }

    /// Returns a part of the text with its writers; an empty string if the text is too short.
    pub(super) fn part(&self, range: Range<usize>) -> Rope {
        if self.whole.text.get(range.clone()).is_none() {
            return Rope::default();
        }
        let next = self.run_at(range.start);
        let start = self.starts.get(next).copied().unwrap_or_default();
        let mut cutter = Cutter {
            next,
            start,
            ..Cutter::new(self.whole)
        };
        cutter.part(range)
    }

    /// Returns the inputs of strings that are computed from this one.
    pub(super) fn inputs(&self) -> Vec<Input> {
        inputs(self.whole.runs).take(MAX_INPUTS).collect()
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

/// Returns, for each run, the range of the value that it belongs to. Adjacent runs with the same
/// first write form one value.
pub(super) fn values(runs: &[Run]) -> Vec<Range<usize>> {
    let values = runs.chunk_by(|one, next| first_write(one) == first_write(next));
    let mut end = 0;
    let values = values.flat_map(|runs| {
        let start = end;
        end += runs.iter().map(Run::len).sum::<usize>();
        std::iter::repeat_n(start..end, runs.len())
    });
    values.collect()
}

/// Returns the writer of a system prompt that is treated as a data value.
pub(super) fn whole_prompt() -> Writer {
    Writer::Data {
        path: DataPath::root().member(PROMPT),
        at: 0,
    }
}

/// The text of a value, with its writers.
pub(super) struct ValueText<'t> {
    pub(super) text: &'t str,
    pub(super) runs: Runs<'t>,
}

/// The runs in a string.
pub(super) enum Runs<'t> {
    One(Run),
    Many(&'t [Run]),
}

impl ValueText<'_> {
    /// Returns the text with its writers.
    pub(super) fn slice(&self) -> RopeSlice<'_> {
        let runs = match &self.runs {
            Runs::One(run) => std::slice::from_ref(run),
            Runs::Many(runs) => runs,
        };
        let text = self.text;
        RopeSlice { text, runs }
    }
}

/// Returns the inputs that a string was computed from.
pub(super) fn inputs(runs: &[Run]) -> impl Iterator<Item = Input> {
    runs.iter().flat_map(|run| match &run.writer {
        Writer::Data { path, .. } => vec![Input::Data(path.clone())],
        Writer::File { file, .. } => vec![Input::File(Arc::clone(file))],
        Writer::Template(place) => vec![Input::Template(*place)],
        Writer::Computed(from) => from.to_vec(),
        Writer::Tag => Vec::new(),
    })
}

fn first_write(run: &Run) -> (FirstWrite, bool) {
    (run.first_write, run.is_of_prompt)
}

/// A cursor that takes successive parts out of a string in a single pass.
pub(super) struct Cutter<'t> {
    whole: RopeSlice<'t>,
    /// The next run.
    next: usize,
    /// The offset of the next run in the text.
    start: usize,
    /// The length of the run's text that the cursor has passed, and that length before escaping.
    passed: (usize, usize),
}

impl<'t> Cutter<'t> {
    pub(super) fn new(whole: RopeSlice<'t>) -> Cutter<'t> {
        Cutter {
            whole,
            next: 0,
            start: 0,
            passed: (0, 0),
        }
    }

    /// Returns the part of the string at `range`.
    pub(super) fn part(&mut self, range: Range<usize>) -> Rope {
        let mut part = Rope::default();
        self.cut(range, &mut part);
        part
    }

    /// Appends a part to another string.
    pub(super) fn cut(&mut self, range: Range<usize>, into: &mut Rope) {
        let RopeSlice { text, runs } = self.whole;
        let mut kept = Vec::new();
        while let Some(run) = runs.get(self.next).filter(|_| self.start < range.end) {
            let end = self.start + run.len();
            let text = &text[self.start..end];
            let (from, to) = (range.start.max(self.start), range.end.min(end));
            if from < to {
                let (from, to) = (from - self.start, to - self.start);
                let (passed, source) = self.passed;
                let first = source + unescaped_len(&text[passed..from], run.escaped);
                let last = first + unescaped_len(&text[from..to], run.escaped);
                self.passed = (to, last);
                kept.push(run.part(text, to - from, first..last));
            }
            if end > range.end {
                break;
            }
            (self.next, self.start, self.passed) = (self.next + 1, end, (0, 0));
        }
        into.push(RopeSlice {
            text: &text[range],
            runs: &kept,
        });
    }
}

impl Run {
    /// Returns a run that no tag has written yet.
    pub(super) fn new(len: usize, writer: Writer) -> Run {
        Run {
            len: small(len),
            first_write: FirstWrite::NONE,
            frame: 0,
            escaped: 0,
            is_of_prompt: false,
            writer,
        }
    }

    /// Returns the run with the write that first wrote it.
    pub(super) fn written_in(self, first_write: FirstWrite, frame: FrameId) -> Run {
        Run {
            first_write,
            frame,
            ..self
        }
    }

    /// Returns the run as it is numbered in the trace that has adopted the run's own trace:
    /// `frames` is added to the number of its frame, and `writes` to the number of its first write.
    pub(super) fn moved(&self, frames: FrameId, writes: u32) -> Run {
        let first_write = match self.first_write.number() {
            Some(number) => FirstWrite::tag(number.saturating_add(writes)),
            None => self.first_write,
        };
        let frame = self.frame.saturating_add(frames);
        self.clone().written_in(first_write, frame)
    }

    /// Returns the number of bytes.
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the run for its text after escaping, with the new length.
    fn escaped(&self, len: usize, times: u8) -> Run {
        let (escaped, writer) = match (&self.writer, self.escaped.saturating_add(times)) {
            (Writer::Tag, _) => (0, Writer::Tag),
            (writer, escaped @ ..=MAX_ESCAPES) => (escaped, writer.clone()),
            _ => (0, Writer::computed_from(std::slice::from_ref(self))),
        };
        Run {
            len: small(len),
            escaped,
            writer,
            ..self.clone()
        }
    }

    /// Returns the path of the data value that the run copied.
    pub(super) fn data(&self) -> Option<&DataPath> {
        match &self.writer {
            Writer::Data { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Returns the range of the data value that the run copied; `None` if it copied none. `text` is
    /// the run's text.
    pub(super) fn range(&self, text: &str) -> Option<Range<usize>> {
        let Writer::Data { at, .. } = self.writer else {
            return None;
        };
        let start = at as usize;
        Some(start..start + unescaped_len(text, self.escaped))
    }

    /// Returns `true` if the run, whose text is `text`, is a whole data value.
    fn is_whole(&self, text: &str, value: &str) -> bool {
        self.range(text) == Some(0..value.len())
    }

    /// Returns this run. If it was computed from known values, their own inputs replace them.
    fn computed_from(&self, values: &impl Values) -> Run {
        let Writer::Computed(from) = &self.writer else {
            return self.clone();
        };
        if from.iter().all(|input| input.known(values).is_none()) {
            return self.clone();
        }
        let all = from.iter().flat_map(|input| {
            let known = input.known(values);
            known.unwrap_or_else(|| vec![input.clone()])
        });
        Run {
            writer: Writer::Computed(Arc::new(all.take(MAX_INPUTS).collect())),
            ..self.clone()
        }
    }

    /// Returns a run for `len` bytes of this run. Before escaping, these bytes were at `source`.
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

    /// Returns the range of a part of this run before escaping.
    pub(super) fn source(&self, text: &str, from: usize, len: usize) -> Range<usize> {
        let start = unescaped_len(text.get(..from).unwrap_or(text), self.escaped);
        let end = unescaped_len(text.get(..from + len).unwrap_or(text), self.escaped);
        start..end
    }
}

/// Returns an offset in a string, or the length of a string, in the form that runs store.
fn small(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// Returns the length of a string before it was escaped as JSON `times` times.
pub(super) fn unescaped_len(text: &str, times: u8) -> usize {
    match times {
        0 => text.len(),
        1 => unescape(text).map(char::len_utf8).sum(),
        times => unescaped_len(&unescape(text).collect::<String>(), times - 1),
    }
}

/// Returns the characters that a part of a JSON string represents; an incomplete escape at its end
/// is omitted.
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

/// Returns a string in the form that it has in a JSON string.
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

    fn data(text: &str, at: u32) -> Rope {
        Rope::one(
            text,
            Writer::Data {
                path: DataPath::root().member("a"),
                at,
            },
        )
    }

    fn escaped(rope: &Rope) -> Rope {
        let mut json = Rope::default();
        json.push_json(rope.slice());
        json
    }

    #[test]
    fn runs_are_small() {
        assert!(size_of::<Run>() <= 32, "{}", size_of::<Run>());
    }

    #[test]
    fn parts_keep_their_places() {
        let mut rope = data("abc", 0);
        rope.push_one("-", Writer::Tag);
        rope.push(data("de", 7).slice());
        let part = rope.slice().part(1..5);
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
        let mut rope = data("a\n", 0);
        rope.push(data("é\"", 2).slice());
        let json = escaped(&rope);
        assert_eq!(json.text, "\"a\\né\\\"\"");
        assert_eq!(
            json.runs.iter().map(Run::len).collect::<Vec<_>>(),
            [1, 3, 4, 1]
        );
        assert_eq!(json.runs[1].source("a\\n", 1, 2), 1..2);
        // The text has two pairs of quotes.
        let twice = escaped(&json);
        assert_eq!(unescaped_len(&twice.text, 2), rope.text.len() + 4);
        assert_eq!(
            twice.text,
            serde_json::to_string(&json.text).expect("serialises")
        );
    }

    #[test]
    fn a_run_that_is_escaped_often_counts_as_computed() {
        let mut run = data("abc", 0).runs.remove(0);
        for _ in 0..300 {
            run = run.escaped(3, 1);
        }
        assert!(run.escaped <= MAX_ESCAPES);
        assert!(matches!(&run.writer, Writer::Computed(from) if from.len() == 1));
    }

    #[test]
    fn too_many_runs_become_one_that_the_last_tag_wrote() {
        let mut rope = Rope::default();
        let run = data("a", 0).runs.remove(0);
        for number in 0..=u32::try_from(MAX_RUNS).expect("small") {
            rope.push_run("a", run.clone().written_in(FirstWrite::tag(number), 3));
        }
        let [one] = &rope.runs[..] else {
            panic!("{} runs", rope.runs.len());
        };
        assert_eq!((one.len(), one.frame), (rope.text.len(), 3));
        let last = one.first_write.number().map(|number| number as usize);
        assert_eq!(last, Some(MAX_RUNS));
    }

    /// A value at the path `/other`.
    struct Other<'t>(Indexed<'t>);

    impl Values for Other<'_> {
        fn part(&self, path: &DataPath, range: Range<usize>, _: &str) -> Option<Rope> {
            path.is("other").then(|| self.0.part(range))
        }

        fn inputs(&self, path: &DataPath) -> Option<Vec<Input>> {
            path.is("other").then(|| self.0.inputs())
        }
    }

    #[test]
    fn a_value_in_place_of_another_never_changes_the_text() {
        let value = data("Abc", 4);
        let path = DataPath::root().member("other");
        for (text, is_same) in [("abc", true), ("Abc", true), ("bca", false), ("ab", true)] {
            let writer = Writer::Data {
                path: path.clone(),
                at: 0,
            };
            let written = Rope::one(text, writer);
            let values = Other(Indexed::new(value.slice()));
            let replaced = written.slice().replaced(&values);
            assert_eq!(replaced.text, text);
            let kept = replaced.runs[0].data() == value.runs[0].data();
            assert_eq!(kept, is_same, "{text}");
        }
    }

    #[test]
    fn parts_of_an_indexed_text_are_those_of_the_text() {
        let mut rope = data("abc", 0);
        rope.push_nothing(Run::new(0, Writer::Tag));
        rope.push(escaped(&data("d\n", 3)).slice());
        let indexed = Indexed::new(rope.slice());
        for start in 0..rope.text.len() {
            for end in start..=rope.text.len() {
                let part = rope.slice().part(start..end);
                assert_eq!(indexed.part(start..end), part, "{start}..{end}");
                assert!(indexed.runs(&(start..end)).len() >= part.runs.len());
            }
        }
        assert_eq!(indexed.part(3..99), Rope::default());
    }
}
