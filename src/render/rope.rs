//! Texts that know who wrote each of their bytes.
//!
//! A [`Told`] is a text and its runs: stretches of bytes with one writer. Filters that keep content
//! hand the runs on, cut and joined as the text is; whatever else is made of a text is
//! [`Writer::Computed`].

use std::ops::Range;
use std::sync::Arc;

use super::place::Place;
use crate::json::Pointer;

/// The number of runs that a text may have: as many as a long history makes, fewer than a loop that
/// doubles a text.
const MAX_RUNS: usize = 1 << 18;
/// The number of parts of a computed text that are named.
pub(super) const MAX_INPUTS: usize = 16;

/// The number of a frame.
pub(super) type FrameId = u32;

/// A file that a prompt read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ReadFile {
    /// Whose file it is.
    pub place: ReadPlace,
    /// Its path there.
    pub path: Arc<str>,
}

/// Where a prompt's file was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReadPlace {
    /// In the project that the conversation is about.
    Project,
    /// In a layer, by its number among those that the prompt may read.
    Layer(usize),
}

/// Who wrote some bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Writer {
    /// Text of a template, or a literal of an expression. As long as the bytes, unless escapes were
    /// decoded.
    Template(Place),
    /// A leaf of the data, from a byte of its text on.
    Data { path: Arc<Pointer>, at: usize },
    /// A file that a prompt read, from a byte on.
    File { file: Arc<ReadFile>, at: usize },
    /// The tag that wrote them: quotes and JSON commas.
    Tag,
    /// They were computed, from these.
    Computed { from: Arc<[Input]> },
}

/// The input of a computed text.
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
    /// How often the bytes were escaped as JSON since.
    pub(super) escaped: u8,
    /// The tag that wrote them first.
    pub(super) tag: Option<Place>,
    /// Which of all emissions that was; 0 for literal text.
    pub(super) emission: u32,
    /// Where the render was then.
    pub(super) frame: FrameId,
    /// 0, or 1 if the system prompt's own recording knows tag and frame.
    pub(super) recording: u8,
}

/// A text and its writers, in order.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Told {
    pub(super) text: String,
    /// Empty where nobody asks for writers.
    pub(super) runs: Vec<Run>,
    follows: bool,
}

impl Told {
    /// A text with one writer.
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

    /// No text yet; `follows` says whether somebody asks who writes it.
    pub(super) fn new(follows: bool) -> Told {
        Told {
            text: String::new(),
            runs: Vec::new(),
            follows,
        }
    }

    /// A text of which nobody asks who wrote it.
    pub(super) fn unfollowed(text: &str) -> Told {
        Told {
            text: text.to_owned(),
            runs: Vec::new(),
            follows: false,
        }
    }

    /// Returns `true` if its writers are known.
    pub(super) fn is_followed(&self) -> bool {
        self.follows
    }

    /// Says where the render was when it was written.
    pub(super) fn set_frame(&mut self, frame: FrameId) {
        self.runs.iter_mut().for_each(|run| run.frame = frame);
    }

    /// Says which tag wrote it.
    pub(super) fn set_tag(&mut self, tag: Place) {
        self.runs.iter_mut().for_each(|run| run.tag = Some(tag));
    }

    /// Adds a text as a JSON string, of which nobody asks who wrote it.
    pub(super) fn push_json(&mut self, text: &str) {
        let json = serde_json::to_string(text).expect("a string serialises into memory");
        self.text.push_str(&json);
    }

    /// Adds a text, and what wrote nothing in it.
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
        // Nothing was written: what wrote it would only pile up.
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

    /// Notes who wrote nothing.
    fn push_nothing(&mut self, run: Run) {
        if self.runs.len() < MAX_RUNS {
            self.runs.push(Run { len: 0, ..run });
        }
    }

    /// Takes a text that is made of too many parts for a computed one.
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

    /// Returns where each run starts.
    pub(super) fn starts(&self) -> Vec<usize> {
        let mut end = 0;
        let starts = self.runs.iter().map(|run| {
            end += run.len;
            end - run.len
        });
        starts.collect()
    }

    /// The value that each run is a part of: with its neighbours of the same emission.
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

    /// A part of the text.
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

    /// The text as a JSON string.
    pub(super) fn escaped(&self) -> Told {
        let mut json = Told::one("\"", Writer::Tag);
        let mut start = 0;
        for run in &self.runs {
            // Runs end at characters: writers are texts.
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

    /// Returns what a text was computed from.
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

/// Takes parts out of a text, each after the one before: in one walk, however many they are.
pub(super) struct Cutter<'t> {
    told: &'t Told,
    /// The run that comes next.
    next: usize,
    /// Where it begins in the text.
    start: usize,
    /// How much of its text was passed, and how much that was before it was escaped.
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

    /// Puts a part after another text.
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
    /// Some of the bytes of a run, whose own text is `text`.
    fn cut(&self, text: &str, from: usize, len: usize) -> Run {
        self.part(text, len, self.source(text, from, len))
    }

    /// So many bytes of a run, which are `source` of what was escaped.
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

    /// Some of the bytes of a run as they were before they were escaped.
    pub(super) fn source(&self, text: &str, from: usize, len: usize) -> Range<usize> {
        let start = unescaped_len(text.get(..from).unwrap_or(text), self.escaped);
        let end = unescaped_len(text.get(..from + len).unwrap_or(text), self.escaped);
        start..end
    }
}

/// Returns how many bytes a text had before it was escaped as JSON so many times.
pub(super) fn unescaped_len(text: &str, times: u8) -> usize {
    match times {
        0 => text.len(),
        1 => unescape(text).map(char::len_utf8).sum(),
        times => unescaped_len(&unescape(text).collect::<String>(), times - 1),
    }
}

/// The characters that a part of a JSON string stands for; what is cut off in an escape is left
/// out.
fn unescape(text: &str) -> impl Iterator<Item = char> + '_ {
    let mut chars = text.chars();
    std::iter::from_fn(move || match chars.next()? {
        '\\' => match chars.next()? {
            'n' => Some('\n'),
            't' => Some('\t'),
            'r' => Some('\r'),
            'b' => Some('\u{8}'),
            'f' => Some('\u{c}'),
            // Only control characters are written so.
            'u' => {
                let digits: String = chars.by_ref().take(4).collect();
                char::from_u32(u32::from_str_radix(&digits, 16).ok()?)
            }
            same => Some(same),
        },
        c => Some(c),
    })
}

/// A text as it is in a JSON string.
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
        // Two pairs of quotes.
        assert_eq!(unescaped_len(&json.escaped().text, 2), told.text.len() + 4);
        assert_eq!(
            json.escaped().text,
            serde_json::to_string(&json.text).expect("serialises")
        );
    }
}
