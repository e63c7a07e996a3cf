//! What the log says of hosts and URLs.

use crate::base::clock::Timestamp;
use crate::urls::PageUrl;

use super::Reason;
use super::rows::{Host, State};

/// Says that a URL is refused, if it is.
pub(super) fn refused(url: &PageUrl, state: &State) {
    if let State::Refused(reason) = state {
        tracing::debug!(%url, %reason, "refused");
    }
}

/// Says that a host is left alone, or no longer is. `trouble` is that until now, and
/// `blocked_until` the end of its last block.
pub(super) fn host(host: &Host, trouble: Option<Reason>, blocked_until: Timestamp) {
    let key = &host.key;
    match (host.trouble, trouble) {
        (Some(reason), _) if host.blocked_until > blocked_until || host.trouble != trouble => {
            let until = host.blocked_until;
            tracing::info!(host = %key, %reason, %until, "host is left alone");
        }
        (None, Some(reason)) => tracing::info!(host = %key, was = %reason, "host answers again"),
        _ => {}
    }
}
