//! From bytes to text: which character encoding, and how we know.

use std::borrow::Cow;

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{
    BIG5, EUC_JP, EUC_KR, Encoding, GBK, ISO_2022_JP, KOI8_R, SHIFT_JIS, UTF_8, UTF_16BE, UTF_16LE,
    WINDOWS_1251,
};

use super::declared;
use super::plausible::plausibility;
use super::sniff;

/// Bytes beyond ASCII, with the text around them, on which encodings are compared.
const SAMPLE_BYTES: usize = 8 << 10;

/// Bytes of a page in ASCII in which the escapes of ISO-2022-JP are looked for.
const ESCAPED_BYTES: usize = 256 << 10;

/// By how many thousandths an encoding must read better than a declared one to be taken instead,
/// and how many more if there is one character only to tell by.
///
/// Measured: see docs/src/internals.md. No page with a true declaration came nearer than 0 with ten
/// characters or more, and 175 with four.
const MARGIN: i32 = 40;
const MARGIN_OF_ONE: i32 = 5_000;

/// A page of at least this many characters that reads worse than this is read in no right
/// encoding yet: statistics give an encoding up at the first damaged character.
const DOUBTFUL: i32 = 300;
const DOUBTFUL_MIN: usize = 30;

/// The encodings that are tried then.
const DAMAGED: [&Encoding; 7] = [GBK, BIG5, SHIFT_JIS, EUC_JP, EUC_KR, WINDOWS_1251, KOI8_R];

/// How an encoding was found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CharsetSource {
    /// A byte order mark.
    Bom,
    /// The bytes are valid UTF-8, which no other text of any length is by chance.
    Utf8,
    /// The HTTP header.
    Header,
    /// A declaration in the page.
    Declaration,
    /// Statistics of the bytes.
    Detected,
}

impl CharsetSource {
    /// Returns the word that stands for it in JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bom => "bom",
            Self::Utf8 => "utf8",
            Self::Header => "header",
            Self::Declaration => "declaration",
            Self::Detected => "detected",
        }
    }
}

/// An encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Charset {
    /// Its name in the WHATWG encoding standard.
    pub name: &'static str,
    /// How it was found out.
    pub source: CharsetSource,
    /// Characters that could not be decoded.
    pub replacements: usize,
    /// Thousandths of the characters beyond ASCII that could be decoded; 0 for binary data.
    pub quality: u16,
    /// The encoding that was declared first and not believed, because another one reads better.
    pub overruled: Option<&'static str>,
}

/// Decodes a page: byte order mark, valid UTF-8, then whichever reads best of what the header, the
/// page and statistics say. A declaration is believed unless another reading is clearly better.
///
/// UTF-8 goes before the header, which browsers do not do: servers send a default header with
/// pages in UTF-8, and never the other way round. Headers and pages also name encodings that the
/// bytes are not in, and most wrong readings meet no error; so the readings are compared. `tld`
/// helps the statistics.
///
/// Source: <https://encoding.spec.whatwg.org/>; labels such as `gb2312` mean what they mean there.
#[must_use]
pub fn decode<'a>(
    bytes: &'a [u8],
    content_type: Option<&str>,
    tld: Option<&str>,
) -> (Cow<'a, str>, Charset) {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        return finish(encoding, &bytes[mark..], CharsetSource::Bom);
    }
    if let Some(encoding) = utf16(bytes) {
        return finish(encoding, bytes, CharsetSource::Detected);
    }
    let is_ascii = bytes.is_ascii();
    // ISO-2022-JP is ASCII to the eye: only its escapes tell. So is UTF-16 of many letters.
    let in_disguise = || bytes.contains(&0x1B) || is_wide(content_type) && sniff::count(bytes) > 0;
    let read = std::str::from_utf8(bytes);
    let is_utf8 = match read {
        Ok(_) => !is_ascii || !in_disguise(),
        // A character may be cut in half at the end.
        Err(error) => error.error_len().is_none() || mostly_utf8(bytes),
    };
    if is_utf8 {
        return match read {
            Ok(text) => (Cow::Borrowed(text), whole(UTF_8, CharsetSource::Utf8)),
            Err(_) => finish(UTF_8, bytes, CharsetSource::Utf8),
        };
    }
    let (encoding, source, overruled) = chosen(bytes, content_type, tld);
    let (text, charset) = finish(encoding, bytes, source);
    (text, Charset { overruled, ..charset })
}

/// The encoding that queries of links are in: that of the page. One in ASCII may still name other
/// characters by their numbers; there it counts what is declared.
pub(super) fn of_queries(
    charset: &Charset,
    bytes: &[u8],
    content_type: Option<&str>,
) -> &'static Encoding {
    let declared = || content_type.and_then(declared::by_header).or(declared::by_page(bytes));
    let in_ascii = charset.source == CharsetSource::Utf8 && bytes.is_ascii();
    let declared = if in_ascii { declared() } else { None };
    declared.or(Encoding::for_label(charset.name.as_bytes())).unwrap_or(UTF_8)
}

/// Tells whether a header says UTF-16.
fn is_wide(content_type: Option<&str>) -> bool {
    let declared = content_type.and_then(declared::by_header);
    declared.is_some_and(|encoding| [UTF_16BE, UTF_16LE].contains(&encoding))
}

/// A reading of a page that is in none of the encodings that show by themselves.
struct EncodingCandidate {
    encoding: &'static Encoding,
    source: CharsetSource,
    score: i32,
    counted: usize,
}

