//! The starting points of mutations: the repositories of the cases, of the attacks and of the
//! collections, and single files of the bundled layer.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use reqc::world::MemoryWorld;

/// The files of a repository, by path.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

/// The maximum size of repositories and files, so that an input takes less than a millisecond.
const MOST_BYTES: usize = 6 * 1024;

pub(crate) struct Corpus {
    pub(crate) repositories: Vec<Files>,
    /// Contents, by the extension of their files.
    pub(crate) texts: BTreeMap<&'static str, Vec<Vec<u8>>>,
}

const ENDINGS: [&str; 4] = ["toml", "jinja", "json", "md"];

impl Corpus {
    pub(crate) fn read() -> Corpus {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let stages = folders(&root.join("tests/cases"));
        let cases = stages.iter().flat_map(|stage| folders(stage));
        let collections = folders(&root.join("tests/collections"));
        let mut repositories: Vec<Files> = cases
            .chain(collections)
            .map(|folder| files(&folder))
            .collect();
        repositories.extend(attacks(&root.join("tests/hostile")));
        repositories.iter_mut().for_each(extend_what_is_there);
        repositories.retain(|files| {
            !files.is_empty() && files.values().map(Vec::len).sum::<usize>() <= MOST_BYTES
        });
        let mut texts: BTreeMap<&'static str, Vec<Vec<u8>>> = BTreeMap::new();
        let bundled = [
            "agents",
            "partials",
            "contexts",
            "providers",
            "roles",
            "schemas",
        ];
        let singles = bundled.iter().flat_map(|folder| files(&root.join(folder)));
        for (path, bytes) in singles.chain(repositories.clone().into_iter().flatten()) {
            if let Some(ending) = ENDINGS.iter().find(|ending| path.ends_with(*ending))
                && bytes.len() <= MOST_BYTES
            {
                texts.entry(ending).or_default().push(bytes);
            }
        }
        Corpus {
            repositories,
            texts,
        }
    }
}

#[cfg(unix)]
fn attacks(folder: &Path) -> Vec<Files> {
    let recipes = crate::hostile::recipe::read_all(folder);
    // Long strings are only for tests of the binary.
    let small = recipes
        .iter()
        .filter(|recipe| recipe.many.is_empty() && !is_long(recipe));
    small
        .map(|recipe| {
            recipe
                .repository()
                .into_iter()
                .map(|(path, text)| (path, text.into_bytes()))
                .collect()
        })
        .collect()
}

#[cfg(unix)]
fn is_long(recipe: &crate::hostile::recipe::Recipe) -> bool {
    let texts = recipe
        .files
        .values()
        .chain(recipe.texts.values())
        .chain([&recipe.it]);
    texts.into_iter().any(|text| text.contains("000*"))
}

#[cfg(not(unix))]
fn attacks(_: &Path) -> Vec<Files> {
    Vec::new()
}

/// Replaces the parents that exist only in the bundled layer by one that the small layer has.
fn extend_what_is_there(files: &mut Files) {
    let known = [
        "Base",
        "P Chat",
        "OpenAI Chat",
        "Claude Chat",
        "Google AI Chat",
    ];
    let own: String = files
        .values()
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .collect();
    for bytes in files.values_mut() {
        let Ok(text) = std::str::from_utf8(bytes) else {
            continue;
        };
        let lines = text.split_inclusive('\n').map(|line| {
            let named = line
                .strip_prefix("extends = \"")
                .and_then(|rest| rest.split_once('"'));
            let unknown =
                |name: &str| !known.contains(&name) && !own.contains(&format!("name = \"{name}\""));
            named.filter(|(name, _)| unknown(name)).map_or_else(
                || line.to_owned(),
                |(_, rest)| format!("extends = \"OpenAI Chat\"{rest}"),
            )
        });
        *bytes = lines.collect::<String>().into_bytes();
    }
}

fn folders(root: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path());
    let mut folders: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

/// The files below a folder, except those that only tests use.
fn files(folder: &Path) -> Files {
    let walk = walkdir::WalkDir::new(folder)
        .sort_by_file_name()
        .into_iter()
        .flatten();
    let files = walk.filter(|entry| entry.file_type().is_file());
    let read = |entry: walkdir::DirEntry| {
        let path = entry.path().strip_prefix(folder).ok()?.to_str()?.to_owned();
        let tests = path == "expected" || path.ends_with(".snap") || path.starts_with("golden/");
        (!tests).then(|| Some((path, fs::read(entry.path()).ok()?)))?
    };
    files.filter_map(read).collect()
}

/// A small layer below the input, so that inputs are fast, with the names that repositories of the
/// corpus extend.
pub(crate) fn base() -> MemoryWorld {
    let mut world = MemoryWorld::from_iter([
        (
            "partials/m.jinja",
            "{% for m in ctx.history %}{\"role\": {{ tojson(m.role) }}, \"content\": {{ tojson(m.content) }}},{% endfor %}",
        ),
        ("roles/assistant.md", "Be brief.\n"),
        (
            "contexts/turn.json",
            r#"{"name": "turn", "why": "one turn", "kind": "chat", "golden": true,
                "history": [{"role": "user", "content": "hello\n\"é\u202e"}]}"#,
        ),
        (
            "contexts/tools.json",
            r#"{"name": "tools", "why": "a round", "kind": "chat", "tools": [{"name": "t", "description": "d", "schema": {}}],
                "history": [{"role": "assistant", "content": [{"type": "tool_use", "id": "i", "name": "t", "input": {"a": [1, null]}}]},
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "i", "content": "x"}]}], "system_layers": [{"name": "l", "text": "y"}]}"#,
        ),
        (
            "contexts/code.json",
            r#"{"name": "code", "why": "a cursor", "kind": "completion", "golden": true,
                "prefix": "a", "suffix": "b"}"#,
        ),
        (
            "schemas/wire/openai-chat.schema.json",
            r#"{"type": "object", "properties": {"model": {"type": "string"}, "temperature": {"type": "number", "maximum": 2},
                "messages": {"type": "array", "items": {"properties": {"role": {"enum": ["user", "assistant", "system"]}}}}}}"#,
        ),
    ]);
    for (name, api) in [
        ("P", "OpenAI Compatible"),
        ("OpenAI", "OpenAI (Chat Completions)"),
        ("Claude", "Claude"),
        ("Google AI", "Google AI"),
    ] {
        let text =
            format!("name = \"{name}\"\nclient_api = \"{api}\"\nurl = \"https://p.example/v1\"\n");
        world.insert(format!("providers/{}.toml", name.to_lowercase()), text);
        let agent = format!(
            "name = \"{name} Chat\"\nabstract = true\nprovider_instance = \"{name}\"\nextends = \"Base\"\n"
        );
        world.insert(format!("agents/{}.toml", name.to_lowercase()), agent);
    }
    world.insert(
        "agents/base.toml",
        "name = \"Base\"\nabstract = true\nprovider_instance = \"P\"\nendpoint = \"chat\"\n[body]\nmessages = \"[{% include 'm.jinja' %}]\"\n",
    );
    world
}
