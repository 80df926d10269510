//! A bulk flow of TCP as Linux sends it, to compete with ours on a modelled link: CUBIC as in `tcp_cubic.c` (with HyStart's
//! rule of delay), selective acknowledgments, PRR, an acknowledgment for every second segment, and no pacing unless asked.
//!
//! It counts in segments of 1,448 bytes. Left out: the receive window, the train rule of HyStart, segmentation offload.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Bytes of a full segment on an Ethernet, and its data.
pub(crate) const SEGMENT_ON_LINK: u32 = 1514;
pub(crate) const SEGMENT_DATA: u64 = 1448;
/// An acknowledgment with three blocks of SACK.
pub(crate) const ACK_ON_LINK: u32 = 94;

const C: f64 = 0.4;
const BETA: f64 = 717.0 / 1024.0;
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
const DELAYED_ACK: Duration = Duration::from_millis(40);
const MIN_TIMEOUT: Duration = Duration::from_millis(200);
/// Segments sent later that arrive first show a loss.
const REORDERING: u64 = 3;

/// What an acknowledgment says: all before `first`, and the segments that it is sent for.
#[derive(Clone, Debug)]
pub(crate) struct TcpAck {
    first: u64,
    segments: Vec<u64>,
}

/// The receiver.
#[derive(Debug, Default)]
pub(crate) struct TcpReceiver {
    first: u64,
    beyond: BTreeSet<u64>,
    unacknowledged: Vec<u64>,
    due: Option<Duration>,
    /// To be sent.
    acks: VecDeque<TcpAck>,
}

impl TcpReceiver {
    /// Bytes that the application has.
    pub(crate) fn delivered(&self) -> u64 {
        self.first * SEGMENT_DATA
    }

    pub(crate) fn deadline(&self) -> Option<Duration> {
        if self.acks.is_empty() { self.due } else { Some(Duration::ZERO) }
    }

    pub(crate) fn handle(&mut self, now: Duration, segment: u64) {
        let in_order = segment == self.first && self.beyond.is_empty();
        if segment >= self.first {
            self.beyond.insert(segment);
        }
        while self.beyond.remove(&self.first) {
            self.first += 1;
        }
        self.unacknowledged.push(segment);
        if in_order && self.unacknowledged.len() < 2 {
            self.due = Some(now + DELAYED_ACK);
        } else {
            self.acknowledge();
        }
    }

    /// The next acknowledgment to send now.
    pub(crate) fn poll_transmit(&mut self, now: Duration) -> Option<TcpAck> {
        if self.due.is_some_and(|due| due <= now) {
            self.acknowledge();
        }
        self.acks.pop_front()
    }

    fn acknowledge(&mut self) {
        self.due = None;
        let segments = std::mem::take(&mut self.unacknowledged);
        self.acks.push_back(TcpAck { first: self.first, segments });
    }
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    /// Transmissions count up, which distinguishes a repeated segment from its first copy.
    transmission: u64,
    at: Duration,
    repeated: bool,
}

/// A recovery: until all up to `end` is acknowledged; the counters of PRR.
#[derive(Clone, Copy, Debug)]
struct Recovery {
    end: u64,
    flight: f64,
    delivered: f64,
    sent: f64,
}

/// The sender, which always has data.
#[derive(Debug)]
pub(crate) struct TcpSender {
    paced: bool,
    next: u64,
    first: u64,
    transmissions: u64,
    in_flight: BTreeMap<u64, Sent>,
    lost: VecDeque<u64>,
    highest: u64,
    window: f64,
    threshold: f64,
    recovery: Option<Recovery>,
    /// The cubic function's: maximum, start of the epoch, K and origin, and Reno's window.
    w_max: f64,
    epoch: Option<(Duration, f64, f64)>,
    reno: f64,
    round_end: u64,
    round_min: Duration,
    samples: u32,
    min_rtt: Duration,
    srtt: Option<Duration>,
    variance: Duration,
    heard: Duration,
    back_off: u32,
    pace_until: Duration,
}

