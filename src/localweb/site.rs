//! A host as a table of pages.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::SeenRequest;

/// What follows the head of an answer.
#[derive(Debug, Clone)]
pub enum Body {
    /// These bytes, with their true length.
    Bytes(Vec<u8>),
    /// These bytes under another `Content-Length`; then the connection closes.
    Lying {
        /// What the head says.
        declared: usize,
        /// What is sent.
        bytes: Vec<u8>,
    },
    /// These bytes again and again without end.
    Endless(Vec<u8>),
    /// One byte at a time.
    Drip {
        /// The bytes.
        bytes: Vec<u8>,
        /// Time between two of them.
        every: Duration,
    },
    /// The whole answer, status line and all; then the connection closes.
    Raw(Vec<u8>),
    /// Nothing, until the client goes away.
    Hang,
    /// The connection closes at once.
    Close,
}

/// One answer.
#[derive(Debug, Clone)]
pub struct Page {
    /// Status code.
    pub status: u16,
    /// Header lines besides `Content-Length`.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Body,
    /// Time before the answer starts.
    pub delay: Duration,
}

impl Page {
    /// An HTML page in UTF-8.
    #[must_use]
    pub fn html(html: impl Into<String>) -> Self {
        Self::bytes("text/html; charset=utf-8", html.into())
    }

    /// Bytes of the given type; an empty type sends no header.
    #[must_use]
    pub fn bytes(content_type: &str, bytes: impl Into<Vec<u8>>) -> Self {
        let page = Self::body(Body::Bytes(bytes.into()));
        if content_type.is_empty() { page } else { page.header("Content-Type", content_type) }
    }

    /// An answer with status 200 and this body.
    #[must_use]
    pub fn body(body: Body) -> Self {
        Self { status: 200, headers: Vec::new(), body, delay: Duration::ZERO }
    }

    /// An error page.
    #[must_use]
    pub fn status(status: u16) -> Self {
        let page = Self::html(format!("<h1>{status}</h1>"));
        Self { status, ..page }
    }

    /// A redirect.
    #[must_use]
    pub fn redirect(status: u16, target: &str) -> Self {
        Self::status(status).header("Location", target)
    }

    /// Adds a header line.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Lets the answer wait.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }
}

/// Answers requests that no table can hold.
pub type Handler = Arc<dyn Fn(&SeenRequest) -> Option<Page> + Send + Sync>;

/// A host: answers by path and query, 404 for all others.
#[derive(Clone, Default)]
pub struct Site {
    pages: HashMap<String, Page>,
    handler: Option<Handler>,
}

impl fmt::Debug for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Site").field("pages", &self.pages.len()).finish_non_exhaustive()
    }
}

impl Site {
    /// A host without pages.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the answer for a path with its query.
    #[must_use]
    pub fn page(mut self, target: &str, page: Page) -> Self {
        self.pages.insert(target.to_owned(), page);
        self
    }

    /// Adds an HTML page.
    #[must_use]
    pub fn html(self, target: &str, html: impl Into<String>) -> Self {
        self.page(target, Page::html(html))
    }

    /// Adds a robots.txt.
    #[must_use]
    pub fn robots(self, text: &str) -> Self {
        self.page("/robots.txt", Page::bytes("text/plain", text))
    }

    /// Asks `handler` before the table.
    #[must_use]
    pub fn handler(
        mut self,
        handler: impl Fn(&SeenRequest) -> Option<Page> + Send + Sync + 'static,
    ) -> Self {
        self.handler = Some(Arc::new(handler));
        self
    }

    /// Returns the paths of the table, in no order.
    pub fn targets(&self) -> impl Iterator<Item = &str> {
        self.pages.keys().map(String::as_str)
    }

    /// Pages of the table are lent, not copied: thousands a second are asked for.
    pub(super) fn answer(&self, request: &SeenRequest) -> Cow<'_, Page> {
        let own = self.handler.as_ref().and_then(|handler| handler(request));
        own.map(Cow::Owned)
            .or_else(|| self.pages.get(&request.target).map(Cow::Borrowed))
            .unwrap_or_else(|| Cow::Owned(Page::status(404)))
    }
}
