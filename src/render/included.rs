//! The outputs of partials, made once for a conversation: templates of a profile are often a line
//! around what all others include.
//!
//! A partial writes the same wherever it is included if no name that it looks up can be one of the
//! template's own. That is told from the texts alone ([`Engine::find_repeated`]). Where it holds,
//! the text is taken as it is known, and what the partial took is charged again: in text, cost and
//! limits nothing differs. One that fails is evaluated where it is.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldhash::{HashMap, HashSet};
use minijinja::{Error, Value};

use super::analyse::{ALL_OF_CTX, Analysis, Callable, Include};
use super::eval::{self, Known, Names as Lookup, Steps};
use super::{BodyInput, Engine, IdRule, MAX_OUTPUT, account, includes};
use crate::memory::{Identity, Question};

/// The names of the data that templates of bodies get.
const DATA: [&str; 2] = ["ctx", "tool_id"];
/// The memory that holds a text, in bytes.
const HOLDER: usize = 160;

/// The rendered texts that may be kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keep {
    /// `true` if other agents may have the same system prompt.
    pub(crate) with_prompt: bool,
}

/// Asks for what a partial writes.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TextOf {
    partial: Arc<str>,
    data: Identity,
    ids: IdRule,
    /// The system prompt, if the partial can see it.
    prompt: Option<Arc<str>>,
    /// The names that the template set and the partial looks up.
    set: Vec<(Arc<str>, String)>,
}

impl Question for TextOf {
    type Answer = Option<Arc<Text>>;

    fn weight(&self, answer: &Self::Answer) -> usize {
        let set: usize = self.set.iter().map(|(_, value)| value.len()).sum();
        let prompt = self.prompt.as_ref().map_or(0, |prompt| prompt.len());
        HOLDER + set + prompt + answer.as_ref().map_or(0, |text| text.written.len())
    }
}

/// The output of a partial, and its cost.
#[derive(Debug)]
struct Text {
    written: Arc<str>,
    spent: u64,
    steps: u64,
}

/// The partials that templates of bodies include, where they write what they write alone.
#[derive(Debug, Default, Clone)]
pub(super) struct Repeated {
    by_template: HashMap<Arc<str>, Vec<Arc<str>>>,
    users: BTreeMap<Arc<str>, Users>,
}

/// The templates that include a partial.
#[derive(Debug, Default, Clone)]
struct Users {
    count: usize,
    /// Names that they set and the partial looks up.
    names: BTreeSet<Arc<str>>,
    /// `true` if the partial may read the system prompt.
    reads_prompt: bool,
}

impl Repeated {
    /// Returns `true` if the text that a partial writes in a template is of use to another
    /// template.
    fn is_of_use(&self, template: &str, partial: &str) -> bool {
        let partials = self.by_template.get(template);
        partials.is_some_and(|partials| partials.iter().any(|it| **it == *partial))
            && self.users[partial].count > 1
    }
}

/// The names that templates look up, and those that they set.
#[derive(Debug, Default)]
pub(super) struct Names {
    looked_up: HashSet<String>,
    set: HashSet<String>,
}

impl Names {
    fn add(&mut self, analysis: &Analysis) {
        let called = analysis
            .calls
            .iter()
            .filter(|called| called.what == Callable::Function)
            .map(|called| &called.name);
        self.looked_up.extend(
            analysis
                .variables
                .iter()
                .map(|(name, _)| name)
                .chain(called)
                .cloned(),
        );
        self.set.extend(analysis.set.iter().cloned());
    }

    /// Returns `true` if one can see what the other sets.
    fn sees(&self, other: &Names) -> bool {
        !self.looked_up.is_disjoint(&other.set)
    }

    fn len(&self) -> usize {
        self.looked_up.len() + self.set.len()
    }
}

