//! Which messages are in flight, which arrived, which were lost: RFC 9002 on message numbers.
//!
//! A message's number never repeats, so an echo says which transmission arrived. A range says that a unit arrived but
//! not in which message; it counts for the last message that carried the unit.

mod rate;
mod rtt;

pub use rate::RateSample;
pub use rtt::{GRANULARITY, INITIAL_RTT, Rtt};

use std::collections::VecDeque;
use std::time::Duration;

use crate::message::MAX_MESSAGE_BYTES;
use rate::{RateEstimator, Snapshot};

/// A later message by this many shows a loss: RFC 9002, section 6.1.1.
const PACKET_THRESHOLD: u64 = 3;
/// The threshold that observed reordering may raise it to.
const MAX_PACKET_THRESHOLD: u64 = 256;
/// Time-outs that everything must be lost over for persistent congestion: RFC 9002, section 7.6.1.
const PERSISTENT_CONGESTION_TIMEOUTS: u32 = 3;
/// Wire numbers count from 1 to 2^32 - 1.
const WIRE_NUMBERS: u64 = u32::MAX as u64;

/// The state of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    InFlight,
    Arrived,
    /// Declared lost.
    Lost,
    /// The message's unit travels in a later message, a probe; whether this message was lost is open.
    Superseded,
}

/// A message with a number that was sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    pub(crate) time: Duration,
    /// The position of its unit, if it carries one.
    pub(crate) unit: Option<u64>,
    /// The position after its unit; 0 without one.
    pub(crate) stop: u64,
    /// The message that carried the unit before, if this one is a copy.
    prior: Option<u64>,
    pub(crate) bytes: u16,
    state: State,
    pub(crate) snapshot: Snapshot,
}

impl Record {
    /// Whether the message is longer than every path carries.
    fn is_long(&self) -> bool {
        usize::from(self.bytes) > MAX_MESSAGE_BYTES
    }

    /// Whether it shows nothing but the length that the path carries, so that its loss is not a sign of congestion.
    pub(crate) fn probes_length(&self) -> bool {
        self.unit.is_none() && self.is_long()
    }
}

/// The unit that a message carries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Carried {
    pub(crate) start: u64,
    pub(crate) stop: u64,
    /// The message that carried it before.
    pub(crate) prior: Option<u64>,
}

/// A message that was found lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LostMessage {
    pub(crate) number: u64,
    pub(crate) record: Record,
    /// Whether the lost message starts a congestion event.
    pub(crate) begins_event: bool,
}

/// What the echo of a message's number shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Echo {
    /// No message that is remembered has this number, or it was known to have arrived.
    Nothing,
    /// The message arrived; the positions of its data, if it carried any.
    Arrived(Option<(u64, u64)>),
}

/// What an acknowledgment has shown so far, while it is processed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Bytes of messages newly known to have arrived.
    pub(crate) bytes: u64,
    /// Whether anything is newly known to have arrived.
    pub(crate) any: bool,
    pub(crate) sample: Option<Duration>,
    /// The newest long message that arrived: its number.
    pub(crate) long: Option<u64>,
    /// The newest probe of the path's length that arrived: its number.
    pub(crate) probe: Option<u64>,
    /// The newest message that arrived.
    newest: Option<(u64, Record)>,
}

/// The messages that were sent and what is known of them.
#[derive(Debug)]
pub(crate) struct Recovery {
    records: VecDeque<Record>,
    /// The number of the first record.
    first: u64,
    /// All messages before this one arrived, were lost or superseded.
    scan: u64,
    /// The highest number of a message that arrived.
    largest: Option<u64>,
    in_flight_bytes: u64,
    in_flight: usize,
    pub(crate) rtt: Rtt,
    rate: RateEstimator,
    timeouts: u32,
    last_sent: Duration,
    loss_time: Option<Duration>,
    packet_threshold: u64,
    /// Ranges beyond this position were not reported, so it is unknown what arrived there.
    horizon: u64,
    /// The time of the last congestion event.
    event: Option<Duration>,
    /// Losses of the last event that were not shown to be spurious.
    event_losses: u64,
    /// When the first of the messages was sent that were all lost up to `scan`.
    lost_since: Option<Duration>,
}

