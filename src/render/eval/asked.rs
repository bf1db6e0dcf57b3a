//! Records the names that a render sets, and those that it looks up without having set them. The
//! render's output depends only on the names that it looks up.

use std::sync::Arc;

use super::watch::Watch;

/// The recorded names, each once.
#[derive(Debug, Default)]
pub(in super::super) struct Asked {
    pub(in super::super) names: Vec<Arc<str>>,
    /// The names that are set at the end of the render.
    pub(in super::super) set: Vec<Arc<str>>,
}

impl Watch for Asked {
    fn asked(&mut self, name: &str, is_set: &dyn Fn() -> bool) {
        if !self.names.iter().any(|known| **known == *name) && !is_set() {
            self.names.push(Arc::from(name));
        }
    }

    fn ended(&mut self, set: &mut dyn Iterator<Item = &str>) {
        self.set = set.map(Arc::from).collect();
    }
}
