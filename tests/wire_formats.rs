//! A new wire format needs a variant and a file of facts; the compiler then reports every location
//! that needs a decision. For this to work, no `match` over formats, or over a fact that selects a
//! decoder or a reader, may have a catch-all arm, and no code may compare formats.

#![expect(clippy::disallowed_methods, reason = "the test reads the sources")]

use std::fs;
use std::path::{Path, PathBuf};

/// The wire formats, and the facts that select code.
const ENUMS: [&str; 6] = [
    "WireFormat::",
    "TurnForm::",
    "ToolForm::",
    "AnswerForm::",
    "OwnPlace::",
    "BatchService::",
];

/// The file that can use variants without the name of their type. Its tables contain the evidence
/// for each format, which is taken only from the body.
const NAMES_VARIANTS: &str = "src/lint/recognise.rs";

#[test]
fn no_match_over_wire_formats_has_an_arm_for_the_rest() {
    let wrong = found(|code| {
        let matches = matches_in(code).filter(|arms| hides_a_rest(arms));
        matches.map(|arms| arms.join(" | ")).collect()
    });
    assert!(wrong.is_empty(), "name what is left:\n{}", wrong.join("\n"));
}

#[test]
fn nobody_compares_with_a_wire_format() {
    let wrong = found(comparisons);
    assert!(
        wrong.is_empty(),
        "name the fact in `provider/wire/facts.rs`, or match:\n{}",
        wrong.join("\n")
    );
}

#[test]
fn variants_stand_behind_the_name_of_their_type() {
    let wrong: Vec<String> = found(|code| {
        let lines = code.lines().filter(|line| line.contains("use "));
        lines
            .filter(|line| line.contains("WireFormat::"))
            .map(str::to_owned)
            .collect()
    });
    let others = wrong.iter().filter(|it| !it.starts_with(NAMES_VARIANTS));
    assert_eq!(others.count(), 0, "{}", wrong.join("\n"));
    assert!(!wrong.is_empty(), "{NAMES_VARIANTS} names none");
}

#[test]
fn hidden_rests_and_comparisons_are_found() {
    let hides = |text: &str| matches_in(&code(text)).any(|arms| hides_a_rest(&arms));
    let named = "match wire { WireFormat::A if a == '{' => 1, WireFormat::B\n| WireFormat::C => { match x { _ => 2 } } }";
    assert!(!hides(named));
    assert!(hides("match wire { WireFormat::A => \"}\", _ => 2 }"));
    assert!(hides("match wire { WireFormat::A => 1, other => 2 }"));
    assert!(hides(
        "match (wire, x) { (WireFormat::A, _) => 1, (_, X::B) => 2, }"
    ));
    assert!(hides(
        "match (wire, x) { (WireFormat::A, _) => 1, _ => 2, }"
    ));
    assert!(hides(
        "match (x, wire.facts().turns) { (X::A, TurnForm::Items) => 1, (X::A, _) => 2 }"
    ));
    assert!(!hides(
        "match (wire, x) { (WireFormat::A, X::B) => 1, (WireFormat::A | WireFormat::B, _) => 2 }"
    ));
    for text in [
        "wire == WireFormat::A",
        "(wire, x) != (WireFormat::A, 1)",
        "WireFormat::A == wire",
        "matches!(wire, WireFormat::A | WireFormat::B)",
        "if let WireFormat::A = wire {}",
        "[WireFormat::A].contains(&wire)",
    ] {
        assert_eq!(comparisons(&code(text)).len(), 1, "{text}");
    }
    let right = "let x = WireFormat::A; // x == WireFormat::A\nWireFormat::ALL.map(f); f(\"== WireFormat::A\") == 'x'";
    assert!(comparisons(&code(right)).is_empty());
}

