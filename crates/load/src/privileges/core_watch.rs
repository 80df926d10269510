//! Keeps the generator's thread on the idlest core.
//!
//! The kernel wakes a real-time thread on the core where it last ran, preempting the thread that computes there,
//! although another core is idle: a server that computes on that core for the whole run loses the generator's time to
//! it, and seems slower than it is. The scheduler does not move the server for so little, so the generator moves.

use std::fs;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_setaffinity};

/// The interval of the check. The kernel's account of idle time has ticks of 10 ms.
const EVERY: Duration = Duration::from_millis(100);
/// The generator moves to a core that was idle for this much more of the time, as a share of it.
const WORTH_IT: f64 = 0.25;

/// Watches a thread until it is dropped.
pub(super) struct CoreWatch {
    stop: Option<Sender<()>>,
    watcher: Option<JoinHandle<()>>,
    allowed: CpuSet,
}

impl CoreWatch {
    /// Watches this thread, from a thread that does not yet have its priority; `None` if there is no other core or no
    /// account of them.
    pub(super) fn start() -> Option<Self> {
        let allowed = sched_getaffinity(None).ok()?;
        let before = Idle::read()?;
        if allowed.count() < 2 {
            return None;
        }
        let (generator, (stop, stopped)) = (gettid(), mpsc::channel());
        let watch = move || {
            let mut before = before;
            while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(EVERY) {
                let Some(now) = Idle::read() else { return };
                // If the current core is unknown, any core may be its own.
                if let Some(core) = last_ran_on(generator).and_then(|own| now.better(&before, own, &allowed))
                {
                    keep_on(generator, core);
                }
                before = now;
            }
        };
        let watcher = thread::Builder::new().name("kendall-core".into()).spawn(watch).ok()?;
        Some(Self { stop: Some(stop), watcher: Some(watcher), allowed })
    }
}

impl Drop for CoreWatch {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(watcher) = self.watcher.take() {
            // The thread returns no result; if it panicked, the cores are still restored.
            let _ = watcher.join();
        }
        let _ = sched_setaffinity(None, &self.allowed);
    }
}

fn keep_on(thread: Pid, core: usize) {
    let mut only = CpuSet::new();
    only.set(core);
    let _ = sched_setaffinity(Some(thread), &only);
}

/// The core on which a thread of this process last ran: field 39 of its `stat`, the 37th after its name in brackets.
fn last_ran_on(thread: Pid) -> Option<usize> {
    let stat = fs::read_to_string(format!("/proc/self/task/{}/stat", thread.as_raw_nonzero())).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(36)?.parse().ok()
}

/// The idle and the total time of each core, in ticks, by its number.
struct Idle(Vec<(usize, u64, u64)>);

impl Idle {
    fn read() -> Option<Self> {
        Self::of(&fs::read_to_string("/proc/stat").ok()?)
    }

    /// From lines such as `cpu0 user nice system idle iowait irq softirq steal guest guest_nice`.
    fn of(stat: &str) -> Option<Self> {
        let core = |line: &str| {
            let mut fields = line.strip_prefix("cpu")?.split(' ');
            let number = fields.next()?.parse().ok()?;
            // Guest time is already part of user time.
            let ticks: Vec<u64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
            Some((number, ticks.get(3)? + ticks.get(4)?, ticks.iter().sum()))
        };
        let cores: Vec<_> = stat.lines().filter_map(core).collect();
        (!cores.is_empty()).then_some(Self(cores))
    }

    /// The allowed core that was idlest since `before`, if moving there is worthwhile.
    fn better(&self, before: &Self, own: usize, allowed: &CpuSet) -> Option<usize> {
        let share = |&(number, idle, all): &(usize, u64, u64)| {
            let &(_, idle_before, all_before) = before.0.iter().find(|core| core.0 == number)?;
            let ticks = all.saturating_sub(all_before);
            (ticks > 0).then(|| (number, idle.saturating_sub(idle_before) as f64 / ticks as f64))
        };
        let shares: Vec<(usize, f64)> = self.0.iter().filter_map(share).collect();
        let own_idle = shares.iter().find(|core| core.0 == own)?.1;
        let open = shares.into_iter().filter(|core| core.0 < CpuSet::MAX_CPU && allowed.is_set(core.0));
        let (core, idle) = open.max_by(|a, b| a.1.total_cmp(&b.1))?;
        (idle > own_idle + WORTH_IT).then_some(core)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn idle(cores: [[u64; 2]; 3]) -> Idle {
        let line = |(number, [busy, idle]): (usize, [u64; 2])| {
            format!("cpu{number} {busy} 0 0 {idle} 0 0 0 0 0 0\n")
        };
        let lines: String = cores.into_iter().enumerate().map(line).collect();
        Idle::of(&format!("cpu  1 2 3 4 5 6 7 8 9 10\n{lines}intr 5 0\n")).unwrap()
    }

    #[test]
    fn the_idlest_core_is_chosen_if_moving_is_worthwhile() {
        let before = idle([[100, 100], [100, 100], [100, 100]]);
        let mut allowed = CpuSet::new();
        (0..3).for_each(|core| allowed.set(core));
        // In the last ten ticks core 0 was idle for 2, core 1 for 9, core 2 for 8.
        let now = idle([[108, 102], [101, 109], [102, 108]]);
        assert_eq!(now.better(&before, 0, &allowed), Some(1));
        assert_eq!(now.better(&before, 1, &allowed), None, "it is there already");
        assert_eq!(now.better(&before, 2, &allowed), None, "a tick more is not worth it");
        allowed.unset(1);
        assert_eq!(now.better(&before, 0, &allowed), Some(2), "only what it may use");
        assert_eq!(before.better(&before, 0, &allowed), None, "no time has passed");
    }

    #[test]
    fn a_thread_is_found_and_may_use_all_its_cores_again() {
        let before = sched_getaffinity(None).unwrap();
        let own = last_ran_on(gettid()).unwrap();
        assert!(before.is_set(own));
        if let Some(watch) = CoreWatch::start() {
            keep_on(gettid(), own);
            assert_eq!(sched_getaffinity(None).unwrap().count(), 1);
            drop(watch);
        }
        assert_eq!(sched_getaffinity(None).unwrap(), before);
    }
}
