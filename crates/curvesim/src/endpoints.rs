//! Whole endpoints over a modelled link, in virtual time: handshakes, encryption, addresses that change, an attacker.
//!
//! One server has all connections; they share one link in each direction. Applications act on an endpoint's events only, as drivers do,
//! so an event that is missing stops a stream.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use curvecp::{
    ClientConfig, DomainName, Endpoint, Event, Extension, MessageConfig, SecretKey, ServerConfig,
    TransmitBuffer,
};
use kendall_linkmodel::{Ecn, Link, Packet, Settings};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::application::Application;
use crate::draw::Draw;
use crate::script::{Pattern, Script};

/// Headers of UDP and IPv4.
const HEADERS: usize = 28;
/// Datagrams that the attacker keeps.
const RECORDED: usize = 64;
/// The server's name, and its address.
const NAME: &str = "machine.example";
const SERVER: SocketAddr = address(0);

const fn address(host: u8) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, host)), 4000)
}

fn secret(number: u8) -> SecretKey {
    SecretKey::from_bytes([number; 32])
}

#[derive(Clone, Debug, Hash)]
struct Datagram {
    from: SocketAddr,
    to: SocketAddr,
    bytes: Vec<u8>,
}

/// What happens to the network and its nodes beyond what the links do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    /// Packets on the way are lost from then on.
    pub(crate) cut_at: Option<Duration>,
    /// Packets that arrive from the first instant until the second are lost.
    pub(crate) outage: Option<[Duration; 2]>,
    /// A client has a new address from then on, and knows of it or does not.
    pub(crate) moves: Vec<Move>,
    /// An attacker repeats an old datagram with one of this many.
    pub(crate) replays_one_in: Option<u64>,
    /// Addresses of the server that answer nothing.
    pub(crate) dead_addresses: u8,
    /// Bytes of the longest packet that the links carry, from an instant on.
    pub(crate) mtu: Vec<(Duration, u32)>,
}

/// A client's change of address.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Move {
    pub(crate) at: Duration,
    /// The number of the client's endpoint.
    pub(crate) client: usize,
    pub(crate) knows: bool,
}

/// A connection to open.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The number of the client's endpoint.
    pub(crate) client: usize,
    pub(crate) config: MessageConfig,
    /// The scripts of the client and of the server.
    pub(crate) scripts: [Script; 2],
}

struct Node {
    address: SocketAddr,
    endpoint: Endpoint,
}

/// A server and its clients.
pub(crate) struct EndpointWorld {
    now: Duration,
    /// The server, then the clients' endpoints.
    nodes: Vec<Node>,
    /// Client and server of each connection.
    pub(crate) connections: Vec<[Application; 2]>,
    plans: Vec<Plan>,
    /// To the server, and to clients.
    links: [Link<Datagram>; 2],
    faults: Faults,
    moved: usize,
    attacker: Draw,
    recorded: VecDeque<Datagram>,
    pattern: Pattern,
    buffer: TransmitBuffer,
    events: u64,
    /// More events than this are a livelock.
    pub(crate) most_events: u64,
    trace: u64,
}

impl EndpointWorld {
    pub(crate) fn new(
        links: [&Settings; 2],
        server: MessageConfig,
        plans: Vec<Plan>,
        faults: Faults,
        seed: u64,
    ) -> Self {
        let link = |direction: usize| {
            Link::new(links[direction], seed.wrapping_mul(2) + direction as u64, 0)
                .expect("drawn settings are valid")
        };
        let clients = plans.iter().map(|plan| plan.client).max().unwrap_or(0) + 1;
        let name = DomainName::new(NAME).expect("a valid name");
        let mut server =
            Some(ServerConfig { message: server, ..ServerConfig::new(secret(1), Extension([9; 16]), name) });
        let nodes = (0..=clients).map(|number| Node {
            address: address(number as u8),
            endpoint: endpoint(seed.wrapping_mul(100) + number as u64, server.take()),
        });
        let application = |plan: &Plan, side: usize, index: usize| {
            Application::new(
                plan.scripts[side].clone(),
                seed.wrapping_mul(31) + 2 * index as u64 + side as u64,
            )
        };
        Self {
            now: Duration::ZERO,
            nodes: nodes.collect(),
            connections: plans
                .iter()
                .enumerate()
                .map(|(i, plan)| [0, 1].map(|side| application(plan, side, i)))
                .collect(),
            plans,
            links: [link(0), link(1)],
            faults,
            moved: 0,
            attacker: Draw(seed ^ 0xa77a),
            recorded: VecDeque::with_capacity(RECORDED),
            pattern: Pattern::new(),
            buffer: TransmitBuffer::new(64),
            events: 0,
            most_events: u64::MAX,
            trace: 0,
        }
    }

