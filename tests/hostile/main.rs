//! Attacks on `reqc`: each file of this folder is a family of attacks, each entry of it one attack with a named test.
//!
//! An attack is a repository as a stranger could write it, and the commands that are run on it, each in a process of its own
//! with limits of time and memory. `README.md` tells what every attack must withstand and how to add one.

#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "the test itself writes repositories and runs the binary")]

mod checks;
mod limits;
mod recipe;
mod sandbox;
mod server;

use std::path::Path;

use libtest_mimic::{Arguments, Trial};

use recipe::Recipe;

/// What the promise was made for: fewer attacks than this are a mistake of this test.
const AT_LEAST: usize = 250;

fn main() {
    let arguments = Arguments::from_args();
    let recipes = recipe::read_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile"));
    let families = recipes.iter().map(|recipe| &recipe.family).collect::<std::collections::BTreeSet<_>>().len();
    assert!(recipes.len() >= AT_LEAST, "{} attacks are fewer than {AT_LEAST}", recipes.len());
    if !arguments.list {
        println!("{} attacks in {families} families", recipes.len());
    }
    let attacks = recipes.into_iter().map(|recipe| Trial::test(recipe.title(), move || attack(&recipe)));
    libtest_mimic::run(&arguments, attacks.chain(limits::trials()).collect()).exit();
}

/// Lays the repository out, runs the commands, and says what did not hold.
fn attack(recipe: &Recipe) -> Result<(), libtest_mimic::Failed> {
    let wrong = sandbox::run(recipe, Path::new(env!("CARGO_BIN_EXE_reqc")))?;
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}
