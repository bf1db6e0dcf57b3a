//! The proof that reqc wrote certain files, so that it may replace or remove them.
//!
//! A manifest is a file of sorted lines next to the golden files. Its content depends on the kind
//! of folder:
//!
//! In `golden/`, which is committed and merged, the manifest lists the names of bodies, which are
//! the names of contexts. It changes only if a context is added or removed, and two branches rarely
//! change the same line. The names are followed by the fingerprints of the bundled files that the
//! bodies depend on. They show whether a different version of reqc changed these files.
//!
//! In a folder that the user named, which may contain any other files, the manifest lists each file
//! with a fingerprint of its bytes, so that nobody can claim a file without knowing its content.
//! Because others may know the content, a file must also have the form that reqc writes, and must
//! be next to the request line of an agent with the folder's name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Drift, GoldenFile, REQUEST, has_our_form, has_our_request};
use crate::source::is_bundled;
use crate::world::{AccessError, Output, join};

/// The name of the manifest in the folder of golden files.
pub const MANIFEST: &str = ".reqc-manifest";

const HEADER: &str = "# What `reqc compile` wrote here. It removes nothing else.";

/// The kind of proof in a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// The names of bodies. Used for `golden/`, which belongs to reqc.
    Names,
    /// The path of each file with a fingerprint of its bytes. Used for a folder that the user
    /// named.
    Contents,
}

/// The lines of a manifest for one agent. Most agents have the same context names.
pub(super) enum Lines {
    /// Context names.
    Names(Box<[Arc<str>]>),
    /// Paths and fingerprints.
    Prints(Box<[(String, String)]>),
}

impl Lines {
    /// Adds these lines to other agents' lines.
    pub(super) fn add_to(self, all: &mut BTreeMap<String, String>) {
        match self {
            Lines::Prints(lines) => all.extend(lines),
            Lines::Names(names) => {
                for name in names {
                    if !all.contains_key(&*name) {
                        all.insert(name.to_string(), String::new());
                    }
                }
            }
        }
    }
}

/// The record of the files that reqc wrote to a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    proof: Proof,
    /// The context names, or the file paths, each with a fingerprint; the fingerprint of a name is
    /// `""`.
    lines: BTreeMap<String, String>,
    /// The fingerprints of the bundled files that the bodies in `golden/` depend on, by path.
    bundled: BTreeMap<String, String>,
    /// The text of the manifest on disk; `None` if there is none.
    text: Option<String>,
}

