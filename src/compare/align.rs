//! Matches the pieces of two bodies.

use std::collections::HashMap;
use std::ops::Range;

use similar::DiffOp;

use super::piece::{Answer, Content, Piece};
use crate::check::history::Role;
use crate::diff::{line_operations, similarity, word_similarity};

/// A piece of the first body and a piece of the second, by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) first: usize,
    pub(super) second: usize,
}

/// Strings in both bodies with the same content, split differently.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Regrouped {
    pub(super) first: Vec<usize>,
    pub(super) second: Vec<usize>,
}

/// The matched pieces of two bodies.
#[derive(Debug, Default)]
pub(super) struct Alignment {
    /// Equal content in the same order.
    pub(super) equal: Vec<Pair>,
    /// Equal content in a different order.
    pub(super) moved: Vec<Pair>,
    /// Content that was altered.
    pub(super) altered: Vec<Pair>,
    /// Strings that are split differently.
    pub(super) regrouped: Vec<Regrouped>,
    /// Pieces that are only in the first body.
    pub(super) lost: Vec<usize>,
    /// Pieces that are only in the second body.
    pub(super) added: Vec<usize>,
}

/// The unmatched pieces between two matched pairs.
struct Gap {
    first: Range<usize>,
    second: Range<usize>,
}

/// Aligns the pieces of two bodies.
pub(super) fn align(first: &[Piece<'_>], second: &[Piece<'_>]) -> Alignment {
    let keys: [Vec<String>; 2] =
        [first, second].map(|pieces| pieces.iter().map(Piece::key).collect());
    let mut aligner = Aligner {
        first,
        second,
        taken: [vec![false; first.len()], vec![false; second.len()]],
        result: Alignment::default(),
    };
    let gaps = aligner.take_equal(&keys);
    for gap in &gaps {
        aligner.take_regrouped(gap);
    }
    aligner.take_moved(&keys);
    aligner.take_answers();
    for gap in &gaps {
        aligner.take_altered(gap);
    }
    aligner.finish()
}

struct Aligner<'p, 'b> {
    first: &'p [Piece<'b>],
    second: &'p [Piece<'b>],
    /// `true` for each piece that is already matched, by body.
    taken: [Vec<bool>; 2],
    result: Alignment,
}

impl Aligner<'_, '_> {
    fn take(&mut self, pair: Pair) {
        self.taken[0][pair.first] = true;
        self.taken[1][pair.second] = true;
    }

    fn is_open(&self, pair: Pair) -> bool {
        !self.taken[0][pair.first] && !self.taken[1][pair.second]
    }

    /// Matches equal pieces in the same order; returns the gaps between them.
    fn take_equal(&mut self, [first, second]: &[Vec<String>; 2]) -> Vec<Gap> {
        let first: Vec<&str> = first.iter().map(String::as_str).collect();
        let second: Vec<&str> = second.iter().map(String::as_str).collect();
        let mut gaps: Vec<Gap> = Vec::new();
        for operation in line_operations(&first, &second) {
            let (old, new) = (operation.old_range(), operation.new_range());
            if let DiffOp::Equal { .. } = operation {
                for (first, second) in old.zip(new) {
                    let pair = Pair { first, second };
                    self.take(pair);
                    self.result.equal.push(pair);
                }
                continue;
            }
            match gaps
                .last_mut()
                .filter(|gap| gap.first.end == old.start && gap.second.end == new.start)
            {
                Some(gap) => {
                    *gap = Gap {
                        first: gap.first.start..old.end,
                        second: gap.second.start..new.end,
                    }
                }
                None => gaps.push(Gap {
                    first: old,
                    second: new,
                }),
            }
        }
        gaps
    }

    /// Matches one string in a body with several strings in the other body.
    fn take_regrouped(&mut self, gap: &Gap) {
        for second in gap.second.clone() {
            if let Some(run) = run_that_says(
                self.first,
                &self.taken[0],
                gap.first.clone(),
                &self.second[second],
            ) {
                self.take_group(Regrouped {
                    first: run,
                    second: vec![second],
                });
            }
        }
        for first in gap.first.clone() {
            if self.taken[0][first] {
                continue;
            }
            if let Some(run) = run_that_says(
                self.second,
                &self.taken[1],
                gap.second.clone(),
                &self.first[first],
            ) {
                self.take_group(Regrouped {
                    first: vec![first],
                    second: run,
                });
            }
        }
    }

