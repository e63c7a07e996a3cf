//! Search: the documents whose texts, sentences or words are like what is asked.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::documents::{answer, media};
use super::problem::Problem;
use super::query::Params;
use super::route::{Route, route};
use super::{Service, body};
use crate::corpus::documents::DocId;
use crate::corpus::export;
use crate::corpus::search::{Error, ORDERED_MAX, Order, Search};
use crate::corpus::tables::{DOC_IDS, DOCUMENTS};
use crate::store::{Snapshot, View as _};

pub(super) const ROUTES: &[Route] =
    &[route!("/v1/search", get search "search", post search "searchText")];

/// Most bytes of a text that is searched for.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Most rows of an answer.
const ROWS_MAX: usize = ORDERED_MAX;

/// Rows without a limit of their own.
const ROWS: usize = 20;

/// Ways to search, the usual one first.
const MODES: [&str; 3] = ["text", "sentence", "words"];

struct SearchParameters {
    text: String,
    mode: &'static str,
    order: Order,
    limit: usize,
}

/// A question as it is posted.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Posted {
    text: String,
    mode: Option<String>,
    sort: Option<String>,
    limit: Option<usize>,
}

/// `GET|POST /v1/search`.
async fn search(
    State(service): State<Arc<Service>>,
    request: Request,
) -> Result<Response, Problem> {
    let question = if request.method() == Method::POST {
        posted(&service, request).await?
    } else {
        asked(request.uri().query())?
    };
    let Some(search) = service.index_updater.index() else {
        let detail = "the index of the search is being made";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "search_not_ready", detail));
    };
    let told = service.read(move |service, snapshot| {
        let rows = rows(service, &search, snapshot, &question)?;
        let documents = search.documents();
        Ok(answer(&json!({ "mode": question.mode, "documents": documents, "rows": rows })))
    });
    told.await
}

fn asked(query: Option<&str>) -> Result<SearchParameters, Problem> {
    let params = Params::parse(query, &["q", "mode", "sort", "limit"])?;
    let text = params.text("q").unwrap_or_default().to_owned();
    if text.trim().is_empty() {
        return Err(Problem::bad("missing_parameter", "`q`, what to search for, is missing"));
    }
    check_length("q", &text)?;
    let mode = params.word("mode", &MODES)?;
    let order = order(params.word("sort", &Order::ALL.map(|(name, _)| name))?);
    Ok(SearchParameters { text, mode, order, limit: params.number("limit", ROWS, ROWS_MAX)? })
}

async fn posted(service: &Service, request: Request) -> Result<SearchParameters, Problem> {
    let (head, content) = request.into_parts();
    Params::parse(head.uri.query(), &[])?;
    let kind = body::kind(&head.headers);
    if kind != "application/json" {
        return Err(body::wrong_kind(&kind, "application/json"));
    }
    let stall = service.config.stall_time();
    let whole = body::whole(
        &head.headers,
        content,
        service.config.body_size_max.bytes(),
        &service.room,
        stall,
    )
    .await?;
    if let Err(error) = std::str::from_utf8(&whole.bytes) {
        let detail = format!("byte {} is not UTF-8", error.valid_up_to());
        return Err(Problem::bad("bad_utf8", detail));
    }
    // An array would be taken for the fields in their order.
    if whole.bytes.trim_ascii_start().first() == Some(&b'[') {
        return Err(Problem::bad("bad_field", "a search is a JSON object, not an array"));
    }
    let posted: Posted = serde_json::from_slice(&whole.bytes).map_err(|error| {
        let code = match error.classify() {
            serde_json::error::Category::Data => "bad_field",
            _ => "bad_json",
        };
        Problem::bad(code, error.to_string())
    })?;
    if posted.text.trim().is_empty() {
        return Err(Problem::bad("missing_field", "`text`, what to search for, is empty"));
    }
    check_length("text", &posted.text)?;
    let bad = |detail: String| Problem::bad("bad_field", detail);
    let word = |name: &str, given: &Option<String>, known: [&'static str; 3]| match given {
        None => Ok(known[0]),
        Some(word) => {
            let found = known.into_iter().find(|known| known == word);
            found.ok_or_else(|| bad(format!("`{name}`: it is one of {}", known.join(", "))))
        }
    };
    let mode = word("mode", &posted.mode, MODES)?;
    let order = order(word("sort", &posted.sort, Order::ALL.map(|(name, _)| name))?);
    let limit = posted.limit.unwrap_or(ROWS);
    if !(1..=ROWS_MAX).contains(&limit) {
        return Err(bad(format!("`limit`: it is a number from 1 to {ROWS_MAX}")));
    }
    Ok(SearchParameters { text: posted.text, mode, order, limit })
}

