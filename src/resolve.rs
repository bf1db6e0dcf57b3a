//! Resolves `extends`: builds the hierarchy of profiles, and deep-merges a profile over its
//! ancestors.
//!
//! Input: all [`Profile`]s. Output: a [`Hierarchy`] (checked once) and, on demand, a
//! [`ResolvedProfile`] in which every value has its location and the values that it overrides. A
//! resolved profile borrows from the profiles, so that thousands can be resolved one after another
//! in little memory.

pub(crate) mod rules;
mod hierarchy;
mod merge;

pub use hierarchy::{Hierarchy, MAX_CHAIN, ProfileId};
pub use merge::{Level, Merged, MergedTable};

use std::sync::Arc;

use crate::diag::{Diagnostic, Suggestions};
use crate::profile::Profile;
use crate::repo::LayerKind;
use crate::source::{Span, Spanned};
use crate::toml::Kind;

/// A profile together with everything it inherits.
#[derive(Debug, Clone)]
pub struct ResolvedProfile<'r> {
    /// The profile itself.
    pub profile: &'r Profile,
    /// The profile and its ancestors, starting with the profile.
    pub chain: Vec<&'r Profile>,
    /// The merged keys.
    pub merged: MergedTable<'r>,
}

/// Merges a chain of profiles, the leaf first, the root last.
pub fn resolve<'r>(chain: Vec<&'r Profile>, findings: &mut Vec<Diagnostic>) -> ResolvedProfile<'r> {
    merge(chain, Some(&mut Suggestions::default()), findings)
}

/// Merges like [`resolve`], for a profile whose findings were already reported.
pub(crate) fn resolve_again(chain: Vec<&Profile>) -> ResolvedProfile<'_> {
    merge(chain, None, &mut Vec::new())
}

fn merge<'r>(
    chain: Vec<&'r Profile>,
    mut suggestions: Option<&mut Suggestions>,
    findings: &mut Vec<Diagnostic>,
) -> ResolvedProfile<'r> {
    let mut merged = MergedTable::default();
    for profile in chain.iter().rev() {
        for path in &profile.unset {
            if !unset(&mut merged, path)
                && let Some(suggestions) = &mut suggestions
            {
                findings.push(unset_nothing(&merged, path, suggestions));
            }
        }
        if !profile.unset.is_empty() {
            merged.sweep();
        }
        merged.merge(profile.file, &profile.settings, findings);
    }
    ResolvedProfile {
        profile: chain[0],
        chain,
        merged,
    }
}

/// Removes a body field or, failing that, a header; returns `false` if there is neither.
fn unset(merged: &mut MergedTable<'_>, path: &Spanned<Vec<String>>) -> bool {
    merged.remove("body", &path.value, path.span)
        || match path.value.as_slice() {
            [first, name] if first == "headers" => {
                merged.remove("headers", &[name.to_ascii_lowercase()], path.span)
            }
            _ => false,
        }
}

fn unset_nothing(
    merged: &MergedTable<'_>,
    path: &Spanned<Vec<String>>,
    suggestions: &mut Suggestions,
) -> Diagnostic {
    let message = format!(
        "`{}` is not inherited, so there is nothing to unset",
        path.value.join(".")
    );
    if let Some((first, rest)) = path
        .value
        .split_first()
        .filter(|(first, rest)| *first == "body" && !rest.is_empty())
    {
        let help = format!(
            "paths are relative to `{first}`: write `\"{}\"`",
            rest.join(".")
        );
        return Diagnostic::new(&rules::UNSET_NOTHING, path.span, message).help(help);
    }
    let (last, parents) = path.value.split_last().expect("a path has a segment");
    let (root, inner) = if parents == ["headers"] {
        ("headers", &[][..])
    } else {
        ("body", parents)
    };
    let siblings = inner.iter().try_fold(
        merged.get(root).and_then(Merged::table),
        |table, segment| Some(table?.get(segment).and_then(Merged::table)),
    );
    let known = siblings
        .flatten()
        .into_iter()
        .flat_map(MergedTable::iter)
        .map(|(key, _)| key);
    let help = suggestions
        .did_you_mean(last, known)
        .unwrap_or_else(|| "remove the entry".to_owned());
    Diagnostic::new(&rules::UNSET_NOTHING, path.span, message).help(help)
}

