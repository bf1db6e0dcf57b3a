//! Compares a folder of golden files with the expected files.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::manifest::Lines;
use super::rules::{DRIFT, FOREIGN};
use super::{
    Drift, FOLDER, GoldenFile, Manifest, Proof, Surplus, apply, compare, orphans, surplus,
};
use crate::diag::Diagnostic;
use crate::profile::slug;
use crate::source::{SourceText, Sources, Span};
use crate::world::{AccessError, Output};

/// A folder of golden files.
#[derive(Clone)]
pub struct GoldenFolder {
    output: Arc<dyn Output>,
    folder: &'static str,
    shown: Arc<str>,
    proof: Proof,
}

impl GoldenFolder {
    /// Returns a repository's `golden/` folder.
    pub fn of_repository(output: Arc<dyn Output>) -> GoldenFolder {
        GoldenFolder {
            output,
            folder: FOLDER,
            shown: format!("{FOLDER}/").into(),
            proof: Proof::Names,
        }
    }

    /// Returns a folder that the user named. It may also contain files that reqc did not write.
    pub fn named(output: Arc<dyn Output>, shown: impl Into<Arc<str>>) -> GoldenFolder {
        GoldenFolder {
            output,
            folder: "",
            shown: shown.into(),
            proof: Proof::Contents,
        }
    }

    /// Returns the folder's name as shown in messages.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// Adds a file to `sources`, so that findings can refer to it, and returns the location of its
    /// start.
    fn source(&self, sources: &mut Sources, path: &str, bytes: &[u8]) -> Span {
        Span::file_start(sources.add(format!("{}{path}", self.shown), SourceText::salvage(bytes)))
    }
}

/// Compares a folder with the expected files, one agent at a time.
pub(crate) struct Comparer<'t> {
    golden: &'t GoldenFolder,
    manifest: Manifest,
    /// `true` if all agents are compared, so any other file is unexpected.
    is_all: bool,
}

/// The result of comparing the files of one agent.
pub(crate) struct AgentFiles {
    drifts: Vec<Drift>,
    lines: Lines,
    surplus: Surplus,
}

impl<'t> Comparer<'t> {
    /// Reads the manifest of a folder. `contexts` are the names of all contexts.
    pub(crate) fn new<'c>(
        golden: &'t GoldenFolder,
        contexts: impl Iterator<Item = &'c str>,
        is_all: bool,
    ) -> Result<Comparer<'t>, AccessError> {
        let manifest = Manifest::read(
            golden.output.as_ref(),
            golden.folder,
            golden.proof,
            contexts,
        )?;
        Ok(Comparer {
            golden,
            manifest,
            is_all,
        })
    }

    /// Returns `true` if agents' folders are searched for unexpected files.
    fn lists_folders(&self) -> bool {
        self.is_all && self.golden.proof == Proof::Names
    }

    /// Compares the files of one agent.
    pub(crate) fn agent(
        &self,
        name: &Arc<str>,
        files: Vec<GoldenFile>,
    ) -> Result<AgentFiles, AccessError> {
        let (output, folder) = (self.golden.output.as_ref(), self.golden.folder);
        let lines = Manifest::lines(self.golden.proof, &files);
        let surplus = match self.lists_folders() {
            true => surplus(output, folder, &slug(name), &files, &self.manifest)?,
            false => Surplus::default(),
        };
        Ok(AgentFiles {
            drifts: compare(output, folder, name, files)?,
            lines,
            surplus,
        })
    }

    /// Combines the results of agents, in order. `None` means that an agent's files are not
    /// touched. `names` are the names of all agents.
    pub(crate) fn finish<'n>(
        self,
        agents: Vec<Option<AgentFiles>>,
        names: impl ExactSizeIterator<Item = &'n Arc<str>>,
    ) -> Result<Comparison, AccessError> {
        let is_all =
            self.is_all && agents.len() == names.len() && agents.iter().all(Option::is_some);
        let (output, folder) = (self.golden.output.as_ref(), self.golden.folder);
        let orphans = match self.lists_folders() {
            true => orphans(output, folder, names, &self.manifest)?,
            false => Surplus::default(),
        };
        let (mut drifts, mut foreign, mut lines) = (Vec::new(), orphans.foreign, BTreeMap::new());
        for files in agents.into_iter().flatten() {
            drifts.extend(files.drifts);
            drifts.extend(files.surplus.drifts);
            foreign.extend(files.surplus.foreign);
            files.lines.add_to(&mut lines);
        }
        drifts.extend(orphans.drifts);
        if is_all && self.golden.proof == Proof::Contents {
            let expected = lines.keys().map(String::as_str).collect();
            drifts.extend(self.manifest.unasked(output, folder, &expected)?);
        }
        let (golden, manifest, bundled) = (self.golden.clone(), self.manifest, BTreeMap::new());
        Ok(Comparison {
            golden,
            drifts,
            foreign,
            manifest,
            lines,
            is_all,
            bundled,
        })
    }
}

