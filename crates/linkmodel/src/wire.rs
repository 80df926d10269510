//! The conditions on a packet once its last bit has left: it is lost, damaged, duplicated, delayed or overtaken.

use std::collections::VecDeque;

use crate::counters::Ledger;
use crate::drops::Cause;
use crate::jitter::{Jitter, Reorder};
use crate::loss::Channel;
use crate::packet::{Delivery, Packet};
use crate::random::{Purpose, Stream};
use crate::settings::Settings;

/// A packet that is held back until others have overtaken it.
#[derive(Debug)]
struct HeldPacket<T> {
    /// The packet leaves with the packet of this number.
    with: u64,
    /// `at_ns` is the latest instant at which it leaves.
    delivery: Delivery<T>,
}

/// The packets in transit, and the random conditions of the next one.
#[derive(Debug)]
pub(crate) struct Wire<T> {
    delay_ns: i64,
    jitter: Jitter,
    corruption: f64,
    duplication: f64,
    reorder: Option<Reorder>,
    limit_bytes: u64,

    channel: Channel,
    corrupting: Stream,
    duplicating: Stream,
    jittering: Stream,
    reordering: Stream,

    /// In order of arrival.
    passing: VecDeque<Delivery<T>>,
    /// In order of the latest arrival, and of the packet with which they leave.
    held: VecDeque<HeldPacket<T>>,
    /// The number of packets that have passed without being held back.
    passed: u64,
    /// The instant at which the last packet arrives.
    last_ns: i64,
    bytes: u64,
}

impl<T> Wire<T> {
    pub(crate) fn new(settings: &Settings, seed: u64) -> Self {
        Self {
            delay_ns: settings.delay_ns,
            jitter: settings.jitter,
            corruption: settings.corruption,
            duplication: settings.duplication,
            reorder: settings.reorder,
            limit_bytes: settings.wire_bytes,
            channel: Channel::new(settings.loss, Stream::new(seed, Purpose::Loss)),
            corrupting: Stream::new(seed, Purpose::Corruption),
            duplicating: Stream::new(seed, Purpose::Duplication),
            jittering: Stream::new(seed, Purpose::Jitter),
            reordering: Stream::new(seed, Purpose::Reordering),
            passing: VecDeque::new(),
            held: VecDeque::new(),
            passed: 0,
            last_ns: i64::MIN,
            bytes: 0,
        }
    }

    /// Puts a packet on the wire whose last bit leaves at `left_ns`.
    pub(crate) fn add(
        &mut self,
        left_ns: i64,
        packet: Packet<T>,
        marked: bool,
        waited_ns: i64,
        ledger: &mut Ledger,
    ) {
        if self.channel.loses() {
            return ledger.dropped(left_ns, packet.flow, Cause::Lost);
        }
        let bytes = u64::from(packet.bytes);
        if !self.has_room(bytes) {
            return ledger.dropped(left_ns, packet.flow, Cause::WireFull);
        }
        self.bytes += bytes;
        let wrong_bit = self.corrupting.happens(self.corruption).then(|| self.corrupting.below(bytes * 8));
        ledger.counters.corrupted += u64::from(wrong_bit.is_some());
        let copies = 1 + u32::from(self.duplicating.happens(self.duplication));
        ledger.copied(copies);

        let delay_ns = (self.delay_ns + self.jitter.draw_ns(&mut self.jittering)).max(0);
        let at_ns = left_ns.saturating_add(delay_ns).max(self.last_ns);
        let delivery = Delivery { at_ns, packet, copies, marked, wrong_bit, waited_ns };
        match self.reorder {
            Some(reorder) if self.reordering.happens(reorder.share) => {
                ledger.counters.held_back += 1;
                self.hold(delivery, reorder);
            }
            _ => self.pass(delivery),
        }
    }

