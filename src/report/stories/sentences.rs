//! The story of a conversation as a list of sentences.

use crate::diag::count;
use crate::report::thousands;
use crate::traffic::{
    Break, Change, Compaction, Counted, Growth, Loss, Missed, Origin, Place, Poison, Share,
    Stories, Story, ThinkingLoss, ThinkingLossKind, Unpriced,
};

/// A sentence, and the details shown below it.
#[derive(Debug, Default)]
pub(super) struct Sentence {
    /// `true` if the sentence reports something to fix.
    pub(super) is_finding: bool,
    pub(super) text: String,
    pub(super) before: Option<String>,
    pub(super) after: Option<String>,
    pub(super) help: Option<String>,
    pub(super) place: Option<Place>,
}

fn note(text: String) -> Sentence {
    Sentence {
        text,
        ..Sentence::default()
    }
}

/// Returns the heading of a story, for example
/// `conversation 2: 23 requests, claude-sonnet-5 (anthropic-messages), log.jsonl:1 to 29`.
pub(super) fn heading(at: usize, story: &Story) -> String {
    let models: Vec<&str> = story
        .models
        .iter()
        .map(|model| &**model)
        .filter(|model| !model.is_empty())
        .collect();
    let models = if models.is_empty() {
        "no model named".to_owned()
    } else {
        models.join(" → ")
    };
    let (first, last) = (&story.first, &story.last);
    let place = match first.file == last.file {
        true if first.line == last.line => format!("{}:{}", first.file, first.line),
        true => format!("{}:{} to {}", first.file, first.line, last.line),
        false => format!(
            "{}:{} to {}:{}",
            first.file, first.line, last.file, last.line
        ),
    };
    format!(
        "conversation {}: {}, {models} ({}), {place}",
        at + 1,
        count(story.requests, "request"),
        story.wire.name()
    )
}

/// Returns the last lines: the totals, and the number of omitted stories.
pub(super) fn summary(stories: &Stories) -> Vec<String> {
    let forms: Vec<String> = stories
        .forms
        .iter()
        .map(|(form, requests)| format!("{requests} of {form}"))
        .collect();
    // If all requests are plain bodies, the format is not mentioned.
    let forms = match stories.forms.as_slice() {
        [] | [("bodies", _)] => String::new(),
        _ => format!(" ({})", forms.join(", ")),
    };
    let all = count(stories.stories.len() + stories.untold, "conversation");
    let found = stories
        .stories
        .iter()
        .filter(|story| story.has_findings())
        .count();
    let verdict = match found {
        0 => "no problems found".to_owned(),
        1 => "1 conversation has problems".to_owned(),
        found => format!("{found} conversations have problems"),
    };
    let requests: usize = stories.forms.iter().map(|(_, requests)| requests).sum();
    let mut lines = vec![format!(
        "{}{forms} in {all}; {verdict}",
        count(requests, "request")
    )];
    let loss = stories
        .stories
        .iter()
        .map(Story::lost)
        .fold(Loss::default(), added);
    if loss.tokens > 0 {
        lines.push(format!(
            "read again because a prefix changed: {}",
            of_loss(loss)
        ));
    }
    if let Some(place) = &stories.unreadable {
        let more = stories.unreadable_lines;
        let which = if more == 1 {
            "1 line is"
        } else {
            &format!("{} lines are", thousands(more))
        };
        lines.push(format!(
            "{which} cut off or not JSON, and skipped; the first is {}:{}",
            place.file, place.line
        ));
    }
    if stories.passed_over > 0 {
        lines.push(format!(
            "{} without a request, skipped",
            match stories.passed_over {
                1 => "1 line or document".to_owned(),
                more => format!("{} lines or documents", thousands(more)),
            }
        ));
    }
    if stories.closed_early > 0 {
        let closed = count(stories.closed_early, "conversation");
        lines.push(format!("{closed} closed early, because too many were open; their later requests are reported as new conversations"));
    }
    lines
}

fn added(one: Loss, other: Loss) -> Loss {
    let dollars = match (one.dollars, other.dollars) {
        (Some(a), Some(b)) => Some(a + b),
        (one, other) => one.or(other),
    };
    Loss {
        tokens: one.tokens + other.tokens,
        requests: one.requests + other.requests,
        dollars,
    }
}

