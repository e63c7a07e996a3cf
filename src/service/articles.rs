//! Articles that are sent, one or many.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use super::documents::answer;
use super::problem::Problem;
use super::query::{Params, segment};
use super::route::{Route, route};
use super::{Service, batch, body, guard};
use crate::service::ingest::{Found, Receipt, WriterStanding, standing};

pub(super) const ROUTES: &[Route] = &[
    route!("/v1/articles", post send "sendArticles"),
    route!("/v1/articles/{nid}", get receipt "article"),
];

/// `POST /v1/articles`.
async fn send(State(service): State<Arc<Service>>, request: Request) -> Result<Response, Problem> {
    let (head, content) = request.into_parts();
    Params::parse(head.uri.query(), &[])?;
    guard::same_origin(&head.headers)?;
    match body::kind(&head.headers).as_str() {
        "application/json" => {}
        "application/x-ndjson" | "application/jsonl" | "application/x-jsonlines" => {
            return batch::answer(&service, content);
        }
        other => {
            let known = "application/json, or application/x-ndjson for a batch";
            return Err(body::wrong_kind(other, known));
        }
    }
    let stall = service.config.stall_time();
    let most = service.config.body_size_max.bytes();
    let mut whole = body::whole(&head.headers, content, most, &service.room, stall).await?;
    let json = std::mem::take(&mut whole.bytes);
    let keys = service.apart(&service.fingerprinters, move |service| service.article(&json));
    let receipts = service.deliver(vec![keys.await??]).await?;
    // `whole` holds its room until here.
    drop(whole);
    let receipt = receipts.first().ok_or_else(Problem::stopping)?;
    let status = match receipt.found {
        Found::New => StatusCode::CREATED,
        _ => StatusCode::OK,
    };
    let place = format!("/v1/documents/{}", receipt.doc_id);
    let headers =
        [(header::CONTENT_TYPE, "application/json".to_owned()), (header::LOCATION, place)];
    Ok((status, headers, Body::from(in_words(receipt).to_string())).into_response())
}

/// `GET /v1/articles/{nid}`: which document an article belongs to now.
async fn receipt(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Problem> {
    Params::parse(uri.query(), &[])?;
    let nid = segment(uri.path().split('/').nth(3).unwrap_or_default())?;
    let told =
        service.read(move |service, snapshot| match standing(snapshot, &nid, &service.rules)? {
            WriterStanding::Known(receipt) => Ok(answer(&in_words(&receipt))),
            WriterStanding::Removed => {
                let detail = "its document has been removed since: it has expired";
                Err(Problem::new(StatusCode::GONE, "document_gone", detail))
            }
            WriterStanding::Unknown => {
                let detail = "no article with this `nid` was sent";
                Err(Problem::new(StatusCode::NOT_FOUND, "unknown_article", detail))
            }
        });
    told.await
}

/// A receipt as it is told.
pub(super) fn in_words(receipt: &Receipt) -> Value {
    let key = match receipt.found {
        Found::Key(key) => key.as_str(),
        found => found.as_str(),
    };
    json!({
        "nid": receipt.nid,
        "docId": receipt.doc_id.to_string(),
        "filterStatus": if receipt.found == Found::New { "good" } else { "duplicate" },
        "foundBy": receipt.found.as_str(),
        "key": key,
        "canonical": receipt.canonical,
        "distance": receipt.distance,
        "similarity": rounded(receipt.similarity),
        "arrival": receipt.arrival.to_string(),
    })
}

/// A share to three decimals.
pub(super) fn rounded(share: f32) -> f64 {
    (f64::from(share) * 1000.0).round() / 1000.0
}
