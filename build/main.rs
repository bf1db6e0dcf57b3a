//! Generates validators for the bundled wire schemas, and compresses the bundled files, the model
//! families and the refusal dictionary, when the program is built.

// The library's rule that only `system` accesses the outside world does not apply to a build
// script.
#![allow(clippy::disallowed_methods)]

#[path = "../src/refusal/columns.rs"]
mod columns;
#[path = "../src/check/schema/extend.rs"]
mod extend;
mod families;
#[expect(dead_code, reason = "the build needs only some of the names")]
#[path = "../src/repo/folders.rs"]
mod folders;
#[path = "../src/check/schema/node.rs"]
mod node;
mod refusals;
mod validators;

use std::path::{Path, PathBuf};

/// The compression level. Level 10 gains a few hundred bytes.
const LEVEL: u8 = 9;

fn main() {
    let others = [
        folders::MODEL_FAMILIES,
        "build",
        "refusals",
        "src/check/schema",
        "src/refusal/columns.rs",
        "src/repo/folders.rs",
    ];
    for folder in folders::ALL.into_iter().chain(others) {
        println!("cargo::rerun-if-changed={folder}");
    }
    let variable = |name: &str| PathBuf::from(std::env::var_os(name).expect("cargo sets it"));
    let (project, output) = (variable("CARGO_MANIFEST_DIR"), variable("OUT_DIR"));
    let generated = validators::generate(&project.join("schemas/wire"));
    write(&output.join("validators.rs"), generated.as_bytes());
    let mut dictionary = files(&project, "refusals");
    dictionary.retain(|(path, _)| path.ends_with(".toml"));
    let columns = serde_json::to_string(&refusals::read(&dictionary));
    write_compressed(
        &output.join("refusals.deflate"),
        &columns.expect("columns are JSON"),
    );
    let families = families::json(&text(&project.join(folders::MODEL_FAMILIES)));
    write_compressed(&output.join("model-families.deflate"), &families);
    let bundled = folders::ALL
        .into_iter()
        .flat_map(|folder| files(&project, folder));
    let bundled: Vec<String> = bundled.flat_map(|(path, text)| [path, text]).collect();
    write_compressed(&output.join("bundled.deflate"), &bundled.join("\0"));
}

fn write_compressed(path: &Path, text: &str) {
    write(
        path,
        &miniz_oxide::deflate::compress_to_vec(text.as_bytes(), LEVEL),
    );
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("the output folder can be written");
}

/// Returns the text of a file. Zero bytes separate the bundled files, so no file may contain them.
fn text(path: &Path) -> String {
    let text = std::fs::read_to_string(path);
    let text = text.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(
        !text.contains('\0'),
        "{}: it contains a zero byte",
        path.display()
    );
    text
}

/// Returns the files below a folder of the project, sorted by path: each file's path, with slashes,
/// and its text.
fn files(project: &Path, folder: &str) -> Vec<(String, String)> {
    let entries = std::fs::read_dir(project.join(folder)).expect("the folder can be read");
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().into_string().expect("UTF-8"))
        .collect();
    // Desktops leave hidden files in folders.
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    let paths = names.iter().map(|name| format!("{folder}/{name}"));
    paths
        .flat_map(|path| match project.join(&path) {
            inner if inner.is_dir() => files(project, &path),
            file => vec![(path, text(&file))],
        })
        .collect()
}