fn order(name: &str) -> Order {
    Order::ALL
        .into_iter()
        .find(|(known, _)| *known == name)
        .map(|(_, order)| order)
        .unwrap_or_default()
}

fn check_length(name: &str, text: &str) -> Result<(), Problem> {
    if text.len() > TEXT_BYTES_MAX {
        let detail = format!("`{name}` has more than {TEXT_BYTES_MAX} bytes");
        return Err(Problem::bad("field_too_long", detail));
    }
    Ok(())
}

/// What is found, of what may be shown. The index may be a moment older than the store.
fn rows(
    service: &Service,
    search: &Search,
    snapshot: &Snapshot,
    question: &SearchParameters,
) -> Result<Vec<Value>, Problem> {
    let wanted = question.order.looked_at(question.limit);
    let mut most = wanted;
    loop {
        let hits = hits(search, question, most)?;
        let found = hits.len();
        let (mut rows, mut seen) = (Vec::new(), BTreeSet::new());
        for hit in hits {
            if rows.len() < wanted
                && let Some(row) = row(service, snapshot, hit, &mut seen)?
            {
                rows.push(row);
            }
        }
        // Of those that may not be shown, others take the place.
        if rows.len() == wanted || found < most || most >= ROWS_MAX * 8 {
            question.order.arrange(&mut rows, |row| row["copies"].as_u64().unwrap_or_default());
            rows.truncate(question.limit);
            return Ok(rows);
        }
        most *= 4;
    }
}

fn hits(search: &Search, question: &SearchParameters, most: usize) -> Result<Vec<Value>, Problem> {
    let text = &question.text;
    let hits = match question.mode {
        "words" => search.words(text, most).map(serde_json::to_value),
        "sentence" => search.sentence(text, most).map(serde_json::to_value),
        _ => search.text(text, most).map(serde_json::to_value),
    };
    let odd = |_| Problem::failed("an answer of the search is odd");
    match hits?.map_err(odd)? {
        Value::Array(hits) => Ok(hits),
        _ => Ok(Vec::new()),
    }
}

/// An answer of the index with what the store says of its document; none if it is not shown.
fn row(
    service: &Service,
    snapshot: &Snapshot,
    mut hit: Value,
    seen: &mut BTreeSet<u64>,
) -> Result<Option<Value>, Problem> {
    let id: Option<DocId> = hit["docId"].as_str().and_then(|id| id.parse().ok());
    let Some(id) = id else { return Ok(None) };
    let Some(number) = snapshot.get(DOC_IDS, id)? else {
        return Ok(None);
    };
    let Some(mut document) = snapshot.get(DOCUMENTS, number)? else { return Ok(None) };
    // Two that were merged meanwhile are one.
    if !seen.insert(number) {
        return Ok(None);
    }
    let now = service.clock.now();
    let Ok(hidden) = export::show(snapshot, number, &mut document, &service.honour, now)? else {
        return Ok(None);
    };
    for name in ["cosine", "score"] {
        if let Some(value) = hit[name].as_f64() {
            hit[name] = ((value * 10_000.0).round() / 10_000.0).into();
        }
    }
    if hidden && hit["sentence"].is_string() {
        hit["sentence"] = Value::Null;
    }
    hit["docId"] = document.id.to_string().into();
    hit["media"] = media(&document.facts.site, &document.canonical).into();
    hit["url"] = document.canonical.into();
    hit["title"] = document.title.into();
    hit["copies"] = document.copies.into();
    Ok(Some(hit))
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        tracing::error!(%error, "the search failed");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "search_failed", "the index cannot be read")
    }
}
