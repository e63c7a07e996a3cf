//! Finished WARC files on their way to another place, such as object storage.
//!
//! Files are written into a folder of this machine. One that has its name is sent, with its index,
//! by a thread of its own, and removed when it is there. What could not be sent stays, and is sent
//! by the next run: sending a file again puts the same bytes under the same name.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time before a place that could not be reached is tried again.
const REST: Duration = Duration::from_secs(30);

/// What is added to the name of a file that is being written.
const OPEN: &str = ".open";

/// How the name of an index ends.
const INDEX: &str = ".cdxj";

/// Files that wait, and why.
#[derive(Debug, thiserror::Error)]
#[error(
    "{files} WARC files are not in {place} yet: {source}. They wait in {}, and the next run with \
     the same --warc sends them",
    folder.display()
)]
pub struct UploadError {
    /// How many they are, indexes among them.
    pub files: usize,
    /// Where they are to be.
    pub place: String,
    /// Where they wait.
    pub folder: PathBuf,
    /// What went wrong last.
    pub source: io::Error,
}

/// Where files go.
pub(super) struct Place {
    /// Its name, for messages.
    pub name: String,
    /// The folder in which they wait.
    pub spool: PathBuf,
    /// Sends one, so that it is there whole, or not at all.
    pub send: SendFile,
}

/// Sends a file under its own name.
type SendFile = Box<dyn Fn(&Path) -> io::Result<()> + Send>;

/// The thread that sends.
#[derive(Debug)]
pub(super) struct Uploads {
    tell: Option<SyncSender<()>>,
    thread: Option<JoinHandle<Result<(), UploadError>>>,
}

impl Uploads {
    /// Begins with what waits.
    ///
    /// # Errors
    ///
    /// If there is no thread.
    pub(super) fn start(place: Place) -> io::Result<Self> {
        let (tell, told) = sync_channel(1);
        let thread = thread::Builder::new().name("uploads".to_owned());
        let thread = thread.spawn(move || place.serve(&told))?;
        Ok(Self { tell: Some(tell), thread: Some(thread) })
    }

    /// Says that there may be more.
    pub(super) fn look(&self) {
        if let Some(tell) = &self.tell {
            // It looks again anyway if it was told before.
            let _ = tell.try_send(());
        }
    }

    /// Waits until all that is finished is sent.
    ///
    /// # Errors
    ///
    /// What could not be sent.
    pub(super) fn end(mut self) -> Result<(), UploadError> {
        drop(self.tell.take());
        let ended = self.thread.take().map(JoinHandle::join);
        ended.map_or(Ok(()), |ended| ended.expect("what sends files does not panic"))
    }
}

impl Drop for Uploads {
    /// A crawl that has failed sends what is finished, too; what cannot be sent waits.
    fn drop(&mut self) {
        if let Some(tell) = self.tell.take() {
            drop(tell);
            if let Some(thread) = self.thread.take() {
                drop(thread.join());
            }
        }
    }
}

impl Place {
    fn serve(&self, told: &Receiver<()>) -> Result<(), UploadError> {
        let mut failed: Option<Instant> = None;
        loop {
            if failed.is_none_or(|at| at.elapsed() >= REST) {
                failed = self.send_all().err().map(|error| {
                    tracing::warn!(%error, place = self.name, "a WARC file waits");
                    Instant::now()
                });
            }
            match told.recv_timeout(REST) {
                Ok(()) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        self.send_all().map_err(|source| UploadError {
            files: finished(&self.spool).map_or(0, |files| files.len()),
            place: self.name.clone(),
            folder: self.spool.clone(),
            source,
        })
    }

    /// Sends what is finished, each file before its index, and removes it.
    fn send_all(&self) -> io::Result<()> {
        for file in finished(&self.spool)? {
            (self.send)(&file)?;
            tracing::trace!("sent");
            fs::remove_file(&file)?;
            tracing::info!(file = %file.display(), place = self.name, "sent");
        }
        Ok(())
    }
}

/// Files that are whole, in the order in which they were written, each before its index. An index
/// is whole when its file is.
fn finished(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut names = Vec::new();
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    let stem = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
    let open: Vec<String> =
        names.iter().filter(|name| name.ends_with(OPEN)).map(|name| stem(name)).collect();
    let is_whole = |name: &String| {
        let is_file = name.ends_with(".warc.gz") || name.ends_with(".warc.zst");
        is_file || name.ends_with(INDEX) && !open.contains(&stem(name))
    };
    names.retain(is_whole);
    names.sort_by_key(|name| (stem(name), name.ends_with(INDEX)));
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn what_is_finished_is_sent_in_order_and_what_cannot_be_sent_waits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        for name in ["a-1.warc.gz", "a-1.cdxj", "a-0.cdxj", "a-0.warc.gz"] {
            fs::write(path.join(name), name).unwrap();
        }
        for name in ["a-2.warc.gz.open", "a-2.cdxj", "a-2.cdxj.1.part"] {
            fs::write(path.join(name), name).unwrap();
        }
        let arrived = Arc::new(Mutex::new(Vec::new()));
        let place = |most: usize| {
            let arrived = arrived.clone();
            let send = move |path: &Path| {
                let mut arrived = arrived.lock().unwrap();
                if arrived.len() == most {
                    return Err(io::Error::other("no room there"));
                }
                arrived.push(path.file_name().unwrap().to_string_lossy().into_owned());
                Ok(())
            };
            Place { name: "s3://b/x".to_owned(), spool: path.to_owned(), send: Box::new(send) }
        };
        let error = Uploads::start(place(1)).unwrap().end().unwrap_err();
        assert_eq!(error.files, 3);
        let told = error.to_string();
        assert!(told.contains("3 WARC files are not in s3://b/x yet: no room there"), "{told}");
        let uploads = Uploads::start(place(usize::MAX)).unwrap();
        uploads.look();
        uploads.end().unwrap();
        assert_eq!(
            *arrived.lock().unwrap(),
            ["a-0.warc.gz", "a-0.cdxj", "a-1.warc.gz", "a-1.cdxj"]
        );
        assert_eq!(fs::read_dir(path).unwrap().count(), 3, "what is open stays");
    }
}
