//! How much a text looks like a text that somebody wrote, and not like bytes that were read in the
//! wrong character encoding.
//!
//! A wrong reading rarely fails: most bytes are characters in most encodings. It shows in what the
//! characters are (rare Han characters, symbols within words, control characters) and in how they
//! stand together (scripts that change within a word, capitals after small letters).

use std::sync::LazyLock;

use encoding_rs::{BIG5, EUC_JP, EUC_KR, Encoding, GBK};

/// Characters beyond ASCII that are looked at.
const CHARACTERS_MAX: usize = 3_000;

/// The most frequent Han characters of simplified and traditional Chinese and of Japanese: three
/// in five of any text, and one in thirty of a wrong reading.
const FREQUENT_HAN: &str = "\
    一万三上下不与专业两並个中为主之乐也了事于互些交产京人今从他付代令以们仮件价任会但位体何 \
    作你使來例供侵保信修個們候値健備傳元先免入內全兩公共关其具内再军凤処凰出分切列初別利到制 \
    則削前割力加务动効動務包化北区區华单南単博原参及友发取受口古可台号司各合同名后向吧含告员 \
    周味呼命和品員商問啟單器回因囲国图國圖在地场型域執基報場境增変外多大天失套女好如始子字存 \
    學它安完定实実客家容密實对対専将將專對小少就局展属工已市常平年并广应度康廣建开式引張当录 \
    形影役後従得從御微心必応思性息情想意感態應成我或户戻房所手打扱技投択报担拡持指挙探接推提 \
    換撃操改攻政敗数數文料断新方於无既日时明星春是時暗更書最會月有服期未本机权来果查査标格案 \
    検業構様樂標権機檔權次正此步死段每比民氣水求決沒法注活流浪海消游源準灣点為热無然照熱片版 \
    物特状现現球理環生產用由电男界番異當病発發的盘目直相看知码確碼示社票种科称移程種稱空立站 \
    章第等答策算管節範簡系約純素索細終組経結統經続網總级组经络统网置署美群義翻老考者而联聞股 \
    育能自與般良节英药華萬藥號血行衛表被装補裝複要見規視覧观视解言計訊記設許訳証話詳認語說説 \
    読調論識警護變计讯记论设证评话说调象費資質财费资起路身車轉车软込过运返还这进追送选這通造 \
    連進遊運過道違適選部都配醫重量金錯録鍵長长門開間関關门问间闻际降限院除階際集雑電需非面頁 \
    項順頭題類页频题食首験體高點";

/// The most frequent syllables of Korean: three in four of any text.
const FREQUENT_HANGUL: &str = "\
    가값개거게경고과구그기나내는니다단대데도동되된드들디라렉력령로록료를름리만면명모못문바버 \
    번변보부분비사상서설성세션소수스습시식실아안않야어업없에여열오옵요용원위유으은을음의이인 \
    일입있자작장재적전정제중지출치크터트파패표프하한할함합해했행형호";

/// Letters with marks that European languages and Vietnamese use often, small.
const FREQUENT_LATIN: &str = "éèêàâäáãåąăçćčďđěęğîíıłñńňôöóõőơřśšşßţťüúůűưžźżțșāēīėūįųļņ";

/// Other letters of theirs, and what the former become in another encoding of the same region.
const RARER_LATIN: &str = "ëïûùýæøœ";

/// Small letters of other alphabets that make up most of their texts.
const FREQUENT_LETTERS: &str = "оеаинтсрвлкмдпуяіъαοιετσνηρπκμλςίόάέήύώ\
    والمنيرتبةדיוהלמרתאשבנакรนอาเงมยลวดท";

/// What a character tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CharClass {
    /// ASCII letters.
    Ascii,
    /// Digits, blanks, and whatever else tells nothing.
    Other,
    /// A letter of the Latin script with a mark, small or capital.
    Latin {
        capital: bool,
    },
    /// A letter of another alphabet with capitals.
    Cased {
        script: u8,
        capital: bool,
    },
    /// A letter of an alphabet without capitals, or a mark on one.
    Uncased {
        script: u8,
    },
    Han,
    Kana,
    Hangul,
    /// Half-width kana, which hardly anybody uses.
    HalfKana,
    /// A mark on the letter before it.
    Combining,
    /// Punctuation of Chinese, Japanese and Korean.
    Wide,
    /// A symbol that stands between words, and not in them.
    Symbol,
    /// Box drawing, letters in circles and the like.
    Odd,
    /// Nothing that anybody writes: controls, private use, what could not be decoded.
    Never,
}

