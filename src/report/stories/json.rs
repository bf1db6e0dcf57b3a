//! Stories as JSON.

use serde_json::{Value, json};

use super::sentences::of_story;
use crate::traffic::{
    Break, Change, Loss, Origin, Place, Poison, Share, Stories, Story, ThinkingLoss,
    ThinkingLossKind, Unpriced,
};

/// Returns the stories as JSON.
pub fn stories_json(stories: &Stories) -> Value {
    json!({
        "version": 1,
        "forms": stories.forms.iter().map(|(form, requests)| json!({"form": form, "requests": requests})).collect::<Vec<_>>(),
        "stories": stories.stories.iter().map(story).collect::<Vec<_>>(),
        "passed_over": stories.passed_over,
        "unreadable": {"lines": stories.unreadable_lines, "first": stories.unreadable.as_ref().map(place)},
        "closed_early": stories.closed_early,
        "untold": stories.untold,
    })
}

fn place(place: &Place) -> Value {
    json!({"file": &*place.file, "line": place.line})
}

fn loss(loss: Loss) -> Value {
    json!({"tokens": loss.tokens, "requests": loss.requests, "dollars": loss.dollars})
}

fn story(story: &Story) -> Value {
    let growth = &story.growth;
    let points = growth.points.iter().map(|point| {
        let tokens: serde_json::Map<String, Value> = Share::ALL
            .iter()
            .zip(point.tokens)
            .map(|(share, tokens)| (share.name().to_owned(), tokens.into()))
            .collect();
        json!({"request": point.request, "tokens": tokens, "other": point.other, "counted": point.counted, "cached": point.cached})
    });
    let steepest = growth.steepest.iter().map(|step| {
        json!({"request": step.request, "at": step.at, "part": step.share.name(), "label": &*step.label, "tokens": step.tokens})
    });
    let counted = &story.counted;
    json!({
        "first": place(&story.first), "last": place(&story.last), "wire": story.wire.name(),
        "models": story.models.iter().map(|model| &**model).collect::<Vec<_>>(),
        "requests": story.requests, "retries": story.retries, "earlier": story.earlier,
        "rejected": story.refused, "rejection": story.refusal,
        "origin": origin(&story.origin),
        "breaks": story.breaks.iter().map(found).collect::<Vec<_>>(), "more_breaks": story.more_breaks,
        "compactions": story.compactions.iter()
            .map(|it| json!({"request": it.request, "before": it.before, "after": it.after})).collect::<Vec<_>>(),
        "thinking": story.thinking.iter().map(thinking).collect::<Vec<_>>(),
        "poison": story.poison.iter().map(poison).collect::<Vec<_>>(),
        "lost": loss(story.lost()),
        "counted": {
            "answers": counted.answers, "input": counted.input, "told": counted.told, "cache_read": counted.read, "cache_write": counted.written,
            "output": counted.output,
            "missed": counted.missed.as_ref().map(|it| json!({
                "request": it.request, "place": place(&it.place), "predicted": it.predicted, "counted": it.counted,
                "pause": it.pause, "requests": it.requests, "loss": loss(it.loss),
            })),
            "expired": counted.expired.as_ref().map(|it| json!({
                "request": it.request, "pause": it.pause, "requests": it.requests, "loss": loss(it.loss),
            })),
            "uncached": counted.uncached,
        },
        "growth": {
            "points": points.collect::<Vec<_>>(), "steepest": steepest.collect::<Vec<_>>(), "window": growth.window,
            "per_request": growth.per_request, "steps": growth.steps, "summary_at": growth.summary_at, "unsent": growth.unsent, "requests_left": growth.requests_left,
        },
        "unmarked": story.unmarked, "has_bodies": story.has_bodies,
        "sentences": of_story(story).into_iter().map(|it| it.text).collect::<Vec<_>>(),
    })
}

fn origin(origin: &Origin) -> Value {
    match origin {
        Origin::Began => json!({"kind": "began"}),
        Origin::Summary => json!({"kind": "summary"}),
        Origin::Fork { story, shared } => json!({"kind": "fork", "story": story, "shared": shared}),
    }
}

fn found(found: &Break) -> Value {
    let detail = match &found.change {
        Change::Tool(name) => json!(name),
        Change::ToolSet { added, removed } => json!({"added": added, "removed": removed}),
        Change::Removed(messages) | Change::Inserted(messages) => json!(messages),
        Change::Setting(name) => json!(name),
        Change::Model { from, to } => json!({"from": &**from, "to": &**to}),
        Change::Time
        | Change::Id
        | Change::ToolOrder
        | Change::System
        | Change::Message
        | Change::Thinking
        | Change::KeyOrder => Value::Null,
    };
    let unpriced = found.unpriced.map(|why| match why {
        Unpriced::NotCached => "not-cached",
        Unpriced::TooShort => "too-short",
        Unpriced::Expired => "expired",
    });
    json!({
        "change": found.change.name(), "detail": detail, "at": found.at, "byte": found.byte, "before": found.before,
        "after": found.after, "request": found.request, "place": place(&found.place), "loss": loss(found.loss),
        "unpriced": unpriced, "times": found.times,
    })
}

fn thinking(found: &ThinkingLoss) -> Value {
    let (kind, models) = match &found.kind {
        ThinkingLossKind::Dropped => ("dropped", Value::Null),
        ThinkingLossKind::OtherModel { from, to } => {
            ("other-model", json!({"from": &**from, "to": &**to}))
        }
        ThinkingLossKind::Unbound => ("unbound", Value::Null),
    };
    json!({
        "kind": kind, "models": models, "request": found.request, "place": place(&found.place), "at": found.at,
        "requests": found.requests,
    })
}

fn poison(found: &Poison) -> Value {
    json!({
        "rule": found.rule, "message": found.message, "help": found.help, "at": found.at, "also": found.also, "request": found.request,
        "place": place(&found.place), "requests": found.requests, "fixed_by": found.mended,
    })
}
