//! Puts the sizes of a conversation's requests on one basis (the provider's counts, as far as the
//! log contains them), and computes the pace at which the requests grow.

use super::story::{Growth, Point};

/// The size of a request, in tokens.
pub(super) struct Total {
    pub(super) estimated: u64,
    /// The provider's count, if the log contains it.
    pub(super) counted: Option<u64>,
}

impl Growth {
    /// Corrects the sizes with the provider's counts, and computes the pace from the last requests.
    pub(super) fn end(
        &mut self,
        totals: &[Total],
        window: Option<u64>,
        has_bodies: bool,
        factor: f64,
    ) {
        self.window = window;
        self.is_counted = !self.points.is_empty()
            && [self.points.first(), self.points.last()]
                .iter()
                .flatten()
                .all(|point| point.counted.is_some());
        let mut basis = self
            .points
            .iter()
            .find_map(|point| counted(point.counted, point.total()));
        let last = self.points.last().filter(|_| !has_bodies);
        self.unsent = last.filter(|last| is_unsent(last)).map(Point::total);
        for point in &mut self.points {
            basis = counted(point.counted, point.total()).or(basis);
            correct(
                point,
                sized(basis, has_bodies, point.total()),
                has_bodies,
                factor,
            );
        }
        let mut basis = totals
            .iter()
            .find_map(|total| counted(total.counted, total.estimated))
            .or(basis.filter(|_| !has_bodies));
        let mut sizes = Vec::new();
        for total in totals {
            basis = counted(total.counted, total.estimated).or(basis);
            sizes.push(sized(basis, has_bodies, total.estimated));
        }
        let Some((pace, steps)) = pace(&sizes) else {
            return;
        };
        (self.per_request, self.steps) = (Some(pace), steps);
        // A conversation that was summarised before its window was full will be summarised again.
        let (limit, last) = (self.summary_at.or(window), sizes.last());
        let left = limit
            .zip(last)
            .and_then(|(limit, last)| limit.checked_sub(*last));
        self.requests_left = left
            .filter(|left| *left > 0)
            .map(|left| (left / pace).max(1));
    }
}

/// Returns `true` if the provider counted far fewer tokens than the log contains, which means that
/// some of the content was not sent.
fn is_unsent(point: &Point) -> bool {
    let counted = point.counted;
    counted.is_some_and(|counted| counted * UNSENT.0 < point.total() * UNSENT.1)
}

fn counted(counted: Option<u64>, estimated: u64) -> Option<(u64, u64)> {
    counted
        .filter(|counted| *counted > 0)
        .map(|counted| (counted, estimated))
}

/// Returns the size of a request that is estimated at this many tokens, based on a request that was
/// counted. If the log contains only messages, the rest of the request is assumed to be as large as
/// in the counted request.
pub(super) fn sized(basis: Option<(u64, u64)>, has_bodies: bool, estimated: u64) -> u64 {
    match basis {
        Some((counted, then)) if has_bodies && then > 0 => share_of(counted, estimated, then),
        Some((counted, then)) => (counted + estimated).saturating_sub(then),
        None => estimated,
    }
}

/// Corrects the parts of a request whose size is known, so that they add up to this size. If
/// `factor` has reached its limit, the parts grow only by this factor; if the log contains only
/// messages, they do not grow. The remaining tokens then belong to no part.
fn correct(point: &mut Point, size: u64, has_bodies: bool, factor: f64) {
    let estimated: u64 = point.tokens.iter().sum();
    if estimated == 0 || size == estimated {
        return;
    }
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "counts of tokens are small and not negative"
    )]
    let believed = match has_bodies {
        true if factor < MOST => size,
        true => (estimated as f64 * factor) as u64,
        false => estimated,
    };
    let believed = believed.min(size);
    let mut parts = point
        .tokens
        .map(|tokens| share_of(believed, tokens, estimated));
    let rest = believed - parts.iter().sum::<u64>();
    if let Some(most) = parts.iter_mut().max() {
        *most += rest;
    }
    point.tokens = parts;
    point.other = size - believed;
}

/// A request that is counted at less than two thirds of the estimate did not contain all messages.
const UNSENT: (u64, u64) = (3, 2);

/// A deviation by this factor or more has a cause other than inaccurate estimates; see
/// `Calibration`.
const MOST: f64 = 3.0;

/// The minimum number of steps from which a pace is computed, so that one jump does not determine
/// it.
const LEAST_STEPS: usize = 3;

/// Returns the pace and the number of steps it is computed from. The pace is the median of the
/// tokens that each request adds; `None` if there are too few requests, or if they do not grow.
fn pace(sizes: &[u64]) -> Option<(u64, usize)> {
    let mut steps: Vec<i64> = sizes
        .windows(2)
        .filter_map(|pair| {
            i64::try_from(pair[1])
                .ok()?
                .checked_sub(i64::try_from(pair[0]).ok()?)
        })
        .collect();
    if steps.len() < LEAST_STEPS {
        return None;
    }
    steps.sort_unstable();
    let middle = steps.len() / 2;
    let median = match steps.len() % 2 {
        0 => i64::midpoint(steps[middle - 1], steps[middle]),
        _ => steps[middle],
    };
    let pace = u64::try_from(median).ok().filter(|pace| *pace > 0)?;
    Some((pace, steps.len()))
}

/// Returns `whole` multiplied by the ratio of `part` to `all`.
pub(super) fn share_of(whole: u64, part: u64, all: u64) -> u64 {
    let share = u128::from(whole) * u128::from(part) / u128::from(all.max(1));
    u64::try_from(share).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_jump_does_not_determine_the_pace() {
        assert_eq!(pace(&[100, 110, 120, 9_000]), Some((10, 3)));
        assert_eq!(pace(&[100, 120, 5_000]), None);
        assert_eq!(pace(&[100, 110, 90, 100, 112]), Some((10, 4)));
        assert_eq!(pace(&[100, 100, 100, 100]), None);
    }

    fn point(tokens: [u64; 4], counted: Option<u64>) -> Point {
        Point {
            request: 1,
            tokens,
            other: 0,
            counted,
            cached: 0,
        }
    }

    #[test]
    fn sizes_have_one_basis() {
        let sizes = |has_bodies: bool, factor: f64| {
            let points = vec![
                point([0, 100, 100, 0], None),
                point([0, 100, 200, 0], Some(600)),
                point([0, 100, 301, 0], None),
            ];
            let mut growth = Growth {
                points,
                ..Growth::default()
            };
            growth.end(&[], None, has_bodies, factor);
            let parts = growth
                .points
                .iter()
                .map(|point| (point.total(), point.other));
            parts.collect::<Vec<_>>()
        };
        assert_eq!(sizes(true, 2.0), [(400, 0), (600, 0), (802, 0)]);
        assert_eq!(sizes(false, 2.0), [(500, 300), (600, 300), (701, 300)]);
        // A file may contain more messages than were sent.
        let points = vec![point([0, 0, 700, 300], Some(500))];
        let mut growth = Growth {
            points,
            ..Growth::default()
        };
        growth.end(&[], None, false, 1.0);
        assert_eq!(
            (growth.points[0].total(), growth.unsent),
            (500, Some(1_000))
        );
        // A gateway's own prompt does not belong to any part.
        let mut growth = Growth {
            points: vec![point([0, 10, 0, 0], Some(600))],
            ..Growth::default()
        };
        growth.end(&[], None, true, MOST);
        assert_eq!(
            (growth.points[0].tokens[1], growth.points[0].other),
            (30, 570)
        );
    }
}
