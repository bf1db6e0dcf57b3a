//! Finds the operations that convert one list to another, in bounded time.

use std::collections::HashMap;
use std::ops::Range;

use similar::DiffOp;
use similar::algorithms::{Capture, Compact, Replace, myers};

/// The combined length up to which two lists are always compared element by element.
const SHORT: usize = 2_000;
/// The maximum number of additions and removals for which longer lists are compared element by
/// element. The comparison takes time proportional to this number multiplied by the length.
const MAX_DISTANCE: usize = 500;

/// The maximum number of times that a part between matched elements is split again.
const DEEPEST: usize = 16;

/// Returns the operations that convert one list to another. They are minimal, unless the lists are
/// long and very different. In that case, the common beginning and end are kept. Elements that
/// occur once in both lists are kept too, unless most of them are in a different order. Parts
/// between them are replaced if they are long and very different.
pub(super) fn operations(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    if is_cheap(old, new) {
        return minimal(old, new);
    }
    let mut found = Operations::default();
    found.between(old, new, 0..old.len(), 0..new.len(), DEEPEST);
    found.operations
}

/// The operations for the beginning of two lists.
#[derive(Default)]
struct Operations {
    operations: Vec<DiffOp>,
}

impl Operations {
    /// Adds the operations for a part of both lists.
    fn between(
        &mut self,
        old: &[&str],
        new: &[&str],
        old_range: Range<usize>,
        new_range: Range<usize>,
        depth: usize,
    ) {
        let (was, now) = (&old[old_range.clone()], &new[new_range.clone()]);
        let (old_start, new_start) = (old_range.start, new_range.start);
        if is_cheap(was, now) {
            for operation in minimal(was, now) {
                let (_, from, to) = operation.as_tag_tuple();
                self.add(
                    matches!(operation, DiffOp::Equal { .. }),
                    shifted(from, old_start),
                    shifted(to, new_start),
                );
            }
            return;
        }
        let pairs = match depth {
            0 => Vec::new(),
            _ => anchors(was, now),
        };
        if pairs.is_empty() {
            return self.add(false, old_range, new_range);
        }
        let (mut old_at, mut new_at) = (old_start, new_start);
        for (from, to) in pairs {
            let (from, to) = (from + old_start, to + new_start);
            self.between(old, new, old_at..from, new_at..to, depth - 1);
            self.add(true, from..from + 1, to..to + 1);
            (old_at, new_at) = (from + 1, to + 1);
        }
        self.between(
            old,
            new,
            old_at..old_range.end,
            new_at..new_range.end,
            depth - 1,
        );
    }

    /// Adds equal or replaced elements. Consecutive equal elements become one operation.
    fn add(&mut self, is_equal: bool, from: Range<usize>, to: Range<usize>) {
        let (old_index, old_len) = (from.start, from.len());
        let (new_index, new_len) = (to.start, to.len());
        if is_equal && let Some(DiffOp::Equal { len, .. }) = self.operations.last_mut() {
            *len += old_len;
            return;
        }
        self.operations.push(match (is_equal, old_len, new_len) {
            (_, 0, 0) => return,
            (true, len, _) => DiffOp::Equal {
                old_index,
                new_index,
                len,
            },
            (false, old_len, 0) => DiffOp::Delete {
                old_index,
                old_len,
                new_index,
            },
            (false, 0, new_len) => DiffOp::Insert {
                old_index,
                new_index,
                new_len,
            },
            (false, old_len, new_len) => DiffOp::Replace {
                old_index,
                old_len,
                new_index,
                new_len,
            },
        });
    }
}

fn shifted(range: Range<usize>, by: usize) -> Range<usize> {
    range.start + by..range.end + by
}

/// Elements that occur once in both lists are matched only if enough of them are in order: at least
/// one in this many. In a shuffled list, few elements are in order, and only by chance.
const LEAST_IN_ORDER: usize = 4;