/// What stands beside a character.
#[derive(Debug, Clone, Copy)]
struct Neighbours {
    before: CharClass,
    after: CharClass,
}

impl Neighbours {
    fn either(self, is: impl Fn(CharClass) -> bool) -> bool {
        is(self.before) || is(self.after)
    }

    fn both(self, is: impl Fn(CharClass) -> bool) -> bool {
        is(self.before) && is(self.after)
    }
}

/// Set of characters of the basic plane.
struct Chars(Vec<u64>);

impl Chars {
    fn of(text: impl IntoIterator<Item = char>) -> Self {
        let mut bits = vec![0u64; 0x1_0000 / 64];
        for c in text {
            if let Some(word) = bits.get_mut(c as usize / 64) {
                *word |= 1 << (c as usize % 64);
            }
        }
        Self(bits)
    }

    fn has(&self, c: char) -> bool {
        self.0.get(c as usize / 64).is_some_and(|word| word >> (c as usize % 64) & 1 == 1)
    }
}

static FREQUENT: LazyLock<Chars> = LazyLock::new(|| {
    let all = [FREQUENT_HAN, FREQUENT_HANGUL, FREQUENT_LATIN, FREQUENT_LETTERS];
    Chars::of(all.iter().flat_map(|text| text.chars()))
});

/// The Han characters and syllables that the national standards count among the usual ones: the
/// first level of GB 2312, Big5 and JIS X 0208, and all of KS X 1001.
static USUAL: LazyLock<Chars> = LazyLock::new(|| {
    let rows = |encoding: &'static Encoding, leads: std::ops::RangeInclusive<u8>, low: bool| {
        let trails = (0x40..=0x7Eu8).filter(move |_| low).chain(0xA1..=0xFE);
        let trails: Vec<u8> = trails.collect();
        let bytes = leads.flat_map(|lead| trails.iter().flat_map(move |trail| [lead, *trail]));
        let bytes: Vec<u8> = bytes.collect();
        encoding.decode_without_bom_handling(&bytes).0.into_owned()
    };
    let levels = [
        rows(GBK, 0xB0..=0xD7, false),
        rows(BIG5, 0xA4..=0xC6, true),
        rows(EUC_JP, 0xB0..=0xCF, false),
        rows(EUC_KR, 0xB0..=0xC8, false),
    ];
    Chars::of(levels.iter().flat_map(|text| text.chars()))
});

/// Returns how plausible a text is, -1000 to 1000, and of how many characters that was told.
pub(super) fn plausibility(text: &str) -> (i32, usize) {
    let (mut sum, mut counted) = (0i64, 0usize);
    let mut before = CharClass::Other;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let class = class(c);
        if !c.is_ascii() {
            let after = chars.peek().map_or(CharClass::Other, |next| self::class(*next));
            if let Some(weight) = weight(c, class, Neighbours { before, after }) {
                sum += i64::from(weight);
                counted += 1;
                if counted >= CHARACTERS_MAX {
                    break;
                }
            }
        }
        before = class;
    }
    let mean = sum.checked_div(i64::try_from(counted).unwrap_or(i64::MAX)).unwrap_or(0);
    (mean as i32, counted)
}

#[expect(clippy::match_same_arms, reason = "in the order of the characters")]
fn class(c: char) -> CharClass {
    let cased = |script| CharClass::Cased { script, capital: c.is_uppercase() };
    match c {
        'a'..='z' | 'A'..='Z' => CharClass::Ascii,
        '\0'..='\u{7F}' => CharClass::Other,
        '\u{80}'..='\u{9F}' | '\u{FFFD}' | '\u{E000}'..='\u{F8FF}' | '\u{FFF0}'..='\u{FFFC}' => {
            CharClass::Never
        }
        '\u{A0}' | '\u{AD}' | '’' | '‘' | '“' | '”' | '„' | '«' | '»' | '–' | '—' | '…' | '·'
        | '•' => CharClass::Other,
        '\u{A1}'..='\u{BF}' | '×' | '÷' if !matches!(c, 'ª' | 'º' | 'µ') => CharClass::Symbol,
        '\u{AA}'..='\u{24F}' | '\u{1E00}'..='\u{1EFF}' => {
            CharClass::Latin { capital: c.is_uppercase() }
        }
        '\u{300}'..='\u{36F}' => CharClass::Combining,
        '\u{370}'..='\u{3FF}' => cased(1),
        '\u{400}'..='\u{4FF}' => cased(2),
        '\u{590}'..='\u{5FF}' => CharClass::Uncased { script: 3 },
        '\u{600}'..='\u{6FF}' => CharClass::Uncased { script: 4 },
        '\u{E00}'..='\u{E7F}' => CharClass::Uncased { script: 5 },
        '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' => CharClass::Other,
        '\u{3000}'..='\u{3011}' | '\u{FF01}'..='\u{FF60}' => CharClass::Wide,
        '\u{3041}'..='\u{30FF}' => CharClass::Kana,
        '\u{FF61}'..='\u{FF9F}' => CharClass::HalfKana,
        '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}' => {
            CharClass::Han
        }
        '\u{AC00}'..='\u{D7A3}' => CharClass::Hangul,
        '\u{2010}'..='\u{2BFF}' => CharClass::Symbol,
        _ => CharClass::Odd,
    }
}

