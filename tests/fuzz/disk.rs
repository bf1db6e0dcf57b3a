//! Writes the same inputs to disk, with links, pipes and git, and runs the binary on them with
//! limits.

use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::Options;
use crate::corpus::Corpus;
use crate::hostile::recipe::Recipe;
use crate::hostile::sandbox;
use crate::mutate::input;

const COMMANDS: [&[&str]; 14] = [
    &["check", "--format", "json"],
    &["check"],
    &["check", "--format", "short", "--no-bundled"],
    &["compile", "--format", "json"],
    &["compile", "--check", "--format", "json"],
    &["compile", "--diff"],
    &["compile", "--diff", "HEAD", "--format", "json"],
    &["compile", "--out", "build"],
    &["list", "--all"],
    &["list", "--format", "json"],
    &["tree"],
    &["show", "A"],
    &["providers"],
    &["route", "x.rs", "--roster", "r"],
];
/// Shell commands that prepare a folder after its files are written.
const SETUPS: [&str; 20] = [
    "",
    "",
    "git init -q -b main . && git add -A && git commit -qm one",
    "git init -q -b main . && git add -A && git commit -qm one && rm -rf agents/a.toml && touch agents",
    "git init -q --bare .; mkdir -p agents",
    "mkdir -p agents; ln -s .. agents/up",
    "mkdir -p agents; ln -s . agents/l1; ln -s . agents/l2; ln -s . agents/l3",
    "mkdir -p agents; ln -s \"$OUTSIDE\" agents/out",
    "mkdir -p agents; mkfifo agents/f.toml",
    "mkdir -p agents; ln -s /dev/zero agents/z.toml",
    "rm -rf golden; ln -s \"$OUTSIDE\" golden",
    "rm -rf golden; ln -s . golden",
    "mkdir -p golden/a; ln -s ../../agents golden/b",
    "rm -rf partials; ln -s agents partials",
    "rm -rf contexts; ln -s /proc/self contexts",
    "mkdir -p agents; for f in agents/*; do ln -s \"$f\" .; done 2>/dev/null || true",
    "for f in $(find . -name '*.toml' | head -3); do chmod 0 $f; done",
    "printf 'gitdir: agents' >.git",
    "mkdir -p build/a; ln -s ../../outside build/b",
    "truncate -s 3G reqc.toml",
];

/// Tests repositories on disk until the time is over.
pub(crate) fn run(options: &Options) -> ExitCode {
    let (corpus, started) = (Corpus::read(), Instant::now());
    let (next, wrong) = (Mutex::new(0_u64), Mutex::new(0_usize));
    let take = || {
        let mut next = next.lock().expect("no panics");
        let over = options
            .seconds
            .is_some_and(|seconds| started.elapsed() > Duration::from_secs(seconds));
        let over = over || options.inputs.is_some_and(|inputs| *next >= inputs);
        *next += 1;
        (!over).then_some(*next - 1)
    };
    let work = || {
        while let Some(number) = take() {
            let recipe = recipe(&corpus, options.seed, number);
            let found = sandbox::run(&recipe, &crate::program::path());
            let found = found.unwrap_or_else(|error| vec![error.to_string()]);
            if !found.is_empty() && !is_set_up(&found) {
                *wrong.lock().expect("no panics") += 1;
                println!(
                    "-- --seed {} --only {number}\n   {:?}\n{}",
                    options.seed,
                    recipe.setup,
                    found.join("\n")
                );
            }
        }
    };
    thread::scope(|scope| (0..options.jobs).for_each(|_| drop(scope.spawn(work))));
    let (inputs, wrong) = (
        *next.lock().expect("no panics") - options.jobs,
        *wrong.lock().expect("no panics"),
    );
    println!(
        "fuzz: {inputs} repositories on disk in {:.0} s; {wrong} failures",
        started.elapsed().as_secs_f64()
    );
    if wrong == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Returns whether the set-up failed, for example because a file is in the place of a folder.
fn is_set_up(found: &[String]) -> bool {
    found
        .iter()
        .any(|what| what.starts_with("the set-up failed") || what.contains("os error"))
}

fn recipe(corpus: &Corpus, seed: u64, number: u64) -> Recipe {
    let mut rng = Rng::with_seed(!seed ^ number);
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).replace("<<", "< <");
    let files = input(corpus, seed, number)
        .into_iter()
        .map(|(path, bytes)| (path.replace('\0', "_"), text(bytes)));
    let command = |rng: &mut Rng| {
        COMMANDS[rng.usize(..COMMANDS.len())]
            .iter()
            .map(|word| (*word).to_owned())
            .collect()
    };
    Recipe {
        files: files.collect(),
        setup: SETUPS[rng.usize(..SETUPS.len())].to_owned(),
        run: (0..2).map(|_| command(&mut rng)).collect(),
        writes: vec!["golden".into(), "build".into()],
        ..Recipe::default()
    }
}
