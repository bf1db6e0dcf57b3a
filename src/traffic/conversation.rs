//! A conversation that is being read: the pieces of its last request, and its story so far.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::change::{self, Changed};
use super::growth::{self, Total, share_of};
use super::misses::{Life, Misses};
use super::piece::{Mark, Piece, Share, chained, first_link, is_answer};
use super::relation::{Relation, common};
use super::sent::{Answer, Flaw, Sent, asks_for_all, fixed};
use super::story::{
    Break, Change, Compaction, Counted, Growth, Loss, Missed, Origin, Place, Poison, Step, Story,
    ThinkingLoss, ThinkingLossKind, Unpriced,
};
use super::{Known, Point};
use crate::provider::{Server, WireFormat};
use crate::tokens::Calibration;

/// The maximum number of breaks that are reported individually for a conversation.
const MOST_BREAKS: usize = 50;

/// The maximum number of points in a timeline.
const MOST_POINTS: usize = 200;

/// The maximum number of messages reported as the largest additions.
const MOST_STEPS: usize = 5;

/// The maximum number of models, summaries, and losses of thinking that are reported.
const MOST_OTHERS: usize = 50;

/// The maximum number of poisoned messages that are reported. Messages with the same cause count as
/// one.
const MOST_POISON: usize = 20;

/// The maximum number of poisoned messages that are collected.
const MOST_COLLECTED: usize = 500;

/// The minimum length of a prefix that servers cache, in tokens, if the model's own minimum is
/// unknown. Source: <https://platform.claude.com/docs/en/build-with-claude/prompt-caching>,
/// <https://platform.openai.com/docs/guides/prompt-caching>.
const SHORTEST_CACHED: u64 = 1024;

/// The minimum number of predicted cached tokens for which a missing cache hit is reported.
const LEAST_PREDICTED: u64 = 2048;

