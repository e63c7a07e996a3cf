//! What workers ask of their cluster besides documents: leases of shards, streams of links, turns at
//! IP addresses.

use std::time::{Duration, Instant};

use uniqcrawl::cluster::{
    Engine, LinksTo, ReadFrom, SHARDS_MAX, ShardLease, ShardState, Taken, TurnAnswer, TurnLimits,
    TurnOf,
};

use crate::cluster::Nodes;

const LONG: Duration = Duration::from_mins(1);
/// A busy machine asks a few times within it.
const SHORT: Duration = Duration::from_secs(1);

fn take(engine: &mut Engine, worker: &str, time: Duration) -> Option<(ShardLease, bool)> {
    match engine.take_shard(3, worker, time).unwrap() {
        Taken::Got { lease, was_held } => Some((lease, was_held)),
        Taken::HeldBy(holder) => {
            assert_ne!(holder, worker);
            None
        }
    }
}

#[test]
fn one_worker_has_a_shard_and_its_number_only_grows() {
    let mut engine = Nodes::shared().engine("lease");
    let (first, was_held) = take(&mut engine, "a", SHORT).unwrap();
    assert!(!was_held, "nobody had it before");
    assert_eq!(take(&mut engine, "b", LONG), None);
    assert_eq!(engine.renew_shards(&[first], "a", SHORT).unwrap(), [true]);
    assert_eq!(engine.renew_shards(&[first], "b", SHORT).unwrap(), [false]);
    std::thread::sleep(SHORT * 2);
    // It has ended, though nobody else has it yet.
    assert_eq!(engine.renew_shards(&[first], "a", LONG).unwrap(), [false]);
    let (second, was_held) = take(&mut engine, "b", LONG).unwrap();
    assert!(was_held && second.fence > first.fence, "{first:?} {second:?}");
    assert_eq!(engine.renew_shards(&[first, second], "a", LONG).unwrap(), [false, false]);
    assert!(!engine.release_shard(first, "a").unwrap());
    assert!(!engine.tell_quiet(first, "a", true).unwrap());
    assert_eq!(take(&mut engine, "a", LONG), None);
    assert!(engine.release_shard(second, "b").unwrap());
    let (third, _) = take(&mut engine, "a", LONG).unwrap();
    assert!(third.fence > second.fence);
    // A number that is ahead of the clock is not taken back, and a loss does not bring an old one.
    let name = format!("{}lease", engine.base(3));
    let ahead = third.fence + 10_000_000;
    let mut set = redis::cmd("HSET");
    engine.ask_one(set.arg(&name).arg("fence").arg(ahead).arg("until").arg(0).clone()).unwrap();
    let (fourth, _) = take(&mut engine, "b", LONG).unwrap();
    assert_eq!(fourth.fence, ahead + 1);
    // Numbers are those of the clock, in ms, unless several are given in one.
    std::thread::sleep(SHORT);
    engine.ask_one(redis::cmd("DEL").arg(&name).clone()).unwrap();
    let (fifth, was_held) = take(&mut engine, "c", LONG).unwrap();
    assert!(!was_held && fifth.fence >= third.fence);
    assert_eq!(engine.renew_shards(&[third], "a", LONG).unwrap(), [false]);
}

#[test]
fn links_leave_their_stream_by_the_hand_of_the_holder_alone() {
    let mut engine = Nodes::shared().engine("links");
    let links = |texts: &[&str]| {
        let links = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
        vec![LinksTo { shard: 3, links }, LinksTo { shard: 4, links: vec![b"other".to_vec()] }]
    };
    assert_eq!(engine.send_links(&links(&["one", "two"]), 3).unwrap(), [true, true]);
    assert_eq!(engine.send_links(&links(&["three"]), 3).unwrap(), [true, true]);
    assert_eq!(engine.send_links(&links(&["four"]), 3).unwrap(), [false, true], "it is full");
    let read = |engine: &mut Engine, last: &str| {
        let from = ReadFrom { shard: 3, last: last.to_owned() };
        engine.read_links(&[from], 2).unwrap().remove(0)
    };
    let first = read(&mut engine, "0");
    assert_eq!(first.links, [b"one".to_vec(), b"two".to_vec()]);
    let last = first.last.unwrap();
    assert_eq!(read(&mut engine, &last).links, [b"three".to_vec()]);
    let (ended, _) = take(&mut engine, "a", SHORT).unwrap();
    std::thread::sleep(SHORT * 2);
    let (lease, _) = take(&mut engine, "b", LONG).unwrap();
    assert!(!engine.trim_links(ended, "a", &last).unwrap());
    assert!(!engine.trim_links(ShardLease { fence: ended.fence, ..lease }, "b", &last).unwrap());
    assert_eq!(read(&mut engine, "0").links.len(), 2, "nothing is gone");
    assert!(engine.trim_links(lease, "b", &last).unwrap());
    assert!(engine.trim_links(lease, "b", &last).unwrap(), "sent again");
    assert_eq!(read(&mut engine, "0").links, [b"three".to_vec()]);
    assert!(engine.tell_quiet(lease, "b", true).unwrap());
    let state = engine.shard_states(4).unwrap().remove(3);
    let holder = "b".to_owned();
    let version = state.version;
    assert_eq!(state, ShardState { holder, quiet: true, version, links: 1 });
    assert!(engine.tell_quiet(lease, "b", false).unwrap());
    let later = engine.shard_states(4).unwrap().remove(3);
    assert!(!later.quiet && later.version > version);
}

