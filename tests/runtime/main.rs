//! The runtime against servers on this machine.

mod agent_loop;
mod faults;
mod fixture;
mod killed;
mod one_path;
mod server;
mod session;
mod transport;
