//! What a run has read and fingerprinted, kept until its end: a run that was killed is given again
//! what it had, and reads on behind it. Judging is the same whoever gives the documents, so that
//! the result is that of a run that was not killed.
//!
//! ```text
//! file:  magic, head (16 bytes), frames
//! frame: length (4), checksum (8), zstd of chunks, each with its length (4) before it
//! ```
//!
//! A frame that is cut or damaged ends the file. A small run ends before it has a frame, and makes
//! no file.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::fs::{self, File};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use crate::store::{BadRow, Blob, Codec, Decoder, Encoder};
use crate::text::features::{ArticleKeys, Standing, TextKeys};
use crate::text::simhash::Fingerprint;
use crate::text::sketch::{ShownSketch, Sketch};

use super::input::Fault;
use super::prepare::{Fate, Prepared};

/// Name of the file, without its ending.
pub(super) const JOURNAL: &str = "journal";

/// First bytes of a file.
const MAGIC: [u8; 4] = *b"UCJ1";

/// Bytes of a frame at least, unpacked: what is read again after a kill at most, but for chunks
/// that were under way.
const FRAME_BYTES: usize = 256 << 10;

/// zstd level: most bytes of keys cannot be packed.
const LEVEL: i32 = -1;

/// Bytes before the packed ones of a frame.
const FRAME_HEAD: usize = 12;

/// A document ready to be judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FingerprintedLine {
    pub(super) id: String,
    pub(super) keys: ArticleKeys,
    pub(super) popularity: u64,
    /// The line in which it is kept, where that is not the one that was read.
    pub(super) made: Option<String>,
    pub(super) masked: u64,
    pub(super) repaired: bool,
}

/// A chunk to be judged, and how it is written down; nothing if it is there already.
pub(super) struct Step {
    pub(super) chunk: Prepared<FingerprintedLine>,
    encoded: Vec<u8>,
}

impl Step {
    /// Makes that of a chunk which was just read.
    pub(super) fn new(chunk: Prepared<FingerprintedLine>) -> Self {
        let encoded = encode(&chunk);
        Self { chunk, encoded }
    }

    /// Makes that of a chunk that was judged before.
    pub(super) fn nothing(source: usize, first: u64) -> Self {
        let chunk = Prepared { source, first, bytes: 0, fates: Vec::new() };
        Self { chunk, encoded: Vec::new() }
    }
}

/// The file on its way.
pub(super) struct Journal {
    path: PathBuf,
    head: u128,
    file: Option<File>,
    pending: Vec<u8>,
    /// It could not be written: the run goes on without it.
    failed: bool,
}

impl Journal {
    /// Makes one at `path`, of a run of which `head` is a hash of all that decides what it reads.
    pub(super) fn new(path: PathBuf, head: u128) -> Self {
        Self { path, head, file: None, pending: Vec::new(), failed: false }
    }

    /// Returns what an earlier run of the same head has left.
    pub(super) fn replay(&self) -> Option<Replay> {
        let mut file = BufReader::new(File::open(&self.path).ok()?);
        let mut head = [0; MAGIC.len() + size_of::<u128>()];
        file.read_exact(&mut head).ok()?;
        let (magic, stored) = head.split_at(MAGIC.len());
        if magic != MAGIC || stored != self.head.to_be_bytes() {
            return None;
        }
        Some(Replay { file, end: head.len() as u64, steps: VecDeque::new() })
    }

    /// Goes on behind what was given again.
    pub(super) fn go_on(&mut self, end: u64) {
        let opened = File::options().write(true).open(&self.path).and_then(|mut file| {
            file.set_len(end)?;
            file.seek(SeekFrom::End(0))?;
            Ok(file)
        });
        match opened {
            Ok(file) => self.file = Some(file),
            Err(error) => self.give_up(&error),
        }
    }

    /// Writes a chunk down.
    pub(super) fn push(&mut self, step: &Step) {
        if self.failed || step.encoded.is_empty() {
            return;
        }
        self.pending.extend((step.encoded.len() as u32).to_le_bytes());
        self.pending.extend(&step.encoded);
        if self.pending.len() >= FRAME_BYTES
            && let Err(error) = self.write()
        {
            self.give_up(&error);
        }
    }

