//! Chains, in which each element refers to at most one other element, such as profiles or provider
//! instances that extend each other.

/// Returns the cycles among some elements, as lists of indices. `next` contains the index that each
/// element refers to, if any. Each cycle is returned once, and starts with its smallest index. The
/// cycles are ordered by that index. Takes linear time.
pub(crate) fn circles(next: &[Option<usize>]) -> Vec<Vec<usize>> {
    // For each element, the start of the walk that first reached it, and the number of the step.
    let mut met: Vec<Option<(usize, usize)>> = vec![None; next.len()];
    let mut circles = Vec::new();
    for start in 0..next.len() {
        let mut path = Vec::new();
        let mut at = Some(start);
        while let Some(member) = at.filter(|&member| met[member].is_none()) {
            met[member] = Some((start, path.len()));
            path.push(member);
            at = next[member];
        }
        if let Some((_, step)) = at
            .and_then(|member| met[member])
            .filter(|(walk, _)| *walk == start)
        {
            circles.push(from_smallest(&path[step..]));
        }
    }
    circles.sort_unstable();
    circles
}

fn from_smallest(circle: &[usize]) -> Vec<usize> {
    let first = (0..circle.len())
        .min_by_key(|&at| circle[at])
        .unwrap_or_default();
    (0..circle.len())
        .map(|at| circle[(first + at) % circle.len()])
        .collect()
}

/// The maximum number of cycle members that a message lists.
pub(crate) const SHOWN: usize = 8;

/// Describes a cycle by the names of its members: `a` → `b` → `a`. Only the first names of a long
/// cycle are listed.
pub(crate) fn describe(names: &[&str]) -> String {
    let mut parts: Vec<String> = names.iter().take(SHOWN).map(|name| quoted(name)).collect();
    if names.len() > SHOWN {
        parts.push(format!("… (+{})", names.len() - SHOWN));
    }
    parts.extend(names.first().map(|name| quoted(name)));
    parts.join(" → ")
}

fn quoted(name: &str) -> String {
    format!("`{name}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_circle_is_found_once() {
        assert_eq!(
            circles(&[Some(1), Some(2), Some(1), Some(3), None, Some(4)]),
            [vec![1, 2], vec![3]]
        );
        assert_eq!(circles(&[]), Vec::<Vec<usize>>::new());
        let ring: Vec<Option<usize>> = (0..100_000).map(|at| Some((at + 1) % 100_000)).collect();
        assert_eq!(circles(&ring).len(), 1);
    }

    #[test]
    fn long_circles_are_shortened() {
        assert_eq!(describe(&["a", "b"]), "`a` → `b` → `a`");
        assert!(describe(&["x"; 100]).ends_with("`x` → … (+92) → `x`"));
    }
}
