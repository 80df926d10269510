//! Connections of two message layers over a modelled link, in virtual time.
//!
//! Each connection has an application at both ends that writes, reads, pauses, finishes or aborts as its script says. All
//! connections share one link in each direction.

#![allow(dead_code, reason = "each test and example uses a part of it")]

pub(crate) mod measure;
pub(crate) mod mixed;
pub(crate) mod tcp;

use std::time::Duration;

use curvecp::{LayerState, MessageConfig, MessageLayer, Read, Role};
use kendall_linkmodel::{Ecn, Link, Packet, Settings};

/// Headers of UDP and IPv4, and of a packet around a message: from client to server, from server to client.
const OVERHEAD_BYTES: [usize; 2] = [28 + 96, 28 + 64];
const PERIOD: usize = 65_521;

/// How a script ends its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Finish,
    Abort,
    /// It goes on until the simulation ends.
    Never,
}

/// What an application does.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// Bytes to write.
    pub(crate) total: u64,
    /// The most bytes per write, and the pause after each.
    pub(crate) write: (usize, Duration),
    /// The most bytes per read, and the pause after each.
    pub(crate) read: (usize, Duration),
    pub(crate) ending: Ending,
    pub(crate) starts: Duration,
}

impl Script {
    /// Writes as fast as it can, then finishes.
    pub(crate) fn bulk(total: u64) -> Self {
        let at_once = (1 << 20, Duration::ZERO);
        Self { total, write: at_once, read: at_once, ending: Ending::Finish, starts: Duration::ZERO }
    }

    /// Writes nothing, and finishes at once.
    pub(crate) fn silent() -> Self {
        Self::bulk(0)
    }

    /// Begins later.
    pub(crate) fn from(mut self, starts: Duration) -> Self {
        self.starts = starts;
        self
    }
}

/// One end of a connection.
pub(crate) struct End {
    pub(crate) layer: MessageLayer,
    script: Script,
    stream: usize,
    pub(crate) written: u64,
    pub(crate) read: u64,
    ended: bool,
    write_at: Duration,
    read_at: Duration,
    /// How the peer's stream ended.
    pub(crate) outcome: Option<Read>,
    pub(crate) outcome_at: Duration,
    pub(crate) peak_memory_bytes: usize,
}

impl End {
    fn new(config: MessageConfig, role: Role, script: Script, seed: u64) -> Self {
        let starts = script.starts;
        Self {
            layer: MessageLayer::new(config, role, seed, starts),
            script,
            stream: (seed % PERIOD as u64) as usize,
            written: 0,
            read: 0,
            ended: false,
            write_at: starts,
            read_at: starts,
            outcome: None,
            outcome_at: Duration::ZERO,
            peak_memory_bytes: 0,
        }
    }

    fn is_alive(&self) -> bool {
        !matches!(self.layer.state(), LayerState::Drained | LayerState::Failed(_))
    }

    /// Lets the application do what it wants to do now.
    fn act(&mut self, now: Duration, peer_stream: usize, pattern: &[u8]) {
        self.ended |= self.layer.state() != LayerState::Open;
        if now >= self.write_at && !self.ended {
            self.write(now, pattern);
        }
        if now >= self.read_at && self.outcome.is_none() {
            self.take(now, peer_stream, pattern);
        }
    }

    fn write(&mut self, now: Duration, pattern: &[u8]) {
        let wanted = (self.script.total - self.written).min(self.script.write.0 as u64) as usize;
        let from = (self.stream + (self.written % PERIOD as u64) as usize) % PERIOD;
        let piece = &pattern[from..from + wanted.min(PERIOD)];
        let accepted = self.layer.write(piece);
        self.written += accepted as u64;
        if self.written == self.script.total {
            match self.script.ending {
                Ending::Finish => self.layer.finish(),
                Ending::Abort => self.layer.abort(),
                Ending::Never => {}
            }
            self.ended = true;
        } else if accepted > 0 {
            // A full buffer is tried again at every event.
            self.write_at = now + self.script.write.1;
        }
    }

    fn take(&mut self, now: Duration, peer_stream: usize, pattern: &[u8]) {
        let mut piece = [0; 16_384];
        loop {
            let wanted = piece.len().min(self.script.read.0);
            match self.layer.read(&mut piece[..wanted]) {
                Read::Bytes(length) => {
                    let from = (peer_stream + (self.read % PERIOD as u64) as usize) % PERIOD;
                    assert_eq!(piece[..length], pattern[from..from + length], "wrong bytes at {}", self.read);
                    self.read += length as u64;
                    if !self.script.read.1.is_zero() {
                        self.read_at = now + self.script.read.1;
                        return;
                    }
                }
                Read::Blocked => return,
                end => {
                    (self.outcome, self.outcome_at) = (Some(end), now);
                    return;
                }
            }
        }
    }

    /// When the application acts again on its own.
    fn wakes(&self, now: Duration) -> Option<Duration> {
        let write = (!self.ended && self.write_at > now).then_some(self.write_at);
        let read = (self.outcome.is_none() && self.read_at > now).then_some(self.read_at);
        write.into_iter().chain(read).min()
    }
}

struct Datagram {
    flow: usize,
    to: usize,
    bytes: Vec<u8>,
}

impl Clone for Datagram {
    fn clone(&self) -> Self {
        Self { flow: self.flow, to: self.to, bytes: self.bytes.clone() }
    }
}

