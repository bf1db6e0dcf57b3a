//! Searches for a context that reaches a gap, by making small changes to contexts that come close
//! to it.
//!
//! The search does not solve conditions. Each change is small and general: it removes a member,
//! makes it empty or long, sets it to a word from the condition, or inserts a block from another
//! context. Rendering shows whether the result reaches the gap.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::measured::{Coverage, Gap, Missing};
use crate::compile::compiler::Compiler;
use crate::compile::live::Live;
use crate::compile::pairing::Pairing;
use crate::json::Pointer;
use crate::render::coverage::Runs;
use crate::resolve::ProfileId;
use crate::source::SourceText;
use crate::unit::Plan;

/// The maximum number of agent-context pairs that the search starts from.
const MOST_BASES: usize = 64;
/// The maximum number of changed contexts that are tried for one gap.
const MOST_TRIED: usize = 20_000;
/// The maximum size of a context that is changed, in bytes.
const LARGEST: usize = 32 * 1024;
/// The minimum size of a string that templates treat as long, in bytes.
const LONG: usize = 1_000;

/// A context that reaches a gap.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Reaching {
    /// The content of the context file.
    pub context: Value,
    /// The name of the original context.
    pub changed: String,
    /// The agent that reaches the gap with this context.
    pub agent: String,
}

/// An agent and a context that evaluate a gap's decision.
struct Base {
    agent: ProfileId,
    context: String,
    document: Value,
}

impl Coverage {
    /// Returns a context that reaches a gap; `None` if none was found.
    pub fn reaching(&self, compiler: &Compiler, gap: &Gap) -> Option<Reaching> {
        let missing = gap.decision.as_ref()?;
        let search = Search { compiler, missing };
        let words = words(gap.needs.as_deref().unwrap_or_default());
        let parts = Parts::of(compiler, &words);
        let mut tried = 0;
        for base in search.bases() {
            let plan = compiler.plan(base.agent)?;
            let parts = parts.for_agent(plan.api.name());
            for changed in changes(&base.document, &parts) {
                tried += 1;
                if tried > MOST_TRIED {
                    return None;
                }
                if search.reaches(&plan, &changed) {
                    return Some(Reaching {
                        context: changed,
                        changed: base.context,
                        agent: plan.name().to_string(),
                    });
                }
            }
        }
        None
    }
}

/// The search for one gap.
#[derive(Clone, Copy)]
struct Search<'a> {
    compiler: &'a Compiler,
    missing: &'a Missing,
}

impl Search<'_> {
    /// Returns agents and contexts that evaluate the decision, one agent for each context.
    fn bases(&self) -> Vec<Base> {
        // The smallest contexts come first.
        let mut found: BTreeMap<(usize, &str), Base> = BTreeMap::new();
        for (id, _) in self.compiler.agents.iter().filter(|(_, usable)| *usable) {
            for loaded in &self.compiler.contexts {
                let name = &loaded.context.name;
                let source = self.compiler.sources().get(loaded.context.file);
                if source.text().len() > LARGEST
                    || found.contains_key(&(source.text().len(), &**name))
                    || !self.asks(*id, name)
                {
                    continue;
                }
                let Ok(document) = serde_json::from_str(source.text()) else {
                    continue;
                };
                let base = Base {
                    agent: *id,
                    context: name.to_string(),
                    document,
                };
                found.insert((source.text().len(), &**name), base);
            }
            if found.len() >= MOST_BASES {
                break;
            }
        }
        found.into_values().take(MOST_BASES).collect()
    }

    /// Returns `true` if an agent evaluates the decision in a context.
    fn asks(&self, id: ProfileId, context: &str) -> bool {
        let Some(Ok(pairing)) = Pairing::of(self.compiler, id, context) else {
            return false;
        };
        let mut runs = Runs::default();
        let renderer = pairing.loaded.renderer(&self.compiler.engine);
        let request = pairing.request(None);
        pairing
            .plan
            .count_runs(self.compiler.sources(), &renderer, &request, &mut runs);
        let outcomes = runs.outcomes(self.missing.decision);
        outcomes.held + outcomes.failed > 0
    }

    /// Returns `true` if an agent reaches the missing outcome with a context.
    fn reaches(&self, plan: &Plan<'_>, context: &Value) -> bool {
        let live = Live::new(self.compiler, plan);
        let Ok(text) = SourceText::from_bytes(context.to_string().as_bytes()) else {
            return false;
        };
        let Ok((conversation, environment)) = live.read("context".to_owned(), text) else {
            return false;
        };
        if conversation.kind() != plan.kind {
            return false;
        }
        let runs = live.with_request(conversation, &environment, None, |renderer, request| {
            let mut runs = Runs::default();
            plan.count_runs(self.compiler.sources(), renderer, request, &mut runs);
            runs
        });
        let outcomes = runs.map(|runs| runs.outcomes(self.missing.decision));
        outcomes.is_ok_and(|outcomes| match self.missing.holds {
            true => outcomes.held > 0,
            false => outcomes.failed > 0,
        })
    }
}

