//! Rebuilds when a bundled file comes or goes: `include_dir` notices only files that it already knows.

fn main() {
    for folder in ["agents", "contexts", "partials", "providers", "roles", "schemas"] {
        println!("cargo::rerun-if-changed={folder}");
    }
}
