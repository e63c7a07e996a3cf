//! Telling others how a run ended: a webhook and a command. Their failures are told, and nothing
//! of what they carry.

use std::io::Write as _;
use std::process::{Child, Command as Process, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::base::units::Time;
use crate::crawl::jobs::{JobCommand, Webhook};
use crate::web::fetch::{self, Fetcher};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// Wait before the first repetition of a request; doubles with each.
const RETRY_WAIT: Duration = Duration::from_millis(500);

/// Longest such wait.
const RETRY_WAIT_MAX: Duration = Duration::from_secs(30);

/// Wait between two looks at a command.
const LOOK: Duration = Duration::from_millis(10);

/// Sends the summary. A busy server and one that gives no answer are tried again.
pub(super) fn post(webhook: &Webhook, retries: u32, summary: &Value) -> Result<String> {
    let timeout = Time::from(webhook.timeout);
    let config = fetch::Config {
        allow_private: webhook.allow_private,
        total_timeout: timeout,
        connect_timeout: timeout,
        stall_timeout: timeout,
        ..fetch::Config::default()
    };
    let token = match &webhook.token_file {
        None => None,
        Some(path) => {
            let text = std::fs::read_to_string(path);
            let text = text.with_context(|| format!("cannot read {}", path.display()))?;
            Some(text.trim().to_owned())
        }
    };
    let fetcher = Fetcher::new(config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let host = webhook.url.host_str().unwrap_or_default();
    let mut wait = RETRY_WAIT;
    for again in (0..=retries).rev() {
        let sent = fetcher.post_json(&webhook.url, summary.to_string(), token.as_deref());
        let (failure, may_pass) = match runtime.block_on(sent) {
            Ok(status @ 200..=299) => return Ok(format!("{host} answered {status}")),
            Ok(status) => (format!("{host} answered {status}"), status == 429 || status >= 500),
            Err(failure @ fetch::Failure::Refused(_)) => (format!("{host}: {failure:?}"), false),
            Err(fetch::Failure::Private(why)) => {
                (format!("{host}: {why}; `allow_private` of the webhook allows it"), false)
            }
            Err(failure) => (format!("{host}: {failure:?}"), true),
        };
        if again == 0 || !may_pass {
            bail!("{failure}");
        }
        thread::sleep(wait);
        wait = (wait * 2).min(RETRY_WAIT_MAX);
    }
    unreachable!("the last try returns")
}

/// Runs the command with the summary on its standard input and in its environment.
pub(super) fn tell(command: &JobCommand, summary: &Value) -> Result<String> {
    let Some((program, arguments)) = command.run.split_first() else { bail!("it is empty") };
    let mut process = Process::new(program);
    process.args(arguments).stdin(Stdio::piped());
    // Standard output is for the scheduler's own lines.
    process.stdout(Stdio::from(std::io::stderr())).stderr(Stdio::inherit());
    let counts = summary["counts"].as_object().into_iter().flatten();
    let facts = ["job", "outcome", "reason", "planned", "started", "ended", "trigger", "store"];
    let facts = facts.into_iter().map(|key| (key, &summary[key]));
    for (key, value) in facts.chain(counts.map(|(key, value)| (key.as_str(), value))) {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        process.env(format!("UNIQCRAWL_{}", key.to_uppercase()), text);
    }
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut process, 0);
    let mut child = process.spawn().with_context(|| format!("cannot start {program}"))?;
    let text = format!("{summary}\n");
    if let Some(mut input) = child.stdin.take() {
        // A program that does not read must not hold us up; one that closes its input is free to.
        thread::spawn(move || drop(input.write_all(text.as_bytes())));
    }
    match wait(&mut child, command.timeout)? {
        Some(status) if status.success() => Ok(format!("{program} ended well")),
        Some(status) => bail!("{program}: {status}"),
        None => bail!("{program} took longer than {:?} and was ended", command.timeout),
    }
}

/// Waits for the end; none if the time was over and the command was ended by force.
fn wait(child: &mut Child, timeout: Duration) -> Result<Option<ExitStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() >= timeout {
            end(child);
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(LOOK);
    }
}

/// Ends the command with all that it started.
fn end(child: &mut Child) {
    #[cfg(unix)]
    if let Some(group) = i32::try_from(child.id()).ok().and_then(rustix::process::Pid::from_raw) {
        // It may have ended by itself meanwhile.
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    // The group may be gone already.
    drop(child.kill());
}
