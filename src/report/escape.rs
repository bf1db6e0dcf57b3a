//! Foreign text in HTML and Markdown, so that it cannot act: no tag, no link, no mention, no end of a block.

use std::fmt::Write as _;

use crate::text::Text;

/// A text on one line, for HTML and for HTML inside of Markdown.
pub(super) fn html(foreign: &str) -> String {
    let mut out = String::with_capacity(foreign.len());
    for c in Text::line(foreign).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // Signs that mean something to Markdown, also between tags.
            '\'' | '`' | '*' | '_' | '[' | ']' | '(' | ')' | '!' | '|' | '~' | '@' | '#' | '\\' | '$' | ':' => {
                // Writing into a string cannot fail.
                let _ = write!(out, "&#{};", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out
}

/// The same as code.
pub(super) fn code(foreign: &str) -> String {
    format!("<code>{}</code>", html(foreign))
}

/// A fence for a block of Markdown that nothing in it can end.
pub(super) fn fence(block: &str) -> String {
    let longest = block.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_acts() {
        assert_eq!(html("<b>\u{1b}[2J\n"), "&lt;b&gt;␛&#91;2J␊");
        let hostile = html("</details> @all ![x](javascript:y) `` ``` | *a* __b__ #1 https://x");
        assert!(!hostile.contains(['<', '@', '[', '`', '|', '*', '_', ':']), "{hostile}");
        assert_eq!(fence("a ```` b"), "`````");
        assert_eq!(fence(""), "```");
    }
}
