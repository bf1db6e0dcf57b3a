//! `reqc render`: one body, or the curl command that sends it.

use std::path::Path;

use super::options::{Opened, Options};
use super::{Failure, Outcome, Status, Terminal, show_findings};
use crate::provider::{Header, HeaderValue, RequestLine};
use crate::repo::SecretRef;
use crate::resolve::ProfileId;
use crate::text::Text;

pub(super) fn run(options: &Options, agent: &str, curl: bool, terminal: &mut Terminal) -> Outcome {
    let opened = options.open_one(agent)?;
    options.selection(&opened, terminal)?;
    let id = opened.agent(agent)?;
    let compiler = &opened.compiler;
    let Some(plan) = compiler.plan(id) else {
        return Ok(show_findings(options, &opened.report_of(opened.findings_of(id)), terminal));
    };
    let context = pick_context(&opened, id)?;
    let model = compiler.client_model(&plan, options.model.as_deref());
    match compiler.body(id, &context, model) {
        Some(Ok(body)) if curl => {
            terminal.text(&curl_command(&plan.request_line(model), &body.pretty(), &opened.root));
        }
        Some(Ok(body)) => terminal.body(&body.pretty()),
        Some(Err(findings)) => return Ok(show_findings(options, &opened.report_of(findings), terminal)),
        None => {
            let message = format!("`{agent}` is a {} agent, and `{context}` is no {0} context", plan.kind.name());
            return Err(Failure::new(message).help("`reqc contexts` shows the kind of each"));
        }
    }
    Ok(Status::Clean)
}

/// The one context that was asked for.
pub(super) fn pick_context(opened: &Opened, id: ProfileId) -> Result<String, Failure> {
    let kind = opened.compiler.plan(id).map(|plan| plan.kind);
    let fitting = opened.compiler.contexts().iter().filter(|ready| Some(ready.context.kind()) == kind);
    let fitting: Vec<&str> = fitting.map(|ready| ready.context.name.as_ref()).collect();
    let help = format!("for this agent: {}", fitting.join(", "));
    match opened.selection()?.contexts.as_deref() {
        Some([name]) => Ok(name.to_string()),
        Some(names) => {
            let names: Vec<&str> = names.iter().map(AsRef::as_ref).filter(|name| fitting.contains(name)).collect();
            match names.as_slice() {
                [only] => Ok((*only).to_owned()),
                _ => Err(Failure::new("`--context` must name one context").help(help)),
            }
        }
        None => Err(Failure::new("which context? `--context NAME` is needed").help(help)),
    }
}

/// A shell command that sends the body, from any folder; keys are read from where the instance says, never written.
pub(super) fn curl_command(line: &RequestLine, body: &str, root: &Path) -> Text {
    let mut command = format!("curl -sS -X {} {}", line.method, single_quoted(&line.url));
    for Header { name, value } in &line.headers {
        let header = match value {
            HeaderValue::Plain(value) => single_quoted(&format!("{name}: {value}")),
            HeaderValue::Key { prefix, key } => {
                format!("{}\"{}\"", single_quoted(&format!("{name}: {prefix}")), shell_expression(key, root))
            }
        };
        command.push_str(&format!(" \\\n  -H {header}"));
    }
    let body = Text::json_text(body);
    command.push_str(&format!(" \\\n  --data-binary @- <<'REQC_BODY'\n{body}REQC_BODY\n"));
    // Everything in it is quoted so that it can be seen: nothing changes here.
    Text::lines(&command)
}

/// The shell expression that stands for a key. Files are found as the runtime finds them: below the home folder or `root`.
fn shell_expression(key: &SecretRef, root: &Path) -> String {
    match key {
        SecretRef::Env(name) => format!("${{{name}}}"),
        SecretRef::File(path) => match path.strip_prefix("~/") {
            Some(rest) => format!("$(cat \"$HOME\"/{})", single_quoted(rest)),
            None => format!("$(cat {})", single_quoted(&root.join(&**path).to_string_lossy())),
        },
        SecretRef::Keyring { service, user } => {
            format!("$(secret-tool lookup service {} username {})", single_quoted(service), single_quoted(user))
        }
    }
}

/// A word of the shell that stands for a text; one that cannot be seen whole is spelt in octal.
fn single_quoted(text: &str) -> String {
    if Text::line(text).as_str() == text {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let octal = |byte: u8| match byte {
        b' '..=b'~' if !matches!(byte, b'\'' | b'\\' | b'[' | b':') => char::from(byte).to_string(),
        byte => format!("\\0{byte:03o}"),
    };
    let spelt: String = text.bytes().map(octal).collect();
    format!("\"$(printf %b '{spelt}')\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_quotes_hold_anything() {
        assert_eq!(single_quoted("it's"), r"'it'\''s'");
        assert_eq!(single_quoted("a'\n::x\u{9b}"), r#""$(printf %b 'a\0047\0012\0072\0072x\0302\0233')""#);
    }

    #[test]
    fn key_files_are_found_from_any_folder() {
        let shown = |path: &str| shell_expression(&SecretRef::File(path.into()), Path::new("/my repo"));
        assert_eq!(shown("keys/it's"), r"$(cat '/my repo/keys/it'\''s')");
        assert_eq!(shown("/etc/key"), "$(cat '/etc/key')");
        assert_eq!(shown("~/.a key"), "$(cat \"$HOME\"/'.a key')");
    }
}
