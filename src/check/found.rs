//! Collects the rules' findings in one body. A rule reports an invalid value by reference; the
//! pointers to all reported values are then found in one pass.

use std::collections::HashMap;

use serde_json::Value;

use super::subject::Subject;
use super::{About, Problem, without_numbers};
use crate::diag::{Rule, Severity};
use crate::json::Pointer;
use crate::provider::WireFormat;

/// The maximum number of problems per rule that are kept for one body.
const MOST_OF_A_RULE: usize = 20;

/// A rule about bodies.
pub(crate) struct BodyRule {
    /// The declaration of the rule.
    pub(crate) rule: Rule,
    /// The wire formats that the rule applies to; empty for all.
    pub(crate) of: &'static [WireFormat],
    /// The function that checks a body.
    pub(crate) check: Check,
}

impl BodyRule {
    /// Checks a body, if the rule applies to its wire format.
    pub(super) fn run<'b>(&self, subject: &Subject<'b>, found: &mut Found<'b>) {
        if self.of.is_empty() || self.of.contains(&subject.wire) {
            (self.check)(subject, found);
        }
    }
}

/// A function that checks a body.
pub(crate) type Check = for<'b> fn(&Subject<'b>, &mut Found<'b>);

/// The findings of rules in one body.
pub(crate) struct Found<'b> {
    rule: &'static BodyRule,
    of_rule: usize,
    marks: Vec<Mark<'b>>,
}

/// A problem found by a rule, before its pointer is known.
pub(crate) struct Mark<'b> {
    rule: &'static BodyRule,
    spot: Spot<'b>,
    message: String,
    help: Option<String>,
    severity: Option<Severity>,
    about: About,
    sources: &'static [&'static str],
    is_of_model: bool,
    lacks: Vec<Pointer>,
    /// `true` if the problem is dropped when its location is in the history.
    is_doubted: bool,
}

/// A location in a body.
#[derive(Debug, Clone, Copy)]
enum Spot<'b> {
    /// A value in the body.
    Value(&'b Value),
    /// The whole body.
    Root,
}

impl<'b> Found<'b> {
    pub(super) fn new(rule: &'static BodyRule) -> Found<'b> {
        Found {
            rule,
            of_rule: 0,
            marks: Vec::new(),
        }
    }

    /// Starts the next rule.
    pub(super) fn next(&mut self, rule: &'static BodyRule) {
        (self.rule, self.of_rule) = (rule, 0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.marks.len()
    }

    /// Marks the problems from index `from` on as doubtful: doubtful problems in the history will
    /// be dropped.
    pub(super) fn doubt_in_history(&mut self, from: usize) {
        self.marks[from..]
            .iter_mut()
            .for_each(|mark| mark.is_doubted = true);
    }

    /// Lowers the severity of all problems from index `from` on to `level`.
    pub(super) fn at_most(&mut self, level: Severity, from: usize) {
        if level == Severity::Warning {
            self.marks[from..]
                .iter_mut()
                .for_each(|mark| mark.severity = Some(Severity::Warning));
        }
    }

    /// Reports a problem with a value.
    pub(crate) fn at(&mut self, value: &'b Value, message: impl Into<String>) -> Note<'_, 'b> {
        self.mark(Spot::Value(value), message.into())
    }

    /// Reports a problem with a member of an object or, if it is missing, with the object.
    pub(crate) fn at_member(
        &mut self,
        object: &'b Value,
        name: &str,
        message: impl Into<String>,
    ) -> Note<'_, 'b> {
        self.at(object.get(name).unwrap_or(object), message)
    }

    /// Reports a problem with the whole body, such as a missing member.
    pub(crate) fn at_top(&mut self, message: impl Into<String>) -> Note<'_, 'b> {
        self.mark(Spot::Root, message.into())
    }

    fn mark(&mut self, spot: Spot<'b>, message: String) -> Note<'_, 'b> {
        self.of_rule += 1;
        let mark = Mark {
            rule: self.rule,
            spot,
            message,
            help: None,
            severity: None,
            about: About::Meaning,
            sources: &[],
            is_of_model: false,
            lacks: Vec::new(),
            is_doubted: false,
        };
        Note {
            found: self,
            mark: Some(mark),
        }
    }

    /// Returns the problems with their pointers, up to the maximum for each rule.
    pub(super) fn told(self, subject: &Subject<'b>) -> Vec<Problem> {
        let mut places = Places::default();
        for mark in &self.marks {
            match mark.spot {
                Spot::Value(value) => places.want(value),
                Spot::Root => {}
            }
        }
        let root = Pointer::root();
        subject
            .members()
            .for_each(|(name, value)| places.walk(value, &|| root.member(name)));
        let history = subject.history_at();
        self.marks
            .into_iter()
            .filter_map(|mark| mark.told(&places, history.as_ref()))
            .collect()
    }
}

impl Mark<'_> {
    /// Converts the mark to a problem; returns `None` if the mark is doubtful and lies in the
    /// history.
    fn told(self, places: &Places, history: Option<&Pointer>) -> Option<Problem> {
        let pointer = match self.spot {
            Spot::Value(value) => places.pointer(value)?.clone(),
            Spot::Root => Pointer::root(),
        };
        if self.is_doubted && history.is_some_and(|at| pointer.below(at).is_some()) {
            return None;
        }
        let rule = &self.rule.rule;
        let Mark {
            message,
            help,
            severity,
            about,
            sources,
            is_of_model,
            lacks,
            ..
        } = self;
        // Numbers such as lengths differ between values; the remaining words identify the
        // requirement.
        let sense = Some(without_numbers(&Problem::words(&message), ' '));
        Some(Problem {
            rule,
            severity,
            pointer,
            message,
            help,
            sense,
            about,
            sources,
            is_of_model,
            lacks,
            place: None,
        })
    }
}

/// A builder that adds details to a problem. The problem is recorded when the builder is dropped.
#[must_use = "a problem is kept when the note is dropped"]
pub(crate) struct Note<'f, 'b> {
    found: &'f mut Found<'b>,
    mark: Option<Mark<'b>>,
}

impl Note<'_, '_> {
    /// Adds advice.
    pub(crate) fn help(mut self, help: impl Into<String>) {
        if let Some(mark) = &mut self.mark {
            mark.help = Some(help.into());
        }
    }

