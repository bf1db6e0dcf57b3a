//! A shared cache for answers that several agents need.
//!
//! A `Question` is a value that names everything its answer depends on, so a remembered answer
//! equals a computed one. Each module declares its questions beside the code that answers them. All
//! answers share one budget in bytes and one eviction policy: answers that have not been used
//! lately make room for new ones (S3-FIFO, by the crate `quick_cache`).
//!
//! The memory does not know the meaning of its questions. Nothing that a user sees may depend on
//! whether an answer was remembered.

use std::any::{Any, TypeId};
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{Equivalent, OptionsBuilder, Weighter};

/// The maximum size of all answers together, in bytes.
const BUDGET: u64 = 32 * 1024 * 1024;
/// The size of a small answer with its question, in bytes.
const SMALL: usize = 256;

/// A question that several agents ask. Equal questions have equal answers.
///
/// An answer that is larger than a part of the table is computed each time. Data that one agent
/// needs for each of many values, such as their common history, belongs in an object of its own and
/// is not a question.
pub(crate) trait Question: Hash + Eq + Send + Sync + 'static {
    /// The answer, cheap to copy.
    type Answer: Clone + Send + Sync + 'static;

    /// Returns the approximate size of question and answer, in bytes.
    fn weight(&self, _answer: &Self::Answer) -> usize {
        SMALL
    }
}

/// Answers that were computed before.
pub struct Memory {
    answers: Cache<Asked, Answer, Bytes, RandomState>,
    state: RandomState,
}

/// The size and the hit counts of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUse {
    /// The number of answers held.
    pub answers: usize,
    /// The bytes held, as far as they are counted.
    pub bytes: u64,
    /// The maximum number of bytes.
    pub budget: u64,
    /// The number of questions answered from memory.
    pub remembered: u64,
    /// The number of questions whose answer was computed.
    pub worked_out: u64,
}

impl fmt::Display for MemoryUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MemoryUse {
            answers,
            bytes,
            budget,
            remembered,
            worked_out,
        } = self;
        let [held, most] = [bytes, budget].map(|bytes| bytes.div_ceil(1024 * 1024));
        let asked = remembered + worked_out;
        write!(
            f,
            "memory: {asked} questions, {remembered} answered from memory; {answers} answers held, {held} of {most} MiB"
        )
    }
}

/// An identity that differs from all others made by this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Identity(u64);

