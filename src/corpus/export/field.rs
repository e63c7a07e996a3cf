//! The fields of documents: where each comes from, and which are written.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::str::FromStr;
use std::sync::Arc;

use super::value::{Column, Columns, KeysValue, Kind, Record, Value};
use crate::base::clock::Timestamp;
use crate::corpus::documents::{
    Content, Copy, DocId, Document, Keep, KeptPage, PageDetails, read_body, read_page,
};
use crate::corpus::tables::CONTENTS;
use crate::store::{Error, View};
use crate::text::quality::Filters;
use crate::urls::PageUrl;

/// A document, as far as its fields need it.
pub(super) struct Subject<'a> {
    pub document: &'a Document,
    /// The copy that is shown.
    pub copy: Option<&'a Copy>,
    /// The document on which it hangs, if that may be taken apart.
    pub unsettled_with: Option<DocId>,
    /// Why its text is left out, or empty.
    pub withheld: &'static str,
    text: String,
    content: Option<Content>,
    page: Option<KeptPage>,
    details: PageDetails,
}

/// What has to be read for a field beside the document and its copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Need {
    Nothing,
    Text,
    Content,
    Page(Keep),
}

/// What has to be read for some fields.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Needs {
    text: bool,
    content: bool,
    page: bool,
}

impl Needs {
    pub(super) fn of<'a>(fields: impl IntoIterator<Item = &'a Field>) -> Self {
        fields.into_iter().fold(Self::default(), |mut needs, field| {
            match field.need {
                Need::Nothing => {}
                Need::Text => needs.text = true,
                Need::Content => needs.content = true,
                Need::Page(_) => needs.page = true,
            }
            needs
        })
    }
}

impl<'a> Subject<'a> {
    /// Reads what is needed of a document whose shown copy is `copy`.
    pub(super) fn read(
        view: &impl View,
        document: &'a Document,
        copy: Option<&'a Copy>,
        needs: Needs,
    ) -> Result<Self, Error> {
        let mut subject = Self {
            document,
            copy,
            unsettled_with: None,
            withheld: "",
            text: String::new(),
            content: None,
            page: None,
            details: PageDetails::default(),
        };
        if needs.text {
            subject.text = read_body(view, document.content)?.unwrap_or_default();
        }
        if needs.content {
            subject.content = view.get(CONTENTS, document.content)?;
        }
        if needs.page {
            subject.page = read_page(view, &document.canonical)?;
            if let Some(page) = &subject.page {
                subject.details = page.details()?;
            }
        }
        Ok(subject)
    }

    /// Leaves the text out, in every form.
    pub(super) fn withhold(&mut self, reason: &'static str) {
        self.withheld = reason;
        self.text.clear();
        self.details.markdown.clear();
    }

    /// Puts what filters leave of its text in the place of the text, if they change it, and masks
    /// its Markdown as well.
    pub(super) fn filter(&mut self, text: Option<String>, filters: &Filters) {
        if let Some(text) = text {
            self.text = text;
        }
        if let Cow::Owned(masked) = filters.mask(Cow::Borrowed(&self.details.markdown)).text {
            self.details.markdown = masked;
        }
    }

    fn page_url(&self) -> Option<PageUrl> {
        PageUrl::parse(&self.document.canonical).ok()
    }

    fn kept(&self, keep: Keep) -> Option<&KeptPage> {
        self.page.as_ref().filter(|page| page.has(keep))
    }

