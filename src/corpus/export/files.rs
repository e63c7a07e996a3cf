//! An export as a set of files, in shards: what is whole stays when a run is killed, and the next
//! one goes on behind it.

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use xxhash_rust::xxh3::Xxh3;

use super::form::{DocumentWriter, Format, Manner, Packing};
use super::jsonl::JSONL;
use super::stream::{Compression, Raw};
use super::tally::Tally;
use super::value::Record;
use super::walk::{List, Sink};
use super::{Error, ExportPlan, ShardSize, StoreState, Summary, card, names};
use crate::base::clock::Timestamp;
use crate::base::outputs::{self, ManifestEntry, Outputs, PARTIAL};
use crate::base::remote::Location;

/// What the manifest says beside the names of the files.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct About<'a> {
    program: &'a str,
    store: AboutStore,
    settings: &'a Json,
    counts: &'a Tally,
}

/// Which store, and which state of it.
#[derive(Serialize)]
struct AboutStore {
    number: Option<u64>,
    /// When a copy came last.
    newest: Option<String>,
}

/// What a run must have in common with one that was killed, so that it may go on with its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    program: String,
    store: StoreState,
    settings: Json,
}

/// The first line of a journal.
#[derive(Debug, Serialize, Deserialize)]
struct Begun {
    head: Head,
    /// The moment at which terms of pages are looked at.
    now: i64,
}

/// A further line of a journal: a shard that is whole.
#[derive(Debug, Serialize, Deserialize)]
struct WholeShard {
    files: Vec<ManifestEntry>,
    /// Number of the last document in it.
    after: u64,
    counts: Tally,
}

/// A file of a shard on its way.
struct OpenFile {
    writer: Box<dyn DocumentWriter>,
    path: PathBuf,
}

/// Files of a shard: documents, dropped copies, the same in the format of the documents, and what
/// was left out.
const SLOTS: usize = 4;

/// Place of the dropped copies in the format of the documents.
const TYPED: usize = 2;

fn slot(list: List) -> usize {
    match list {
        List::Documents => 0,
        List::Duplicates => 1,
        List::Withheld => 3,
    }
}

/// The files of an export on their way.
pub(super) struct Files<'a> {
    plan: &'a ExportPlan,
    location: &'a Location,
    head: Head,
    outputs: Outputs,
    open: [Option<OpenFile>; SLOTS],
    journal: Option<File>,
    /// Number of the shard.
    shard: u64,
    /// Documents in it.
    documents: u64,
    /// Counts of the shards that are whole.
    total: Tally,
    /// Where to go on.
    pub after: Option<u64>,
    /// The moment at which terms of pages are looked at.
    pub now: Timestamp,
}

impl<'a> Files<'a> {
    /// Begins the files, or goes on with those of a run that was killed, if there is a moment at
    /// which terms of pages are looked at: lines that come from elsewhere come all again.
    ///
    /// # Errors
    ///
    /// A folder with files of others, one that cannot be written.
    pub(super) fn begin(
        location: &'a Location,
        plan: &'a ExportPlan,
        store: &StoreState,
        now: Option<Timestamp>,
    ) -> Result<Self, Error> {
        let found = names::look(location)?;
        let head = Head {
            program: super::PROGRAM.to_owned(),
            store: store.clone(),
            settings: plan.settings(),
        };
        let mut outputs = Outputs::begin_at(location)?;
        outputs.replace(found.whole);
        let mut files = Self {
            plan,
            location,
            head,
            outputs,
            open: [const { None }; SLOTS],
            journal: None,
            shard: 0,
            documents: 0,
            total: Tally::default(),
            after: None,
            now: now.unwrap_or_default(),
        };
        if let Some(folder) = location.local() {
            let kept = match (plan.shard, now) {
                (Some(_), Some(_)) => files.resume(folder)?,
                _ => Vec::new(),
            };
            for name in found.partial.iter().filter(|name| !kept.contains(name)) {
                let path = folder.join(format!("{name}{PARTIAL}"));
                fs::remove_file(&path).map_err(|source| outputs::Error { path, source })?;
            }
        }
        if files.after.is_none() {
            let first = if plan.shard.is_some() { &[List::Documents][..] } else { &List::ALL };
            for list in first {
                files.open(*list)?;
            }
        }
        Ok(files)
    }

