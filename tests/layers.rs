//! The modules of `src/` import only modules above them in the table of `ARCHITECTURE.md`. Inside a
//! folder (a "room"), a module imports only modules whose `mod` lines come before its own, even
//! through re-exports of the file that declares them (the "door"). In the folders of [`DOORS`], no
//! module uses the items of its own door: they are for other folders. The modules of [`PATH`] have
//! few public items, and the documentation says who needs each of the other modules.

#![expect(clippy::disallowed_methods, reason = "the test reads the sources")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Folders whose modules must not use the items that the folder's own file declares or re-exports.
const DOORS: [&str; 1] = ["compile"];

/// The modules that every host needs: they compile, send, and check.
const PATH: [&str; 3] = ["compile", "runtime", "lint"];

/// The maximum number of public items in the modules of [`PATH`].
const PATH_ITEMS: usize = 60;

/// Returns the modules of the table, in its order.
fn table() -> Vec<String> {
    let page = read(&root().join("ARCHITECTURE.md"));
    let (_, modules) = page
        .split_once("\n## Modules\n")
        .expect("the page has a section of modules");
    let rows = modules
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'));
    rows.filter_map(|row| Some(row.strip_prefix("| `")?.split_once('`')?.0.to_owned()))
        .collect()
}

/// Returns the modules that a module uses outside tests, each with the files that use it.
fn imports(module: &str) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files(module) {
        let shown = path
            .strip_prefix(root())
            .expect("below the root")
            .to_string_lossy()
            .into_owned();
        let depth = path
            .strip_prefix(root().join("src"))
            .expect("below it")
            .components()
            .count();
        // A chain of `super` as long as the file is deep leads to the crate's root.
        let text = read(&path).replace(&"super::".repeat(depth), "crate::");
        for other in named(&text) {
            found.entry(other).or_default().push(shown.clone());
        }
    }
    found
}

/// Returns `x` for every `crate::x` and `crate::{x, y::Z}` in code.
fn named(text: &str) -> Vec<String> {
    named_after(&code(text), &["crate::"])
}

/// Returns a file without its comments and its module of tests. (`mod tests;`, which may be near
/// the top, is not the end of the code.)
fn code(text: &str) -> String {
    let tests = text.match_indices("\n#[cfg(test)]\nmod ").find(|(at, it)| {
        let declaration = text[at + it.len()..].lines().next();
        declaration.is_some_and(|it| it.ends_with('{'))
    });
    let code = &text[..tests.map_or(text.len(), |(at, _)| at)];
    code.lines()
        .filter(|line| !line.trim_start().starts_with("//"))
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns the names that follow any of these prefixes, unless the path continues with `super::`.
fn named_after(code: &str, beginnings: &[&str]) -> Vec<String> {
    let mut names = Vec::new();
    for beginning in beginnings {
        for (at, _) in code.match_indices(beginning) {
            let rest = &code[at + beginning.len()..];
            if code[..at].ends_with("super::") || rest.starts_with("super::") {
                continue;
            }
            match rest.strip_prefix('{') {
                Some(list) => names.extend(top_level(list).map(word)),
                None => names.push(word(rest)),
            }
        }
    }
    names
}

/// Splits a list at its commas, up to the closing brace; lists in inner braces stay whole.
fn top_level(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0;
    let end = list.char_indices().find(|(_, c)| {
        depth += i32::from(*c == '{') - i32::from(*c == '}');
        depth < 0
    });
    let mut depth = 0;
    let parts = list[..end.map_or(list.len(), |(at, _)| at)].split(move |c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0 && c == ','
    });
    parts.map(str::trim)
}

