//! The memory budget, and the shares of it that settings have which were not set by themselves.

use super::Config;
use crate::base::system;
use crate::base::units::Size;

/// The budget if none is set, as a part of the memory of this machine or container.
const OF_MACHINE: u64 = 8;

/// The least and the largest budget if none is set; also the one where the system does not tell
/// how much memory it has.
const USUAL: (u64, u64) = (256 << 20, 1 << 30);

/// The least budget that can be set: about what an idle crawler takes.
const LEAST: u64 = 64 << 20;

/// A setting that has a share of the budget: its key, where it stands, and 32nds of the budget.
type Share = (&'static str, fn(&mut Config) -> &mut Size, u64);

/// The index has three times what the page cache has, bodies that are unpacked a quarter of what
/// bodies have.
const SHARES: &[Share] = &[
    ("store.cache_size", |config| &mut config.store.cache_size, 4),
    ("crawl.pages_size_max", |config| &mut config.crawl.limits.pages_size_max, 4),
    ("fetch.bodies_size_max", |config| &mut config.fetch.bodies_size_max, 4),
    ("fetch.cookies_size_max", |config| &mut config.fetch.cookies_size_max, 1),
    ("frontier.robots_in_memory", |config| &mut config.frontier.robots_in_memory, 1),
    #[cfg(feature = "search")]
    ("search.memory", |config| &mut config.search.memory, 2),
    #[cfg(feature = "service")]
    ("api.bodies_size_max", |config| &mut config.api.bodies_size_max, 2),
    #[cfg(feature = "service")]
    ("api.heads_size_max", |config| &mut config.api.heads_size_max, 1),
];

/// Settings of which a process that serves nobody takes nothing, by the starts of their keys.
const OF_SERVICE: [&str; 2] = ["search.", "api."];

/// Returns the memory that a process has over which serves nobody: of what service has by itself,
/// no more than its shares of the budget.
pub(super) fn unserved(config: &Config) -> Size {
    let (budget, mut config) = (budget(config.memory, system::memory()), config.clone());
    let is_of_service = |key: &str| OF_SERVICE.iter().any(|start| key.starts_with(start));
    let some = SHARES.iter().filter(|(key, _, _)| is_of_service(key));
    let bytes = some.map(|(_, setting, parts)| {
        (setting(&mut config).bytes() as u64).min(share_of(budget, *parts))
    });
    Size::from_bytes(bytes.sum())
}

/// Returns so many 32nds of a budget in bytes: whole pages, so that it is a number to be read.
fn share_of(budget: u64, parts: u64) -> u64 {
    (budget / 32 * parts) >> 16 << 16
}

/// Says what is wrong with a budget that cannot be kept.
pub(super) fn check(set: Size) -> Result<(), String> {
    if (1..LEAST).contains(&(set.bytes() as u64)) {
        let (least, most) = (Size::from_bytes(LEAST), Size::from_bytes(USUAL.1));
        return Err(format!(
            "must be {least} or more, not {set}; 0 is an eighth of this machine's, {most} at most"
        ));
    }
    Ok(())
}

/// Reads a budget from the command line.
pub(crate) fn parse(text: &str) -> Result<Size, String> {
    let size = text.parse::<Size>().map_err(|error| error.to_string())?;
    check(size).map(|()| size)
}

/// The same for a command that works through its input and ends.
const OF_MACHINE_FOR_FILES: u64 = 4;

/// Returns the budget of a command that works through its input and ends, in bytes.
pub(super) fn budget_for_files(set: Size, machine: Option<u64>) -> u64 {
    match set.bytes() as u64 {
        0 => machine.map_or(USUAL.1, |bytes| (bytes / OF_MACHINE_FOR_FILES).max(USUAL.0)),
        set => set,
    }
}

/// Returns the budget in bytes.
pub(super) fn budget(set: Size, machine: Option<u64>) -> u64 {
    match set.bytes() as u64 {
        0 => machine.map_or(USUAL.1, |bytes| (bytes / OF_MACHINE).clamp(USUAL.0, USUAL.1)),
        set => set,
    }
}

/// Gives each setting its share, but for those that were set by themselves. Returns the keys of
/// those that have one.
pub(super) fn share(config: &mut Config, is_set: impl Fn(&str) -> bool) -> Vec<&'static str> {
    let budget = budget(config.memory, system::memory());
    let unset = SHARES.iter().filter(|(key, _, _)| !is_set(key));
    let give = |(key, setting, parts): &Share| {
        *setting(config) = Size::from_bytes(share_of(budget, *parts));
        *key
    };
    unset.map(give).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_setting_it_is_a_part_of_the_machine_within_bounds() {
        let gib = 1_u64 << 30;
        let unset = Size::from_bytes(0);
        let budgets = [None, Some(gib / 2), Some(4 * gib), Some(64 * gib)];
        let budgets = budgets.map(|machine| budget(unset, machine) >> 20);
        assert_eq!(budgets, [1024, 256, 512, 1024]);
        assert_eq!(budget(Size::from_mib(300), Some(64 * gib)), 300 << 20);
        let budgets = [None, Some(gib / 2), Some(4 * gib), Some(64 * gib)];
        let budgets = budgets.map(|machine| budget_for_files(unset, machine) >> 20);
        assert_eq!(budgets, [1024, 256, 1024, 16 * 1024]);
        assert_eq!(budget_for_files(Size::from_mib(300), Some(64 * gib)), 300 << 20);
    }

    #[test]
    fn shares_of_the_largest_usual_budget_are_the_documented_values() {
        let mut config = Config { memory: Size::from_mib(1024), ..Config::default() };
        let shared = share(&mut config, |_| false);
        assert_eq!(shared.len(), SHARES.len());
        assert_eq!(Config { memory: Size::default(), ..config }, Config::default());
    }

    #[test]
    fn all_shares_fit_into_the_budget() {
        let of = |key: &str| SHARES.iter().find(|(name, _, _)| *name == key).map_or(0, |one| one.2);
        let all: u64 = SHARES.iter().map(|(_, _, parts)| parts).sum();
        let hidden = of("store.cache_size") * 3 + of("fetch.bodies_size_max") / 4;
        assert!(all + hidden <= 32, "{all} + {hidden} of 32");
    }

    #[test]
    fn who_serves_nobody_has_the_shares_of_those_who_do() {
        let mut config = Config { memory: Size::from_mib(1024), ..Config::default() };
        share(&mut config, |_| false);
        let parts =
            SHARES.iter().filter(|(key, ..)| key.starts_with("search") || key.contains("api"));
        let parts: u64 = parts.map(|(_, _, parts)| parts).sum();
        assert_eq!(unserved(&config), Size::from_mib(32 * parts));
        #[cfg(feature = "service")]
        {
            // What is set by hand is an upper limit, not memory that is there.
            config.api.bodies_size_max = Size::from_mib(8 << 10);
            assert_eq!(unserved(&config), Size::from_mib(32 * parts));
        }
    }
}
