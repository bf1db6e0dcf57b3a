//! A compiler for LLM agent profiles: declarative TOML in, the exact JSON request bodies that
//! providers receive out.
//!
//! A repository's profiles are read together with the bundled files. Every agent is rendered with
//! every synthetic conversation that fits it, and each problem is reported at the line that caused
//! it. The binary `reqc` is a thin command line over this library. `README.md` introduces the
//! project; `ARCHITECTURE.md` describes its structure.
//!
//! # The stages
//!
//! Data flows one way. Each stage is a module that passes a named type to the next.
//!
//! 1. [`world`]: access to files through one trait. [`system`] implements it for real files;
//!    [`MemoryWorld`](world::MemoryWorld) is for tests and hosts.
//! 2. `repo`: the files of both layers. `toml` parses them; [`source`] keeps track of positions.
//! 3. `profile`: one file → a profile.
//! 4. `resolve`: `extends` → the hierarchy and, one at a time, merged profiles, with the
//!    origin of each value.
//! 5. `context`: JSON files → [`Conversation`](conversation::Conversation)s in normal form.
//! 6. `render`: checks and compiles templates, then renders text.
//! 7. `unit`: an agent's plan and a conversation → [`Body`], through `json` and the steps of
//!    `provider`.
//! 8. `check`: checks bodies against the schemas of their wire formats. [`tokens`]: token estimates
//!    for a body.
//! 9. [`golden`] and [`diff`]: comparison with golden files, changes as data. [`review`]: the
//!    source edits that caused the changes. [`lint`]: bodies that were not compiled by reqc.
//! 10. [`report`]: findings ([`diag`]) and changes as text.
//! 11. `runtime` (a default feature): sends the same bodies; answers arrive as typed events, and
//!     tools run in a loop.
//!
//! # The main modules, and who needs the others
//!
//! A host that compiles, sends or checks requests needs three modules, and the types that their
//! functions use:
//!
//! - [`compile`], the entry point: [`Compiler::load`](compile::Compiler::load) reads and checks a
//!   repository; [`Compiler::report`](compile::Compiler::report) compiles the bodies in parallel
//!   and reports the findings.
//! - `runtime` sends requests.
//! - [`lint`] finds and recognises bodies that were not compiled by reqc;
//!   [`Compiler::lint`](compile::Compiler::lint) checks them.
//!
//! | module | for |
//! | --- | --- |
//! | [`conversation`] | hosts that build or read conversations |
//! | [`system`] | hosts whose repositories, sessions and keys are on a real machine |
//! | [`world`] | hosts that keep files elsewhere, and tests |
//! | [`diag`], [`source`] | hosts that show findings themselves: rules, locations, fixes |
//! | [`report`], [`text`] | hosts that print findings and changes as the command line does |
//! | [`tokens`] | hosts that plan the cost of requests |
//! | [`export`] | programs that hand requests to others: scripts, HAR, batches |
//! | [`golden`], [`diff`], [`review`] | CI and reviewers: golden files, changes, and the edits that caused them |
//! | [`compare`] | programs that move conversations between formats: what one of two bodies lacks |
//! | [`refusal`] | programs that explain why a provider rejected a request |
//! | [`tool_list`] | authors of tools: which providers accept them |
//! | [`traffic`] | programs that read logs of requests |
//!
//! Stage modules without a link are not for hosts. They are public only for tests and
//! benchmarks, and change without notice. The default feature `cli` contains the command line.
//! Hosts do not need it (`default-features = false`), unless they want the two reports that draw
//! source lines, `Human` and `Markdown`.
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
//! // All bodies of all agents, with their findings.
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
    reason = "the other modules must use this module instead"
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

/// Compiles the programs in the documentation.
#[cfg(all(doctest, feature = "runtime"))]
#[doc = include_str!("../docs/library.md")]
struct Documentation;

#[doc(inline)]
pub use compile::{Body, Compiler, Report, Selection};
