//! `crawl serve`.

use std::io::Write as _;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use tokio::net::TcpListener;
use uniqcrawl::api::{self, Service, Settings};
use uniqcrawl::clock::Clock;
use uniqcrawl::config::Sourced;

use super::args::ServeArgs;
use super::exit::Exit;
use super::signals::Asked;
use super::{crawl, screen};

/// How long the writer gets to end its last commit.
const PATIENCE: Duration = Duration::from_secs(30);

/// `crawl serve`.
pub(super) fn serve(args: &ServeArgs, json: bool, quiet: bool) -> Result<Exit> {
    let mut sourced = Sourced::read(args.config.as_deref())?;
    sourced.apply(|config| {
        config.api.listen = args.listen.unwrap_or(config.api.listen);
        if let Some(file) = &args.token_file {
            config.api.token_file.clone_from(file);
        }
    });
    let config = sourced.config;
    api::check(&config.api)?;
    let store = Arc::new(crawl::open(&config, &args.store.store)?);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let listen = config.api.listen;
    let listener = runtime
        .block_on(TcpListener::bind(listen))
        .with_context(|| format!("cannot listen on {listen}"))?;
    let mut asked = runtime.block_on(async { Asked::new() })?;
    let settings = Settings {
        api: config.api,
        dedup: config.dedup,
        honour: config.export,
        search: config.search,
        clock: Clock::System,
    };
    let service = Service::start(store.clone(), &settings)?;
    let address = listener.local_addr()?;
    if json {
        screen::json(&serde_json::json!({ "listening": format!("http://{address}") }))?;
    } else if !quiet {
        println!("listening on http://{address}");
        std::io::stdout().flush()?;
    }
    runtime.block_on(api::serve(listener, service, async {
        asked.next().await;
    }));
    runtime.shutdown_timeout(PATIENCE);
    if !api::close(store, PATIENCE) {
        tracing::warn!("the store was left open: it is looked through when it is opened next");
    }
    if !json && !quiet {
        println!("stopped");
    }
    Ok(Exit::Interrupted)
}
