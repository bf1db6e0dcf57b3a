//! Commands that continuous-integration systems recognise in the output of a program.
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
//! Jenkins, Drone, Woodpecker and `CircleCI` recognise only control characters.

/// The words at the start of a line that a following `:` turns into a command.
const HEADS: [&str; 5] = [
    ":",
    "section_start",
    "section_end",
    "travis_fold",
    "travis_time",
];

/// The words at the start of a line that a following space turns into a group heading.
const GROUPS: [&str; 4] = ["---", "+++", "~~~", "^^^"];

/// The position in a line with regard to commands. A command is broken up with a `\` before the
/// character that would complete it.
#[derive(Debug, Default)]
pub(super) struct Commands {
    /// The start of the line without leading white space, as long as it may be one of [`HEADS`] or
    /// [`GROUPS`].
    head: String,
    /// The number of `#` directly before this position, or before the word that precedes it.
    hashes: usize,
    /// `true` if a word follows the `#`.
    in_word: bool,
}

impl Commands {
    /// Takes the next visible character; returns `true` if it would complete a command and must be
    /// separated from the text before it.
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
            // A longer text cannot be a head.
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
