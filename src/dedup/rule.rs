//! What makes two texts one document.

/// The rule, on estimates from the sketches of two texts.
#[derive(Debug, Clone, Copy, PartialEq, serde::Serialize, serde::Deserialize)]
#[serde(default)]
pub struct Rule {
    /// Candidates must be confirmed. Without it the distance of the fingerprints alone decides.
    pub confirm: bool,
    /// Similarity from which two texts are one whatever they have in common with others, 0 to 1.
    pub sure_min: f32,
    /// The same for texts of one site, which may share boilerplate of many times their own length.
    pub site_sure_min: f32,
    /// Least similarity (Jaccard of shingles) of texts that are one, 0 to 1.
    pub similarity_min: f32,
    /// The same for texts with the same title.
    pub titled_similarity_min: f32,
    /// Least share of the smaller text that is in the larger one, 0 to 1; 1 asks for no less than
    /// all of it.
    pub containment_min: f32,
    /// Least size of the smaller text, as a share of the larger one, for containment to count: a
    /// page that holds many articles is a copy of none.
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
            similarity_min: 0.45,
            titled_similarity_min: 0.35,
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
    /// Derives the rest from the similarity and the numbers of distinct shingles.
    #[must_use]
    pub fn of(similarity: f32, one: u32, other: u32) -> Self {
        let (small, large) = (one.min(other).max(1) as f32, one.max(other).max(1) as f32);
        let shared = similarity / (1.0 + similarity) * (small + large);
        Self { similarity, containment: (shared / small).min(1.0), size: small / large }
    }
}

impl Rule {
    /// Tells whether texts so alike are one document. `titled` says that their titles are the same.
    #[must_use]
    pub fn same(&self, likeness: Likeness, titled: bool) -> bool {
        let least = if titled {
            self.titled_similarity_min.min(self.similarity_min)
        } else {
            self.similarity_min
        };
        likeness.similarity >= least
            || (likeness.containment >= self.containment_min
                && likeness.size >= self.containment_size_min)
    }

    pub(super) fn shares(&self) -> [(&'static str, f32); 6] {
        [
            ("sure_min", self.sure_min),
            ("site_sure_min", self.site_sure_min),
            ("similarity_min", self.similarity_min),
            ("titled_similarity_min", self.titled_similarity_min),
            ("containment_min", self.containment_min),
            ("containment_size_min", self.containment_size_min),
        ]
    }
}
