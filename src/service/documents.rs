//! One document: itself, its copies, and those that are like it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound;
use std::sync::Arc;

use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};

use super::articles::rounded;
use super::problem::Problem;
use super::query::Params;
use super::route::{Route, route};
use super::{Service, cursor};
use crate::corpus::documents::{Copy, DocId, Document, changes_of, read_body};
use crate::corpus::tables::{CONTENTS, COPIES, DOC_IDS, DOCUMENTS};
use crate::corpus::{export, index};
use crate::store::View;
use crate::urls::PageUrl;

pub(super) const ROUTES: &[Route] = &[
    route!("/v1/documents/{docId}", get document "getDocument"),
    route!("/v1/documents/{docId}/copies", get copies "listCopies"),
    route!("/v1/documents/{docId}/copy", get copy "getCopy"),
    route!("/v1/documents/{docId}/similar", get similar "listSimilar"),
];

/// Most rows of an answer.
pub(super) const ROWS_MAX: usize = 500;

/// Copies whose media are counted.
const MEDIA_COPIES_MAX: usize = 100_000;

/// Media that are listed.
const MEDIA_MAX: usize = 200;

/// Candidates that are compared.
const COMPARED_MAX: usize = 2_000;

/// Least similarity of what is called similar.
const SIMILAR_MIN: f32 = 0.05;

