//! `crawl serve`.

use std::io::Write as _;
use std::path::Path;
use std::process::exit;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::config::Config;
use crate::crawl::jobs::{JobsFile, JobsHandle};
use crate::crawl::{Backups, Crawls, fix_rules};
use crate::service::{self, ClusterPlace, SearchPlace, Service};
use crate::store::Store;
use anyhow::Result;
use tokio::sync::oneshot;

use super::args::ServeArgs;
use super::exit::{Exit, Usage};
use super::jobs::{House, Screen, Served};
use super::listener::Listener;
use super::search::parts_of;
use super::settings;
use super::signals::Asked;
use super::{crawl, jobs, screen};

/// `crawl serve`.
pub(super) fn serve(args: &ServeArgs, json: bool, quiet: bool) -> Result<Exit> {
    let mut sourced = settings::read(args.config.as_deref())?;
    sourced.apply(|config| {
        config.api.listen = args.listen.unwrap_or(config.api.listen);
        config.api.crawls |= args.allow_crawls;
        config.api.expiry |= args.allow_expiry;
        if let Some(file) = &args.token_file {
            config.api.token_file.clone_from(file);
        }
    });
    let config = sourced.config;
    service::check(&config.api)?;
    if let Some(settings) = args.store.store.cluster()? {
        let search = SearchPlace {
            folder: args.index.clone(),
            parts: parts_of(&args.parts)?,
            peers: args.search_peers.clone(),
        };
        let place = ClusterPlace { settings, texts: args.store.texts.clone(), search };
        return serve_shared(args, &config, &place, Screen { json, quiet });
    }
    if args.index.is_some() || !args.search_peers.is_empty() {
        let why = "--index and --search-peers are for a cluster: the index of a store lies in it";
        return Err(Usage(why.to_owned()).into());
    }
    let folder = args.store.folder()?;
    let jobs = args.jobs.as_deref().map(jobs::read_checked).transpose()?;
    let store = Arc::new(crawl::open(&config, folder)?);
    if let Some(jobs) = &jobs {
        fit(jobs, &config, folder, &store)?;
    }
    if config.api.crawls {
        fix_rules(&store, &config.urls)?;
    }
    let listener = Listener::open(&config, &store)?;
    let asked = listener.runtime.block_on(async { Asked::new() })?;
    let crawls = listener.service.crawls();
    // Lines of runs stand in the log: standard output is for the service.
    let running = jobs.map(|jobs| start_jobs(&jobs, folder, &store, &listener.service));
    let (jobs_handle, running) = running.transpose()?.unzip();
    let backups = Backups::start(&store, &config.backup)?;
    if let Some(backups) = &backups {
        listener.service.attach_backups(backups.handle());
    }
    tell(&listener, json, quiet)?;
    let handle = listener.runtime.handle().clone();
    let (mut answering, stop) = listener.answer();
    handle.spawn(end(asked, stop, jobs_handle, crawls.clone()));
    answering.wait();
    if let Some(running) = running {
        // A panic of that thread has been told.
        drop(running.join());
    }
    while !crawls.running().is_empty() {
        thread::sleep(Duration::from_millis(20));
    }
    drop(backups);
    answering.close(store);
    if !json && !quiet {
        println!("stopped");
    }
    Ok(Exit::Interrupted)
}

/// Says where it listens.
fn tell(listener: &Listener, json: bool, quiet: bool) -> Result<()> {
    let address = listener.address;
    if json {
        screen::json(&serde_json::json!({ "listening": format!("http://{address}") }))?;
    } else if !quiet {
        println!("listening on http://{address}");
        std::io::stdout().flush()?;
    }
    Ok(())
}

/// `crawl serve` on a cluster, beside any number of others.
fn serve_shared(
    args: &ServeArgs,
    config: &Config,
    place: &ClusterPlace,
    Screen { json, quiet }: Screen,
) -> Result<Exit> {
    if args.jobs.is_some() || config.api.crawls || config.api.expiry {
        let why = "a service on a cluster neither crawls nor removes what is old: leave out \
                   --jobs, --allow-crawls and --allow-expiry (`crawl worker` crawls)";
        return Err(Usage(why.to_owned()).into());
    }
    // What belongs to this process alone; it ends with it.
    let own = tempfile::tempdir()?;
    let store = Arc::new(crawl::open(config, own.path())?);
    let listener = Listener::open_on(config, &store, Some(place))?;
    let asked = listener.runtime.block_on(async { Asked::new() })?;
    let crawls = listener.service.crawls();
    tell(&listener, json, quiet)?;
    let handle = listener.runtime.handle().clone();
    let (mut answering, stop) = listener.answer();
    handle.spawn(end(asked, stop, None, crawls));
    answering.wait();
    answering.close(store);
    if !json && !quiet {
        println!("stopped");
    }
    Ok(Exit::Interrupted)
}

/// Ends everything when it is asked to: first with requests under way, then without them, then at
/// once.
async fn end(
    mut asked: Asked,
    stop: oneshot::Sender<()>,
    jobs_handle: Option<JobsHandle>,
    crawls: Crawls,
) {
    let mut stop = Some(stop);
    for times in 1_u64.. {
        let asked = asked.next().await;
        if asked && times > 2 {
            exit(Exit::Interrupted as i32);
        }
        if times > 1 {
            // The first time, the service does it.
            crawls.close();
        }
        jobs_handle.iter().for_each(JobsHandle::quit);
        drop(stop.take());
        if !asked {
            return;
        }
    }
}

/// Checks that the jobs of the store that is served can share its index and its URLs.
fn fit(jobs: &JobsFile, config: &Config, folder: &Path, store: &Store) -> Result<()> {
    let folder = folder.canonicalize()?;
    for job in &jobs.jobs {
        if job.store.canonicalize().ok().as_deref() != Some(folder.as_path()) {
            continue;
        }
        let own = jobs::config(job).map_err(|(key, why)| Usage(format!("{key}: {why}")))?;
        if own.dedup != config.dedup {
            let name = &job.name;
            let why = "its settings of `dedup` are not those of the service, whose store it shares";
            return Err(Usage(format!("job {name}: {why}")).into());
        }
        // The service reads URLs by the rules of the store.
        fix_rules(store, &own.urls)?;
    }
    Ok(())
}

/// Runs jobs beside the service.
fn start_jobs(
    jobs: &JobsFile,
    folder: &Path,
    store: &Arc<Store>,
    service: &Arc<Service>,
) -> Result<(JobsHandle, JoinHandle<()>)> {
    let (store, index) = (store.clone(), service.index());
    let served = Some(Served { folder: folder.canonicalize()?, store, index });
    let house = Arc::new(House { crawls: service.crawls(), served });
    let runner = jobs::open(jobs, None, house, Screen { json: false, quiet: true })?;
    let jobs_handle = runner.handle();
    service.attach_jobs(jobs_handle.clone());
    let running = thread::Builder::new().name("jobs".to_owned()).spawn(move || {
        if let Err(error) = runner.run() {
            tracing::error!(%error, "the scheduler has ended");
        }
    })?;
    Ok((jobs_handle, running))
}
