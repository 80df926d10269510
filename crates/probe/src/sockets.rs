//! Reads the TCP connections of processes by sock_diag(7): the accept queue, round-trip times, unread and unsent bytes.
//!
//! The messages are those of linux/inet_diag.h and linux/tcp.h, in the machine's byte order. [`request`] and [`decode`] are pure;
//! [`Diagnosis`] calls the kernel.

use std::collections::HashSet;
use std::io;

use rustix::fd::OwnedFd;
use rustix::net::netlink::{self, SocketAddrNetlink};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, recv, sendto, socket_with};

use crate::row::{Column, Reading};

const LISTEN: u8 = 10;
/// The states, as bits: established, close-wait, and listening.
const STATES: u32 = 1 << 1 | 1 << 8 | 1 << LISTEN;
const HEADER_BYTES: usize = 16;
const REQUEST_BYTES: usize = HEADER_BYTES + 56;
const MESSAGE_BYTES: usize = 72;
/// SOCK_DIAG_BY_FAMILY
const BY_FAMILY: u16 = 20;
const DONE: u16 = 3;
const ERROR: u16 = 2;
/// INET_DIAG_INFO: struct tcp_info.
const INFO: u16 = 2;
/// The kernel sends dumps in pieces of at most 32 KiB.
const REPLY_BYTES: usize = 1 << 15;

/// A TCP socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Socket {
    is_listening: bool,
    port: u16,
    peer_port: u16,
    /// Bytes to be read; for a listening socket, connections to be accepted.
    unread: u32,
    /// Unacknowledged bytes; for a listening socket, the capacity of its accept queue.
    unsent: u32,
    inode: u32,
    info: Option<Info>,
}

/// The fields of `tcp_info` that are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Info {
    round_trip_us: u32,
    retransmits: u32,
    /// Milliseconds since data was last sent, and received.
    sent_ago_ms: u32,
    received_ago_ms: u32,
    /// Bytes that have not been sent for the first time.
    not_sent: u32,
    /// The most bytes of a segment.
    segment_bytes: u32,
    /// Segments sent and not acknowledged, and the congestion window.
    unacknowledged: u32,
    congestion_window: u32,
}

/// A connection that has been silent for this long is not waiting for an answer.
const MOST_MS: u32 = 10_000;

impl Info {
    /// Whether an answer is due: this side sent last, and recently.
    fn owes_an_answer(&self) -> bool {
        self.sent_ago_ms < self.received_ago_ms && self.sent_ago_ms < MOST_MS
    }

    /// Whether Nagle's algorithm holds bytes back (RFC 896): less than a segment is unsent although the congestion window has
    /// capacity, because an earlier segment is not acknowledged.
    fn is_held_back(&self) -> bool {
        (1..self.segment_bytes).contains(&self.not_sent)
            && (1..self.congestion_window).contains(&self.unacknowledged)
    }
}

/// A request for all sockets of a family in [`STATES`].
fn request(family: AddressFamily) -> [u8; REQUEST_BYTES] {
    /// NLM_F_REQUEST | NLM_F_DUMP
    const FLAGS: u16 = 0x301;
    /// IPPROTO_TCP
    const TCP: u8 = 6;
    let mut bytes = [0; REQUEST_BYTES];
    bytes[..4].copy_from_slice(&(REQUEST_BYTES as u32).to_ne_bytes());
    bytes[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
    bytes[6..8].copy_from_slice(&FLAGS.to_ne_bytes());
    bytes[HEADER_BYTES] = family.as_raw() as u8;
    bytes[HEADER_BYTES + 1] = TCP;
    bytes[HEADER_BYTES + 2] = 1 << (INFO - 1);
    bytes[HEADER_BYTES + 4..HEADER_BYTES + 8].copy_from_slice(&STATES.to_ne_bytes());
    bytes
}

/// Whether more pieces of a dump follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    GoesOn,
    Last,
}

