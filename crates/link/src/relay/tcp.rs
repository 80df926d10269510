//! Relays streams, cut into pieces that the model of the link treats as packets.
//!
//! The relay reads from a sender only when the link is certain to take the bytes, so none are lost. It also limits the bytes
//! under way for each connection, so that one whose receiver does not read does not use all the memory.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};

use kendall_linkmodel::{Aqm, Channel, Ecn, Link, Loss, Packet, Settings};
use kendall_record::clock::now_ns;
use rustix::event::epoll::EventFlags;
use rustix::net::sockopt::set_socket_recv_buffer_size;

use super::Relayed;
use super::poller::Poller;
use super::seeds::seeds;
use super::stream::{Connection, Piece};
use crate::error::LinkError;
use crate::lateness::Lateness;
use crate::outcome::{DirectionOutcome, Outcome};
use crate::pace::hurry;
use crate::protocol::LinkSettings;

/// The bytes of a stream in a piece: the payload of a segment with TCP timestamps, as is usual.
const PIECE_BYTES: usize = 1448;
/// The bytes that the link counts in addition: the headers of Ethernet, IPv4, and TCP with timestamps.
const HEADER_BYTES: u32 = 14 + 20 + 32;
/// The most connections at a time, with two sockets each: a program may usually open 1024 files.
const MOST_CONNECTIONS: usize = 450;
/// The most bytes under way, in one direction of one connection and in all.
const MOST_OF_ONE: usize = 8 << 20;
const MOST_OF_ALL: usize = 256 << 20;
/// The least and the most that the kernel may buffer for a sender that the link slows down, in bytes.
const RECEIVE_BYTES: (u64, u64) = (16_384, 262_144);
/// The most times that a lost piece is sent again and lost again.
const MOST_LOSSES: i64 = 8;
/// The pieces that are read in a row before due ones are sent.
const BATCH: usize = 64;
/// The number of the listening socket.
const LISTENER: u64 = 0;

/// A relay of streams.
#[derive(Debug)]
pub(super) struct TcpRelay {
    listener: TcpListener,
    to: SocketAddr,
    poller: Poller,
    /// From clients to the server, and from the server to clients.
    ways: [Direction; 2],
    connections: HashMap<u64, Connection>,
    last: u64,
    turned_away: u64,
    sent_again: u64,
    /// All bytes under way.
    inside_bytes: usize,
    receive_bytes: Option<usize>,
}

/// One direction of the link.
#[derive(Debug)]
struct Direction {
    link: Link<(u64, Piece)>,
    channel: Channel,
    /// The cost of a loss, in ns.
    round_ns: i64,
    /// Connections with data to read, in the order in which they are served.
    ready: VecDeque<u64>,
    /// The instants at which pieces that wait for a lost one continue, and their connections.
    resuming: BTreeSet<(i64, u64)>,
    late: Lateness,
    waited: Lateness,
}

/// The one hop of a direction that a stream can be relayed over.
fn only(hops: &[Settings]) -> Result<&Settings, LinkError> {
    let refuse = |what: &str| {
        let why = format!(
            "a relay of TCP cannot do {what}: it has bytes of a stream, not packets; relay UDP, or run the programs in \
             namespaces (kendall link run)"
        );
        Err(LinkError::Refused(why))
    };
    let [hop] = hops else { return refuse("several hops") };
    match hop {
        Settings { aqm: Aqm::CoDel(_) | Aqm::FqCoDel(_), .. } => refuse("CoDel"),
        Settings { corruption, .. } if *corruption > 0.0 => refuse("corruption"),
        Settings { duplication, .. } if *duplication > 0.0 => refuse("duplication"),
        Settings { reorder: Some(_), .. } => refuse("reordering"),
        _ => Ok(hop),
    }
}

