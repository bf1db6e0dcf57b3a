//! The `reqc` binary: see [`reqc::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    reqc::cli::main()
}
