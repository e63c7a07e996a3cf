//! All sources of a run: files that were named, and those of folders.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::base::remote::Location;

use super::super::Error;
use super::document::too_large;
use super::fields::{self, Field};
use super::open::{Counted, Start, is_damage, is_own, unpacked};
use super::record::fields_of;
use super::{
    Chunk, DOCUMENT_BYTES_MAX, Fault, Fields, InputOptions, Item, Kind, LineRead, Lines, Take,
    lines, warc,
};

/// Lines of which the fields are looked at.
const SAMPLE_LINES: usize = 1_000;

/// Bytes of these lines.
const SAMPLE_BYTES: usize = 4 << 20;

/// What is to be read: a file, a folder or an object, with the name that is told.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub(crate) name: String,
    pub(crate) location: Location,
}

/// One file.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// Its name, as it was given or found.
    pub name: String,
    /// What it is called as a document.
    pub id: String,
    /// What it is.
    pub kind: Kind,
    /// What its fields are called.
    pub fields: Fields,
    /// Its bytes.
    pub bytes: u64,
    pub(crate) location: Location,
    /// Why nothing of it can be read.
    fault: Option<Fault>,
}

/// All files, in their order.
#[derive(Debug)]
pub(crate) struct Sources {
    all: Vec<Source>,
    options: InputOptions,
    /// Further fields that are read.
    extra: Vec<String>,
    read: Arc<AtomicU64>,
}

/// How far reading has come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Position {
    /// Bytes that were read, packed.
    pub read: u64,
    /// Bytes of all sources.
    pub of: u64,
}

impl Sources {
    /// Looks at all that was named: what each is, what its fields are called, and what is in
    /// folders.
    ///
    /// # Errors
    ///
    /// What is not there, and a source of which no field is the text for sure.
    pub(crate) fn open(
        named: &[Named],
        options: InputOptions,
        extra: Vec<String>,
    ) -> Result<Self, Error> {
        let mut sources = Self { all: Vec::new(), options, extra, read: Arc::default() };
        for one in named {
            match &one.location {
                Location::Local(path) if path.is_dir() => sources.folder(path, path, &one.name)?,
                #[cfg(feature = "object-store")]
                Location::Remote(objects) if one.name.ends_with('/') => {
                    for (object, _) in objects.list().map_err(Error::remote)? {
                        let name = object.to_string();
                        if !is_own(object.name()) {
                            sources.add(name, Location::Remote(object), true)?;
                        }
                    }
                }
                location => sources.add(one.name.clone(), location.clone(), false)?,
            }
        }
        Ok(sources)
    }

    /// Returns all sources.
    #[must_use]
    pub(crate) fn all(&self) -> &[Source] {
        &self.all
    }

    /// Returns how they are read.
    #[must_use]
    pub(crate) fn options(&self) -> &InputOptions {
        &self.options
    }

    /// Returns how far reading has come.
    #[must_use]
    pub(crate) fn position(&self) -> Position {
        let of = self.all.iter().map(|source| source.bytes).sum();
        Position { read: self.read.load(Ordering::Relaxed).min(of), of }
    }

    /// Takes in all files below a folder, in the order of their names.
    fn folder(&mut self, top: &Path, folder: &Path, name: &str) -> Result<(), Error> {
        let mut paths: Vec<PathBuf> = std::fs::read_dir(folder)
            .and_then(|entries| entries.map(|entry| Ok(entry?.path())).collect())
            .map_err(Error::io(folder))?;
        paths.sort();
        for path in paths {
            let own = path.file_name().is_none_or(|name| is_own(&name.to_string_lossy()));
            // A link to a folder may lead back to where it is.
            let is_link = path.is_symlink() && path.is_dir();
            if own || is_link {
                continue;
            }
            if path.is_dir() {
                self.folder(top, &path, name)?;
            } else {
                let inside = path.strip_prefix(top).unwrap_or(&path).display();
                let shown = format!("{}/{inside}", name.trim_end_matches('/'));
                self.add(shown, Location::Local(path), true)?;
            }
        }
        Ok(())
    }

    fn add(&mut self, name: String, location: Location, in_folder: bool) -> Result<(), Error> {
        let failed = |source| Error::Read { file: name.clone(), source };
        let start = Start::read(&location).map_err(failed)?;
        let kind = match start.kind(&name) {
            Kind::Unknown if !in_folder => Kind::Lines,
            kind => kind,
        };
        if kind == Kind::Lines && start.is_list() {
            return Err(Error::List(name));
        }
        let bytes = match &location {
            Location::Local(path) => std::fs::metadata(path).map_err(failed)?.len(),
            #[cfg(feature = "object-store")]
            Location::Remote(_) => {
                use std::io::Seek as _;
                location
                    .open()
                    .and_then(|mut file| file.seek(std::io::SeekFrom::End(0)))
                    .map_err(failed)?
            }
        };
        let id = if in_folder { name.clone() } else { self.id_of(&name) };
        let fields = Fields::default();
        let mut source = Source { name, id, kind, fields, bytes, location, fault: None };
        match kind {
            Kind::Lines => source.fields = self.line_fields(&source)?,
            Kind::Parquet => self.table_fields(&mut source)?,
            Kind::Unknown => {
                let detail = "neither JSON lines, Parquet, WARC, HTML nor text";
                source.fault = Some(Fault::new("unknown_kind", detail));
            }
            Kind::Warc | Kind::Page | Kind::Text => {}
        }
        self.all.push(source);
        Ok(())
    }

