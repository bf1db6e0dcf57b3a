//! `reqc providers`: the provider instances, and the availability of their keys.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::args::Format;
use super::list::columns;
use super::options::{Opened, Options};
use super::{Outcome, Status, Terminal};
use crate::repo::{Instance, SecretRef};
use crate::runtime::secret::Secrets;
use crate::runtime::trust::{Grant, TrustStore};
use crate::system::{SystemSecrets, TrustFolder};
use crate::text::text;

pub(super) fn run(options: &Options, terminal: &mut Terminal) -> Outcome {
    let opened = options.open()?;
    let keys = Keys {
        secrets: SystemSecrets::new(&opened.root),
        trusted: TrustFolder::of_person(&opened.root),
        opened: &opened,
    };
    let uses = uses(&opened);
    let instances = opened.compiler.repo().instances.values();
    let rows: Vec<Row> = instances
        .map(|instance| Row::of(instance, &uses, &keys))
        .collect();
    if options.format == Format::Json {
        terminal.json(&rows.iter().map(Row::json).collect());
        return Ok(Status::Clean);
    }
    let cells: Vec<[String; 6]> = rows.iter().map(Row::cells).collect();
    let table: Vec<[&str; 6]> = cells
        .iter()
        .map(|cells| cells.each_ref().map(String::as_str))
        .collect();
    terminal.text(&columns(
        ["PROVIDER", "CLIENT API", "URL", "KEY", "FOUND", "AGENTS"],
        &table,
    ));
    for row in rows.iter().filter(|row| row.agents > 0) {
        row.why
            .iter()
            .for_each(|why| terminal.say(&text!("{}: {}", row.instance.name.value, why)));
    }
    Ok(Status::Clean)
}

/// Returns the number of compiled agents that use each instance.
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

/// The result of looking for a key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Yes,
    No,
    /// The API needs no key, or none is configured.
    NotNeeded,
    /// Permission to look for the key has not been given.
    Unknown,
}

/// The sources of keys. A key is only read with permission.
struct Keys<'o> {
    secrets: SystemSecrets,
    trusted: TrustFolder,
    opened: &'o Opened,
}

impl Keys<'_> {
    /// Returns the result of looking for a key, with a remark.
    fn look(&self, instance: &Instance, reference: &SecretRef) -> (Found, Option<String>) {
        match reference {
            SecretRef::File(_) if !self.is_allowed(instance, reference) => {
                return match self.secrets.look_for_file(reference) {
                    Ok(()) => (Found::Yes, None),
                    Err(error) => (Found::No, Some(error.to_string())),
                };
            }
            SecretRef::Keyring { .. } if !self.is_allowed(instance, reference) => {
                return (
                    Found::Unknown,
                    Some("`reqc send` asks before it reads the keyring".to_owned()),
                );
            }
            _ => {}
        }
        // The key itself is dropped here, and wiped from memory.
        match self.secrets.read(reference) {
            Ok(_) => (Found::Yes, self.secrets.remark(reference)),
            Err(error) => (Found::No, Some(error.to_string())),
        }
    }

    /// Returns `true` if an agent's requests through this instance have been allowed.
    fn is_allowed(&self, instance: &Instance, reference: &SecretRef) -> bool {
        let (compiler, file) = (&self.opened.compiler, self.secrets.file_of(reference));
        let plans = compiler
            .agents()
            .iter()
            .filter_map(|(id, _)| compiler.plan(*id));
        let mut own = plans.filter(|plan| plan.instance.name.value == instance.name.value);
        own.any(|plan| {
            let grant = Grant::of_agent(&plan, file.as_deref());
            grant.is_some_and(|it| self.trusted.is_trusted(&it.fingerprint(&self.opened.root)))
        })
    }
}

struct Row<'o> {
    instance: &'o Instance,
    agents: usize,
    found: Found,
    /// The reason there is no key, or a remark about it.
    why: Option<String>,
}

impl<'o> Row<'o> {
    fn of(instance: &'o Instance, uses: &BTreeMap<&str, usize>, keys: &Keys<'_>) -> Row<'o> {
        let reference = instance
            .api_key_ref
            .as_ref()
            .map(|reference| &reference.value);
        let (found, why) = reference.map_or((Found::NotNeeded, None), |reference| {
            keys.look(instance, reference)
        });
        let agents = uses.get(&*instance.name.value).copied().unwrap_or(0);
        Row {
            instance,
            agents,
            found,
            why,
        }
    }

    fn reference(&self) -> Option<String> {
        self.instance
            .api_key_ref
            .as_ref()
            .map(|reference| reference.value.to_string())
    }

    fn server(&self) -> Option<&str> {
        self.instance.server.as_ref().map(|server| &*server.value)
    }

    /// Returns the URL, with the name of the server if the instance specifies it.
    fn address(&self) -> String {
        let url = &self.instance.url.value;
        self.server()
            .map_or_else(|| url.to_string(), |server| format!("{url} ({server})"))
    }

    fn cells(&self) -> [String; 6] {
        let found = match self.found {
            Found::Yes => "yes",
            Found::No => "no",
            Found::NotNeeded => "not needed",
            Found::Unknown => "not checked",
        };
        [
            self.instance.name.value.to_string(),
            self.instance.client_api.value.to_string(),
            self.address(),
            self.reference().unwrap_or_default(),
            found.to_owned(),
            self.agents.to_string(),
        ]
    }

    fn json(&self) -> Value {
        let found = match self.found {
            Found::Yes => Some(true),
            Found::No => Some(false),
            Found::NotNeeded | Found::Unknown => None,
        };
        json!({
            "name": &*self.instance.name.value, "client_api": &*self.instance.client_api.value,
            "url": &*self.instance.url.value, "server": self.server(), "api_key_ref": self.reference(), "key_found": found, "why": self.why,
            "agents": self.agents,
        })
    }
}