fn of_loss(loss: Loss) -> String {
    format!("{} tokens{}", thousands(loss.tokens), price(loss))
}

fn read_again(loss: Loss) -> String {
    format!(
        "{} tokens read again{}",
        thousands(loss.tokens),
        price(loss)
    )
}

fn price(loss: Loss) -> String {
    let dollars = loss.dollars;
    let price = dollars.map(|dollars| format!(", about {}", money(dollars)));
    price.unwrap_or_default()
}

fn money(dollars: f64) -> String {
    if dollars >= 0.01 {
        format!("${dollars:.2}")
    } else {
        format!("${dollars:.4}")
    }
}

/// Returns all sentences of a story, in report order.
pub(super) fn of_story(story: &Story) -> Vec<Sentence> {
    let mut sentences: Vec<Sentence> = origin(story).into_iter().chain(counts(story)).collect();
    sentences.extend(story.breaks.iter().map(|found| of_break(found, story)));
    if story.more_breaks > 0 {
        sentences.push(note(format!(
            "{} at further places",
            count(story.more_breaks, "change")
        )));
    }
    if story.unmarked > 1 {
        let requests = count(story.unmarked, "request");
        let text = format!(
            "nothing is cached in {requests}: no breakpoint (`cache_control`) asks the server to keep the prefix"
        );
        sentences.push(note(text));
    }
    sentences.extend(
        story
            .compactions
            .iter()
            .take(MOST_COMPACTIONS)
            .map(compaction),
    );
    sentences.extend(story.thinking.iter().map(thinking));
    sentences.extend(story.poison.iter().map(|found| poison(found, story)));
    sentences.extend(usage(&story.counted));
    sentences.extend(growth(&story.growth, story.has_bodies));
    sentences
}

/// The maximum number of summaries reported for a conversation.
const MOST_COMPACTIONS: usize = 10;

fn origin(story: &Story) -> Option<Sentence> {
    match story.origin {
        Origin::Began => None,
        Origin::Summary => Some(note(
            "begins with a summary of an earlier conversation".to_owned(),
        )),
        Origin::Fork {
            story: from,
            shared,
        } => {
            let shared = count(shared, "message");
            Some(note(format!(
                "a fork of conversation {}: {shared} in common",
                from + 1
            )))
        }
    }
}

fn counts(story: &Story) -> Vec<Sentence> {
    let mut told = Vec::new();
    if story.retries > 0 {
        told.push(note(format!(
            "{} of a request that was sent before",
            count(story.retries, "exact repetition")
        )));
    }
    if story.earlier > 0 {
        told.push(note(format!(
            "{} shorter than an earlier one: out of order, or sent again",
            count(story.earlier, "request")
        )));
    }
    if let Some(refusal) = &story.refusal {
        told.push(note(format!(
            "rejected by the provider: {}; the first error was: {refusal}",
            count(story.refused, "request")
        )));
    }
    told
}

fn of_break(found: &Break, story: &Story) -> Sentence {
    let what = change(found);
    let byte = found
        .byte
        .map(|byte| format!(", from byte {byte}"))
        .unwrap_or_default();
    let cost = cost(found);
    let lost = if found.is_costly() {
        "cache lost"
    } else {
        "the prefix changed"
    };
    Sentence {
        is_finding: found.is_costly(),
        text: format!("{lost} at request {}: {what}{byte}; {cost}", found.request),
        before: found.before.clone(),
        after: found.after.clone(),
        help: help(&found.change, story).map(str::to_owned),
        place: Some(found.place.clone()),
    }
}

