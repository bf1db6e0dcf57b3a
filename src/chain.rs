//! Things that each follow at most one other: profiles and provider instances that extend each
//! other.

/// The circles of a set in which each member follows at most one other, by index: each circle once,
/// from its smallest member on, ordered by that. In time that is linear in the members.
pub(crate) fn circles(next: &[Option<usize>]) -> Vec<Vec<usize>> {
    // Which walk met a member first, and as which of its steps.
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

/// The most members of a circle that a message names.
pub(crate) const SHOWN: usize = 8;

/// The names of a circle: `a` → `b` → `a`; of a long one only the first.
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
