//! A day of jobs on a clock that is moved by hand: summer time, overlaps, six hours of downtime.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use uniqcrawl::base::clock::{Clock, Timestamp};
use uniqcrawl::crawl::jobs::{
    BegunRun, History, JobsFile, Outcome, Run, Scheduler, Start, Trigger,
};

const MINUTE: Duration = Duration::from_mins(1);

fn at(text: &str) -> Timestamp {
    Timestamp(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
}

fn jobs(text: &str) -> JobsFile {
    JobsFile::parse(text).unwrap_or_else(|faults| panic!("{faults:?}"))
}

/// A scheduler whose runs take as long as they are told to.
struct Day<'a> {
    jobs: &'a JobsFile,
    history: History,
    clock: Clock,
    minutes: BTreeMap<&'static str, u32>,
    /// When the clock is set, and to what, while the scheduler runs.
    steps: Vec<(Timestamp, Timestamp)>,
    /// Most jobs that were under way at a time.
    most: usize,
}

impl<'a> Day<'a> {
    fn new(jobs: &'a JobsFile, folder: &Path, start: &str) -> Self {
        let history = History::new(&folder.join("jobs.redb"), 1_000);
        let clock = Clock::hand(at(start));
        Self { jobs, history, clock, minutes: BTreeMap::new(), steps: Vec::new(), most: 0 }
    }

    fn open(&self) -> Scheduler {
        let at_once = self.jobs.settings.at_once;
        let open =
            || Scheduler::open(&self.jobs.jobs, at_once, self.history.clone(), self.clock.now());
        // Another test may be starting a process at this moment, which holds the lock of the
        // scheduler before until it runs a program of its own.
        for _ in 0..100 {
            match open() {
                Err(uniqcrawl::crawl::jobs::Error::Second(_)) => {
                    std::thread::sleep(std::time::Duration::from_millis(20));
                }
                opened => return opened.unwrap().0,
            }
        }
        open().unwrap().0
    }

    /// Runs until a moment; then the process dies.
    fn until(&mut self, end: &str) {
        let (end, mut scheduler) = (at(end), self.open());
        let mut under_way: Vec<(Timestamp, Start)> = Vec::new();
        loop {
            if let Some((_, to)) = self.steps.pop_if(|(when, _)| *when <= self.clock.now()) {
                self.clock = Clock::hand(to);
            }
            let now = self.clock.now();
            for (_, start) in under_way.extract_if(.., |(ends, _)| *ends <= now) {
                let run = Run { ended: Some(now), outcome: Outcome::Done, ..start.run.clone() };
                scheduler.ended(start, &run).unwrap();
            }
            let step = self.steps.last().map(|(when, _)| *when);
            if now >= end && step.is_none() {
                return;
            }
            scheduler.follow_clock(now);
            scheduler.look(now).unwrap();
            while let Some(start) = scheduler.start(now).unwrap() {
                let BegunRun::Run(start) = start else { panic!("{start:?}") };
                let name = self.jobs.jobs[start.job].name.as_str();
                let minutes = self.minutes.get(name).copied().unwrap_or(1);
                under_way.push((now.after(MINUTE * minutes), start));
            }
            self.most = self.most.max(scheduler.running());
            let next = under_way.iter().map(|(ends, _)| *ends).min();
            let next = next
                .into_iter()
                .chain(scheduler.next_due(now))
                .chain([step.unwrap_or(end)])
                .min()
                .unwrap();
            assert!(next > now, "what is due was dealt with");
            self.clock.advance(now.until(next));
        }
    }

    fn rows(&self, job: &str) -> Vec<Run> {
        let mut rows: Vec<Run> =
            self.history.shown(job, 1_000).unwrap().into_iter().map(|(_, run)| run).collect();
        rows.reverse();
        rows
    }

    fn count(&self, job: &str, outcome: Outcome, trigger: Trigger) -> usize {
        let same = |run: &&Run| run.outcome == outcome && run.trigger == trigger;
        self.rows(job).iter().filter(same).count()
    }

    /// The moments of the runs that ended well, as `hh:mm`.
    fn done(&self, job: &str) -> Vec<String> {
        let done = self.rows(job).into_iter().filter(|run| run.outcome == Outcome::Done);
        done.map(|run| run.planned.to_string()[11..16].to_owned()).collect()
    }
}