/// Returns pairs of equal elements in the same order: the common beginning and end and, between
/// them, elements that occur once in both lists.
fn anchors(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    let (was, now) = middles(old, new);
    let head = (0..was.start).map(|at| (at, at));
    let tail = (was.end..old.len()).zip(now.end..new.len());
    let mut places: HashMap<&str, [Option<usize>; 2]> = HashMap::new();
    for (side, (list, range)) in [(old, &was), (new, &now)].into_iter().enumerate() {
        let mut seen: HashMap<&str, usize> = HashMap::new();
        for at in range.clone() {
            *seen.entry(list[at]).or_default() += 1;
            places.entry(list[at]).or_default()[side] = Some(at);
        }
        for (element, times) in seen {
            if times > 1 {
                places.entry(element).or_default()[side] = None;
            }
        }
    }
    let in_both: Vec<(usize, usize)> = was
        .clone()
        .filter_map(|at| match places.get(old[at])? {
            [Some(from), Some(to)] if *from == at => Some((at, *to)),
            _ => None,
        })
        .collect();
    let mut in_order = rising(&in_both);
    if in_order.len() * LEAST_IN_ORDER < in_both.len() {
        in_order.clear();
    }
    head.chain(in_order).chain(tail).collect()
}

/// Returns the longest sequence of pairs in which the second numbers also rise. The first numbers
/// of `pairs` must already rise.
fn rising(pairs: &[(usize, usize)]) -> Vec<(usize, usize)> {
    // The last pair of the best chain of each length, and the pair before each pair in its chain.
    let mut ends: Vec<usize> = Vec::new();
    let mut before: Vec<Option<usize>> = Vec::with_capacity(pairs.len());
    for (at, (_, second)) in pairs.iter().enumerate() {
        let length = ends.partition_point(|end| pairs[*end].1 < *second);
        before.push(length.checked_sub(1).map(|shorter| ends[shorter]));
        match ends.get_mut(length) {
            Some(end) => *end = at,
            None => ends.push(at),
        }
    }
    let mut chain = Vec::new();
    let mut next = ends.last().copied();
    while let Some(at) = next {
        chain.push(pairs[at]);
        next = before[at];
    }
    chain.reverse();
    chain
}

/// Returns the minimal operations by Myers' algorithm. `similar::capture_diff_slices` does the
/// same, but would add the code of five other algorithms to the binary.
fn minimal(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    let mut hook = Compact::new(Replace::new(Capture::new()), old, new);
    let Ok(()) = myers::diff(&mut hook, old, 0..old.len(), new, 0..new.len());
    hook.into_inner().into_inner().into_ops()
}

/// Returns `true` if the minimal operations can be found in bounded time.
pub(super) fn is_cheap<T: PartialEq>(old: &[T], new: &[T]) -> bool {
    old.len() + new.len() <= SHORT || are_near(old, new)
}

/// Borrows the strings as `&str`, which is the type that is compared.
pub(super) fn as_strs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

/// Returns the ranges of two lists without their common beginning and end.
pub(super) fn middles<T: PartialEq>(old: &[T], new: &[T]) -> (Range<usize>, Range<usize>) {
    let head = old
        .iter()
        .zip(new)
        .take_while(|(old, new)| old == new)
        .count();
    let (old_rest, new_rest) = (&old[head..], &new[head..]);
    let tail = old_rest
        .iter()
        .rev()
        .zip(new_rest.iter().rev())
        .take_while(|(old, new)| old == new)
        .count();
    (head..old.len() - tail, head..new.len() - tail)
}