/// What a character says for the text in thousandths, between its neighbours; none if nothing.
fn weight(c: char, class: CharClass, beside: Neighbours) -> Option<i32> {
    use CharClass::{Ascii, Cased, Combining, HalfKana, Han, Hangul, Kana, Latin, Symbol, Wide};
    let is_letter = |class| matches!(class, Ascii | Latin { .. } | Cased { .. });
    let is_cjk = |class| matches!(class, Han | Kana | Hangul | Wide);
    let small = c.to_lowercase().next().unwrap_or(c);
    Some(match class {
        CharClass::Never => -3000,
        CharClass::Odd => -700,
        HalfKana => -500,
        Wide => {
            if beside.either(is_cjk) {
                500
            } else {
                -200
            }
        }
        Symbol if beside.both(is_letter) => -1000,
        Symbol if beside.either(is_letter) => -400,
        Symbol | Ascii | CharClass::Other => return None,
        Combining if matches!(beside.before, Ascii | Latin { .. }) => 400,
        Combining => -1000,
        Han if beside.either(|class| matches!(class, Hangul | HalfKana)) => -400,
        Han | Hangul => ideograph(c),
        Kana => 700,
        Latin { capital } => latin(small, capital, beside),
        Cased { script, capital } => cased(small, script, capital, beside),
        CharClass::Uncased { script } => uncased(c, script, beside),
    })
}

fn ideograph(c: char) -> i32 {
    if FREQUENT.has(c) {
        1000
    } else if USUAL.has(c) {
        300
    } else {
        -800
    }
}

fn letter(frequent: bool) -> i32 {
    if frequent { 1000 } else { 300 }
}

fn cased(small: char, script: u8, capital: bool, beside: Neighbours) -> i32 {
    use CharClass::{Ascii, Cased, Latin};
    let is_latin = |class| matches!(class, Ascii | Latin { .. });
    let is_cased = |class| matches!(class, Cased { .. });
    let mixed = matches!(beside.before, Cased { script: other, .. } if other != script);
    if beside.either(is_latin) || mixed {
        return -800;
    }
    if capital && matches!(beside.before, Cased { capital: false, .. }) {
        return -1000;
    }
    // A word of one letter and a word of capitals tell nothing.
    let alone = !beside.either(is_cased);
    let shouted = capital && beside.both(is_cased);
    if alone || shouted { 0 } else { letter(FREQUENT.has(small)) }
}

fn uncased(c: char, script: u8, beside: Neighbours) -> i32 {
    use CharClass::{Ascii, Cased, Latin, Uncased};
    let is_other = |class| matches!(class, Ascii | Latin { .. } | Cased { .. });
    let is_own = |class| matches!(class, Uncased { .. });
    let mixed = matches!(beside.before, Uncased { script: other } if other != script);
    if beside.either(is_other) || mixed {
        -800
    } else if beside.either(is_own) {
        letter(FREQUENT.has(c))
    } else {
        0
    }
}

fn latin(small: char, capital: bool, beside: Neighbours) -> i32 {
    use CharClass::{Ascii, Latin};
    if beside.both(|class| matches!(class, Latin { .. })) {
        return -700;
    }
    if capital && matches!(beside.before, Latin { capital: false }) {
        return -1000;
    }
    let alone = !beside.either(|class| matches!(class, Ascii | Latin { .. }));
    let weight = match small {
        _ if alone => return -200,
        c if FREQUENT.has(c) => 800,
        c if RARER_LATIN.contains(c) => 500,
        _ => 0,
    };
    if capital { weight / 2 - 200 } else { weight }
}