    /// The name of a file as that of a document: without the folders it lies in.
    fn id_of(&self, name: &str) -> String {
        let short = name.rsplit('/').next().unwrap_or(name);
        let is_known = self.all.iter().any(|source| source.id == short);
        if is_known { name.to_owned() } else { short.to_owned() }
    }

    /// The names of fields by the first lines. Lines that are no objects are told one by one.
    fn line_fields(&self, source: &Source) -> Result<Fields, Error> {
        let failed = |error| Error::Read { file: source.name.clone(), source: error };
        let mut lines = Lines::open_counted(&source.location, Arc::default()).map_err(failed)?;
        let (mut sample, mut line, mut bytes) = (Vec::new(), Vec::new(), 0);
        while sample.len() < SAMPLE_LINES && bytes < SAMPLE_BYTES {
            match lines.read(&mut line)? {
                LineRead::Line => {
                    bytes += line.len();
                    sample.push(String::from_utf8_lossy(&line).into_owned());
                }
                LineRead::Fault(fault) if fault.reason != "damaged" => {}
                _ => break,
            }
        }
        let all: Vec<Field> = fields_of(sample.iter().map(String::as_str));
        if all.is_empty() {
            let text = self.options.fields.text.clone();
            let usual = Fields::usual();
            return Ok(Fields { text: text.unwrap_or_else(|| usual.text.clone()), ..usual });
        }
        fields::find(&source.name, &all, &self.options.fields)
    }

    #[cfg(not(feature = "parquet"))]
    fn table_fields(&self, source: &mut Source) -> Result<(), Error> {
        let detail = "this program was built without the feature `parquet`";
        source.fault = Some(Fault::new("unknown_kind", detail));
        Ok(())
    }

    #[cfg(feature = "parquet")]
    fn table_fields(&self, source: &mut Source) -> Result<(), Error> {
        use super::parquet::{Table, TableFault};
        match Table::open(&source.location, Arc::default(), true) {
            Ok(table) => {
                source.fields = fields::find(&source.name, &table.fields(), &self.options.fields)?;
            }
            Err(TableFault::Io(error)) => {
                return Err(Error::Read { file: source.name.clone(), source: error });
            }
            Err(TableFault::Damage(detail)) => {
                let detail = format!(
                    "its footer cannot be read ({detail}): the file is cut short, or not written \
                     to its end"
                );
                source.fault = Some(Fault::new("damaged", detail));
            }
        }
        Ok(())
    }

    /// Reads all sources from one on, in order.
    pub(crate) fn read(&self, from: usize, take: &mut Take<'_>) -> Result<(), Error> {
        let mut wanted = true;
        for (at, source) in self.all.iter().enumerate().skip(from) {
            let mut each = |chunk: Chunk| {
                wanted = take(chunk);
                wanted
            };
            self.read_one(at, source, &mut each)?;
            if !wanted {
                break;
            }
        }
        Ok(())
    }

    fn read_one(&self, at: usize, source: &Source, take: &mut Take<'_>) -> Result<(), Error> {
        if let Some(fault) = &source.fault {
            take(single(at, Item::Fault(fault.clone()), 0));
            return Ok(());
        }
        let failed = |error| Error::Read { file: source.name.clone(), source: error };
        let read = Arc::clone(&self.read);
        match source.kind {
            Kind::Lines => {
                let lines = Lines::open_counted(&source.location, read).map_err(failed)?;
                lines::read(at, lines, take)
            }
            Kind::Warc => warc::read(at, &source.location, read, take),
            Kind::Page | Kind::Text => {
                let item = whole(source, read).map_err(failed)?;
                let bytes = if let Item::File(bytes) = &item { bytes.len() } else { 0 };
                take(single(at, item, bytes));
                Ok(())
            }
            Kind::Parquet => self.read_table(at, source, take),
            Kind::Unknown => Ok(()),
        }
    }

    #[cfg(not(feature = "parquet"))]
    fn read_table(&self, _: usize, _: &Source, _: &mut Take<'_>) -> Result<(), Error> {
        Ok(())
    }

    #[cfg(feature = "parquet")]
    fn read_table(&self, at: usize, source: &Source, take: &mut Take<'_>) -> Result<(), Error> {
        use super::parquet::{Table, TableFault, read};
        let table = Table::open(&source.location, Arc::clone(&self.read), true);
        match table {
            Ok(table) => {
                let mask = table.mask_of(source, &self.extra, self.options.columns);
                read(at, source, &table, &mask, take)
            }
            Err(TableFault::Io(error)) => {
                Err(Error::Read { file: source.name.clone(), source: error })
            }
            Err(TableFault::Damage(_)) => Err(Error::Changed(source.name.clone().into())),
        }
    }
}

/// The file that a source is, as a whole.
fn whole(source: &Source, read: Arc<AtomicU64>) -> std::io::Result<Item> {
    let mut bytes = Vec::new();
    let file = unpacked(Counted::open(&source.location, read)?)?;
    match file.take(DOCUMENT_BYTES_MAX as u64 + 1).read_to_end(&mut bytes) {
        Err(error) if is_damage(&error) => {
            Ok(Item::Fault(Fault::new("damaged", format!("it cannot be unpacked: {error}"))))
        }
        Err(error) => Err(error),
        Ok(read) if read > DOCUMENT_BYTES_MAX => Ok(Item::Fault(too_large(read))),
        Ok(_) => Ok(Item::File(bytes)),
    }
}

/// A chunk of the one record that a source is.
fn single(source: usize, item: Item, bytes: usize) -> Chunk {
    let mut chunk = Chunk::new(source, 1);
    chunk.push(item, bytes);
    chunk
}
