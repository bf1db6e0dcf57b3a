//! Checks bodies against the limits in `[[budget]]`.

use std::sync::Arc;

use serde_json::Value;

use super::compiler::Compiler;
use super::explain::places::Places;
use super::pairing::Compiled;
use super::rules;
use crate::check::prefix;
use crate::conversation::TaskKind;
use crate::diag::{Diagnostic, Findings};
use crate::json::Pointer;
use crate::provider::WireFormat;
use crate::repo::Budget;
use crate::source::{Span, Spanned};
use crate::text::thousands;
use crate::tokens::{PartKind, TokenEstimate};
use crate::unit::{Body, KeyOrValue, Plan, Record};

/// The measure that a budget limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    Tokens,
    Bytes,
    Tools,
    CachedShare,
}

impl Measure {
    const ALL: [Measure; 4] = [
        Measure::Tokens,
        Measure::Bytes,
        Measure::Tools,
        Measure::CachedShare,
    ];
}

/// An agent's worst excess over one limit in a budget.
struct Excess {
    /// The index of the budget.
    budget: usize,
    measure: Measure,
    /// The location where the limit is set.
    at: Span,
    /// The amount by which the body exceeds the limit.
    distance: f64,
    message: String,
    /// The location where the most expensive part of the body was written, and a description of
    /// that part.
    dearest: Option<(Span, String)>,
    /// The contexts in which the limit is exceeded.
    contexts: Vec<Arc<str>>,
}

/// The budget limits that an agent's bodies exceed.
#[derive(Default)]
pub(super) struct AgentBudgets {
    excesses: Vec<Excess>,
}

/// A limit that a body exceeds.
struct Beyond {
    /// The location where the limit is set.
    at: Span,
    /// The amount by which the body exceeds the limit.
    distance: f64,
    /// The measured amount, as a phrase that begins with a verb.
    taken: String,
    /// The limit, as a phrase that completes `its budget …`.
    limit: String,
}

/// The measured amounts of a body.
struct Taken {
    estimate: TokenEstimate,
    bytes: usize,
    tools: usize,
    cached: Option<f64>,
}

impl AgentBudgets {
    /// Checks a body against the budgets that apply to it.
    pub(super) fn hold(&mut self, made: &Compiled<'_>, model: Option<&str>) {
        let Compiled {
            compiler,
            plan,
            loaded,
            body,
            ..
        } = made;
        let context = &loaded.context.name;
        let budgets = compiler.repo.config.budgets.iter().enumerate();
        let own: Vec<(usize, &Budget)> = budgets
            .filter(|(_, budget)| budget.is_for(plan.name(), context))
            .collect();
        if own.is_empty() {
            return;
        }
        let taken = Taken::of(plan, body, model);
        for (number, budget) in own {
            for measure in Measure::ALL {
                let Some(Beyond {
                    at,
                    distance,
                    taken: own,
                    limit,
                }) = taken.excess(budget, measure)
                else {
                    continue;
                };
                let message = format!("`{}` {own} in `{context}`: its budget {limit}", plan.name());
                let known = self
                    .excesses
                    .iter()
                    .position(|it| it.budget == number && it.measure == measure);
                let index = known.unwrap_or_else(|| {
                    let (contexts, message) = (Vec::new(), String::new());
                    let distance = f64::NEG_INFINITY;
                    self.excesses.push(Excess {
                        budget: number,
                        measure,
                        at,
                        distance,
                        message,
                        dearest: None,
                        contexts,
                    });
                    self.excesses.len() - 1
                });
                let excess = &mut self.excesses[index];
                excess.contexts.push(Arc::clone(context));
                if distance > excess.distance {
                    let dearest = taken.dearest(measure, body.value());
                    let dearest = dearest.map(|(pointer, what)| (writer(made, pointer), what));
                    (excess.distance, excess.message, excess.dearest) =
                        (distance, message, dearest);
                }
            }
        }
    }

    /// Reports the exceeded limits, one finding for each.
    pub(super) fn tell(self, plan: &Plan<'_>, findings: &mut Findings) {
        for excess in self.excesses {
            let mut finding = Diagnostic::new(&rules::BUDGET_EXCEEDED, excess.at, excess.message);
            finding = finding.in_sense(Some(plan.name().to_string()));
            if let Some((span, what)) = excess.dearest {
                finding = finding.related(span, what);
            }
            for context in &excess.contexts {
                finding = finding.reaching(plan.name(), Some(context));
            }
            findings.push(finding.help(match excess.measure {
                Measure::Tokens | Measure::Bytes => {
                    "shorten the most expensive part, or raise the budget and explain why in the review"
                }
                Measure::Tools => "remove tools that this agent does not need, or raise the budget",
                Measure::CachedShare => {
                    "move unchanging content to the front, set a breakpoint after it, or lower the budget"
                }
            }));
        }
    }
}

impl Taken {
    fn of(plan: &Plan<'_>, body: &Body, model: Option<&str>) -> Taken {
        let value = body.value();
        Taken {
            estimate: TokenEstimate::of(value, plan.wire, plan.model(model)),
            bytes: body.compact().len(),
            tools: tools(value),
            cached: (plan.kind == TaskKind::Chat)
                .then(|| cached_share(value, plan.wire))
                .flatten(),
        }
    }

