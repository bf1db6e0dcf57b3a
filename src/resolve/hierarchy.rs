//! The inheritance hierarchy of profiles.

use std::collections::HashMap;
use std::sync::Arc;

use super::rules;
use crate::chain;
use crate::diag::{Diagnostic, Severity, Suggestions};
use crate::profile::Profile;
use crate::repo::{Dialect, LayerKind, rules as repo_rules};
use crate::source::Span;

/// The maximum number of profiles in a chain, including the first.
pub const MAX_CHAIN: usize = 32;

/// The index of a profile in a [`Hierarchy`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ProfileId(u32);

impl ProfileId {
    fn new(index: usize) -> ProfileId {
        ProfileId(u32::try_from(index).expect("a profile is a file, and there are fewer than 2^32"))
    }

    fn index(self) -> usize {
        self.0 as usize
    }
}

/// All profiles and their parents, checked for duplicate names, cycles, missing parents and chains
/// that are too long.
#[derive(Debug, Default)]
pub struct Hierarchy {
    profiles: Vec<Profile>,
    /// The parent of each profile, without the links that would close a cycle.
    parents: Vec<Option<ProfileId>>,
    /// The parent of each profile as declared in its file.
    links: Vec<Option<ProfileId>>,
    usable: Vec<bool>,
    by_name: HashMap<Arc<str>, ProfileId>,
    /// Bundled profiles whose name is also used in the repository. In other bundled profiles, the
    /// name still refers to the bundled profile.
    taken: HashMap<Arc<str>, ProfileId>,
}

impl Hierarchy {
    /// Builds the hierarchy. Every mistake is reported once, at the profile that contains it. In a
    /// collection for the original client, a profile may have a bundled profile's name, which only
    /// causes a warning.
    pub fn build(profiles: Vec<Profile>, dialect: Dialect) -> (Hierarchy, Vec<Diagnostic>) {
        let mut findings = Vec::new();
        let mut hierarchy = Hierarchy {
            usable: profiles.iter().map(|it| !it.broken).collect(),
            ..Hierarchy::default()
        };
        hierarchy.profiles = profiles;
        hierarchy.index(dialect, &mut findings);
        hierarchy.link(&mut findings);
        hierarchy.find_cycles(&mut findings);
        hierarchy.find_depths(&mut findings);
        (hierarchy, findings)
    }

    /// Returns the profile with this ID.
    pub fn get(&self, id: ProfileId) -> &Profile {
        &self.profiles[id.index()]
    }

    /// Returns the ID of the profile with this name.
    pub fn by_name(&self, name: &str) -> Option<ProfileId> {
        self.by_name.get(name).copied()
    }

