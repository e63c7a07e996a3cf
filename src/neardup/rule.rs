//! What makes two texts one document.

/// The rule, on estimates from the sketches of two texts.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Rule {
    /// Candidates must be confirmed. Without it the distance of the fingerprints alone decides.
    pub confirm: bool,
    /// Similarity from which two texts are one whatever they have in common with others, 0 to 1.
    pub sure_min: f32,
    /// The same for pages that one site calls the same, which may share boilerplate of many times
    /// their own length.
    pub site_sure_min: f32,
    /// The same for texts with the same title on different sites, which share neither boilerplate
    /// nor, by chance, a title.
    pub titled_sure_min: f32,
    /// Similarity from which a text cannot belong to another document that comes later.
    pub certain_min: f32,
    /// Least similarity (Jaccard of shingles) of texts that are one, 0 to 1.
    pub similarity_min: f32,
    /// The same for pages of one site that have no titles, or titles that differ in the number of a
    /// chapter. Pages of one site with other titles are made to differ: they are one document only
    /// if their texts are equal.
    pub site_similarity_min: f32,
    /// Least similarity of what is left of such pages when all is left out that they share
    /// with further texts.
    pub site_rest_min: f32,
    /// The same for pages of one site that are likely editions of one page.
    pub edition_similarity_min: f32,
    /// Least similarity of everything that two pages of one site show which have different titles
    /// or none; others need half as much if their texts are short or doubtful.
    pub site_shown_min: f32,
    /// Least words of each of two such pages: that they have a few words and no more proves
    /// nothing, even if the words are equal.
    pub site_words_min: u32,
    /// Least expected quality of the extraction of both.
    pub site_quality_min: f32,
    /// The same for texts of different sites, which share no boilerplate.
    pub abroad_similarity_min: f32,
    /// The same for texts with the same title.
    pub titled_similarity_min: f32,
    /// The same for texts with the same title on different sites.
    pub titled_abroad_similarity_min: f32,
    /// Least similarity to any copy of a document that makes a text one more, though it is unlike
    /// the first copy and the canonical one.
    pub leaf_similarity_min: f32,
    /// Least share of the smaller text that is in the larger one, 0 to 1; 1 asks for no less than
    /// all of it.
    pub containment_min: f32,
    /// Least size of the smaller text, as a share of the larger one: a page that holds many
    /// articles is a copy of none.
    pub containment_size_min: f32,
    /// Least words of a text that can be a near-duplicate. Shorter texts are duplicates only if
    /// they are equal: a few words in common prove nothing.
    pub words_min: u32,
}

impl Default for Rule {
    fn default() -> Self {
        Self {
            confirm: true,
            sure_min: 0.85,
            site_sure_min: 0.95,
            titled_sure_min: 0.6,
            certain_min: 0.97,
            similarity_min: 0.45,
            site_similarity_min: 0.9,
            edition_similarity_min: 0.6,
            site_rest_min: 0.6,
            site_shown_min: 0.7,
            site_words_min: 50,
            site_quality_min: 0.5,
            abroad_similarity_min: 0.4,
            titled_similarity_min: 0.35,
            titled_abroad_similarity_min: 0.3,
            leaf_similarity_min: 0.6,
            containment_min: 0.8,
            containment_size_min: 0.3,
            words_min: 16,
        }
    }
}

/// How alike two texts are, estimated from their sketches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Likeness {
    /// Shared shingles among those that either has (Jaccard), 0 to 1.
    pub similarity: f32,
    /// Shared shingles among those of the smaller text, 0 to 1.
    pub containment: f32,
    /// Shingles of the smaller text by those of the larger, 0 to 1.
    pub size: f32,
}

impl Likeness {
    /// That of one text twice.
    pub const EXACT: Self = Self { similarity: 1.0, containment: 1.0, size: 1.0 };

    /// Derives the rest from the similarity and the numbers of distinct shingles.
    #[must_use]
    pub fn of(similarity: f32, one: u32, other: u32) -> Self {
        let (small, large) = (one.min(other).max(1) as f32, one.max(other).max(1) as f32);
        let shared = similarity / (1.0 + similarity) * (small + large);
        Self { similarity, containment: (shared / small).min(1.0), size: small / large }
    }
}

