//! The bundled schemas' validators, which `build/validators.rs` generates when the program is
//! built.
//!
//! A repository's own schemas, and extensions that no bundled file lists, have no generated
//! validators. [`Document`](super::document::Document) compiles them on first use.

#![allow(
    unused_qualifications,
    reason = "generated code names functions by their full paths"
)]

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::unit::{Check, CheckId, MemberRef};

/// A bundled schema, split into a separate check for each member of a body.
pub(super) struct Bundled {
    /// The name of the wire format.
    format: &'static str,
    /// The digest of the schema file.
    schema: Digest,
    extension: Option<Extension>,
    required: &'static [&'static str],
    /// The checks by member name, sorted by the length of the name and then by name.
    members: &'static [(&'static str, Check)],
    together: Option<Together>,
}

/// The SHA-256 digest of a file's text.
type Digest = [u8; 32];

/// Returns the digest by which a file's text is compared with the bundled files.
fn digest(text: &str) -> Digest {
    Sha256::digest(text.as_bytes()).into()
}

/// A name in an extension file. The schema accepts the fields that the file lists under this name.
#[derive(Clone, Copy)]
struct Extension {
    name: &'static str,
    /// The digest of the file.
    file: Digest,
}

/// A schema constraint on several members at once.
struct Together {
    /// The members that the constraint mentions.
    names: &'static [&'static str],
    /// The members whose values the constraint checks. For the other members, the constraint checks
    /// only whether they are present.
    looked_at: &'static [&'static str],
    check: Check,
}

impl Bundled {
    /// Returns the validators for a wire format's bundled schema, with the extension under a name;
    /// `None` if there are none.
    pub(super) fn find(format: &str, extension: Option<&str>) -> Option<&'static Bundled> {
        ALL.iter().find(|known| {
            known.format == format && known.extension.map(|extension| extension.name) == extension
        })
    }

    /// Returns the wire format with this name; `None` if no schema is bundled for it.
    pub(super) fn format(name: &str) -> Option<&'static str> {
        Bundled::find(name, None).map(|known| known.format)
    }

    /// Returns the wire format of the bundled schema with this text; `None` for other text.
    pub(super) fn format_of_schema(text: &str) -> Option<&'static str> {
        let digest = digest(text);
        let known = ALL.iter().find(|known| known.schema == digest)?;
        Some(known.format)
    }

    /// Returns the wire format of the bundled extension file with this text; `None` for other text.
    pub(super) fn format_of_extensions(text: &str) -> Option<&'static str> {
        let digest = digest(text);
        let known = ALL
            .iter()
            .find(|known| known.extension.is_some_and(|it| it.file == digest))?;
        Some(known.format)
    }

    /// Returns `true` if the schema accepts a body with these members.
    pub(super) fn accepts(&self, members: &[MemberRef<'_>]) -> bool {
        members.iter().all(|member| self.takes(member))
            && self
                .required
                .iter()
                .all(|name| members.iter().any(|member| member.name == *name))
            && self
                .together
                .as_ref()
                .is_none_or(|together| together.accepts(members))
    }

    /// Returns the name of the first member that the schema does not accept.
    pub(super) fn refused<'b>(&self, members: &[MemberRef<'b>]) -> Option<&'b str> {
        self.all_refused(members).next().map(|member| member.name)
    }

    /// Returns the invalid members of a body; `None` if the cause may involve other members.
    pub(super) fn refused_alone<'b>(
        &self,
        members: &[MemberRef<'b>],
    ) -> Option<Vec<MemberRef<'b>>> {
        let is_there = |name: &&&str| members.iter().any(|member| member.name == **name);
        let is_apart = self.together.is_none()
            && self.required.iter().filter(|name| !is_there(name)).count() == 0;
        is_apart.then(|| self.all_refused(members).collect())
    }

    fn all_refused<'b>(&self, members: &[MemberRef<'b>]) -> impl Iterator<Item = MemberRef<'b>> {
        members.iter().filter(|member| !self.takes(member)).copied()
    }

    fn takes(&self, member: &MemberRef<'_>) -> bool {
        self.check(member)
            .is_some_and(|check| member.is_accepted(check))
    }

    fn check(&self, member: &MemberRef<'_>) -> Option<&'static Check> {
        let key = (member.name.len(), member.name);
        let index = self
            .members
            .binary_search_by_key(&key, |(name, _)| (name.len(), name))
            .ok()?;
        Some(&self.members[index].1)
    }
}

impl Together {
    fn accepts(&self, members: &[MemberRef<'_>]) -> bool {
        let named = members
            .iter()
            .filter(|member| self.names.contains(&member.name));
        let value = |member: &MemberRef<'_>| match self.looked_at.contains(&member.name) {
            true => member.value().clone(),
            false => Value::Null,
        };
        let named: Value = named
            .map(|member| (member.name.to_owned(), value(member)))
            .collect();
        (self.check.accepts)(&named)
    }
}

include!(concat!(env!("OUT_DIR"), "/validators.rs"));
