//! `reqc providers`: the provider instances, and whether their keys are found.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::args::Format;
use super::list::columns;
use super::options::{Opened, Options};
use super::{Outcome, Status, Terminal};
use crate::provider::ClientApi;
use crate::repo::Instance;
use crate::runtime::Secrets;
use crate::system::SystemSecrets;
use crate::text::text;

pub(super) fn run(options: &Options, terminal: &mut Terminal) -> Outcome {
    let opened = options.open()?;
    let secrets = SystemSecrets::new(opened.root.clone());
    let uses = uses(&opened);
    let instances = opened.compiler.repo().instances.values();
    let rows: Vec<Row> = instances.map(|instance| Row::of(instance, &uses, &secrets)).collect();
    if options.format == Format::Json {
        terminal.json(&rows.iter().map(Row::json).collect());
        return Ok(Status::Clean);
    }
    let cells: Vec<[String; 6]> = rows.iter().map(Row::cells).collect();
    let table: Vec<[&str; 6]> = cells.iter().map(|cells| cells.each_ref().map(String::as_str)).collect();
    terminal.text(&columns(["PROVIDER", "CLIENT API", "URL", "KEY", "FOUND", "AGENTS"], &table));
    for row in rows.iter().filter(|row| row.agents > 0) {
        row.why.iter().for_each(|why| terminal.say(&text!("{}: {}", row.instance.name.value, why)));
    }
    Ok(Status::Clean)
}

/// How many compiled agents name each instance.
fn uses(opened: &Opened) -> BTreeMap<&str, usize> {
    let mut uses = BTreeMap::new();
    for (id, _) in opened.compiler.agents() {
        let resolved = opened.compiler.resolve(*id);
        if let Some(name) = resolved.and_then(|profile| profile.string("provider_instance")) {
            *uses.entry(name.value).or_default() += 1;
        }
    }
    uses
}

/// Whether there is a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Yes,
    No,
    /// The API takes none, or none is configured.
    NotNeeded,
}

struct Row<'o> {
    instance: &'o Instance,
    agents: usize,
    found: Found,
    /// Why there is no key, or what to know about it.
    why: Option<String>,
}

impl<'o> Row<'o> {
    fn of(instance: &'o Instance, uses: &BTreeMap<&str, usize>, secrets: &SystemSecrets) -> Row<'o> {
        let takes_none = ClientApi::from_name(&instance.client_api.value).is_some_and(|api| api.auth().is_none());
        let reference = instance.api_key_ref.as_ref().map(|reference| &reference.value).filter(|_| !takes_none);
        let (found, why) = match reference.map(|reference| (reference, secrets.read(reference))) {
            None => (Found::NotNeeded, None),
            // The key itself is dropped here, and wiped.
            Some((reference, Ok(_))) => (Found::Yes, secrets.remark(reference)),
            Some((_, Err(error))) => (Found::No, Some(error.to_string())),
        };
        let agents = uses.get(&*instance.name.value).copied().unwrap_or(0);
        Row { instance, agents, found, why }
    }

    fn reference(&self) -> Option<String> {
        self.instance.api_key_ref.as_ref().map(|reference| reference.value.to_string())
    }

    fn cells(&self) -> [String; 6] {
        let found = match self.found {
            Found::Yes => "yes",
            Found::No => "no",
            Found::NotNeeded => "not needed",
        };
        [
            self.instance.name.value.to_string(),
            self.instance.client_api.value.to_string(),
            self.instance.url.value.to_string(),
            self.reference().unwrap_or_default(),
            found.to_owned(),
            self.agents.to_string(),
        ]
    }

    fn json(&self) -> Value {
        let found = match self.found {
            Found::Yes => Some(true),
            Found::No => Some(false),
            Found::NotNeeded => None,
        };
        json!({
            "name": &*self.instance.name.value, "client_api": &*self.instance.client_api.value,
            "url": &*self.instance.url.value, "api_key_ref": self.reference(), "key_found": found, "why": self.why,
            "agents": self.agents,
        })
    }
}
