//! What an agent is to send: a target and a plan. An agent checks both as if a stranger had written them.

use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;

use kendall_load::{Plan, Workload};
use kendall_station::{Arrivals, Law};
use kendall_system::{Kind, Settings, System};
use serde::{Deserialize, Serialize};

/// A server to load, and the requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Target {
    /// The name of the system.
    pub system: String,
    /// The address of the server.
    pub address: SocketAddr,
    /// The parameters of the workload, as they are written.
    pub workload: BTreeMap<String, String>,
    /// The seed of the requests.
    pub seed: u64,
}

/// A share of a load.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Job {
    pub(crate) target: Target,
    pub(crate) plan: Plan,
    /// The number of threads; `None` for one on each core of the agent.
    pub(crate) threads: Option<u32>,
}

/// The most threads of an agent, and connections of a load.
const THREADS_AT_MOST: u32 = 64;
const CONNECTIONS_AT_MOST: u32 = 60_000;

impl Target {
    /// The requests of a system with these parameters.
    pub fn new(system: &System, address: SocketAddr, workload: &Settings, seed: u64) -> Self {
        let written = workload.iter().map(|(name, value)| (name.to_owned(), value.to_string()));
        Self { system: system.name.into(), address, workload: written.collect(), seed }
    }
}

impl Job {
    /// Makes the workload, if its target is allowed.
    pub(crate) fn workload(
        &self,
        allowed: &[Allowed],
        systems: &'static [System],
    ) -> Result<Box<dyn Workload>, String> {
        let Target { system: name, address, workload, seed } = &self.target;
        if !allowed.iter().any(|allowed| allowed.has(*address)) {
            return Err(format!("it may not load {address}; it needs --allow {address}"));
        }
        let system = systems.iter().find(|system| system.name == name);
        let system = system.ok_or_else(|| format!("it has no system {name:?}"))?;
        let mut settings = Settings::defaults(system.workload);
        for (name, text) in workload {
            let parameter = system.workload.iter().find(|parameter| parameter.name == name);
            let parameter = parameter.ok_or_else(|| format!("{} has no parameter {name:?}", system.name))?;
            let reads_file = match parameter.kind {
                Kind::File => true,
                Kind::Headers => text.lines().any(|line| line.starts_with('@')),
                _ => false,
            };
            if reads_file {
                return Err(format!("{name} names a file, and agents read none; leave it out"));
            }
            if matches!(parameter.kind, Kind::Headers | Kind::Url | Kind::Body) && text.contains("${") {
                return Err(format!(
                    "{name} has a secret, which does not leave the machine that it was given to"
                ));
            }
            settings.set(parameter.name, parameter.kind.read(text).map_err(|why| format!("{name} {why}"))?);
        }
        self.check()?;
        (system.load)(*address, &settings, *seed)
    }

    /// Checks the plan as the command line checks that of a user.
    pub(crate) fn check(&self) -> Result<(), String> {
        let Plan { arrivals, connections, requests, duration, .. } = &self.plan;
        let law = |law: &Law| law.validate().map_err(|error| error.to_string());
        match arrivals {
            Arrivals::Open { gap } => law(gap)?,
            Arrivals::Closed { think, population } if (1..=100_000).contains(population) => law(think)?,
            Arrivals::Closed { .. } => return Err("the load has too many users, or none".into()),
            Arrivals::Attended(attendance) => attendance.validate().map_err(|error| error.to_string())?,
            Arrivals::Varying(profile) => profile.validate().map_err(|error| error.to_string())?,
            Arrivals::Sessions(sessions) => law(&sessions.gap).and_then(|()| law(&sessions.think))?,
            Arrivals::Trace { instants_s } => {
                if !instants_s.is_sorted() || instants_s.iter().any(|at_s| !(0.0..1e9).contains(at_s)) {
                    return Err("the instants of the trace do not ascend".into());
                }
            }
        }
        if !(1..=CONNECTIONS_AT_MOST).contains(connections) {
            return Err(format!("a load has 1 to {CONNECTIONS_AT_MOST} connections, not {connections}"));
        }
        if self.threads.is_some_and(|threads| !(1..=THREADS_AT_MOST).contains(&threads)) {
            return Err(format!("a load has 1 to {THREADS_AT_MOST} threads"));
        }
        if requests.is_none() && duration.is_none() && arrivals.ends_s().is_none() {
            return Err("the load has no end".into());
        }
        Ok(())
    }

    /// The number of threads on this machine.
    pub(crate) fn threads(&self) -> u32 {
        let cores = || std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
        let most = self.plan.share.count(self.plan.connections.into()).clamp(1, THREADS_AT_MOST.into());
        self.threads.unwrap_or_else(|| cores().min(most as u32))
    }
}

/// A target that the command line of an agent allows: `HOST:PORT`, or `HOST:*` for every port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Allowed {
    host: String,
    /// `None` for every port.
    port: Option<u16>,
}

impl FromStr for Allowed {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || format!("must be HOST:PORT, or HOST:* for every port, not {text:?}");
        let (host, port) = text.rsplit_once(':').ok_or_else(refuse)?;
        let port = if port == "*" { None } else { Some(port.parse().map_err(|_| refuse())?) };
        let host = host.trim_matches(['[', ']']);
        if host.is_empty() { Err(refuse()) } else { Ok(Self { host: host.into(), port }) }
    }
}

impl Allowed {
    /// Whether the address is allowed. A name stands for the addresses that it has now.
    fn has(&self, address: SocketAddr) -> bool {
        let is_host = || {
            let found = (self.host.as_str(), address.port()).to_socket_addrs();
            found.is_ok_and(|mut found| found.any(|found| found.ip() == address.ip()))
        };
        self.port.is_none_or(|port| port == address.port()) && is_host()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_the_command_line_names_is_allowed() {
        let has = |allowed: &str, address: &str| {
            allowed.parse::<Allowed>().unwrap().has(address.parse::<SocketAddr>().unwrap())
        };
        assert!(has("127.0.0.1:80", "127.0.0.1:80") && !has("127.0.0.1:80", "127.0.0.1:81"));
        assert!(has("127.0.0.1:*", "127.0.0.1:81") && !has("127.0.0.1:*", "127.0.0.2:81"));
        assert!(has("[::1]:80", "[::1]:80") && has("localhost:80", "127.0.0.1:80"));
        for text in ["", "host", ":80", "host:x", "host:70000"] {
            assert!(text.parse::<Allowed>().is_err(), "{text}");
        }
    }
}
