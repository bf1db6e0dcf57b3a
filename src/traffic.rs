//! Groups the requests in logs into conversations, and analyses each conversation: where its prefix
//! stopped being append-only and what that cost, which thinking was lost, which message caused all
//! later requests to be rejected, and how the conversation grew.
//!
//! Input: all kinds of files that `lint` reads, and agents' own session files. Output: [`Stories`].
//! Requests are grouped by their content. For each conversation, the fingerprints and sizes of the
//! last request's pieces are kept and, within a budget, also their text, so a file may be larger
//! than the memory used. Other modules display the stories.

mod read;
mod piece;
mod sizer;
mod story;
mod sent;
mod relation;
mod change;
mod growth;
mod misses;
mod conversation;
mod conversations;
mod usage;
#[cfg(test)]
mod tests;
mod forms;

use std::collections::{BTreeMap, HashMap};
use std::io::Read;
use std::sync::Arc;

use rayon::prelude::*;
use serde_json::Value;

pub use piece::Share;
pub use story::{
    Break, Change, Compaction, Counted, Expired, Growth, Loss, Missed, Origin, Place, Point,
    Poison, Step, Stories, Story, ThinkingLoss, ThinkingLossKind, Unpriced,
};

use crate::check::history::member_of;
use crate::check::prefix::cache_settings;
use crate::check::schema::rules::UNKNOWN_FIELD;
use crate::compile::{Compiler, LintTarget, ModelKnowledge, STACK_BYTES};
use crate::diag::Severity;
use crate::lint::{Agent, Input, InputError, Line, Lines, Unrecognised, cassette, recognise};
use crate::panics::caught;
use crate::provider::{Server, WireFormat};
use crate::world::MAX_FILE_BYTES;
use conversations::{Conversations, Limits};
use forms::Logged;
use forms::transcript::{self, Ended, Transcript};
use misses::RETENTION;
use piece::{Piece, chained, of_name, of_setting};
use sent::{Flaw, Sent};
use sizer::Sizer;

/// The name of the body setting that asks the server to cache the whole body without breakpoints in
/// its blocks.
const WHOLE: &str = "cache_control";

/// The maximum number of transcripts that are open at the same time.
const MOST_TRANSCRIPTS: usize = 64;

/// The known facts about a request's model on its server.
#[derive(Debug, Clone, Default)]
struct Known {
    model: ModelKnowledge,
    /// The context window, in tokens.
    window: Option<u64>,
    /// The minimum length of a prefix that the server caches, in tokens.
    minimum: Option<u64>,
    binds_thinking: bool,
}

impl Known {
    /// Returns the additional cost in US dollars of tokens that were processed again instead of
    /// being read from the cache; `None` if a price is unknown.
    #[expect(clippy::cast_precision_loss, reason = "token counts stay below 2^53")]
    fn price_of_loss(&self, wire: WireFormat, tokens: u64, is_hour: bool) -> Option<f64> {
        let price = self.model.price.as_ref()?;
        let written = if is_hour {
            price.cache_write_hour
        } else {
            price.cache_write
        };
        let anew = if wire.has_cache_breakpoints() {
            written?
        } else {
            price.input
        };
        Some(tokens as f64 * (anew - price.cache_read?) / 1e6)
    }
}

/// Reads files with requests, one file after the other.
///
/// ```
/// use std::sync::Arc;
///
/// use reqc::compile::{Compiler, LoadOptions};
/// use reqc::system::Embedded;
/// use reqc::traffic::{Change, Traffic};
/// use reqc::world::MemoryWorld;
///
/// let nothing = Arc::new(MemoryWorld::default());
/// let compiler = Compiler::load(nothing, Arc::new(Embedded::bundled()), LoadOptions::default());
/// let mut traffic = Traffic::new(&compiler, None);
/// let log = r#"
/// {"model": "gpt-5", "messages": [{"role": "system", "content": "Help. It is 10:00:01."}, {"role": "user", "content": "Hi"}]}
/// {"model": "gpt-5", "messages": [{"role": "system", "content": "Help. It is 10:00:09."}, {"role": "user", "content": "Hi"}]}
/// "#;
/// traffic.read("log.jsonl", log.as_bytes())?;
/// let stories = traffic.end();
/// assert_eq!(stories.stories[0].breaks[0].change, Change::Time);
/// # Ok::<(), reqc::lint::InputError>(())
/// ```
pub struct Traffic<'c> {
    compiler: &'c Compiler,
    wire: Option<WireFormat>,
    pool: Option<rayon::ThreadPool>,
    sizer: Sizer,
    known: HashMap<(WireFormat, Server, Arc<str>), Known>,
    conversations: Conversations,
    transcripts: HashMap<u64, Transcript>,
    clock: u64,
    forms: BTreeMap<&'static str, usize>,
    stories: Stories,
}

