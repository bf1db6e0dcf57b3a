//! The conventional folders in an agent repository. `build/` includes this file, too.

/// The folder for profiles.
pub(crate) const AGENTS: &str = "agents";
/// The folder for contexts.
pub(crate) const CONTEXTS: &str = "contexts";
/// The folder for shared template fragments.
pub(crate) const PARTIALS: &str = "partials";
/// The folder for provider instances.
pub(crate) const PROVIDERS: &str = "providers";
/// The folder for personas and task prompts.
pub(crate) const ROLES: &str = "roles";
/// The folder for JSON Schemas.
pub(crate) const SCHEMAS: &str = "schemas";

/// The file with facts about models. The build script converts the bundled one.
pub(crate) const MODEL_FAMILIES: &str = "model-families.toml";

/// The settings file, which marks the root of a repository.
pub(crate) const CONFIG: &str = "reqc.toml";

/// Returns `true` if a path is inside a folder.
pub(crate) fn is_in(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// All folders for files that users write, sorted. `golden/` is not among them, because the program
/// writes it.
pub(crate) const ALL: [&str; 6] = [AGENTS, CONTEXTS, PARTIALS, PROVIDERS, ROLES, SCHEMAS];