    /// Sets the aspect of the value that the problem concerns.
    pub(crate) fn about(mut self, about: About) -> Self {
        if let Some(mark) = &mut self.mark {
            mark.about = about;
        }
        self
    }

    /// Specifies which of the rule's sources support this message.
    pub(crate) fn known_from(mut self, sources: &'static [&'static str]) -> Self {
        if let Some(mark) = &mut self.mark {
            mark.sources = sources;
        }
        self
    }

    /// Marks the problem as depending on the model.
    pub(crate) fn of_model(mut self) -> Self {
        if let Some(mark) = &mut self.mark {
            mark.is_of_model = true;
        }
        self
    }

    /// Adds a missing member that causes the problem.
    pub(crate) fn for_lack_of(mut self, member: Pointer) -> Self {
        if let Some(mark) = &mut self.mark {
            mark.lacks.push(member);
        }
        self
    }

    /// Sets the severity of the problem.
    pub(crate) fn level(self, severity: Severity) -> Self {
        if severity == Severity::Warning {
            self.warning()
        } else {
            self
        }
    }

    /// Lowers the severity to a warning, because the server ignores the value, or because sources
    /// disagree about the problem.
    pub(crate) fn warning(mut self) -> Self {
        if let Some(mark) = &mut self.mark {
            mark.severity = Some(Severity::Warning);
        }
        self
    }
}

impl Drop for Note<'_, '_> {
    fn drop(&mut self) {
        if self.found.of_rule <= MOST_OF_A_RULE {
            self.found.marks.extend(self.mark.take());
        }
    }
}

/// The pointers of values, found by the values' addresses in memory. All wanted values are
/// registered before the body is traversed.
#[derive(Default)]
pub(crate) struct Places {
    pointers: HashMap<usize, Option<Pointer>>,
}

impl Places {
    fn address(value: &Value) -> usize {
        std::ptr::from_ref(value) as usize
    }

    pub(crate) fn want(&mut self, value: &Value) {
        self.pointers.insert(Places::address(value), None);
    }

    pub(crate) fn pointer(&self, value: &Value) -> Option<&Pointer> {
        self.pointers.get(&Places::address(value))?.as_ref()
    }

    pub(crate) fn walk(&mut self, value: &Value, at: &dyn Fn() -> Pointer) {
        if let Some(wanted) = self.pointers.get_mut(&Places::address(value)) {
            *wanted = Some(at());
        }
        match value {
            Value::Array(elements) => {
                let elements = elements.iter().enumerate();
                elements.for_each(|(index, element)| self.walk(element, &|| at().element(index)));
            }
            Value::Object(members) => {
                members
                    .iter()
                    .for_each(|(name, member)| self.walk(member, &|| at().member(name)));
            }
            _ => {}
        }
    }
}
