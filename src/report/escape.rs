//! Escapes untrusted text for HTML and Markdown, so that the text cannot form a tag, link, mention,
//! or end of a block.

use crate::text::{Text, Within};

/// Escapes a string for one line of HTML, including HTML inside Markdown.
pub(super) fn html(foreign: &str) -> String {
    Text::line(foreign).within(Within::Html).to_string()
}

/// Escapes a string like [`html`], and formats it as code.
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
