//! Describes facts in words.

use serde_json::Value;

use super::{Condition, Demand, Fact, Family, MemberPath, Price, State};
use crate::text::thousands;

impl Family {
    /// Returns a phrase with the beta features that make the facts invalid; `None` if there are
    /// none.
    pub fn without_betas(&self) -> Option<String> {
        let names: Vec<String> = self
            .without_beta
            .iter()
            .map(|name| format!("`{}`", name.value))
            .collect();
        let features = if names.len() == 1 {
            "feature"
        } else {
            "features"
        };
        (!names.is_empty()).then(|| format!("without the beta {features} {}", names.join(" or ")))
    }

    /// Returns phrases for all facts except those about members, such as versions, histories,
    /// caches and prices.
    pub fn flags(&self) -> Vec<String> {
        let beta = self.without_betas();
        let properties = self
            .properties
            .iter()
            .map(|(property, is)| property.told(*is).to_owned());
        let price = self.price.as_ref().map(Price::told);
        let others = [
            self.reasoned_calls.map(|_| {
                "requires `reasoning_content` in messages with calls while thinking is enabled"
                    .to_owned()
            }),
            self.cache_minimum.map(|least| {
                format!(
                    "does not cache a prefix of fewer than {} tokens",
                    thousands(least)
                )
            }),
            self.context_window
                .map(|most| format!("has a context window of {} tokens", thousands(most))),
            self.longest_request
                .map(|most| format!("accepts requests of at most {} tokens", thousands(most))),
            self.image_patches
                .map(|most| format!("accepts images of at most {} patches", thousands(most))),
            price,
        ]
        .into_iter()
        .flatten();
        let last = self.before_version.as_ref();
        self.from_version
            .as_ref()
            .map(|first| format!("from API version {first} on"))
            .into_iter()
            .chain(last.map(|version| format!("before API version {version}")))
            .chain(beta)
            .chain(properties)
            .chain(others)
            .collect()
    }
}

impl Price {
    /// Returns the prices as one phrase.
    fn told(&self) -> String {
        let more = [
            (self.cache_read, "input from a cache"),
            (self.cache_write, "input written to a cache"),
            (
                self.cache_write_hour,
                "input written to a cache for an hour",
            ),
        ];
        let more = more
            .into_iter()
            .filter_map(|(price, what)| Some(format!(", {} for {what}", price?)));
        let most = self
            .most_input
            .map(|most| format!(", up to {} tokens of input", thousands(most)))
            .unwrap_or_default();
        let more: String = more.collect();
        format!(
            "costs {} USD per million tokens of input, {} of output{more}{most}",
            self.input, self.output
        )
    }
}

impl Fact {
    /// Returns the fact as a predicate whose subject is a model: `refuses temperature, unless
    /// reasoning_effort is "none"`.
    pub fn told(&self) -> String {
        let names: Vec<String> = self.at.iter().map(named).collect();
        let names = listed(&names, "and");
        let demand = match &self.demand {
            Demand::Absent { values, .. } if !values.is_empty() => {
                format!("rejects {} for {names}", self.demand.refused())
            }
            Demand::Absent {
                even_null: true, ..
            } => format!("rejects {names}, even if it is `null`"),
            Demand::Absent { .. } => format!("rejects {names}"),
            demand @ Demand::Value { .. } => format!("accepts {} for {names}", demand.taken()),
        };
        format!("{demand}{}", self.conditions())
    }

    /// Returns the conditions as clauses, each preceded by a comma: `, while … and …, unless … or
    /// …`.
    pub fn conditions(&self) -> String {
        format!(
            "{}{}",
            told("while", &self.when, "and"),
            told("unless", &self.unless, "or")
        )
    }
}

fn told(word: &str, conditions: &[Condition], join: &str) -> String {
    let conditions: Vec<_> = conditions.iter().map(Condition::told).collect();
    if conditions.is_empty() {
        String::new()
    } else {
        format!(", {word} {}", listed(&conditions, join))
    }
}

impl Demand {
    /// Returns the number of individually listed values that are accepted.
    pub fn choices(&self) -> usize {
        match self {
            Demand::Value { one_of, .. } => one_of.len(),
            Demand::Absent { .. } => 0,
        }
    }

    /// Returns a phrase that lists the accepted values.
    pub fn taken(&self) -> String {
        let Demand::Value {
            one_of,
            least,
            most,
        } = self
        else {
            return "nothing".to_owned();
        };
        let mut taken: Vec<String> = one_of.iter().map(shown).collect();
        match (least, most) {
            (Some(least), Some(most)) => taken.push(format!("{least} to {most}")),
            (Some(least), None) => taken.push(format!("{least} or more")),
            (None, Some(most)) => taken.push(format!("at most {most}")),
            (None, None) => {}
        }
        listed(&taken, "or")
    }
}

impl Demand {
    /// Returns a phrase that lists the rejected values; empty if all are rejected, or if only the
    /// accepted values are known.
    pub fn refused(&self) -> String {
        match self {
            Demand::Absent { values, .. } => {
                listed(&values.iter().map(shown).collect::<Vec<_>>(), "and")
            }
            Demand::Value { .. } => String::new(),
        }
    }
}

impl Condition {
    fn told(&self) -> String {
        let name = named(&self.at);
        match &self.is {
            State::Present(true) => format!("{name} is present"),
            State::Present(false) => format!("{name} is absent"),
            State::OneOf(values) => {
                format!(
                    "{name} is {}",
                    listed(&values.iter().map(shown).collect::<Vec<_>>(), "or")
                )
            }
        }
    }
}

fn named(place: &MemberPath) -> String {
    format!("`{}`", place.name())
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("`{text}`"),
        other => other.to_string(),
    }
}

/// Joins phrases as in `a, b and c`, with `last` before the last phrase.
fn listed(parts: &[String], last: &str) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}
