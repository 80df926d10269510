//! `latency.hlog`: HdrHistogram's interval log, for its viewers. One interval, the whole trial, with three
//! histograms by tag, in nanoseconds: `response`, `service` and `send_lag`.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};

use kendall_record::RequestRow;

/// A value of a row, if the row has it.
type OfRow = fn(&RequestRow) -> Option<i64>;

/// The tags, and the value of a row for each.
const OF: [(&str, OfRow); 3] = [
    ("response", RequestRow::response_ns),
    ("service", |row| row.service),
    ("send_lag", RequestRow::send_lag_ns),
];

/// Writes the histograms of a trial that started `age` ago.
pub(crate) fn write(file: File, rows: &[RequestRow], age: Duration) -> io::Result<()> {
    let mut histograms = Histograms::new();
    rows.iter().for_each(|row| histograms.add(row));
    histograms.write(file, age)
}

/// A longer time is a damaged stamp; a histogram large enough for it would be useless.
pub(crate) const MOST_NS: i64 = 86_400_000_000_000;

/// The histograms of the rows so far.
pub(crate) struct Histograms {
    of: [Histogram<u64>; OF.len()],
    last_ns: i64,
}

impl Histograms {
    pub(crate) fn new() -> Self {
        let histogram = |_| Histogram::new(3).expect("three digits are allowed");
        Self { of: OF.map(histogram), last_ns: 0 }
    }

    pub(crate) fn add(&mut self, row: &RequestRow) {
        self.last_ns = self.last_ns.max(row.completed.unwrap_or(0));
        for (histogram, (_, value_ns)) in self.of.iter_mut().zip(OF) {
            if let Some(value_ns) = value_ns(row) {
                let value = value_ns.clamp(0, MOST_NS) as u64;
                histogram.record(value).expect("a histogram that grows takes every value");
            }
        }
    }

    /// Writes them, for a trial that started `age` ago.
    pub(crate) fn write(&self, file: File, age: Duration) -> io::Result<()> {
        let start = SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
        self.log(BufWriter::new(file), start)
    }

    fn log(&self, mut out: impl Write, start: SystemTime) -> io::Result<()> {
        let mut serializer = V2DeflateSerializer::new();
        let mut log = IntervalLogWriterBuilder::new()
            .add_comment("kendall: response, service and send_lag, in nanoseconds")
            .with_start_time(start)
            .begin_log_with(&mut out, &mut serializer)?;
        let length = Duration::from_nanos(self.last_ns as u64);
        for (histogram, (name, _)) in self.of.iter().zip(OF) {
            let tag = Tag::new(name).expect("the names have no comma or space");
            log.write_histogram(histogram, Duration::ZERO, length, Some(tag)).map_err(|error| {
                io::Error::other(format!("the histogram of {name} cannot be encoded: {error:?}"))
            })?;
        }
        out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use base64::Engine;
    use base64::prelude::BASE64_STANDARD;
    use hdrhistogram::serialization::Deserializer;
    use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::journal::tests::any_row;

    /// The tags and histograms that HdrHistogram's own reader finds.
    fn read(path: &Path) -> Vec<(String, Histogram<u64>)> {
        let text = fs::read(path).unwrap();
        let of_entry = |entry| match entry {
            LogEntry::Interval(interval) => {
                let bytes = BASE64_STANDARD.decode(interval.encoded_histogram()).unwrap();
                let histogram = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
                Some((interval.tag().unwrap().as_str().to_owned(), histogram))
            }
            _ => None,
        };
        IntervalLogIterator::new(&text).filter_map(|entry| of_entry(entry.unwrap())).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn its_own_reader_finds_every_value(rows in vec(any_row(0..1i64 << 45), 0..50)) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("log");
            write(File::create(&path).unwrap(), &rows, Duration::from_secs(1)).unwrap();
            let values = |of: OfRow| rows.iter().filter_map(of).collect::<Vec<_>>();
            let expected = [
                ("response", values(RequestRow::response_ns)),
                ("service", values(|row| row.service)),
                ("send_lag", values(RequestRow::send_lag_ns)),
            ];
            let found = read(&path);
            prop_assert_eq!(found.len(), expected.len());
            for ((tag, histogram), (name, values)) in found.into_iter().zip(expected) {
                prop_assert_eq!(tag, name);
                prop_assert_eq!(histogram.len(), values.len() as u64);
                let most = values.into_iter().max().unwrap_or(0).max(0) as u64;
                prop_assert!(histogram.equivalent(histogram.max(), most), "{} for {most}", histogram.max());
            }
        }
    }
}
