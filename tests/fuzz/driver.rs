//! The worker processes, and the process that supervises them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::Options;
use crate::check::{Outcome, check, watch_panics};
use crate::corpus::{Corpus, Files, base};
use crate::mutate::input;

/// The longest time for an input, after which it counts as hanging. Debug builds are slow.
const LONGEST: Duration = Duration::from_secs(if cfg!(debug_assertions) { 120 } else { 30 });
/// The memory in kB above which a worker is killed.
const MOST_MEMORY: u64 = 1024 * 1024;

/// Checks inputs `first`, `first + step`, … and prints the number of each input and its failures.
pub(crate) fn work(options: &Options, first: u64, step: u64) -> ExitCode {
    let (corpus, base, panicked) = (Corpus::read(), Arc::new(base()), watch_panics());
    let until = options
        .seconds
        .map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut out = std::io::stdout().lock();
    let mut met = BTreeSet::new();
    let mut number = first;
    while options.inputs.is_none_or(|inputs| number < inputs)
        && until.is_none_or(|until| Instant::now() < until)
    {
        let _ = writeln!(out, "at {number}");
        let outcome = check(
            &base,
            &input(&corpus, options.seed, number),
            number,
            &panicked,
        );
        if outcome.bodies > 0 {
            let _ = writeln!(out, "bodies {}", outcome.bodies);
        }
        let new: Vec<&str> = outcome
            .codes
            .keys()
            .copied()
            .filter(|code| met.insert(*code))
            .collect();
        if !new.is_empty() {
            let _ = writeln!(out, "rules {}", new.join(" "));
        }
        if let Some(wrong) = outcome.wrong {
            let _ = writeln!(out, "wrong {number} {}", wrong.escape_debug());
        }
        number += step;
    }
    let _ = writeln!(out, "done");
    ExitCode::SUCCESS
}

/// The total of all workers.
#[derive(Default)]
struct Total {
    inputs: u64,
    compiled: u64,
    bodies: u64,
    codes: BTreeSet<String>,
    /// Failures by kind: the number of the first input, and how many there were.
    wrong: BTreeMap<String, (u64, usize)>,
}

