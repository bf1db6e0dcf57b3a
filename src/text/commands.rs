//! Commands that continuous-integration systems read in what a program prints.
//!
//! | system | reads | source |
//! | --- | --- | --- |
//! | GitHub | `::name …::` behind white space at the start of a line, `##[name]` anywhere | `ActionCommand.cs` of actions/runner |
//! | Azure | `##vso[…]`, `##[…]` anywhere | `Command.cs` of microsoft/azure-pipelines-agent |
//! | `TeamCity` | `##teamcity[…]` anywhere | its manual, “Service Messages” |
//! | GitLab | `section_start:…`, `section_end:…` | its manual, “Custom collapsible sections” |
//! | Travis | `travis_fold:…`, `travis_time:…` | `travis-build`, `lib/travis/build/bash` |
//! | Buildkite | `--- …`, `+++ …`, `~~~ …`, `^^^ +++` at the start of a line | its manual, “Managing log output” |
//!
//! Jenkins, Drone, Woodpecker and `CircleCI` read nothing but control characters.

/// The words that may be at the start of a line before the `:` that makes it a command.
const HEADS: [&str; 5] = [
    ":",
    "section_start",
    "section_end",
    "travis_fold",
    "travis_time",
];

/// The words that may be at the start of a line before the space that makes it the head of a group.
const GROUPS: [&str; 4] = ["---", "+++", "~~~", "^^^"];

/// Where in a line we are, as far as commands care. One that begins is broken with a `\` before the
/// character that would complete it.
#[derive(Debug, Default)]
pub(super) struct Commands {
    /// The start of the line, without white space before it, as far as it may be one of [`HEADS`]
    /// or [`GROUPS`].
    head: String,
    /// The number of `#` that are directly before, or before the word that is directly before.
    hashes: usize,
    /// `true` if a word follows them.
    in_word: bool,
}

impl Commands {
    /// Takes the next character that can be seen. Whether it would complete the start of a command,
    /// and must be kept apart from what is before.
    pub(super) fn is_before(&mut self, c: char) -> bool {
        let head = self.head.as_str();
        let starts = match c {
            ':' => HEADS.contains(&head),
            '[' => self.hashes >= 2,
            '\n' => false,
            c => c.is_whitespace() && GROUPS.contains(&head),
        };
        self.note(c);
        if starts {
            self.head.push(' ');
        }
        starts
    }

    fn note(&mut self, c: char) {
        match c {
            '\n' => self.head.clear(),
            c if self.head.is_empty() && c.is_whitespace() => {}
            // Longer than all of them: no head any more.
            c if self.head.len() < 16 => self.head.push(c),
            _ => {}
        }
        match c {
            '#' if self.in_word => (self.hashes, self.in_word) = (1, false),
            '#' => self.hashes += 1,
            c if self.hashes >= 2 && (c.is_alphanumeric() || matches!(c, '-' | '_' | '.')) => {
                self.in_word = true;
            }
            _ => (self.hashes, self.in_word) = (0, false),
        }
    }
}