fn job(name: &str, when: &str, catch_up: &str) -> String {
    format!(
        "[[job]]\nname = \"{name}\"\nseeds = [\"https://example.org/\"]\nstore = \"{name}\"\n{when}\n\
         catch_up = \"{catch_up}\"\n"
    )
}

#[test]
fn a_day_with_summer_time_overlaps_and_six_hours_of_downtime() {
    let hourly = "cron = \"0 * * * *\"";
    let text = [
        "[scheduler]\nat_once = 8\n".to_owned(),
        job("skip", hourly, "skip"),
        job("once", hourly, "once"),
        job("all", hourly, "all"),
        job("berlin", "cron = \"30 2 * * *\"\ntime_zone = \"Europe/Berlin\"", "once"),
        job("new-york", "cron = \"30 2 * * *\"\ntime_zone = \"America/New_York\"", "once"),
        job("interval", "every = \"45m\"", "skip"),
        job("slow", "every = \"1h\"", "once"),
    ];
    let (jobs, folder) = (jobs(&text.concat()), tempfile::tempdir().unwrap());
    // In this night the clock of Berlin goes from 02:00 to 03:00, at 01:00 UTC.
    let mut day = Day::new(&jobs, folder.path(), "2026-03-28T20:10:00Z");
    day.minutes.insert("slow", 90);
    day.until("2026-03-29T08:15:00Z");
    // Six hours during which nothing runs.
    day.clock.advance(Duration::from_hours(6));
    day.until("2026-03-29T20:10:00Z");

    let before = ["21", "22", "23", "00", "01", "02", "03", "04", "05", "06", "07", "08"];
    let after = ["15", "16", "17", "18", "19", "20"];
    let hours = |parts: &[&[&str]]| -> Vec<String> {
        parts.concat().iter().map(|hour| format!("{hour}:00")).collect()
    };
    assert_eq!(day.done("skip"), hours(&[&before, &after]));
    assert_eq!(day.done("once"), hours(&[&before, &["14"], &after]));
    let missed = ["09", "10", "11", "12", "13", "14"];
    assert_eq!(day.done("all"), hours(&[&before, &missed, &after]));
    let lost = |job: &str| -> u64 {
        let rows = day.rows(job).into_iter();
        rows.filter(|run| run.outcome == Outcome::Missed).map(|run| run.moments).sum()
    };
    assert_eq!((lost("skip"), lost("once"), lost("all")), (6, 5, 0), "every moment has a row");
    assert_eq!(day.count("all", Outcome::Done, Trigger::CatchUp), 6);

    assert_eq!(day.done("berlin"), ["01:00"], "02:30 was left out by the clock: right after it");
    assert_eq!(day.done("new-york"), ["06:30"], "elsewhere it is an ordinary night");

    let every: Vec<u32> = (0..=16).map(|step| 20 * 60 + 10 + step * 45).collect();
    let shown = |minute: u32| format!("{:02}:{:02}", minute / 60 % 24, minute % 60);
    let interval = day.done("interval");
    assert_eq!(interval[..17], every.into_iter().map(shown).collect::<Vec<_>>()[..]);
    assert_eq!(interval[17], "14:10", "the grid of the interval goes on after the downtime");

    // It takes longer than its interval: every other moment is refused.
    let slow: Vec<(String, Outcome)> = day
        .rows("slow")
        .iter()
        .map(|run| (run.planned.to_string()[11..16].to_owned(), run.outcome))
        .collect();
    let pair = |time: &str, outcome| (time.to_owned(), outcome);
    assert_eq!(
        slow[..4],
        [
            pair("20:10", Outcome::Done),
            pair("21:10", Outcome::Refused),
            pair("22:10", Outcome::Done),
            pair("23:10", Outcome::Refused),
        ]
    );
    assert!(slow.contains(&pair("08:10", Outcome::Interrupted)), "{slow:?}");
    // What was cut off is made up for by the run that is due anyway.
    let resumed = slow.iter().position(|row| *row == pair("14:10", Outcome::Done)).unwrap();
    assert!(slow[resumed - 1] == pair("13:10", Outcome::Missed), "{slow:?}");
    assert!(day.most > 1);
    for job in &jobs.jobs {
        let mut planned: Vec<_> = day.rows(&job.name).iter().map(|run| run.planned).collect();
        planned.sort_unstable();
        let all = planned.len();
        planned.dedup();
        assert_eq!(planned.len(), all, "{}: no moment has two rows", job.name);
    }
}

