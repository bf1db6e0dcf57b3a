//! The delays before retries.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use reqwest::header::HeaderMap;

use crate::world::Clock;

/// The number of retries for a request that fails before its answer begins, and the delays between
/// them.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    /// The number of retries after the first attempt.
    pub retries: usize,
    /// The first delay. Each further delay is twice as long, with jitter.
    pub min_delay: Duration,
    /// The maximum delay, unless the server asks for a longer one.
    pub max_delay: Duration,
    /// The maximum delay that a server may ask for. If it asks for a longer one, the request fails
    /// at once with an error that contains the delay.
    pub max_retry_after: Duration,
}

impl Default for RetryPolicy {
    /// Returns four retries with delays of 7.5 to 15 seconds in total. A server may ask for delays
    /// of up to two minutes, as in OpenAI's SDK (`openai` 3.54, `_base_client.py`).
    fn default() -> RetryPolicy {
        RetryPolicy {
            retries: 4,
            min_delay: Duration::from_millis(500),
            max_delay: Duration::from_mins(1),
            max_retry_after: Duration::from_mins(2),
        }
    }
}

impl RetryPolicy {
    /// Returns a policy without any retries.
    pub fn never() -> RetryPolicy {
        RetryPolicy {
            retries: 0,
            ..RetryPolicy::default()
        }
    }
}

/// The delays between the attempts of one request.
pub(crate) struct Backoff {
    delays: ExponentialBackoff,
    max_retry_after: Duration,
}

impl Backoff {
    pub(crate) fn new(policy: &RetryPolicy) -> Backoff {
        let delays = ExponentialBuilder::default()
            .with_jitter()
            .with_min_delay(policy.min_delay)
            .with_max_delay(policy.max_delay)
            .with_max_times(policy.retries);
        Backoff {
            delays: delays.build(),
            max_retry_after: policy.max_retry_after,
        }
    }

    /// Returns the next delay: the one that the server asks for, or our own if it asks for none or
    /// zero. `None` if no retries are left, or if the server asks for more than the limit.
    pub(crate) fn next(&mut self, retry_after: Option<Duration>) -> Option<Duration> {
        let own = self.delays.next()?;
        let delay = retry_after.filter(|wish| !wish.is_zero()).unwrap_or(own);
        (retry_after.is_none() || delay <= self.max_retry_after).then_some(delay)
    }
}

/// Returns the delay in the server's headers: `retry-after-ms`, which the SDKs of Anthropic and
/// OpenAI read first, or `Retry-After`, which is either a number of seconds, possibly fractional,
/// or a date (RFC 9110, 10.2.3). A date is relative to the answer's own `Date` or, if that is
/// missing, to the clock.
pub(crate) fn retry_after(headers: &HeaderMap, clock: Option<&dyn Clock>) -> Option<Duration> {
    let milliseconds =
        text(headers, "retry-after-ms").and_then(|number| number.parse::<f64>().ok());
    if let Some(wish) = milliseconds.and_then(|number| seconds(number / 1000.0)) {
        return Some(wish);
    }
    let wish = text(headers, "retry-after")?;
    if let Ok(number) = wish.parse() {
        return seconds(number);
    }
    let at = httpdate::parse_http_date(wish).ok()?;
    let answered = text(headers, "date").and_then(|date| httpdate::parse_http_date(date).ok());
    let now = answered.or_else(|| Some(clock?.now()))?;
    // A date in the past means no delay.
    Some(at.duration_since(now).unwrap_or_default())
}

/// Returns the value of a header, without surrounding spaces.
fn text<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    Some(headers.get(name)?.to_str().ok()?.trim())
}

/// Parses a delay in Google's notation (`google.protobuf.Duration` in JSON), such as `34s` or
/// `1.5s`.
pub(crate) fn delay(text: &str) -> Option<Duration> {
    seconds(text.trim().strip_suffix('s')?.parse().ok()?)
}

/// Returns a number of seconds as a duration, if it is valid.
fn seconds(number: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(number).ok()
}

#[cfg(test)]
mod tests {
    use reqwest::header::{HeaderName, HeaderValue};

    use super::*;

    const NOON: &str = "Sun, 22 Nov 2026 12:00:00 GMT";

    fn told(headers: &[(&'static str, &str)], clock: Option<&dyn Clock>) -> Option<Duration> {
        retry_after(
            &headers
                .iter()
                .map(|(name, value)| {
                    (
                        HeaderName::from_static(name),
                        HeaderValue::from_str(value).expect("legal"),
                    )
                })
                .collect(),
            clock,
        )
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let later = "Sun, 22 Nov 2026 12:00:07 GMT";
        assert_eq!(
            told(&[("retry-after", "3")], None),
            Some(Duration::from_secs(3))
        );
        assert_eq!(
            told(&[("retry-after", "1.5")], None),
            Some(Duration::from_millis(1500))
        );
        assert_eq!(
            told(&[("retry-after", later), ("date", NOON)], None),
            Some(Duration::from_secs(7))
        );
        assert_eq!(
            told(&[("retry-after", NOON), ("date", later)], None),
            Some(Duration::ZERO)
        );
        for odd in ["soon", "-1", "inf", "NaN", "1e300"] {
            assert_eq!(told(&[("retry-after", odd)], None), None, "{odd}");
        }
        assert_eq!(told(&[("date", NOON)], None), None);
    }

    #[test]
    fn milliseconds_come_first() {
        assert_eq!(
            told(&[("retry-after-ms", "250"), ("retry-after", "3")], None),
            Some(Duration::from_millis(250))
        );
        assert_eq!(
            told(&[("retry-after-ms", "soon"), ("retry-after", "3")], None),
            Some(Duration::from_secs(3))
        );
    }

    #[test]
    fn google_writes_its_unit() {
        assert_eq!(delay("34.5s"), Some(Duration::from_millis(34_500)));
        assert_eq!([delay("34"), delay("-1s"), delay("s")], [None; 3]);
    }

    #[test]
    fn a_date_without_another_counts_from_the_clock() {
        struct Stopped;
        impl Clock for Stopped {
            fn now(&self) -> std::time::SystemTime {
                httpdate::parse_http_date(NOON).expect("a date")
            }
        }
        let at = [("retry-after", "Sun, 22 Nov 2026 12:00:09 GMT")];
        assert_eq!(told(&at, Some(&Stopped)), Some(Duration::from_secs(9)));
        assert_eq!(told(&at, None), None);
    }

    #[test]
    fn delays_grow_to_a_limit_and_end() {
        let (min_delay, max_delay) = (Duration::from_secs(1), Duration::from_secs(2));
        let policy = RetryPolicy {
            retries: 3,
            min_delay,
            max_delay,
            max_retry_after: Duration::from_mins(2),
        };
        let mut backoff = Backoff::new(&policy);
        let first = backoff.next(None).expect("three are left");
        assert!(first >= Duration::from_secs(1) && first <= Duration::from_secs(2));
        assert_eq!(
            backoff.next(Some(Duration::from_mins(2))),
            Some(Duration::from_mins(2))
        );
        assert!(
            backoff
                .next(Some(Duration::ZERO))
                .is_some_and(|delay| delay >= Duration::from_secs(1))
        );
        assert_eq!(backoff.next(None), None);
        assert_eq!(
            Backoff::new(&policy).next(Some(Duration::from_secs(121))),
            None
        );
    }
}
