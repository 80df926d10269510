//! The cores of this machine for the threads of the generator, beside those that the server uses.

use std::net::IpAddr;
use std::thread::available_parallelism;

use kendall_experiment::{Combination, Cores, ServerCores};
use kendall_system::{Home, System};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::disturbance::workers_of;
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

/// The cores on which these servers may run.
pub(crate) fn cores_of(servers: &[u32]) -> CpuSet {
    let mut theirs = CpuSet::new();
    for server in workers_of(servers) {
        // It may have ended since.
        let Ok(allowed) = sched_getaffinity(Pid::from_raw(server.cast_signed())) else { continue };
        (0..CpuSet::MAX_CPU).filter(|core| allowed.is_set(*core)).for_each(|core| theirs.set(core));
    }
    theirs
}

/// The cores on which this thread may run; none where the system does not say.
pub(crate) fn cores_here() -> CpuSet {
    sched_getaffinity(None).unwrap_or_else(|_| CpuSet::new())
}

/// Keeps this thread, and the threads and processes that it starts meanwhile, on some of its cores, until it is dropped.
pub(crate) struct OnCores {
    before: CpuSet,
}

impl OnCores {
    /// On as many cores as a station has servers, while its process is started: the process then leaves the other cores to the
    /// generator. `None` where the machine has no more cores than that.
    pub(crate) fn as_many_as(servers: u32) -> Option<Self> {
        let before = sched_getaffinity(None).ok()?;
        let cores = (0..CpuSet::MAX_CPU).filter(|core| before.is_set(*core));
        Self::only(before, cores.take(servers as usize))
    }

    /// Off the cores to which these servers are confined, for the generator: its threads run before those of a server on the same core,
    /// so that the service there takes longer. `None` where the servers may run on every core.
    pub(crate) fn apart_from(servers: &[u32]) -> Option<Self> {
        let before = sched_getaffinity(None).ok()?;
        let theirs = cores_of(servers);
        let free = (0..CpuSet::MAX_CPU).filter(|core| before.is_set(*core) && !theirs.is_set(*core));
        Self::only(before, free)
    }

    fn only(before: CpuSet, cores: impl Iterator<Item = usize>) -> Option<Self> {
        let mut only = CpuSet::new();
        cores.for_each(|core| only.set(core));
        if only.count() == 0 || only.count() >= before.count() {
            return None;
        }
        sched_setaffinity(None, &only).ok()?;
        Some(Self { before })
    }
}

impl Drop for OnCores {
    fn drop(&mut self) {
        // It was allowed before.
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn allowed() -> u32 {
        sched_getaffinity(None).unwrap().count()
    }

    #[test]
    fn a_generator_keeps_off_the_cores_of_a_confined_server() {
        let all = allowed();
        if all < 2 {
            return eprintln!("skipped: there is one core");
        }
        let confined = OnCores::as_many_as(1);
        assert_eq!((confined.is_some(), allowed()), (true, 1));
        let mut server = Command::new("sleep").arg("60").spawn().unwrap();
        let own = sched_getaffinity(None).unwrap();
        drop(confined);
        assert_eq!(allowed(), all);
        let apart = OnCores::apart_from(&[server.id()]);
        assert_eq!((apart.is_some(), allowed()), (true, all - 1));
        assert!(
            (0..CpuSet::MAX_CPU)
                .all(|core| !own.is_set(core) || !sched_getaffinity(None).unwrap().is_set(core))
        );
        drop(apart);
        server.kill().unwrap();
        server.wait().unwrap();
        let mut server = Command::new("sleep").arg("60").spawn().unwrap();
        assert!(OnCores::apart_from(&[server.id()]).is_none(), "it may run everywhere");
        assert!(OnCores::as_many_as(all).is_none(), "the station needs all");
        server.kill().unwrap();
        server.wait().unwrap();
    }
}