/// What two texts have in common beside their words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bond {
    /// Pages of different sites, which share no boilerplate.
    Abroad {
        /// Their titles are the same.
        titled: bool,
    },
    /// The site of one of them is not known.
    Unknown {
        /// Their titles are the same.
        titled: bool,
    },
    /// Pages that one site calls the same: by title, or because one names the other as canonical.
    Kin,
    /// Editions of one page by their URLs, neither with another title.
    Issue,
    /// Pages of one site that are likely called the same: at URLs of editions of one page with
    /// different titles, in another language or because the site has given the URL to another
    /// page; or with equal titles at URLs that differ in numbers.
    Edition,
    /// Pages of one site at unlike URLs of which it is not clear whether it calls them the
    /// same: without titles, or under titles that differ in the number of a chapter.
    Unclear,
    /// Pages of one site that it calls differently: they are made to differ, and are one document
    /// only if their texts are equal.
    Apart,
}

impl Rule {
    /// Tells whether texts so alike are one document.
    #[must_use]
    pub fn same(&self, likeness: Likeness, bond: Bond) -> bool {
        let of_a_size = likeness.size >= self.containment_size_min;
        likeness.similarity >= self.least(bond, of_a_size)
            || (!matches!(bond, Bond::Unclear | Bond::Apart)
                && likeness.containment >= self.containment_min
                && of_a_size)
    }

    /// Tells the same of what is left when commonplaces are out.
    #[must_use]
    pub fn rest_is_same(&self, likeness: Likeness, bond: Bond) -> bool {
        match bond {
            Bond::Unclear | Bond::Apart => likeness.similarity >= self.site_rest_min,
            _ => self.same(likeness, bond),
        }
    }

    /// Least similarity of texts that are one document, unless one contains the other.
    fn least(&self, bond: Bond, of_a_size: bool) -> f32 {
        let usual = self.similarity_min;
        match bond {
            Bond::Abroad { titled: true } if of_a_size => {
                usual.min(self.titled_abroad_similarity_min)
            }
            Bond::Issue
            | Bond::Kin
            | Bond::Abroad { titled: true }
            | Bond::Unknown { titled: true } => usual.min(self.titled_similarity_min),
            Bond::Abroad { titled: false } => usual.min(self.abroad_similarity_min),
            Bond::Unknown { titled: false } => usual,
            Bond::Edition => usual.max(self.edition_similarity_min),
            Bond::Unclear | Bond::Apart => usual.max(self.site_similarity_min),
        }
    }

    /// Returns the least similarity of texts with so many distinct shingles that may be one, by any
    /// bond.
    pub(super) fn similarity_least(&self, one: u32, other: u32) -> f32 {
        if !self.confirm {
            return 0.0;
        }
        let Likeness { size, .. } = Likeness::of(0.0, one, other);
        let of_a_size = size >= self.containment_size_min;
        let titled = self.least(Bond::Abroad { titled: true }, of_a_size);
        let least =
            [Bond::Kin, Bond::Abroad { titled: false }].map(|one| self.least(one, of_a_size));
        let least = least.into_iter().fold(titled, f32::min);
        if !of_a_size {
            return least;
        }
        // So much of the smaller text is in the larger one.
        let shared = self.containment_min * size;
        least.min(shared / (1.0 + size - shared))
    }

    /// Tells whether texts so similar are one document whatever they have in common with others.
    #[must_use]
    pub fn sure(&self, similarity: f32, bond: Bond) -> bool {
        match bond {
            Bond::Unclear | Bond::Apart => false,
            Bond::Kin | Bond::Edition => similarity >= self.site_sure_min,
            Bond::Issue | Bond::Abroad { .. } | Bond::Unknown { .. } => similarity >= self.sure_min,
        }
    }

    /// Tells whether a page of another site is so similar under the same title that what both have
    /// in common with others matters only for the choice among several.
    #[must_use]
    pub fn copied(&self, similarity: f32, bond: Bond) -> bool {
        bond == Bond::Abroad { titled: true } && similarity >= self.titled_sure_min
    }

