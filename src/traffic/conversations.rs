//! Groups requests, in log order, into conversations by their content.

use std::collections::HashMap;

use foldhash::HashMap as Fast;

use super::Known;
use super::change::is_same_agent;
use super::conversation::{Conversation, chain};
use super::piece::Piece;
use super::relation::{Relation, common, relation, says_summary};
use super::sent::{Flaw, Sent, fixed};
use super::story::{Origin, Story};
use crate::provider::WireFormat;

/// The limits on the data that is kept in memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The maximum number of conversations that are open at the same time.
    pub(super) open: usize,
    /// The maximum size of the text that is kept, in bytes. Beyond this, only fingerprints and
    /// sizes are kept.
    pub(super) texts: usize,
    /// The maximum number of stories. Beyond this, stories without findings are only counted.
    pub(super) stories: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            open: 1_000,
            texts: 128 << 20,
            stories: 2_000,
        }
    }
}

/// The minimum number of tokens in a message that can identify a conversation.
const LEAST_TOKENS: u64 = 16;

/// The maximum number of conversations that are examined for one message.
const MOST_CANDIDATES: usize = 16;

/// The data of a conversation's last request under which the conversation is registered.
#[derive(Default)]
struct Before {
    bytes: usize,
    chain: Vec<u64>,
    messages: Vec<u64>,
}

impl Before {
    fn of(open: &Conversation) -> Before {
        let history = &open.pieces[fixed(&open.pieces)..];
        let messages = history.iter().map(|piece| piece.hash).collect();
        Before {
            bytes: open.kept_bytes(),
            chain: open.chain(),
            messages,
        }
    }
}

/// The maximum number of requests that are held back for one conversation.
const MOST_HELD: usize = 64;

/// The maximum number of pieces in all requests that are held back.
const MOST_HELD_PIECES: usize = 100_000;

/// A request that is held back.
struct Held {
    sent: Sent,
    known: Known,
    /// The index of the conversation that it may begin.
    id: usize,
}

/// All conversations, open and ended.
pub(super) struct Conversations {
    limits: Limits,
    open: Fast<usize, Conversation>,
    /// Open conversations, by the fingerprint of the beginning of their history.
    by_beginning: Fast<u64, Vec<usize>>,
    /// Open conversations, by the fingerprint of a single message.
    by_message: Fast<(WireFormat, u64), Vec<usize>>,
    /// The index of each transcript's conversation.
    threads: HashMap<u64, usize>,
    /// The index kept for the first conversation of each transcript that has no request yet.
    reserved: HashMap<u64, usize>,
    /// Requests that are held back because they contain only the beginning of a conversation, by
    /// the conversation's index.
    held: Fast<usize, Vec<Held>>,
    /// The number of pieces in the requests that are held back.
    held_pieces: usize,
    done: Vec<(usize, Story)>,
    begun: usize,
    clock: u64,
    texts: usize,
    pub(super) closed_early: usize,
    pub(super) untold: usize,
}

impl Conversations {
    pub(super) fn new(limits: Limits) -> Conversations {
        Conversations {
            limits,
            open: Fast::default(),
            by_beginning: Fast::default(),
            by_message: Fast::default(),
            threads: HashMap::new(),
            reserved: HashMap::new(),
            held: Fast::default(),
            held_pieces: 0,
            done: Vec::new(),
            begun: 0,
            clock: 0,
            texts: 0,
            closed_early: 0,
            untold: 0,
        }
    }

    /// Adds a request to the conversation that it continues, or starts a new conversation.
    pub(super) fn add(&mut self, sent: Sent, known: Known) {
        self.clock += 1;
        let thread = sent.thread;
        let found = match thread {
            Some(thread) => self
                .threads
                .get(&thread)
                .copied()
                .filter(|id| self.open.contains_key(id)),
            None => self.that_goes_on_with(&sent),
        };
        let found =
            found.filter(|id| thread.is_some() || !is_asked_elsewhere(&self.open[id], &sent));
        let way = found.and_then(|id| {
            self.open.get(&id).map(|open| {
                (
                    id,
                    relation(&open.pieces, &sent),
                    shared_messages(open, &sent),
                )
            })
        });
        let id = match way {
            Some((id, Some(Relation::Earlier), _)) if thread.is_none() => {
                self.hold(id, sent, known);
                id
            }
            Some((id, relation, _)) if self.is_new_run(id, relation, &sent) => {
                self.begin_run(id, sent, known)
            }
            Some((id, Some(relation), _)) => {
                self.release(id);
                self.go_on(id, sent, relation, known);
                id
            }
            Some((from, None, shared)) if has_answer(&sent.history()[..shared]) => self.begin(
                sent,
                Origin::Fork {
                    story: from,
                    shared,
                },
                known,
            ),
            _ => {
                let is_summary = (0..2).any(|at| says_summary(&sent, at));
                self.begin(
                    sent,
                    if is_summary {
                        Origin::Summary
                    } else {
                        Origin::Began
                    },
                    known,
                )
            }
        };
        if let Some(thread) = thread {
            self.threads.insert(thread, id);
        }
        if let Some(open) = self.open.get_mut(&id) {
            open.used = self.clock;
        }
        self.keep_bounds();
    }

