//! Rooms: the modules of `src/` import only what stands above them in the table of `ARCHITECTURE.md`.

#![expect(clippy::disallowed_methods, reason = "the test reads the sources")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The modules of the table, in its order.
fn table() -> Vec<String> {
    let page = read(&root().join("ARCHITECTURE.md"));
    let (_, modules) = page.split_once("\n## Modules\n").expect("the page has a section of modules");
    let rows = modules.lines().skip_while(|line| !line.starts_with('|')).take_while(|line| line.starts_with('|'));
    rows.filter_map(|row| Some(row.strip_prefix("| `")?.split_once('`')?.0.to_owned())).collect()
}

/// The modules that each module names in code, tests aside, with the files that do.
fn imports(module: &str) -> BTreeMap<String, Vec<String>> {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for path in files(module) {
        let shown = path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned();
        let depth = path.strip_prefix(root().join("src")).expect("below it").components().count();
        // As many `super` as a file is deep lead to the crate's root.
        let text = read(&path).replace(&"super::".repeat(depth), "crate::");
        for other in named(&text) {
            found.entry(other).or_default().push(shown.clone());
        }
    }
    found
}

/// `x` of every `crate::x` and `crate::{x, y::Z}` in code.
fn named(text: &str) -> Vec<String> {
    let code = text.split("\n#[cfg(test)]\nmod ").next().unwrap_or_default();
    let code: String = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut names = Vec::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(list) => names.extend(top_level(list).map(word)),
            None => names.push(word(rest)),
        }
    }
    names
}

/// The parts between commas up to the closing brace, without those in inner braces.
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
    text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect()
}

fn files(module: &str) -> Vec<PathBuf> {
    let source = root().join("src");
    let (mut found, mut folders) = (vec![source.join(format!("{module}.rs"))], vec![source.join(module)]);
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
            match path.extension() {
                None => folders.push(path),
                Some(extension) if extension == "rs" && !path.ends_with("tests.rs") => found.push(path),
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
    let declared = library.lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod "));
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
                wrong.push(format!("`{module}` uses `{other}`, which stands below it: {}", files.join(", ")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn imports_are_found() {
    let text = "//! [`a`](crate::a)\nuse crate::b::{self, X};\nuse crate::{c, d::{Y, Z}, e};\nlet x = crate::f::g();\n\
                #[cfg(test)]\nmod tests {\n    use crate::h;\n}\n";
    assert_eq!(named(text), ["b", "c", "d", "e", "f"]);
    assert!(imports("cli").contains_key("compile"));
}
