//! Who wrote each value, tried: almost every byte has an exact source, and changing what is cited changes the value.
//!
//! ```sh
//! cargo test --release --test provenance                       # a sample of at least 1,000 values
//! REQC_EVERY_SOURCE=1 cargo test --release --test provenance   # every source that is cited
//! ```

#![expect(clippy::disallowed_methods, reason = "the test itself reads the files that it alters")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use reqc::compile::{Compiler, Explanation, SourceKind};
use reqc::json::Pointer;
use reqc::repo::LoadOptions;
use reqc::system::Embedded;
use reqc::world::MemoryWorld;
use serde_json::Value;

/// A collection of agents, in memory.
struct Collection {
    files: BTreeMap<String, String>,
}

/// A value of one body.
#[derive(Debug, Clone)]
struct Place {
    agent: String,
    context: String,
    pointer: Pointer,
    value: Value,
}

/// The text that is cited for a value, and what it stands for.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Cited {
    path: String,
    start: usize,
    end: usize,
}

impl Collection {
    fn read(folder: &Path) -> Collection {
        let mut files = BTreeMap::new();
        read_into(folder, folder, &mut files);
        Collection { files }
    }

    /// The bundled agents, as this project holds them.
    fn bundled() -> Collection {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut files = BTreeMap::new();
        for folder in ["agents", "partials", "roles", "contexts", "providers", "schemas"] {
            read_into(root, &root.join(folder), &mut files);
        }
        let config = root.join("reqc.toml");
        files.insert("reqc.toml".to_owned(), std::fs::read_to_string(config).expect("the project has one"));
        Collection { files }
    }

    /// The collection in the other dialect.
    fn flat() -> Collection {
        Collection::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/collections/flat"))
    }

    fn compile(&self) -> Compiler {
        let world: MemoryWorld = self.files.iter().map(|(path, text)| (path.clone(), text.clone())).collect();
        Compiler::load(Arc::new(world), Arc::new(Embedded::bundled()), LoadOptions::default())
    }

    /// The collection with a change in one file.
    fn altered(&self, cited: &Cited, text: &str) -> Option<Compiler> {
        let mut files = self.files.clone();
        files.get_mut(&cited.path)?.replace_range(cited.start..cited.end, text);
        Some(Collection { files }.compile())
    }
}

fn read_into(root: &Path, folder: &Path, files: &mut BTreeMap<String, String>) {
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be listed").path();
        match path.is_dir() {
            true => read_into(root, &path, files),
            false => {
                let name = path.strip_prefix(root).expect("below").to_str().expect("UTF-8").replace('\\', "/");
                files.extend(std::fs::read_to_string(&path).ok().map(|text| (name, text)));
            }
        }
    }
}

/// Every leaf of every body, explained.
fn explain_all(compiler: &Compiler, mut visit: impl FnMut(&str, &str, &Explanation)) {
    for &(id, _) in compiler.agents() {
        let agent = compiler.hierarchy().get(id).name.value.to_string();
        for ready in compiler.contexts() {
            if let Some(Ok((_, explained))) = compiler.explain(id, &ready.context.name, None, None) {
                explained.iter().for_each(|it| visit(&agent, &ready.context.name, it));
            }
        }
    }
}

/// What has no exact source, and why: the tag that computed it.
fn inexact(compiler: &Compiler) -> BTreeMap<String, usize> {
    let mut reasons = BTreeMap::new();
    explain_all(compiler, |_, _, it| {
        for source in it.sources.iter().filter(|source| source.kind.is_inferred() || source.span.is_none()) {
            let tag = source.tag.map(|tag| {
                format!("{} {}", compiler.sources().describe(tag), compiler.sources().slice(tag))
            });
            *reasons.entry(format!("{} {tag:?} {:?}", source.kind.name(), source.data)).or_default() += source.len;
        }
    });
    reasons
}

/// The bytes of all leaves by what is said of them; values whose source is in no file are apart.
fn bytes_by_source(compiler: &Compiler) -> BTreeMap<&'static str, usize> {
    let mut bytes: BTreeMap<&'static str, usize> = BTreeMap::new();
    explain_all(compiler, |_, _, it| {
        for source in &it.sources {
            let is_told = source.span.is_some() || source.len == 0;
            *bytes.entry(if is_told { source.kind.name() } else { "in no file" }).or_default() += source.len;
        }
        if it.sources.is_empty() {
            *bytes.entry(if it.step.is_some() { "step" } else { "literal" }).or_default() += it.value.to_string().len();
        }
    });
    bytes
}

fn assert_complete(collection: &Collection) {
    let compiler = collection.compile();
    let bytes = bytes_by_source(&compiler);
    let all: usize = bytes.values().sum();
    let inexact: usize = ["computed", "unknown", "in no file"].iter().filter_map(|kind| bytes.get(kind)).sum();
    println!("{all} bytes of leaves: {bytes:?}");
    assert!(all > 10_000, "{bytes:?}");
    assert!((all - inexact) * 100 >= all * 98, "{bytes:?}: {:#?}", self::inexact(&compiler));
    assert_eq!(bytes.get("unknown"), None, "every template can be followed");
}

