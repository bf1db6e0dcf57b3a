//! Reuses the output of partials within a conversation, because many profile templates consist of a
//! single include of a shared partial.
//!
//! A partial is evaluated separately, under observation, because its output depends on the names
//! that it looks up. These names, with the values that the template set for them, form the key of
//! the output. Known output is reused, and its cost is charged again. The template then lacks the
//! names that the partial would have set; if the template looks one of them up, it is evaluated
//! again without reuse.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use minijinja::{Error, Value};

use super::account::{self, INCLUDE_DEPTH, MAX_OUTPUT};
use super::analyse::full_name;
use super::eval::{self, Asked, Known, Library, Steps, Template, Traced, Watch};
use super::functions::IdRule;
use super::tracked::Names;
use super::{BodyInput, Engine, can_read_prompt};
use crate::memory::{Identity, Question};

/// The memory overhead of a string, in bytes.
const HOLDER: usize = 160;
/// The maximum length of a string in a key, in bytes. Each include reads the whole string.
const LONGEST: usize = 16 * 1024;
/// The maximum number of times that a partial is evaluated to learn the names that it looks up.
const ATTEMPTS: usize = 3;

/// Specifies which rendered strings may be cached.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keep {
    /// `true` if other agents may have the same system prompt.
    pub(crate) with_prompt: bool,
}

/// The [`Question`] for the names that a partial has looked up so far.
#[derive(PartialEq, Eq, Hash)]
struct NamesOf(Identity, u32);

impl Question for NamesOf {
    type Answer = Arc<[Arc<str>]>;
}

/// The [`Question`] for the output of a partial.
#[derive(PartialEq, Eq, Hash)]
struct TextOf {
    engine: Identity,
    /// The number of the partial.
    partial: u32,
    data: Identity,
    ids: IdRule,
    /// The system prompt, if the partial can read it.
    prompt: Option<Arc<str>>,
    /// The names that the partial may look up.
    names: Arc<[Arc<str>]>,
    /// The names that the template set, with their values.
    set: Vec<(Arc<str>, String)>,
}

impl Question for TextOf {
    type Answer = Option<Arc<Text>>;

    fn weight(&self, answer: &Self::Answer) -> usize {
        let set: usize = self.set.iter().map(|(_, value)| value.len()).sum();
        let prompt = self.prompt.as_ref().map_or(0, |prompt| prompt.len());
        HOLDER + set + prompt + answer.as_ref().map_or(0, |text| text.written.weight())
    }
}

/// The output of a partial, and its cost.
struct Text {
    written: Arc<Traced>,
    spent: u64,
    steps: u64,
    /// The names of the variables that the template passes to the partial.
    given: Arc<[Arc<str>]>,
    /// The names that the partial sets for the rest of the template.
    set: Vec<Arc<str>>,
}

/// The partials that a body template can include, with their known outputs.
pub(super) struct BodyLibrary<'r> {
    pub(super) engine: &'r Engine,
    pub(super) input: &'r BodyInput<'r>,
    pub(super) keep: Option<Keep>,
    /// The maximum number of steps for a partial.
    pub(super) fuel: u64,
    /// The names that the template lacks.
    pub(super) left_out: LeftOut,
}

/// The names that partials would have set if they had been evaluated in place.
#[derive(Default)]
pub(super) struct LeftOut {
    names: RefCell<Vec<Arc<str>>>,
    was_asked_for: Cell<bool>,
}

impl LeftOut {
    /// Returns `true` if the template looked up one of these names.
    pub(super) fn was_asked_for(&self) -> bool {
        self.was_asked_for.get()
    }
}

impl Watch for &LeftOut {
    fn asked(&mut self, name: &str, is_set: &dyn Fn() -> bool) {
        let names = self.names.borrow();
        // inja's `exists` looks up its argument.
        if (names.iter().any(|it| **it == *name) || (name == "exists" && !names.is_empty()))
            && !is_set()
        {
            self.was_asked_for.set(true);
        }
    }
}

impl Library for BodyLibrary<'_> {
    fn find(&self, name: &str) -> Option<&Template> {
        self.engine.find(name)
    }

    fn known(&self, name: &str, names: &dyn Names) -> Result<Option<Known>, Error> {
        let Some(text) = self.text(name, names) else {
            return Ok(None);
        };
        account::charge(text.spent)?;
        let mut left_out = self.left_out.names.borrow_mut();
        left_out.extend(text.set.iter().cloned());
        Ok(Some(Known {
            written: Arc::clone(&text.written),
            given: Arc::clone(&text.given),
            steps: text.steps,
        }))
    }
}

