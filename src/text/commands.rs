//! Commands that continuous-integration systems recognise in a program's output.
//!
//! | system | reads | source |
//! | --- | --- | --- |
//! | GitHub | `::name …::` after whitespace at the start of a line, `##[name]` anywhere | `ActionCommand.cs` of actions/runner |
//! | Azure | `##vso[…]`, `##[…]` anywhere | `Command.cs` of microsoft/azure-pipelines-agent |
//! | `TeamCity` | `##teamcity[…]` anywhere | its manual, “Service Messages” |
//! | GitLab | `section_start:…`, `section_end:…` | its manual, “Custom collapsible sections” |
//! | Travis | `travis_fold:…`, `travis_time:…` | `travis-build`, `lib/travis/build/bash` |
//! | Buildkite | `--- …`, `+++ …`, `~~~ …`, `^^^ +++` at the start of a line | its manual, “Managing log output” |
//!
//! Jenkins, Drone, Woodpecker and `CircleCI` recognise only control characters.

/// The words that, at the start of a line, become a command if `:` follows.
const HEADS: [&str; 5] = [
    ":",
    "section_start",
    "section_end",
    "travis_fold",
    "travis_time",
];

/// The words that, at the start of a line, become a group heading if whitespace follows.
const GROUPS: [&str; 4] = ["---", "+++", "~~~", "^^^"];

/// Recognises commands in a line, character by character. A command is broken up by inserting a `\`
/// before the character that would complete it.
#[derive(Debug, Default)]
pub(super) struct Commands {
    /// The start of the line without leading whitespace, up to the length needed to recognise one
    /// of [`HEADS`] or [`GROUPS`].
    head: String,
    /// The number of consecutive `#` before this position, or before the word that ends at this
    /// position.
    hashes: usize,
    /// `true` if a word follows the `#` characters.
    in_word: bool,
}

impl Commands {
    /// Reads the next visible character. Returns `true` if the character would complete a command
    /// and must be separated from the text before it.
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
            // A longer string cannot be a head.
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
