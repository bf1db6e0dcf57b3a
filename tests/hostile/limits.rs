//! Tests of the harness itself: it notices every violation.

use std::path::Path;

use libtest_mimic::Failed;

use crate::hostile::recipe::Recipe;
use crate::hostile::sandbox;

/// The name of each violation, a script that commits it, and a part of the expected message.
const NOTICED: [(&str, &str, &str); 12] = [
    ("processor time", "while :; do :; done", "processor time"),
    ("the clock", "sleep 60", "ran for more than"),
    (
        "memory",
        "exec python3 -c 'import time; held = b\"x\" * (1 << 29); time.sleep(300)'",
        "held",
    ),
    ("a signal", "kill -SEGV $$", "by a signal"),
    ("a panic", "exit 101", "ended with 101"),
    ("text that is not JSON", "echo no", "not JSON"),
    ("an escape", "printf '{}' ; printf '\\033[2J' >&2", "U+001B"),
    (
        "a direction",
        "printf '{}'; printf 'a\\342\\200\\256b' >&2",
        "U+202E",
    ),
    (
        "a workflow command",
        "printf '{}'; echo ' ::error::x' >&2",
        "has the line",
    ),
    ("a program", "printf '{}'; ssh host", "ran a program"),
    (
        "a secret",
        "echo \"\\\"$GITHUB_TOKEN\\\"\"",
        "shows a secret",
    ),
    (
        "a file outside",
        "printf '{}'; echo >../outside/new",
        "changed outside",
    ),
];

/// The name and the function of each trial.
pub(crate) fn trials() -> impl Iterator<Item = (String, impl FnOnce() -> Result<(), Failed> + Send)>
{
    NOTICED.into_iter().map(|(what, script, wanted)| {
        let noticed = move || {
            let arguments = ["-c", script, "sh", "--format", "json"]
                .map(str::to_owned)
                .to_vec();
            let recipe = Recipe {
                program: Some("/bin/sh".into()),
                run: vec![arguments],
                seconds: Some(1),
                // Only the script that sleeps should reach this limit: on a busy machine, one
                // second of processor time can take many seconds.
                patience: Some(if what == "the clock" { 3 } else { 120 }),
                megabytes: Some(256),
                ..Recipe::default()
            };
            let wrong = sandbox::run(&recipe, Path::new("/bin/sh"))?.join("\n");
            if wrong.contains(wanted) {
                Ok(())
            } else {
                Err(format!("not noticed; only: {wrong}").into())
            }
        };
        (format!("harness/notices {what}"), noticed)
    })
}