/// Connections that share a link.
pub(crate) struct World {
    pub(crate) now: Duration,
    /// Client and server of each connection.
    pub(crate) flows: Vec<[End; 2]>,
    /// From clients to servers, and back.
    links: [Link<Datagram>; 2],
    /// Whether packets that the link repeats reach the layer; the packet layer drops them.
    pub(crate) repeats: bool,
    pattern: Vec<u8>,
    pub(crate) events: u64,
    /// More events than this are a livelock.
    pub(crate) most_events: u64,
    /// Times in the queue towards the servers: sum in seconds, count.
    pub(crate) waited: (f64, u64),
    /// Packets on the way are lost from then on.
    pub(crate) cut_at: Option<Duration>,
    /// Bytes of the longest message that an end may send: client, server.
    pub(crate) limits: [usize; 2],
    /// Bytes of the longest packet that the links carry, from an instant on.
    pub(crate) mtu: Vec<(Duration, u32)>,
}

/// Bytes of the longest messages that fit into packets: of a client, of a server.
pub(crate) const LONGEST: [usize; 2] = [1344, 1376];

impl World {
    pub(crate) fn new(settings: [&Settings; 2], seed: u64) -> Self {
        let link = |direction: usize| {
            Link::new(settings[direction], seed.wrapping_mul(2) + direction as u64, 0)
                .expect("settings are valid")
        };
        let pattern = (0..3 * PERIOD)
            .map(|i| (((i % PERIOD) as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8)
            .collect();
        Self {
            now: Duration::ZERO,
            flows: vec![],
            links: [link(0), link(1)],
            repeats: false,
            pattern,
            events: 0,
            most_events: u64::MAX,
            waited: (0.0, 0),
            cut_at: None,
            limits: [1088; 2],
            mtu: vec![],
        }
    }

    /// Adds a connection: settings and scripts of client and server.
    pub(crate) fn connect(&mut self, config: [MessageConfig; 2], script: [Script; 2], seed: u64) {
        let [client, server] = config;
        let [at_client, at_server] = script;
        self.flows.push([
            End::new(client, Role::Client, at_client, seed),
            End::new(server, Role::Server, at_server, seed.wrapping_mul(31) + 7),
        ]);
    }

    /// Runs until an instant, or until nothing happens any more. Returns whether anything is left to happen.
    pub(crate) fn run_until(&mut self, stop: Duration) -> bool {
        loop {
            self.settle();
            let Some(next) = self.next() else { return false };
            if next > stop {
                self.now = stop;
                return true;
            }
            self.now = next.max(self.now);
            self.events += 1;
            assert!(self.events <= self.most_events, "a livelock at {next:?}: {} events", self.events);
            self.deliver();
            let now = self.now;
            for end in self.flows.iter_mut().flatten() {
                if end.layer.next_deadline().is_some_and(|due| due <= now) {
                    end.layer.handle_timeout(now);
                }
            }
        }
    }

    fn next(&self) -> Option<Duration> {
        let links = self.links.iter().filter_map(Link::next_ns).map(|ns| Duration::from_nanos(ns as u64));
        let ends = self.flows.iter().flatten().filter(|end| end.is_alive());
        let layers = ends.flat_map(|end| [end.layer.next_deadline(), end.wakes(self.now)]).flatten();
        let readers =
            self.flows.iter().flatten().filter(|end| !end.is_alive()).filter_map(|end| end.wakes(self.now));
        links.chain(layers).chain(readers).min()
    }

    fn deliver(&mut self) {
        let now_ns = self.now.as_nanos() as i64;
        let cut = self.cut_at.is_some_and(|at| self.now >= at);
        for (direction, link) in self.links.iter_mut().enumerate() {
            while let Some(delivery) = link.poll(now_ns) {
                if direction == 0 {
                    self.waited = (self.waited.0 + delivery.waited_ns as f64 / 1e9, self.waited.1 + 1);
                }
                let datagram = delivery.packet.item;
                if delivery.wrong_bit.is_some() || cut {
                    continue;
                }
                let copies = if self.repeats { delivery.copies } else { 1 };
                let end = &mut self.flows[datagram.flow][datagram.to];
                for _ in 0..copies {
                    if self.now >= end.script.starts {
                        end.layer.handle(self.now, &datagram.bytes);
                    }
                }
            }
        }
    }

    /// Lets applications act and layers send until both are done for now.
    fn settle(&mut self) {
        let (now, now_ns) = (self.now, self.now.as_nanos() as i64);
        let carries = self.mtu.iter().rev().find(|(from, _)| *from <= now).map_or(u32::MAX, |(_, mtu)| *mtu);
        for (index, flow) in self.flows.iter_mut().enumerate() {
            let streams = [flow[1].stream, flow[0].stream];
            for (side, end) in flow.iter_mut().enumerate() {
                if now < end.script.starts {
                    continue;
                }
                end.act(now, streams[side], &self.pattern);
                let (mut out, limit) = ([0; 1376], self.limits[side]);
                while let Some(length) = end.layer.poll_transmit(now, limit, &mut out) {
                    assert!(length <= limit && ([192, 320, 576].contains(&length) || length >= 1088));
                    assert!(length.is_multiple_of(32), "{length}");
                    let item = Datagram { flow: index, to: 1 - side, bytes: out[..length].to_vec() };
                    let bytes = (length + OVERHEAD_BYTES[side]) as u32;
                    let packet = Packet { bytes, flow: index as u64, ecn: Ecn::NotCapable, item };
                    if packet.bytes <= carries {
                        self.links[side].offer(now_ns, packet);
                    }
                    self.events += 1;
                    assert!(
                        self.events <= self.most_events,
                        "a livelock of sending: {:?}",
                        end.layer.stats()
                    );
                }
                end.peak_memory_bytes = end.peak_memory_bytes.max(end.layer.memory_bytes());
            }
        }
    }
}
