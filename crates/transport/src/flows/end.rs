//! What a program at an end of a link finds: the addresses, and what it has cost so far.

use std::env;
use std::net::IpAddr;

use rustix::time::{ClockId, clock_gettime};

/// The processor time of this process.
pub(crate) fn processor_s() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// The client's address on the link.
pub(crate) fn client_address() -> Result<IpAddr, String> {
    let text = env::var("KENDALL_CLIENT").unwrap_or_default();
    text.parse().map_err(|_| "KENDALL_CLIENT names no address".into())
}

/// The server's address on the link.
pub(crate) fn server_address() -> Result<IpAddr, String> {
    let text = env::var("KENDALL_SERVER").unwrap_or_default();
    text.parse()
        .map_err(|_| "only `kendall link run` starts this, and names the address in KENDALL_SERVER".into())
}
