//! The `reqc` binary: see [`reqc::cli`].

use std::process::ExitCode;

/// Rendering and parsing mostly make small allocations, and this allocator makes whole runs about a
/// fifth faster. Huge pages are disabled (feature `no_thp`): they do not make runs faster, and they
/// increase memory use by half.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    reqc::cli::main()
}
