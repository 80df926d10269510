//! The row of a system: what it takes to serve it and to load it.

use std::net::SocketAddr;
use std::path::PathBuf;

use kendall_linkmodel::Transport;
use kendall_load::Workload;
use kendall_station::{Discipline, Servers};

use crate::limit::MachineLimits;
use crate::parameter::Parameter;
use crate::settings::Settings;
use crate::subcommand::Subcommands;

/// A workload, or in words why the settings make none.
pub type LoadResult = Result<Box<dyn Workload>, String>;

/// A system that can be served and loaded. The laboratory knows systems by such rows only.
#[derive(Debug)]
pub struct System {
    /// Its name: that of `kendall serve NAME`, of `[system] name`, and of its URLs' scheme.
    pub name: &'static str,
    /// What its server does, in a few words that complete the sentence "NAME …".
    pub about: &'static str,
    /// The port its URLs mean where they name none.
    pub default_port: u16,
    /// Whose it is.
    pub home: Home,
    /// What `kendall serve NAME` takes, as `--name value`.
    pub server: &'static [Parameter],
    /// What its workload takes.
    pub workload: &'static [Parameter],
    /// How many servers its station has, and their order of service.
    pub station: fn(&Settings) -> (Servers, Discipline),
    /// What its clients speak over, by the settings of its workload.
    pub transport: fn(&Settings) -> Transport,
    /// Makes its workload: the requests to send to a server, drawn from a seed.
    pub load: fn(SocketAddr, &Settings, u64) -> LoadResult,
    /// Serves it until a signal asks to stop, or says in words why it cannot.
    pub serve: fn(&Settings, Serving) -> Result<(), String>,
    /// What the machine itself allows it; [`no_limits`](crate::no_limits) where nothing is known.
    pub limits: MachineLimits,
    /// What it offers at the terminal besides: `kendall NAME SUBCOMMAND`.
    pub subcommands: Subcommands,
}

/// Whose a system is.
#[derive(Clone, Copy, Debug)]
pub enum Home {
    /// One of kendall's own: its server stamps every request, and its targets are
    /// `NAME://HOST:PORT?PARAMETER=VALUE`.
    Here,
    /// Anybody's: its server stamps nothing. Its targets are URLs, which the parameter [`URL`] of its workload takes as they
    /// are; its server is what [`COMMAND`] starts, or without that runs already where the URL says.
    Anywhere {
        /// The schemes of its URLs.
        schemes: &'static [&'static str],
        /// The address that a URL names, or in words why it names none.
        address: fn(&str) -> Result<SocketAddr, String>,
    },
}

/// The parameter of a workload that takes a target's URL as it is, where the system is anybody's.
pub const URL: &str = "url";
/// The parameter of a server that says how to start it, where the system is anybody's.
pub const COMMAND: &str = "command";

impl System {
    /// Whether URLs of this scheme are its targets.
    pub fn is_of_scheme(&self, scheme: &str) -> bool {
        match self.home {
            Home::Here => self.name == scheme,
            Home::Anywhere { schemes, .. } => schemes.contains(&scheme),
        }
    }

    /// Where its server runs already; `None` where it is to be started.
    ///
    /// # Errors
    /// Says in words why the settings name no address.
    pub fn running(&self, server: &Settings, workload: &Settings) -> Result<Option<SocketAddr>, String> {
        match self.home {
            Home::Anywhere { address, .. } if server.get(COMMAND).is_none() => {
                let url = workload
                    .word(URL)
                    .ok_or("nothing says where it runs: set url, or a command that starts it")?;
                address(url).map(Some)
            }
            Home::Anywhere { .. } | Home::Here => Ok(None),
        }
    }
}

/// How any system is served.
#[derive(Debug)]
pub struct Serving {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where to answer requests for metrics, if anywhere.
    pub metrics: Option<SocketAddr>,
    /// Where to write the server's own stamps of each request, if anywhere. What the server counts goes into the file beside
    /// it at its end (`counts` of `kendall-record`).
    pub stamps: Option<PathBuf>,
    /// Whether it is served for a trial only: it must leave what its user keeps alone.
    pub for_trial: bool,
    /// To be called with the address once connections are accepted.
    pub ready: fn(SocketAddr),
}
