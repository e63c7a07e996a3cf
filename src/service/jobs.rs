//! Jobs: what they are, their runs, and to start and stop them.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use super::documents::{ROWS_MAX, answer};
use super::problem::Problem;
use super::query::Params;
use super::route::{Route, route};
use super::{Service, body, guard};
use crate::crawl::jobs::{JobRow, JobsHandle, Refusal, Run};

pub(super) const ROUTES: &[Route] = &[
    route!("/v1/jobs", get list "listJobs"),
    route!("/v1/jobs/{name}/runs", get runs "listRuns"),
    route!("/v1/jobs/{name}/start", post start "startJob"),
    route!("/v1/jobs/{name}/stop", post stop "stopJob"),
];

/// `GET /v1/jobs`.
async fn list(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Problem> {
    Params::parse(uri.query(), &[])?;
    let rows: Vec<Value> =
        service.jobs.get().map(JobsHandle::rows).iter().flatten().map(in_words).collect();
    Ok(answer(&json!({ "enabled": service.jobs.get().is_some(), "rows": rows })))
}

/// `GET /v1/jobs/{name}/runs`.
async fn runs(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Problem> {
    let params = Params::parse(uri.query(), &["limit"])?;
    let limit = params.number("limit", 50, ROWS_MAX)?;
    let (handle, name) = (handle(&service)?.clone(), name(&uri)?);
    let read = service.apart(&service.readers, move |_| {
        let runs = handle.runs(&name, limit);
        runs.map_err(|error| {
            tracing::error!(%error, "the history of jobs cannot be read");
            Problem::failed("the history of jobs cannot be read")
        })
    });
    let runs = read.await??.ok_or_else(unknown)?;
    let rows: Vec<Value> = runs.iter().map(run_in_words).collect();
    Ok(answer(&json!({ "rows": rows })))
}

/// `POST /v1/jobs/{name}/start`.
async fn start(
    State(service): State<Arc<Service>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    may_change(&uri, &headers)?;
    let row = handle(&service)?.start(&name(&uri)?).await.map_err(refused)?;
    Ok((StatusCode::ACCEPTED, answer(&in_words(&row))).into_response())
}

/// `POST /v1/jobs/{name}/stop`.
async fn stop(
    State(service): State<Arc<Service>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    may_change(&uri, &headers)?;
    let row = handle(&service)?.stop(&name(&uri)?).await.map_err(refused)?;
    Ok((StatusCode::ACCEPTED, answer(&in_words(&row))).into_response())
}

/// Refuses what a page of another site, or a form, may have sent.
pub(super) fn may_change(uri: &Uri, headers: &HeaderMap) -> Result<(), Problem> {
    Params::parse(uri.query(), &[])?;
    guard::same_origin(headers)?;
    match body::kind(headers).as_str() {
        "" | "application/json" => Ok(()),
        kind => Err(body::wrong_kind(kind, "application/json, or no body")),
    }
}

fn handle(service: &Service) -> Result<&JobsHandle, Problem> {
    let detail = "the service runs no jobs: start it with --jobs FILE";
    service.jobs.get().ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "unknown_job", detail))
}

/// The name in a URL such as `/v1/jobs/{name}/runs`.
fn name(uri: &Uri) -> Result<String, Problem> {
    super::query::segment(uri.path().split('/').nth(3).unwrap_or_default())
}

fn unknown() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "unknown_job", "there is no such job")
}

fn refused(refusal: Refusal) -> Problem {
    match refusal {
        Refusal::Unknown => unknown(),
        Refusal::Conflict(why) => Problem::new(StatusCode::CONFLICT, "job_conflict", why),
        Refusal::Ended => Problem::stopping(),
    }
}

fn in_words(row: &JobRow) -> Value {
    json!({
        "name": row.name,
        "schedule": row.schedule,
        "next": row.next.map(|moment| moment.to_string()),
        "state": row.stage.as_str(),
        "last": row.last.as_ref().map(run_in_words),
    })
}

fn run_in_words(run: &Run) -> Value {
    json!({
        "outcome": run.outcome,
        "reason": run.reason,
        "trigger": run.trigger,
        "planned": run.planned.to_string(),
        "started": run.started.to_string(),
        "ended": run.ended.map(|ended| ended.to_string()),
        "counts": run.counts,
    })
}
