//! Messages to the peer: what the next one carries.

use std::time::Duration;

use super::{LayerState, MessageLayer, Peer, Role};
use crate::congestion::{LossDetection, Pacing, Sent};
use crate::feedback::{FIXED_BYTES, Feedback};
use crate::message::{
    AckFields, BESIDE_DATA, HEADER_BYTES, Header, LONGEST_MESSAGE_BYTES, MAX_DATA_BYTES, MAX_MESSAGE_BYTES,
    message_bytes,
};
use crate::recovery::{Carried, Recovery};
use crate::stream::{FIRST_WINDOW, Unit};

/// Bytes of data per unit of a client until the server answers, so that the unit fits an Initiate packet.
const FIRST_DATA_BYTES: usize = 512;

/// What a message with a number carries.
#[derive(Clone, Copy, Debug)]
enum Content {
    /// A unit that was sent before.
    Again(Unit),
    /// A new unit of this many bytes at most.
    New(usize),
    /// Nothing: it only asks for an acknowledgment.
    Ping,
    /// Nothing, in a message of this many bytes, which the path may not carry.
    LengthProbe(usize),
}

impl MessageLayer {
    /// Writes the next message into `out`, which holds at least `limit` and 576 bytes, and returns its length; `None` if there is
    /// nothing to send now. `limit` caps the length: 640 inside an Initiate packet, 1,088 where the path may carry no more
    /// and is not to be probed, otherwise what a packet holds.
    pub fn poll_transmit(&mut self, now: Duration, limit: usize, out: &mut [u8]) -> Option<usize> {
        if matches!(self.state, LayerState::Drained | LayerState::Failed(_)) {
            return None;
        }
        let limit = limit.min(LONGEST_MESSAGE_BYTES);
        let sent = match self.choose(now, limit) {
            Some(content) => Some(self.send_content(now, content, limit, out)),
            None if self.acks.is_due(now) => {
                self.stats.acks_sent += 1;
                Some(self.encode(now, 0, None, 0, out))
            }
            None => None,
        };
        self.update_state(now);
        sent
    }

    /// Decides what to send, if window, pace and the peer allow anything.
    fn choose(&mut self, now: Duration, limit: usize) -> Option<Content> {
        self.paced_until = None;
        if self.state != LayerState::Open {
            return None;
        }
        let (longest, limit) = (limit, limit.min(self.longest_message()));
        let max_len = self.max_data(limit);
        if self.probes > 0 {
            let probe = self.choose_probe(max_len, limit);
            if probe.is_some() {
                return probe;
            }
            self.probes = 0;
        }
        let pacing = self.controller.pacing(&self.recovery.rtt);
        if let LossDetection::Timeout(timeout) = self.controller.loss_detection() {
            self.expire_earliest(now, timeout, pacing);
        }
        let content = match self.length_probe(now, longest) {
            Some(probe) => probe,
            None => self.candidate(max_len)?,
        };
        let bytes = match content {
            Content::Again(unit) => message_bytes(unit.len.into()),
            Content::New(len) => message_bytes(len),
            Content::LengthProbe(length) => length,
            Content::Ping => return Some(content),
        };
        if bytes > longest {
            return None;
        }
        if !self.window_holds(bytes) {
            self.window_limited = true;
            return None;
        }
        self.paced_until = self.pacer.wait(now, pacing);
        if self.paced_until.is_some() { None } else { Some(content) }
    }

    /// Whether a message may leave. One always may, because windows are counted in messages that may be shorter.
    fn window_holds(&self, bytes: usize) -> bool {
        let in_flight = self.recovery.in_flight_bytes();
        in_flight == 0 || in_flight + bytes as u64 <= self.controller.window()
    }

    /// A probe of the path's length, while there is more to send than one message carries.
    fn length_probe(&mut self, now: Duration, longest: usize) -> Option<Content> {
        let useful = matches!(self.peer, Peer::Ours { takes_long: true, .. })
            && self.send.unsent_bytes() > MAX_DATA_BYTES as u64
            && self.controller.loss_detection() == LossDetection::Rfc9002;
        let length = useful.then(|| self.path_mtu.next_probe(now, longest)).flatten();
        length.filter(|length| self.window_holds(*length)).map(Content::LengthProbe)
    }

    /// What would be sent next if window and pace allowed it.
    fn candidate(&mut self, max_len: usize) -> Option<Content> {
        if let Some(unit) = self.send.next_lost() {
            return Some(Content::Again(unit));
        }
        self.flow_limited = false;
        if self.send.has_unsent() && self.send.outstanding_units() < self.controller.max_units() {
            if let Some(len) = self.send.next_unit_bytes(max_len, self.send_limit()) {
                return Some(Content::New(len));
            }
            self.flow_limited = true;
        }
        if self.recovery.in_flight_bytes() < self.controller.window() {
            self.recovery.application_limited();
        }
        self.wants_ping.then_some(Content::Ping)
    }

    /// A probe: what is lost, or else what is in flight longest, or else what is new, or else nothing.
    fn choose_probe(&mut self, max_len: usize, limit: usize) -> Option<Content> {
        let again = self.send.next_lost().or_else(|| self.send.oldest_in_flight(self.probe_number));
        if let Some(unit) = again.filter(|unit| message_bytes(unit.len.into()) <= limit) {
            return Some(Content::Again(unit));
        }
        let new = self.send.next_unit_bytes(max_len, self.send_limit()).map(Content::New);
        let first = self.recovery.next_number() == self.probe_number;
        new.or_else(|| first.then_some(Content::Ping))
    }

