//! What is kept of a look-up until it is an article's turn.

use std::cmp::Reverse;
use std::convert::Infallible;

use crate::text::features::ArticleKeys;

use super::chance::{Resemblance, Sieve};
use super::finder::{Asked, Finder, Postings, first_of, grouped, ranked};
use super::segment::PER_KEY_MAX;
use super::{Candidate, Key};

/// The candidates of an article, as far as the judge may read them, whatever contents come until it
/// is its turn. Of hundreds that share keys by chance these are few.
#[derive(Debug)]
pub struct Shortlist {
    /// Distances and contents that were found by each fingerprint, in the order in which an
    /// article asks.
    near: Vec<Box<[(u32, u64)]>>,
    /// How many were found by each hash, in the same order.
    held: Box<[u8]>,
    /// Those that were found by hashes, for which most speaks first.
    by_hashes: Box<[Candidate]>,
    /// Those of them that were compared with the article, in order, with how alike they look.
    compared: Box<[(u64, Resemblance)]>,
    sieve: Sieve,
}

impl Shortlist {
    /// Looks an article up in the postings of all contents. `finder` says what is asked, and
    /// `compare` how like it a content looks that was found by weak keys; none if it is not there.
    pub fn of<P: Postings<Error = Infallible>, E>(
        finder: &Finder,
        keys: &ArticleKeys,
        postings: &P,
        mut compare: impl FnMut(u64) -> Result<Option<Resemblance>, E>,
    ) -> Result<Self, E> {
        let (mut near, mut held) = (Vec::new(), Vec::new());
        let (mut hits, mut found) = (Vec::new(), Vec::new());
        let all = finder.asked(keys);
        postings.prefetch(&all);
        for (key, asked) in all {
            match asked {
                Asked::Near(asked) => {
                    let mut each = |distance, content| found.push((distance, content));
                    let Ok(()) = postings.near(asked, &mut each);
                    near.push(first_of(&mut found).collect::<Box<[_]>>());
                }
                Asked::Equal(hash) => {
                    let Ok(()) = postings.equal(key, hash, &mut |content| found.push((0, content)));
                    let before = hits.len();
                    hits.extend(first_of(&mut found).map(|(_, content)| (content, key)));
                    held.push((hits.len() - before) as u8);
                }
            }
        }
        let is_near =
            |content| near.iter().any(|found| found.iter().any(|(_, other)| *other == content));
        let (mut by_hashes, mut compared) = (Vec::new(), Vec::new());
        let mut sieve = finder.sieve();
        for candidate in ranked(hits) {
            // What is near may be pushed out by what comes, and be as weak as its hashes.
            if candidate.weak && !is_near(candidate.content) {
                if sieve.is_done() {
                    continue;
                }
                let resemblance = compare(candidate.content)?;
                compared.extend(resemblance.map(|resemblance| (candidate.content, resemblance)));
                sieve.lets_through(resemblance);
            }
            by_hashes.push(candidate);
        }
        compared.sort_unstable();
        Ok(Self {
            near,
            held: held.into(),
            by_hashes: by_hashes.into(),
            compared: compared.into(),
            sieve: finder.sieve(),
        })
    }

