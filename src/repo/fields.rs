//! The field names that request bodies of any wire format may have.

use std::collections::BTreeSet;

use super::{LayerKind, Repo};
use crate::json;

/// Returns the names of the top-level fields in the bundled wire schemas.
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
