//! What partials write, made once for a conversation: templates of a profile are often a line around what all others include.
//!
//! A partial writes the same wherever it is included if no name that it looks up can be one of the template's own. That is told from
//! the texts alone ([`Engine::find_repeated`]). Where it holds, the engine is led to a template that writes the known text, and what the
//! partial took is charged again: in text, cost and limits nothing differs. Whatever fails is rendered once more without any of this.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::{HashMap, HashSet};
use minijinja::value::{Object, ObjectRepr};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::alone::Beside;
use super::analyse::{ALL_OF_CTX, Analysis, Callable, Include};
use super::{BodyInput, Engine, IdRule, Rendered, Renderer, TemplateId, account, includes};

/// Gives the text of the partial for which the template stands that calls it.
const TEXT_OF: &str = "__k";
/// Begins the name of a template that stands for a partial: no include can spell it.
const STAND_IN: char = '\u{2}';
/// Begins the name of a template that does nothing but include a partial.
const ALONE: char = '\u{3}';
/// The steps of a stand-in, and of a template that includes a partial, without those of the partial.
const STAND_IN_STEPS: u64 = 2;
const ALONE_STEPS: u64 = 2;
/// The name under which [`TEXT_OF`] finds the texts of a conversation.
const GIVEN: &str = "\u{2}";
/// What templates of bodies are given.
const DATA: [&str; 2] = ["ctx", "tool_id"];
/// What holds a text, in bytes.
const HOLDER: usize = 160;

/// Room for what is kept, in bytes.
#[derive(Debug, Clone)]
pub(crate) struct Space(Arc<AtomicUsize>);

impl Space {
    pub(crate) fn new(bytes: usize) -> Space {
        Space(Arc::new(AtomicUsize::new(bytes)))
    }

    /// Takes some of it, if there is so much.
    pub(crate) fn take(&self, bytes: usize) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |space| space.checked_sub(bytes)).is_ok()
    }
}

/// What may be kept of what is rendered.
#[derive(Debug, Clone)]
pub(crate) struct Keep {
    pub(crate) space: Space,
    /// Whether other agents may have the same system prompt.
    pub(crate) with_prompt: bool,
}

/// What partials wrote for one conversation.
#[derive(Debug, Default, Clone)]
pub(crate) struct IncludedTexts(Arc<Mutex<HashMap<TextKey, Arc<Text>>>>);

impl IncludedTexts {
    /// How many there are.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// What the text of a partial depends on, beside the conversation.
#[derive(Debug, PartialEq, Eq, Hash)]
struct TextKey {
    partial: Arc<str>,
    ids: IdRule,
    /// The system prompt, if the partial can see it.
    prompt: Option<Arc<str>>,
    /// What the template set that the partial looks up.
    set: Vec<(Arc<str>, String)>,
}

/// What a partial wrote, and what that took.
#[derive(Debug)]
struct Text {
    written: Box<str>,
    spent: u64,
    steps: u64,
}

impl Object for Text {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Plain
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
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
    /// Whether the partial may read the system prompt.
    reads_prompt: bool,
}

impl Repeated {
    /// Whether the text that a partial writes in a template is of use to another template.
    fn is_of_use(&self, template: &str, partial: &str) -> bool {
        let partials = self.by_template.get(template);
        partials.is_some_and(|partials| partials.iter().any(|it| **it == *partial)) && self.users[partial].count > 1
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
        let called =
            analysis.calls.iter().filter(|called| called.what == Callable::Function).map(|called| &called.name);
        self.looked_up.extend(analysis.variables.iter().map(|(name, _)| name).chain(called).cloned());
        self.set.extend(analysis.set.iter().cloned());
    }

    /// Whether one can see what the other sets.
    fn sees(&self, other: &Names) -> bool {
        !self.looked_up.is_disjoint(&other.set)
    }

