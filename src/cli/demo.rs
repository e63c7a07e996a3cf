//! `crawl demo`: the real crawler on a small web of its own.

use std::path::Path;

use crate::base::units::Time;
use crate::config::Config;
use crate::localweb::{LocalWeb, demo};
use crate::store::Store;
use crate::urls::PageUrl;
use anyhow::Result;

use super::args::DemoArgs;
use super::crawl::{self, How};
use super::exit::{Exit, Usage};
use super::screen;

/// Settings that fit a web of 200 pages on this machine.
fn config() -> Config {
    let mut config = Config::default();
    config.fetch.allow_private = true;
    config.frontier.delay = Time::from_millis(20);
    // The slow host of the demo is slow on purpose, and not for want of rest.
    config.frontier.response_factor = 0;
    // The calendar of the trap has no end: this is where it ends.
    config.frontier.host_addresses_max = 60;
    config
}

/// `crawl demo`.
pub(super) fn demo(args: &DemoArgs, json: bool, quiet: bool) -> Result<Exit> {
    let folder = args.store.folder()?;
    if folder.join("store.redb").exists() {
        let text = format!("{} has a store: remove it, or name another", folder.display());
        return Err(Usage(text).into());
    }
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let web = runtime.block_on(LocalWeb::start(demo::HOSTS, demo::sites))?;
    let seeds: Result<Vec<PageUrl>, _> =
        (0..web.hosts()).map(|host| PageUrl::parse(&web.url(host))).collect();
    if !json && !quiet {
        println!("a web of {} hosts runs on this machine:", web.hosts());
        screen::facts(demo::NAMES.iter().enumerate().map(|(host, name)| (*name, web.url(host))))?;
        println!();
    }
    let (report, exit) = crawl::run(&config(), folder, &seeds?, How { serve: false, quiet })?;
    if json {
        screen::json(&report)?;
    } else {
        crawl::show(&report, folder)?;
        next_steps(folder, &web)?;
    }
    if args.serve {
        println!("the web is still there; Ctrl-C ends it");
        runtime.block_on(tokio::signal::ctrl_c())?;
    }
    runtime.block_on(web.stop());
    Ok(exit)
}

fn next_steps(folder: &Path, web: &LocalWeb) -> Result<()> {
    let store = folder.display();
    let mirror = format!("{}story/1", web.url(2));
    println!("\ntry next:");
    for command in [
        format!("crawl export --store {store} --out corpus"),
        format!("crawl explain --store {store} {mirror}"),
        format!("crawl explain --store {store} {}private/secret", web.url(9)),
        format!("crawl inspect --store {store} {mirror}"),
        format!("crawl check --store {store}"),
    ] {
        println!("  {command}");
    }
    // The store must be readable by these very commands.
    drop(Store::open(folder, Config::default().cache_bytes())?);
    Ok(())
}
