//! Names and words that tell what a date is the date of.

/// Names of `<meta>` elements with the date of publication, and how far they are believed.
pub(super) const PUBLISHED_NAMES: [(&str, f32); 34] = [
    ("article:published_time", 0.93),
    ("og:article:published_time", 0.93),
    ("article:published", 0.9),
    ("og:published_time", 0.9),
    ("parsely-pub-date", 0.9),
    ("sailthru.date", 0.85),
    ("citation_publication_date", 0.85),
    ("citation_online_date", 0.88),
    ("citation_date", 0.8),
    ("dc.date.issued", 0.88),
    ("dcterms.issued", 0.85),
    ("dc.date.created", 0.8),
    ("dcterms.created", 0.75),
    ("dcterms.date", 0.8),
    ("dc.date", 0.8),
    ("datepublished", 0.9),
    ("publish-date", 0.9),
    ("publish_date", 0.9),
    ("published_date", 0.9),
    ("published-date", 0.9),
    ("publication_date", 0.88),
    ("publishdate", 0.9),
    ("pubdate", 0.88),
    ("publish_time", 0.88),
    ("published_at", 0.88),
    ("article_date_original", 0.85),
    ("article.published", 0.88),
    ("displaydate", 0.8),
    ("bt:pubdate", 0.85),
    ("rnews:datepublished", 0.85),
    ("creation_date", 0.7),
    ("date_published", 0.88),
    ("weibo: article:create_at", 0.85),
    ("date", 0.75),
];

/// Names of `<meta>` elements with the date of the last change.
pub(super) const MODIFIED_NAMES: [(&str, f32); 12] = [
    ("article:modified_time", 0.9),
    ("og:updated_time", 0.75),
    ("article:modified", 0.85),
    ("datemodified", 0.85),
    ("dcterms.modified", 0.85),
    ("dc.date.modified", 0.85),
    ("last-modified", 0.65),
    ("lastmod", 0.7),
    ("revised", 0.65),
    ("updated_time", 0.75),
    ("modified_time", 0.8),
    ("weibo: article:update_at", 0.8),
];

/// Words that stand beside a date of publication, in lower case.
const PUBLISHED_WORDS: [&str; 45] = [
    "publish",
    "posted",
    "post date",
    "release",
    "date:",
    "asked",
    "created",
    "submitted",
    "发布",
    "发表",
    "時間",
    "时间",
    "日期",
    "發佈",
    "發布",
    "發表",
    "投稿",
    "公開",
    "掲載",
    "配信",
    "登録",
    "来源",
    "來源",
    "稿源",
    "veröffentlicht",
    "erstellt",
    "publié",
    "publie",
    "publicado",
    "fecha",
    "data:",
    "pubblicato",
    "opublikowano",
    "dodano",
    "опубликован",
    "дата",
    "добавлен",
    "δημοσί",
    "ημερομηνία",
    "입력",
    "등록",
    "작성",
    "datum",
    "publicerad",
    "inserito",
];

/// Words that stand beside a date of a change, in lower case.
const MODIFIED_WORDS: [&str; 28] = [
    "updated",
    "update:",
    "modified",
    "last edited",
    "last revised",
    "revised",
    "reviewed",
    "更新",
    "修改",
    "編集日",
    "最終",
    "aktualisiert",
    "geändert",
    "stand:",
    "mis à jour",
    "mise à jour",
    "modifié",
    "actualizado",
    "actualización",
    "aggiornato",
    "zaktualizowano",
    "aktualizacja",
    "обновлен",
    "изменен",
    "ενημέρωση",
    "τελευταία",
    "수정",
    "edited",
];

/// Words beside dates that are not those of the page, in lower case.
const OTHER_WORDS: [&str; 34] = [
    "joined",
    "join date",
    "registered",
    "member since",
    "copyright",
    "©",
    "expire",
    "deadline",
    "born",
    "valid until",
    "last visit",
    "last seen",
    "last active",
    "since:",
    "注册",
    "版权",
    "版權",
    "截止",
    "注冊",
    "有效期",
    "活动时间",
    "upcoming",
    "starts",
    "ends on",
    "event date",
    "apply by",
    "best before",
    "release date",
    "due date",
    "effective",
    "established",
    "今天是",
    "effective date",
    "last activity",
];

/// What a date says of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Says {
    Published,
    Modified,
    /// A bare date.
    Bare,
    /// The date of something else.
    Other,
}

/// Returns what the last telling word of a text says.
pub(super) fn in_words(text: &str) -> Says {
    if !text.contains(|c: char| c.is_alphabetic() || c == '©') {
        return Says::Bare;
    }
    let text = text.to_lowercase();
    let any = |words: &[&str]| words.iter().filter_map(|word| text.rfind(word)).max();
    let found = [
        (any(&OTHER_WORDS), Says::Other),
        (any(&MODIFIED_WORDS), Says::Modified),
        (any(&PUBLISHED_WORDS), Says::Published),
    ];
    let last = found.into_iter().filter(|(at, _)| at.is_some()).max_by_key(|(at, _)| *at);
    last.map_or(Says::Bare, |(_, says)| says)
}