impl Engine {
    /// Finds the partials that a template of a body includes and that write there what they write
    /// alone.
    pub(super) fn find_repeated(&mut self, template: &Arc<str>) {
        let Some(analysis) = self.analyses.get(template) else {
            return;
        };
        let targets: Vec<Vec<Arc<str>>> = analysis
            .includes
            .iter()
            .map(|include| self.targets(include))
            .collect();
        if analysis.has_blocks || targets.is_empty() {
            return;
        }
        let reached: HashSet<Arc<str>> = targets.iter().flatten().cloned().collect();
        reached
            .into_iter()
            .for_each(|partial| self.learn_names(partial));
        for (partial, names) in self.apart(template, &targets) {
            let reads_prompt = self
                .reads_of_partials
                .get(&partial)
                .is_none_or(can_read_prompt);
            let repeated = Arc::make_mut(&mut self.repeated);
            repeated
                .by_template
                .entry(Arc::clone(template))
                .or_default()
                .push(Arc::clone(&partial));
            let users = repeated.users.entry(partial).or_default();
            (users.count, users.reads_prompt) = (users.count + 1, reads_prompt);
            users.names.extend(names);
        }
    }

    /// The partials that an include may lead to.
    fn targets(&self, include: &Include) -> Vec<Arc<str>> {
        include
            .names
            .iter()
            .filter_map(|name| self.partial_names.get(includes::full_name(name).as_ref()))
            .cloned()
            .collect()
    }

    /// The partials of a template's includes that see nothing of the template and of its other
    /// includes, and of which these see nothing; except for names that the template sets, which are
    /// given.
    fn apart(
        &self,
        template: &Arc<str>,
        targets: &[Vec<Arc<str>>],
    ) -> BTreeMap<Arc<str>, Vec<Arc<str>>> {
        let analysis = &self.analyses[template];
        let mut own = Names::default();
        own.add(analysis);
        // Whoever sets these gives partials something other than the conversation.
        if DATA.iter().any(|name| own.set.contains(*name)) {
            return BTreeMap::new();
        }
        let names =
            |partial: &Arc<str>| self.names_of_partials.get(partial).and_then(Option::as_ref);
        let is_apart = |at: usize, it: &Names| {
            let others = targets
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != at)
                .flat_map(|(_, others)| others);
            !own.sees(it)
                && others
                    .map(names)
                    .all(|other| other.is_some_and(|other| !it.sees(other) && !other.sees(it)))
        };
        let includes = analysis.includes.iter().zip(targets).enumerate();
        let found = includes.filter_map(|(at, (include, targets))| match targets.as_slice() {
            [partial]
                if include.is_plain
                    && include.names.len() == 1
                    && !partial.contains(['"', '\\']) =>
            {
                let names = names(partial).filter(|names| is_apart(at, names))?;
                let given = names
                    .looked_up
                    .intersection(&own.set)
                    .map(|name| Arc::from(name.as_str()));
                Some((Arc::clone(partial), given.collect()))
            }
            _ => None,
        });
        found.collect()
    }

    /// Notes which names a partial, and all that it includes, looks up and sets.
    fn learn_names(&mut self, partial: Arc<str>) {
        /// More names of one partial are not looked at.
        const MOST: usize = 4_000;
        if self.names_of_partials.contains_key(&partial) {
            return;
        }
        let mut names = Names::default();
        self.follow(vec![&partial], &mut |_, analysis| {
            names.add(analysis);
            names.len() <= MOST
        });
        // inja's `exists` looks up what its argument says.
        let are_known = names.len() <= MOST && !names.looked_up.contains("exists");
        self.names_of_partials
            .insert(partial, are_known.then_some(names));
    }
}

pub(super) fn can_read_prompt(reads: &BTreeSet<String>) -> bool {
    reads.contains("system_prompt") || reads.contains(ALL_OF_CTX)
}

/// Gives a template of a body the partials that it includes, and what is known of what they write.
pub(super) struct BodyLibrary<'r> {
    engine: &'r Engine,
    input: &'r BodyInput<'r>,
    /// The steps that a partial may take.
    fuel: u64,
}