    /// Returns the candidates among all contents, those for which most speaks first, then older
    /// ones, without those that the judge does not read. `newest` has those that came in between.
    pub fn candidates<P: Postings<Error = Infallible>>(
        &self,
        finder: &Finder,
        newest: &P,
        keys: &ArticleKeys,
    ) -> Vec<Candidate> {
        let (mut near, mut held) = (self.near.iter(), self.held.iter());
        let (mut hits, mut found) = (Vec::<(u64, Key)>::new(), Vec::<(u32, u64)>::new());
        let all = finder.asked(keys);
        newest.prefetch(&all);
        for (key, asked) in all {
            let mut room = PER_KEY_MAX;
            match asked {
                Asked::Near(asked) => {
                    found.extend(near.next().into_iter().flat_map(|found| found.iter().copied()));
                    let mut each = |distance, content| found.push((distance, content));
                    let Ok(()) = newest.near(asked, &mut each);
                }
                Asked::Equal(hash) => {
                    // A key has its oldest contents.
                    room -= held.next().map_or(0, |held| usize::from(*held));
                    if room > 0 {
                        let mut each = |content| found.push((0, content));
                        let Ok(()) = newest.equal(key, hash, &mut each);
                    }
                }
            }
            hits.extend(first_of(&mut found).take(room).map(|(_, content)| (content, key)));
        }
        let mut all = grouped(hits);
        let others = all.len();
        for candidate in &self.by_hashes {
            match all[..others].binary_search_by_key(&candidate.content, |one| one.content) {
                Ok(at) => all[at].add(candidate),
                Err(_) => all.push(*candidate),
            }
        }
        all.sort_unstable_by_key(|candidate| (Reverse(candidate.votes), candidate.content));
        all.retain(|candidate| !finder.has_forgotten(candidate.content));
        all
    }

    /// Returns the contents that the judge likely reads.
    pub fn likely(&self) -> impl Iterator<Item = u64> {
        let near = self.near.iter().flat_map(|found| found.iter().map(|(_, content)| *content));
        let (mut sieve, by_hashes) = (self.sieve, self.by_hashes.iter());
        let read = by_hashes.filter(move |one| sieve.lets_through(self.resemblance(one.content)));
        near.chain(read.map(|candidate| candidate.content))
    }

    /// Returns how like the article a content looks; none if they were not compared.
    #[must_use]
    pub fn resemblance(&self, content: u64) -> Option<Resemblance> {
        let found = self.compared.binary_search_by_key(&content, |(compared, _)| *compared);
        found.ok().map(|at| self.compared[at].1)
    }

    /// Returns the memory of its lists, in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let near: usize =
            self.near.iter().map(|found| size_of_val(found) + size_of_val(&**found)).sum();
        near + self.held.len() + size_of_val(&*self.by_hashes) + size_of_val(&*self.compared)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::chance::CHANCE_MAX;
    use super::super::judge::sift;
    use super::*;
    use crate::neardup::Config;
    use crate::text::features::{KindHashes, Standing, TextKeys};
    use crate::text::simhash::Fingerprint;
    use crate::text::sketch::{SLOTS, Sketch, mix};

    /// A text: values of parts of its sketch, its sentence, and bits of its fingerprint and of that
    /// of its title, if that has one.
    type Made = ([u8; 6], u32, [u8; 2], u8);

    fn keys((parts, sentence, bits, title): Made) -> ArticleKeys {
        let slot = |slot: usize| parts[slot * parts.len() / SLOTS];
        let sketch = Sketch { slots: Box::new(std::array::from_fn(slot)), seconds: None };
        let fingerprint = Fingerprint(1 << bits[0] | 1 << bits[1]);
        let (hash, sentences) = (u128::from(sentence), Box::from([sentence]));
        let (shingles, words, others) = (100, 100, KindHashes::default());
        let text = TextKeys { hash, fingerprint, sketch, shingles, words, sentences, others };
        let title = (title < 64).then(|| Fingerprint(1 << title));
        ArticleKeys { text, title, standing: Standing::default() }
    }

    fn made() -> impl Strategy<Value = Made> {
        let parts = [0u8..9, 0..9, 0..9, 0..9, 0..9, 0..9];
        (parts, 0u32..40, [0u8..64, 0..64], 0u8..90)
    }

