//! Ctrl-C.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;

use crate::INTERRUPTED;

const SIGNALS: [i32; 2] = [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM];

/// A flag that Ctrl-C sets; pressed twice, it ends the program at once.
pub(crate) fn ctrl_c() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in SIGNALS {
        signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED.into(), flag.clone())
            .and_then(|_| signal_hook::flag::register(signal, flag.clone()))
            .context("cannot listen for Ctrl-C")?;
    }
    Ok(flag)
}

/// Ctrl-C as a flag, and as a descriptor that is readable from then on.
pub(crate) struct CtrlC {
    pub(crate) flag: Arc<AtomicBool>,
    readable: UnixStream,
}

impl CtrlC {
    /// Begins to listen for it, and for the signal that asks a process to end.
    pub(crate) fn listen() -> anyhow::Result<Self> {
        let flag = ctrl_c()?;
        let (readable, written) = UnixStream::pair().context("cannot listen for Ctrl-C")?;
        for signal in SIGNALS {
            written
                .try_clone()
                .and_then(|written| signal_hook::low_level::pipe::register(signal, written))
                .context("cannot listen for Ctrl-C")?;
        }
        Ok(Self { flag, readable })
    }

    /// Whether Ctrl-C was pressed.
    pub(crate) fn is_pressed(&self) -> bool {
        self.flag.load(Ordering::Relaxed)
    }
}

impl AsFd for CtrlC {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.readable.as_fd()
    }
}
