//! Reads a repository's files: layers, `reqc.toml`, provider instances, model overrides, rosters
//! and match patterns.
//!
//! Input: one [`World`] per layer. Output: a [`Repo`] in which every source file is read and
//! registered in a stable order. This module determines where files belong, and which names are in
//! use. It does not merge profiles or read templates.

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
    Condition, Demand, FAMILIES_KEYS, FAMILY_KEYS, Fact, Family, FoundMember, Kept, MemberPath,
    ModelName, ModelPattern, Origin, PRICE_KEYS, PathStart, Price, Property, REFUSES_KEYS, State,
    TAKES_KEYS, normal_name,
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
use crate::source::{BUNDLED, FileId, SourceText, Sources, Span};
use crate::world::{ReadError, World};

/// The layer to which a file or a setting belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LayerKind {
    /// The files that are bundled with `reqc`.
    Bundled,
    /// The repository's own files.
    Own,
}

/// A layer, with access to its files.
#[derive(Clone)]
pub struct Layer {
    /// The kind of layer: bundled, or the repository's own.
    pub kind: LayerKind,
    /// Provides access to the layer's files.
    pub world: Arc<dyn World>,
    /// `true` if the layer's profiles, partials and roles are used. `--no-bundled` excludes those
    /// in the bundled layer.
    pub active: bool,
    /// `true` if the layer's agents are compiled.
    pub compiled: bool,
}

/// A source file and its layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LayerFile {
    /// The file.
    pub file: FileId,
    /// The layer to which the file belongs.
    pub layer: LayerKind,
}

/// The model that `models.toml` specifies for an agent.
#[derive(Debug, Clone)]
pub struct AgentModel {
    /// The location of the agent's name.
    pub name: Span,
    /// The model's name.
    pub value: Arc<str>,
    /// The location of the model.
    pub span: Span,
}

/// An agent repository on disk, including both layers.
pub struct Repo {
    /// Every source file.
    pub sources: Sources,
    /// The layers, bundled first.
    pub layers: Vec<Layer>,
    /// The settings in `reqc.toml`.
    pub config: Config,
    /// The profile files, sorted by layer and path.
    pub profiles: Vec<LayerFile>,
    /// The profile files that are not text or cannot be read.
    pub unreadable_profiles: Vec<LayerFile>,
    /// The partials by name (`partials/x.jinja`).
    pub partials: BTreeMap<Arc<str>, LayerFile>,
    /// The context files, sorted by layer and path.
    pub contexts: Vec<LayerFile>,
    /// The schema files of each wire format, by the format's name (`openai-chat`), with the bundled
    /// file first.
    pub schemas: BTreeMap<Arc<str>, Vec<LayerFile>>,
    /// `true` if the files of the bundled layer are those that are built into the program.
    pub has_built_in_layer: bool,
    /// The provider instances by name.
    pub instances: BTreeMap<Arc<str>, Instance>,
    /// The files of each provider instance and its ancestors, including instances with findings.
    instance_files: BTreeMap<Arc<str>, Vec<FileId>>,
    /// The entries in `models.toml`, by agent name.
    pub models: BTreeMap<Arc<str>, AgentModel>,
    /// The entries in `model-families.toml`, from both layers.
    pub families: Vec<Arc<Family>>,
    /// The entries in `rosters.toml`, in the author's order.
    pub rosters: Vec<Roster>,
    /// `true` if the root of the repository is itself the bundled layer.
    pub is_bundled_root: bool,
    /// Partials that cannot be read, by name, each with the file to which its finding refers.
    unreadable_partials: BTreeMap<Arc<str>, FileId>,
    /// The folders of partials that cannot be listed, each of which has a finding.
    unlisted_partials: Vec<String>,
}

/// The state of an included partial.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartialState {
    /// The partial was read.
    Found,
    /// The file does not exist.
    Missing,
    /// The file, or one of its parent folders, has a finding.
    Broken,
}

impl Repo {
    /// Returns the model that the client specifies for an agent: the `given` model, or else the
    /// model in `models.toml`. A blank name is ignored. Returns `None` if the client specifies no
    /// model.
    pub fn client_model<'m>(&'m self, agent: &str, given: Option<&'m str>) -> Option<&'m str> {
        let given = given.filter(|model| !model.trim().is_empty());
        let own = self.models.get(agent).map(|model| &*model.value);
        given.or(own).filter(|model| !model.trim().is_empty())
    }

    /// Returns the state of a partial, given its full name (`partials/x.jinja`).
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

    /// Returns `true` if a partial is in a folder that could not be listed.
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

    /// Returns the file of a partial, readable or not, given its full name.
    pub fn partial_file(&self, name: &str) -> Option<FileId> {
        let readable = self.partials.get(name).map(|source| source.file);
        readable.or_else(|| self.unreadable_partials.get(name).copied())
    }

    /// Returns the files that define a provider instance, with or without findings; empty if there
    /// is no such instance.
    pub fn instance_files(&self, name: &str) -> &[FileId] {
        self.instance_files.get(name).map_or(&[], Vec::as_slice)
    }

    /// Returns the layers from which a file in `layer` may read, nearest first.
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

    /// Returns a prompt file in a layer as a source; `None` if the file is missing or not text.
    pub(crate) fn prompt_file(&self, layer: &Layer, path: &str) -> Option<FileId> {
        let text = SourceText::from_bytes(&layer.world.read(path).ok()?).ok()?;
        Some(
            self.sources
                .find_or_add(&format!("{}{path}", self.shown_below(layer.kind)), || text),
        )
    }

    /// Returns the prefix that reports put before the paths of a layer's files.
    pub(crate) fn shown_below(&self, layer: LayerKind) -> &'static str {
        let is_embedded = layer == LayerKind::Bundled && !self.config.is_bundled_layer;
        if is_embedded { BUNDLED } else { "" }
    }

    /// Returns `true` if no compiled layer contains a profile, readable or not.
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

/// A repository, and the findings from loading it.
pub struct Loaded {
    /// The repository, which can be used even if there are findings.
    pub repo: Repo,
    /// The findings from loading it.
    pub findings: Vec<Diagnostic>,
}
