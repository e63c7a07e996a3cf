//! An answer of a server of the operator's own, of which the body is read as it comes.

use url::Url;

use crate::urls::PageUrl;

use super::{Failure, Fetcher, WHOLE_REQUEST};

impl Fetcher {
    /// Sends a request and returns the answer when its head has come. Redirects are not followed.
    /// `token` goes into the header `Authorization`.
    ///
    /// # Errors
    ///
    /// The ways in which there is no answer. None of them tells the token.
    pub async fn open(&self, url: &Url, token: Option<&str>) -> Result<reqwest::Response, Failure> {
        let page = PageUrl::parse(url.as_str())
            .map_err(|_| Failure::Refused("it is neither http nor https".to_owned()))?;
        self.guard(&page).await?;
        let mut request = self.clients.of(&page)[0].get(url.clone());
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let first = self.config.total_timeout.duration();
        match tokio::time::timeout(first, request.send()).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(Failure::of(&error.without_url())),
            Err(_) => Err(WHOLE_REQUEST),
        }
    }
}
