//! Relays datagrams, which the model of the link treats as packets.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};

use kendall_linkmodel::{Ecn, Packet, Path};
use kendall_record::clock::now_ns;
use rustix::event::epoll::EventFlags;

use super::Relayed;
use super::poller::Poller;
use super::seeds::seeds;
use crate::calibrate::HEADER_BYTES;
use crate::error::LinkError;
use crate::lateness::Lateness;
use crate::outcome::{DirectionOutcome, Outcome};
use crate::pace::hurry;
use crate::protocol::LinkSettings;
use crate::receive::{prepare, receive};

/// The most clients at a time: a program may usually open 1024 files. A new client replaces the one that has been silent for
/// longest.
const MOST_CLIENTS: usize = 900;
/// The longest datagram, in bytes.
const LONGEST: usize = 65_535;
/// The datagrams that are taken in before due ones are sent.
const BATCH: usize = 64;
/// The number of the listening socket.
const LISTENER: u64 = 0;

/// A relay of datagrams.
#[derive(Debug)]
pub(super) struct UdpRelay {
    listener: UdpSocket,
    to: SocketAddr,
    poller: Poller,
    up: Direction,
    down: Direction,
    clients: HashMap<u64, Client>,
    numbers: HashMap<SocketAddr, u64>,
    /// The number of the last client.
    last: u64,
    turned_away: u64,
}

/// A client, and the socket that stands for it towards the server.
#[derive(Debug)]
struct Client {
    address: SocketAddr,
    socket: UdpSocket,
    heard_ns: i64,
}

#[derive(Clone, Debug)]
struct Datagram {
    client: u64,
    payload: Box<[u8]>,
}

#[derive(Debug)]
struct Direction {
    path: Path<Datagram>,
    late: Lateness,
    waited: Lateness,
    unsent: u64,
}

impl Direction {
    fn offer(&mut self, client: u64, payload: &[u8], now_ns: i64) {
        let bytes = payload.len() as u32 + HEADER_BYTES;
        let item = Datagram { client, payload: payload.into() };
        self.path.offer(now_ns, Packet { bytes, flow: client, ecn: Ecn::NotCapable, item });
    }

    /// Sends what is due.
    fn hand_out(&mut self, now: i64, mut send: impl FnMut(&Datagram) -> io::Result<usize>) {
        while let Some(delivery) = self.path.poll(now) {
            self.waited.record(0, delivery.waited_ns, 1);
            // The checksum of a damaged datagram is wrong, so its receiver's kernel would drop it.
            if delivery.wrong_bit.is_some() {
                continue;
            }
            for _ in 0..delivery.copies {
                self.late.record(delivery.at_ns, now_ns(), 1);
                self.unsent += u64::from(send(&delivery.packet.item).is_err());
            }
        }
    }

    fn done(&self) -> DirectionOutcome {
        DirectionOutcome {
            hops: self.path.counters().map(Into::into).collect(),
            waited: self.waited.summary(),
            late: self.late.summary(),
            unsent: self.unsent,
        }
    }
}

impl UdpRelay {
    pub(super) fn bind(
        listen: SocketAddr,
        to: SocketAddr,
        asked: &LinkSettings,
        seed: u64,
    ) -> Result<Self, LinkError> {
        let listener =
            UdpSocket::bind(listen).map_err(LinkError::step(format!("listen for datagrams on {listen}")))?;
        listener
            .set_nonblocking(true)
            .and_then(|()| prepare(&listener))
            .map_err(LinkError::step("prepare a socket"))?;
        let poller = Poller::new().map_err(LinkError::step("wait for sockets"))?;
        poller.watch(&listener, LISTENER, EventFlags::IN).map_err(LinkError::step("wait for a socket"))?;
        let [up, down] = seeds(seed);
        let direction = |hops: &[_], seed| {
            let path = Path::new(hops, seed, now_ns())?;
            Ok::<_, LinkError>(Direction {
                path,
                late: Lateness::default(),
                waited: Lateness::default(),
                unsent: 0,
            })
        };
        Ok(Self {
            listener,
            to,
            poller,
            up: direction(&asked.up, up)?,
            down: direction(&asked.down, down)?,
            clients: HashMap::new(),
            numbers: HashMap::new(),
            last: LISTENER,
            turned_away: 0,
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.listener.local_addr().expect("a bound socket has an address")
    }

    pub(super) fn run(mut self, stop: &AtomicBool) -> io::Result<Relayed> {
        hurry();
        let mut ready = Vec::new();
        let mut buffer = vec![0; LONGEST];
        while !stop.load(Ordering::Relaxed) {
            let next_ns = self.up.path.next_ns().into_iter().chain(self.down.path.next_ns()).min();
            self.poller.wait(next_ns, &mut ready)?;
            for (number, _) in ready.drain(..) {
                if number == LISTENER {
                    self.hear_clients(&mut buffer)?
                } else {
                    self.hear_server(number, &mut buffer)
                }
            }
            self.hand_out();
        }
        let link = Outcome { up: self.up.done(), down: self.down.done() };
        Ok(Relayed { link, clients: self.last, turned_away: self.turned_away, sent_again: 0 })
    }

    fn hear_clients(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        for _ in 0..BATCH {
            let (length, from, came_ns) = match receive(&self.listener, buffer) {
                Ok(received) => received,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // A client that has disconnected causes an error of the next call.
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                Err(error) => return Err(error),
            };
            match self.client(from, came_ns) {
                Ok(client) => self.up.offer(client, &buffer[..length], came_ns),
                Err(_) => self.turned_away += 1,
            }
        }
        Ok(())
    }

    fn hear_server(&mut self, number: u64, buffer: &mut [u8]) {
        let Some(client) = self.clients.get(&number) else { return };
        for _ in 0..BATCH {
            // An unreachable server is silent, as one behind a link would be.
            let Ok((length, _, came_ns)) = receive(&client.socket, buffer) else { return };
            self.down.offer(number, &buffer[..length], came_ns);
        }
    }

    fn hand_out(&mut self) {
        let now = now_ns();
        let gone = || io::Error::from(io::ErrorKind::NotConnected);
        let (clients, listener) = (&self.clients, &self.listener);
        self.up.hand_out(now, |datagram| {
            clients.get(&datagram.client).ok_or_else(gone)?.socket.send(&datagram.payload)
        });
        self.down.hand_out(now, |datagram| {
            let client = clients.get(&datagram.client).ok_or_else(gone)?;
            listener.send_to(&datagram.payload, client.address)
        });
    }

    /// The number of a client, new for one that is not known yet.
    fn client(&mut self, address: SocketAddr, now: i64) -> io::Result<u64> {
        if let Some(number) = self.numbers.get(&address) {
            if let Some(client) = self.clients.get_mut(number) {
                client.heard_ns = now;
            }
            return Ok(*number);
        }
        if self.clients.len() >= MOST_CLIENTS {
            let silent = self.clients.iter().min_by_key(|(_, client)| client.heard_ns);
            if let Some(client) =
                silent.map(|(number, _)| *number).and_then(|number| self.clients.remove(&number))
            {
                self.numbers.remove(&client.address);
            }
        }
        let any = if self.to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
        socket.set_nonblocking(true)?;
        prepare(&socket)?;
        socket.connect(self.to)?;
        let number = self.last + 1;
        self.poller.watch(&socket, number, EventFlags::IN)?;
        self.last = number;
        self.clients.insert(number, Client { address, socket, heard_ns: now });
        self.numbers.insert(address, number);
        Ok(number)
    }
}