    fn take_group(&mut self, group: Regrouped) {
        group.first.iter().for_each(|at| self.taken[0][*at] = true);
        group.second.iter().for_each(|at| self.taken[1][*at] = true);
        self.result.regrouped.push(group);
    }

    /// Matches equal pieces in different places.
    fn take_moved(&mut self, [first, second]: &[Vec<String>; 2]) {
        let mut open: HashMap<&str, Vec<usize>> = HashMap::new();
        for (number, key) in second
            .iter()
            .enumerate()
            .rev()
            .filter(|(number, _)| !self.taken[1][*number])
        {
            open.entry(key).or_default().push(number);
        }
        for (number, key) in first.iter().enumerate() {
            if self.taken[0][number] || self.first[number].is_blank() {
                continue;
            }
            if let Some(other) = open.get_mut(key.as_str()).and_then(Vec::pop) {
                let pair = Pair {
                    first: number,
                    second: other,
                };
                self.take(pair);
                self.result.moved.push(pair);
            }
        }
    }

    /// Matches results that answer the same call with different content.
    fn take_answers(&mut self) {
        let partners = self.call_partners();
        for first in 0..self.first.len() {
            let Content::Result(Answer {
                call: Some(call), ..
            }) = &self.first[first].content
            else {
                continue;
            };
            let Some(partner) = partners.get(call) else {
                continue;
            };
            let answers = |piece: &Piece<'_>| matches!(&piece.content, Content::Result(answer) if answer.call == Some(*partner));
            let found = (0..self.second.len()).find(|second| {
                answers(&self.second[*second])
                    && self.is_open(Pair {
                        first,
                        second: *second,
                    })
            });
            if let Some(second) = found {
                self.take_as_altered(Pair { first, second });
            }
        }
    }

    /// Returns, for each matched call in the first body, the index of the matching call in the
    /// second body.
    fn call_partners(&self) -> HashMap<usize, usize> {
        call_partners(self.first, self.second, &self.result)
    }

    fn take_as_altered(&mut self, pair: Pair) {
        self.take(pair);
        self.result.altered.push(pair);
    }

    /// Matches similar pieces of the same kind in the same gap.
    fn take_altered(&mut self, gap: &Gap) {
        for first in gap
            .first
            .clone()
            .filter(|first| !self.taken[0][*first])
            .collect::<Vec<_>>()
        {
            let mut best: Option<(f32, usize)> = None;
            for second in gap.second.clone().filter(|second| !self.taken[1][*second]) {
                let likeness = likeness(&self.first[first], &self.second[second]);
                if likeness > best.map_or(0.3, |(likeness, _)| likeness) {
                    best = Some((likeness, second));
                }
            }
            let second = best
                .map(|(_, second)| second)
                .or_else(|| self.only_one_in_place(gap, first));
            if let Some(second) = second {
                self.take_as_altered(Pair { first, second });
            }
        }
    }

    /// Returns the only piece of the second body in this gap that has the same kind as the given
    /// piece of the first body; `None` if there are several such pieces, or none.
    fn only_one_in_place(&self, gap: &Gap, first: usize) -> Option<usize> {
        let piece = &self.first[first];
        let is_of_kind = |other: &Piece<'_>| {
            other.content.subject() == piece.content.subject() && other.role == piece.role
        };
        let mut own = gap
            .first
            .clone()
            .filter(|it| !self.taken[0][*it] && is_of_kind(&self.first[*it]));
        let mut others = gap
            .second
            .clone()
            .filter(|it| !self.taken[1][*it] && is_of_kind(&self.second[*it]));
        let second = others.next()?;
        let is_text_of_turn = !matches!(piece.content, Content::Other(..) | Content::Call(_));
        (is_text_of_turn
            && own.next() == Some(first)
            && own.next().is_none()
            && others.next().is_none())
        .then_some(second)
    }

    fn finish(mut self) -> Alignment {
        self.result.lost = open(&self.taken[0]);
        self.result.added = open(&self.taken[1]);
        self.result
    }
}

