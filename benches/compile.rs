//! Measures the cost of each stage, and compares the total with a floor: the same templates,
//! rendered, parsed and compared by the underlying libraries alone. `cargo bench` prints medians of
//! interleaved runs; the ratios are reliable, the times are not.
//!
//! `cargo bench -- 1000 prompts` sets the number of generated profiles (60 by default), and the
//! kinds of collections (all by default), which `scripts/bench-generate` generates; it requires
//! python3. `cargo bench -- --floor FOLDER RUNS [CONTEXT…]` runs only the floor, RUNS times, for
//! the agents and golden files in a folder, so that `scripts/bench-ir --floor` can count its
//! instructions.

#![expect(
    clippy::disallowed_methods,
    reason = "the benchmark runs the script that generates profiles"
)]
#![expect(clippy::cast_precision_loss, reason = "figures are rounded for people")]

use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use reqc::compile::{Compiler, Selection};
use reqc::golden;
use reqc::profile;
use reqc::render::Engine;
use reqc::repo::{self, Dialect, LoadOptions};
use reqc::resolve::Hierarchy;
use reqc::system::{Disk, Embedded};
use reqc::world::{MemoryWorld, Output, World};

mod floor;

/// The program's allocator, so that instruction counts are comparable.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const RUNS: usize = 9;

/// The kinds of collections that [`generate`] can create.
const KINDS: [&str; 4] = ["sharing", "prompts", "templates", "mistakes"];

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = arguments.iter().position(|argument| argument == "--floor") {
        return run_floor(&arguments[at + 1..]);
    }
    let wanted = arguments
        .iter()
        .find_map(|argument| argument.parse().ok())
        .unwrap_or(60);
    let chosen = |kind: &&str| arguments.iter().any(|argument| argument == kind);
    let is_any_chosen = KINDS.iter().any(&chosen);
    for kind in KINDS.iter().filter(|kind| !is_any_chosen || chosen(kind)) {
        bench(wanted, kind);
    }
}

/// Runs only the floor.
fn run_floor(arguments: &[String]) {
    let [folder, runs, contexts @ ..] = arguments else {
        panic!("FOLDER RUNS [CONTEXT…]")
    };
    let disk = Disk::open(Path::new(folder)).expect("a folder");
    let bundled: Arc<dyn World> = Arc::new(Embedded::bundled());
    let compiler = Compiler::load(
        Arc::new(disk.clone()),
        Arc::clone(&bundled),
        LoadOptions::default(),
    );
    let is_chosen =
        |name: &str| contexts.is_empty() || contexts.iter().any(|context| context == name);
    let floor = floor::Floor::new(&compiler, bundled.as_ref(), is_chosen);
    (0..runs.parse().expect("a number")).for_each(|_| floor.run(&disk));
}

