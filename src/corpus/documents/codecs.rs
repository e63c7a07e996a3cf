//! How those fields of rows are stored that are more than a number or a text.

use crate::base::clock::Timestamp;
use crate::neardup::Key;
use crate::store::{BadRow, Blob, Codec, Coded, Decoder, Encoder, Fixed, Wide};
use crate::text::simhash::Fingerprint;
use crate::text::sketch::{SHOWN_SLOTS, SLOTS, ShownSketch, Sketch};
use crate::web::robots::meta::Terms;

use super::{DocId, Found};

impl Codec<DocId> for Wide {
    const SHAPE: &'static str = "16 bytes";

    fn put(field: &DocId, row: Encoder) -> Encoder {
        row.wide(field.0)
    }

    fn take(row: &mut Decoder<'_>) -> Result<DocId, BadRow> {
        row.wide().map(DocId)
    }
}

impl Codec<Fingerprint> for Fixed {
    const SHAPE: &'static str = "8 bytes";

    fn put(field: &Fingerprint, row: Encoder) -> Encoder {
        row.fixed(field.0)
    }

    fn take(row: &mut Decoder<'_>) -> Result<Fingerprint, BadRow> {
        row.fixed().map(Fingerprint)
    }
}

impl Codec<Option<Fingerprint>> for Fixed {
    const SHAPE: &'static str = "0 or 1, 8 bytes";

    fn put(field: &Option<Fingerprint>, row: Encoder) -> Encoder {
        row.number(field.is_some()).fixed(field.unwrap_or_default().0)
    }

    fn take(row: &mut Decoder<'_>) -> Result<Option<Fingerprint>, BadRow> {
        let is_known = row.number()? != 0;
        let fingerprint = Fingerprint(row.fixed()?);
        Ok(is_known.then_some(fingerprint))
    }
}

impl Codec<Sketch> for Blob {
    const SHAPE: &'static str = "bytes of its slots, then second bytes, or none";

    fn put(field: &Sketch, row: Encoder) -> Encoder {
        let seconds = field.seconds.as_ref().map_or(&[][..], |seconds| &seconds[..]);
        row.bytes(&[&field.slots[..], seconds].concat())
    }

    fn take(row: &mut Decoder<'_>) -> Result<Sketch, BadRow> {
        let bytes = row.bytes()?;
        let cut = |_| row.bad("its sketch is cut short");
        let (slots, seconds) = bytes.split_at(bytes.len().min(SLOTS));
        let slots = Box::new(slots.try_into().map_err(cut)?);
        let seconds = match seconds {
            [] => None,
            seconds => Some(Box::new(seconds.try_into().map_err(cut)?)),
        };
        Ok(Sketch { slots, seconds })
    }
}

impl Codec<Option<ShownSketch>> for Blob {
    const SHAPE: &'static str = "bytes of its slots, or none";

    fn put(field: &Option<ShownSketch>, row: Encoder) -> Encoder {
        row.bytes(field.as_ref().map_or(&[][..], |shown| &shown.0[..]))
    }

    fn take(row: &mut Decoder<'_>) -> Result<Option<ShownSketch>, BadRow> {
        let slots = row.bytes()?;
        if slots.is_empty() {
            return Ok(None);
        }
        let slots: Result<[u8; SHOWN_SLOTS], _> = slots.try_into();
        let slots = slots.map_err(|_| row.bad("its sketch is cut short"))?;
        Ok(Some(ShownSketch(Box::new(slots))))
    }
}

impl Coded for Key {
    fn code(self) -> u64 {
        self as u64
    }

    fn from_code(code: u64) -> Option<Self> {
        Self::from_code(code)
    }
}

/// Code of a [`Found`] of the key of code 0.
const FOUND_BY_KEY: u64 = 16;

impl Coded for Found {
    fn code(self) -> u64 {
        match self {
            Self::New => 0,
            Self::Nid => 1,
            Self::Url => 2,
            Self::Key(key) => FOUND_BY_KEY + key.code(),
        }
    }

    fn from_code(code: u64) -> Option<Self> {
        match code {
            0 => Some(Self::New),
            1 => Some(Self::Nid),
            2 => Some(Self::Url),
            code => code.checked_sub(FOUND_BY_KEY).and_then(Key::from_code).map(Self::Key),
        }
    }
}

/// Bits of what a page asks for, whether it ends, and when.
pub(super) struct PageTerms;

impl Codec<Terms> for PageTerms {
    const SHAPE: &'static str = "bits, 0 or 1, ms since 1970, keys";

    fn put(field: &Terms, row: Encoder) -> Encoder {
        let Terms { noarchive, noai, tdm_reserved, unavailable_after } = *field;
        row.number(u8::from(noarchive) | u8::from(noai) << 1 | u8::from(tdm_reserved) << 2)
            .number(unavailable_after.is_some())
            .keys(unavailable_after.map_or(0, |end| end.0))
    }