    /// Returns the host of its URL, or nothing.
    pub(super) fn host(&self) -> String {
        let url = self.page_url();
        url.and_then(|url| url.url().host_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// A field of documents.
pub struct Field {
    /// Its name, kind and form.
    pub column: Column,
    /// What it is.
    pub about: &'static str,
    /// It is written where no fields are named.
    pub is_usual: bool,
    need: Need,
    pub(super) of: fn(&Subject<'_>) -> Value,
}

impl std::fmt::Debug for Field {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.column.name)
    }
}

impl PartialEq for Field {
    fn eq(&self, other: &Self) -> bool {
        self.column == other.column
    }
}

impl Eq for Field {}

impl Field {
    const fn new(
        name: &'static str,
        kind: Kind,
        about: &'static str,
        of: fn(&Subject<'_>) -> Value,
    ) -> Self {
        let column = Column { name, kind, sparse: false };
        Self { column, about, is_usual: false, need: Need::Nothing, of }
    }

    const fn usual(mut self) -> Self {
        self.is_usual = true;
        self
    }

    const fn sparse(mut self) -> Self {
        self.column.sparse = true;
        self
    }

    const fn needs(mut self, need: Need) -> Self {
        self.need = need;
        self
    }

    /// Returns what has to be kept of pages for it, if it is not part of every store.
    #[must_use]
    pub fn kept_as(&self) -> Option<Keep> {
        match self.need {
            Need::Page(keep) => Some(keep),
            _ => None,
        }
    }

    /// Finds a field by its name, whatever its case; `first_seen` is `firstSeen`.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        let plain: String = name.chars().filter(|c| *c != '_').collect();
        FIELDS.iter().find(|field| field.column.name.eq_ignore_ascii_case(&plain))
    }

    /// Tells whether the value of a document is missing because it was not kept.
    pub(super) fn is_missing(&self, subject: &Subject<'_>) -> bool {
        self.kept_as().is_some_and(|keep| subject.kept(keep).is_none())
    }
}

fn seconds(time: Timestamp) -> Value {
    Value::Time(Timestamp(time.0.div_euclid(1000) * 1000))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("writing to a string cannot fail");
        text
    })
}

fn keys(content: &Content) -> KeysValue {
    let title = content.title_fingerprint;
    KeysValue {
        hash: format!("{:032x}", content.hash),
        title: title.map_or(String::new(), |title| format!("{:016x}", title.0)),
        words: u64::from(content.words),
        sentences: content.sentences.iter().map(|key| u64::from(*key)).collect(),
        sketch: hex(&content.sketch.slots[..]),
    }
}

use Kind::{Count, Date, Flag, Headers, Images, Keys, Links, Number, Text, Texts, Time};