/// Decodes the sockets in a piece of a dump. Omits what is cut off.
///
/// # Errors
/// Fails where the kernel reports an error instead of sockets, or at their end.
pub(crate) fn decode(mut bytes: &[u8], sockets: &mut Vec<Socket>) -> io::Result<Piece> {
    while let Some(length) = u32_at(bytes, 0).map(|length| length as usize) {
        let kind = u16_at(bytes, 4);
        if length < HEADER_BYTES || length > bytes.len() {
            return Ok(Piece::Last);
        }
        if kind == Some(DONE) || kind == Some(ERROR) {
            // Both have the negative number of the error after the header, or 0.
            let number = u32_at(&bytes[..length], HEADER_BYTES).map_or(0, |number| number as i32);
            return if number < 0 {
                Err(io::Error::from_raw_os_error(number.saturating_neg()))
            } else {
                Ok(Piece::Last)
            };
        }
        if kind == Some(BY_FAMILY) {
            sockets.extend(socket(&bytes[HEADER_BYTES..length]));
        }
        bytes = bytes.get(aligned(length)..).unwrap_or_default();
    }
    Ok(Piece::GoesOn)
}

fn socket(message: &[u8]) -> Option<Socket> {
    let port = |at: usize| Some(u16::from_be_bytes(message.get(at..at + 2)?.try_into().ok()?));
    let mut attributes = message.get(MESSAGE_BYTES..)?;
    let mut found = None;
    while let (Some(length), Some(kind)) = (u16_at(attributes, 0), u16_at(attributes, 2)) {
        let length = usize::from(length);
        if length < 4 || length > attributes.len() {
            break;
        }
        if kind == INFO {
            found = info(&attributes[4..length]);
        }
        attributes = attributes.get(aligned(length)..).unwrap_or_default();
    }
    Some(Socket {
        is_listening: *message.get(1)? == LISTEN,
        port: port(4)?,
        peer_port: port(6)?,
        unread: u32_at(message, 56)?,
        unsent: u32_at(message, 60)?,
        inode: u32_at(message, 68)?,
        info: found,
    })
}

