//! A file of attacks, read: defaults filled in, placeholders of size unfolded.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};
use toml_edit::{Document, Item};

/// One attack.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Recipe {
    #[serde(skip)]
    pub(crate) family: String,
    #[serde(skip)]
    pub(crate) name: String,
    /// The attack's own text, which stands for `<<it>>`.
    pub(crate) it: String,
    /// More texts, each for `<<its name>>`.
    pub(crate) texts: BTreeMap<String, String>,
    /// Path → text of the repository.
    pub(crate) files: BTreeMap<String, String>,
    /// Files that are alike.
    pub(crate) many: Vec<Many>,
    /// A real folder below `tests/hostile` that is the repository.
    pub(crate) folder: Option<PathBuf>,
    /// A shell script that is run in the repository before anything else: links, pipes, git.
    pub(crate) setup: String,
    /// What the repository's folder is called.
    pub(crate) root: Option<String>,
    /// The folder that commands are run in, relative to the repository.
    pub(crate) cwd: String,
    /// What is run instead of `reqc`.
    pub(crate) program: Option<PathBuf>,
    /// The commands, one list of arguments each.
    pub(crate) run: Vec<Vec<String>>,
    /// More commands, whose exit status tells nothing: what they must withstand is the same.
    pub(crate) also: Vec<Vec<String>>,
    /// What commands read.
    pub(crate) stdin: String,
    /// More variables of the environment.
    pub(crate) env: BTreeMap<String, String>,
    /// What a server says to whoever connects; `<<url>>` is its address.
    pub(crate) server: Option<Script>,
    /// Exit statuses that are right.
    pub(crate) status: Vec<i32>,
    /// What the commands must say, all of them together.
    pub(crate) has: Vec<String>,
    /// What none may say.
    pub(crate) lacks: Vec<String>,
    /// Where files may be written: paths relative to the repository, or what they start with.
    pub(crate) writes: Vec<String>,
    /// Files that must be there afterwards.
    pub(crate) keeps: Vec<String>,
    /// Standard output is the repository's own text, byte for byte: a body, not a report.
    pub(crate) verbatim: bool,
    /// Seconds of processor time for each command.
    pub(crate) seconds: Option<u64>,
    /// Seconds that may pass.
    pub(crate) patience: Option<u64>,
    /// Most memory that a command may hold.
    pub(crate) megabytes: Option<u64>,
}

/// Files with numbers in path and text.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Many {
    pub(crate) count: usize,
    pub(crate) path: String,
    pub(crate) text: String,
}

/// What a server does with each connection: reads one request, says this.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Script {
    /// Bytes; `<<key>>` is the key that came with the request.
    pub(crate) say: String,
    /// Bytes that are said again and again, until the client goes.
    pub(crate) forever: String,
    /// Waits for the client to go.
    pub(crate) hang: bool,
}

impl Script {
    /// The same with the attack's texts in it.
    pub(crate) fn filled(&self, recipe: &Recipe) -> Script {
        Script {
            say: recipe.fill(&self.say),
            forever: recipe.fill(&self.forever),
            ..self.clone()
        }
    }
}

impl Recipe {
    /// `family/name`.
    pub(crate) fn title(&self) -> String {
        format!("{}/{}", self.family, self.name)
    }

    /// The repository's files, unfolded, placeholders of the sandbox still in them.
    pub(crate) fn repository(&self) -> Vec<(String, String)> {
        let single = self
            .files
            .iter()
            .map(|(path, text)| (self.fill(path), self.fill(text)));
        let many = self.many.iter().flat_map(|many| {
            (0..many.count).map(|i| {
                let numbered = |text: &str| numbered(&self.fill(text), i, many.count);
                (numbered(&many.path), numbered(&many.text))
            })
        });
        single.chain(many).collect()
    }

    /// A text with the attack's own texts in it and repetitions written out.
    pub(crate) fn fill(&self, text: &str) -> String {
        if !text.contains("<<") {
            return text.to_owned();
        }
        // Texts may hold texts, but not for ever.
        let filled = (0..4).fold(text.replace("<<it>>", &self.it), |text, _| {
            let one = |text: String, (name, value): (&String, &String)| {
                text.replace(&format!("<<{name}>>"), value)
            };
            self.texts.iter().fold(text, one)
        });
        repeated(&filled)
    }
}

