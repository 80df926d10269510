//! `latency.hlog`: HdrHistogram's interval log, for its viewers. One interval, the whole trial, with three
//! histograms by tag, in nanoseconds: `response`, `service` and `send_lag`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use crate::error::RecordError;
use crate::row::RequestRow;

/// Writes the histograms of a trial that began `age` ago.
pub(crate) fn write(path: &Path, rows: &[RequestRow], age: Duration) -> Result<(), RecordError> {
    let length_ns = rows.iter().filter_map(|row| row.completed).max().unwrap_or(0).max(0);
    let length = Duration::from_nanos(length_ns as u64);
    let start = SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
    let file = File::create(path).map_err(RecordError::write(path))?;
    log(BufWriter::new(file), rows, start, length).map_err(RecordError::write(path))
}

fn log(mut out: impl Write, rows: &[RequestRow], start: SystemTime, length: Duration) -> io::Result<()> {
    let mut serializer = V2DeflateSerializer::new();
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("kendall: response, service and send_lag, in nanoseconds")
        .with_start_time(start)
        .begin_log_with(&mut out, &mut serializer)?;
    let of: [(&str, fn(&RequestRow) -> Option<i64>); 3] = [
        ("response", RequestRow::response_ns),
        ("service", |row| row.service),
        ("send_lag", RequestRow::send_lag_ns),
    ];
    for (name, value_ns) in of {
        let histogram = histogram(rows.iter().filter_map(value_ns));
        let tag = Tag::new(name).expect("the names have no comma or space");
        log.write_histogram(&histogram, Duration::ZERO, length, Some(tag)).map_err(|error| {
            io::Error::other(format!("the histogram of {name} cannot be encoded: {error:?}"))
        })?;
    }
    out.flush()
}

fn histogram(values_ns: impl Iterator<Item = i64>) -> Histogram<u64> {
    let mut histogram = Histogram::new(3).expect("three digits are allowed");
    // Longer than this is a damaged stamp: a histogram that grew to take it would be of no use.
    let most_ns = 86_400_000_000_000;
    for value_ns in values_ns {
        histogram
            .record(value_ns.clamp(0, most_ns) as u64)
            .expect("a histogram that grows takes every value");
    }
    histogram
}
