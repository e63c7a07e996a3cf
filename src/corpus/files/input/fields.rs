//! What the fields of documents are called, as given or as found.

use super::super::Error;

/// Names under which a text is found by itself.
const TEXTS: [&str; 16] = [
    "text",
    "content",
    "body",
    "raw_content",
    "article",
    "maintext",
    "main_text",
    "article_text",
    "article_body",
    "full_text",
    "plain_text",
    "clean_text",
    "document",
    "passage",
    "story",
    "contents",
];
const TITLES: [&str; 2] = ["title", "headline"];
const IDS: [&str; 5] = ["id", "doc_id", "docid", "document_id", "uuid"];
const URLS: [&str; 5] = ["url", "uri", "link", "source_url", "target_uri"];
const POPULARITIES: [&str; 1] = ["popularity"];
const DATES: [&str; 6] =
    ["date", "published", "publish_date", "date_publish", "published_at", "timestamp"];
const LANGUAGES: [&str; 2] = ["language", "lang"];

/// Mean characters from which a field may be the text by its length alone.
const LONG_CHARS: f64 = 200.0;

/// Fields that an error names at most.
const NAMED_MAX: usize = 20;

/// Names of fields that were given.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldNames {
    /// The text.
    pub text: Option<String>,
    /// The title.
    pub title: Option<String>,
    /// The identifier.
    pub id: Option<String>,
    /// The URL.
    pub url: Option<String>,
    /// The popularity.
    pub popularity: Option<String>,
    /// When it was published.
    pub date: Option<String>,
}

/// Names of the fields of one source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Fields {
    /// The text; empty where a source has no fields.
    pub text: String,
    /// The title.
    pub title: Option<String>,
    /// The identifier.
    pub id: Option<String>,
    /// The URL.
    pub url: Option<String>,
    /// The popularity.
    pub popularity: Option<String>,
    /// When it was published.
    pub date: Option<String>,
    /// The language, and another name of it.
    pub languages: [Option<String>; 2],
}

impl Fields {
    /// The names that a document has here.
    #[must_use]
    pub(crate) fn usual() -> Self {
        let name = |name: &str| Some(name.to_owned());
        Self {
            text: TEXTS[0].to_owned(),
            title: name(TITLES[0]),
            id: name(IDS[0]),
            url: name(URLS[0]),
            popularity: name(POPULARITIES[0]),
            date: name(DATES[0]),
            languages: LANGUAGES.map(name),
        }
    }

    /// All names.
    pub(crate) fn all(&self) -> impl Iterator<Item = &str> {
        let Self { text, title, id, url, popularity, date, languages } = self;
        let optional = [title, id, url, popularity, date, &languages[0], &languages[1]];
        std::iter::once(text.as_str()).chain(optional.into_iter().filter_map(Option::as_deref))
    }
}

/// What a field or column has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Values {
    /// Texts.
    Text,
    /// Anything else that is one value.
    Plain,
    /// Lists or objects.
    Nested,
}

/// A field or column of a source.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) values: Values,
    /// What it is called where it is no text.
    pub(super) kind: String,
    /// Characters of its texts on average.
    pub(super) mean_chars: f64,
}

impl Field {
    fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name)
    }
}

/// Finds the fields of a source among those that it has.
pub(super) fn find(file: &str, all: &[Field], given: &FieldNames) -> Result<Fields, Error> {
    let optional = |given: &Option<String>, usual: &[&str]| -> Option<String> {
        if given.is_some() {
            return given.clone();
        }
        let known = |name: &&str| {
            let mut found = all.iter().filter(|field| field.values != Values::Nested);
            found.find(|field| field.is(name)).map(|field| field.name.clone())
        };
        usual.iter().find_map(known)
    };
    let languages = LANGUAGES.map(|name| {
        let text = |field: &&Field| field.name == name && field.values == Values::Text;
        all.iter().find(text).map(|field| field.name.clone())
    });
    let fields = Fields {
        text: find_text(file, all, given.text.as_deref())?,
        title: optional(&given.title, &TITLES),
        id: optional(&given.id, &IDS),
        url: optional(&given.url, &URLS),
        popularity: optional(&given.popularity, &POPULARITIES),
        date: optional(&given.date, &DATES),
        languages,
    };
    let (file, names) = (file.to_owned(), names(all));
    for (option, field) in [
        ("title", &given.title),
        ("id", &given.id),
        ("url", &given.url),
        ("popularity", &given.popularity),
        ("date", &given.date),
    ] {
        let Some(name) = field else { continue };
        let Some(found) = all.iter().find(|known| known.name == *name) else {
            let detail = format!("it has no field `{name}`");
            return Err(Error::Field { file, detail, names, option });
        };
        if found.values == Values::Nested {
            let detail = format!("`{name}` is {}, and not one value", found.kind);
            return Err(Error::Field { file, detail, names, option });
        }
    }
    Ok(fields)
}

