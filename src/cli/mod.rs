//! The command line: arguments, exit codes, and one file for each group of commands.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is the part that prints")]

/// Prints a line, as the macro of the standard library does; but that nobody reads on, such as
/// `head`, is no reason to panic.
macro_rules! println {
    () => { $crate::cli::line(format_args!("")) };
    ($($part:tt)*) => { $crate::cli::line(format_args!($($part)*)) };
}

/// The same for standard error: a warning that nobody reads does not end the work.
macro_rules! eprintln {
    ($($part:tt)*) => { $crate::cli::aside(format_args!($($part)*)) };
}

mod args;
mod batch;
mod compare;
mod corpora;
mod crash;
mod crawl;
mod damage;
mod dedup;
mod demo;
mod duplicate_feed;
mod exit;
mod export;
mod follow;
mod full_disk;
mod import;
mod inspect;
mod jobs;
mod listener;
mod pages;
mod place;
mod plan;
mod progress;
mod robots;
mod rules;
mod screen;
mod search;
mod seeds;
mod serve;
mod service_client;
mod settings;
mod shared;
mod signals;
mod simhash;
mod store;
mod upkeep;
mod warc;
mod worker;

use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::base::remote;
use args::{Args, Command, OLD_DUPLICATE_FEED};
use exit::Exit;

/// Asks the system for small pages of memory, if a command is to crawl. All of a large page counts
/// that is used here and there; the allocator asks for large ones, and bodies took twice the memory
/// that they need, or more with many threads. What only computes is a little faster with them.
fn use_small_pages(command: Option<&Command>) {
    use Command::{Demo, Jobs, Serve, Worker};
    let crawls = matches!(command, None | Some(Demo(_) | Serve(_) | Jobs { .. } | Worker(_)));
    // Where there is no such choice, there is nothing to lose.
    #[cfg(target_os = "linux")]
    let _ = crawls.then(|| rustix::thread::disable_transparent_huge_pages(true));
    #[cfg(not(target_os = "linux"))]
    let _ = crawls;
}

/// Parses the arguments, runs the command, and turns its end into an exit code.
#[must_use]
pub fn main() -> ExitCode {
    let matches = Args::command().try_get_matches();
    let parsed = matches.and_then(|m| Ok((Args::from_arg_matches(&m)?, place::is_named(&m))));
    let (mut args, store_is_named) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => {
            if error.use_stderr()
                && let Some(word) = seeds::misspelt_command()
            {
                eprintln!("error: {}", seeds::misspelt(&word));
                return Exit::Usage.into();
            }
            // Help and version are no errors to clap's own exit code.
            let code = u8::try_from(error.exit_code()).unwrap_or(2);
            let _ = error.print();
            return ExitCode::from(code);
        }
    };
    use_small_pages(args.command.as_ref());
    screen::start_log(args.verbose, args.quiet, args.log_json);
    let variables = std::env::vars_os();
    // Settings of object storage are in Unicode.
    let known = variables
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    remote::set_options(known);
    note_old_name(&args);
    if !store_is_named && let Err(error) = place::settle(&mut args) {
        eprintln!("error: {error:#}");
        return exit::of(&error).into();
    }
    let folder = damage::store_of(&args);
    let way_out = full_disk::WayOut::of(&args);
    match damage::told(folder, || run(args)) {
        Ok(exit) => exit.into(),
        Err(error) if exit::is_broken_pipe(&error) => Exit::Done.into(),
        Err(error) => {
            eprintln!("error: {}", way_out.told(&error));
            exit::of(&error).into()
        }
    }
}

/// Notes that a command was called by its name of the version before.
fn note_old_name(args: &Args) {
    let is_old = std::env::args().any(|word| word == OLD_DUPLICATE_FEED);
    if matches!(args.command, Some(Command::DuplicateFeed { .. })) && is_old {
        eprintln!("note: `crawl {OLD_DUPLICATE_FEED}` is now `crawl duplicate-feed`");
    }
}

/// Prints a line, of which a terminal obeys nothing. Work goes on if nobody reads it.
pub(crate) fn line(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stdout(), "{}", screen::lines(&text.to_string()));
}

/// Prints a line on standard error, in the form of the log. Work goes on if nobody reads it.
pub(crate) fn aside(text: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{}", screen::aside(&text.to_string()));
}

fn run(args: Args) -> anyhow::Result<Exit> {
    let (json, quiet) = (args.json, args.quiet);
    place::check(&args)?;
    match args.command {
        None => crawl::crawl(&args.crawl, json, args.quiet),
        Some(Command::Demo(demo)) => demo::demo(&demo, json, args.quiet),
        Some(Command::Compare(compare)) => compare::compare(&compare, json),
        Some(Command::Dedup(dedup)) => dedup::dedup(&dedup, json, args.quiet),
        Some(Command::Import(import)) => import::import(&import, json, args.quiet),
        Some(Command::Export(export)) => export::export(&export, json, args.quiet),
        Some(Command::Explain(explain)) => inspect::explain(&explain, json),
        Some(Command::Inspect(inspect)) => inspect::inspect(&inspect, json),
        Some(Command::Expire(expire)) => upkeep::expire(&expire, json),
        Some(Command::Idf(idf)) => upkeep::idf(&idf, json),
        Some(Command::Search(search)) => search::search(&search, json),
        Some(Command::Stats(stats)) => inspect::stats(&stats, json),
        Some(Command::Check(check)) => inspect::check(&check, json, args.quiet),
        Some(Command::Migrate(migrate)) => upkeep::migrate(&migrate, json),
        Some(Command::Store { command }) => store::run(command, json, args.quiet),
        Some(Command::Follow(follow)) => follow::follow(&follow),
        Some(Command::Config(config)) => settings::show(&config, json),
        Some(Command::Rules { command }) => rules::run(command, json),
        Some(Command::DuplicateFeed { command }) => duplicate_feed::run(command, json),
        Some(Command::Jobs { command }) => jobs::run(command, json, args.quiet),
        Some(Command::Robots { command }) => robots::run(command, json),
        Some(Command::Serve(serve)) => serve::serve(&serve, json, args.quiet),
        Some(Command::Simhash(simhash)) => simhash::simhash(&simhash, json),
        Some(Command::Plan(plan)) => plan::plan(&plan, json),
        Some(Command::Extract(extract)) if !extract.warc.is_empty() => {
            warc::extract(&extract, quiet)
        }
        Some(Command::Extract(extract)) => pages::extract(&extract, json),
        Some(Command::Rebuild(rebuild)) => warc::rebuild(&rebuild, json, quiet),
        Some(Command::Worker(args)) => worker::work(&args, json, quiet),
        Some(Command::Completions { shell }) => {
            // What writes the script panics if nobody reads it.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "crawl", &mut script);
            std::io::stdout().write_all(&script)?;
            Ok(Exit::Done)
        }
    }
}
