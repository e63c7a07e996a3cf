//! What is told of a request that cannot be answered: problem details with a stable code.
//!
//! Source: RFC 9457.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::doc_id;
use crate::store;

use super::ingest;

/// Why a request has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Problem {
    pub status: StatusCode,
    /// Clients depend on it.
    pub code: &'static str,
    /// For people.
    pub detail: String,
}

impl Problem {
    pub(super) fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into() }
    }

    /// What was sent is at fault.
    pub(super) fn bad(code: &'static str, detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, detail)
    }

    /// There is no room now; later there may be.
    pub(super) fn busy(detail: &str) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "busy", detail)
    }

    pub(super) fn stopping() -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "stopping", "the service is stopping")
    }

    pub(super) fn failed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "store_failed", detail)
    }

    /// Nothing can be stored now; the service tries until it can.
    pub(super) fn unwritable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "store_not_writable", detail)
    }

    pub(super) fn too_large(most: usize) -> Self {
        let detail = format!("the body has more than {most} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "type": "about:blank",
            "title": self.status.canonical_reason().unwrap_or_default(),
            "status": self.status.as_u16(),
            "code": self.code,
            "detail": self.detail,
        })
    }

    /// The problem in the form of the paper's answers.
    pub(super) fn in_paper_form(&self) -> Response {
        self.response("application/json", doc_id::failure(self.code, &self.detail))
    }

    fn response(&self, kind: &'static str, body: String) -> Response {
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        let later = [StatusCode::TOO_MANY_REQUESTS, StatusCode::SERVICE_UNAVAILABLE];
        if later.contains(&self.status) {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(self.clone());
        response
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.response("application/problem+json", self.json().to_string())
    }
}

impl From<store::Error> for Problem {
    fn from(error: store::Error) -> Self {
        tracing::error!(%error, "the store cannot be read");
        Self::failed("the store cannot be read")
    }
}

impl From<store::BadRow> for Problem {
    fn from(error: store::BadRow) -> Self {
        store::Error::from(error).into()
    }
}

impl From<ingest::Error> for Problem {
    fn from(error: ingest::Error) -> Self {
        match error {
            ingest::Error::Closed => Self::stopping(),
            // What failed was logged where it did.
            ingest::Error::Store(_) => Self::unwritable("nothing could be stored".to_owned()),
        }
    }
}

impl From<ingest::Bad> for Problem {
    fn from(bad: ingest::Bad) -> Self {
        let code = match bad {
            ingest::Bad::Nameless | ingest::Bad::Empty => "missing_field",
            ingest::Bad::TooLong { .. } => "field_too_long",
            ingest::Bad::Url(_) => "bad_url",
        };
        Self::bad(code, bad.to_string())
    }
}
