//! What the operating system lets this process have: open files above all, memory and disk.

use std::fs::File;
use std::io;
use std::path::Path;

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

/// Tells whether a file could not be written because its disk is full, or because it may not be
/// larger.
#[must_use]
pub(crate) fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Tells the system that a file is read here and there. What it would read ahead would be in vain,
/// and lie in its cache in pieces of up to megabytes, of which each write of a page touches all.
pub(crate) fn is_read_at_random(file: &File) {
    #[cfg(any(target_os = "linux", target_os = "android", target_os = "freebsd"))]
    {
        // It is advice: without it all works as well.
        let _ = rustix::fs::fadvise(file, 0, None, rustix::fs::Advice::Random);
    }
    #[cfg(not(any(target_os = "linux", target_os = "android", target_os = "freebsd")))]
    let _ = file;
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

/// Returns the memory of this machine in bytes, or what its container lets processes have if that
/// is less; none if the system tells of none.
#[must_use]
pub(crate) fn memory() -> Option<u64> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let all = memory_of(&read("/proc/meminfo")?)?;
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    Some(limits.into_iter().filter_map(|path| limit_of(&read(path)?)).fold(all, u64::min))
}

/// Returns the limit that a control group tells of, in bytes; `max` is none.
fn limit_of(text: &str) -> Option<u64> {
    text.trim().parse().ok()
}

/// Returns the memory that `/proc/meminfo` tells of, in bytes.
fn memory_of(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

/// Returns the size in bytes of the disk on which a folder is, full or not; none if the system
/// tells of none.
#[must_use]
pub(crate) fn disk(folder: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let disk = rustix::fs::statvfs(folder).ok()?;
        disk.f_blocks.checked_mul(disk.f_frsize)
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        None
    }
}

/// Returns the bytes that are free for this process on the disk of a folder; none if the system
/// tells of none.
#[must_use]
pub(crate) fn free(folder: &Path) -> Option<u64> {
    #[cfg(unix)]
    {
        let disk = rustix::fs::statvfs(folder).ok()?;
        disk.f_bavail.checked_mul(disk.f_frsize)
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        None
    }
}

/// Returns the name of this machine, as far as it tells.
#[must_use]
pub fn host_name() -> String {
    #[cfg(unix)]
    return rustix::system::uname().nodename().to_string_lossy().into_owned();
    #[cfg(not(unix))]
    String::new()
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

    #[test]
    fn memory_is_read_in_bytes() {
        let text = "MemFree:  7 kB\nMemTotal:       16384 kB\nMemAvailable:  8192 kB\n";
        assert_eq!(memory_of(text), Some(16 << 20));
        assert_eq!(memory_of("MemFree:  7 kB\n"), None);
        assert_eq!(memory_of("MemTotal:  many kB\n"), None);
        assert_eq!((limit_of("536870912\n"), limit_of("max\n")), (Some(512 << 20), None));
        // What older systems write where there is no limit is more than any machine has.
        assert_eq!(limit_of("9223372036854771712\n"), Some(i64::MAX.cast_unsigned() & !4_095));
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_is_on_a_disk_and_a_name_is_not() {
        assert!(disk(Path::new("/")).is_some_and(|bytes| bytes > 1 << 20));
        assert_eq!(disk(Path::new("/no/such/folder")), None);
    }
}
