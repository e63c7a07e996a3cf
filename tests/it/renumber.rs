//! Rows and keys that move to other numbers of documents and contents.

use proptest::prelude::*;
use uniqcrawl::corpus::documents::{Content, Copy, DocId, Document, Sent, StoredBody};
use uniqcrawl::frontier::Address;
use uniqcrawl::store::{
    Codec, ContentNumber, DocumentNumber, Encoder, Key, List, Renumber, Row as _,
};

/// Gives every number another one, and notes which it was asked for.
#[derive(Default)]
struct Noted(Vec<(char, u64)>);

impl Renumber for Noted {
    fn document(&mut self, number: u64) -> u64 {
        self.0.push(('d', number));
        number + 1
    }

    fn content(&mut self, number: u64) -> u64 {
        self.0.push(('c', number));
        number + 2
    }
}

type Copies = (DocumentNumber, &'static str);
type Twin = (u128, ContentNumber);
type Growth = (u64, DocumentNumber);
type Last = Option<ContentNumber>;
type Lists = List<(DocumentNumber, ContentNumber)>;

proptest! {
    #[test]
    fn each_number_of_a_row_or_key_is_mapped_once(
        one in 0u64..1 << 40,
        other in 0u64..1 << 40,
        rest in 0u64..1 << 40,
        url in "[a-z/:]{0,20}",
    ) {
        let mut noted = Noted::default();
        let blank = Encoder::new(4).number(one).number(0u64).number(1u64).number(2u64);
        let blank = blank.number(rest).number(0u64);
        let blank = (0..8).fold(blank, |row, _| row.text(&url)).number(3u64);
        let copy = blank.number(0u64).number(0u64).keys(0).number(0u64).keys(5).text(&url);
        let copy = copy.bytes(&[]).number(0u64).finish();
        let mut copy = Copy::decode(&copy).unwrap();
        let before = copy.clone();
        copy.renumber(&mut noted);
        prop_assert_eq!(&copy, &Copy { content: one + 2, ..before.clone() });
        let id = DocId(7);
        let mut document = Document::first(id, other, &url, &before);
        let first = document.clone();
        document.renumber(&mut noted);
        let mapped = Document { root: other + 2, content: one + 2, ..first };
        prop_assert_eq!(document, mapped);
        let content = Encoder::new(3).number(rest).wide(1).fixed(one).number(1u64).fixed(other);
        let content = content.number(1u64).number(1u64).number(one).keys(1).fixed(1);
        let content = content.number(1u64).bytes(&[1; 256]).number(1u64).number(9u64).finish();
        let mut content = Content::decode(&content).unwrap();
        let before = content.clone();
        content.renumber(&mut noted);
        prop_assert_eq!(content, Content { document: rest + 1, ..before });
        let sent = Encoder::new(1).number(one).text(&url).number(1u64).number(1u64);
        let mut sent = Sent::decode(&sent.number(1u64).keys(1).finish()).unwrap();
        sent.renumber(&mut noted);
        prop_assert_eq!(sent.content, one + 2);
        for (base, mapped) in [(0, 0), (other + 1, other + 3)] {
            let row = |base: u64| Encoder::new(1).number(base).number(rest).bytes(&[1]).finish();
            let mut body = StoredBody::decode(&row(base)).unwrap();
            body.renumber(&mut noted);
            prop_assert_eq!(body.encode().into_owned(), row(mapped));
        }
        let expected = [('c', one), ('c', other), ('c', one), ('d', rest), ('c', one), ('c', other)];
        prop_assert_eq!(&noted.0, &expected);
    }

    #[test]
    fn each_number_of_a_state_a_key_or_a_list_is_mapped_once(
        one in 0u64..1 << 40,
        other in 0u64..1 << 40,
        url in "[a-z/:]{0,20}",
    ) {
        let mut noted = Noted::default();
        for state in 0..6_u64 {
            let row = |number: u64| {
                let row = Encoder::new(1).number(state).number(number).text(&url).number(one);
                let row = [4, 1, 9, 0, 0, 4, 200, 0].iter().fold(row, |row, n: &u64| row.number(*n));
                let row = row.keys(10).keys(0).keys(0).text(&url).number(0u64).number(0u64);
                let row = row.text("").text("").keys(0).number(one).number(2u64).number(3u64);
                row.keys(0).number(0u64).number(0u64).number(false).number(8u64).finish()
            };
            // A reason that there is.
            let number = if state == 3 { 30 } else { other };
            let stored = state == 1;
            let Ok(mut address) = Address::decode(&row(number)) else { continue };
            address.renumber(&mut noted);
            prop_assert_eq!(address.document(), stored.then_some(other + 1));
            prop_assert_eq!(std::mem::take(&mut noted.0).len(), usize::from(stored));
        }
        prop_assert_eq!(Copies::renumber((one, &url), &mut noted), (one + 1, url.as_str()));
        prop_assert_eq!(Twin::renumber((9, one), &mut noted), (9, one + 2));
        prop_assert_eq!(Growth::renumber((other, one), &mut noted), (other, one + 1));
        prop_assert_eq!(Last::renumber(Some(other), &mut noted), Some(other + 2));
        prop_assert_eq!(Last::renumber(None, &mut noted), None);
        let local = <u64 as Key>::renumber(one, &mut noted);
        prop_assert_eq!(local, one, "a number of something else");
        let mut list = vec![(one, other), (other, one)];
        <Lists as Codec<Vec<(u64, u64)>>>::renumber(&mut list, &mut noted);
        prop_assert_eq!(list, [(one + 1, other + 2), (other + 1, one + 2)]);
        let keys = [('d', one), ('c', one), ('d', one), ('c', other)];
        let lists = [('d', one), ('c', other), ('d', other), ('c', one)];
        prop_assert_eq!(&noted.0, &[keys, lists].concat());
    }
}