fn find_text(file: &str, all: &[Field], given: Option<&str>) -> Result<String, Error> {
    let error = |detail: String| Error::Field {
        file: file.to_owned(),
        detail,
        names: names(all),
        option: "text",
    };
    if let Some(name) = given {
        let Some(found) = all.iter().find(|field| field.name == name) else {
            return Err(error(format!("it has no field `{name}`")));
        };
        if found.values != Values::Text {
            return Err(error(format!("`{name}` is {}, and not text", found.kind)));
        }
        return Ok(name.to_owned());
    }
    let texts = || all.iter().filter(|field| field.values == Values::Text);
    if let Some(text) = texts().find(|field| field.name == TEXTS[0]) {
        return Ok(text.name.clone());
    }
    let known: Vec<&Field> =
        texts().filter(|field| TEXTS.iter().any(|name| field.is(name))).collect();
    let long: Vec<&Field> = texts().filter(|field| field.mean_chars >= LONG_CHARS).collect();
    let wrong = all.iter().find(|field| TEXTS.iter().any(|name| field.is(name)));
    if known.is_empty()
        && let Some(field) = wrong
    {
        return Err(error(format!("`{}` is {}, and not text", field.name, field.kind)));
    }
    let candidates = if known.is_empty() { long } else { known };
    match candidates.as_slice() {
        [one] => Ok(one.name.clone()),
        [] => Err(error("no field is the text for sure".to_owned())),
        [first, second, ..] => {
            Err(error(format!("both `{}` and `{}` may be the text", first.name, second.name)))
        }
    }
}

fn names(all: &[Field]) -> String {
    let names: Vec<&str> = all.iter().map(|field| field.name.as_str()).collect();
    match names.as_slice() {
        [] => "none".to_owned(),
        few if few.len() <= NAMED_MAX => few.join(", "),
        many => format!("{} and {} more", many[..NAMED_MAX].join(", "), many.len() - NAMED_MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(name: &str, values: Values, mean_chars: f64) -> Field {
        Field { name: name.to_owned(), values, kind: "a number".to_owned(), mean_chars }
    }

    fn text_of(all: &[Field]) -> Result<String, String> {
        let found = find("in.jsonl", all, &FieldNames::default());
        found.map(|fields| fields.text).map_err(|error| error.to_string())
    }

    #[test]
    fn a_text_is_found_where_there_is_one_candidate() {
        let text = |name, mean| field(name, Values::Text, mean);
        assert_eq!(text_of(&[text("content", 9.0), text("id", 3.0)]).unwrap(), "content");
        assert_eq!(text_of(&[text("content", 9.0), text("text", 3.0)]).unwrap(), "text");
        assert_eq!(text_of(&[text("Body", 9.0), text("x", 900.0)]).unwrap(), "Body");
        assert_eq!(text_of(&[text("a", 20.0), text("b", 300.0)]).unwrap(), "b");
        let error = text_of(&[text("body", 9.0), text("content", 9.0)]).unwrap_err();
        assert!(error.contains("both `body` and `content`") && error.contains("--text-field"));
        let error = text_of(&[text("a", 9.0), text("b", 9.0)]).unwrap_err();
        assert!(error.contains("it has: a, b"), "{error}");
        let error = text_of(&[field("text", Values::Plain, 0.0)]).unwrap_err();
        assert!(error.contains("`text` is a number"), "{error}");
        let error = text_of(&[field("text", Values::Nested, 0.0), text("b", 300.0)]).unwrap_err();
        assert!(error.contains("`text` is a number"), "{error}");
    }

    #[test]
    fn a_name_that_is_given_must_be_there() {
        let all = [field("text", Values::Text, 1.0), field("a", Values::Text, 1.0)];
        let given = FieldNames { title: Some("b".to_owned()), ..FieldNames::default() };
        let error = find("in.jsonl", &all, &given).unwrap_err().to_string();
        assert!(error.contains("no field `b`") && error.contains("--title-field"), "{error}");
        let given = FieldNames { text: Some("a".to_owned()), ..FieldNames::default() };
        assert_eq!(find("in.jsonl", &all, &given).unwrap().text, "a");
    }
}
