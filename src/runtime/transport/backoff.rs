//! How long to wait before a request is tried again.

use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use reqwest::header::HeaderValue;

use crate::world::Clock;

/// When and how often a request that failed before its answer is sent again.
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    /// How often, after the first attempt.
    pub retries: usize,
    /// The first delay; each further one doubles, with jitter.
    pub min_delay: Duration,
    /// The longest delay, also if the server asks for more.
    pub max_delay: Duration,
}

impl Default for RetryPolicy {
    /// Four retries over at least half a minute at worst; a server may ask for up to a minute each.
    fn default() -> RetryPolicy {
        RetryPolicy { retries: 4, min_delay: Duration::from_millis(500), max_delay: Duration::from_mins(1) }
    }
}

impl RetryPolicy {
    /// No retries.
    pub fn never() -> RetryPolicy {
        RetryPolicy { retries: 0, ..RetryPolicy::default() }
    }
}

/// The delays of one request.
pub(crate) struct Backoff {
    delays: ExponentialBackoff,
    max_delay: Duration,
}

impl Backoff {
    pub(crate) fn new(policy: &RetryPolicy) -> Backoff {
        let delays = ExponentialBuilder::default()
            .with_jitter()
            .with_min_delay(policy.min_delay)
            .with_max_delay(policy.max_delay)
            .with_max_times(policy.retries);
        Backoff { delays: delays.build(), max_delay: policy.max_delay }
    }

    /// The next delay: the server's wish if it has one, within the limit; a wish for no delay at all is none. `None`: that was
    /// the last attempt.
    pub(crate) fn next(&mut self, retry_after: Option<Duration>) -> Option<Duration> {
        let own = self.delays.next()?;
        Some(retry_after.filter(|wish| !wish.is_zero()).unwrap_or(own).min(self.max_delay))
    }
}

/// `Retry-After` in both its forms (RFC 9110, 10.2.3): seconds, or a date, which counts from the answer's own `Date`, or from a
/// clock if there is none.
pub(crate) fn retry_after(
    value: Option<&HeaderValue>,
    date: Option<&HeaderValue>,
    clock: Option<&dyn Clock>,
) -> Option<Duration> {
    let text = value?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse::<u32>() {
        return Some(Duration::from_secs(seconds.into()));
    }
    let at = httpdate::parse_http_date(text).ok()?;
    let answered = date.and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
    let now = answered.or_else(|| Some(clock?.now()))?;
    // A date that has passed means now.
    Some(at.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(text: &str) -> HeaderValue {
        HeaderValue::from_str(text).expect("legal")
    }

    #[test]
    fn retry_after_is_seconds_or_a_date() {
        let date = header("Sun, 22 Nov 2026 10:00:00 GMT");
        let at = header("Sun, 22 Nov 2026 10:00:07 GMT");
        let told = |value: &HeaderValue, date| retry_after(Some(value), date, None);
        assert_eq!(told(&header("3"), None), Some(Duration::from_secs(3)));
        assert_eq!(told(&at, Some(&date)), Some(Duration::from_secs(7)));
        assert_eq!(told(&date, Some(&at)), Some(Duration::ZERO));
        assert_eq!(told(&header("soon"), None), None);
        assert_eq!(retry_after(None, Some(&date), None), None);
    }

    #[test]
    fn a_date_without_another_counts_from_the_clock() {
        struct Stopped;
        impl Clock for Stopped {
            fn now(&self) -> std::time::SystemTime {
                httpdate::parse_http_date("Sun, 22 Nov 2026 10:00:00 GMT").expect("a date")
            }
        }
        let at = header("Sun, 22 Nov 2026 10:00:09 GMT");
        assert_eq!(retry_after(Some(&at), None, Some(&Stopped)), Some(Duration::from_secs(9)));
        assert_eq!(retry_after(Some(&at), None, None), None);
    }

    #[test]
    fn delays_grow_to_a_limit_and_end() {
        let policy = RetryPolicy { retries: 3, min_delay: Duration::from_secs(1), max_delay: Duration::from_secs(2) };
        let mut backoff = Backoff::new(&policy);
        let first = backoff.next(None).expect("three are left");
        assert!(first >= Duration::from_secs(1) && first <= Duration::from_secs(2));
        assert_eq!(backoff.next(Some(Duration::from_hours(1))), Some(Duration::from_secs(2)));
        assert!(backoff.next(Some(Duration::ZERO)).is_some_and(|delay| delay >= Duration::from_secs(1)));
        assert_eq!(backoff.next(None), None);
    }
}