    /// Compares a body with one limit in a budget; returns `None` if the body is within the limit.
    fn excess(&self, budget: &Budget, measure: Measure) -> Option<Beyond> {
        match measure {
            Measure::Tokens => {
                let unit = Unit {
                    before: if self.estimate.is_tokenized {
                        ""
                    } else {
                        "about "
                    },
                    name: "tokens",
                };
                beyond(budget.tokens.as_ref(), self.estimate.total(), unit)
            }
            Measure::Bytes => beyond(budget.bytes.as_ref(), self.bytes as u64, Unit::of("bytes")),
            Measure::Tools => beyond(budget.tools.as_ref(), self.tools as u64, Unit::of("tools")),
            Measure::CachedShare => {
                let (least, share) = (budget.cached_share.as_ref()?, self.cached?);
                let taken = format!("gets only {} of its prefix from the cache", percent(share));
                let limit = format!("requires at least {}", percent(least.value));
                let distance = least.value - share;
                (share < least.value).then_some(Beyond {
                    at: least.span,
                    distance,
                    taken,
                    limit,
                })
            }
        }
    }

    /// Returns the pointer to the most expensive part of a body, and a description of that part.
    fn dearest(&self, measure: Measure, body: &Value) -> Option<(Pointer, String)> {
        let parts = || {
            self.estimate
                .parts
                .iter()
                .filter(|part| !part.pointer.is_empty())
        };
        match measure {
            Measure::Tokens => {
                let part = parts().max_by_key(|part| part.tokens)?;
                let what = format!(
                    "the most expensive part: `{}`, {} tokens",
                    part.pointer,
                    thousands(part.tokens)
                );
                Some((Pointer::parse(&part.pointer), what))
            }
            Measure::Bytes => {
                let part = parts().max_by_key(|part| size_at(body, &part.pointer))?;
                let what = format!(
                    "the largest part: `{}`, {} bytes",
                    part.pointer,
                    thousands(size_at(body, &part.pointer) as u64)
                );
                Some((Pointer::parse(&part.pointer), what))
            }
            Measure::Tools => {
                let part = parts().find(|part| part.kind == PartKind::Tools)?;
                Some((Pointer::parse(&part.pointer), "the tools".to_owned()))
            }
            Measure::CachedShare => {
                let uncached = prefix::parts(|name| body.get(name))
                    .into_iter()
                    .skip(cached_parts(body));
                let part = uncached.max_by_key(|part| part.value.to_string().len())?;
                let what = format!(
                    "the largest part after the cached prefix: `{}`",
                    part.pointer()
                );
                Some((part.pointer(), what))
            }
        }
    }
}

fn size_at(body: &Value, pointer: &str) -> usize {
    body.pointer(pointer)
        .map_or(0, |value| value.to_string().len())
}

/// Returns the location where the largest text at or below a pointer was written.
fn writer(made: &Compiled<'_>, pointer: Pointer) -> Span {
    let record = Record::new(
        made.plan,
        made.compiler.sources(),
        made.renderer,
        made.request,
        made.body,
    );
    let place = record.place(&largest_leaf(made.body.value(), pointer), KeyOrValue::Value);
    let outside = Places::new(made.compiler, made.plan, made.loaded).outside(&place);
    outside.map_or(place.span, |outside| outside.span)
}

/// The words around a number: `about` before an estimate, and the unit after the number.
#[derive(Clone, Copy)]
struct Unit {
    before: &'static str,
    name: &'static str,
}

impl Unit {
    fn of(name: &'static str) -> Unit {
        Unit { before: "", name }
    }
}

/// Compares an amount with a limit; returns `None` if the amount is within the limit.
fn beyond(limit: Option<&Spanned<u64>>, taken: u64, unit: Unit) -> Option<Beyond> {
    let limit = limit.filter(|limit| taken > limit.value)?;
    #[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
    let distance = (taken - limit.value) as f64;
    let taken = format!("uses {}{} {}", unit.before, thousands(taken), unit.name);
    Some(Beyond {
        at: limit.span,
        distance,
        taken,
        limit: format!("is {}", thousands(limit.value)),
    })
}

fn percent(share: f64) -> String {
    format!("{:.0} %", (share * 100.0).floor())
}

