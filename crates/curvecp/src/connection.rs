//! One connection of an endpoint: its message layer, and the stage of its packet layer.

use crate::client::{HelloDue, HelloPhase, InitiatePhase};
use crate::layer::{Failure, LayerState, MessageLayer};
use crate::nonce::LongTermNonces;
use crate::packet::CookieHeader;
use crate::session::{Filled, Received, Session};
use crate::stream::Read;
use crate::transmit::TransmitBuffer;
use crate::{Extension, PublicKey, TAG};
use rand_core::CryptoRng;
use std::net::SocketAddr;
use std::time::Duration;

/// How often a connection that waits for a packet before it may send checks its timers.
const LIMITED_INTERVAL: Duration = Duration::from_secs(1);

/// The reason why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CloseReason {
    /// Both streams have ended, and both sides know it.
    Finished,
    /// The message layer gave up.
    Failed(Failure),
    /// The server answered neither Hellos nor Initiates.
    NoAnswer,
    /// The server needed the place for a new client; this one was silent.
    Evicted,
    /// The counter of nonces reached its end.
    NoncesUsedUp,
}

/// A connection in its slot of the endpoint's table.
pub(crate) struct Connection {
    pub(crate) name: ConnectionName,
    pub(crate) layer: MessageLayer,
    pub(crate) stage: Stage,
    /// The instant at which the last authentic packet arrived.
    pub(crate) heard: Duration,
    /// The entry in the server's order of silence: when the last packet had come as the order was last looked at.
    pub(crate) listed: Duration,
    /// The application waits for something to read, for space to write.
    pub(crate) waits_to_read: bool,
    pub(crate) waits_to_write: bool,
    /// The entry in the endpoint's order of deadlines, and whether there is one in its queue.
    pub(crate) armed: Option<Duration>,
    pub(crate) queued: bool,
    /// The application knows that the connection is over.
    pub(crate) closed: bool,
    /// The path's allowance is used up.
    limited: bool,
}

/// What received packets carry to name a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionName {
    /// At a server: the client's short-term key.
    Key(PublicKey),
    /// At a client: its extension, because packets of servers carry nothing else.
    Extension(Extension),
}

/// The stages of the packet layer.
pub(crate) enum Stage {
    /// A client without a Cookie.
    Hello(Box<HelloPhase>),
    /// A client that the server has not answered with a Message.
    Initiate(Box<InitiatePhase>, Box<Session>),
    /// An open connection, whose peer has proved its key.
    Open(Box<Session>),
    /// A closed connection, whose keys are erased.
    Closed(CloseReason),
}

impl Connection {
    pub(crate) fn new(now: Duration, name: ConnectionName, layer: MessageLayer, stage: Stage) -> Self {
        Self {
            name,
            layer,
            stage,
            heard: now,
            listed: now,
            waits_to_read: true,
            waits_to_write: false,
            armed: None,
            queued: false,
            closed: false,
            limited: false,
        }
    }

    pub(crate) fn session(&mut self) -> Option<&mut Session> {
        match &mut self.stage {
            Stage::Initiate(_, session) | Stage::Open(session) => Some(session),
            Stage::Hello(_) | Stage::Closed(_) => None,
        }
    }

    /// Takes a Cookie, if the connection waits for one.
    pub(crate) fn cookie(
        &mut self,
        now: Duration,
        from: SocketAddr,
        header: &CookieHeader,
        sealed: &mut [u8],
        rng: &mut (impl CryptoRng + ?Sized),
        nonces: &mut dyn LongTermNonces,
    ) {
        let Stage::Hello(hello) = &mut self.stage else { return };
        let fail_over = hello.is_fail_over();
        let Some((phase, session)) = hello.cookie(now, from, header, sealed, rng, nonces) else { return };
        if let Some(round_trip) = phase.round_trip {
            self.layer.assume_rtt(round_trip);
        }
        if fail_over {
            // The message layer may wait long before it repeats what the other address did not acknowledge.
            self.layer.ping();
        }
        let stage = std::mem::replace(&mut self.stage, Stage::Closed(CloseReason::NoAnswer));
        let Stage::Hello(hello) = stage else { unreachable!("the stage was just compared") };
        self.stage = Stage::Initiate(Box::new(phase.or_else(hello, from)), session);
    }