/// Returns the results of `find` in the code of each file, after the name of the file.
fn found(find: impl Fn(&str) -> Vec<String>) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut wrong = Vec::new();
    for path in files(&root.join("src")) {
        let text = fs::read_to_string(&path).expect("a source file");
        if !ENUMS.iter().any(|name| text.contains(name)) {
            continue;
        }
        let shown = path.strip_prefix(root).expect("below the root");
        let shown = shown.to_string_lossy().replace('\\', "/");
        wrong.extend(
            find(&code(&text))
                .into_iter()
                .map(|it| format!("{shown}: {it}")),
        );
    }
    wrong
}

/// Returns the source files below a folder in alphabetical order, without tests.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder").flatten();
    let mut found = Vec::new();
    for path in entries.map(|entry| entry.path()) {
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("tests.rs") {
            found.push(path);
        }
    }
    found.sort();
    found
}

/// Returns a file without its inline tests, comments and the contents of strings.
fn code(text: &str) -> String {
    let tests = text.match_indices("\n#[cfg(test)]\nmod ").find(|(at, _)| {
        text[at + 1..]
            .lines()
            .nth(1)
            .is_some_and(|it| it.ends_with('{'))
    });
    let text = &text[..tests.map_or(text.len(), |(at, _)| at)];
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let skipped = skipped(rest);
        if skipped == 0 {
            code.push(c);
            rest = &rest[c.len_utf8()..];
        } else {
            rest = &rest[skipped..];
        }
    }
    code
}

/// Returns the length of the comment or string at the beginning of this source; 0 if it is code.
fn skipped(rest: &str) -> usize {
    if rest.starts_with("//") {
        return rest.find('\n').unwrap_or(rest.len());
    }
    let raw = if rest.starts_with('r') {
        &["", "#", "##"][..]
    } else {
        &[]
    };
    for hashes in raw {
        if rest.starts_with(&format!("r{hashes}\"")) {
            let begin = hashes.len() + 2;
            let end = format!("\"{hashes}");
            let inner = rest[begin..].find(&end).expect("a text ends");
            return begin + inner + end.len();
        }
    }
    match rest.as_bytes() {
        [b'"', ..] => end_of_text(rest, '"'),
        // A lifetime has no quote after its first character.
        [b'\'', b'\\', ..] => end_of_text(rest, '\''),
        [b'\'', ..] => {
            let mut chars = rest.char_indices().skip(2);
            chars
                .next()
                .filter(|(_, c)| *c == '\'')
                .map_or(0, |(at, _)| at + 1)
        }
        _ => 0,
    }
}

/// Returns the length of a literal up to and including the quote that ends it.
fn end_of_text(rest: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        if c == quote && !is_escaped {
            return at + 1;
        }
        is_escaped = c == '\\' && !is_escaped;
    }
    rest.len()
}

/// Returns the patterns of all arms of each `match`, without guards.
fn matches_in(code: &str) -> impl Iterator<Item = Vec<String>> {
    code.match_indices("match ").filter_map(|(at, _)| {
        let before = code[..at].chars().next_back();
        if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '.') {
            return None;
        }
        let open = at + code[at..].find('{')?;
        Some(patterns(&code[open + 1..]))
    })
}

/// Returns the patterns of these arms, up to the brace that ends the `match`.
fn patterns(arms: &str) -> Vec<String> {
    let mut patterns = Vec::new();
    let (mut depth, mut begin, mut is_body) = (0_i32, 0, false);
    for (at, c) in arms.char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth -= 1,
            _ => {}
        }
        if depth < 0 {
            break;
        }
        if depth == 0 && !is_body && arms[at..].starts_with("=>") {
            let pattern = arms[begin..at].trim();
            patterns.push(pattern.split(" if ").next().unwrap_or(pattern).to_owned());
            is_body = true;
        } else if depth == 0 && is_body && (c == ',' || c == '}') {
            (begin, is_body) = (at + 1, false);
            continue;
        }
        // A comma after the brace of a body belongs to neither arm.
        if !is_body && depth == 0 && c == ',' && arms[begin..at].trim().is_empty() {
            begin = at + 1;
        }
    }
    patterns
}

