//! The edit that fixes a finding, if only one fix is possible.

use super::{Diagnostic, nearest};
use crate::source::{Sources, Span};
use crate::text::Text;

/// A replacement for a part of a source file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Edit {
    /// The location of the text to replace; an empty span for an insertion.
    pub span: Span,
    /// The new text.
    pub text: String,
}

/// The maximum length of a line that is searched for a name, in bytes.
const LONGEST_LINE: usize = 2000;

impl Edit {
    /// Creates an edit that replaces the text at `span`.
    pub fn new(span: Span, text: impl Into<String>) -> Edit {
        Edit {
            span,
            text: text.into(),
        }
    }
}

impl Diagnostic {
    /// Sets the edit that fixes the finding, if there is one.
    #[must_use]
    pub(crate) fn maybe_fix(mut self, fix: Option<Edit>) -> Diagnostic {
        self.fix = fix.or(self.fix);
        self
    }

    /// Returns the edit that fixes the finding. A misspelled name is replaced with the name that
    /// the help suggests. Only another run can show whether the result is correct.
    pub fn fix(&self, sources: &Sources) -> Option<Edit> {
        let file = sources.get(self.primary.span.file);
        // Bundled files cannot be edited. If the source is only a part of a file, the file's other
        // lines are unknown.
        let is_editable = !file.is_bundled() && file.start().line == 1;
        if !is_editable {
            return None;
        }
        if self.fix.is_some() || self.is_elsewhere {
            return self.fix.clone();
        }
        let name = suggested(self.help.as_deref()?)?;
        renamed(self.primary.span, sources.slice(self.primary.span), name)
            .or_else(|| self.on_line(name, sources))
    }

    /// Returns the edit that replaces the misspelled name in the message, if the name occurs
    /// exactly once on the line.
    fn on_line(&self, name: &str, sources: &Sources) -> Option<Edit> {
        let wrong = self.message.split('`').skip(1).step_by(2);
        let wrong = wrong
            .filter(|it| is_word(it) && is_word(name) && !nearest(it, [name]).is_empty())
            .last()?;
        let file = sources.get(self.primary.span.file);
        let range = file.line_around(self.primary.span.start as usize, LONGEST_LINE)?;
        let (start, line) = (range.start, &file.text()[range]);
        // Only whole words are replaced.
        let mut places = line.match_indices(wrong).map(|(at, _)| at).filter(|at| {
            is_end(line[..*at].chars().next_back())
                && is_end(line[at + wrong.len()..].chars().next())
        });
        let at = places.next().filter(|_| places.next().is_none())? + start;
        Some(Edit::new(
            Span::new(self.primary.span.file, at..at + wrong.len()),
            name,
        ))
    }
}

fn is_end(c: Option<char>) -> bool {
    c.is_none_or(|c| !is_word(c.encode_utf8(&mut [0; 4])))
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c))
}

/// Returns the name that a help text suggests; `None` if it suggests several or none.
fn suggested(help: &str) -> Option<&str> {
    let name = help.strip_prefix("did you mean `")?.strip_suffix("`?")?;
    (!name.contains('`')).then_some(name)
}

/// Returns the edit that replaces a misspelled name: a bare key, a single-line string, or the last
/// segment of a path.
fn renamed(span: Span, written: &str, name: &str) -> Option<Edit> {
    if let Some(inner) = within_quotes(written) {
        let is_near = inner != name && !inner.contains('\\') && !nearest(inner, [name]).is_empty();
        let plain = !name.contains(['\\', '"', '\'']) && !name.chars().any(char::is_control);
        let quote = &written[..1];
        let text = if plain {
            format!("{quote}{name}{quote}")
        } else {
            Text::quoted(name).to_string()
        };
        return is_near.then(|| Edit::new(span, text));
    }
    let last = written.rsplit('.').next().unwrap_or(written);
    let is_near =
        last != name && is_word(last) && is_word(name) && !nearest(last, [name]).is_empty();
    let is_path = written.split('.').all(is_word);
    let start = span.end - u32::try_from(last.len()).ok()?;
    (is_near && is_path).then(|| Edit::new(Span { start, ..span }, name))
}

/// Returns the content of a single-line string, without its quotes.
fn within_quotes(written: &str) -> Option<&str> {
    let quote = written.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let inner = written.strip_prefix(quote)?.strip_suffix(quote)?;
    (!inner.contains(quote) && !inner.contains('\n')).then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::one_of;
    use crate::source::SourceText;

    #[test]
    fn a_suggestion_of_one_name_is_understood() {
        assert_eq!(
            suggested(&one_of(&["OpenAI Chat"]).expect("a name")),
            Some("OpenAI Chat")
        );
        assert_eq!(suggested(&one_of(&["a", "b"]).expect("names")), None);
        assert_eq!(suggested("write `x`"), None);
    }

    #[test]
    fn names_are_replaced_as_they_were_written() {
        let sources = Sources::default();
        let file = sources.add("a", SourceText::salvage(b""));
        let fixed = |written: &str, name: &str| {
            let edit = renamed(Span::new(file, 10..10 + written.len()), written, name)?;
            let start = edit.span.start as usize - 10;
            Some(format!("{}{}", &written[..start], edit.text))
        };
        assert_eq!(fixed("extend", "extends").as_deref(), Some("extends"));
        assert_eq!(
            fixed("\"OpenAI Caht\"", "OpenAI Chat").as_deref(),
            Some("\"OpenAI Chat\"")
        );
        assert_eq!(
            fixed("'OpenAI Caht'", "OpenAI Chat").as_deref(),
            Some("'OpenAI Chat'")
        );
        assert_eq!(
            fixed("\"OpenAI Caht\"", "OpenAI \"Chat").as_deref(),
            Some("\"OpenAI \\\"Chat\"")
        );
        assert_eq!(
            fixed("msg.contnet", "content").as_deref(),
            Some("msg.content")
        );
        for (written, name) in [
            ("{{ x }}", "y"),
            ("\"\"\"contnet\"\"\"", "content"),
            ("model", "contexts"),
            ("", "a"),
        ] {
            assert_eq!(fixed(written, name), None, "{written}");
        }
    }
}