fn chosen(
    bytes: &[u8],
    content_type: Option<&str>,
    tld: Option<&str>,
) -> (&'static Encoding, CharsetSource, Option<&'static str>) {
    let sample = sample(bytes);
    let header = content_type.and_then(declared::by_header);
    let page = declared::by_page(bytes);
    let detected = detect(&sample, tld);
    let of = |encoding, source| EncodingCandidate::new(encoding, source, bytes, &sample);
    let mut best = of(detected, CharsetSource::Detected);
    let mut first = None;
    for (declared, source) in [(page, CharsetSource::Declaration), (header, CharsetSource::Header)]
    {
        let Some(encoding) = declared else { continue };
        first = Some(encoding);
        let other = of(encoding, source);
        // Statistics and the page against the header: two that agree need no margin.
        let agreed = best.encoding == detected && best.source == CharsetSource::Declaration;
        // The escapes of ISO-2022-JP are whole and valid: no other text has them.
        let sure = best.encoding == ISO_2022_JP;
        let beaten = sure || best.beats(&other) || agreed && best.score > other.score;
        if encoding == best.encoding || !beaten {
            best = other;
        }
    }
    if best.score < DOUBTFUL && best.counted >= DOUBTFUL_MIN {
        for encoding in DAMAGED {
            let other = of(encoding, CharsetSource::Detected);
            if other.beats(&best) {
                best = other;
            }
        }
    }
    let overruled = first.filter(|first| *first != best.encoding).map(Encoding::name);
    (best.encoding, best.source, overruled)
}

impl EncodingCandidate {
    fn new(
        encoding: &'static Encoding,
        source: CharsetSource,
        bytes: &[u8],
        sample: &[u8],
    ) -> Self {
        let wide = encoding == UTF_16BE || encoding == UTF_16LE;
        let sample = if wide { &bytes[..bytes.len().min(SAMPLE_BYTES)] } else { sample };
        let text = encoding.decode_without_bom_handling(sample).0;
        let (score, counted) = plausibility(&text);
        Self { encoding, source, score, counted }
    }

    /// Reads clearly better than what would be taken otherwise. The fewer characters there are
    /// to tell by, the clearer it must be.
    fn beats(&self, other: &Self) -> bool {
        let counted = self.counted.max(other.counted).max(1);
        let counted = i32::try_from(counted).unwrap_or(i32::MAX);
        self.score >= other.score + MARGIN + MARGIN_OF_ONE / counted
    }
}

/// The pieces of text that hold bytes beyond ASCII. No character goes over an angle bracket or a
/// line end in any encoding that has such bytes.
fn sample(bytes: &[u8]) -> Vec<u8> {
    if bytes.is_ascii() {
        return bytes[..bytes.len().min(ESCAPED_BYTES)].to_vec();
    }
    let mut sample = Vec::new();
    for piece in bytes.split_inclusive(|byte| matches!(byte, b'<' | b'>' | b'\n')) {
        if !piece.is_ascii() {
            sample.extend_from_slice(&piece[..piece.len().min(SAMPLE_BYTES - sample.len())]);
            if sample.len() >= SAMPLE_BYTES {
                break;
            }
        }
    }
    sample
}

/// A page in UTF-8 with a few broken bytes, as truncated quotes in listings leave them: at least
/// a hundred good characters for each broken one.
fn mostly_utf8(bytes: &[u8]) -> bool {
    let (mut good, mut bad) = (0, 0);
    for chunk in bytes.utf8_chunks() {
        good += chunk.valid().chars().filter(|c| !c.is_ascii()).count();
        bad += usize::from(!chunk.invalid().is_empty());
    }
    good > bad * 100
}

/// UTF-16 without a mark: in every text of markup, every other byte is zero, at its start at least.
fn utf16(bytes: &[u8]) -> Option<&'static Encoding> {
    let sample = &bytes[..bytes.len().min(512)];
    if sample.len() < 16 {
        return None;
    }
    let zeros =
        |first: usize| sample.iter().skip(first).step_by(2).filter(|byte| **byte == 0).count() * 5;
    let enough = sample.len() / 2 * 2;
    match sample {
        [b'<', 0, c, 0, ..] if c.is_ascii_graphic() => return Some(UTF_16LE),
        [0, b'<', 0, c, ..] if c.is_ascii_graphic() => return Some(UTF_16BE),
        _ => {}
    }
    match (zeros(0), zeros(1)) {
        (even, odd) if even > enough && odd * 4 < even => Some(UTF_16BE),
        (even, odd) if odd > enough && even * 4 < odd => Some(UTF_16LE),
        _ => None,
    }
}

fn detect(sample: &[u8], tld: Option<&str>) -> &'static Encoding {
    let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
    // A sample may end within a character.
    detector.feed(sample, false);
    let tld = tld.filter(|tld| tld.bytes().all(|byte| byte.is_ascii_lowercase()));
    let tld = tld.filter(|tld| !tld.is_empty()).map(str::as_bytes);
    detector.guess(tld, Utf8Detection::Allow)
}

/// An encoding in which every character could be decoded.
fn whole(encoding: &'static Encoding, source: CharsetSource) -> Charset {
    Charset { name: encoding.name(), source, replacements: 0, quality: 1000, overruled: None }
}

fn finish<'a>(
    encoding: &'static Encoding,
    bytes: &'a [u8],
    source: CharsetSource,
) -> (Cow<'a, str>, Charset) {
    let (text, broken) = encoding.decode_without_bom_handling(bytes);
    let mut charset = whole(encoding, source);
    if broken {
        charset.replacements = text.matches('\u{FFFD}').count();
        let beyond_ascii = text.chars().filter(|c| !c.is_ascii()).count();
        let good = beyond_ascii - charset.replacements;
        charset.quality = (good * 1000 / beyond_ascii.max(1)) as u16;
    }
    (text, charset)
}
