//! One socket of the generator, its protocol, and the request that it carries.

use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use kendall_linkmodel::Carries;
use kendall_record::Outcome;
use kendall_record::clock::now_ns;
use rustls::ClientConnection;

use crate::connection::Stamps;
use crate::dialog::{AnswerRead, Dialog, Dialogs, Tls, UNREAD_AT_MOST_BYTES, Wire};
use crate::ledger::OutgoingRequest;
use crate::poll::reactor::{PendingRequest, READS_AT_MOST};
use crate::poll::socket::{Inbox, Socket, Stamped};
use crate::request::{Request, Reuse};
use crate::schedule::Due;
use crate::summary::StampedBy;

/// The most parts of a request that are passed to the kernel at once.
const PARTS: usize = 8;

/// One socket of the generator.
pub(crate) struct Carrier {
    socket: Socket,
    pub(crate) port: u16,
    layer: Layer,
    /// Whether the wire lets a connection carry more than one request.
    reuse: Reuse,
    dialog: Box<dyn Dialog>,
    /// The bytes that the dialog left unread.
    unread: Vec<u8>,
    /// Requests that it has carried, the current one included.
    carried: u64,
    out: Option<Out>,
}

/// The layer between the dialog and the socket.
enum Layer {
    Stream,
    Datagrams,
    Tls(Box<ClientConnection>),
}

/// The request that a connection carries.
struct Out {
    due: Due,
    request: Request,
    deadline_ns: i64,
    stamps: Stamps,
    handing: Handing,
}

/// The progress of passing a request to the kernel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Handing {
    /// The kernel has this many of its bytes.
    Written(u64),
    Done,
}

impl Out {
    /// Passes on the bytes that the kernel accepts; it accepts none for a connection that is still being
    /// opened.
    fn write(&mut self, socket: &Socket) -> io::Result<()> {
        while let Handing::Written(before) = self.handing {
            let at_ns = now_ns();
            let written = before + send(socket, &self.request, before)?;
            self.stamps.sent.get_or_insert(at_ns);
            self.stamps.bytes_out = written;
            let is_whole = written >= self.request.length();
            self.handing = if is_whole { Handing::Done } else { Handing::Written(written) };
        }
        Ok(())
    }
}

/// Passes on the bytes of a request from a position on that the kernel accepts; returns their number.
fn send(socket: &Socket, request: &Request, place: u64) -> io::Result<u64> {
    let head = request.bytes.get(usize::try_from(place).unwrap_or(usize::MAX)..).unwrap_or_default();
    let Some(body) = &request.body else { return Ok(socket.send(head)? as u64) };
    // The head is sent together with the beginning of the body, and not in a separate packet.
    let mut parts = [head; PARTS];
    let mut at = place.saturating_sub(request.bytes.len() as u64);
    for part in &mut parts[1..] {
        *part = body.from(at);
        at += part.len() as u64;
    }
    Ok(socket.send_parts(parts)? as u64)
}

/// Continues the handshake, and passes the request on once it is complete.
fn write_tls(tls: &mut ClientConnection, mut socket: &Socket, out: Option<&mut Out>) -> io::Result<()> {
    while tls.wants_write() {
        tls.write_tls(&mut socket)?;
    }
    if let Some(out) = out.filter(|out| out.handing != Handing::Done && !tls.is_handshaking()) {
        out.stamps.sent = Some(now_ns());
        out.stamps.bytes_out = out.request.length();
        tls.writer().write_all(&out.request.bytes)?;
        if let Some(body) = &out.request.body {
            let mut at = 0;
            while at < body.length() {
                let part = body.from(at);
                tls.writer().write_all(part)?;
                at += part.len() as u64;
            }
        }
        out.handing = Handing::Done;
        while tls.wants_write() {
            tls.write_tls(&mut socket)?;
        }
    }
    Ok(())
}

/// Whether an event reported the end of the server's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hangup {
    No,
    Yes,
}

/// The result of a step on a connection.
pub(crate) enum Step {
    /// Nothing more for now.
    Wait,
    /// There may be more to read, but others come first.
    Paused,
    /// The carrier's request has ended.
    Ended(Outcome, Reuse),
    /// The connection is closed or broken, and the request that it carried has ended with it.
    Broken(Outcome, Option<io::Error>),
}