    /// Goes on with what the journal says is whole. Returns the files that are still needed.
    fn resume(&mut self, folder: &Path) -> Result<Vec<String>, Error> {
        let path = folder.join(format!("{}{PARTIAL}", names::JOURNAL));
        let io = |source| outputs::Error { path: path.clone(), source };
        let mut kept = vec![names::JOURNAL.to_owned()];
        self.outputs.keep_whole();
        if let Some(Journaled { begun, shards, bytes }) = read_journal(&path)
            && begun.head == self.head
        {
            let all = shards.iter().flat_map(|shard| &shard.files);
            let are_whole = all.map(|file| is_whole(folder, file)).collect::<Result<Vec<_>, _>>();
            if are_whole.is_ok_and(|whole| whole.iter().all(|whole| *whole)) {
                self.now = Timestamp(begun.now);
                self.shard = shards.len() as u64;
                for shard in shards {
                    self.total.add(&shard.counts);
                    self.after = Some(shard.after);
                    kept.extend(shard.files.iter().map(|file| file.name.clone()));
                    shard.files.into_iter().for_each(|file| self.outputs.take(file));
                }
                let file = File::options().append(true).open(&path).map_err(io)?;
                // What comes next must not stand behind half a line.
                file.set_len(bytes).map_err(io)?;
                self.journal = Some(file);
                tracing::info!(shards = self.shard, "going on behind what is whole");
                return Ok(kept);
            }
        }
        let mut file = File::create(&path).map_err(io)?;
        let begun = Begun { head: self.head.clone(), now: self.now.0 };
        write_line(&mut file, &begun).map_err(io)?;
        self.journal = Some(file);
        Ok(kept)
    }

    fn compression(&self) -> Compression {
        self.plan.format.compression(self.plan.compression)
    }

    /// The format of a file, and how it is compressed: lists beside documents that compress
    /// themselves are plain.
    fn form(&self, slot: usize) -> (&'static Format, Compression) {
        let plan = self.plan;
        match slot {
            0 | TYPED => (plan.format, self.compression()),
            _ if plan.format.packing == Packing::Around => (&JSONL, self.compression()),
            _ => (&JSONL, Compression::None),
        }
    }

    fn name(&self, list: List, slot: usize) -> String {
        let (format, compression) = self.form(slot);
        let shard = self.plan.shard.map(|_| self.shard);
        names::file(list, shard, &format.file_ending(compression))
    }

    fn open(&mut self, list: List) -> Result<(), Error> {
        self.open_slot(list, slot(list))?;
        if list == List::Duplicates && self.plan.format.lists_dropped {
            self.open_slot(list, TYPED)?;
        }
        Ok(())
    }

    fn open_slot(&mut self, list: List, slot: usize) -> Result<(), Error> {
        if self.open[slot].is_some() {
            return Ok(());
        }
        let (format, compression) = self.form(slot);
        let columns = list.columns(self.plan);
        let manner = Manner { columns, compression, config: self.plan.config.clone() };
        let output = self.outputs.create(&self.name(list, slot))?;
        let path = output.path().to_owned();
        let writer =
            format.begin(Raw::File(Box::new(output)), &manner).map_err(Error::io(&path))?;
        self.open[slot] = Some(OpenFile { writer, path });
        Ok(())
    }

    fn write(&mut self, slot: usize, record: &Record) -> Result<(), Error> {
        let Some(open) = &mut self.open[slot] else { return Ok(()) };
        open.writer.write(record).map_err(Error::io(&open.path))
    }

    /// Tells whether the shard has as much as it shall have.
    fn is_full(&self) -> bool {
        let bytes = || self.open[0].as_ref().map_or(0, |open| open.writer.bytes());
        match self.plan.shard {
            None => false,
            Some(ShardSize::Documents(most)) => self.documents >= most,
            Some(ShardSize::Bytes(most)) => self.documents > 0 && bytes() >= most,
        }
    }

    /// Brings the files of a shard to the disk.
    fn close(&mut self) -> Result<(), Error> {
        for slot in 0..SLOTS {
            let Some(OpenFile { writer, path }) = self.open[slot].take() else { continue };
            let ended = writer.end().and_then(super::stream::Stream::end);
            match ended.map_err(Error::io(&path))? {
                Raw::File(output) => self.outputs.add(*output)?,
                Raw::Reader(..) => {}
            }
        }
        Ok(())
    }