impl Identity {
    /// Returns a new identity.
    pub(crate) fn new() -> Identity {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Identity(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Default for Identity {
    fn default() -> Identity {
        Identity::new()
    }
}

impl Default for Memory {
    fn default() -> Memory {
        let mut options = OptionsBuilder::new();
        options
            .weight_capacity(BUDGET)
            .estimated_items_capacity(SHARDS * 1024)
            .shards(SHARDS);
        let options = options.build().expect("the capacities are given");
        let state = RandomState::default();
        let answers = Cache::with_options(
            options,
            Bytes,
            RandomState::default(),
            DefaultLifecycle::default(),
        );
        Memory { answers, state }
    }
}

/// The number of parts of the table, each with its own lock.
const SHARDS: usize = 4;

impl Memory {
    /// Returns the remembered answer, or else the one that `work_out` computes. `work_out` runs
    /// outside all locks; at worst, two threads compute the same answer.
    pub(crate) fn ask<Q: Question>(
        &self,
        question: Q,
        work_out: impl FnOnce() -> Q::Answer,
    ) -> Q::Answer {
        let hash = self.hash_of(&question);
        if let Some(known) = self.find(hash, &question) {
            return known;
        }
        let answer = work_out();
        self.note_as(hash, question, answer.clone());
        answer
    }

    /// Returns the remembered answer, if there is one.
    pub(crate) fn recall<Q: Question>(&self, question: &Q) -> Option<Q::Answer> {
        self.find(self.hash_of(question), question)
    }

    /// Remembers an answer.
    pub(crate) fn note<Q: Question>(&self, question: Q, answer: Q::Answer) {
        self.note_as(self.hash_of(&question), question, answer);
    }

    /// Returns the size and the hit counts.
    pub(crate) fn usage(&self) -> MemoryUse {
        MemoryUse {
            answers: self.answers.len(),
            bytes: self.answers.weight(),
            budget: BUDGET,
            remembered: self.answers.hits(),
            worked_out: self.answers.misses(),
        }
    }

    fn hash_of<Q: Question>(&self, question: &Q) -> u64 {
        self.state.hash_one((TypeId::of::<Q>(), question))
    }

    fn find<Q: Question>(&self, hash: u64, question: &Q) -> Option<Q::Answer> {
        let found = self.answers.get(&Sought { hash, question })?;
        Some(
            found
                .value
                .downcast_ref::<Q::Answer>()
                .expect("an answer of this kind of question")
                .clone(),
        )
    }

    fn note_as<Q: Question>(&self, hash: u64, question: Q, answer: Q::Answer) {
        let weight = question.weight(&answer) as u64;
        let asked = Asked {
            hash,
            question: Box::new(question),
            is_same: is_same::<Q>,
        };
        self.answers.insert(
            asked,
            Answer {
                value: Arc::new(answer),
                weight,
            },
        );
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.usage().fmt(f)
    }
}

/// A stored question.
struct Asked {
    hash: u64,
    question: Box<dyn Any + Send + Sync>,
    is_same: fn(&dyn Any, &dyn Any) -> bool,
}

/// Returns `true` if two questions are equal.
fn is_same<Q: Question>(one: &dyn Any, other: &dyn Any) -> bool {
    one.downcast_ref::<Q>()
        .is_some_and(|one| other.downcast_ref::<Q>() == Some(one))
}

impl PartialEq for Asked {
    fn eq(&self, other: &Asked) -> bool {
        self.hash == other.hash && (self.is_same)(&*self.question, &*other.question)
    }
}

impl Eq for Asked {}

impl Hash for Asked {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

/// A question to look up.
struct Sought<'q, Q> {
    hash: u64,
    question: &'q Q,
}

impl<Q> Hash for Sought<'_, Q> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.hash);
    }
}

impl<Q: Question> Equivalent<Asked> for Sought<'_, Q> {
    fn equivalent(&self, asked: &Asked) -> bool {
        self.hash == asked.hash && asked.question.downcast_ref::<Q>() == Some(self.question)
    }
}

/// An answer, whose type its question knows.
#[derive(Clone)]
struct Answer {
    value: Arc<dyn Any + Send + Sync>,
    weight: u64,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<Asked, Answer> for Bytes {
    fn weight(&self, _: &Asked, answer: &Answer) -> u64 {
        answer.weight
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(PartialEq, Eq, Hash)]
    struct Square(u64);
    impl Question for Square {
        type Answer = u64;
    }

    #[derive(PartialEq, Eq, Hash)]
    struct Large(u64);
    impl Question for Large {
        type Answer = u64;
        fn weight(&self, _: &u64) -> usize {
            1024 * 1024
        }
    }

    #[test]
    fn a_question_is_worked_out_once() {
        let memory = Memory::default();
        assert_eq!(memory.ask(Square(3), || 9), 9);
        assert_eq!(
            memory.ask(Square(3), || unreachable!("it is remembered")),
            9
        );
        // A question of another type.
        assert_eq!(memory.ask(Large(3), || 27), 27);
        assert_eq!(memory.recall(&Square(4)), None);
    }

    #[test]
    fn what_nobody_asks_for_makes_room() {
        let memory = Memory::default();
        (0..1000).for_each(|number| assert_eq!(memory.ask(Large(number), || number), number));
        let usage = memory.usage();
        assert!(usage.bytes <= BUDGET && usage.answers > 20, "{usage:?}");
        assert_eq!(memory.ask(Large(999), || 999), 999);
    }
}
