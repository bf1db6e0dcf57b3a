//! The content of a body that a context cannot contain, with its locations.

use serde_json::Value;

use super::Loss;
use crate::check::Places;
use crate::json::Pointer;

/// The values that are missing from the context or changed in it, and the reasons.
#[derive(Default)]
pub(super) struct Lost<'b> {
    told: Vec<(&'b Value, String)>,
}

impl<'b> Lost<'b> {
    pub(super) fn tell(&mut self, value: &'b Value, why: impl Into<String>) {
        self.told.push((value, why.into()));
    }

    /// Reports all members of an object that were not read. A member that is `null` is treated as
    /// absent.
    pub(super) fn rest(&mut self, object: &'b Value, read: &[&str], why: &str) {
        let members = object.as_object().into_iter().flatten();
        let lost =
            members.filter(|(name, value)| !value.is_null() && !read.contains(&name.as_str()));
        lost.for_each(|(_, value)| self.tell(value, why));
    }

    /// Reports a member that is neither a list nor text, so it cannot be read.
    pub(super) fn shape(&mut self, object: &'b Value, names: &[&str]) {
        let members = names.iter().filter_map(|name| object.get(*name));
        let odd =
            members.filter(|value| !value.is_array() && !value.is_string() && !value.is_null());
        odd.for_each(|value| self.tell(value, "it is neither a list nor a string"));
    }

    /// Returns the losses with their locations.
    pub(super) fn placed(self, body: &Value) -> Vec<Loss> {
        let mut places = Places::default();
        self.told.iter().for_each(|(value, _)| places.want(value));
        places.walk(body, &Pointer::root);
        let losses = self.told.into_iter().filter_map(|(value, why)| {
            let pointer = places.pointer(value)?.clone();
            Some(Loss { pointer, why })
        });
        losses.collect()
    }
}
