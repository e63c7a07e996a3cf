//! `crawl URL...`.

use std::cmp::Reverse;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use crate::base::outputs;
use crate::config::Config;
use crate::crawl::{self, Backups, Begun, Context, Report};
use crate::service::{self, Service};
use crate::store::Store;
use crate::text::features::Fingerprinter;
use crate::urls::PageUrl;
use crate::web::fetch::HOME;
use anyhow::{Context as _, Result};
use tokio::sync::oneshot;

use super::args::CrawlArgs;
use super::exit::Exit;
use super::listener::{Answering, Listener};
use super::progress::Progress;
use super::screen::{self, number};
use super::seeds::{self, SeedReading};
use super::settings;

/// Patterns of the filter that a summary names.
const PATTERNS_MAX: usize = 20;

/// `crawl URL...`, and `crawl --seeds FILE`.
pub(super) fn crawl(args: &CrawlArgs, json: bool, quiet: bool) -> Result<Exit> {
    let mut config = settings::effective(&args.overrides)?.config;
    if let Some(listen) = args.serve {
        config.api.listen = listen.unwrap_or(config.api.listen);
        service::check(&config.api)?;
    }
    args.warc.apply(&mut config.warc);
    let read = SeedReading { rules: &config.urls, quiet };
    let seeds = seeds::all(&args.urls, &args.seeds, read)?;
    if config.fetch.contact == HOME && config.fetch.user_agent.is_empty() && !quiet {
        eprintln!("note: no --contact set: sites can block you but cannot reach you");
    }
    let how = How { serve: args.serve.is_some(), quiet };
    let (report, exit) = run(&config, args.store.folder()?, &seeds, how)?;
    if let Some(path) = &args.report {
        let text = serde_json::to_string_pretty(&report)?;
        let cannot = || format!("cannot write the report to {}", path.display());
        outputs::write_whole(path, |mut file| {
            file.write_all((text + "\n").as_bytes()).with_context(cannot)?;
            anyhow::Ok((file, ()))
        })?;
    }
    if json {
        screen::json(&report)?;
    } else {
        show(&report, args.store.folder()?)?;
    }
    Ok(exit)
}

/// What is shown of a crawl that is running.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct How {
    /// The dashboard and the service answer meanwhile.
    pub serve: bool,
    /// No progress is shown.
    pub quiet: bool,
}

/// Runs a crawl with a progress line, and stops it at Ctrl-C.
pub(super) fn run(
    config: &Config,
    folder: &Path,
    seeds: &[PageUrl],
    how: How,
) -> Result<(Report, Exit)> {
    let store = Arc::new(open(config, folder)?);
    let mut context = Context::default();
    let shown = how.serve.then(|| show_beside(config, folder, &store, &mut context, how.quiet));
    let shown = shown.transpose()?;
    let backups = Backups::start(&store, &config.backup)?;
    if let (Some(shown), Some(backups)) = (&shown, &backups) {
        shown.service.attach_backups(backups.handle());
    }
    let progress = Progress::start(&context, how.quiet)?;
    let report = crawl::run(&store, &config.settings(), seeds, &context);
    progress.end();
    drop(backups);
    if let Some(Beside { service, begun, mut answering, stop }) = shown {
        drop((service, begun, stop));
        answering.wait();
        answering.close(store);
    }
    let report = report?;
    let exit = if context.stop.asked() > 0 {
        Exit::Interrupted
    } else if report.failed_seeds.is_empty() {
        Exit::Done
    } else {
        Exit::SeedsFailed
    };
    Ok((report, exit))
}

/// The service that answers while a crawl is running.
struct Beside {
    service: Arc<Service>,
    begun: Option<Begun>,
    answering: Answering,
    stop: oneshot::Sender<()>,
}

/// Opens the service of the store of a crawl that is about to begin. The crawl is noted before
/// anybody is answered, so that no request can start another one.
fn show_beside(
    config: &Config,
    folder: &Path,
    store: &Arc<Store>,
    context: &mut Context,
    quiet: bool,
) -> Result<Beside> {
    crawl::fix_rules(store, &config.urls)?;
    let listener = Listener::open(config, store)?;
    context.index = Some(listener.service.index());
    let begun = listener.service.crawls().begin(None, folder, context);
    if !quiet {
        eprintln!("the crawl can be looked at on http://{}", listener.address);
    }
    let service = listener.service.clone();
    let (answering, stop) = listener.answer();
    Ok(Beside { service, begun, answering, stop })
}

/// Opens the store of a crawl, or makes it.
pub(super) fn open(config: &Config, folder: &Path) -> Result<Store> {
    config.settings().check()?;
    let features = Fingerprinter::for_articles(config.dedup.features.clone())?.name();
    let store = Store::open_or_create(folder, config.cache_bytes())?;
    store.fix_setting("features", &features)?;
    Ok(store)
}