impl TcpRelay {
    pub(super) fn bind(
        listen: SocketAddr,
        to: SocketAddr,
        asked: &LinkSettings,
        seed: u64,
    ) -> Result<Self, LinkError> {
        let hops = [only(&asked.up)?, only(&asked.down)?];
        let round_ns = hops.iter().map(|hop| hop.delay_ns).sum();
        let way = |hop: &Settings, seed: u64| {
            let lossless = Settings { loss: Loss::None, ..hop.clone() };
            Ok::<_, LinkError>(Direction {
                link: Link::new(&lossless, seed, now_ns())?,
                channel: Channel::alone(hop.loss, seed),
                round_ns,
                ready: VecDeque::new(),
                resuming: BTreeSet::new(),
                late: Lateness::default(),
                waited: Lateness::default(),
            })
        };
        let [up, down] = seeds(seed);
        let ways = [way(hops[0], up)?, way(hops[1], down)?];
        let listener = TcpListener::bind(listen)
            .map_err(LinkError::step(format!("listen for connections on {listen}")))?;
        listener.set_nonblocking(true).map_err(LinkError::step("prepare a socket"))?;
        // A sender counts bytes that its kernel has taken as sent, so the buffer must not hide a slow link.
        let slow = hops.iter().filter(|hop| hop.rate.mean_bits_per_s().is_some());
        let receive_bytes =
            slow.map(|hop| hop.queue_bytes.clamp(RECEIVE_BYTES.0, RECEIVE_BYTES.1) as usize).min();
        if let Some(bytes) = receive_bytes {
            set_socket_recv_buffer_size(&listener, bytes)
                .map_err(|error| LinkError::step("prepare a socket")(error.into()))?;
        }
        let poller = Poller::new().map_err(LinkError::step("wait for sockets"))?;
        poller.watch(&listener, LISTENER, EventFlags::IN).map_err(LinkError::step("wait for a socket"))?;
        Ok(Self {
            listener,
            to,
            poller,
            ways,
            connections: HashMap::new(),
            last: LISTENER,
            turned_away: 0,
            sent_again: 0,
            inside_bytes: 0,
            receive_bytes,
        })
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.listener.local_addr().expect("a bound socket has an address")
    }

    pub(super) fn run(mut self, stop: &AtomicBool) -> io::Result<Relayed> {
        hurry();
        let mut events = Vec::new();
        while !stop.load(Ordering::Relaxed) {
            let next_ns = self.next_ns();
            self.poller.wait(next_ns, &mut events)?;
            for (number, flags) in events.drain(..) {
                if number == LISTENER { self.accept()? } else { self.note(number, flags) }
            }
            for way in 0..2 {
                self.hand_out(way);
                self.take_in(way);
            }
        }
        let [up, down] = self.ways.map(|way| DirectionOutcome {
            hops: vec![way.link.counters().into()],
            waited: way.waited.summary(),
            late: way.late.summary(),
            unsent: 0,
        });
        Ok(Relayed {
            link: Outcome { up, down },
            clients: self.last,
            turned_away: self.turned_away,
            sent_again: self.sent_again,
        })
    }

