//! Checks that every attack must pass.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use super::recipe::Recipe;
use super::sandbox::{Ran, SECRET, Sandbox};

/// Prefixes of lines that a CI system interprets as a command or as the head of a group.
const WORKFLOW_COMMANDS: [&str; 12] = [
    "::",
    "##[",
    "##vso[",
    "##teamcity[",
    "section_start:",
    "section_end:",
    "travis_fold:",
    "travis_time:",
    "--- ",
    "+++ ",
    "~~~ ",
    "^^^ ",
];

/// Returns what went wrong in one command.
pub(crate) fn ran(recipe: &Recipe, ran: &Ran) -> Vec<String> {
    let mut wrong = Vec::new();
    let code = match &ran.ended {
        Ok(status) => status.code(),
        Err(why) => {
            wrong.push(why.clone());
            None
        }
    };
    let allowed: &[i32] = if recipe.status.is_empty() {
        &[0, 1, 2]
    } else {
        &recipe.status
    };
    match code {
        Some(code) if allowed.contains(&code) => {}
        Some(code) => wrong.push(format!("ended with {code}, not with one of {allowed:?}")),
        None if wrong.is_empty() => wrong.push("was ended by a signal".to_owned()),
        None => {}
    }
    if code.is_some() && asks_for_json(&ran.arguments) {
        wrong.extend(json(code, &ran.out));
    }
    if !recipe.verbatim {
        wrong.extend(text("standard output", &ran.out));
    }
    wrong.extend(text("standard error", &ran.err));
    wrong.extend(shows_secret("standard output", &ran.out));
    wrong.extend(shows_secret("standard error", &ran.err));
    let command = format!(
        "`{}`",
        ran.arguments
            .join(" ")
            .chars()
            .take(200)
            .collect::<String>()
    );
    wrong
        .into_iter()
        .map(|what| format!("{command}: {what}"))
        .collect()
}

fn asks_for_json(arguments: &[String]) -> bool {
    // These print a request or a command in every format.
    if arguments
        .iter()
        .any(|argument| argument == "--dry-run" || argument == "--curl")
    {
        return false;
    }
    arguments
        .windows(2)
        .any(|pair| pair[0] == "--format" && pair[1] == "json")
        || arguments.iter().any(|argument| argument == "--format=json")
}

/// Checks that the output is one JSON value, or empty if the command could not run.
fn json(code: Option<i32>, out: &[u8]) -> Option<String> {
    if code == Some(2) && out.is_empty() {
        return None;
    }
    let error = serde_json::from_slice::<serde::de::IgnoredAny>(out).err()?;
    Some(format!("standard output is not JSON: {error}"))
}

/// Checks that terminals, logs and workflows show the text as it is. Returns the first violation.
pub(crate) fn text(stream: &str, bytes: &[u8]) -> Option<String> {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Some(format!("{stream} is not UTF-8"));
    };
    let plain = without_colours(text);
    let chars: Vec<char> = plain.chars().collect();
    if let Some(at) = (0..chars.len()).find(|&at| is_hostile(chars[at]) && !is_joiner(&chars, at)) {
        return Some(format!("{stream} has U+{:04X}", u32::from(chars[at])));
    }
    let seen = plain.replace('\u{fe0f}', "");
    let command = |line: &&str| {
        WORKFLOW_COMMANDS
            .iter()
            .any(|start| line.trim_start().starts_with(start))
    };
    seen.lines()
        .find(command)
        .map(|line| format!("{stream} has the line {line:?}"))
}

/// Removes colour sequences from a string.
fn without_colours(text: &str) -> String {
    let mut parts = text.split("\u{1b}[");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| !(c.is_ascii_digit() || c == ';'));
        match end {
            Some(end) if part[end..].starts_with('m') => plain.push_str(&part[end + 1..]),
            _ => plain.push_str(&format!("\u{1b}[{part}")),
        }
    }
    plain
}

