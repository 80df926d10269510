//! The application at one end of a connection between endpoints: it executes its script as events allow.

use std::time::Duration;

use curvecp::{CloseReason, ConnectionId, Endpoint, Event, Read};

use crate::script::{Ending, Pattern, Script};

/// One end of a connection.
#[derive(Debug)]
pub(crate) struct Application {
    pub(crate) script: Script,
    pub(crate) stream: u64,
    /// The connection, once there is one.
    pub(crate) id: Option<ConnectionId>,
    pub(crate) connected: bool,
    pub(crate) written: u64,
    pub(crate) read: u64,
    ended: bool,
    may_write: bool,
    may_read: bool,
    write_at: Duration,
    read_at: Duration,
    /// How the peer's stream ended.
    pub(crate) outcome: Option<Read>,
    /// How the connection ended.
    pub(crate) closed: Option<CloseReason>,
    /// The most bytes of memory that the connection took, and its largest window.
    pub(crate) peak: [u64; 2],
}

impl Application {
    pub(crate) fn new(script: Script, stream: u64) -> Self {
        Self {
            script,
            stream,
            id: None,
            connected: false,
            written: 0,
            read: 0,
            ended: false,
            may_write: true,
            may_read: true,
            write_at: Duration::ZERO,
            read_at: Duration::ZERO,
            outcome: None,
            closed: None,
            peak: [0; 2],
        }
    }

    /// Whether the application has a connection, or had one.
    pub(crate) fn is_open(&self) -> bool {
        self.id.is_some()
    }

    /// Whether nothing more happens: the connection has ended, and all that it brought was read.
    pub(crate) fn is_over(&self) -> bool {
        self.closed.is_some() && self.outcome.is_some()
    }

    pub(crate) fn open(&mut self, now: Duration, id: ConnectionId) {
        self.id = Some(id);
        (self.write_at, self.read_at) = (now, now.max(self.script.starts));
    }

    /// Learns of an event.
    pub(crate) fn take(&mut self, event: &Event) {
        assert!(self.closed.is_none(), "{event:?} after the connection has ended");
        match event {
            Event::Readable(_) => self.may_read = true,
            Event::Writable(_) => self.may_write = true,
            Event::Connected(_) => {
                assert!(!self.connected, "connected twice");
                self.connected = true;
            }
            Event::Closed(_, reason) => {
                self.closed = Some(*reason);
                self.may_read = true;
            }
            Event::Moved(..) | Event::NewConnection { .. } => {}
        }
    }

    /// Does what it can do now. Returns whether that was anything.
    pub(crate) fn act(
        &mut self,
        now: Duration,
        endpoint: &mut Endpoint,
        peer: u64,
        pattern: &Pattern,
    ) -> bool {
        let Some(id) = self.id else { return false };
        self.ended |= self.closed.is_some();
        let before = (self.written, self.read, self.ended, self.outcome);
        if let Some(layer) = endpoint.layer(id) {
            let now = [layer.memory_bytes() as u64, layer.stats().window_bytes];
            self.peak = [0, 1].map(|i| self.peak[i].max(now[i]));
        }
        while self.may_write && !self.ended && now >= self.write_at {
            self.write(now, endpoint, id, pattern);
        }
        while self.may_read && self.outcome.is_none() && now >= self.read_at {
            self.read(now, endpoint, id, peer, pattern);
        }
        before != (self.written, self.read, self.ended, self.outcome)
    }

    fn write(&mut self, now: Duration, endpoint: &mut Endpoint, id: ConnectionId, pattern: &Pattern) {
        let wanted = (self.script.total - self.written).min(self.script.write.0 as u64);
        let piece = pattern.bytes(self.stream, self.written, wanted);
        let taken = endpoint.write(id, piece).expect("the connection is known");
        self.written += taken as u64;
        self.may_write = taken == piece.len();
        self.write_at = now + self.script.write.1;
        if self.written == self.script.total {
            self.ended = true;
            let ended = match self.script.ending {
                Ending::Finish => endpoint.finish(id),
                Ending::Abort => endpoint.abort(id),
                Ending::Never => Ok(()),
            };
            ended.expect("the connection is known");
        }
    }

    fn read(
        &mut self,
        now: Duration,
        endpoint: &mut Endpoint,
        id: ConnectionId,
        peer: u64,
        pattern: &Pattern,
    ) {
        let mut piece = [0; 16_384];
        let most = piece.len().min(self.script.read.0);
        match endpoint.read(id, &mut piece[..most]).expect("the connection is known") {
            Read::Bytes(length) => {
                let expected = pattern.bytes(peer, self.read, length as u64);
                assert_eq!(&piece[..length], expected, "wrong bytes at {}", self.read);
                self.read += length as u64;
                self.read_at = now + self.script.read.1;
            }
            Read::Blocked => self.may_read = false,
            end => self.outcome = Some(end),
        }
    }

    /// The instant at which the application acts next without a message.
    pub(crate) fn wakes(&self, now: Duration) -> Option<Duration> {
        let Some(_) = self.id else { return Some(self.script.starts).filter(|starts| *starts > now) };
        let write = (self.may_write && !self.ended && self.write_at > now).then_some(self.write_at);
        let read = (self.may_read && self.outcome.is_none() && self.read_at > now).then_some(self.read_at);
        write.into_iter().chain(read).min()
    }
}
