//! What filters make of texts whose writers are known: each byte that they keep keeps its writer.

use std::ops::Range;
use std::sync::Arc;

use super::text::{Cutter, Told, Writer};

/// A filter that the text of a block goes through.
#[derive(Debug, Clone)]
pub(super) struct BlockFilter {
    pub(super) name: Arc<str>,
    /// Its arguments, as far as they are texts that stand in the tag.
    pub(super) arguments: Vec<Option<Argument>>,
}

/// A text in a tag, and where it stands with its quotes.
#[derive(Debug, Clone)]
pub(super) struct Argument {
    pub(super) text: Arc<str>,
    pub(super) template: u32,
    pub(super) range: Range<usize>,
}

impl Argument {
    pub(super) fn writer(&self) -> Writer {
        Writer::Template { template: self.template, at: self.range.start, len: self.range.len() }
    }
}

/// A text with another one in place of each match.
pub(super) fn replaced(told: &Told, from: &str, to: &Told) -> Told {
    let (mut made, mut cutter, mut rest) = (Told::default(), Cutter::new(told), 0);
    for (at, found) in told.text.match_indices(from) {
        cutter.cut(rest..at, &mut made);
        made.push(to);
        rest = at + found.len();
    }
    cutter.cut(rest..told.text.len(), &mut made);
    made
}

/// The indented text, if it has the same lines: the margins are written by the tag.
pub(super) fn indented(told: &Told, text: &str) -> Option<Told> {
    let kept = told.text.strip_suffix('\n').unwrap_or(&told.text);
    let (mut made, mut cutter, mut at) = (Told::default(), Cutter::new(told), 0);
    let mut lines = text.split('\n');
    for line in kept.split('\n') {
        let margin = lines.next()?.strip_suffix(line).filter(|margin| margin.bytes().all(|byte| byte == b' '))?;
        if at > 0 {
            cutter.cut(at - 1..at, &mut made);
        }
        if !margin.is_empty() {
            made.push_one(margin, Writer::Tag);
        }
        cutter.cut(at..at + line.len(), &mut made);
        at += line.len() + 1;
    }
    lines.next().is_none().then_some(made)
}

/// The parts of a text that a list holds, in their order; `None` for what is empty. Ends where an element is no part.
pub(super) fn parts<'t>(told: &'t Told, elements: impl Iterator<Item = &'t str>) -> impl Iterator<Item = Option<Told>> {
    let (mut cutter, mut at) = (Cutter::new(told), 0);
    elements.map_while(move |element| {
        let start = at + told.text[at..].find(element)?;
        at = start + element.len();
        let mut part = Told::default();
        cutter.cut(start..at, &mut part);
        Some((!element.is_empty()).then_some(part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Pointer;

    fn data(text: &str) -> Told {
        Told::one(text, Writer::Data { path: Arc::new(Pointer::root().member("a")), at: 0 })
    }

    /// Each run as its text, and where it stands in the data; `-` for what the tag wrote.
    fn runs(told: &Told) -> Vec<(String, String)> {
        let starts = told.starts();
        let text = |(run, start): (&super::super::text::Run, usize)| {
            let place = match &run.writer {
                Writer::Data { at, .. } => at.to_string(),
                _ => "-".to_owned(),
            };
            (told.text[start..start + run.len].to_owned(), place)
        };
        told.runs.iter().zip(starts).map(text).collect()
    }

    fn listed(runs: &[(&str, &str)]) -> Vec<(String, String)> {
        runs.iter().map(|(text, place)| ((*text).to_owned(), (*place).to_owned())).collect()
    }

    #[test]
    fn what_is_not_replaced_keeps_its_place() {
        let with = Told::one("+", Writer::Tag);
        assert_eq!(
            runs(&replaced(&data("a-b--c"), "-", &with)),
            listed(&[("a", "0"), ("+", "-"), ("b", "2"), ("+", "-"), ("+", "-"), ("c", "5")])
        );
        let ends = replaced(&data("abc"), "", &with);
        assert_eq!(ends.text, "abc".replace("", "+"));
        assert_eq!(replaced(&data("abc"), "x", &with).text, "abc");
    }

    #[test]
    fn escaped_texts_are_cut_where_their_characters_are() {
        // `"x\ny"` of JSON stands for three characters.
        let made = replaced(&data("x\ny").escaped(), "\\n", &Told::one(" ", Writer::Tag));
        assert_eq!(runs(&made), listed(&[("\"", "-"), ("x", "0"), (" ", "-"), ("y", "2"), ("\"", "-")]));
    }

    #[test]
    fn indented_lines_keep_their_places() {
        let made = indented(&data("a\n\n b\n"), "  a\n\n   b").expect("the same lines");
        assert_eq!(made.text, "  a\n\n   b");
        assert_eq!(runs(&made), listed(&[("  ", "-"), ("a", "0"), ("\n", "1"), ("\n", "2"), ("  ", "-"), (" b", "3")]));
        assert_eq!(indented(&data("a\nb"), "a\n  c"), None);
        assert_eq!(indented(&data("a"), "a\nb"), None);
    }

    #[test]
    fn elements_are_parts_in_their_order() {
        let told = data("a,b,,b");
        let found: Vec<_> = parts(&told, ["a", "b", "", "b"].into_iter()).collect();
        let places: Vec<_> = found.iter().map(|part| part.as_ref().map(runs)).collect();
        let one = |text, at| Some(listed(&[(text, at)]));
        assert_eq!(places, [one("a", "0"), one("b", "2"), None, one("b", "5")]);
        assert_eq!(parts(&told, ["b", "a"].into_iter()).count(), 1, "what comes too late is no part");
    }
}
