//! Search: the documents whose texts, sentences or words are like what is asked.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Value, json};

use super::documents::{answer, media};
#[cfg(feature = "cluster")]
use super::parts::PartQuestion;
use super::problem::Problem;
use super::query::Params;
use super::route::{Route, route};
use super::{Service, body};
use crate::corpus::documents::DocId;
use crate::corpus::export;
use crate::corpus::search::{
    self, Candidate, Error, Hit, Mode, ORDERED_MAX, Order, Question, SentenceHit, WordHit,
};
use crate::corpus::tables::{DOC_IDS, DOCUMENTS};
use crate::store::View;

pub(super) const ROUTES: &[Route] = &[
    route!("/v1/search", get search "search", post search "searchText"),
    route!("/v1/search/part", post part "searchPart"),
];

/// Most bytes of a text that is searched for.
const TEXT_BYTES_MAX: usize = 1 << 20;

/// Most rows of an answer.
const ROWS_MAX: usize = ORDERED_MAX;

/// Rows without a limit of their own.
const ROWS: usize = 20;

/// Ways to search, the usual one first.
const MODES: [&str; 3] = ["text", "sentence", "words"];

fn mode(name: &str) -> Mode {
    match name {
        "sentence" => Mode::Sentence,
        "words" => Mode::Words,
        _ => Mode::Text,
    }
}

struct SearchParameters {
    text: String,
    mode: Mode,
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
    #[cfg(feature = "cluster")]
    if service.shared.is_some() {
        return service.search_shared(question).await;
    }
    let Some(search) = service.index_updater.index() else {
        let detail = "the index of the search is being made";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, "search_not_ready", detail));
    };
    let told = service.read(move |service, snapshot| {
        let mode = question.mode;
        let mut ask = |n| Ok(search::ask(&[&*search], &Question::new(mode, &question.text, n))?);
        let mut show = |hits: Vec<Candidate>| {
            let ids = hits.iter().map(id_of);
            let numbers = ids.map(|id| id.map_or(Ok(None), |id| snapshot.get(DOC_IDS, id)));
            let numbers = numbers.collect::<Result<Vec<_>, _>>()?;
            shown(service, snapshot, mode, hits, &numbers)
        };
        let rows = rows(&question, &mut ask, &mut show)?;
        let documents = search.documents();
        Ok(answer(&json!({ "mode": mode, "documents": documents, "rows": rows })))
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
    let mode = mode(params.word("mode", &MODES)?);
    let order = order(params.word("sort", &Order::ALL.map(|(name, _)| name))?);
    Ok(SearchParameters { text, mode, order, limit: params.number("limit", ROWS, ROWS_MAX)? })
}

/// Reads a body of JSON.
async fn posted_json(service: &Service, request: Request) -> Result<Vec<u8>, Problem> {
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
    Ok(whole.bytes)
}

fn parsed<T: serde::de::DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(bytes).map_err(|error| {
        let code = match error.classify() {
            serde_json::error::Category::Data => "bad_field",
            _ => "bad_json",
        };
        Problem::bad(code, error.to_string())
    })
}

