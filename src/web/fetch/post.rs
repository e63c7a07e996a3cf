//! A message to the operator's own server: bounded in time and behind the guard, like any request.

use reqwest::header::{self, HeaderValue};
use url::Url;

use crate::urls::PageUrl;

use super::{Failure, Fetcher, WHOLE_REQUEST};

impl Fetcher {
    /// Sends `json` by POST and returns the status of the answer, whose body is not read. Redirects
    /// are not followed. `token` goes into the header `Authorization`.
    ///
    /// # Errors
    ///
    /// The ways in which there is no answer. None of them tells the URL or the token.
    pub async fn post_json(
        &self,
        url: &Url,
        json: String,
        token: Option<&str>,
    ) -> Result<u16, Failure> {
        let page = PageUrl::parse(url.as_str())
            .map_err(|_| Failure::Refused("it is neither http nor https".to_owned()))?;
        self.guard(&page).await?;
        let content_type = HeaderValue::from_static("application/json");
        let mut request =
            self.clients.of(&page)[0].post(url.clone()).header(header::CONTENT_TYPE, content_type);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let total = self.config.total_timeout.duration();
        match tokio::time::timeout(total, request.body(json).send()).await {
            Ok(Ok(answer)) => Ok(answer.status().as_u16()),
            Ok(Err(error)) => Err(Failure::of(&error.without_url())),
            Err(_) => Err(WHOLE_REQUEST),
        }
    }
}
