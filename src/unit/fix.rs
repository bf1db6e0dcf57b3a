//! The edit that makes a tag write JSON.

use crate::diag::Edit;
use crate::source::{Sources, Span};

/// Returns the edit from `{{ x }}` to `{{ tojson(x) }}`, which also removes surrounding quotes.
pub(super) fn as_json(sources: &Sources, tag: Span, is_quoted: bool) -> Option<Edit> {
    let text = sources.get(tag.file).text();
    let tag = with_braces(text, tag)?;
    let whole = text.get(tag.range())?;
    let inner = whole.strip_prefix("{{")?.strip_suffix("}}")?;
    let (left, inner) = mark(inner, str::strip_prefix);
    let (right, inner) = mark(inner, str::strip_suffix);
    let value = inner.trim();
    let is_json = value.starts_with("tojson(") && value.ends_with(')') || value.ends_with("tojson");
    let tag_text = match is_json {
        true => whole.to_owned(),
        false => format!("{{{{{left} tojson({value}) {right}}}}}"),
    };
    let span = if is_quoted {
        with_quotes(text, tag)?
    } else {
        tag
    };
    (span != tag || tag_text != whole).then(|| Edit::new(span, tag_text))
}

/// Returns the whole tag around an expression.
fn with_braces(text: &str, expression: Span) -> Option<Span> {
    let range = expression.range();
    if text.get(range.clone())?.starts_with("{{") {
        return Some(expression);
    }
    let before = text[..range.start]
        .trim_end()
        .trim_end_matches(['-', '+'])
        .strip_suffix("{{")?;
    let after = text[range.end..]
        .trim_start()
        .trim_start_matches(['-', '+'])
        .strip_prefix("}}")?;
    Some(Span::new(
        expression.file,
        before.len()..text.len() - after.len(),
    ))
}

/// Returns the whitespace-control mark at one end of a tag, and the rest.
fn mark<'t>(
    inner: &'t str,
    strip: fn(&'t str, char) -> Option<&'t str>,
) -> (&'static str, &'t str) {
    let marked = ["-", "+"]
        .into_iter()
        .find_map(|mark| Some((mark, strip(inner, mark.chars().next()?)?)));
    marked.unwrap_or(("", inner))
}

/// Returns a tag with the quotes around it, which may be escaped in a TOML string.
fn with_quotes(text: &str, tag: Span) -> Option<Span> {
    let (before, after) = (&text[..tag.start as usize], &text[tag.end as usize..]);
    let quote = ["\\\"", "\""]
        .into_iter()
        .find(|quote| before.ends_with(quote) && after.starts_with(quote))?;
    let length = u32::try_from(quote.len()).ok()?;
    Some(Span {
        start: tag.start - length,
        end: tag.end + length,
        ..tag
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::SourceText;

    #[test]
    fn an_expression_has_its_braces_around_it() {
        let sources = Sources::default();
        let file = sources.add("a", SourceText::salvage(b"a {{- x -}} y"));
        assert_eq!(
            with_braces("a {{- x -}} y", Span::new(file, 6..7)),
            Some(Span::new(file, 2..11))
        );
        assert_eq!(with_braces("a x y", Span::new(file, 2..3)), None);
    }

    #[test]
    fn values_are_written_as_json() {
        let fixed = |text: &str, is_quoted: bool| {
            let sources = Sources::default();
            let file = sources.add("a", SourceText::salvage(text.as_bytes()));
            let (start, end) = (
                text.find("{{").expect("a tag"),
                text.find("}}").expect("its end") + 2,
            );
            let edit = as_json(&sources, Span::new(file, start..end), is_quoted)?;
            Some(format!(
                "{}{}{}",
                &text[..edit.span.start as usize],
                edit.text,
                &text[edit.span.end as usize..]
            ))
        };
        assert_eq!(
            fixed("[{{ x }}]", false).as_deref(),
            Some("[{{ tojson(x) }}]")
        );
        assert_eq!(
            fixed("[\"{{- x.y|upper -}}\"]", true).as_deref(),
            Some("[{{- tojson(x.y|upper) -}}]")
        );
        assert_eq!(
            fixed("\\\"{{ tojson(x) }}\\\"", true).as_deref(),
            Some("{{ tojson(x) }}")
        );
        assert_eq!(fixed("a {{ x }}", true), None, "no quotes of its own");
        assert_eq!(fixed("{{ tojson(x) }}", false), None);
    }
}
