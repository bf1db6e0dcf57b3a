//! Inputs: a repository from a seed and a number.

use fastrand::Rng;

use crate::corpus::{Corpus, Files};
use crate::grammar::{self, Place, quoted};
use crate::json;

/// Paths that mean something.
const PATHS: [&str; 19] = [
    "agents/a.toml",
    "agents/deep/b.toml",
    "agents/partials/p.jinja",
    "partials/p.jinja",
    "partials/m2.jinja",
    "contexts/c.json",
    "reqc.toml",
    "providers/q.toml",
    "providers/openai.toml",
    "models.toml",
    "rosters.toml",
    "model-families.toml",
    "roles/r.md",
    "schemas/wire/openai-chat.schema.json",
    "schemas/wire/openai-chat.extensions.json",
    "tools.toml",
    "agents/x\n::error::y.toml",
    "a.toml",
    "agents/\u{202e}\u{1b}.toml",
];
const KEYS: [&str; 45] = [
    "name",
    "extends",
    "abstract",
    "hidden",
    "description",
    "tags",
    "provider_instance",
    "endpoint",
    "model",
    "system_prompt",
    "enable_tools",
    "enable_thinking",
    "cache_prompt",
    "cache_ttl",
    "cache_breakpoints",
    "headers",
    "match",
    "unset",
    "body",
    "body.messages",
    "body.x",
    "body.temperature",
    "schema_version",
    "client_api",
    "url",
    "api_key_ref",
    "headers",
    "layer",
    "dialect",
    "golden.contexts",
    "rules",
    "allow",
    "extension",
    "roster",
    "agents",
    "file_patterns",
    "path_patterns",
    "project_names",
    "role",
    "template",
    "kind",
    "history",
    "content",
    "type",
    "code",
];
const PIECES: [&[u8]; 26] = [
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b"\r\n",
    b"\r",
    b"\n",
    b"\"",
    b"'''",
    b"\"\"\"",
    b"{{",
    b"}}",
    b"{%",
    b"%}",
    b"{#",
    b"[[",
    b"]]",
    b" = ",
    b"\\u202e",
    b"\\",
    b"\x1b[2J",
    b"\n::error::x\n",
    "\u{202e}\u{200b}".as_bytes(),
    b"{ a = 1 }",
    b"99999999999999999999",
    b"${MODEL}",
    b"include 'p.jinja'",
];
const NAMES: [&str; 12] = [
    "Base",
    "P Chat",
    "OpenAI Chat",
    "Claude Chat",
    "A",
    "B",
    "a",
    "Nobody",
    "",
    "../../x",
    "con",
    "X\\n::error::y\\u202e",
];

/// The input with a number.
pub(crate) fn input(corpus: &Corpus, seed: u64, number: u64) -> Files {
    let mut rng = Rng::with_seed(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number);
    let (mut files, counts) = match rng.u32(..2) {
        0 => (made(&mut rng), [0, 0, 0, 0, 0, 0, 1, 2]),
        _ => (
            corpus.repositories[rng.usize(..corpus.repositories.len())].clone(),
            [0, 1, 1, 1, 1, 2, 3, 5],
        ),
    };
    (0..counts[rng.usize(..counts.len())]).for_each(|_| mutate(&mut rng, corpus, &mut files));
    files
}

/// A small repository by the grammar.
fn made(rng: &mut Rng) -> Files {
    let mut files = Files::new();
    let count = 1 + rng.usize(..2);
    for index in 0..count {
        let letter = ["A", "B"][index];
        let mut text = format!("name = \"{letter}\"\nextends = {}\n", parent(rng));
        if rng.u32(..3) == 0 {
            text += &format!(
                "system_prompt = {}\n",
                quoted(&grammar::template(rng, Place::Prompt, 2))
            );
        }
        if rng.u32(..4) == 0 {
            text += &format!("{} = {}\n", KEYS[rng.usize(..18)], grammar::toml(rng, 1));
        }
        text += "[body]\n";
        for key in ["x", "y", "temperature"].iter().take(1 + rng.usize(..3)) {
            text += &format!("{key} = {}\n", quoted(&grammar::body(rng)));
        }
        files.insert(
            format!("agents/{}.toml", letter.to_lowercase()),
            text.into_bytes(),
        );
    }
    if rng.u32(..3) == 0 {
        files.insert(
            "partials/p.jinja".into(),
            grammar::template(rng, Place::Body, 2).into_bytes(),
        );
    }
    if rng.u32(..8) == 0 {
        files.insert(
            "schemas/wire/openai-chat.schema.json".into(),
            grammar::schema(rng, 4).into_bytes(),
        );
    }
    files
}

