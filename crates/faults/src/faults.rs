//! The faults: each is a function that injects it into a running system, waits, and removes it.

mod clients;
mod network;
mod processes;
mod resources;

use std::thread::sleep;
use std::time::{Duration, Instant};

use kendall_testbed::hostile::Draw;

use crate::subjects::{Load, Peer, Requests, Running, Scene, Subject};

pub(crate) use clients::raise_limit;

/// Why a fault was not injected, or failed to be.
#[derive(Debug)]
pub enum NotInjected {
    /// This machine or this user cannot.
    LeftOut(String),
    /// The system did what it must not do meanwhile.
    Failed(String),
}

/// A fault.
pub struct Fault {
    /// The name in commands and results.
    pub name: &'static str,
    /// Its row in the table.
    pub what: &'static str,
    /// Why it does not apply to a system, if so.
    pub not_for: fn(&Subject) -> Option<&'static str>,
    /// Whether other clients must be served while it lasts.
    pub others_are_served: fn(&Subject) -> bool,
    /// Whether the server may end by it; it is then started again.
    pub may_end: bool,
    /// Changes the scene before the system starts.
    pub before: fn(&mut Scene) -> Result<(), NotInjected>,
    /// Injects the fault and removes it, and returns the instant from which the system can recover.
    pub inject: fn(&mut Running, &Load, &mut Draw) -> Result<Instant, NotInjected>,
}

/// All faults, in the order of the table.
pub const FAULTS: &[Fault] = &[
    processes::SERVER_KILLED,
    processes::SERVER_STOPPED,
    processes::CLIENT_KILLED,
    processes::CLIENT_STOPPED,
    processes::HELPER_KILLED,
    processes::HELPER_STOPPED,
    processes::PEER_KILLED,
    processes::PEER_STOPPED,
    resources::FULL_DISK,
    resources::READ_ONLY_DISK,
    resources::NO_DESCRIPTORS,
    resources::MEMORY_LIMIT,
    resources::CLOCK_JUMP,
    network::LINK_DOWN,
    network::LOSS,
    clients::HALF_OPEN,
    clients::BYTE_BY_BYTE,
    clients::FLOOD,
    clients::RANDOM_BYTES,
];

/// The fault of this name.
pub fn fault(name: &str) -> Option<&'static Fault> {
    FAULTS.iter().find(|fault| fault.name == name)
}

/// Waits a random time between two numbers of milliseconds.
fn wait(draw: &mut Draw, from_ms: usize, to_ms: usize) {
    sleep(Duration::from_millis((from_ms + draw.below(to_ms - from_ms)) as u64));
}

fn applies(_: &Subject) -> Option<&'static str> {
    None
}

fn stores_nothing(subject: &Subject) -> Option<&'static str> {
    let stores = ["recover", "copy", "tunnel", "cluster"].contains(&subject.name);
    let has = stores || subject.is_kept.is_some() || matches!(subject.requests, Requests::Inside);
    (!has).then_some("it stores nothing on a disk")
}

fn has_database(subject: &Subject) -> bool {
    matches!(subject.peer, Some(Peer::Database(_)))
}

fn never(_: &Subject) -> bool {
    false
}

/// All others must be served, except where the system has one client, or makes its own requests.
fn always(subject: &Subject) -> bool {
    !matches!(subject.requests, Requests::Inside)
}

fn nothing(_: &mut Scene) -> Result<(), NotInjected> {
    Ok(())
}

/// The parts that most faults share.
const PLAIN: Fault = Fault {
    name: "",
    what: "",
    not_for: applies,
    others_are_served: never,
    may_end: false,
    before: nothing,
    inject: |_, _, _| Ok(Instant::now()),
};
