//! The `reqc` binary: see [`reqc::cli`].

use std::process::ExitCode;

/// Rendering and parsing are mostly small allocations: this allocator makes whole runs about a
/// fifth faster. Without huge pages (feature `no_thp`): with them, runs are not faster and hold
/// half as much memory again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    reqc::cli::main()
}