/// All fields, in the order in which they are written unless they are named in another one.
pub static FIELDS: &[Field] = &[
    Field::new("docId", Text, "Identifier of the document", |s| s.document.id.to_string().into())
        .usual(),
    Field::new("url", Text, "URL of the canonical copy", |s| s.document.canonical.as_str().into())
        .usual(),
    Field::new("title", Text, "Its title", |s| s.document.title.as_str().into()).usual(),
    Field::new("text", Text, "Its main text, one line a block", |s| s.text.as_str().into())
        .usual()
        .needs(Need::Text),
    Field::new("markdown", Text, "The same text in Markdown", |s| match s.kept(Keep::Markdown) {
        Some(_) => s.details.markdown.as_str().into(),
        None => Value::None,
    })
    .needs(Need::Page(Keep::Markdown)),
    Field::new("language", Text, "Its language (ISO 639-1), or empty", |s| {
        s.document.language.as_str().into()
    })
    .usual(),
    Field::new("author", Text, "Its authors, joined by `, `", |s| {
        s.document.facts.author.as_str().into()
    })
    .usual(),
    Field::new("authors", Texts, "Its authors, each by itself", |s| {
        let author = &s.document.facts.author;
        let names = author.split(", ").filter(|name| !name.is_empty());
        Value::Texts(names.map(str::to_owned).collect())
    }),
    Field::new("published", Date, "When it says it was published, or empty", |s| {
        s.document.facts.published.as_str().into()
    })
    .usual(),
    Field::new("modified", Date, "When it says it was last changed, or empty", |s| {
        s.document.facts.modified.as_str().into()
    })
    .usual(),
    Field::new("site", Text, "Name of its site, or empty", |s| {
        s.document.facts.site.as_str().into()
    })
    .usual(),
    Field::new("description", Text, "Its description of itself, or empty", |s| {
        s.document.facts.description.as_str().into()
    })
    .usual(),
    Field::new("category", Text, "Its category, as whoever sent it names it", |s| {
        s.document.facts.category.as_str().into()
    })
    .usual(),
    Field::new("images", Count, "Images in it, as whoever sent it counted them", |s| {
        Value::Count(s.document.facts.images)
    })
    .usual(),
    Field::new("popularity", Count, "Its popularity: hosts that link to it, or a score", |s| {
        Value::Count(s.document.popularity)
    })
    .usual(),
    Field::new("copies", Count, "Copies of the document, this one among them", |s| {
        Value::Count(s.document.copies)
    })
    .usual(),
    Field::new("firstSeen", Time, "When the first copy came", |s| {
        seconds(s.document.first_arrival)
    })
    .usual(),
    Field::new("lastSeen", Time, "When the newest copy came, or one came again", |s| {
        seconds(s.document.last_arrival)
    })
    .usual(),
    Field::new("withheld", Text, "Why the text was left out; empty if it was not", |s| {
        s.withheld.into()
    })
    .usual(),
    Field::new("unsettled", Flag, "It may turn out to be a copy of another document", |s| {
        Value::Flag(s.unsettled_with.is_some())
    })
    .usual()
    .sparse(),
    Field::new("unsettledWith", Text, "Identifier of that document, or empty", |s| {
        s.unsettled_with.map_or(String::new(), |id| id.to_string()).into()
    })
    .usual()
    .sparse(),
    Field::new("host", Text, "Host of the URL", |s| s.host().into()),
    Field::new("domain", Text, "Registrable domain of the host", |s| {
        let domain = s.page_url().and_then(|url| url.host_key().registrable_domain());
        domain.unwrap_or_else(|| s.host()).into()
    }),
    Field::new("length", Count, "Characters of the text", |s| {
        Value::Count(s.text.chars().count() as u64)
    })
    .needs(Need::Text),
    Field::new("words", Count, "Words of the text that were counted", |s| {
        s.content.as_ref().map(|content| u64::from(content.words)).into()
    })
    .needs(Need::Content),
    Field::new("quality", Number, "How good the text is likely to be (F1 expected, 0 to 1)", |s| {
        let thousandths = s.copy.and_then(|copy| copy.quality);
        thousandths.map_or(Value::None, |quality| Value::Number(quality as f64 / 1000.0))
    }),
    Field::new("links", Links, "Links out, each URL once, with their texts", |s| {
        match s.kept(Keep::Links) {
            Some(_) => Value::Links(s.details.links.clone()),
            None => Value::None,
        }
    })
    .needs(Need::Page(Keep::Links)),
    Field::new("imageList", Images, "Images, the main one first", |s| match s.kept(Keep::Images) {
        Some(_) => Value::Images(s.details.images.clone()),
        None => Value::None,
    })
    .needs(Need::Page(Keep::Images)),
    Field::new("status", Count, "HTTP status of the answer", |s| {
        s.kept(Keep::Headers).map(|page| u64::from(page.status)).into()
    })
    .needs(Need::Page(Keep::Headers)),
    Field::new("headers", Headers, "Headers of the answer", |s| match s.kept(Keep::Headers) {
        Some(page) => Value::Headers(Box::new(page.headers.clone())),
        None => Value::None,
    })
    .needs(Need::Page(Keep::Headers)),
    Field::new("fetched", Time, "When the answer came", |s| {
        s.kept(Keep::Headers).map_or(Value::None, |page| seconds(page.fetched))
    })
    .needs(Need::Page(Keep::Headers)),
    Field::new("fingerprint", Text, "Fingerprint of the text: 16 hexadecimal digits", |s| {
        s.content
            .as_ref()
            .map_or(Value::None, |content| format!("{:016x}", content.fingerprint.0).into())
    })
    .needs(Need::Content),
    Field::new("keys", Keys, "Other keys by which copies are found", |s| {
        s.content.as_ref().map_or(Value::None, |content| Value::Keys(Box::new(keys(content))))
    })
    .needs(Need::Content),
];

/// Some fields in an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fields {
    list: Arc<[&'static Field]>,
    columns: Columns,
    /// They were named one by one.
    pub(super) are_named: bool,
}

