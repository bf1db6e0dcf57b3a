//! Foreign text in HTML and Markdown, so that it cannot act: no tag, no link, no mention, no end of
//! a block.

use crate::text::{Text, Within};

/// A text on one line, for HTML and for HTML inside Markdown.
pub(super) fn html(foreign: &str) -> String {
    Text::line(foreign).within(Within::Html).to_string()
}

/// The same as code.
pub(super) fn code(foreign: &str) -> String {
    format!("<code>{}</code>", html(foreign))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_acts() {
        assert_eq!(html("<b>\u{1b}[2J\n"), "&lt;b&gt;␛&#91;2J␊");
        let hostile = html("</details> @all ![x](javascript:y) `` ``` | *a* __b__ #1 https://x");
        assert!(
            !hostile.contains(['<', '@', '[', '`', '|', '*', '_', ':']),
            "{hostile}"
        );
    }
}
