//! The known key that is most like a misspelt one.

/// Returns the candidate with the least edit distance; the first of equals.
pub(super) fn nearest<'a>(key: &str, candidates: impl Iterator<Item = &'a str>) -> &'a str {
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let name = last(key);
    // The last part weighs most: a right key in the wrong section is the likeliest slip.
    let cost = |candidate: &&str| (distance(&name, &last(candidate)), distance(key, candidate));
    candidates.min_by_key(cost).unwrap_or_default()
}

/// Insertions, deletions and substitutions that turn one text into the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != *y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}