/// Starts the workers and supervises them.
pub(crate) fn run(options: &Options) -> ExitCode {
    let started = Instant::now();
    let total = Mutex::new(Total::default());
    thread::scope(|scope| {
        for first in 0..options.jobs {
            let total = &total;
            scope.spawn(move || supervise(options, first, started, total));
        }
    });
    let total = total.into_inner().expect("no thread panics");
    println!(
        "fuzz: {} inputs in {:.0} s with seed {}; {} compiled to {} bodies, {} rules were met; {} kinds of failure",
        total.inputs,
        started.elapsed().as_secs_f64(),
        options.seed,
        total.compiled,
        total.bodies,
        total.codes.len(),
        total.wrong.len()
    );
    for (kind, (number, count)) in &total.wrong {
        println!(
            "\n{count} × {kind}\n  --seed {} --only {number}   (files in {})",
            options.seed,
            folder(options, *number).display()
        );
    }
    if total.wrong.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Keeps one worker running, by restarting it after each input that ended it.
fn supervise(options: &Options, first: u64, started: Instant, total: &Mutex<Total>) {
    let mut next = first;
    loop {
        let left = options.seconds.map(|seconds| {
            Duration::from_secs(seconds)
                .saturating_sub(started.elapsed())
                .as_secs()
        });
        if left == Some(0) || options.inputs.is_some_and(|inputs| next >= inputs) {
            return;
        }
        let mut worker = start(options, next, left);
        let (at, why) = watch(options, &mut worker, next, total);
        let Some(why) = why else { return };
        note(options, total, at, &why);
        next = at + options.jobs;
    }
}

fn start(options: &Options, first: u64, seconds: Option<u64>) -> Child {
    let mut command = Command::new(std::env::current_exe().expect("this program"));
    let numbers = [first, options.jobs].map(|number| number.to_string());
    command
        .arg("--worker")
        .args(numbers)
        .args(["--seed", &options.seed.to_string()]);
    command.args(
        options
            .inputs
            .iter()
            .flat_map(|inputs| ["--inputs".to_owned(), inputs.to_string()]),
    );
    command.args(
        seconds
            .iter()
            .flat_map(|seconds| ["--seconds".to_owned(), seconds.to_string()]),
    );
    // One thread for each worker makes the order of its work the same on every machine.
    command
        .env("RAYON_NUM_THREADS", "1")
        .env_remove("CI")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    command.spawn().expect("a worker")
}

/// Reads the output of a worker until it ends. Returns its last input, and the reason if it failed.
fn watch(
    options: &Options,
    worker: &mut Child,
    first: u64,
    total: &Mutex<Total>,
) -> (u64, Option<String>) {
    let lines = listen(worker);
    let (mut at, mut since) = (first, Instant::now());
    let why = loop {
        match lines.recv_timeout(Duration::from_millis(500)) {
            Ok(line) => {
                since = Instant::now();
                if let Some(number) = line.strip_prefix("at ") {
                    at = number.parse().unwrap_or(at);
                    total.lock().expect("no panics").inputs += 1;
                } else if let Some(rest) = line.strip_prefix("wrong ") {
                    let (number, what) = rest.split_once(' ').unwrap_or((rest, ""));
                    note(options, total, number.parse().unwrap_or(at), what);
                } else if line == "done" {
                    break None;
                } else {
                    count(&mut total.lock().expect("no panics"), &line);
                }
            }
            Err(RecvTimeoutError::Timeout) if since.elapsed() > LONGEST => {
                break Some("it hangs".to_owned());
            }
            Err(RecvTimeoutError::Timeout) if resident(worker.id()) > MOST_MEMORY => {
                break Some("it takes gigabytes".to_owned());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                break Some(format!(
                    "it ended the process: {}",
                    worker.wait().expect("a status")
                ));
            }
        }
    };
    let _ = worker.kill();
    let _ = worker.wait();
    (at, why)
}

fn listen(worker: &mut Child) -> Receiver<String> {
    let (sender, receiver) = channel();
    let out = BufReader::new(worker.stdout.take().expect("piped"));
    thread::spawn(move || {
        out.lines()
            .map_while(Result::ok)
            .try_for_each(|line| sender.send(line))
    });
    receiver
}

/// Counts the bodies of an input, and the rules that it met first.
fn count(total: &mut Total, line: &str) {
    if let Some(bodies) = line.strip_prefix("bodies ") {
        total.compiled += 1;
        total.bodies += bodies.parse::<u64>().unwrap_or(0);
    } else if let Some(codes) = line.strip_prefix("rules ") {
        total.codes.extend(codes.split(' ').map(str::to_owned));
    }
}

/// Counts a failure by its kind, and keeps the first input of each kind.
fn note(options: &Options, total: &Mutex<Total>, number: u64, what: &str) {
    let kind = kind(what);
    let mut total = total.lock().expect("no panics");
    let entry = total.wrong.entry(kind).or_insert((number, 0));
    entry.1 += 1;
    if entry.1 == 1 {
        save(options, number, what);
    }
}

/// Returns the kind of a failure: its first line without digits, except those of source positions
/// and code points.
fn kind(what: &str) -> String {
    let line = what.split("\\n").take(2).collect::<Vec<_>>().join(" ");
    let plain: String = line.chars().take(240).collect();
    if plain.contains(".rs:") || plain.contains("U+") {
        plain
    } else {
        plain
            .chars()
            .filter(|c| !c.is_ascii_digit())
            .take(100)
            .collect()
    }
}

fn folder(options: &Options, number: u64) -> PathBuf {
    let target = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("target/fuzz");
    target.join(format!("{}-{number}", options.seed))
}

fn save(options: &Options, number: u64, what: &str) {
    let folder = folder(options, number);
    let _ = fs::remove_dir_all(&folder);
    for (index, (path, bytes)) in input(&Corpus::read(), options.seed, number)
        .iter()
        .enumerate()
    {
        let target = folder.join(path);
        let written = fs::create_dir_all(target.parent().unwrap_or(&folder))
            .and_then(|()| fs::write(&target, bytes));
        if written.is_err() {
            let _ = fs::write(folder.join(format!("file-{index}")), bytes);
        }
    }
    let _ = fs::write(folder.join("why.txt"), what);
}

/// The memory that a process uses, in kB.
fn resident(id: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

/// Prints one input and its results.
pub(crate) fn show(options: &Options, number: u64) -> ExitCode {
    print(&input(&Corpus::read(), options.seed, number), number)
}

/// The same for the smallest part of an input that still fails: fewer files, lines and characters.
pub(crate) fn show_smallest(options: &Options, number: u64) -> ExitCode {
    let (base, panicked) = (Arc::new(base()), watch_panics());
    let mut files = input(&Corpus::read(), options.seed, number);
    let is_wrong = |files: &Files| {
        check(&base, files, number, &panicked)
            .wrong
            .map(|what| kind(&what.escape_debug().to_string()))
    };
    let Some(wanted) = is_wrong(&files) else {
        return print(&files, number);
    };
    let still = |files: &Files| is_wrong(files).as_ref() == Some(&wanted);
    for path in files.keys().cloned().collect::<Vec<_>>() {
        let without: Files = files
            .iter()
            .filter(|(other, _)| **other != path)
            .map(|(path, bytes)| (path.clone(), bytes.clone()))
            .collect();
        if still(&without) {
            files = without;
        }
    }
    for path in files.keys().cloned().collect::<Vec<_>>() {
        let mut size = files[&path].len();
        while size > 0 {
            let mut at = 0;
            while at < files[&path].len() {
                let mut shorter = files.clone();
                let bytes = shorter.get_mut(&path).expect("it is there");
                bytes.drain(at..(at + size).min(bytes.len()));
                if still(&shorter) {
                    files = shorter;
                } else {
                    at += size;
                }
            }
            size /= 2;
        }
    }
    print(&files, number)
}

fn print(files: &Files, number: u64) -> ExitCode {
    for (path, bytes) in files {
        println!("== {path:?}\n{}", String::from_utf8_lossy(bytes));
    }
    let started = Instant::now();
    let Outcome {
        bodies,
        codes,
        wrong,
    } = check(&Arc::new(base()), files, number, &watch_panics());
    println!("-- {bodies} bodies in {:?}; {codes:?}", started.elapsed());
    match wrong {
        Some(wrong) => {
            println!("WRONG: {wrong}");
            ExitCode::FAILURE
        }
        None => ExitCode::SUCCESS,
    }
}
