//! The runtime against servers on this machine.

mod agent_loop;
mod fixture;
mod one_path;
mod server;
mod session;
mod transport;
