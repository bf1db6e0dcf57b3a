//! The `reqc` binary: see [`reqc::cli`].

use std::process::ExitCode;

/// Rendering and parsing mostly make small allocations, and this allocator makes whole runs about a
/// fifth faster. Huge pages are disabled (feature `no_thp`), because they increase memory use by
/// half without making runs faster.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    reqc::cli::main()
}
