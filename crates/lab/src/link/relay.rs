//! The link of a run where no namespaces can be made: a relay between the clients of a trial and its server. It has its own
//! process, so that its processor time is neither the generator's nor the server's.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;

use kendall_archive::read_json;
use kendall_link::relay::{Relay, Relayed};
use kendall_link::{LinkError, LinkSettings, Outcome};
use kendall_linkmodel::Settings;
use kendall_linkmodel::{Carries, Transport};
use serde::Deserialize;

use crate::server::{Server, ServerError};
use crate::trial_error::TrialError;

/// The relay's record and output, in a trial's folder.
const RECORD: &str = "link";
const LOG: &str = "relay.log";
/// The loopback, at any port.
const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Whether relays can emulate the links of all trials of a run.
pub(super) fn check<'a>(
    congestion: Option<&str>,
    mut asked: impl Iterator<Item = (Transport, &'a LinkSettings)>,
) -> Result<(), LinkError> {
    if congestion.is_some() {
        let why = "a relay cannot choose the congestion control of connections; leave congestion out";
        return Err(LinkError::Refused(why.into()));
    }
    asked.try_for_each(|(transport, asked)| {
        if asked.up.len() > 1 || asked.down.len() > 1 {
            return Err(LinkError::Refused("a relay is one link, not several in a row".into()));
        }
        // The relay connects to its server only when a client connects.
        Relay::bind(transport, LOOPBACK, LOOPBACK, asked, 0).map(drop)
    })
}

fn failed(error: ServerError) -> TrialError {
    TrialError::Relay(Box::new(error))
}

/// The part of a relay's record that the trial needs.
#[derive(Deserialize)]
struct RelayReport {
    relayed: Relayed,
}

/// The relay of a trial.
pub(super) struct TrialRelay<'a> {
    /// The kendall program, which runs the relay.
    pub(super) program: &'a Path,
    pub(super) transport: Transport,
    pub(super) seed: u64,
    pub(super) running: Option<Server>,
}

impl TrialRelay<'_> {
    /// Starts the relay before a server, and returns the address for clients.
    pub(super) fn start(
        &mut self,
        server: SocketAddr,
        asked: &LinkSettings,
        folder: &Path,
    ) -> Result<SocketAddr, TrialError> {
        let written = |way: &[Settings]| way.first().map(ToString::to_string).unwrap_or_default();
        let mut arguments: Vec<OsString> = ["link", "relay", "--until-stdin-ends"].map(OsString::from).into();
        for (name, value) in [
            ("listen", LOOPBACK.to_string()),
            ("to", server.to_string()),
            ("up", written(&asked.up)),
            ("down", written(&asked.down)),
            ("seed", self.seed.to_string()),
        ] {
            arguments.push(format!("--{name}={value}").into());
        }
        if self.transport.carries == Carries::Datagrams {
            arguments.push("--udp".into());
        }
        arguments.extend(["--record".into(), folder.join(RECORD).into()]);
        let relay = Server::start(self.program, &arguments, &folder.join(LOG)).map_err(failed)?;
        let address = relay.address();
        self.running = Some(relay);
        Ok(address)
    }

    /// Stops the relay and returns what the link did.
    pub(super) fn finish(self, folder: &Path) -> Result<Outcome, TrialError> {
        let Some(relay) = self.running else { return Ok(Outcome::default()) };
        relay.stop().map_err(failed)?;
        let report: RelayReport = read_json(&folder.join(RECORD).join("link.json"))?;
        Ok(report.relayed.link)
    }
}