/// The content of a line or document.
enum Taken {
    Requests(Vec<Sent>),
    Transcript(Agent, Value),
    Text,
    Unreadable,
}

impl<'c> Traffic<'c> {
    /// Returns a reader. `wire` is the wire format of all bodies, if known.
    pub fn new(compiler: &'c Compiler, wire: Option<WireFormat>) -> Traffic<'c> {
        Traffic::within(compiler, wire, Limits::default())
    }

    fn within(compiler: &'c Compiler, wire: Option<WireFormat>, limits: Limits) -> Traffic<'c> {
        Traffic {
            compiler,
            wire,
            pool: rayon::ThreadPoolBuilder::new()
                .stack_size(STACK_BYTES)
                .build()
                .ok(),
            sizer: Sizer::new(),
            known: HashMap::new(),
            conversations: Conversations::new(limits),
            transcripts: HashMap::new(),
            clock: 0,
            forms: BTreeMap::new(),
            stories: Stories::default(),
        }
    }

    /// Reads a file, which is displayed as `path`. A conversation may continue in the next file.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be read or is too large.
    pub fn read(&mut self, path: &str, reader: impl Read) -> Result<(), InputError> {
        let file: Arc<str> = Arc::from(path);
        match Input::open(reader)? {
            Input::Document(bytes) => self.document(&file, &bytes),
            Input::Lines(lines) => self.lines(&file, lines)?,
        }
        self.end_transcripts(0);
        Ok(())
    }

    /// Ends all conversations and returns their stories.
    pub fn end(mut self) -> Stories {
        self.end_transcripts(0);
        let (stories, closed_early, untold) = self.conversations.end();
        self.stories.stories = stories;
        self.stories.closed_early = closed_early;
        self.stories.untold = untold;
        self.stories.forms = self.forms.into_iter().collect();
        self.stories
    }

    fn document(&mut self, file: &Arc<str>, bytes: &[u8]) {
        let text = String::from_utf8_lossy(bytes);
        let place = Place {
            file: Arc::clone(file),
            line: 1,
        };
        if let Some(cassette) = cassette::document(&text) {
            let taken = self.work().requests(cassette, &place);
            return self.take(taken, &place);
        }
        let trimmed = text.trim_start_matches('\u{feff}').trim();
        if trimmed.contains('\n') && !trimmed.starts_with(['{', '[']) {
            return self.text(file, &text);
        }
        let taken = self.work().line(&text, &place);
        self.take(taken, &place);
    }

    /// Reads text line by line, because individual lines may contain a request.
    fn text(&mut self, file: &Arc<str>, text: &str) {
        let mut is_found = false;
        for (at, line) in text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
        {
            let place = Place {
                file: Arc::clone(file),
                line: at + 1,
            };
            let taken = self.work().line(line, &place);
            match taken {
                Taken::Requests(_) | Taken::Transcript(..) => {
                    is_found = true;
                    self.take(taken, &place);
                }
                Taken::Text | Taken::Unreadable => {}
            }
        }
        if !is_found {
            self.take(
                Taken::Unreadable,
                &Place {
                    file: Arc::clone(file),
                    line: 1,
                },
            );
        }
    }

    fn lines(&mut self, file: &Arc<str>, mut lines: Lines<impl Read>) -> Result<(), InputError> {
        let mut cassette = None;
        let mut written = 0;
        loop {
            let chunk = lines.chunk()?;
            if chunk.is_empty() {
                break;
            }
            // A YAML cassette contains lines that look like the beginning of a document.
            if cassette.is_none()
                && chunk
                    .iter()
                    .take(3)
                    .any(|line| cassette::is_beginning(&line.bytes))
            {
                cassette = Some(Vec::new());
                written = chunk
                    .first()
                    .map_or(0, |line| line.number.saturating_sub(1));
            }
            if let Some(text) = cassette
                .as_mut()
                .filter(|text| text.len() as u64 <= MAX_FILE_BYTES)
            {
                chunk
                    .iter()
                    .for_each(|line| add_line(text, &mut written, line));
                continue;
            }
            let work = self.work();
            let taken: Vec<(Taken, Place)> = within(self.pool.as_ref(), || {
                chunk
                    .par_iter()
                    .map(|line| work.numbered(file, line))
                    .collect()
            });
            taken
                .into_iter()
                .for_each(|(taken, place)| self.take(taken, &place));
        }
        if let Some(text) = cassette {
            self.document(file, &text);
        }
        Ok(())
    }

    fn work(&self) -> Work<'_> {
        Work {
            compiler: self.compiler,
            wire: self.wire,
            sizer: &self.sizer,
        }
    }

    /// Processes the content of a line or document.
    fn take(&mut self, taken: Taken, place: &Place) {
        match taken {
            Taken::Requests(sent) if sent.is_empty() => self.stories.passed_over += 1,
            Taken::Requests(sent) => sent.into_iter().for_each(|sent| self.add(sent)),
            Taken::Transcript(agent, document) => self.transcript(agent, &document, place),
            Taken::Text => self.stories.passed_over += 1,
            Taken::Unreadable => {
                self.stories.unreadable_lines += 1;
                self.stories.unreadable.get_or_insert_with(|| place.clone());
            }
        }
    }

    fn add(&mut self, sent: Sent) {
        *self.forms.entry(sent.form).or_default() += 1;
        let key = (sent.wire, sent.server, Arc::clone(&sent.model));
        let known = match self.known.get(&key) {
            Some(known) => known.clone(),
            None => {
                let known = self.knowledge(&sent);
                if self.known.len() < MOST_MODELS {
                    self.known.insert(key, known.clone());
                }
                known
            }
        };
        self.conversations.add(sent, known);
    }

    fn knowledge(&self, sent: &Sent) -> Known {
        let model = ModelKnowledge::of(self.compiler, sent.wire, sent.server, &sent.model);
        let (window, minimum) = (number(model.context_window), number(model.cache_minimum));
        Known {
            window,
            minimum,
            binds_thinking: model.binds_thinking,
            model,
        }
    }

    fn transcript(&mut self, agent: Agent, document: &Value, place: &Place) {
        let key = chained(
            of_name(&place.file),
            of_name(&transcript::key(agent, document)),
        );
        self.clock += 1;
        if !self.transcripts.contains_key(&key) {
            self.end_transcripts(MOST_TRANSCRIPTS - 1);
            self.conversations.reserve(key);
        }
        let transcript = self
            .transcripts
            .entry(key)
            .or_insert_with(|| Transcript::new(agent, key, place.clone()));
        transcript.used = self.clock;
        let sent = transcript.read(document, place.clone(), &self.sizer);
        sent.into_iter().for_each(|sent| self.add(sent));
    }

    /// Ends the least recently used transcripts until at most `left` remain.
    fn end_transcripts(&mut self, left: usize) {
        while self.transcripts.len() > left {
            let oldest = self
                .transcripts
                .iter()
                .min_by_key(|(_, it)| it.used)
                .map(|(key, _)| *key);
            let Some((key, transcript)) =
                oldest.and_then(|key| self.transcripts.remove_entry(&key))
            else {
                return;
            };
            let Ended {
                last,
                body,
                wire,
                pieces,
            } = transcript.end();
            last.into_iter().for_each(|sent| self.add(sent));
            let mut flaws = body
                .map(|body| self.work().flaws_of(&body, wire))
                .unwrap_or_default();
            flaws.iter_mut().for_each(|flaw| {
                flaw.piece = pieces.get(flaw.piece).copied().unwrap_or(usize::MAX);
            });
            self.conversations.add_flaws(key, flaws);
        }
    }
}

/// Adds a line to the text of a cassette, and the blank lines before it: in a quoted scalar, they
/// are the line breaks. `written` is the number of the previous line.
fn add_line(text: &mut Vec<u8>, written: &mut usize, line: &Line) {
    let blank = line.number.saturating_sub(*written + 1);
    let room = MAX_FILE_BYTES.saturating_sub(text.len() as u64);
    let blank = blank.min(usize::try_from(room).unwrap_or(usize::MAX));
    text.resize(text.len() + blank, b'\n');
    text.extend_from_slice(&line.bytes);
    text.push(b'\n');
    *written = line.number;
}

fn number(value: Option<i64>) -> Option<u64> {
    value.and_then(|value| u64::try_from(value).ok())
}

/// The maximum number of models whose facts are cached.
const MOST_MODELS: usize = 1_000;

fn within<T: Send>(pool: Option<&rayon::ThreadPool>, work: impl FnOnce() -> T + Send) -> T {
    match pool {
        Some(pool) => pool.install(work),
        None => work(),
    }
}

/// The part of the work that may run on any thread: parsing lines, and splitting bodies into
/// pieces.
#[derive(Clone, Copy)]
struct Work<'w> {
    compiler: &'w Compiler,
    wire: Option<WireFormat>,
    sizer: &'w Sizer,
}

