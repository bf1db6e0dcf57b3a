//! Templates of profiles, ready to be evaluated.
//!
//! What is made of a template holds ten times its text and more. Of a template that several agents use that is kept for all of
//! them; one of a single agent is made when it is rendered, and let go of once enough other agents were at work. So what is kept
//! is bounded by what is shared.

use std::sync::{Arc, Mutex, PoisonError};

use foldhash::HashMap;

use super::eval::Template as Tree;
use super::{Engine, TemplateId};

/// So many templates of single agents are kept ready: those of the agents that threads are at.
const KEPT: usize = 192;

/// The templates of single agents that are ready.
#[derive(Debug, Default)]
pub(super) struct Alone(Mutex<HashMap<TemplateId, Arc<Tree>>>);

impl Engine {
    /// A template, ready to be evaluated.
    pub(super) fn tree(&self, id: TemplateId) -> Arc<Tree> {
        let template = &self.templates[id.0 as usize];
        if template.uses > 1 {
            return Arc::clone(template.tree.get_or_init(|| Arc::new(self.made(id))));
        }
        let lock = || self.alone.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = lock().get(&id) {
            return Arc::clone(known);
        }
        let made = Arc::new(self.made(id));
        let mut known = lock();
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(id, Arc::clone(&made));
        made
    }

    fn made(&self, id: TemplateId) -> Tree {
        let template = &self.templates[id.0 as usize];
        let made = self.lowered(&template.name, template.number, &template.text);
        made.expect("a template that is usable was parsed")
    }

    /// How many templates of profiles are ready for all agents, and how many for one alone.
    #[cfg(test)]
    pub(crate) fn compiled(&self) -> (usize, usize) {
        let of_all = self.templates.iter().filter(|template| template.tree.get().is_some()).count();
        (of_all, self.alone.0.lock().expect("not poisoned").len())
    }
}