#[test]
fn an_autumn_night_has_25_hours_and_one_half_past_two() {
    let zone = "time_zone = \"Europe/Berlin\"";
    let text = job("daily", &format!("cron = \"30 2 * * *\"\n{zone}"), "skip")
        + &job("hourly", &format!("cron = \"15 * * * *\"\n{zone}"), "skip");
    let (jobs, folder) = (jobs(&text), tempfile::tempdir().unwrap());
    let mut day = Day::new(&jobs, folder.path(), "2026-10-24T22:00:00Z");
    // From midnight to midnight in Berlin.
    day.until("2026-10-25T23:00:00Z");
    assert_eq!(day.done("daily"), ["00:30"]);
    assert_eq!(day.done("hourly").len(), 25);
    assert_eq!(day.most, 1, "one at a time, as is the default");
}

#[test]
fn a_run_that_is_cut_off_again_and_again_is_given_up_and_waits_for_its_next_moment() {
    let text =
        job("big", "cron = \"0 0 * * *\"", "once") + &job("no", "cron = \"0 0 * * *\"", "skip");
    let (jobs, folder) = (jobs(&text), tempfile::tempdir().unwrap());
    let mut day = Day::new(&jobs, folder.path(), "2026-05-01T23:59:00Z");
    day.minutes.insert("big", 600);
    day.minutes.insert("no", 600);
    for hour in 1..=6 {
        day.until(&format!("2026-05-02T0{hour}:00:00Z"));
    }
    let rows = day.rows("big");
    assert_eq!(rows.len(), 3, "{rows:?}");
    assert!(rows.iter().all(|run| run.outcome == Outcome::Interrupted && run.ended.is_none()));
    assert!(rows.iter().all(|run| run.planned == at("2026-05-02T00:00:00Z")));
    let triggers: Vec<Trigger> = rows.iter().map(|run| run.trigger).collect();
    assert_eq!(triggers, [Trigger::Schedule, Trigger::Resume, Trigger::Resume]);
    day.minutes.clear();
    day.until("2026-05-03T01:00:00Z");
    assert_eq!(day.done("big"), ["00:00"]);
    assert_eq!(day.rows("big").last().unwrap().trigger, Trigger::Schedule);
    // With one job at a time it waited behind the other for hours; then a new day began.
    assert!(day.rows("no").iter().all(|run| run.trigger != Trigger::Resume));
}

#[test]
fn jobs_of_one_store_wait_for_each_other_and_the_history_stays_small() {
    let text = "[scheduler]\nat_once = 4\n".to_owned()
        + &job("a", "every = \"10m\"", "skip")
        + &job("b", "every = \"10m\"", "skip").replace("store = \"b\"", "store = \"a\"");
    let (jobs, folder) = (jobs(&text), tempfile::tempdir().unwrap());
    let mut day = Day::new(&jobs, folder.path(), "2026-05-01T00:00:00Z");
    day.history = History::new(&folder.path().join("jobs.redb"), 5);
    day.minutes = BTreeMap::from([("a", 3), ("b", 3)]);
    day.until("2026-05-01T05:07:00Z");
    assert_eq!(day.most, 1);
    for name in ["a", "b"] {
        let rows = day.rows(name);
        assert_eq!(rows.len(), 5);
        assert!(rows.iter().all(|run| run.outcome == Outcome::Done), "{rows:?}");
        assert_eq!(rows[4].planned, at("2026-05-01T05:00:00Z"), "the newest are kept");
    }
    let late = day.rows("b")[4].started;
    assert_eq!(late, at("2026-05-01T05:03:00Z"), "b waits for a");
}

