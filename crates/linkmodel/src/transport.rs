//! The transports between a client and a server: the one definition for generator, links and systems.
//!
//! A transport is data. The generator opens a socket of its kind and protocol, a relay carries its streams or its datagrams, and
//! records state how relayed ones differ from those over the link itself. A new transport of the kernel is a constant here; a
//! test of the load generator adds one.

/// The unit that a transport carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// Bytes in order, without boundaries.
    Streams,
    /// Datagrams, each complete or not at all.
    Datagrams,
}

/// A transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transport {
    /// The transport's name in sentences and records.
    pub name: &'static str,
    /// The unit that it carries.
    pub carries: Carries,
    /// The transport's IANA protocol number, or Linux's; 0 for the kernel's usual protocol for its unit.
    pub protocol: u16,
    /// The differences between a relay of it and the link itself.
    pub differs: &'static str,
}

impl Transport {
    /// The transmission control protocol.
    pub const TCP: Self = Self {
        name: "TCP",
        carries: Carries::Streams,
        protocol: 0,
        differs: "handshakes are not delayed; a loss delays the stream by a round trip, but slows down no sender; a full \
                  queue stops the sender instead of dropping",
    };

    /// The user datagram protocol.
    pub const UDP: Self = Self {
        name: "UDP",
        carries: Carries::Datagrams,
        protocol: 0,
        differs: "datagrams carry no marks of congestion; a damaged one does not arrive, as its checksum is wrong",
    };

    /// The name of a relay of this transport, for the record.
    pub fn relay(self) -> String {
        format!("relay of {}", self.name)
    }
}
