//! What a fault is, and what most faults share.

use std::thread::sleep;
use std::time::{Duration, Instant};

use kendall_testbed::hostile::Draw;

use crate::subjects::{Load, Peer, Requests, Running, Scene, Subject};

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

/// Waits a random time between two numbers of milliseconds.
pub(super) fn wait(draw: &mut Draw, from_ms: usize, to_ms: usize) {
    sleep(Duration::from_millis((from_ms + draw.below(to_ms - from_ms)) as u64));
}

fn applies(_: &Subject) -> Option<&'static str> {
    None
}

pub(super) fn stores_nothing(subject: &Subject) -> Option<&'static str> {
    let stores = ["recover", "copy", "tunnel", "cluster"].contains(&subject.name);
    let has = stores || subject.is_kept.is_some() || matches!(subject.requests, Requests::Inside);
    (!has).then_some("it stores nothing on a disk")
}

pub(super) fn has_database(subject: &Subject) -> bool {
    matches!(subject.peer, Some(Peer::Database(_)))
}

fn never(_: &Subject) -> bool {
    false
}

/// All others must be served, except where the system has one client, or makes its own requests.
pub(super) fn always(subject: &Subject) -> bool {
    !matches!(subject.requests, Requests::Inside)
}

fn nothing(_: &mut Scene) -> Result<(), NotInjected> {
    Ok(())
}

/// The parts that most faults share.
pub(super) const PLAIN: Fault = Fault {
    name: "",
    what: "",
    not_for: applies,
    others_are_served: never,
    may_end: false,
    before: nothing,
    inject: |_, _, _| Ok(Instant::now()),
};