    fn len(&self) -> usize {
        self.looked_up.len() + self.set.len()
    }
}

impl Engine {
    /// Finds the partials that a template of a body includes and that write there what they write alone.
    pub(super) fn find_repeated(&mut self, template: &Arc<str>) {
        let Some(analysis) = self.analyses.get(template) else { return };
        let targets: Vec<Vec<Arc<str>>> = analysis.includes.iter().map(|include| self.targets(include)).collect();
        if analysis.has_blocks || targets.is_empty() {
            return;
        }
        let reached: HashSet<Arc<str>> = targets.iter().flatten().cloned().collect();
        reached.into_iter().for_each(|partial| self.learn_names(partial));
        for (partial, names) in self.apart(template, &targets) {
            let reads_prompt = self.reads_of_partials.get(&partial).is_none_or(can_read_prompt);
            let repeated = Arc::make_mut(&mut self.repeated);
            repeated.by_template.entry(Arc::clone(template)).or_default().push(Arc::clone(&partial));
            let users = repeated.users.entry(partial).or_default();
            (users.count, users.reads_prompt) = (users.count + 1, reads_prompt);
            users.names.extend(names);
        }
    }

    /// The partials that an include may lead to.
    fn targets(&self, include: &Include) -> Vec<Arc<str>> {
        let known = |name: &String| self.partial_names.get(includes::full_name(name).as_ref());
        include.names.iter().filter_map(known).cloned().collect()
    }