    /// Those that the judge reads.
    fn read(
        finder: &Finder,
        mut candidates: Vec<Candidate>,
        compare: impl Fn(u64) -> Option<Resemblance>,
    ) -> Vec<Candidate> {
        let of = |content| Ok::<_, Infallible>(compare(content));
        let Ok(()) = sift(&mut candidates, finder.sieve(), of);
        candidates
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn what_the_judge_reads_is_what_it_reads_of_all(
            before in prop::collection::vec(made(), 0..400),
            newer in prop::collection::vec(made(), 0..200),
            asked in made(),
            looks in [1u64..9, 1..9, 1..9],
            candidates_max in 1usize..80,
            removed in 0u64..900,
        ) {
            let config = Config { candidates_max, ..Config::default() };
            let finder = || Finder::new(&config).unwrap();
            let (mut kept, mut newest) = (finder(), finder());
            let (asked, first) = (keys(asked), before.len() as u64);
            (0..).zip(before).for_each(|(content, made)| kept.insert(content, &keys(made)));
            let compare = |content: u64| {
                let [chance, unlike, alike] = looks;
                let look = mix(content) % (chance + unlike + alike);
                Some(if look < chance {
                    Resemblance::Chance
                } else if look < chance + unlike {
                    Resemblance::Unlike
                } else {
                    Resemblance::Alike
                })
            };
            let of = |content| Ok::<_, Infallible>(compare(content));
            let Ok(list) = Shortlist::of(&newest, &asked, &kept, of);
            (first..).zip(newer).for_each(|(content, made)| newest.insert(content, &keys(made)));
            if removed > first {
                newest.forget(removed);
            }
            let Ok(all) = newest.candidates_with(&asked, &kept);
            let some = list.candidates(&newest, &newest, &asked);
            prop_assert!(some.len() <= all.len());
            for content in 0..first {
                let known = list.resemblance(content);
                prop_assert!(known.is_none() || known == compare(content));
            }
            let some = read(&newest, some, |one| list.resemblance(one).or_else(|| compare(one)));
            let all = read(&newest, all, compare);
            prop_assert_eq!(&some, &all);
            let likely: Vec<u64> = list.likely().collect();
            let older = all.iter().map(|one| one.content).filter(|content| *content < first);
            for content in older {
                prop_assert!(likely.contains(&content), "{content}");
            }
        }
    }

    #[test]
    fn of_many_that_are_found_by_chance_few_are_kept_and_near_ones_may_be_pushed_out() {
        let finder = || Finder::new(&Config::default()).unwrap();
        let (mut kept, mut newest) = (finder(), finder());
        let asked = keys(([1; 6], 0, [0, 1], 64));
        // Each shares one part of the sketch, and 64 of them are near by two bits.
        let near = |content: u64| content < PER_KEY_MAX as u64;
        for content in 0..300 {
            let mut parts = [2; 6];
            parts[content as usize % 2] = 1;
            let bits = if near(content) { [0, 3] } else { [40, 41] };
            kept.insert(content, &keys((parts, 1 + content as u32, bits, 64)));
        }
        let of = |_| Ok::<_, Infallible>(Some(Resemblance::Chance));
        let Ok(list) = Shortlist::of(&newest, &asked, &kept, of);
        let candidates = list.candidates(&newest, &newest, &asked);
        assert!(candidates.iter().filter(|one| !near(one.content)).count() <= CHANCE_MAX);
        assert!(candidates.iter().all(|one| one.weak != near(one.content)));
        // Nearer ones have the place of all those.
        for content in 300..300 + PER_KEY_MAX as u64 {
            newest.insert(content, &keys(([3; 6], 1 + content as u32, [0, 1], 64)));
        }
        let candidates = list.candidates(&newest, &newest, &asked);
        let strong: Vec<u64> =
            candidates.iter().filter(|one| !one.weak).map(|one| one.content).collect();
        assert_eq!(strong, (300..364).collect::<Vec<u64>>());
        let Ok(all) = newest.candidates_with(&asked, &kept);
        let [candidates, all] =
            [candidates, all].map(|all| read(&newest, all, |_| Some(Resemblance::Chance)));
        assert_eq!(candidates, all);
    }
}
