//! The connection of one session: the bytes still to be written, and those received.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use bytes::Bytes;
use kendall_record::Outcome;
use kendall_record::clock::now_ns;
use rustls::ClientConnection;

use crate::dialog::{ConnectionKind, Tls, UNREAD_AT_MOST_BYTES};
use crate::poll::reactor::READS_AT_MOST;
use crate::poll::socket::{Inbox, Socket, Stamped};
use crate::session::{OpeningReply, Session, SessionRead};
use crate::summary::StampedBy;

/// The most bytes that wait for the kernel. A server that reads that slowly has its session closed.
const UNSENT_AT_MOST_BYTES: usize = 16 << 20;

/// The connection of one session.
pub(crate) struct SessionLine {
    pub(crate) user: u32,
    pub(crate) port: u16,
    socket: Socket,
    tls: Option<Box<ClientConnection>>,
    session: Box<dyn Session>,
    state: State,
    unsent: VecDeque<Unsent>,
    unsent_bytes: usize,
    /// The received bytes that the session left unread, and when the first of them arrived.
    unread: Vec<u8>,
    unread_since_ns: i64,
}

/// The state of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The log-in is in progress, and requests wait.
    Opening,
    Open,
}

/// A message that is being passed to the kernel.
struct Unsent {
    /// The key of its request; `None` for a message of the session itself.
    key: Option<u64>,
    bytes: Bytes,
    written: usize,
}

/// An event of requests on a line.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LineEvent {
    /// The first byte of a request was passed to the kernel.
    Sent { key: u64, at_ns: i64, bytes: u64 },
    /// An answer is complete.
    Answer { key: u64, outcome: Outcome, first_byte_ns: i64, completed_ns: i64, bytes: u64 },
}

/// Whether a read took all available bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    Drained,
    /// There may be more to read.
    Paused,
}

impl SessionLine {
    /// Begins to connect. The opening is sent as soon as the connection is established.
    pub(crate) fn connect(
        to: &SocketAddr,
        kind: &ConnectionKind,
        (user, mut session): (u32, Box<dyn Session>),
        stamped_by: StampedBy,
    ) -> io::Result<Self> {
        let socket = Socket::connect(to, kind.transport(), stamped_by)?;
        let tls = match kind.security() {
            None => None,
            Some(Tls { config, name }) => {
                let mut tls =
                    ClientConnection::new(Arc::clone(config), name.clone()).map_err(io::Error::other)?;
                // The unsent bytes are limited here.
                tls.set_buffer_limit(None);
                Some(Box::new(tls))
            }
        };
        let opening = session.opening();
        let state = match opening.reply {
            OpeningReply::None => State::Open,
            OpeningReply::Expected => State::Opening,
        };
        let port = socket.port()?;
        let (unsent, unread) = (VecDeque::new(), Vec::new());
        let mut line = Self {
            user,
            port,
            socket,
            tls,
            session,
            state,
            unsent,
            unsent_bytes: 0,
            unread,
            unread_since_ns: 0,
        };
        line.queue_own(opening.bytes);
        Ok(line)
    }

    /// Whether the log-in is over and fully sent.
    pub(crate) fn is_open(&self) -> bool {
        self.state == State::Open && self.unsent.iter().all(|message| message.key.is_some())
    }

    /// Whether there are bytes to write as soon as the kernel accepts them.
    pub(crate) fn is_urgent(&self) -> bool {
        self.unsent.front().is_some_and(|message| message.key.is_none() || self.state == State::Open)
            || self.tls.as_ref().is_some_and(|tls| tls.wants_write())
    }

    /// Queues a request behind the unsent bytes.
    ///
    /// # Errors
    /// Fails if too many bytes wait already.
    pub(crate) fn queue(&mut self, key: u64, bytes: Bytes) -> io::Result<()> {
        if self.unsent_bytes + bytes.len() > UNSENT_AT_MOST_BYTES {
            return Err(io::Error::other("the server does not read what its session sends"));
        }
        self.unsent_bytes += bytes.len();
        self.unsent.push_back(Unsent { key: Some(key), bytes, written: 0 });
        Ok(())
    }

    /// Queues a message of the session itself before the requests, except one that is partly written.
    fn queue_own(&mut self, bytes: Bytes) {
        if bytes.is_empty() {
            return;
        }
        self.unsent_bytes += bytes.len();
        let is_before = |message: &Unsent| message.key.is_none() || message.written > 0;
        let place = self.unsent.iter().take_while(|message| is_before(message)).count();
        self.unsent.insert(place, Unsent { key: None, bytes, written: 0 });
    }

    /// Closes it with a reset, so that the server learns at once that its answers are not read any more.
    pub(crate) fn reset(self) {
        self.socket.reset();
    }

