//! The dashboard: one page with its script and style, all in the binary. It holds no data: what it
//! shows it asks the service for, as any client does.

use std::sync::{Arc, LazyLock};

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse as _, Response};

use super::Service;
use crate::neardup::Key;

/// Paths of the page. They are served to everybody, also where a token is needed.
pub(super) const PATHS: [&str; 3] = ["/", "/app.js", "/app.css"];

/// What the page may do: run its own script, use its own style, ask this service. Whatever text it
/// puts in stays text: nothing can make it HTML.
pub(super) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

static HTML: LazyLock<String> = LazyLock::new(|| {
    include_str!("page/index.html").replace("{version}", env!("CARGO_PKG_VERSION"))
});

/// The same of a service on a cluster, which has other views.
static OF_CLUSTER: LazyLock<String> =
    LazyLock::new(|| HTML.replacen("<body ", "<body data-cluster=\"yes\" ", 1));

/// The script, with the words of all kinds of keys.
static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    let words = Key::ALL.iter().map(|key| format!("{}: {:?},", key.as_str(), key.in_words()));
    SCRIPTS.replace("/* Words of keys. */", &words.collect::<Vec<_>>().join(" "))
});

const SCRIPTS: &str = concat!(
    include_str!("page/words.js"),
    include_str!("page/base.js"),
    include_str!("page/diff.js"),
    include_str!("page/chart.js"),
    include_str!("page/lists.js"),
    include_str!("page/document.js"),
    include_str!("page/live.js"),
    include_str!("page/workers.js"),
    include_str!("page/app.js"),
);

const STYLE: &str = include_str!("page/app.css");

fn answer(kind: &'static str, text: &'static str) -> Response {
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// `GET /`.
pub(super) async fn html(State(service): State<Arc<Service>>) -> Response {
    answer("text/html; charset=utf-8", if service.is_shared() { &OF_CLUSTER } else { &HTML })
}

/// `GET /app.js`.
pub(super) async fn script() -> Response {
    answer("text/javascript; charset=utf-8", &SCRIPT)
}

/// `GET /app.css`.
pub(super) async fn style() -> Response {
    answer("text/css; charset=utf-8", STYLE)
}