fn change(found: &Break) -> String {
    let at = &found.at;
    match &found.change {
        Change::Time => format!("the date or time in `{at}`"),
        Change::Id => format!("an id in `{at}`"),
        Change::Tool(name) => format!("the definition of the tool `{name}` (`{at}`)"),
        Change::ToolOrder => "tools in a different order".to_owned(),
        Change::ToolSet { added, removed } => {
            let side =
                |word: &str, names: &[String]| format!("{word} {}{}", list(names), more(names));
            match (added.is_empty(), removed.is_empty()) {
                (false, true) => side("new tools:", added),
                (true, _) => side("removed tools:", removed),
                (false, false) => format!(
                    "{}; {}",
                    side("new tools:", added),
                    side("removed tools:", removed)
                ),
            }
        }
        Change::System => format!("the system prompt, `{at}`"),
        Change::Message => format!("a message that was sent before, `{at}`"),
        Change::Thinking => format!("thinking that was left out of `{at}`"),
        Change::KeyOrder => format!("members in a different order in `{at}`"),
        Change::Removed(messages) => format!("{} left out at `{at}`", count(*messages, "message")),
        Change::Inserted(messages) => format!("{} inserted at `{at}`", count(*messages, "message")),
        Change::Setting(name) => format!("the setting `{name}`"),
        Change::Model { from, to } => {
            format!("the model `{to}` instead of `{from}`, which has its own cache")
        }
    }
}

fn list(names: &[String]) -> String {
    names
        .iter()
        .take(5)
        .map(|name| format!("`{name}`"))
        .collect::<Vec<_>>()
        .join(", ")
}

fn more(names: &[String]) -> String {
    if names.len() > 5 {
        format!(" and {} more", names.len() - 5)
    } else {
        String::new()
    }
}

fn cost(found: &Break) -> String {
    let times = match found.times {
        1 => String::new(),
        times => format!(" (changed {times} times)"),
    };
    let loss = found.loss;
    if loss.requests == 0 {
        let why = match found.unpriced {
            Some(Unpriced::NotCached) | None => "no breakpoint asked the server to cache anything",
            Some(Unpriced::TooShort) => "too short to be cached",
            Some(Unpriced::Expired) => "the cache had expired by then anyway",
        };
        return format!("{why}{times}");
    }
    let each = loss.tokens / loss.requests.max(1) as u64;
    let dollars = price(loss);
    match loss.requests {
        1 => format!("{} tokens read again{dollars}{times}", thousands(each)),
        requests => format!(
            "{} tokens read again in each of {requests} requests{dollars}",
            thousands(each)
        ),
    }
}

fn help(change: &Change, story: &Story) -> Option<&'static str> {
    Some(match change {
        Change::Time | Change::Id => "put it in the newest user message, with nothing after it",
        Change::Tool(_) | Change::ToolSet { .. } => {
            "keep the tools unchanged after the first request of a conversation"
        }
        Change::ToolOrder => "sort the tools, or keep them in an ordered list",
        Change::System => {
            "keep the system prompt of a conversation unchanged, and put changes in a message"
        }
        Change::KeyOrder => "write JSON with its members in a fixed order",
        Change::Message | Change::Inserted(_) => {
            "send earlier messages again exactly as they were, and append new ones"
        }
        Change::Removed(_) => {
            "truncate rarely, in large steps, or replace the removed part with a summary"
        }
        Change::Thinking => "send thinking blocks back unchanged",
        Change::Setting(_) if story.has_bodies => "keep it for the whole conversation",
        Change::Setting(_) | Change::Model { .. } => return None,
    })
}

fn compaction(found: &Compaction) -> Sentence {
    let sizes = format!(
        "{} tokens of history became {}",
        thousands(found.before),
        thousands(found.after)
    );
    note(format!(
        "a summary replaced the history at request {}: {sizes}; the cache necessarily starts over there",
        found.request
    ))
}

fn thinking(found: &ThinkingLoss) -> Sentence {
    let (at, request) = (&found.at, found.request);
    let (text, help) = match &found.kind {
        ThinkingLossKind::Dropped => (
            format!(
                "thinking is dropped at request {request}: `{at}` no longer has its signed blocks"
            ),
            "send the blocks of an answer back unchanged, including signatures",
        ),
        ThinkingLossKind::OtherModel { from, to } => (
            format!(
                "thinking that `{from}` signed goes to `{to}` from request {request} on (`{at}`)"
            ),
            "leave out thinking from another model: it is rejected or silently ignored",
        ),
        ThinkingLossKind::Unbound => (
            format!(
                "thinking becomes invalid at request {request}: the content before `{at}` changed"
            ),
            "keep the earlier content unchanged; to continue, leave out all thinking after the change",
        ),
    };
    let times = if found.requests > 1 {
        format!(", {} requests in all", found.requests)
    } else {
        String::new()
    };
    Sentence {
        is_finding: true,
        text: format!("{text}{times}"),
        help: Some(help.to_owned()),
        place: Some(found.place.clone()),
        ..Sentence::default()
    }
}