    /// Keeps the next index for the conversation of a transcript that begins here, because its
    /// requests are added late.
    pub(super) fn reserve(&mut self, thread: u64) {
        self.reserved.insert(thread, self.begun);
        self.begun += 1;
    }

    /// Adds the flaws in the messages of a transcript.
    pub(super) fn add_flaws(&mut self, thread: u64, flaws: Vec<Flaw>) {
        if let Some(open) = self
            .threads
            .get(&thread)
            .and_then(|id| self.open.get_mut(id))
        {
            open.add_flaws(flaws);
        }
    }

    /// Ends all conversations. Returns their stories in the order of their first requests, the
    /// number of conversations that were closed early, and the number of stories that were only
    /// counted.
    pub(super) fn end(mut self) -> (Vec<Story>, usize, usize) {
        let mut ids: Vec<usize> = self.open.keys().copied().collect();
        ids.sort_unstable();
        ids.into_iter().for_each(|id| self.close(id));
        self.done.sort_by_key(|(id, _)| *id);
        let places: HashMap<usize, usize> = self
            .done
            .iter()
            .enumerate()
            .map(|(at, (id, _))| (*id, at))
            .collect();
        let mut stories: Vec<Story> = self.done.into_iter().map(|(_, story)| story).collect();
        for story in &mut stories {
            if let Origin::Fork {
                story: from,
                shared,
            } = story.origin
            {
                let known = places
                    .get(&from)
                    .map(|at| Origin::Fork { story: *at, shared });
                story.origin = known.unwrap_or(Origin::Began);
            }
        }
        (stories, self.closed_early, self.untold)
    }

    fn begin(&mut self, sent: Sent, origin: Origin, known: Known) -> usize {
        let reserved = sent.thread.and_then(|thread| self.reserved.remove(&thread));
        let id = reserved.unwrap_or(self.begun);
        self.begun = self.begun.max(id + 1);
        self.begin_at(id, sent, origin, known);
        id
    }

    fn begin_at(&mut self, id: usize, sent: Sent, origin: Origin, known: Known) {
        let begun = Conversation::begin(sent, origin, known);
        self.texts += begun.kept_bytes();
        self.register(id, &begun, &Before::default());
        self.open.insert(id, begun);
    }

    fn go_on(&mut self, id: usize, sent: Sent, relation: Relation, known: Known) {
        let Some(mut open) = self.open.remove(&id) else {
            return;
        };
        let before = Before::of(&open);
        open.go_on(sent, relation, known);
        self.texts = (self.texts + open.kept_bytes()).saturating_sub(before.bytes);
        self.register(id, &open, &before);
        self.open.insert(id, open);
    }

    /// Holds back a request that contains only the beginning of the conversation, until the next
    /// request shows whether this one is out of order or begins a new run.
    fn hold(&mut self, id: usize, mut sent: Sent, known: Known) {
        let held = self.held.get(&id).map_or(0, Vec::len);
        if held >= MOST_HELD {
            self.release(id);
        }
        self.held_pieces += sent.pieces.len();
        if self.held_pieces > MOST_HELD_PIECES {
            let mut ids: Vec<usize> = self.held.keys().copied().collect();
            ids.sort_unstable();
            ids.into_iter().for_each(|id| self.release(id));
        }
        let open = &self.open[&id];
        for (piece, old) in sent.pieces.iter_mut().zip(&open.pieces) {
            piece.text.clone_from(&old.text);
        }
        sent.body = None;
        let held = Held {
            sent,
            known,
            id: self.begun,
        };
        self.begun += 1;
        self.held.entry(id).or_default().push(held);
    }

    /// Adds the requests that were held back to the conversation, as out of order.
    fn release(&mut self, id: usize) {
        for held in self.take_held(id) {
            self.go_on(id, held.sent, Relation::Earlier, held.known);
        }
    }

