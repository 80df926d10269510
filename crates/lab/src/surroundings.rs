//! Measures what surrounds a load that is judged alone: other programs, the host, and stalls of the machine. Also waits until the
//! machine is quiet before a load begins.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kendall_analysis::{Stalls, Surroundings};

use crate::disturbance::Look;

/// The length of each wait of the thread that detects stalls.
const WAIT: Duration = Duration::from_millis(5);
/// A wait that is this much longer is a stall: waking a thread takes a tenth of a millisecond.
const STALL: Duration = Duration::from_millis(10);
/// A machine is quiet if other programs and the host take no more than this share of it.
const QUIET: f64 = 0.05;
/// The number of consecutive quiet readings that are required.
const QUIET_LOOKS: u32 = 3;
/// The time between two readings.
const LOOK: Duration = Duration::from_secs(1);
/// The kernel counts in ticks of ten milliseconds, so a shorter interval contains no tick.
const SHORTEST_LOOK: Duration = Duration::from_millis(100);

/// The servers under load, as far as they are on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadedServers {
    /// The processes of the servers; none where the server is on another machine.
    Known(Vec<u32>),
    /// The server is on this machine, but its process is unknown, so its CPU time cannot be separated from that of other
    /// programs.
    Unknown,
}

/// A measurement of what surrounds a load.
#[derive(Debug)]
pub(crate) struct SurroundingsWatch {
    before: Option<Look>,
    servers: LoadedServers,
    idle: Option<(Sender<()>, JoinHandle<Stalls>)>,
}

impl SurroundingsWatch {
    /// Starts the measurement.
    pub(crate) fn start(servers: &LoadedServers) -> Self {
        let (stop, stopped) = channel();
        // Without the thread, stalls are unknown.
        let thread = thread::Builder::new().name("stalls".into()).spawn(move || idle(&stopped)).ok();
        let idle = thread.map(|thread| (stop, thread));
        Self { before: read(servers), servers: servers.clone(), idle }
    }

    /// Ends the measurement; `None` where the machine does not report its counters.
    pub(crate) fn end(self) -> Option<Surroundings> {
        let stalls = self.idle.and_then(|(stop, thread)| {
            drop(stop);
            thread.join().ok()
        });
        let seen = since(&self.before?, &self.servers)?;
        Some(Surroundings { stalls, ..seen })
    }
}

fn read(servers: &LoadedServers) -> Option<Look> {
    match servers {
        LoadedServers::Known(servers) => Look::beside(servers),
        LoadedServers::Unknown => Look::now(),
    }
}

/// What happened since a reading.
fn since(before: &Look, servers: &LoadedServers) -> Option<Surroundings> {
    let mut seen = read(servers)?.surroundings_since(before)?;
    if *servers == LoadedServers::Unknown {
        seen.disturbance.foreign_share = 0.0;
        seen.programs.clear();
    }
    Some(seen)
}

/// Waits again and again until the other end closes, and records by how much each wait was too long.
fn idle(stopped: &Receiver<()>) -> Stalls {
    let begin = Instant::now();
    let (mut longest, mut all) = (Duration::ZERO, Duration::ZERO);
    loop {
        let slept = Instant::now();
        let ended = stopped.recv_timeout(WAIT) != Err(RecvTimeoutError::Timeout);
        let late = slept.elapsed().saturating_sub(WAIT);
        if late > STALL {
            longest = longest.max(late);
            all += late;
        }
        if ended {
            let share = all.as_secs_f64() / begin.elapsed().as_secs_f64().max(1e-9);
            return Stalls { longest_s: longest.as_secs_f64(), share };
        }
    }
}

/// The share of the machine that other programs and the host take during this time, without these servers. `None` where the
/// machine does not report it.
pub fn read_surroundings(length: Duration, servers: &LoadedServers) -> Option<Surroundings> {
    let before = read(servers)?;
    thread::sleep(length);
    since(&before, servers)
}

/// The result of waiting for a quiet machine.
#[derive(Clone, Debug, PartialEq)]
pub enum Quietness {
    /// The machine is quiet, by the last reading.
    Quiet(Surroundings),
    /// The machine did not become quiet in time; this is the last reading.
    Busy(Surroundings),
    /// The machine does not report what its programs use.
    Unknown,
    /// The wait was cancelled.
    Cancelled,
}

/// Waits until other programs and the host leave the machine alone for three readings in a row, for at most `at_most`. Calls
/// `report` with each reading.
pub fn wait_until_quiet(
    at_most: Duration,
    report: &mut dyn FnMut(&Surroundings),
    cancel: &AtomicBool,
) -> Quietness {
    let begin = Instant::now();
    let length = (at_most / QUIET_LOOKS).clamp(SHORTEST_LOOK, LOOK);
    let nothing = LoadedServers::Known(Vec::new());
    let mut quiet = 0;
    loop {
        let Some(seen) = read_surroundings(length, &nothing) else { return Quietness::Unknown };
        if cancel.load(Ordering::Relaxed) {
            return Quietness::Cancelled;
        }
        report(&seen);
        quiet = if is_quiet(&seen) { quiet + 1 } else { 0 };
        if quiet == QUIET_LOOKS {
            return Quietness::Quiet(seen);
        }
        // The wait also ends where no time is left for enough quiet readings.
        if begin.elapsed() + length * (QUIET_LOOKS - quiet) > at_most + length / 2 {
            return Quietness::Busy(seen);
        }
    }
}

fn is_quiet(seen: &Surroundings) -> bool {
    seen.disturbance.share() <= QUIET + seen.disturbance.resolution_share
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_is_left_alone_measures_its_own_stalls() {
        let watch = SurroundingsWatch::start(&LoadedServers::Known(Vec::new()));
        thread::sleep(Duration::from_millis(50));
        let stalls = watch.end().unwrap().stalls.unwrap();
        assert!((0.0..=1.0).contains(&stalls.share) && stalls.longest_s >= 0.0, "{stalls:?}");
    }

    /// The CPU time of a server of unknown process does not count as that of other programs.
    #[test]
    fn what_a_server_of_unknown_process_uses_is_no_disturbance() {
        let seen = read_surroundings(Duration::from_millis(20), &LoadedServers::Unknown).unwrap();
        assert_eq!((seen.disturbance.foreign_share, seen.programs.len()), (0.0, 0));
    }

    #[test]
    fn a_wait_for_quiet_ends_in_time_and_says_what_it_saw() {
        let mut looks = 0;
        let mut report = |_: &Surroundings| looks += 1;
        let found = wait_until_quiet(Duration::from_millis(300), &mut report, &AtomicBool::new(false));
        assert!(matches!(found, Quietness::Quiet(_) | Quietness::Busy(_)), "{found:?}");
        assert!((1..=4).contains(&looks), "{looks}");
        let cancelled = wait_until_quiet(Duration::from_secs(600), &mut |_| {}, &AtomicBool::new(true));
        assert_eq!(cancelled, Quietness::Cancelled);
    }
}
