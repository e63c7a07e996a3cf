//! Pages of one site: which of them the site itself calls the same.

use crate::text::features::{ArticleKeys, Standing};
use crate::text::simhash::Fingerprint;

use super::judge::RELATED;
use super::known::{KnownText, Mate};
use super::{Bond, Rule};

/// Pages of one title, or documents of one edition, from which the name is that of a kind of pages
/// and tells nothing.
const COMMON_MIN: usize = 4;

/// Editions of one page so similar are plainly that, however many others there are: a manual that
/// is hardly translated has many.
const PLAIN: f32 = 0.9;

/// What the names of an article are worth on its site, as far as its candidates tell.
#[derive(Debug, Default)]
pub(super) struct SiteNames {
    site: u64,
    edition: u32,
    title: Option<Fingerprint>,
    /// Editions of pages with its title.
    titled: Vec<u32>,
    /// Documents with its edition that resemble it.
    editions: Vec<u64>,
}

impl SiteNames {
    /// Begins with the article itself.
    pub(super) fn of(keys: &ArticleKeys) -> Self {
        let Standing { site, edition, .. } = keys.standing;
        let (title, titled) = (keys.title, vec![edition]);
        Self { site, edition, title, titled, editions: Vec::new() }
    }

    /// Notes a text that resembles the article.
    pub(super) fn note(&mut self, text: &KnownText<'_>, similarity: f32) {
        let its = &text.keys.standing;
        if its.site != self.site || self.site == 0 {
            return;
        }
        if text.keys.title == self.title && !self.titled.contains(&its.edition) {
            self.titled.push(its.edition);
        }
        if its.edition == self.edition
            && similarity >= RELATED
            && !self.editions.contains(&text.document)
        {
            self.editions.push(text.document);
        }
    }

    /// Tells what binds two pages of this site whose texts are so similar.
    pub(super) fn bond(&self, one: &Standing, other: &Standing, similarity: f32) -> Bond {
        let same = |one: u32, other: u32| one != 0 && one == other;
        let rare = self.titled.len() < COMMON_MIN;
        let edition = same(one.edition, other.edition)
            && (self.editions.len() < COMMON_MIN || similarity >= PLAIN);
        let retitled = one.name != 0 && other.name != 0 && one.name != other.name;
        let form = same(one.form, other.form) && same(one.name, other.name);
        if edition && !retitled {
            Bond::Issue
        } else if one.named(other) || (rare && same(one.title, other.title)) {
            Bond::Kin
        } else if edition || (rare && form) {
            Bond::Edition
        } else if (one.name == 0 && other.name == 0) || same(one.heading, other.heading) {
            Bond::Unclear
        } else {
            Bond::Apart
        }
    }
}

/// Tells whether two pages of one site may be one document if their texts are alike.
///
/// Where an extractor finds nothing it takes what stands on every page, and pages that have little
/// text have it from their template: what else such pages show must be alike as well.
pub(super) fn is_borne_out(bond: Bond, mine: &ArticleKeys, mate: &Mate<'_>, rule: &Rule) -> bool {
    let shown = mine.standing.shows(&mate.standing);
    let long = mine.text.words.min(mate.text.words) >= rule.site_words_min;
    let good = long && !mine.standing.doubtful && !mate.standing.doubtful;
    let alike = |least: f32| shown.is_none_or(|alike| alike >= least);
    match bond {
        Bond::Apart => good && mine.text.hash == mate.text.hash && alike(rule.site_shown_min),
        Bond::Unclear => good && alike(rule.site_shown_min),
        _ => good || alike(rule.site_shown_min / 2.0),
    }
}
