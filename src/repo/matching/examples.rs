//! Names that globs accept, made from the globs themselves.

use std::iter::Peekable;
use std::str::Chars;

/// The most names that are made from one glob.
const MOST: usize = 8;
/// The character that an example has where a pattern takes any.
const ANY: char = 'x';

/// Some names that a glob may accept: one for each alternative in braces, up to a few. Whoever uses
/// one asks the glob about it: a class such as `[!a-z]` can exclude what was chosen.
pub(crate) fn examples(glob: &str) -> Vec<String> {
    let mut names = alternatives(&mut glob.chars().peekable(), 0);
    names.dedup();
    names
}

/// The names that the rest of an alternative stands for, up to the `,` or `}` that ends it.
fn alternatives(rest: &mut Peekable<Chars<'_>>, depth: usize) -> Vec<String> {
    let mut names = vec![String::new()];
    while let Some(&next) = rest.peek() {
        if depth > 0 && matches!(next, ',' | '}') {
            break;
        }
        rest.next();
        let parts = match next {
            '{' => braces(rest, depth + 1),
            '*' => vec![stars(rest)],
            '?' => vec![ANY.to_string()],
            '[' => vec![class(rest).to_string()],
            '\\' => vec![rest.next().map(String::from).unwrap_or_default()],
            other => vec![other.to_string()],
        };
        names = joined(&names, &parts);
    }
    names
}

/// Returns what is between braces, the opening one read.
fn braces(rest: &mut Peekable<Chars<'_>>, depth: usize) -> Vec<String> {
    let mut names = alternatives(rest, depth);
    while rest.next_if_eq(&',').is_some() {
        names.extend(alternatives(rest, depth));
    }
    rest.next_if_eq(&'}');
    names.truncate(MOST);
    names
}

/// Returns what one or more stars stand for, the first one read: `**/` may stand for no folder.
fn stars(rest: &mut Peekable<Chars<'_>>) -> String {
    let mut stars = 1;
    while rest.next_if_eq(&'*').is_some() {
        stars += 1;
    }
    if stars > 1 && rest.next_if_eq(&'/').is_some() {
        String::new()
    } else {
        ANY.to_string()
    }
}

/// A character of a class, its bracket read: its first one, or [`ANY`] if the class names what it
/// does not accept.
fn class(rest: &mut Peekable<Chars<'_>>) -> char {
    let is_negated = rest.next_if(|it| matches!(it, '!' | '^')).is_some();
    let first = rest.next().unwrap_or(ANY);
    // A `]` that comes first is one of the class.
    rest.find(|it| *it == ']');
    if is_negated { ANY } else { first }
}

fn joined(heads: &[String], tails: &[String]) -> Vec<String> {
    let all = heads
        .iter()
        .flat_map(|head| tails.iter().map(move |tail| format!("{head}{tail}")));
    all.take(MOST).collect()
}

#[cfg(test)]
mod tests {
    use super::super::glob;
    use super::*;

    #[test]
    fn globs_accept_what_is_made_from_them() {
        let globs = [
            ("*.rs", "x.rs"),
            ("src/**/*.ts", "src/x.ts"),
            ("**/Makefile", "Makefile"),
            ("test_?.py", "test_x.py"),
            ("[ab]*.md", "ax.md"),
            ("[!a].md", "x.md"),
            ("docs/**", "docs/x"),
            (r"a\*b", "a*b"),
        ];
        for (text, example) in globs {
            assert_eq!(examples(text), [example]);
            assert!(
                glob(text)
                    .expect("a glob")
                    .is_match(&example.to_lowercase()),
                "{text}"
            );
        }
        assert_eq!(examples("*.{js,ts{,x}}"), ["x.js", "x.ts", "x.tsx"]);
    }

    #[test]
    fn there_are_never_many() {
        assert_eq!(examples(&"{a,b}".repeat(200)).len(), MOST);
        assert!(
            examples("{").len() <= MOST
                && examples("[").len() <= MOST
                && examples("\\").len() <= MOST
        );
    }
}
