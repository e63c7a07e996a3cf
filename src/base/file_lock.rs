//! Locks of files, of which one of several processes has one. They are those of the operating
//! system, so that they end with their process, whatever ended it.

use std::fs::{self, File, TryLockError};
use std::io::{ErrorKind, Result};
use std::path::{Path, PathBuf};

/// A file that is locked while this is there.
#[derive(Debug)]
pub(crate) struct FileLock(File);

impl FileLock {
    /// Locks a file for one; none while it is locked.
    ///
    /// Where files cannot be locked, one process has to do: then this does nothing.
    pub(crate) fn exclusive(file: File) -> Result<Option<Self>> {
        let locked = file.try_lock();
        Self::of(file, locked)
    }

    /// The same for all that only read it.
    pub(crate) fn shared(file: File) -> Result<Option<Self>> {
        let locked = file.try_lock_shared();
        Self::of(file, locked)
    }

    fn of(file: File, locked: std::result::Result<(), TryLockError>) -> Result<Option<Self>> {
        match locked {
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) if error.kind() != ErrorKind::Unsupported => Err(error),
            _ => Ok(Some(Self(file))),
        }
    }

    /// Returns the file.
    pub(crate) fn file(&mut self) -> &mut File {
        &mut self.0
    }
}

impl Drop for FileLock {
    /// Gives the lock back at once. To close the file does that only with its last descriptor, of
    /// which a process that is begun at this moment has one until it runs its own program.
    fn drop(&mut self) {
        drop(self.0.unlock());
    }
}

/// A file that is there to be locked, and goes with its lock.
#[derive(Debug)]
pub(crate) struct LockFile {
    path: PathBuf,
    /// Held until the file is gone.
    _lock: FileLock,
}

impl LockFile {
    /// Makes the file and locks it; none while another has it.
    pub(crate) fn take(path: &Path) -> Result<Option<Self>> {
        loop {
            let file = File::create(path)?;
            let opened = file.metadata()?;
            let Some(lock) = FileLock::exclusive(file)? else { return Ok(None) };
            // Who had it may have removed it behind our opening: it would lock nobody out.
            if is_still_there(path, &opened)? {
                return Ok(Some(Self { path: path.to_owned(), _lock: lock }));
            }
        }
    }
}

impl Drop for LockFile {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.path));
    }
}

/// Tells whether a path leads to the file that was opened there.
#[cfg(unix)]
fn is_still_there(path: &Path, opened: &fs::Metadata) -> Result<bool> {
    use std::os::unix::fs::MetadataExt as _;
    match fs::metadata(path) {
        Ok(there) => Ok((there.dev(), there.ino()) == (opened.dev(), opened.ino())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Tells whether a path leads to a file still; which one it is, is not asked here.
#[cfg(not(unix))]
fn is_still_there(path: &Path, _opened: &fs::Metadata) -> Result<bool> {
    path.try_exists()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn a_lock_ends_with_its_value_though_another_descriptor_is_left() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let open = || File::create(&path).unwrap();
        let lock = FileLock::exclusive(open()).unwrap().unwrap();
        let copy = lock.0.try_clone().unwrap();
        assert!(FileLock::exclusive(open()).unwrap().is_none());
        assert!(FileLock::shared(open()).unwrap().is_none());
        drop(lock);
        let readers = [(); 2].map(|()| FileLock::shared(open()).unwrap().unwrap());
        assert!(FileLock::exclusive(open()).unwrap().is_none());
        drop((readers, copy));
    }

    #[test]
    fn a_file_that_goes_with_its_lock_has_one_holder_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let (holders, taken) = (AtomicU32::new(0), AtomicU32::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while taken.load(Ordering::SeqCst) < 2_000 {
                        let Some(lock) = LockFile::take(&path).unwrap() else { continue };
                        assert_eq!(holders.fetch_add(1, Ordering::SeqCst), 0);
                        thread::yield_now();
                        holders.fetch_sub(1, Ordering::SeqCst);
                        taken.fetch_add(1, Ordering::SeqCst);
                        drop(lock);
                    }
                });
            }
        });
        assert!(!path.exists());
    }
}
