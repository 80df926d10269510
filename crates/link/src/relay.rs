//! A link between sockets, for machines where no namespaces can be made. Clients connect to the relay, which connects to the
//! server; the model of the link delays and drops what passes between them.
//!
//! Each datagram is a packet. A stream is cut into pieces of a segment's size. No piece can be dropped, so a full queue stops the
//! relay from reading, and the sender sees a slow receiver. A loss costs what it costs at best: the piece, and everything behind
//! it, arrives a round trip later. [`Transport::differs`] describes these differences for the record.

mod poller;
mod seeds;
mod stream;
mod tcp;
mod udp;

use std::net::SocketAddr;
use std::sync::atomic::AtomicBool;

use kendall_linkmodel::{Carries, Transport};
use serde::{Deserialize, Serialize};

use crate::error::LinkError;
use crate::outcome::Outcome;
use crate::protocol::LinkSettings;

/// The counts of a relay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Relayed {
    /// The counts of the link in both directions.
    pub link: Outcome,
    /// The number of clients: connections, or source addresses of datagrams.
    pub clients: u64,
    /// Rejected clients: there were too many, or the server was unreachable.
    pub turned_away: u64,
    /// Pieces of streams that arrived a round trip later because of a loss.
    pub sent_again: u64,
}

/// A relay that is ready to run.
#[derive(Debug)]
pub struct Relay(Kind);

#[derive(Debug)]
enum Kind {
    Tcp(Box<tcp::TcpRelay>),
    Udp(Box<udp::UdpRelay>),
}

impl Relay {
    /// Listens at an address, and forwards to another over a link with these settings.
    ///
    /// # Errors
    ///
    /// Where the relay cannot listen on the address, where the settings are not possible, or where a relay does not support them.
    pub fn bind(
        transport: Transport,
        listen: SocketAddr,
        to: SocketAddr,
        asked: &LinkSettings,
        seed: u64,
    ) -> Result<Self, LinkError> {
        Ok(Self(match transport.carries {
            Carries::Streams => Kind::Tcp(Box::new(tcp::TcpRelay::bind(listen, to, asked, seed)?)),
            Carries::Datagrams => Kind::Udp(Box::new(udp::UdpRelay::bind(listen, to, asked, seed)?)),
        }))
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        match &self.0 {
            Kind::Tcp(relay) => relay.address(),
            Kind::Udp(relay) => relay.address(),
        }
    }

    /// Relays until stopped.
    ///
    /// # Errors
    ///
    /// Where a system call fails. A client or a server that disconnects is not an error.
    pub fn run(self, stop: &AtomicBool) -> Result<Relayed, LinkError> {
        let relayed = match self.0 {
            Kind::Tcp(relay) => relay.run(stop),
            Kind::Udp(relay) => relay.run(stop),
        };
        relayed.map_err(LinkError::step("relay"))
    }
}