    /// The partials of a template's includes that see nothing of the template and of its other includes, and of which these see
    /// nothing; but for names that the template sets, which are given.
    fn apart(&self, template: &Arc<str>, targets: &[Vec<Arc<str>>]) -> BTreeMap<Arc<str>, Vec<Arc<str>>> {
        let analysis = &self.analyses[template];
        let mut own = Names::default();
        own.add(analysis);
        // Whoever sets these gives partials something else than the conversation.
        if DATA.iter().any(|name| own.set.contains(*name)) {
            return BTreeMap::new();
        }
        let names = |partial: &Arc<str>| self.names_of_partials.get(partial).and_then(Option::as_ref);
        let is_apart = |at: usize, it: &Names| {
            let others = targets.iter().enumerate().filter(|(other, _)| *other != at).flat_map(|(_, others)| others);
            let is_apart_from = |other: &Names| !it.sees(other) && !other.sees(it);
            !own.sees(it) && others.map(names).all(|other| other.is_some_and(is_apart_from))
        };
        let includes = analysis.includes.iter().zip(targets).enumerate();
        let found = includes.filter_map(|(at, (include, targets))| match targets.as_slice() {
            [partial] if include.is_plain && include.names.len() == 1 && !partial.contains(['"', '\\']) => {
                let names = names(partial).filter(|names| is_apart(at, names))?;
                let given = names.looked_up.intersection(&own.set).map(|name| Arc::from(name.as_str()));
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
        self.names_of_partials.insert(partial, are_known.then_some(names));
    }

    /// The environment in which templates of bodies are rendered first: what partials write there again and again comes from
    /// what is known of them.
    fn with_stand_ins(&self, environment: &Environment<'static>) -> Environment<'static> {
        let mut environment = environment.clone();
        for (partial, _) in self.repeated.users.iter().filter(|(_, users)| users.count > 1) {
            let texts =
                [(STAND_IN, format!("{{{{ {TEXT_OF}() }}}}")), (ALONE, format!("{{% include \"{partial}\" %}}"))];
            for (mark, text) in texts {
                let added = environment.add_template_owned(format!("{mark}{partial}"), text);
                added.expect("the name has nothing that ends a literal");
            }
        }
        environment.add_function(TEXT_OF, text_of);
        let repeated = Arc::clone(&self.repeated);
        environment.set_path_join_callback(move |name, parent| {
            let full = includes::full_name(name);
            if repeated.is_of_use(parent, &full) { Cow::Owned(format!("{STAND_IN}{full}")) } else { full }
        });
        environment
    }
}

pub(super) fn can_read_prompt(reads: &BTreeSet<String>) -> bool {
    reads.contains("system_prompt") || reads.contains(ALL_OF_CTX)
}

/// What a template that is rendered is given, for the partials that it includes.
#[derive(Debug)]
struct Given {
    repeated: Arc<Repeated>,
    texts: IncludedTexts,
    keep: Keep,
    /// The data of templates.
    data: [(&'static str, Value); 2],
    ids: IdRule,
    prompt: Option<Arc<str>>,
    /// The steps that were not taken, less those of stand-ins: it wraps below zero.
    saved: AtomicU64,
}

impl Object for Given {}

impl Given {
    fn new(repeated: &Arc<Repeated>, input: &BodyInput<'_>, keep: &Keep) -> Given {
        Given {
            repeated: Arc::clone(repeated),
            texts: input.context.included().clone(),
            keep: keep.clone(),
            data: input.members(),
            ids: input.ids,
            prompt: input.system_prompt.map(Arc::from),
            saved: AtomicU64::new(0),
        }
    }

    /// What a partial writes.
    fn text(&self, state: &State<'_, '_>, partial: &str) -> Result<Arc<Text>, Error> {
        let users = self.repeated.users.get(partial).ok_or_else(unknown)?;
        let set = set_by_template(state, users)?;
        let prompt = self.prompt.clone().filter(|_| users.reads_prompt);
        if prompt.is_some() && !self.keep.with_prompt {
            return self.render(state.env(), partial, &set).map(Arc::new);
        }
        let texts = set.iter().map(|(name, value)| (Arc::clone(name), format!("{value:?}"))).collect();
        let key = TextKey { partial: Arc::from(partial), ids: self.ids, prompt, set: texts };
        let lock = || self.texts.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&key) {
            return Ok(Arc::clone(known));
        }
        let text = Arc::new(self.render(state.env(), partial, &set)?);
        match self.keep.space.take(text.written.len() + HOLDER) {
            true => Ok(Arc::clone(lock().entry(key).or_insert(text))),
            false => Ok(text),
        }
    }

    fn render(&self, environment: &Environment<'_>, partial: &str, set: &[(Arc<str>, Value)]) -> Result<Text, Error> {
        let data = self.data.iter().map(|(name, value)| (Value::from(*name), value.clone()));
        let set = set.iter().map(|(name, value)| (Value::from(Arc::clone(name)), value.clone()));
        let run = super::run(environment, &format!("{ALONE}{partial}"), &Value::from_pairs(data.chain(set)));
        let steps = run.steps? - ALONE_STEPS;
        Ok(Text { written: run.output.into_text().into(), spent: run.spent, steps })
    }
}

/// What templates set that include a partial, where it is included: texts, numbers and the like.
fn set_by_template(state: &State<'_, '_>, users: &Users) -> Result<Vec<(Arc<str>, Value)>, Error> {
    let values = users.names.iter().filter_map(|name| Some((Arc::clone(name), state.lookup(name)?)));
    let values: Vec<(Arc<str>, Value)> = values.collect();
    // What holds others may change, and is more than a key should be.
    let is_plain = |value: &Value| !value.is_undefined() && value.as_object().is_none() && !value.is_safe();
    if values.iter().all(|(_, value)| is_plain(value)) { Ok(values) } else { Err(unknown()) }
}

fn unknown() -> Error {
    Error::from(ErrorKind::UnknownFunction)
}

fn text_of(state: &mut State<'_, '_>) -> Result<Value, Error> {
    let given = state.lookup(GIVEN).and_then(|given| given.downcast_object::<Given>());
    let partial = state.name().strip_prefix(STAND_IN);
    let (given, partial) = given.zip(partial).ok_or_else(unknown)?;
    let text = given.text(state, partial)?;
    account::charge(text.spent)?;
    given.saved.fetch_add(text.steps.wrapping_sub(STAND_IN_STEPS), Ordering::Relaxed);
    Ok(Value::from_dyn_object(text))
}

impl Renderer<'_> {
    /// Renders a template of a body with what is known of its partials; `None` if nothing is, and if anything goes wrong.
    pub(super) fn body_with_known(&self, id: TemplateId, input: &BodyInput<'_>) -> Option<Rendered> {
        let (keep, name) = (input.keep.as_ref()?, &self.engine.templates[id.0 as usize].name);
        let included = self.engine.repeated.by_template.get(name)?;
        if !included.iter().any(|partial| self.engine.repeated.is_of_use(name, partial)) {
            return None;
        }
        let given = Arc::new(Given::new(&self.engine.repeated, input, keep));
        let data = given.data.clone().into_iter();
        let root = Value::from_pairs(data.chain([(GIVEN, Value::from_dyn_object(Arc::clone(&given)))]));
        let environment = self.with_stand_ins.get_or_init(|| self.engine.with_stand_ins(&self.environment));
        let run = super::run(&self.engine.home(id, environment, Beside::StandIns), name, &root);
        let steps = run.steps.ok()?.wrapping_add(given.saved.load(Ordering::Relaxed));
        (steps < self.fuel).then(|| Rendered::of(run.output, run.spent, steps))
    }
}
