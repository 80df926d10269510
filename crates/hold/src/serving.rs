//! A synthetic server as a program: in the dialect it was given, until a signal ends it.

use std::net::SocketAddr;

use kendall_service::ServiceError;
use rustix::process::setpriority_process;

use crate::server::{Dialect, How, Options, bind};
use crate::sessions::bind_sessions;

/// Serves until SIGINT or SIGTERM. Calls `ready` with the address once connections are accepted. Where that is permitted,
/// sleeping workers come before others of this machine: they ask for the processor for a moment, and what makes them wait
/// for it is no part of the law.
///
/// # Errors
/// As [`bind`], and if the stamps cannot be written.
pub fn serve(options: Options, ready: impl FnOnce(SocketAddr)) -> Result<(), ServiceError> {
    if options.how == How::Sleeping {
        // Refused without CAP_SYS_NICE; the overshoot that this leaves is in the stamps. The threads to come inherit it.
        let _ = setpriority_process(None, -20);
    }
    match options.dialect {
        Dialect::Requests => bind(options)?.run_until_signalled(ready),
        Dialect::Sessions => bind_sessions(&options)?.run_until_signalled(ready),
    }
}
