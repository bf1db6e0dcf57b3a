//! Finds the operations that convert one list to another, in bounded time.

use std::ops::Range;

use similar::DiffOp;
use similar::algorithms::{Capture, Compact, Replace, myers};

/// The combined length up to which two lists are always compared element by element.
const SHORT: usize = 2_000;
/// The maximum number of additions and removals up to which longer lists are compared element by
/// element. The time is this number multiplied by the length.
const MAX_DISTANCE: usize = 500;

/// Returns the operations that convert one list to another. They are minimal unless the lists are
/// long and very different. In that case, only the common beginning and end are kept, and
/// everything between them is replaced.
pub(super) fn operations(old: &[&str], new: &[&str]) -> Vec<DiffOp> {
    if is_cheap(old, new) {
        return minimal(old, new);
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

/// Converts strings to the form in which they are compared.
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
    // used as indexes.
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
            let [old_texts, new_texts] = [&old, &new].map(|list| list.iter().map(u8::to_string).collect::<Vec<_>>());
            let mut made = old.clone();
            for operation in operations(&as_strs(&old_texts), &as_strs(&new_texts)).into_iter().rev() {
                let (_, from, to) = operation.as_tag_tuple();
                made.splice(from, new[to].iter().copied());
            }
            prop_assert_eq!(made, new);
        }
    }
}
