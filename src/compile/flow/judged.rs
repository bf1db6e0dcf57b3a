//! Determines which conversation content certain body members contain. Results are cached.

use std::sync::Arc;

use crate::check::history;
use crate::flow::{self, Expected, Judged};
use crate::import::forms;
use crate::memory::{Identity, Question};
use crate::provider::WireFormat;
use crate::unit::{MemberRef, Plan, Request, Sameness, SystemPrompt, stand_in};

/// A [`Question`] about the conversation content that certain body members contain.
#[derive(PartialEq, Eq, Hash)]
struct JudgedOf {
    data: Identity,
    wire: WireFormat,
    /// The system prompt; `None` if there is no prompt or a placeholder replaces it.
    prompt: Option<SystemPrompt>,
    is_hollow: bool,
    members: Vec<(Arc<str>, Option<Sameness>)>,
}

impl Question for JudgedOf {
    type Answer = Arc<Judged>;

    fn weight(&self, answer: &Arc<Judged>) -> usize {
        let members = self
            .members
            .iter()
            .map(|(_, member)| 32 + member.as_ref().map_or(0, Sameness::weight));
        256 + members.sum::<usize>() + 256 * answer.losses.len()
    }
}

/// Determines which conversation content certain body members contain.
pub(super) fn judged_members(
    plan: &Plan<'_>,
    request: &Request<'_>,
    prompt: Option<&SystemPrompt>,
    members: &[MemberRef<'_>],
) -> Arc<Judged> {
    let is_hollow = members.iter().any(|member| member.prompt().is_some());
    let known = members
        .iter()
        .map(|member| Some((Arc::from(member.name), Some(member.sameness()?))));
    let system_prompt = if is_hollow {
        Some(stand_in())
    } else {
        prompt.map(SystemPrompt::as_str)
    };
    match (request.memory, known.collect::<Option<Vec<_>>>()) {
        (Some(memory), Some(known)) => {
            let data = request.conversation.data_id(plan.api);
            let prompt = prompt.filter(|_| !is_hollow).cloned();
            let asked = JudgedOf {
                data,
                wire: plan.wire,
                prompt,
                is_hollow,
                members: known,
            };
            memory.ask(asked, || judge(plan, request, system_prompt, members))
        }
        _ => judge(plan, request, system_prompt, members),
    }
}

fn judge(
    plan: &Plan<'_>,
    request: &Request<'_>,
    system_prompt: Option<&str>,
    members: &[MemberRef<'_>],
) -> Arc<Judged> {
    let values: Vec<_> = members
        .iter()
        .map(|member| (member.name, member.shared_value()))
        .collect();
    let history = request.conversation.history_for(plan.api);
    let expected = Expected {
        conversation: &request.conversation.conversation,
        history: &history,
        system_prompt,
        offers_tools: false,
    };
    Arc::new(flow::judge(plan.wire, &values, &expected))
}

/// Returns the members that contain content.
pub(super) fn content_members(wire: WireFormat) -> Vec<&'static str> {
    const WITHOUT_HISTORY: [&str; 7] = [
        "prompt",
        "suffix",
        "input_prefix",
        "input_suffix",
        "input_extra",
        "images",
        "system",
    ];
    let of_history = history::member_of(wire).into_iter().collect::<Vec<_>>();
    let of_history = if of_history.is_empty() {
        WITHOUT_HISTORY.to_vec()
    } else {
        of_history
    };
    forms::prompt_members(wire)
        .iter()
        .copied()
        .chain(of_history)
        .collect()
}
