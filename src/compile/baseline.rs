//! Converts today's findings to `[[allow]]` entries, so that a gate can be added to an existing
//! repository.

use std::collections::BTreeMap;

use super::report::Report;
use crate::repo::Date;
use crate::text::Text;

/// The `[[allow]]` entries for the findings of a report.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Baseline {
    /// TOML to append to `reqc.toml`.
    pub text: String,
    /// The number of entries.
    pub entries: usize,
    /// The number of findings that the entries allow.
    pub silenced: usize,
    /// The number of findings whose rules cannot be allowed.
    pub left: usize,
}

impl Baseline {
    /// Returns one entry for each rule and file with findings.
    pub fn of(report: &Report, reason: &str, expires: Date) -> Baseline {
        let mut places: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        let mut left = 0;
        for finding in &report.findings {
            let path = report.sources.get(finding.primary.span.file).path();
            match finding.rule.can_be_lowered {
                true => *places.entry((path, finding.rule.code)).or_default() += 1,
                false => left += 1,
            }
        }
        let text = places
            .keys()
            .map(|(path, code)| entry(code, path, reason, expires))
            .collect();
        Baseline {
            text,
            entries: places.len(),
            silenced: places.values().sum(),
            left,
        }
    }
}

fn entry(code: &str, path: &str, reason: &str, expires: Date) -> String {
    let [code, file, reason] = [
        Text::quoted(code),
        Text::quoted(&as_glob(path)),
        Text::quoted(reason),
    ];
    format!("\n[[allow]]\ncode = {code}\nfile = {file}\nreason = {reason}\nexpires = {expires}\n")
}

/// Returns a glob that matches only this path.
fn as_glob(path: &str) -> String {
    path.chars()
        .map(|c| {
            if is_special(c) {
                format!("[{c}]")
            } else {
                c.to_string()
            }
        })
        .collect()
}

fn is_special(c: char) -> bool {
    "?*[]{}\\!".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repo::Glob;

    #[test]
    fn paths_are_globs_of_themselves() {
        for path in [
            "agents/a.toml",
            "agents/[x]*{a,b}?.toml",
            "bundled:partials/x.jinja",
        ] {
            let glob = Glob::new(&as_glob(path)).expect("a glob");
            assert!(glob.is_match(path), "{path}");
            assert!(!glob.is_match("agents/x.toml") || path == "agents/x.toml");
        }
    }

    #[test]
    fn an_entry_is_toml() {
        let text = entry(
            "key/unknown",
            "a\"\n.toml",
            "why \\ not",
            Date {
                year: 2027,
                month: 1,
                day: 31,
            },
        );
        let table = crate::toml::parse(&text).expect("TOML");
        assert_eq!(table.entries.len(), 1);
    }
}
