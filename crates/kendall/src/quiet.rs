//! Whether other programs leave the machine alone: a check before each load, and `kendall doctor --wait-quiet`.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use kendall_analysis::Surroundings;
use kendall_lab::{LoadedServers, Quietness, read_surroundings, wait_until_quiet};
use kendall_probe::{ProbeError, listener};
use serde::Serialize;

use crate::INTERRUPTED;
use crate::interrupt::ctrl_c;
use crate::print::{self, Form};

/// Names the process of `kendall link run` to the command that it runs: what that process has started, the server and the link among
/// it, is not other programs' work.
pub(crate) const LINK_PROCESS: &str = "KENDALL_LINK_PROCESS";
/// How long the machine is watched before a load.
const LOOK: Duration = Duration::from_millis(200);

/// The processes of this machine that serve an address.
pub(crate) fn servers(address: SocketAddr) -> LoadedServers {
    let link = std::env::var(LINK_PROCESS).ok().and_then(|process| process.parse().ok());
    match listener(address) {
        Err(ProbeError::Elsewhere { .. }) if link.is_some() => LoadedServers::Known(Vec::from_iter(link)),
        Ok(process) => LoadedServers::Known(vec![process]),
        Err(ProbeError::Elsewhere { .. }) => LoadedServers::Known(Vec::new()),
        Err(_) => LoadedServers::Unknown,
    }
}

/// Warns where other programs use the machine, before a load begins.
pub(crate) fn warn(servers: &LoadedServers) {
    if let Some(seen) = read_surroundings(LOOK, servers).filter(Surroundings::is_noticeable) {
        print::note(&format!(
            "Warning: {seen} just now, which affects the measurement; kendall doctor --wait-quiet 1m waits until the machine is quiet"
        ));
    }
}

/// What a wait found, as JSON.
#[derive(Serialize)]
struct Waited {
    quiet: bool,
    surroundings: Surroundings,
}

/// Waits until the machine is quiet, and says what keeps it busy.
pub(crate) fn wait(at_most: Duration, form: Form) -> anyhow::Result<ExitCode> {
    let cancel = ctrl_c()?;
    let mut last = String::new();
    let mut tell = |seen: &Surroundings| {
        let line = seen.to_string();
        if matches!(form, Form::Table) && line != last {
            print::note(&format!("  {line}"));
            last = line;
        }
    };
    let (quiet, surroundings) = match wait_until_quiet(at_most, &mut tell, &cancel) {
        Quietness::Quiet(seen) => (true, seen),
        Quietness::Busy(seen) => (false, seen),
        Quietness::Unknown => anyhow::bail!("this machine does not report the CPU use of programs in /proc"),
        Quietness::Cancelled => return Ok(ExitCode::from(INTERRUPTED)),
    };
    match form {
        Form::Json => print::json(&Waited { quiet, surroundings })?,
        Form::Table if quiet => print::out(&format!("Quiet: {surroundings}\n"))?,
        Form::Table => {
            let at_most = kendall_system::Value::Time(at_most);
            print::note(&format!("kendall: not quiet within {at_most}: {surroundings}"));
        }
    }
    Ok(if quiet { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
