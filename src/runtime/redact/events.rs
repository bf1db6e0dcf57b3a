//! Removes keys from the events of an answer, even if a key is spread over several pieces.

use std::sync::Arc;

use indexmap::IndexMap;

use super::{Flow, Redactor};
use crate::runtime::Event;

/// Removes keys from the events of one answer. Text that may begin a key is held back until the
/// next piece. All pieces of a string are treated as one string, even with other events in between.
pub(in crate::runtime) struct Redacting {
    redactor: Redactor,
    text: Flow,
    thinking: Flow,
    arguments: IndexMap<Arc<str>, Flow>,
}

impl Redacting {
    pub(in crate::runtime) fn new(redactor: Redactor) -> Redacting {
        Redacting {
            redactor,
            text: Flow::default(),
            thinking: Flow::default(),
            arguments: IndexMap::new(),
        }
    }

    /// Adds the next event, and returns the events that can be reported now.
    pub(in crate::runtime) fn next(&mut self, event: Event) -> Vec<Event> {
        if self.redactor.is_idle() {
            return vec![event];
        }
        match event {
            Event::Text(piece) => said(Event::Text, self.redactor.next(&mut self.text, &piece)),
            Event::Thinking(piece) => said(
                Event::Thinking,
                self.redactor.next(&mut self.thinking, &piece),
            ),
            Event::ToolCallArguments { id, json } => {
                let flow = self.arguments.entry(Arc::clone(&id)).or_default();
                said(
                    |json| arguments(&self.redactor, &id, json),
                    self.redactor.next(flow, &json),
                )
            }
            Event::ToolCallStart { mut id, mut name } => {
                self.redactor.shared(&mut id);
                self.redactor.shared(&mut name);
                vec![Event::ToolCallStart { id, name }]
            }
            Event::ToolCallEnd(mut call) => {
                let rest = self
                    .arguments
                    .shift_remove(&call.id)
                    .map(|mut flow| self.redactor.last(&mut flow));
                let mut events = said(
                    |json| arguments(&self.redactor, &call.id, json),
                    rest.unwrap_or_default(),
                );
                self.redactor.call(&mut call);
                events.push(Event::ToolCallEnd(call));
                events
            }
            Event::Warning(message) => vec![Event::Warning(self.redactor.text(&message))],
            event => vec![event],
        }
    }

    /// Returns the events that were held back until the end of the answer.
    pub(in crate::runtime) fn last(&mut self) -> Vec<Event> {
        let mut events = said(Event::Thinking, self.redactor.last(&mut self.thinking));
        events.extend(said(Event::Text, self.redactor.last(&mut self.text)));
        for (id, mut flow) in self.arguments.drain(..) {
            events.extend(said(
                |json| arguments(&self.redactor, &id, json),
                self.redactor.last(&mut flow),
            ));
        }
        events
    }
}

fn arguments(redactor: &Redactor, id: &str, json: String) -> Event {
    Event::ToolCallArguments {
        id: redactor.text(id).into(),
        json,
    }
}

/// Returns an event for a piece of text; no event if the piece is empty.
fn said(event: impl FnOnce(String) -> Event, piece: String) -> Vec<Event> {
    if piece.is_empty() {
        Vec::new()
    } else {
        vec![event(piece)]
    }
}