/// Writes JSON.
pub(super) fn answer(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

/// The publisher of a copy: as it is named, or the host of its URL.
pub(super) fn media(named: &str, address: &str) -> String {
    if !named.is_empty() {
        return named.to_owned();
    }
    let url = PageUrl::parse(address).ok();
    url.and_then(|url| url.url().host_str().map(str::to_owned)).unwrap_or_default()
}

/// Finds the document of a URL such as `/v1/documents/{docId}/copies`.
fn find(snapshot: &impl View, uri: &Uri) -> Result<(u64, Document), Problem> {
    let text = uri.path().split('/').nth(3).unwrap_or_default();
    let id: DocId = text.parse().map_err(|_| {
        let detail = "a docId has two halves of 16 hexadecimal digits with `-` between them";
        Problem::bad("bad_doc_id", detail)
    })?;
    let unknown =
        || Problem::new(StatusCode::NOT_FOUND, "unknown_document", format!("no document {id}"));
    // The identifier of a document that was merged leads to the one it is part of.
    let number = snapshot.get(DOC_IDS, id)?.ok_or_else(unknown)?;
    Ok((number, snapshot.get(DOCUMENTS, number)?.ok_or_else(unknown)?))
}

/// Finds the document and makes it show what may be shown; true if its text may not.
fn shown(
    service: &Service,
    snapshot: &impl View,
    uri: &Uri,
) -> Result<(u64, Document, bool), Problem> {
    let (number, mut document) = find(snapshot, uri)?;
    let now = service.clock.now();
    match export::show(snapshot, number, &mut document, &service.honour, now)? {
        Ok(hidden) => Ok((number, document, hidden)),
        Err("gone") => {
            let detail = format!("no URL carries it since {}", document.gone);
            Err(Problem::new(StatusCode::GONE, "document_gone", detail))
        }
        Err(reason) => {
            let detail = format!("its pages ask not to be shown: {reason}");
            Err(Problem::new(StatusCode::FORBIDDEN, "withheld", detail))
        }
    }
}

/// `GET /v1/documents/{docId}`.
async fn document(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Problem> {
    Params::parse(uri.query(), &[])?;
    let told = service.look(move |service, view| {
        let (number, document, hidden) = shown(service, &view, &uri)?;
        let mut row = export::row_of(&view, &document)?;
        if hidden {
            (row.text, row.withheld) = (String::new(), "noarchive");
        }
        let mut told = serde_json::to_value(row).map_err(|_| Problem::failed("a row is odd"))?;
        told["media"] = media(&document.facts.site, &document.canonical).into();
        told["similar"] = document.copies.saturating_sub(1).into();
        let merged = document.merged.iter().map(|id| id.to_string().into());
        told["merged"] = Value::Array(merged.collect());
        let history = changes_of(&view, number)?.into_iter().map(|change| {
            json!({ "time": change.time.to_string(), "from": change.from, "to": change.to })
        });
        told["history"] = Value::Array(history.collect());
        Ok(answer(&told))
    });
    told.await
}

/// `GET /v1/documents/{docId}/copies`.
async fn copies(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Problem> {
    let params = Params::parse(uri.query(), &["limit", "cursor"])?;
    let limit = params.number("limit", 100, ROWS_MAX)?;
    let told = service.look(move |service, view| {
        let (number, document, _) = shown(service, &view, &uri)?;
        let name = format!("copies {number}");
        let after = params.text("cursor").map(|text| cursor::read(&name, text)).transpose()?;
        let after = after.as_deref().map(std::str::from_utf8).transpose();
        let after =
            after.map_err(|_| Problem::bad("bad_cursor", "`cursor` is none of this list"))?;
        let from =
            after.map_or(Bound::Included((number, "")), |url| Bound::Excluded((number, url)));
        let mut told = json!({
            "docId": document.id.to_string(),
            "copies": document.copies,
            "canonical": document.canonical,
        });
        let (mut rows, mut next) = (Vec::new(), None);
        for row in view.range(COPIES, (from, Bound::Excluded((number + 1, ""))))? {
            let row = row?;
            let (_, address) = row.key()?;
            if rows.len() == limit {
                let before: &Value = &rows[limit - 1];
                let place = before["url"].as_str().unwrap_or_default();
                next = Some(cursor::write(&name, place.as_bytes()));
                break;
            }
            rows.push(copy_in_words(address, &row.row()?, address == document.canonical));
        }
        told["rows"] = rows.into();
        told["next"] = next.into();
        if after.is_none() {
            let (counts, complete) = count_media(&view, number)?;
            told["media"] = counts;
            told["mediaComplete"] = complete.into();
        }
        Ok(answer(&told))
    });
    told.await
}

/// `GET /v1/documents/{docId}/copy?url=`: one copy with its text.
async fn copy(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Problem> {
    let params = Params::parse(uri.query(), &["url"])?;
    let Some(address) = params.text("url").filter(|url| !url.is_empty()).map(str::to_owned) else {
        return Err(Problem::bad("missing_parameter", "`url`, the URL of a copy, is missing"));
    };
    let told = service.look(move |service, view| {
        let (number, document, _) = shown(service, &view, &uri)?;
        let Some(copy) = view.get(COPIES, (number, address.as_str()))? else {
            let detail = "the document has no copy of this URL";
            return Err(Problem::new(StatusCode::NOT_FOUND, "unknown_copy", detail));
        };
        if let Some(reason) = copy.terms.forbids(&service.honour, service.clock.now()) {
            let detail = format!("its page asks not to be shown: {reason}");
            return Err(Problem::new(StatusCode::FORBIDDEN, "withheld", detail));
        }
        let mut told = copy_in_words(&address, &copy, address == document.canonical);
        let hidden = copy.terms.hides_text(&service.honour);
        let text = if hidden { None } else { read_body(&view, copy.content)? };
        told["docId"] = document.id.to_string().into();
        told["text"] = text.unwrap_or_default().into();
        told["withheld"] = if hidden { "noarchive" } else { "" }.into();
        Ok(answer(&told))
    });
    told.await
}

fn copy_in_words(address: &str, copy: &Copy, canonical: bool) -> Value {
    json!({
        "url": address,
        "media": media(&copy.facts.site, address),
        "title": copy.title,
        "language": copy.language,
        "published": copy.facts.published,
        "arrival": copy.arrival.to_string(),
        "popularity": copy.popularity,
        "canonical": canonical,
        "key": copy.key.as_str(),
        "distance": copy.distance,
        "similarity": f64::from(copy.similarity) / 1000.0,
    })
}

/// Copies by media, those of most copies first, and whether all are counted.
fn count_media(snapshot: &impl View, document: u64) -> Result<(Value, bool), Problem> {
    let mut counts: HashMap<String, u64> = HashMap::new();
    let mut complete = true;
    for (seen, row) in snapshot.under(COPIES, document)?.enumerate() {
        if seen == MEDIA_COPIES_MAX {
            complete = false;
            break;
        }
        let row = row?;
        let (_, address) = row.key()?;
        *counts.entry(media(&row.row()?.facts.site, address)).or_default() += 1;
    }
    let mut counts: Vec<(String, u64)> = counts.into_iter().collect();
    counts.sort_by(|(one, many), (other, more)| more.cmp(many).then_with(|| one.cmp(other)));
    complete &= counts.len() <= MEDIA_MAX;
    counts.truncate(MEDIA_MAX);
    let rows = counts.into_iter().map(|(media, copies)| json!({"media": media, "copies": copies}));
    Ok((Value::Array(rows.collect()), complete))
}

/// `GET /v1/documents/{docId}/similar`.
async fn similar(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Problem> {
    let params = Params::parse(uri.query(), &["limit"])?;
    let limit = params.number("limit", 20, 100)?;
    let told = service.read(move |service, snapshot| {
        let (number, document, _) = shown(service, snapshot, &uri)?;
        let Some(content) = snapshot.get(CONTENTS, document.content)? else {
            return Err(Problem::failed("the content of a document is missing"));
        };
        let keys = content.keys();
        let candidates = {
            let index = index::lock(&service.index);
            // The state that the index knows, which may be newer than that of the answer.
            index.candidates(&service.store.snapshot()?, &keys)?
        };
        // The nearest content of each document.
        let mut best: BTreeMap<u64, (f32, u32)> = BTreeMap::new();
        for candidate in candidates.into_iter().take(COMPARED_MAX) {
            // What is not committed yet is found, and cannot be read.
            let Some(other) = snapshot.get(CONTENTS, candidate.content)? else {
                continue;
            };
            let similarity = keys.text.sketch.similarity(&other.sketch);
            if other.document == number || similarity < SIMILAR_MIN {
                continue;
            }
            let distance = keys.text.fingerprint.distance(other.fingerprint);
            let held = best.entry(other.document).or_insert((similarity, distance));
            if similarity > held.0 {
                *held = (similarity, distance);
            }
        }
        let mut best: Vec<_> = best.into_iter().collect();
        best.sort_by(|(one, (much, _)), (other, (more, _))| {
            more.total_cmp(much).then_with(|| one.cmp(other))
        });
        let mut rows = Vec::new();
        for (other, (similarity, distance)) in best {
            if rows.len() == limit {
                break;
            }
            let Some(mut row) = snapshot.get(DOCUMENTS, other)? else { continue };
            let now = service.clock.now();
            if export::show(snapshot, other, &mut row, &service.honour, now)?.is_err() {
                continue;
            }
            let mut told = in_words(&row);
            told["similarity"] = rounded(similarity).into();
            told["distance"] = distance.into();
            rows.push(told);
        }
        Ok(answer(&json!({ "docId": document.id.to_string(), "rows": rows })))
    });
    told.await
}

/// A document as a row of a list.
pub(super) fn in_words(document: &Document) -> Value {
    json!({
        "docId": document.id.to_string(),
        "url": document.canonical,
        "title": document.title,
        "media": media(&document.facts.site, &document.canonical),
        "language": document.language,
        "author": document.facts.author,
        "published": document.facts.published,
        "category": document.facts.category,
        "popularity": document.popularity,
        "copies": document.copies,
        "similar": document.copies.saturating_sub(1),
        "firstSeen": document.first_arrival.to_string(),
        "lastSeen": document.last_arrival.to_string(),
    })
}
