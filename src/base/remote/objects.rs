//! Objects on a server, behind calls that wait.

mod upload;

use std::fmt;
use std::future::Future;
use std::io::{self, Read, Seek, SeekFrom};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{
    ClientOptions, GetOptions, GetRange, ObjectStore, ObjectStoreExt as _, RetryConfig,
};
use tokio::runtime::{Builder, Runtime};
use url::Url;

use super::Error;

pub use upload::Upload;

/// Bytes that are asked for at a time.
const READ_BYTES: u64 = 8 << 20;

/// Objects that are asked for at a time.
const TOGETHER: usize = 16;

/// How often a request is sent again, and for how long: a server that is busy gets time, one that
/// is not there is told soon.
const RETRIES_MAX: usize = 4;
const RETRY_TIME_MAX: Duration = Duration::from_secs(30);

/// Time to connect, and for one request.
const CONNECT_TIME_MAX: Duration = Duration::from_secs(5);
const REQUEST_TIME_MAX: Duration = Duration::from_mins(2);

/// Requests are sent by threads of their own.
static RUNTIME: LazyLock<io::Result<Runtime>> = LazyLock::new(|| {
    // The client asks the process for its cryptography. Whoever has chosen one before is heard.
    let _chosen = rustls::crypto::ring::default_provider().install_default();
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).thread_name("object storage").enable_all().build()
});

/// An object, or all objects whose names begin as it does.
#[derive(Clone)]
pub struct Objects {
    store: Arc<dyn ObjectStore>,
    path: Path,
    /// As it was written.
    url: Arc<str>,
}

impl fmt::Debug for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Objects({self})")
    }
}

impl fmt::Display for Objects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

/// Takes out what follows a question mark in a URL: the signature of a request may stand there.
fn without_queries(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let end = rest[at..].find([' ', '"', ')', '\n']).map_or(rest.len(), |end| at + end);
        let url = &rest[..end];
        out.push_str(url.split_once('?').map_or(url, |(before, _)| before));
        rest = &rest[end..];
    }
    out.push_str(rest);
    out
}

impl Objects {
    /// Makes the client of a URL. Nothing is asked yet.
    pub(super) fn open(text: &str, given: &[(String, String)]) -> Result<Self, Error> {
        let url = Url::parse(text).map_err(|error| Error::usage(text, error.to_string()))?;
        let path = Path::from_url_path(url.path().trim_matches('/'));
        let path = path.map_err(|error| Error::usage(text, error.to_string()))?;
        let _threads: &Runtime = runtime(text)?;
        has_credentials(url.scheme(), given).map_err(|detail| Error::usage(text, detail))?;
        let bucket = &url[..url::Position::BeforePath];
        let store = match url.scheme() {
            "gs" => google(bucket, given),
            "s3" | "s3a" => amazon(bucket, given),
            _ => azure(bucket, given),
        };
        let store =
            store.map_err(|error| Error::usage(text, without_queries(&error.to_string())))?;
        let url = text.trim_end_matches('/').into();
        Ok(Self { store, path, url })
    }

    /// Returns an object below.
    #[must_use]
    pub fn child(&self, name: &str) -> Self {
        let path = name.split('/').fold(self.path.clone(), Path::join);
        Self { store: self.store.clone(), path, url: format!("{}/{name}", self.url).into() }
    }

    /// Returns its name: the last part of the URL.
    #[must_use]
    pub fn name(&self) -> &str {
        self.url.rsplit('/').next().unwrap_or_default()
    }

    fn error(&self, error: &object_store::Error) -> Error {
        let mut detail = error.to_string();
        let mut cause = std::error::Error::source(error);
        while let Some(next) = cause {
            let text = next.to_string();
            if !detail.contains(&text) {
                detail = format!("{detail}: {text}");
            }
            cause = next.source();
        }
        let detail = match error {
            object_store::Error::NotFound { .. } => "there is no such object or bucket".to_owned(),
            _ => without_queries(&detail),
        };
        Error { url: self.url.to_string(), detail, is_usage: false }
    }

