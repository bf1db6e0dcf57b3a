//! The runtime against servers on this machine.

#![expect(
    clippy::disallowed_methods,
    reason = "tests write repositories and run the binary themselves"
)]
#![cfg_attr(
    not(feature = "long-tests"),
    allow(dead_code, reason = "some helpers serve the long tests alone")
)]

mod agent_loop;
#[cfg(target_os = "linux")]
mod children;
mod client;
mod compression;
mod content;
mod cost;
mod deadline;
mod edges;
mod example;
mod examples;
#[cfg(feature = "long-tests")]
mod faults;
mod fixture;
mod hostile;
mod installed;
#[cfg(feature = "long-tests")]
mod killed;
mod library;
#[cfg(unix)]
mod mcp;
#[cfg(feature = "long-tests")]
mod one_path;
#[cfg(feature = "long-tests")]
mod poison;
mod pool;
#[path = "../program/mod.rs"]
mod program;
mod provider_blocks;
mod renewal;
mod send;
mod serde_forms;
mod server;
mod session;
#[cfg(target_os = "linux")]
mod tls;
mod tools;
mod transport;
mod trust;
