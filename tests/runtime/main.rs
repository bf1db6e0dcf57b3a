//! The runtime against servers on this machine.

#![expect(clippy::disallowed_methods, reason = "tests write repositories and run the binary themselves")]

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
mod faults;
mod fixture;
mod hostile;
mod installed;
mod killed;
mod library;
#[cfg(unix)]
mod mcp;
mod one_path;
mod poison;
mod pool;
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
