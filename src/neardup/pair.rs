//! Two articles by themselves: whether they are one document, and why, in words.

use std::borrow::Cow;
use std::convert::Infallible;

use super::Key;
use crate::base::clock::Timestamp;
use crate::text::features::ArticleKeys;

use super::known::{KnownText, KnownTree, Mate, Question, Trees};
use super::site::SiteNames;
use super::{Bond, Config, Error, Finder, Likeness, judge, site_allows};

/// Two articles, of which the second is judged when the first is all that is known.
pub(crate) struct ArticlePair<'a> {
    pub one: &'a ArticleKeys,
    pub other: &'a ArticleKeys,
    pub config: &'a Config,
    /// Keys by which the second leads to the first.
    pub found_by: Vec<Key>,
    pub likeness: Likeness,
    pub bond: Bond,
    /// Similarity of everything that their pages show, if that is known of both.
    pub shown: Option<f32>,
    /// They have the same normalised text.
    pub exact: bool,
    /// They are one document.
    pub same: bool,
}

impl<'a> ArticlePair<'a> {
    pub(crate) fn new(
        config: &'a Config,
        one: &'a ArticleKeys,
        other: &'a ArticleKeys,
    ) -> Result<Self, Error> {
        let mut finder = Finder::new(config)?;
        finder.insert(0, one);
        let found_by = finder.keys_of(0, other);
        let similarity = one.text.sketch.similarity(&other.text.sketch);
        let titled = found_by.iter().any(|key| key.is_of_title());
        let bond = match (one.standing.site, other.standing.site) {
            (0, _) | (_, 0) => Bond::Unknown { titled },
            (here, there) if here != there => Bond::Abroad { titled },
            _ => SiteNames::of(one).bond(&one.standing, &other.standing, similarity),
        };
        let mut pair = Self {
            one,
            other,
            config,
            found_by,
            likeness: Likeness::of(similarity, one.text.shingles, other.text.shingles),
            bond,
            shown: one.standing.shows(&other.standing),
            exact: one.text.hash == other.text.hash && one.text.words > 0,
            same: false,
        };
        pair.same = pair.is_one(&finder);
        Ok(pair)
    }

    /// Asks the judge.
    fn is_one(&self, finder: &Finder) -> bool {
        let question = Question::new(self.other, "");
        let mates = self.pages(&question);
        if self.exact && site_allows(&question, &mates, self.config).is_some() {
            return true;
        }
        let candidates = finder.candidates(self.other);
        match judge(self, &candidates, &question, self.config) {
            Ok(judgement) => judgement.matched.is_some(),
            Err(never) => match never {},
        }
    }

    /// The first article, if it is on the site of the second.
    fn pages(&self, question: &Question<'_>) -> Vec<Mate<'_>> {
        let ArticleKeys { standing, text, .. } = self.one;
        let site = question.keys.standing.site;
        let mate = Mate { content: 0, standing: standing.clone(), text: Cow::Borrowed(text) };
        if site != 0 && site == standing.site { vec![mate] } else { Vec::new() }
    }

    /// What the two are to each other, beside their texts.
    pub(crate) fn bond_in_words(&self) -> &'static str {
        match self.bond {
            Bond::Issue => "editions of one page",
            Bond::Kin => "pages that their site calls the same",
            Bond::Edition => "likely editions of one page",
            Bond::Unclear => "pages of one site that may be called the same",
            Bond::Apart => "pages that their site calls differently",
            Bond::Abroad { titled: true } => "pages of different sites, titles alike",
            Bond::Abroad { titled: false } => "pages of different sites",
            Bond::Unknown { titled: true } => "titles alike",
            Bond::Unknown { titled: false } => "",
        }
    }

    /// What decides, in one sentence.
    pub(crate) fn reason(&self) -> String {
        let rule = &self.config.rule;
        let short = self.one.text.words.min(self.other.text.words);
        let bond = self.bond_in_words();
        let lacks = if rule.confirm { self.lacks().join(" and ") } else { String::new() };
        if self.exact && self.same {
            "the normalised texts are equal".to_owned()
        } else if self.exact {
            format!("the normalised texts are equal, but these are {bond}, and {lacks}")
        } else if rule.confirm && self.bond == Bond::Apart {
            let similarity = self.likeness.similarity;
            format!("{bond} are one only if their texts are equal: similarity {similarity:.3}")
        } else if short < rule.words_min {
            format!("one has {short} words: fewer than {} must be equal", rule.words_min)
        } else if self.found_by.is_empty() {
            "no key of the index leads from one to the other".to_owned()
        } else if !rule.confirm {
            let keys: Vec<&str> = self.found_by.iter().map(|key| key.as_str()).collect();
            format!("found by {}, and nothing must confirm it", keys.join(", "))
        } else if !lacks.is_empty() {
            format!("{bond}, and {lacks}")
        } else {
            let Likeness { similarity, containment, size } = self.likeness;
            let verdict = if self.same { "enough" } else { "not enough" };
            let bond = if bond.is_empty() { String::new() } else { format!(", {bond}") };
            format!(
                "similarity {similarity:.3}, containment {containment:.3} at size {size:.2}{bond}: \
                 {verdict}"
            )
        }
    }

    /// What two pages of one site lack beside texts that are alike, as `site::is_borne_out` asks
    /// for it.
    fn lacks(&self) -> Vec<String> {
        let rule = &self.config.rule;
        let strict = match self.bond {
            Bond::Abroad { .. } | Bond::Unknown { .. } => return Vec::new(),
            Bond::Unclear | Bond::Apart => true,
            Bond::Issue | Bond::Kin | Bond::Edition => false,
        };
        let least = if strict { rule.site_shown_min } else { rule.site_shown_min / 2.0 };
        let unlike = self.shown.filter(|alike| *alike < least);
        let mut lacks = Vec::new();
        if strict || unlike.is_some() {
            let words = self.one.text.words.min(self.other.text.words);
            if words < rule.site_words_min {
                lacks.push(format!(
                    "one has {words} words of {} that prove it",
                    rule.site_words_min
                ));
            }
            if self.one.standing.doubtful || self.other.standing.doubtful {
                lacks.push("the main text of one is doubtful".to_owned());
            }
        }
        if let Some(alike) = unlike.filter(|_| strict || !lacks.is_empty()) {
            lacks.push(format!("all that they show is similar to {alike:.2} of {least:.2}"));
        }
        lacks
    }
}

impl Trees for ArticlePair<'_> {
    type Error = Infallible;

    fn text(&self, content: u64) -> Result<Option<KnownText<'_>>, Infallible> {
        Ok(Some(KnownText { content, document: 0, keys: Cow::Borrowed(self.one) }))
    }

    fn tree<'a>(&'a self, text: KnownText<'a>) -> Result<KnownTree<'a>, Infallible> {
        Ok(KnownTree {
            document: text.document,
            root_content: text.content,
            root: text.keys,
            canonical: None,
            leaf: None,
            copies: 1,
            first_arrival: Timestamp(0),
        })
    }

    fn mates(&self, _: u64, question: &Question<'_>) -> Result<Vec<Mate<'_>>, Infallible> {
        Ok(self.pages(question))
    }
}