    fn write(&mut self) -> io::Result<()> {
        let packed = zstd::bulk::compress(&self.pending, LEVEL)?;
        let mut frame = Vec::with_capacity(packed.len() + FRAME_HEAD);
        frame.extend((packed.len() as u32).to_le_bytes());
        frame.extend(xxh3_64(&packed).to_le_bytes());
        frame.extend(packed);
        self.pending.clear();
        let file = match &mut self.file {
            Some(file) => file,
            none => {
                let mut file = File::create(&self.path)?;
                file.write_all(&[&MAGIC[..], &self.head.to_be_bytes()].concat())?;
                none.insert(file)
            }
        };
        file.write_all(&frame)?;
        tracing::trace!("noted");
        Ok(())
    }

    /// The run can do without; what was written is still good.
    fn give_up(&mut self, error: &io::Error) {
        let file = self.path.display();
        tracing::warn!(%file, %error, "if this run is interrupted, the next one does more again");
        self.failed = true;
        self.pending = Vec::new();
    }

    /// Removes the file, if there is one.
    pub(super) fn remove(path: &Path) {
        drop(fs::remove_file(path));
    }
}

/// Gives what is in a file.
pub(super) struct Replay {
    file: BufReader<File>,
    /// Where the last frame ends that is whole.
    end: u64,
    steps: VecDeque<Step>,
}

impl Replay {
    /// Returns where the last frame ends of those that were given.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Reads the next frame; none if it is not whole.
    fn frame(&mut self) -> Option<VecDeque<Step>> {
        let mut head = [0; FRAME_HEAD];
        self.file.read_exact(&mut head).ok()?;
        let (length, sum) = head.split_first_chunk::<4>()?;
        let (length, mut packed) = (u32::from_le_bytes(*length), Vec::new());
        (&mut self.file).take(u64::from(length)).read_to_end(&mut packed).ok()?;
        if packed.len() != length as usize || xxh3_64(&packed).to_le_bytes() != *sum {
            return None;
        }
        let all = zstd::stream::decode_all(&*packed).ok()?;
        let (mut rest, mut steps) = (&all[..], VecDeque::new());
        while let Some((length, more)) = rest.split_first_chunk::<4>() {
            let (chunk, more) = more.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            steps.push_back(Step { chunk: decode(chunk).ok()?, encoded: Vec::new() });
            rest = more;
        }
        self.end += (FRAME_HEAD + packed.len()) as u64;
        Some(steps)
    }
}

impl Iterator for Replay {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        if self.steps.is_empty() {
            self.steps = self.frame()?;
        }
        self.steps.pop_front()
    }
}

/// What became of a record, as it is written.
const DOCUMENT: u64 = 0;
const REJECTED: u64 = 1;
const FILTERED: u64 = 2;
const SKIPPED: u64 = 3;

/// Version of the form of a chunk.
const VERSION: u8 = 1;

fn encode(chunk: &Prepared<FingerprintedLine>) -> Vec<u8> {
    let row = Encoder::new(VERSION).number(chunk.source as u64).number(chunk.first);
    let row = row.number(chunk.bytes).number(chunk.fates.len() as u64);
    let row = chunk.fates.iter().fold(row, |row, fate| match fate {
        Fate::Document(line) => put_line(row.number(DOCUMENT), line),
        Fate::Rejected(Fault { reason, detail, offset }) => {
            let row = row.number(REJECTED).text(reason).text(detail);
            optional(row, *offset)
        }
        Fate::Filtered { id, reason } => row.number(FILTERED).text(id).text(reason),
        Fate::Skipped(reason) => row.number(SKIPPED).text(reason),
    });
    row.finish()
}

fn decode(bytes: &[u8]) -> Result<Prepared<FingerprintedLine>, BadRow> {
    let mut row = Decoder::new("journal", VERSION, bytes)?;
    let (source, first, bytes) = (row.narrow()?, row.number()?, row.number()?);
    let mut fates = Vec::new();
    for _ in 0..row.number()? {
        fates.push(match row.number()? {
            DOCUMENT => Fate::Document(take_line(&mut row)?),
            REJECTED => {
                let (reason, detail) = (name(&mut row)?, row.text()?.to_owned());
                Fate::Rejected(Fault { reason, detail, offset: take_optional(&mut row)? })
            }
            FILTERED => {
                let id = row.text()?.to_owned();
                Fate::Filtered { id, reason: name(&mut row)? }
            }
            SKIPPED => Fate::Skipped(name(&mut row)?),
            _ => return Err(row.bad("a record has an unknown end")),
        });
    }
    Ok(Prepared { source, first, bytes, fates })
}