    /// Ends a shard behind a document, and notes that it is whole.
    fn end_shard(&mut self, after: u64, counts: Tally) -> Result<(), Error> {
        let before = self.outputs.whole().len();
        self.close()?;
        self.total.add(&counts);
        if let Some(journal) = &mut self.journal {
            let files = self.outputs.whole()[before..].to_vec();
            let written = write_line(journal, &WholeShard { files, after, counts });
            let path = self.outputs.folder(names::JOURNAL);
            written.map_err(Error::io(&path))?;
        }
        tracing::trace!(shard = self.shard, "shard");
        self.shard += 1;
        self.documents = 0;
        Ok(())
    }

    /// Gives the files their names. `rest` counts what came since the last shard.
    pub(super) fn finish(mut self, rest: &Tally) -> Result<Summary, Error> {
        self.close()?;
        self.total.add(rest);
        let names: Vec<String> =
            self.outputs.whole().iter().map(|file| file.name.clone()).collect();
        let card = card::card(&card::Facts {
            plan: self.plan,
            store: self.head.store.number,
            counts: &self.total,
            names: &names,
        });
        let mut file = self.outputs.create(card::NAME)?;
        let path = file.path().to_owned();
        file.write_all(card.as_bytes()).map_err(Error::io(&path))?;
        self.outputs.add(file)?;
        let about = About {
            program: &self.head.program,
            store: AboutStore {
                number: self.head.store.number,
                newest: self.total.newest.map(|time| Timestamp(time).to_string()),
            },
            settings: &self.head.settings,
            counts: &self.total,
        };
        let summary = Summary::new(self.location, self.plan, &self.total, names);
        let journal = self.journal.take();
        self.outputs.publish_with(Some(&about))?;
        if let (Some(journal), Some(folder)) = (journal, self.location.local()) {
            drop(journal);
            let path = folder.join(format!("{}{PARTIAL}", names::JOURNAL));
            fs::remove_file(&path).map_err(Error::io(&path))?;
        }
        Ok(summary)
    }
}

impl Sink for Files<'_> {
    fn take(&mut self, list: List, record: Record) -> Result<(), Error> {
        self.open(list)?;
        self.documents += u64::from(list == List::Documents);
        self.write(slot(list), &record)?;
        if list == List::Duplicates {
            self.write(TYPED, &record)?;
        }
        Ok(())
    }

    fn pause(&mut self, after: u64, tally: &mut Tally) -> Result<(), Error> {
        if self.is_full() { self.end_shard(after, std::mem::take(tally)) } else { Ok(()) }
    }
}

fn write_line(file: &mut File, line: &impl Serialize) -> std::io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    file.write_all(&bytes)?;
    file.sync_all()
}

/// What a journal says, as far as its lines are whole.
struct Journaled {
    begun: Begun,
    shards: Vec<WholeShard>,
    /// Bytes of these lines.
    bytes: u64,
}

/// Reads a journal. None if there is none of this kind.
fn read_journal(path: &Path) -> Option<Journaled> {
    let mut file = BufReader::new(File::open(path).ok()?);
    let mut line = String::new();
    let mut bytes = file.read_line(&mut line).ok()? as u64;
    let begun = serde_json::from_str(&line).ok()?;
    let mut shards = Vec::new();
    loop {
        line.clear();
        let read = file.read_line(&mut line);
        // A kill has cut the last line.
        let whole = line.strip_suffix('\n').and_then(|line| serde_json::from_str(line).ok());
        let (Ok(read), Some(shard)) = (read, whole) else {
            return Some(Journaled { begun, shards, bytes });
        };
        bytes += read as u64;
        shards.push(shard);
    }
}

/// Tells whether a file is still as it was when it was whole.
fn is_whole(folder: &Path, file: &ManifestEntry) -> std::io::Result<bool> {
    let mut open = File::open(folder.join(format!("{}{PARTIAL}", file.name)))?;
    if open.metadata()?.len() != file.bytes {
        return Ok(false);
    }
    let (mut hash, mut buffer) = (Xxh3::new(), vec![0; 1 << 18]);
    loop {
        match open.read(&mut buffer)? {
            0 => return Ok(format!("{:032x}", hash.digest128()) == file.xxh3),
            read => hash.update(&buffer[..read]),
        }
    }
}
