//! `reqc rule`: the meaning of a code.

use serde_json::{Value, json};

use super::args::Format;
use super::options::Options;
use super::{Failure, Outcome, Status, Terminal, list};
use crate::compile::{all_rules, rule};
use crate::diag::{Evidence, Rank, Rule, count, did_you_mean};
use crate::refusal::{Dictionary, Provider, Refusal};
use crate::text::{Text, text};

pub(super) fn run(
    options: &Options,
    code: Option<&str>,
    with_evidence: bool,
    terminal: &mut Terminal,
) -> Outcome {
    let rules = match code {
        None => all_rules(),
        Some(code) => vec![rule(code).ok_or_else(|| unknown(code))?],
    };
    if options.format == Format::Json {
        terminal.json(&rules.iter().map(|rule| document(rule)).collect());
    } else if code.is_some() {
        terminal.text(&page(rules[0], with_evidence, terminal.width()));
    } else {
        for rule in rules {
            terminal.text(&text!(
                "{:<26} {:<8} {}\n",
                rule.code,
                rule.severity.name(),
                rule.summary
            ));
        }
    }
    Ok(Status::Clean)
}

/// Returns a rule as JSON, with the strongest evidence first.
fn document(rule: &Rule) -> Value {
    let evidence: Vec<Value> = rule.evidence_by_rank().iter().map(source).collect();
    json!({
        "code": rule.code,
        "severity": rule.severity.name(),
        "summary": rule.summary,
        "page": rule.page,
        "evidence": evidence,
        "answers": Dictionary::bundled().of_rule(rule.code).map(|(provider, refusal)| answer(provider, refusal)).collect::<Vec<_>>(),
    })
}

fn answer(provider: &Provider, refusal: &Refusal) -> Value {
    json!({"provider": provider.id, "sentence": refusal.shown(), "status": refusal.status})
}

fn source(evidence: &Evidence) -> Value {
    let Evidence {
        source,
        shows,
        seen,
        ..
    } = evidence;
    json!({"rank": evidence.rank().name(), "source": source, "shows": shows, "seen": seen})
}

fn unknown(code: &str) -> Failure {
    let help = of_other_family(code)
        .or_else(|| did_you_mean(code, all_rules().iter().map(|rule| rule.code)));
    Failure::new(format!("there is no rule `{code}`"))
        .help(help.unwrap_or_else(|| "`reqc rule` lists all codes".to_owned()))
}

/// Returns the advice for a code whose family is missing or wrong.
fn of_other_family(code: &str) -> Option<String> {
    let (_, name) = code.rsplit_once('/').unwrap_or(("", code));
    let rules = all_rules();
    let mut named = rules.iter().filter(|rule| {
        rule.code
            .split_once('/')
            .is_some_and(|(_, known)| known == name)
    });
    let rule = named.next()?;
    Some(format!("did you mean `{}`?", rule.code))
}

fn page(rule: &Rule, with_evidence: bool, width: usize) -> Text {
    let mut page = text!(
        "{} ({})\n{}\n\n",
        rule.code,
        rule.severity.name(),
        rule.summary
    );
    if with_evidence {
        page.push(&wrapped(&rule.full_page(), width));
        page.push(&answers(rule, width));
        return page;
    }
    page.push(&wrapped(rule.page, width));
    if let Some(known) = amount_known(rule) {
        let more = format!(
            "\n{known}. `reqc rule {} --evidence` lists them.",
            rule.code
        );
        page.push(&wrapped(&more, width));
    }
    page
}

/// Wraps Markdown. Table rows and lines of code would lose their meaning, so they are not wrapped.
fn wrapped(page: &str, width: usize) -> Text {
    let mut wrapped = text!("");
    let mut is_code = false;
    for line in page.split('\n') {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        let is_whole = is_code || is_fence || line.starts_with('|');
        let line = match is_whole {
            true => Text::line(line),
            false => Text::join(&list::wrap(line, width), "\n"),
        };
        wrapped.push(&text!("{}\n", line));
    }
    wrapped
}

/// Returns a summary of the evidence and the error messages that are known for a rule; `None` if
/// there are none.
fn amount_known(rule: &Rule) -> Option<String> {
    let evidence = rule.evidence_by_rank();
    let of_rank = |rank: Rank| evidence.iter().filter(|it| it.rank() == rank).count();
    let amounts = [
        (of_rank(Rank::Recorded), "recorded request"),
        (of_rank(Rank::Provider), "provider publication"),
        (of_rank(Rank::Thread), "thread"),
        (of_rank(Rank::Other), "other source"),
        (
            Dictionary::bundled().of_rule(rule.code).count(),
            "error message",
        ),
    ];
    let known: Vec<String> = amounts
        .iter()
        .filter(|(amount, _)| *amount > 0)
        .map(|(amount, what)| count(*amount, what))
        .collect();
    (!known.is_empty()).then(|| format!("Evidence: {}", known.join(", ")))
}

/// Returns providers' answers to a body that breaks a rule.
fn answers(rule: &Rule, width: usize) -> Text {
    let mut answers = text!("");
    for (provider, refusal) in Dictionary::bundled().of_rule(rule.code) {
        let line = format!("* {}: {}", provider.name, refusal.shown());
        answers.push(&text!("{}\n", Text::join(&list::wrap(&line, width), "\n")));
    }
    match answers.is_empty() {
        true => answers,
        false => text!("\nWhat providers say:\n\n{}", answers),
    }
}