/// The result of comparing a folder with the expected files.
pub struct Comparison {
    golden: GoldenFolder,
    drifts: Vec<Drift>,
    /// The paths of unexpected files that reqc did not write.
    foreign: Vec<String>,
    /// The manifest that earlier runs wrote.
    manifest: Manifest,
    /// The manifest lines for the expected files.
    lines: BTreeMap<String, String>,
    /// `true` if the comparison is complete: all agents were compared and could be compiled.
    is_all: bool,
    /// The fingerprints of the bundled files that the bodies depend on.
    bundled: BTreeMap<String, String>,
}

impl Comparison {
    /// Returns the files that differ.
    pub fn drifts(&self) -> &[Drift] {
        &self.drifts
    }

    /// Returns the bundled files that have changed since the golden files were written, which means
    /// that a different version of reqc wrote them.
    pub fn altered_bundled(&self) -> Vec<String> {
        self.manifest.altered(&self.bundled)
    }

    /// Sets the bundled files that the bodies depend on, with a [`fingerprint`](super::fingerprint)
    /// of each.
    #[must_use]
    pub(crate) fn made_from(self, bundled: BTreeMap<String, String>) -> Comparison {
        Comparison { bundled, ..self }
    }

    /// Keeps only some of the differences. The other files will not be touched.
    pub fn keep(&mut self, is_kept: impl Fn(&Drift) -> bool) {
        let before = self.drifts.len();
        self.drifts.retain(is_kept);
        self.is_all &= self.drifts.len() == before;
    }

    /// Checks that [`Comparison::write`] will not replace a file that reqc did not write.
    ///
    /// # Errors
    ///
    /// Returns a phrase that names the first such file.
    pub fn check(&self) -> Result<(), AccessError> {
        self.manifest
            .check(&self.drifts)
            .map_err(|why| format!("{}: {why}", self.golden.shown).into())
    }

    /// Writes and removes files so that the folder matches the expected files. The manifest lists
    /// each file from before it is written until after it is removed.
    ///
    /// # Errors
    ///
    /// Returns the error of [`Comparison::check`], or a phrase that names the file that cannot be
    /// written.
    pub fn write(mut self) -> Result<(), AccessError> {
        self.check()?;
        let GoldenFolder {
            output,
            folder,
            proof,
            ..
        } = &self.golden;
        let (drifts, lines) = (&self.drifts, &self.lines);
        self.manifest.note_bundled(&self.bundled, self.is_all);
        self.manifest.extend(output.as_ref(), folder, lines)?;
        apply(output.as_ref(), folder, drifts)?;
        self.manifest
            .retain(output.as_ref(), folder, |line| match proof {
                Proof::Names => !self.is_all || lines.contains_key(line),
                Proof::Contents => lines.contains_key(line) || !removed(line, drifts),
            })
    }

    /// Returns one finding about all unexpected files that reqc did not write; `None` if there are
    /// none.
    pub(crate) fn foreign_finding(&self, sources: &mut Sources) -> Option<Diagnostic> {
        let first = self.foreign.first()?;
        let others = match self.foreign.len() {
            1 => String::new(),
            all => format!(", and neither were {} others", all - 1),
        };
        let message = format!(
            "`{}{first}` was not written by reqc{others}",
            self.golden.shown
        );
        let finding = Diagnostic::new(&FOREIGN, self.golden.source(sources, first, b""), message);
        Some(finding.help("reqc leaves it alone: delete it if it is the body of a removed context; otherwise move it"))
    }

    /// Returns one finding about all files that differ; `None` if there are none.
    pub(crate) fn drift_finding(&self, sources: &mut Sources) -> Option<Diagnostic> {
        let first = self.drifts.first()?;
        let count =
            |keep: fn(&Drift) -> bool| self.drifts.iter().filter(|drift| keep(drift)).count();
        let changed = count(|drift| drift.old.is_some() && drift.new.is_some());
        let (missing, orphaned) = (
            count(|drift| drift.old.is_none()),
            count(|drift| drift.new.is_none()),
        );
        let parts = [
            (changed, "differ"),
            (missing, "missing"),
            (orphaned, "no longer needed"),
        ];
        let parts: Vec<String> = parts
            .iter()
            .filter(|(n, _)| *n > 0)
            .map(|(n, what)| format!("{n} {what}"))
            .collect();
        let message = format!("golden files are out of date: {}", parts.join(", "));
        let span = self.golden.source(
            sources,
            &first.path,
            first.old.as_deref().unwrap_or_default(),
        );
        let finding = Diagnostic::new(&DRIFT, span, message)
            .help("`reqc compile --diff` shows what changed; `reqc compile` writes the files");
        Some(
            self.drifts
                .iter()
                .fold(finding, |finding, drift| match &drift.agent {
                    Some(agent) => finding.reaching(agent, drift.context.as_ref()),
                    None => finding,
                }),
        )
    }
}

fn removed(line: &str, drifts: &[Drift]) -> bool {
    drifts
        .iter()
        .any(|drift| drift.new.is_none() && drift.path == line)
}
