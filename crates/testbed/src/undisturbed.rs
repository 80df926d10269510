//! Tests that measure time: an attempt that fails is repeated only if a concurrent meter saw that the machine was disturbed.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The most attempts.
const ATTEMPTS: u32 = 5;
/// The wait after the first disturbed attempt; each further one is twice as long, because other work may go on for seconds.
const WAIT: Duration = Duration::from_secs(1);
/// The length of each of the meter's sleeps.
const NAP: Duration = Duration::from_millis(1);
/// A sleep that is late by this time indicates a pause of the machine.
const PAUSE: Duration = Duration::from_millis(10);
/// Sleeps that are late by this share of the whole time indicate that other programs had the processors.
const LATE_SHARE: f64 = 0.1;
/// A share of all processor time above this, taken by other machines of the host, counts as a disturbance.
const STOLEN_SHARE: f64 = 0.02;
/// A share of all processor time above this, used by other processes, counts as a disturbance.
const OTHERS_SHARE: f64 = 0.2;

/// Returns the result of the first attempt that succeeds. Repeats and reports a failed one if the machine was disturbed.
///
/// # Panics
/// Where an attempt fails on an undisturbed machine, or all fail.
pub fn unless_disturbed<T>(mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let mut reasons = Vec::new();
    for attempts_before in 0..ATTEMPTS {
        if attempts_before > 0 {
            thread::sleep(WAIT * 2_u32.pow(attempts_before - 1));
        }
        let meter = Meter::start();
        let result = attempt();
        match (result, meter.end()) {
            (Ok(found), _) => return found,
            (Err(why), None) => panic!("{why}"),
            (Err(why), Some(disturbance)) => {
                eprintln!("attempt repeated: {disturbance}: {why}");
                reasons.push(format!("{disturbance}: {why}"));
            }
        }
    }
    panic!("the machine was disturbed in each of {ATTEMPTS} attempts: {reasons:#?}")
}

/// A thread that sleeps during a test and records when it wakes late, and the processor time before it.
struct Meter {
    began: Instant,
    before: ProcessorTime,
    ended: Arc<AtomicBool>,
    sleeper: JoinHandle<Lateness>,
}

#[derive(Default)]
struct Lateness {
    sum: Duration,
    longest: Duration,
}

impl Meter {
    fn start() -> Self {
        let ended = Arc::new(AtomicBool::new(false));
        let until = Arc::clone(&ended);
        let sleeper = thread::spawn(move || {
            let mut late = Lateness::default();
            while !until.load(Ordering::Relaxed) {
                let began = Instant::now();
                thread::sleep(NAP);
                let by = began.elapsed().saturating_sub(NAP);
                late.sum += by;
                late.longest = late.longest.max(by);
            }
            late
        });
        Self { began: Instant::now(), before: ProcessorTime::now(), ended, sleeper }
    }

    /// What disturbed the machine since the start.
    fn end(self) -> Option<String> {
        self.ended.store(true, Ordering::Relaxed);
        let late = self.sleeper.join().expect("the sleeper does not panic");
        let share = late.sum.as_secs_f64() / self.began.elapsed().as_secs_f64();
        let taken = ProcessorTime::now().since(&self.before);
        if late.longest > PAUSE {
            Some(format!("a thread woke {:?} late", late.longest))
        } else if share > LATE_SHARE {
            Some(format!("sleeps were late by {:.0} % of the time", share * 100.0))
        } else if taken.stolen_share() > STOLEN_SHARE {
            Some(format!("the host took {:.0} % of the processors", taken.stolen_share() * 100.0))
        } else if taken.others_share() > OTHERS_SHARE {
            Some(format!("other processes took {:.0} % of the processors", taken.others_share() * 100.0))
        } else {
            None
        }
    }
}

/// Processor time in clock ticks, from `/proc`; zeros where the system has no such folder.
struct ProcessorTime {
    all: u64,
    busy: u64,
    stolen: u64,
    /// Used by this process and by its children that it has waited for.
    own: u64,
}

impl ProcessorTime {
    /// Since the machine, and this process, started.
    fn now() -> Self {
        let machine = fs::read_to_string("/proc/stat").unwrap_or_default();
        // User, nice, system, idle, iowait, irq, softirq, steal; the rest is part of the first two.
        let machine = numbers(machine.lines().next().unwrap_or_default(), 1, 8);
        let process = fs::read_to_string("/proc/self/stat").unwrap_or_default();
        // After the name, which is in parentheses: the times of this process in user mode and in the kernel, and of its children.
        let process = numbers(process.rsplit(')').next().unwrap_or_default(), 11, 4);
        let all = machine.iter().sum();
        let stolen = machine.get(7).copied().unwrap_or_default();
        let idle: u64 = machine.iter().skip(3).take(2).sum();
        Self { all, busy: all - idle - stolen, stolen, own: process.iter().sum() }
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            all: self.all.saturating_sub(before.all).max(1),
            busy: self.busy.saturating_sub(before.busy),
            stolen: self.stolen.saturating_sub(before.stolen),
            own: self.own.saturating_sub(before.own),
        }
    }

    fn stolen_share(&self) -> f64 {
        self.stolen as f64 / self.all as f64
    }

    fn others_share(&self) -> f64 {
        self.busy.saturating_sub(self.own) as f64 / self.all as f64
    }
}

/// The numbers of a line after its first words.
fn numbers(line: &str, after: usize, count: usize) -> Vec<u64> {
    let words = line.split_whitespace().skip(after).take(count);
    words.filter_map(|word| word.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_that_succeeds_is_the_only_one() {
        let mut attempts = 0;
        let found = unless_disturbed(|| {
            attempts += 1;
            Ok::<_, String>(attempts)
        });
        assert_eq!((found, attempts), (1, 1));
    }

    #[test]
    fn the_work_of_other_processes_is_a_disturbance_and_the_own_is_not() {
        let spin =
            || (0..40_000_000_u64).fold(1, |state, step| std::hint::black_box(state ^ step).rotate_left(7));
        let before = ProcessorTime::now();
        spin();
        let taken = ProcessorTime::now().since(&before);
        assert!(taken.own > 0 && taken.busy > 0, "{} of {}", taken.own, taken.busy);
        let other = ProcessorTime { all: 200, busy: 150, stolen: 0, own: 50 };
        assert_eq!(other.others_share(), 0.5);
    }

    #[test]
    #[should_panic = "it is wrong"]
    fn an_attempt_that_always_fails_fails_the_test() {
        unless_disturbed::<()>(|| Err("it is wrong".into()));
    }
}
