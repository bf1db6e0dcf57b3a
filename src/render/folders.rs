//! The folders that a prompt's own text may refer to, and the folder of roles.

use std::sync::Arc;

use crate::repo::folders::ROLES;
use crate::world::normalise_path;

/// The variables in a prompt's own text, with the names that replace them. Each name is so short
/// that, with `{{` and `}}`, it is no longer than the variable.
pub(super) const PROMPT_VARIABLES: [(&str, &str); 3] = [
    ("${PROJECT_DIR}", "_p"),
    ("${CONFIG_DIR}", "_c"),
    ("${HOME}", "_h"),
];

/// The names of the three folders.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folders {
    /// `${PROJECT_DIR}`.
    pub project: Arc<str>,
    /// `${CONFIG_DIR}`: the agent repository.
    pub config: Arc<str>,
    /// `${HOME}`.
    pub home: Arc<str>,
}

impl Folders {
    /// Returns the folders for compilation, which are the same on every machine.
    pub fn placeholders() -> Folders {
        Folders {
            project: Arc::from("/project"),
            config: Arc::from("/config"),
            home: Arc::from("/home/user"),
        }
    }
}

/// Returns the path of a role's file, in the form that `read_file` accepts.
pub(super) fn role_path(id: &str) -> String {
    format!(":/{ROLES}/{id}.md")
}

/// Returns the path within the layers for a path that refers to a layer's file on every machine.
/// Such a path begins with `:/` or `${CONFIG_DIR}/`.
pub(super) fn path_in_layers(path: &str) -> Option<String> {
    let rest = path
        .strip_prefix(":/")
        .or_else(|| path.strip_prefix("${CONFIG_DIR}/"))?;
    match rest.contains("${") {
        true => None,
        false => normalise_path(rest),
    }
}
