//! The files of a repository: layers, `reqc.toml`, provider instances, model overrides, rosters and
//! match patterns.
//!
//! Input: one [`World`] per layer. Output: a [`Repo`] in which every source file is read and
//! registered in a stable order. Knows the places of files and the names in use; does not merge
//! profiles or read templates.

pub(crate) mod address;
mod fields;
pub(crate) mod folders;
mod listing;
mod matching;
pub(crate) mod rules;
mod keys;
mod config;
pub(crate) mod headers;
mod instance;
mod roster;
mod tools;
mod families;
mod unread;
mod load;

pub use config::{
    ALLOW_KEYS, Allow, BUDGET_KEYS, Budget, CONFIG_KEYS, Config, Date, Dialect, EXTENSION_KEYS,
    Extension, Level,
};
pub use families::{
    Condition, Demand, FAMILIES_KEYS, FAMILY_KEYS, Fact, Family, Kept, MemberPath, ModelName,
    ModelPattern, Origin, PRICE_KEYS, Price, Property, REFUSES_KEYS, State, TAKES_KEYS,
    normal_name,
};
pub(crate) use fields::body_fields;
pub use instance::{INSTANCE_KEYS, Instance, SecretRef};
pub(crate) use keys::{Known, Reader, Special, is_fatal};
pub(crate) use load::not_toml;
#[cfg(feature = "runtime")]
pub(crate) use load::read_tools_below;
pub use load::{LoadOptions, load, read_tools};
pub use matching::{Dimension, FileToRoute, Glob, GlobError, Matcher, Mismatch};
pub(crate) use matching::{MAX_GLOBS, examples, glob};
pub use roster::{ROSTER_KEYS, ROSTERS_KEYS, Roster};
pub use tools::{
    DEFAULT_OUTPUT_LIMIT, DEFAULT_TIME_LIMIT, HttpSpec, KeyHeader, MAX_SERVER_NAME, MAX_TOOL_NAME,
    ProgramSpec, SERVER_KEYS, ServerConnection, ServerSpec, TOOL_KEYS, TOOLS_KEYS, ToolSpec,
    ToolsFile, is_in_names,
};

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::diag::Diagnostic;
use crate::source::{FileId, SourceText, Sources, Span};
use crate::world::{ReadError, World};

/// The layer that something belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LayerKind {
    /// The files that are bundled with `reqc`.
    Bundled,
    /// The repository's own files.
    Own,
}

/// A layer and the source of its files.
#[derive(Clone)]
pub struct Layer {
    /// The kind of layer: bundled, or the repository's own.
    pub kind: LayerKind,
    /// The source of its files.
    pub world: Arc<dyn World>,
    /// `true` if its profiles, partials and roles are used (`--no-bundled` excludes the bundled
    /// ones).
    pub active: bool,
    /// `true` if its agents are compiled.
    pub compiled: bool,
}

/// A source file and its layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerFile {
    /// The file.
    pub file: FileId,
    /// The layer it belongs to.
    pub layer: LayerKind,
}

/// The model that `models.toml` assigns to an agent.
#[derive(Debug, Clone)]
pub struct AgentModel {
    /// The place of the agent's name.
    pub name: Span,
    /// The model.
    pub value: Arc<str>,
    /// The place of the model.
    pub span: Span,
}

/// An agent repository on disk, across both layers.
pub struct Repo {
    /// Every source file.
    pub sources: Sources,
    /// The layers, bundled first.
    pub layers: Vec<Layer>,
    /// `reqc.toml`.
    pub config: Config,
    /// The profiles' files, sorted by layer and path.
    pub profiles: Vec<LayerFile>,
    /// The profiles' files that are not text or cannot be read.
    pub unreadable_profiles: Vec<LayerFile>,
    /// The partials by name (`partials/x.jinja`).
    pub partials: BTreeMap<Arc<str>, LayerFile>,
    /// The context files, sorted by layer and path.
    pub contexts: Vec<LayerFile>,
    /// The schema files of wire formats by name (`openai-chat`), the bundled one first.
    pub schemas: BTreeMap<Arc<str>, Vec<LayerFile>>,
    /// The provider instances by name.
    pub instances: BTreeMap<Arc<str>, Instance>,
    /// The files of each provider instance and of its ancestors, including instances with findings.
    instance_files: BTreeMap<Arc<str>, Vec<FileId>>,
    /// `models.toml`, by the agent's name.
    pub models: BTreeMap<Arc<str>, AgentModel>,
    /// `model-families.toml` of both layers.
    pub families: Vec<Arc<Family>>,
    /// `rosters.toml`, in the author's order.
    pub rosters: Vec<Roster>,
    /// `true` if the repository's root is itself the bundled layer.
    pub is_bundled_root: bool,
    /// Unreadable partials by name, with the files of their findings.
    unreadable_partials: BTreeMap<Arc<str>, FileId>,
    /// Folders of partials that cannot be listed; each has a finding.
    unlisted_partials: Vec<String>,
}