/// Returns the indices of the pieces that are not matched.
fn open(taken: &[bool]) -> Vec<usize> {
    (0..taken.len()).filter(|number| !taken[*number]).collect()
}

/// Returns, for each matched call in the first body, the index of the matching call in the second
/// body.
pub(super) fn call_partners(
    first: &[Piece<'_>],
    second: &[Piece<'_>],
    alignment: &Alignment,
) -> HashMap<usize, usize> {
    let pairs = alignment
        .equal
        .iter()
        .chain(&alignment.moved)
        .chain(&alignment.altered);
    let calls =
        pairs.filter_map(
            |pair| match (&first[pair.first].content, &second[pair.second].content) {
                (Content::Call(call), Content::Call(other)) => Some((call.number, other.number)),
                _ => None,
            },
        );
    calls.collect()
}

/// Returns the consecutive unmatched strings with the same role that together equal one string,
/// ignoring whitespace.
fn run_that_says(
    pieces: &[Piece<'_>],
    taken: &[bool],
    range: Range<usize>,
    whole: &Piece<'_>,
) -> Option<Vec<usize>> {
    let wanted = letters(whole.text()?);
    if wanted.is_empty() {
        return None;
    }
    range.clone().find_map(|start| {
        let (mut said, mut run) = (String::new(), Vec::new());
        for at in start..range.end {
            let piece = &pieces[at];
            // Cache breakpoints may be between strings.
            if matches!(piece.content, Content::CacheMark) && !run.is_empty() {
                continue;
            }
            let text = piece
                .text()
                .filter(|_| !taken[at] && piece.role == whole.role)?;
            said.push_str(&letters(text));
            run.push(at);
            if !wanted.starts_with(&said) {
                return None;
            }
            if said == wanted && run.len() > 1 {
                return Some(run);
            }
        }
        None
    })
}

fn letters(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Returns the similarity of two pieces of the same kind, from 0 to 1.
fn likeness(first: &Piece<'_>, second: &Piece<'_>) -> f32 {
    match (&first.content, &second.content) {
        (Content::Text(a), Content::Text(b)) | (Content::Thinking(a), Content::Thinking(b)) => {
            text_likeness(a, b)
        }
        (Content::Gap(side, a), Content::Gap(other, b)) if side == other => {
            0.5 + text_likeness(a, b) / 2.0
        }
        (Content::Call(call), Content::Call(other)) if call.name == other.name => {
            0.5 + text_likeness(&call.arguments, &other.arguments) / 2.0
        }
        (Content::Call(call), Content::Call(other)) if call.arguments == other.arguments => 0.5,
        (Content::Other(kind, a), Content::Other(other, b)) if kind == other => {
            0.5 + text_likeness(a, b) / 2.0
        }
        (Content::Image(_), Content::Image(_))
        | (Content::Audio(_), Content::Audio(_))
        | (Content::Document(_), Content::Document(_)) => 0.5,
        _ => 0.0,
    }
}

/// Returns the similarity of two strings, from 0 to 1. If one string contains the other, they are
/// treated as nearly equal.
fn text_likeness(a: &str, b: &str) -> f32 {
    const LONGEST: usize = 20_000;
    let (short, long) = if a.len() <= b.len() { (a, b) } else { (b, a) };
    if !short.trim().is_empty() && long.contains(short.trim()) {
        return 0.9;
    }
    if a.len() + b.len() > LONGEST {
        similarity(a, b)
    } else {
        word_similarity(a, b)
    }
}

/// Returns `true` if two roles mean the same speaker: results come from the user in some formats,
/// and from a tool in others.
pub(super) fn is_same_speaker(first: Role, second: Role) -> bool {
    first == second || is_user(first) && is_user(second)
}

fn is_user(role: Role) -> bool {
    matches!(role, Role::User | Role::Tool)
}
