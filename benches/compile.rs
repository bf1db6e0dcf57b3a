//! What each stage costs, and the whole against a floor: the same templates rendered, parsed and compared with
//! bare libraries. `cargo bench` prints medians of interleaved runs; trust the ratios, not the times.
//!
//! `cargo bench -- 1000` sets the number of generated profiles (default 60).

#![expect(clippy::cast_precision_loss, reason = "figures are rounded for people")]

use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqc::compile::{Compiler, Selection};
use reqc::conversation::TaskKind;
use reqc::golden;
use reqc::profile;
use reqc::render::Engine;
use reqc::repo::{self, LoadOptions};
use reqc::resolve::Hierarchy;
use reqc::system::{Disk, Embedded};
use reqc::world::{MemoryWorld, Output, World};

mod floor;

const RUNS: usize = 9;

fn main() {
    let wanted = std::env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(60);
    let folder = tempfile::tempdir().expect("a temporary folder");
    let disk = Disk::open(folder.path()).expect("it is there");
    generate(&disk, wanted);
    let world: Arc<dyn World> = Arc::new(disk.clone());
    let bundled: Arc<dyn World> = Arc::new(Embedded::bundled());
    let load = || Compiler::load(Arc::clone(&world), Arc::clone(&bundled), LoadOptions::default());

    let compiler = load();
    assert!(compiler.findings().is_empty(), "the generated repository is clean");
    let mut bodies = 0;
    for files in compiler.run(&Selection::default(), |agent| agent.golden_files(true)).results {
        bodies += files.iter().filter(|file| file.context.is_some()).count();
        for file in files {
            disk.replace(&format!("golden/{}", file.path), file.text.as_bytes()).expect("writes");
        }
    }
    let floor = floor::Floor::new(&compiler, bundled.as_ref());

    let memory: Arc<dyn World> = Arc::new(copy(&disk));
    let stages: [(&str, &dyn Fn()); 8] = [
        ("read files", &|| {
            drop(black_box(repo::load(Arc::clone(&world), Arc::clone(&bundled), LoadOptions::default())));
        }),
        ("… from memory", &|| {
            drop(black_box(repo::load(Arc::clone(&memory), Arc::clone(&bundled), LoadOptions::default())));
        }),
        ("… and parse, link", &|| {
            let loaded = repo::load(Arc::clone(&memory), Arc::clone(&bundled), LoadOptions::default());
            drop(black_box(Hierarchy::build(profile::read_all(&loaded.repo).0)));
        }),
        ("… and partials", &|| {
            let loaded = repo::load(Arc::clone(&memory), Arc::clone(&bundled), LoadOptions::default());
            drop(black_box(Hierarchy::build(profile::read_all(&loaded.repo).0)));
            drop(black_box(Engine::new(&loaded.repo)));
        }),
        ("load, all of it", &|| drop(black_box(load()))),
        ("bodies", &|| drop(black_box(compiler.run(&Selection::default(), |agent| agent.bodies.len())))),
        ("check: load, bodies, goldens", &|| {
            let compiler = load();
            let drifts = compiler.run(&Selection::default(), |agent| {
                let files = agent.golden_files(true);
                golden::compare(&disk, "golden", agent.plan.name(), files).expect("reads").len()
            });
            assert!(drifts.results.iter().all(|drifts| *drifts == 0));
        }),
        ("floor, two threads", &|| floor.run(&disk)),
    ];
    let medians = measure(&stages);
    let floor = medians[medians.len() - 1];
    println!(
        "{wanted} profiles, {} contexts, {bodies} bodies; medians of {RUNS} interleaved runs",
        compiler.contexts().len()
    );
    for ((name, _), median) in stages.iter().zip(&medians) {
        let per_body = median.as_secs_f64() * 1e6 / bodies as f64;
        println!(
            "{name:<30} {:>9.2} ms {per_body:>8.2} µs/body {:>6.2} × floor",
            median.as_secs_f64() * 1e3,
            median.as_secs_f64() / floor.as_secs_f64()
        );
    }
}

/// Runs all stages in turn, several times, so that a noisy moment hits all of them; medians.
fn measure(stages: &[(&str, &dyn Fn())]) -> Vec<Duration> {
    let mut times = vec![Vec::with_capacity(RUNS); stages.len()];
    for round in 0..=RUNS {
        for ((_, stage), times) in stages.iter().zip(&mut times) {
            let start = Instant::now();
            stage();
            // The first round warms up.
            if round > 0 {
                times.push(start.elapsed());
            }
        }
    }
    for times in &mut times {
        times.sort();
    }
    times.into_iter().map(|times| times[RUNS / 2]).collect()
}

/// Profiles as a team writes them: each a few lines over a bundled agent.
fn generate(disk: &Disk, count: usize) {
    let parents = bundled_agents();
    for index in 0..count {
        let (parent, is_openai) = &parents[index % parents.len()];
        let own =
            if *is_openai { format!("\n[body]\nmax_completion_tokens = {}\n", 1000 + index) } else { String::new() };
        let text = format!("name = \"Agent {index}\"\ndescription = \"generated\"\nextends = \"{parent}\"\n{own}");
        disk.replace(&format!("agents/{}/agent_{index}.toml", index % 20), text.as_bytes()).expect("writes");
    }
}

/// The bundled chat and completion agents, and whether they take `max_completion_tokens`.
fn bundled_agents() -> Vec<(String, bool)> {
    let world: Arc<dyn World> = Arc::new(Embedded::bundled());
    let nothing: Arc<dyn World> = Arc::new(MemoryWorld::default());
    let options = LoadOptions { with_bundled: true, without_bundled: false };
    let compiler = Compiler::load(nothing, world, options);
    let agents = compiler.agents().iter().filter_map(|(id, _)| compiler.plan(*id));
    let agents = agents.filter(|plan| plan.kind == TaskKind::Chat || plan.kind == TaskKind::Completion);
    agents.map(|plan| (plan.name().to_string(), plan.wire.name() == "openai-chat")).collect()
}

fn copy(disk: &Disk) -> MemoryWorld {
    let entries = disk.walk("agents").entries;
    entries.into_iter().map(|entry| (entry.path.clone(), disk.read(&entry.path).expect("reads"))).collect()
}