    pub(super) fn shares(&self) -> [(&'static str, f32); 16] {
        [
            ("sure_min", self.sure_min),
            ("site_sure_min", self.site_sure_min),
            ("titled_sure_min", self.titled_sure_min),
            ("certain_min", self.certain_min),
            ("similarity_min", self.similarity_min),
            ("edition_similarity_min", self.edition_similarity_min),
            ("site_similarity_min", self.site_similarity_min),
            ("site_rest_min", self.site_rest_min),
            ("site_shown_min", self.site_shown_min),
            ("site_quality_min", self.site_quality_min),
            ("abroad_similarity_min", self.abroad_similarity_min),
            ("titled_similarity_min", self.titled_similarity_min),
            ("titled_abroad_similarity_min", self.titled_abroad_similarity_min),
            ("leaf_similarity_min", self.leaf_similarity_min),
            ("containment_min", self.containment_min),
            ("containment_size_min", self.containment_size_min),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BONDS: [Bond; 9] = [
        Bond::Apart,
        Bond::Unclear,
        Bond::Edition,
        Bond::Unknown { titled: false },
        Bond::Abroad { titled: false },
        Bond::Issue,
        Bond::Kin,
        Bond::Unknown { titled: true },
        Bond::Abroad { titled: true },
    ];

    #[test]
    fn each_bond_has_its_least_similarity_on_both_sides() {
        let rule = Rule::default();
        let least = [0.9, 0.9, 0.6, 0.45, 0.4, 0.35, 0.35, 0.35, 0.3];
        for (bond, least) in BONDS.into_iter().zip(least) {
            let same = |similarity| {
                // Of one size, so that no text contains the other.
                rule.same(Likeness { similarity, containment: 0.0, size: 1.0 }, bond)
            };
            assert!(same(least), "{bond:?}");
            assert!(!same(least - 0.001), "{bond:?}");
        }
    }

    #[test]
    fn a_text_that_holds_another_is_one_with_it_but_not_under_other_names_of_one_site() {
        let rule = Rule::default();
        for bond in BONDS {
            let of_size =
                |size| rule.same(Likeness { similarity: 0.29, containment: 0.8, size }, bond);
            let may = !matches!(bond, Bond::Apart | Bond::Unclear);
            assert_eq!(of_size(0.3), may, "{bond:?}");
            assert!(!of_size(0.299), "{bond:?}");
        }
    }

    #[test]
    fn what_is_left_of_pages_with_unclear_names_may_be_less_alike_than_the_whole() {
        let rule = Rule::default();
        for bond in BONDS {
            for similarity in [0.25, 0.35, 0.5, 0.599, 0.6, 0.9] {
                let likeness = Likeness { similarity, containment: 0.0, size: 1.0 };
                let rest = rule.rest_is_same(likeness, bond);
                match bond {
                    Bond::Apart | Bond::Unclear => assert_eq!(rest, similarity >= 0.6, "{bond:?}"),
                    _ => assert_eq!(rest, rule.same(likeness, bond), "{bond:?}"),
                }
            }
        }
    }

    #[test]
    fn only_a_titled_page_of_another_site_is_copied_and_one_site_is_sure_last_or_never() {
        let rule = Rule::default();
        for bond in BONDS {
            assert_eq!(rule.copied(0.6, bond), bond == Bond::Abroad { titled: true }, "{bond:?}");
            assert!(!rule.copied(0.599, bond), "{bond:?}");
            let least = match bond {
                Bond::Apart | Bond::Unclear => None,
                Bond::Kin | Bond::Edition => Some(0.95),
                Bond::Issue | Bond::Abroad { .. } | Bond::Unknown { .. } => Some(0.85),
            };
            assert_eq!(rule.sure(1.0, bond), least.is_some(), "{bond:?}");
            if let Some(least) = least {
                assert!(rule.sure(least, bond) && !rule.sure(least - 0.001, bond), "{bond:?}");
            }
        }
    }
}
