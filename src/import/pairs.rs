//! Matches results with calls.

use std::collections::{HashMap, HashSet, VecDeque};

/// Assigns IDs to calls without IDs. The next result of the same tool answers such a call.
#[derive(Default)]
pub(super) struct Pairs {
    made: usize,
    /// The calls in order, for each tool and for all tools.
    of_tool: HashMap<String, VecDeque<usize>>,
    of_all: VecDeque<usize>,
    answered: HashSet<usize>,
}

impl Pairs {
    /// Returns the ID of a call: its own or, without one, a new ID.
    pub(super) fn called(&mut self, id: Option<&str>, name: &str) -> String {
        if let Some(id) = id.filter(|id| !id.is_empty()) {
            return id.to_owned();
        }
        self.made += 1;
        self.of_tool
            .entry(name.to_owned())
            .or_default()
            .push_back(self.made);
        self.of_all.push_back(self.made);
        Pairs::id(self.made)
    }

    /// Returns the ID of the call that a result answers; empty if there is no such call.
    pub(super) fn answered(&mut self, id: Option<&str>, name: Option<&str>) -> String {
        if let Some(id) = id.filter(|id| !id.is_empty()) {
            return id.to_owned();
        }
        let mut unknown = VecDeque::new();
        let open = match name {
            Some(name) => self.of_tool.get_mut(name).unwrap_or(&mut unknown),
            None => &mut self.of_all,
        };
        let next = std::iter::from_fn(|| open.pop_front()).find(|call| self.answered.insert(*call));
        next.map(Pairs::id).unwrap_or_default()
    }

    fn id(call: usize) -> String {
        format!("imported_{call}")
    }
}
