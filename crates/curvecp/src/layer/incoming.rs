//! Messages from the peer: acknowledgments first, then data, as the reference.

use std::time::Duration;

use super::acks::MAX_ACK_DELAY;
use super::{BURST_TO_OURS, LayerState, MessageLayer, Peer};
use crate::congestion::{Ack, Loss, LossDetection};
use crate::feedback::{self, Feedback};
use crate::message::{AckFields, BESIDE_DATA, Header, Message};
use crate::recovery::{Echo, GRANULARITY, INITIAL_RTT, LostMessage, Progress, Recovery};
use crate::stream::Arrival;

impl MessageLayer {
    /// Takes one authenticated message from the peer. A message that the reference would ignore changes nothing.
    pub fn handle(&mut self, now: Duration, message: &[u8]) {
        if matches!(self.state, LayerState::Drained | LayerState::Failed(_)) {
            return;
        }
        let Some(message) = Message::decode(message) else { return };
        let Message { header, padding, .. } = message;
        self.stats.messages_received += 1;
        self.last_received = self.last_received.max(now);
        let feedback = if self.config.feedback { Feedback::decode(padding) } else { None };
        self.learn_of_peer(feedback.map(|(fixed, _)| fixed));
        match feedback {
            Some((fixed, list)) if fixed.ranges > 0 => {
                let islands = feedback::islands(header.acks.first, list);
                self.acknowledge(now, &header, Some(&fixed), islands);
            }
            fixed => {
                let islands = AckFields::islands(&header.acks);
                self.acknowledge(now, &header, fixed.map(|(fixed, _)| fixed).as_ref(), islands);
            }
        }
        if header.id != 0 {
            self.take_data(now, &message, feedback.map(|(fixed, _)| fixed));
        }
        self.update_state(now);
    }

    fn learn_of_peer(&mut self, feedback: Option<Feedback>) {
        match (feedback, self.peer) {
            (Some(feedback), Peer::Ours { limit, .. }) => {
                let limit = limit.max(feedback.limit);
                self.peer = Peer::Ours { limit, takes_long: feedback.takes_long };
            }
            (Some(feedback), _) => {
                let (limit, takes_long) = (feedback.limit, feedback.takes_long);
                self.peer = Peer::Ours { limit, takes_long };
                self.pacer.set_max_burst(BURST_TO_OURS);
            }
            (None, Peer::Silent) => self.peer = Peer::Plain,
            (None, _) => {}
        }
        let Some(feedback) = feedback else { return };
        self.peer_done |= feedback.done;
        if feedback.wants_window {
            self.receive.widen();
            self.report_larger_window();
        }
    }

    fn acknowledge(
        &mut self,
        now: Duration,
        header: &Header,
        feedback: Option<&Feedback>,
        islands: impl Iterator<Item = (u64, u64)>,
    ) {
        let in_flight_before = self.recovery.in_flight_bytes();
        let mut progress = Progress::default();
        let (recovery, send) = (&mut self.recovery, &mut self.send);
        let delay = feedback.map_or(Duration::ZERO, |feedback| feedback.delay.min(MAX_ACK_DELAY));
        let duplicate = feedback.is_some_and(|feedback| feedback.duplicate);
        if let Echo::Arrived(Some((start, stop))) =
            recovery.echoed(now, header.echo, delay, duplicate, &mut progress)
        {
            send.acknowledge(start, stop, |unit| recovery.settle(unit.number));
        }
        let mut horizon = header.acks.first;
        send.acknowledge(0, header.acks.first, |unit| recovery.unit_arrived(now, unit.number, &mut progress));
        for (start, stop) in islands {
            send.acknowledge(start, stop, |unit| recovery.unit_arrived(now, unit.number, &mut progress));
            horizon = stop;
        }
        let more = feedback.is_some_and(|feedback| feedback.more);
        recovery.set_horizon(if more { horizon } else { u64::MAX });
        if !progress.any {
            return;
        }
        progress.long.into_iter().for_each(|number| self.path_mtu.arrived(number));
        progress.probe.into_iter().for_each(|number| self.path_mtu.probe_arrived(number));
        self.find_losses(now);
        let (rate, largest, in_recovery) = self.recovery.progressed(now, &progress);
        if self.recovery.take_spurious_event() {
            self.stats.spurious_events += 1;
            self.controller.on_spurious_event(now);
        }
        self.controller.on_ack(&Ack {
            now,
            bytes: progress.bytes,
            in_flight_before,
            in_flight: self.recovery.in_flight_bytes(),
            sample: progress.sample,
            rtt: &self.recovery.rtt,
            rate,
            largest,
            next: self.recovery.next_number(),
            window_limited: self.window_limited,
            most_data: (self.path_mtu.length() - BESIDE_DATA) as u64,
            in_recovery,
        });
        self.window_limited = false;
        self.probes = 0;
    }

