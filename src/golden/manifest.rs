//! The proof that files were written by reqc, so that it may replace or remove them.
//!
//! A manifest lies beside the files and is made of sorted lines. In `golden/`, which is committed
//! and merged, it lists the names of bodies, one per context: it changes when a context does, and
//! two branches seldom touch the same line. Fingerprints of the bundled files that bodies were made
//! from follow: they tell what another version of reqc changed. In a folder that somebody named,
//! where anything may lie, it lists each file with a fingerprint of its bytes: nobody can claim a
//! file there without knowing what it holds. Who knows it can: so a file must also have the form of
//! those that are written here, and lie beside the request line of an agent of its folder's name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{Drift, GoldenFile, REQUEST, has_our_form, has_our_request};
use crate::world::{AccessError, Output, join};

/// The file's name, in the folder of golden files.
pub const MANIFEST: &str = ".reqc-manifest";

const HEADER: &str = "# What `reqc compile` wrote here. It removes nothing else.";

/// The proof of a manifest about files.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Names of bodies, for `golden/`: the folder belongs to reqc.
    Names,
    /// Every file's path and a fingerprint of its bytes, for a folder that somebody named.
    Contents,
}

/// The lines of a manifest for one agent; most agents have the same names.
pub(super) enum Lines {
    /// Names of contexts.
    Names(Box<[Arc<str>]>),
    /// Paths and fingerprints.
    Prints(Box<[(String, String)]>),
}

impl Lines {
    /// Adds them to those of other agents.
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

/// The files that were written to a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    proof: Proof,
    /// A name, or a path, and the fingerprint; `""` for a name.
    lines: BTreeMap<String, String>,
    /// The bundled files that bodies in `golden/` were made from, and their fingerprints.
    bundled: BTreeMap<String, String>,
    /// The file's text.
    text: Option<String>,
}

impl Manifest {
    /// The manifest of a folder. In a folder of golden files that older versions wrote there is
    /// none: then the names of `contexts` count.
    ///
    /// # Errors
    ///
    /// A phrase, if it is there and cannot be read.
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

    /// Returns how files are proved to have been written here.
    pub fn proof(&self) -> Proof {
        self.proof
    }

    /// Returns `true` if a path of the form `<slug>/<name>.json` may have been written here, judged
    /// by its name.
    pub(super) fn names_file(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or_default();
        name == REQUEST
            || name
                .strip_suffix(".json")
                .is_some_and(|name| self.lines.contains_key(name))
    }

    /// The files that were written here, still hold what was written, and are not `expected`.
    ///
    /// # Errors
    ///
    /// A phrase, if a file cannot be read.
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

    /// Refuses to replace files that were not written here.
    ///
    /// # Errors
    ///
    /// A phrase that names the first of them.
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
                    "`{path}` was not written by reqc, or was changed since: it is not replaced"
                )
                .into())
            }
            None => Ok(()),
        }
    }

    /// Returns `true` if a file is listed, holds what is listed, and that can be ours.
    fn wrote(&self, path: &str, bytes: &[u8]) -> bool {
        self.lines
            .get(path)
            .is_some_and(|known| *known == fingerprint(bytes))
            && has_our_form(path, bytes)
    }

    /// Returns what a manifest lists of the files of one agent.
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

    /// The bundled files that have changed since bodies were made from them. `now` are
    /// their fingerprints.
    pub(super) fn altered(&self, now: &BTreeMap<String, String>) -> Vec<String> {
        let altered = self
            .bundled
            .iter()
            .filter(|(path, print)| now.get(*path).is_some_and(|it| it != *print));
        altered.map(|(path, _)| path.clone()).collect()
    }

    /// Notes which bundled files bodies are made from. If some bodies stay as they are, so does
    /// what is known of their files.
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

    /// Adds lines to what is there already, and writes them if they are not there.
    ///
    /// # Errors
    ///
    /// A phrase, if it cannot be written.
    pub fn extend(
        &mut self,
        output: &dyn Output,
        folder: &str,
        lines: &BTreeMap<String, String>,
    ) -> Result<(), AccessError> {
        self.lines.extend(lines.clone());
        self.write(output, folder)
    }

    /// Keeps only what a condition says, and writes that.
    ///
    /// # Errors
    ///
    /// A phrase, if it cannot be written.
    pub fn retain(
        &mut self,
        output: &dyn Output,
        folder: &str,
        keep: impl Fn(&str) -> bool,
    ) -> Result<(), AccessError> {
        self.lines.retain(|line, _| keep(line));
        self.write(output, folder)
    }

    /// Nothing is written where nothing was and nothing is to be.
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

/// One line; `None` for the header and whatever a merge left behind.
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

/// A line about a bundled file.
fn bundled_line(line: &str) -> Option<(String, String)> {
    let (print, path) = line.split_once(' ')?;
    let is_ours = path.starts_with("bundled:")
        && print.len() == 16
        && print.bytes().all(|it| it.is_ascii_hexdigit());
    is_ours.then(|| (path.to_owned(), print.to_owned()))
}

/// 64 bits of FNV-1a (<http://www.isthe.com/chongo/tech/comp/fnv/>): it tells files apart whose
/// bytes are not known to whoever writes a manifest, and hides nothing.
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
