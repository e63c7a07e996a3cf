//! The docId service as the paper has it.
//!
//! Source: 汤建明, 寇小强, 海量网络文本去重系统: request and answer of `/docId/getDocId`.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde::Serialize;

use super::config::Senders;
use super::problem::Problem;
use super::query::{Params, pairs, unescape};
use super::route::{Route, route};
use super::{Service, body, guard};
use crate::service::ingest::{Found, Receipt};

pub(super) const ROUTES: &[Route] =
    &[route!("/docId/getDocId", get ask "getDocId", post ask "postDocId")];

/// `GET` and `POST /docId/getDocId`.
async fn ask(State(service): State<Arc<Service>>, request: Request) -> Result<Response, Problem> {
    let (head, content) = request.into_parts();
    let query = Params::parse(head.uri.query(), &["json"])?;
    may_send(service.config.doc_id_senders, &head)?;
    let missing = || Problem::bad("missing_field", "the parameter `json` is missing");
    if let Some(json) = query.text("json").filter(|json| !json.is_empty()) {
        return answer(&service, json.as_bytes().to_vec()).await;
    }
    if head.method != Method::POST {
        return Err(missing());
    }
    let kind = body::kind(&head.headers);
    let is_form = match kind.as_str() {
        "application/json" => false,
        "application/x-www-form-urlencoded" => true,
        other => {
            let known = "application/json or application/x-www-form-urlencoded";
            return Err(body::wrong_kind(other, known));
        }
    };
    let stall = service.config.stall_time();
    let most = service.config.body_size_max.bytes();
    let mut whole = body::whole(&head.headers, content, most, &service.room, stall).await?;
    let article = if is_form {
        let wrong = |_| Problem::bad("bad_utf8", "the form is not UTF-8");
        let text = std::str::from_utf8(&whole.bytes).map_err(wrong)?;
        let json = pairs(text).find(|(name, _)| *name == "json");
        unescape(json.ok_or_else(missing)?.1)?.into_bytes()
    } else {
        std::mem::take(&mut whole.bytes)
    };
    // `whole` holds its room until the article is stored.
    answer(&service, article).await
}

fn may_send(senders: Senders, head: &Parts) -> Result<(), Problem> {
    if senders == Senders::Post && head.method != Method::POST {
        let detail = "articles are taken by POST alone: see the setting `api.doc_id_senders`";
        return Err(Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail));
    }
    if senders == Senders::Any { Ok(()) } else { guard::same_origin(&head.headers) }
}

async fn answer(service: &Arc<Service>, article: Vec<u8>) -> Result<Response, Problem> {
    let keys = service.apart(&service.fingerprinters, move |service| service.article(&article));
    let receipts = service.deliver(vec![keys.await??]).await?;
    let receipt = receipts.first().ok_or_else(Problem::stopping)?;
    let body = Body::from(text(&in_words(receipt)));
    Ok(([(header::CONTENT_TYPE, "application/json")], body).into_response())
}

/// The fields of the paper, in its order, and no others.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct DocIdAnswer {
    filter_reason: String,
    doc_id: String,
    filter_status: &'static str,
    status: &'static str,
}

fn in_words(receipt: &Receipt) -> DocIdAnswer {
    let (filter_status, filter_reason) = match receipt.found {
        Found::New => ("good", "docId_filter good news".to_owned()),
        found => ("duplicate", format!("docId_filter {} duplicate", found.as_str())),
    };
    DocIdAnswer {
        filter_reason,
        doc_id: receipt.doc_id.to_string(),
        filter_status,
        status: "success",
    }
}

/// A request that has no answer, in the same form.
pub(super) fn failure(code: &str, detail: &str) -> String {
    let filter_reason = format!("docId_filter {code}: {detail}");
    text(&DocIdAnswer { filter_reason, doc_id: String::new(), filter_status: "", status: "failed" })
}

fn text(answer: &DocIdAnswer) -> String {
    serde_json::to_string(answer).expect("texts have a form in JSON")
}
