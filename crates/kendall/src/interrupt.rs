//! Ctrl-C.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use anyhow::Context;

use crate::INTERRUPTED;

/// A flag that Ctrl-C sets; pressed twice, it ends the program at once.
pub(crate) fn ctrl_c() -> anyhow::Result<Arc<AtomicBool>> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, INTERRUPTED.into(), flag.clone())
            .and_then(|_| signal_hook::flag::register(signal, flag.clone()))
            .context("cannot listen for Ctrl-C")?;
    }
    Ok(flag)
}
