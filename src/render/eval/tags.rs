//! The locations of tags and parentheses, which the engine's tree does not contain.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::Range;

use minijinja::machinery::{self, Token};

use super::super::dialect::syntax;
use crate::repo::Dialect;

/// The tags in a template.
#[derive(Debug, Default)]
pub(super) struct Tags {
    /// The range of each tag, braces included, by the offset of its keyword.
    ranges: BTreeMap<usize, Range<usize>>,
    /// The `else` tag of each `if` and `for`, by the offset of the `if` or `for` keyword.
    elses: HashMap<usize, Range<usize>>,
    /// The offset of each `elif` keyword.
    elifs: HashSet<usize>,
}

/// The tokens of a template, each with its range.
pub(super) struct Tokens<'t>(Vec<(Token<'t>, Range<usize>)>);

impl<'t> Tokens<'t> {
    /// Reads the tokens of a string that is known to parse.
    pub(super) fn of(text: &'t str, dialect: Dialect) -> Tokens<'t> {
        let tokens = machinery::tokenize(text, false, syntax(dialect)).map_while(Result::ok);
        Tokens(
            tokens
                .map(|(token, span)| (token, span.start_offset as usize..span.end_offset as usize))
                .collect(),
        )
    }
}

/// A tag that is being read.
struct OpenTag {
    start: usize,
    keyword: Option<(String, usize)>,
}

impl Tags {
    /// Finds the tags among the tokens of a template.
    pub(super) fn of(tokens: &Tokens<'_>) -> Tags {
        let mut tags = Tags::default();
        let (mut open, mut around) = (None, Vec::new());
        for (token, range) in &tokens.0 {
            match (token, &mut open) {
                (Token::BlockStart, _) => {
                    open = Some(OpenTag {
                        start: range.start,
                        keyword: None,
                    });
                }
                (Token::BlockEnd, Some(_)) => {
                    if let Some(OpenTag {
                        start,
                        keyword: Some((keyword, at)),
                    }) = open.take()
                    {
                        tags.add(&keyword, at, start..range.end, &mut around);
                    }
                }
                (Token::Ident(name), Some(tag)) if tag.keyword.is_none() => {
                    tag.keyword = Some(((*name).to_owned(), range.start));
                }
                _ => {}
            }
        }
        tags
    }

    /// Adds a tag; `around` contains the offsets of the keywords of open `if` and `for` tags.
    fn add(&mut self, keyword: &str, at: usize, tag: Range<usize>, around: &mut Vec<usize>) {
        match keyword {
            "if" | "for" => around.push(at),
            "endif" | "endfor" => drop(around.pop()),
            "elif" => drop(self.elifs.insert(at)),
            "else" => {
                if let Some(opened) = around.last() {
                    self.elses.insert(*opened, tag.clone());
                }
            }
            _ => {}
        }
        self.ranges.insert(at, tag);
    }

    /// Returns the tag whose keyword is at an offset, or the last one before it.
    pub(super) fn around(&self, at: usize) -> Option<&Range<usize>> {
        self.ranges.range(..=at).next_back().map(|(_, tag)| tag)
    }

    /// Returns the `else` tag of the `if` or `for` whose keyword is at an offset.
    pub(super) fn else_of(&self, at: usize) -> Option<Range<usize>> {
        self.elses.get(&at).cloned()
    }

    /// Returns `true` if the keyword at an offset is an `elif`.
    pub(super) fn is_elif(&self, at: usize) -> bool {
        self.elifs.contains(&at)
    }
}

/// The side of an operator that an operand is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Left,
    Right,
}

/// The parentheses of a template's expressions, and the tokens between them.
#[derive(Debug)]
pub(super) struct Parentheses(Vec<(Sign, Range<usize>)>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sign {
    Open,
    Close,
    Other,
}

impl Parentheses {
    /// Finds the parentheses among the tokens of a template.
    pub(super) fn of(tokens: &Tokens<'_>) -> Parentheses {
        let signs = tokens.0.iter().map(|(token, range)| {
            let sign = match token {
                Token::ParenOpen => Sign::Open,
                Token::ParenClose => Sign::Close,
                _ => Sign::Other,
            };
            (sign, range.clone())
        });
        Parentheses(signs.collect())
    }

    /// Returns the range of an operand with the parentheses around it.
    pub(super) fn operand(&self, inner: &Range<usize>, side: Side) -> Range<usize> {
        let mut range = inner.clone();
        let mut before = self
            .0
            .partition_point(|(_, token)| token.start < range.start);
        let mut after = self.0.partition_point(|(_, token)| token.start < range.end);
        loop {
            let open = before
                .checked_sub(1)
                .map(|index| &self.0[index])
                .filter(|(sign, _)| *sign == Sign::Open);
            let close = self.0.get(after).filter(|(sign, _)| *sign == Sign::Close);
            let is_enclosed = match side {
                Side::Left => close.is_some(),
                Side::Right => open.is_some(),
            };
            let (Some((_, open)), Some((_, close)), true) = (open, close, is_enclosed) else {
                return range;
            };
            range = open.start..close.end;
            before -= 1;
            after += 1;
        }
    }
}
