//! `reqc models --installed INSTANCE`: the models that a server offers, with the known facts about
//! them.

use std::sync::Arc;

use serde_json::{Value, json};

use super::args::Format;
use super::list::columns;
use super::options::Options;
use super::send::{allow, failure};
use super::{Failure, Outcome, Status, Terminal, show_findings};
use crate::runtime::installed::{InstalledModel, ModelList};
use crate::runtime::trust::Grant;
use crate::runtime::{Transport, TransportOptions};
use crate::system::{SystemClock, SystemSecrets};
use crate::text::text;

/// Queries a provider instance's server, with the same permission as for `reqc send`.
pub(super) fn run(
    options: &Options,
    instance: &str,
    trust: bool,
    terminal: &mut Terminal,
) -> Outcome {
    let opened = options.open()?;
    let list = ModelList::of_instance(&opened.compiler, instance).map_err(failure)?;
    let errors = opened.errors_of_settings(instance);
    if !errors.is_empty() {
        return Ok(show_findings(options, &opened.report_of(errors), terminal));
    }
    let secrets = SystemSecrets::new(&opened.root);
    let key_file = secrets.file_of_line(list.line());
    let grant = Grant::of_models(&list, key_file.as_deref());
    let grant =
        grant.ok_or_else(|| Failure::new(format!("the URL of `{instance}` is not valid")))?;
    allow(&opened.root, &[grant], trust)?;
    let models = fetch(&list, secrets).map_err(failure)?;
    show(options.format, &list, &models, terminal);
    Ok(Status::Clean)
}

fn fetch(
    list: &ModelList,
    secrets: SystemSecrets,
) -> Result<Vec<InstalledModel>, crate::runtime::Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let runtime = runtime.map_err(|error| {
        let message = format!("the runtime cannot start: {error}");
        crate::runtime::Error::new(crate::runtime::Category::Config, message)
    })?;
    let transport = Transport::new(Arc::new(secrets), TransportOptions::default());
    let models = runtime.block_on(list.fetch(&transport.with_clock(Arc::new(SystemClock))));
    // Do not wait for a key lookup that is still running.
    runtime.shutdown_background();
    models
}

fn show(format: Format, list: &ModelList, models: &[InstalledModel], terminal: &mut Terminal) {
    if format == Format::Json {
        let models: Vec<Value> = models.iter().map(InstalledModel::to_json).collect();
        return terminal.json(&json!({
            "version": 1, "instance": &**list.instance(), "url": list.line().url, "models": models,
        }));
    }
    if models.is_empty() {
        return terminal.say(&text!("{} offers no models", &**list.instance()));
    }
    let rows: Vec<[String; 4]> = models.iter().map(cells).collect();
    let rows: Vec<[&str; 4]> = rows
        .iter()
        .map(|row| row.each_ref().map(String::as_str))
        .collect();
    terminal.text(&columns(["MODEL", "CONTEXT", "SIZE", "KNOWN AS"], &rows));
}

fn cells(model: &InstalledModel) -> [String; 4] {
    let families: Vec<&str> = model.families.iter().map(AsRef::as_ref).collect();
    [
        model.id.to_string(),
        model
            .context_window
            .map(|tokens| tokens.to_string())
            .unwrap_or_default(),
        model.size_bytes.map(size).unwrap_or_default(),
        if families.is_empty() {
            "unknown".to_owned()
        } else {
            families.join(", ")
        },
    ]
}

/// Returns a size with one decimal; empty for 0, which some servers send for an unknown size.
fn size(bytes: u64) -> String {
    let units = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    let fitting = units.into_iter().find(|(_, unit)| bytes >= *unit);
    fitting
        .map(|(name, unit)| format!("{}.{} {name}", bytes / unit, bytes / (unit / 10) % 10))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_a_unit_that_fits() {
        let shown = [0, 642_000, 4_700_000_000, 52_300_000].map(size);
        assert_eq!(shown, ["", "642.0 kB", "4.7 GB", "52.3 MB"]);
    }
}
