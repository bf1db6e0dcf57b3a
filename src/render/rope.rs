//! Texts with the writer of each byte.
//!
//! A [`Told`] is a text with its runs: stretches of bytes with one writer. Filters that keep
//! content pass the runs on, cut and joined like the text; any other result is
//! [`Writer::Computed`].

use std::ops::Range;
use std::sync::Arc;

use super::place::Place;
use crate::json::Pointer;

/// The maximum number of runs in a text: enough for a long history, and too few for a loop that
/// keeps doubling a text.
const MAX_RUNS: usize = 1 << 18;
/// The maximum number of inputs that a computed text names.
pub(super) const MAX_INPUTS: usize = 16;

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
    Data { path: Arc<Pointer>, at: usize },
    /// A file that a prompt read, starting at a byte.
    File { file: Arc<ReadFile>, at: usize },
    /// The tag that wrote them: quotes and JSON commas.
    Tag,
    /// A computation from these inputs.
    Computed { from: Arc<[Input]> },
}

/// An input of a computed text.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Input {
    Data(Arc<Pointer>),
    File(Arc<ReadFile>),
    Template(Place),
}

/// A run of bytes with one writer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Run {
    pub(super) len: usize,
    pub(super) writer: Writer,
    /// The number of times that the bytes were escaped as JSON since.
    pub(super) escaped: u8,
    /// The tag that first wrote them.
    pub(super) tag: Option<Place>,
    /// The number of that emission; 0 for literal text.
    pub(super) emission: u32,
    /// The frame of the render at that time.
    pub(super) frame: FrameId,
    /// 1 if the system prompt's own recording contains the tag and the frame, otherwise 0.
    pub(super) recording: u8,
}

/// A text and its writers, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Told {
    pub(super) text: String,
    /// Empty if writers are not tracked.
    pub(super) runs: Vec<Run>,
    follows: bool,
}

impl Told {
    /// Returns a text with one writer.
    pub(super) fn one(text: &str, writer: Writer) -> Told {
        let run = Run {
            len: text.len(),
            writer,
            escaped: 0,
            tag: None,
            emission: 0,
            frame: 0,
            recording: 0,
        };
        Told {
            text: text.to_owned(),
            runs: vec![run],
            follows: true,
        }
    }

    /// Returns an empty text; `follows` is `true` if its writers are tracked.
    pub(super) fn new(follows: bool) -> Told {
        Told {
            text: String::new(),
            runs: Vec::new(),
            follows,
        }
    }

    /// Returns a text whose writers are not tracked.
    pub(super) fn unfollowed(text: &str) -> Told {
        Told {
            text: text.to_owned(),
            runs: Vec::new(),
            follows: false,
        }
    }

    /// Returns `true` if its writers are tracked.
    pub(super) fn is_followed(&self) -> bool {
        self.follows
    }

    /// Sets the frame in which it was written.
    pub(super) fn set_frame(&mut self, frame: FrameId) {
        self.runs.iter_mut().for_each(|run| run.frame = frame);
    }

    /// Sets the tag that wrote it.
    pub(super) fn set_tag(&mut self, tag: Place) {
        self.runs.iter_mut().for_each(|run| run.tag = Some(tag));
    }

    /// Adds a text as a JSON string, without tracking its writers.
    pub(super) fn push_json(&mut self, text: &str) {
        let json = serde_json::to_string(text).expect("a string serialises into memory");
        self.text.push_str(&json);
    }

    /// Adds a text; for an empty one, notes its writer.
    pub(super) fn append(&mut self, other: &Told) {
        match (other.text.is_empty(), other.runs.first()) {
            (true, Some(nothing)) => self.push_nothing(nothing.clone()),
            _ => self.push(other),
        }
    }

    /// Notes that a tag wrote nothing.
    pub(super) fn note_nothing(&mut self, tag: Place, emission: u32, frame: FrameId) {
        let mut run = Told::one("", Writer::Computed { from: Arc::new([]) })
            .runs
            .remove(0);
        (run.tag, run.emission, run.frame) = (Some(tag), emission, frame);
        self.runs = vec![run];
    }

    pub(super) fn push(&mut self, other: &Told) {
        // An empty text needs no runs, which would only accumulate.
        if other.text.is_empty() {
            return;
        }
        self.text.push_str(&other.text);
        if !self.follows {
            return;
        }
        match self.runs.len() + other.runs.len() > MAX_RUNS {
            false => self.runs.extend(other.runs.iter().cloned()),
            true => self.forget(),
        }
    }

    /// Adds an empty run with its writer.
    fn push_nothing(&mut self, run: Run) {
        if self.runs.len() < MAX_RUNS {
            self.runs.push(Run { len: 0, ..run });
        }
    }

    /// Turns a text with too many runs into a computed one.
    fn forget(&mut self) {
        let from: Arc<[Input]> = self.inputs().take(MAX_INPUTS).collect();
        let run = Run {
            len: self.text.len(),
            ..Told::one("", Writer::Computed { from }).runs.remove(0)
        };
        self.runs = vec![run];
    }

    pub(super) fn push_one(&mut self, text: &str, writer: Writer) {
        match self.follows {
            true => self.push(&Told::one(text, writer)),
            false => self.text.push_str(text),
        }
    }

