//! Cache hits that were predicted, but that the provider did not report, and the lifetimes of cache
//! entries.

use super::story::{Counted, Expired, Missed};
use crate::provider::{Server, WireFormat};

/// The maximum number of requests that are listed.
const MOST_LISTED: usize = 200;

/// The misses of a conversation with one model.
#[derive(Default)]
pub(super) struct Misses {
    /// `true` if an answer has reported cached tokens, which shows that the server caches and
    /// reports it.
    has_cached: bool,
    /// The misses before the first answer that reported cached tokens.
    missed: Option<Missed>,
    expired: Option<Expired>,
}

impl Misses {
    /// Notes that an answer reported cached tokens. Earlier misses are then added to the counts,
    /// unless the server caches only at breakpoints and it is unknown whether the requests had any
    /// breakpoints.
    pub(super) fn begin(&mut self, counted: &mut Counted, has_unknown_breakpoints: bool) {
        if self.has_cached {
            return;
        }
        self.has_cached = true;
        let (missed, expired) = (self.missed.take(), self.expired.take());
        if !has_unknown_breakpoints {
            missed
                .into_iter()
                .for_each(|missed| add(&mut counted.missed, missed));
            expired
                .into_iter()
                .for_each(|expired| add_expired(&mut counted.expired, expired));
        }
    }

    /// Adds a miss. `is_expired` is `true` if the cache entry expired in the pause before the
    /// request.
    pub(super) fn add(&mut self, counted: &mut Counted, missed: Missed, is_expired: bool) {
        let (all_missed, all_expired) = match self.has_cached {
            true => (&mut counted.missed, &mut counted.expired),
            false => (&mut self.missed, &mut self.expired),
        };
        match missed.pause.filter(|_| is_expired) {
            None => add(all_missed, missed),
            Some(pause) => {
                let Missed {
                    request,
                    requests,
                    loss,
                    ..
                } = missed;
                let expired = Expired {
                    request,
                    pause,
                    requests,
                    loss,
                };
                add_expired(all_expired, expired);
            }
        }
    }

    /// Ends the requests to a model. If no answer reported cached tokens, the server may not cache,
    /// or may not report it.
    pub(super) fn end(&mut self, counted: &mut Counted) {
        let missed = self.missed.take().map_or(0, |missed| missed.loss.requests);
        let expired = self
            .expired
            .take()
            .map_or(0, |expired| expired.loss.requests);
        counted.uncached += missed + expired;
        self.has_cached = false;
    }
}

fn add(all: &mut Option<Missed>, more: Missed) {
    match all {
        None => *all = Some(more),
        Some(all) => {
            all.loss = all.loss.plus(more.loss);
            list(&mut all.requests, more.requests);
        }
    }
}

fn add_expired(all: &mut Option<Expired>, more: Expired) {
    match all {
        None => *all = Some(more),
        Some(all) => {
            all.loss = all.loss.plus(more.loss);
            all.pause = all.pause.max(more.pause);
            list(&mut all.requests, more.requests);
        }
    }
}

fn list(all: &mut Vec<usize>, more: Vec<usize>) {
    all.extend(more);
    all.truncate(MOST_LISTED);
}

/// The setting of OpenAI that determines the lifetime of cache entries.
pub(super) const RETENTION: &str = "prompt_cache_retention";

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// The lifetime of a cache entry after its last use, in seconds. Sources: the pages listed for
/// `SHORTEST_CACHED`, and <https://platform.openai.com/docs/api-reference/responses/create> for the
/// models with only one retention.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Life {
    /// The time after which an entry may be gone.
    pub(super) shortest: u64,
    /// The time after which an entry is certainly gone.
    pub(super) longest: u64,
}

impl Life {
    fn exactly(life: u64) -> Life {
        Life {
            shortest: life,
            longest: life,
        }
    }

    /// Returns the lifetime of a server's cache entries: a day if nothing is published. OpenAI
    /// keeps entries in memory for 5 to 10 minutes and at most an hour, or keeps them for up to a
    /// day. The request or the model determines which, or else a setting of the organization. The
    /// model is `None` for an agent's own file, because subscriptions keep entries in memory
    /// (openai/codex#18130).
    pub(super) fn of(
        wire: WireFormat,
        server: Server,
        model: Option<&str>,
        retention: Option<&str>,
        is_hour: bool,
    ) -> Life {
        if wire.has_cache_breakpoints() {
            return Life::exactly(if is_hour { HOUR } else { HOUR / 12 });
        }
        let is_of_openai = matches!(server, Server::OpenAi | Server::ChatGpt);
        if !is_of_openai || retention == Some("24h") || model.is_some_and(is_kept_for_a_day) {
            return Life::exactly(DAY);
        }
        Life {
            shortest: HOUR / 12,
            longest: HOUR,
        }
    }
}

/// Returns `true` for GPT-5.5 and later models, for which the only retention is `24h`.
fn is_kept_for_a_day(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or_default();
    let Some(version) = name.strip_prefix("gpt-") else {
        return false;
    };
    let version = version.split('-').next().unwrap_or_default();
    let (major, minor) = version.split_once('.').unwrap_or((version, "0"));
    let version = major.parse::<u32>().ok().zip(minor.parse::<u32>().ok());
    version.is_some_and(|version| version >= (5, 5))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_life_of_a_cache_is_the_published_one() {
        let of = |model: &str, retention: Option<&str>| {
            let life = Life::of(
                WireFormat::OpenAiResponses,
                Server::OpenAi,
                Some(model),
                retention,
                false,
            );
            (life.shortest, life.longest)
        };
        assert_eq!(of("gpt-5.3-codex", None), (300, 3600));
        assert_eq!(of("gpt-4o", Some("in_memory")), (300, 3600));
        assert_eq!(of("gpt-5.1", Some("24h")), (DAY, DAY));
        assert_eq!(of("openai/gpt-5.6-sol", None), (DAY, DAY));
        assert_eq!(of("gpt-6", None), (DAY, DAY));
        let claude = |is_hour: bool| {
            Life::of(
                WireFormat::AnthropicMessages,
                Server::Anthropic,
                None,
                None,
                is_hour,
            )
            .shortest
        };
        assert_eq!((claude(false), claude(true)), (300, 3600));
    }
}
