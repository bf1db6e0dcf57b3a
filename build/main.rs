//! Generates validators for the bundled wire schemas, and compresses the refusal dictionary, when
//! the program is built.

// The library's rule that only `system` accesses the outside does not apply to a build script.
#![allow(clippy::disallowed_methods)]

#[path = "../src/check/schema/extend.rs"]
mod extend;
#[expect(dead_code, reason = "the build needs only some of the names")]
#[path = "../src/repo/folders.rs"]
mod folders;
#[path = "../src/check/schema/node.rs"]
mod node;
mod validators;

use std::path::{Path, PathBuf};

/// The compression level: higher levels gain little, and slow down the build script.
const LEVEL: u8 = 6;

fn main() {
    // `include_dir` does not notice new files, so rebuild when a bundled file is added or removed.
    let others = [
        folders::MODEL_FAMILIES,
        "build",
        "refusals",
        "src/check/schema",
        "src/repo/folders.rs",
    ];
    for folder in folders::ALL.into_iter().chain(others) {
        println!("cargo::rerun-if-changed={folder}");
    }
    let variable = |name: &str| PathBuf::from(std::env::var_os(name).expect("cargo sets it"));
    let (project, output) = (variable("CARGO_MANIFEST_DIR"), variable("OUT_DIR"));
    let generated = validators::generate(&project.join("schemas/wire"));
    write(&output.join("validators.rs"), generated.as_bytes());
    let refusals = joined(&project.join("refusals"));
    let compressed = miniz_oxide::deflate::compress_to_vec(refusals.as_bytes(), LEVEL);
    write(&output.join("refusals.deflate"), &compressed);
}

fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("the output folder can be written");
}

/// Returns the text of the TOML files in a folder, sorted by name and separated by zero bytes.
fn joined(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).expect("the folder can be read");
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|it| it == "toml"));
    paths.sort();
    let texts = paths
        .iter()
        .map(|path| std::fs::read_to_string(path).expect("the file is UTF-8"));
    texts.collect::<Vec<_>>().join("\0")
}
