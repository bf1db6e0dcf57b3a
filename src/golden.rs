//! Golden files: the expected files, and their differences from those on disk.
//!
//! Input: the bodies of one agent. Output: [`GoldenFile`]s, and their [`Drift`] from the files in a
//! [`GoldenFolder`]. Comparing and writing are separate: only [`Comparison::write`] changes files,
//! through [`apply`] and [`Manifest`]. Files that reqc did not write are left alone; a [`Manifest`]
//! proves which files it wrote.

mod manifest;
pub(crate) mod rules;
mod folder;

pub(crate) use folder::Comparer;
pub use folder::{Comparison, GoldenFolder};
pub use manifest::{MANIFEST, Manifest, Proof, fingerprint};

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::diff::{BodyId, ChangedFile};
use crate::profile::slug;
use crate::unit::{Body, Plan};
use crate::world::{AccessError, EntryKind, MAX_REPOSITORY_BYTES, Output, join};

/// The folder of golden files.
pub const FOLDER: &str = "golden";

/// The name of the file that contains everything in an agent's request except the body.
pub const REQUEST: &str = "request.json";

/// The keys in every `request.json`, except the agent's name.
const REQUEST_KEYS: [&str; 6] = [
    "provider_instance",
    "client_api",
    "wire",
    "method",
    "url",
    "headers",
];

/// The members that contain the conversation, in all wire formats. Every body has at least one of
/// them.
const CONVERSATIONS: [&str; 5] = ["messages", "contents", "input", "prompt", "input_prefix"];

/// An expected file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct GoldenFile {
    /// The path relative to the folder of golden files: `<slug>/<context>.json`.
    pub path: String,
    /// The context; `None` for `request.json`.
    pub context: Option<Arc<str>>,
    /// The content of the file.
    pub text: String,
}

impl GoldenFile {
    /// Changes the agent's name in the path and the text.
    #[must_use]
    pub(crate) fn of_agent(self, from: &str, to: &str) -> GoldenFile {
        if from == to {
            return self;
        }
        let name = self.path.rsplit('/').next().unwrap_or_default();
        let text = match self.context {
            None => self.text.replacen(&member(from), &member(to), 1),
            Some(_) => self.text,
        };
        GoldenFile {
            path: format!("{}/{name}", slug(to)),
            context: self.context,
            text,
        }
    }
}

fn member(name: &str) -> String {
    format!("\"agent\": {}", Value::from(name))
}

/// A difference between the expected files and those on disk.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Drift {
    /// The path relative to the folder of golden files.
    pub path: String,
    /// The agent, if the file belongs to one.
    pub agent: Option<Arc<str>>,
    /// The context; `None` for `request.json` and orphans.
    pub context: Option<Arc<str>>,
    /// The bytes on disk; `None` if there is no file.
    pub old: Option<Vec<u8>>,
    /// The expected text; `None` if there should be no file.
    pub new: Option<String>,
}

impl From<&Drift> for ChangedFile {
    fn from(drift: &Drift) -> ChangedFile {
        let (slug, name) = drift.path.split_once('/').unwrap_or(("", &drift.path));
        let context = Some(name.trim_end_matches(".json")).filter(|name| *name != "request");
        ChangedFile {
            subject: BodyId {
                agent: drift.agent.clone().unwrap_or_else(|| Arc::from(slug)),
                context: context.map(Arc::from),
            },
            path: drift.path.clone(),
            old: drift
                .old
                .as_ref()
                .map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
            new: drift.new.clone(),
        }
    }
}

/// Returns one agent's files: `request.json`, and one file for each body. Each body is given with
/// the name of its context.
pub fn files<'b>(
    plan: &Plan<'_>,
    bodies: impl Iterator<Item = (&'b Arc<str>, &'b Body)>,
) -> Vec<GoldenFile> {
    let slug = slug(plan.name());
    let request = GoldenFile {
        path: format!("{slug}/{REQUEST}"),
        context: None,
        text: request_json(plan, None),
    };
    std::iter::once(request)
        .chain(bodies.map(|(context, body)| {
            let path = format!("{slug}/{context}.json");
            GoldenFile {
                path,
                context: Some(Arc::clone(context)),
                text: body.pretty(),
            }
        }))
        .collect()
}