async fn posted(service: &Service, request: Request) -> Result<SearchParameters, Problem> {
    let posted: Posted = parsed(&posted_json(service, request).await?)?;
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
    let mode = mode(word("mode", &posted.mode, MODES)?);
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

/// What is found, of what may be shown: `ask` finds so many, and `show` turns them into rows. The
/// index may be a moment older than the store.
fn rows(
    question: &SearchParameters,
    ask: &mut dyn FnMut(usize) -> Result<Vec<Candidate>, Problem>,
    show: &mut dyn FnMut(Vec<Candidate>) -> Result<Vec<Value>, Problem>,
) -> Result<Vec<Value>, Problem> {
    let wanted = question.order.looked_at(question.limit);
    let mut most = wanted;
    loop {
        let hits = ask(most)?;
        let found = hits.len();
        let mut rows = show(hits)?;
        rows.truncate(wanted);
        // Of those that may not be shown, others take the place.
        if rows.len() == wanted || found < most || most >= ROWS_MAX * 8 {
            question.order.arrange(&mut rows, |row| row["copies"].as_u64().unwrap_or_default());
            rows.truncate(question.limit);
            return Ok(rows);
        }
        most *= 4;
    }
}

/// Answers of the index with what the store says of their documents, whose numbers are these.
fn shown(
    service: &Service,
    view: &impl View,
    mode: Mode,
    hits: Vec<Candidate>,
    numbers: &[Option<u64>],
) -> Result<Vec<Value>, Problem> {
    let (mut rows, mut seen) = (Vec::new(), BTreeSet::new());
    for (hit, number) in hits.into_iter().zip(numbers) {
        // Two that were merged meanwhile are one.
        let number = number.filter(|number| seen.insert(*number));
        if let Some(number) = number {
            let hit = match mode {
                Mode::Text => json!(Hit::from(hit)),
                Mode::Sentence => json!(SentenceHit::from(hit)),
                Mode::Words => json!(WordHit::from(hit)),
            };
            rows.extend(row(service, view, hit, number)?);
        }
    }
    Ok(rows)
}

/// An answer of the index with what the store says of its document; none if it is not shown.
fn row(
    service: &Service,
    view: &impl View,
    mut hit: Value,
    number: u64,
) -> Result<Option<Value>, Problem> {
    let Some(mut document) = view.get(DOCUMENTS, number)? else { return Ok(None) };
    let now = service.clock.now();
    let Ok(hidden) = export::show(view, number, &mut document, &service.honour, now)? else {
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

fn id_of(hit: &Candidate) -> Option<DocId> {
    hit.doc_id.parse().ok()
}

/// `POST /v1/search/part`, by which a service on a cluster asks others.
#[cfg(feature = "cluster")]
async fn part(State(service): State<Arc<Service>>, request: Request) -> Result<Response, Problem> {
    let bytes = posted_json(&service, request).await?;
    let asked: PartQuestion = parsed(&bytes)?;
    check_length("text", &asked.text)?;
    let told = service.apart(&service.readers, move |service| {
        let parts = service.search_parts.as_ref().ok_or_else(no_index)?;
        let told = serde_json::to_value(parts.answer(&asked)?);
        Ok(answer(&told.map_err(|_| Problem::failed("an answer of the search is odd"))?))
    });
    told.await?
}

#[cfg(not(feature = "cluster"))]
async fn part() -> Problem {
    let detail = "this program was built without the feature `cluster`";
    Problem::new(StatusCode::NOT_IMPLEMENTED, "no_search_index", detail)
}

#[cfg(feature = "cluster")]
fn no_index() -> Problem {
    let detail = "this service has no index of the cluster: start it with --index DIR, or with \
                  --search-peers URL of services that have one";
    Problem::new(StatusCode::NOT_IMPLEMENTED, "no_search_index", detail)
}

#[cfg(feature = "cluster")]
impl Service {
    /// Asks all parts of the index of a cluster, and reads what is found there.
    async fn search_shared(
        self: &Arc<Self>,
        question: SearchParameters,
    ) -> Result<Response, Problem> {
        let told = self.apart(&self.readers, move |service| {
            let parts = service.search_parts.as_ref().ok_or_else(no_index)?;
            let shared = service.shared.as_ref().ok_or_else(Problem::stopping)?;
            shared.ask(|corpus| {
                let (mode, mut told) = (question.mode, json!({}));
                let mut ask = |n| {
                    let asked = parts.ask(&question.text, mode, n)?;
                    told = json!({
                        "mode": mode,
                        "documents": asked.documents,
                        "partial": !asked.missing.is_empty(),
                        "missingParts": asked.missing,
                        "unanswered": asked.unanswered,
                    });
                    Ok(asked.found)
                };
                let mut show = |hits: Vec<Candidate>| {
                    let ids = hits.iter().map(|hit| id_of(hit).unwrap_or(DocId(0)));
                    let numbers = corpus.find_all(&ids.collect::<Vec<_>>())?;
                    let there: Vec<u64> = numbers.iter().copied().flatten().collect();
                    shown(service, &corpus.view(&there)?, mode, hits, &numbers)
                };
                let rows = rows(&question, &mut ask, &mut show)?;
                told["rows"] = Value::Array(rows);
                Ok(answer(&told))
            })
        });
        told.await?
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        tracing::error!(%error, "the search failed");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "search_failed", "the index cannot be read")
    }
}
