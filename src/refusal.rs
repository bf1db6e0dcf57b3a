//! The refusal dictionary: sentences that providers use to reject requests.
//!
//! Input: the text of an answer, in any wrapping, such as JSON, a log line, or an SDK's message.
//! Output: [`Explanation`]s, each with the matching [`Refusal`], the values of its holes, and the
//! path that the sentence names. The sentences are data: `refusals/` contains one file per
//! provider. This module refers to rules only by their codes, and does not check bodies.

mod pattern;
mod columns;
mod data;
mod place;
mod explanation;
mod wrapping;
mod said;
mod logged;

use data::{CODES, Hint, SHARED};
pub use data::{Provider, Reason, Refusal, Unruled};
pub use explanation::{Basis, Explanation, Stated};
#[cfg(feature = "cli")]
pub(crate) use logged::is_request;
pub use logged::{exchanges, requests};
pub use said::Exchange;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use pattern::{Found, Pattern, Plain};

use crate::provider::WrongPath;

/// All known sentences.
#[derive(Debug)]
pub struct Dictionary {
    providers: Vec<Provider>,
    /// Finds the longest words of every sentence in one pass. Only sentences whose longest words
    /// occur in a string are examined further.
    words: AhoCorasick,
    /// The pattern for each of the longest words.
    places: Vec<Place>,
}

/// A pattern in the dictionary.
#[derive(Debug, Clone, Copy)]
struct Place {
    provider: usize,
    refusal: usize,
    /// The index of a shorter form; `None` for the whole sentence.
    shorter: Option<usize>,
}

static BUNDLED: LazyLock<Dictionary> = LazyLock::new(|| Dictionary::new(data::bundled()));

impl Dictionary {
    fn new(providers: Vec<Provider>) -> Dictionary {
        let places = places(&providers);
        let words: Vec<&str> = places
            .iter()
            .map(|place| pattern_at(&providers, *place).longest_words())
            .collect();
        let words =
            AhoCorasick::new(words).expect("an automaton for a few hundred sentences is small");
        Dictionary {
            providers,
            words,
            places,
        }
    }