/// Returns the pointer to the largest leaf at or below this one. Authors write the leaves, unlike
/// the structure around them.
fn largest_leaf(body: &Value, pointer: Pointer) -> Pointer {
    let mut at = pointer;
    while let Some(value) = body.pointer(at.as_str()) {
        let below = match value {
            Value::Object(members) => members
                .iter()
                .max_by_key(|(_, member)| size(member))
                .map(|(name, _)| at.member(name)),
            Value::Array(elements) => {
                let largest = elements
                    .iter()
                    .enumerate()
                    .max_by_key(|(_, element)| size(element));
                largest.map(|(index, _)| at.element(index))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
        };
        match below {
            Some(below) => at = below,
            None => break,
        }
    }
    at
}

fn size(value: &Value) -> usize {
    value.to_string().len()
}

/// Returns the number of tools that a body declares.
fn tools(body: &Value) -> usize {
    let list = body
        .get("tools")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    list.iter()
        .map(|tool| {
            let names = ["functionDeclarations", "function_declarations"];
            names
                .iter()
                .find_map(|name| tool.get(*name)?.as_array())
                .map_or(1, Vec::len)
        })
        .sum()
}

/// Returns the share of a body's prefix, by bytes, that a server finds in its cache when the
/// conversation continues: everything up to the last breakpoint. Servers without breakpoints cache
/// the common prefix of an agent's requests: tools and instructions.
fn cached_share(body: &Value, wire: WireFormat) -> Option<f64> {
    let parts = prefix::parts(|name| body.get(name));
    let cached = if wire.has_cache_breakpoints() && !has_breakpoint(body) {
        0
    } else {
        cached_parts(body)
    };
    let sizes: Vec<usize> = parts
        .iter()
        .map(|part| part.value.to_string().len())
        .collect();
    let (own, all) = (
        sizes[..cached].iter().sum::<usize>(),
        sizes.iter().sum::<usize>(),
    );
    #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^53")]
    let share = own as f64 / all as f64;
    (all > 0).then_some(share)
}

/// Returns the number of parts of a prefix that are cached: up to the last breakpoint or, without
/// breakpoints, the tools and instructions.
fn cached_parts(body: &Value) -> usize {
    let parts = prefix::parts(|name| body.get(name));
    if has_breakpoint(body) {
        return parts
            .iter()
            .rposition(|part| has_breakpoint(part.value))
            .map_or(0, |last| last + 1);
    }
    parts.iter().take_while(|part| is_instruction(part)).count()
}

fn is_instruction(part: &prefix::Part<'_>) -> bool {
    match part.member {
        "messages" | "input" => {
            matches!(
                part.value.get("role").and_then(Value::as_str),
                Some("system" | "developer")
            )
        }
        "contents" | "prompt" => false,
        _ => true,
    }
}

fn has_breakpoint(value: &Value) -> bool {
    match value {
        Value::Object(members) => {
            members.contains_key("cache_control") || members.values().any(has_breakpoint)
        }
        Value::Array(elements) => elements.iter().any(has_breakpoint),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Returns findings about budgets that do not apply to any body.
pub(super) fn unused(compiler: &Compiler) -> impl Iterator<Item = Diagnostic> + '_ {
    compiler
        .repo
        .config
        .budgets
        .iter()
        .filter(|budget| !is_used(compiler, budget))
        .map(|budget| {
            let message = "no body matches the agent and context of this budget";
            let finding = Diagnostic::new(&rules::UNUSED_BUDGET, budget.span, message);
            finding.help(
                "fix its patterns, or remove it: `reqc list` and `reqc contexts` show the names",
            )
        })
}

fn is_used(compiler: &Compiler, budget: &Budget) -> bool {
    compiler.agents.iter().any(|(id, _)| {
        let name = &compiler.hierarchy.get(*id).name.value;
        compiler
            .contexts
            .iter()
            .any(|loaded| budget.is_for(name, &loaded.context.name))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_cached_share_ends_with_the_last_breakpoint() {
        let marked = json!({"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}});
        let (plain, all) = (
            json!({"role": "user", "content": "m"}),
            |body: &Value, wire| cached_share(body, wire).expect("parts"),
        );
        let body = json!({"messages": [plain, plain], "system": [marked]});
        let share = all(&body, WireFormat::AnthropicMessages);
        let own = marked.to_string().len();
        #[expect(clippy::cast_precision_loss, reason = "small")]
        let expected = own as f64 / (own + 2 * plain.to_string().len()) as f64;
        assert!((share - expected).abs() < 1e-9, "{share} {expected}");
        let unmarked = json!({"messages": [plain], "system": "s"});
        assert!(all(&unmarked, WireFormat::AnthropicMessages) < 1e-9);
        let chat = json!({"messages": [{"role": "system", "content": "ssssss"}, plain], "tools": [{"a": 1}]});
        assert!((0.4..0.8).contains(&all(&chat, WireFormat::OpenAiChat)));
        assert!(
            (all(
                &json!({"messages": [plain, {"role": "user", "content": [marked]}]}),
                WireFormat::AnthropicMessages
            ) - 1.0)
                .abs()
                < 1e-9
        );
        assert_eq!(
            cached_share(&json!({"model": "m"}), WireFormat::OpenAiChat),
            None
        );
    }

    #[test]
    fn tools_are_counted_in_every_format() {
        assert_eq!(
            tools(&json!({"tools": [{"name": "a"}, {"type": "web_search"}]})),
            2
        );
        assert_eq!(
            tools(
                &json!({"tools": [{"functionDeclarations": [{}, {}, {}]}, {"googleSearch": {}}]})
            ),
            4
        );
        assert_eq!(tools(&json!({"tools": null})), 0);
    }
}
