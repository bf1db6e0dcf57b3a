//! The field names of request bodies in any wire format.

use std::collections::BTreeSet;

use super::{LayerKind, Repo};
use crate::json;

/// Returns the top-level fields of request bodies, as named in the bundled wire schemas.
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
