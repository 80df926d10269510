//! Watching: begins, goes on beside whatever is watched, and ends with a summary.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use kendall_record::RecordError;
use kendall_record::series::SeriesWriter;

use crate::error::ProbeError;
use crate::proc::Process;
use crate::row::layout;
use crate::sampler::{Sampled, Sampler, Target};
use crate::summary::Summary;

/// The name of the thread that watches, by which it is told from those of the generator.
pub const THREAD: &str = "kendall-probe";

/// How to watch.
#[derive(Clone, Debug)]
pub struct Config<'a> {
    /// The interval between two readings.
    pub every: Duration,
    /// Where every reading is written, if it is.
    pub record: Option<&'a Path>,
}

/// A watch that goes on. Dropped without being ended it stops, and what it saw is lost.
#[derive(Debug)]
pub struct Watch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Sampled, RecordError>>>,
}

impl Watch {
    /// Begins to watch processes.
    ///
    /// # Errors
    /// Fails where a process is not there, or the record cannot be written.
    pub fn start(config: &Config<'_>, targets: &[Target]) -> Result<Self, ProbeError> {
        let process = |target: &Target| {
            let no_process = |source| ProbeError::NoProcess { pid: target.pid, source };
            Process::new(target.role, target.pid).map_err(no_process)
        };
        let processes = targets.iter().map(process).collect::<Result<Vec<_>, _>>()?;
        let record = config.record.map(|path| SeriesWriter::create(path, layout())).transpose()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, every, targets) = (stop.clone(), config.every, targets.to_vec());
        let watch = move || Sampler::new(every, targets, processes).recording(record).run(&stopped);
        let thread = Builder::new().name(THREAD.into()).spawn(watch).map_err(ProbeError::Thread)?;
        Ok(Self { stop, thread: Some(thread) })
    }

    /// Ends the watch. `origin_ns` is the instant, by [`kendall_record::clock::now_ns`], to which the rows of the record
    /// are relative.
    ///
    /// # Errors
    /// Fails where the record cannot be written.
    pub fn end(mut self, origin_ns: i64) -> Result<Summary, ProbeError> {
        let Some(thread) = self.halt() else { return Err(ProbeError::Failed) };
        let sampled = thread.join().map_err(|_| ProbeError::Failed)??;
        if let Some(record) = sampled.record {
            record.finish(origin_ns)?;
        }
        Ok(Summary::of(&sampled.tally, sampled.cost, sampled.cores, sampled.missing))
    }

    fn halt(&mut self) -> Option<JoinHandle<Result<Sampled, RecordError>>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(thread) = self.halt() {
            let _ = thread.join();
        }
    }
}