/// Returns the content of `request.json`: everything in a request except its body.
pub fn request_json(plan: &Plan<'_>, model: Option<&str>) -> String {
    let line = plan.request_line(model);
    let headers: Map<String, Value> = line
        .headers
        .into_iter()
        .map(|header| (header.name, header.value.to_string().into()))
        .collect();
    let members = [
        ("agent", plan.name().as_ref().into()),
        (
            "provider_instance",
            plan.instance.name.value.as_ref().into(),
        ),
        ("client_api", plan.api.name().into()),
        ("wire", plan.wire.name().into()),
        ("method", line.method.into()),
        ("url", line.url.into()),
        ("headers", Value::Object(headers)),
    ];
    let model = plan
        .carries_model()
        .then(|| ("model", Value::from(plan.model(model))));
    let value: Map<String, Value> = members
        .into_iter()
        .chain(model)
        .map(|(key, value): (&str, Value)| (key.to_owned(), value))
        .collect();
    let mut text = serde_json::to_string_pretty(&value).expect("a value serialises into memory");
    text.push('\n');
    text
}

/// Compares the files of one agent with those below `folder`.
///
/// # Errors
///
/// Returns a phrase if an existing file cannot be read.
pub fn compare(
    output: &dyn Output,
    folder: &str,
    agent: &Arc<str>,
    expected: Vec<GoldenFile>,
) -> Result<Vec<Drift>, AccessError> {
    let mut drifts = Vec::new();
    for file in expected {
        let old = output.current(&join(folder, &file.path))?;
        if old.as_deref() != Some(file.text.as_bytes()) {
            let drift = Drift {
                path: file.path,
                agent: Some(Arc::clone(agent)),
                context: file.context,
                old,
                new: Some(file.text),
            };
            drifts.push(drift);
        }
    }
    Ok(drifts)
}

/// Unexpected files.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Surplus {
    /// The files that reqc wrote and that are to be removed.
    pub drifts: Vec<Drift>,
    /// The paths of files that reqc did not write, which are left alone.
    pub foreign: Vec<String>,
}

impl Surplus {
    /// Returns the files in both `self` and `other`.
    #[must_use]
    pub fn and(mut self, other: Surplus) -> Surplus {
        self.drifts.extend(other.drifts);
        self.foreign.extend(other.foreign);
        self
    }
}

/// Returns the unexpected files in one agent's folder.
///
/// # Errors
///
/// Returns a phrase if a file cannot be read.
pub fn surplus(
    output: &dyn Output,
    folder: &str,
    slug: &str,
    expected: &[GoldenFile],
    manifest: &Manifest,
) -> Result<Surplus, AccessError> {
    let expected: HashSet<&str> = expected.iter().map(|file| file.path.as_str()).collect();
    let paths = listed(output, folder, slug)?
        .into_iter()
        .filter(|path| !expected.contains(path.as_str()));
    unasked(output, folder, slug, paths.collect(), manifest)
}

/// Returns the files below `folder` that are in the folders of removed or renamed agents.
///
/// # Errors
///
/// Returns a phrase if a file cannot be read.
pub fn orphans<'n>(
    output: &dyn Output,
    folder: &str,
    agents: impl Iterator<Item = &'n Arc<str>>,
    manifest: &Manifest,
) -> Result<Surplus, AccessError> {
    let slugs: HashSet<String> = agents.map(|name| slug(name)).collect();
    let mut found = Surplus::default();
    for entry in output
        .list(folder)?
        .into_iter()
        .filter(|entry| entry.kind == EntryKind::Folder)
    {
        let name = entry.path.rsplit('/').next().unwrap_or_default();
        if !slugs.contains(name) {
            found = found.and(unasked(
                output,
                folder,
                name,
                listed(output, folder, name)?,
                manifest,
            )?);
        }
    }
    // A folder with only foreign files does not belong to reqc, and is not reported.
    found.foreign.retain(|path| manifest.names_file(path));
    Ok(found)
}

