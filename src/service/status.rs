//! The service and its store as a whole; and why an address is where it is.

use std::sync::{Arc, PoisonError};

use axum::extract::State;
use axum::http::{Uri, header};
use axum::response::{IntoResponse as _, Response};
use redb::{ReadableTable as _, ReadableTableMetadata as _};
use serde_json::{Map, Value, json};

use super::documents::answer;
use super::metrics::Sizes;
use super::problem::Problem;
use super::query::Params;
use super::{OPENAPI, Service};
use crate::corpus::explain::{self, Language};
use crate::store::ReadTables;
use crate::urls::{Normalize, PageUrl};

/// `GET /v1/explain?url=&language=`.
pub(super) async fn explain(
    State(service): State<Arc<Service>>,
    uri: Uri,
) -> Result<Response, Problem> {
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
    let told = service.read(move |_, tables| {
        let known = tables.addresses.get(plain.as_str())?.is_some();
        let found = explain::explain_in(tables, if known { &plain } else { &normal }, language)?;
        let facts = found.facts.iter().map(|(name, value)| json!({"name": name, "value": value}));
        let told = json!({
            "url": found.url, "state": found.state, "reason": found.reason,
            "summary": found.summary, "facts": facts.collect::<Vec<_>>(),
        });
        Ok(answer(&told))
    });
    told.await
}

fn sizes(service: &Service, tables: &ReadTables) -> Result<Sizes, Problem> {
    let finder = service.finder.lock().unwrap_or_else(PoisonError::into_inner);
    let index_bytes = finder.bytes() as u64;
    drop(finder);
    Ok(Sizes {
        documents: tables.documents.len()?,
        copies: tables.copies.len()?,
        contents: tables.contents.len()?,
        store_bytes: std::fs::metadata(service.store.path()).map_or(0, |meta| meta.len()),
        index_bytes,
        unsearched: tables.search_changes.len()?,
        is_failed: service.store.is_failed(),
        failures: service.store.failures(),
    })
}

/// `GET /v1/stats`.
pub(super) async fn stats(
    State(service): State<Arc<Service>>,
    uri: Uri,
) -> Result<Response, Problem> {
    Params::parse(uri.query(), &[])?;
    let told = service.read(|service, tables| {
        let sizes = sizes(service, tables)?;
        let mut counters = Map::new();
        for row in tables.counters.iter()? {
            let (name, count) = row?;
            counters.insert(name.value().to_owned(), count.value().into());
        }
        Ok(answer(&json!({
            "documents": sizes.documents,
            "copies": sizes.copies,
            "contents": sizes.contents,
            "documentsOfSeveralCopies": tables.ranking.len()?,
            "articlesSent": tables.sent.len()?,
            "hosts": tables.hosts.len()?,
            "addresses": tables.addresses.len()?,
            "storeBytes": sizes.store_bytes,
            "indexBytes": sizes.index_bytes,
            "documentsToIndex": sizes.unsearched,
            "counters": Value::Object(counters),
        })))
    });
    told.await
}

/// `GET /healthz`: the process answers.
pub(super) async fn healthz() -> Response {
    answer(&json!({ "status": "ok" }))
}

/// `GET /readyz`: the store answers, and what is sent can be stored.
pub(super) async fn readyz(State(service): State<Arc<Service>>) -> Result<Response, Problem> {
    let look = service.apart(&service.readers, |service| service.store.check_writable());
    look.await?.map_err(|error| Problem::unwritable(error.to_string()))?;
    let documents = service.read(|_, tables| Ok(tables.documents.len()?)).await?;
    Ok(answer(&json!({ "status": "ready", "documents": documents })))
}

/// `GET /metrics`.
pub(super) async fn metrics(State(service): State<Arc<Service>>) -> Result<Response, Problem> {
    let text = service
        .read(|service, tables| Ok(service.metrics.text(sizes(service, tables)?, &service.crawls)));
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text.await?).into_response())
}

/// `GET /openapi.json`.
pub(super) async fn openapi() -> Response {
    ([(header::CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}
