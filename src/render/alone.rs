//! Templates that one agent has for itself.
//!
//! What the engine makes of a template holds ten times its text and more. Of a template that several agents use that is kept for all of
//! them; one of a single agent is compiled when it is rendered, together with the others of its file, and let go of once enough
//! other agents were at work. So what is kept is bounded by what is shared.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::HashMap;
use minijinja::Environment;

use super::{Engine, OF_PROFILE, Template, TemplateId};
use crate::panics::caught;
use crate::source::FileId;

/// So many files have their templates compiled at a time: those of the agents that threads are at, and of their ancestors.
const KEPT: usize = 64;

/// Which of a renderer's environments a template is compiled beside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Beside {
    /// The one that has partials as they are.
    Partials,
    /// The one in which stand-ins write what is known of them.
    StandIns,
}

/// Environments with the templates that single agents have in a file.
#[derive(Debug, Default)]
pub(super) struct Alone(Mutex<HashMap<(FileId, Beside), Vec<WithSteps>>>);

/// An environment, and the steps that templates may take in it.
type WithSteps = (Option<u64>, Arc<Environment<'static>>);

/// An environment that has a template.
pub(super) enum Home<'e> {
    /// That of all agents.
    OfAll(&'e Environment<'static>),
    /// One with templates of a single agent.
    OfOne(Arc<Environment<'static>>),
}

impl Deref for Home<'_> {
    type Target = Environment<'static>;

    fn deref(&self) -> &Environment<'static> {
        match self {
            Home::OfAll(environment) => environment,
            Home::OfOne(environment) => environment,
        }
    }
}

impl Engine {
    /// The environment to render a template in, where `of_all` is that for templates of several agents.
    pub(super) fn home<'e>(&self, id: TemplateId, of_all: &'e Environment<'static>, beside: Beside) -> Home<'e> {
        let template = &self.templates[id.0 as usize];
        match template.text {
            None => Home::OfAll(of_all),
            Some(_) => Home::OfOne(self.home_of_file(template.file, of_all, beside)),
        }
    }

    fn home_of_file(&self, file: FileId, of_all: &Environment<'static>, beside: Beside) -> Arc<Environment<'static>> {
        let lock = || self.alone.0.lock().unwrap_or_else(PoisonError::into_inner);
        let steps = of_all.fuel();
        let known = lock().get(&(file, beside)).cloned().unwrap_or_default();
        if let Some((_, known)) = known.iter().find(|(of, _)| *of == steps) {
            return Arc::clone(known);
        }
        let environment = Arc::new(match known.first() {
            // A copy shares what was compiled.
            Some((_, known)) => {
                let mut environment = Environment::clone(known);
                environment.set_fuel(steps);
                environment
            }
            None => self.with_templates_of(file, of_all.clone()),
        });
        let mut known = lock();
        if known.len() >= KEPT && !known.contains_key(&(file, beside)) {
            known.clear();
        }
        known.entry((file, beside)).or_default().push((steps, Arc::clone(&environment)));
        environment
    }

    /// An environment with the templates of a file that single agents use.
    fn with_templates_of(&self, file: FileId, mut environment: Environment<'static>) -> Environment<'static> {
        let templates = self.by_file.get(&file).into_iter().flatten().map(|id| &self.templates[id.0 as usize]);
        for (name, text) in templates.filter_map(|template| Some((&template.name, template.text.as_ref()?))) {
            // It was parsed before. If the engine fails all the same, it says that the template is not there.
            let added = caught(|| environment.add_template_owned(name.to_string(), text.to_string()));
            debug_assert!(added.is_ok_and(|added| added.is_ok()), "{name:?} is compiled once it was parsed");
        }
        environment
    }

    /// Compiles a template for all agents, now that several use it.
    pub(super) fn share(&mut self, id: TemplateId) {
        let template = &mut self.templates[id.0 as usize];
        let Some(text) = &template.text else { return };
        let add = || self.environment.add_template_owned(template.name.to_string(), text.to_string());
        if caught(add).is_ok_and(|added| added.is_ok()) {
            template.text = None;
        }
    }

    /// The text of a template as it is compiled.
    pub(super) fn compiled_text(&self, name: &str) -> Option<Cow<'_, str>> {
        let of_one = self.by_name(name).and_then(|template| template.text.as_deref()).map(Cow::Borrowed);
        of_one.or_else(|| Some(Cow::Owned(self.environment.get_template(name).ok()?.source().to_owned())))
    }

    /// How many templates of profiles are compiled for all agents, and of how many files for one alone.
    #[cfg(test)]
    pub(crate) fn compiled(&self) -> (usize, usize) {
        let of_all = self.environment.templates().filter(|(name, _)| name.starts_with(OF_PROFILE)).count();
        (of_all, self.alone.0.lock().expect("not poisoned").len())
    }

    /// The template of a profile that is registered under a name.
    fn by_name(&self, name: &str) -> Option<&Template> {
        let number: usize = name.strip_prefix(OF_PROFILE)?.parse().ok()?;
        self.templates.get(number)
    }
}