fn poison(found: &Poison, story: &Story) -> Sentence {
    let reach = match found.mended {
        Some(next) => format!("it was removed by request {next}"),
        None if found.request == story.requests => "it is in the last request".to_owned(),
        None => format!(
            "it stays in every later request: {} of {}",
            found.requests, story.requests
        ),
    };
    let revive = match found.mended {
        Some(_) => String::new(),
        None => format!(
            "to continue this session, fix or remove `{}`{} in its history",
            found.at,
            match found.also {
                0 => "",
                _ => " and the others",
            }
        ),
    };
    let also = match found.also {
        0 => String::new(),
        more => format!(" and {}", count(more, "further message")),
    };
    let help = [found.help.clone().unwrap_or_default(), revive]
        .into_iter()
        .filter(|part| !part.is_empty());
    let help = help.collect::<Vec<_>>().join("; ");
    Sentence {
        is_finding: true,
        text: format!(
            "rejected since request {}: `{}`{also}: {} [{}]; {reach}",
            found.request, found.at, found.message, found.rule
        ),
        help: (!help.is_empty()).then_some(help),
        place: Some(found.place.clone()),
        ..Sentence::default()
    }
}

/// Returns the part of the input that came from the cache, in words.
fn of_cache(counted: &Counted) -> String {
    if counted.told == 0 {
        return "the log does not say how many of them were cached".to_owned();
    }
    let share = percent(counted.read, counted.told_input);
    let of = match counted.answers - counted.told {
        0 => "of them".to_owned(),
        _ => format!(
            "of those in the {} that report it",
            count(counted.told, "answer")
        ),
    };
    format!(
        "{share} {of} from the cache, {} written to it",
        thousands(counted.written)
    )
}

/// Returns a share as a rounded percentage. The result is 0 % only if the part is empty, and 100 %
/// only if the part is the whole.
fn percent(part: u64, all: u64) -> String {
    // Some clients report more cached tokens than tokens in total.
    let (part, all) = (u128::from(part.min(all)), u128::from(all.max(1)));
    let rounded = (part * 200 + all) / (all * 2);
    match rounded {
        0 if part > 0 => "less than 1 %".to_owned(),
        100 if part < all => "99 %".to_owned(),
        share => format!("{share} %"),
    }
}

fn tokens_of(tokens: u64, kind: &str) -> String {
    let noun = if tokens == 1 { "token" } else { "tokens" };
    format!("{} {kind} {noun}", thousands(tokens))
}

fn usage(counted: &Counted) -> Vec<Sentence> {
    let mut told = Vec::new();
    if counted.answers > 0 {
        told.push(note(format!(
            "counted by the provider in {}: {} input tokens, {}, {}",
            count(counted.answers, "answer"),
            thousands(counted.input),
            of_cache(counted),
            tokens_of(counted.output, "output")
        )));
    }
    told.extend(counted.missed.as_ref().map(missed));
    if counted.uncached > 0 {
        let begin = if counted.uncached == 1 {
            "begins"
        } else {
            "begin"
        };
        told.push(note(format!(
            "nothing came from the cache, although {} {begin} with content sent before: the server does not cache, or does not report it",
            count(counted.uncached, "request")
        )));
    }
    if let Some(expired) = &counted.expired {
        let pauses = match expired.loss.requests {
            1 => format!(
                "a pause of {} before request {}",
                minutes(expired.pause),
                expired.request
            ),
            requests => format!(
                "pauses before {}, the longest of {}",
                listed(&expired.requests, requests),
                minutes(expired.pause)
            ),
        };
        told.push(note(format!(
            "the cache expired in {pauses}: {}",
            read_again(expired.loss)
        )));
    }
    told
}

