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

/// Waits for Ctrl-C, Ctrl-\, SIGTERM or the end of the terminal; the exit code for it. All of them end the programs that were started,
/// which have their own process groups.
pub(crate) async fn signalled() -> anyhow::Result<ExitCode> {
    let (mut interrupt, mut quit) = (signal(SignalKind::interrupt())?, signal(SignalKind::quit())?);
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hang_up = if ignores_hang_up() { None } else { Some(signal(SignalKind::hangup())?) };
    let terminal_ended = async {
        match &mut hang_up {
            Some(hang_up) => hang_up.recv().await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = interrupt.recv() => Ok(ExitCode::from(INTERRUPTED)),
        _ = quit.recv() => Ok(ExitCode::from(INTERRUPTED)),
        _ = terminal_ended => Ok(ExitCode::from(INTERRUPTED)),
        _ = terminate.recv() => Ok(ExitCode::SUCCESS),
    }
}

/// Whether this process was started to ignore SIGHUP, as by `nohup`: to wait for it would undo that.
fn ignores_hang_up() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 1 != 0)
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
