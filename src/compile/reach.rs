//! Which agents a finding of loading reaches.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Compiler;
use crate::resolve::ProfileId;
use crate::source::FileId;

impl Compiler {
    /// Notes on each finding of loading the agents that it reaches: those whose chain or templates use the file.
    pub(super) fn note_reach(&mut self) {
        let files: BTreeSet<FileId> = self.findings.iter().map(|finding| finding.primary.span.file).collect();
        if files.is_empty() {
            return;
        }
        let reached = self.agents_by_file(&files);
        for finding in &mut self.findings {
            if let Some(agents) = reached.get(&finding.primary.span.file).filter(|_| finding.agents.is_empty()) {
                finding.agents.clone_from(agents);
            }
        }
    }

    /// For each of some files the names of the agents that use it, sorted.
    fn agents_by_file(&self, files: &BTreeSet<FileId>) -> BTreeMap<FileId, Vec<Arc<str>>> {
        let mut reached: BTreeMap<FileId, Vec<Arc<str>>> = BTreeMap::new();
        for (id, _) in &self.agents {
            let name = &self.hierarchy.get(*id).name.value;
            for file in self.files_of(*id).intersection(files) {
                reached.entry(*file).or_default().push(Arc::clone(name));
            }
        }
        reached
    }

    /// The files of an agent's chain, of the partials that its templates reach, and of its provider instance.
    fn files_of(&self, id: ProfileId) -> BTreeSet<FileId> {
        let lineage = self.hierarchy.lineage(id).into_iter();
        let mut files: BTreeSet<FileId> = lineage.map(|id| self.hierarchy.get(id).file).collect();
        for file in files.clone() {
            let partials = self.engine.partials_of_file(file);
            files.extend(partials.iter().filter_map(|partial| self.repo.partial_file(partial)));
        }
        files.extend(self.files_of_instance(id));
        files
    }

    /// The files of the provider instance that an agent names.
    fn files_of_instance(&self, id: ProfileId) -> &[FileId] {
        let resolved = self.resolve(id);
        let name = resolved.as_ref().and_then(|profile| profile.string("provider_instance"));
        name.map_or(&[], |name| self.repo.instance_files(name.value))
    }
}