    /// Returns the IDs of all profiles, sorted by layer and path.
    pub fn ids(&self) -> impl Iterator<Item = ProfileId> + '_ {
        (0..self.profiles.len()).map(ProfileId::new)
    }

    /// Returns the names of all profiles.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.profiles
            .iter()
            .map(|profile| profile.name.value.as_ref())
    }

    /// Returns the parent of a profile, if it has one.
    pub fn parent(&self, id: ProfileId) -> Option<ProfileId> {
        self.parents[id.index()]
    }

    /// Returns the profile followed by its ancestors; `None` if a finding makes one of them
    /// unusable.
    pub fn chain(&self, id: ProfileId) -> Option<Vec<&Profile>> {
        let ids: Vec<ProfileId> = std::iter::successors(Some(id), |id| self.parents[id.index()])
            .take(MAX_CHAIN + 1)
            .collect();
        let usable = ids.len() <= MAX_CHAIN && ids.iter().all(|id| self.usable[id.index()]);
        usable.then(|| ids.iter().map(|id| &self.profiles[id.index()]).collect())
    }

    /// Marks a profile as unusable. A finding must have reported the reason.
    pub(crate) fn refuse(&mut self, id: ProfileId) {
        self.usable[id.index()] = false;
    }

    /// Returns the profile followed by its ancestors, as declared in their files. Each profile
    /// appears once, even in a cycle; an excessively long chain is truncated.
    pub fn lineage(&self, id: ProfileId) -> Vec<ProfileId> {
        let mut lineage = vec![id];
        while lineage.len() <= 2 * MAX_CHAIN
            && let Some(next) = self.links[lineage[lineage.len() - 1].index()]
                .filter(|next| !lineage.contains(next))
        {
            lineage.push(next);
        }
        lineage
    }

    fn index(&mut self, dialect: Dialect, findings: &mut Vec<Diagnostic>) {
        for index in 0..self.profiles.len() {
            let (profile, id) = (&self.profiles[index], ProfileId::new(index));
            let name = &profile.name;
            let Some(&known) = self.by_name.get(&name.value) else {
                self.by_name.insert(Arc::clone(&name.value), id);
                continue;
            };
            let other = &self.profiles[known.index()];
            let (finding, is_usable) = match (other.layer, profile.layer) {
                (LayerKind::Bundled, LayerKind::Own) => {
                    // In the repository's own profiles, the name refers to the repository's
                    // profile.
                    self.taken.insert(Arc::clone(&name.value), known);
                    self.by_name.insert(Arc::clone(&name.value), id);
                    (bundled_name(profile, dialect), dialect == Dialect::Inja)
                }
                _ => {
                    let message = format!("two profiles are called `{}`", name.value);
                    let finding = Diagnostic::new(&repo_rules::DUPLICATE_NAME, name.span, message);
                    (finding.help("rename one of them"), false)
                }
            };
            if other.layer == profile.layer {
                // Neither profile can be used, because the name is ambiguous.
                self.usable[known.index()] = false;
            }
            findings.push(finding.related(other.name.span, "the other one"));
            self.usable[index] &= is_usable;
        }
    }

    /// Returns `true` if a profile in the repository has the same name as this bundled profile.
    pub(crate) fn is_taken(&self, id: ProfileId) -> bool {
        self.taken.get(&self.get(id).name.value) == Some(&id)
    }

    /// Returns the profile that a name refers to when a profile in this layer uses the name.
    fn meant(&self, layer: LayerKind, name: &str) -> Option<ProfileId> {
        let taken = self.taken.get(name).filter(|_| layer == LayerKind::Bundled);
        taken.or_else(|| self.by_name.get(name)).copied()
    }

    fn link(&mut self, findings: &mut Vec<Diagnostic>) {
        self.parents = vec![None; self.profiles.len()];
        let mut suggestions = Suggestions::default();
        for (index, profile) in self.profiles.iter().enumerate() {
            let Some(extends) = &profile.extends else {
                continue;
            };
            match self.meant(profile.layer, &extends.value) {
                Some(parent) => self.parents[index] = Some(parent),
                None => {
                    let message = format!("there is no profile `{}` to extend", extends.value);
                    let known = self.by_name.keys().map(AsRef::as_ref);
                    let help = suggestions
                        .did_you_mean(&extends.value, known)
                        .unwrap_or_else(|| {
                            "write a profile's `name`, not its file; `reqc list --all` shows them"
                                .to_owned()
                        });
                    findings.push(
                        Diagnostic::new(&rules::UNKNOWN_PARENT, extends.span, message).help(help),
                    );
                    self.usable[index] = false;
                }
            }
        }
        self.links.clone_from(&self.parents);
        // Thousands of profiles may extend the same parent, so they share one string for its name.
        for (index, parent) in self.parents.iter().enumerate() {
            let name = parent.map(|parent| Arc::clone(&self.profiles[parent.index()].name.value));
            if let (Some(extends), Some(name)) = (&mut self.profiles[index].extends, name) {
                extends.value = name;
            }
        }
    }

    /// Reports each cycle once, and removes the link that closes it, so that all chains end.
    fn find_cycles(&mut self, findings: &mut Vec<Diagnostic>) {
        let parents: Vec<Option<usize>> = self
            .parents
            .iter()
            .map(|parent| parent.map(ProfileId::index))
            .collect();
        for cycle in chain::circles(&parents) {
            findings.push(self.cycle(&cycle));
            for member in cycle {
                self.usable[member] = false;
                self.parents[member] = None;
            }
        }
    }

    /// Returns the finding about a cycle, located at its first member.
    fn cycle(&self, cycle: &[usize]) -> Diagnostic {
        let members: Vec<&Profile> = cycle.iter().map(|&at| &self.profiles[at]).collect();
        let message = match members.as_slice() {
            [only] => format!("`{}` extends itself", only.name.value),
            _ => {
                let names: Vec<&str> = members.iter().map(|it| it.name.value.as_ref()).collect();
                format!("profiles form a cycle: {}", chain::describe(&names))
            }
        };
        let mut finding = Diagnostic::new(&rules::CYCLE, extends(members[0]), message);
        for member in members.iter().take(chain::SHOWN).skip(1) {
            finding = finding.related(
                extends(member),
                format!("`{}` is the next profile in the cycle", member.name.value),
            );
        }
        finding.help(match members.as_slice() {
            [_] => "remove this `extends`, or name another profile",
            _ => "remove one of these `extends`",
        })
    }

    fn find_depths(&mut self, findings: &mut Vec<Diagnostic>) {
        for index in 0..self.profiles.len() {
            let depth =
                std::iter::successors(Some(index), |&at| self.parents[at].map(ProfileId::index))
                    .take(MAX_CHAIN + 2)
                    .count();
            // Report only the first profile that is too deep, and none of its descendants.
            if depth == MAX_CHAIN + 1 {
                let extends = self.profiles[index]
                    .extends
                    .as_ref()
                    .expect("a long chain extends something");
                let message =
                    format!("this chain of `extends` is longer than {MAX_CHAIN} profiles");
                findings.push(
                    Diagnostic::new(&rules::TOO_DEEP, extends.span, message)
                        .help("merge some of the levels in between"),
                );
                self.usable[index] = false;
            }
        }
    }
}

fn extends(profile: &Profile) -> Span {
    profile
        .extends
        .as_ref()
        .expect("members of a cycle extend something")
        .span
}

/// Returns the finding about a profile with a bundled profile's name.
fn bundled_name(profile: &Profile, dialect: Dialect) -> Diagnostic {
    let name = &profile.name;
    let message = format!("`{}` is the name of a bundled profile", name.value);
    let finding = Diagnostic::new(&repo_rules::BUNDLED_NAME, name.span, message);
    if dialect == Dialect::Inja {
        let help = "profiles in the repository that extend it get this profile, not the bundled one; a different name would make that \
                    clear";
        return Diagnostic {
            severity: Severity::Warning,
            ..finding.help(help)
        };
    }
    let help = format!(
        "choose another name; to start from the bundled one, write `extends = \"{}\"`",
        name.value
    );
    finding.help(help)
}
