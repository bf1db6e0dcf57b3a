//! Commands that continuous-integration systems read in what a program prints.
//!
//! | system | reads | source |
//! | --- | --- | --- |
//! | GitHub | `::name …::` behind white space at the start of a line, `##[name]` anywhere | `ActionCommand.cs` of actions/runner |
//! | Azure | `##vso[…]`, `##[…]` anywhere | `Command.cs` of microsoft/azure-pipelines-agent |
//! | `TeamCity` | `##teamcity[…]` anywhere | its manual, “Service Messages” |
//! | GitLab, Travis | `section_start:…`, `travis_fold:…` | their manuals |

/// What may stand at the start of a line before the `:` that makes it a command.
const HEADS: [&str; 4] = [":", "section_start", "section_end", "travis_fold"];

/// Where in a line we are, as far as commands care. One that begins is broken with a `\` before the character that
/// would complete it.
#[derive(Debug, Default)]
pub(super) struct Commands {
    /// The start of the line, without white space before it, as far as it may be one of [`HEADS`].
    head: String,
    /// How many `#` stand directly before, or before the word that stands directly before.
    hashes: usize,
    /// Whether a word follows them.
    in_word: bool,
}

impl Commands {
    /// Takes the next character. Whether it would complete the start of a command, and must be kept apart from what is
    /// before.
    pub(super) fn is_before(&mut self, c: char) -> bool {
        let starts = c == ':' && HEADS.contains(&self.head.as_str()) || c == '[' && self.hashes >= 2;
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
            c if self.hashes >= 2 && (c.is_alphanumeric() || matches!(c, '-' | '_' | '.')) => self.in_word = true,
            _ => (self.hashes, self.in_word) = (0, false),
        }
    }
}