/// Returns the paths of the form `<slug>/<name>.json`. `request.json`, which proves that reqc wrote
/// the other files, comes last.
fn listed(output: &dyn Output, folder: &str, slug: &str) -> Result<Vec<String>, AccessError> {
    let files = output
        .list(&join(folder, slug))?
        .into_iter()
        .filter(|entry| entry.kind == EntryKind::File);
    let names = files.filter_map(|entry| entry.path.rsplit('/').next().map(str::to_owned));
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".json")).collect();
    names.sort_by_key(|name| name == REQUEST);
    Ok(names
        .into_iter()
        .map(|name| format!("{slug}/{name}"))
        .collect())
}

/// Sorts the files in one folder into files that reqc wrote and other files.
fn unasked(
    output: &dyn Output,
    folder: &str,
    slug: &str,
    paths: Vec<String>,
    manifest: &Manifest,
) -> Result<Surplus, AccessError> {
    let mut found = Surplus::default();
    if paths.is_empty() {
        return Ok(found);
    }
    if !has_our_request(output, folder, slug)? {
        return Ok(Surplus {
            foreign: paths,
            ..found
        });
    }
    let mut left = MAX_REPOSITORY_BYTES;
    for path in paths {
        match manifest.names_file(&path) {
            true => {
                let old = output.current(&join(folder, &path))?;
                if old
                    .as_ref()
                    .is_some_and(|bytes| !has_our_form(&path, bytes))
                {
                    found.foreign.push(path);
                    continue;
                }
                let size = old.as_ref().map_or(0, Vec::len) as u64;
                let most = MAX_REPOSITORY_BYTES >> 20;
                left = left.checked_sub(size).ok_or_else(|| {
                    format!(
                        "the files in `{}` are larger than {most} MiB in total: remove the folder",
                        join(folder, slug)
                    )
                })?;
                found.drifts.push(Drift {
                    path,
                    agent: None,
                    context: None,
                    old,
                    new: None,
                });
            }
            false => found.foreign.push(path),
        }
    }
    Ok(found)
}

/// Returns `true` if the `request.json` in a folder has the form that reqc writes.
fn has_our_request(output: &dyn Output, folder: &str, name: &str) -> Result<bool, AccessError> {
    let path = format!("{name}/{REQUEST}");
    Ok(output
        .current(&join(folder, &path))?
        .is_some_and(|bytes| has_our_form(&path, &bytes)))
}

/// Returns `true` if reqc may have written a file `<slug>/<name>.json`, judging by its content: the
/// request line of an agent with this slug, or a body that contains a conversation. A manifest
/// alone is not proof, because anyone can write one.
fn has_our_form(path: &str, bytes: &[u8]) -> bool {
    let Ok(Value::Object(value)) = serde_json::from_slice(bytes) else {
        return false;
    };
    match path.split_once('/') {
        Some((folder, REQUEST)) => {
            let agent = value.get("agent").and_then(Value::as_str);
            agent.is_some_and(|agent| slug(agent) == folder)
                && REQUEST_KEYS.iter().all(|key| value.contains_key(*key))
        }
        _ => CONVERSATIONS.iter().any(|key| value.contains_key(*key)),
    }
}

/// Writes and removes files on disk so that they match the expected files.
///
/// # Errors
///
/// Returns a phrase that names the first file that could not be written.
pub fn apply(output: &dyn Output, folder: &str, drifts: &[Drift]) -> Result<(), AccessError> {
    for drift in drifts {
        let path = join(folder, &drift.path);
        match &drift.new {
            Some(text) => output.replace(&path, text.as_bytes())?,
            None => output.remove(&path)?,
        }
    }
    Ok(())
}
