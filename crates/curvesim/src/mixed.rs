//! Bulk flows of ours and of TCP over one modelled link, in virtual time.

use std::time::Duration;

use curvecp::congestion::Algorithm;
use curvecp::{MessageConfig, MessageLayer, Read, Role};
use kendall_linkmodel::{Ecn, Link, Packet, Settings};

use crate::layers::LONGEST;
use crate::tcp::{ACK_ON_LINK, SEGMENT_ON_LINK, TcpAck, TcpReceiver, TcpSender};

/// Headers of a packet, of UDP, IPv4 and Ethernet around a message: from client to server, from server to client.
const OVERHEAD_BYTES: [u32; 2] = [14 + 28 + 96, 14 + 28 + 64];

/// The kind of a sender.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// A connection of ours with this congestion control.
    Ours(Algorithm),
    /// Linux's TCP.
    Tcp,
    /// TCP with paced sending.
    PacedTcp,
}

enum Item {
    Message(Vec<u8>),
    Segment(u64),
    Ack(TcpAck),
}

/// A link model repeats a packet where it is asked to, which these links are not.
impl Clone for Item {
    fn clone(&self) -> Self {
        unreachable!("these links repeat nothing")
    }
}

enum Flow {
    Ours(Box<[MessageLayer; 2]>),
    Tcp(Box<TcpSender>, TcpReceiver),
}

struct Running {
    flow: Flow,
    starts: Duration,
    delivered: u64,
}

/// Runs flows over a link, flow i from i × 100 ms on, and returns the bytes that each delivered from `from` to `until`, in
/// seconds, and the mean time in the queue in ms.
///
/// # Panics
/// Where the link's settings are wrong.
pub fn mixed(link: &str, kinds: &[Kind], [from, until]: [u64; 2], seed: u64) -> (Vec<u64>, f64) {
    let settings: Settings = link.parse().expect("settings are valid");
    let make = |direction| Link::new(&settings, seed * 2 + direction, 0).expect("settings are valid");
    let mut links: [Link<(usize, Item)>; 2] = [make(0), make(1)];
    let mut flows: Vec<Running> = kinds.iter().enumerate().map(|(i, kind)| start(i, *kind, seed)).collect();
    let (mut now, mut before, mut waited) = (Duration::ZERO, vec![0; flows.len()], (0.0, 0_u32));
    let (from, until) = (Duration::from_secs(from), Duration::from_secs(until));
    while now < until {
        if now < from {
            before = flows.iter().map(|flow| flow.delivered).collect();
            waited = (0.0, 0);
        }
        for (index, running) in flows.iter_mut().enumerate().filter(|(_, running)| running.starts <= now) {
            running.transmit(now, index, &mut links);
        }
        let arrivals = links.iter().filter_map(Link::next_ns).map(|ns| Duration::from_nanos(ns as u64));
        let timers = flows.iter().filter_map(|flow| flow.deadline(now));
        now = arrivals.chain(timers).min().expect("bulk flows go on").max(now);
        for (direction, link) in links.iter_mut().enumerate() {
            while let Some(delivery) = link.poll(now.as_nanos() as i64) {
                if direction == 0 {
                    waited = (waited.0 + delivery.waited_ns as f64 / 1e6, waited.1 + 1);
                }
                let (flow, item) = delivery.packet.item;
                flows[flow].handle(now, direction, item);
            }
        }
    }
    let delivered = flows.iter().zip(before).map(|(flow, before)| flow.delivered - before);
    (delivered.collect(), waited.0 / f64::from(waited.1.max(1)))
}

fn start(index: usize, kind: Kind, seed: u64) -> Running {
    let starts = Duration::from_millis(100 * index as u64);
    let flow = match kind {
        Kind::Tcp | Kind::PacedTcp => {
            Flow::Tcp(Box::new(TcpSender::new(starts, kind == Kind::PacedTcp)), TcpReceiver::default())
        }
        Kind::Ours(algorithm) => {
            let end = |role| {
                let config = MessageConfig { algorithm, ..MessageConfig::default() };
                let mut layer = MessageLayer::new(config, role, seed * 100 + index as u64, starts);
                layer.assume_rtt(Duration::from_millis(20));
                layer
            };
            Flow::Ours(Box::new([end(Role::Client), end(Role::Server)]))
        }
    };
    Running { flow, starts, delivered: 0 }
}

impl Running {
    fn deadline(&self, now: Duration) -> Option<Duration> {
        if now < self.starts {
            return Some(self.starts);
        }
        match &self.flow {
            Flow::Ours(ends) => ends.iter().filter_map(MessageLayer::next_deadline).min(),
            Flow::Tcp(sender, receiver) => sender.deadline().into_iter().chain(receiver.deadline()).min(),
        }
    }

    fn transmit(&mut self, now: Duration, index: usize, links: &mut [Link<(usize, Item)>; 2]) {
        let mut offer = |direction: usize, bytes: u32, item| {
            let packet = Packet { bytes, flow: index as u64, ecn: Ecn::NotCapable, item: (index, item) };
            links[direction].offer(now.as_nanos() as i64, packet);
        };
        match &mut self.flow {
            Flow::Ours(ends) => {
                let zeros = [0; 1 << 16];
                while ends[0].write(&zeros) > 0 {}
                for (side, end) in ends.iter_mut().enumerate() {
                    if end.next_deadline().is_some_and(|due| due <= now) {
                        end.handle_timeout(now);
                    }
                    let mut out = [0; 1376];
                    while let Some(length) = end.poll_transmit(now, LONGEST[side], &mut out) {
                        offer(
                            side,
                            length as u32 + OVERHEAD_BYTES[side],
                            Item::Message(out[..length].to_vec()),
                        );
                    }
                }
            }
            Flow::Tcp(sender, receiver) => {
                sender.handle_timeout(now);
                while let Some(segment) = sender.poll_transmit(now) {
                    offer(0, SEGMENT_ON_LINK, Item::Segment(segment));
                }
                while let Some(ack) = receiver.poll_transmit(now) {
                    offer(1, ACK_ON_LINK, Item::Ack(ack));
                }
            }
        }
    }

    fn handle(&mut self, now: Duration, direction: usize, item: Item) {
        match (&mut self.flow, item) {
            (Flow::Ours(ends), Item::Message(message)) => {
                let end = &mut ends[1 - direction];
                end.handle(now, &message);
                let mut piece = [0; 16_384];
                while let Read::Bytes(length) = end.read(&mut piece) {
                    self.delivered += if direction == 0 { length as u64 } else { 0 };
                }
            }
            (Flow::Tcp(_, receiver), Item::Segment(segment)) => {
                receiver.handle(now, segment);
                self.delivered = receiver.delivered();
            }
            (Flow::Tcp(sender, _), Item::Ack(ack)) => sender.handle(now, &ack),
            _ => unreachable!("packets go to their own flow"),
        }
    }
}
