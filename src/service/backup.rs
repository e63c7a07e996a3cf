//! Backups by request: into the folder that the settings name, and nowhere else.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use super::Service;
use super::documents::answer;
use super::jobs::may_change;
use super::problem::Problem;
use super::query::Params;
use super::route::{Route, route};
use crate::crawl::{BackupsHandle, BackupsState};

pub(super) const ROUTES: &[Route] =
    &[route!("/v1/backup", get show "getBackup", post begin "startBackup")];

/// `GET /v1/backup`: the last backup, and the one that is under way.
async fn show(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Problem> {
    Params::parse(uri.query(), &[])?;
    Ok(answer(&in_words(&handle(&service)?.state())))
}

/// `POST /v1/backup`: begins one, unless one is under way.
async fn begin(
    State(service): State<Arc<Service>>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    may_change(&uri, &headers)?;
    let state = handle(&service)?.ask();
    Ok((StatusCode::ACCEPTED, answer(&in_words(&state))).into_response())
}

fn handle(service: &Service) -> Result<&BackupsHandle, Problem> {
    let detail = "there is no folder for backups: set `folder` of [backup] in the settings";
    let missing = || Problem::new(StatusCode::FORBIDDEN, "backup_disabled", detail);
    service.backups.get().ok_or_else(missing)
}

fn in_words(state: &BackupsState) -> Value {
    json!({
        "running": state.running,
        "made": state.made,
        "ended": state.ended.map(|ended| ended.to_string()),
        "last": state.last,
        "error": state.error,
    })
}
