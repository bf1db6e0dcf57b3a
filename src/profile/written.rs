//! Checks how values are written: escapes in strings that do not support them, and inline tables
//! that other readers reject.

use std::ops::Range;

use super::rules;
use crate::diag::Diagnostic;
use crate::source::{FileId, Span};
use crate::toml::{Kind, Node, Table};

/// Finds both mistakes in a profile's table.
pub(super) fn check(file: FileId, text: &str, table: &Table, findings: &mut Vec<Diagnostic>) {
    let mut values: Vec<&Node> = table.entries.iter().map(|(_, node)| node).collect();
    while let Some(node) = values.pop() {
        match &node.kind {
            Kind::String(value) => {
                let escape = raw_escape(text, node, value);
                findings.extend(escape.map(|(range, escape)| {
                    let message = format!(
                        "`{escape}` is not an escape sequence in a string with single quotes"
                    );
                    let span = Span::new(file, range);
                    Diagnostic::new(&rules::RAW_ESCAPE, span, message)
                        .help("use double quotes, or put an actual line break in the string")
                }));
            }
            Kind::Array(elements) => values.extend(elements),
            Kind::Table(inner) => {
                values.extend(inner.entries.iter().map(|(_, node)| node));
                if is_over_several_lines(text, node, inner) {
                    let opening = node.span.start..node.span.start + 1;
                    let message = "this inline table spans several lines";
                    let finding =
                        Diagnostic::new(&rules::NEWER_TOML, Span::new(file, opening), message);
                    findings.push(
                        finding.help("write it on one line, or as a table with its own header"),
                    );
                }
            }
            Kind::Integer(_) | Kind::Float(_) | Kind::Boolean(_) | Kind::Datetime(_) => {}
        }
    }
}

/// Returns the first escape in the text of a single-quoted string, and its location. In the tags of
/// a template and in a body's JSON, escapes have their usual meaning.
fn raw_escape<'t>(text: &'t str, node: &Node, value: &str) -> Option<(Range<usize>, &'t str)> {
    let written = text.get(node.span.clone())?;
    let is_json = value.trim_start().starts_with(['"', '{', '[']);
    if !written.starts_with('\'') || is_json {
        return None;
    }
    let mut at = 0;
    while let Some(found) = written[at..].find(['\\', '{']) {
        at += found;
        let rest = &written[at..];
        let tag = [("{{", "}}"), ("{%", "%}"), ("{#", "#}")]
            .into_iter()
            .find(|(open, _)| rest.starts_with(open));
        if let Some((_, close)) = tag {
            at += rest.find(close)? + close.len();
        } else if is_escape(&written[..at], rest) {
            let start = node.span.start + at;
            return Some((start..start + 2, &rest[..2]));
        } else {
            at += 1;
        }
    }
    None
}

/// Returns `true` if `rest` begins with a line break or a tab as an escape. After a letter, a digit
/// or a `:`, and before a lower-case word, the escape may be part of a path such as `C:\new`.
fn is_escape(before: &str, rest: &str) -> bool {
    let is_break = ["\\n", "\\t"].iter().any(|escape| rest.starts_with(escape));
    let after = rest[1..].chars().nth(1);
    let is_path = before.ends_with(|c: char| c.is_alphanumeric() || c == ':' || c == '\\')
        && after.is_some_and(|c| c.is_ascii_lowercase());
    is_break && !is_path
}

/// Returns `true` if a line breaks between the members of an inline table.
fn is_over_several_lines(text: &str, node: &Node, table: &Table) -> bool {
    if !text[node.span.clone()].starts_with('{') {
        return false;
    }
    let mut end = node.span.start;
    let mut gaps = Vec::new();
    for (key, value) in &table.entries {
        gaps.push(end..key.span.start);
        end = end.max(value.span.end);
    }
    gaps.push(end..node.span.end);
    gaps.into_iter()
        .any(|gap| text.get(gap).is_some_and(|gap| gap.contains('\n')))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::source::{SourceText, Sources};

    fn found(text: &str) -> Vec<(&'static str, String)> {
        let table = crate::toml::parse(text).expect("it parses");
        let mut findings = Vec::new();
        let file =
            Sources::default().add(Arc::from("a.toml"), SourceText::salvage(text.as_bytes()));
        check(file, text, &table, &mut findings);
        findings
            .into_iter()
            .map(|it| (it.rule.code, text[it.primary.span.range()].to_owned()))
            .collect()
    }

    #[test]
    fn escapes_in_single_quotes_are_told() {
        let escape = |text: &str| vec![("profile/raw-escape", text.to_owned())];
        assert_eq!(found(r"a = 'One.\nTwo.\nThree.'"), escape(r"\n"));
        assert_eq!(found("a = '''One.\\n\nTwo.'''"), escape(r"\n"));
        assert_eq!(found("a = ['One:\\tTwo']"), escape(r"\t"));
        for silent in [
            r#"a = "One.\nTwo.""#,
            r"a = 'C:\new\table'",
            r#"a = '{{ x ~ "\n" }} and {% if x == "\n" %}y{% endif %}'"#,
            r#"a = '"One.\nTwo."'"#,
            "a = '''One.\nTwo.'''",
            r"a = '\d+\.\w'",
        ] {
            assert_eq!(found(silent), [], "{silent}");
        }
    }

    #[test]
    fn inline_tables_over_lines_are_told() {
        let newer = vec![("profile/newer-toml", "{".to_owned())];
        assert_eq!(found("a = {\n  b = 1\n}"), newer);
        assert_eq!(found("a = { b = 1,\n c = 2 }"), newer);
        for silent in [
            "a = { b = [\n 1,\n 2\n] }",
            "a = { b = '''\nx''' }",
            "[a]\nb = 1\n\n[a.c]\nd = 2",
            "a = [\n  { b = 1 },\n  { b = 2 },\n]",
        ] {
            assert_eq!(found(silent), [], "{silent}");
        }
    }
}
