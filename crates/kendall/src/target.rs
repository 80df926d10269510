//! Targets as URLs: `reverse://127.0.0.1:5003?difficulty=300000&repeat-percent=20`.

use std::collections::HashSet;
use std::net::{SocketAddr, ToSocketAddrs};

use anyhow::{Context, bail};
use kendall_lab::{Settings, System, nearest};
use url::Url;

use crate::systems::SYSTEMS;

/// A server to load, and what to ask it.
#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) system: &'static System,
    pub(crate) address: SocketAddr,
    pub(crate) workload: Settings,
}

impl Target {
    /// Reads a URL whose scheme names a system and whose query sets parameters of its workload.
    pub(crate) fn read(text: &str) -> anyhow::Result<Self> {
        let url = Url::parse(text).with_context(|| {
            format!("{text:?} is not a target; write SYSTEM://HOST:PORT?PARAMETER=VALUE, such as reverse://127.0.0.1:5003")
        })?;
        let names = || SYSTEMS.iter().map(|system| system.name);
        let Some(system) = SYSTEMS.iter().find(|system| system.name == url.scheme()) else {
            bail!("unknown system {:?}; known are {}", url.scheme(), names().collect::<Vec<_>>().join(", "));
        };
        let Some(host) = url.host_str().filter(|host| !host.is_empty()) else {
            bail!("{text:?} names no host; write {}://127.0.0.1:{}", system.name, system.default_port);
        };
        let port = url.port().unwrap_or(system.default_port);
        let addresses: Vec<SocketAddr> = (host.trim_matches(['[', ']']), port)
            .to_socket_addrs()
            .with_context(|| format!("cannot find the host {host:?}"))?
            .collect();
        // Of a name that has both, such as localhost, the address that servers listen on by default.
        let address = addresses.iter().find(|address| address.is_ipv4()).or_else(|| addresses.first());
        let address = *address.with_context(|| format!("the host {host:?} has no address"))?;
        let mut workload = Settings::defaults(system.workload);
        let mut seen = HashSet::new();
        for (key, value) in url.query_pairs() {
            let Some(parameter) = system.workload.iter().find(|parameter| parameter.name == key) else {
                let known = || system.workload.iter().map(|parameter| parameter.name);
                match nearest(&key, known()) {
                    Some(near) => bail!("unknown parameter {key:?} in {text:?}; did you mean {near:?}?"),
                    None => bail!(
                        "unknown parameter {key:?} in {text:?}; known are {}",
                        known().collect::<Vec<_>>().join(", ")
                    ),
                }
            };
            if !seen.insert(parameter.name) {
                bail!("{key} is given twice in {text:?}; leave one out");
            }
            let value = parameter.kind.read(&value).map_err(|message| anyhow::anyhow!("{key} {message}"))?;
            workload.set(parameter.name, value);
        }
        Ok(Self { system, address, workload })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_system_address_and_parameters() {
        let target =
            Target::read("reverse://127.0.0.1:5099?difficulty=300000&repeat-percent=20&priority-lambda=1.5")
                .unwrap();
        assert_eq!(target.system.name, "reverse");
        assert_eq!(target.address, ([127, 0, 0, 1], 5099).into());
        assert_eq!(target.workload.whole("difficulty"), Some(300_000));
        assert_eq!(target.workload.number("repeat-percent"), Some(20.0));
        assert_eq!(Target::read("reverse://[::1]").unwrap().address.port(), 5003);
    }

    #[test]
    fn faults_of_a_url_say_what_to_write() {
        let fault = |text: &str| format!("{:#}", Target::read(text).unwrap_err());
        assert!(fault("127.0.0.1:5003").contains("reverse://127.0.0.1:5003"));
        assert!(fault("revers://127.0.0.1").contains("known are reverse"));
        assert!(fault("reverse://127.0.0.1?dificulty=5").contains("did you mean \"difficulty\"?"));
        assert!(fault("reverse://127.0.0.1?difficulty=0").contains("whole number from 1"));
        assert!(fault("reverse://127.0.0.1?start=5&difficulty=9&start=5").contains("start is given twice"));
    }
}