/// Returns the double-quoted words in a phrase.
fn words(needs: &str) -> Vec<String> {
    let quoted = needs.split('"').skip(1).step_by(2);
    quoted.map(str::to_owned).collect()
}

/// The building blocks of changes.
#[derive(Clone)]
struct Parts {
    /// The words in the condition.
    words: Vec<String>,
    /// The blocks in all contexts, one for each combination of type, source and members.
    blocks: Vec<Value>,
    /// The top-level members in all contexts, each with its first value.
    of_contexts: Map<String, Value>,
    /// The members of blocks, by the block's type, each with its first value.
    members: BTreeMap<String, Map<String, Value>>,
}

impl Parts {
    fn of(compiler: &Compiler, words: &[String]) -> Parts {
        let mut parts = Parts {
            words: words.to_vec(),
            blocks: Vec::new(),
            of_contexts: Map::new(),
            members: BTreeMap::new(),
        };
        let mut forms = BTreeSet::new();
        for loaded in &compiler.contexts {
            let text = compiler.sources().get(loaded.context.file).text();
            let document: Option<Value> = serde_json::from_str(text).ok();
            let members = document.iter().filter_map(Value::as_object).flatten();
            for (name, value) in members.filter(|(name, _)| !KEPT.contains(&name.as_str())) {
                parts
                    .of_contexts
                    .entry(name.clone())
                    .or_insert_with(|| value.clone());
            }
            let messages = document.as_ref().and_then(|it| it["history"].as_array());
            let blocks = messages
                .into_iter()
                .flatten()
                .filter_map(|message| message["content"].as_array())
                .flatten();
            for block in blocks {
                parts.learn(block, &mut forms);
            }
        }
        parts
    }

