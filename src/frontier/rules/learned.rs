//! The rules of a store: what they say of a URL, and how they learn.

use std::collections::{BTreeMap, BTreeSet};

use crate::frontier::tables::{ADDRESSES, RULE_KEYS, RULES, SKIPPED};
use crate::store::{Batch, Error, Update as _, View as _};
use crate::urls::PageUrl;

use super::{Config, Status, UrlChange, UrlRule};

/// Partners of one URL that are looked at for proposals.
const PARTNERS_MAX: usize = 8;

/// URLs of a host that a new rule looks back at.
const KNOWN_MAX: usize = 20_000;

/// A URL that a rule leads to, and the rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// Number of the rule.
    pub rule: u64,
    /// The stored URL that is the same page.
    pub partner: String,
}

/// All rules of a store, in memory.
#[derive(Debug, Default)]
pub struct Rules {
    config: Config,
    all: BTreeMap<u64, UrlRule>,
    /// Numbers of the rules that say something of the URLs of a host.
    of_host: BTreeMap<String, Vec<u64>>,
    changed: BTreeSet<u64>,
}

impl Rules {
    /// Reads the rules of a store.
    pub fn open(batch: &Batch, config: Config) -> Result<Self, Error> {
        let mut rules = Self { config, ..Self::default() };
        for entry in batch.rows(RULES)? {
            let entry = entry?;
            rules.index(entry.key()?, entry.row()?);
        }
        Ok(rules)
    }

    fn index(&mut self, number: u64, rule: UrlRule) {
        self.of_host.entry(rule.host.clone()).or_default().push(number);
        if let UrlChange::Host(_, to) = &rule.change {
            self.of_host.entry(to.clone()).or_default().push(number);
        }
        self.all.insert(number, rule);
    }

    /// Returns the stored page that a URL is by an active rule. Some URLs are left for
    /// a visit, which tells whether the rule still holds.
    pub fn skip(&self, batch: &Batch, url: &PageUrl) -> Result<Option<Pair>, Error> {
        if !self.config.learn_rules {
            return Ok(None);
        }
        let explore = self.config.explore_one_in;
        for number in self.numbers(url) {
            let rule = &self.all[&number];
            if rule.status != Status::Active {
                continue;
            }
            if let Some((partner, _)) = self.partner(batch, number, url)? {
                // By turn and not by chance: a rule that has ceased to hold is found out in time.
                let is_turn = explore > 0 && rule.unchecked + 1 >= explore;
                return Ok((!is_turn).then_some(Pair { rule: number, partner }));
            }
        }
        Ok(None)
    }

    fn numbers(&self, url: &PageUrl) -> Vec<u64> {
        self.of_host.get(url.host_key().as_str()).cloned().unwrap_or_default()
    }

    /// The stored URL that is the same page as another one by a rule, and its document.
    fn partner(
        &self,
        batch: &Batch,
        number: u64,
        url: &PageUrl,
    ) -> Result<Option<(String, u64)>, Error> {
        let changed = self.all[&number].change.apply(url);
        if let Some(changed) = &changed
            && let Some(document) = document_of(batch, changed.as_str())?
        {
            return Ok(Some((changed.as_str().to_owned(), document)));
        }
        let first = batch.get(RULE_KEYS, (number, changed.as_ref().unwrap_or(url).hash64()))?;
        let Some(first) = first.filter(|first| first != url.as_str()) else { return Ok(None) };
        Ok(document_of(batch, &first)?.map(|document| (first, document)))
    }

    /// Learns from a URL that is stored now. `copies` are URLs of the same document.
    /// Returns the rules that ceased to be active.
    pub fn learn(
        &mut self,
        batch: &mut Batch,
        url: &PageUrl,
        document: u64,
        copies: &[String],
    ) -> Result<Vec<u64>, Error> {
        if !self.config.learn_rules {
            return Ok(Vec::new());
        }
        for copy in copies.iter().take(PARTNERS_MAX) {
            let Some(copy) = PageUrl::parse_stored(copy) else { continue };
            for change in UrlChange::between(url, &copy) {
                self.propose(batch, url, change)?;
            }
            for change in UrlChange::between(&copy, url) {
                self.propose(batch, &copy, change)?;
            }
        }
        let mut ceased = Vec::new();
        for number in self.numbers(url) {
            let partner = self.partner(batch, number, url)?;
            let rule = self.all.get_mut(&number).expect("a host names rules that are there");
            if let Some((_, other)) = partner {
                if rule.note(other == document, &self.config) {
                    ceased.push(number);
                }
                self.changed.insert(number);
            }
            if let Some(changed) = rule.change.apply(url) {
                note_key(batch, number, &changed, url)?;
            }
        }
        Ok(ceased)
    }