/// `<<3*ab>>` is `ababab`; `%i%`, `%next%` and `%wrap%` in it are numbers.
fn repeated(text: &str) -> String {
    let (mut done, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(start) = rest.find("<<") {
        let inner = &rest[start + 2..];
        let repetition = inner.split_once('*').and_then(|(times, tail)| {
            let (unit, after) = tail.split_once(">>")?;
            Some((times.parse::<usize>().ok()?, unit, after))
        });
        done.push_str(&rest[..start]);
        rest = match repetition {
            Some((times, unit, after)) if unit.contains('%') => {
                (0..times).for_each(|i| done.push_str(&numbered(unit, i, times)));
                after
            }
            Some((times, unit, after)) => {
                done.push_str(&unit.repeat(times));
                after
            }
            None => {
                done.push_str("<<");
                inner
            }
        };
    }
    done + rest
}

/// `%i%` is the number, `%next%` the next one, `%wrap%` the next one or 0 at the end.
fn numbered(text: &str, i: usize, count: usize) -> String {
    let next = (i + 1).to_string();
    text.replace("%i%", &i.to_string())
        .replace("%next%", &next)
        .replace("%wrap%", &((i + 1) % count).to_string())
}

/// Every attack of the files `*.toml` in a folder.
pub(crate) fn read_all(folder: &Path) -> Vec<Recipe> {
    let entries = fs::read_dir(folder)
        .expect("the folder of attacks")
        .flatten()
        .map(|entry| entry.path());
    let mut files: Vec<PathBuf> = entries
        .filter(|path| path.extension().is_some_and(|it| it == "toml"))
        .collect();
    files.sort();
    files.iter().flat_map(|file| read(file)).collect()
}

/// A file has a table `all`, what each of its attacks starts from, and a table `attack`: name →
/// text, or a table.
fn read(file: &Path) -> Vec<Recipe> {
    let family = file
        .file_stem()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let text = fs::read_to_string(file).expect("a readable file");
    let document =
        Document::parse(text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let Value::Object(mut top) = value(document.as_item()) else {
        unreachable!("a document is a table")
    };
    let all = top.remove("all").unwrap_or_default();
    let Some(Value::Object(attacks)) = top.remove("attack") else {
        panic!("{family} has no [attack]")
    };
    assert!(top.is_empty(), "{family}: unknown tables {:?}", top.keys());
    let one = |(name, own): (String, Value)| {
        let own = if own.is_string() {
            Map::from_iter([("it".to_owned(), own)]).into()
        } else {
            own
        };
        let merged = merged(all.clone(), own);
        let recipe =
            Recipe::deserialize(merged).unwrap_or_else(|error| panic!("{family}/{name}: {error}"));
        Recipe {
            family: family.clone(),
            name,
            ..recipe
        }
    };
    attacks.into_iter().map(one).collect()
}

/// Tables are merged; anything else is replaced.
fn merged(base: Value, over: Value) -> Value {
    match (base, over) {
        (Value::Object(mut base), Value::Object(over)) => {
            for (key, value) in over {
                let old = base.remove(&key).unwrap_or_default();
                base.insert(key, merged(old, value));
            }
            base.into()
        }
        (_, over) => over,
    }
}

fn value(item: &Item) -> Value {
    match item {
        Item::None => Value::Null,
        Item::Value(inner) => plain(inner),
        Item::Table(table) => table
            .iter()
            .map(|(key, item)| (key.to_owned(), value(item)))
            .collect(),
        Item::ArrayOfTables(tables) => {
            let table = |table: &toml_edit::Table| value(&Item::Table(table.clone()));
            tables.iter().map(table).collect()
        }
    }
}

fn plain(value: &toml_edit::Value) -> Value {
    use toml_edit::Value as Toml;
    match value {
        Toml::String(text) => text.value().as_str().into(),
        Toml::Integer(number) => (*number.value()).into(),
        Toml::Float(number) => (*number.value()).into(),
        Toml::Boolean(flag) => (*flag.value()).into(),
        Toml::Datetime(date) => date.value().to_string().into(),
        Toml::Array(elements) => elements.iter().map(plain).collect(),
        Toml::InlineTable(table) => table
            .iter()
            .map(|(key, value)| (key.to_owned(), plain(value)))
            .collect(),
    }
}