fn missed(missed: &Missed) -> Sentence {
    let pause = missed.pause.filter(|pause| *pause >= 60);
    let pause = pause.map(|pause| format!(" after a pause of {}", minutes(pause)));
    let all = match missed.loss.requests {
        1 => read_again(missed.loss),
        requests => format!(
            "{} in {}",
            read_again(missed.loss),
            listed(&missed.requests, requests)
        ),
    };
    let text = format!(
        "the cache was missed at request {}{}: according to the requests, {} tokens should have come from it, but {} did; {all}",
        missed.request,
        pause.unwrap_or_default(),
        thousands(missed.predicted),
        thousands(missed.counted)
    );
    let help = "something outside the log may have changed (headers, tools, the system prompt), or the server dropped the cache early";
    Sentence {
        is_finding: true,
        text,
        help: Some(help.to_owned()),
        place: Some(missed.place.clone()),
        ..Sentence::default()
    }
}

/// Returns the total number of requests, and the numbers of the first few.
fn listed(requests: &[usize], all: usize) -> String {
    const MOST: usize = 5;
    let shown: Vec<String> = requests
        .iter()
        .take(MOST)
        .map(ToString::to_string)
        .collect();
    let more = if all > MOST { ", …" } else { "" };
    format!("{} ({}{more})", count(all, "request"), shown.join(", "))
}

fn minutes(seconds: u64) -> String {
    match (seconds + 30) / 60 {
        0 | 1 => "1 minute".to_owned(),
        minutes => format!("{} minutes", thousands(minutes)),
    }
}

fn growth(growth: &Growth, has_bodies: bool) -> Vec<Sentence> {
    let (Some(first), Some(last)) = (growth.points.first(), growth.points.last()) else {
        return Vec::new();
    };
    let parts = Share::ALL
        .iter()
        .zip(last.tokens)
        .filter(|(_, tokens)| *tokens > 0);
    let parts: Vec<String> = parts
        .map(|(share, tokens)| format!("{} {}", share.name(), thousands(tokens)))
        .collect();
    let rest = match (last.other, has_bodies) {
        (0, true) => None,
        (0, false) => Some("; the file contains only the messages".to_owned()),
        (other, _) => Some(format!(", not in the file {}", thousands(other))),
    };
    let rest = match growth.unsent {
        Some(all) => Some(format!(
            "; the messages in the file have {} tokens, so not all were sent",
            thousands(all)
        )),
        None => rest,
    };
    let counted = if growth.is_counted {
        ", as counted by the provider"
    } else {
        ""
    };
    let mut text = format!(
        "size{counted}: {} → {} tokens ({}{})",
        thousands(first.total()),
        thousands(last.total()),
        parts.join(", "),
        rest.unwrap_or_default()
    );
    text.push_str(&forecast(growth).unwrap_or_default());
    if parts.is_empty() {
        return Vec::new();
    }
    let mut told = vec![note(text)];
    let steps: Vec<String> = growth.steepest.iter().take(3).map(step).collect();
    if growth.points.len() > 1 && !steps.is_empty() {
        told.push(note(format!("largest messages: {}", steps.join("; "))));
    }
    told
}

/// Returns the pace at which requests grow, and when a limit will be reached at this pace.
fn forecast(growth: &Growth) -> Option<String> {
    let mut text = format!(
        "; growing by {} tokens per request (the median of the last {} steps)",
        thousands(growth.per_request?),
        growth.steps
    );
    if let Some(left) = growth.requests_left {
        let more = match left {
            1 => "1 more request".to_owned(),
            left => format!("{} more requests", thousands(left)),
        };
        let end = match (growth.summary_at, growth.window) {
            (Some(size), _) => format!(
                "the size at which the last summary replaced the history, {} tokens, is reached",
                thousands(size)
            ),
            (None, window) => format!(
                "the context window of {} tokens is full",
                thousands(window.unwrap_or_default())
            ),
        };
        text.push_str(&format!("; at this rate, {end} after {more}"));
    }
    Some(text)
}

fn step(step: &crate::traffic::Step) -> String {
    format!(
        "`{}` ({}, {}) with {} tokens, since request {}",
        step.at,
        step.share.name(),
        step.label,
        thousands(step.tokens),
        step.request
    )
}