    /// Adds a rule, unless it is there or would undo one that is there.
    fn propose(
        &mut self,
        batch: &mut Batch,
        url: &PageUrl,
        change: UrlChange,
    ) -> Result<(), Error> {
        let numbers = self.numbers(url);
        let undone = |known: &UrlChange| match (known, &change) {
            (UrlChange::SwapFolder(a, b), UrlChange::SwapFolder(c, d))
            | (UrlChange::Host(a, b), UrlChange::Host(c, d)) => a == d && b == c,
            _ => false,
        };
        let known = |number: &u64| {
            let known = &self.all[number].change;
            *known == change || undone(known)
        };
        if numbers.len() >= self.config.rules_per_host_max || numbers.iter().any(known) {
            return Ok(());
        }
        let number = batch.next_number("next_rule")?;
        let host = url.host_key();
        for address in stored_on(batch, host.as_str())? {
            if let Some(changed) = change.apply(&address) {
                note_key(batch, number, &changed, &address)?;
            }
        }
        self.index(number, UrlRule::new(host.as_str(), change));
        self.changed.insert(number);
        Ok(())
    }

    /// Notes that a URL waits unfetched, linked to its partner.
    pub fn note_skipped(
        &mut self,
        batch: &mut Batch,
        rule: u64,
        url: &PageUrl,
    ) -> Result<(), Error> {
        batch.put(SKIPPED, (rule, url.as_str()), &())?;
        if let Some(known) = self.all.get_mut(&rule) {
            known.skipped += 1;
            known.unchecked += 1;
            self.changed.insert(rule);
        }
        Ok(())
    }

    /// Takes the URLs that a rule has skipped out of the store's list, to be let in again:
    /// at most `most` at a time.
    pub fn take_skipped(
        &mut self,
        batch: &mut Batch,
        rule: u64,
        most: usize,
    ) -> Result<Vec<String>, Error> {
        let found = take_skipped(batch, rule, most)?;
        if let Some(known) = self.all.get_mut(&rule) {
            known.skipped = known.skipped.saturating_sub(found.len() as u64);
            self.changed.insert(rule);
        }
        Ok(found)
    }

    /// Takes one URL out of the list of those that a rule has skipped.
    pub fn release(&mut self, batch: &mut Batch, rule: u64, address: &str) -> Result<(), Error> {
        let known = batch.remove(SKIPPED, (rule, address))?;
        if let (true, Some(known)) = (known, self.all.get_mut(&rule)) {
            known.skipped = known.skipped.saturating_sub(1);
            self.changed.insert(rule);
        }
        Ok(())
    }

    /// Tells whether any rule has skipped URLs.
    #[must_use]
    pub fn have_skipped(&self) -> bool {
        self.all.values().any(|rule| rule.skipped > 0)
    }

    /// Returns the rules that are not active and still have skipped URLs.
    #[must_use]
    pub fn to_reopen(&self) -> Vec<u64> {
        let left = |rule: &UrlRule| rule.status != Status::Active && rule.skipped > 0;
        self.all.iter().filter(|(_, rule)| left(rule)).map(|(number, _)| *number).collect()
    }

    /// Writes what has changed.
    pub fn flush(&mut self, batch: &mut Batch) -> Result<(), Error> {
        for number in std::mem::take(&mut self.changed) {
            batch.put(RULES, number, &self.all[&number])?;
        }
        Ok(())
    }

    /// Disables a rule, or lets it learn again. Returns false if there is no such rule.
    pub fn set_disabled(batch: &mut Batch, number: u64, disabled: bool) -> Result<bool, Error> {
        let Some(mut rule) = batch.get(RULES, number)? else { return Ok(false) };
        rule.status = if disabled { Status::Disabled } else { Status::Learning };
        batch.put(RULES, number, &rule)?;
        Ok(true)
    }
}

/// Returns the document of a URL whose page is stored.
pub fn document_of(batch: &Batch, address: &str) -> Result<Option<u64>, Error> {
    Ok(batch.get(ADDRESSES, address)?.and_then(|address| address.document()))
}

/// URLs of a host whose pages are stored: those of its first [`KNOWN_MAX`] URLs.
fn stored_on(batch: &Batch, host: &str) -> Result<Vec<PageUrl>, Error> {
    let (first, last) = (format!("{host}/"), format!("{host}0"));
    let mut found = Vec::new();
    for entry in batch.range(ADDRESSES, first.as_str()..last.as_str())?.take(KNOWN_MAX) {
        let entry = entry?;
        let address = entry.key()?;
        if document_of(batch, address)?.is_some() {
            found.extend(PageUrl::parse_stored(address));
        }
    }
    Ok(found)
}

/// Notes the first URL of which a rule makes another one.
fn note_key(
    batch: &mut Batch,
    rule: u64,
    changed: &PageUrl,
    address: &PageUrl,
) -> Result<(), Error> {
    let key = (rule, changed.hash64());
    if !batch.has(RULE_KEYS, key)? {
        batch.put(RULE_KEYS, key, &address.as_str().to_owned())?;
    }
    Ok(())
}

/// Takes URLs that are not visited because of a rule, or of another number that stands for
/// the cause, out of their list: at most `most`.
pub fn take_skipped(batch: &mut Batch, cause: u64, most: usize) -> Result<Vec<String>, Error> {
    let mut found = Vec::new();
    for entry in batch.under(SKIPPED, cause)?.take(most) {
        found.push(entry?.key()?.1.to_owned());
    }
    for address in &found {
        batch.remove(SKIPPED, (cause, address))?;
    }
    Ok(found)
}
