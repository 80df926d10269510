//! How fast the processors of a server are while it is loaded: a fixed computation, timed again and again.
//!
//! Where another virtual machine uses the same core of the host, all that keeps the units of the core busy takes longer by a tenth to a
//! third, for seconds, and no system reports that time as stolen. A computation in which each step waits for the one before hardly
//! notices that, so this one has steps that run side by side, and system calls.

use std::hint::black_box;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use kendall_stats::median;
use rustix::process::{getppid, setpriority_process};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::cores::{cores_here, cores_of};
use crate::surroundings::LoadedServers;

/// The time between two computations, each of which takes some 0.2 ms: a share of the processor that no load notices.
const EVERY: Duration = Duration::from_millis(100);
const STEPS: u32 = 20_000;
const CALLS: u32 = 500;
/// The lowest priority: the server runs first.
const NICE: i32 = 19;

/// The computation, on each core that the server may use, until it is stopped.
pub(crate) struct ProcessorWatch {
    threads: Vec<(Sender<()>, JoinHandle<Vec<f64>>)>,
}

impl ProcessorWatch {
    /// Starts on the cores of these servers; nowhere if they are on another machine.
    pub(crate) fn start(servers: &LoadedServers) -> Self {
        let cores = match servers {
            LoadedServers::Known(processes) => cores_of(processes),
            LoadedServers::Unknown => cores_here(),
        };
        let cores = (0..CpuSet::MAX_CPU).filter(|core| cores.is_set(*core));
        Self { threads: cores.filter_map(on_core).collect() }
    }

    /// The median time of the computation, in seconds of processor time; `None` if it ran nowhere.
    pub(crate) fn stop(self) -> Option<f64> {
        let times_s = |(stop, thread): (Sender<()>, JoinHandle<Vec<f64>>)| {
            drop(stop);
            thread.join().unwrap_or_default()
        };
        let times_s: Vec<f64> = self.threads.into_iter().flat_map(times_s).collect();
        (!times_s.is_empty()).then(|| median(&times_s))
    }
}

/// `None` without the thread: the speed is then unknown.
fn on_core(core: usize) -> Option<(Sender<()>, JoinHandle<Vec<f64>>)> {
    let (stop, stopped) = channel();
    let run = move || {
        let mut only = CpuSet::new();
        only.set(core);
        if sched_setaffinity(None, &only).is_err() || setpriority_process(None, NICE).is_err() {
            return Vec::new();
        }
        let mut times_s = Vec::new();
        while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
            times_s.push(computation_s());
        }
        times_s
    };
    let thread = thread::Builder::new().name("processor".into()).spawn(run).ok()?;
    Some((stop, thread))
}

/// The processor time of a fixed computation, in seconds.
fn computation_s() -> f64 {
    let now_s = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    };
    let start_s = now_s();
    let mut chains = black_box([1_u64, 2, 3, 4, 5, 6, 7, 8]);
    for _ in 0..STEPS {
        for x in &mut chains {
            *x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(*x >> 7);
        }
    }
    black_box(chains);
    for _ in 0..CALLS {
        black_box(getppid());
    }
    now_s() - start_s
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_processors_of_a_server_are_timed_and_others_are_not() {
        let watch = ProcessorWatch::start(&LoadedServers::Known(vec![std::process::id()]));
        assert!(!watch.threads.is_empty());
        thread::sleep(5 * EVERY);
        let computation_s = watch.stop().unwrap();
        assert!(computation_s > 1e-6 && computation_s < 1.0, "{computation_s}");
        assert_eq!(ProcessorWatch::start(&LoadedServers::Known(Vec::new())).stop(), None);
    }
}