    /// Returns the dictionary that is bundled with the program.
    pub fn bundled() -> &'static Dictionary {
        &BUNDLED
    }

    /// Returns the providers, sorted by the names of their files.
    pub fn providers(&self) -> &[Provider] {
        &self.providers
    }

    /// Returns the sentences of the refusals that a rule predicts, each with its provider.
    pub fn of_rule<'d>(
        &'d self,
        code: &'d str,
    ) -> impl Iterator<Item = (&'d Provider, &'d Refusal)> {
        let pairs = self
            .providers
            .iter()
            .flat_map(|provider| provider.refusals.iter().map(move |it| (provider, it)));
        pairs.filter(move |(_, refusal)| refusal.reason == Reason::Rule(code.to_owned()))
    }

    /// Finds the known sentences in a string. Longer sentences take precedence, and no sentence
    /// inside another one is returned.
    ///
    /// ```
    /// use reqc::refusal::{Dictionary, Reason};
    ///
    /// let answer = r#"{"type": "error", "error": {"message": "messages: text content blocks must be non-empty"}}"#;
    /// let found = Dictionary::bundled().explain(answer);
    /// assert_eq!(found[0].provider.name, "Anthropic");
    /// assert_eq!(found[0].refusal.reason, Reason::Rule("schema/invalid-value".to_owned()));
    /// ```
    pub fn explain(&'static self, text: &str) -> Vec<Explanation> {
        let text = &*wrapping::without_line_starts(text);
        let text = &*wrapping::without_frames(text);
        let text = &*wrapping::without_parsers(text);
        let text = &*wrapping::without_alternatives(text);
        let (lower, plain) = (text.to_lowercase(), Plain::of(text));
        let hints: Vec<Hint> = self
            .providers
            .iter()
            .map(|provider| provider.hint(&lower, &plain))
            .collect();
        let candidates = said::candidates(text);
        let all = self.explain_all(&candidates, &hints, None);
        let (mut around, mut explained) = all
            .into_iter()
            .partition::<Vec<_>, _>(|it| it.refusal.wraps);
        if explained.len() <= 1 && text.len() <= LONGEST_NEAR {
            let cut = self
                .cut(&candidates, &hints, explained.first())
                .filter(|it| explained.iter().all(|known| it.goes_beyond(known)))
                .filter(|it| !self.is_whole(it, &around, &candidates, &hints));
            explained = cut.map_or(explained, |it| vec![it]);
        }
        let status = said::status(text);
        if let [general] = explained.as_slice() {
            let behind = self.behind(general, &candidates, &hints, status);
            explained = behind.map_or(explained, |it| vec![it]);
        }
        // If one sentence names the mistake, sentences that do not say what is wrong add nothing.
        if explained.iter().any(Explanation::has_rule) {
            explained.retain(|it| !it.is_unsaid());
        }
        explained.sort_by_key(Explanation::is_unsaid);
        if explained.is_empty() {
            explained.extend(self.wrong_path(text, status));
        }
        if explained.is_empty() {
            match self.general(SHARED, &candidates, &hints, status) {
                Some(shared) if shared.refusal.wraps => around.push(shared),
                shared => explained.extend(shared),
            }
        }
        if explained.is_empty() && !around.is_empty() {
            let inside = self.phrase_inside(text, status);
            explained = inside.map_or(around, |it| vec![it]);
        }
        if explained.is_empty() {
            let of_page = status.filter(|_| said::is_page(text));
            explained.extend(of_page.and_then(|it| self.of_sentence(&format!("HTTP {it} {PAGE}"))));
        }
        if explained.is_empty() {
            let around = self.general(CODES, &candidates, &hints, status);
            let better = match &around {
                Some(it) if it.refusal.wraps => self.phrase_inside(text, status),
                Some(it) if it.basis == Basis::Sentence => None,
                _ => self.phrase(text, status),
            };
            explained.extend(better.or(around));
        }
        if explained.is_empty() {
            explained.extend(self.status_or_nearest(text, &hints, status));
        }
        for it in &mut explained {
            it.status = status.map(i64::from).or(it.status);
            it.stated = Stated::of(it, text, status);
        }
        let mut told = HashSet::new();
        explained
            .retain(|it| it.says_where() || told.insert((&it.provider.id, &it.refusal.meaning)));
        match explained.as_slice() {
            [one] if one.path.is_none() => at_each(one, said::fields(text)),
            _ => explained,
        }
    }

    /// Finds the sentences in several strings. `general` is the general file to search; `None` for
    /// the files of providers.
    fn explain_all(
        &'static self,
        candidates: &[String],
        hints: &[Hint],
        general: Option<&str>,
    ) -> Vec<Explanation> {
        let mut explained: Vec<Explanation> = Vec::new();
        for candidate in candidates {
            if explained.len() >= MOST_EXPLAINED {
                break;
            }
            let plain = Plain::of(candidate);
            for explanation in self.explain_one(&plain, hints, general) {
                let joined = explained
                    .iter_mut()
                    .find(|known| explanation.is_less_joined_than(known));
                if let Some(joined) = joined {
                    joined.said = explanation.said;
                    continue;
                }
                let is_new = !explained.iter().any(|known| explanation.is_part_of(known));
                if is_new {
                    explained.retain(|known| !known.is_part_of(&explanation));
                    explained.push(explanation);
                }
            }
        }
        explained.sort_by_key(|it| std::cmp::Reverse(it.letters));
        explained
    }

    /// Finds a sentence that is cut off in the text. All sentences with the same beginning must
    /// have the same meaning, or at least the same rule. If a sentence is `known`, only longer ones
    /// that begin like it count.
    fn cut(
        &'static self,
        candidates: &[String],
        hints: &[Hint],
        known: Option<&Explanation>,
    ) -> Option<Explanation> {
        let begins_alike = |refusal: &&Refusal| {
            known.is_none_or(|it| it.refusal.pattern.beginning() == refusal.pattern.beginning())
        };
        let whole = candidates.last().map_or("", String::as_str);
        let texts: Vec<(Plain, bool)> = candidates
            .iter()
            .map(|text| (Plain::of(text), said::is_ended(whole, text)))
            .collect();
        let specific = self
            .providers
            .iter()
            .zip(hints)
            .filter(|(provider, _)| !provider.is_general());
        let mut best: Option<(usize, Hint, Explanation)> = None;
        let mut meanings = BTreeSet::new();
        for (provider, hint) in specific {
            for refusal in provider.refusals.iter().filter(begins_alike) {
                for (plain, is_ended) in &texts {
                    let Some(range) = refusal.pattern.find_cut(plain, *is_ended) else {
                        continue;
                    };
                    meanings.insert((refusal.reason.name(), &*refusal.meaning));
                    let is_better = best
                        .as_ref()
                        .is_none_or(|(length, known, _)| (range.len(), *hint) > (*length, *known));
                    if is_better {
                        let length = range.len();
                        let said = plain.text[range].to_owned();
                        let explanation = Explanation::of(provider, refusal, said, Basis::Sentence);
                        best = Some((length, *hint, explanation.named_if(hint.is_named)));
                    }
                }
            }
        }
        let (_, _, explanation) = best?;
        let reason = explanation.refusal.reason.name();
        let has_one_rule =
            explanation.has_rule() && meanings.iter().all(|(other, _)| *other == reason);
        (meanings.len() == 1 || has_one_rule).then_some(explanation)
    }

    /// Returns `true` if words that look like the truncated beginning of a sentence are in fact
    /// part of a complete sentence that a gateway or many servers use.
    fn is_whole(
        &'static self,
        cut: &Explanation,
        around: &[Explanation],
        candidates: &[String],
        hints: &[Hint],
    ) -> bool {
        let general = [SHARED, CODES].map(|file| self.explain_all(candidates, hints, Some(file)));
        around
            .iter()
            .chain(general.iter().flatten())
            .any(|whole| whole.said.contains(&cut.said))
    }

    /// Explains the words after a general sentence. The sentence itself does not say what is wrong,
    /// but a gateway or a server may have added the reason.
    fn behind(
        &'static self,
        general: &Explanation,
        candidates: &[String],
        hints: &[Hint],
        status: Option<u16>,
    ) -> Option<Explanation> {
        let is_full = general.letters == general.refusal.pattern.letters();
        if !general.is_unsaid() || !is_full || general.says_where() {
            return None;
        }
        let mut texts = candidates.iter().map(|it| Plain::of(it).text);
        let rest = texts.find_map(|text| {
            let (_, rest) = text.split_once(&general.said)?;
            Some(wrapping::behind(rest).to_owned())
        })?;
        let rest = [Some(rest).filter(|it| it.split(' ').count() >= FEWEST_BEHIND)?];
        let shared = self.general(SHARED, &rest, hints, status);
        let telling = shared.filter(|it| !it.refusal.wraps && !it.is_unsaid());
        let found = telling.or_else(|| self.first_phrase(&rest, wrapping::telling, status))?;
        // Here, text about the server is mostly advice, such as `try again`.
        if found.refusal.reason == Reason::Unruled(Unruled::Server) {
            return None;
        }
        Some(Explanation {
            said: format!("{}: {}", general.said, rest[0]),
            ..found
        })
    }

    /// Finds the best entry of a general file. Prefers entries that show what is wrong. Among the
    /// others, prefers codes to words that occur around any answer. Among equals, prefers the entry
    /// for the status.
    fn general(
        &'static self,
        file: &str,
        candidates: &[String],
        hints: &[Hint],
        status: Option<u16>,
    ) -> Option<Explanation> {
        let found = self.explain_all(candidates, hints, Some(file));
        found.into_iter().min_by_key(|it| {
            let is_unsaid = it.refusal.reason == Reason::Unruled(Unruled::Unsaid);
            let says_little = it.refusal.wraps || file == SHARED && is_unsaid;
            let is_outermost = it.refusal.wraps && !it.refusal.pattern.has_inner();
            (
                says_little,
                is_outermost,
                it.status != status.map(i64::from),
            )
        })
    }

    /// Finds the phrase that shows what an unknown sentence is about. The words around a message
    /// are searched only if they contain no message.
    fn phrase(&'static self, text: &str, status: Option<u16>) -> Option<Explanation> {
        let inside = self.phrase_inside(text, status);
        if inside.is_some() || text.len() > LONGEST_NEAR {
            return inside;
        }
        let mut messages = said::messages(text, status);
        messages.retain(|message| self.inner(message).is_empty());
        self.first_phrase(&messages, wrapping::without_status, status)
    }

    /// Finds the phrase that shows what an unknown sentence is about, without searching the words
    /// around messages.
    fn phrase_inside(&'static self, text: &str, status: Option<u16>) -> Option<Explanation> {
        if text.len() > LONGEST_NEAR {
            return None;
        }
        let messages = said::messages(text, status);
        let inner: Vec<String> = messages.iter().map(|it| self.inner(it)).collect();
        self.first_phrase(&inner, wrapping::telling, status)
    }

    /// Returns a message without the words that gateways and clients put around it.
    fn inner(&'static self, message: &str) -> String {
        let mut plain = Plain::of(wrapping::inner(message));
        let refusals = self.providers.iter().flat_map(|it| &it.refusals);
        for refusal in refusals.filter(|it| it.wraps) {
            if let Some(inner) = refusal.pattern.inner(&plain).map(Plain::of) {
                plain = inner;
            }
        }
        plain.text
    }

    /// Finds the first entry that has a phrase in one of the messages. The messages are searched in
    /// order, and the first match wins. `read` returns the part of a message that is searched.
    fn first_phrase(
        &'static self,
        messages: &[String],
        read: fn(&str) -> String,
        status: Option<u16>,
    ) -> Option<Explanation> {
        let provider = self.providers.iter().find(|it| it.is_of_phrases())?;
        messages.iter().find_map(|message| {
            let plain = Plain::of(&read(message));
            let mut fitting = provider
                .refusals
                .iter()
                .filter(|refusal| refusal.reason.fits(status) && refusal.is_for(status));
            let refusal = fitting.find(|refusal| refusal.pattern.has_phrase(&plain))?;
            let said = Plain::of(message).text.trim().to_owned();
            Some(Explanation {
                status: None,
                ..Explanation::of(provider, refusal, said, Basis::Words)
            })
        })
    }

    /// Finds a URL with a wrong path in a string about something that does not exist.
    fn wrong_path(&'static self, text: &str, status: Option<u16>) -> Option<Explanation> {
        let is_missing = match status {
            Some(status) => matches!(status, 404 | 405),
            None => text.to_lowercase().contains("not found"),
        };
        let mut words = text
            .split([' ', '\n', '"', '\'', '`', '(', ')', ',', '<', '>'])
            .filter(|word| is_missing && (word.starts_with('/') || word.contains("://")));
        let url = words.find(|word| WrongPath::of(word).is_some())?;
        let (path, _) = url.split_once('?').unwrap_or((url, ""));
        Some(Explanation {
            said: path.to_owned(),
            basis: Basis::Words,
            ..self.of_sentence(WRONG_PATH)?
        })
    }

    /// Returns the entry for an HTTP status; `None` if there is none.
    fn of_status(&'static self, status: u16) -> Option<Explanation> {
        self.of_sentence(&format!("HTTP {status}"))
    }

    /// Returns the entry of a general file with this sentence.
    fn of_sentence(&'static self, sentence: &str) -> Option<Explanation> {
        let general = self
            .providers
            .iter()
            .filter(|provider| provider.is_general());
        let mut entries = general.flat_map(|provider| {
            provider
                .refusals
                .iter()
                .map(move |refusal| (provider, refusal))
        });
        let (provider, refusal) = entries.find(|(_, refusal)| refusal.sentence == sentence)?;
        let said = sentence.trim_end_matches(PAGE).trim_end().to_owned();
        Some(Explanation::of(provider, refusal, said, Basis::Code))
    }

    /// Returns the entry for the status of an unknown message. If the status does not show what is
    /// wrong, returns the most similar sentence.
    fn status_or_nearest(
        &'static self,
        text: &str,
        hints: &[Hint],
        status: Option<u16>,
    ) -> Option<Explanation> {
        let of_status = status.and_then(|status| self.of_status(status));
        match of_status {
            Some(known) if known.refusal.reason != Reason::Unruled(Unruled::Unsaid) => Some(known),
            unsaid if text.len() <= LONGEST_NEAR => self.nearest(text, hints).or(unsaid),
            unsaid => unsaid,
        }
    }

    /// Finds the sentence that is most similar to a string; `None` if none is similar enough.
    fn nearest(&'static self, text: &str, hints: &[Hint]) -> Option<Explanation> {
        let mut best: Option<(usize, Explanation)> = None;
        for candidate in said::candidates(text) {
            let plain = Plain::of(&candidate);
            let known = self
                .providers
                .iter()
                .zip(hints)
                .filter(|(provider, _)| !provider.is_general());
            for (provider, hint) in known {
                for refusal in &provider.refusals {
                    let nearness = refusal.pattern.nearness(&plain);
                    let rank = nearness + usize::from(hint.is_named);
                    let is_better = best.as_ref().is_none_or(|(known, _)| rank > *known);
                    if nearness >= NEAR && is_better && !refusal.quotes_json() {
                        let said = plain.text.trim().to_owned();
                        let near = Explanation::of(provider, refusal, said, Basis::Near);
                        best = Some((rank, near.named_if(hint.is_named)));
                    }
                }
            }
        }
        best.map(|(_, explanation)| explanation)
    }

    /// Finds the sentences in one candidate. `hints` are the hints of the whole text, by provider.
    fn explain_one(
        &'static self,
        plain: &Plain,
        hints: &[Hint],
        general: Option<&str>,
    ) -> Vec<Explanation> {
        let mut fitting: Vec<Hit> = Vec::new();
        let met: BTreeSet<_> = self
            .words
            .find_overlapping_iter(plain.folded())
            .map(|it| it.pattern().as_usize())
            .collect();
        for place in met.into_iter().map(|met| self.places[met]) {
            let provider = &self.providers[place.provider];
            if provider.general() != general {
                continue;
            }
            let pattern = pattern_at(&self.providers, place);
            // A shortened sentence matches only if nothing follows it, because other words must not
            // replace the omitted ones. The same applies to a short sentence that many servers use.
            let may_go_on = place.shorter.is_none() && (general.is_none() || pattern.may_go_on());
            let found = pattern.find_all(plain, MOST_EXPLAINED);
            let whole = found
                .into_iter()
                .filter(|found| may_go_on || pattern::is_over(plain, found.range.end));
            let (refusal, hint) = (&provider.refusals[place.refusal], hints[place.provider]);
            fitting.extend(whole.map(|found| Hit {
                provider,
                refusal,
                letters: pattern.letters(),
                is_whole: place.shorter.is_none(),
                found,
                hint,
            }));
        }
        // Words around a message may match across the message. Sentences inside it take precedence.
        if !fitting.iter().all(|hit| hit.refusal.wraps) {
            fitting.retain(|hit| !hit.refusal.wraps);
        }
        let mut explained = Vec::new();
        while let Some(best) = fitting
            .iter()
            .max_by_key(|hit| hit.letters)
            .map(|hit| hit.letters)
        {
            let near: Vec<&Hit> = fitting
                .iter()
                .filter(|hit| hit.letters * 10 >= best * 8)
                .collect();
            // Of equal hits, the first in the text is chosen.
            let chosen = near
                .iter()
                .rev()
                .max_by_key(|hit| hit.rank())
                .expect("one is the best");
            explained.push(chosen.explanation(plain, &fitting));
            let taken = chosen.found.range.clone();
            fitting.retain(|hit| {
                hit.found.range.end <= taken.start || hit.found.range.start >= taken.end
            });
        }
        explained
    }
}