impl TcpSender {
    pub(crate) fn new(now: Duration, paced: bool) -> Self {
        Self {
            paced,
            next: 0,
            first: 0,
            transmissions: 0,
            in_flight: BTreeMap::new(),
            lost: VecDeque::new(),
            highest: 0,
            window: 10.0,
            threshold: f64::INFINITY,
            recovery: None,
            w_max: 0.0,
            epoch: None,
            reno: 0.0,
            round_end: 0,
            round_min: Duration::MAX,
            samples: 0,
            min_rtt: Duration::MAX,
            srtt: None,
            variance: Duration::ZERO,
            heard: now,
            back_off: 0,
            pace_until: now,
        }
    }

    fn timeout(&self) -> Duration {
        let base =
            self.srtt.map_or(Duration::from_secs(1), |srtt| srtt + (self.variance * 4).max(MIN_TIMEOUT));
        base * (1 << self.back_off.min(6))
    }

    pub(crate) fn deadline(&self) -> Option<Duration> {
        let timeout = (!self.in_flight.is_empty()).then(|| self.heard + self.timeout());
        let pace = (self.paced && self.may_send()).then_some(self.pace_until);
        timeout.into_iter().chain(pace).min()
    }

    pub(crate) fn handle_timeout(&mut self, now: Duration) {
        if self.in_flight.is_empty() || now < self.heard + self.timeout() {
            return;
        }
        self.lost = std::mem::take(&mut self.in_flight).into_keys().chain(self.lost.drain(..)).collect();
        self.lost.make_contiguous().sort_unstable();
        self.reduce();
        (self.window, self.recovery) = (1.0, None);
        self.back_off += 1;
        self.heard = now;
    }

    fn may_send(&self) -> bool {
        self.in_flight.len() as f64 + 1.0 <= self.window.max(1.0)
    }

    /// The next segment to send now, if window and pace let one out.
    pub(crate) fn poll_transmit(&mut self, now: Duration) -> Option<u64> {
        if !self.may_send() || (self.paced && now < self.pace_until) {
            return None;
        }
        let repeated = self.lost.pop_front();
        let segment = repeated.unwrap_or(self.next);
        self.next = self.next.max(segment + 1);
        self.transmissions += 1;
        if self.in_flight.is_empty() {
            self.heard = now;
        }
        let sent = Sent { transmission: self.transmissions, at: now, repeated: repeated.is_some() };
        self.in_flight.insert(segment, sent);
        if let Some(recovery) = &mut self.recovery {
            recovery.sent += 1.0;
        }
        if let Some(srtt) = self.srtt {
            let gain = if self.window < self.threshold { 2.0 } else { 1.2 };
            self.pace_until = self.pace_until.max(now) + srtt.div_f64(gain * self.window.max(1.0));
        }
        Some(segment)
    }

    pub(crate) fn handle(&mut self, now: Duration, ack: &TcpAck) {
        let (mut arrived, mut newest) = (0.0, 0);
        let before: Vec<u64> = self.in_flight.range(..ack.first).map(|(segment, _)| *segment).collect();
        self.lost.retain(|segment| *segment >= ack.first && !ack.segments.contains(segment));
        let mut sample = None;
        for segment in before.into_iter().chain(ack.segments.iter().copied()) {
            let Some(sent) = self.in_flight.remove(&segment) else { continue };
            arrived += 1.0;
            newest = newest.max(sent.transmission);
            if !sent.repeated {
                let rtt = now - sent.at;
                sample = Some(sample.map_or(rtt, |least: Duration| least.min(rtt)));
            }
        }
        self.first = self.first.max(ack.first);
        self.highest = self.highest.max(newest);
        if arrived > 0.0 {
            (self.heard, self.back_off) = (now, 0);
        }
        if let Some(sample) = sample {
            self.measure(sample);
        }
        self.find_losses();
        match &mut self.recovery {
            Some(recovery) if self.first < recovery.end => {
                recovery.delivered += arrived;
                self.reduce_in_proportion(arrived);
            }
            Some(_) => (self.recovery, self.window) = (None, self.threshold),
            None => self.grow(now, arrived),
        }
    }

