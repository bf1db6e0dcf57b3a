//! Limits on the number of findings in human-readable output, so that logs stay readable. Output
//! for programs has a higher limit: see [`LeftOut`].

use std::collections::BTreeMap;

use super::thousands;
use crate::compile::MOST_OF_A_RULE;
use crate::compile::policy::LeftOut;
use crate::diag::Diagnostic;
use crate::text::{Text, text};

/// The maximum number of findings shown for each rule, and in total.
const MOST: (usize, usize) = (100, 1000);

/// The findings to show, and the number of omitted findings by rule.
pub(super) struct Bounded<'f> {
    pub(super) shown: Vec<&'f Diagnostic>,
    pub(super) more: BTreeMap<&'static str, usize>,
}

impl<'f> Bounded<'f> {
    /// Selects the first findings of each rule, in report order.
    pub(super) fn of(findings: &'f [Diagnostic]) -> Bounded<'f> {
        let mut bounded = Bounded {
            shown: Vec::new(),
            more: BTreeMap::new(),
        };
        let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
        for finding in findings {
            let code = finding.rule.code;
            let before = seen.entry(code).or_default();
            match *before < MOST.0 && bounded.shown.len() < MOST.1 {
                true => bounded.shown.push(finding),
                false => *bounded.more.entry(code).or_default() += 1,
            }
            *before += 1;
        }
        bounded
    }
}

/// Returns a line for each rule with omitted findings. `held` lists the rules whose findings are
/// limited in JSON too.
pub(super) fn left_out(more: &BTreeMap<&'static str, usize>, held: &[LeftOut]) -> Option<Text> {
    let mut all = more.clone();
    held.iter()
        .for_each(|it| *all.entry(it.code).or_default() += it.findings);
    let lines = all.iter().map(|(code, more)| {
        let has = match held.iter().any(|it| it.code == *code) {
            true => format!("the first {}", thousands(MOST_OF_A_RULE)),
            false => "all of them".to_owned(),
        };
        text!(
            "… and {} of {}; `--format json` lists {}\n",
            match *more {
                1 => "1 more finding".to_owned(),
                more => format!("{} more findings", thousands(more)),
            },
            *code,
            has
        )
    });
    (!all.is_empty()).then(|| lines.collect())
}

#[cfg(test)]
mod tests {
    use super::super::tests::{ERROR, WARNING};
    use super::*;
    use crate::source::{SourceText, Sources, Span};

    #[test]
    fn a_flood_is_counted() {
        let sources = Sources::default();
        let file = sources.add("a", SourceText::salvage(b""));
        let finding = |rule| Diagnostic::new(rule, Span::file_start(file), "m");
        let findings: Vec<Diagnostic> = std::iter::repeat_with(|| finding(&WARNING))
            .take(12_345)
            .collect();
        let all: Vec<Diagnostic> = findings.into_iter().chain([finding(&ERROR)]).collect();
        let bounded = Bounded::of(&all);
        assert_eq!(bounded.shown.len(), 101, "one rule hides no other");
        let told = left_out(&bounded.more, &[]).expect("something is left out");
        assert_eq!(
            told.as_str(),
            "… and 12,245 more findings of coverage/unused; `--format json` lists all of them\n"
        );
        assert_eq!(left_out(&Bounded::of(&all[..100]).more, &[]), None);
    }
}