#[test]
fn a_year_of_downtime_of_a_job_of_every_minute_is_bounded() {
    let text = job("all", "cron = \"* * * * *\"", "all") + "catch_up_max = 3\n";
    let (jobs, folder) = (jobs(&text), tempfile::tempdir().unwrap());
    let mut day = Day::new(&jobs, folder.path(), "2025-01-01T00:00:30Z");
    day.until("2025-01-01T00:02:30Z");
    day.clock.advance(Duration::from_hours(24 * 365));
    day.until("2026-01-01T00:02:31Z");
    let rows = day.rows("all");
    let missed = rows.iter().find(|run| run.outcome == Outcome::Missed).unwrap();
    assert_eq!(missed.moments, 1_000 - 1 - 3, "of a long time only the newest are counted");
    // A clock that was a year ahead, and was put right, does not stop the job for a year.
    day.clock = Clock::hand(at("2025-01-01T00:10:30Z"));
    day.until("2025-01-01T00:12:30Z");
    assert!(day.rows("all").iter().any(|run| run.planned == at("2025-01-01T00:11:00Z")));
}

/// Runs until a moment, and sets the clock back there as often as told, while the scheduler runs.
fn set_back(text: &str, start: &str, steps: &[(&str, &str)], end: &str) -> Vec<String> {
    let (jobs, folder) = (jobs(text), tempfile::tempdir().unwrap());
    let mut day = Day::new(&jobs, folder.path(), start);
    day.steps = steps.iter().map(|(when, to)| (at(when), at(to))).collect();
    day.until(end);
    day.rows("a").iter().map(|run| run.planned.to_string()[5..16].to_owned()).collect()
}

/// A scheduler that saw a moment of next year waited for it, and nothing ran meanwhile.
#[test]
fn a_clock_that_is_set_back_lets_no_job_run_twice_or_never() {
    let daily = job("a", "cron = \"0 2 * * *\"", "skip");
    let hourly = job("a", "cron = \"0 * * * *\"", "skip");
    let minutes = job("a", "cron = \"*/20 * * * *\"", "skip");
    let interval = job("a", "every = \"6h\"", "skip");
    let (night, morning) = ("2026-05-01T01:30:00Z", "2026-05-01T05:10:00Z");
    // Back over the moment of the run.
    let hour = [("2026-05-01T02:10:00Z", "2026-05-01T01:10:00Z")];
    assert_eq!(
        set_back(&daily, night, &hour, "2026-05-02T02:30:00Z"),
        ["05-01T02:00", "05-02T02:00"]
    );
    assert_eq!(
        set_back(&hourly, night, &hour, "2026-05-01T03:30:00Z"),
        ["05-01T02:00", "05-01T03:00"]
    );
    // Back over several: it would stand still for an hour.
    let runs = set_back(&minutes, night, &hour, "2026-05-01T01:50:00Z");
    assert_eq!(runs, ["05-01T01:40", "05-01T02:00", "05-01T01:20", "05-01T01:40"]);
    // From another day or year.
    for wrong in ["2026-05-02T05:10:00Z", "2027-05-01T05:10:00Z"] {
        let from = at(wrong).before(Duration::from_hours(6)).to_string();
        let ahead = [(wrong, morning)];
        let runs = |text: &str| set_back(text, &from, &ahead, "2026-05-02T02:30:00Z").len();
        let all = [&daily, &hourly, &minutes, &interval].map(|text| runs(text));
        assert_eq!(all, [1 + 1, 6 + 21, 18 + 64, 1 + 3], "{wrong}");
    }
}

#[test]
fn only_one_scheduler_uses_a_history_and_others_may_read_it() {
    let (jobs, folder) = (jobs(&job("a", "every = \"1h\"", "once")), tempfile::tempdir().unwrap());
    let day = Day::new(&jobs, folder.path(), "2026-05-01T00:00:00Z");
    let mut first = day.open();
    let second = Scheduler::open(&jobs.jobs, 1, day.history.clone(), day.clock.now());
    assert!(second.unwrap_err().to_string().contains("another scheduler"));
    // A person runs the job by hand at the moment when it is due.
    let held = day.history.lock("a").unwrap().unwrap();
    first.look(day.clock.now()).unwrap();
    let Some(BegunRun::Refused(0, refused)) = first.start(day.clock.now()).unwrap() else {
        panic!("it began");
    };
    assert_eq!(refused.outcome, Outcome::Refused);
    assert_eq!(day.rows("a"), [refused]);
    drop(held);
    assert!(first.start(day.clock.now()).unwrap().is_none(), "it waits for its next moment");
}
