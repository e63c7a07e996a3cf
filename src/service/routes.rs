//! Which request is answered by what, and what all requests have in common.

use std::sync::{Arc, LazyLock};
use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;

use super::guard::Peer;
use super::problem::Problem;
use super::route::Route;
use super::{
    Service, articles, backup, changes, crawls, doc_id, documents, duplicate_feed, expiry, export,
    jobs, lists, live, page, search, status, times,
};

/// The routes of each file.
const FILES: [&[Route]; 15] = [
    doc_id::ROUTES,
    articles::ROUTES,
    lists::ROUTES,
    documents::ROUTES,
    times::ROUTES,
    search::ROUTES,
    duplicate_feed::ROUTES,
    export::ROUTES,
    changes::ROUTES,
    live::ROUTES,
    jobs::ROUTES,
    crawls::ROUTES,
    expiry::ROUTES,
    backup::ROUTES,
    status::ROUTES,
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

/// Returns every route.
pub fn routes() -> impl Iterator<Item = &'static Route> {
    FILES.into_iter().flatten()
}

/// Returns the description of the service, as it is served: `openapi.json` with the operations of
/// all routes.
#[must_use]
pub fn openapi() -> &'static str {
    static WHOLE: LazyLock<String> = LazyLock::new(|| {
        let paths = routes().map(|route| {
            let operations = route.methods.iter().map(|(method, operation)| {
                // No string of JSON has a line break in it.
                let operation = operation.trim_end().replace('\n', "\n      ");
                format!("      \"{method}\": {operation}")
            });
            let operations = operations.collect::<Vec<_>>().join(",\n");
            format!("    \"{}\": {{\n{operations}\n    }}", route.path)
        });
        let paths = paths.collect::<Vec<_>>().join(",\n");
        let whole = format!("\"paths\": {{\n{paths}\n  }}");
        include_str!("openapi.json").replacen("\"paths\": {}", &whole, 1)
    });
    &WHOLE
}

pub(super) fn router(service: Arc<Service>) -> Router {
    let router = routes()
        .fold(Router::new(), |router, route| router.route(route.path, (route.router)()))
        // The path of the version before.
        .route("/v1/verdicts", (duplicate_feed::ROUTES[0].router)())
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
    let route = routes().find(|route| matched.as_deref() == Some(route.path));
    let route = route.map_or("other", |route| route.path);
    let of_page = matched.as_deref().is_some_and(|path| page::PATHS.contains(&path));
    let in_paper_form = request.uri().path().starts_with("/docId/");
    let peer = request.extensions().get::<Peer>().copied();
    let peer = peer.unwrap_or(Peer(std::net::Ipv4Addr::LOCALHOST.into()));
    let let_in = service.guard.check(request.uri(), request.headers(), peer);
    let mut response = match let_in.and_then(|()| service.check_path(matched.as_deref())) {
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
