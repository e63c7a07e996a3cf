//! Which stored contents could be the same as a new one.
//!
//! [`layout`] is the interface of the in-memory indexes of fingerprints, all equal to a linear
//! scan; [`keys`] is the index of equality keys. How fingerprints outlive the process is told by
//! [`crate::corpus::keys`].

pub mod expanded;
pub mod expansion;
pub mod keys;
pub mod layout;
pub mod linear;
mod packed;
pub mod pairs;
pub mod rotated;
pub mod simd;
mod tables;
pub mod two_level;
