//! A run: one thread that sends each request when it is due, and another that collects the rows.

use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::AtomicBool;
use std::thread;

use kendall_linkmodel::Carries;
use kendall_record::clock::now_ns;

use crate::ledger::Ledger;
use crate::plan::{Plan, Timing};
use crate::poll::{Exchanges, Lines, SessionLines};
use crate::privileges::{Privileges, ThreadAccount};
use crate::progress::Progress;
use crate::rows::{self, RowBatches, RowSink};
use crate::summary::{RunSummary, StampedBy};
use crate::workload::{Route, Workload};
use crate::{poll, task};

/// The reason why a run could not be made.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum LoadError {
    #[error("the generator cannot set up its timer and sockets: {0}")]
    Setup(#[source] io::Error),
    #[error("the generator needs at least one connection; set connections to 1 or more")]
    NoConnection,
    #[error("sessions need a stream; use TCP or TLS and not UDP")]
    SessionsOverDatagrams,
}

/// Runs a plan against a workload on the calling thread, which should have a core to itself.
///
/// Each request that was due becomes one row, with instants relative to the start. `collect` gets the rows in batches, on
/// a separate thread: writing a record or computing an answer there delays no request. Its result is returned together
/// with the run's summary. Setting `cancel` stops at once: requests in flight are then unanswered.
///
/// # Errors
/// Fails only if the generator cannot be set up. What servers do is a result, not an error.
pub fn run<T: Send>(
    plan: &Plan,
    workload: &dyn Workload,
    progress: &Progress,
    cancel: &AtomicBool,
    collect: impl FnOnce(RowBatches) -> T + Send,
) -> Result<(RunSummary, T), LoadError> {
    if plan.connections == 0 {
        return Err(LoadError::NoConnection);
    }
    let (sink, batches) = rows::channel();
    thread::scope(|scope| {
        // Started before the generator takes its privileges, which the thread would inherit.
        let collector = scope.spawn(move || collect(batches));
        let summary = send(plan, workload, sink, progress, cancel);
        let collected = collector.join().unwrap_or_else(|panic| resume_unwind(panic));
        Ok((summary?, collected))
    })
}

/// Sends the requests of a plan.
fn send(
    plan: &Plan,
    workload: &dyn Workload,
    sink: RowSink,
    progress: &Progress,
    cancel: &AtomicBool,
) -> Result<RunSummary, LoadError> {
    raise_open_files();
    let privileges = Privileges::take(plan);
    match workload.route() {
        Route::Bytes(wire, dialogs) => {
            let ledger = Ledger::new(plan, workload, sink, progress);
            let lines = Exchanges::new(&wire, dialogs);
            send_over_sockets(ledger, lines, plan, cancel, &privileges)
        }
        Route::Sessions(_, kind, _) if kind.transport().carries == Carries::Datagrams => {
            Err(LoadError::SessionsOverDatagrams)
        }
        Route::Sessions(to, kind, sessions) => {
            let ledger = Ledger::over_sessions(plan, workload, sink, progress);
            let lines = SessionLines::new(to, kind, sessions);
            send_over_sockets(ledger, lines, plan, cancel, &privileges)
        }
        Route::Tasks(connect) => {
            let mut ledger = Ledger::new(plan, workload, sink, progress);
            let before = ThreadAccount::now();
            task::drive(&mut ledger, connect, plan, cancel).map_err(LoadError::Setup)?;
            Ok(close(ledger, &before, &privileges, Timing::Sleep, StampedBy::Generator))
        }
    }
}

fn send_over_sockets<'a>(
    mut ledger: Ledger<'a, poll::Key>,
    lines: impl Lines,
    plan: &'a Plan,
    cancel: &AtomicBool,
    privileges: &Privileges,
) -> Result<RunSummary, LoadError> {
    let before = ThreadAccount::now();
    let stamped_by = poll::drive(&mut ledger, lines, plan, cancel).map_err(LoadError::Setup)?;
    let timing = if plan.is_fixed_in_advance() { plan.timing } else { Timing::Sleep };
    Ok(close(ledger, &before, privileges, timing, stamped_by))
}

/// Closes the ledger of a run, with the resources that the thread used since `before`.
fn close<C>(
    ledger: Ledger<'_, C>,
    before: &ThreadAccount,
    privileges: &Privileges,
    timing: Timing,
    stamped_by: StampedBy,
) -> RunSummary {
    let end_ns = now_ns();
    let after = ThreadAccount::now();
    let thread = privileges.used(before, &after, timing, stamped_by);
    ledger.close(end_ns, after.cpu_s - before.cpu_s, thread)
}

/// The default limit of 1,024 open files is less than the connections that a plan may allow.
fn raise_open_files() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    // If it cannot be raised, connections beyond the limit count as failures of this side.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}
