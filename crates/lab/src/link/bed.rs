//! The emulated link that the trials of a run cross.
//!
//! A run over a link lives at the client's end of it: the whole process moves there while it has a single thread, because only
//! then the kernel allows it to an ordinary user. The system under test starts at the server's end. A trial that crosses no link
//! runs entirely at the server's end, over its loopback. Where no namespaces can be made, everything is on the loopback of the
//! machine, and a relay stands between clients and server.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kendall_analysis::LinkRecord;
use kendall_experiment::{RELAY, back_end};
use kendall_link::calibrate::Calibration;
use kendall_link::{BackEnd, EmulatedLink, End, LinkError, LinkSettings, Outcome, SERVER, measure_relay};
use kendall_linkmodel::Settings as Hop;
use kendall_linkmodel::Transport;

use super::relay::{TrialRelay, check};
use crate::trial_error::TrialError;
use kendall_system::Settings;

/// The events of every flow on the link, in a trial's folder.
const TABLE: &str = "link.parquet";

/// The link that the trials of a run cross.
pub(crate) struct Bed {
    way: LinkEmulation,
    /// The measurements of links, by their settings.
    measured: Mutex<Vec<(LinkSettings, Calibration)>>,
}

/// How a link is emulated.
enum LinkEmulation {
    /// Packets between two network namespaces.
    Packets { link: Mutex<EmulatedLink>, server: End },
    /// A relay for these transports: this program, started for each trial.
    Relay { program: PathBuf, transports: Vec<Transport> },
}

impl fmt::Debug for Bed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Bed")
    }
}

impl Bed {
    /// Sets up the link of a run whose trials need all these settings. The back end is the one that the settings name, or
    /// otherwise the first that works; the relay is the last choice. For a link of packets, moves this process, which must have a
    /// single thread, to the client's end.
    pub(crate) fn set_up(
        program: &Path,
        settings: &Settings,
        asked: &[(Transport, &LinkSettings)],
    ) -> Result<Self, LinkError> {
        let congestion = settings.word("congestion");
        let can_relay = || check(congestion, asked.iter().copied());
        let way = match settings.word("back-end") {
            Some(RELAY) => {
                can_relay()?;
                LinkEmulation::relay(program, asked)
            }
            Some(name) => LinkEmulation::packets(program, back_end(name).as_slice(), congestion)?,
            None => match LinkEmulation::packets(program, &BackEnd::ALL, congestion) {
                Err(LinkError::Nowhere(refusals)) => {
                    let also = |why| LinkError::Nowhere(format!("{refusals}\n  {RELAY}: {why}"));
                    can_relay().map_err(also)?;
                    LinkEmulation::relay(program, asked)
                }
                laid => laid?,
            },
        };
        Ok(Self { way, measured: Mutex::default() })
    }

    /// How the link is emulated, and how the emulation differs from a real link, if it does.
    pub(crate) fn described(&self) -> String {
        match &self.way {
            LinkEmulation::Packets { link, .. } => lock(link).described(),
            LinkEmulation::Relay { transports, .. } => {
                let relay = |of: &Transport| format!("{} ({})", of.relay(), of.differs);
                transports.iter().map(relay).collect::<Vec<_>>().join("; ")
            }
        }
    }

    /// Whether the link is a relay rather than a link of packets.
    pub(crate) fn is_relay(&self) -> bool {
        matches!(self.way, LinkEmulation::Relay { .. })
    }

    /// Calls a function at the server's end.
    pub(crate) fn at_server<T>(&self, what: impl FnOnce() -> T) -> Result<T, LinkError> {
        match &self.way {
            LinkEmulation::Packets { server, .. } => server.visit(what),
            LinkEmulation::Relay { .. } => Ok(what()),
        }
    }

    /// The address on which the system under test is to listen.
    pub(crate) fn listen(&self) -> SocketAddr {
        match &self.way {
            LinkEmulation::Packets { .. } => (SERVER, 0).into(),
            LinkEmulation::Relay { .. } => (Ipv4Addr::LOCALHOST, 0).into(),
        }
    }