impl BodyLibrary<'_> {
    /// Returns the output of a partial for a template that includes it; `None` if the output
    /// depends on more than a key can contain.
    fn text(&self, name: &str, template: &dyn Names) -> Option<Arc<Text>> {
        let (keep, partial) = (self.keep?, self.find(name)?);
        let reads = self.engine.reads_of_partials.get(full_name(name).as_ref());
        let prompt = self
            .input
            .system_prompt
            .filter(|_| reads.is_none_or(can_read_prompt));
        if prompt.is_some_and(|prompt| !keep.with_prompt || prompt.len() > LONGEST) {
            return None;
        }
        let memory = &self.engine.memory;
        let asked = |names: &Arc<[Arc<str>]>, set: &[(Arc<str>, Value)]| TextOf {
            engine: self.engine.id,
            partial: partial.number,
            data: self.input.context.id(),
            ids: self.input.ids,
            prompt: prompt.map(Arc::from),
            names: Arc::clone(names),
            set: set
                .iter()
                .map(|(name, value)| (Arc::clone(name), format!("{value:?}")))
                .collect(),
        };
        let names_of = || NamesOf(self.engine.id, partial.number);
        let mut names = memory.recall(&names_of()).unwrap_or_default();
        for _ in 0..ATTEMPTS {
            let set = self.set(&names, template)?;
            if let Some(known) = memory.recall(&asked(&names, &set)) {
                return known.filter(|text| text.is_apart(template));
            }
            let (text, seen) = self.render(partial, set.clone());
            let new = seen.into_iter().filter(|name| !names.contains(name));
            let all: Arc<[Arc<str>]> = names.iter().cloned().chain(new).collect();
            if all.len() > names.len() {
                memory.note(names_of(), Arc::clone(&all));
            }
            // The partial looked up names that the template had set but not passed to it.
            if self.set(&all, template)?.len() > set.len() {
                names = all;
                continue;
            }
            let text = text.map(Arc::new);
            memory.note(asked(&all, &set), text.clone());
            return text.filter(|text| text.is_apart(template));
        }
        None
    }

    /// Returns the values that a template set for some names; `None` if one of them is not a short
    /// text or number, or may be missing because the output of another partial was reused.
    fn set(&self, names: &[Arc<str>], template: &dyn Names) -> Option<Vec<(Arc<str>, Value)>> {
        let left_out = self.left_out.names.borrow();
        let mut set = Vec::new();
        for name in names {
            match template.lookup_set(name) {
                Some(value) if is_plain(&value) => set.push((Arc::clone(name), value)),
                Some(_) => return None,
                None if left_out.contains(name) || **name == *"exists" => return None,
                None => {}
            }
        }
        Some(set)
    }

    /// Evaluates a partial separately; returns its output, or none if it fails, and the names that
    /// it looks up.
    fn render(
        &self,
        partial: &Template,
        mut data: Vec<(Arc<str>, Value)>,
    ) -> (Option<Text>, Vec<Arc<str>>) {
        let given = data.iter().map(|(name, _)| Arc::clone(name)).collect();
        data.extend(self.input.variables());
        let input = eval::Input {
            library: self.engine,
            globals: &self.engine.globals,
            data,
            most: MAX_OUTPUT,
            depth: INCLUDE_DEPTH,
        };
        let watch = (Steps::at_most(self.fuel), Asked::default());
        let state = self.engine.environment.empty_state();
        let (output, spent) = account::metered(|| eval::run(partial, input, state, watch));
        let (steps, asked) = output.watch;
        let text = output.outcome.is_ok().then(|| Text {
            written: Arc::new(output.written),
            spent,
            steps: steps.taken(),
            given,
            set: asked.set,
        });
        (text, asked.names)
    }
}

impl Text {
    /// Returns `true` if the partial does not set any name that the template has set.
    fn is_apart(&self, template: &dyn Names) -> bool {
        self.set
            .iter()
            .all(|name| template.lookup_set(name).is_none())
    }
}

/// Returns `true` if a value may be part of a key: it is immutable and short.
fn is_plain(value: &Value) -> bool {
    !value.is_undefined()
        && value.as_object().is_none()
        && !value.is_safe()
        && value.as_bytes().is_none_or(|text| text.len() <= LONGEST)
}
