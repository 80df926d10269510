//! Keeps processors awake while a server is loaded, and watches how fast they are.
//!
//! A processor that was idle is slower for a while. On a virtual machine, whose host probably gives an idle core to others, the same work
//! took a fifth longer on an idle processor than on a busy one, by a share that changed from minute to minute. No time was reported as stolen.
//!
//! A fixed computation is timed again and again. Where another virtual machine uses the same core of the host, all that keeps the units of
//! the core busy takes longer by a tenth to a third, for seconds. A computation in which each step waits for the one before hardly notices
//! that, so this one has steps that run side by side, and system calls.

use std::fs::{self, File, OpenOptions};
use std::hint::black_box;
use std::io::{self, Write as _};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kendall_stats::{mean, median};
use rustix::process::{getppid, setpriority_process};
use rustix::thread::{CpuSet, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::cores::{cores_here, cores_of};
use crate::surroundings::LoadedServers;

/// The time between two computations, each of which takes some 40 µs: a share of the processor that no load notices. In its busy seconds
/// another virtual machine works for some milliseconds at a time, so computations this far apart are nearly independent, and many short
/// ones show the speed of a second better than a few long ones. The mean of a hundred scatters by 0.6 to 1.7 %, that of twenty by 1.3 to
/// 4.2 %.
const EVERY: Duration = Duration::from_millis(10);
/// A computation has this many parts of some 10 µs, of which the median counts: interrupts lengthen a few of them.
const PARTS: usize = 5;
/// How often a processor sleeps and works in turns, to compare how fast it is after each, and for how long.
const TURNS: u32 = 20;
const TURN: Duration = Duration::from_millis(50);
const STEPS: u32 = 1_000;
const CALLS: u32 = 25;
/// The lowest priority: the server runs first.
const NICE: i32 = 19;

/// Work takes longer after a sleep if it does so by this share: less is within the noise of [`longer_after_sleep`].
const LONGER: f64 = 0.05;

/// Why processors cannot be kept awake.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum AwakeError {
    #[error(
        "the processors cannot be kept from sleeping: this kernel has no driver that chooses how they idle, as in some virtual machines; \
         leave it out, or boot with idle=poll"
    )]
    NoDriver,
    #[error("the processors cannot be kept from sleeping ({0}); be root, or leave it out")]
    Refused(#[from] io::Error),
}

/// While it lives, no processor of this machine sleeps: each polls for work when it has none.
#[derive(Debug)]
pub struct Awake {
    /// The kernel holds to what is written into it until it is closed (Linux, Documentation/power/pm_qos_interface.rst).
    _latency: File,
}

impl Awake {
    /// Keeps the processors awake from now on.
    ///
    /// # Errors
    /// Fails where that is not permitted, which usually takes root, and where the kernel does not choose how processors idle.
    pub fn keep() -> Result<Self, AwakeError> {
        if !kernel_chooses_idling() {
            return Err(AwakeError::NoDriver);
        }
        let mut latency = OpenOptions::new().write(true).open("/dev/cpu_dma_latency")?;
        // The longest time in microseconds until a processor works again.
        latency.write_all(&0_i32.to_ne_bytes())?;
        Ok(Self { _latency: latency })
    }
}

/// Whether the kernel has a driver that chooses how processors idle.
pub(crate) fn kernel_chooses_idling() -> bool {
    let driver = fs::read_to_string("/sys/devices/system/cpu/cpuidle/current_driver");
    driver.map_or(true, |driver| driver.trim() != "none")
}

/// When a computation began, in seconds since the start of the watch, and the processor time that it took, in seconds.
type Timed = (f64, f64);

/// The computation, on each core that the server may use, until it is stopped.
pub(crate) struct ProcessorWatch {
    threads: Vec<(Sender<()>, JoinHandle<Vec<Timed>>)>,
}

/// The computations during one load, by all threads.
#[derive(Default)]
pub(crate) struct ProcessorTimes(Vec<Timed>);

impl ProcessorTimes {
    /// The median time of a computation, in seconds; `None` if there was none.
    pub(crate) fn median_s(&self) -> Option<f64> {
        let times_s: Vec<f64> = self.0.iter().map(|timed| timed.1).collect();
        (!times_s.is_empty()).then(|| median(&times_s))
    }

