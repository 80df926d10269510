//! The back ends that carry packets to the model of a link.

use serde::{Deserialize, Serialize};

/// A back end that carries packets to the model of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackEnd {
    /// Pairs of devices, and a packet socket on the emulator's end of each.
    Veth,
    /// TUN devices.
    Tun,
    /// The kernel's own emulator, which has fewer features than the model.
    Netem,
}

impl BackEnd {
    /// Every back end, the best first.
    pub const ALL: [Self; 3] = [Self::Veth, Self::Tun, Self::Netem];

    /// The back end's name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Veth => "veth",
            Self::Tun => "tun",
            Self::Netem => "netem",
        }
    }
}