fn name(row: &mut Decoder<'_>) -> Result<Cow<'static, str>, BadRow> {
    Ok(Cow::Owned(row.text()?.to_owned()))
}

fn optional(row: Encoder, number: Option<u64>) -> Encoder {
    match number {
        Some(number) => row.number(1_u64).number(number),
        None => row.number(0_u64),
    }
}

fn take_optional(row: &mut Decoder<'_>) -> Result<Option<u64>, BadRow> {
    Ok(if row.number()? == 0 { None } else { Some(row.number()?) })
}

fn put_line(row: Encoder, line: &FingerprintedLine) -> Encoder {
    let FingerprintedLine { id, keys, popularity, made, masked, repaired } = line;
    let row = row.text(id).number(*popularity).number(*masked).number(u64::from(*repaired));
    let row = match made {
        Some(made) => row.number(1_u64).text(made),
        None => row.number(0_u64),
    };
    let ArticleKeys { text, title, standing } = keys;
    put_standing(put_text(optional(row, title.map(|title| title.0)), text), standing)
}

fn take_line(row: &mut Decoder<'_>) -> Result<FingerprintedLine, BadRow> {
    let (id, popularity) = (row.text()?.to_owned(), row.number()?);
    let (masked, repaired) = (row.number()?, row.number()? != 0);
    let made = if row.number()? == 0 { None } else { Some(row.text()?.to_owned()) };
    let title = take_optional(row)?.map(Fingerprint);
    let text = take_text(row)?;
    let keys = ArticleKeys { text, title, standing: take_standing(row)? };
    Ok(FingerprintedLine { id, keys, popularity, made, masked, repaired })
}

fn put_text(row: Encoder, text: &TextKeys) -> Encoder {
    let row = row.wide(text.hash).fixed(text.fingerprint.0);
    let row = <Blob as Codec<Sketch>>::put(&text.sketch, row);
    let row = row.number(text.shingles).number(text.words).number(text.sentences.len() as u64);
    let row = text.sentences.iter().fold(row, |row, sentence| row.number(*sentence));
    let others = text.others.all();
    let row = row.number(others.len() as u64);
    others.iter().fold(row, |row, (kind, hash)| row.number(*kind).number(*hash))
}

fn take_text(row: &mut Decoder<'_>) -> Result<TextKeys, BadRow> {
    let (hash, fingerprint) = (row.wide()?, Fingerprint(row.fixed()?));
    let sketch = <Blob as Codec<Sketch>>::take(row)?;
    let (shingles, words, sentences) = (row.narrow()?, row.narrow()?, row.number()?);
    let sentences = (0..sentences).map(|_| row.narrow()).collect::<Result<_, _>>()?;
    let others = row.number()?;
    let others: Result<_, BadRow> =
        (0..others).map(|_| Ok((row.narrow()?, row.narrow()?))).collect();
    Ok(TextKeys { hash, fingerprint, sketch, shingles, words, sentences, others: others? })
}

fn put_standing(row: Encoder, standing: &Standing) -> Encoder {
    let Standing { site, edition, form, address, name, title, heading, .. } = standing;
    let Standing { declared, shown, doubtful, quality, .. } = standing;
    let numbers = [edition, form, address, name, title, heading, declared];
    let row = numbers.into_iter().fold(row.fixed(*site), |row, number| row.number(*number));
    let row = <Blob as Codec<Option<ShownSketch>>>::put(shown, row);
    optional(row.number(u64::from(*doubtful)), quality.map(u64::from))
}

fn take_standing(row: &mut Decoder<'_>) -> Result<Standing, BadRow> {
    let site = row.fixed()?;
    let [mut edition, mut form, mut address, mut name] = [0; 4];
    let [mut title, mut heading, mut declared] = [0; 3];
    for number in
        [&mut edition, &mut form, &mut address, &mut name, &mut title, &mut heading, &mut declared]
    {
        *number = row.narrow()?;
    }
    let shown = <Blob as Codec<Option<ShownSketch>>>::take(row)?;
    let doubtful = row.number()? != 0;
    let quality = take_optional(row)?.map(u16::try_from).transpose();
    let quality = quality.map_err(|_| row.bad("a number is too large"))?;
    Ok(Standing {
        site,
        edition,
        form,
        address,
        name,
        title,
        heading,
        declared,
        shown,
        doubtful,
        quality,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::neardup::article_keys;
    use crate::text::features::{Fingerprinter, Input};

    fn line(number: u64) -> FingerprintedLine {
        let text = format!("The harbour bridge opens on day {number} after two years of work.");
        let input = Input {
            title: "Bridge opens",
            text: &text,
            language: "en",
            url: "http://host.example/2020/a-story",
            fields: &[],
        };
        let mut keys = article_keys(&Fingerprinter::default(), &input);
        if number % 2 == 1 {
            keys.title = None;
            keys.text.sketch.seconds = None;
            keys.text.others = [(3, 4), (5, u32::MAX)].into_iter().collect();
            keys.standing.shown = Some(ShownSketch::of([1, 2, 3]));
            keys.standing.quality = Some(998);
        }
        let made =
            number.is_multiple_of(3).then(|| format!("{{\"text\":\"{}\"}}", "long ".repeat(300)));
        FingerprintedLine {
            id: format!("文-{number}"),
            keys,
            popularity: u64::MAX - number,
            made,
            masked: number,
            repaired: number.is_multiple_of(2),
        }
    }

    fn chunk(number: u64) -> Prepared<FingerprintedLine> {
        let mut fates: Vec<_> =
            (0..200).map(|at| Fate::Document(line(number * 200 + at))).collect();
        let mut fault = Fault::new("bad_json", "line 7 is none");
        fates.push(Fate::Rejected(fault.clone()));
        fault.offset = Some(9);
        fates.push(Fate::Rejected(fault));
        fates.push(Fate::Filtered { id: "x".to_owned(), reason: "language".into() });
        fates.push(Fate::Skipped("kind".into()));
        Prepared { source: number as usize, first: 7, bytes: 1 << 40, fates }
    }

    fn told(chunk: &Prepared<FingerprintedLine>) -> String {
        let fates = chunk.fates.iter().map(|fate| match fate {
            Fate::Document(line) => format!("{line:?}"),
            Fate::Rejected(fault) => format!("{fault:?}"),
            Fate::Filtered { id, reason } => format!("{id} {reason}"),
            Fate::Skipped(reason) => format!("skipped {reason}"),
        });
        let fates: Vec<String> = fates.collect();
        format!("{} {} {} {fates:?}", chunk.source, chunk.first, chunk.bytes)
    }

    #[test]
    fn what_was_written_is_given_again_as_far_as_it_is_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("journal");
        let given = |head| -> Vec<String> {
            let journal = Journal::new(path.clone(), head);
            journal.replay().into_iter().flatten().map(|step| told(&step.chunk)).collect()
        };
        assert_eq!(given(5), Vec::<String>::new());
        let mut journal = Journal::new(path.clone(), 5);
        let chunks: Vec<_> = (0..12).map(chunk).collect();
        let expected: Vec<String> = chunks.iter().map(told).collect();
        for one in (0..12).map(chunk) {
            journal.push(&Step::new(one));
        }
        drop(journal);
        let all = given(5);
        assert!(all.len() >= 4 && expected.starts_with(&all), "{}", all.len());
        assert_eq!(given(6), Vec::<String>::new(), "another run");
        // A cut and a bit that has turned end it at the frame before.
        let whole = fs::read(&path).unwrap();
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        let cut = given(5);
        assert!(cut.len() < all.len() && !cut.is_empty() && all.starts_with(&cut));
        let mut turned = whole.clone();
        turned[60] ^= 1;
        fs::write(&path, &turned).unwrap();
        assert_eq!(given(5), Vec::<String>::new());
        // It goes on behind what is whole.
        fs::write(&path, &whole[..whole.len() - 1]).unwrap();
        let mut journal = Journal::new(path.clone(), 5);
        let mut replay = journal.replay().unwrap();
        let known = replay.by_ref().count();
        assert_eq!(known, cut.len());
        journal.go_on(replay.end());
        for one in (known as u64..12).map(chunk) {
            journal.push(&Step::new(one));
        }
        drop(journal);
        let again = given(5);
        assert!(again.len() >= all.len() && expected.starts_with(&again), "{}", again.len());
    }
}