#[test]
fn nearly_every_byte_of_the_bundled_agents_has_an_exact_source() {
    assert_complete(&Collection::bundled());
}

#[test]
fn nearly_every_byte_of_the_other_dialect_has_an_exact_source() {
    assert_complete(&Collection::flat());
}

/// What is cited exactly for values, with the values.
fn citations(collection: &Collection, compiler: &Compiler) -> BTreeMap<Cited, Vec<Place>> {
    let mut cited: BTreeMap<Cited, Vec<Place>> = BTreeMap::new();
    explain_all(compiler, |agent, context, it| {
        let from_template = it.sources.iter().filter(|source| source.len > 0 && !source.kind.is_inferred());
        let from_template = from_template.filter(|source| source.kind != SourceKind::Tag).filter_map(|source| source.span);
        let from_step = it.step.and_then(|(_, setting)| setting).filter(|_| it.sources.is_empty());
        let from_profile = it.literal.filter(|_| it.sources.is_empty());
        // Of a file that is read whole and trimmed, the first byte is cited: the rest of its line stands for it.
        for span in from_template.chain(from_step).chain(from_profile) {
            let file = compiler.sources().get(span.file);
            let place = Cited { path: file.path().to_string(), start: span.start as usize, end: span.end as usize };
            if collection.files.get(&place.path).is_some_and(|text| text == file.text()) {
                let (agent, context) = (agent.to_owned(), context.to_owned());
                let value = Place { agent, context, pointer: it.pointer.clone(), value: it.value.clone() };
                cited.entry(place).or_default().push(value);
            }
        }
    });
    cited
}

/// The text with a change that keeps its type: another letter, another digit, the other boolean. `None` if there is none.
fn changed(text: &str) -> Option<String> {
    match text {
        "true" => return Some("false".to_owned()),
        "false" => return Some("true".to_owned()),
        "null" => return None,
        _ => {}
    }
    let bytes = text.as_bytes();
    let is_free = |at: usize| at == 0 || bytes[at - 1] != b'\\' && (at < 2 || bytes[at - 2] != b'u');
    let at = (0..bytes.len()).find(|&at| bytes[at].is_ascii_alphanumeric() && is_free(at))?;
    let other = match bytes[at] {
        b'0' if bytes.len() > 1 => b'0',
        b'9' => b'8',
        digit if digit.is_ascii_digit() => digit + 1,
        b'z' => b'y',
        b'Z' => b'Y',
        letter => letter + 1,
    };
    let mut altered = bytes.to_vec();
    altered[at] = other;
    String::from_utf8(altered).ok()
}

/// How many values changed, stayed as they were, or went away with a file that became unusable.
#[derive(Debug, Default)]
struct Tried {
    changed: usize,
    same: Vec<String>,
    refused: usize,
}

fn try_citations(collection: &Collection, at_least: usize) -> Tried {
    let compiler = collection.compile();
    let all = citations(collection, &compiler);
    let every = std::env::var_os("REQC_EVERY_SOURCE").is_some();
    // Spread over all files, the same ones in each run.
    let mut order: Vec<(&Cited, &Vec<Place>)> = all.iter().collect();
    order.sort_by_key(|(cited, _)| (cited.start * 2_654_435_761 + cited.path.len() * 40_503) % 1_000_003);
    let mut tried = Tried::default();
    for (cited, places) in order {
        if !every && tried.changed + tried.same.len() >= at_least {
            break;
        }
        let text = &collection.files[&cited.path][cited.start..cited.end];
        let Some(altered) = changed(text).filter(|altered| altered != text) else { continue };
        let Some(after) = collection.altered(cited, &altered) else { continue };
        for place in places.iter().take(if every { usize::MAX } else { 12 }) {
            tried.one(&after, cited, place, &altered);
        }
    }
    tried
}

impl Tried {
    fn one(&mut self, after: &Compiler, cited: &Cited, place: &Place, altered: &str) {
        let is_there = after.context(&place.context).is_some();
        let id = after.hierarchy().by_name(&place.agent).filter(|_| is_there);
        let body = id.and_then(|id| after.body(id, &place.context, None)).and_then(Result::ok);
        match body.map(|body| body.value().pointer(place.pointer.as_str()).cloned()) {
            None => self.refused += 1,
            Some(value) if value.as_ref() != Some(&place.value) => self.changed += 1,
            Some(_) => self.same.push(format!(
                "{}:{}..{} as {altered:?} leaves {} of {} with {} as it is",
                cited.path, cited.start, cited.end, place.pointer, place.agent, place.context
            )),
        }
    }
}

fn assert_cited(collection: &Collection, at_least: usize) {
    let tried = try_citations(collection, at_least);
    let all = tried.changed + tried.same.len();
    println!("{all} values: {} changed, {} refused", tried.changed, tried.refused);
    assert!(all >= at_least, "{tried:?}");
    assert!(tried.same.len() * 200 <= all, "{:#?}", tried.same);
}

#[test]
fn changing_what_is_cited_changes_values_of_the_bundled_agents() {
    assert_cited(&Collection::bundled(), 1_000);
}

#[test]
fn changing_what_is_cited_changes_values_of_the_other_dialect() {
    assert_cited(&Collection::flat(), 300);
}