fn info(bytes: &[u8]) -> Option<Info> {
    Some(Info {
        segment_bytes: u32_at(bytes, 16)?,
        unacknowledged: u32_at(bytes, 24)?,
        sent_ago_ms: u32_at(bytes, 44)?,
        received_ago_ms: u32_at(bytes, 52)?,
        round_trip_us: u32_at(bytes, 68)?,
        congestion_window: u32_at(bytes, 80)?,
        retransmits: u32_at(bytes, 100)?,
        // Kernels before 4.6 end the structure before that field.
        not_sent: u32_at(bytes, 144).unwrap_or(0),
    })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// Messages and attributes are aligned to four bytes.
fn aligned(length: usize) -> usize {
    length.div_ceil(4) * 4
}

/// The socket to the kernel, and the known sockets of the server.
#[derive(Debug)]
pub(crate) struct Diagnosis {
    netlink: OwnedFd,
    reply: Vec<u8>,
    sockets: Vec<Socket>,
    round_trips_us: Vec<u32>,
    /// The inodes of the server's sockets, and of its connections to other servers.
    own: HashSet<u64>,
    back_ends: HashSet<u64>,
}

impl Diagnosis {
    /// Opens the socket to the kernel.
    ///
    /// # Errors
    /// Fails where the kernel does not support it.
    pub(crate) fn open() -> io::Result<Self> {
        let netlink = socket_with(
            AddressFamily::NETLINK,
            SocketType::DGRAM,
            SocketFlags::CLOEXEC,
            Some(netlink::SOCK_DIAG),
        )?;
        Ok(Self {
            netlink,
            reply: vec![0; REPLY_BYTES],
            sockets: Vec::new(),
            round_trips_us: Vec::new(),
            own: HashSet::new(),
            back_ends: HashSet::new(),
        })
    }

    /// Sets which sockets belong to the server, by their inodes.
    pub(crate) fn own(&mut self, inodes: HashSet<u64>) {
        self.own = inodes;
    }

    /// The inodes of the connections that the server opened to other servers.
    pub(crate) fn back_ends(&self) -> &HashSet<u64> {
        &self.back_ends
    }

    /// Reads the connections between the server and its clients from both sides, and those of the server with other servers.
    ///
    /// # Errors
    /// Fails where the kernel reports an error.
    pub(crate) fn read(&mut self, server: &mut Reading, generator: &mut Reading) -> io::Result<()> {
        self.sockets.clear();
        self.dump(AddressFamily::INET)?;
        self.dump(AddressFamily::INET6)?;
        let is_own = |socket: &&Socket| self.own.contains(&u64::from(socket.inode));
        let listening: Vec<&Socket> =
            self.sockets.iter().filter(|socket| socket.is_listening).filter(is_own).collect();
        let ports: HashSet<u16> = listening.iter().map(|socket| socket.port).collect();
        let sum = |of: fn(&Socket) -> u32| listening.iter().map(|socket| f64::from(of(socket))).sum();
        if !listening.is_empty() {
            server.set(Column::AcceptQueue, sum(|socket| socket.unread));
            server.set(Column::AcceptQueueLimit, sum(|socket| socket.unsent));
        }
        let connected = || self.sockets.iter().filter(|socket| !socket.is_listening);
        // Connections in an accept queue belong to no process yet; their port shows which server will accept them.
        let with_clients = connected().filter(|socket| ports.contains(&socket.port));
        connections(with_clients, &mut self.round_trips_us, server);
        let of_clients = connected().filter(|socket| ports.contains(&socket.peer_port));
        connections(of_clients, &mut self.round_trips_us, generator);
        self.back_ends.clear();
        let (mut count, mut busy) = (0, 0);
        for socket in connected().filter(is_own).filter(|socket| !ports.contains(&socket.port)) {
            self.back_ends.insert(u64::from(socket.inode));
            count += 1;
            busy += usize::from(socket.info.is_some_and(|info| info.owes_an_answer()));
        }
        server.set(Column::BackEndConnections, f64::from(count));
        server.set(Column::BackEndBusy, busy as f64);
        Ok(())
    }

    fn dump(&mut self, family: AddressFamily) -> io::Result<()> {
        let kernel = SocketAddrNetlink::new(0, 0);
        sendto(&self.netlink, &request(family), SendFlags::empty(), &kernel)?;
        loop {
            // The kernel has written the next piece before the system call that requests it returns.
            let (length, _) = recv(&self.netlink, &mut self.reply[..], RecvFlags::DONTWAIT)?;
            if decode(&self.reply[..length], &mut self.sockets)? == Piece::Last || length == 0 {
                return Ok(());
            }
        }
    }
}

/// Adds up the connections of one side.
fn connections<'s>(
    sockets: impl Iterator<Item = &'s Socket>,
    round_trips_us: &mut Vec<u32>,
    reading: &mut Reading,
) {
    round_trips_us.clear();
    let (mut count, mut unread, mut unsent, mut retransmits) = (0u32, 0.0, 0.0, 0.0);
    let (mut with_unread, mut held_back, mut blocked) = (0u32, 0u32, 0u32);
    for socket in sockets {
        count += 1;
        unread += f64::from(socket.unread);
        with_unread += u32::from(socket.unread > 0);
        unsent += f64::from(socket.unsent);
        if let Some(info) = socket.info {
            round_trips_us.push(info.round_trip_us);
            let is_held_back = info.is_held_back();
            held_back += u32::from(is_held_back);
            blocked += u32::from(info.not_sent > 0 && !is_held_back);
            retransmits += f64::from(info.retransmits);
        }
    }
    reading.set(Column::Connections, f64::from(count));
    reading.set(Column::Unread, unread);
    reading.set(Column::UnreadConnections, f64::from(with_unread));
    reading.set(Column::Unsent, unsent);
    if round_trips_us.is_empty() {
        return;
    }
    reading.set(Column::SendBlocked, f64::from(blocked));
    reading.set(Column::HeldBack, f64::from(held_back));
    reading.set(Column::ConnectionRetransmits, retransmits);
    let middle = round_trips_us.len() / 2;
    let (_, median_us, _) = round_trips_us.select_nth_unstable(middle);
    reading.set(Column::RoundTrip, f64::from(*median_us) / 1e6);
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn own_inodes() -> HashSet<u64> {
        let process = crate::proc::Process::new(crate::row::Role::Server, std::process::id()).unwrap();
        process.sockets()
    }

    #[test]
    fn connections_bytes_and_the_accept_queue_are_seen() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let mut clients: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(address).unwrap()).collect();
        let (_accepted, _) = listener.accept().unwrap();
        clients[0].write_all(&[7; 100]).unwrap();
        let mut diagnosis = Diagnosis::open().unwrap();
        // The sockets of other tests belong to this process as well, so only those of this listener count.
        let listening = inode_of(&listener);
        assert!(own_inodes().contains(&listening));
        diagnosis.own(HashSet::from([listening]));
        let (mut server, mut generator) = (Reading::default(), Reading::default());
        diagnosis.read(&mut server, &mut generator).unwrap();
        assert_eq!(server.get(Column::AcceptQueue), Some(2.0));
        assert_eq!(server.get(Column::Connections), Some(3.0));
        assert_eq!(generator.get(Column::Connections), Some(3.0));
        assert_eq!(server.get(Column::Unread), Some(100.0));
        assert_eq!(server.get(Column::UnreadConnections), Some(1.0));
        assert_eq!(server.get(Column::HeldBack), Some(0.0));
        assert_eq!(server.get(Column::BackEndConnections), Some(0.0));
        assert!(server.get(Column::RoundTrip).unwrap() < 1.0);
        // Seen as a server's sockets, the clients are connections to another server, and one of them waits for an answer.
        diagnosis.own(clients.iter().map(inode_of).collect());
        diagnosis.read(&mut server, &mut generator).unwrap();
        assert_eq!(server.get(Column::BackEndConnections), Some(3.0));
        assert_eq!(diagnosis.back_ends().len(), 3);
    }

    #[test]
    fn a_small_rest_behind_an_unacknowledged_segment_is_held_back() {
        let info = |not_sent, unacknowledged| Info {
            round_trip_us: 40_000,
            retransmits: 0,
            sent_ago_ms: 1,
            received_ago_ms: 1,
            not_sent,
            segment_bytes: 65_483,
            unacknowledged,
            congestion_window: 10,
        };
        assert!(info(300, 1).is_held_back());
        assert!(!info(0, 1).is_held_back() && !info(300, 0).is_held_back());
        // A whole segment may always be sent, and a full window stops small ones, too: the network is then the cause.
        assert!(!info(65_483, 1).is_held_back() && !info(300, 10).is_held_back());
    }

    fn inode_of(socket: &impl std::os::fd::AsRawFd) -> u64 {
        let link = std::fs::read_link(format!("/proc/self/fd/{}", socket.as_raw_fd())).unwrap();
        link.to_str().unwrap().strip_prefix("socket:[").unwrap().strip_suffix(']').unwrap().parse().unwrap()
    }

    #[test]
    fn no_reply_makes_the_reader_panic_or_go_on_for_ever() {
        let mut whole = vec![0u8; HEADER_BYTES + MESSAGE_BYTES + 4 + 160];
        let length = whole.len() as u32;
        whole[..4].copy_from_slice(&length.to_ne_bytes());
        whole[4..6].copy_from_slice(&BY_FAMILY.to_ne_bytes());
        let attribute = HEADER_BYTES + MESSAGE_BYTES;
        whole[attribute..attribute + 2].copy_from_slice(&164u16.to_ne_bytes());
        whole[attribute + 2..attribute + 4].copy_from_slice(&INFO.to_ne_bytes());
        let mut sockets = Vec::new();
        assert_eq!(decode(&whole, &mut sockets).unwrap(), Piece::GoesOn);
        assert!(sockets.len() == 1 && sockets[0].info.is_some());
        for cut in 0..whole.len() {
            let _ = decode(&whole[..cut], &mut sockets);
        }
        for at in 0..whole.len() {
            for byte in [0, 1, 3, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                let _ = decode(&damaged, &mut sockets);
            }
        }
    }

    #[test]
    fn an_error_of_the_kernel_is_not_an_empty_list() {
        let reply = |kind: u16, number: i32| {
            let length = HEADER_BYTES as u32 + 4;
            let header = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10]].concat();
            decode(&[header, number.to_ne_bytes().to_vec()].concat(), &mut Vec::new())
        };
        for kind in [DONE, ERROR] {
            assert_eq!(reply(kind, 0).unwrap(), Piece::Last);
            assert_eq!(reply(kind, -2).unwrap_err().kind(), io::ErrorKind::NotFound);
            let _ = reply(kind, i32::MIN);
        }
    }
}
