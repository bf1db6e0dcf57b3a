//! Reviews as JSON; `docs/json.md` describes the document.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{errors, example, summary, what};
use crate::compile::compare::{Before, BrokenAgent};
use crate::compile::route::Rerouted;
use crate::diff::{BodyId, ChangeKind, FileChange, Group};
use crate::report::json::{finding, findings};
use crate::report::lowered;
use crate::review::{Cause, Class, Edit, EditKind, Listed, Renamed, Review};
use crate::text::Text;

/// Returns the whole review as one document.
pub fn review_json(review: &Review, base: Option<&Text>) -> Text {
    let roll = &review.roll;
    let caused = review.causes.iter().flat_map(|cause| {
        let place = cause.edits.first().map(Edit::place);
        cause
            .groups
            .iter()
            .map(move |group| group_value(group, place.as_deref()))
    });
    let others = review
        .unexplained
        .iter()
        .map(|it| group_value(&it.group, it.cause.as_deref()));
    Text::json(&json!({
        "version": 1,
        "summary": {
            "text": summary(review),
            "base": base.map(Text::as_str),
            "class": review.class().name(),
            "causes": review.causes.len(),
            "agents": review.agents().len(),
            "all_agents": review.report.summary.agents,
            "bodies": review.bodies(),
            "agents_losing_prefix": review.agents_losing_prefix().len(),
            "tokens": review.growth.map(|it| json!({"more": it.tokens, "bodies": it.bodies, "is_tokenized": it.is_tokenized})),
            "broken_agents": review.newly_broken().count(),
            "fixed_agents": review.mended.len(),
            "uncompared_agents": review.uncompared().count(),
        },
        "broken_agents": review.broken.iter().filter(|it| it.before != Before::Broken).map(|it| broken_value(review, it)).collect::<Vec<_>>(),
        "fixed_agents": names(&review.mended),
        "uncompared_agents": review.uncompared().map(|name| &**name).collect::<Vec<_>>(),
        "causes": review.causes.iter().map(cause_value).collect::<Vec<_>>(),
        "changes": caused.chain(others).collect::<Vec<_>>(),
        "new_agents": listed(&roll.agents),
        "gone_agents": listed(&roll.gone_agents),
        "renamed_agents": roll.renamed.iter().map(renamed).collect::<Vec<_>>(),
        "new_contexts": listed(&roll.contexts),
        "gone_contexts": listed(&roll.gone_contexts),
        "renamed_contexts": roll.renamed_contexts.iter().map(renamed).collect::<Vec<_>>(),
        "broken_contexts": listed(&roll.broken_contexts),
        "rerouted": review.rerouted.iter().map(rerouted_value).collect::<Vec<_>>(),
        "silent_edits": Edit::shown(review.beside()).iter().map(edit_value).collect::<Vec<_>>(),
        "lowered": lowered::values(&review.lowered),
        "diagnostics": findings(&review.report),
    }))
}

fn names(names: &BTreeSet<Arc<str>>) -> Vec<&str> {
    names.iter().map(AsRef::as_ref).collect()
}

/// Returns an agent that does not compile, its errors, and the edits that break it.
fn broken_value(review: &Review, broken: &BrokenAgent) -> Value {
    let agent = BTreeSet::from([Arc::clone(&broken.agent)]);
    let errors = errors(review, &agent)
        .into_iter()
        .map(|error| finding(error, &review.report));
    let causes = review
        .causes
        .iter()
        .filter(|cause| cause.broken.contains(&broken.agent));
    let places = causes
        .flat_map(|cause| Edit::shown(&cause.edits))
        .map(|edit| edit.place());
    json!({
        "agent": &*broken.agent,
        "is_new": broken.before == Before::Absent,
        "causes": places.collect::<Vec<_>>(),
        "errors": errors.collect::<Vec<_>>(),
    })
}

fn renamed(it: &Renamed) -> Value {
    json!({"from": &*it.from, "to": &*it.to})
}

fn listed(list: &[Listed]) -> Vec<Value> {
    list.iter()
        .map(|it| json!({"name": &*it.name, "path": &*it.path, "bodies": it.bodies}))
        .collect()
}

fn rerouted_value(it: &Rerouted) -> Value {
    json!({"roster": &*it.roster, "from": it.from.as_deref(), "to": it.to.as_deref(), "files": it.files.iter().map(|it| example(it)).collect::<Vec<_>>(), "others": it.has_others})
}

fn edit_value(edit: &Edit) -> Value {
    let kind = match &edit.kind {
        EditKind::Added => "added",
        EditKind::Removed => "removed",
        EditKind::Moved { .. } => "moved",
        EditKind::Key(_) => "key",
        EditKind::Bundled => "bundled",
        _ => "lines",
    };
    let hunks = edit.hunks.iter().map(|hunk| {
        json!({"old_line": hunk.old_line, "new_line": hunk.new_line, "removed": hunk.removed, "added": hunk.added})
    });
    json!({"path": &*edit.path, "place": edit.place(), "kind": kind, "key": edit.key(), "what": what(edit), "hunks": hunks.collect::<Vec<_>>()})
}

fn cause_value(cause: &Cause) -> Value {
    let prefix = cause.prefix.iter().map(|(subject, loss)| {
        let mut value = subject_value(subject);
        value["pointer"] = json!(loss.pointer);
        value["share"] = json!((loss.share * 1000.0).round() / 1000.0);
        value
    });
    json!({
        "edits": Edit::shown(&cause.edits).iter().map(edit_value).collect::<Vec<_>>(),
        "class": cause.class().name(),
        "agents": cause.agents().iter().map(|name| &***name).collect::<Vec<_>>(),
        "bodies": cause.bodies(),
        "files": cause.changes.iter().map(|file| subject_value(&file.subject)).collect::<Vec<_>>(),
        "changes": cause.groups.iter().map(|group| group_value(group, None)).collect::<Vec<_>>(),
        "prefix_lost": prefix.collect::<Vec<_>>(),
        "broken_agents": names(&cause.broken),
        "fixed_agents": names(&cause.mended),
    })
}

fn subject_value(subject: &BodyId) -> Value {
    json!({"agent": &*subject.agent, "context": subject.context.as_deref()})
}

pub(in crate::report) fn group_value(group: &Group, cause: Option<&str>) -> Value {
    let (change, old, new) = match &group.change.kind {
        ChangeKind::File(FileChange::New) => ("added", Value::Null, Value::Null),
        ChangeKind::File(FileChange::Gone) => ("removed", Value::Null, Value::Null),
        ChangeKind::File(FileChange::Reformatted) => ("reformatted", Value::Null, Value::Null),
        ChangeKind::File(FileChange::Broken) => ("broken", Value::Null, Value::Null),
        ChangeKind::Added(value) => ("added", Value::Null, value.clone()),
        ChangeKind::Removed(value) => ("removed", value.clone(), Value::Null),
        ChangeKind::Replaced(old, new) => ("replaced", old.clone(), new.clone()),
        ChangeKind::Reordered(old, new) => ("reordered", json!(old), json!(new)),
    };
    json!({
        "pointer": if matches!(group.change.kind, ChangeKind::File(_)) { "" } else { &group.pointer },
        "change": change,
        "class": Class::of_group(group).name(),
        "old": old,
        "new": new,
        "cause": cause,
        "variants": group.variants,
        "moved": group.is_moved,
        "bodies": group.subjects.iter().map(subject_value).collect::<Vec<_>>(),
    })
}
