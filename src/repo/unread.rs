//! Detects files that look like sources but are not read, which would otherwise go unnoticed.
//!
//! A file is judged by its content rather than its name: a `clippy.toml` is not a profile, but a
//! file with the content of a profile is one, whatever its name. Names are used only for files that
//! cannot be examined or whose content is inconclusive.

use super::listing::{FOREIGN, Like, SETTINGS, plain_name};
use super::rules::{NOT_READ, UNUSUAL_NAME};
use crate::diag::Rule;
use crate::toml::{self, Kind, Table};

/// The maximum size of a file that is examined, in bytes. Larger TOML files are never read as
/// sources.
pub(super) const MAX_BYTES: u64 = 2 << 20;
/// The maximum total number of bytes that are examined.
pub(super) const MAX_ALL_BYTES: u64 = 64 << 20;
/// The maximum number of files that are reported.
pub(super) const MOST: usize = 100;

/// The reason a file should probably be read.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Suspicion {
    pub(super) rule: &'static Rule,
    /// The part of the message that follows the path.
    pub(super) message: String,
    pub(super) help: String,
}

/// Returns the suspicion about a file that is not read; `None` if the file does not look like a
/// source.
pub(super) fn suspicion(path: &str, text: &str, like: Like) -> Option<Suspicion> {
    let what = match like {
        Like::Profile | Like::AtRoot => is_profile(text).then_some("a profile"),
        Like::Provider => is_provider(text).then_some("a provider instance"),
        Like::Context => is_context(text).then_some("a context"),
        Like::Schema => text.trim_start().starts_with('{').then_some("a schema"),
        Like::Partial => None,
    };
    match what {
        Some(what) => Some(Suspicion {
            rule: &NOT_READ,
            message: format!("contains {what}, but is not read"),
            help: how_to_be_read(path, like),
        }),
        None => by_name(path, like),
    }
}

/// Returns the suspicion about a hidden file that has the name of a source file.
pub(super) fn hidden() -> Suspicion {
    Suspicion {
        rule: &UNUSUAL_NAME,
        message: "is not read: names that begin with a dot are hidden".to_owned(),
        help: "rename it so that it has no leading dot, or move the file elsewhere".to_owned(),
    }
}

/// Returns the suspicion about a file that was not examined because there were too many files.
pub(super) fn not_looked_at() -> Suspicion {
    Suspicion {
        rule: &UNUSUAL_NAME,
        message: format!(
            "is neither read nor examined: the files before it already total {} MiB",
            MAX_ALL_BYTES >> 20
        ),
        help: "move other files out of the source folders".to_owned(),
    }
}

fn by_name(path: &str, like: Like) -> Option<Suspicion> {
    let name = plain_name(path.rsplit('/').next().unwrap_or_default());
    let endings: &[&str] = match like {
        Like::Profile | Like::Provider => &[".toml", ".tml"],
        Like::Context | Like::Schema => &[".json", ".jsn"],
        Like::Partial => &[".jinja", ".jinja2", ".j2"],
        Like::AtRoot => return at_root_by_name(&name),
    };
    let has_ending = endings.iter().any(|ending| name.ends_with(ending));
    has_ending.then(|| unusual_name(how_to_be_read(path, like)))
}

/// Returns a suspicion about a file at the root whose name resembles that of a settings file. Only
/// files with the exact name are read.
fn at_root_by_name(name: &str) -> Option<Suspicion> {
    let stem = name
        .strip_suffix(".toml")
        .or_else(|| name.strip_suffix(".tml"))?;
    let known = SETTINGS
        .iter()
        .find(|known| known.strip_suffix(".toml") == Some(stem))?;
    Some(unusual_name(format!("rename it to `{known}`")))
}

fn unusual_name(help: String) -> Suspicion {
    let message = "is named like a source file, but is not read".to_owned();
    Suspicion {
        rule: &UNUSUAL_NAME,
        message,
        help,
    }
}

fn how_to_be_read(path: &str, like: Like) -> String {
    let ending = match like {
        Like::AtRoot if FOREIGN.contains(&path) => {
            return "rename it: this file name belongs to another program".to_owned();
        }
        Like::AtRoot if path.ends_with(".toml") => {
            return "move it into `agents/`: profiles at the root are read only if there is no such folder".to_owned();
        }
        Like::Profile | Like::Provider | Like::AtRoot => ".toml",
        Like::Context | Like::Schema => ".json",
        Like::Partial => ".jinja",
    };
    match path.ends_with(ending) {
        true => "rename its folder: folder names are in lower case".to_owned(),
        false => format!("give it a name that ends in `{ending}`, or move it elsewhere"),
    }
}

