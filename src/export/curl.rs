//! Writes a shell command that sends a request.

use std::path::Path;

use crate::provider::{Header, HeaderValue, RequestLine};
use crate::repo::SecretRef;
use crate::text::Text;

/// Returns a shell command that sends the body from any folder. The command contains no keys; it
/// reads them from the source that the provider instance specifies.
pub fn curl(line: &RequestLine, body: &str, root: &Path) -> Text {
    let mut command = format!("curl -sS -X {} {}", line.method, single_quoted(&line.url));
    for Header { name, value } in &line.headers {
        let header = match value {
            HeaderValue::Plain(value) => single_quoted(&format!("{name}: {value}")),
            HeaderValue::Key { prefix, key } => {
                format!(
                    "{}\"{}\"",
                    single_quoted(&format!("{name}: {prefix}")),
                    shell_expression(key, root)
                )
            }
        };
        command.push_str(&format!(" \\\n  -H {header}"));
    }
    let body = Text::json_text(body);
    command.push_str(&format!(
        " \\\n  --data-binary @- <<'REQC_BODY'\n{body}REQC_BODY\n"
    ));
    // Everything in the command is quoted and printable, so nothing is changed here.
    Text::script(&command)
}

/// Returns the shell expression for a key. Files are found as in the runtime: below the home folder
/// or `root`.
fn shell_expression(key: &SecretRef, root: &Path) -> String {
    match key {
        SecretRef::Env(name) => format!("${{{name}}}"),
        SecretRef::File(path) => match path.strip_prefix("~/") {
            Some(rest) => format!("$(cat \"$HOME\"/{})", single_quoted(rest)),
            None => format!(
                "$(cat {})",
                single_quoted(&root.join(&**path).to_string_lossy())
            ),
        },
        SecretRef::Keyring { service, user } => {
            format!(
                "$(secret-tool lookup service {} username {})",
                single_quoted(service),
                single_quoted(user)
            )
        }
    }
}

/// Quotes a string as one shell word. Characters that are not printable are written in octal.
fn single_quoted(text: &str) -> String {
    if Text::line(text).as_str() == text {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let spelt: String = text
        .bytes()
        .map(|byte| match byte {
            b' '..=b'~' if !matches!(byte, b'\'' | b'\\' | b'[' | b':') => {
                char::from(byte).to_string()
            }
            byte => format!("\\0{byte:03o}"),
        })
        .collect();
    format!("\"$(printf %b '{spelt}')\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_quotes_hold_anything() {
        assert_eq!(single_quoted("it's"), r"'it'\''s'");
        assert_eq!(
            single_quoted("a'\n::x\u{9b}"),
            r#""$(printf %b 'a\0047\0012\0072\0072x\0302\0233')""#
        );
    }

    #[test]
    fn key_files_are_found_from_any_folder() {
        let shown =
            |path: &str| shell_expression(&SecretRef::File(path.into()), Path::new("/my repo"));
        assert_eq!(shown("keys/it's"), r"$(cat '/my repo/keys/it'\''s')");
        assert_eq!(shown("/etc/key"), "$(cat '/etc/key')");
        assert_eq!(shown("~/.a key"), "$(cat \"$HOME\"/'.a key')");
    }
}