    /// A digest of all datagrams that were sent, and when.
    pub(crate) fn trace(&self) -> u64 {
        self.trace
    }

    /// Runs until all connections are over at both ends, or until an instant. Returns whether they are over.
    pub(crate) fn run_until_over(&mut self, stop: Duration) -> bool {
        // What is on the way may still open a connection that the server has not heard of.
        self.run(stop, |world| {
            let is_over = |[client, server]: &[Application; 2]| {
                client.is_over() && (server.is_over() || !server.is_open())
            };
            world.links.iter().all(|link| link.next_ns().is_none()) && world.connections.iter().all(is_over)
        })
    }

    /// Lets time pass after the end. Returns how many datagrams were sent.
    pub(crate) fn run_after_the_end(&mut self, time: Duration) -> u64 {
        let (sent, stop) =
            (self.links.iter().map(|link| link.counters().offered).sum::<u64>(), self.now + time);
        self.run(stop, |_| false);
        self.links.iter().map(|link| link.counters().offered).sum::<u64>() - sent
    }

    fn run(&mut self, stop: Duration, is_over: impl Fn(&Self) -> bool) -> bool {
        loop {
            self.settle();
            if is_over(self) {
                return true;
            }
            let Some(next) = self.next().filter(|next| *next <= stop) else {
                self.now = stop;
                return false;
            };
            self.now = next.max(self.now);
            self.count();
            self.move_clients();
            self.deliver();
            for node in &mut self.nodes {
                if node.endpoint.next_deadline().is_some_and(|due| due <= self.now) {
                    node.endpoint.handle_timeout(self.now);
                }
            }
        }
    }

    fn count(&mut self) {
        self.events += 1;
        assert!(self.events <= self.most_events, "a livelock at {:?}: {} events", self.now, self.events);
    }

    fn next(&self) -> Option<Duration> {
        let links = self.links.iter().filter_map(Link::next_ns).map(|ns| Duration::from_nanos(ns as u64));
        let nodes = self.nodes.iter().filter_map(|node| node.endpoint.next_deadline());
        let applications =
            self.connections.iter().flatten().filter_map(|application| application.wakes(self.now));
        let moves = self.faults.moves.get(self.moved).map(|next| next.at);
        links.chain(nodes).chain(applications).chain(moves).min()
    }

    fn move_clients(&mut self) {
        while let Some(&Move { at, client, knows }) = self.faults.moves.get(self.moved)
            && at <= self.now
        {
            self.moved += 1;
            let node = &mut self.nodes[1 + client];
            node.address = address(100 + self.moved as u8);
            if knows {
                node.endpoint.rebound();
            }
        }
    }

    fn deliver(&mut self) {
        let (now, now_ns) = (self.now, self.now.as_nanos() as i64);
        let is_lost = self.faults.cut_at.is_some_and(|at| now >= at)
            || self.faults.outage.is_some_and(|[from, until]| (from..until).contains(&now));
        for link in &mut self.links {
            while let Some(delivery) = link.poll(now_ns) {
                let Datagram { from, to, mut bytes } = delivery.packet.item;
                let Some(node) = self.nodes.iter_mut().find(|node| node.address == to && !is_lost) else {
                    continue;
                };
                if let Some(bit) = delivery.wrong_bit {
                    // A checksum protects the headers; the rest arrives as if its checksum happened to be right.
                    let Some(bit) = (bit as usize).checked_sub(8 * HEADERS) else { continue };
                    bytes[bit / 8] ^= 1 << (bit % 8);
                }
                for _ in 0..delivery.copies {
                    node.endpoint.handle_datagram(now, from, &mut bytes.clone());
                }
            }
        }
    }

    /// Lets applications act and endpoints send until all are done for now.
    fn settle(&mut self) {
        loop {
            self.open();
            let mut is_done = true;
            for number in 0..self.nodes.len() {
                is_done &= !self.transmit(number);
                while let Some(event) = self.nodes[number].endpoint.poll_event() {
                    is_done = false;
                    self.count();
                    self.report(number, event);
                }
            }
            for (plan, [client, server]) in self.plans.iter().zip(&mut self.connections) {
                let streams = [server.stream, client.stream];
                let [of_server, of_client] = [0, 1 + plan.client];
                is_done &=
                    !client.act(self.now, &mut self.nodes[of_client].endpoint, streams[0], &self.pattern);
                is_done &=
                    !server.act(self.now, &mut self.nodes[of_server].endpoint, streams[1], &self.pattern);
            }
            if is_done {
                return;
            }
        }
    }

