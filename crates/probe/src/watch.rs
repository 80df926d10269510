//! A watch over processes: it runs in its own thread, and ends with a summary.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use kendall_archive::series::SeriesWriter;
use kendall_record::RecordError;

use crate::error::ProbeError;
use crate::family::{Target, add_descendants};
use crate::proc::Process;
use crate::profile::{Profile, Profiling};
use crate::row::{Role, layout};
use crate::sampler::{Sampled, Sampler};
use crate::summary::Summary;
use crate::thread::THREAD;

/// The settings of a watch.
#[derive(Clone, Debug)]
pub struct Config<'a> {
    /// The interval between two readings.
    pub every: Duration,
    /// The file for every reading, if there is one.
    pub record: Option<&'a Path>,
    /// The sampling rate of the server's stacks per second of CPU time, if they are sampled.
    pub profile_hz: Option<u32>,
}

impl Default for Config<'_> {
    fn default() -> Self {
        Self { every: Duration::from_millis(10), record: None, profile_hz: None }
    }
}

/// The result of a watch.
#[derive(Clone, Debug)]
pub struct WatchResult {
    /// The summary of all resources.
    pub summary: Summary,
    /// The stacks of the server, if they were sampled.
    pub profile: Option<Profile>,
}

/// A watch in progress. Dropping it stops it without a result.
#[derive(Debug)]
pub struct Watch {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<Sampled, RecordError>>>,
    /// The profile, or why it is missing.
    profiling: Option<Result<Profiling, String>>,
}

impl Watch {
    /// Starts to watch processes.
    ///
    /// # Errors
    /// Fails where a process does not exist, or where the record cannot be written.
    pub fn start(config: &Config<'_>, targets: &[Target]) -> Result<Self, ProbeError> {
        let process = |target: &Target| {
            let no_process = |source| ProbeError::NoProcess { pid: target.pid, source };
            Process::new(target.role, target.pid).map_err(no_process)
        };
        let mut processes = targets.iter().map(process).collect::<Result<Vec<_>, _>>()?;
        add_descendants(&mut processes, targets);
        let of_server = processes.iter().filter(|process| process.role == Role::Server);
        let of_server: Vec<u32> = of_server.map(|process| process.pid).collect();
        let record = config.record.map(|path| SeriesWriter::create(path, layout())).transpose()?;
        let stop = Arc::new(AtomicBool::new(false));
        let (stopped, every, watched) = (stop.clone(), config.every, targets.to_vec());
        let watch = move || Sampler::new(every, watched, processes).recording(record).run(&stopped);
        let thread = Builder::new().name(THREAD.into()).spawn(watch).map_err(ProbeError::Thread)?;
        let profiling = config.profile_hz.zip(of_server.split_first()).map(|(hz, (root, descendants))| {
            Profiling::start(*root, descendants, hz)
                .map_err(|error| format!("the kernel refuses to sample them ({error})"))
        });
        Ok(Self { stop, thread: Some(thread), profiling })
    }

    /// Ends the watch. `origin_ns` is the instant, by [`kendall_record::clock::now_ns`], to which the rows of the record
    /// are relative.
    ///
    /// # Errors
    /// Fails where the record cannot be written.
    pub fn end(mut self, origin_ns: i64) -> Result<WatchResult, ProbeError> {
        let profiled = self.profiling.take().map(|profiling| {
            profiling.and_then(|profiling| {
                profiling.end().ok_or_else(|| "the thread that samples has failed".into())
            })
        });
        let Some(thread) = self.halt() else { return Err(ProbeError::Failed) };
        let sampled = thread.join().map_err(|_| ProbeError::Failed)??;
        if let Some(record) = sampled.record {
            record.finish(origin_ns)?;
        }
        let summary = Summary::of(&sampled.tally, sampled.cost, sampled.cores, sampled.missing);
        let profile = profiled.map(|profiled| profiled.unwrap_or_else(|why| of_threads(&why, &summary)));
        Ok(WatchResult { summary, profile })
    }

    fn halt(&mut self) -> Option<JoinHandle<Result<Sampled, RecordError>>> {
        self.stop.store(true, Ordering::Relaxed);
        let thread = self.thread.take()?;
        // It may wait for its next reading.
        thread.thread().unpark();
        Some(thread)
    }
}

/// The profile where stacks cannot be sampled.
fn of_threads(why: &str, summary: &Summary) -> Profile {
    let threads = summary.server.iter().flat_map(|server| &server.threads);
    Profile::of_threads(
        why,
        threads.map(|thread| (thread.thread.clone(), thread.cpu_cores * summary.length_s)),
    )
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some(thread) = self.halt() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::family::Children;

    #[test]
    fn a_watch_ends_without_waiting_for_its_next_reading() {
        let own = Target { role: Role::Server, pid: std::process::id(), children: Children::Left };
        let day = Config { every: Duration::from_secs(86_400), ..Config::default() };
        let watch = Watch::start(&day, &[own]).unwrap();
        // Time for the first reading. The test hangs where the end waits for the second.
        std::thread::sleep(Duration::from_millis(100));
        assert!(watch.end(0).unwrap().summary.server.is_some());
        // Longer than any clock counts.
        let ages = Config { every: Duration::MAX, ..Config::default() };
        drop(Watch::start(&ages, &[own]).unwrap());
    }
}