    /// The measurement of a link with these settings; measures it now if it has not been measured before.
    pub(crate) fn measured(&self, asked: &LinkSettings, seed: u64) -> Result<Calibration, LinkError> {
        let mut measured = lock(&self.measured);
        if let Some((_, known)) = measured.iter().find(|(known, _)| known == asked) {
            return Ok(known.clone());
        }
        let found = match &self.way {
            LinkEmulation::Packets { link, .. } => lock(link).measure(asked, seed)?,
            LinkEmulation::Relay { .. } => measure_relay(asked, seed)?,
        };
        measured.push((asked.clone(), found.clone()));
        Ok(found)
    }

    /// Lets a trial of this transport cross a link, and logs the link's events in the trial's folder.
    pub(crate) fn cross<'a>(
        &'a self,
        asked: &'a LinkSettings,
        transport: Transport,
        seed: u64,
        folder: &'a Path,
    ) -> Result<Crossing<'a>, LinkError> {
        let over = match &self.way {
            LinkEmulation::Packets { link, .. } => {
                lock(link).start(asked, seed, Some(&folder.join(TABLE)))?;
                Over::Packets(Open(Some(link)))
            }
            LinkEmulation::Relay { program, .. } => {
                Over::Relay(TrialRelay { program, transport, seed, running: None })
            }
        };
        Ok(Crossing { asked, folder, over })
    }
}

impl LinkEmulation {
    fn packets(program: &Path, back_ends: &[BackEnd], congestion: Option<&str>) -> Result<Self, LinkError> {
        let mut link = EmulatedLink::set_up(program, back_ends, congestion)?;
        link.join()?;
        link.client().enter()?;
        let server = link.server().share()?;
        Ok(Self::Packets { link: Mutex::new(link), server })
    }

    fn relay(program: &Path, asked: &[(Transport, &LinkSettings)]) -> Self {
        let mut transports: Vec<_> = asked.iter().map(|(transport, _)| *transport).collect();
        transports.sort_unstable_by_key(|transport| transport.relay());
        transports.dedup();
        Self::Relay { program: program.into(), transports }
    }
}

/// Locks the mutex even where a thread panicked with it: each call leaves the value consistent.
fn lock<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A trial that is crossing the link. Dropping it blocks the link.
pub(crate) struct Crossing<'a> {
    asked: &'a LinkSettings,
    folder: &'a Path,
    over: Over<'a>,
}

enum Over<'a> {
    Packets(Open<'a>),
    Relay(TrialRelay<'a>),
}

/// A link that carries packets until it is stopped or dropped.
struct Open<'a>(Option<&'a Mutex<EmulatedLink>>);

impl Crossing<'_> {
    /// The address at which clients reach the trial's server over the link.
    pub(crate) fn reach(&mut self, server: SocketAddr) -> Result<SocketAddr, TrialError> {
        match &mut self.over {
            Over::Packets(_) => Ok(server),
            Over::Relay(relay) => relay.start(server, self.asked, self.folder),
        }
    }

    /// Ends the crossing. The log of packets becomes a table in the trial's folder, with times from its start.
    pub(crate) fn finish(
        self,
        measured: Option<Calibration>,
        start_ns: i64,
    ) -> Result<LinkRecord, TrialError> {
        let written = |way: &[Hop]| way.iter().map(ToString::to_string).collect();
        let (up, down) = (written(&self.asked.up), written(&self.asked.down));
        let (emulated, differs, outcome) = match self.over {
            Over::Packets(open) => {
                let (emulated, outcome) = open.close(&self.folder.join(TABLE), start_ns)?;
                (emulated, None, outcome)
            }
            Over::Relay(relay) => {
                let of = relay.transport;
                (of.relay(), Some(of.differs.to_owned()), relay.finish(self.folder)?)
            }
        };
        Ok(LinkRecord { emulated, differs, up, down, measured, outcome })
    }
}

impl Open<'_> {
    /// How the link was emulated, and its counts.
    fn close(mut self, table: &Path, start_ns: i64) -> Result<(String, Outcome), LinkError> {
        let mut link = lock(self.0.take().expect("it is open until it is closed"));
        Ok((link.described(), link.stop(Some((table, start_ns)))?))
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        if let Some(link) = self.0.take() {
            // The trial has already failed, and that error is the one to report.
            let _ = lock(link).stop(None);
        }
    }
}