/// A conversation that later requests may continue.
pub(super) struct Conversation {
    pub(super) story: Story,
    pub(super) wire: WireFormat,
    server: Server,
    model: Arc<str>,
    pub(super) pieces: Vec<Piece>,
    /// For each piece, the number of the request that added it.
    since: Vec<usize>,
    settings: Vec<(&'static str, u64)>,
    answer: Answer,
    /// The number of input tokens for the last answer whose usage is in the log: the count, and the
    /// estimate.
    counted: Option<(u64, u64)>,
    misses: Misses,
    /// The `prompt_cache_retention` of the last request.
    retention: Option<String>,
    time: Option<i64>,
    known: Known,
    calibration: Calibration,
    /// The index in the story of each poisoned message, by rule and by fingerprint of the message.
    poisoned: HashMap<(&'static str, u64), usize>,
    /// The flaws in requests that the provider accepted, by rule and by fingerprint of the message.
    taken: HashSet<(&'static str, u64)>,
    /// The number of the last request that was answered.
    answered: usize,
    /// The number of requests per point in the timeline.
    stride: usize,
    /// The totals of the most recent requests, from which the pace is computed.
    totals: Vec<Total>,
    /// The locations of the requests, kept if poisoned messages are found only at the end.
    places: Vec<Place>,
    /// The time of the conversation's last use, as the value of a counter.
    pub(super) used: u64,
}

impl Conversation {
    /// Starts a conversation with its first request.
    pub(super) fn begin(mut sent: Sent, origin: Origin, known: Known) -> Conversation {
        (0..sent.pieces.len()).for_each(|at| sent.keep_text(at));
        let story = Story {
            first: sent.place.clone(),
            last: sent.place.clone(),
            wire: sent.wire,
            models: vec![Arc::clone(&sent.model)],
            requests: 0,
            retries: 0,
            earlier: 0,
            refused: 0,
            refusal: None,
            origin,
            breaks: Vec::new(),
            more_breaks: 0,
            compactions: Vec::new(),
            thinking: Vec::new(),
            poison: Vec::new(),
            counted: Counted::default(),
            growth: Growth::default(),
            unmarked: 0,
            has_bodies: sent.thread.is_none(),
        };
        let mut begun = Conversation {
            story,
            wire: sent.wire,
            server: sent.server,
            model: Arc::clone(&sent.model),
            pieces: Vec::new(),
            since: Vec::new(),
            settings: Vec::new(),
            answer: Answer::default(),
            counted: None,
            misses: Misses::default(),
            retention: None,
            time: None,
            known,
            calibration: Calibration::default(),
            poisoned: HashMap::new(),
            taken: HashSet::new(),
            answered: 0,
            stride: 1,
            totals: Vec::new(),
            places: Vec::new(),
            used: 0,
        };
        begun.count(&sent, Prediction::default());
        begun.pace_on(&sent);
        begun.settle(sent, 0);
        begun
    }

    /// Returns the fingerprints of the history. Each covers a message and everything before it.
    pub(super) fn chain(&self) -> Vec<u64> {
        chain(self.wire, &self.pieces)
    }

    /// Returns the model of the last request.
    pub(super) fn model(&self) -> &str {
        &self.model
    }

    /// Returns the size of the text that is kept, in bytes.
    pub(super) fn kept_bytes(&self) -> usize {
        self.pieces
            .iter()
            .filter_map(|piece| piece.text.as_ref())
            .map(|text| text.len())
            .sum()
    }

    /// Drops the text that is kept, but keeps fingerprints and sizes.
    pub(super) fn forget_texts(&mut self) {
        self.pieces.iter_mut().for_each(|piece| piece.text = None);
    }

    /// Adds a request that continues the conversation.
    pub(super) fn go_on(&mut self, mut sent: Sent, relation: Relation, known: Known) {
        let shared = common(&self.pieces, &sent.pieces);
        for (new, old) in sent.pieces.iter_mut().zip(&self.pieces).take(shared) {
            new.text.clone_from(&old.text);
        }
        (shared..sent.pieces.len()).for_each(|at| sent.keep_text(at));
        let other_model =
            (*sent.model != *self.model && !sent.model.is_empty()).then(|| Arc::clone(&sent.model));
        self.look_for_thinking(&sent, shared, other_model.as_ref(), &known);
        let kept = match relation {
            Relation::Compacted => {
                self.compacted(&sent);
                fixed(&sent.pieces).min(shared)
            }
            Relation::Same => {
                self.story.retries += 1;
                shared
            }
            Relation::Earlier => {
                self.story.earlier += 1;
                shared
            }
            Relation::Grown => shared,
            Relation::Changed => {
                self.broken(&sent, shared);
                shared
            }
        };
        let kept = self.other_settings(&sent, kept, relation);
        let kept = match &other_model {
            Some(to) => {
                self.moved(&sent, to);
                0
            }
            None => kept,
        };
        let predicted = self.predicted(&sent, kept);
        self.known = known;
        self.count(&sent, predicted);
        if !matches!(relation, Relation::Same | Relation::Earlier) {
            self.pace_on(&sent);
        }
        if relation == Relation::Earlier {
            self.story.last = sent.place;
            return;
        }
        self.settle(sent, shared);
    }

    /// Returns the number of the request that is being added.
    fn number(&self) -> usize {
        self.story.requests + 1
    }

    /// Stores a request as the last one.
    fn settle(&mut self, sent: Sent, shared: usize) {
        let number = self.story.requests;
        let before: HashMap<u64, usize> = self
            .pieces
            .iter()
            .zip(&self.since)
            .skip(shared)
            .map(|(piece, since)| (piece.hash, *since))
            .collect();
        self.since.truncate(shared);
        for piece in &sent.pieces[shared..] {
            self.since
                .push(before.get(&piece.hash).copied().unwrap_or(number));
        }
        for (piece, since) in sent.pieces.iter().zip(&self.since) {
            if *since == number && !piece.share.is_fixed() {
                steepest(&mut self.story.growth.steepest, piece, number);
            }
        }
        if !self.story.models.contains(&sent.model) && self.story.models.len() < MOST_OTHERS {
            self.story.models.push(Arc::clone(&sent.model));
        }
        self.story.last = sent.place;
        self.model = sent.model;
        self.server = sent.server;
        self.settings = sent.settings;
        self.retention = sent.retention;
        self.time = sent.time.or(self.time);
        if let Some(usage) = sent.answer.usage {
            self.counted = Some((usage.input, estimated(&sent.pieces)));
        }
        self.answer = sent.answer;
        self.pieces = sent.pieces;
    }

    /// Adds a request to the story's figures: its size, its usage, and its flaws.
    fn count(&mut self, sent: &Sent, predicted: Prediction) {
        self.story.requests += 1;
        let number = self.story.requests;
        if let Some(refusal) = &sent.answer.refusal {
            self.story.refused += 1;
            self.story.refusal.get_or_insert_with(|| refusal.clone());
        }
        if sent.answer.is_accepted() {
            self.answered = number;
        }
        let estimated = estimated(&sent.pieces);
        self.usage(sent, predicted, estimated);
        self.flaws(&sent.flaws, &sent.pieces, sent);
        let is_marked = sent.pieces.iter().any(|piece| piece.mark.is_some()) || sent.asks_for_all();
        let is_long = estimated >= self.known.minimum.unwrap_or(SHORTEST_CACHED);
        let is_of_anthropic = self.wire.has_cache_breakpoints() && self.story.has_bodies;
        self.story.unmarked += usize::from(is_of_anthropic && is_long && !is_marked);
        let counted = sent
            .answer
            .usage
            .map(|usage| usage.input)
            .filter(|input| *input > 0);
        if !self.story.has_bodies {
            self.places.push(sent.place.clone());
        }
        let told = sent.answer.usage.filter(|_| sent.answer.tells_cache);
        let cached = told.map_or(predicted.tokens, |usage| usage.cache_read);
        self.point(Point {
            request: number,
            tokens: by_share(&sent.pieces),
            other: 0,
            counted,
            cached,
        });
    }

    /// Adds a request to those from which the pace is computed. A request that repeats an earlier
    /// one is not a step.
    fn pace_on(&mut self, sent: &Sent) {
        if self.totals.len() == PACE {
            self.totals.remove(0);
        }
        self.totals.push(Total {
            estimated: estimated(&sent.pieces),
            counted: sent.answer.usage.map(|usage| usage.input),
        });
    }

    /// Adds a point to the timeline, which keeps the first request, the last one, and one in
    /// `stride` of the others.
    fn point(&mut self, point: Point) {
        let points = &mut self.story.growth.points;
        points.pop_if(|last| !is_kept(last, self.stride));
        points.push(point);
        if points.len() > MOST_POINTS {
            self.stride *= 2;
            points.retain(|point| is_kept(point, self.stride));
        }
    }

    /// Compares the provider's token counts with the prediction.
    fn usage(&mut self, sent: &Sent, predicted: Prediction, estimated: u64) {
        let Some(usage) = sent.answer.usage else {
            return;
        };
        self.calibration.learn(estimated, usage.input);
        let has_unknown_breakpoints =
            self.wire.has_cache_breakpoints() && !self.asks_for_breakpoints();
        let counted = &mut self.story.counted;
        counted.answers += 1;
        counted.input += usage.input;
        counted.read += usage.cache_read;
        counted.written += usage.cache_write;
        counted.output += usage.output;
        if !sent.answer.tells_cache {
            return;
        }
        counted.told += 1;
        counted.told_input += usage.input;
        if usage.cache_read + usage.cache_write > 0 {
            self.misses.begin(counted, has_unknown_breakpoints);
        }
        if predicted.tokens < LEAST_PREDICTED || usage.cache_read >= predicted.tokens / 2 {
            return;
        }
        let tokens = predicted.tokens - usage.cache_read;
        let dollars = self
            .known
            .price_of_loss(self.wire, tokens, predicted.is_hour);
        let missed = Missed {
            request: self.story.requests,
            place: sent.place.clone(),
            predicted: predicted.tokens,
            counted: usage.cache_read,
            pause: predicted.pause,
            requests: vec![self.story.requests],
            loss: Loss {
                tokens,
                requests: 1,
                dollars,
            },
        };
        self.misses.add(counted, missed, predicted.is_expired);
    }

    /// Predicts how many tokens the provider reads from its cache if the first `kept` pieces are
    /// unchanged.
    fn predicted(&self, sent: &Sent, kept: usize) -> Prediction {
        let all = estimated(&self.pieces);
        let marks = marks(&self.pieces);
        let kept = match self.asks_for_breakpoints() {
            true => marks
                .iter()
                .rev()
                .map(|(at, _)| at + 1)
                .find(|end| *end <= kept)
                .unwrap_or(0),
            false => kept,
        };
        let before = estimated(&self.pieces[..kept]);
        // A request without an answer, such as an aborted one, may have left nothing in the cache.
        let tokens = match self.counted {
            Some((counted, _)) if kept == self.pieces.len() => counted,
            _ => share_of(self.whole(), before, all),
        };
        let pause = self.pause(sent);
        Prediction {
            tokens,
            pause,
            is_expired: pause.is_some_and(|pause| pause > self.life().shortest),
            is_hour: self.is_hour(),
        }
    }

    /// Returns the size of the last request in tokens.
    fn whole(&self) -> u64 {
        self.sized(estimated(&self.pieces))
    }

    /// Returns the size of a request that is estimated at this many tokens, based on the last
    /// answer whose usage is known. If the log contains only messages, the rest of the request is
    /// assumed to be as large as it was for that answer.
    fn sized(&self, estimated: u64) -> u64 {
        growth::sized(self.counted, self.story.has_bodies, estimated)
    }

    /// Returns the corrected estimate of a part of a request. If the log contains only messages,
    /// the estimate is not corrected, because the provider's counts include other parts of the
    /// request.
    fn corrected(&self, tokens: u64) -> u64 {
        match self.story.has_bodies {
            true => self.calibration.corrected(tokens),
            false => tokens,
        }
    }

    /// Returns `true` if the server caches only at breakpoints, and the log contains them.
    fn asks_for_breakpoints(&self) -> bool {
        self.wire.has_cache_breakpoints() && self.story.has_bodies && !self.is_marked_as_whole()
    }

    /// Returns `true` if the body asks the server to cache it as a whole.
    fn is_marked_as_whole(&self) -> bool {
        asks_for_all(&self.settings)
    }

    fn is_hour(&self) -> bool {
        let is_asked = marks(&self.pieces).iter().any(|(_, mark)| mark.is_hour);
        is_asked || self.answer.hour_written > 0
    }

    /// Returns the lifetime of the cache entries that the last request left.
    fn life(&self) -> Life {
        let retention = self.retention.as_deref();
        let model = self.story.has_bodies.then_some(&*self.model);
        Life::of(self.wire, self.server, model, retention, self.is_hour())
    }

    /// Returns the time since the last request in seconds; `None` if a time is missing.
    fn pause(&self, sent: &Sent) -> Option<u64> {
        u64::try_from(sent.time? - self.time?)
            .ok()
            .map(|milliseconds| milliseconds / 1000)
    }

    /// Returns the loss caused by a change in the prefix: everything after the change is lost. If
    /// nothing is lost, also returns the reason.
    fn loss(&self, sent: &Sent, shared: usize) -> (Loss, Option<Unpriced>) {
        let old: u64 = self.pieces[shared.min(self.pieces.len())..]
            .iter()
            .map(|piece| piece.tokens)
            .sum();
        let new: u64 = sent.pieces[shared.min(sent.pieces.len())..]
            .iter()
            .map(|piece| piece.tokens)
            .sum();
        let all = estimated(&self.pieces);
        let tokens = share_of(self.whole(), old.min(new), all);
        let is_expired = self
            .pause(sent)
            .is_some_and(|pause| pause > self.life().longest);
        let unpriced = if self.asks_for_breakpoints()
            && !self.pieces.iter().any(|piece| piece.mark.is_some())
        {
            Some(Unpriced::NotCached)
        } else if self.whole() < self.known.minimum.unwrap_or(SHORTEST_CACHED) {
            Some(Unpriced::TooShort)
        } else if is_expired {
            Some(Unpriced::Expired)
        } else {
            None
        };
        match unpriced {
            Some(_) => (Loss::default(), unpriced),
            None => {
                let dollars = self.known.price_of_loss(self.wire, tokens, self.is_hour());
                (
                    Loss {
                        tokens,
                        requests: 1,
                        dollars,
                    },
                    None,
                )
            }
        }
    }

    /// Records a change in the prefix.
    fn broken(&mut self, sent: &Sent, shared: usize) {
        let is_tail = shared + 1 == self.pieces.len() && shared >= fixed(&self.pieces);
        if is_tail {
            return;
        }
        let changed = change::find(&self.pieces, sent, shared);
        self.note(sent, changed, shared);
    }

    fn note(&mut self, sent: &Sent, changed: Changed, shared: usize) {
        let (loss, unpriced) = self.loss(sent, shared);
        let number = self.number();
        let same = self
            .story
            .breaks
            .iter_mut()
            .find(|known| known.is_like(&changed));
        if let Some(known) = same {
            known.loss = known.loss.plus(loss);
            known.times += 1;
            known.unpriced = known.unpriced.filter(|_| known.loss.requests == 0);
            return;
        }
        if self.story.breaks.len() >= MOST_BREAKS {
            self.story.more_breaks += 1;
            return;
        }
        let Changed {
            change,
            at,
            byte,
            before,
            after,
        } = changed;
        let place = sent.place.clone();
        self.story.breaks.push(Break {
            change,
            at,
            byte,
            before,
            after,
            request: number,
            place,
            loss,
            unpriced,
            times: 1,
        });
    }

    /// Records a change of settings. Returns the number of pieces that remain cached.
    fn other_settings(&mut self, sent: &Sent, kept: usize, relation: Relation) -> usize {
        if matches!(relation, Relation::Compacted | Relation::Earlier) || !self.story.has_bodies {
            return kept;
        }
        let names = self
            .settings
            .iter()
            .chain(&sent.settings)
            .map(|(name, _)| *name)
            .filter(|name| *name != super::WHOLE);
        let changed =
            { names }.find(|name| setting(&self.settings, name) != setting(&sent.settings, name));
        let Some(name) = changed else { return kept };
        // Tools and the system prompt have their own cache entries.
        let from = if self.wire.has_cache_breakpoints() {
            fixed(&self.pieces)
        } else {
            0
        };
        let has_messages_kept = !self.asks_for_breakpoints()
            || self
                .pieces
                .iter()
                .any(|piece| !piece.share.is_fixed() && piece.mark.is_some());
        if !has_messages_kept || from >= self.pieces.len() {
            return kept;
        }
        if kept > from {
            self.note(
                sent,
                Changed::named(Change::Setting(name), name.to_owned()),
                from,
            );
        }
        kept.min(from)
    }

    /// Records a change of the model, because each model has its own cache.
    fn moved(&mut self, sent: &Sent, to: &Arc<str>) {
        self.misses.end(&mut self.story.counted);
        let change = Change::Model {
            from: Arc::clone(&self.model),
            to: Arc::clone(to),
        };
        self.note(sent, Changed::named(change, "model".to_owned()), 0);
    }

    fn compacted(&mut self, sent: &Sent) {
        let (before, after) = (of_history(&self.pieces), of_history(&sent.pieces));
        let [before, after] = [before, after].map(|tokens| self.corrected(tokens));
        let request = self.number();
        self.story.growth.summary_at = Some(self.whole());
        self.totals.clear();
        if self.story.compactions.len() < MOST_OTHERS {
            self.story.compactions.push(Compaction {
                request,
                before,
                after,
            });
        }
    }

    /// Finds thinking that was dropped, sent to a different model, or separated from the content to
    /// which it is bound.
    fn look_for_thinking(
        &mut self,
        sent: &Sent,
        shared: usize,
        other_model: Option<&Arc<str>>,
        known: &Known,
    ) {
        let behind = shared.min(sent.pieces.len());
        let added = &sent.pieces[behind..];
        if let Some(to) = other_model
            && let Some(first) = sent.pieces[..behind].iter().find(|piece| piece.signed > 0)
        {
            let kind = ThinkingLossKind::OtherModel {
                from: Arc::clone(&self.model),
                to: Arc::clone(to),
            };
            self.lost_thinking(kind, sent, first.place());
        }
        if shared == self.pieces.len() {
            let answered: Vec<&Piece> = added.iter().take_while(|piece| is_answer(piece)).collect();
            if self.answer.is_signed
                && !answered.is_empty()
                && answered.iter().all(|piece| piece.signed == 0)
            {
                self.lost_thinking(ThinkingLossKind::Dropped, sent, answered[0].place());
            }
            return;
        }
        let was = self.pieces.get(shared).filter(|old| !old.share.is_fixed());
        if let (Some(old), Some(new)) = (was, added.first())
            && old.label == new.label
            && new.signed < old.signed
        {
            self.lost_thinking(ThinkingLossKind::Dropped, sent, new.place());
        }
        if known.binds_thinking
            && let Some(bound) = added.iter().find(|piece| piece.signed > 0)
        {
            self.lost_thinking(ThinkingLossKind::Unbound, sent, bound.place());
        }
    }

    fn lost_thinking(&mut self, kind: ThinkingLossKind, sent: &Sent, at: String) {
        let request = self.number();
        match self
            .story
            .thinking
            .iter_mut()
            .find(|known| known.kind == kind)
        {
            Some(known) => known.requests += 1,
            None => {
                self.story.thinking.push(ThinkingLoss {
                    kind,
                    request,
                    place: sent.place.clone(),
                    at,
                    requests: 1,
                });
            }
        }
    }

    /// Records messages that cause requests to be rejected, and the removal of such messages.
    fn flaws(&mut self, flaws: &[Flaw], pieces: &[Piece], sent: &Sent) {
        let number = self.story.requests;
        if self.answered == number {
            // The provider accepted these messages, and a recording outranks a rule.
            flaws.iter().take(MOST_COLLECTED).for_each(|flaw| {
                self.taken.insert((flaw.rule, pieces[flaw.piece].hash));
            });
            return;
        }
        let found: Vec<(&'static str, u64)> = flaws
            .iter()
            .map(|flaw| (flaw.rule, pieces[flaw.piece].hash))
            .collect();
        for (flaw, key) in flaws.iter().zip(&found) {
            if self.taken.contains(key) {
                continue;
            }
            if let Some(at) = self.poisoned.get(key) {
                let known = &mut self.story.poison[*at];
                known.requests += 1;
                known.mended = None;
                continue;
            }
            if self.story.poison.len() >= MOST_COLLECTED {
                continue;
            }
            self.poisoned.insert(*key, self.story.poison.len());
            self.story.poison.push(Poison {
                rule: flaw.rule,
                message: flaw.message.clone(),
                help: flaw.help.clone(),
                at: pieces[flaw.piece].place(),
                also: 0,
                request: number,
                place: sent.place.clone(),
                requests: 1,
                mended: None,
            });
        }
        for (key, at) in &self.poisoned {
            if !found.contains(key) {
                self.story.poison[*at].mended.get_or_insert(number);
            }
        }
    }

    /// Adds the flaws in the messages of a transcript, which is checked once, at its end.
    pub(super) fn add_flaws(&mut self, flaws: Vec<Flaw>) {
        for flaw in flaws.into_iter().take(MOST_COLLECTED) {
            let Some(piece) = self.pieces.get(flaw.piece) else {
                continue;
            };
            let request = self.since[flaw.piece];
            // The provider accepted this message.
            if request <= self.answered {
                continue;
            }
            self.story.poison.push(Poison {
                rule: flaw.rule,
                message: flaw.message,
                help: flaw.help,
                at: piece.place(),
                also: 0,
                request,
                place: self
                    .places
                    .get(request.saturating_sub(1))
                    .unwrap_or(&self.story.last)
                    .clone(),
                requests: self.story.requests + 1 - request,
                mended: None,
            });
        }
    }

    /// Ends the conversation, and returns its story.
    pub(super) fn end(mut self) -> Story {
        // A flaw has poisoned nothing if only one request contained it and later ones did not, or
        // if the provider accepted the message.
        let taken: Vec<usize> = self
            .poisoned
            .iter()
            .filter(|(key, _)| self.taken.contains(*key))
            .map(|(_, at)| *at)
            .collect();
        let mut at = 0;
        self.story.poison.retain(|poison| {
            at += 1;
            (poison.requests > 1 || poison.mended.is_none()) && !taken.contains(&(at - 1))
        });
        self.story.poison = by_cause(std::mem::take(&mut self.story.poison));
        self.misses.end(&mut self.story.counted);
        for at in 0..self.story.growth.steepest.len() {
            let tokens = self.story.growth.steepest[at].tokens;
            self.story.growth.steepest[at].tokens = self.corrected(tokens);
        }
        let (has_bodies, window) = (self.story.has_bodies, self.known.window);
        let factor = self.calibration.factor();
        self.story
            .growth
            .end(&self.totals, window, has_bodies, factor);
        self.story
    }
}

/// Merges poisoned messages that have the same error.
fn by_cause(all: Vec<Poison>) -> Vec<Poison> {
    let mut merged: Vec<Poison> = Vec::new();
    let mut causes: Vec<(&'static str, String, Option<usize>)> = Vec::new();
    for found in all {
        let cause = (found.rule, without_place(&found), found.mended);
        match causes.iter().position(|known| *known == cause) {
            Some(at) => {
                let known = &mut merged[at];
                let (also, requests) = (known.also + 1, known.requests.max(found.requests));
                if found.request < known.request {
                    *known = found;
                }
                (known.also, known.requests) = (also, requests);
            }
            None => {
                causes.push(cause);
                merged.push(found);
            }
        }
    }
    merged.truncate(MOST_POISON);
    merged
}

/// Returns an error's message and remedy without the message number.
fn without_place(found: &Poison) -> String {
    let pointer = format!("/{}", found.at.replace('[', "/").trim_end_matches(']'));
    let told = format!(
        "{}\n{}",
        found.message,
        found.help.as_deref().unwrap_or_default()
    );
    told.replace(&format!("{pointer}/"), "/…/")
        .replace(&format!("{pointer}`"), "/…`")
}

/// Returns the fingerprints of a history, each for a message together with everything before it.
pub(super) fn chain(wire: WireFormat, pieces: &[Piece]) -> Vec<u64> {
    let mut links = Vec::new();
    for piece in &pieces[fixed(pieces)..] {
        links.push(chained(
            links.last().copied().unwrap_or_else(|| first_link(wire)),
            piece.hash,
        ));
    }
    links
}

/// A prediction of the number of tokens that the provider reads from its cache.
#[derive(Debug, Clone, Copy, Default)]
struct Prediction {
    /// The number of tokens that are read from the cache.
    tokens: u64,
    /// The pause before the request, in seconds.
    pause: Option<u64>,
    /// `true` if the pause is longer than the lifetime of the cache entry.
    is_expired: bool,
    is_hour: bool,
}

/// The number of most recent requests from which the pace is computed.
const PACE: usize = 10;

/// Returns the fingerprint of the setting with this name.
fn setting(settings: &[(&'static str, u64)], name: &str) -> Option<u64> {
    settings
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, value)| *value)
}

/// Returns the estimated number of tokens in some pieces.
fn estimated(pieces: &[Piece]) -> u64 {
    pieces.iter().map(|piece| piece.tokens).sum()
}

/// Returns the number of tokens in the history.
fn of_history(pieces: &[Piece]) -> u64 {
    estimated(&pieces[fixed(pieces)..])
}

fn by_share(pieces: &[Piece]) -> [u64; 4] {
    Share::ALL.map(|share| {
        pieces
            .iter()
            .filter(|piece| piece.share == share)
            .map(|piece| piece.tokens)
            .sum()
    })
}

/// Returns `true` for a point that a timeline keeps.
fn is_kept(point: &Point, stride: usize) -> bool {
    point.request.is_multiple_of(stride) || point.request == 1
}

fn marks(pieces: &[Piece]) -> Vec<(usize, Mark)> {
    pieces
        .iter()
        .enumerate()
        .filter_map(|(at, piece)| Some((at, piece.mark?)))
        .collect()
}

fn steepest(steps: &mut Vec<Step>, piece: &Piece, request: usize) {
    let at = steps.partition_point(|step| step.tokens >= piece.tokens);
    if at < MOST_STEPS && piece.tokens > 0 {
        let Piece { share, tokens, .. } = *piece;
        steps.insert(
            at,
            Step {
                request,
                at: piece.place(),
                share,
                label: Arc::clone(&piece.label),
                tokens,
            },
        );
        steps.truncate(MOST_STEPS);
    }
}
