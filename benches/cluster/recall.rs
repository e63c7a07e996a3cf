//! How many edited copies are found by how many bands of the sketch.

use uniqcrawl::neardup::{Config, Deduplicator, InputDocument, Verdict};

use crate::made::Words;

/// Shares of words that are others, in hundredths.
const EDITS: [u64; 8] = [2, 5, 10, 15, 20, 25, 30, 35];

fn words(random: &mut Words, count: u64) -> Vec<String> {
    (0..count).map(|_| format!("w{}", random.next() % 60_000)).collect()
}

fn text(words: &[String]) -> String {
    let sentences: Vec<String> = words.chunks(14).map(|words| words.join(" ")).collect();
    sentences.join(". ")
}

/// Prints for each number of bands the share of copies that are found, by how many of their words
/// are others.
pub(crate) fn run(texts: u64) {
    println!("words that are others, in %: {EDITS:?}");
    for bands in [42, 28, 24, 21, 16] {
        let mut dedup = Deduplicator::new(Config { bands, ..Config::default() }).unwrap();
        let mut random = Words(0x9E37_79B9_7F4A_7C15);
        let mut found = [0_u64; EDITS.len()];
        for number in 0..texts {
            let root = words(&mut random, 120 + number % 400);
            let mut judge =
                |text: &str| dedup.judge(InputDocument { text, ..InputDocument::default() });
            judge(&text(&root));
            for (edits, found) in EDITS.iter().zip(&mut found) {
                let edit = |word: &String| {
                    let other = random.next() % 100 < *edits;
                    if other { format!("x{}", random.next() % 60_000) } else { word.clone() }
                };
                let copy: Vec<String> = root.iter().map(edit).collect();
                *found += u64::from(matches!(judge(&text(&copy)), Verdict::Duplicate { .. }));
            }
        }
        let shares = found.map(|found| format!("{:.3}", found as f64 / texts as f64));
        println!("{bands} bands: {}", shares.join(" "));
    }
}
