//! The conventional folders of an agent repository. Also included by `build/`.

/// Profiles.
pub(crate) const AGENTS: &str = "agents";
/// Contexts.
pub(crate) const CONTEXTS: &str = "contexts";
/// Shared fragments of templates.
pub(crate) const PARTIALS: &str = "partials";
/// Provider instances.
pub(crate) const PROVIDERS: &str = "providers";
/// Personas and task prompts.
pub(crate) const ROLES: &str = "roles";
/// JSON Schemas.
pub(crate) const SCHEMAS: &str = "schemas";

/// The file with facts about models, which is the only bundled file at the root.
pub(crate) const MODEL_FAMILIES: &str = "model-families.toml";

/// The file at the root with the settings of the repository, which marks the root.
pub(crate) const CONFIG: &str = "reqc.toml";

/// Returns `true` if a path is inside a folder.
pub(crate) fn is_in(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// All folders with files that users write, sorted. `golden/` is not among them, because the
/// program writes it.
pub(crate) const ALL: [&str; 6] = [AGENTS, CONTEXTS, PARTIALS, PROVIDERS, ROLES, SCHEMAS];
