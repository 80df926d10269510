//! The stream that is sent: bytes until they are acknowledged, cut into units that keep their boundaries.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::Ranges;
use super::ring::Ring;
use crate::message::{End, MAX_DATA_BYTES, MAX_POSITION};

/// The state of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum UnitState {
    InFlight,
    Lost,
    Acknowledged,
}

/// A piece of the stream that travels in one message; sent again, it has the same bytes and a new number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Unit {
    /// Position of its first byte, by which it is known: no two units begin at the same.
    pub(crate) start: u64,
    /// Bytes of data.
    pub(crate) len: u16,
    /// Whether the stream ends after it, and how.
    pub(crate) end: Option<End>,
    /// The message that carried it last.
    pub(crate) number: u64,
    /// Whether the unit was sent more than once.
    pub(crate) resent: bool,
    state: UnitState,
}

impl Unit {
    /// The position after it, the end of the stream counted as one byte.
    pub(crate) fn stop(&self) -> u64 {
        self.start + u64::from(self.len) + u64::from(self.end.is_some())
    }
}

/// Bytes and units until they are acknowledged.
#[derive(Debug, Default)]
pub(crate) struct SendStream {
    ring: Ring,
    /// Everything before this is acknowledged and freed.
    acknowledged: u64,
    /// Everything before this has been cut into units.
    cut: u64,
    /// The application has written everything before this.
    written: u64,
    end: Option<End>,
    end_is_cut: bool,
    units: VecDeque<Unit>,
    /// Units acknowledged out of order.
    islands: Ranges,
    /// Positions of lost units, and of some that have changed since.
    lost: BinaryHeap<Reverse<u64>>,
}

impl SendStream {
    /// Takes bytes from the application while it holds fewer than `capacity`; returns how many.
    pub(crate) fn write(&mut self, bytes: &[u8], capacity: u64) -> usize {
        let length = bytes.len().min(self.space(capacity));
        if length == 0 {
            return 0;
        }
        let stop = self.written + length as u64;
        self.ring.reserve(self.acknowledged, self.written, stop);
        self.ring.put(self.written, &bytes[..length]);
        self.written = stop;
        length
    }

    /// Bytes that it would take; none after the end.
    pub(crate) fn space(&self, capacity: u64) -> usize {
        if self.end.is_some() {
            return 0;
        }
        let capacity = capacity.min(MAX_POSITION - 2048 - self.acknowledged);
        capacity.saturating_sub(self.written - self.acknowledged) as usize
    }

    /// Ends the stream after what was written. An end that is already set stays.
    pub(crate) fn finish(&mut self) {
        self.end.get_or_insert(End::Success);
    }

    /// Ends the stream in failure after what was sent so far; a no-op once the end was sent.
    pub(crate) fn abort(&mut self) {
        if !self.end_is_cut {
            self.written = self.cut;
            self.end = Some(End::Failure);
        }
    }

    /// Whether there is anything that has not been sent yet.
    pub(crate) fn has_unsent(&self) -> bool {
        self.cut < self.written || (self.end.is_some() && !self.end_is_cut)
    }

    /// Bytes that have not been sent yet.
    pub(crate) fn unsent_bytes(&self) -> u64 {
        self.written - self.cut
    }

    /// Whether the end was sent and everything up to it acknowledged.
    pub(crate) fn is_complete(&self) -> bool {
        self.end_is_cut && self.units.is_empty()
    }

    /// The number of units from the first that is not acknowledged to the last that was sent.
    pub(crate) fn outstanding_units(&self) -> usize {
        self.units.len()
    }

