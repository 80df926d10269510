//! A link between sockets, for machines where no namespaces can be made: clients connect to the relay, it connects to
//! the server, and what passes between them fares as the model of the link says.
//!
//! Datagrams fare as packets do, each by itself. A stream is cut into pieces of a segment's size; none of them may be
//! dropped, so a full queue stops the relay from reading, which the sender feels as a slow receiver, and a loss shows as
//! what it costs at best: the piece, and all behind it, come a round trip later. What a relay cannot do is in
//! [`Transport::differs`], for the record.

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

/// What a relay has done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Relayed {
    /// What the link did, each way.
    pub link: Outcome,
    /// How many clients there were: connections, or addresses that datagrams came from.
    pub clients: u64,
    /// Clients that were turned away because there were too many, or because the server was not there.
    pub turned_away: u64,
    /// Pieces of streams that came a round trip later because they were lost.
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
    /// Listens at an address for what is to go to another, over a link as asked for.
    ///
    /// # Errors
    ///
    /// Where the address cannot be listened on, where the link cannot be, or where a relay cannot be such a link.
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        match &self.0 {
            Kind::Tcp(relay) => relay.address(),
            Kind::Udp(relay) => relay.address(),
        }
    }

    /// Relays until it is told to stop.
    ///
    /// # Errors
    ///
    /// Where the machine fails it. A client or a server that goes away is no error.
    pub fn run(self, stop: &AtomicBool) -> Result<Relayed, LinkError> {
        let relayed = match self.0 {
            Kind::Tcp(relay) => relay.run(stop),
            Kind::Udp(relay) => relay.run(stop),
        };
        relayed.map_err(LinkError::step("relay"))
    }
}
