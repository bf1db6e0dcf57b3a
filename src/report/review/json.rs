//! For programs; `docs/json.md` describes the document.

use serde_json::{Value, json};

use super::{summary, what};
use crate::compile::Rerouted;
use crate::diff::{BodyId, ChangeKind, FileChange, Group};
use crate::report::json::findings;
use crate::report::lowered;
use crate::review::{Cause, Class, Edit, EditKind, Listed, Review};
use crate::text::Text;

/// The whole review as one document.
pub fn review_json(review: &Review, base: Option<&Text>) -> Text {
    let roll = &review.roll;
    let caused = review.causes.iter().flat_map(|cause| {
        let place = cause.edits.first().map(Edit::place);
        cause.groups.iter().map(move |group| group_value(group, place.as_deref()))
    });
    let others = review.unexplained.iter().map(|it| group_value(&it.group, it.cause.as_deref()));
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
        },
        "causes": review.causes.iter().map(cause_value).collect::<Vec<_>>(),
        "changes": caused.chain(others).collect::<Vec<_>>(),
        "new_agents": listed(&roll.agents),
        "gone_agents": listed(&roll.gone_agents),
        "renamed_agents": roll.renamed.iter().map(|it| json!({"from": &*it.from, "to": &*it.to})).collect::<Vec<_>>(),
        "new_contexts": listed(&roll.contexts),
        "gone_contexts": listed(&roll.gone_contexts),
        "rerouted": review.rerouted.iter().map(rerouted_value).collect::<Vec<_>>(),
        "silent_edits": review.beside().map(edit_value).collect::<Vec<_>>(),
        "lowered": lowered::values(&review.lowered),
        "diagnostics": findings(&review.report),
    }))
}

fn listed(list: &[Listed]) -> Vec<Value> {
    list.iter().map(|it| json!({"name": &*it.name, "path": &*it.path, "bodies": it.bodies})).collect()
}

fn rerouted_value(it: &Rerouted) -> Value {
    json!({"roster": &*it.roster, "from": it.from.as_deref(), "to": it.to.as_deref(), "files": it.files, "others": it.has_others})
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
        "edits": cause.edits.iter().map(edit_value).collect::<Vec<_>>(),
        "class": cause.class().name(),
        "agents": cause.agents().iter().map(|name| &***name).collect::<Vec<_>>(),
        "bodies": cause.bodies(),
        "files": cause.changes.iter().map(|file| subject_value(&file.subject)).collect::<Vec<_>>(),
        "changes": cause.groups.iter().map(|group| group_value(group, None)).collect::<Vec<_>>(),
        "prefix_lost": prefix.collect::<Vec<_>>(),
        "broken_agents": cause.broken.iter().map(|name| &**name).collect::<Vec<_>>(),
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
        "bodies": group.subjects.iter().map(subject_value).collect::<Vec<_>>(),
    })
}