fn parent(rng: &mut Rng) -> String {
    let usual = ["Base", "P Chat", "OpenAI Chat", "Claude Chat"];
    format!(
        "\"{}\"",
        if rng.u32(..8) == 0 {
            NAMES[rng.usize(..NAMES.len())]
        } else {
            usual[rng.usize(..4)]
        }
    )
}

fn mutate(rng: &mut Rng, corpus: &Corpus, files: &mut Files) {
    if files.is_empty() || rng.u32(..12) == 0 {
        add(rng, corpus, files);
        return;
    }
    let path = files
        .keys()
        .nth(rng.usize(..files.len()))
        .cloned()
        .expect("there is one");
    if rng.u32(..12) == 0 {
        move_file(rng, files, &path);
        return;
    }
    let bytes = files.get_mut(&path).expect("it is there");
    let altered = match rng.u32(..10) {
        0 | 1 => bytewise(rng, bytes),
        2 => wordwise(rng, bytes),
        3 => linewise(rng, corpus, &path, bytes),
        4..=6 => meaningful(rng, &path, bytes),
        7 => numbers(rng, bytes),
        8 => named(rng, bytes),
        _ => spliced(rng, corpus, &path, bytes),
    };
    // Inputs stay small: what is long is for the attacks.
    if altered.len() < 64 * 1024 {
        *bytes = altered;
    }
}

/// A file at a path that means something, of its kind or of another.
fn add(rng: &mut Rng, corpus: &Corpus, files: &mut Files) {
    let path = PATHS[rng.usize(..PATHS.len())];
    let bytes = match rng.u32(..4) {
        0 => Vec::new(),
        1 => grammar::template(rng, Place::Body, 1).into_bytes(),
        _ => text_like(rng, corpus, path),
    };
    files.insert(path.to_owned(), bytes);
}

fn text_like(rng: &mut Rng, corpus: &Corpus, path: &str) -> Vec<u8> {
    let ending = path.rsplit('.').next().unwrap_or_default();
    let texts = corpus
        .texts
        .get(ending)
        .or_else(|| corpus.texts.get("toml"));
    texts.map_or_else(Vec::new, |texts| texts[rng.usize(..texts.len())].clone())
}

fn move_file(rng: &mut Rng, files: &mut Files, path: &str) {
    let bytes = files[path].clone();
    if rng.bool() {
        files.remove(path);
    }
    if rng.u32(..4) > 0 {
        files.insert(PATHS[rng.usize(..PATHS.len())].to_owned(), bytes);
    }
}

fn range(rng: &mut Rng, length: usize) -> std::ops::Range<usize> {
    let start = rng.usize(..=length);
    start..(start + rng.usize(..=16)).min(length)
}

fn bytewise(rng: &mut Rng, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = range(rng, bytes.len());
    match rng.u32(..6) {
        0 if !bytes.is_empty() => {
            let at = rng.usize(..bytes.len());
            bytes[at] ^= 1 << rng.u32(..8);
        }
        1 => drop(bytes.drain(at)),
        2 => {
            let piece = bytes[at.clone()].to_vec();
            bytes.splice(at.start..at.start, piece);
        }
        3 => bytes.truncate(at.start),
        _ => {
            let piece = PIECES[rng.usize(..PIECES.len())].iter().copied();
            drop(bytes.splice(at.start..at.start, piece));
        }
    }
    bytes
}

/// Returns where words, numbers and signs begin.
fn words(bytes: &[u8]) -> Vec<&[u8]> {
    let class = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'_' | 128.. => 0,
        b'0'..=b'9' => 1,
        b' ' | b'\t' => 2,
        byte => u16::from(byte) + 3,
    };
    bytes.chunk_by(|a, b| class(*a) == class(*b)).collect()
}

fn wordwise(rng: &mut Rng, bytes: &[u8]) -> Vec<u8> {
    let mut words: Vec<Vec<u8>> = words(bytes).into_iter().map(<[u8]>::to_vec).collect();
    if words.is_empty() {
        return bytes.to_vec();
    }
    let (first, second) = (rng.usize(..words.len()), rng.usize(..words.len()));
    match rng.u32(..4) {
        0 => words.swap(first, second),
        1 => drop(words.remove(first)),
        2 => {
            let word = words[second].clone();
            words[first] = word;
        }
        _ => words.insert(first, words[second].clone()),
    }
    words.concat()
}

