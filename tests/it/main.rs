//! All integration tests, in one binary. `tidy` fails when a file is missing from this list.

mod robots;
