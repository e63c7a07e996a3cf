//! Records of a WARC file: answers, and texts made of them (WET).

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use crate::base::remote::Location;
use crate::warc::{Entry, Error as WarcError, Kind as RecordKind, Reader};

use super::super::Error;
use super::open::Counted;
use super::{Chunk, DOCUMENT_BYTES_MAX, Fault, Item, Take};

/// Reads all records of a source.
pub(super) fn read(
    source: usize,
    location: &Location,
    read: Arc<AtomicU64>,
    take: &mut Take<'_>,
) -> Result<(), Error> {
    let name = location.to_string();
    let io = |error| Error::Read { file: name.clone(), source: error };
    let file = Counted::open(location, read).map_err(io)?;
    let failed = |error: WarcError| match error {
        WarcError::Io { source, .. } => Err(io(source)),
        other => Ok(Fault::new("damaged", other.to_string())),
    };
    let reader = Reader::new(Path::new(&name), Box::new(file));
    let mut reader = match reader {
        Ok(reader) => reader.with_block_max(DOCUMENT_BYTES_MAX),
        Err(error) => {
            let mut chunk = Chunk::new(source, 1);
            chunk.push(Item::Fault(failed(error)?), 0);
            take(chunk);
            return Ok(());
        }
    };
    let (mut number, mut more) = (0, true);
    while more {
        let mut chunk = Chunk::new(source, number + 1);
        while more && !chunk.is_full() {
            let (item, bytes) = match reader.next() {
                Ok(None) => {
                    more = false;
                    break;
                }
                Ok(Some(Entry::Record(record))) => {
                    let bytes = record.block.len();
                    match record.kind {
                        RecordKind::Response | RecordKind::Resource | RecordKind::Conversion => {
                            (Item::Warc(Box::new(record)), bytes)
                        }
                        other => (Item::Skip(other.name()), 0),
                    }
                }
                Ok(Some(Entry::Fault(fault))) => {
                    let offset = Some(fault.spot.offset);
                    let fault = Fault {
                        reason: fault.kind.name().into(),
                        detail: fault.to_string(),
                        offset,
                    };
                    (Item::Fault(fault), 0)
                }
                Err(error) => {
                    more = false;
                    (Item::Fault(failed(error)?), 0)
                }
            };
            chunk.push(item, bytes);
            number += 1;
        }
        if !chunk.items.is_empty() && !take(chunk) {
            return Ok(());
        }
    }
    Ok(())
}
