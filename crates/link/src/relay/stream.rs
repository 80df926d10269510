//! A relayed connection: two sockets, and the data under way between them.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};

use rustix::io::Errno;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_reuseaddr};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};

/// The source address for connections on behalf of a client at 127.0.0.1: there, the client's own port is free.
const BESIDE: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);

/// A part of a stream.
#[derive(Debug)]
pub(super) enum Piece {
    /// Some bytes of the stream.
    Bytes(Box<[u8]>),
    /// The end of the stream.
    End,
}

impl Piece {
    pub(super) fn length(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::End => 0,
        }
    }
}

/// One direction of a connection.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// Whether the flow's sender may have data.
    pub(super) readable: bool,
    /// Whether the flow's sender has sent everything.
    pub(super) at_end: bool,
    /// Whether the flow is in the line of connections to read from.
    pub(super) lined_up: bool,
    /// Bytes that are read and not yet written.
    pub(super) inside_bytes: usize,
    /// Pieces that have arrived but wait for an earlier one, and the instants at which they continue.
    waiting: VecDeque<(i64, Piece)>,
    /// Pieces that can be written, and how much of the first has been.
    due: VecDeque<Piece>,
    written: usize,
    /// Whether the end has been passed on.
    ended: bool,
}

impl Flow {
    /// Takes a piece that arrives at an instant, or behind those before it. Returns when to call [`resume`](Self::resume), if
    /// that call is not planned yet.
    pub(super) fn arrive(&mut self, piece: Piece, at_ns: i64, now_ns: i64) -> Option<i64> {
        let last_ns = self.waiting.back().map(|(at_ns, _)| *at_ns);
        let at_ns = at_ns.max(last_ns.unwrap_or(at_ns));
        if at_ns <= now_ns && last_ns.is_none() {
            self.due.push_back(piece);
            return None;
        }
        self.waiting.push_back((at_ns, piece));
        last_ns.is_none().then_some(at_ns)
    }

    /// Releases the pieces whose time has come. Returns when to call it again, if some still wait.
    pub(super) fn resume(&mut self, now_ns: i64) -> Option<i64> {
        while let Some((_, piece)) = self.waiting.pop_front_if(|(at_ns, _)| *at_ns <= now_ns) {
            self.due.push_back(piece);
        }
        self.waiting.front().map(|(at_ns, _)| *at_ns)
    }

    /// Writes as much as the socket takes.
    fn write(&mut self, mut to: &TcpStream) -> io::Result<()> {
        while let Some(piece) = self.due.front() {
            let Piece::Bytes(bytes) = piece else {
                // A receiver that has disconnected already needs no end of stream.
                let _ = to.shutdown(Shutdown::Write);
                self.ended = true;
                self.due.clear();
                break;
            };
            match to.write(&bytes[self.written..]) {
                Ok(length) => {
                    self.written += length;
                    self.inside_bytes -= length;
                    if self.written == bytes.len() {
                        self.written = 0;
                        self.due.pop_front();
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A client, its server, and both directions between them.
#[derive(Debug)]
pub(super) struct Connection {
    sockets: [TcpStream; 2],
    flows: [Flow; 2],
    talked: bool,
}

impl Connection {
    /// Starts to connect to the server.
    pub(super) fn open(client: TcpStream, to: SocketAddr, receive_bytes: Option<usize>) -> io::Result<Self> {
        let kept = kept_port(client.peer_addr()?, to).map(|from| begin(to, Some(from), receive_bytes));
        // Another socket has that port, or had it a moment ago.
        let server = match kept {
            Some(Ok(server)) => server,
            Some(Err(_)) | None => begin(to, None, receive_bytes)?,
        };
        // The link decides when a piece arrives; the kernel must not hold any back.
        client.set_nodelay(true)?;
        server.set_nodelay(true)?;
        Ok(Self { sockets: [client, server], flows: [Flow::default(), Flow::default()], talked: false })
    }

    /// The client's socket and the server's: the sender of the first direction, and of the second.
    pub(super) fn sockets(&self) -> [&TcpStream; 2] {
        self.sockets.each_ref()
    }

    pub(super) fn flow(&mut self, way: usize) -> &mut Flow {
        &mut self.flows[way]
    }

    /// Writes what has arrived in a direction, as far as the receiver takes it.
    ///
    /// # Errors
    ///
    /// Where the receiver has disconnected, or cannot be reached.
    pub(super) fn write(&mut self, way: usize) -> io::Result<()> {
        let to = &self.sockets[1 - way];
        if let Some(error) = to.take_error()? {
            return Err(error);
        }
        let flow = &mut self.flows[way];
        let before_bytes = flow.inside_bytes;
        let written = flow.write(to);
        self.talked |= flow.inside_bytes < before_bytes;
        written
    }

    /// Whether both directions have ended.
    pub(super) fn has_ended(&self) -> bool {
        self.flows.iter().all(|flow| flow.ended)
    }

    /// Whether anything has passed.
    pub(super) fn has_talked(&self) -> bool {
        self.talked
    }
}

/// The address from which the server sees a client of the same machine at the client's own port. The server's stamps name
/// requests by it.
fn kept_port(client: SocketAddr, to: SocketAddr) -> Option<SocketAddr> {
    let local =
        client.ip() == Ipv4Addr::LOCALHOST && matches!(to, SocketAddr::V4(to) if to.ip().is_loopback());
    local.then(|| (BESIDE, client.port()).into())
}

/// Starts to connect to the server, from an address if one is given.
fn begin(to: SocketAddr, from: Option<SocketAddr>, receive_bytes: Option<usize>) -> io::Result<TcpStream> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let server = socket_with(family, SocketType::STREAM, flags, None)?;
    if let Some(bytes) = receive_bytes {
        set_socket_recv_buffer_size(&server, bytes)?;
    }
    if let Some(from) = from {
        set_socket_reuseaddr(&server, true)?;
        bind(&server, &from)?;
    }
    match connect(&server, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(server.into()),
        Err(error) => Err(error.into()),
    }
}
