//! A fuzzer of whole repositories. It loads, compiles and reports on repositories that people
//! wrote, with random changes, and on repositories that a grammar generates. None may cause a
//! panic, a hang, or the use of gigabytes. Findings point into their files, and the same input
//! gives the same output.
//! ```sh
//! cargo test --features long-tests --test fuzz -- --inputs 3000 --seed 1                # as CI does: the same inputs on any machine
//! cargo test --release --features long-tests --test fuzz -- --inputs 1000000 --seed 7   # hours, by hand
//! cargo test --release --features long-tests --test fuzz -- --seed 7 --only 12345       # one input again: its files, findings, figures
//! cargo test --release --features long-tests --test fuzz -- --seed 7 --smallest 12345   # the same, with everything left out that is not needed
//! cargo test --release --features long-tests --test fuzz -- --binary --seconds 60       # on disk, with links and git, through the binary
//! ```
//!
//! An input depends only on its seed and number. Each worker is a separate process: if it aborts,
//! hangs or takes too much memory, it is killed, and its input is kept below `target/fuzz/`.

#![expect(
    clippy::disallowed_methods,
    reason = "the test itself reads the corpus, starts processes and looks at the clock"
)]

mod check;
mod corpus;
#[cfg(unix)]
mod disk;
mod driver;
mod grammar;
#[cfg(unix)]
#[path = "../hostile/mod.rs"]
#[expect(dead_code, reason = "the fuzzer uses a part of it")]
mod hostile;
mod json;
mod mutate;
#[path = "../program/mod.rs"]
mod program;

use std::process::ExitCode;

/// The same allocator as in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The options of a run.
#[derive(Debug, Clone)]
struct Options {
    seed: u64,
    seconds: Option<u64>,
    inputs: Option<u64>,
    jobs: u64,
    only: Option<u64>,
    smallest: Option<u64>,
    binary: bool,
    /// Set if this process is a worker: its first input, and the step between its inputs.
    worker: Option<(u64, u64)>,
}

fn main() -> ExitCode {
    let Some(options) = Options::read(std::env::args().skip(1)) else {
        // The arguments name another test or ask for a list.
        println!("fuzz: nothing to do for these arguments");
        return ExitCode::SUCCESS;
    };
    match (options.worker, options.only, options.smallest) {
        (Some((first, step)), ..) => driver::work(&options, first, step),
        (_, Some(number), _) => driver::show(&options, number),
        (_, _, Some(number)) => driver::show_smallest(&options, number),
        #[cfg(unix)]
        _ if options.binary => disk::run(&options),
        _ => driver::run(&options),
    }
}

impl Options {
    /// Returns `None` if the arguments are not for this test.
    fn read(mut arguments: impl Iterator<Item = String>) -> Option<Options> {
        let jobs = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
        let mut options = Options {
            seed: 1,
            seconds: None,
            inputs: None,
            jobs,
            only: None,
            smallest: None,
            binary: false,
            worker: None,
        };
        while let Some(argument) = arguments.next() {
            let mut number = || arguments.next()?.parse::<u64>().ok();
            match argument.as_str() {
                "--seed" => options.seed = number()?,
                "--seconds" => options.seconds = Some(number()?),
                "--inputs" => options.inputs = Some(number()?),
                "--jobs" => options.jobs = number()?.max(1),
                "--only" => options.only = Some(number()?),
                "--smallest" => options.smallest = Some(number()?),
                "--worker" => options.worker = Some((number()?, number()?)),
                "--binary" => options.binary = true,
                // Options of test runners, which are ignored.
                "--quiet" | "--nocapture" | "--show-output" | "--include-ignored"
                | "--test-threads=1" => {}
                _ => return None,
            }
        }
        if options.seconds.is_none() && options.inputs.is_none() {
            // The default of `cargo test`.
            options.inputs = Some(1000);
        }
        Some(options)
    }
}
