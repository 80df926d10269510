//! A run: threads that send each request when it is due, and another that collects the rows.

use std::io;
use std::panic::resume_unwind;
use std::sync::atomic::AtomicBool;
use std::thread;

use kendall_linkmodel::Carries;
use kendall_record::clock::now_ns;
use kendall_station::Arrivals;

use crate::gate::{Gate, Pass};
use crate::ledger::{Ledger, Part};
use crate::part::RunPart;
use crate::plan::{Plan, Timing};
use crate::poll::{Exchanges, Lines, SessionLines};
use crate::privileges::{Privileges, ThreadAccount};
use crate::progress::Progress;
use crate::rows::{self, RowBatches};
use crate::schedule::Budget;
use crate::sends::Sends;
use crate::share::Share;
use crate::summary::{RunSummary, StampedBy};
use crate::tally::ClosedLedger;
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
    #[error("the generator needs at least one thread; set generator-threads to 1 or more")]
    NoThread,
    #[error(
        "{threads} generator threads have only {connections} connections; each needs its own: set generator-threads to \
         {connections} or less, or connections to {threads} or more"
    )]
    ThreadsWithoutConnection { threads: u32, connections: u64 },
    #[error("{threads} generator threads have only {users} users; set generator-threads to {users} or less")]
    ThreadsWithoutUser { threads: u32, users: u64 },
    #[error(
        "users who hold sessions need one generator thread, because the answer to a request may arrive on the connection of \
         another user; set generator-threads to 1"
    )]
    SessionsOnThreads,
    #[error(
        "{threads} generator threads cannot all run on core {core}; leave out core, or set generator-threads to 1"
    )]
    ThreadsOnOneCore { threads: u32, core: u32 },
    #[error("a thread of the generator cannot be started: {0}")]
    Thread(#[source] io::Error),
}

/// Runs a plan against a workload: on the calling thread, which should have a core to itself, and if the plan has several
/// threads on further ones.
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
    let (part, sends, collected) = run_part(plan, workload, progress, cancel, collect)?;
    Ok((part.summary(sends), collected))
}

/// As [`run`], but returns figures that can be added to those of other processes, which make the other shares of the plan.
///
/// # Errors
/// As [`run`].
pub fn run_part<T: Send>(
    plan: &Plan,
    workload: &dyn Workload,
    progress: &Progress,
    cancel: &AtomicBool,
    collect: impl FnOnce(RowBatches) -> T + Send,
) -> Result<(RunPart, Sends, T), LoadError> {
    check(plan, workload)?;
    let (sinks, batches, sends) = rows::channel(plan.threads as usize);
    let (budget, gate) = (Budget::of(plan), Gate::new(plan.threads, plan.start_ns));
    let mut parts = (0..).zip(plan.share.split(plan.threads)).zip(sinks).map(|((thread, share), sink)| {
        let part = Part { plan, share, thread, budget: &budget, workload, progress, sink };
        (part, gate.pass())
    });
    raise_open_files();
    thread::scope(|scope| {
        // All are started before the generator takes its privileges, which the threads would inherit.
        let collector = scope.spawn(move || collect(batches));
        let (own, pass) = parts.next().expect("there is at least one thread");
        let others: Vec<_> = parts
            .map(|(part, pass)| {
                let name = format!("kendall-load-{}", part.thread);
                // A thread that cannot be started drops its pass.
                thread::Builder::new().name(name).spawn_scoped(scope, move || send(part, pass, cancel))
            })
            .collect();
        let mut ledgers = vec![send(own, pass, cancel)];
        for other in others {
            ledgers.push(match other {
                Ok(thread) => thread.join().unwrap_or_else(|panic| resume_unwind(panic)),
                Err(error) => Err(LoadError::Thread(error)),
            });
        }
        let collected = collector.join().unwrap_or_else(|panic| resume_unwind(panic));
        let mut ledgers = ledgers.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter();
        let ClosedLedger { mut part, sends: mut meter } =
            ledgers.next().expect("there is at least one thread");
        for other in ledgers {
            part.add(&other.part);
            meter.add_due(&other.sends);
        }
        let sends = if plan.threads > 1 { sends.summary(meter) } else { meter.summary() };
        Ok((part, sends, collected))
    })
}

/// Checks that each thread can make its part.
fn check(plan: &Plan, workload: &dyn Workload) -> Result<(), LoadError> {
    let threads = plan.threads;
    let connections = plan.share.count(plan.connections.into());
    let users = match &plan.arrivals {
        Arrivals::Closed { population, .. } => Some(plan.share.count((*population).into())),
        Arrivals::Attended(attendance) => Some(plan.share.count(attendance.most().into())),
        _ => None,
    };
    let is_split = threads > 1 || plan.share != Share::ALL;
    match workload.route() {
        _ if connections == 0 => Err(LoadError::NoConnection),
        _ if threads == 0 => Err(LoadError::NoThread),
        Route::Sessions(_, kind, _) if kind.transport().carries == Carries::Datagrams => {
            Err(LoadError::SessionsOverDatagrams)
        }
        Route::Sessions(..) if is_split => Err(LoadError::SessionsOnThreads),
        _ if u64::from(threads) > connections => {
            Err(LoadError::ThreadsWithoutConnection { threads, connections })
        }
        _ => match (users, plan.core) {
            (Some(users), _) if u64::from(threads) > users => {
                Err(LoadError::ThreadsWithoutUser { threads, users })
            }
            (_, Some(core)) if threads > 1 => Err(LoadError::ThreadsOnOneCore { threads, core }),
            _ => Ok(()),
        },
    }
}

/// Sends the requests of a thread's part.
fn send(part: Part<'_>, pass: Pass<'_>, cancel: &AtomicBool) -> Result<ClosedLedger, LoadError> {
    let plan = part.plan;
    let privileges = Privileges::take(plan, part.thread);
    match part.workload.route() {
        Route::Bytes(wire, dialogs) => {
            let lines = Exchanges::new(&wire, dialogs);
            send_over_sockets(Ledger::new(part), lines, plan, pass, cancel, &privileges)
        }
        Route::Sessions(to, kind, sessions) => {
            let lines = SessionLines::new(to, kind, sessions);
            send_over_sockets(Ledger::over_sessions(part), lines, plan, pass, cancel, &privileges)
        }
        Route::Tasks(connect) => {
            let mut ledger = Ledger::new(part);
            let before = ThreadAccount::now();
            task::drive(&mut ledger, connect, plan, pass, cancel).map_err(LoadError::Setup)?;
            Ok(close(ledger, &before, &privileges, Timing::Sleep, StampedBy::Generator))
        }
    }
}

fn send_over_sockets<'a>(
    mut ledger: Ledger<'a, poll::Key>,
    lines: impl Lines,
    plan: &'a Plan,
    pass: Pass<'_>,
    cancel: &AtomicBool,
    privileges: &Privileges,
) -> Result<ClosedLedger, LoadError> {
    let before = ThreadAccount::now();
    let stamped_by = poll::drive(&mut ledger, lines, plan, pass, cancel).map_err(LoadError::Setup)?;
    let timing = if plan.is_fixed_in_advance() { plan.timing } else { Timing::Sleep };
    Ok(close(ledger, &before, privileges, timing, stamped_by))
}

/// Closes the ledger of a thread, with the resources that the thread used since `before`.
fn close<C>(
    ledger: Ledger<'_, C>,
    before: &ThreadAccount,
    privileges: &Privileges,
    timing: Timing,
    stamped_by: StampedBy,
) -> ClosedLedger {
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