    /// Passes on the bytes that the kernel accepts.
    pub(crate) fn write(&mut self, events: &mut Vec<LineEvent>) -> io::Result<()> {
        match self.write_all(events) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            written => written,
        }
    }

    fn write_all(&mut self, events: &mut Vec<LineEvent>) -> io::Result<()> {
        if let Some(tls) = &mut self.tls {
            while tls.wants_write() {
                tls.write_tls(&mut &self.socket)?;
            }
            if tls.is_handshaking() {
                return Ok(());
            }
        }
        while let Some(message) = self.unsent.front_mut() {
            if message.key.is_some() && self.state == State::Opening {
                break;
            }
            let at_ns = now_ns();
            let rest = &message.bytes[message.written..];
            let written = match &mut self.tls {
                Some(tls) => tls.writer().write(rest)?,
                None => self.socket.send(rest)?,
            };
            if let (0, Some(key)) = (message.written, message.key) {
                events.push(LineEvent::Sent { key, at_ns, bytes: message.bytes.len() as u64 });
            }
            message.written += written;
            self.unsent_bytes -= written;
            if message.written >= message.bytes.len() {
                self.unsent.pop_front();
            }
            while let Some(tls) = self.tls.as_mut().filter(|tls| tls.wants_write()) {
                tls.write_tls(&mut &self.socket)?;
            }
        }
        Ok(())
    }

    /// Reads the available bytes, and pauses after [`READS_AT_MOST`] reads, so that the events do not grow without bound.
    ///
    /// # Errors
    /// Fails if the connection is closed or broken, or the server violates the protocol.
    pub(crate) fn read(&mut self, inbox: &mut Inbox, events: &mut Vec<LineEvent>) -> io::Result<Reading> {
        let mut reading = Reading::Paused;
        for _ in 0..READS_AT_MOST {
            let read = match self.tls {
                Some(_) => self.read_tls(inbox, events),
                None => self.read_plain(inbox, events),
            };
            match read {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    reading = Reading::Drained;
                    break;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // The bytes may have opened the session, or require a reply.
        self.write(events)?;
        Ok(reading)
    }

    fn read_plain(&mut self, inbox: &mut Inbox, events: &mut Vec<LineEvent>) -> io::Result<()> {
        let (read, at_ns) = self.socket.receive(inbox)?;
        if read == 0 {
            return Err(self.closed());
        }
        self.take(&inbox.buffer[..read], at_ns, events)
    }

    fn read_tls(&mut self, inbox: &mut Inbox, events: &mut Vec<LineEvent>) -> io::Result<()> {
        let tls = self.tls.as_mut().expect("it is only called for TLS");
        let mut stamped = Stamped { socket: &self.socket, inbox, at_ns: 0 };
        let read = tls.read_tls(&mut stamped)?;
        let at_ns = stamped.at_ns;
        let state = match tls.process_new_packets() {
            Ok(state) => state,
            Err(error) => {
                // The alert reports the error, if the server reads it.
                let _ = tls.write_tls(&mut &self.socket);
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
        };
        let is_closed = read == 0 || state.peer_has_closed();
        let mut plain = vec![0; state.plaintext_bytes_to_read()];
        tls.reader().read_exact(&mut plain)?;
        self.take(&plain, at_ns, events)?;
        if is_closed { Err(self.closed()) } else { self.write(events) }
    }

    /// The error that reports the end of the server's data.
    fn closed(&self) -> io::Error {
        let why = match self.state {
            State::Opening => "the server closed the connection before it accepted the log-in",
            State::Open => "the server closed the connection before its answer was complete",
        };
        io::Error::new(io::ErrorKind::UnexpectedEof, why)
    }

    /// Lets the session read bytes that had arrived at this instant.
    fn take(&mut self, bytes: &[u8], at_ns: i64, events: &mut Vec<LineEvent>) -> io::Result<()> {
        let mut first_byte_ns = if self.unread.is_empty() { at_ns } else { self.unread_since_ns };
        let mut all = std::mem::take(&mut self.unread);
        let all = if all.is_empty() {
            bytes
        } else {
            all.extend_from_slice(bytes);
            &all
        };
        let mut taken = 0;
        while taken < all.len() {
            let used = match self.session.read(&all[taken..]) {
                SessionRead::More => break,
                SessionRead::Opened { used } => {
                    self.state = State::Open;
                    used
                }
                SessionRead::Answer { used, key, outcome } => {
                    let (completed_ns, bytes) = (at_ns, used as u64);
                    events.push(LineEvent::Answer { key, outcome, first_byte_ns, completed_ns, bytes });
                    used
                }
                SessionRead::Unasked { used, reply } => {
                    self.queue_own(reply);
                    used
                }
                SessionRead::Invalid => return Err(invalid()),
            };
            taken += used.max(1);
            first_byte_ns = at_ns;
        }
        let left = all.get(taken..).unwrap_or_default();
        if left.len() > UNREAD_AT_MOST_BYTES || self.unsent_bytes > UNSENT_AT_MOST_BYTES {
            return Err(invalid());
        }
        (self.unread, self.unread_since_ns) = (left.to_vec(), first_byte_ns);
        Ok(())
    }
}

fn invalid() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the server sent bytes that are not a message of the session's protocol",
    )
}

impl AsFd for SessionLine {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
