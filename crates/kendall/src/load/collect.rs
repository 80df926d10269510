//! Rows on their way from the generator: it hands them on in batches and goes back to its schedule. Another thread makes the
//! answer of them and writes the record, so that neither arithmetic nor a slow disk makes a request late.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use kendall_archive::TrialWriter;
use kendall_evidence::expect::Measure;
use kendall_evidence::streamed::{Precision, Stream};
use kendall_load::Progress;
use kendall_record::{RecordError, RequestRow};

/// Rows to a batch, unless they are few: then none waits longer than [`LONGEST_NS`] for the next to come.
const BATCH: usize = 256;
const LONGEST_NS: i64 = 50_000_000;
/// Batches on their way, some 8 MB. Where the other thread falls so far behind, the generator waits for it, and that shows as
/// send lag.
const BATCHES: usize = 256;
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

/// What rows came to.
pub(super) struct Collected {
    pub(super) stream: Stream,
    pub(super) writer: Option<TrialWriter>,
}

/// Has `work` hand rows to its argument, and collects them on a thread of its own. That thread asks for the end of the run by
/// [`Progress::enough`] once the precision is reached, and where the record cannot be written.
pub(super) fn collect<T>(
    stream: Stream,
    writer: Option<TrialWriter>,
    wanted: Option<Wanted>,
    progress: &Progress,
    work: impl FnOnce(&mut dyn FnMut(RequestRow)) -> T,
) -> (T, Result<Collected, RecordError>) {
    thread::scope(|scope| {
        let (sender, receiver) = sync_channel(BATCHES);
        let collector = scope.spawn(move || gather(stream, writer, wanted, progress, &receiver));
        let mut outbox = Outbox { sender, batch: Vec::with_capacity(BATCH), since_ns: i64::MIN };
        let done = work(&mut |row| outbox.push(row));
        outbox.send();
        drop(outbox);
        let collected = collector.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (done, collected)
    })
}

struct Outbox {
    sender: SyncSender<Vec<RequestRow>>,
    batch: Vec<RequestRow>,
    /// When the last batch went, by the instants of its rows: asking a clock for each would cost more than the batch saves.
    since_ns: i64,
}

impl Outbox {
    fn push(&mut self, row: RequestRow) {
        let at_ns = row.completed.unwrap_or(row.scheduled);
        self.batch.push(row);
        if self.batch.len() >= BATCH || at_ns >= self.since_ns.saturating_add(LONGEST_NS) {
            self.since_ns = at_ns;
            self.send();
        }
    }

    fn send(&mut self) {
        let batch = std::mem::replace(&mut self.batch, Vec::with_capacity(BATCH));
        // The other thread ends before this one only by a panic, which is passed on at the end.
        let _ = self.sender.send(batch);
    }
}

fn gather(
    mut stream: Stream,
    mut writer: Option<TrialWriter>,
    wanted: Option<Wanted>,
    progress: &Progress,
    receiver: &Receiver<Vec<RequestRow>>,
) -> Result<Collected, RecordError> {
    let mut failed = None;
    let mut watch = wanted.map(Watch::new);
    for batch in receiver {
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
        let send = |sink: &mut dyn FnMut(RequestRow)| (0..1000).rev().for_each(|index| sink(row(index)));
        let progress = Progress::default();
        let (_, collected) = collect(Stream::new(Warmup::Until(0)), Some(writer), None, &progress, send);
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
        let send = |sink: &mut dyn FnMut(RequestRow)| {
            let mut index = 0;
            // Some 10 s if it were never asked.
            while !progress.enough.load(Ordering::Relaxed) && index < 1_000_000 {
                sink(row(index));
                index += 1;
                if index % 1000 == 0 {
                    thread::sleep(Duration::from_millis(10));
                }
            }
            index
        };
        let (sent, collected) = collect(Stream::new(Warmup::Until(0)), None, Some(wanted), &progress, send);
        assert!((LEAST_REQUESTS..1_000_000).contains(&sent), "{sent}");
        assert!(collected.unwrap().stream.precision(Measure::Mean).unwrap().relative < 0.5);
    }
}