    fn learn(&mut self, block: &Value, forms: &mut BTreeSet<String>) {
        let (Some(kind), Some(members)) = (block["type"].as_str(), block.as_object()) else {
            return;
        };
        let names: Vec<&str> = members.keys().map(String::as_str).collect();
        if forms.insert(format!("{kind} {} {}", block["source"], names.join(" "))) {
            self.blocks.push(block.clone());
        }
        let known = self.members.entry(kind.to_owned()).or_default();
        for (name, value) in members {
            known.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }

    /// Returns the building blocks for an agent, whose client API becomes the origin of provider
    /// blocks.
    fn for_agent(&self, api: &str) -> Parts {
        let mut parts = self.clone();
        let own = [
            json!({"type": "own", "id": "own_1"}),
            json!({"note": {"id": "own_1"}}),
        ];
        parts
            .blocks
            .extend(own.map(|data| json!({"type": "provider_block", "origin": api, "data": data})));
        for block in &mut parts.blocks {
            if let Some(origin) = block.get_mut("origin") {
                *origin = Value::from(api);
            }
        }
        parts
    }
}

/// Returns the changed forms of a context: first with an additional member, then with a change at
/// each location, inner locations first.
fn changes(document: &Value, parts: &Parts) -> impl Iterator<Item = Value> {
    let mut places = Vec::new();
    places_in(document, &Pointer::root(), &mut places);
    let mut changed = with_more(document, &parts.of_contexts);
    for place in &places {
        let pointer = place.as_str();
        let Some(value) = document.pointer(pointer) else {
            continue;
        };
        changed.extend(without(document, place));
        for other in others(value, parts) {
            changed.extend(with(document, pointer, other));
        }
    }
    changed.into_iter()
}

/// The members of a context that the search does not change.
const KEPT: [&str; 4] = ["name", "why", "kind", "golden"];

/// Returns copies of a document, each with one missing member added.
fn with_more(document: &Value, members: &Map<String, Value>) -> Vec<Value> {
    let lacking = members
        .iter()
        .filter(|(name, _)| document.get(*name).is_none());
    lacking
        .map(|(name, value)| {
            let mut changed = document.clone();
            changed[name.as_str()] = value.clone();
            changed
        })
        .collect()
}

/// Returns the locations of all values, except for the unchanged members of the context.
fn places_in(value: &Value, at: &Pointer, places: &mut Vec<Pointer>) {
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                let is_kept = at.parent().is_none() && KEPT.contains(&name.as_str());
                if !is_kept {
                    let at = at.member(name);
                    places_in(value, &at, places);
                    places.push(at);
                }
            }
        }
        Value::Array(elements) => {
            for (index, value) in elements.iter().enumerate() {
                let at = at.element(index);
                places_in(value, &at, places);
                places.push(at);
            }
        }
        _ => {}
    }
}

/// Returns a document without the value at a location.
fn without(document: &Value, place: &Pointer) -> Option<Value> {
    let (parent, name) = (place.parent()?, place.tokens().last()?);
    let mut changed = document.clone();
    match changed.pointer_mut(parent.as_str())? {
        Value::Object(members) => drop(members.shift_remove(&name)),
        Value::Array(elements) => drop(elements.remove(name.parse().ok()?)),
        _ => return None,
    }
    Some(changed)
}

fn with(document: &Value, pointer: &str, value: Value) -> Option<Value> {
    let mut changed = document.clone();
    *changed.pointer_mut(pointer)? = value;
    Some(changed)
}

/// Returns the possible replacements for a value.
fn others(value: &Value, parts: &Parts) -> Vec<Value> {
    match value {
        Value::Bool(value) => vec![Value::from(!value)],
        Value::Number(_) => vec![Value::from(0), Value::from(1)],
        Value::Null => Vec::new(),
        Value::String(text) => {
            let words = parts.words.iter().map(|word| Value::from(word.as_str()));
            let mut others = vec![
                Value::from(""),
                Value::from("x".repeat(LONG)),
                json!([]),
                Value::from(format!("{text}\n{text}")),
            ];
            others.extend(words);
            others.extend(
                parts
                    .blocks
                    .iter()
                    .map(|block| json!([{"type": "text", "text": text}, block])),
            );
            others
        }
        Value::Array(elements) => {
            let mut others = vec![json!([])];
            for block in &parts.blocks {
                others.push(json!([block]));
                let mut more = elements.clone();
                more.push(block.clone());
                others.push(Value::from(more));
            }
            others
        }
        Value::Object(members) => {
            let kind = members.get("type").and_then(Value::as_str);
            let known = kind.and_then(|kind| parts.members.get(kind));
            let lacking = known
                .into_iter()
                .flatten()
                .filter(|(name, _)| !members.contains_key(*name));
            let mut others = vec![json!({})];
            for (name, value) in lacking {
                let mut more = members.clone();
                more.insert(name.clone(), value.clone());
                others.push(Value::from(more));
            }
            others
        }
    }
}
