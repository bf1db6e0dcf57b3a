//! Golden bodies: which files they are, and how those on disk differ.
//!
//! Input: the bodies of one agent. Output: [`GoldenFile`]s, and [`Drift`] against what an [`Output`] holds.
//! Deciding is separate from writing: [`apply`] is the only function here that changes anything.

pub(crate) mod rules;

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::compile::{AgentBodies, golden_slug};
use crate::unit::Plan;
use crate::world::Output;

/// The folder of golden files.
pub const FOLDER: &str = "golden";

/// The file of each agent that holds all of a request but its body.
pub const REQUEST: &str = "request.json";

/// A file that should be there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoldenFile {
    /// Path relative to the folder of golden files: `<slug>/<context>.json`.
    pub path: String,
    /// The context; `None` for `request.json`.
    pub context: Option<Arc<str>>,
    /// What it holds.
    pub text: String,
}

/// A difference between what should be there and what is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drift {
    /// Path relative to the folder of golden files.
    pub path: String,
    /// The agent, if the file belongs to one.
    pub agent: Option<Arc<str>>,
    /// The context; `None` for `request.json` and orphans.
    pub context: Option<Arc<str>>,
    /// What is there; `None`: nothing.
    pub old: Option<Vec<u8>>,
    /// What should be there; `None`: nothing.
    pub new: Option<String>,
}

/// The files of one agent: `request.json`, and a body per context that goldens are written for.
pub fn files(agent: &AgentBodies<'_>, model: Option<&str>, all_contexts: bool) -> Vec<GoldenFile> {
    let slug = golden_slug(agent.plan.name());
    let mut files =
        vec![GoldenFile { path: format!("{slug}/{REQUEST}"), context: None, text: request_json(&agent.plan, model) }];
    for (ready, body) in agent.bodies.iter().filter(|(ready, _)| all_contexts || ready.golden) {
        let context = &ready.context.name;
        let path = format!("{slug}/{context}.json");
        files.push(GoldenFile { path, context: Some(Arc::clone(context)), text: body.pretty() });
    }
    files
}

/// `request.json`: everything of a request but its body.
pub fn request_json(plan: &Plan<'_>, model: Option<&str>) -> String {
    let line = plan.request_line(model);
    let headers: Map<String, Value> =
        line.headers.into_iter().map(|header| (header.name, header.value.to_string().into())).collect();
    let members = [
        ("agent", plan.name().as_ref().into()),
        ("provider_instance", plan.instance.name.value.as_ref().into()),
        ("client_api", plan.api.name().into()),
        ("wire", plan.wire.name().into()),
        ("method", line.method.into()),
        ("url", line.url.into()),
        ("headers", Value::Object(headers)),
    ];
    let model = plan.carries_model().then(|| ("model", Value::from(plan.model(model))));
    let value: Map<String, Value> =
        members.into_iter().chain(model).map(|(key, value): (&str, Value)| (key.to_owned(), value)).collect();
    let mut text = serde_json::to_string_pretty(&value).expect("a value serialises into memory");
    text.push('\n');
    text
}

/// Compares one agent's files with those below `folder`.
///
/// # Errors
///
/// A phrase, if a file that is there cannot be read.
pub fn compare(
    output: &dyn Output,
    folder: &str,
    agent: &Arc<str>,
    expected: Vec<GoldenFile>,
) -> Result<Vec<Drift>, String> {
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

/// The files of one agent's folder that nothing asks for.
///
/// # Errors
///
/// A phrase, if a file cannot be read.
pub fn surplus(output: &dyn Output, folder: &str, slug: &str, expected: &[GoldenFile]) -> Result<Vec<Drift>, String> {
    let expected: HashSet<&str> = expected.iter().map(|file| file.path.as_str()).collect();
    let paths = ours(output, folder, slug).into_iter().filter(|path| !expected.contains(path.as_str()));
    paths.map(|path| unasked(output, folder, path)).collect()
}

/// The files below `folder` in folders of no agent: agents that are gone or renamed.
///
/// # Errors
///
/// A phrase, if a file cannot be read.
pub fn orphans<'n>(
    output: &dyn Output,
    folder: &str,
    agents: impl Iterator<Item = &'n Arc<str>>,
) -> Result<Vec<Drift>, String> {
    let mut slugs: Vec<String> = agents.map(|name| golden_slug(name)).collect();
    slugs.sort_unstable();
    let folders = output.folders(folder).into_iter().filter(|slug| slugs.binary_search(slug).is_err());
    folders.flat_map(|slug| ours(output, folder, &slug)).map(|path| unasked(output, folder, path)).collect()
}

/// The files of the form `<slug>/<name>.json`: others are nobody's business here.
fn ours(output: &dyn Output, folder: &str, slug: &str) -> Vec<String> {
    let inside = join(folder, slug);
    let files = output.files(&inside);
    let names = files.iter().filter_map(|path| path.strip_prefix(&inside)).map(|rest| rest.trim_start_matches('/'));
    let names = names.filter(|name| name.ends_with(".json") && !name.contains('/'));
    names.map(|name| format!("{slug}/{name}")).collect()
}

fn unasked(output: &dyn Output, folder: &str, path: String) -> Result<Drift, String> {
    let old = output.current(&join(folder, &path))?;
    Ok(Drift { path, agent: None, context: None, old, new: None })
}

/// Makes what is there what should be there.
///
/// # Errors
///
/// A phrase that names the first file that could not be written.
pub fn apply(output: &dyn Output, folder: &str, drifts: &[Drift]) -> Result<(), String> {
    for drift in drifts {
        let path = join(folder, &drift.path);
        match &drift.new {
            Some(text) => output.replace(&path, text.as_bytes())?,
            None => output.remove(&path)?,
        }
    }
    Ok(())
}

fn join(folder: &str, path: &str) -> String {
    if folder.is_empty() { path.to_owned() } else { format!("{folder}/{path}") }
}
