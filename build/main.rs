//! Generates validators for the bundled wire schemas when the program is built.

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

use std::path::PathBuf;

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
    let schemas = variable("CARGO_MANIFEST_DIR").join("schemas/wire");
    let generated = validators::generate(&schemas);
    std::fs::write(variable("OUT_DIR").join("validators.rs"), generated)
        .expect("the output folder can be written");
}