    /// Takes Message packets of equal length from one address.
    pub(crate) fn receive(
        &mut self,
        now: Duration,
        from: SocketAddr,
        packets: &mut [u8],
        stride: usize,
    ) -> Received {
        let Some(session) = self.session() else { return Received::default() };
        let message = session.received_header() + TAG;
        let received = session.receive(from, packets, stride);
        if received.accepted != 0 {
            self.heard = now;
            self.limited = false;
        }
        if received.moved {
            self.layer.path_changed();
        }
        for (i, packet) in packets.chunks_exact(stride).enumerate() {
            if received.accepted >> i & 1 == 1 {
                self.layer.handle(now, &packet[message..]);
            }
        }
        received
    }

    /// Ends the handshake of a client whose server has answered; true where it had not ended before.
    pub(crate) fn establish(&mut self) -> bool {
        if !matches!(self.stage, Stage::Initiate(..)) {
            return false;
        }
        let stage = std::mem::replace(&mut self.stage, Stage::Closed(CloseReason::NoAnswer));
        let Stage::Initiate(_, session) = stage else { unreachable!("the stage was just compared") };
        self.stage = Stage::Open(session);
        true
    }

    /// Takes the message of an authentic Initiate.
    pub(crate) fn handle(&mut self, now: Duration, message: &[u8]) {
        self.heard = now;
        self.limited = false;
        self.layer.handle(now, message);
    }

    /// Writes all packets that are due; false where the buffer is too full for them.
    pub(crate) fn fill(
        &mut self,
        now: Duration,
        buffer: &mut TransmitBuffer,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> bool {
        let filled = match &mut self.stage {
            Stage::Hello(phase) => match phase.due(now) {
                HelloDue::Later => return true,
                HelloDue::Now => return phase.fill(now, buffer, rng),
                HelloDue::Never => {
                    self.stage = Stage::Closed(CloseReason::NoAnswer);
                    return true;
                }
            },
            Stage::Initiate(phase, _) if now >= phase.deadline() => {
                self.stage = phase.fail_over().map_or(Stage::Closed(CloseReason::NoAnswer), Stage::Hello);
                return self.fill(now, buffer, rng);
            }
            Stage::Initiate(phase, session) => phase.fill(now, &mut self.layer, session, buffer),
            Stage::Open(session) => session.fill(now, &mut self.layer, buffer),
            Stage::Closed(_) => return true,
        };
        self.limited = filled == Filled::Allowance;
        if filled == Filled::Counters {
            self.stage = Stage::Closed(CloseReason::NoncesUsedUp);
        }
        filled != Filled::Buffer
    }

    /// The reason why the connection is over, if it is.
    pub(crate) fn over(&self) -> Option<CloseReason> {
        match (&self.stage, self.layer.state()) {
            (Stage::Closed(reason), _) => Some(*reason),
            (_, LayerState::Drained) => Some(CloseReason::Finished),
            (_, LayerState::Failed(failure)) => Some(CloseReason::Failed(failure)),
            _ => None,
        }
    }

    /// When time changes something, once [`fill`](Self::fill) has done what was due by `now`.
    pub(crate) fn deadline(&self, now: Duration) -> Option<Duration> {
        let layer = self.layer.next_deadline();
        match &self.stage {
            Stage::Hello(phase) => Some(phase.deadline()),
            Stage::Initiate(phase, _) => layer.into_iter().chain([phase.deadline()]).min(),
            Stage::Open(_) if self.limited => layer.map(|layer| layer.max(now + LIMITED_INTERVAL)),
            Stage::Open(_) => layer,
            Stage::Closed(_) => None,
        }
    }

    /// Reads from the peer's stream; a connection that ended before its stream did reads as failed.
    pub(crate) fn read(&mut self, into: &mut [u8]) -> Read {
        match self.layer.read(into) {
            Read::Blocked if matches!(self.stage, Stage::Closed(_)) => Read::Failed,
            read => {
                self.waits_to_read = read == Read::Blocked;
                read
            }
        }
    }
}
