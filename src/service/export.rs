//! The corpus as a stream, of one state of the store.

use std::io::{self, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{Uri, header};
use axum::response::{IntoResponse as _, Response};
use hyper::body::Frame;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::Service;
use super::problem::Problem;
use super::query::Params;
use super::route::{Route, route};
use crate::corpus::export::{
    self, Compression, Config, ExportPlan, FORMATS, Fields, Format, List, Packing, Source,
    StoreSource, Unsettled,
};
#[cfg(feature = "cluster")]
use crate::corpus::shared::SharedSource;
use crate::text::quality;

pub(super) const ROUTES: &[Route] = &[route!("/v1/export", get export "exportDocuments")];

/// Bytes of a piece of an answer.
const PIECE_BYTES: usize = 64 << 10;

/// Pieces that wait for a client.
const PIECES_AHEAD: usize = 4;

/// What is asked for: one list in a format, or all lists in lines of JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    One(List),
    All,
}

/// `GET /v1/export`.
async fn export(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Problem> {
    let own = ["format", "list", "where", "fields", "compress", "unsettled"];
    let known = [&own[..], &quality::Config::NAMES].concat();
    let params = Params::parse(uri.query(), &known)?;
    let (plan, asked) = plan(&service, &params)?;
    let place = service.exports.clone().try_acquire_owned();
    let place = place.map_err(|_| Problem::busy("too many exports at a time"))?;
    let checked = plan.clone();
    let check = service.apart(&service.readers, move |service| {
        with_source(service, |source| export::check_plan_of(source, &checked))
    });
    check.await??.map_err(|error| problem(&error))?;
    let (out, pieces) = mpsc::channel(PIECES_AHEAD);
    let head = head(&plan, asked);
    let handle = Handle::current();
    tokio::task::spawn_blocking(move || {
        let _place = place;
        let now = service.clock.now();
        let (piece, failed) = (Vec::with_capacity(PIECE_BYTES), out.clone());
        let pipe = Pipe { service: service.clone(), handle, out, piece };
        let done = with_source(&service, |source| match asked {
            Asked::One(list) => export::stream_of(source, list, &plan, now, pipe),
            Asked::All => export::stream_all_of(source, &plan, now, pipe),
        });
        if !matches!(done, Ok(Ok(_))) {
            if let Ok(Err(error)) = done {
                tracing::warn!(%error, "an export was cut off");
            }
            // The client sees that it has not all of it.
            let _gone = failed.blocking_send(Err(io::Error::other("the export was cut off")));
        }
    });
    Ok((head, Body::new(Pieces(pieces))).into_response())
}

/// Does something with the documents, wherever they are.
fn with_source<R>(service: &Service, work: impl FnOnce(&dyn Source) -> R) -> Result<R, Problem> {
    #[cfg(feature = "cluster")]
    if let Some(shared) = &service.shared {
        return shared.ask(|corpus| Ok(work(&SharedSource(corpus))));
    }
    Ok(work(&StoreSource::open(&service.store)?))
}

fn plan(service: &Service, params: &Params) -> Result<(ExportPlan, Asked), Problem> {
    let bad = |name: &str, detail: &dyn std::fmt::Display| {
        Problem::bad("bad_parameter", format!("`{name}`: {detail}"))
    };
    let format = params.text("format").unwrap_or(FORMATS[0].name);
    let format = Format::named(format).map_err(|error| bad("format", &error))?;
    let asked = match params.text("list") {
        Some("all") => Asked::All,
        list => {
            let name = list.unwrap_or(List::Documents.as_str());
            let found = List::ALL.into_iter().find(|list| list.as_str() == name);
            let names = "it is one of documents, duplicates, withheld, all";
            Asked::One(found.ok_or_else(|| bad("list", &names))?)
        }
    };
    if asked == Asked::All && format.name != FORMATS[0].name {
        return Err(bad("list", &"all lists come in lines of JSON only"));
    }
    let fields = params.text("fields").map(str::parse::<Fields>).transpose();
    let fields = fields.map_err(|error| bad("fields", &error))?;
    let filter = params.text("where").map(str::parse).transpose();
    let filter = filter.map_err(|error| bad("where", &error))?;
    let compression = params.text("compress").map(str::parse).transpose();
    let compression = compression.map_err(|error: String| bad("compress", &error))?;
    let mut filters = quality::Config::default();
    for name in quality::Config::NAMES {
        if let Some(value) = params.text(name) {
            filters.set(name, value).map_err(|error| bad(name, &error))?;
        }
    }
    filters.check().map_err(|error| Problem::bad("bad_parameter", error))?;
    let unsettled = params.word("unsettled", &["apart", "trusted"])?;
    let plan = ExportPlan {
        format,
        fields: fields.unwrap_or_else(|| Fields::usual(format)),
        filter,
        part: None,
        filters,
        shard: None,
        compression,
        unsettled: if unsettled == "trusted" { Unsettled::Trusted } else { Unsettled::Apart },
        config: Config { honour: service.honour.clone(), csv_formulas: false },
    };
    Ok((plan, asked))
}

/// Type and name of what is sent.
fn head(plan: &ExportPlan, asked: Asked) -> [(header::HeaderName, String); 2] {
    let compression = plan.format.compression(plan.compression);
    let media_type = match (plan.format.packing, compression) {
        (Packing::Around, Compression::Gzip) => "application/gzip",
        (Packing::Around, Compression::Zstd) => "application/zstd",
        _ => plan.format.media_type,
    };
    let list = match asked {
        Asked::One(list) => list.as_str(),
        Asked::All => "export",
    };
    let name = format!("{list}.{}", plan.format.file_ending(compression));
    [
        (header::CONTENT_TYPE, media_type.to_owned()),
        (header::CONTENT_DISPOSITION, format!("attachment; filename=\"{name}\"")),
    ]
}

fn problem(error: &export::Error) -> Problem {
    if error.is_usage() {
        Problem::bad("bad_parameter", error.to_string())
    } else {
        Problem::failed(error.to_string())
    }
}

/// Writes to a client, and waits for him.
struct Pipe {
    service: Arc<Service>,
    handle: Handle,
    out: mpsc::Sender<io::Result<Bytes>>,
    piece: Vec<u8>,
}

impl Pipe {
    fn send(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        if self.service.is_stopping() {
            return Err(io::Error::other("the service is stopping"));
        }
        let next = Vec::with_capacity(PIECE_BYTES);
        let piece = Bytes::from(std::mem::replace(&mut self.piece, next));
        let (most, out) = (self.service.config.stall_time(), &self.out);
        let sent = self.handle.block_on(async { timeout(most, out.send(Ok(piece))).await });
        match sent {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(io::ErrorKind::BrokenPipe.into()),
            Err(_) => Err(io::Error::new(io::ErrorKind::TimedOut, "the client takes nothing")),
        }
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let some = bytes.len().min(PIECE_BYTES - self.piece.len());
        self.piece.extend_from_slice(&bytes[..some]);
        if self.piece.len() == PIECE_BYTES {
            self.send()?;
        }
        Ok(some)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.send()
    }
}

/// The pieces as a body.
struct Pieces(mpsc::Receiver<io::Result<Bytes>>);

impl hyper::body::Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| piece.map(Frame::data)))
    }
}
