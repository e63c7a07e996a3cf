//! A batch of articles: lines that are read, fingerprinted, stored and answered as they come.
//!
//! Lines are fingerprinted several chunks at a time and stored in their order, so that the answers
//! do not depend on the number of threads. A line that is no article is answered by a problem; the
//! others go on.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Frame;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::problem::Problem;
use super::{Service, articles, body};
use crate::service::ingest::Prepared;

/// Most lines of a chunk, which is fingerprinted by one thread and stored in one commit.
const CHUNK_LINES: usize = 256;

/// Bytes from which a chunk is full.
const CHUNK_BYTES: usize = 256 << 10;

/// Chunks that are fingerprinted or wait to be stored.
const CHUNKS_AHEAD: usize = 3;

/// Chunks of answers that wait for a client which writes all before it reads.
const ANSWERS_AHEAD: usize = 512;

/// How long a chunk that is not full waits for more.
const CHUNK_WAIT: Duration = Duration::from_millis(3);

/// A line as it came, with its number.
type AnsweredLine = (u64, Result<Vec<u8>, Problem>);

/// A line that is fingerprinted.
type Numbered = (u64, Result<Prepared, Problem>);

/// Answers a batch.
pub(super) fn answer(service: &Arc<Service>, content: Body) -> Result<Response, Problem> {
    let place = service.batches.clone().try_acquire_owned();
    let place = place.map_err(|_| Problem::busy("too many batches at a time"))?;
    let (ahead, chunks) = mpsc::channel(CHUNKS_AHEAD);
    let (out, answers) = mpsc::channel(ANSWERS_AHEAD);
    tokio::spawn(LineReader::new(service.clone(), content).run(ahead));
    tokio::spawn(store(service.clone(), chunks, out, place));
    let kind = [(header::CONTENT_TYPE, "application/x-ndjson")];
    Ok((kind, Body::new(Answers(answers))).into_response())
}

/// Takes lines from a body.
struct LineReader {
    service: Arc<Service>,
    body: Body,
    /// Bytes of a line that has not ended.
    rest: Vec<u8>,
    /// The line is too long: the rest of it is not kept.
    skips: bool,
    chunk: Vec<AnsweredLine>,
    chunk_bytes: usize,
    lines: u64,
}

impl LineReader {
    fn new(service: Arc<Service>, body: Body) -> Self {
        let (rest, chunk) = (Vec::new(), Vec::new());
        Self { service, body, rest, skips: false, chunk, chunk_bytes: 0, lines: 0 }
    }

    async fn run(mut self, ahead: mpsc::Sender<JoinHandle<Vec<Numbered>>>) {
        let stall = self.service.config.stall_time();
        loop {
            let frame = if self.chunk.is_empty() {
                body::next(&mut self.body, stall).await
            } else {
                let soon = timeout(CHUNK_WAIT, body::next(&mut self.body, stall)).await;
                let Ok(frame) = soon else {
                    if self.hand_on(&ahead).await.is_err() {
                        return;
                    }
                    continue;
                };
                frame
            };
            let went = match frame {
                Ok(Some(bytes)) => self.take(&bytes, &ahead).await,
                Ok(None) => {
                    self.end_line();
                    let _gone = self.hand_on(&ahead).await;
                    return;
                }
                Err(problem) => {
                    // Half a line is no line.
                    self.lines += 1;
                    self.chunk.push((self.lines, Err(problem)));
                    let _gone = self.hand_on(&ahead).await;
                    return;
                }
            };
            if went.is_err() {
                return;
            }
        }
    }