impl Engine {
    /// The partials for a template of a body.
    pub(super) fn library<'r>(&'r self, input: &'r BodyInput<'r>, fuel: u64) -> BodyLibrary<'r> {
        BodyLibrary {
            engine: self,
            input,
            fuel,
        }
    }
}

impl eval::Library for Engine {
    fn find(&self, name: &str) -> Option<&eval::Template> {
        self.trees.get(includes::full_name(name).as_ref())
    }
}

impl eval::Library for BodyLibrary<'_> {
    fn find(&self, name: &str) -> Option<&eval::Template> {
        self.engine.find(name)
    }

    fn known(
        &self,
        template: &eval::Template,
        name: &str,
        names: &dyn Lookup,
    ) -> Result<Option<Known>, Error> {
        let Some(text) = self.text(template, name, names) else {
            return Ok(None);
        };
        account::charge(text.spent)?;
        Ok(Some(Known {
            text: Arc::clone(&text.written),
            steps: text.steps,
        }))
    }
}

impl BodyLibrary<'_> {
    /// Returns what a partial writes where a template includes it.
    fn text(&self, template: &eval::Template, name: &str, names: &dyn Lookup) -> Option<Arc<Text>> {
        let keep = self.input.keep.as_ref()?;
        let (repeated, partial) = (&self.engine.repeated, includes::full_name(name));
        if !repeated.is_of_use(
            self.engine.numbered.get(template.number as usize)?,
            &partial,
        ) {
            return None;
        }
        let (partial, users) = repeated.users.get_key_value(partial.as_ref())?;
        let prompt = self.input.system_prompt.filter(|_| users.reads_prompt);
        if prompt.is_some() && !keep.with_prompt {
            return None;
        }
        let set = set_by_template(names, users)?;
        let texts = set
            .iter()
            .map(|(name, value)| (Arc::clone(name), format!("{value:?}")))
            .collect();
        let (partial, prompt) = (Arc::clone(partial), prompt.map(Arc::from));
        let data = self.input.context.id();
        let asked = TextOf {
            partial: Arc::clone(&partial),
            data,
            ids: self.input.ids,
            prompt,
            set: texts,
        };
        self.engine
            .memory
            .ask(asked, || self.render(&partial, set).map(Arc::new))
    }

    /// Returns what a partial writes by itself; `None` if it fails.
    fn render(&self, partial: &str, set: Vec<(Arc<str>, Value)>) -> Option<Text> {
        let mut data = self.input.variables();
        data.extend(set);
        let input = eval::Input {
            library: self.engine,
            globals: &self.engine.globals,
            data,
            prompt: None,
            most: MAX_OUTPUT,
        };
        let (tree, state) = (
            self.engine.trees.get(partial)?,
            self.engine.environment.empty_state(),
        );
        let (output, spent) =
            account::metered(|| eval::run(tree, input, state, Steps::at_most(self.fuel)));
        output.outcome.ok()?;
        Some(Text {
            written: output.text.text.into(),
            spent,
            steps: output.watch.taken(),
        })
    }
}

/// Returns what templates set that include a partial, where it is included: texts, numbers and the
/// like; `None` if it is something else.
fn set_by_template(names: &dyn Lookup, users: &Users) -> Option<Vec<(Arc<str>, Value)>> {
    let values = users
        .names
        .iter()
        .filter_map(|name| Some((Arc::clone(name), names.lookup(name)?)));
    let values: Vec<(Arc<str>, Value)> = values.collect();
    values
        .iter()
        .all(|(_, value)| is_plain(value))
        .then_some(values)
}

/// Returns what holds others may change, and is more than a key should be.
fn is_plain(value: &Value) -> bool {
    !value.is_undefined() && value.as_object().is_none() && !value.is_safe()
}
