//! Generates names that a glob accepts.

use std::iter::Peekable;
use std::str::Chars;

/// The maximum number of names generated for one glob.
const MOST: usize = 8;
/// The example for a character that can be any character.
const ANY: char = 'x';

/// Returns some names that a glob may accept: one for each alternative in braces, up to a limit.
/// The caller must test each name with the glob, because a class such as `[!a-z]` may exclude the
/// chosen character.
pub(crate) fn examples(glob: &str) -> Vec<String> {
    let mut names = alternatives(&mut glob.chars().peekable(), 0);
    names.dedup();
    names
}

/// Returns the names for the rest of an alternative, up to the `,` or `}` that ends the
/// alternative.
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

/// Returns the names for a group in braces, after its opening brace.
fn braces(rest: &mut Peekable<Chars<'_>>, depth: usize) -> Vec<String> {
    let mut names = alternatives(rest, depth);
    while rest.next_if_eq(&',').is_some() {
        names.extend(alternatives(rest, depth));
    }
    rest.next_if_eq(&'}');
    names.truncate(MOST);
    names
}

/// Returns an example for one or more stars, the first of which has been read. `**/` may match no
/// folder.
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

/// Returns a character of a class, whose opening bracket has been read: the first character, or
/// [`ANY`] if the class is negated.
fn class(rest: &mut Peekable<Chars<'_>>) -> char {
    let is_negated = rest.next_if(|it| matches!(it, '!' | '^')).is_some();
    let first = rest.next().unwrap_or(ANY);
    // A `]` in first position is a member of the class.
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
