//! What every room stands on: the time, units of settings, files that are written whole, locks,
//! files in object storage, folders of several processes, the limits of the machine, work of
//! several threads. Nothing here knows of pages.

mod base64;
pub mod clock;
pub(crate) mod file_lock;
pub(crate) mod folder;
pub mod outputs;
pub(crate) mod positions;
pub mod remote;
pub mod system;
pub mod threads;
pub mod units;

pub(crate) use base64::decode_base64;
