//! Which request is answered by what, and what all requests have in common.

use std::sync::Arc;
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodRouter, get, post};

use super::guard::Peer;
use super::problem::Problem;
use super::{
    Service, articles, crawls, doc_id, documents, duplicate_feed, expiry, jobs, lists, live, page,
    search, status, times,
};

/// Paths with their methods.
pub const ROUTES: [(&str, &[&str]); 29] = [
    ("/docId/getDocId", &["get", "post"]),
    ("/v1/articles", &["post"]),
    ("/v1/articles/{nid}", &["get"]),
    ("/v1/documents", &["get"]),
    ("/v1/documents/{docId}", &["get"]),
    ("/v1/documents/{docId}/copies", &["get"]),
    ("/v1/documents/{docId}/copy", &["get"]),
    ("/v1/documents/{docId}/similar", &["get"]),
    ("/v1/facets", &["get"]),
    ("/v1/counts", &["get"]),
    ("/v1/trending", &["get"]),
    ("/v1/search", &["get", "post"]),
    ("/v1/explain", &["get"]),
    ("/v1/duplicate-feed", &["get"]),
    ("/v1/stats", &["get"]),
    ("/v1/live", &["get"]),
    ("/v1/hosts", &["get"]),
    ("/v1/reasons", &["get"]),
    ("/v1/jobs", &["get"]),
    ("/v1/jobs/{name}/runs", &["get"]),
    ("/v1/jobs/{name}/start", &["post"]),
    ("/v1/jobs/{name}/stop", &["post"]),
    ("/v1/crawls", &["get", "post"]),
    ("/v1/crawls/{id}/stop", &["post"]),
    ("/v1/expire", &["post"]),
    ("/healthz", &["get"]),
    ("/readyz", &["get"]),
    ("/metrics", &["get"]),
    ("/openapi.json", &["get"]),
];

/// What browsers are told with every answer: there is nothing here for them to run or to frame.
const HEADERS: [(&str, &str); 6] = [
    (
        "content-security-policy",
        "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    ),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

fn handler(path: &str) -> MethodRouter<Arc<Service>> {
    match path {
        "/docId/getDocId" => get(doc_id::ask).post(doc_id::ask),
        "/v1/articles" => post(articles::send),
        "/v1/articles/{nid}" => get(articles::receipt),
        "/v1/documents" => get(lists::documents),
        "/v1/documents/{docId}" => get(documents::document),
        "/v1/documents/{docId}/copies" => get(documents::copies),
        "/v1/documents/{docId}/copy" => get(documents::copy),
        "/v1/documents/{docId}/similar" => get(documents::similar),
        "/v1/facets" => get(lists::facets),
        "/v1/counts" => get(times::counts),
        "/v1/trending" => get(times::trending),
        "/v1/search" => get(search::search).post(search::search),
        "/v1/explain" => get(status::explain),
        "/v1/duplicate-feed" => get(duplicate_feed::duplicates),
        "/v1/stats" => get(status::stats),
        "/v1/live" => get(live::live),
        "/v1/hosts" => get(live::hosts),
        "/v1/reasons" => get(live::reasons),
        "/v1/jobs" => get(jobs::list),
        "/v1/jobs/{name}/runs" => get(jobs::runs),
        "/v1/jobs/{name}/start" => post(jobs::start),
        "/v1/jobs/{name}/stop" => post(jobs::stop),
        "/v1/crawls" => get(crawls::list).post(crawls::start),
        "/v1/crawls/{id}/stop" => post(crawls::stop),
        "/v1/expire" => post(expiry::expire),
        "/healthz" => get(status::healthz),
        "/readyz" => get(status::readyz),
        "/metrics" => get(status::metrics),
        "/openapi.json" => get(status::openapi),
        other => unreachable!("{other} has no handler"),
    }
}

pub(super) fn router(service: Arc<Service>) -> Router {
    let router = ROUTES
        .iter()
        .fold(Router::new(), |router, (path, _)| router.route(path, handler(path)))
        // The path of the version before.
        .route("/v1/verdicts", handler("/v1/duplicate-feed"))
        .route(page::PATHS[0], get(page::html))
        .route(page::PATHS[1], get(page::script))
        .route(page::PATHS[2], get(page::style))
        .fallback(async || {
            Problem::new(StatusCode::NOT_FOUND, "not_found", "there is no such path")
        })
        .method_not_allowed_fallback(async || {
            let detail = "this path has other methods: see `Allow`";
            Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
        });
    router.layer(from_fn_with_state(service.clone(), around)).with_state(service)
}

/// Guards, bounds, counts and completes every answer.
async fn around(State(service): State<Arc<Service>>, request: Request, next: Next) -> Response {
    let began = Instant::now();
    let matched = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let route = ROUTES.iter().find(|(path, _)| matched.as_deref() == Some(path));
    let route = route.map_or("other", |(path, _)| path);
    let of_page = matched.as_deref().is_some_and(|path| page::PATHS.contains(&path));
    let in_paper_form = request.uri().path().starts_with("/docId/");
    let peer = request.extensions().get::<Peer>().copied();
    let peer = peer.unwrap_or(Peer(std::net::Ipv4Addr::LOCALHOST.into()));
    let mut response = match service.guard.check(request.uri(), request.headers(), peer) {
        Err(problem) => problem.into_response(),
        Ok(()) if service.is_stopping() => Problem::stopping().into_response(),
        Ok(()) => {
            let most = service.config.request_time();
            let answer = tokio::time::timeout(most, next.run(request)).await;
            answer.unwrap_or_else(|_| {
                let detail = format!("there was no answer within {} ms", most.as_millis());
                let status = StatusCode::SERVICE_UNAVAILABLE;
                Problem::new(status, "timeout", detail).into_response()
            })
        }
    };
    if let Some(problem) = response.extensions().get::<Problem>().filter(|_| in_paper_form) {
        let mut paper = problem.in_paper_form();
        // What was added on the way, such as `Allow`.
        for (name, value) in response.headers() {
            if !matches!(name.as_str(), "content-type" | "content-length") {
                paper.headers_mut().insert(name, value.clone());
            }
        }
        response = paper;
    }
    // The later of two of one name stands.
    let policy = of_page.then_some((HEADERS[0].0, page::POLICY));
    for (name, value) in HEADERS.into_iter().chain(policy) {
        let (name, value) = (HeaderName::from_static(name), HeaderValue::from_static(value));
        response.headers_mut().insert(name, value);
    }
    service.metrics.answered(route, response.status().as_u16(), began.elapsed());
    response
}