/// Returns an explanation for each field of the body that the answer names next to its message.
fn at_each(explanation: &Explanation, fields: Vec<String>) -> Vec<Explanation> {
    if fields.is_empty() {
        return vec![explanation.clone()];
    }
    fields
        .into_iter()
        .take(MOST_EXPLAINED)
        .map(|field| Explanation {
            path: Some(field),
            is_field: true,
            ..explanation.clone()
        })
        .collect()
}

fn pattern_at(providers: &[Provider], place: Place) -> &Pattern {
    let refusal = &providers[place.provider].refusals[place.refusal];
    place
        .shorter
        .map_or(&refusal.pattern, |at| &refusal.shorter[at])
}

/// Returns all patterns to search for: the sentences, and the shorter forms that belong to only one
/// sentence.
fn places(providers: &[Provider]) -> Vec<Place> {
    let mut places = Vec::new();
    let with_sentences = providers
        .iter()
        .enumerate()
        .filter(|(_, provider)| !provider.is_of_phrases());
    for (provider, known) in with_sentences {
        for (refusal, entry) in known.refusals.iter().enumerate() {
            let forms = std::iter::once(None).chain((0..entry.shorter.len()).map(Some));
            places.extend(forms.map(|shorter| Place {
                provider,
                refusal,
                shorter,
            }));
        }
    }
    let mut sentences: HashMap<String, BTreeSet<(&str, String)>> = HashMap::new();
    for place in &places {
        let refusal = &providers[place.provider].refusals[place.refusal];
        sentences
            .entry(pattern_at(providers, *place).shown())
            .or_default()
            .insert((refusal.reason.name(), refusal.pattern.shown()));
    }
    places.retain(|place| {
        place.shorter.is_none() || sentences[&pattern_at(providers, *place).shown()].len() == 1
    });
    places
}

