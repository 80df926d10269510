//! Handles the rows of a trial on the thread that receives them in batches: a record, statistics, and the rows themselves. No
//! thread that sends requests does any of this.

use kendall_archive::TrialWriter;
use kendall_evidence::streamed::Stream;
use kendall_record::{RecordError, RequestRow};

use crate::stop::StopWatch;

/// The sinks for the rows of a trial; each sink that is present gets every row.
#[derive(Default)]
pub(crate) struct RowSinks {
    /// The record.
    pub(crate) writer: Option<TrialWriter>,
    /// Statistics in constant memory.
    pub(crate) stream: Option<Stream>,
    /// The rows, in the order in which the requests ended.
    pub(crate) kept: Option<Vec<RequestRow>>,
}

/// Passes the rows of a trial to its sinks and to its stop rule until the trial is over. Returns the reason if the trial was
/// stopped as hopeless.
///
/// # Errors
/// Fails where the record cannot be written.
pub(crate) fn collect(
    mut sinks: RowSinks,
    mut watch: StopWatch<'_>,
    batches: impl Iterator<Item = Vec<RequestRow>>,
) -> Result<(RowSinks, Option<String>), RecordError> {
    for batch in batches {
        for row in batch {
            watch.take(&row);
            if let Some(stream) = &mut sinks.stream {
                stream.add(&row);
            }
            if let Some(writer) = &mut sinks.writer {
                writer.append(&row)?;
            }
            if let Some(kept) = &mut sinks.kept {
                kept.push(row);
            }
        }
        if let Some(stream) = &sinks.stream {
            watch.check(stream);
        }
    }
    Ok((sinks, watch.hopeless()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;
    use std::{iter, thread};

    use kendall_archive::read_trial;
    use kendall_evidence::expect::Measure;
    use kendall_evidence::streamed::Warmup;
    use kendall_load::Progress;
    use kendall_record::Outcome;

    use crate::stop::{StopRule, TrialPrecision};

    fn row(index: u64) -> RequestRow {
        let due = index as i64 * 1_000_000;
        RequestRow {
            bytes_out: 1,
            bytes_in: 1,
            ..RequestRow::due(index, due)
                .sent_at(due, 1)
                .ended(Outcome::Answered, due + 1_000_000 + (index * 7919 % 100) as i64 * 1000)
        }
    }

    #[test]
    fn every_row_arrives_and_is_on_record() {
        let folder = tempfile::tempdir().unwrap();
        let writer = TrialWriter::create(folder.path()).unwrap();
        let rows: Vec<RequestRow> = (0..1000).rev().map(row).collect();
        let progress = Progress::default();
        let batches = rows.chunks(256).map(<[_]>::to_vec);
        let stop = AtomicBool::new(false);
        let sinks = RowSinks {
            writer: Some(writer),
            stream: Some(Stream::new(Warmup::Until(0))),
            kept: Some(Vec::new()),
        };
        let collected = collect(sinks, StopRule::default().watch(&progress, &stop), batches);
        let (RowSinks { writer, stream, kept }, _) = collected.unwrap();
        let mut stream = stream.unwrap();
        stream.end(2_000_000_000);
        assert_eq!(stream.seen().unwrap().requests, 1000);
        assert_eq!(kept.unwrap(), rows);
        assert_eq!(writer.unwrap().finish_without_stamps(0).unwrap(), 1000);
        assert_eq!(read_trial(folder.path()).unwrap().len(), 1000);
        assert!(!progress.enough.load(Ordering::Relaxed) && !stop.load(Ordering::Relaxed));
    }

    #[test]
    fn a_run_that_is_precise_enough_is_asked_to_end() {
        let progress = Progress::default();
        let stop = AtomicBool::new(false);
        let precision = TrialPrecision { relative: 0.5, of: Measure::Mean };
        let rule = StopRule { precision: Some(precision), ..StopRule::default() };
        let mut sent = 0;
        // Without a stop it would take some 10 s.
        let batches = iter::from_fn(|| {
            thread::sleep(Duration::from_millis(10));
            let is_over = progress.enough.load(Ordering::Relaxed) || sent >= 1_000_000;
            sent += 1000;
            (!is_over).then(|| (sent - 1000..sent).map(row).collect())
        });
        let sinks = RowSinks { stream: Some(Stream::new(Warmup::Until(0))), ..RowSinks::default() };
        let (collected, _) = collect(sinks, rule.watch(&progress, &stop), batches).unwrap();
        assert!((1000..1_000_000).contains(&sent), "{sent}");
        assert!(collected.stream.unwrap().precision(Measure::Mean).unwrap().relative < 0.5);
    }
}