    /// When there is something to do if no data arrives until then.
    fn next_ns(&self) -> Option<i64> {
        let of_way = |way: &Direction| {
            let readable = match way.ready.front() {
                // Connections stay ready because the link is full, or because others had their turn.
                Some(_) if !way.link.has_room(HEADER_BYTES + PIECE_BYTES as u32) => way.link.sends_next_ns(),
                Some(_) if self.inside_bytes < MOST_OF_ALL => Some(i64::MIN),
                _ => None,
            };
            let resuming = way.resuming.first().map(|(at_ns, _)| *at_ns);
            readable.into_iter().chain(resuming).chain(way.link.next_ns()).min()
        };
        self.ways.iter().filter_map(of_way).min()
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let client = match self.listener.accept() {
                Ok((client, _)) => client,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                // The client has disconnected, or no descriptors are left; the next connection may succeed.
                Err(_) => {
                    self.turned_away += 1;
                    return Ok(());
                }
            };
            let number = self.last + 1;
            let opened = if self.connections.len() < MOST_CONNECTIONS {
                self.open(number, client)
            } else {
                Err(io::ErrorKind::QuotaExceeded.into())
            };
            match opened {
                Ok(connection) => {
                    self.last = number;
                    self.connections.insert(number, connection);
                }
                Err(_) => self.turned_away += 1,
            }
        }
    }

    fn open(&self, number: u64, client: TcpStream) -> io::Result<Connection> {
        client.set_nonblocking(true)?;
        let connection = Connection::open(client, self.to, self.receive_bytes)?;
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        for (side, socket) in connection.sockets().into_iter().enumerate() {
            self.poller.watch(socket, 2 * number + side as u64, flags)?;
        }
        Ok(connection)
    }

    /// Records the events of a socket.
    fn note(&mut self, of: u64, flags: EventFlags) {
        let (number, side) = (of / 2, (of % 2) as usize);
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let ended = EventFlags::HUP | EventFlags::ERR | EventFlags::RDHUP;
        if flags.intersects(EventFlags::IN | ended) {
            connection.flow(side).readable = true;
            self.line_up(side, number);
        }
        if flags.intersects(EventFlags::OUT | ended) {
            self.write(1 - side, number);
        }
    }

    /// Lines a connection up to be read from, if it may be.
    fn line_up(&mut self, way: usize, number: u64) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let flow = connection.flow(way);
        if flow.readable && !flow.at_end && !flow.lined_up && flow.inside_bytes < MOST_OF_ONE {
            flow.lined_up = true;
            self.ways[way].ready.push_back(number);
        }
    }

    /// Reads a piece from each connection that has one, in turn, while the link has capacity.
    fn take_in(&mut self, way: usize) {
        let mut buffer = [0; PIECE_BYTES];
        for _ in 0..BATCH {
            let direction = &mut self.ways[way];
            let room = direction.link.has_room(HEADER_BYTES + PIECE_BYTES as u32);
            if !room || self.inside_bytes >= MOST_OF_ALL {
                return;
            }
            let Some(number) = direction.ready.pop_front() else { return };
            let Some(connection) = self.connections.get_mut(&number) else { continue };
            connection.flow(way).lined_up = false;
            let piece = match connection.sockets()[way].read(&mut buffer) {
                Ok(0) => Piece::End,
                Ok(length) => Piece::Bytes(buffer[..length].into()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => Piece::Bytes([].into()),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    connection.flow(way).readable = false;
                    continue;
                }
                Err(_) => {
                    self.close(number);
                    continue;
                }
            };
            let length = piece.length();
            let flow = connection.flow(way);
            flow.at_end = matches!(piece, Piece::End);
            if length > 0 || flow.at_end {
                flow.inside_bytes += length;
                self.inside_bytes += length;
                let bytes = HEADER_BYTES + length as u32;
                let packet = Packet { bytes, flow: number, ecn: Ecn::NotCapable, item: (number, piece) };
                direction.link.offer(now_ns(), packet);
            }
            self.line_up(way, number);
        }
    }

    /// Sends what is due.
    fn hand_out(&mut self, way: usize) {
        let now = now_ns();
        while let Some(delivery) = self.ways[way].link.poll(now) {
            let direction = &mut self.ways[way];
            direction.late.record(delivery.at_ns, now_ns(), 1);
            direction.waited.record(0, delivery.waited_ns, 1);
            let (number, piece) = delivery.packet.item;
            let Some(connection) = self.connections.get_mut(&number) else { continue };
            let losses = (0..MOST_LOSSES).take_while(|_| direction.channel.loses()).count();
            self.sent_again += losses as u64;
            let at_ns = delivery.at_ns + losses as i64 * direction.round_ns;
            if let Some(resumes_ns) = connection.flow(way).arrive(piece, at_ns, now) {
                direction.resuming.insert((resumes_ns, number));
            }
            self.write(way, number);
        }
        while let Some((_, number)) = self.ways[way].resuming.pop_first_if_due(now) {
            if let Some(connection) = self.connections.get_mut(&number)
                && let Some(resumes_ns) = connection.flow(way).resume(now)
            {
                self.ways[way].resuming.insert((resumes_ns, number));
            }
            self.write(way, number);
        }
    }

    /// Writes what has arrived in a direction, as far as the receiver takes it.
    fn write(&mut self, way: usize, number: u64) {
        let Some(connection) = self.connections.get_mut(&number) else { return };
        let before_bytes = connection.flow(way).inside_bytes;
        let written = connection.write(way);
        self.inside_bytes -= before_bytes - connection.flow(way).inside_bytes;
        // A connection to a server that could not be reached at all counts as rejected.
        self.turned_away += u64::from(written.is_err() && !connection.has_talked());
        if written.is_err() || connection.has_ended() {
            self.close(number);
        } else {
            self.line_up(way, number);
        }
    }

    fn close(&mut self, number: u64) {
        if let Some(mut connection) = self.connections.remove(&number) {
            self.inside_bytes -= (0..2).map(|way| connection.flow(way).inside_bytes).sum::<usize>();
        }
    }
}

/// An entry that waits for an instant.
trait Due {
    fn pop_first_if_due(&mut self, now_ns: i64) -> Option<(i64, u64)>;
}

impl Due for BTreeSet<(i64, u64)> {
    fn pop_first_if_due(&mut self, now_ns: i64) -> Option<(i64, u64)> {
        self.first().is_some_and(|(at_ns, _)| *at_ns <= now_ns).then(|| self.pop_first()).flatten()
    }
}