impl Recovery {
    pub(crate) fn new() -> Self {
        Self {
            records: VecDeque::new(),
            first: 0,
            scan: 0,
            largest: None,
            in_flight_bytes: 0,
            in_flight: 0,
            rtt: Rtt::default(),
            rate: RateEstimator::default(),
            timeouts: 0,
            last_sent: Duration::ZERO,
            loss_time: None,
            packet_threshold: PACKET_THRESHOLD,
            horizon: u64::MAX,
            event: None,
            event_losses: 0,
            lost_since: None,
        }
    }

    /// The number of the next message.
    pub(crate) fn next_number(&self) -> u64 {
        self.first + self.records.len() as u64
    }

    pub(crate) fn in_flight_bytes(&self) -> u64 {
        self.in_flight_bytes
    }

    /// Messages in flight.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// When the last message with a number was sent.
    pub(crate) fn last_sent(&self) -> Duration {
        self.last_sent
    }

    /// Notes that the application left the window unused from now on: rates measured now say little.
    pub(crate) fn application_limited(&mut self) {
        self.rate.application_limited(self.in_flight_bytes);
    }

    /// Notes that the next message was sent, with a unit or without. Returns its number.
    pub(crate) fn sent(&mut self, now: Duration, bytes: u16, unit: Option<Carried>) -> u64 {
        if self.in_flight == 0 {
            self.rate.restart(now);
        }
        self.in_flight += 1;
        self.in_flight_bytes += u64::from(bytes);
        let number = self.next_number();
        self.records.push_back(Record {
            time: now,
            unit: unit.map(|unit| unit.start),
            stop: unit.map_or(0, |unit| unit.stop),
            prior: unit.and_then(|unit| unit.prior),
            bytes,
            state: State::InFlight,
            snapshot: self.rate.snapshot(self.in_flight_bytes),
        });
        self.last_sent = now;
        number
    }

    /// Notes that the unit of an earlier message travels again, so that message is no longer waited for.
    pub(crate) fn supersede(&mut self, number: u64) {
        self.resolve(number, State::Superseded);
    }

    /// Moves a message out of flight.
    fn resolve(&mut self, number: u64, state: State) -> Option<Record> {
        let index = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let record = self.records.get_mut(index)?;
        let before = *record;
        record.state = state;
        if before.state == State::InFlight {
            self.in_flight -= 1;
            self.in_flight_bytes -= u64::from(before.bytes);
        }
        Some(before)
    }

    /// The number of a message from its number on the wire.
    fn number(&self, wire: u32) -> Option<u64> {
        let wire = u64::from(wire.checked_sub(1)?);
        let ahead = (wire + WIRE_NUMBERS - self.first % WIRE_NUMBERS) % WIRE_NUMBERS;
        (ahead < self.records.len() as u64).then_some(self.first + ahead)
    }

    /// The number of a message on the wire: from 1 on, and never 0.
    pub(crate) fn wire_number(number: u64) -> u32 {
        (number % WIRE_NUMBERS + 1) as u32
    }

    /// Takes the echo of a message's number, sent `delay` after the message arrived. `duplicate`: the peer had all that
    /// the message carried.
    pub(crate) fn echoed(
        &mut self,
        now: Duration,
        wire: u32,
        delay: Duration,
        duplicate: bool,
        progress: &mut Progress,
    ) -> Echo {
        let Some(number) = self.number(wire) else { return Echo::Nothing };
        let record = self.records[(number - self.first) as usize];
        match record.state {
            State::Arrived => return Echo::Nothing,
            State::InFlight => {}
            State::Lost if record.probes_length() => {}
            State::Lost | State::Superseded => self.spurious(number, record.state),
        }
        let sample = now.saturating_sub(record.time);
        self.rtt.update(sample, delay);
        progress.sample = Some(sample);
        self.arrived(now, number, progress);
        if duplicate && let Some(prior) = record.prior {
            self.arrived_before(prior);
        }
        Echo::Arrived(record.unit.map(|start| (start, record.stop)))
    }

