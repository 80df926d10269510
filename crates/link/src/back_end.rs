//! The ways to bring packets to the model of a link.

use serde::{Deserialize, Serialize};

/// A way to bring packets to the model of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BackEnd {
    /// Pairs of devices, and packet sockets on our end of each.
    Veth,
    /// TUN devices.
    Tun,
    /// The kernel's own emulator, which knows less than the model.
    Netem,
}

impl BackEnd {
    /// All, the best first.
    pub const ALL: [Self; 3] = [Self::Veth, Self::Tun, Self::Netem];

    /// Its name on the command line and in files.
    pub fn name(self) -> &'static str {
        match self {
            Self::Veth => "veth",
            Self::Tun => "tun",
            Self::Netem => "netem",
        }
    }
}
