//! What the operating system lets this process have: open files above all.

use std::io;

/// Open files that the store, the log and the runtime need, where the limit allows that many.
const KEPT: u64 = 64;

/// Asks for as many open files as this process may have. Returns how many connections that leaves
/// room for; none if there is no limit, or the system tells of none.
#[must_use]
pub(crate) fn raise_open_files() -> Option<usize> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let limit = getrlimit(Resource::Nofile);
        // A limit that cannot be raised is kept to.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
        let files = getrlimit(Resource::Nofile).current?;
        let room = files.saturating_sub(KEPT.min(files / 2)).max(1);
        Some(usize::try_from(room).unwrap_or(usize::MAX))
    }
    #[cfg(not(unix))]
    None
}

/// Tells whether something failed for want of what this process or machine has too little of, and
/// not because of whom it was meant for.
#[must_use]
pub(crate) fn is_exhausted(error: &io::Error) -> bool {
    #[cfg(unix)]
    {
        use rustix::io::Errno;
        let ours = [Errno::MFILE, Errno::NFILE, Errno::NOBUFS, Errno::NOMEM];
        let code = error.raw_os_error();
        code.is_some_and(|code| ours.iter().any(|ours| ours.raw_os_error() == code))
    }
    #[cfg(not(unix))]
    {
        error.kind() == io::ErrorKind::OutOfMemory
    }
}

/// Returns why no file can be opened at the moment; none if one can. The resolver of the system
/// does not tell what it failed for.
#[must_use]
pub(crate) fn no_file_left() -> Option<io::Error> {
    #[cfg(unix)]
    {
        std::fs::File::open("/dev/null").err().filter(is_exhausted)
    }
    #[cfg(not(unix))]
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn want_of_files_is_ours_and_a_refused_connection_is_not() {
        use rustix::io::Errno;
        let error = |errno: Errno| io::Error::from_raw_os_error(errno.raw_os_error());
        assert!([Errno::MFILE, Errno::NFILE].map(error).iter().all(is_exhausted));
        assert!(![Errno::CONNREFUSED, Errno::NETUNREACH].map(error).iter().any(is_exhausted));
        assert!(!is_exhausted(&io::Error::other("too many open files")));
        assert!(no_file_left().is_none());
        assert!(raise_open_files().is_none_or(|room| room > 0));
    }
}