#[expect(clippy::too_many_lines, reason = "one table of measurements")]
fn bench(wanted: usize, kind: &str) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let disk = Disk::open(folder.path()).expect("it is there");
    disk.replace("reqc.toml", b"").expect("writes");
    generate(folder.path(), wanted, kind);
    let world: Arc<dyn World> = Arc::new(disk.clone());
    let bundled: Arc<dyn World> = Arc::new(Embedded::bundled());
    let load = || {
        Compiler::load(
            Arc::clone(&world),
            Arc::clone(&bundled),
            LoadOptions::default(),
        )
    };

    let compiler = load();
    assert!(
        compiler.findings().is_empty(),
        "what is wrong with the generated repository shows in bodies alone"
    );
    let mut bodies = 0;
    for files in compiler
        .run(&Selection::default(), |agent| agent.golden_files(true))
        .results
    {
        bodies += files.iter().filter(|file| file.context.is_some()).count();
        for file in files {
            disk.replace(&format!("golden/{}", file.path), file.text.as_bytes())
                .expect("writes");
        }
    }
    // The underlying libraries alone do not check templates for mistakes.
    let floor =
        (kind != "mistakes").then(|| floor::Floor::new(&compiler, bundled.as_ref(), |_| true));

    let memory: Arc<dyn World> = Arc::new(copy(&disk));
    let read = |world: &Arc<dyn World>| {
        repo::load(
            Arc::clone(world),
            Arc::clone(&bundled),
            LoadOptions::default(),
        )
    };
    let mut stages: Vec<Stage<'_>> = vec![
        ("read files", Box::new(|| timed(|| read(&world)))),
        ("… from memory", Box::new(|| timed(|| read(&memory)))),
        (
            "… and parse, link",
            Box::new(|| {
                timed(|| Hierarchy::build(profile::read_all(&read(&memory).repo).0, Dialect::Jinja))
            }),
        ),
        (
            "… and partials",
            Box::new(|| {
                timed(|| {
                    let loaded = read(&memory);
                    (
                        Hierarchy::build(profile::read_all(&loaded.repo).0, Dialect::Jinja),
                        Engine::new(&loaded.repo, &Arc::default()),
                    )
                })
            }),
        ),
        ("load, all of it", Box::new(|| timed(load))),
        (
            "bodies",
            Box::new(|| {
                // A new compiler, whose cache is empty.
                let compiler = load();
                timed(|| compiler.run(&Selection::default(), |agent| agent.bodies.len()))
            }),
        ),
        (
            "check: load, bodies, goldens",
            Box::new(|| {
                timed(|| {
                    let compiler = load();
                    let drifts = compiler.run(&Selection::default(), |agent| {
                        let files = agent.golden_files(true);
                        golden::compare(&disk, "golden", agent.plan.name(), files)
                            .expect("reads")
                            .len()
                    });
                    assert!(drifts.results.iter().all(|drifts| *drifts == 0));
                })
            }),
        ),
    ];
    if let Some(floor) = &floor {
        stages.push((
            "floor, two threads",
            Box::new(|| timed(|| floor.run(&disk))),
        ));
    }
    let medians = measure(&stages);
    println!(
        "{kind}: {wanted} profiles, {} contexts, {bodies} bodies; medians of {RUNS} interleaved runs",
        compiler.contexts().len()
    );
    for ((name, _), median) in stages.iter().zip(&medians) {
        let per_body = median.as_secs_f64() * 1e6 / bodies as f64;
        let ratio = floor.as_ref().map_or(String::new(), |_| {
            format!(
                " {:>6.2} × floor",
                median.as_secs_f64() / medians[medians.len() - 1].as_secs_f64()
            )
        });
        println!(
            "{name:<30} {:>9.2} ms {per_body:>8.2} µs/body{ratio}",
            median.as_secs_f64() * 1e3
        );
    }
    println!();
}

/// Returns the time that some work takes, without the time for dropping its result.
fn timed<R>(work: impl FnOnce() -> R) -> Duration {
    let start = Instant::now();
    let result = black_box(work());
    let elapsed = start.elapsed();
    drop(result);
    elapsed
}

/// A stage's name, and a function that returns the stage's time.
type Stage<'s> = (&'s str, Box<dyn Fn() -> Duration + 's>);

/// Returns the median time of each stage. All stages run in turn, several times, so that a
/// disturbance affects all of them.
fn measure(stages: &[Stage<'_>]) -> Vec<Duration> {
    let mut times = vec![Vec::with_capacity(RUNS); stages.len()];
    for round in 0..=RUNS {
        for ((_, stage), times) in stages.iter().zip(&mut times) {
            let elapsed = stage();
            // The first round only warms up.
            if round > 0 {
                times.push(elapsed);
            }
        }
    }
    for times in &mut times {
        times.sort();
    }
    times.into_iter().map(|times| times[RUNS / 2]).collect()
}

/// Generates profiles that extend the bundled agents, with the script that all benchmarks use.
fn generate(folder: &Path, count: usize, kind: &str) {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/bench-generate");
    let mut command = Command::new("python3");
    command
        .arg(script)
        .arg(env!("CARGO_BIN_EXE_reqc"))
        .arg(folder)
        .args([&count.to_string(), kind]);
    assert!(
        command.status().expect("python3 is there").success(),
        "the profiles are generated"
    );
}

fn copy(disk: &Disk) -> MemoryWorld {
    let entries = disk.walk("agents").entries;
    entries
        .into_iter()
        .map(|entry| (entry.path.clone(), disk.read(&entry.path).expect("reads")))
        .collect()
}