    fn take_held(&mut self, id: usize) -> Vec<Held> {
        let held = self.held.remove(&id).unwrap_or_default();
        let pieces: usize = held.iter().map(|held| held.sent.pieces.len()).sum();
        self.held_pieces = self.held_pieces.saturating_sub(pieces);
        held
    }

    /// Returns `true` if a request continues a request that was held back, but differs from the
    /// conversation itself from the next turn on.
    fn is_new_run(&self, id: usize, relation: Option<Relation>, sent: &Sent) -> bool {
        let Some(held) = self.held.get(&id).and_then(|held| held.last()) else {
            return false;
        };
        let shared = common(&self.open[&id].pieces, &sent.pieces);
        let length = held.sent.pieces.len();
        match relation {
            None => continues(&held.sent, sent),
            Some(Relation::Changed) => {
                continues(&held.sent, sent)
                    && sent.pieces[length..shared.max(length)]
                        .iter()
                        .all(super::piece::is_answer)
            }
            Some(Relation::Same | Relation::Grown | Relation::Earlier | Relation::Compacted) => {
                false
            }
        }
    }

    /// Begins a conversation with the requests that were held back, as far as each continues the
    /// previous one, followed by a request that continues the last of them.
    fn begin_run(&mut self, from: usize, sent: Sent, known: Known) -> usize {
        let mut run = self.take_held(from);
        let mut first = run.len() - 1;
        while first > 0 && continues(&run[first - 1].sent, &run[first].sent) {
            first -= 1;
        }
        let begun = run.split_off(first);
        for held in run {
            self.go_on(from, held.sent, Relation::Earlier, held.known);
        }
        let shared = shared_messages(&self.open[&from], &sent);
        let origin = match has_answer(&sent.history()[..shared]) {
            true => Origin::Fork {
                story: from,
                shared,
            },
            false => Origin::Began,
        };
        let id = begun[0].id;
        for (at, held) in begun.into_iter().enumerate() {
            match at {
                0 => self.begin_at(id, held.sent, origin.clone(), held.known),
                _ => self.go_on(id, held.sent, Relation::Grown, held.known),
            }
        }
        self.go_on(id, sent, Relation::Grown, known);
        id
    }

    /// Registers a conversation under the messages of its last request, instead of those of the
    /// previous request.
    fn register(&mut self, id: usize, open: &Conversation, before: &Before) {
        if !open.story.has_bodies {
            return;
        }
        let chain = open.chain();
        let shared = chain
            .iter()
            .zip(&before.chain)
            .take_while(|(new, old)| new == old)
            .count();
        for link in &before.chain[shared..] {
            forget(&mut self.by_beginning, link, id);
        }
        for message in &before.messages[shared..] {
            forget(&mut self.by_message, &(open.wire, *message), id);
        }
        let history = &open.pieces[fixed(&open.pieces)..];
        for (link, piece) in chain.iter().zip(history).skip(shared) {
            self.by_beginning.entry(*link).or_default().push(id);
            if piece.tokens >= LEAST_TOKENS {
                let ids = self.by_message.entry((open.wire, piece.hash)).or_default();
                if !ids.contains(&id) {
                    ids.push(id);
                }
            }
        }
    }

    /// Finds the conversation that a request continues: the one with the longest common beginning,
    /// or else the one with the most messages in common.
    fn that_goes_on_with(&self, sent: &Sent) -> Option<usize> {
        let links = chain(sent.wire, &sent.pieces);
        for link in links.iter().rev() {
            let Some(ids) = self.by_beginning.get(link) else {
                continue;
            };
            let fitting = ids
                .iter()
                .rev()
                .take(MOST_CANDIDATES)
                .filter(|id| self.fits(**id, sent));
            if let Some(best) = fitting.max_by_key(|id| self.nearness(**id, sent)) {
                return Some(*best);
            }
        }
        self.by_messages(sent)
    }

    /// Returns the rank of a conversation. Conversations that the request only extends rank
    /// highest, followed by those that it can continue, followed by the most recently used.
    fn nearness(&self, id: usize, sent: &Sent) -> (bool, bool, u64) {
        let open = &self.open[&id];
        let shared = shared_messages(open, sent);
        let is_grown = shared == open.pieces.len() - fixed(&open.pieces);
        (is_grown, relation(&open.pieces, sent).is_some(), open.used)
    }

    fn fits(&self, id: usize, sent: &Sent) -> bool {
        self.open
            .get(&id)
            .is_some_and(|open| is_same_agent(&open.pieces, sent))
    }

