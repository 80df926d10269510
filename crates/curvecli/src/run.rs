//! The environment of the subcommands of `kendall curve`: a runtime, and the signals that end them.

use std::process::ExitCode;

use tokio::signal::unix::{SignalKind, signal};

use crate::console::INTERRUPTED;

pub(crate) fn run(work: impl Future<Output = anyhow::Result<ExitCode>>) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let done = runtime.block_on(work);
    // A read of standard input cannot be cancelled.
    runtime.shutdown_background();
    done
}

/// Waits for Ctrl-C or SIGTERM; the exit code for it.
pub(crate) async fn signalled() -> anyhow::Result<ExitCode> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    tokio::select! {
        _ = interrupt.recv() => Ok(ExitCode::from(INTERRUPTED)),
        _ = terminate.recv() => Ok(ExitCode::SUCCESS),
    }
}

/// Runs the future on the calling thread alone: a message then wakes no other thread.
pub(crate) fn run_on_one_thread(
    work: impl Future<Output = anyhow::Result<ExitCode>>,
) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let done = runtime.block_on(work);
    runtime.shutdown_background();
    done
}
