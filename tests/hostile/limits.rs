//! The harness itself: what must be noticed is noticed.

use std::path::Path;

use libtest_mimic::Trial;

use crate::hostile::recipe::Recipe;
use crate::hostile::sandbox;

/// What a program does, and what must be said of it.
const NOTICED: [(&str, &str, &str); 12] = [
    ("processor time", "while :; do :; done", "processor time"),
    ("the clock", "sleep 60", "ran for more than"),
    ("memory", "exec python3 -c 'import time; held = b\"x\" * (1 << 29); time.sleep(60)'", "held"),
    ("a signal", "kill -SEGV $$", "by a signal"),
    ("a panic", "exit 101", "ended with 101"),
    ("text that is no JSON", "echo no", "no JSON"),
    ("an escape", "printf '{}' ; printf '\\033[2J' >&2", "U+001B"),
    ("a direction", "printf '{}'; printf 'a\\342\\200\\256b' >&2", "U+202E"),
    ("a workflow command", "printf '{}'; echo ' ::error::x' >&2", "has the line"),
    ("a program", "printf '{}'; ssh host", "ran a program"),
    ("a secret", "echo \"\\\"$GITHUB_TOKEN\\\"\"", "shows a secret"),
    ("a file outside", "printf '{}'; echo >../outside/new", "changed outside"),
];

pub(crate) fn trials() -> impl Iterator<Item = Trial> {
    NOTICED.into_iter().map(|(what, script, wanted)| {
        Trial::test(format!("harness/notices {what}"), move || {
            let arguments = ["-c", script, "sh", "--format", "json"].map(str::to_owned).to_vec();
            let recipe = Recipe {
                program: Some("/bin/sh".into()),
                run: vec![arguments],
                seconds: Some(1),
                patience: Some(3),
                megabytes: Some(256),
                ..Recipe::default()
            };
            let wrong = sandbox::run(&recipe, Path::new("/bin/sh"))?.join("\n");
            if wrong.contains(wanted) { Ok(()) } else { Err(format!("not noticed; only: {wrong}").into()) }
        })
    })
}