    /// Everything before this position is acknowledged.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged
    }

    /// The position of the next new byte.
    pub(crate) fn next_position(&self) -> u64 {
        self.cut
    }

    /// The bytes of the unit that [`cut`](Self::cut) would return next, if there is one within these limits.
    pub(crate) fn next_unit_bytes(&self, max_len: usize, limit: u64) -> Option<usize> {
        let len = self.unsent_bytes().min(max_len as u64).min(limit.saturating_sub(self.cut));
        // A longer one fills its message, so that the lengths of messages reveal little of how much there is to send.
        let len = if len < max_len as u64 { len.min(MAX_DATA_BYTES as u64) } else { len };
        (len > 0 || (self.cut == self.written && self.has_unsent())).then_some(len as usize)
    }

    /// Cuts the next unit, of at most `max_len` bytes that all lie before `limit`, to be carried by message `number`.
    pub(crate) fn cut(&mut self, max_len: usize, limit: u64, number: u64) -> Option<Unit> {
        let len = self.next_unit_bytes(max_len, limit)? as u16;
        let start = self.cut;
        self.cut += u64::from(len);
        let end = self.end.filter(|_| self.cut == self.written);
        self.end_is_cut |= end.is_some();
        let unit = Unit { start, len, end, number, resent: false, state: UnitState::InFlight };
        self.units.push_back(unit);
        Some(unit)
    }

    /// The bytes of a unit.
    pub(crate) fn copy(&self, unit: &Unit, into: &mut [u8]) {
        self.ring.get(unit.start, into);
    }

    /// The lost unit with the lowest position.
    pub(crate) fn next_lost(&mut self) -> Option<Unit> {
        while let Some(Reverse(start)) = self.lost.peek() {
            match self.unit(*start) {
                Some(unit) if unit.state == UnitState::Lost => return Some(*unit),
                _ => self.lost.pop(),
            };
        }
        None
    }

    /// The first unit in flight whose last message was before `number`, for a probe.
    pub(crate) fn oldest_in_flight(&self, number: u64) -> Option<Unit> {
        self.units.iter().find(|unit| unit.state == UnitState::InFlight && unit.number < number).copied()
    }

    /// Notes that a unit travels again, in another message.
    pub(crate) fn resent(&mut self, start: u64, number: u64) {
        if let Some(unit) = self.index(start).map(|index| &mut self.units[index]) {
            (unit.state, unit.number, unit.resent) = (UnitState::InFlight, number, true);
        }
    }

    /// Notes that a message with `[start, stop)` was lost; what no other message carries by now is to be sent again. That
    /// is several units where one was split.
    pub(crate) fn lost(&mut self, start: u64, stop: u64, number: u64) {
        let from = self.units.partition_point(|unit| unit.start < start);
        let carried = self.units.iter_mut().skip(from).take_while(|unit| unit.stop() <= stop);
        for unit in carried.filter(|unit| unit.state == UnitState::InFlight && unit.number == number) {
            unit.state = UnitState::Lost;
            self.lost.push(Reverse(unit.start));
        }
    }

    /// Splits all units that have more than `max_len` bytes and have not arrived.
    pub(crate) fn split(&mut self, max_len: u16) {
        let is_long = |unit: &Unit| unit.len > max_len && unit.state != UnitState::Acknowledged;
        if !self.units.iter().any(is_long) {
            return;
        }
        let mut units = VecDeque::with_capacity(2 * self.units.len());
        for mut unit in self.units.drain(..) {
            while is_long(&unit) {
                units.push_back(Unit { len: max_len, end: None, ..unit });
                (unit.start, unit.len) = (unit.start + u64::from(max_len), unit.len - max_len);
                if unit.state == UnitState::Lost {
                    self.lost.push(Reverse(unit.start));
                }
            }
            units.push_back(unit);
        }
        self.units = units;
    }

    /// Marks all units that lie wholly in `[start, stop)`, and calls `newly` for each that was not marked before, in
    /// ascending order.
    pub(crate) fn acknowledge(&mut self, start: u64, stop: u64, mut newly: impl FnMut(&Unit)) {
        if start <= self.acknowledged {
            self.acknowledge_front(stop, &mut newly);
            return;
        }
        let mut index = self.units.partition_point(|unit| unit.start < start);
        while let Some(unit) = self.units.get_mut(index).filter(|unit| unit.stop() <= stop) {
            if let Some(end) = self.islands.end_of_range_at(unit.start) {
                index = self.units.partition_point(|unit| unit.start < end);
                continue;
            }
            if unit.state != UnitState::Acknowledged {
                newly(unit);
                unit.state = UnitState::Acknowledged;
            }
            self.islands.insert(unit.start, unit.stop());
            index += 1;
        }
    }

    fn acknowledge_front(&mut self, stop: u64, newly: &mut impl FnMut(&Unit)) {
        while let Some(unit) = self.units.front() {
            let acknowledged = unit.state == UnitState::Acknowledged;
            if !acknowledged && unit.stop() > stop {
                break;
            }
            if !acknowledged {
                newly(unit);
            }
            self.acknowledged = unit.start + u64::from(unit.len);
            self.units.pop_front();
        }
        if !self.islands.is_empty() {
            self.islands.remove_below(self.units.front().map_or(u64::MAX, |unit| unit.start));
        }
    }

    /// The unit that begins at a position, unless it and everything before it is acknowledged.
    fn unit(&self, start: u64) -> Option<&Unit> {
        self.index(start).map(|index| &self.units[index])
    }

    fn index(&self, start: u64) -> Option<usize> {
        self.units.binary_search_by_key(&start, |unit| unit.start).ok()
    }

    /// Whether memory is held for nothing.
    pub(crate) fn can_trim(&self) -> bool {
        self.ring.capacity() > 0 && self.units.is_empty() && self.written == self.acknowledged
    }

    /// Gives back the memory that holds nothing.
    pub(crate) fn trim(&mut self) {
        if self.can_trim() {
            self.release();
        }
    }

    fn release(&mut self) {
        self.ring.clear();
        self.units = VecDeque::new();
        self.lost = BinaryHeap::new();
        self.islands.clear();
    }

    /// Drops everything: nothing more is going to be sent.
    pub(crate) fn close(&mut self) {
        self.release();
        (self.written, self.acknowledged) = (self.cut, self.cut);
        (self.end, self.end_is_cut) = (Some(self.end.unwrap_or(End::Failure)), true);
    }

    /// Bytes of memory.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.ring.capacity()
            + self.units.capacity() * size_of::<Unit>()
            + self.lost.capacity() * size_of::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(bytes: usize) -> SendStream {
        let mut stream = SendStream::default();
        assert_eq!(stream.write(&vec![5; bytes], 1 << 20), bytes);
        stream.finish();
        let mut number = 0;
        while stream.cut(1024, u64::MAX, number).is_some() {
            number += 1;
        }
        stream
    }

    fn acknowledge(stream: &mut SendStream, start: u64, stop: u64) -> Vec<u64> {
        let mut units = vec![];
        stream.acknowledge(start, stop, |unit| units.push(unit.start / 1024));
        units
    }

    #[test]
    fn only_whole_units_are_acknowledged_and_each_once() {
        let mut stream = sent(5_000);
        assert_eq!(acknowledge(&mut stream, 1_000, 3_072), [1, 2]);
        assert_eq!(acknowledge(&mut stream, 1_024, 4_096), [3]);
        assert_eq!(acknowledge(&mut stream, 0, 1_023), []);
        assert_eq!(acknowledge(&mut stream, 0, 1_024), [0], "what comes behind goes with it");
        assert_eq!(stream.acknowledged(), 4_096);
        assert_eq!(acknowledge(&mut stream, 0, 5_000), [], "the end is not acknowledged yet");
        assert!(!stream.is_complete());
        assert_eq!(acknowledge(&mut stream, 0, 5_001), [4]);
        assert!(stream.is_complete());
    }

    #[test]
    fn an_empty_stream_has_one_unit_that_carries_its_end() {
        let mut stream = sent(0);
        assert_eq!((stream.outstanding_units(), stream.has_unsent()), (1, false));
        assert_eq!(acknowledge(&mut stream, 0, 0), []);
        assert_eq!(acknowledge(&mut stream, 0, 1), [0]);
    }

    #[test]
    fn lost_units_are_sent_again_lowest_first_and_only_while_they_are_lost() {
        let mut stream = sent(8_192);
        let lost = |stream: &mut SendStream, unit: u64, number| {
            stream.lost(unit * 1024, (unit + 1) * 1024, number);
        };
        for unit in [5, 2, 3] {
            lost(&mut stream, unit, unit);
        }
        assert_eq!(acknowledge(&mut stream, 2_048, 3_072), [2]);
        assert_eq!(stream.next_lost().unwrap().start, 3 * 1024);
        stream.resent(3 * 1024, 20);
        lost(&mut stream, 3, 3);
        assert_eq!(
            stream.next_lost().unwrap().start,
            5 * 1024,
            "the message that was lost is not the last with unit 3"
        );
    }

    #[test]
    fn a_unit_that_is_split_is_lost_resent_and_acknowledged_in_parts() {
        let mut stream = SendStream::default();
        stream.write(&[5; 3_700], 1 << 20);
        for number in 0..3 {
            stream.cut(1_312, u64::MAX, number);
        }
        assert_eq!(stream.units.iter().map(|unit| unit.len).collect::<Vec<_>>(), [1_312, 1_312, 1_024]);
        stream.lost(1_312, 2_624, 1);
        stream.split(1_024);
        stream.lost(0, 1_312, 0);
        let mut parts = vec![];
        while let Some(unit) = stream.next_lost() {
            parts.push((unit.start, unit.len));
            stream.resent(unit.start, 9);
        }
        assert_eq!(parts, [(0, 1_024), (1_024, 288), (1_312, 1_024), (2_336, 288)]);
        let mut arrived = vec![];
        stream.acknowledge(0, 1_312, |unit| arrived.push(unit.len));
        stream.acknowledge(2_336, 2_624, |unit| arrived.push(unit.len));
        assert_eq!((arrived, stream.acknowledged()), (vec![1_024, 288, 288], 1_312));
    }

    #[test]
    fn an_abort_drops_what_was_not_sent() {
        let mut stream = SendStream::default();
        stream.write(&[1; 3_000], 1 << 20);
        stream.cut(1024, u64::MAX, 0);
        stream.abort();
        let end = stream.cut(1024, u64::MAX, 1).unwrap();
        assert_eq!((end.start, end.len, end.end), (1024, 0, Some(End::Failure)));
        assert_eq!(stream.write(b"more", 1 << 20), 0);
    }

    #[test]
    fn the_buffer_has_a_bound_and_can_be_freed_when_all_is_acknowledged() {
        let mut stream = SendStream::default();
        assert_eq!(stream.write(&[0; 200_000], 131_072), 131_072);
        assert_eq!(stream.write(&[0; 1], 131_072), 0);
        while stream.cut(1024, u64::MAX, 0).is_some() {}
        stream.trim();
        assert_eq!(acknowledge(&mut stream, 0, 131_072).len(), 128);
        stream.trim();
        assert_eq!(stream.memory_bytes(), 0);
    }

    #[test]
    fn flow_control_stops_the_cut_and_lets_the_end_pass() {
        let mut stream = SendStream::default();
        stream.write(&[0; 2_000], 131_072);
        stream.finish();
        assert_eq!(stream.cut(1024, 1_500, 0).unwrap().len, 1024);
        assert_eq!(stream.cut(1024, 1_500, 1).map(|unit| (unit.len, unit.end)), Some((476, None)));
        assert!(stream.cut(1024, 1_500, 2).is_none());
        assert_eq!(stream.cut(1024, 2_000, 2).map(|unit| unit.end), Some(Some(End::Success)));
    }
}