/// Returns whether a joiner is part of an emoji, or of a word that needs it or ends with it.
fn is_joiner(chars: &[char], at: usize) -> bool {
    let (before, after) = (
        at.checked_sub(1).and_then(|before| chars.get(before)),
        chars.get(at + 1),
    );
    let is_joined = |c: Option<&char>| c.is_some_and(|c| !c.is_ascii() && !is_hostile(*c));
    let ends_word = before.is_some_and(|c| ('\u{590}'..='\u{1cff}').contains(c))
        && after.is_none_or(|c| !c.is_alphanumeric() && !is_hostile(*c));
    matches!(chars[at], '\u{200c}' | '\u{200d}')
        && is_joined(before)
        && (is_joined(after) || ends_word)
}

/// Control characters, changes of text direction, and invisible characters.
fn is_hostile(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        c if c.is_control() => true,
        '\u{ad}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{180e}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{2800}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}

/// Returns a message if bytes contain the planted secret: as it is, reversed, in hexadecimal or in
/// Base64.
fn shows_secret(where_: &str, bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes).to_lowercase();
    let hexadecimal = SECRET
        .bytes()
        .map(|byte| format!("{byte:02x}"))
        .collect::<Vec<_>>()
        .concat();
    let reversed: String = SECRET.to_lowercase().chars().rev().collect();
    let forms = [SECRET.to_lowercase(), reversed, hexadecimal];
    let plain = forms.iter().find(|form| text.contains(*form));
    plain
        .cloned()
        .or_else(|| base64_form(bytes))
        .map(|form| format!("{where_} shows a secret: {form}"))
}

/// The middle of the secret in Base64, for each of the three offsets at which it can start.
fn base64_form(bytes: &[u8]) -> Option<String> {
    use base64::Engine as _;
    let text = String::from_utf8_lossy(bytes);
    let at = |skip: usize| {
        let encoded =
            base64::engine::general_purpose::STANDARD_NO_PAD.encode(&SECRET.as_bytes()[skip..]);
        encoded[..encoded.len() - 2].to_owned()
    };
    (0..3).map(at).find(|form| text.contains(form.as_str()))
}

/// Checks that the output of all commands contains and lacks the strings of the recipe.
pub(crate) fn said(recipe: &Recipe, said: &str, fill: impl Fn(&str) -> String) -> Vec<String> {
    let missing = recipe
        .has
        .iter()
        .map(|text| fill(text))
        .filter(|text| !said.contains(text.as_str()));
    let surplus = recipe
        .lacks
        .iter()
        .map(|text| fill(text))
        .filter(|text| said.contains(text.as_str()));
    let missing = missing.map(|text| format!("does not say {text:?}"));
    missing
        .chain(surplus.map(|text| format!("says {text:?}")))
        .collect()
}

/// Checks the files that were written or removed, and the programs that ran.
pub(crate) fn written(
    recipe: &Recipe,
    sandbox: &Sandbox,
    before: &BTreeMap<PathBuf, String>,
) -> Vec<String> {
    let mut wrong: Vec<String> = sandbox
        .marks()
        .into_iter()
        .map(|who| format!("ran a program: {who}"))
        .collect();
    for path in sandbox.changes(before) {
        if !may_write(recipe, sandbox, &path) {
            wrong.push(format!("changed {}", path.display()));
        }
        let bytes = fs::read(sandbox.path(&path.to_string_lossy())).unwrap_or_default();
        wrong.extend(shows_secret(&path.display().to_string(), &bytes));
    }
    let kept = |path: &&String| sandbox.root().join(path).symlink_metadata().is_err();
    wrong.extend(
        recipe
            .keeps
            .iter()
            .filter(kept)
            .map(|path| format!("`{path}` is not there")),
    );
    wrong
}

fn may_write(recipe: &Recipe, sandbox: &Sandbox, path: &Path) -> bool {
    let starts = |with: &str| {
        recipe
            .writes
            .iter()
            .any(|start| with.starts_with(start.as_str()))
    };
    let home = path.strip_prefix("home").ok().and_then(Path::to_str);
    sandbox.in_repository(path).is_some_and(starts)
        || home.is_some_and(|path| starts(&format!("~/{path}")))
}