impl Carrier {
    /// Begins to connect.
    pub(crate) fn connect(wire: &Wire, dialogs: &dyn Dialogs, stamped_by: StampedBy) -> io::Result<Self> {
        let transport = wire.kind.transport();
        let socket = Socket::connect(&wire.to, transport, stamped_by)?;
        let layer = match (wire.kind.security(), transport.carries) {
            (None, Carries::Streams) => Layer::Stream,
            (None, Carries::Datagrams) => Layer::Datagrams,
            (Some(Tls { config, name }), _) => {
                let mut tls =
                    ClientConnection::new(Arc::clone(config), name.clone()).map_err(io::Error::other)?;
                // The whole request is in memory in any case.
                tls.set_buffer_limit(None);
                Layer::Tls(Box::new(tls))
            }
        };
        let port = socket.port()?;
        let dialog = dialogs.dialog();
        let (unread, reuse) = (Vec::new(), wire.reuse);
        Ok(Self { socket, port, layer, reuse, dialog, unread, carried: 0, out: None })
    }

    /// Takes a request to carry.
    pub(crate) fn load<C>(&mut self, begin: OutgoingRequest<C>, deadline_ns: i64) {
        let OutgoingRequest { due, request, .. } = begin;
        self.unread.clear();
        self.carried += 1;
        self.dialog.begin(due.index, &request);
        let handing = Handing::Written(0);
        self.out = Some(Out { due, request, deadline_ns, stamps: Stamps::default(), handing });
    }

    /// The deadline of the request that it carries; `None` if it carries none.
    pub(crate) fn deadline_ns(&self) -> Option<i64> {
        self.out.as_ref().map(|out| out.deadline_ns)
    }

    /// When the kernel had the first byte of the request that it carries.
    pub(crate) fn sent_ns(&self) -> Option<i64> {
        self.out.as_ref()?.stamps.sent
    }

    /// Abandons the request that it carries.
    pub(crate) fn take_out(&mut self) -> Option<PendingRequest> {
        let Out { due, request, deadline_ns, stamps, .. } = self.out.take()?;
        Some(PendingRequest { due, class: request.class, stamps, deadline_ns })
    }

    /// Whether the generator must react to it without delay: its request is not yet passed on.
    pub(crate) fn is_urgent(&self) -> bool {
        let is_handed = self.out.as_ref().is_none_or(|out| out.handing == Handing::Done);
        !is_handed || matches!(&self.layer, Layer::Tls(tls) if tls.wants_write())
    }

    /// Closes it with a reset, so that the server need not work on an answer that no client wants.
    pub(crate) fn reset(self) {
        self.socket.reset();
    }

    /// Passes on the bytes that the kernel accepts.
    pub(crate) fn write(&mut self) -> Step {
        let result = match &mut self.layer {
            Layer::Stream | Layer::Datagrams => match &mut self.out {
                Some(out) => out.write(&self.socket),
                None => Ok(()),
            },
            Layer::Tls(tls) => write_tls(tls, &self.socket, self.out.as_mut()),
        };
        match result {
            Ok(()) => Step::Wait,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Step::Wait,
            Err(error) => Step::Broken(Outcome::Refused, Some(error)),
        }
    }

    /// Reads the available bytes, and pauses after [`READS_AT_MOST`] reads.
    pub(crate) fn read(&mut self, inbox: &mut Inbox, hangup: Hangup) -> Step {
        for _ in 0..READS_AT_MOST {
            let step = match self.layer {
                Layer::Tls(_) => self.read_tls(inbox),
                Layer::Stream | Layer::Datagrams => self.read_plain(inbox, hangup),
            };
            match step {
                Ok(None) => {}
                // The end is reported only once.
                Ok(Some(Step::Ended(outcome, _))) if hangup == Hangup::Yes => {
                    return Step::Ended(outcome, Reuse::Close);
                }
                Ok(Some(step)) => return step,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Step::Wait,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Step::Broken(Outcome::Refused, Some(error)),
            }
        }
        Step::Paused
    }

    /// One read; `None` if there may be more to read.
    fn read_plain(&mut self, inbox: &mut Inbox, hangup: Hangup) -> io::Result<Option<Step>> {
        let (read, at_ns) = self.socket.receive(inbox)?;
        let is_stream = matches!(self.layer, Layer::Stream);
        if is_stream && read == 0 {
            return Ok(Some(self.closed(at_ns)));
        }
        let step = self.take(&inbox.buffer[..read], at_ns);
        // A stream that returned less than it could has no more (epoll(7)), unless its end is to be read,
        // too.
        let is_empty = is_stream && read < inbox.buffer.len() && hangup == Hangup::No;
        Ok(match step {
            Step::Wait if !is_empty => None,
            step => Some(step),
        })
    }