/// The state of the partial that an include names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartialState {
    /// A partial that was read.
    Found,
    /// There is no such file.
    Missing,
    /// The file, or a folder around it, has a finding of its own.
    Broken,
}

impl Repo {
    /// Returns the model that the client names for an agent: the given one, or else that of
    /// `models.toml`. A blank name does not count.
    pub fn client_model<'m>(&'m self, agent: &str, given: Option<&'m str>) -> Option<&'m str> {
        let given = given.filter(|model| !model.trim().is_empty());
        let own = self.models.get(agent).map(|model| &*model.value);
        given.or(own).filter(|model| !model.trim().is_empty())
    }

    /// Returns the state of a partial by its full name (`partials/x.jinja`).
    pub fn partial_state(&self, name: &str) -> PartialState {
        if self.partials.contains_key(name) {
            PartialState::Found
        } else if self.unreadable_partials.contains_key(name)
            || self.is_unlisted(name)
            || self.leads_outside(name)
        {
            PartialState::Broken
        } else {
            PartialState::Missing
        }
    }

    /// Returns `true` if a partial belongs to a folder that could not be listed.
    fn is_unlisted(&self, name: &str) -> bool {
        let mut folders = self.unlisted_partials.iter();
        folders.any(|folder| {
            name.strip_prefix(folder.as_str())
                .is_some_and(|rest| rest.starts_with('/'))
        })
    }

    fn leads_outside(&self, name: &str) -> bool {
        self.layers
            .iter()
            .any(|layer| layer.world.kind(name) == Err(ReadError::Outside))
    }

    /// Returns the file of a partial by its full name, whether readable or not.
    pub fn partial_file(&self, name: &str) -> Option<FileId> {
        let readable = self.partials.get(name).map(|source| source.file);
        readable.or_else(|| self.unreadable_partials.get(name).copied())
    }

    /// Returns the files that define a provider instance, with or without findings; empty if there
    /// is no such instance.
    pub fn instance_files(&self, name: &str) -> &[FileId] {
        self.instance_files.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the layers that a file of `layer` may read from, nearest first.
    pub fn readable_layers(&self, layer: LayerKind) -> impl Iterator<Item = &Layer> {
        let own = self
            .layers
            .iter()
            .filter(move |candidate| candidate.kind == layer);
        let bundled = self.layers.iter().filter(move |candidate| {
            candidate.kind == LayerKind::Bundled && layer != candidate.kind
        });
        own.chain(bundled).filter(|layer| layer.active)
    }

    /// Returns a prompt file of a layer as a source; `None` if it is missing or not text.
    pub(crate) fn prompt_file(&self, layer: &Layer, path: &str) -> Option<FileId> {
        let text = SourceText::from_bytes(&layer.world.read(path).ok()?).ok()?;
        Some(
            self.sources
                .find_or_add(&format!("{}{path}", self.shown_below(layer.kind)), || text),
        )
    }

    /// Returns the prefix for the paths of a layer's files in reports.
    pub(crate) fn shown_below(&self, layer: LayerKind) -> &'static str {
        let is_embedded = layer == LayerKind::Bundled && !self.config.is_bundled_layer;
        if is_embedded { "bundled:" } else { "" }
    }

    /// Returns `true` if no compiled layer has a profile, readable or not.
    pub fn is_empty(&self) -> bool {
        let mut profiles = self.profiles.iter().chain(&self.unreadable_profiles);
        !profiles.any(|source| self.is_compiled(source.layer))
    }

    /// Returns `true` if the agents of a layer are compiled.
    pub fn is_compiled(&self, layer: LayerKind) -> bool {
        self.layers
            .iter()
            .any(|candidate| candidate.kind == layer && candidate.compiled)
    }
}

/// A repository and the findings from reading it.
pub struct Loaded {
    /// The repository; usable even if there are findings.
    pub repo: Repo,
    /// The findings.
    pub findings: Vec<Diagnostic>,
}
