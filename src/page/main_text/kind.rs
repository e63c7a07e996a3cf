//! What a page is: an article, a forum, a listing.

use serde::Serialize;

use super::Values;
use super::features::{Sink, level, ratio, share};
use super::segments::Segments;
use super::stats::Sum;

/// What a page is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum PageKind {
    /// One text by someone: news, a blog post, an essay.
    #[default]
    Article,
    /// Things of one sort, with a picture and a price each: the category of a shop.
    Collection,
    /// A manual or a reference.
    Documentation,
    /// Posts by several people.
    Forum,
    /// Entries that lead elsewhere.
    Listing,
    /// One thing for sale.
    Product,
    /// What somebody offers: the pages of a company.
    Service,
}

impl PageKind {
    /// All kinds.
    pub const ALL: [Self; 7] = [
        Self::Article,
        Self::Collection,
        Self::Documentation,
        Self::Forum,
        Self::Listing,
        Self::Product,
        Self::Service,
    ];

    /// Returns its name in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Article => "article",
            Self::Collection => "collection",
            Self::Documentation => "documentation",
            Self::Forum => "forum",
            Self::Listing => "listing",
            Self::Product => "product",
            Self::Service => "service",
        }
    }
}

/// Names of the features that only the choice gives, in the order in which `row` puts them.
pub(super) const CHOICE: [&str; 8] = [
    "kept_share",
    "kept_weight",
    "kept_count",
    "kept_mean",
    "kept_links",
    "kept_prose",
    "kept_stops",
    "quality",
];

/// The features from which the kind is told: those of the page, and those of the choice.
pub(super) fn row(page: &[u8], segments: &Segments, kept: &[bool], quality: f32) -> Vec<u8> {
    let whole = segments.sum(0..segments.all.len());
    let taken = segments.all.iter().zip(kept).filter(|(_, kept)| **kept);
    let (mut sum, mut count) = (Sum::default(), 0);
    for (segment, _) in taken {
        sum = sum.plus(segment.sum());
        count += 1;
    }
    let mut values = Values(page.to_vec());
    let mut put = |value| values.put("", value);
    put(share(sum.weight, whole.weight));
    put(level(sum.weight));
    put(level(count));
    put(level(sum.weight / count.max(1)));
    put(share(sum.links, sum.weight));
    put(share(sum.prose, sum.weight));
    put(share(sum.stops * 10, sum.words));
    put(ratio(quality, 1.0));
    values.0
}