    /// The mean time in each whole second after `from_s`. A second without a computation has the median of all; nothing if there was no
    /// computation.
    pub(crate) fn by_second(&self, from_s: f64) -> Vec<f64> {
        let Some(all_s) = self.median_s() else { return Vec::new() };
        let mut seconds: Vec<Vec<f64>> = Vec::new();
        for (at_s, took_s) in self.0.iter().filter(|timed| timed.0 >= from_s) {
            let second = (at_s - from_s) as usize;
            seconds.resize(seconds.len().max(second + 1), Vec::new());
            seconds[second].push(*took_s);
        }
        seconds.iter().map(|times_s| if times_s.is_empty() { all_s } else { mean(times_s) }).collect()
    }
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

    /// Ends the computations.
    pub(crate) fn stop(self) -> ProcessorTimes {
        let timed = |(stop, thread): (Sender<()>, JoinHandle<Vec<Timed>>)| {
            drop(stop);
            thread.join().unwrap_or_default()
        };
        ProcessorTimes(self.threads.into_iter().flat_map(timed).collect())
    }
}

/// `None` without the thread: the speed is then unknown.
fn on_core(core: usize) -> Option<(Sender<()>, JoinHandle<Vec<Timed>>)> {
    let (stop, stopped) = channel();
    let start = Instant::now();
    let run = move || {
        let mut only = CpuSet::new();
        only.set(core);
        if sched_setaffinity(None, &only).is_err() || setpriority_process(None, NICE).is_err() {
            return Vec::new();
        }
        let mut timed = Vec::new();
        while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
            timed.push((start.elapsed().as_secs_f64(), computation_s()));
        }
        timed
    };
    let thread = thread::Builder::new().name("processor".into()).spawn(run).ok()?;
    Some((stop, thread))
}

/// By which share the computation takes longer on a processor that slept than on one that was busy, medians of several, in turns; `None`
/// if it takes no longer.
pub(crate) fn longer_after_sleep() -> Option<f64> {
    let (mut slept_s, mut busy_s) = (Vec::new(), Vec::new());
    for _ in 0..TURNS {
        thread::sleep(TURN);
        slept_s.push(computation_s());
        let begin = Instant::now();
        while begin.elapsed() < TURN {
            black_box(computation_s());
        }
        busy_s.push(computation_s());
    }
    let longer = median(&slept_s) / median(&busy_s) - 1.0;
    (longer > LONGER).then_some(longer)
}

/// The processor time of a fixed computation, in seconds, without interrupts.
fn computation_s() -> f64 {
    let now_s = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    };
    let mut before_s = now_s();
    let parts = [(); PARTS].map(|()| {
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
        let after_s = now_s();
        after_s - std::mem::replace(&mut before_s, after_s)
    });
    median(&parts) * PARTS as f64
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn the_processors_of_a_server_are_timed_and_others_are_not() {
        let watch = ProcessorWatch::start(&LoadedServers::Known(vec![std::process::id()]));
        assert!(!watch.threads.is_empty());
        thread::sleep(10 * EVERY);
        let computation_s = watch.stop().median_s().unwrap();
        assert!(computation_s > 1e-6 && computation_s < 1.0, "{computation_s}");
        let nowhere = ProcessorWatch::start(&LoadedServers::Known(Vec::new())).stop();
        assert_eq!((nowhere.median_s(), nowhere.by_second(0.0)), (None, Vec::new()));
    }

    /// Read, the device has the lowest bound that any program holds (Linux, Documentation/power/pm_qos_interface.rst).
    #[test]
    fn processors_are_awake_as_long_as_they_are_kept() {
        let _awake = match Awake::keep() {
            Ok(awake) => awake,
            Err(error) => return eprintln!("skipped: processors cannot be kept awake here ({error})"),
        };
        let mut bound_us = [1; 4];
        File::open("/dev/cpu_dma_latency").unwrap().read_exact(&mut bound_us).unwrap();
        assert_eq!(i32::from_ne_bytes(bound_us), 0);
    }

    #[test]
    fn each_second_has_its_mean() {
        let times = ProcessorTimes(vec![(0.2, 9.0), (1.1, 1.0), (1.9, 3.0), (3.5, 4.0), (3.6, 5.0)]);
        assert_eq!(times.by_second(1.0), [2.0, 4.0, 4.5]);
    }
}
