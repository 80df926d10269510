//! Tests that measure time: an attempt that fails is repeated only if a concurrent meter saw that the machine was disturbed.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The most attempts.
const ATTEMPTS: usize = 5;
/// The length of each of the meter's sleeps.
const NAP: Duration = Duration::from_millis(1);
/// A sleep that is late by this time indicates a pause of the machine.
const PAUSE: Duration = Duration::from_millis(10);
/// Sleeps that are late by this share of the whole time indicate that other programs had the processors.
const LATE_SHARE: f64 = 0.1;
/// A share of all processor time above this, taken by other machines of the host, counts as a disturbance.
const STOLEN_SHARE: f64 = 0.02;

/// Returns the result of the first attempt that succeeds. Repeats and reports a failed one if the machine was disturbed.
///
/// # Panics
/// Where an attempt fails on an undisturbed machine, or all fail.
pub fn unless_disturbed<T>(mut attempt: impl FnMut() -> Result<T, String>) -> T {
    let mut reasons = Vec::new();
    for _ in 0..ATTEMPTS {
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

/// A thread that sleeps during a test and records when it wakes late.
struct Meter {
    began: Instant,
    stolen: Stolen,
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
        Self { began: Instant::now(), stolen: Stolen::now(), ended, sleeper }
    }

    /// What disturbed the machine since the start.
    fn end(self) -> Option<String> {
        self.ended.store(true, Ordering::Relaxed);
        let late = self.sleeper.join().expect("the sleeper does not panic");
        let share = late.sum.as_secs_f64() / self.began.elapsed().as_secs_f64();
        let stolen = Stolen::now().share_since(&self.stolen);
        if late.longest > PAUSE {
            Some(format!("a thread woke {:?} late", late.longest))
        } else if share > LATE_SHARE {
            Some(format!("sleeps were late by {:.0} % of the time", share * 100.0))
        } else if stolen > STOLEN_SHARE {
            Some(format!("the host took {:.0} % of the processors", stolen * 100.0))
        } else {
            None
        }
    }
}

/// Processor time since the machine started, from the first line of `/proc/stat`; zeros where there is no such file.
struct Stolen {
    stolen: u64,
    all: u64,
}

impl Stolen {
    fn now() -> Self {
        let text = fs::read_to_string("/proc/stat").unwrap_or_default();
        let ticks = text.lines().next().unwrap_or_default().split_whitespace().skip(1);
        // User, nice, system, idle, iowait, irq, softirq, steal; the rest is part of the first two.
        let ticks: Vec<u64> = ticks.take(8).filter_map(|ticks| ticks.parse().ok()).collect();
        Self { stolen: ticks.get(7).copied().unwrap_or_default(), all: ticks.iter().sum() }
    }

    fn share_since(&self, before: &Self) -> f64 {
        let all = self.all.saturating_sub(before.all).max(1);
        self.stolen.saturating_sub(before.stolen) as f64 / all as f64
    }
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
    #[should_panic = "it is wrong"]
    fn an_attempt_that_always_fails_fails_the_test() {
        unless_disturbed::<()>(|| Err("it is wrong".into()));
    }
}