fn word(text: &str) -> String {
    text.chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

fn files(module: &str) -> Vec<PathBuf> {
    let source = root().join("src");
    let (mut found, mut folders) = (
        vec![source.join(format!("{module}.rs"))],
        vec![source.join(module)],
    );
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
        {
            match path.extension() {
                None => folders.push(path),
                Some(extension) if extension == "rs" && !path.ends_with("tests.rs") => {
                    found.push(path);
                }
                Some(_) => {}
            }
        }
    }
    found
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn every_module_is_in_the_table() {
    let library = read(&root().join("src/lib.rs"));
    let declared = library
        .lines()
        .filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod "));
    let mut declared: Vec<&str> = declared.map(|name| name.trim_end_matches(';')).collect();
    let table = table();
    let mut listed: Vec<&str> = table.iter().map(String::as_str).collect();
    declared.sort_unstable();
    listed.sort_unstable();
    assert_eq!(declared, listed);
}

#[test]
fn no_import_runs_back_up() {
    let table = table();
    let place = |name: &str| table.iter().position(|known| known == name);
    let mut wrong = Vec::new();
    for (at, module) in table.iter().enumerate() {
        for (other, files) in imports(module) {
            if place(&other).is_some_and(|other| other > at) {
                wrong.push(format!(
                    "`{module}` uses `{other}`, which stands below it: {}",
                    files.join(", ")
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A folder of modules, and the file that declares them.
struct Room {
    /// The path of its module from the crate's root, such as `compile/lint`.
    path: String,
    /// The modules that it declares, in order, without modules of tests.
    modules: Vec<String>,
    /// The items of these modules that its door re-exports, each with its module.
    named_again: BTreeMap<String, String>,
}

/// Returns every room of `src/`.
fn rooms() -> Vec<Room> {
    let (mut rooms, mut folders) = (Vec::new(), vec![root().join("src")]);
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder)
            .expect("a folder")
            .flatten()
            .map(|entry| entry.path())
        {
            let door = path.with_extension("rs");
            if path.is_dir() && door.is_file() {
                let relative = path.strip_prefix(root().join("src")).expect("below it");
                let path = relative.to_string_lossy().replace('\\', "/");
                let text = read(&door);
                let modules = declared(&text);
                rooms.push(Room {
                    path,
                    named_again: named_again(&text, &modules),
                    modules,
                });
            }
            if path.is_dir() {
                folders.push(path);
            }
        }
    }
    rooms.sort_by(|a, b| a.path.cmp(&b.path));
    rooms
}

/// Returns the modules that a file declares, in order, without modules of tests.
fn declared(text: &str) -> Vec<String> {
    let modules = text.lines().filter_map(|line| {
        let line = line.strip_suffix(';')?;
        let (before, name) = line.rsplit_once("mod ")?;
        (before.is_empty() || before.starts_with("pub")).then(|| name.to_owned())
    });
    modules.filter(|name| name != "tests").collect()
}

/// Returns the items of these modules that a file re-exports, each with its module.
fn named_again(text: &str, modules: &[String]) -> BTreeMap<String, String> {
    let code = code(text);
    let uses = code.split('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len() + 1;
        Some((start, line))
    });
    let mut found = BTreeMap::new();
    for (at, line) in uses {
        let Some((before, _)) = line.split_once("use ") else {
            continue;
        };
        if !(before.is_empty() || before.starts_with("pub")) {
            continue;
        }
        let path = &code[at + before.len() + "use ".len()..];
        let path = path.split_once(';').expect("an end").0;
        let path = path.strip_prefix("self::").unwrap_or(path);
        let module = word(path);
        if modules.contains(&module) && path[module.len()..].starts_with("::") {
            let items = used(path).into_iter();
            found.extend(items.map(|item| (item, module.clone())));
        }
    }
    found
}

impl Room {
    /// Returns the position of the module that has this name, or from which the door re-exports an
    /// item with this name. `None` if the room has neither.
    fn place(&self, name: &str) -> Option<usize> {
        let module = self.named_again.get(name).map_or(name, String::as_str);
        self.modules.iter().position(|known| known == module)
    }

    /// Returns the names that a module uses from its own room (other modules, and items of the
    /// door), each with the files that use it.
    fn uses(&self, module: &str) -> BTreeMap<String, Vec<String>> {
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let depth = self.path.split('/').count();
        let inside = format!("crate::{}::", self.path.replace('/', "::"));
        for path in files(&format!("{}/{module}", self.path)) {
            if !path.is_file() {
                continue;
            }
            let relative = path.strip_prefix(root().join("src")).expect("below it");
            let supers = "super::".repeat(relative.components().count() - depth);
            let shown = format!("src/{}", relative.to_string_lossy().replace('\\', "/"));
            for other in named_after(&code(&read(&path)), &[&supers, &inside]) {
                if other != module {
                    found.entry(other).or_default().push(shown.clone());
                }
            }
        }
        found
    }
}

#[test]
fn no_import_inside_a_room_runs_back_up() {
    let mut wrong = Vec::new();
    for room in rooms() {
        let is_door = DOORS
            .iter()
            .any(|door| room.path == *door || room.path.starts_with(&format!("{door}/")));
        for (at, module) in room.modules.iter().enumerate() {
            for (other, files) in room.uses(module) {
                let is_of_door = !other.is_empty() && !room.modules.contains(&other);
                let runs_back = room.place(&other).is_some_and(|place| place > at);
                if runs_back || is_door && is_of_door {
                    wrong.push(format!(
                        "in `{}`, `{module}` uses `{other}`: {}",
                        room.path,
                        files.join(", ")
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The public items, re-exports, and public modules of a file, without those hidden from the
/// documentation.
#[derive(Debug, Default, PartialEq)]
struct Shown {
    items: BTreeSet<String>,
    modules: BTreeSet<String>,
}

impl Shown {
    fn of(text: &str) -> Shown {
        let mut shown = Shown::default();
        let code = code(text);
        for (at, _) in format!("\n{code}").match_indices("\npub ") {
            let declared = &code[at + "pub ".len()..];
            let before = code[..at].lines().rev();
            let mut attributes = before.take_while(|line| line.starts_with("#["));
            if attributes.any(|line| line == "#[doc(hidden)]") {
                continue;
            }
            if let Some(named) = declared.strip_prefix("use ") {
                let named = named.split_once(';').expect("an end").0;
                shown.items.extend(used(named));
            } else if let Some(module) = declared.strip_prefix("mod ") {
                shown.modules.insert(word(module));
            } else {
                let words = [
                    "const ", "async ", "fn ", "struct ", "enum ", "trait ", "type ",
                ];
                let name = words.iter().fold(declared, |rest, word| {
                    rest.strip_prefix(word).unwrap_or(rest)
                });
                shown.items.insert(word(name));
            }
        }
        shown
    }
}

/// Returns the names that a `use` brings into scope.
fn used(path: &str) -> Vec<String> {
    match path.trim().split_once('{') {
        Some((_, list)) => top_level(list).flat_map(used).collect(),
        None => {
            let name = path.rsplit("::").next().unwrap_or(path);
            let name = name.rsplit(" as ").next().unwrap_or(name).trim();
            Vec::from_iter((!name.is_empty()).then(|| name.to_owned()))
        }
    }
}

#[test]
fn what_hosts_see_is_found() {
    let text = "//! [`pub use x;`]\npub mod a;\n#[doc(hidden)]\npub mod b;\npub(crate) mod c;\n\
                #[doc(inline)]\npub use d::{E, f::{G as H}};\npub use {i::J, k};\npub const fn l() {}\n\
                #[cfg(unix)]\n#[doc(hidden)]\npub fn m() {}\npub struct N;\nimpl N {\n    pub fn o() {}\n}\n\
                #[cfg(test)]\nmod tests {\n}\npub use p;";
    let shown = Shown::of(text);
    assert_eq!(Vec::from_iter(&shown.modules), ["a"]);
    assert_eq!(Vec::from_iter(&shown.items), ["E", "H", "J", "N", "k", "l"]);
}

#[test]
fn the_path_of_a_host_is_short() {
    let mut items = BTreeSet::new();
    for file in PATH {
        let shown = Shown::of(&read(&root().join(format!("src/{file}.rs"))));
        assert!(!shown.items.is_empty(), "src/{file}.rs shows nothing");
        items.extend(shown.items.iter().map(|item| format!("{file}::{item}")));
    }
    let count = items.len();
    assert!(count <= PATH_ITEMS, "{count} items: {items:?}");
    let front = Shown::of(&read(&root().join("src/lib.rs")));
    for item in &front.items {
        let door = format!("compile::{item}");
        assert!(items.contains(&door), "{item} is not on the path");
    }
}

#[test]
fn the_documentation_says_whom_each_module_is_for() {
    let mut missing = Vec::new();
    for file in ["lib"].into_iter().chain(PATH) {
        let text = read(&root().join(format!("src/{file}.rs")));
        let rows: Vec<&str> = text
            .lines()
            .filter(|line| line.starts_with("//! | ["))
            .collect();
        for module in Shown::of(&text).modules {
            let link = format!("[`{module}`]");
            if !PATH.contains(&module.as_str()) && !rows.iter().any(|row| row.contains(&link)) {
                missing.push(format!("src/{file}.rs: {module}"));
            }
        }
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn imports_inside_a_room_are_found() {
    let text = "use super::a::X;\nuse super::{b, c::Y};\nuse super::super::d;\nuse crate::r::e;\n// use super::f;\n";
    assert_eq!(
        named_after(&code(text), &["super::", "crate::r::"]),
        ["a", "b", "c", "e"]
    );
    assert_eq!(
        declared("mod a;\npub(super) mod b;\n#[cfg(test)]\nmod tests;\nuse c;\n"),
        ["a", "b"]
    );
    let door = "pub mod a;\nmod b;\npub use a::{X, y::Z as W};\nuse self::b::V;\nuse other::U;\nfn f() {\n    use b::T;\n}\n";
    let again = named_again(door, &declared(door));
    let again: Vec<_> = again
        .iter()
        .map(|(item, module)| (&**item, &**module))
        .collect();
    assert_eq!(again, [("V", "b"), ("W", "a"), ("X", "a")]);
    let rooms = rooms();
    let compile = rooms
        .iter()
        .find(|room| room.path == "compile")
        .expect("the room");
    assert!(compile.uses("load").contains_key("compiler"));
}

#[test]
fn imports_are_found() {
    let text = "//! [`a`](crate::a)\nuse crate::b::{self, X};\nuse crate::{c, d::{Y, Z}, e};\nlet x = crate::f::g();\n\
                #[cfg(test)]\nmod tests {\n    use crate::h;\n}\n";
    assert_eq!(named(text), ["b", "c", "d", "e", "f"]);
    assert_eq!(named("#\n#[cfg(test)]\nmod tests;\nuse crate::b;"), ["b"]);
    assert!(imports("cli").contains_key("compile"));
}
