//! The faults: each is a function that injects it into a running system, waits, and removes it.

mod clients;
mod kind;
mod network;
mod processes;
mod resources;

pub(crate) use clients::raise_limit;
pub use kind::{Fault, NotInjected};

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
