//! Expiry by request: only if the service was told to allow it.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::Response;
use serde::Deserialize;
use serde_json::json;

use super::documents::answer;
use super::jobs::may_change;
use super::problem::Problem;
use super::route::{Route, route};
use super::{Service, body};
use crate::base::units::Time;
use crate::corpus::dedup::{self, Expiry};

pub(super) const ROUTES: &[Route] = &[route!("/v1/expire", post expire "expire")];

/// Most bytes of a request.
const BODY_BYTES_MAX: usize = 1 << 12;

/// What is asked for.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ExpiryParameters {
    older_than: Time,
    #[serde(default)]
    dry_run: bool,
    /// It may be more than half of the store.
    #[serde(default)]
    yes: bool,
}

/// `POST /v1/expire`.
async fn expire(
    State(service): State<Arc<Service>>,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    may_change(&uri, &headers)?;
    if !service.config.expiry {
        let detail = "requests may not remove documents here: see --allow-expiry";
        return Err(Problem::new(StatusCode::FORBIDDEN, "expiry_disabled", detail));
    }
    let stall = service.config.stall_time();
    let whole = body::whole(&headers, body, BODY_BYTES_MAX, &service.room, stall).await?;
    let wish: ExpiryParameters = serde_json::from_slice(&whole.bytes).map_err(|error| {
        let is_data = error.classify() == serde_json::error::Category::Data;
        Problem::bad(if is_data { "bad_field" } else { "bad_json" }, error.to_string())
    })?;
    let before = service.clock.now().before(wish.older_than.duration());
    let done = service.apart(&service.batches, move |service| {
        let old = dedup::old(&service.store.snapshot()?, before)?;
        if wish.dry_run {
            return Ok(old);
        }
        if old.is_most() && !wish.yes {
            let Expiry { documents, of, .. } = old;
            let detail = format!(
                "{documents} of {of} documents had no new copy since {before}, more than half of \
                 the store: `dryRun` only counts them, `yes` removes them"
            );
            return Err(Problem::new(StatusCode::CONFLICT, "expires_most", detail));
        }
        let shared = Some((&service.index, &service.crawl.dedup));
        dedup::expire(&service.store, shared, before).map_err(|error| {
            tracing::error!(%error, "documents could not be removed");
            service.store.suspect();
            Problem::unwritable("not all of them could be removed")
        })
    });
    let Expiry { documents, copies, of } = done.await??;
    Ok(answer(&json!({
        "before": before.to_string(),
        "documents": documents,
        "copies": copies,
        "of": of,
        "dryRun": wish.dry_run,
    })))
}
