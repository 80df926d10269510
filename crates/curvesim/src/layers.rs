//! Connections of two message layers over a modelled link, in virtual time.
//!
//! Each connection has an application at both ends that writes, reads, pauses, finishes or aborts as its script says. All
//! connections share one link in each direction.

use std::time::Duration;

use curvecp::{LayerState, MessageConfig, MessageLayer, Read, Role};
use kendall_linkmodel::{Ecn, Link, Packet, Settings};

use crate::script::{Ending, Pattern, Script};

/// Headers of UDP and IPv4, and of a packet around a message: from client to server, from server to client.
const OVERHEAD_BYTES: [usize; 2] = [28 + 96, 28 + 64];

/// One end of a connection.
#[derive(Debug)]
pub struct LayerEnd {
    /// The message layer of this end.
    pub layer: MessageLayer,
    script: Script,
    stream: u64,
    /// Bytes that the application has written.
    pub written: u64,
    /// Bytes that it has read, all of them as its peer wrote them.
    pub read: u64,
    ended: bool,
    write_at: Duration,
    read_at: Duration,
    /// How the peer's stream ended.
    pub outcome: Option<Read>,
    /// The instant at which the end closed.
    pub outcome_at: Duration,
    /// The most bytes that the buffers of the layer took.
    pub peak_memory_bytes: usize,
}

impl LayerEnd {
    fn new(config: MessageConfig, role: Role, script: Script, seed: u64) -> Self {
        let starts = script.starts;
        Self {
            layer: MessageLayer::new(config, role, seed, starts),
            script,
            stream: seed,
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
    fn act(&mut self, now: Duration, peer_stream: u64, pattern: &Pattern) {
        self.ended |= self.layer.state() != LayerState::Open;
        if now >= self.write_at && !self.ended {
            self.write(now, pattern);
        }
        if now >= self.read_at && self.outcome.is_none() {
            self.take(now, peer_stream, pattern);
        }
    }

    fn write(&mut self, now: Duration, pattern: &Pattern) {
        let wanted = (self.script.total - self.written).min(self.script.write.0 as u64);
        let accepted = self.layer.write(pattern.bytes(self.stream, self.written, wanted));
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

    fn take(&mut self, now: Duration, peer_stream: u64, pattern: &Pattern) {
        let mut piece = [0; 16_384];
        loop {
            let wanted = piece.len().min(self.script.read.0);
            match self.layer.read(&mut piece[..wanted]) {
                Read::Bytes(length) => {
                    let expected = pattern.bytes(peer_stream, self.read, length as u64);
                    assert_eq!(&piece[..length], expected, "wrong bytes at {}", self.read);
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

#[derive(Debug)]
struct Datagram {
    flow: usize,
    to: usize,
    bytes: Vec<u8>,
}

/// Connections that share a link.
#[derive(Debug)]
pub struct LayerWorld {
    /// Virtual time.
    pub now: Duration,
    /// Client and server of each connection.
    pub flows: Vec<[LayerEnd; 2]>,
    /// From clients to servers, and back.
    links: [Link<Datagram>; 2],
    /// Whether packets that the link repeats reach the layer; the packet layer drops them.
    pub repeats: bool,
    pattern: Pattern,
    /// Steps and messages.
    pub events: u64,
    /// More events than this are a livelock.
    pub most_events: u64,
    /// Times in the queue towards the servers: sum in seconds, count.
    pub waited: (f64, u64),
    /// Packets on the way are lost from then on.
    pub cut_at: Option<Duration>,
    /// Bytes of the longest message that an end may send: client, server.
    pub limits: [usize; 2],
    /// Bytes of the longest packet that the links carry, from an instant on.
    pub mtu: Vec<(Duration, u32)>,
}

/// Bytes of the longest messages that fit into packets: of a client, of a server.
pub const LONGEST: [usize; 2] = [1344, 1376];

impl LayerWorld {
    /// Links without connections: towards servers, towards clients.
    ///
    /// # Panics
    /// Where the settings contradict each other.
    pub fn new(settings: [&Settings; 2], seed: u64) -> Self {
        let link = |direction: usize| {
            Link::new(settings[direction], seed.wrapping_mul(2) + direction as u64, 0)
                .expect("settings are valid")
        };
        Self {
            now: Duration::ZERO,
            flows: vec![],
            links: [link(0), link(1)],
            repeats: false,
            pattern: Pattern::new(),
            events: 0,
            most_events: u64::MAX,
            waited: (0.0, 0),
            cut_at: None,
            limits: [1088; 2],
            mtu: vec![],
        }
    }

    /// Adds a connection: settings and scripts of client and server.
    pub fn connect(&mut self, config: [MessageConfig; 2], script: [Script; 2], seed: u64) {
        let [client, server] = config;
        let [at_client, at_server] = script;
        self.flows.push([
            LayerEnd::new(client, Role::Client, at_client, seed),
            LayerEnd::new(server, Role::Server, at_server, seed.wrapping_mul(31) + 7),
        ]);
    }

    /// Runs until an instant, or until nothing happens any more. Returns whether anything is left to happen.
    ///
    /// # Panics
    /// Where a stream brings wrong bytes, a message has a length that none may have, or a livelock is found.
    pub fn run_until(&mut self, stop: Duration) -> bool {
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