/// The sentence of the entry for URLs that do not exist on a server.
const WRONG_PATH: &str = "HTTP 404 /v1/v1";

/// The words that mark entries for statuses whose answer is a web page.
const PAGE: &str = "<!DOCTYPE html>";

/// The maximum length, in bytes, of a string that is searched for similar sentences and for
/// phrases. Every sentence and phrase is compared with every line.
const LONGEST_NEAR: usize = 16_000;

/// The minimum number of words after a general sentence that can add information.
const FEWEST_BEHIND: usize = 3;

/// The maximum number of sentences reported for one string.
const MOST_EXPLAINED: usize = 50;

/// The share of a sentence that a similar string must contain, in percent.
const NEAR: usize = 65;

/// A sentence that matches a string.
struct Hit {
    provider: &'static Provider,
    refusal: &'static Refusal,
    /// The number of matching letters in the sentence.
    letters: usize,
    /// `false` if only a shorter form of the sentence matches.
    is_whole: bool,
    found: Found,
    hint: Hint,
}

impl Hit {
    /// Returns the sort key of a match, most important first: how strongly the text points to the
    /// provider, the number of letters that match, whether the whole sentence matches, the width of
    /// the match, the number of the provider's known sentences (which shows how common it is), and
    /// the length of the fixed words with punctuation.
    fn rank(&self) -> (Hint, usize, bool, usize, usize, usize) {
        let (width, known) = (self.found.range.len(), self.provider.refusals.len());
        let fixed = self.refusal.pattern.fixed();
        (self.hint, self.letters, self.is_whole, width, known, fixed)
    }