impl Fields {
    fn new(list: Vec<&'static Field>, are_named: bool) -> Self {
        let columns = list.iter().map(|field| field.column).collect();
        Self { list: list.into(), columns, are_named }
    }

    /// Returns the fields that are written where none are named. Formats with types of their own
    /// have the authors as a list; Markdown has its text.
    #[must_use]
    pub fn usual(format: &super::Format) -> Self {
        let has = |field: &&Field| match field.column.name {
            "author" => field.is_usual && !format.is_typed,
            "authors" => format.is_typed,
            "markdown" => format.is_markdown,
            _ => field.is_usual,
        };
        Self::new(FIELDS.iter().filter(has).collect(), false)
    }

    /// Returns the fields.
    pub fn iter(&self) -> impl Iterator<Item = &'static Field> {
        self.list.iter().copied()
    }

    pub(super) fn columns(&self) -> &Columns {
        &self.columns
    }

    /// Returns their names.
    #[must_use]
    pub fn names(&self) -> Vec<&'static str> {
        self.iter().map(|field| field.column.name).collect()
    }

    pub(super) fn record(&self, subject: &Subject<'_>) -> Record {
        let values = self.iter().map(|field| (field.of)(subject)).collect();
        Record { columns: self.columns.clone(), values }
    }
}

impl FromStr for Fields {
    type Err = String;

    /// Reads names with commas between them; `all` stands for all fields, `usual` for the usual
    /// ones.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut list: Vec<&'static Field> = Vec::new();
        let mut are_named = false;
        for name in text.split(',').map(str::trim) {
            let found: Vec<&'static Field> = match name {
                "all" => FIELDS.iter().collect(),
                "usual" => FIELDS.iter().filter(|field| field.is_usual).collect(),
                _ => {
                    are_named = true;
                    Field::named(name).into_iter().collect()
                }
            };
            if found.is_empty() {
                let all: Vec<&str> = FIELDS.iter().map(|field| field.column.name).collect();
                let all = all.join(", ");
                return Err(format!("`{name}` is no field: there are {all}; and all, usual"));
            }
            for field in found {
                if !list.contains(&field) {
                    list.push(field);
                }
            }
        }
        Ok(Self::new(list, are_named))
    }
}

/// The columns of copies that were dropped.
pub(super) const DROPPED: &[Column] = &[
    Column { name: "url", kind: Text, sparse: false },
    Column { name: "docId", kind: Text, sparse: false },
    Column { name: "canonical", kind: Text, sparse: false },
    Column { name: "reason", kind: Text, sparse: false },
    Column { name: "rule", kind: Count, sparse: true },
    Column { name: "feed", kind: Count, sparse: true },
    Column { name: "distance", kind: Count, sparse: false },
    Column { name: "similarity", kind: Number, sparse: false },
    Column { name: "rootSimilarity", kind: Number, sparse: false },
    Column { name: "popularity", kind: Count, sparse: false },
    Column { name: "title", kind: Text, sparse: false },
    Column { name: "declaredCanonical", kind: Text, sparse: true },
    Column { name: "seen", kind: Time, sparse: false },
];

/// The columns of documents that were left out.
pub(super) const WITHHELD: &[Column] = &[
    Column { name: "docId", kind: Text, sparse: false },
    Column { name: "url", kind: Text, sparse: false },
    Column { name: "reason", kind: Text, sparse: false },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_named_in_any_case_and_unknown_ones_are_told_the_list() {
        let fields: Fields = "URL, first_seen,usual".parse().unwrap();
        assert_eq!(fields.names()[..3], ["url", "firstSeen", "docId"]);
        assert!(fields.are_named && fields.names().len() == 19, "{:?}", fields.names());
        let error = "url,pubished".parse::<Fields>().unwrap_err();
        assert!(error.starts_with("`pubished` is no field: there are docId, url,"), "{error}");
        let all: Fields = "all".parse().unwrap();
        assert_eq!((all.names().len(), all.are_named), (FIELDS.len(), false));
    }
}
