//! Privileges of the generator's thread during a run: its priority, timers without slack, and an isolated core if there
//! is one, otherwise the idlest.
//!
//! Without them a server that computes delays the thread by whole time slices, and requests are sent late. All privileges
//! are dropped afterwards, because threads that are started later would inherit them.

mod core_watch;

use std::fs;
use std::num::NonZeroU64;

use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::{
    CpuSet, current_timer_slack, sched_getaffinity, sched_setaffinity, set_current_timer_slack,
};
use rustix::time::{ClockId, clock_gettime};
use thread_priority::ThreadPriority;
use thread_priority::unix::{
    NormalThreadSchedulePolicy, RealtimeThreadSchedulePolicy, ThreadSchedulePolicy,
    set_thread_priority_and_policy, thread_native_id,
};

use crate::plan::{Plan, Timing};
use crate::privileges::core_watch::CoreWatch;
use crate::summary::{Priority, StampedBy, ThreadUse};

/// Held during a run.
pub(crate) struct Privileges {
    nice_before: rustix::io::Result<i32>,
    slack_before: rustix::io::Result<u64>,
    cores_before: Option<CpuSet>,
    priority: Priority,
    core: Option<u32>,
    _core_watch: Option<CoreWatch>,
}

impl Privileges {
    /// Takes the permitted privileges. A missing one causes a lag, which is measured and reported.
    /// Several threads leave it to the scheduler which core each runs on, unless there is an isolated one for each.
    pub(crate) fn take(plan: &Plan, thread: u32) -> Self {
        let nice_before = getpriority_process(None);
        // Fails without CAP_SYS_NICE.
        let goes_first =
            nice_before.is_ok() && !leaves_batches(plan) && setpriority_process(None, -20).is_ok();
        let slack_before = current_timer_slack();
        let _ = set_current_timer_slack(NonZeroU64::new(1));
        let own_core = plan.core.or_else(|| isolated_core(thread, plan.threads));
        // Started before this thread has its priority, which the watching thread would inherit.
        let moves = plan.goes_first && own_core.is_none() && plan.threads == 1;
        let core_watch = moves.then(CoreWatch::start).flatten();
        let priority = if plan.goes_first && !never_sleeps(plan) && go_before_all() {
            Priority::RealTime
        } else if goes_first {
            Priority::BeforeOthers
        } else {
            Priority::Usual
        };
        let (core, cores_before) = keep_on(own_core).unzip();
        Self { nice_before, slack_before, cores_before, priority, core, _core_watch: core_watch }
    }

    /// The resources that the thread used between two accounts.
    pub(crate) fn used(
        &self,
        before: &ThreadAccount,
        now: &ThreadAccount,
        timing: Timing,
        stamped_by: StampedBy,
    ) -> ThreadUse {
        let since = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        ThreadUse {
            timing,
            priority: self.priority,
            core: self.core,
            stamped_by,
            run_queue_s: since(now.run_queue_ns, before.run_queue_ns).map(|ns| ns as f64 / 1e9),
            voluntary_switches: since(now.voluntary_switches, before.voluntary_switches),
            involuntary_switches: since(now.involuntary_switches, before.involuntary_switches),
        }
    }
}

impl Drop for Privileges {
    fn drop(&mut self) {
        // None of these needs a privilege: they only yield, or change nothing.
        if self.priority == Priority::RealTime {
            // The crate sets niceness with it. Too low a one could not be raised again without a privilege.
            let usual = ThreadSchedulePolicy::Normal(NormalThreadSchedulePolicy::Other);
            let _ = set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Max, usual);
        }
        if let Ok(nice) = self.nice_before {
            let _ = setpriority_process(None, nice);
        }
        if let Ok(slack) = self.slack_before {
            let _ = set_current_timer_slack(NonZeroU64::new(slack));
        }
        if let Some(cores) = &self.cores_before {
            let _ = sched_setaffinity(None, cores);
        }
    }
}

/// Whether the threads run at the usual priority. Where answers decide when requests are due, none can be late, and threads that
/// were to run before a server on the same cores would be woken for each single answer instead of for several at once.
fn leaves_batches(plan: &Plan) -> bool {
    plan.threads > 1 && !plan.is_fixed_in_advance()
}

/// Whether it spins from one send to the next. A process that the kernel does not run for a second then gets 50 ms, even
/// before real-time threads, and all sends of that time are late.
fn never_sleeps(plan: &Plan) -> bool {
    const MOST_PER_S: f64 = 10_000.0;
    let most_per_s = MOST_PER_S * f64::from(plan.threads) * f64::from(plan.share.of());
    plan.timing == Timing::Precise && plan.arrivals.rate_per_s().is_some_and(|per_s| per_s > most_per_s)
}

/// Sets real-time priority, the lowest there is: before every ordinary thread, after those of the kernel.
fn go_before_all() -> bool {
    let fifo = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, fifo).is_ok()
}

/// Pins the thread to one core; returns it and the cores that it could use before.
fn keep_on(core: Option<u32>) -> Option<(u32, CpuSet)> {
    let core = core.filter(|&core| (core as usize) < CpuSet::MAX_CPU)?;
    let before = sched_getaffinity(None).ok()?;
    let mut only = CpuSet::new();
    only.set(core as usize);
    sched_setaffinity(None, &only).ok()?;
    Some((core, before))
}

/// The core for one of the given number of threads among those that the kernel keeps free (`isolcpus`), and that this thread
/// may use. `None` if they are fewer than the threads.
fn isolated_core(thread: u32, threads: u32) -> Option<u32> {
    let isolated = fs::read_to_string("/sys/devices/system/cpu/isolated").ok()?;
    let allowed = sched_getaffinity(None).ok()?;
    let cores = cores_of(&isolated).filter(|&core| core < CpuSet::MAX_CPU && allowed.is_set(core));
    let free: Vec<usize> = cores.take(threads as usize).collect();
    if free.len() < threads as usize { None } else { free.get(thread as usize).map(|&core| core as u32) }
}

/// The cores of ranges such as `2-5`, and of single numbers.
fn cores_of(ranges: &str) -> impl Iterator<Item = usize> {
    let range = |text: &str| {
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        Some(first.parse::<usize>().ok()?..=last.parse().ok()?)
    };
    ranges.trim().split(',').filter_map(range).flatten()
}

/// The kernel's account of this thread at one instant.
pub(crate) struct ThreadAccount {
    pub(crate) cpu_s: f64,
    run_queue_ns: Option<u64>,
    voluntary_switches: Option<u64>,
    involuntary_switches: Option<u64>,
}

impl ThreadAccount {
    pub(crate) fn now() -> Self {
        let cpu = clock_gettime(ClockId::ThreadCPUTime);
        // "<on the core> <waiting for it> <slices>", in ns.
        let waited = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let field = |name| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|value| value.trim().parse().ok())
        };
        Self {
            cpu_s: cpu.tv_sec as f64 + cpu.tv_nsec as f64 * 1e-9,
            run_queue_ns: waited.split_whitespace().nth(1).and_then(|ns| ns.parse().ok()),
            voluntary_switches: field("voluntary_ctxt_switches:"),
            involuntary_switches: field("nonvoluntary_ctxt_switches:"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_cores_are_read() {
        assert_eq!(cores_of("2-4,7\n").collect::<Vec<_>>(), [2, 3, 4, 7]);
        assert_eq!(cores_of("\n").count(), 0);
    }
}