fn take_turn(engine: &mut Engine, turn: TurnOf, limits: TurnLimits) -> TurnAnswer {
    engine.take_turns(&[turn], limits).unwrap().remove(0)
}

/// What must not be over before the next call, on whatever machine, takes a minute.
#[test]
fn requests_to_one_address_take_turns_and_only_the_owner_gives_one_back() {
    let mut engine = Nodes::shared().engine("turns");
    let limits = TurnLimits { span: LONG, gap: Duration::from_millis(30), most: 1 };
    let slow = TurnLimits { gap: LONG, ..limits };
    let at = |address, token| TurnOf { address, token, shard: 0 };
    let waits = |answer| matches!(answer, TurnAnswer::After(wait) if wait >= limits.gap);
    // Sent again, when another one may have had a turn since: it has its turn once more.
    assert_eq!(take_turn(&mut engine, at(5, 1), slow), TurnAnswer::Got);
    let again = take_turn(&mut engine, at(5, 1), slow);
    assert!(matches!(again, TurnAnswer::After(wait) if wait <= slow.gap), "{again:?}");
    let turn = |token| at(0xABCD_EF01, token);
    assert_eq!(take_turn(&mut engine, turn(1), limits), TurnAnswer::Got);
    std::thread::sleep(limits.gap + Duration::from_millis(2));
    assert_eq!(take_turn(&mut engine, turn(1), limits), TurnAnswer::Got);
    assert!(waits(take_turn(&mut engine, turn(2), limits)));
    engine.end_turns(&[turn(2)], limits).unwrap();
    assert!(waits(take_turn(&mut engine, turn(2), limits)), "who does not have it cannot end it");
    engine.end_turns(&[turn(1), turn(1)], limits).unwrap();
    std::thread::sleep(limits.gap + Duration::from_millis(2));
    assert_eq!(take_turn(&mut engine, turn(2), limits), TurnAnswer::Got);
    // The gap counts from the end of a turn.
    engine.end_turns(&[turn(2)], slow).unwrap();
    let wait = take_turn(&mut engine, turn(3), limits);
    assert!(matches!(wait, TurnAnswer::After(wait) if wait > LONG / 2 && wait <= LONG), "{wait:?}");
    // Its owner is never heard of again.
    let lost = TurnLimits { span: SHORT, ..limits };
    assert_eq!(take_turn(&mut engine, at(6, 1), lost), TurnAnswer::Got);
    std::thread::sleep(lost.span + Duration::from_millis(2));
    assert_eq!(take_turn(&mut engine, at(6, 2), lost), TurnAnswer::Got);
    let many = TurnLimits { gap: Duration::ZERO, most: 2, ..limits };
    let other = engine.take_turns(&[at(7, 1), at(7, 2), at(7, 3)], many).unwrap();
    assert_eq!(other[..2], [TurnAnswer::Got, TurnAnswer::Got]);
    assert!(matches!(other[2], TurnAnswer::After(_)), "{other:?}");
}

#[test]
fn a_turn_lasts_as_long_as_it_is_kept_and_not_much_longer() {
    let mut engine = Nodes::shared().engine("kept-turns");
    let limits = TurnLimits { span: SHORT * 3, gap: Duration::from_millis(1), most: 1 };
    let turn = |token| TurnOf { address: 1, token, shard: token as u32 };
    let take = |engine: &mut Engine, token| {
        engine.take_turns(&[turn(token)], limits).unwrap().remove(0) == TurnAnswer::Got
    };
    assert!(take(&mut engine, 1));
    // Who waits has no turn that could be kept.
    assert!(!take(&mut engine, 2));
    let long = TurnLimits { span: LONG, ..limits };
    engine.keep_turns(&[turn(1), turn(2)], long).unwrap();
    std::thread::sleep(limits.span + Duration::from_millis(2));
    assert!(!take(&mut engine, 2), "its worker is alive");
    engine.keep_turns(&[turn(1)], limits).unwrap();
    std::thread::sleep(limits.span + Duration::from_millis(2));
    assert!(take(&mut engine, 2), "its worker was not heard of any more");
    // One that has ended is not brought back.
    engine.end_turns(&[turn(2)], limits).unwrap();
    engine.keep_turns(&[turn(2)], long).unwrap();
    std::thread::sleep(limits.gap * 5);
    assert!(take(&mut engine, 3));
}