impl<'r> ResolvedProfile<'r> {
    /// Returns the profile's name.
    pub fn name(&self) -> &'r Arc<str> {
        &self.profile.name.value
    }

    /// Returns the location of the `extends` through which one of the repository's profiles
    /// inherits from a bundled profile.
    pub fn bundled_parent(&self) -> Option<Span> {
        let mut pairs = self.chain.windows(2);
        let pair = pairs
            .find(|pair| pair[0].layer == LayerKind::Own && pair[1].layer == LayerKind::Bundled)?;
        pair[0].extends.as_ref().map(|name| name.span)
    }

    /// Returns a string setting and its location.
    pub fn string(&self, key: &str) -> Option<Spanned<&'r str>> {
        let merged = self.merged.get(key)?;
        match &merged.node.kind {
            Kind::String(text) => Some(Spanned {
                value: text.as_str(),
                span: merged.span(),
            }),
            _ => None,
        }
    }

    /// Returns a switch and its location.
    pub fn switch(&self, key: &str) -> Option<Spanned<bool>> {
        let merged = self.merged.get(key)?;
        match merged.node.kind {
            Kind::Boolean(value) => Some(Spanned {
                value,
                span: merged.span(),
            }),
            _ => None,
        }
    }

    /// Returns `true` if a switch is on.
    pub fn is_on(&self, key: &str) -> bool {
        self.switch(key).is_some_and(|switch| switch.value)
    }

    /// Returns a list of strings; empty if it is not set.
    pub fn strings(&self, key: &str) -> Vec<&'r str> {
        let Some(Merged { node, .. }) = self.merged.get(key) else {
            return Vec::new();
        };
        let Kind::Array(elements) = &node.kind else {
            return Vec::new();
        };
        let texts = elements.iter().filter_map(|element| match &element.kind {
            Kind::String(text) => Some(text.as_str()),
            _ => None,
        });
        texts.collect()
    }

    /// Returns the locations of all strings that no descendant overrides.
    pub(crate) fn strings_in_effect(&self) -> Vec<Span> {
        let mut found = Vec::new();
        for (_, value) in self.merged.iter() {
            value.strings(&mut found);
        }
        found
    }

    /// Returns the merged `[body]`.
    pub fn body(&self) -> Option<&MergedTable<'r>> {
        self.merged.get("body").and_then(Merged::table)
    }

    /// Returns the merged `[headers]`, each with its lower-case name, its value and its location.
    pub fn headers(&self) -> impl Iterator<Item = (&'r str, Spanned<&'r str>)> {
        let headers = self
            .merged
            .get("headers")
            .and_then(Merged::table)
            .into_iter()
            .flat_map(MergedTable::iter);
        headers.filter_map(|(name, merged)| match &merged.node.kind {
            Kind::String(value) => Some((
                name,
                Spanned {
                    value: value.as_str(),
                    span: merged.span(),
                },
            )),
            _ => None,
        })
    }

    /// Returns the location of the profile's name.
    pub fn name_span(&self) -> Span {
        self.profile.name.span
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Severity;
    use crate::repo::LayerKind;
    use crate::source::{SourceText, Sources};
    use crate::toml;

    fn profile(text: &str) -> Profile {
        let file = Sources::default().add(
            "a.toml",
            SourceText::from_bytes(text.as_bytes()).expect("valid"),
        );
        let mut findings = Vec::new();
        let table = toml::parse(text).expect("valid");
        let profile = Profile::read(file, LayerKind::Own, table, &|_| false, &mut findings)
            .expect("has a name");
        assert!(
            findings
                .iter()
                .all(|finding| finding.severity < Severity::Error),
            "{findings:?}"
        );
        profile
    }

    fn headers(levels: &[&str]) -> Vec<String> {
        let chain: Vec<Profile> = levels
            .iter()
            .rev()
            .map(|level| profile(&format!("name = \"x\"\n{level}")))
            .collect();
        let resolved = resolve_again(chain.iter().collect());
        resolved
            .headers()
            .map(|(name, value)| format!("{name}: {}", value.value))
            .collect()
    }

    #[test]
    fn headers_are_inherited_whatever_their_case() {
        let base = "headers = { Anthropic-Beta = \"a\", X-Team = \"one\" }";
        assert_eq!(headers(&[base]), ["anthropic-beta: a", "x-team: one"]);
        assert_eq!(
            headers(&[base, "headers = { X-TEAM = \"two\", x-new = \"n\" }"]),
            ["anthropic-beta: a", "x-team: two", "x-new: n"]
        );
        assert_eq!(
            headers(&[base, "unset = [\"headers.X-team\"]"]),
            ["anthropic-beta: a"]
        );
        assert_eq!(
            headers(&[
                base,
                "unset = [\"headers.x-team\"]",
                "headers = { X-Team = \"3\" }"
            ]),
            ["anthropic-beta: a", "x-team: 3"]
        );
    }
}
