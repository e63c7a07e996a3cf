//! The web as it answers: robots.txt, lists of URLs, one request.
//!
//! In: a URL. Out: whether it may be asked for, what a sitemap or feed names, a response under
//! limits. Nothing here is stored, and nothing is asked twice on its own account.

pub mod discover;
pub mod fetch;
pub mod robots;
