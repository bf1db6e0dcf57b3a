//! The operations that turn one list into another, found in bounded time.

use std::ops::Range;

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Lists of up to as many elements together are compared whatever their differences.
const SHORT: usize = 2_000;
/// The most elements that may be added and removed for longer lists to be compared element by
/// element: the time is their number times the length.
const MAX_DISTANCE: usize = 500;

/// The operations from one list to another: the fewest, unless the lists are long and very
/// different. Then what both begin and end with stays, and the rest is replaced as a whole.
pub(super) fn operations<T: PartialEq + std::hash::Hash + Ord>(
    old: &[T],
    new: &[T],
) -> Vec<DiffOp> {
    if is_cheap(old, new) {
        return capture_diff_slices(Algorithm::Myers, old, new);
    }
    let (old_range, new_range) = middles(old, new);
    let (old_index, new_index) = (old_range.start, new_range.start);
    vec![DiffOp::Replace {
        old_index,
        old_len: old_range.len(),
        new_index,
        new_len: new_range.len(),
    }]
}

/// Returns `true` if the fewest operations can be found in bounded time.
pub(super) fn is_cheap<T: PartialEq>(old: &[T], new: &[T]) -> bool {
    old.len() + new.len() <= SHORT || are_near(old, new)
}

/// Returns what is left of two lists without what both begin and end with.
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

/// Returns `true` if one list becomes the other by few additions and removals: Myers' greedy
/// search, given up in time.
fn are_near<T: PartialEq>(old: &[T], new: &[T]) -> bool {
    if old.len().abs_diff(new.len()) > MAX_DISTANCE {
        return false;
    }
    // How far the furthest path gets in `old` on each diagonal, which is shifted so that it is an
    // index.
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
            // `y = x - k`, with the diagonal `k` as a difference from `zero`; a path outside the
            // lists goes nowhere.
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

    proptest! {
        #[test]
        fn short_lists_are_always_near(old in prop::collection::vec(0..4u8, 0..30), new in prop::collection::vec(0..4u8, 0..30)) {
            prop_assert!(are_near(&old, &new));
        }

        #[test]
        fn operations_lead_from_one_list_to_the_other(
            old in prop::collection::vec(0..3u8, 0..20),
            new in prop::collection::vec(0..3u8, 0..20),
            is_long in any::<bool>(),
        ) {
            let more: Vec<u8> = if is_long { (0..3_000_u16).map(|at| (at % 250) as u8).collect() } else { Vec::new() };
            let old: Vec<u8> = old.into_iter().chain(more.iter().copied()).collect();
            let new: Vec<u8> = new.into_iter().chain(more.into_iter().rev()).collect();
            let mut made = old.clone();
            for operation in operations(&old, &new).into_iter().rev() {
                let (_, from, to) = operation.as_tag_tuple();
                made.splice(from, new[to].iter().copied());
            }
            prop_assert_eq!(made, new);
        }
    }
}
