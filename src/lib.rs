//! A compiler for LLM agent profiles: declarative TOML in, the exact JSON request bodies that
//! providers receive out.
//!
//! A repository of profiles is read over the bundled files, every agent is rendered against every
//! synthetic conversation that fits it, and what is wrong is reported at the line that caused it.
//! The binary `reqc` is a thin command line over this library. `README.md` introduces it;
//! `ARCHITECTURE.md` draws the map.
//!
//! # The stages
//!
//! Data flows one way; each stage is a module, and each hands a named type to the next.
//!
//! 1. [`world`]: files, seen through one trait; [`system`] has the real ones,
//!    [`MemoryWorld`](world::MemoryWorld) is
//!    for tests and hosts.
//! 2. `repo`: what files there are, in both layers. `toml` parses, [`source`] remembers places.
//! 3. `profile`: one file → a profile.
//! 4. `resolve`: `extends` → the hierarchy and, one at a time, merged profiles: each value with its
//!    origin.
//! 5. `context`: JSON files → [`Conversation`](conversation::Conversation)s in normal form.
//! 6. `render`: checks and compiles templates, then gives text.
//! 7. `unit`: the plan of an agent × a conversation → [`Body`], through `json` and the steps of
//!    `provider`.
//! 8. `check`: bodies against the schemas of their wire formats.
//!    [`tokens`]: what a body takes.
//! 9. [`golden`] and [`diff`]: bodies against files, changes as data. [`review`]: which edits of
//!    sources caused them. [`lint`]: bodies that nobody here compiled.
//! 10. [`report`]: findings ([`diag`]) and changes as text.
//! 11. `runtime` (a default feature): the same bodies, sent; answers as typed events, tools in a
//!     loop.
//!
//! # The path, and who needs the rest
//!
//! A host that compiles, sends or judges needs three modules, and what their functions take and
//! give:
//!
//! - [`compile`], the front door: [`Compiler::load`](compile::Compiler::load) reads and checks a
//!   repository, [`Compiler::report`](compile::Compiler::report) makes the bodies in parallel and
//!   says what was found.
//! - `runtime` sends.
//! - [`lint`] finds and recognises bodies that nobody here compiled;
//!   [`Compiler::lint`](compile::Compiler::lint) judges them.
//!
//! | module | for |
//! | --- | --- |
//! | [`conversation`] | hosts that build conversations or read what was said |
//! | [`system`] | hosts whose repositories, sessions and keys are on a real machine |
//! | [`world`] | hosts that keep files elsewhere, and tests |
//! | [`diag`], [`source`] | hosts that show findings themselves: rules, places, fixes |
//! | [`report`], [`text`] | hosts that print findings and changes in the forms of the command line |
//! | [`tokens`] | hosts that plan what a request costs |
//! | [`export`] | programs that hand requests to others: scripts, HAR, batches |
//! | [`golden`], [`diff`], [`review`] | CI and reviewers: golden files, changes, and the edits that caused them |
//! | [`compare`] | programs that move conversations between formats: what one of two bodies lacks |
//! | [`refusal`] | programs that explain why a provider refused a request |
//! | [`tool_list`] | authors of tools: which provider takes them |
//! | [`traffic`] | programs that read logs of requests |
//!
//! Modules of the stages without a link are not for hosts: they are public for tests and benchmarks
//! alone, and change without notice. The default feature `cli` is the command line; hosts do without
//! it (`default-features = false`), and without the two reports that draw source lines, `Human` and
//! `Markdown`.
//!
//! # Example
//!
//! One profile in memory, compiled against the bundled contexts:
//!
//! ```
//! use std::sync::Arc;
//!
//! use reqc::compile::{AgentBodies, Compiler, LoadOptions, PolicyOptions, Selection};
//! use reqc::system::Embedded;
//! use reqc::world::MemoryWorld;
//!
//! let profile = r#"
//! name = "Greeter"
//! extends = "OpenAI Chat"
//! system_prompt = "Say hello first."
//!
//! [body]
//! temperature = 0.2
//! "#;
//! let own = MemoryWorld::from_iter([("agents/greeter.toml", profile)]);
//! let compiler = Compiler::load(Arc::new(own), Arc::new(Embedded::bundled()), LoadOptions::default());
//! assert!(compiler.findings().is_empty());
//!
//! // One body, as it would be sent.
//! let id = compiler.hierarchy().by_name("Greeter").expect("the profile was read");
//! let body = compiler.body(id, "plain-turn", None).expect("a chat agent and a chat context").expect("no findings");
//! assert_eq!(body.value()["temperature"], 0.2);
//! assert_eq!(body.value()["messages"][0]["content"], "Say hello first.");
//!
//! // All bodies of all agents, and what is found in them.
//! let report = compiler.report(&Selection::default(), &PolicyOptions::default());
//! assert!(report.findings.is_empty());
//! // The same with a visitor, which is called once per agent.
//! let visit = |agent: &AgentBodies<'_>| agent.bodies.len();
//! let (report, bodies) = compiler.report_each(&Selection::default(), &PolicyOptions::default(), visit);
//! assert_eq!(bodies, [report.summary.bodies]);
//! ```

mod chain;
#[doc(hidden)]
pub mod check;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
pub mod compare;
pub mod compile;
#[doc(hidden)]
pub mod context;
pub mod conversation;
pub mod diag;
pub mod diff;
pub mod export;
mod flow;
pub mod golden;
#[doc(hidden)]
pub mod import;
#[doc(hidden)]
pub mod json;
pub mod lint;
#[doc(hidden)]
pub mod memory;
mod panics;
#[doc(hidden)]
pub mod profile;
#[doc(hidden)]
pub mod provider;
pub mod refusal;
#[doc(hidden)]
pub mod render;
#[doc(hidden)]
pub mod repo;
pub mod report;
#[doc(hidden)]
pub mod resolve;
pub mod review;
#[cfg(feature = "runtime")]
pub mod runtime;
mod secret;
pub mod source;
#[expect(
    clippy::disallowed_methods,
    reason = "this module is what the others are told to use instead"
)]
pub mod system;
pub mod text;
pub mod tokens;
#[doc(hidden)]
pub mod toml;
pub mod tool_list;
pub mod traffic;
#[doc(hidden)]
pub mod unit;
pub mod world;

/// The programs of the documentation are compiled.
#[cfg(all(doctest, feature = "runtime"))]
#[doc = include_str!("../docs/library.md")]
struct Documentation;

#[doc(inline)]
pub use compile::{Body, Compiler, Report, Selection};
