//! Which agents a finding of loading reaches.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::Compiler;
use crate::resolve::ProfileId;
use crate::source::FileId;

impl Compiler {
    /// Notes on each finding of loading the agents that it reaches: those whose chain or templates use the file. Once very many
    /// names were noted, findings are left without: they concern the repository.
    pub(super) fn note_reach(&mut self) {
        let files: BTreeSet<FileId> = self.findings.iter().map(|finding| finding.primary.span.file).collect();
        if files.is_empty() {
            return;
        }
        let (reached, _) = self.agents_by_some(&files);
        let mut left = MAX_NAMES;
        for finding in self.findings.iter_mut().filter(|finding| finding.agents.is_empty()) {
            let Some(agents) = reached.get(&finding.primary.span.file) else { continue };
            let Some(rest) = left.checked_sub(agents.len()) else { continue };
            left = rest;
            finding.agents.clone_from(agents);
        }
    }

    /// For each of some paths the agents that use the file there, or any of them that have it; `None` if too many includes would have to
    /// be followed to know all.
    pub(crate) fn agents_of_files(&self, paths: &BTreeSet<&str>) -> Option<BTreeMap<String, BTreeSet<Arc<str>>>> {
        let asked = self.sources().iter().filter(|(_, file)| paths.contains(&**file.path()));
        let files: BTreeMap<FileId, String> = asked.map(|(id, file)| (id, file.path().to_string())).collect();
        let reached = self.agents_by_file(&files.keys().copied().collect())?;
        let mut agents: BTreeMap<String, BTreeSet<Arc<str>>> = BTreeMap::new();
        for (file, names) in reached {
            agents.entry(files[&file].clone()).or_default().extend(names);
        }
        Some(agents)
    }

    /// For each of some files the names of the agents that use it, sorted; `None` if there are more includes than are followed.
    pub(super) fn agents_by_file(&self, files: &BTreeSet<FileId>) -> Option<BTreeMap<FileId, Vec<Arc<str>>>> {
        let (reached, left) = self.agents_by_some(files);
        (left > 0).then_some(reached)
    }

    /// The same as far as includes are followed, and how many more would have been.
    fn agents_by_some(&self, files: &BTreeSet<FileId>) -> (BTreeMap<FileId, Vec<Arc<str>>>, usize) {
        let mut reached: BTreeMap<FileId, Vec<Arc<str>>> = BTreeMap::new();
        let mut known: HashMap<FileId, BTreeSet<FileId>> = HashMap::new();
        let mut left = MAX_INCLUDES;
        for (id, _) in &self.agents {
            let name = &self.hierarchy.get(*id).name.value;
            for file in self.files_of(*id, files, &mut known, &mut left) {
                reached.entry(file).or_default().push(Arc::clone(name));
            }
        }
        (reached, left)
    }

    /// Which of some files an agent uses: of its chain, the partials that its templates reach, and its provider instance.
    /// What profile files use is kept in `known`.
    fn files_of(
        &self,
        id: ProfileId,
        files: &BTreeSet<FileId>,
        known: &mut HashMap<FileId, BTreeSet<FileId>>,
        left: &mut usize,
    ) -> BTreeSet<FileId> {
        let mut used = BTreeSet::new();
        for profile in self.hierarchy.lineage(id) {
            let file = self.hierarchy.get(profile).file;
            used.extend(known.entry(file).or_insert_with(|| self.files_of_file(file, files, left)).iter().copied());
        }
        used.extend(self.files_of_instance(id).iter().copied().filter(|file| files.contains(file)));
        used
    }

    /// Which of some files a profile file uses, itself included.
    fn files_of_file(&self, file: FileId, files: &BTreeSet<FileId>, left: &mut usize) -> BTreeSet<FileId> {
        let partials = self.engine.partials_of_file(file, left);
        let partials = partials.iter().filter_map(|partial| self.repo.partial_file(partial));
        partials.chain([file]).filter(|file| files.contains(file)).collect()
    }

    /// The files of the provider instance that an agent names.
    pub(super) fn files_of_instance(&self, id: ProfileId) -> &[FileId] {
        let resolved = self.resolve(id);
        let name = resolved.as_ref().and_then(|profile| profile.string("provider_instance"));
        name.map_or(&[], |name| self.repo.instance_files(name.value))
    }
}

/// The most includes that are followed for that, in all.
const MAX_INCLUDES: usize = 5_000_000;
/// The most names of agents that are noted on findings of loading, in all.
const MAX_NAMES: usize = 1_000_000;
