//! What has changed: new, changed and ended documents behind a cursor, for whoever keeps something
//! in step with the store.
//!
//! An answer is lines of JSON: a change each, and a last line that says where the next answer goes
//! on. A request may wait until something changes.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use tokio::time::{Instant, sleep};

use super::Service;
use super::problem::Problem;
use super::query::Params;
use super::route::{Route, route};
use crate::base::units::Time;
use crate::corpus::changes::{ChangesCursor, ChangesError, ChangesPart, Shown, changes};

pub(super) const ROUTES: &[Route] = &[route!("/v1/changes", get list "listChanges")];

/// Changes of one answer at most.
const CHANGES_MAX: usize = 1_000;

/// Longest time for which a request may wait.
const WAIT_MAX: Duration = Duration::from_mins(1);

/// Time between two looks while a request waits.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// Time that is left for an answer.
const ANSWER_TIME: Duration = Duration::from_secs(2);

/// `GET /v1/changes?cursor=&limit=&wait=`.
async fn list(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Problem> {
    let params = Params::parse(uri.query(), &["cursor", "limit", "wait"])?;
    let limit = params.number("limit", 100, CHANGES_MAX)?;
    let wait = wait_of(&params)?.min(service.config.request_time().saturating_sub(ANSWER_TIME));
    let since = match params.text("cursor") {
        None | Some("") => None,
        Some("now") => Some(Since::Now),
        Some(text) => Some(Since::Cursor(text.parse()?)),
    };
    let began = Instant::now();
    let mut since = since;
    loop {
        let part = service.read(move |service, snapshot| {
            let from = match since {
                None => ChangesCursor::first(snapshot)?,
                Some(Since::Now) => ChangesCursor::last(snapshot)?,
                Some(Since::Cursor(cursor)) => cursor,
            };
            let shown = Shown { honour: &service.honour, now: service.clock.now() };
            Ok(changes(snapshot, &from, limit, shown)?)
        });
        let part = part.await?;
        let is_over = began.elapsed() >= wait || service.is_stopping();
        if !part.changes.is_empty() || part.more || is_over {
            return answer(&part);
        }
        since = Some(Since::Cursor(part.next));
        sleep(LOOK_EVERY.min(wait.saturating_sub(began.elapsed()))).await;
    }
}

/// Where a reader goes on.
#[derive(Debug, Clone, Copy)]
enum Since {
    Now,
    Cursor(ChangesCursor),
}

fn wait_of(params: &Params) -> Result<Duration, Problem> {
    let Some(text) = params.text("wait") else { return Ok(Duration::ZERO) };
    let wait = text.parse().ok().map(Time::duration).filter(|wait| *wait <= WAIT_MAX);
    let detail = "`wait`: it is a time up to 60s, such as 20s";
    wait.ok_or_else(|| Problem::bad("bad_parameter", detail))
}

fn answer(part: &ChangesPart) -> Result<Response, Problem> {
    let failed = |_| Problem::failed("the changes cannot be written");
    let mut body = Vec::new();
    for change in &part.changes {
        serde_json::to_writer(&mut body, change).map_err(failed)?;
        body.push(b'\n');
    }
    serde_json::to_writer(&mut body, &part.end()).map_err(failed)?;
    body.push(b'\n');
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}

impl From<ChangesError> for Problem {
    fn from(error: ChangesError) -> Self {
        let detail = error.to_string();
        match error {
            ChangesError::Store(error) => error.into(),
            ChangesError::NoCursor(_) => Self::bad("bad_cursor", detail),
            ChangesError::Other | ChangesError::TooOld => {
                Self::new(StatusCode::GONE, "cursor_gone", detail)
            }
        }
    }
}
