//! Rules about providers name their sources, and rules that report errors have enough of them.
//!
//! `reqc::diag::rank` ranks the sources of rules, `model-families.toml` and `tests/bodies/` alike.

use std::collections::BTreeSet;
use std::sync::Arc;

use reqc::Compiler;
use reqc::compile::all_rules;
use reqc::diag::{Citation, Rule, Severity, carry_an_error, citations};
use reqc::repo::{Fact, Family, LoadOptions, Origin};
use reqc::system::Embedded;
use reqc::world::MemoryWorld;

/// Families of rules about the behaviour of providers. Other rules are about the project's own
/// files.
const ABOUT_PROVIDERS: [&str; 4] = ["protocol/", "schema/", "cache/", "lint/batch-"];

/// Rules of these families that are about a file of the repository.
const OWN: [&str; 1] = ["schema/unusable"];

fn is_about_providers(rule: &Rule) -> bool {
    ABOUT_PROVIDERS
        .iter()
        .any(|family| rule.code.starts_with(family))
        && !OWN.contains(&rule.code)
}

#[test]
fn each_source_of_a_rule_is_one_address() {
    for rule in all_rules() {
        let mut seen = BTreeSet::new();
        for evidence in rule.evidence {
            let found = citations(evidence.source);
            let [Citation { address, .. }] = &found[..] else {
                panic!(
                    "{}: `{}` is not one address: {found:?}",
                    rule.code, evidence.source
                );
            };
            assert_eq!(address, evidence.source, "{}", rule.code);
            assert!(
                seen.insert(evidence.source),
                "{} names {address} twice",
                rule.code
            );
            assert!(
                !evidence.shows.is_empty() && is_month(evidence.seen),
                "{}: {evidence}",
                rule.code
            );
        }
    }
}

fn is_month(text: &str) -> bool {
    text.len() == 7
        && text.is_char_boundary(4)
        && text[..4].bytes().all(|byte| byte.is_ascii_digit())
        && &text[4..5] == "-"
}

#[test]
fn rules_about_providers_have_evidence_and_errors_enough_of_it() {
    let mut wrong = Vec::new();
    for rule in all_rules()
        .into_iter()
        .filter(|rule| is_about_providers(rule))
    {
        let carries = carry_an_error(rule.evidence.iter().map(reqc::diag::Evidence::rank));
        if rule.evidence.is_empty() || rule.severity == Severity::Error && !carries {
            wrong.push(rule.code);
        }
    }
    assert!(wrong.is_empty(), "without enough evidence: {wrong:?}");
}

#[test]
fn pages_show_evidence_and_do_not_repeat_it() {
    for rule in all_rules() {
        let is_prose = rule.page.contains("Source, seen") || rule.page.contains("Sources, seen");
        assert!(!is_prose, "{}: sources belong into `evidence`", rule.code);
        for evidence in rule.evidence {
            assert!(
                rule.full_page()
                    .contains(evidence.source.trim_start_matches("recorded: ")),
                "{}",
                rule.code
            );
        }
    }
}

#[test]
fn verdicts_on_models_have_enough_evidence() {
    let mut wrong = Vec::new();
    for family in bundled() {
        for fact in family
            .facts
            .iter()
            .filter(|fact| fact.level == Severity::Error)
        {
            if !carries_an_error(&fact.origin, &family) {
                wrong.push(format!(
                    "{}: {}: {:?}",
                    family.name.value,
                    fact.told(),
                    sources(&fact.origin, &family)
                ));
            }
        }
        let is_verdict =
            !family.properties.is_empty() || family.reasoned_calls == Some(Severity::Error);
        if is_verdict && !carries_an_error(&family.origin, &family) {
            wrong.push(format!(
                "{}: {:?}",
                family.name.value,
                sources(&family.origin, &family)
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "an error stands on one thread; find another source, or lower it:\n{}",
        wrong.join("\n")
    );
}

/// A message combines a fact's conditions with its member. A condition about another member of the
/// same fact would make no sense: *rejects `logit_bias`, unless `logprobs` is `false`*.
#[test]
fn no_condition_is_about_a_member_of_its_own_fact() {
    let families = bundled();
    let facts = families.iter().flat_map(|family| &family.facts);
    let wrong: Vec<String> = facts
        .filter(|fact| {
            let mut conditions = fact.when.iter().chain(&fact.unless);
            conditions.any(|condition| {
                let mut members = fact.at.iter();
                members.any(|member| member.pointer == condition.at.pointer)
            })
        })
        .map(Fact::told)
        .collect();
    assert!(
        wrong.is_empty(),
        "write a fact for each member:\n{}",
        wrong.join("\n")
    );
}

fn bundled() -> Vec<Arc<Family>> {
    let nothing = Arc::new(MemoryWorld::default());
    let compiler = Compiler::load(
        nothing,
        Arc::new(Embedded::bundled()),
        LoadOptions::default(),
    );
    compiler.repo().families.clone()
}

/// Returns the sources of a fact, or else those of its family.
fn sources(origin: &Origin, family: &Family) -> Vec<Citation> {
    let source = origin.source.as_ref().or(family.origin.source.as_ref());
    source.map(|source| citations(source)).unwrap_or_default()
}

fn carries_an_error(origin: &Origin, family: &Family) -> bool {
    carry_an_error(sources(origin, family).iter().map(|found| found.rank))
}
