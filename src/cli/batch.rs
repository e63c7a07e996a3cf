//! Lines in, lines out: answered on all cores, in the order in which they came.

use std::borrow::Cow;
use std::io::{BufRead, Read as _, Write as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;

use anyhow::Result;

use super::exit::Exit;
use super::screen::json_lines;

/// Bytes of one line at most: several times the longest page that is read, in Base64 or escaped.
const LINE_BYTES_MAX: usize = 64 << 20;

/// Bytes of all lines that wait or are being answered, unless it is one line only.
const BYTES_MAX: usize = 256 << 20;

/// Buffers longer than this are not kept for further lines.
const SPARE_BYTES_MAX: usize = 1 << 20;

/// Lines under way for each thread: enough that none waits for a slow page before it.
const LINES_PER_THREAD: usize = 16;

/// Answers one line.
pub(super) type LineAnswer = dyn Fn(&str) -> String + Send + Sync;

/// A line, and where its answer goes.
struct BatchJob {
    line: Vec<u8>,
    done: Sender<String>,
}

/// What comes out next.
enum BatchTurn {
    Answer(Receiver<String>),
    Failed(std::io::Error),
}

/// Answers each line of standard input with one line, which is written as soon as those before it
/// are, without waiting for further input. `threads` work; 0 is one for each core.
///
/// The threads are not joined: when nobody reads the answers any more, the reader may still wait
/// for a line.
pub(super) fn run(threads: usize, answer: &Arc<LineAnswer>) -> Result<Exit> {
    let cores = thread::available_parallelism().map_or(1, usize::from);
    let threads = if threads == 0 { cores } else { threads };
    if threads == 1 {
        return alone(&**answer);
    }
    let (jobs, work) = async_channel::unbounded::<BatchJob>();
    let (turns, order) = sync_channel::<BatchTurn>(threads.saturating_mul(LINES_PER_THREAD));
    let (spare, spares) = channel();
    let gate = Arc::new(Gate::default());
    for _ in 0..threads {
        let (work, gate, answer) = (work.clone(), Arc::clone(&gate), Arc::clone(answer));
        let spare = spare.clone();
        thread::spawn(move || {
            while let Ok(BatchJob { line, done }) = work.recv_blocking() {
                // If nobody waits for it, the program is about to end.
                let _ = done.send(answered(&line, &*answer));
                gate.leave(line.len());
                if line.capacity() <= SPARE_BYTES_MAX {
                    let _ = spare.send(line);
                }
            }
        });
    }
    thread::spawn(move || read(&jobs, &turns, &spares, &gate));
    let mut out = std::io::stdout().lock();
    for turn in order {
        let text = match turn {
            BatchTurn::Answer(answer) => answer.recv()?,
            BatchTurn::Failed(error) => return Err(error.into()),
        };
        writeln!(out, "{}", json_lines(&text))?;
        out.flush()?;
    }
    Ok(Exit::Done)
}

/// One thread for all: no line waits for another one.
fn alone(answer: &LineAnswer) -> Result<Exit> {
    let (mut input, mut out) = (std::io::stdin().lock(), std::io::stdout().lock());
    let mut line = Vec::new();
    while let Some(read) = next(&mut input, line)? {
        let text = match &read {
            Ok(line) => answered(line, answer),
            Err(()) => too_long(),
        };
        writeln!(out, "{}", json_lines(&text))?;
        out.flush()?;
        line = read.unwrap_or_default();
    }
    Ok(Exit::Done)
}

/// Reads lines and hands them out until the input ends. The queue of turns bounds their number.
/// Buffers come back from the threads: memory that one thread takes and another one frees is
/// given back to the system and taken from it again, page by page.
fn read(
    jobs: &async_channel::Sender<BatchJob>,
    turns: &SyncSender<BatchTurn>,
    spares: &Receiver<Vec<u8>>,
    gate: &Gate,
) {
    let mut input = std::io::stdin().lock();
    loop {
        let (done, answer) = channel();
        let read = match next(&mut input, spares.try_recv().unwrap_or_default()) {
            Ok(Some(read)) => read,
            Ok(None) => return,
            Err(error) => {
                let _ = turns.send(BatchTurn::Failed(error));
                return;
            }
        };
        match read {
            Ok(line) => {
                gate.enter(line.len());
                if jobs.try_send(BatchJob { line, done }).is_err() {
                    return;
                }
            }
            Err(()) => {
                let _ = done.send(too_long());
            }
        }
        if turns.send(BatchTurn::Answer(answer)).is_err() {
            return;
        }
    }
}

/// Reads a line; none at the end of the input, an error in place of one that is too long.
fn next(
    input: &mut impl BufRead,
    mut line: Vec<u8>,
) -> std::io::Result<Option<Result<Vec<u8>, ()>>> {
    line.clear();
    if input.by_ref().take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)? == 0 {
        return Ok(None);
    }
    if line.last() == Some(&b'\n') || line.len() < LINE_BYTES_MAX {
        return Ok(Some(Ok(line)));
    }
    drop(line);
    input.skip_until(b'\n')?;
    Ok(Some(Err(())))
}

fn answered(line: &[u8], answer: &LineAnswer) -> String {
    // The check for whole UTF-8 is faster than the repair of what is not.
    let text = match std::str::from_utf8(line) {
        Ok(text) => Cow::Borrowed(text),
        Err(_) => String::from_utf8_lossy(line),
    };
    let text = text.trim_end_matches(['\n', '\r']);
    // A line that breaks the reader is the outcome of that line, not the end of all.
    let answer = catch_unwind(AssertUnwindSafe(|| answer(text)));
    answer.unwrap_or_else(|_| error("the reader failed on this line"))
}

fn too_long() -> String {
    error(&format!("the line is longer than {LINE_BYTES_MAX} bytes"))
}

fn error(detail: &str) -> String {
    serde_json::json!({"id": null, "error": detail}).to_string()
}

/// Bounds the bytes under way.
#[derive(Default)]
struct Gate {
    bytes: Mutex<usize>,
    left: Condvar,
}

impl Gate {
    fn enter(&self, bytes: usize) {
        let inside = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let full = |inside: &mut usize| *inside > 0 && *inside + bytes > BYTES_MAX;
        let inside = self.left.wait_while(inside, full);
        *inside.unwrap_or_else(PoisonError::into_inner) += bytes;
    }

    fn leave(&self, bytes: usize) {
        *self.bytes.lock().unwrap_or_else(PoisonError::into_inner) -= bytes;
        self.left.notify_one();
    }
}