    fn read_tls(&mut self, inbox: &mut Inbox) -> io::Result<Option<Step>> {
        let Layer::Tls(tls) = &mut self.layer else { unreachable!("it is only called for TLS") };
        let mut stamped = Stamped { socket: &self.socket, inbox, at_ns: 0 };
        let read = tls.read_tls(&mut stamped)?;
        let at_ns = stamped.at_ns;
        let state = match tls.process_new_packets() {
            Ok(state) => state,
            Err(error) => {
                // Sends the alert to the server, if it reads it.
                let _ = tls.write_tls(&mut &self.socket);
                return Err(io::Error::new(io::ErrorKind::InvalidData, error));
            }
        };
        let is_closed = read == 0 || state.peer_has_closed();
        let mut plain = state.plaintext_bytes_to_read();
        while plain > 0 {
            let Layer::Tls(tls) = &mut self.layer else { unreachable!("a layer stays what it is") };
            let taken = tls.reader().read(&mut inbox.buffer)?;
            plain -= taken.min(plain);
            match self.take(&inbox.buffer[..taken], at_ns) {
                Step::Wait if taken > 0 => {}
                step => return Ok(Some(step)),
            }
        }
        if is_closed {
            return Ok(Some(self.closed(at_ns)));
        }
        // Reading may produce something to write: the handshake, and after it the request.
        Ok(match self.write() {
            Step::Wait => None,
            step => Some(step),
        })
    }

    /// Lets the dialog read bytes that had arrived at this instant.
    fn take(&mut self, bytes: &[u8], at_ns: i64) -> Step {
        let Some(out) = self.out.as_mut() else { return self.unasked() };
        let Some(sent_ns) = out.stamps.sent else { return self.unasked() };
        // The conversion between two clocks must not make an answer come before its request.
        let at_ns = at_ns.max(sent_ns);
        out.stamps.first_byte.get_or_insert(at_ns);
        out.stamps.completed = Some(at_ns);
        out.stamps.bytes_in += bytes.len() as u64;
        let handed_over = out.handing == Handing::Done;
        if !self.unread.is_empty() {
            self.unread.extend_from_slice(bytes);
        }
        let all = if self.unread.is_empty() { bytes } else { &self.unread };
        let mut taken = 0;
        loop {
            match self.dialog.read(&all[taken..]) {
                AnswerRead::More { used } => {
                    taken += used;
                    if used == 0 || taken >= all.len() {
                        break;
                    }
                }
                AnswerRead::Done { used, outcome, reuse } => {
                    out.stamps.status = self.dialog.status();
                    let is_clean = handed_over && taken + used == all.len();
                    let keep = is_clean && [reuse, self.reuse] == [Reuse::Keep; 2];
                    return Step::Ended(outcome, if keep { Reuse::Keep } else { Reuse::Close });
                }
            }
        }
        let left = &all[taken.min(all.len())..];
        if left.len() > UNREAD_AT_MOST_BYTES {
            return Step::Ended(Outcome::Wrong, Reuse::Close);
        }
        self.unread = match self.layer {
            Layer::Datagrams => Vec::new(),
            Layer::Stream | Layer::Tls(_) => left.to_vec(),
        };
        Step::Wait
    }

    /// Handles bytes that answer no request.
    fn unasked(&self) -> Step {
        Step::Broken(Outcome::Refused, Some(io::Error::other("the server sent bytes without a request")))
    }

    /// Handles the end of the server's data.
    fn closed(&mut self, at_ns: i64) -> Step {
        match &mut self.out {
            Some(out) if out.stamps.sent.is_some() => {
                out.stamps.completed = out.stamps.sent.max(Some(at_ns));
                let outcome = self.dialog.closed();
                out.stamps.status = self.dialog.status();
                // Servers close a kept connection after some time or some requests, perhaps just as the next one is sent.
                let is_spent = self.carried > 1 && out.stamps.first_byte.is_none();
                let why = if is_spent {
                    "the server closed the kept connection without an answer to this request"
                } else {
                    "the server closed the connection before its answer was complete"
                };
                Step::Broken(outcome, (outcome == Outcome::Refused).then(|| ended(why)))
            }
            _ => {
                let why = "the server closed the connection before the request was sent";
                Step::Broken(Outcome::Refused, Some(ended(why)))
            }
        }
    }
}

fn ended(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, why)
}

impl AsFd for Carrier {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
