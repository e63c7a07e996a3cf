//! The binary `crawl`.

#![allow(unsafe_code, reason = "an option of the allocator, set before there are threads")]

use std::process::ExitCode;

use libmimalloc_sys::{mi_option_set_default, mi_option_t};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// `mi_option_purge_delay` of `mimalloc.h`: milliseconds after which memory that is free goes back
/// to the system.
const PURGE_DELAY: mi_option_t = 15;

/// With 1,000, the default, `crawl dedup --memory 256MiB` had a peak of 278 MiB, with this one of
/// 237; both took as long. With 10 it was 216, and longer.
const PURGE_DELAY_MS: std::ffi::c_long = 100;

fn main() -> ExitCode {
    give_memory_back();
    uniqcrawl::cli::main()
}

/// Has free memory given back soon, unless the variable `MIMALLOC_PURGE_DELAY` says when.
fn give_memory_back() {
    // SAFETY: plain integers, of which the option is one that the library has.
    unsafe { mi_option_set_default(PURGE_DELAY, PURGE_DELAY_MS) };
}

#[cfg(test)]
mod tests {
    use libmimalloc_sys::mi_option_get;

    use super::*;

    #[test]
    fn free_memory_is_given_back_soon() {
        // SAFETY: as above.
        let delay = || unsafe { mi_option_get(PURGE_DELAY) };
        if std::env::var_os("MIMALLOC_PURGE_DELAY").is_none() {
            // What the library has by default, so that the number is that of the option.
            assert_eq!(delay(), 1_000);
            give_memory_back();
            assert_eq!(delay(), PURGE_DELAY_MS);
        }
    }
}