    fn measure(&mut self, rtt: Duration) {
        self.min_rtt = self.min_rtt.min(rtt);
        assert!(self.min_rtt < Duration::from_secs(100));
        match self.srtt {
            None => (self.srtt, self.variance) = (Some(rtt), rtt / 2),
            Some(srtt) => {
                self.variance = (self.variance * 3 + srtt.abs_diff(rtt)) / 4;
                self.srtt = Some((srtt * 7 + rtt) / 8);
            }
        }
        // HyStart: the first eight samples of a round are late.
        if self.first >= self.round_end {
            (self.round_end, self.round_min, self.samples) = (self.next, Duration::MAX, 0);
        }
        self.samples += 1;
        if self.samples <= 8 {
            self.round_min = self.round_min.min(rtt);
        }
        let late = (self.min_rtt / 8).clamp(Duration::from_millis(4), Duration::from_millis(16));
        if self.samples == 8
            && self.window >= 16.0
            && self.window < self.threshold
            && self.round_min != Duration::MAX
            && self.round_min > self.min_rtt + late
        {
            self.threshold = self.window;
        }
    }

    fn find_losses(&mut self) {
        let highest = self.highest;
        let late = |sent: &Sent| sent.transmission + REORDERING <= highest;
        let lost: Vec<u64> =
            self.in_flight.iter().filter(|(_, sent)| late(sent)).map(|(segment, _)| *segment).collect();
        if lost.is_empty() {
            return;
        }
        let flight = self.in_flight.len() as f64;
        for segment in lost {
            self.in_flight.remove(&segment);
            self.lost.push_back(segment);
        }
        if self.recovery.is_none() {
            self.reduce();
            self.recovery = Some(Recovery { end: self.next, flight, delivered: 0.0, sent: 0.0 });
            // The first repetition leaves at once.
            self.window = self.in_flight.len() as f64 + 1.0;
        }
    }

    fn reduce(&mut self) {
        let window = if self.recovery.is_some() { self.threshold } else { self.window };
        self.epoch = None;
        self.w_max = if window < self.w_max { window * (1.0 + BETA) / 2.0 } else { window };
        self.threshold = (window * BETA).max(2.0);
    }

    fn reduce_in_proportion(&mut self, arrived: f64) {
        let (Some(recovery), in_flight) = (self.recovery, self.in_flight.len() as f64) else { return };
        let quota = if in_flight > self.threshold {
            (recovery.delivered * self.threshold / recovery.flight).ceil() - recovery.sent
        } else {
            ((recovery.delivered - recovery.sent).max(arrived) + 1.0).min(self.threshold - in_flight)
        };
        self.window = in_flight + quota.max(0.0);
    }

    fn grow(&mut self, now: Duration, arrived: f64) {
        if self.window < self.threshold {
            self.window += arrived;
            return;
        }
        let (start, k, origin) = *self.epoch.get_or_insert_with(|| {
            self.reno = self.window;
            if self.window < self.w_max {
                (now, ((self.w_max - self.window) / C).cbrt(), self.w_max)
            } else {
                (now, 0.0, self.window)
            }
        });
        let seconds = (now.saturating_sub(start)).as_secs_f64() + self.min_rtt.as_secs_f64();
        let target = origin + C * (seconds - k).powi(3);
        let cubic =
            if target > self.window { self.window / (target - self.window) } else { 100.0 * self.window };
        self.reno += ALPHA * arrived / self.window;
        let reno =
            if self.reno > self.window { self.window / (self.reno - self.window) } else { f64::INFINITY };
        self.window += arrived / cubic.min(reno).max(2.0);
    }
}
