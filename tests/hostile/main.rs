//! Attacks on `reqc`: each file `*.toml` in this folder is a family of attacks, and each of its
//! entries is an attack with a named test.
//!
//! An attack is a repository that an attacker could write, and commands that run on it, each in a
//! separate process with limits on time and memory. `README.md` describes what every attack must
//! not achieve, and how to add one.

#![expect(
    clippy::disallowed_methods,
    reason = "the test itself writes repositories and runs the binary"
)]

#[cfg(unix)]
use std::sync::Arc;

#[cfg(unix)]
use libtest_mimic::Trial;

#[cfg(unix)]
#[path = "mod.rs"]
mod hostile;
#[cfg(unix)]
mod limits;
#[cfg(unix)]
#[path = "../program/mod.rs"]
mod program;
#[cfg(unix)]
mod seats;

#[cfg(not(unix))]
fn main() {
    println!("the attacks need a Unix system");
}

#[cfg(unix)]
fn main() {
    use std::collections::BTreeSet;
    use std::num::NonZero;
    use std::path::Path;
    use std::thread::available_parallelism;

    let mut arguments = libtest_mimic::Arguments::from_args();
    let mut recipes =
        hostile::recipe::read_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile"));
    let families = recipes
        .iter()
        .map(|recipe| &recipe.family)
        .collect::<BTreeSet<_>>()
        .len();
    assert!(
        recipes.len() >= AT_LEAST,
        "{} attacks are fewer than {AT_LEAST}",
        recipes.len()
    );
    if !arguments.list {
        println!("{} attacks in {families} families", recipes.len());
    }
    // Clients of a bad server spend most of their time waiting for the next attempt. They start
    // first, and the others run alongside.
    recipes.sort_by_key(|recipe| recipe.server.is_none());
    let at_work = arguments
        .test_threads
        .unwrap_or_else(|| available_parallelism().map_or(1, NonZero::get));
    arguments.test_threads.get_or_insert(at_work + WAITING);
    let seats = Arc::new(seats::Seats::new(at_work));
    let attacks = recipes.into_iter().map(|recipe| match recipe.server {
        Some(_) => Trial::test(recipe.title(), move || attack(&recipe)),
        None => seated(&seats, recipe.title(), move || attack(&recipe)),
    });
    let harness = limits::trials().map(|(title, noticed)| seated(&seats, title, noticed));
    libtest_mimic::run(&arguments, attacks.chain(harness).collect()).exit();
}

/// A trial that waits for a free seat.
#[cfg(unix)]
fn seated(
    seats: &Arc<seats::Seats>,
    title: String,
    run: impl FnOnce() -> Result<(), libtest_mimic::Failed> + Send + 'static,
) -> Trial {
    let seats = Arc::clone(seats);
    Trial::test(title, move || {
        let _seat = seats.take();
        run()
    })
}

/// A lower number of attacks means that this test is broken.
#[cfg(unix)]
const AT_LEAST: usize = 250;

/// The number of attacks that wait for a server in parallel with the working ones.
#[cfg(unix)]
const WAITING: usize = 8;

/// Writes the repository, runs the commands, and fails with all violations.
#[cfg(unix)]
fn attack(recipe: &hostile::recipe::Recipe) -> Result<(), libtest_mimic::Failed> {
    let wrong = hostile::sandbox::run(recipe, &program::path())?;
    if wrong.is_empty() {
        Ok(())
    } else {
        Err(wrong.join("\n").into())
    }
}
