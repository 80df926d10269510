//! The options to watch the server of a load, if it is on this machine.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use clap::Args;
use kendall_experiment::Probing;
use kendall_probe::listener;

#[derive(Args)]
pub(super) struct ProbeOptions {
    /// Watch the server while it is loaded, if it is on this machine: its resource use and its bottleneck. Without PID, watch the
    /// process that listens at the URL's address
    #[arg(long, value_name = "PID", num_args = 0..=1, require_equals = true, default_missing_value = AUTO)]
    probe: Option<Process>,

    /// Watch the server, and sample its stacks to find the functions that use its time
    #[arg(long)]
    profile: bool,
}

const AUTO: &str = "auto";

/// The process to watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Process {
    /// The one that listens at the URL's address.
    Listening,
    Named(u32),
}

impl FromStr for Process {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(pid @ 1..) => Ok(Self::Named(pid)),
            _ if text == AUTO => Ok(Self::Listening),
            _ => Err(format!("must be the number of a process, or {AUTO}")),
        }
    }
}

/// The options as a shell would read them.
impl fmt::Display for ProbeOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.probe {
            Some(Process::Named(pid)) => write!(f, " --probe={pid}")?,
            Some(Process::Listening) => f.write_str(" --probe")?,
            None => {}
        }
        if self.profile { f.write_str(" --profile") } else { Ok(()) }
    }
}

impl ProbeOptions {
    /// The process to watch, if one is to be, of a server at an address.
    pub(super) fn process(&self, server: SocketAddr) -> anyhow::Result<Option<u32>> {
        match self.probe {
            Some(Process::Named(pid)) => Ok(Some(pid)),
            Some(Process::Listening) => Ok(Some(listener(server)?)),
            None if self.profile => Ok(Some(listener(server)?)),
            None => Ok(None),
        }
    }

    /// How a process is watched, if one is.
    pub(super) fn probing(&self, process: Option<u32>) -> Probing {
        match process {
            None => Probing::OFF,
            Some(_) if self.profile => Probing::default().with_profile(),
            Some(_) => Probing::default(),
        }
    }
}
