//! What becomes of the rows of a run: its answer, its record, and whether it is precise enough to end.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kendall_archive::TrialWriter;
use kendall_evidence::expect::Measure;
use kendall_evidence::streamed::{Precision, Stream};
use kendall_load::Progress;
use kendall_record::{RecordError, RequestRow};

/// How often the precision that is reached so far is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// A run does not end as precise before it has so many requests: an interval of few batches is narrow by chance now and then.
const LEAST_REQUESTS: u64 = 1000;

/// How precise a run is to be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Half the interval over the value.
    pub(super) relative: f64,
    /// Of what.
    pub(super) of: Measure,
}

/// What became of the rows.
pub(super) struct Collected {
    pub(super) stream: Stream,
    pub(super) writer: Option<TrialWriter>,
}

/// Makes the answer of a run's rows and writes its record, on the thread that receives them. Asks for the end of the run by
/// [`Progress::enough`] once the precision is reached, and where the record cannot be written.
pub(super) fn collect(
    mut stream: Stream,
    mut writer: Option<TrialWriter>,
    wanted: Option<Wanted>,
    progress: &Progress,
    rows: impl Iterator<Item = Vec<RequestRow>>,
) -> Result<Collected, RecordError> {
    let mut failed = None;
    let mut watch = wanted.map(Watch::new);
    for batch in rows {
        for row in batch {
            stream.add(&row);
            if let (Some(writer), None) = (&mut writer, &failed)
                && let Err(error) = writer.append(&row)
            {
                failed = Some(error);
                progress.enough.store(true, Ordering::Relaxed);
            }
        }
        if watch.as_mut().is_some_and(|watch| watch.is_reached(&stream)) {
            progress.enough.store(true, Ordering::Relaxed);
        }
    }
    failed.map_or(Ok(Collected { stream, writer }), Err)
}

/// Looks whether a run is precise enough.
struct Watch {
    wanted: Wanted,
    looked: Instant,
    /// How many requests there were when it was precise enough at the last look.
    before: Option<u64>,
}

impl Watch {
    fn new(wanted: Wanted) -> Self {
        Self { wanted, looked: Instant::now(), before: None }
    }

    /// Whether it was precise enough at two looks with a tenth more requests between: an interval that is narrow by chance at
    /// one look would else end the run, and hold less often than it says.
    fn is_reached(&mut self, stream: &Stream) -> bool {
        if self.looked.elapsed() < LOOK_EVERY {
            return false;
        }
        self.looked = Instant::now();
        let found = stream.precision(self.wanted.of);
        match found {
            Some(Precision { requests, relative })
                if relative <= self.wanted.relative && requests >= LEAST_REQUESTS =>
            {
                let before = *self.before.get_or_insert(requests);
                requests as f64 >= 1.1 * before as f64
            }
            _ => {
                self.before = None;
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{iter, thread};

    use kendall_archive::read_trial;
    use kendall_evidence::streamed::Warmup;
    use kendall_record::Outcome;

    fn row(index: u64) -> RequestRow {
        let due = index as i64 * 1_000_000;
        RequestRow {
            index,
            class: 0,
            port: 1,
            scheduled: due,
            sent: Some(due),
            first_byte: None,
            completed: Some(due + 1_000_000 + (index * 7919 % 100) as i64 * 1000),
            queued: None,
            started: None,
            finished: None,
            service: None,
            fixed: None,
            outcome: Outcome::Answered,
            bytes_out: 1,
            bytes_in: 1,
        }
    }

    #[test]
    fn every_row_arrives_and_is_on_record() {
        let folder = tempfile::tempdir().unwrap();
        let writer = TrialWriter::create(folder.path()).unwrap();
        let rows: Vec<RequestRow> = (0..1000).rev().map(row).collect();
        let progress = Progress::default();
        let batches = rows.chunks(256).map(<[_]>::to_vec);
        let collected = collect(Stream::new(Warmup::Until(0)), Some(writer), None, &progress, batches);
        let Collected { mut stream, writer } = collected.unwrap();
        stream.end(2_000_000_000);
        assert_eq!(stream.seen().unwrap().requests, 1000);
        assert_eq!(writer.unwrap().finish_without_stamps(0).unwrap(), 1000);
        assert_eq!(read_trial(folder.path()).unwrap().len(), 1000);
        assert!(!progress.enough.load(Ordering::Relaxed));
    }

    #[test]
    fn a_run_that_is_precise_enough_is_asked_to_end() {
        let progress = Progress::default();
        let wanted = Wanted { relative: 0.5, of: Measure::Mean };
        let mut sent = 0;
        // Some 10 s if it were never asked.
        let batches = iter::from_fn(|| {
            thread::sleep(Duration::from_millis(10));
            let is_over = progress.enough.load(Ordering::Relaxed) || sent >= 1_000_000;
            sent += 1000;
            (!is_over).then(|| (sent - 1000..sent).map(row).collect())
        });
        let collected = collect(Stream::new(Warmup::Until(0)), None, Some(wanted), &progress, batches);
        assert!((LEAST_REQUESTS..1_000_000).contains(&sent), "{sent}");
        assert!(collected.unwrap().stream.precision(Measure::Mean).unwrap().relative < 0.5);
    }
}
