//! What came when, and what grows.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::Uri;
use axum::response::Response;
use serde_json::{Value, json};

use super::Service;
use super::documents::{answer, in_words};
use super::problem::Problem;
use super::query::Params;
use super::route::{Route, route};
use crate::base::clock::Timestamp;
use crate::corpus::documents::{Arrivals, GROWTH_KEPT, HOUR, growth_since};
use crate::corpus::export;
use crate::corpus::tables::{ARRIVALS, DOCUMENTS};
use crate::store::View as _;

pub(super) const ROUTES: &[Route] = &[
    route!("/v1/counts", get counts "countArrivals"),
    route!("/v1/trending", get trending "listTrending"),
];

/// Most hours that one request adds up.
const HOURS_MAX: u64 = 24 * 366 * 2;

/// Rows of hours and documents that one request adds up.
const GROWTH_ROWS_MAX: usize = 1_000_000;

fn hour_of(time: Timestamp) -> u64 {
    u64::try_from(time.0).unwrap_or(0) / HOUR
}

fn start_of(hour: u64) -> String {
    Timestamp(i64::try_from(hour.saturating_mul(HOUR)).unwrap_or(i64::MAX)).to_string()
}

/// `GET /v1/counts`.
async fn counts(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Problem> {
    let params = Params::parse(uri.query(), &["by", "since", "until"])?;
    let by = params.word("by", &["hour", "day"])?;
    let (step, usual) = if by == "day" { (24, 24 * 30) } else { (1, 48) };
    let until = params.time("until")?.map_or(hour_of(service.clock.now()) + 1, |until| {
        // The hour in which it ends counts, unless it has only begun.
        hour_of(Timestamp(until.0.saturating_add((HOUR - 1).cast_signed())))
    });
    let since = params.time("since")?.map_or(until.saturating_sub(usual), hour_of);
    if until.saturating_sub(since) > HOURS_MAX {
        let detail = format!("`since`: at most {} days before `until`", HOURS_MAX / 24);
        return Err(Problem::bad("bad_parameter", detail));
    }
    let told = service.read(move |_, snapshot| {
        let mut sums: BTreeMap<u64, Arrivals> = BTreeMap::new();
        let mut all = Arrivals::default();
        for entry in snapshot.range(ARRIVALS, since..until.max(since))? {
            let entry = entry?;
            let came = entry.row()?;
            let sum = sums.entry(entry.key()? / step * step).or_default();
            for sum in [sum, &mut all] {
                sum.documents += came.documents;
                sum.copies += came.copies;
            }
        }
        let rows: Vec<Value> = sums
            .into_iter()
            .map(|(hour, came)| {
                let Arrivals { documents, copies } = came;
                json!({ "start": start_of(hour), "documents": documents, "copies": copies })
            })
            .collect();
        let told = json!({
            "by": by, "since": start_of(since), "until": start_of(until), "rows": rows,
            "documents": all.documents, "copies": all.copies,
        });
        Ok(answer(&told))
    });
    told.await
}

/// `GET /v1/trending`.
async fn trending(State(service): State<Arc<Service>>, uri: Uri) -> Result<Response, Problem> {
    let params = Params::parse(uri.query(), &["window", "limit"])?;
    let most = Duration::from_secs(GROWTH_KEPT * 3600);
    let window = params.length("window", Duration::from_hours(24), most)?;
    let limit = params.number("limit", 20, 200)?;
    let hours = window.as_secs().div_ceil(3600);
    let since = (hour_of(service.clock.now()) + 1).saturating_sub(hours);
    let told = service.read(move |service, snapshot| {
        let (grown, complete) = growth_since(snapshot, since, GROWTH_ROWS_MAX)?;
        let mut grown: Vec<(u64, u64)> = grown.into_iter().collect();
        grown.sort_unstable_by_key(|(number, copies)| (std::cmp::Reverse(*copies), *number));
        let (mut rows, now) = (Vec::new(), service.clock.now());
        for (number, copies) in grown {
            if rows.len() == limit {
                break;
            }
            // It may have ended, or become a part of another one.
            let Some(mut document) = snapshot.get(DOCUMENTS, number)? else { continue };
            if export::show(snapshot, number, &mut document, &service.honour, now)?.is_ok() {
                let mut row = in_words(&document);
                row["grown"] = copies.into();
                rows.push(row);
            }
        }
        let told = json!({ "since": start_of(since), "complete": complete, "rows": rows });
        Ok(answer(&told))
    });
    told.await
}
