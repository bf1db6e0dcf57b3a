//! The bundled `model-families.toml`.

use crate::toml::Table;

/// The file as JSON, made and compressed by the build script.
static FILE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/model-families.deflate"));

/// Returns the file's content, without locations.
pub(in crate::repo) fn bundled() -> Table {
    let json = miniz_oxide::inflate::decompress_to_vec(FILE).expect("the build compressed it");
    serde_json::from_slice(&json).expect("the build wrote JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::toml::{Kind, Node, parse};

    #[test]
    fn the_program_contains_the_file() {
        let root = |table| Node {
            kind: Kind::Table(table),
            span: 0..0,
        };
        let dates = regex::Regex::new(r"= ([0-9]{4}-[0-9]{2}-[0-9]{2})\b").expect("a pattern");
        let text = include_str!("../../../model-families.toml");
        let file = parse(&dates.replace_all(text, "= \"$1\"")).expect("TOML");
        assert!(root(bundled()).says_the_same(&root(file)));
    }
}
