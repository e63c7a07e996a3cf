//! The binary `crawl`: the only part that prints, exits or reads the environment.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is the part that prints")]

mod cli;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