fn is_profile(text: &str) -> bool {
    const KEYS: [&str; 4] = ["extends", "provider_instance", "system_prompt", "body"];
    read(text, &KEYS).is_some_and(|table| {
        is_string(&table, "name")
            && KEYS
                .iter()
                .any(|key| match (table.get(key).map(|node| &node.kind), *key) {
                    (Some(Kind::Table(_)), "body") => true,
                    (Some(Kind::String(_)), key) => key != "body",
                    _ => false,
                })
    })
}

fn is_provider(text: &str) -> bool {
    let table = read(text, &["client_api", "extends", "url"]);
    table.is_some_and(|table| {
        is_string(&table, "name")
            && ["client_api", "extends", "url"]
                .iter()
                .any(|key| is_string(&table, key))
    })
}

fn is_context(text: &str) -> bool {
    text.trim_start().starts_with('{')
        && ["\"history\"", "\"prefix\""]
            .iter()
            .any(|key| text.contains(key))
}

fn is_string(table: &Table, key: &str) -> bool {
    table
        .get(key)
        .is_some_and(|node| matches!(node.kind, Kind::String(_)))
}

/// Parses as much of a string as possible as TOML, if one of its lines begins with one of these
/// keys; otherwise returns `None`. Most strings have no such line, and parsing is expensive.
fn read(text: &str, keys: &[&str]) -> Option<Table> {
    let may_have = keys
        .iter()
        .any(|key| memchr::memmem::find(text.as_bytes(), key.as_bytes()).is_some());
    if !may_have || !text.lines().any(|line| begins_with_key(line, keys)) {
        return None;
    }
    toml::parse(text)
        .or_else(|error| toml::above(text, &error).ok_or(error))
        .ok()
}

fn begins_with_key(line: &str, keys: &[&str]) -> bool {
    let line = line.trim_start_matches([' ', '\t', '[', '"', '\'']);
    keys.iter().any(|key| line.starts_with(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROFILE: &str = "name = \"A\"\nextends = \"B\"\n";

    fn code(path: &str, text: &str, like: Like) -> Option<&'static str> {
        suspicion(path, text, like).map(|found| found.rule.code)
    }

    #[test]
    fn a_profile_is_one_under_any_name() {
        for path in [
            "agents/a.TOML",
            "agents/a.toml ",
            "agents/a.tml",
            "agents/a",
            "agents/README.md",
            "agents/a.toml.bak",
        ] {
            assert_eq!(
                code(path, PROFILE, Like::Profile),
                Some("repo/not-read"),
                "{path}"
            );
        }
        for text in [
            PROFILE,
            "name = \"A\"\n[body]\n",
            "\"name\" = 'A'\n'provider_instance' = 'P'\n",
            "name='A'\nbody.x=1\n",
        ] {
            assert_eq!(
                code("clippy.toml", text, Like::AtRoot),
                Some("repo/not-read"),
                "{text}"
            );
        }
        assert_eq!(
            code("a.toml", &format!("{PROFILE}x = ="), Like::AtRoot),
            Some("repo/not-read"),
            "a mistake below"
        );
    }

    #[test]
    fn what_others_write_is_none() {
        let texts = [
            "[package]\nname = \"a\"\nextends = \"b\"\n",
            "extends = \"x\"\n",
            "name = \"worker\"\nmain = \"x.js\"\n[env]\n",
            "# Profiles\n\nA profile:\n\n    name = \"A\"\n    extends = \"B\"\n",
            "",
        ];
        for text in texts {
            assert_eq!(code("x.toml", text, Like::AtRoot), None, "{text}");
            assert_eq!(
                code("agents/README.md", text, Like::Profile),
                None,
                "{text}"
            );
        }
    }

    #[test]
    fn other_sources_are_known_by_what_they_hold_or_are_called() {
        assert_eq!(
            code("contexts/a.JSON", "{\"history\": []}", Like::Context),
            Some("repo/not-read")
        );
        assert_eq!(
            code("contexts/a.JSON", "[", Like::Context),
            Some("repo/unusual-name")
        );
        assert_eq!(code("contexts/README.md", "x", Like::Context), None);
        assert_eq!(
            code("providers/p", "name = \"P\"\nurl = \"u\"\n", Like::Provider),
            Some("repo/not-read")
        );
        assert_eq!(
            code("schemas/wire/a.JSON", "{}", Like::Schema),
            Some("repo/not-read")
        );
        assert_eq!(
            code("partials/a.jinja2", "x", Like::Partial),
            Some("repo/unusual-name")
        );
        assert_eq!(
            code("Reqc.toml", "", Like::AtRoot),
            Some("repo/unusual-name")
        );
        assert_eq!(
            code("models.tml", "", Like::AtRoot),
            Some("repo/unusual-name")
        );
        assert_eq!(code("Models.md", "", Like::AtRoot), None);
    }
}
