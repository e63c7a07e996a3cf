//! Keys that had other names, with their unit in them or a word of our own. They are read for one
//! version, with a note; then this file goes.

use std::collections::BTreeMap;

use toml::Value;

use crate::base::units::{Size, Time};

/// What the number of an old key counts.
enum Was {
    Millis,
    Bytes,
    Mib,
    Number,
    /// Its value was what it is now.
    Same,
}

use Was::{Bytes, Mib, Millis, Number, Same};

/// Old key, new key, what the old one counted.
const RENAMED: [(&str, &str, Was); 48] = [
    ("crawl.batch_ms_max", "crawl.batch_time_max", Millis),
    ("crawl.idle_wait_ms_max", "crawl.idle_wait_max", Millis),
    ("crawl.drain_ms_max", "crawl.drain_time_max", Millis),
    ("frontier.delay_ms", "frontier.delay", Millis),
    ("frontier.address_delay_ms", "frontier.address_delay", Millis),
    ("frontier.domain_delay_ms", "frontier.domain_delay", Millis),
    ("frontier.slow_lane_ms", "frontier.slow_lane", Millis),
    ("frontier.retry_delay_ms", "frontier.retry_delay", Millis),
    ("frontier.busy_delay_ms", "frontier.busy_delay", Millis),
    ("frontier.busy_forgiven_ms", "frontier.busy_forgiven", Millis),
    ("frontier.block_ms_max", "frontier.block_time_max", Millis),
    ("frontier.robots_ttl_ms", "frontier.robots_ttl", Millis),
    ("frontier.robots_ttl_ms_min", "frontier.robots_ttl_min", Millis),
    ("frontier.robots_retry_ms", "frontier.robots_retry", Millis),
    ("frontier.robots_unreachable_ms_max", "frontier.robots_unreachable_max", Millis),
    ("frontier.robots_in_memory_mib", "frontier.robots_in_memory", Mib),
    ("frontier.shape.url_bytes_max", "frontier.shape.url_length_max", Number),
    ("frontier.discover.bytes_max", "frontier.discover.size_max", Bytes),
    ("frontier.discover.again_ms", "frontier.discover.again_after", Millis),
    ("recrawl.interval_min_ms", "recrawl.interval_min", Millis),
    ("recrawl.interval_first_ms", "recrawl.interval_first", Millis),
    ("recrawl.interval_max_ms", "recrawl.interval_max", Millis),
    ("recrawl.seed_interval_max_ms", "recrawl.seed_interval_max", Millis),
    ("fetch.connect_timeout_ms", "fetch.connect_timeout", Millis),
    ("fetch.first_byte_timeout_ms", "fetch.first_byte_timeout", Millis),
    ("fetch.stall_timeout_ms", "fetch.stall_timeout", Millis),
    ("fetch.total_timeout_ms", "fetch.total_timeout", Millis),
    ("fetch.body_bytes_max", "fetch.body_size_max", Bytes),
    ("fetch.decoded_bytes_max", "fetch.decoded_size_max", Bytes),
    ("fetch.dns_ttl_ms", "fetch.dns_ttl", Millis),
    ("extract.input_bytes_max", "extract.input_size_max", Bytes),
    ("extract.text_bytes_max", "extract.text_size_max", Bytes),
    ("search.memory_mib", "search.memory", Mib),
    ("api.content_bytes_max", "api.content_size_max", Bytes),
    ("api.body_bytes_max", "api.body_size_max", Bytes),
    ("api.bodies_mib_max", "api.bodies_size_max", Mib),
    ("api.header_ms_max", "api.header_time_max", Millis),
    ("api.stall_ms_max", "api.stall_time_max", Millis),
    ("api.request_ms_max", "api.request_time_max", Millis),
    ("api.stop_ms_max", "api.stop_time_max", Millis),
    ("api.search_update_ms", "api.search_update", Millis),
    ("store.cache_mib", "store.cache_size", Mib),
    ("crawl.signers", "crawl.page_threads", Same),
    ("api.signers_max", "api.fingerprint_threads", Same),
    ("frontier.verdicts.known", "frontier.duplicate_feeds.known", Same),
    ("frontier.verdicts.explore_one_in", "frontier.duplicate_feeds.explore_one_in", Same),
    ("frontier.verdicts.proof_pairs", "frontier.duplicate_feeds.proof_pairs", Same),
    ("frontier.verdicts.lost_hosts_max", "frontier.duplicate_feeds.lost_hosts_max", Same),
];

/// Gives old keys their new names and values. Returns a note for each that has both.
///
/// # Errors
///
/// An old key that stands beside its new one, and what to do.
pub(super) fn rename(
    given: &mut BTreeMap<String, Value>,
) -> Result<BTreeMap<String, String>, (String, String)> {
    let mut notes = BTreeMap::new();
    for (old, new, was) in RENAMED {
        let Some(value) = given.remove(old) else { continue };
        if given.contains_key(new) {
            let why = format!("is the old name of `{new}`, which is there too: leave it out");
            return Err((old.to_owned(), why));
        }
        let value = now(value, &was);
        let name = new.rsplit('.').next().unwrap_or(new);
        notes.insert(old.to_owned(), format!("`{old}` is now `{new}`: write `{name} = {value}`"));
        given.insert(new.to_owned(), value);
    }
    Ok(notes)
}

/// Returns the old name of a key.
pub(super) fn old_name(key: &str) -> Option<&'static str> {
    RENAMED.iter().find(|(_, new, _)| *new == key).map(|(old, _, _)| *old)
}

/// Gives a number its unit. What is no number is left for the new key to judge.
fn now(value: Value, was: &Was) -> Value {
    let Some(number) = value.as_integer().and_then(|number| u64::try_from(number).ok()) else {
        return value;
    };
    match was {
        Was::Millis => Time::from_millis(number).to_string().into(),
        Was::Bytes => Size::from_bytes(number).to_string().into(),
        Was::Mib => Size::from_mib(number).to_string().into(),
        Was::Number | Was::Same => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_new_key_exists_and_no_old_one_does() {
        let known = super::super::flatten(&super::super::default_table());
        for (old, new, _) in &RENAMED {
            assert!(known.contains_key(*new), "{new}");
            assert!(!known.contains_key(*old), "{old}");
            assert_eq!(old_name(new), Some(*old));
        }
    }
}
