//! The row of a system: how to serve it and how to load it.

use std::net::SocketAddr;
use std::path::PathBuf;

use kendall_linkmodel::Transport;
use kendall_load::Workload;
use kendall_station::{Discipline, Servers};

use crate::limit::MachineLimits;
use crate::parameter::Parameter;
use crate::settings::Settings;
use crate::subcommand::Subcommands;

/// A workload, or the reason why the settings are not valid.
pub type LoadResult = Result<Box<dyn Workload>, String>;

/// A system that can be served and loaded. The laboratory only knows systems by such rows.
#[derive(Debug)]
pub struct System {
    /// The system's name: that of `kendall serve NAME`, of `[system] name`, and of its URLs' scheme.
    pub name: &'static str,
    /// A short description of its server, which completes the sentence "NAME …".
    pub about: &'static str,
    /// The default port of its URLs.
    pub default_port: u16,
    /// The origin of the system.
    pub home: Home,
    /// The options of `kendall serve NAME`, as `--name value`.
    pub server: &'static [Parameter],
    /// The parameters of the system's workload.
    pub workload: &'static [Parameter],
    /// The system's station, by the settings of the server.
    pub station: fn(&Settings) -> StationShape,
    /// The transport of the system's clients, by the settings of the workload.
    pub transport: fn(&Settings) -> Transport,
    /// Creates the system's workload: the requests to send to a server, drawn from a seed.
    pub load: fn(SocketAddr, &Settings, u64) -> LoadResult,
    /// Serves the system until a signal, or returns the reason why it cannot.
    pub serve: fn(&Settings, Serving) -> Result<(), String>,
    /// The limits of the machine for the system; [`no_limits`](crate::no_limits) if there are no known ones.
    pub limits: MachineLimits,
    /// The system's further commands at the terminal: `kendall NAME SUBCOMMAND`.
    pub subcommands: Subcommands,
}

/// The station of a system, without its arrivals and service times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StationShape {
    /// The number of servers.
    pub servers: Servers,
    /// The order of service.
    pub discipline: Discipline,
    /// The most requests that the station holds, those in service included, if the settings limit it: it rejects further ones.
    pub capacity: Option<u64>,
}

impl StationShape {
    /// A station whose settings do not limit its capacity.
    pub const fn unlimited(servers: Servers, discipline: Discipline) -> Self {
        Self { servers, discipline, capacity: None }
    }
}

/// The origin of a system.
#[derive(Clone, Copy, Debug)]
pub enum Home {
    /// A system of kendall itself: its server stamps every request, and its targets are `NAME://HOST:PORT?PARAMETER=VALUE`.
    Here,
    /// A third-party system: its server writes no stamps. Its targets are URLs, which the parameter [`URL`] of its workload
    /// takes unchanged; [`COMMAND`] starts its server, or without that it already runs at the URL.
    Anywhere {
        /// The schemes of its URLs.
        schemes: &'static [&'static str],
        /// The address of a URL, or the reason why it has none.
        address: fn(&str) -> Result<SocketAddr, String>,
    },
}

/// The parameter of a workload with a target's URL, for third-party systems.
pub const URL: &str = "url";
/// The parameter of a server with the command to start it, for third-party systems.
pub const COMMAND: &str = "command";

impl System {
    /// Whether URLs of this scheme are its targets.
    pub fn is_of_scheme(&self, scheme: &str) -> bool {
        match self.home {
            Home::Here => self.name == scheme,
            Home::Anywhere { schemes, .. } => schemes.contains(&scheme),
        }
    }

    /// The address where its server already runs; `None` if it must be started.
    ///
    /// # Errors
    /// Fails if the settings contain no address.
    pub fn running(&self, server: &Settings, workload: &Settings) -> Result<Option<SocketAddr>, String> {
        match self.home {
            Home::Anywhere { address, .. } if server.get(COMMAND).is_none() => {
                let url = workload
                    .word(URL)
                    .ok_or("the address of the server is missing: set url, or a command that starts it")?;
                address(url).map(Some)
            }
            Home::Anywhere { .. } | Home::Here => Ok(None),
        }
    }
}

/// The settings for serving any system.
#[derive(Debug)]
pub struct Serving {
    /// The address to listen on; port 0 picks a free one.
    pub listen: SocketAddr,
    /// The address of the metrics endpoint, if any.
    pub metrics: Option<SocketAddr>,
    /// The file for the server's own stamps of each request, if any. The counters of the server go into the file next to it
    /// at its end (`counts` of `kendall-record`).
    pub stamps: Option<PathBuf>,
    /// Whether the server runs for a trial only: then it must not change the user's data.
    pub for_trial: bool,
    /// Called with the address once the server accepts connections.
    pub ready: fn(SocketAddr),
}
