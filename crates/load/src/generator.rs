//! A run: one thread that begins each request when it is due and hands on what became of it.

use std::io;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use kendall_record::RequestRow;
use kendall_record::clock::now_ns;

use crate::ledger::Ledger;
use crate::plan::{Plan, Timing};
use crate::progress::Progress;
use crate::standing::{Account, Standing};
use crate::summary::{RunSummary, StampedBy};
use crate::workload::{Way, Workload};
use crate::{poll, task};

/// How often the generator looks whether it is to stop.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Why a run could not be made.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum LoadError {
    #[error("the generator cannot set up its timer and sockets: {0}")]
    Setup(#[source] io::Error),
    #[error("at least one connection must be allowed")]
    NoConnection,
}

/// Runs a plan against a workload on the calling thread, which should have a core to itself.
///
/// Each request that was due becomes one row, handed to `sink` as it ends, with instants relative to the start.
/// Setting `cancel` stops at once: what is still out is then unanswered.
///
/// # Errors
/// Fails only where the generator cannot be set up. What servers do is a result, not an error.
pub fn run(
    plan: &Plan,
    workload: &dyn Workload,
    sink: &mut dyn FnMut(RequestRow),
    progress: &Progress,
    cancel: &AtomicBool,
) -> Result<RunSummary, LoadError> {
    if plan.connections == 0 {
        return Err(LoadError::NoConnection);
    }
    raise_open_files();
    let standing = Standing::take(plan);
    match workload.way() {
        Way::Bytes(wire, dialogs) => {
            let mut ledger = Ledger::new(plan, workload, sink, progress);
            let before = Account::now();
            let stamped_by =
                poll::drive(&mut ledger, &wire, dialogs, plan, cancel).map_err(LoadError::Setup)?;
            let timing = if plan.is_fixed_in_advance() { plan.timing } else { Timing::Sleep };
            Ok(close(ledger, &before, &standing, timing, stamped_by))
        }
        Way::Tasks(connect) => {
            let mut ledger = Ledger::new(plan, workload, sink, progress);
            let before = Account::now();
            task::drive(&mut ledger, connect, plan, cancel).map_err(LoadError::Setup)?;
            Ok(close(ledger, &before, &standing, Timing::Sleep, StampedBy::Generator))
        }
    }
}

/// Closes the books of a run, with what the thread used since `before`.
fn close<C>(
    ledger: Ledger<'_, C>,
    before: &Account,
    standing: &Standing,
    timing: Timing,
    stamped_by: StampedBy,
) -> RunSummary {
    let end_ns = now_ns();
    let after = Account::now();
    let thread = standing.fared(before, &after, timing, stamped_by);
    ledger.close(end_ns, after.cpu_s - before.cpu_s, thread)
}

/// The default limit of 1,024 open files is less than the connections that a plan may allow.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // If it cannot be raised, connections that do not fit are counted as this side's failures.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
