//! The ways in which a request gets no usable answer.

use std::error::Error;
use std::io;

use super::guard;
use super::resolve::ResolveError;
use crate::base::system::is_exhausted;

/// Why a request got no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Failure {
    /// The host has only URLs that must not be contacted; which kind.
    Refused(String),
    /// The same, and one of them is private: it may be contacted if the operator allows it.
    Private(String),
    /// The name cannot be resolved.
    Dns(String),
    /// No connection.
    Connect(String),
    /// No connection with the proxy, or none through it.
    Proxy(String),
    /// No secure connection.
    Tls(String),
    /// A limit of time has passed; what was waited for.
    Timeout(&'static str),
    /// Not valid HTTP, or broken off.
    BadResponse(String),
    /// Nothing was sent for want of something of this machine, such as open files: it says nothing
    /// of the host.
    Exhausted(String),
    /// The client broke on it: a fault of ours, of which the log tells.
    Panicked,
}

impl Failure {
    /// Finds out what an error of the client means.
    pub(super) fn of(error: &reqwest::Error) -> Self {
        let mut cause: Option<&(dyn Error + 'static)> = Some(error);
        let mut last = error.to_string();
        while let Some(link) = cause {
            last = link.to_string();
            if let Some(found) = link.downcast_ref::<ResolveError>() {
                return Self::from(found.clone());
            }
            if let Some(own) = link.downcast_ref::<io::Error>().filter(|e| is_exhausted(e)) {
                return Self::Exhausted(own.to_string());
            }
            if let Some(tls) = link.downcast_ref::<rustls::Error>() {
                return Self::Tls(tls.to_string());
            }
            cause = inner(link);
        }
        if error.is_timeout() {
            Self::Timeout(if error.is_connect() { "a connection" } else { "more of the answer" })
        } else if error.is_connect() {
            Self::Connect(last)
        } else {
            Self::BadResponse(last)
        }
    }
}

impl From<guard::Refused> for Failure {
    fn from(refused: guard::Refused) -> Self {
        match refused.class {
            guard::AddressClass::Private(_) => Self::Private(refused.to_string()),
            guard::AddressClass::Never(_) => Self::Refused(refused.to_string()),
        }
    }
}

impl From<ResolveError> for Failure {
    fn from(error: ResolveError) -> Self {
        match error {
            ResolveError::Refused(refused) => Self::from(refused),
            ResolveError::NotFound(detail) => Self::Dns(detail),
            ResolveError::Exhausted(detail) => Self::Exhausted(detail),
        }
    }
}

/// The next link of a chain of causes. An `io::Error` hides its payload from `source`.
fn inner<'a>(link: &'a (dyn Error + 'static)) -> Option<&'a (dyn Error + 'static)> {
    let payload = link.downcast_ref::<io::Error>().and_then(io::Error::get_ref);
    match payload {
        Some(payload) => Some(payload),
        None => link.source(),
    }
}
