//! A client of a running service, for commands that work beside it.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, anyhow};
use serde_json::Value;
use tokio::runtime::{Builder, Runtime};

use crate::web::fetch;

use super::exit::Usage;

/// How long the service may take beyond what it was asked to wait.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(90);

/// Where a running service is.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct ServiceArg {
    /// Ask the service or crawl that has the store open, such as `http://127.0.0.1:8080`, in place
    /// of opening it
    #[arg(long, value_name = "URL")]
    pub from: Option<String>,
    /// File of the token that the service wants
    #[arg(long, value_name = "FILE", requires = "from")]
    pub token_file: Option<std::path::PathBuf>,
}

/// A service that can be asked.
pub(super) struct ServiceClient {
    runtime: Runtime,
    client: reqwest::Client,
    base: String,
    token: Option<String>,
}

/// What the service answered that is no success.
#[derive(Debug, thiserror::Error)]
#[error("{base} answers {status}: {detail}")]
pub(super) struct ServiceProblem {
    base: String,
    /// Its status.
    pub status: u16,
    detail: String,
}

impl ServiceClient {
    pub(super) fn new(base: &str, token_file: Option<&Path>) -> Result<Self> {
        let url = reqwest::Url::parse(base).ok();
        let fits = |url: &reqwest::Url| matches!(url.scheme(), "http" | "https");
        if !url.as_ref().is_some_and(fits) {
            let detail = format!("`{base}` is no URL of a service, such as http://127.0.0.1:8080");
            return Err(Usage(detail).into());
        }
        let token = token_file.map(|path| {
            let read = std::fs::read_to_string(path);
            read.map(|text| text.trim().to_owned())
                .map_err(|error| Usage(format!("cannot read {}: {error}", path.display())))
        });
        let tls = fetch::tls(&fetch::Config::default())?;
        let client = reqwest::Client::builder()
            .tls_backend_preconfigured(tls)
            .no_proxy()
            .timeout(ANSWER_TIME_MAX)
            .build()?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let base = base.trim_end_matches('/').to_owned();
        Ok(Self { runtime, client, base, token: token.transpose()? })
    }

    /// Asks for what stands at a path.
    pub(super) fn get(&self, path: &str) -> Result<String> {
        self.send(self.client.get(format!("{}{path}", self.base)))
    }

    /// Has something done.
    pub(super) fn post(&self, path: &str) -> Result<String> {
        let request = self.client.post(format!("{}{path}", self.base));
        self.send(request.header("content-type", "application/json"))
    }

    fn send(&self, mut request: reqwest::RequestBuilder) -> Result<String> {
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        self.runtime.block_on(async {
            let cannot = || format!("{} does not answer", self.base);
            let answer = request.send().await.with_context(cannot)?;
            let status = answer.status();
            let text = answer.bytes().await.with_context(cannot)?;
            let text = String::from_utf8(text.to_vec())
                .map_err(|_| anyhow!("{} answers with what is no text", self.base))?;
            if status.is_success() {
                return Ok(text);
            }
            let problem: Value = serde_json::from_str(&text).unwrap_or_default();
            let detail = problem["detail"].as_str().unwrap_or("without a reason").to_owned();
            let base = self.base.clone();
            Err(ServiceProblem { base, status: status.as_u16(), detail }.into())
        })
    }
}