    /// Takes the news that the unit arrived that message `number` carried last, as a range shows it.
    pub(crate) fn unit_arrived(&mut self, now: Duration, number: u64, progress: &mut Progress) {
        let Some(record) = number.checked_sub(self.first).and_then(|index| self.records.get(index as usize))
        else {
            progress.any = true;
            return;
        };
        let too_soon = self.rtt.min().is_some_and(|min| now.saturating_sub(record.time) < min);
        match (record.state, record.prior) {
            (State::Arrived, _) => return,
            // It was not sent again yet, so the message that was declared lost has arrived.
            (State::Lost, _) => self.spurious(number, State::Lost),
            // Too soon for the last message that carried it, so an earlier one arrived.
            (State::InFlight, Some(prior)) if too_soon => {
                self.arrived_before(prior);
                self.settle(number);
                progress.any = true;
                return;
            }
            _ => {}
        }
        self.arrived(now, number, progress);
    }

    /// A copy shows that the message arrived that it was to replace.
    fn arrived_before(&mut self, prior: u64) {
        if let Some(record) = self.resolve(prior, State::Arrived) {
            self.spurious(prior, record.state);
        }
    }

    /// Notes that a message need not be waited for, because its unit arrived in another.
    pub(crate) fn settle(&mut self, number: u64) {
        self.resolve(number, State::Arrived);
    }

    fn arrived(&mut self, now: Duration, number: u64, progress: &mut Progress) {
        let Some(record) = self.resolve(number, State::Arrived) else { return };
        let bytes = u64::from(record.bytes);
        progress.bytes += bytes;
        progress.any = true;
        if record.is_long() {
            progress.long = progress.long.max(Some(number));
            progress.probe = progress.probe.max(record.probes_length().then_some(number));
        }
        self.rate.delivered(now, bytes);
        if progress.newest.is_none_or(|(newest, _)| newest < number) {
            progress.newest = Some((number, record));
        }
        self.largest = self.largest.max(Some(number));
    }

    /// A message that was given up has arrived after all.
    fn spurious(&mut self, number: u64, state: State) {
        if state == State::Lost {
            // Wait for more reordering from now on: RFC 9002, section 6.1.1 permits it.
            let distance = self.largest.unwrap_or(number).saturating_sub(number);
            self.packet_threshold = self.packet_threshold.max((distance + 1).min(MAX_PACKET_THRESHOLD));
            self.spurious_event_loss();
        }
    }

    fn spurious_event_loss(&mut self) {
        // 1 stays until `take_spurious_event` has reported it.
        self.event_losses = self.event_losses.saturating_sub(1);
    }

    /// Whether all losses of the last congestion event have turned out to be none; true once.
    pub(crate) fn take_spurious_event(&mut self) -> bool {
        let spurious = self.event.is_some() && self.event_losses == 0;
        if spurious {
            self.event = None;
        }
        spurious
    }

    /// Ends the processing of an acknowledgment: returns the delivery rate, the largest number that arrived, and whether
    /// the newest message that arrived was sent before the last congestion event.
    pub(crate) fn progressed(
        &mut self,
        now: Duration,
        progress: &Progress,
    ) -> (Option<RateSample>, u64, bool) {
        self.timeouts = 0;
        let rate = progress.newest.and_then(|(_, record)| {
            let round_trip = self.rtt.min().unwrap_or_default();
            self.rate.sample(now, record.time, &record.snapshot, round_trip)
        });
        let in_recovery = match (self.event, progress.newest) {
            (Some(event), Some((_, record))) => record.time <= event,
            (Some(_), None) => true,
            (None, _) => false,
        };
        (rate, self.largest.unwrap_or(0), in_recovery)
    }

    /// Sets the position beyond which the peer's last acknowledgment had no space to report.
    pub(crate) fn set_horizon(&mut self, horizon: u64) {
        self.horizon = horizon;
    }