/// Shards that want turns of one address all the time, some of which ask later than they may.
#[test]
fn every_shard_has_its_share_of_the_turns_of_an_address() {
    const SHARDS: usize = 8;
    const TURNS: u64 = 96;
    let mut engine = Nodes::shared().engine("fair-turns");
    let limits = TurnLimits { span: LONG, gap: Duration::from_millis(100), most: 1 };
    let begun = Instant::now();
    let lazy = |shard: usize| Duration::from_millis(shard as u64 % 4 * 20);
    // When each asks next, and whether it has the turn until then.
    let mut next = [(Duration::ZERO, false); SHARDS];
    let (mut got, mut asked) = ([0_u64; SHARDS], 0);
    while got.iter().sum::<u64>() < TURNS {
        let shard = (0..SHARDS).min_by_key(|shard| next[*shard].0).unwrap();
        let (at, has_turn) = next[shard];
        std::thread::sleep(at.saturating_sub(begun.elapsed()));
        let turn = TurnOf { address: 2, token: shard as u64, shard: shard as u32 };
        if has_turn {
            engine.end_turns(&[turn], limits).unwrap();
            next[shard] = (begun.elapsed(), false);
            continue;
        }
        asked += 1;
        let now = |wait| begun.elapsed() + wait;
        next[shard] = match engine.take_turns(&[turn], limits).unwrap().remove(0) {
            TurnAnswer::Got => {
                got[shard] += 1;
                (now(Duration::from_millis(20)), true)
            }
            TurnAnswer::After(wait) => (now(wait + lazy(shard)), false),
        };
    }
    let (least, most) = (got.iter().min().unwrap(), got.iter().max().unwrap());
    assert!(*most * 2 <= *least * 3, "{got:?}");
    // Who is told when to come asks no more often than one who tries again and again.
    assert!(asked <= TURNS * 7, "{asked} times for {TURNS} turns");
}

#[test]
fn shards_that_share_a_partition_have_leases_and_links_of_their_own() {
    let mut engine = Nodes::shared().engine("many-shards");
    let numbers = [3, 3 + 1_024, SHARDS_MAX - 1];
    let mut fences = Vec::new();
    for shard in numbers {
        let Taken::Got { lease, was_held } =
            engine.take_shard(shard, &format!("worker-{shard}"), LONG).unwrap()
        else {
            panic!("{shard} is held")
        };
        assert!(!was_held, "{shard}");
        fences.push(lease);
        let links = vec![shard.to_string().into_bytes()];
        assert_eq!(engine.send_links(&[LinksTo { shard, links }], 1).unwrap(), [true]);
    }
    let from = numbers.map(|shard| ReadFrom { shard, last: "0".to_owned() });
    let found = engine.read_links(&from, 10).unwrap();
    for ((shard, found), lease) in numbers.into_iter().zip(found).zip(fences) {
        assert_eq!(found.links, [shard.to_string().into_bytes()]);
        let worker = format!("worker-{shard}");
        assert!(engine.trim_links(lease, &worker, &found.last.unwrap()).unwrap());
        assert!(engine.tell_quiet(lease, &worker, true).unwrap());
    }
    let states = engine.shard_states(SHARDS_MAX).unwrap();
    let held: Vec<usize> =
        states.iter().enumerate().filter(|(_, state)| state.quiet).map(|(at, _)| at).collect();
    assert_eq!(held, numbers.map(|shard| shard as usize));
    assert_eq!(engine.base_of(3), engine.base(3), "as it was with fewer shards");
}

#[test]
fn who_says_late_that_nothing_is_left_is_not_believed() {
    let mut engine = Nodes::shared().engine("done");
    engine.begin_term().unwrap();
    let term = engine.term().unwrap();
    assert!(!engine.is_done(&term).unwrap());
    // Meanwhile another worker comes, which has seeds.
    engine.begin_term().unwrap();
    engine.note_done(&term, LONG).unwrap();
    let next = engine.term().unwrap();
    assert!(next != term && !engine.is_done(&next).unwrap());
    engine.note_done(&next, LONG).unwrap();
    assert!(engine.is_done(&next).unwrap());
}

#[test]
fn workers_that_are_alive_know_each_other() {
    let mut engine = Nodes::shared().engine("members");
    let mut beat = |worker: &str, time| {
        let mut all = engine.beat(worker, time).unwrap();
        all.sort_unstable();
        all
    };
    assert_eq!(beat("a", LONG), ["a"]);
    assert_eq!(beat("b", SHORT), ["a", "b"]);
    std::thread::sleep(SHORT * 2);
    assert_eq!(beat("a", LONG), ["a"], "one that says nothing any more is gone");
    assert_eq!(beat("c", LONG), ["a", "c"]);
    assert_eq!(engine.leave("a").unwrap(), ["c"]);
}
