//! Escapes text for documents that other programs read.

#[cfg(feature = "cli")]
use std::fmt::Write as _;

use super::Text;

/// The kind of document, or the part of one, that text is written into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Within {
    /// The content of an XML element, or an attribute in double quotes.
    Xml,
    /// HTML, which may be between lines of Markdown, so Markdown characters are also escaped.
    Html,
    /// The message of a GitHub workflow command, which follows its second `::`.
    CommandMessage,
    /// The value of a property in a GitHub workflow command.
    CommandProperty,
    /// A message in SARIF, where `[text](place)` is a link.
    Sarif,
}

impl Within {
    /// Returns the replacement for a character in this context; `None` if the character need not be
    /// escaped.
    fn escaped(self, c: char) -> Option<&'static str> {
        match (self, c) {
            (Within::Xml | Within::Html, '&') => Some("&amp;"),
            (Within::Xml | Within::Html, '<') => Some("&lt;"),
            (Within::Xml | Within::Html, '>') => Some("&gt;"),
            (Within::Xml | Within::Html, '"') => Some("&quot;"),
            (Within::Html, c) => markdown_sign(c),
            (Within::Sarif, '[' | ']') => Some(if c == '[' { "\\[" } else { "\\]" }),
            (Within::Xml | Within::Sarif, _) => None,
            (_, '%') => Some("%25"),
            (_, '\r') => Some("%0D"),
            (_, '\n') => Some("%0A"),
            (Within::CommandProperty, ':') => Some("%3A"),
            (Within::CommandProperty, ',') => Some("%2C"),
            _ => None,
        }
    }
}

/// Returns the HTML escape for a Markdown character; `None` for other characters.
fn markdown_sign(c: char) -> Option<&'static str> {
    const SIGNS: [(char, &str); 18] = [
        ('\'', "&#39;"),
        ('`', "&#96;"),
        ('*', "&#42;"),
        ('_', "&#95;"),
        ('[', "&#91;"),
        (']', "&#93;"),
        ('(', "&#40;"),
        (')', "&#41;"),
        ('!', "&#33;"),
        ('|', "&#124;"),
        ('~', "&#126;"),
        ('@', "&#64;"),
        ('#', "&#35;"),
        ('\\', "&#92;"),
        ('$', "&#36;"),
        (':', "&#58;"),
        ('{', "&#123;"),
        ('}', "&#125;"),
    ];
    SIGNS
        .iter()
        .find(|(sign, _)| *sign == c)
        .map(|(_, entity)| *entity)
}

/// Returns a fence for a Markdown code block that is longer than any run of backticks in the block,
/// so that nothing in the block can close it.
pub(crate) fn fence(block: &str) -> String {
    let longest = block
        .split(|c| c != '`')
        .map(str::len)
        .max()
        .unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}

impl Text {
    /// Escapes the text so that this kind of document shows it literally.
    #[must_use]
    pub(crate) fn within(&self, place: Within) -> Text {
        let mut out = String::with_capacity(self.0.len());
        for c in self.0.chars() {
            match place.escaped(c) {
                Some(escaped) => out.push_str(escaped),
                None => out.push(c),
            }
        }
        Text(out)
    }

    /// Returns the text as a Markdown code block. No viewer turns anything in the block into links,
    /// mentions or HTML. The fence is longer than any run of backticks in the text.
    #[must_use]
    #[cfg(feature = "cli")]
    pub(crate) fn fenced(&self) -> Text {
        let fence = fence(&self.0);
        let mut out = String::new();
        // Writing to a string cannot fail.
        let _ = write!(
            out,
            "{fence}text\n{}\n{fence}\n",
            self.0.trim_end_matches('\n')
        );
        Text(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_foreign_is_mark_up() {
        let text = Text::lines("a<b> & \"c\" ]]>\n::error::x%0A,y");
        let xml = "a&lt;b&gt; &amp; &quot;c&quot; ]]&gt;\n:\\:error::x%0A,y";
        assert_eq!(text.within(Within::Xml).as_str(), xml);
        assert_eq!(
            Text::line("[x](javascript:y)")
                .within(Within::Sarif)
                .as_str(),
            "\\[x\\](javascript:y)"
        );
        assert_eq!(
            Text::line("50%, a:b")
                .within(Within::CommandProperty)
                .as_str(),
            "50%25%2C a%3Ab"
        );
        assert_eq!(
            Text::lines("50%\na:b")
                .within(Within::CommandMessage)
                .as_str(),
            "50%25%0Aa:b"
        );
    }

    #[test]
    fn a_fence_is_longer_than_what_it_holds() {
        assert_eq!(
            Text::lines("a `b`\n").fenced().as_str(),
            "```text\na `b`\n```\n"
        );
        assert_eq!(
            Text::lines("````\n</details>").fenced().as_str(),
            "`````text\n````\n</details>\n`````\n"
        );
    }
}
