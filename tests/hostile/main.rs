//! Attacks on `reqc`: each file `*.toml` of this folder is a family of attacks, each entry of it one attack with a named test.
//!
//! An attack is a repository as a stranger could write it, and the commands that are run on it, each in a process of its own
//! with limits of time and memory. `README.md` tells what every attack must withstand and how to add one.

#![expect(clippy::disallowed_methods, reason = "the test itself writes repositories and runs the binary")]

#[cfg(unix)]
#[path = "mod.rs"]
mod hostile;
#[cfg(unix)]
mod limits;

#[cfg(not(unix))]
fn main() {
    println!("the attacks need a Unix system");
}

#[cfg(unix)]
fn main() {
    use std::collections::BTreeSet;
    use std::path::Path;

    let arguments = libtest_mimic::Arguments::from_args();
    let recipes = hostile::recipe::read_all(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile"));
    let families = recipes.iter().map(|recipe| &recipe.family).collect::<BTreeSet<_>>().len();
    assert!(recipes.len() >= AT_LEAST, "{} attacks are fewer than {AT_LEAST}", recipes.len());
    if !arguments.list {
        println!("{} attacks in {families} families", recipes.len());
    }
    let attacks = recipes.into_iter().map(|recipe| libtest_mimic::Trial::test(recipe.title(), move || attack(&recipe)));
    libtest_mimic::run(&arguments, attacks.chain(limits::trials()).collect()).exit();
}

/// Fewer attacks than this are a mistake of this test.
#[cfg(unix)]
const AT_LEAST: usize = 250;

/// Lays the repository out, runs the commands, and says what did not hold.
#[cfg(unix)]
fn attack(recipe: &hostile::recipe::Recipe) -> Result<(), libtest_mimic::Failed> {
    let wrong = hostile::sandbox::run(recipe, &hostile::sandbox::binary())?;
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}