    /// Finds lost messages, oldest first, and calls `lost` for each. Returns whether congestion is persistent.
    pub(crate) fn detect_losses(
        &mut self,
        now: Duration,
        max_ack_delay: Duration,
        mut lost: impl FnMut(&mut Self, LostMessage),
    ) -> bool {
        self.loss_time = None;
        let Some(largest) = self.largest else { return false };
        let loss_delay = self.rtt.loss_delay();
        for number in self.scan..largest {
            let record = self.records[(number - self.first) as usize];
            let open = matches!(record.state, State::InFlight | State::Superseded);
            if !open || record.stop > self.horizon {
                continue;
            }
            let due = record.time + loss_delay;
            if number + self.packet_threshold <= largest || due <= now {
                self.resolve(number, State::Lost);
                if record.probes_length() {
                    lost(self, LostMessage { number, record, begins_event: false });
                    continue;
                }
                self.rate.lost(u64::from(record.bytes));
                let begins_event = self.event.is_none_or(|event| record.time > event);
                if begins_event {
                    self.event = Some(now);
                    self.event_losses = 0;
                }
                self.event_losses += 1;
                lost(self, LostMessage { number, record, begins_event });
            } else {
                self.loss_time = Some(self.loss_time.map_or(due, |time| time.min(due)));
            }
        }
        self.advance(now, largest, max_ack_delay)
    }

    /// Forgets messages that need not be remembered, where losses are found by time-outs.
    pub(crate) fn forget(&mut self, now: Duration) -> bool {
        let largest = self.largest.unwrap_or(0);
        if self.first < self.next_number() { self.advance(now, largest, Duration::ZERO) } else { false }
    }

    /// Moves over messages whose fate is known, and forgets those that are old. Returns whether all that was sent over
    /// several time-outs was lost.
    fn advance(&mut self, now: Duration, largest: u64, max_ack_delay: Duration) -> bool {
        let threshold = self.rtt.probe_timeout(max_ack_delay) * PERSISTENT_CONGESTION_TIMEOUTS;
        let mut persistent = false;
        while self.scan <= largest && self.scan < self.next_number() {
            let record = &self.records[(self.scan - self.first) as usize];
            match record.state {
                State::InFlight | State::Superseded => break,
                State::Arrived => self.lost_since = None,
                State::Lost if record.probes_length() => {}
                State::Lost => {
                    let since = *self.lost_since.get_or_insert(record.time);
                    if self.rtt.min().is_some() && record.time.saturating_sub(since) > threshold {
                        persistent = true;
                        self.lost_since = None;
                    }
                }
            }
            self.scan += 1;
        }
        let keep = self.rtt.smoothed() * 3;
        while self.first < self.scan
            && self.records.front().is_some_and(|r| r.state == State::Arrived || r.time + keep < now)
        {
            self.records.pop_front();
            self.first += 1;
        }
        persistent
    }

    /// The oldest message in flight, for the reference's time-out.
    pub(crate) fn earliest_in_flight(&mut self) -> Option<(u64, Record)> {
        while let Some(record) = self.records.get((self.scan - self.first) as usize) {
            if record.state == State::InFlight {
                return Some((self.scan, *record));
            }
            self.scan += 1;
        }
        None
    }

    /// Declares one message lost whatever later ones show, as the reference's time-out does.
    pub(crate) fn expire(&mut self, number: u64) {
        if let Some(record) = self.resolve(number, State::Lost) {
            self.rate.lost(u64::from(record.bytes));
        }
    }

    /// The instant of the next search for losses.
    pub(crate) fn loss_time(&self) -> Option<Duration> {
        self.loss_time
    }

    /// The probe time-out with its back-off.
    pub(crate) fn probe_timeout(&self, max_ack_delay: Duration, cap: Duration) -> Duration {
        let base = self.rtt.probe_timeout(max_ack_delay);
        (base * (1 << self.timeouts.min(16))).min(cap.max(base))
    }

    /// Counts a probe time-out; how many there were since something arrived.
    pub(crate) fn timed_out(&mut self) -> u32 {
        self.timeouts += 1;
        self.timeouts
    }

    /// Bytes lost since a record was sent, and bytes that were in flight then.
    pub(crate) fn loss_context(&self, record: &Record) -> (u64, u64) {
        (self.rate.lost_since(&record.snapshot), record.snapshot.in_flight)
    }

    /// Forgets all messages: nothing more is waited for.
    pub(crate) fn close(&mut self) {
        (self.first, self.scan) = (self.next_number(), self.next_number());
        self.records = VecDeque::new();
        (self.in_flight, self.in_flight_bytes, self.loss_time) = (0, 0, None);
    }

    /// Gives back the memory that holds nothing.
    pub(crate) fn trim(&mut self) {
        self.records.shrink_to_fit();
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.records.capacity() * size_of::<Record>()
    }
}

#[cfg(test)]
mod tests;
