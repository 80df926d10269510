//! The message layer of one connection: two streams over messages that may be lost, reordered and repeated.
//!
//! It knows plaintext messages only, no packets and no keys. After every call the caller takes messages with
//! [`poll_transmit`](MessageLayer::poll_transmit) until none is left, and then waits for the next message or for
//! [`next_deadline`](MessageLayer::next_deadline).

mod acks;
mod config;
mod incoming;
mod outgoing;
mod path_mtu;
mod timers;

pub use config::{Failure, LayerState, LayerStats, MessageConfig, Role};

use std::time::Duration;

use acks::Acks;
use path_mtu::PathMtu;

use crate::congestion::{Algorithm, Controller, LossDetection};
use crate::message::MAX_DATA_BYTES;
use crate::pacer::Pacer;
use crate::recovery::Recovery;
use crate::stream::{FIRST_WINDOW, Read, ReceiveStream, SendStream};

/// Messages that leave back to back towards a peer that may be the reference: its queue has 64.
const BURST_TO_REFERENCE: u32 = 54;
/// Messages that leave back to back towards a peer of ours.
const BURST_TO_OURS: u32 = 256;

/// Bytes that wait to be sent for the first time, at most, once the window is as large.
const MOST_UNSENT_BYTES: u64 = 1 << 18;

/// What is known of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Peer {
    /// No message has come.
    Silent,
    /// The peer's messages have no feedback: the peer may be the reference implementation.
    Plain,
    /// The peer understands feedback, accepts bytes before this position, and perhaps accepts long messages.
    Ours { limit: u64, takes_long: bool },
}

/// The message layer of one connection.
#[derive(Debug)]
pub struct MessageLayer {
    config: MessageConfig,
    role: Role,
    /// For the randomness of congestion controls.
    seed: u64,
    state: LayerState,
    peer: Peer,
    send: SendStream,
    receive: ReceiveStream,
    recovery: Recovery,
    path_mtu: PathMtu,
    controller: Box<dyn Controller>,
    pacer: Pacer,
    acks: Acks,
    /// Probes that may leave whatever window and pace say.
    probes: u8,
    /// The number of the next message when the last probe time-out passed.
    probe_number: u64,
    wants_ping: bool,
    /// The application has more to write than the buffer took.
    writer_waits: bool,
    /// The peer's window, not ours, holds data back.
    flow_limited: bool,
    window_limited: bool,
    /// The pacer lets the next message out then.
    paced_until: Option<Duration>,
    /// The reference's time-out of the oldest message, under a controller that uses it.
    expiry: Option<Duration>,
    last_received: Duration,
    last_ping: Duration,
    /// The limit that was reported last.
    reported_limit: u64,
    /// The peer has said that it is done.
    peer_done: bool,
    time_wait_until: Duration,
    stats: LayerStats,
}

impl MessageLayer {
    /// A connection's message layer that begins at `now`; all its randomness comes from the seed.
    pub fn new(config: MessageConfig, role: Role, seed: u64, now: Duration) -> Self {
        Self {
            controller: config.algorithm.controller(seed, now),
            receive: ReceiveStream::new(config.max_receive_window.max(FIRST_WINDOW)),
            config,
            role,
            seed,
            state: LayerState::Open,
            peer: Peer::Silent,
            send: SendStream::default(),
            recovery: Recovery::new(),
            path_mtu: PathMtu::default(),
            pacer: Pacer::new(BURST_TO_REFERENCE),
            acks: Acks::default(),
            probes: 0,
            probe_number: 0,
            wants_ping: role == Role::Client,
            writer_waits: false,
            flow_limited: false,
            window_limited: false,
            paced_until: None,
            expiry: None,
            last_received: now,
            last_ping: now,
            reported_limit: FIRST_WINDOW,
            peer_done: false,
            time_wait_until: Duration::MAX,
            stats: LayerStats::default(),
        }
    }

    /// Sets the round-trip time of the handshake, before any message: the first time-outs follow from it.
    pub fn assume_rtt(&mut self, handshake: Duration) {
        self.recovery.rtt.assume(handshake);
    }

    /// Changes the congestion control, which begins in its first state.
    pub fn set_congestion(&mut self, algorithm: Algorithm, now: Duration) {
        self.config.algorithm = algorithm;
        self.controller = algorithm.controller(self.seed, now);
        (self.paced_until, self.expiry) = (None, None);
        if self.controller.loss_detection() != LossDetection::Rfc9002 {
            self.path_changed();
        }
    }

    /// Notes that the peer's address or ours has changed: the length of message that the path carries is to be found anew.
    pub fn path_changed(&mut self) {
        self.path_mtu = PathMtu::default();
        self.send.split(MAX_DATA_BYTES as u16);
    }

    /// Bytes of the longest message that the path is known to carry. A longer one is a probe, which must be sent in a
    /// separate datagram that no network fragments.
    pub fn longest_message(&self) -> usize {
        self.path_mtu.length()
    }

