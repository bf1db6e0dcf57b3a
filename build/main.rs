//! What is made when the program is built: validators of the bundled wire schemas.

// The rules of the library, where only `system` touches the outside, are not for a build script.
#![allow(clippy::disallowed_methods)]

#[path = "../src/check/schema/extend.rs"]
mod extend;
#[path = "../src/repo/folders.rs"]
mod folders;
#[path = "../src/check/schema/node.rs"]
mod node;
mod validators;

use std::path::PathBuf;

fn main() {
    // `include_dir` notices only files that it already knows: rebuild when a bundled file comes or goes.
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