    fn explanation(&self, plain: &Plain, fitting: &[Hit]) -> Explanation {
        let mut also: Vec<&'static Provider> = Vec::new();
        for hit in fitting {
            let is_same = hit.letters == self.letters && hit.found.range == self.found.range;
            let is_new = hit.provider.id != self.provider.id
                && !also.iter().any(|it| it.id == hit.provider.id);
            if is_same && is_new {
                also.push(hit.provider);
            }
        }
        Explanation {
            provider: self.provider,
            refusal: self.refusal,
            said: self.found.shown(plain).to_owned(),
            holes: self.found.named(plain),
            path: self.found.path(plain),
            is_field: false,
            basis: match self.provider.is_code(self.refusal) {
                true => Basis::Code,
                false => Basis::Sentence,
            },
            status: self.refusal.status,
            stated: Stated::Nothing,
            is_named: self.hint.is_named,
            also,
            empty: self.found.empty_name(plain),
            letters: self.letters,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the cause that a reason implies: the body, the account, the server or the content.
    fn blamed(reason: &Reason) -> &'static str {
        match reason {
            Reason::Rule(_) | Reason::Unruled(Unruled::Gap | Unruled::Format | Unruled::Unsaid) => {
                "body"
            }
            Reason::Unruled(Unruled::Auth | Unruled::Quota) => "account",
            Reason::Unruled(Unruled::Server | Unruled::Transport) => "server",
            Reason::Unruled(Unruled::Content) => "content",
        }
    }

    /// Searches known sentences for phrases, as if the sentences were unknown.
    #[test]
    fn phrases_agree_with_the_sentences_that_are_known() {
        let dictionary = Dictionary::bundled();
        let (mut known, mut same, mut other) = (0, 0, 0);
        for provider in dictionary.providers().iter().filter(|it| !it.is_general()) {
            for refusal in &provider.refusals {
                known += 1;
                let status = refusal.status.and_then(|it| u16::try_from(it).ok());
                let text = refusal.sentence.replace(['{', '}'], "'");
                match dictionary.phrase(&text, status) {
                    Some(it) if blamed(&it.refusal.reason) == blamed(&refusal.reason) => same += 1,
                    Some(_) => other += 1,
                    None => {}
                }
            }
        }
        let told = format!("{known} known: {same} alike, {other} otherwise");
        assert!((same + other) * 100 >= known * 75, "{told}");
        // Half of the differing sentences are about limits of self-hosted servers, which a body can
        // also show.
        assert!(same * 100 >= (same + other) * 80, "{told}");
    }

    #[test]
    fn what_is_said_beside_a_status_counts_more_than_its_name() {
        let reason = |text: &str| {
            Dictionary::bundled().explain(text)[0]
                .refusal
                .reason
                .clone()
        };
        for (text, expected) in [
            (
                "401 Unauthorized - Model odd-1 not supported.",
                Unruled::Server,
            ),
            ("403 Forbidden: odd subscription", Unruled::Auth),
            ("401 Unauthorized: odd", Unruled::Auth),
            (
                "500 <!DOCTYPE html><meta charSet=\"utf-8\"/><title>500: Internal Server Error</title>",
                Unruled::Server,
            ),
            (
                "400 an_odd_format must be 'float' or 'base64'",
                Unruled::Unsaid,
            ),
        ] {
            assert_eq!(reason(text), Reason::Unruled(expected), "{text}");
        }
    }

    #[test]
    fn an_echo_without_a_reason_is_not_reported() {
        let text = "failed: messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: \
                    toolu_1. Each `tool_use` block must have a corresponding `tool_result` block in the next message.\n\
                    Model call failed: \"400 400 Bad Request\\n\"";
        let found = Dictionary::bundled().explain(text);
        let codes: Vec<_> = found.iter().map(|it| it.refusal.reason.name()).collect();
        assert_eq!(codes, ["protocol/unanswered-call"]);
    }

    #[test]
    fn what_a_text_does_not_contain_is_only_usual() {
        let explained = |text: &str| {
            let it = &Dictionary::bundled().explain(text)[0];
            (it.status, it.stated)
        };
        let message = "messages: text content blocks must be non-empty";
        assert_eq!(explained(message), (Some(400), Stated::Nothing));
        assert_eq!(
            explained(&format!("400 invalid_request_error: {message}")),
            (Some(400), Stated::StatusAndKind)
        );
    }

    #[test]
    fn a_log_wraps_a_message_with_times() {
        let text = "2025-04-04 08:21:16 ERROR 400 messages: text content blocks\n\
                    2025-04-04 08:21:16       must be non-empty\n";
        assert_eq!(
            Dictionary::bundled().explain(text)[0].said,
            "messages: text content blocks must be non-empty"
        );
    }

    #[test]
    fn a_url_with_a_wrong_path_is_what_does_not_exist() {
        let rule = |text: &str| match &Dictionary::bundled().explain(text).first()?.refusal.reason {
            Reason::Rule(code) => Some(code.clone()),
            Reason::Unruled(_) => None,
        };
        let wrong = Some("lint/wrong-path".to_owned());
        for text in [
            "INFO: 127.0.0.1:59456 - \"POST /api/v1/v1/messages?beta=true HTTP/1.1\" 404 Not Found",
            "Error [AI_APICallError]: Not Found\n  url: 'https://api.anthropic.com/messages',",
        ] {
            assert_eq!(rule(text), wrong, "{text}");
        }
        for text in [
            "\"POST /api/v1/messages HTTP/1.1\" 404 Not Found",
            "\"POST /v1/v1/messages HTTP/1.1\" 529 Overloaded",
        ] {
            assert_ne!(rule(text), wrong, "{text}");
        }
    }

    #[test]
    fn phrases_are_words_of_their_own() {
        let about = |text: &str| {
            let found = Dictionary::bundled().phrase(text, None)?;
            Some(
                found
                    .refusal
                    .meaning
                    .split([':', ','])
                    .next()
                    .unwrap_or_default()
                    .to_owned(),
            )
        };
        let image = about("400 this odd image was unwelcome").expect("a phrase");
        assert_eq!(about("400 odd: 'image' was unwelcome"), Some(image));
        for text in [
            "400 gpt-image-2 was unwelcome",
            "400 odd_image was unwelcome",
            "400 see https://a.example/image for more",
            "400 imagery was unwelcome",
        ] {
            assert_eq!(about(text), None, "{text}");
        }
        assert!(
            about("Error code: 400 - {'error': {'message': 'odd image', 'param': None}}").is_some()
        );
        // Limits never concern the body, regardless of a message's wording.
        assert!(
            Dictionary::bundled()
                .phrase("odd image", Some(429))
                .is_none()
        );
    }
}
