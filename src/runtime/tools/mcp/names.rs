//! The names under which models call a server's tools.

use crate::repo::{MAX_TOOL_NAME, is_in_names};
use crate::runtime::digest::digest;

/// The number of digest characters that are appended to make a name unique.
const DIGITS: usize = 8;

/// Returns the name under which a model calls a tool: `SERVER__TOOL`, with `_` for every character
/// that a wire format may reject. If that name is too long or already used, it ends with a part of
/// the digest of both names.
pub(super) fn unique(server: &str, tool: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let plain: String = format!("{server}__{tool}")
        .chars()
        .map(|c| {
            u8::try_from(c)
                .ok()
                .filter(|byte| is_in_names(*byte))
                .map_or('_', char::from)
        })
        .collect();
    if plain.len() <= MAX_TOOL_NAME && !is_taken(&plain) {
        return plain;
    }
    let head = &plain[..plain.len().min(MAX_TOOL_NAME - DIGITS - 1)];
    (0..usize::MAX)
        .map(|number| {
            let digest = digest(format!("{server}\n{tool}\n{number}").as_bytes());
            format!("{head}_{}", &digest[..DIGITS])
        })
        .find(|name| !is_taken(name))
        .expect("there are more numbers than names")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_legal_and_different() {
        let mut known: Vec<String> = Vec::new();
        let long = "x".repeat(200);
        let other = format!("{long}y");
        for (server, tool) in [
            ("s", "echo"),
            ("s", "a.b"),
            ("s", "a_b"),
            ("s", "a/b"),
            ("s", "ünïcode \n"),
            ("s__a", "b"),
            ("s", "a__b"),
            ("s", &long),
            ("s", &other),
            ("s", ""),
        ] {
            let name = unique(server, tool, |name| known.iter().any(|it| it == name));
            assert!(
                name.len() <= MAX_TOOL_NAME
                    && name.bytes().all(is_in_names)
                    && !known.contains(&name),
                "{name}"
            );
            known.push(name);
        }
        assert_eq!(known[..2], ["s__echo", "s__a_b"]);
        assert!(
            known[2].starts_with("s__a_b_") && known[2].len() == "s__a_b_".len() + DIGITS,
            "{}",
            known[2]
        );
    }

    #[test]
    fn the_same_tool_has_the_same_name_every_time() {
        let long = "x".repeat(100);
        assert_eq!(unique("s", &long, |_| false), unique("s", &long, |_| false));
    }
}