    /// Opens the connections whose time has come.
    fn open(&mut self) {
        for (index, plan) in self.plans.iter().enumerate() {
            let application = &mut self.connections[index][0];
            if application.is_open() || self.now < plan.scripts[0].starts {
                continue;
            }
            let dead = (0..self.faults.dead_addresses).map(|number| address(200 + number));
            let config = ClientConfig {
                identity: secret(10 + index as u8),
                server: secret(1).public_key(),
                server_extension: Extension([9; 16]),
                name: DomainName::new(NAME).expect("a valid name"),
                addresses: dead.chain([SERVER]).collect(),
                extension: None,
                capabilities: [0; 12],
                message: plan.config.clone(),
            };
            let id = self.nodes[1 + plan.client]
                .endpoint
                .connect(self.now, config)
                .expect("a valid configuration");
            application.open(self.now, id);
        }
    }

    /// Hands an event to the application that it is for.
    fn report(&mut self, number: usize, event: Event) {
        if let Event::NewConnection { id, client, .. } = event {
            let index = (0..self.plans.len()).find(|index| secret(10 + *index as u8).public_key() == client);
            let [_, server] = &mut self.connections[index.expect("the client is one of ours")];
            assert!(!server.is_open(), "a client's connection was opened twice");
            return server.open(self.now, id);
        }
        let side = usize::from(number == 0);
        let of_node = |(plan, _): &(&Plan, _)| number == 0 || number == 1 + plan.client;
        let mut applications =
            self.plans.iter().zip(&mut self.connections).filter(of_node).map(|(_, pair)| &mut pair[side]);
        match event {
            Event::Connected(id)
            | Event::Readable(id)
            | Event::Writable(id)
            | Event::Moved(id, _)
            | Event::Closed(id, _) => {
                let application = applications.find(|application| application.id == Some(id));
                application.expect("an event of an open connection").take(&event);
            }
            Event::NewConnection { .. } => unreachable!("handled above"),
        }
    }

    /// Puts what an endpoint wants to send on the link; false where that is nothing.
    fn transmit(&mut self, number: usize) -> bool {
        let node = &mut self.nodes[number];
        if !node.endpoint.poll_transmit(self.now, &mut self.buffer) {
            return false;
        }
        let from = node.address;
        let datagrams: Vec<Datagram> = self
            .buffer
            .transmits()
            .flat_map(|transmit| {
                let to = transmit.destination;
                transmit.bytes.chunks(transmit.segment).map(move |bytes| Datagram {
                    from,
                    to,
                    bytes: bytes.to_vec(),
                })
            })
            .collect();
        for datagram in datagrams {
            self.count();
            self.digest(&datagram);
            self.replay();
            if self.recorded.len() == RECORDED {
                self.recorded.pop_front();
            }
            self.recorded.push_back(datagram.clone());
            self.offer(datagram);
        }
        true
    }

    fn offer(&mut self, datagram: Datagram) {
        let bytes = (datagram.bytes.len() + HEADERS) as u32;
        let carries = self
            .faults
            .mtu
            .iter()
            .rev()
            .find(|(from, _)| *from <= self.now)
            .map_or(u32::MAX, |(_, mtu)| *mtu);
        if bytes <= carries {
            let direction = usize::from(datagram.from == SERVER);
            let packet = Packet { bytes, flow: direction as u64, ecn: Ecn::NotCapable, item: datagram };
            self.links[direction].offer(self.now.as_nanos() as i64, packet);
        }
    }

    /// The attacker sends a datagram again that it has recorded, perhaps from another address.
    fn replay(&mut self) {
        let Some(one_in) = self.faults.replays_one_in else { return };
        if self.recorded.is_empty() || !self.attacker.one_in(one_in) {
            return;
        }
        let mut datagram = self.recorded[self.attacker.below(self.recorded.len() as u64) as usize].clone();
        if self.attacker.one_in(2) {
            datagram.from = address(250);
        }
        self.offer(datagram);
    }

    fn digest(&mut self, datagram: &Datagram) {
        let fold = |state: u64, byte: u8| (state ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        let state = self.now.as_nanos().to_le_bytes().into_iter().fold(self.trace, fold);
        self.trace = datagram.bytes.iter().copied().fold(state, fold);
    }
}

fn endpoint(seed: u64, server: Option<ServerConfig>) -> Endpoint {
    let mut nonces = StdRng::seed_from_u64(!seed);
    let nonces = Box::new(move || {
        let mut nonce = [0; 16];
        nonces.fill_bytes(&mut nonce);
        nonce
    });
    Endpoint::new(Duration::ZERO, server, Box::new(StdRng::seed_from_u64(seed)), nonces)
}
