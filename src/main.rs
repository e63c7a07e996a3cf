//! The binary `crawl`: the only part that prints, exits or reads the environment.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is the part that prints")]

/// Prints a line, as the macro of the standard library does; but that nobody reads on, such as
/// `head`, is no reason to panic.
macro_rules! println {
    () => { $crate::cli::line(format_args!("")) };
    ($($part:tt)*) => { $crate::cli::line(format_args!($($part)*)) };
}

/// The same for standard error: a warning that nobody reads does not end the work.
macro_rules! eprintln {
    ($($part:tt)*) => { $crate::cli::aside(format_args!($($part)*)) };
}

mod cli;

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::main()
}
