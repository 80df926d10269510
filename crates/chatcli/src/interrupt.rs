//! Ctrl-C, and the signal that asks a process to end.

use std::io;
use std::process::ExitCode;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// A signal that ends a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupt {
    CtrlC,
    Terminate,
}

/// The signals that end a command. They are caught from the first wait on: before, where the terminal asks for a password, they
/// end the program at once.
#[derive(Default)]
pub(crate) struct Interrupts(Option<[Signal; 2]>);

impl Interrupts {
    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> io::Result<Interrupt> {
        let [interrupt, terminate] = match &mut self.0 {
            Some(signals) => signals,
            none => none.insert([signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?]),
        };
        tokio::select! {
            _ = interrupt.recv() => Ok(Interrupt::CtrlC),
            _ = terminate.recv() => Ok(Interrupt::Terminate),
        }
    }

    /// Does work that a signal may end anywhere; `None` where one has.
    pub(crate) async fn during<T>(
        &mut self,
        work: impl Future<Output = anyhow::Result<T>>,
    ) -> anyhow::Result<Option<T>> {
        tokio::select! {
            biased;
            done = work => done.map(Some),
            interrupt = self.next() => Ok(interrupt.map(|_| None)?),
        }
    }
}

/// The exit status of a command that was interrupted before its work was done.
pub(crate) fn interrupted() -> ExitCode {
    ExitCode::from(130)
}
