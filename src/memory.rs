//! A shared cache for results that several agents need.
//!
//! A `Question` is a value that determines its answer completely, so a cached answer equals a
//! computed one. Each module declares its questions next to the code that computes the answers. All
//! answers share a limit in bytes and an eviction policy: new answers replace those that have not
//! been used recently (S3-FIFO, from the crate `quick_cache`).
//!
//! The cache does not interpret its questions. What users see must never depend on whether an
//! answer was cached.

use std::any::{Any, TypeId};
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use foldhash::fast::RandomState;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{Equivalent, OptionsBuilder, Weighter};

/// The maximum total size of all answers, in bytes.
const BUDGET: u64 = 32 * 1024 * 1024;
/// The default estimate for the size of a question and its answer, in bytes.
const SMALL: usize = 256;

/// A question that several agents ask. Equal questions must have equal answers.
///
/// An answer that is larger than a shard of the table is not cached, but is computed each time. If
/// one agent needs the same data, such as a common history, for many values, this data belongs in a
/// separate object rather than in a question.
pub(crate) trait Question: Hash + Eq + Send + Sync + 'static {
    /// The type of the answer, which must be cheap to clone.
    type Answer: Clone + Send + Sync + 'static;

    /// Returns the approximate total size of the question and its answer, in bytes.
    fn weight(&self, _answer: &Self::Answer) -> usize {
        SMALL
    }
}

/// A cache of computed answers.
pub struct Memory {
    answers: Cache<Asked, Answer, Bytes, RandomState>,
    state: RandomState,
}

/// The size of a cache, and its hits and misses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryUse {
    /// The number of cached answers.
    pub answers: usize,
    /// The total estimated size of cached answers, in bytes.
    pub bytes: u64,
    /// The maximum total size, in bytes.
    pub budget: u64,
    /// The number of questions whose answer was cached.
    pub remembered: u64,
    /// The number of questions whose answer had to be computed.
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
            "cache: {asked} lookups, {remembered} hits; {answers} entries, {held} of {most} MiB"
        )
    }
}

/// An identity, which differs from every other identity created by this process.
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

/// The number of shards in the table, each of which has its own lock.
const SHARDS: usize = 4;

impl Memory {
    /// Returns the cached answer, or else the answer that `work_out` computes. No lock is held
    /// while `work_out` runs, so two threads may compute the same answer.
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

    /// Returns the cached answer, if there is one.
    pub(crate) fn recall<Q: Question>(&self, question: &Q) -> Option<Q::Answer> {
        self.find(self.hash_of(question), question)
    }

    /// Caches an answer.
    pub(crate) fn note<Q: Question>(&self, question: Q, answer: Q::Answer) {
        self.note_as(self.hash_of(&question), question, answer);
    }

    /// Returns the size of the cache, and its hits and misses.
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

/// A question in the cache.
struct Asked {
    hash: u64,
    question: Box<dyn Any + Send + Sync>,
    is_same: fn(&dyn Any, &dyn Any) -> bool,
}

/// Returns `true` if two questions have the same type and are equal.
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

/// A question that is looked up without being moved.
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

/// An answer in the cache. Its type is determined by its question.
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
        // This question has a different type.
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