    /// Finds the conversation that has the most content in common with a request, measured by the
    /// total size of the shared messages. These messages must make up at least half of the smaller
    /// history; after a summary, any size is enough.
    fn by_messages(&self, sent: &Sent) -> Option<usize> {
        let mut shared: Fast<usize, u64> = Fast::default();
        for piece in sent
            .history()
            .iter()
            .filter(|piece| piece.tokens >= LEAST_TOKENS)
        {
            let ids = self
                .by_message
                .get(&(sent.wire, piece.hash))
                .map_or(&[][..], Vec::as_slice);
            ids.iter()
                .rev()
                .take(MOST_CANDIDATES)
                .for_each(|id| *shared.entry(*id).or_default() += piece.tokens);
        }
        let own = size(sent.history());
        let is_summary = says_summary(sent, 0);
        let mut fitting: Vec<(u64, usize)> = shared
            .into_iter()
            .filter(|(id, shared)| {
                let Some(open) = self.open.get(id) else {
                    return false;
                };
                let smaller = own.min(size(&open.pieces[fixed(&open.pieces)..]));
                (is_summary || shared * 2 >= smaller)
                    && self.fits(*id, sent)
                    && relation(&open.pieces, sent).is_some()
            })
            .map(|(id, shared)| (shared, id))
            .collect();
        fitting.sort_unstable();
        fitting.last().map(|(_, id)| *id)
    }

    /// Closes the least recently used conversations, and drops text, to stay within the limits.
    fn keep_bounds(&mut self) {
        while self.open.len() > self.limits.open {
            let oldest = self
                .open
                .iter()
                .min_by_key(|(_, open)| open.used)
                .map(|(id, _)| *id);
            let Some(id) = oldest else { return };
            self.closed_early += 1;
            self.close(id);
        }
        if self.texts <= self.limits.texts {
            return;
        }
        let mut ids: Vec<(u64, usize)> = self
            .open
            .iter()
            .map(|(id, open)| (open.used, *id))
            .collect();
        ids.sort_unstable();
        for (_, id) in ids {
            if self.texts <= self.limits.texts / 2 {
                return;
            }
            if let Some(open) = self.open.get_mut(&id) {
                self.texts -= open.kept_bytes().min(self.texts);
                open.forget_texts();
            }
        }
    }

    fn close(&mut self, id: usize) {
        self.release(id);
        let Some(open) = self.open.remove(&id) else {
            return;
        };
        self.texts -= open.kept_bytes().min(self.texts);
        for link in open.chain() {
            forget(&mut self.by_beginning, &link, id);
        }
        for piece in &open.pieces {
            let key = (open.wire, piece.hash);
            forget(&mut self.by_message, &key, id);
        }
        let story = open.end();
        match self.done.len() < self.limits.stories
            || story.has_findings() && self.done.len() < 2 * self.limits.stories
        {
            true => self.done.push((id, story)),
            false => self.untold += 1,
        }
    }
}

/// Returns `true` if a request only asks a different model the same question: the part in common
/// contains no answer, and nothing was added.
fn is_asked_elsewhere(open: &Conversation, sent: &Sent) -> bool {
    let shared = shared_messages(open, sent);
    let is_grown =
        shared < sent.history().len() && shared == open.pieces.len() - fixed(&open.pieces);
    open.model() != &*sent.model && !is_grown && !has_answer(&sent.history()[..shared])
}

/// Returns `true` if a request contains another request, followed by more content.
fn continues(earlier: &Sent, later: &Sent) -> bool {
    let shared = common(&earlier.pieces, &later.pieces);
    shared == earlier.pieces.len() && shared < later.pieces.len()
}

/// Returns the total number of tokens in some pieces.
fn size(pieces: &[Piece]) -> u64 {
    pieces.iter().map(|piece| piece.tokens).sum()
}

fn has_answer(pieces: &[Piece]) -> bool {
    pieces.iter().any(super::piece::is_answer)
}

fn forget<K: std::hash::Hash + Eq>(index: &mut Fast<K, Vec<usize>>, key: &K, id: usize) {
    if let Some(ids) = index.get_mut(key) {
        ids.retain(|known| *known != id);
        if ids.is_empty() {
            index.remove(key);
        }
    }
}

/// Returns the number of messages that a request and a conversation have in common at the
/// beginning.
fn shared_messages(open: &Conversation, sent: &Sent) -> usize {
    common(&open.pieces[fixed(&open.pieces)..], sent.history())
}