    /// Takes bytes. It fails if nobody wants more lines.
    async fn take(
        &mut self,
        mut bytes: &[u8],
        ahead: &mpsc::Sender<JoinHandle<Vec<Numbered>>>,
    ) -> Result<(), ()> {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.grow(&bytes[..end]);
            bytes = &bytes[end + 1..];
            self.end_line();
            let most = self.service.config.batch_lines_max;
            if self.lines > most {
                let detail = format!("a batch has at most {most} lines");
                let status = StatusCode::PAYLOAD_TOO_LARGE;
                let problem = Problem::new(status, "too_many_lines", detail);
                self.chunk.retain(|(number, _)| *number <= most);
                self.chunk.push((self.lines, Err(problem)));
                let _gone = self.hand_on(ahead).await;
                return Err(());
            }
            if self.chunk.len() >= CHUNK_LINES || self.chunk_bytes >= CHUNK_BYTES {
                self.hand_on(ahead).await?;
            }
        }
        self.grow(bytes);
        Ok(())
    }

    fn grow(&mut self, bytes: &[u8]) {
        if self.rest.len() + bytes.len() > self.service.config.body_size_max.bytes() {
            self.skips = true;
            self.rest = Vec::new();
        }
        if !self.skips {
            self.rest.extend_from_slice(bytes);
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.rest);
        let skipped = std::mem::take(&mut self.skips);
        let most = self.service.config.body_size_max.bytes();
        self.lines += 1;
        if skipped {
            let detail = format!("the line has more than {most} bytes");
            let status = StatusCode::PAYLOAD_TOO_LARGE;
            let problem = Problem::new(status, "line_too_long", detail);
            self.chunk.push((self.lines, Err(problem)));
        } else if !line.trim_ascii().is_empty() {
            self.chunk_bytes += line.len();
            self.chunk.push((self.lines, Ok(line)));
        }
    }

    /// Has the chunk fingerprinted, and goes on when there is room for the next one.
    async fn hand_on(&mut self, ahead: &mpsc::Sender<JoinHandle<Vec<Numbered>>>) -> Result<(), ()> {
        let chunk = std::mem::take(&mut self.chunk);
        self.chunk_bytes = 0;
        if chunk.is_empty() {
            return Ok(());
        }
        let place = ahead.reserve().await.map_err(drop)?;
        let service = self.service.clone();
        place.send(tokio::spawn(async move {
            let numbers: Vec<u64> = chunk.iter().map(|(number, _)| *number).collect();
            let reading = service.apart(&service.fingerprinters, move |service| {
                let keys = chunk
                    .into_iter()
                    .map(|(number, line)| (number, line.and_then(|line| service.article(&line))));
                keys.collect()
            });
            match reading.await {
                Ok(keys) => keys,
                Err(problem) => numbers.into_iter().map(|n| (n, Err(problem.clone()))).collect(),
            }
        }));
        Ok(())
    }
}

/// Stores chunks in their order and tells what became of each line.
async fn store(
    service: Arc<Service>,
    mut chunks: mpsc::Receiver<JoinHandle<Vec<Numbered>>>,
    out: mpsc::Sender<Bytes>,
    _place: OwnedSemaphorePermit,
) {
    while let Some(chunk) = chunks.recv().await {
        let Ok(keys) = chunk.await else { return };
        let (mut articles, mut lines) = (Vec::new(), Vec::new());
        for (number, line) in keys {
            lines.push((number, line.map(|article| articles.push(article))));
        }
        let stored = service.deliver(articles).await;
        let mut receipts = stored.as_ref().map(|receipts| receipts.iter());
        let mut text = String::new();
        for (number, line) in lines {
            let told = match (line, &mut receipts) {
                (Err(problem), _) => problem.json(),
                (Ok(()), Err(problem)) => problem.json(),
                (Ok(()), Ok(receipts)) => receipts.next().map_or(Value::Null, articles::in_words),
            };
            let mut line = json!({ "line": number });
            if let (Value::Object(line), Value::Object(told)) = (&mut line, told) {
                line.extend(told);
            }
            text.push_str(&line.to_string());
            text.push('\n');
        }
        let sent = timeout(service.config.stall_time(), out.send(text.into())).await;
        // What was stored stays stored if nobody wants to know.
        if !matches!(sent, Ok(Ok(()))) {
            return;
        }
    }
}

/// The answers as a body.
struct Answers(mpsc::Receiver<Bytes>);

impl hyper::body::Body for Answers {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|bytes| bytes.map(|bytes| Ok(Frame::data(bytes))))
    }
}
