//! What surrounds a load that is judged alone: other programs, the host, stalls of the machine; and whether the machine is quiet before
//! one begins.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kendall_analysis::{Stalls, Surroundings};

use crate::disturbance::Look;

/// How long the thread that watches for stalls waits each time.
const WAIT: Duration = Duration::from_millis(5);
/// A wait that is this much longer is a stall: waking a thread takes a tenth of a millisecond.
const STALL: Duration = Duration::from_millis(10);
/// A machine is quiet if other programs and the host take no more than this share of it.
const QUIET: f64 = 0.05;
/// And it has to be so in this many looks, one after the other.
const QUIET_LOOKS: u32 = 3;
/// The time between two looks.
const LOOK: Duration = Duration::from_secs(1);
/// The kernel counts in ticks of ten milliseconds, so a shorter look sees nothing.
const SHORTEST_LOOK: Duration = Duration::from_millis(100);

/// The servers that a load runs against, as far as they are on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadedServers {
    /// These processes; none where the server is on another machine.
    Known(Vec<u32>),
    /// The server is on this machine, and its process is not known: its CPU time cannot be distinguished from that of other programs.
    Unknown,
}

/// A watch over what surrounds a load.
#[derive(Debug)]
pub(crate) struct SurroundingsWatch {
    before: Option<Look>,
    servers: LoadedServers,
    idle: Option<(Sender<()>, JoinHandle<Stalls>)>,
}

impl SurroundingsWatch {
    /// Begins to watch.
    pub(crate) fn start(servers: &LoadedServers) -> Self {
        let (stop, stopped) = channel();
        // Without the thread, stalls are not known.
        let thread = thread::Builder::new().name("stalls".into()).spawn(move || idle(&stopped)).ok();
        let idle = thread.map(|thread| (stop, thread));
        Self { before: look(servers), servers: servers.clone(), idle }
    }

    /// Ends it; `None` where the machine does not tell.
    pub(crate) fn end(self) -> Option<Surroundings> {
        let stalls = self.idle.and_then(|(stop, thread)| {
            drop(stop);
            thread.join().ok()
        });
        let seen = since(&self.before?, &self.servers)?;
        Some(Surroundings { stalls, ..seen })
    }
}

fn look(servers: &LoadedServers) -> Option<Look> {
    match servers {
        LoadedServers::Known(servers) => Look::beside(servers),
        LoadedServers::Unknown => Look::now(),
    }
}

/// What happened since a look.
fn since(before: &Look, servers: &LoadedServers) -> Option<Surroundings> {
    let mut seen = look(servers)?.surroundings_since(before)?;
    if *servers == LoadedServers::Unknown {
        seen.disturbance.foreign_share = 0.0;
        seen.programs.clear();
    }
    Some(seen)
}

/// Waits again and again until the other end is gone, and notes by how much each wait was too long.
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

/// What other programs and the host take of the machine during this time, with these servers left out. `None` where the machine does
/// not tell.
pub fn look_around(length: Duration, servers: &LoadedServers) -> Option<Surroundings> {
    let before = look(servers)?;
    thread::sleep(length);
    since(&before, servers)
}

/// How long it took until a machine was quiet, or what kept it busy.
#[derive(Clone, Debug, PartialEq)]
pub enum Quietness {
    /// It is quiet, by the last look.
    Quiet(Surroundings),
    /// It was not quiet in time: what the last look saw.
    Busy(Surroundings),
    /// The machine does not tell what its programs use.
    Unknown,
    /// The wait was cancelled.
    Cancelled,
}

/// Waits until other programs and the host leave the machine alone for three looks in a row, for no longer than `at_most`. `tell` hears
/// what each look saw.
pub fn wait_until_quiet(
    at_most: Duration,
    tell: &mut dyn FnMut(&Surroundings),
    cancel: &AtomicBool,
) -> Quietness {
    let begin = Instant::now();
    let length = (at_most / QUIET_LOOKS).clamp(SHORTEST_LOOK, LOOK);
    let nothing = LoadedServers::Known(Vec::new());
    let mut quiet = 0;
    loop {
        let Some(seen) = look_around(length, &nothing) else { return Quietness::Unknown };
        if cancel.load(Ordering::Relaxed) {
            return Quietness::Cancelled;
        }
        tell(&seen);
        quiet = if is_quiet(&seen) { quiet + 1 } else { 0 };
        if quiet == QUIET_LOOKS {
            return Quietness::Quiet(seen);
        }
        // Also where the machine may be quiet by now, if there is no time to see that it stays so.
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

    /// The time of a server of unknown process is not held against other programs.
    #[test]
    fn what_a_server_of_unknown_process_uses_is_no_disturbance() {
        let seen = look_around(Duration::from_millis(20), &LoadedServers::Unknown).unwrap();
        assert_eq!((seen.disturbance.foreign_share, seen.programs.len()), (0.0, 0));
    }

    #[test]
    fn a_wait_for_quiet_ends_in_time_and_says_what_it_saw() {
        let mut looks = 0;
        let mut tell = |_: &Surroundings| looks += 1;
        let found = wait_until_quiet(Duration::from_millis(300), &mut tell, &AtomicBool::new(false));
        assert!(matches!(found, Quietness::Quiet(_) | Quietness::Busy(_)), "{found:?}");
        assert!((1..=4).contains(&looks), "{looks}");
        let cancelled = wait_until_quiet(Duration::from_secs(600), &mut |_| {}, &AtomicBool::new(true));
        assert_eq!(cancelled, Quietness::Cancelled);
    }
}