    /// The reference's rule: the message that was sent first is lost if it is older than the time-out, and is found so
    /// only when a message may leave.
    fn expire_earliest(&mut self, now: Duration, timeout: Duration, pacing: Pacing) {
        self.expiry = None;
        let Some((number, record)) = self.recovery.earliest_in_flight() else { return };
        let expiry = record.time + timeout;
        let paced = self.pacer.wait(now, pacing);
        if expiry > now || paced.is_some() {
            self.expiry = Some(paced.map_or(expiry, |paced| paced.max(expiry)));
            return;
        }
        self.controller.on_timeout(now);
        self.stats.lost += 1;
        self.recovery.expire(number);
        match record.unit {
            Some(start) => self.send.lost(start, record.stop, number),
            None => self.wants_ping = true,
        }
    }

    /// The most bytes of data for a message of `limit` bytes.
    fn max_data(&self, limit: usize) -> usize {
        let most = match limit {
            MAX_MESSAGE_BYTES.. => limit - BESIDE_DATA,
            576.. => 512,
            320.. => 256,
            _ => 128,
        };
        if self.role == Role::Client && self.peer == Peer::Silent { most.min(FIRST_DATA_BYTES) } else { most }
    }

    /// The position before which the peer takes data.
    pub(super) fn send_limit(&self) -> u64 {
        match self.peer {
            Peer::Ours { limit, .. } => limit,
            Peer::Silent | Peer::Plain => self.send.acknowledged() + FIRST_WINDOW,
        }
    }

    fn send_content(&mut self, now: Duration, content: Content, limit: usize, out: &mut [u8]) -> usize {
        let number = self.recovery.next_number();
        let mut length = 0;
        let (unit, prior) = match content {
            Content::Ping => (None, None),
            Content::LengthProbe(bytes) => {
                length = bytes;
                self.path_mtu.probe_sent(number, bytes);
                (None, None)
            }
            Content::Again(unit) => {
                self.recovery.supersede(unit.number);
                self.send.resent(unit.start, number);
                (Some(unit), Some(unit.number))
            }
            Content::New(_) => {
                let max_len = self.max_data(limit.min(self.longest_message()));
                (self.send.cut(max_len, self.send_limit(), number), None)
            }
        };
        let length = self.encode(now, Recovery::wire_number(number), unit.as_ref(), length, out);
        let carried = unit.map(|unit| Carried { start: unit.start, stop: unit.stop(), prior });
        self.recovery.sent(now, length as u16, carried);
        self.pacer.sent(now, length as u64);
        self.controller.on_sent(&Sent {
            now,
            bytes: length as u64,
            in_flight: self.recovery.in_flight_bytes(),
        });
        self.probes = self.probes.saturating_sub(1);
        self.wants_ping = false;
        self.last_ping = now;
        self.stats.messages_sent += 1;
        length
    }

    /// Writes a message with what there is to acknowledge, of at least this many bytes.
    fn encode(&mut self, now: Duration, id: u32, unit: Option<&Unit>, least: usize, out: &mut [u8]) -> usize {
        let data_len = unit.map_or(0, |unit| usize::from(unit.len));
        let length = message_bytes(data_len).max(least);
        let (head, data) = out[..length].split_at_mut(length - data_len);
        let padding = &mut head[HEADER_BYTES..];
        padding.fill(0);
        let echo = self.acks.take(now);
        let first = self.receive.acknowledged();
        // A peer of ours reads ranges from the feedback, which has space for more and larger ones.
        let in_feedback = matches!(self.peer, Peer::Ours { .. }) && padding.len() > FIXED_BYTES;
        let more_echoes = self.acks.has_more();
        let islands = || self.receive.islands().filter(|_| !in_feedback && !more_echoes);
        let acks = AckFields::new(first, islands());
        if self.config.feedback {
            let limit = self.receive.limit();
            let feedback = Feedback {
                wants_window: self.wants_window(),
                duplicate: echo.duplicate,
                done: self.send.is_complete() && self.receive.is_complete(),
                more: acks.islands().ne(islands()),
                prompt: id != 0 && !self.send.has_unsent() && !self.writer_waits,
                takes_long: true,
                ranges: 0,
                delay: echo.delay,
                limit,
            };
            feedback.encode(first, self.receive.islands().filter(|_| in_feedback), padding);
            self.reported_limit = limit;
        }
        let header = Header {
            id,
            echo: echo.id,
            acks,
            data_len: data_len as u16,
            end: unit.and_then(|unit| unit.end),
            position: unit.map_or_else(|| self.send.next_position(), |unit| unit.start),
        };
        let header = if id == 0 { Header { position: 0, ..header } } else { header };
        header.encode(head);
        if let Some(unit) = unit {
            self.send.copy(unit, data);
        }
        length
    }

    /// Whether the peer's window is about to hold us back.
    fn wants_window(&self) -> bool {
        let Peer::Ours { limit, .. } = self.peer else { return false };
        self.send.unsent_bytes() > 0 && self.send.next_position() + self.controller.window() > limit
    }
}