    /// Waits for an answer.
    fn wait<T>(
        &self,
        work: impl Future<Output = Result<T, object_store::Error>>,
    ) -> Result<T, Error> {
        runtime(&self.url)?.block_on(work).map_err(|error| self.error(&error))
    }

    /// Opens the object to read it, from any place on.
    ///
    /// # Errors
    ///
    /// What the server says.
    pub fn read(&self) -> Result<ObjectReader, Error> {
        let meta = self.wait(self.store.head(&self.path))?;
        let (from, tag) = (self.clone(), meta.e_tag);
        Ok(ObjectReader { from, tag, bytes: meta.size, at: 0, held: Vec::new(), held_at: 0 })
    }

    /// Reads the whole object.
    ///
    /// # Errors
    ///
    /// What the server says.
    pub fn get(&self) -> Result<Vec<u8>, Error> {
        let got = self.wait(async { self.store.get(&self.path).await?.bytes().await });
        got.map(|bytes| bytes.to_vec())
    }

    /// Reads whole objects, several at a time.
    #[must_use]
    pub fn get_all(all: &[Self]) -> Vec<Result<Vec<u8>, Error>> {
        let Some(Self { url, .. }) = all.first() else { return Vec::new() };
        let Ok(runtime) = runtime(url) else { return all.iter().map(Self::get).collect() };
        let each = |one: &Self| {
            let one = one.clone();
            async move {
                let got = async { one.store.get(&one.path).await?.bytes().await };
                got.await.map(|bytes| bytes.to_vec()).map_err(|error| one.error(&error))
            }
        };
        let all = futures_util::stream::iter(all.iter().map(each));
        runtime.block_on(all.buffered(TOGETHER).collect())
    }

    /// Returns the objects below, in the order of their names, each with its length.
    ///
    /// # Errors
    ///
    /// What the server says.
    pub fn list(&self) -> Result<Vec<(Self, u64)>, Error> {
        let found = self.wait(self.store.list(Some(&self.path)).try_collect::<Vec<_>>())?;
        let mut all: Vec<(Self, u64)> = found
            .into_iter()
            .filter_map(|meta| {
                let rest = meta.location.prefix_match(&self.path)?;
                let parts: Vec<String> = rest.map(|part| part.as_ref().to_owned()).collect();
                Some((self.child(&parts.join("/")), meta.size))
            })
            .collect();
        all.sort_by(|(one, _), (other, _)| one.path.cmp(&other.path));
        Ok(all)
    }

    /// Removes the object, if it is there.
    ///
    /// # Errors
    ///
    /// What the server says.
    pub fn remove(&self) -> Result<(), Error> {
        self.wait(async {
            match self.store.delete(&self.path).await {
                Err(object_store::Error::NotFound { .. }) => Ok(()),
                other => other,
            }
        })
    }

    /// Tells whether the object is there.
    ///
    /// # Errors
    ///
    /// What the server says.
    pub fn exists(&self) -> Result<bool, Error> {
        self.wait(async {
            match self.store.head(&self.path).await {
                Err(object_store::Error::NotFound { .. }) => Ok(false),
                other => other.map(|_| true),
            }
        })
    }

    /// Returns the names of what lies below up to the next slash, in order.
    ///
    /// # Errors
    ///
    /// What the server says.
    pub fn names(&self) -> Result<Vec<String>, Error> {
        let found = self.wait(self.store.list_with_delimiter(Some(&self.path)))?;
        let files = found.objects.iter().map(|meta| &meta.location);
        let all = found.common_prefixes.iter().chain(files);
        let mut names: Vec<String> =
            all.filter_map(|path| path.filename().map(str::to_owned)).collect();
        names.sort();
        Ok(names)
    }

    /// Begins to write the object.
    #[must_use]
    pub fn write(&self) -> Upload {
        Upload::new(self.clone())
    }
}

