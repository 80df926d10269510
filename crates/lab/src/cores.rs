//! The cores of this machine for the threads of the generator, beside those that the server uses.

use std::net::IpAddr;
use std::thread::available_parallelism;

use kendall_experiment::{Combination, Cores, ServerCores};
use kendall_system::{Home, System};

use crate::serving::Serving;
use crate::surroundings::LoadedServers;

fn beside(server: ServerCores) -> Cores {
    let all = available_parallelism().map_or(1, |all| u32::try_from(all.get()).unwrap_or(u32::MAX));
    Cores { all, server }
}

/// The cores beside the servers of a load.
pub(crate) fn beside_loaded(servers: &LoadedServers) -> Cores {
    beside(match servers {
        LoadedServers::Known(processes) if processes.is_empty() => ServerCores::Known(0),
        LoadedServers::Known(_) | LoadedServers::Unknown => ServerCores::Unknown,
    })
}

/// The cores beside the server of a trial. A system of kendall has a thread for each server of its station.
pub(crate) fn beside_trial(system: &System, combination: &Combination, server: &Serving) -> Cores {
    let is_here = |address: IpAddr| address.to_canonical().is_loopback() || address.is_unspecified();
    beside(match server {
        Serving::Started(..) if matches!(system.home, Home::Here) => {
            ServerCores::Known((system.station)(&combination.server).servers.get())
        }
        Serving::Running(address) if !is_here(address.ip()) => ServerCores::Known(0),
        _ => ServerCores::Unknown,
    })
}
