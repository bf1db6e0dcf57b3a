//! The agents that use a file in their chain, in the partials that their templates include, or in
//! their provider instance.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use crate::compile::compiler::Compiler;
use crate::resolve::ProfileId;
use crate::source::{FileId, Span};

/// Searches for the agents that use files.
pub(in crate::compile) struct Users<'a> {
    compiler: &'a Compiler,
}

impl<'a> Users<'a> {
    pub(in crate::compile) fn of(compiler: &'a Compiler) -> Users<'a> {
        Users { compiler }
    }

    /// Returns, for each path, the agents that use a file with this path; `None` if the includes to
    /// follow exceed the limit.
    pub(in crate::compile) fn by_path(
        &self,
        paths: &BTreeSet<&str>,
    ) -> Option<BTreeMap<String, BTreeSet<Arc<str>>>> {
        let asked = self
            .compiler
            .sources()
            .iter()
            .filter(|(_, file)| paths.contains(&**file.path()));
        let files: BTreeMap<FileId, String> = asked
            .map(|(id, file)| (id, file.path().to_string()))
            .collect();
        let reached = self.by_file(&files.keys().copied().collect())?;
        let mut agents: BTreeMap<String, BTreeSet<Arc<str>>> = BTreeMap::new();
        for (file, names) in reached {
            agents
                .entry(files[&file].clone())
                .or_default()
                .extend(names);
        }
        Some(agents)
    }

    /// Returns, for each file, the names of the agents that use it, sorted; `None` if the includes
    /// to follow exceed the limit.
    pub(in crate::compile) fn by_file(
        &self,
        files: &BTreeSet<FileId>,
    ) -> Option<BTreeMap<FileId, Vec<Arc<str>>>> {
        let (reached, left) = self.by_some(files);
        (left > 0).then_some(reached)
    }

    /// Returns the agents by file, as far as the limit on includes allows, and the number of
    /// includes that may still be followed.
    fn by_some(&self, files: &BTreeSet<FileId>) -> (BTreeMap<FileId, Vec<Arc<str>>>, usize) {
        let mut reached: BTreeMap<FileId, Vec<Arc<str>>> = BTreeMap::new();
        let mut known: HashMap<Span, BTreeSet<FileId>> = HashMap::new();
        let mut left = MAX_INCLUDES;
        for (id, _) in &self.compiler.agents {
            let name = &self.compiler.hierarchy.get(*id).name.value;
            for file in self.files_of(*id, files, &mut known, &mut left) {
                reached.entry(file).or_default().push(Arc::clone(name));
            }
        }
        (reached, left)
    }

    /// Returns the given files that an agent uses: in its chain, in the partials that its templates
    /// reach, and in its provider instance. `known` caches the results for templates. Templates
    /// that the agent overrides are ignored.
    fn files_of(
        &self,
        id: ProfileId,
        files: &BTreeSet<FileId>,
        known: &mut HashMap<Span, BTreeSet<FileId>>,
        left: &mut usize,
    ) -> BTreeSet<FileId> {
        let lineage = self.compiler.hierarchy.lineage(id);
        let chain = lineage
            .into_iter()
            .map(|profile| self.compiler.hierarchy.get(profile).file);
        let mut used: BTreeSet<FileId> = chain.filter(|file| files.contains(file)).collect();
        let profile = self.compiler.resolve(id);
        let strings = profile.map(|profile| profile.strings_in_effect());
        for template in strings.into_iter().flatten() {
            let partials = known
                .entry(template)
                .or_insert_with(|| self.partials_of(template, files, left));
            used.extend(partials.iter().copied());
        }
        let instance = files_of_instance(self.compiler, id).iter().copied();
        used.extend(instance.filter(|file| files.contains(file)));
        used
    }

    /// Returns the given files that a template in a profile includes.
    fn partials_of(
        &self,
        template: Span,
        files: &BTreeSet<FileId>,
        left: &mut usize,
    ) -> BTreeSet<FileId> {
        let partials = self.compiler.engine.partials_of(template, left);
        partials
            .iter()
            .filter_map(|partial| self.compiler.repo.partial_file(partial))
            .filter(|file| files.contains(file))
            .collect()
    }
}

/// Returns the files of the provider instance that an agent uses.
pub(in crate::compile) fn files_of_instance(compiler: &Compiler, id: ProfileId) -> &[FileId] {
    let resolved = compiler.resolve(id);
    let name = resolved
        .as_ref()
        .and_then(|profile| profile.string("provider_instance"));
    name.map_or(&[], |name| compiler.repo.instance_files(name.value))
}

/// Adds the reached agents to each finding from loading: the agents whose chain or templates use
/// the file. Beyond the limit on names, no agents are added, and the findings are treated as
/// findings about the repository.
pub(in crate::compile) fn note_on_findings(compiler: &mut Compiler) {
    let files: BTreeSet<FileId> = compiler
        .findings
        .iter()
        .chain(&compiler.slips)
        .map(|finding| finding.primary.span.file)
        .collect();
    if files.is_empty() {
        return;
    }
    let (reached, _) = Users::of(compiler).by_some(&files);
    let of_slips = users_of_slips(compiler);
    let mut left = MAX_NAMES;
    let findings = compiler.findings.iter_mut().map(|it| (it, Vec::new()));
    let slips = compiler.slips.iter_mut().zip(of_slips);
    for (finding, users) in findings
        .chain(slips)
        .filter(|(finding, _)| finding.agents.is_empty())
    {
        let agents = match users.is_empty() {
            true => reached.get(&finding.primary.span.file),
            false => Some(&users),
        };
        let Some(agents) = agents else {
            continue;
        };
        let Some(rest) = left.checked_sub(agents.len()) else {
            continue;
        };
        left = rest;
        finding.agents.clone_from(agents);
    }
}

/// Returns, for each slip, the agents whose templates contain it. No agents are returned if the
/// slip is in a partial, or if every agent overrides the template. Stops at the limit on names.
fn users_of_slips(compiler: &Compiler) -> Vec<Vec<Arc<str>>> {
    let mut users = vec![Vec::new(); compiler.slips.len()];
    let mut at: BTreeMap<(FileId, usize), Vec<usize>> = BTreeMap::new();
    for (index, slip) in compiler.slips.iter().enumerate() {
        let span = slip.primary.span;
        at.entry((span.file, span.range().start))
            .or_default()
            .push(index);
    }
    let agents = match at.is_empty() {
        true => [].as_slice(),
        false => compiler.agents.as_slice(),
    };
    let mut left = MAX_NAMES;
    for (id, _) in agents {
        let name = &compiler.hierarchy.get(*id).name.value;
        let profile = compiler.resolve(*id);
        let templates = profile.map(|profile| profile.strings_in_effect());
        for template in templates.into_iter().flatten() {
            let range = template.range();
            let within = at.range((template.file, range.start)..=(template.file, range.end));
            for index in within.flat_map(|(_, slips)| slips) {
                let Some(rest) = left.checked_sub(1) else {
                    return users;
                };
                left = rest;
                users[*index].push(Arc::clone(name));
            }
        }
    }
    users
}

/// The maximum number of includes that are followed, in total.
const MAX_INCLUDES: usize = 5_000_000;
/// The maximum number of agent names that are added to findings from loading, in total.
const MAX_NAMES: usize = 1_000_000;
