//! Bodies of requests, read under limits of size, time and memory.

use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody as _};
use axum::http::{HeaderMap, StatusCode, header};
use http_body_util::BodyExt as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::problem::Problem;
use crate::base::units::Size;

/// Bytes that need no room of the large ones.
const SMALL: usize = 64 << 10;

/// Bytes of a permit.
const UNIT: usize = 1 << 10;

/// How long the rest of a body that is too large is read and thrown away, so that the client gets
/// to read why.
const LINGER: Duration = Duration::from_secs(2);

/// A body with the room that it takes.
pub(super) struct Whole {
    pub bytes: Vec<u8>,
    /// Held as long as this is.
    room: Option<OwnedSemaphorePermit>,
}

/// Room for large bodies.
pub(super) fn room(size: Size) -> Arc<Semaphore> {
    Arc::new(Semaphore::new((size.bytes() >> 10).min(Semaphore::MAX_PERMITS)))
}

/// Returns the type of a body, without its parameters, in lower case.
pub(super) fn kind(headers: &HeaderMap) -> String {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.unwrap_or_default().split(';').next().unwrap_or_default();
    kind.trim().to_ascii_lowercase()
}

/// The type of a body is none of those that are understood.
pub(super) fn wrong_kind(kind: &str, known: &str) -> Problem {
    let detail = match kind {
        "" => format!("the body has no `Content-Type`; send {known}"),
        kind => format!("`{kind}` is not understood; send {known}"),
    };
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
}

/// Takes the next bytes of a body; none at its end.
pub(super) async fn next(body: &mut Body, stall: Duration) -> Result<Option<Bytes>, Problem> {
    loop {
        let slow = |_| {
            let detail = format!("no byte of the body came for {} ms", stall.as_millis());
            Problem::new(StatusCode::REQUEST_TIMEOUT, "timeout", detail)
        };
        match timeout(stall, body.frame()).await.map_err(slow)? {
            None => return Ok(None),
            Some(Err(_)) => return Err(Problem::bad("bad_body", "the body broke off")),
            // Trailers tell nothing.
            Some(Ok(frame)) => match frame.into_data() {
                Ok(bytes) if !bytes.is_empty() => return Ok(Some(bytes)),
                _ => {}
            },
        }
    }
}

/// Reads a body to its end.
pub(super) async fn whole(
    headers: &HeaderMap,
    mut body: Body,
    most: usize,
    room: &Arc<Semaphore>,
    stall: Duration,
) -> Result<Whole, Problem> {
    let waits = headers.contains_key(header::EXPECT);
    let declared = body.size_hint().lower();
    if declared > most as u64 {
        // Who waits for a word has sent nothing yet.
        if !waits {
            throw_away(body);
        }
        return Err(Problem::too_large(most));
    }
    let mut whole = Whole { bytes: Vec::new(), room: None };
    while let Some(bytes) = next(&mut body, stall).await? {
        if whole.bytes.len() + bytes.len() > most {
            throw_away(body);
            return Err(Problem::too_large(most));
        }
        whole.bytes.extend_from_slice(&bytes);
        whole.take_room(room)?;
    }
    Ok(whole)
}

impl Whole {
    /// Takes room as bytes come, not as they are announced, and never waits for it.
    fn take_room(&mut self, room: &Arc<Semaphore>) -> Result<(), Problem> {
        let held = self.room.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let due = self.bytes.len().saturating_sub(SMALL).div_ceil(UNIT);
        let Some(more) = due.checked_sub(held).filter(|more| *more > 0) else { return Ok(()) };
        let full = || Problem::busy("too many large bodies at a time");
        let more = u32::try_from(more).map_err(|_| full())?;
        let more = room.clone().try_acquire_many_owned(more).map_err(|_| full())?;
        match &mut self.room {
            Some(room) => room.merge(more),
            none => *none = Some(more),
        }
        Ok(())
    }
}

fn throw_away(mut body: Body) {
    tokio::spawn(timeout(LINGER, async move { while let Some(Ok(_)) = body.frame().await {} }));
}
