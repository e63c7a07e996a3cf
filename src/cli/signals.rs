//! Ctrl-C and SIGTERM.

/// Signals that ask for an end: listened to from the start, so that none is lost.
#[cfg(unix)]
pub(super) struct Asked(tokio::signal::unix::Signal, tokio::signal::unix::Signal);

#[cfg(unix)]
impl Asked {
    pub(super) fn new() -> std::io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self(signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?))
    }

    pub(super) async fn next(&mut self) -> bool {
        tokio::select! {
            one = self.0.recv() => one.is_some(),
            one = self.1.recv() => one.is_some(),
        }
    }
}

#[cfg(not(unix))]
pub(super) struct Asked;

#[cfg(not(unix))]
impl Asked {
    pub(super) fn new() -> std::io::Result<Self> {
        Ok(Self)
    }

    pub(super) async fn next(&mut self) -> bool {
        tokio::signal::ctrl_c().await.is_ok()
    }
}
