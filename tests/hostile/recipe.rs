//! Reads a file of attacks, fills in defaults, and expands repetitions.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Map, Value};
use toml_edit::{Document, Item};

/// An attack.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Recipe {
    #[serde(skip)]
    pub(crate) family: String,
    #[serde(skip)]
    pub(crate) name: String,
    /// The text of the attack, which replaces `<<it>>`.
    pub(crate) it: String,
    /// More strings, each of which replaces `<<its name>>`.
    pub(crate) texts: BTreeMap<String, String>,
    /// The files of the repository: path → text.
    pub(crate) files: BTreeMap<String, String>,
    /// Files that differ only in numbers.
    pub(crate) many: Vec<Many>,
    /// A folder below `tests/hostile` that is used as the repository.
    pub(crate) folder: Option<PathBuf>,
    /// A shell script that runs in the repository before the commands, to create links, pipes or
    /// commits.
    pub(crate) setup: String,
    /// The name of the repository's folder.
    pub(crate) root: Option<String>,
    /// The working directory of the commands, relative to the repository.
    pub(crate) cwd: String,
    /// A program that runs instead of `reqc`.
    pub(crate) program: Option<PathBuf>,
    /// The commands, one list of arguments each.
    pub(crate) run: Vec<Vec<String>>,
    /// More commands, which must pass the same checks, but can have any exit status.
    pub(crate) also: Vec<Vec<String>>,
    /// The standard input of the commands.
    pub(crate) stdin: String,
    /// More environment variables.
    pub(crate) env: BTreeMap<String, String>,
    /// The script of a server; `<<url>>` is its address.
    pub(crate) server: Option<Script>,
    /// The permitted exit statuses.
    pub(crate) status: Vec<i32>,
    /// Strings that the commands must print, in any of their outputs.
    pub(crate) has: Vec<String>,
    /// Strings that no command may print.
    pub(crate) lacks: Vec<String>,
    /// Files that may be written: paths relative to the repository, or the beginnings of paths.
    pub(crate) writes: Vec<String>,
    /// Files that must exist afterwards.
    pub(crate) keeps: Vec<String>,
    /// Standard output contains text of the repository unchanged: it is a body, not a report.
    pub(crate) verbatim: bool,
    /// The limit of processor time for each command, in seconds.
    pub(crate) seconds: Option<u64>,
    /// The limit of real time for each command, in seconds.
    pub(crate) patience: Option<u64>,
    /// The limit of memory for each command.
    pub(crate) megabytes: Option<u64>,
}

/// Files with numbers in their paths and contents.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Many {
    pub(crate) count: usize,
    pub(crate) path: String,
    pub(crate) text: String,
}

/// The script of a server, for each connection: it reads one request, then answers.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Script {
    /// The answer; `<<key>>` is replaced by the key in the request.
    pub(crate) say: String,
    /// Bytes that are repeated until the client closes the connection.
    pub(crate) forever: String,
    /// Waits until the client closes the connection.
    pub(crate) hang: bool,
}

impl Script {
    /// Returns the script with the attack's strings filled in.
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

    /// The repository's files with repetitions expanded. Placeholders of the sandbox stay.
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

    /// Fills in the attack's own strings and expands repetitions.
    pub(crate) fn fill(&self, text: &str) -> String {
        if !text.contains("<<") {
            return text.to_owned();
        }
        // Strings can contain others, but only to this depth.
        let filled = (0..4).fold(text.replace("<<it>>", &self.it), |text, _| {
            let one = |text: String, (name, value): (&String, &String)| {
                text.replace(&format!("<<{name}>>"), value)
            };
            self.texts.iter().fold(text, one)
        });
        repeated(&filled)
    }
}

/// Expands `<<3*ab>>` to `ababab`; `%i%`, `%next%` and `%wrap%` in it are replaced by numbers.
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

/// Replaces `%i%` by the number, `%next%` by the next one, and `%wrap%` by the next one or, at the
/// end, by 0.
fn numbered(text: &str, i: usize, count: usize) -> String {
    let next = (i + 1).to_string();
    text.replace("%i%", &i.to_string())
        .replace("%next%", &next)
        .replace("%wrap%", &((i + 1) % count).to_string())
}

/// Reads every attack from the `*.toml` files of a folder.
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

/// Reads a file. Its table `all` has defaults for its attacks; its table `attack` maps each name to
/// a string or a table.
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

/// Merges tables; other values replace each other.
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