    fn hold(&mut self, delivery: Delivery<T>, reorder: Reorder) {
        // A packet that is held back stays behind those that already are, and so does its latest arrival.
        let before_ns = self.held.back().map_or(i64::MIN, |held| held.delivery.at_ns);
        let latest_ns = delivery.at_ns.saturating_add(reorder.within_ns).max(before_ns);
        let with = self.passed + u64::from(reorder.distance);
        self.held.push_back(HeldPacket { with, delivery: Delivery { at_ns: latest_ns, ..delivery } });
    }

    /// Lets a packet pass, followed by those that now have been overtaken by their number of packets.
    fn pass(&mut self, delivery: Delivery<T>) {
        self.passed += 1;
        self.last_ns = delivery.at_ns;
        self.passing.push_back(delivery);
        // Those whose latest arrival comes before this one's arrival are excluded.
        let mut index = 0;
        while let Some(held) = self.held.get(index).filter(|held| held.with <= self.passed) {
            if held.delivery.at_ns <= self.last_ns {
                index += 1;
            } else if let Some(held) = self.held.remove(index) {
                self.passing.push_back(Delivery { at_ns: self.last_ns, ..held.delivery });
            }
        }
    }

    /// Whether this many more bytes fit.
    pub(crate) fn has_room(&self, bytes: u64) -> bool {
        self.bytes + bytes <= self.limit_bytes
    }

    /// Whether there are packets on the wire that are not held back.
    pub(crate) fn passes(&self) -> bool {
        !self.passing.is_empty()
    }

    /// When the next packet arrives, as far as is known.
    pub(crate) fn next_ns(&self) -> Option<i64> {
        let passing = self.passing.front().map(|delivery| delivery.at_ns);
        let held = self.held.front().map(|held| held.delivery.at_ns);
        passing.into_iter().chain(held).min()
    }

    /// Takes the next packet that has arrived by now.
    pub(crate) fn take(&mut self, now_ns: i64, ledger: &mut Ledger) -> Option<Delivery<T>> {
        let at_ns = self.next_ns().filter(|at_ns| *at_ns <= now_ns)?;
        let delivery = match self.held.front() {
            Some(held) if held.delivery.at_ns == at_ns => self.held.pop_front().map(|held| held.delivery),
            _ => self.passing.pop_front(),
        }?;
        let packet = &delivery.packet;
        self.bytes -= u64::from(packet.bytes);
        ledger.delivered(at_ns, packet.flow, packet.bytes, delivery.copies);
        Some(delivery)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jitter::Law;

    /// Mean and standard deviation of the draws of a law, in spreads.
    fn moments(law: Law, draws: u32) -> (f64, f64) {
        let jitter = Jitter { spread_ns: 1_000_000, law };
        let mut stream = Stream::new(11, Purpose::Jitter);
        let drawn: Vec<f64> = (0..draws).map(|_| jitter.draw_ns(&mut stream) as f64 / 1e6).collect();
        let mean = drawn.iter().sum::<f64>() / f64::from(draws);
        let variance = drawn.iter().map(|x| (x - mean) * (x - mean)).sum::<f64>() / f64::from(draws);
        (mean, variance.sqrt())
    }

    #[test]
    fn laws_of_jitter_have_the_mean_and_the_deviation_they_say() {
        // 5 standard errors (false alarm 6 in 10⁷): of the mean 1/√n; of the deviation √((κ − 1)/4n), with the kurtosis κ
        // 1.8, 3 and below 80.
        for (law, mean_within, deviation_within) in
            [(Law::Uniform, 0.008, 0.004), (Law::Normal, 0.008, 0.006), (Law::ParetoNormal, 0.008, 0.04)]
        {
            let (mean, deviation) = moments(law, 400_000);
            let asked = Jitter { spread_ns: 1_000_000, law }.deviation_ns() / 1e6;
            assert!(mean.abs() < mean_within, "{law:?}: mean {mean}");
            assert!((deviation - asked).abs() < deviation_within, "{law:?}: deviation {deviation}");
        }
    }
}
