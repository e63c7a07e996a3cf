//! Jobs with the real binary.