/// Prints the summary of a run.
pub(super) fn show(report: &Report, folder: &Path) -> Result<()> {
    println!(
        "{} pages in {:.1} s ({:.1} pages/s)",
        number(report.pages),
        report.seconds,
        report.pages_per_second
    );
    let mut facts = vec![("new documents", number(report.new))];
    facts.push(("duplicates", number(report.duplicates_total())));
    for key in Report::keys() {
        if let Some(count) = report.duplicates.get(key) {
            facts.push((key, number(*count)));
        }
    }
    facts.push(("canonical replaced", number(report.takeovers)));
    facts.push(("moved at a second look", number(report.moved)));
    facts.push(("documents merged", number(report.merged)));
    let removed = report.boilerplate_removed;
    if removed.blocks > 0 {
        let (blocks, pages) = (number(removed.blocks), number(removed.pages));
        facts.push(("boilerplate removed", format!("{blocks} blocks on {pages} pages")));
    }
    facts.push(("redirects", number(report.redirects)));
    if report.retries > 0 {
        facts.push(("pending retries", number(report.retries)));
    }
    if report.links_beyond_limit > 0 {
        facts.push(("links beyond the limit of a page", number(report.links_beyond_limit)));
    }
    if report.links_unstored > 0 {
        facts.push(("links beyond the room of a host", number(report.links_unstored)));
    }
    for (what, count) in &report.pages_cut {
        facts.push((cut_by(what), number(*count)));
    }
    if report.unsent > 0 {
        facts.push(("deferred: too few file descriptors", number(report.unsent)));
    }
    facts.extend(revisits(report));
    if let Some(peak) = screen::peak_memory() {
        facts.push(("peak memory", screen::bytes(peak)));
    }
    screen::facts(facts)?;
    show_no_pages(report);
    if !report.refused.is_empty() {
        println!("URLs not in the corpus, by reason:");
        let refused = report.refused.iter();
        screen::facts(refused.map(|(reason, count)| (reason.as_str(), count.to_string())))?;
    }
    show_kept_out(report)?;
    println!("the store {} has", folder.display());
    let waiting = match &report.next_due {
        Some(due) if report.queued > 0 => format!("{} (next at {due})", number(report.queued)),
        _ => number(report.queued),
    };
    screen::facts([
        ("documents", number(report.documents)),
        ("copies", number(report.copies)),
        ("queued URLs", waiting),
    ])?;
    show_hosts(report);
    for seed in &report.failed_seeds {
        println!("seed not crawled: {} ({}: {})", seed.url, seed.reason, seed.why);
    }
    Ok(())
}

/// The patterns that kept most URLs out.
fn show_kept_out(report: &Report) -> Result<()> {
    if report.kept_out.is_empty() {
        return Ok(());
    }
    println!("kept out by the filter:");
    let mut patterns: Vec<_> = report.kept_out.iter().collect();
    patterns.sort_by_key(|(_, count)| Reverse(**count));
    let rest = patterns.split_off(patterns.len().min(PATTERNS_MAX));
    let rest: u64 = rest.into_iter().map(|(_, count)| count).sum();
    let told = patterns.into_iter().map(|(name, count)| (name.as_str(), number(*count)));
    screen::facts(told.chain((rest > 0).then(|| ("by further patterns", number(rest)))))
}

/// Why no page was read, if none was.
fn show_no_pages(report: &Report) {
    if report.no_pages.is_empty() {
        return;
    }
    println!("no page was read:");
    for why in &report.no_pages {
        let line = screen::shown(&why.line()).into_owned();
        match why.addresses {
            0 | 1 => println!("  {line}"),
            many => println!("  {line} ({} URLs)", number(many)),
        }
    }
}

/// Pages of which only the start was read, by the word of the report.
fn cut_by(what: &str) -> &'static str {
    match what {
        "input" => "pages cut: more bytes than are read",
        "tree" => "pages cut: too many elements",
        _ => "pages cut: bodies too long or broken off",
    }
}

/// What further visits have shown.
fn revisits(report: &Report) -> Vec<(&'static str, String)> {
    let found = report.revisits;
    if found.due == 0 {
        return Vec::new();
    }
    let share = found.unmodified_share() * 100.0;
    let facts = [
        ("due for another visit", found.due, String::new()),
        ("not modified (304)", found.unmodified, format!(" ({share:.0} % of these visits)")),
        ("unchanged", found.unchanged, String::new()),
        ("changed", found.changed, String::new()),
        ("missing, perhaps by an error", found.missing, String::new()),
        ("gone", found.gone, String::new()),
        ("without an answer that tells", found.failed, String::new()),
        ("documents that no page carries any more", found.documents_gone, String::new()),
    ];
    let told = facts.into_iter().filter(|(_, count, _)| *count > 0);
    told.map(|(name, count, more)| (name, number(count) + &more)).collect()
}

fn show_hosts(report: &Report) {
    if report.hosts.is_empty() {
        return;
    }
    println!("hosts with trouble or a queue:");
    let width = report.hosts.iter().map(|host| host.host.len()).max().unwrap_or(0);
    println!("  {:<width$}  {:>9}  {:>9}  {:>9}  trouble", "host", "answered", "failed", "waiting");
    for host in &report.hosts {
        println!(
            "  {:<width$}  {:>9}  {:>9}  {:>9}  {}",
            host.host,
            number(host.answered),
            number(host.failed),
            number(host.queued),
            host.why
        );
    }
}
