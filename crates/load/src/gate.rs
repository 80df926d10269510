//! The common start of all threads of a run: none begins before all are ready, and all count from the same instant.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use kendall_record::clock::now_ns;

/// Several threads start this long after the last is ready, so that each is awake by then.
const LEAD_NS: i64 = 1_000_000;
/// Before a start at a given instant the threads spin for this long, because waking takes time.
const SPIN_NS: i64 = 2_000_000;

/// The gate of a run.
pub(crate) struct Gate {
    state: Mutex<State>,
    changed: Condvar,
    threads: u32,
    /// The instant of the start, if one was given.
    at_ns: Option<i64>,
}

struct State {
    missing: u32,
    failed: bool,
    start_ns: i64,
}

/// The pass of one thread. Dropping it unused, because its thread could not be set up, ends the run.
pub(crate) struct Pass<'g> {
    gate: &'g Gate,
    is_used: bool,
}

impl Gate {
    pub(crate) fn new(threads: u32, at_ns: Option<i64>) -> Self {
        let state = State { missing: threads, failed: false, start_ns: 0 };
        Self { state: Mutex::new(state), changed: Condvar::new(), threads, at_ns }
    }

    /// The pass of one of the threads.
    pub(crate) fn pass(&self) -> Pass<'_> {
        Pass { gate: self, is_used: false }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arrive(&self, failed: bool) -> MutexGuard<'_, State> {
        let mut state = self.state();
        state.missing -= 1;
        state.failed |= failed;
        if state.missing == 0 {
            let lead_ns = if self.threads > 1 { LEAD_NS } else { 0 };
            state.start_ns = (now_ns() + lead_ns).max(self.at_ns.unwrap_or(i64::MIN));
            self.changed.notify_all();
        }
        state
    }
}

impl Pass<'_> {
    /// Waits until all threads are ready, and until shortly before the instant of the start if one was given. Returns the
    /// instant; `None` if another thread could not be set up.
    pub(crate) fn start_ns(mut self) -> Option<i64> {
        self.is_used = true;
        let gate = self.gate;
        let state = gate.arrive(false);
        let is_missing = |state: &mut State| state.missing > 0;
        let state = gate.changed.wait_while(state, is_missing).unwrap_or_else(PoisonError::into_inner);
        let (failed, start_ns) = (state.failed, state.start_ns);
        drop(state);
        if failed {
            return None;
        }
        if gate.at_ns.is_some() {
            let sleep_ns = u64::try_from(start_ns - SPIN_NS - now_ns()).unwrap_or(0);
            thread::sleep(Duration::from_nanos(sleep_ns));
            while now_ns() < start_ns {
                std::hint::spin_loop();
            }
        }
        Some(start_ns)
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if !self.is_used {
            drop(self.gate.arrive(true));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_threads_start_at_the_same_instant() {
        let gate = Gate::new(4, None);
        let starts: Vec<Option<i64>> = thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(|| gate.pass().start_ns())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(starts[0].is_some() && starts.iter().all(|start| *start == starts[0]), "{starts:?}");
    }

    #[test]
    fn no_thread_starts_if_one_could_not_be_set_up() {
        let gate = Gate::new(2, None);
        thread::scope(|scope| {
            let ready = scope.spawn(|| gate.pass().start_ns());
            drop(gate.pass());
            assert_eq!(ready.join().unwrap(), None);
        });
    }

    #[test]
    fn a_start_at_an_instant_is_not_before_it() {
        let at_ns = now_ns() + 5_000_000;
        assert_eq!(Gate::new(1, Some(at_ns)).pass().start_ns(), Some(at_ns));
        assert!(now_ns() >= at_ns);
        // An instant that has passed is no longer possible.
        assert!(Gate::new(1, Some(at_ns)).pass().start_ns() > Some(at_ns));
    }
}