    fn take(row: &mut Decoder<'_>) -> Result<Terms, BadRow> {
        let flags = row.number()?;
        let ends = row.number()? != 0;
        let end = Timestamp(row.keys()?);
        Ok(Terms {
            noarchive: flags & 1 != 0,
            noai: flags & 2 != 0,
            tdm_reserved: flags & 4 != 0,
            unavailable_after: ends.then_some(end),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::documents::{Content, Copy, Facts, Sent};
    use crate::store::Row as _;

    fn facts() -> Facts {
        Facts { author: "A. Author".to_owned(), images: 3, ..Facts::default() }
    }

    #[test]
    fn a_copy_is_stored_as_it_always_was() {
        let copy = Copy {
            content: 300,
            key: Key::Shingles,
            distance: 7,
            similarity: 999,
            popularity: 5,
            scored: true,
            title: "題".to_owned(),
            language: "zh".to_owned(),
            facts: facts(),
            terms: Terms {
                noarchive: true,
                noai: false,
                tdm_reserved: true,
                unavailable_after: Some(Timestamp(-5)),
            },
            left_out: 2,
            arrival: Timestamp(1_000),
            declared: "http://a/".to_owned(),
            shown: Some(ShownSketch(Box::new([9; SHOWN_SLOTS]))),
            doubtful: true,
            quality: Some(871),
        };
        let row = Encoder::new(5).number(300u64).number(5u64).number(7u64).number(999u64);
        let row = row.number(5u64).number(1u64).text("題").text("zh").text("A. Author");
        let row = row.text("").text("").text("").text("").text("").number(3u64);
        let row = row.number(5u64).number(1u64).keys(-5).number(2u64).keys(1_000);
        let row = row.text("http://a/").bytes(&[9; SHOWN_SLOTS]).number(1u64).number(872u64);
        let row = row.finish();
        assert_eq!(*copy.encode(), row);
        assert_eq!(Copy::decode(&row).unwrap(), copy);
        // The version before had no quality.
        let mut old = row[..row.len() - 2].to_vec();
        old[0] = 4;
        assert_eq!(Copy::decode(&old).unwrap(), Copy { quality: None, ..copy.clone() });
        let unknown = Copy { shown: None, terms: Terms::default(), ..copy };
        assert_eq!(Copy::decode(&unknown.encode()).unwrap(), unknown);
    }

    #[test]
    fn a_content_without_a_title_is_stored_as_it_always_was() {
        let content = Content {
            document: 1,
            hash: 2,
            fingerprint: Fingerprint(3),
            title_fingerprint: None,
            words: 4,
            shingles: 5,
            copies: 6,
            arrival: Timestamp(7),
            site: 8,
            edition: 9,
            sketch: Sketch { slots: Box::new([10; SLOTS]), seconds: None },
            sentences: vec![11, 12],
            others: Vec::new(),
        };
        let row = Encoder::new(5).number(1u64).wide(2).fixed(3).number(0u64).fixed(0);
        let row = row.number(4u64).number(5u64).number(6u64).keys(7).fixed(8).number(9u64);
        let row = row.bytes(&[10; SLOTS]).number(2u64).number(11u64).number(12u64).finish();
        assert_eq!(*content.encode(), row);
        assert_eq!(Content::decode(&row).unwrap(), content);
        // The version before had all but the last field, which takes nothing when it is empty.
        let mut old = row.clone();
        old[0] = 3;
        assert_eq!(Content::decode(&old).unwrap(), content);
        let more = Content { others: vec![(7, 300)], ..content.clone() };
        let longer = [&row[..], &[7, 0xAC, 2]].concat();
        assert_eq!(*more.encode(), longer);
        assert_eq!(Content::decode(&longer).unwrap(), more);
        let titled = Content { title_fingerprint: Some(Fingerprint(0)), ..content };
        assert_eq!(Content::decode(&titled.encode()).unwrap(), titled);
    }

    #[test]
    fn an_article_that_was_sent_keeps_by_what_it_was_found() {
        for (found, code) in [
            (Found::New, 0_u64),
            (Found::Nid, 1),
            (Found::Url, 2),
            (Found::Key(Key::First), 16),
            (Found::Key(Key::Merged), 22),
        ] {
            let (copy, arrival) = ("c".to_owned(), Timestamp(1));
            let sent = Sent { content: 1, copy, found, distance: 2, similarity: 3, arrival };
            let row = Encoder::new(1).number(1u64).text("c").number(code);
            let row = row.number(2u64).number(3u64).keys(1).finish();
            assert_eq!(*sent.encode(), row);
            assert_eq!(Sent::decode(&row).unwrap(), sent);
        }
        let unknown = Encoder::new(1).number(1u64).text("c").number(16 + Key::ALL.len() as u64);
        let unknown = unknown.finish();
        assert!(Sent::decode(&unknown).is_err());
    }
}