    /// Looks for losses, and reports them to the stream and the controller.
    pub(super) fn find_losses(&mut self, now: Duration) {
        let by_rfc_9002 = self.controller.loss_detection() == LossDetection::Rfc9002;
        let (send, controller, stats) = (&mut self.send, &mut self.controller, &mut self.stats);
        let (path_mtu, mut is_black_hole) = (&mut self.path_mtu, false);
        let report = |recovery: &mut Recovery, lost: LostMessage| {
            if lost.record.probes_length() {
                path_mtu.probe_lost(lost.number);
                return;
            }
            if let Some(start) = lost.record.unit {
                send.lost(start, lost.record.stop, lost.number);
            }
            is_black_hole |= path_mtu.lost(lost.number, lost.record.bytes);
            stats.lost += 1;
            let (lost_since_send, in_flight_at_send) = recovery.loss_context(&lost.record);
            controller.on_loss(&Loss {
                now,
                bytes: lost.record.bytes.into(),
                in_flight: recovery.in_flight_bytes(),
                in_flight_at_send,
                lost_since_send,
                application_limited: lost.record.snapshot.application_limited,
                begins_event: lost.begins_event,
                next: recovery.next_number(),
            });
        };
        let persistent = if by_rfc_9002 {
            self.recovery.detect_losses(now, MAX_ACK_DELAY, report)
        } else {
            self.recovery.forget(now)
        };
        if persistent && by_rfc_9002 {
            self.controller.on_persistent_congestion(now);
        }
        if is_black_hole {
            self.fall_to_base(now);
        }
    }

    fn take_data(&mut self, now: Duration, message: &Message<'_>, feedback: Option<Feedback>) {
        let Message { header, data, .. } = message;
        let fills_gap = header.position < self.receive.acknowledged() + 1 && self.receive.has_gaps();
        let arrival = self.receive.accept(header.position, data, header.end);
        if arrival == Arrival::Refused {
            // The reference would stay silent, too; one of ours needs to learn the limit.
            if feedback.is_some() {
                self.acks.report();
            }
            return;
        }
        let empty = data.is_empty() && header.end.is_none();
        let duplicate = arrival == Arrival::Duplicate && !empty;
        if self.state == LayerState::Closing {
            self.restart_time_wait(now);
        }
        match feedback {
            Some(_) if empty && message.is_long() => self.acks.probe(header.id),
            Some(feedback) => {
                let urgent = empty || fills_gap || header.end.is_some() || feedback.prompt;
                self.acks.some(now, header.id, duplicate, urgent, self.ack_delay());
            }
            // The reference computes nonsense from an echo of a block that a range acknowledged, so none for those.
            None => self.acks.each(header.id, !duplicate),
        }
    }

    /// How long an acknowledgment may wait: an eighth of a round trip, which a side that only receives knows from the handshake.
    fn ack_delay(&self) -> Duration {
        let round_trip = self.recovery.rtt.smoothed();
        let known = round_trip != INITIAL_RTT;
        if known { (round_trip / 8).clamp(GRANULARITY / 4, MAX_ACK_DELAY) } else { GRANULARITY }
    }
}