    /// Returns the start offset of each run.
    pub(super) fn starts(&self) -> Vec<usize> {
        let mut end = 0;
        let starts = self.runs.iter().map(|run| {
            end += run.len;
            end - run.len
        });
        starts.collect()
    }

    /// Returns the range of the value that each run belongs to, together with its neighbours of the
    /// same emission.
    pub(super) fn values(&self) -> Vec<Range<usize>> {
        let values = self
            .runs
            .chunk_by(|one, next| emission(one) == emission(next));
        let mut end = 0;
        let values = values.flat_map(|runs| {
            let start = end;
            end += runs.iter().map(|run| run.len).sum::<usize>();
            std::iter::repeat_n(start..end, runs.len())
        });
        values.collect()
    }

    /// Returns a part of the text.
    pub(super) fn part(&self, range: Range<usize>) -> Told {
        let (mut runs, mut start) = (Vec::new(), 0);
        for run in &self.runs {
            let end = start + run.len;
            let (from, to) = (range.start.max(start), range.end.min(end));
            if from < to {
                runs.push(run.cut(&self.text[start..end], from - start, to - from));
            }
            start = end;
        }
        Told {
            text: self.text[range].to_owned(),
            runs,
            follows: self.follows,
        }
    }

    /// Returns the text as a JSON string.
    pub(super) fn escaped(&self) -> Told {
        let mut json = Told::one("\"", Writer::Tag);
        let mut start = 0;
        for run in &self.runs {
            // Runs end at character boundaries, since each writer wrote text.
            let part = escape(&self.text[start..start + run.len]);
            start += run.len;
            json.runs.push(Run {
                len: part.len(),
                escaped: run.escaped + 1,
                ..run.clone()
            });
            json.text.push_str(&part);
        }
        json.push_one("\"", Writer::Tag);
        json
    }

    /// Returns the inputs that a text was computed from.
    pub(super) fn inputs(&self) -> impl Iterator<Item = Input> {
        self.runs.iter().flat_map(|run| match &run.writer {
            Writer::Data { path, .. } => vec![Input::Data(Arc::clone(path))],
            Writer::File { file, .. } => vec![Input::File(Arc::clone(file))],
            Writer::Template(place) => vec![Input::Template(*place)],
            Writer::Computed { from } => from.to_vec(),
            Writer::Tag => Vec::new(),
        })
    }
}

fn emission(run: &Run) -> (u32, u8) {
    (run.emission, run.recording)
}

/// Takes successive parts out of a text in a single pass, however many there are.
pub(super) struct Cutter<'t> {
    told: &'t Told,
    /// The next run.
    next: usize,
    /// Its offset in the text.
    start: usize,
    /// The length of its text that was passed, and that length before escaping.
    passed: (usize, usize),
}

impl<'t> Cutter<'t> {
    pub(super) fn new(told: &'t Told) -> Cutter<'t> {
        Cutter {
            told,
            next: 0,
            start: 0,
            passed: (0, 0),
        }
    }

    /// Appends a part to another text.
    pub(super) fn cut(&mut self, range: Range<usize>, into: &mut Told) {
        let mut runs = Vec::new();
        while let Some(run) = self
            .told
            .runs
            .get(self.next)
            .filter(|_| self.start < range.end)
        {
            let (text, end) = (
                &self.told.text[self.start..self.start + run.len],
                self.start + run.len,
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
        into.push(&Told {
            text: self.told.text[range].to_owned(),
            runs,
            follows: self.told.follows,
        });
    }
}

impl Run {
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
                path: Arc::clone(path),
                at: at + source.start,
            },
            Writer::File { file, at } => Writer::File {
                file: Arc::clone(file),
                at: at + source.start,
            },
            other => other.clone(),
        };
        Run {
            len,
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
fn escape(text: &str) -> String {
    let mut json = serde_json::to_string(text).expect("a string serialises into memory");
    json.pop();
    json.remove(0);
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(text: &str, at: usize) -> Told {
        Told::one(
            text,
            Writer::Data {
                path: Arc::new(Pointer::root().member("a")),
                at,
            },
        )
    }

    #[test]
    fn parts_keep_their_places() {
        let mut told = data("abc", 0);
        told.push_one("-", Writer::Tag);
        told.push(&data("de", 7));
        let part = told.part(1..5);
        assert_eq!(part.text, "bc-d");
        let places: Vec<_> = part
            .runs
            .iter()
            .map(|run| (run.len, run.writer.clone()))
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
        told.push(&data("é\"", 2));
        let json = told.escaped();
        assert_eq!(json.text, "\"a\\né\\\"\"");
        assert_eq!(
            json.runs.iter().map(|run| run.len).collect::<Vec<_>>(),
            [1, 3, 4, 1]
        );
        assert_eq!(json.runs[1].source("a\\n", 1, 2), 1..2);
        // The text has two pairs of quotes.
        assert_eq!(unescaped_len(&json.escaped().text, 2), told.text.len() + 4);
        assert_eq!(
            json.escaped().text,
            serde_json::to_string(&json.text).expect("serialises")
        );
    }
}
