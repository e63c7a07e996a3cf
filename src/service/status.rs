//! The service and its store as a whole; and why a URL is where it is.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Map, Value, json};

use super::documents::answer;
use super::metrics::Sizes;
use super::problem::Problem;
use super::query::Params;
use super::route::{Route, route};
use super::{Service, routes};
use crate::corpus::explain::{self, Language};
use crate::corpus::index;
use crate::corpus::tables::{CONTENTS, COPIES, DOCUMENTS, RANKING, SEARCH_CHANGES, SENT};
use crate::frontier::{ADDRESSES, HOSTS};
use crate::store::{COUNTERS, Snapshot, View as _};
use crate::urls::{Normalize, PageUrl};

pub(super) const ROUTES: &[Route] = &[
    route!("/v1/explain", get explain "explainAddress"),
    route!("/v1/stats", get stats "getStats"),
    route!("/v1/workers", get workers "listWorkers"),
    route!("/healthz", get healthz "getHealth"),
    route!("/readyz", get readyz "getReadiness"),
    route!("/metrics", get metrics "getMetrics"),
    route!("/openapi.json", get openapi "getDescription"),
];

/// `GET /v1/explain?url=&language=`.
async fn explain(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Problem> {
    let params = Params::parse(uri.query(), &["url", "language"])?;
    let language = params.word("language", &Language::ALL.map(|(code, _)| code))?;
    let language = Language::ALL.into_iter().find(|(code, _)| *code == language);
    let language = language.map(|(_, language)| language).unwrap_or_default();
    let Some(text) = params.text("url").filter(|text| !text.is_empty()) else {
        return Err(Problem::bad("missing_parameter", "`url` is missing"));
    };
    let bad = |error: &dyn std::fmt::Display| Problem::bad("bad_url", error.to_string());
    let plain = PageUrl::parse_with(text, Normalize::none()).map_err(|error| bad(&error))?;
    let normal =
        PageUrl::from_url(plain.url().clone(), &service.rules).map_err(|error| bad(&error))?;
    let told = service.read(move |_, snapshot| {
        let known = snapshot.has(ADDRESSES, plain.as_str())?;
        let found = explain::explain_in(snapshot, if known { &plain } else { &normal }, language)?;
        let facts = found.facts.iter().map(|(name, value)| json!({"name": name, "value": value}));
        let told = json!({
            "url": found.url, "state": found.state, "reason": found.reason,
            "summary": found.summary, "facts": facts.collect::<Vec<_>>(),
        });
        Ok(answer(&told))
    });
    told.await
}

fn sizes(service: &Service, snapshot: &Snapshot) -> Result<Sizes, Problem> {
    let index = index::lock(&service.index);
    let index_bytes = index.bytes() as u64;
    drop(index);
    Ok(Sizes {
        documents: snapshot.len(DOCUMENTS)?,
        copies: snapshot.len(COPIES)?,
        contents: snapshot.len(CONTENTS)?,
        store_bytes: std::fs::metadata(service.store.path()).map_or(0, |meta| meta.len()),
        index_bytes,
        unsearched: snapshot.len(SEARCH_CHANGES)?,
        is_failed: service.store.is_failed(),
        failures: service.store.failures(),
    })
}

/// `GET /v1/stats`.
async fn stats(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Problem> {
    Params::parse(uri.query(), &[])?;
    #[cfg(feature = "cluster")]
    if service.shared.is_some() {
        return service.shared_stats().await;
    }
    let told = service.read(|service, snapshot| {
        let sizes = sizes(service, snapshot)?;
        let mut counters = Map::new();
        for row in snapshot.rows(COUNTERS)? {
            let row = row?;
            counters.insert(row.key()?.to_owned(), row.row()?.into());
        }
        Ok(answer(&json!({
            "documents": sizes.documents,
            "copies": sizes.copies,
            "contents": sizes.contents,
            "documentsOfSeveralCopies": snapshot.len(RANKING)?,
            "articlesSent": snapshot.len(SENT)?,
            "hosts": snapshot.len(HOSTS)?,
            "addresses": snapshot.len(ADDRESSES)?,
            "storeBytes": sizes.store_bytes,
            "indexBytes": sizes.index_bytes,
            "documentsToIndex": sizes.unsearched,
            "counters": Value::Object(counters),
        })))
    });
    told.await
}

/// `GET /v1/workers`.
async fn workers(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Problem> {
    Params::parse(uri.query(), &[])?;
    #[cfg(feature = "cluster")]
    if service.shared.is_some() {
        return service.shared_workers().await;
    }
    let _ = service;
    let detail = "this service has a store of one machine: `/v1/live` tells of its crawls";
    Err(Problem::new(StatusCode::NOT_FOUND, "no_cluster", detail))
}

/// `GET /healthz`: the process answers.
async fn healthz() -> Response {
    answer(&json!({ "status": "ok" }))
}

/// `GET /readyz`: the store answers, and what is sent can be stored.
async fn readyz(State(service): State<Arc<Service>>) -> Result<Response, Problem> {
    #[cfg(feature = "cluster")]
    if service.shared.is_some() {
        return service.shared_is_ready().await;
    }
    let look = service.apart(&service.readers, |service| service.store.check_writable());
    look.await?.map_err(|error| Problem::unwritable(error.to_string()))?;
    let documents = service.read(|_, snapshot| Ok(snapshot.len(DOCUMENTS)?)).await?;
    Ok(answer(&json!({ "status": "ready", "documents": documents })))
}

/// `GET /metrics`.
async fn metrics(State(service): State<Arc<Service>>) -> Result<Response, Problem> {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    #[cfg(feature = "cluster")]
    if service.shared.is_some() {
        let text = service.shared_metrics().await?;
        return Ok(([(header::CONTENT_TYPE, kind)], text).into_response());
    }
    let text = service.read(|service, snapshot| {
        Ok(service.metrics.text(sizes(service, snapshot)?, &service.crawls))
    });
    Ok(([(header::CONTENT_TYPE, kind)], text.await?).into_response())
}

/// `GET /openapi.json`.
async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], routes::openapi()).into_response()
}
