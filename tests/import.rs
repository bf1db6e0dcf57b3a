//! Bodies as contexts: what is imported compiles to the body that it came from, up to what is declared here; what is redacted says
//! nothing; the command.

#![expect(clippy::disallowed_methods, reason = "the test itself writes files and runs the binary")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use proptest::prelude::*;
use reqc::compile::{Compiler, LoadOptions};
use reqc::conversation::TaskKind;
use reqc::import::{Imported, Request, import};
use reqc::lint::WireFormat;
use reqc::system::Embedded;
use reqc::world::MemoryWorld;
use serde_json::{Value, json};

/// Where the round trip changes a body: agent, context (`*`: all of them), why.
const LOSSES: [(&str, &str, &str); 0] = [];

fn compiler(files: Vec<(String, String)>) -> Compiler {
    let own = Arc::new(MemoryWorld::from_iter(files));
    let options = LoadOptions { with_bundled: true, ..LoadOptions::default() };
    Compiler::load(own, Arc::new(Embedded::bundled()), options)
}

fn imported(body: &Value, wire: WireFormat, name: &str, redact: bool) -> Imported {
    import(&Request { body, wire, name, redact }).unwrap_or_else(|why| panic!("{name}: {why}: {body:#}"))
}

/// A body of a bundled agent, and the context that it makes.
struct Trip {
    agent: String,
    context: String,
    body: Value,
    wire: WireFormat,
}

/// All bodies of bundled agents and contexts of a kind.
fn trips(compiler: &Compiler, kind: TaskKind) -> Vec<Trip> {
    let mut trips = Vec::new();
    for (id, _) in compiler.agents() {
        let plan = compiler.plan(*id).expect("bundled agents are usable");
        let agent = compiler.hierarchy().get(*id).name.value.to_string();
        let contexts = compiler.contexts().iter().filter(|ready| ready.context.kind() == kind && plan.kind == kind);
        for ready in contexts {
            let context = ready.context.name.to_string();
            let body = compiler.body(*id, &context, None).expect("of this kind").expect("it compiles").value().clone();
            trips.push(Trip { agent: agent.clone(), context, body, wire: plan.wire });
        }
    }
    trips
}

/// The bodies that come back changed, of all.
fn changed(trips: &[Trip]) -> Vec<(&Trip, Value)> {
    let name = |at: usize| format!("trip-{at}");
    let files = trips.iter().enumerate().map(|(at, trip)| {
        let imported = imported(&trip.body, trip.wire, &name(at), false);
        (format!("contexts/{}.json", name(at)), imported.text)
    });
    let compiler = compiler(files.collect());
    assert!(compiler.findings().is_empty(), "{:?}", compiler.findings().first());
    let mut changed = Vec::new();
    for (at, trip) in trips.iter().enumerate() {
        let id = compiler.hierarchy().by_name(&trip.agent).expect("a bundled agent");
        let body = compiler.body(id, &name(at), None).expect("of this kind").expect("it compiles");
        if body.value() != trip.body {
            changed.push((trip, body.value().clone()));
        }
    }
    changed
}

#[test]
fn chats_come_back_up_to_declared_losses() {
    let compiler = compiler(Vec::new());
    let trips = trips(&compiler, TaskKind::Chat);
    let changed = changed(&trips);
    let declared = |trip: &Trip| {
        LOSSES.iter().position(|(agent, context, _)| {
            (*agent == "*" || *agent == trip.agent) && (*context == "*" || *context == trip.context)
        })
    };
    let mut used = BTreeSet::new();
    for (trip, back) in &changed {
        match declared(trip) {
            Some(at) => drop(used.insert(at)),
            None => {
                println!("{} / {}\n{:#}\n-->\n{back:#}", trip.agent, trip.context, trip.body);
            }
        }
    }
    let names: BTreeMap<&str, Vec<&str>> = changed.iter().filter(|(trip, _)| declared(trip).is_none()).fold(BTreeMap::new(), |mut all, (trip, _)| {
        all.entry(trip.agent.as_str()).or_insert_with(Vec::new).push(trip.context.as_str());
        all
    });
    panic!("{} of {} exact; {names:#?}", trips.len() - changed.len(), trips.len());
}
