//! A synthetic server as a program: in its dialect, until a signal ends it.

use std::net::SocketAddr;

use kendall_service::ServiceError;
use rustix::process::setpriority_process;

use crate::server::{Dialect, HoldMode, HoldOptions, bind};
use crate::sessions::bind_sessions;

/// Serves until SIGINT or SIGTERM. Calls `ready` with the address once the server accepts connections. If permitted,
/// sleeping workers have priority over other programs: they need the processor for a moment, and waiting for it is not
/// part of the law.
///
/// # Errors
/// As [`bind`], and if the stamps cannot be written.
pub fn serve(options: HoldOptions, ready: impl FnOnce(SocketAddr)) -> Result<(), ServiceError> {
    if options.mode == HoldMode::Sleeping {
        // Fails without CAP_SYS_NICE; the resulting overshoot is in the stamps. Threads created later inherit the
        // priority.
        let _ = setpriority_process(None, -20);
    }
    match options.dialect {
        Dialect::Requests => bind(options)?.run_until_signalled(ready),
        Dialect::Sessions => bind_sessions(&options)?.run_until_signalled(ready),
    }
}
