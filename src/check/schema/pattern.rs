//! Measures the cost of the patterns in a schema.
//!
//! The regex engine takes time linear in the text, multiplied by the size of the pattern. The size
//! is therefore limited, and it is part of the measured cost. Patterns that the engine does not
//! support, such as lookaround, are rejected when the schema is compiled.

use serde_json::Value;

use super::refusal::Refusal;

/// The maximum length of a pattern, in bytes.
const MAX_BYTES: usize = 4_096;
/// The maximum size of a pattern, in states of its automaton.
const MAX_STATES: u64 = 4_000;
/// The maximum size of a compiled pattern, in bytes.
pub(super) const COMPILED_BYTES: usize = 1024 * 1024;

/// Returns the number of states in a pattern's automaton, which is its cost per byte of text.
/// Returns 0 for a value that is not a string.
///
/// # Errors
///
/// Returns an error if the pattern is too large.
pub(super) fn work(pattern: &Value, at: &str) -> Result<u64, Refusal> {
    let Some(pattern) = pattern.as_str() else {
        return Ok(0);
    };
    let states = if pattern.len() > MAX_BYTES {
        u64::MAX
    } else {
        states(pattern)
    };
    match states > MAX_STATES {
        true => Err(Refusal::new(
            at,
            "this pattern is too large",
            "lower the pattern's repetition counts, or use `maxLength`",
        )),
        false => Ok(states),
    }
}

/// Estimates the number of states in a pattern's automaton. Only the order of magnitude is
/// reliable.
fn states(pattern: &str) -> u64 {
    // The sums for the open groups, and the number of states in the last atom.
    let (mut open, mut sum, mut last) = (Vec::new(), 0_u64, 0_u64);
    let mut rest = pattern.chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '(' => {
                open.push(sum.saturating_add(last));
                (sum, last) = (0, 1);
            }
            ')' => {
                last = last.saturating_add(sum);
                sum = open.pop().unwrap_or_default();
            }
            '{' => {
                let bounds: String = rest.clone().take_while(|c| *c != '}').collect();
                let most = bounds
                    .split(',')
                    .filter_map(|bound| bound.trim().parse::<u64>().ok())
                    .max();
                last = last.saturating_mul(most.unwrap_or(1).saturating_add(1));
                if most.is_some() {
                    rest.find(|c| *c == '}');
                }
            }
            '*' | '+' | '?' => last = last.saturating_mul(2),
            atom => {
                sum = sum.saturating_add(last);
                last = atom_states(atom, &mut rest);
            }
        }
    }
    open.into_iter()
        .fold(sum.saturating_add(last), u64::saturating_add)
}

/// Returns the number of states for a character, a class or an escape, and consumes its remaining
/// characters.
fn atom_states(first: char, rest: &mut std::iter::Peekable<std::str::Chars<'_>>) -> u64 {
    match first {
        '\\' => match rest.next() {
            Some('p' | 'P') => 200,
            Some('D' | 'W' | 'S') => 12,
            _ => 2,
        },
        '.' => 12,
        '[' => {
            let (mut states, mut is_escaped, mut is_first) = (2, false, true);
            for c in rest.by_ref() {
                match c {
                    ']' if !is_escaped && !is_first => break,
                    '^' if is_first => states += 12,
                    'p' | 'P' if is_escaped => states += 200,
                    c if !c.is_ascii() => states += 8,
                    _ => {}
                }
                (is_escaped, is_first) = (c == '\\' && !is_escaped, is_first && c == '^');
            }
            states
        }
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_multiply_and_sequences_add() {
        assert!(states("^[a-zA-Z0-9_-]+$") < 10);
        assert!((100..400).contains(&states("^[a-z]{1,64}$")));
        assert!(states("(a{1,100}){1,100}") > 10_000);
        assert!(states("((((a{9}){9}){9}){9}){9}") > 50_000);
        assert!(states("a{1000}b{1000}") < 3_000);
        assert!(states(r"[^\]]{2}\{[(]") < 60);
        assert!(states("[[[[{{{((((") < 100);
    }

    #[test]
    fn patterns_that_are_too_large_are_refused() {
        assert_eq!(work(&Value::Null, ""), Ok(0));
        assert!(work(&"(a{1,1000}){1,1000}".into(), "/x").is_err());
        assert!(work(&"a".repeat(5_000).into(), "/x").is_err());
    }
}