impl Manifest {
    /// Reads the manifest of a folder. If `golden/` has no manifest because an older version of
    /// reqc wrote it, all names in `contexts` are used.
    ///
    /// # Errors
    ///
    /// Returns a phrase if an existing manifest cannot be read.
    pub fn read<'c>(
        output: &dyn Output,
        folder: &str,
        proof: Proof,
        contexts: impl Iterator<Item = &'c str>,
    ) -> Result<Manifest, AccessError> {
        let text = output
            .current(&join(folder, MANIFEST))?
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let lines = match (&text, proof) {
            (Some(text), _) => text.lines().filter_map(|line| parse(proof, line)).collect(),
            (None, Proof::Names) => contexts
                .map(|name| (name.to_owned(), String::new()))
                .collect(),
            (None, Proof::Contents) => BTreeMap::new(),
        };
        let bundled = text
            .iter()
            .flat_map(|text| text.lines())
            .filter_map(bundled_line)
            .collect();
        Ok(Manifest {
            proof,
            lines,
            bundled,
            text,
        })
    }

    /// Returns the kind of proof.
    pub fn proof(&self) -> Proof {
        self.proof
    }

    /// Returns `true` if, judging by its name, reqc may have written a file `<slug>/<name>.json`.
    pub(super) fn names_file(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or_default();
        name == REQUEST
            || name
                .strip_suffix(".json")
                .is_some_and(|name| self.lines.contains_key(name))
    }

    /// Returns the files that reqc wrote, that have not changed since, and that are not `expected`.
    ///
    /// # Errors
    ///
    /// Returns a phrase if a file cannot be read.
    pub fn unasked(
        &self,
        output: &dyn Output,
        folder: &str,
        expected: &BTreeSet<&str>,
    ) -> Result<Vec<Drift>, AccessError> {
        let mut drifts = Vec::new();
        let mut ours: BTreeMap<&str, bool> = BTreeMap::new();
        for path in self
            .lines
            .keys()
            .filter(|path| !expected.contains(path.as_str()))
        {
            let slug = path.split('/').next().unwrap_or_default();
            if !ours.contains_key(slug) {
                ours.insert(slug, has_our_request(output, folder, slug)?);
            }
            if !ours[slug] {
                continue;
            }
            let old = output.current(&join(folder, path))?;
            if old.as_ref().is_some_and(|bytes| self.wrote(path, bytes)) {
                drifts.push(Drift {
                    path: path.clone(),
                    agent: None,
                    context: None,
                    old,
                    new: None,
                });
            }
        }
        Ok(drifts)
    }

    /// Checks that only files that reqc wrote would be replaced.
    ///
    /// # Errors
    ///
    /// Returns a phrase that names the first such file.
    pub fn check(&self, drifts: &[Drift]) -> Result<(), AccessError> {
        match drifts
            .iter()
            .find(|drift| {
                drift
                    .old
                    .as_ref()
                    .is_some_and(|bytes| !self.wrote(&drift.path, bytes))
            })
            .filter(|_| self.proof == Proof::Contents)
        {
            Some(drift) => {
                let path = &drift.path;
                Err(format!(
                    "`{path}` was not written by reqc, or was changed since, so it is not replaced"
                )
                .into())
            }
            None => Ok(()),
        }
    }

    /// Returns `true` if a file is listed with the fingerprint of its bytes and has the form that
    /// reqc writes.
    fn wrote(&self, path: &str, bytes: &[u8]) -> bool {
        self.lines
            .get(path)
            .is_some_and(|known| *known == fingerprint(bytes))
            && has_our_form(path, bytes)
    }

    /// Returns the manifest lines for one agent's files.
    pub(super) fn lines(proof: Proof, files: &[GoldenFile]) -> Lines {
        match proof {
            Proof::Names => Lines::Names(
                files
                    .iter()
                    .filter_map(|file| file.context.clone())
                    .collect(),
            ),
            Proof::Contents => Lines::Prints(
                files
                    .iter()
                    .map(|file| (file.path.clone(), fingerprint(file.text.as_bytes())))
                    .collect(),
            ),
        }
    }

    /// Returns the bundled files that have changed since the bodies were written. `now` contains
    /// the current fingerprints.
    pub(super) fn altered(&self, now: &BTreeMap<String, String>) -> Vec<String> {
        let altered = self
            .bundled
            .iter()
            .filter(|(path, print)| now.get(*path).is_some_and(|it| it != *print));
        altered.map(|(path, _)| path.clone()).collect()
    }

    /// Records the bundled files that the bodies depend on. If some bodies are not rewritten
    /// (`is_all` is `false`), known fingerprints are kept.
    pub(super) fn note_bundled(&mut self, now: &BTreeMap<String, String>, is_all: bool) {
        if self.proof == Proof::Contents {
            return;
        }
        match is_all {
            true => self.bundled.clone_from(now),
            false => now.iter().for_each(|(path, print)| {
                self.bundled
                    .entry(path.clone())
                    .or_insert_with(|| print.clone());
            }),
        }
    }

    /// Adds lines to the manifest, and writes it if anything changed.
    ///
    /// # Errors
    ///
    /// Returns a phrase if the manifest cannot be written.
    pub fn extend(
        &mut self,
        output: &dyn Output,
        folder: &str,
        lines: &BTreeMap<String, String>,
    ) -> Result<(), AccessError> {
        self.lines.extend(lines.clone());
        self.write(output, folder)
    }

    /// Keeps only the lines that a condition accepts, and writes the manifest.
    ///
    /// # Errors
    ///
    /// Returns a phrase if the manifest cannot be written.
    pub fn retain(
        &mut self,
        output: &dyn Output,
        folder: &str,
        keep: impl Fn(&str) -> bool,
    ) -> Result<(), AccessError> {
        self.lines.retain(|line, _| keep(line));
        self.write(output, folder)
    }

    /// Writes the manifest if it has changed. An empty manifest is not created.
    fn write(&mut self, output: &dyn Output, folder: &str) -> Result<(), AccessError> {
        let lines = self
            .lines
            .iter()
            .chain(&self.bundled)
            .map(|(line, print)| format!("{print} {line}").trim_start().to_owned() + "\n");
        let text = format!("{HEADER}\n{}", lines.collect::<String>());
        if self.text.as_ref() != Some(&text) && (self.text.is_some() || !self.lines.is_empty()) {
            output.replace(&join(folder, MANIFEST), text.as_bytes())?;
            self.text = Some(text);
        }
        Ok(())
    }
}

/// Parses a line; returns `None` for the header and for merge conflict markers.
fn parse(proof: Proof, line: &str) -> Option<(String, String)> {
    match proof {
        Proof::Names => is_name(line).then(|| (line.to_owned(), String::new())),
        Proof::Contents => {
            let (print, path) = line.split_once(' ')?;
            let (slug, name) = path.split_once('/')?;
            let is_ours =
                is_name(slug) && is_name(name) && name.ends_with(".json") && print.len() == 16;
            is_ours.then(|| (path.to_owned(), print.to_owned()))
        }
    }
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Parses a line about a bundled file; returns `None` for other lines.
fn bundled_line(line: &str) -> Option<(String, String)> {
    let (print, path) = line.split_once(' ')?;
    let is_ours =
        is_bundled(path) && print.len() == 16 && print.bytes().all(|it| it.is_ascii_hexdigit());
    is_ours.then(|| (path.to_owned(), print.to_owned()))
}

/// Returns 64 bits of FNV-1a (<http://www.isthe.com/chongo/tech/comp/fnv/>). This is enough to show
/// that the author of a manifest knows the bytes of a file, but does not keep the bytes secret.
pub fn fingerprint(bytes: &[u8]) -> String {
    format!(
        "{:016x}",
        bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash
            ^ u64::from(*byte))
        .wrapping_mul(0x0100_0000_01b3))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fingerprints_are_those_of_the_specification() {
        assert_eq!(fingerprint(b""), "cbf29ce484222325");
        assert_eq!(fingerprint(b"foobar"), "85944171f73967e8");
    }

    #[test]
    fn what_a_merge_leaves_behind_is_no_line() {
        for line in [
            "<<<<<<< HEAD",
            "=======",
            ">>>>>>> x",
            HEADER,
            "",
            "../x",
            "a b",
        ] {
            assert_eq!(parse(Proof::Names, line), None, "{line}");
        }
        assert!(parse(Proof::Names, "plain-turn").is_some());
        for line in [
            "plain-turn",
            "cbf29ce484222325 ../x.json",
            "cbf29ce484222325 a/b/c.json",
            "c a/b.json",
            "cbf29ce484222325 a/b",
        ] {
            assert_eq!(parse(Proof::Contents, line), None, "{line}");
        }
        assert!(parse(Proof::Contents, "cbf29ce484222325 a/b.json").is_some());
    }
}
