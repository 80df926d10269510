//! Packets that wait in order of arrival.

use std::collections::VecDeque;

use crate::packet::Packet;

/// A packet that waits.
#[derive(Debug)]
pub(crate) struct Waiting<T> {
    pub(crate) since_ns: i64,
    pub(crate) packet: Packet<T>,
    pub(crate) marked: bool,
}

/// Packets in order of arrival.
#[derive(Debug)]
pub(crate) struct Line<T> {
    packets: VecDeque<Waiting<T>>,
    bytes: u64,
}

impl<T> Line<T> {
    pub(crate) fn new() -> Self {
        Self { packets: VecDeque::new(), bytes: 0 }
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn add(&mut self, now_ns: i64, packet: Packet<T>) {
        self.bytes += u64::from(packet.bytes);
        self.packets.push_back(Waiting { since_ns: now_ns, packet, marked: false });
    }

    pub(crate) fn take(&mut self) -> Option<Waiting<T>> {
        let head = self.packets.pop_front()?;
        self.bytes -= u64::from(head.packet.bytes);
        Some(head)
    }
}