/// Returns `true` if an arm names one of the enums, and another arm has a catch-all in its place.
fn hides_a_rest(arms: &[String]) -> bool {
    let alternatives = || arms.iter().flat_map(|arm| split(arm, '|'));
    let places = alternatives().filter_map(|it| {
        let elements = elements(it);
        let named = |part: &&str| ENUMS.iter().any(|name| part.contains(name));
        Some((elements.iter().position(named)?, elements.len() > 1))
    });
    let Some((place, is_tuple)) = places.min() else {
        return false;
    };
    alternatives().any(|it| match (is_tuple, elements(it).as_slice()) {
        (true, [whole]) => is_anything(whole),
        (_, parts) => parts.get(place).is_some_and(|part| is_anything(part)),
    })
}

/// Returns the elements of a tuple, or the pattern itself.
fn elements(pattern: &str) -> Vec<&str> {
    let inner = pattern
        .strip_prefix('(')
        .and_then(|it| it.strip_suffix(')'));
    match inner {
        Some(inner) => split(inner, ','),
        None => vec![pattern],
    }
}

/// Splits a pattern at a sign, except inside brackets.
fn split(pattern: &str, sign: char) -> Vec<&str> {
    let mut depth = 0;
    let parts = pattern.split(move |c: char| {
        depth += i32::from("([{".contains(c)) - i32::from(")]}".contains(c));
        depth == 0 && c == sign
    });
    parts
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect()
}

/// Returns `true` if a pattern is `_`, `..` or a variable.
fn is_anything(pattern: &str) -> bool {
    let is_name = |c: char| c.is_lowercase() || c.is_numeric() || c == '_';
    pattern == ".." || !pattern.is_empty() && pattern.chars().all(is_name)
}

/// Returns the lines that compare a format with a variant.
fn comparisons(code: &str) -> Vec<String> {
    let variants = code.match_indices("WireFormat::").filter(|(at, name)| {
        let rest = &code[at + name.len()..];
        rest.starts_with(char::is_uppercase) && !rest.starts_with("ALL")
    });
    let compared = variants.filter(|(at, _)| is_compared(code, *at));
    let mut lines: Vec<&str> = compared.map(|(at, _)| line_at(code, at)).collect();
    lines.dedup();
    lines.into_iter().map(|it| it.trim().to_owned()).collect()
}

/// Returns `true` if the variant at a position is compared, or is in a pattern without an
/// alternative.
fn is_compared(code: &str, at: usize) -> bool {
    let before = code[..at].trim_end_matches(['(', '&', '[']).trim_end();
    let word = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':' | ')' | ']');
    let after = code[at..].trim_start_matches(word).trim_start();
    let in_macro = code[..at]
        .rfind("matches!(")
        .is_some_and(|begin| is_open(&code[begin + "matches!(".len()..at]));
    let is_list = code[at..]
        .split([';', '{'])
        .next()
        .is_some_and(|it| it.contains("].contains("));
    ["==", "!="]
        .iter()
        .any(|sign| before.ends_with(sign) || after.starts_with(sign))
        || before.ends_with("if let")
        || before.ends_with("while let")
        || in_macro
        || is_list
}

/// Returns `true` if no bracket closes that was not opened.
fn is_open(code: &str) -> bool {
    let mut depth = 0;
    code.chars().all(|c| {
        depth += i32::from("([{".contains(c)) - i32::from(")]}".contains(c));
        depth >= 0
    })
}

/// Returns the line that contains a position.
fn line_at(code: &str, at: usize) -> &str {
    let begin = code[..at].rfind('\n').map_or(0, |it| it + 1);
    let end = code[at..].find('\n').map_or(code.len(), |it| at + it);
    &code[begin..end]
}
