//! The names of fields that request bodies have, of any wire format.

use std::collections::BTreeSet;

use super::{LayerKind, Repo};
use crate::json;

/// The fields at the top of request bodies, as the bundled wire schemas name them.
pub(crate) fn body_fields(repo: &Repo) -> BTreeSet<String> {
    let mut fields = BTreeSet::new();
    for source in repo
        .schemas
        .values()
        .flatten()
        .filter(|source| source.layer == LayerKind::Bundled)
    {
        if let Ok(schema) = json::parse(repo.sources.get(source.file).text()) {
            fields.extend(
                schema["properties"]
                    .as_object()
                    .into_iter()
                    .flatten()
                    .map(|(name, _)| name.clone()),
            );
        }
    }
    fields
}