fn linewise(rng: &mut Rng, corpus: &Corpus, path: &str, bytes: &[u8]) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> = bytes
        .split_inclusive(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    if lines.is_empty() {
        return bytes.to_vec();
    }
    let (first, second) = (rng.usize(..lines.len()), rng.usize(..lines.len()));
    match rng.u32(..4) {
        0 => lines.swap(first, second),
        1 => drop(lines.remove(first)),
        2 => lines.insert(first, lines[second].clone()),
        _ => {
            let other = text_like(rng, corpus, path);
            let others: Vec<&[u8]> = other.split_inclusive(|byte| *byte == b'\n').collect();
            if !others.is_empty() {
                lines.insert(first, others[rng.usize(..others.len())].to_vec());
            }
        }
    }
    lines.concat()
}

/// Returns what fits the kind of file: a key and value, a template, a place of JSON.
fn meaningful(rng: &mut Rng, path: &str, bytes: &[u8]) -> Vec<u8> {
    if path.starts_with("schemas/") && rng.u32(..3) == 0 {
        return grammar::schema(rng, 4).into_bytes();
    }
    if path.ends_with(".json") {
        return json::altered(rng, bytes).unwrap_or_else(|| bytewise(rng, bytes));
    }
    if path.ends_with(".toml") {
        return keyed(rng, bytes);
    }
    let piece = grammar::template(rng, Place::Body, 1).into_bytes();
    let at = range(rng, bytes.len());
    let mut bytes = bytes.to_vec();
    bytes.splice(at, piece);
    bytes
}

/// A line `key = value` with another key or value, or a new one.
fn keyed(rng: &mut Rng, bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let keyed: Vec<usize> = (0..lines.len())
        .filter(|index| lines[*index].contains(" = "))
        .collect();
    let key = KEYS[rng.usize(..KEYS.len())];
    if keyed.is_empty() || rng.u32(..4) == 0 {
        lines.insert(
            rng.usize(..=lines.len()),
            format!("{key} = {}", grammar::toml(rng, 2)),
        );
        return lines.join("\n").into_bytes();
    }
    let index = keyed[rng.usize(..keyed.len())];
    let (old, value) = lines[index].split_once(" = ").expect("it has one");
    lines[index] = match rng.u32(..3) {
        0 => format!("{key} = {value}"),
        _ => format!("{old} = {}", grammar::toml(rng, 2)),
    };
    lines.join("\n").into_bytes()
}

fn numbers(rng: &mut Rng, bytes: &[u8]) -> Vec<u8> {
    let words = words(bytes);
    let numbers: Vec<usize> = (0..words.len())
        .filter(|index| words[*index][0].is_ascii_digit())
        .collect();
    if numbers.is_empty() {
        return bytewise(rng, bytes);
    }
    let at = numbers[rng.usize(..numbers.len())];
    let new = [
        "0",
        "-1",
        "1",
        "18446744073709551615",
        "9223372036854775808",
        "1e999",
        "4000000000",
        "00",
        "0x0",
    ];
    let mut words: Vec<&[u8]> = words;
    words[at] = new[rng.usize(..new.len())].as_bytes();
    words.concat()
}

/// Another name where one is quoted.
fn named(rng: &mut Rng, bytes: &[u8]) -> Vec<u8> {
    let quotes: Vec<usize> = (0..bytes.len())
        .filter(|index| bytes[*index] == b'"')
        .collect();
    if quotes.len() < 2 {
        return bytewise(rng, bytes);
    }
    let first = rng.usize(..quotes.len() - 1);
    let mut bytes = bytes.to_vec();
    bytes.splice(
        quotes[first] + 1..quotes[first + 1],
        NAMES[rng.usize(..NAMES.len())].bytes(),
    );
    bytes
}

fn spliced(rng: &mut Rng, corpus: &Corpus, path: &str, bytes: &[u8]) -> Vec<u8> {
    let other = text_like(rng, corpus, path);
    let (cut, from) = (rng.usize(..=bytes.len()), rng.usize(..=other.len()));
    [&bytes[..cut], &other[from..]].concat()
}