    /// The path no longer carries long messages.
    fn fall_to_base(&mut self, now: Duration) {
        self.path_mtu.fall(now);
        self.send.split(MAX_DATA_BYTES as u16);
    }

    /// Takes bytes to send while the buffer has space; returns how many.
    pub fn write(&mut self, bytes: &[u8]) -> usize {
        if self.state != LayerState::Open {
            return 0;
        }
        let capacity = self.send_capacity();
        let taken = self.send.write(bytes, capacity);
        self.writer_waits = taken < bytes.len();
        taken
    }

    /// Bytes that [`write`](Self::write) would take now.
    pub fn writable(&self) -> usize {
        if self.state == LayerState::Open { self.send.space(self.send_capacity()) } else { 0 }
    }

    /// What is on its way, and what follows while the application is away: a window, unless that is more than the processor's
    /// caches hold well.
    fn send_capacity(&self) -> u64 {
        let most = self.config.max_send_buffer.max(FIRST_WINDOW);
        let on_the_way = self.send.next_position() - self.send.acknowledged();
        (on_the_way + self.controller.window().min(MOST_UNSENT_BYTES)).clamp(FIRST_WINDOW, most)
    }

    /// Asks the peer for an acknowledgment as soon as possible, for example after our address has changed.
    pub fn ping(&mut self) {
        self.wants_ping = true;
        // After the end nothing but acknowledgments leaves.
        if self.state == LayerState::Closing {
            self.acks.report();
        }
    }

    /// Ends the stream in success after the written bytes.
    pub fn finish(&mut self) {
        self.send.finish();
    }

    /// Ends the stream in failure after the bytes sent until now; written bytes that were not sent yet are dropped.
    pub fn abort(&mut self) {
        self.send.abort();
    }

    /// Reads from the peer's stream.
    pub fn read(&mut self, into: &mut [u8]) -> Read {
        match self.receive.read(into) {
            Read::Blocked if matches!(self.state, LayerState::Failed(_)) => Read::Failed,
            read => {
                if let Read::Bytes(_) = read {
                    self.report_larger_window();
                }
                read
            }
        }
    }

    /// Whether [`read`](Self::read) would return something other than [`Read::Blocked`].
    pub fn readable(&self) -> bool {
        self.receive.unread() > 0 || self.receive.is_complete() || matches!(self.state, LayerState::Failed(_))
    }

    /// Throws away what the peer has sent and will send, so that its stream can end although no one reads it.
    pub fn stop_reading(&mut self) {
        self.receive.discard();
        self.report_larger_window();
    }

    /// A peer that knows of windows learns that it may send more, once that is worth a message.
    fn report_larger_window(&mut self) {
        let grown = self.receive.limit() - self.reported_limit;
        if matches!(self.peer, Peer::Ours { .. })
            && self.state == LayerState::Open
            && !self.receive.is_complete()
            && grown >= self.receive.window() / 4
        {
            self.acks.report();
        }
    }

    /// The phase of the connection's life.
    pub fn state(&self) -> LayerState {
        self.state
    }

    /// Whether everything that was written, and the end if it was set, has been acknowledged.
    pub fn is_flushed(&self) -> bool {
        !self.send.has_unsent() && self.send.outstanding_units() == 0
    }

    /// Counters, and the state of recovery and congestion control.
    pub fn stats(&self) -> LayerStats {
        LayerStats {
            in_flight_bytes: self.recovery.in_flight_bytes(),
            window_bytes: self.controller.window(),
            smoothed_rtt: self.recovery.rtt.smoothed(),
            longest_message: self.longest_message(),
            ..self.stats
        }
    }

    /// Bytes of memory that buffers take beyond the layer itself.
    pub fn memory_bytes(&self) -> usize {
        self.send.memory_bytes()
            + self.receive.memory_bytes()
            + self.recovery.memory_bytes()
            + self.acks.memory_bytes()
    }

    /// Moves on in the life of the connection once both streams are over.
    fn update_state(&mut self, now: Duration) {
        if self.state == LayerState::Open && self.send.is_complete() && self.receive.is_complete() {
            self.state = LayerState::Closing;
            self.restart_time_wait(now);
            self.recovery.close();
            (self.probes, self.wants_ping) = (0, false);
            if matches!(self.peer, Peer::Ours { .. }) {
                self.acks.report();
            }
        }
        if self.state == LayerState::Closing && self.peer_done && !self.acks.is_due(Duration::MAX) {
            self.state = LayerState::Drained;
        }
    }

    fn restart_time_wait(&mut self, now: Duration) {
        let probe_timeout = self.recovery.rtt.probe_timeout(acks::MAX_ACK_DELAY);
        self.time_wait_until = now + self.config.time_wait.max(probe_timeout * 5);
    }

    fn fail(&mut self, failure: Failure) {
        self.state = LayerState::Failed(failure);
        self.send.close();
        self.recovery.close();
        self.acks.clear();
    }
}

#[cfg(test)]
mod tests;