fn runtime(url: &str) -> Result<&'static Runtime, Error> {
    RUNTIME.as_ref().map_err(|error| {
        let detail = format!("no threads can be started: {error}");
        Error { url: url.to_owned(), detail, is_usage: false }
    })
}

/// Parts of the names of settings by which a client of a scheme gets credentials.
const OF_AMAZON: [&str; 6] = [
    "ACCESS_KEY_ID",
    "WEB_IDENTITY",
    "CONTAINER_CREDENTIALS",
    "CONTAINER_AUTHORIZATION",
    "METADATA_ENDPOINT",
    "SKIP_SIGNATURE",
];
const OF_GOOGLE: [&str; 4] =
    ["SERVICE_ACCOUNT", "APPLICATION_CREDENTIALS", "BEARER_TOKEN", "SKIP_SIGNATURE"];
const OF_AZURE: [&str; 8] = [
    "KEY",
    "SAS",
    "CLIENT_ID",
    "TOKEN",
    "AZURE_CLI",
    "MSI_ENDPOINT",
    "FEDERATED_TOKEN_FILE",
    "SKIP_SIGNATURE",
];

/// Tells whether credentials were given. Without them, the clients would ask a server of the
/// network that they are in, which nobody has named.
fn has_credentials(scheme: &str, given: &[(String, String)]) -> Result<(), &'static str> {
    let (start, parts, detail) = match scheme {
        "s3" | "s3a" => (
            "AWS_",
            &OF_AMAZON[..],
            "the environment has no credentials: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, \
             AWS_SKIP_SIGNATURE=true for a public bucket, or \
             AWS_METADATA_ENDPOINT=http://169.254.169.254 for the role of a machine of Amazon",
        ),
        "gs" => (
            "GOOGLE_",
            &OF_GOOGLE[..],
            "the environment has no credentials: GOOGLE_SERVICE_ACCOUNT or \
             GOOGLE_APPLICATION_CREDENTIALS, the path of a file of keys; \
             GOOGLE_SKIP_SIGNATURE=true for a public bucket",
        ),
        _ => (
            "AZURE_",
            &OF_AZURE[..],
            "the environment has no credentials: AZURE_STORAGE_ACCOUNT_NAME and \
             AZURE_STORAGE_ACCOUNT_KEY, or a SAS, AZURE_STORAGE_SAS_KEY",
        ),
    };
    let is_one = |name: &str| {
        name.strip_prefix(start).is_some_and(|name| parts.iter().any(|part| name.contains(part)))
    };
    if given.iter().any(|(name, _)| is_one(name)) { Ok(()) } else { Err(detail) }
}

fn retry() -> RetryConfig {
    RetryConfig {
        max_retries: RETRIES_MAX,
        retry_timeout: RETRY_TIME_MAX,
        ..RetryConfig::default()
    }
}

/// Settings of a client. A server that was named by `http://` is asked so.
fn client(given: &[(String, String)], endpoints: &[&str]) -> ClientOptions {
    let plain = given.iter().any(|(name, value)| {
        let allowed = name.ends_with("_ALLOW_HTTP") && value.eq_ignore_ascii_case("true");
        allowed || endpoints.contains(&name.as_str()) && value.starts_with("http://")
    });
    ClientOptions::new()
        .with_user_agent(hyper::header::HeaderValue::from_static(concat!(
            "uniqcrawl/",
            env!("CARGO_PKG_VERSION")
        )))
        .with_connect_timeout(CONNECT_TIME_MAX)
        .with_timeout(REQUEST_TIME_MAX)
        .with_allow_http(plain)
}

type Opened = Result<Arc<dyn ObjectStore>, object_store::Error>;

/// Gives a builder the settings that it knows.
macro_rules! configured {
    ($builder:expr, $given:expr) => {
        $given.iter().fold($builder, |builder, (name, value)| {
            match name.to_ascii_lowercase().parse() {
                Ok(key) => builder.with_config(key, value),
                Err(_) => builder,
            }
        })
    };
}