/// Returns `true` if few additions and removals convert one list to the other. Runs Myers' greedy
/// algorithm up to a limit.
fn are_near<T: PartialEq>(old: &[T], new: &[T]) -> bool {
    if old.len().abs_diff(new.len()) > MAX_DISTANCE {
        return false;
    }
    // For each diagonal, the furthest position in `old`. Diagonals are shifted so that they can be
    // used as indices.
    let zero = MAX_DISTANCE + 1;
    let mut reached = vec![0_usize; 2 * zero + 1];
    for distance in 0..=MAX_DISTANCE {
        for diagonal in (zero - distance..=zero + distance).step_by(2) {
            let is_added = diagonal == zero - distance
                || diagonal != zero + distance && reached[diagonal - 1] < reached[diagonal + 1];
            let mut x = if is_added {
                reached[diagonal + 1]
            } else {
                reached[diagonal - 1] + 1
            };
            // On a diagonal `k`, `y = x - k`; here, `k` is the difference from `zero`. A path
            // outside the lists is dropped.
            let Some(mut y) = (x + zero).checked_sub(diagonal) else {
                continue;
            };
            while x < old.len() && y < new.len() && old[x] == new[y] {
                (x, y) = (x + 1, y + 1);
            }
            reached[diagonal] = x;
            if x >= old.len() && y >= new.len() {
                return true;
            }
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn few_changes_of_long_lists_are_near() {
        let list: Vec<u32> = (0..50_000).collect();
        let mut other = list.clone();
        for at in 0..200 {
            other.remove(at * 100);
        }
        other.extend(0..200);
        assert!(are_near(&list, &other) && are_near(&other, &list));
        other.extend(0..400);
        assert!(!are_near(&list, &other) && !are_near(&other, &list));
        let reversed: Vec<u32> = list.iter().rev().copied().collect();
        assert!(!are_near(&list, &reversed));
    }

    /// Returns the kinds of the operations, each with the number of its elements in both lists.
    fn kinds(old: &[String], new: &[String]) -> Vec<(bool, usize, usize)> {
        let found = operations(&as_strs(old), &as_strs(new));
        found
            .iter()
            .map(|operation| {
                let is_equal = matches!(operation, DiffOp::Equal { .. });
                (
                    is_equal,
                    operation.old_range().len(),
                    operation.new_range().len(),
                )
            })
            .collect()
    }

    #[test]
    fn what_is_common_stays_in_long_lists_that_differ_much() {
        let list: Vec<String> = (0..3_000).map(|at| at.to_string()).collect();
        let begun = list[..1_000].to_vec();
        assert_eq!(
            kinds(&list, &begun),
            [(true, 1_000, 1_000), (false, 2_000, 0)]
        );
        assert_eq!(
            kinds(&begun, &list),
            [(true, 1_000, 1_000), (false, 0, 2_000)]
        );
        assert_eq!(
            kinds(&list, &list[2_000..]),
            [(false, 2_000, 0), (true, 1_000, 1_000)]
        );
        // A different first element and a different last element leave no common beginning and end.
        let mut other = list[1_500..].to_vec();
        other[0] = "first".to_owned();
        other[1_499] = "last".to_owned();
        assert_eq!(
            kinds(&list, &other),
            [(false, 1_501, 1), (true, 1_498, 1_498), (false, 1, 1)]
        );
    }

    #[test]
    fn repeated_elements_between_single_ones_stay() {
        let list: Vec<String> = (0..4_000)
            .map(|at| {
                if at % 2 == 0 {
                    "ok".to_owned()
                } else {
                    at.to_string()
                }
            })
            .collect();
        let other: Vec<String> = std::iter::once("new".to_owned())
            .chain(list[1_001..3_001].iter().cloned())
            .chain(["end".to_owned()])
            .collect();
        let equal: usize = kinds(&list, &other)
            .into_iter()
            .filter_map(|(is_equal, old, _)| is_equal.then_some(old))
            .sum();
        assert_eq!(equal, 2_000);
    }

    #[test]
    fn chains_rise_in_both_lists() {
        assert_eq!(rising(&[]), []);
        let pairs = [(0, 5), (1, 1), (2, 6), (3, 2), (4, 3), (5, 0)];
        assert_eq!(rising(&pairs), [(1, 1), (3, 2), (4, 3)]);
    }

    proptest! {
        #[test]
        fn short_lists_are_always_near(old in prop::collection::vec(0..4u8, 0..30), new in prop::collection::vec(0..4u8, 0..30)) {
            prop_assert!(are_near(&old, &new));
        }

        #[test]
        fn operations_lead_from_one_list_to_the_other(
            old in prop::collection::vec(0..3u16, 0..20),
            new in prop::collection::vec(0..3u16, 0..20),
            is_long in any::<bool>(),
            different in prop_oneof![Just(250_u16), Just(2_900), Just(3_000)],
        ) {
            let more: Vec<u16> = if is_long { (0..3_000_u16).map(|at| at % different).collect() } else { Vec::new() };
            let old: Vec<u16> = old.into_iter().chain(more.iter().copied()).collect();
            let new: Vec<u16> = new.into_iter().chain(more.into_iter().rev()).collect();
            let [old_texts, new_texts] = [&old, &new].map(|list| list.iter().map(u16::to_string).collect::<Vec<_>>());
            let mut made = old.clone();
            for operation in operations(&as_strs(&old_texts), &as_strs(&new_texts)).into_iter().rev() {
                let (_, from, to) = operation.as_tag_tuple();
                made.splice(from, new[to].iter().copied());
            }
            prop_assert_eq!(made, new);
        }
    }
}