impl Work<'_> {
    fn numbered(&self, file: &Arc<str>, line: &Line) -> (Taken, Place) {
        let place = Place {
            file: Arc::clone(file),
            line: line.number,
        };
        (
            self.line(&String::from_utf8_lossy(&line.bytes), &place),
            place,
        )
    }

    fn line(&self, text: &str, place: &Place) -> Taken {
        match forms::of_line(text) {
            None => Taken::Text,
            Some(Err(_)) => Taken::Unreadable,
            Some(Ok(document)) => match Agent::of(&document) {
                Some(agent) => Taken::Transcript(agent, document),
                None => self.requests(document, place),
            },
        }
    }

    fn requests(&self, document: Value, place: &Place) -> Taken {
        let logged = forms::requests(document, self.wire);
        Taken::Requests(
            logged
                .into_par_iter()
                .filter_map(|logged| self.sent(logged, place))
                .collect(),
        )
    }

    /// Splits a body into pieces and checks it; `None` if it is not part of a conversation.
    fn sent(&self, logged: Logged, place: &Place) -> Option<Sent> {
        let Logged {
            body,
            endpoint,
            headers,
            answer,
            time,
            form,
            is_converted,
        } = logged;
        let wire = self
            .wire
            .or(endpoint.as_ref().map(|endpoint| endpoint.wire));
        let wire = match wire {
            Some(wire) => wire,
            None => match recognise(&body) {
                Ok(wire) => wire,
                Err(Unrecognised::Unsupported(_)) => return None,
                Err(_) => body.get("messages").map(|_| WireFormat::OpenAiChat)?,
            },
        };
        let model = body.get("model").and_then(Value::as_str);
        let model = model
            .or(endpoint
                .as_ref()
                .and_then(|endpoint| endpoint.model.as_deref()))
            .unwrap_or_default();
        let server = endpoint.as_ref().and_then(|endpoint| endpoint.server);
        let server = server.unwrap_or_else(|| crate::compile::usual_server(wire, Some(model)));
        let mut pieces = piece::cut(&body);
        if pieces.is_empty() {
            return None;
        }
        for piece in &mut pieces {
            let value = body.get(piece.member);
            let value = match piece.index {
                Some(index) => value.and_then(|list| list.get(index)),
                None => value,
            };
            if let Some(value) = value {
                self.sizer.size(piece, value, wire, model);
            }
        }
        let target = LintTarget {
            server: Some(server),
            model: Some(model),
            headers: Some(headers),
            ..LintTarget::default()
        };
        let flaws = if is_converted {
            Vec::new()
        } else {
            self.flaws(&body, wire, &target, &pieces)
        };
        Some(Sent {
            wire,
            server,
            model: Arc::from(model),
            pieces,
            retention: read::text(&body, RETENTION).map(str::to_owned),
            settings: settings(&body, wire, server),
            body: Some(body),
            answer,
            time,
            place: place.clone(),
            flaws,
            thread: None,
            is_compacted: false,
            form,
        })
    }

    /// Returns the errors in the messages of a transcript. Unknown members are not errors, because
    /// agents add their own notes to the messages in their files.
    fn flaws_of(&self, body: &Value, wire: WireFormat) -> Vec<Flaw> {
        let mut flaws = self.flaws(body, wire, &LintTarget::default(), &piece::cut(body));
        flaws.retain(|flaw| flaw.rule != UNKNOWN_FIELD.code);
        flaws
    }

    /// Returns the flaws in the messages of a body's history.
    fn flaws(
        &self,
        body: &Value,
        wire: WireFormat,
        target: &LintTarget<'_>,
        pieces: &[Piece],
    ) -> Vec<Flaw> {
        let Some(member) = member_of(wire) else {
            return Vec::new();
        };
        let Ok(Ok(linted)) = caught(|| self.compiler.lint(body, Some(wire), target)) else {
            return Vec::new();
        };
        let errors = linted
            .problems
            .into_iter()
            .filter(|it| it.severity.unwrap_or(it.rule.severity) == Severity::Error);
        let mut flaws: Vec<Flaw> = Vec::new();
        for problem in errors {
            let mut tokens = problem.pointer.tokens();
            if tokens.next().as_deref() != Some(member) {
                continue;
            }
            let Some(index) = tokens.next().and_then(|token| token.parse::<usize>().ok()) else {
                continue;
            };
            let piece = pieces
                .iter()
                .position(|piece| piece.member == member && piece.index == Some(index));
            let Some(piece) = piece.filter(|piece| {
                !flaws
                    .iter()
                    .any(|known| known.piece == *piece && known.rule == problem.rule.code)
            }) else {
                continue;
            };
            flaws.push(Flaw {
                rule: problem.rule.code,
                message: problem.message,
                help: problem.help,
                piece,
            });
        }
        flaws
    }
}

/// Returns the settings that affect a server's cache, with their fingerprints.
fn settings(body: &Value, wire: WireFormat, server: Server) -> Vec<(&'static str, u64)> {
    let names = cache_settings(wire, server).iter().copied().chain([WHOLE]);
    names
        .filter_map(|name| {
            Some((
                name,
                of_setting(body.get(name).filter(|value| !value.is_null())?),
            ))
        })
        .collect()
}