fn amazon(bucket: &str, given: &[(String, String)]) -> Opened {
    let endpoints = ["AWS_ENDPOINT", "AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"];
    let builder = configured!(AmazonS3Builder::new().with_url(bucket), given)
        .with_client_options(client(given, &endpoints))
        .with_retry(retry());
    Ok(Arc::new(builder.build()?))
}

fn google(bucket: &str, given: &[(String, String)]) -> Opened {
    let endpoints = ["GOOGLE_BASE_URL", "GOOGLE_SERVICE_URL"];
    let builder = configured!(GoogleCloudStorageBuilder::new().with_url(bucket), given)
        .with_client_options(client(given, &endpoints))
        .with_retry(retry());
    Ok(Arc::new(builder.build()?))
}

fn azure(bucket: &str, given: &[(String, String)]) -> Opened {
    let endpoints = ["AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"];
    let builder = configured!(MicrosoftAzureBuilder::new().with_url(bucket), given)
        .with_client_options(client(given, &endpoints))
        .with_retry(retry());
    Ok(Arc::new(builder.build()?))
}

/// An object that is read. Some bytes are asked for at a time, and again if a request fails; an
/// object that has changed meanwhile is an error.
#[derive(Debug)]
pub struct ObjectReader {
    from: Objects,
    tag: Option<String>,
    bytes: u64,
    at: u64,
    held: Vec<u8>,
    held_at: u64,
}

impl ObjectReader {
    fn fill(&mut self) -> Result<(), Error> {
        let end = self.at.saturating_add(READ_BYTES).min(self.bytes);
        let options = GetOptions {
            range: Some(GetRange::Bounded(self.at..end)),
            if_match: self.tag.clone(),
            ..GetOptions::default()
        };
        let Objects { store, path, .. } = &self.from;
        let got = self.from.wait(async { store.get_opts(path, options).await?.bytes().await });
        self.held = got?.to_vec();
        self.held_at = self.at;
        if self.held.is_empty() {
            let detail = "it ends before its length".to_owned();
            return Err(Error { url: self.from.to_string(), detail, is_usage: false });
        }
        Ok(())
    }
}

impl Read for ObjectReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.at >= self.bytes || out.is_empty() {
            return Ok(0);
        }
        let is_held = self.at >= self.held_at && self.at < self.held_at + self.held.len() as u64;
        if !is_held {
            self.fill()?;
        }
        let from = usize::try_from(self.at - self.held_at).map_err(io::Error::other)?;
        let some = (self.held.len() - from).min(out.len());
        out[..some].copy_from_slice(&self.held[from..from + some]);
        self.at += some as u64;
        Ok(some)
    }
}

impl Seek for ObjectReader {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let at = match to {
            SeekFrom::Start(at) => Some(at),
            SeekFrom::End(off) => self.bytes.checked_add_signed(off),
            SeekFrom::Current(off) => self.at.checked_add_signed(off),
        };
        let before = || io::Error::new(io::ErrorKind::InvalidInput, "a place before the start");
        self.at = at.ok_or_else(before)?;
        Ok(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_asked_for_credentials_that_are_not_there() {
        let given = |name: &str| vec![(name.to_owned(), "x".to_owned())];
        for (scheme, name, hint) in [
            ("s3", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"),
            ("gs", "GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_SERVICE_ACCOUNT"),
            ("az", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_ACCOUNT_KEY"),
        ] {
            let detail = has_credentials(scheme, &given("AWS_REGION")).unwrap_err();
            assert!(detail.contains(hint), "{detail}");
            assert_eq!(has_credentials(scheme, &given(name)), Ok(()));
            let error = Objects::open(&format!("{scheme}://bucket/x"), &[]).unwrap_err();
            assert!(error.is_usage && error.to_string().contains(hint), "{error}");
        }
    }

    #[test]
    fn a_signature_in_a_url_is_not_told() {
        let text = "PUT https://h/c/x?sig=abc&se=1 failed, see \"http://h/y?a=b\" and more?";
        let told = "PUT https://h/c/x failed, see \"http://h/y\" and more?";
        assert_eq!(without_queries(text), told);
    }
}
