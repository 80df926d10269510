//! Endpoints in virtual time: a network that delivers datagrams after a delay, records them all, and can lose any.

#![allow(dead_code, unreachable_pub, reason = "each test file uses a part")]

pub mod attacker;

use curvecp::{
    ClientConfig, ConnectionId, DomainName, Endpoint, Event, Extension, Read, SecretKey, ServerConfig,
    TransmitBuffer,
};
use rand::{Rng, SeedableRng, rngs::StdRng};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

pub const DELAY: Duration = Duration::from_millis(10);
pub const EXTENSION: Extension = Extension(*b"server extension");
pub const NAME: &str = "machine.example";

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    pub from: SocketAddr,
    pub to: SocketAddr,
    pub bytes: Vec<u8>,
}

pub struct Node {
    pub address: SocketAddr,
    pub endpoint: Endpoint,
    pub events: Vec<Event>,
}

pub struct Net {
    pub now: Duration,
    pub nodes: Vec<Node>,
    /// Every datagram that a node sent, with the instant.
    pub log: Vec<(Duration, Datagram)>,
    pub lose: Box<dyn FnMut(&Datagram) -> bool>,
    /// The delays after which copies of a datagram arrive.
    pub delays: Box<dyn FnMut() -> Vec<Duration>>,
    on_the_way: BTreeMap<(Duration, usize), Datagram>,
    sent: usize,
    buffer: TransmitBuffer,
}

pub const SERVER: usize = 0;
pub const CLIENT: usize = 1;

pub fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], 4000 + u16::from(host)))
}

pub fn secret(seed: u8) -> SecretKey {
    SecretKey::from_bytes([seed; 32])
}

pub fn server_config() -> ServerConfig {
    ServerConfig::new(secret(1), EXTENSION, DomainName::new(NAME).unwrap())
}

pub fn client_config() -> ClientConfig {
    ClientConfig {
        identity: secret(2),
        server: secret(1).public_key(),
        server_extension: EXTENSION,
        name: DomainName::new(NAME).unwrap(),
        addresses: vec![address(0)],
        extension: None,
        capabilities: [0; 12],
        message: Default::default(),
    }
}

pub fn endpoint(seed: u64, server: Option<ServerConfig>) -> Endpoint {
    let mut nonces = StdRng::seed_from_u64(seed + 1000);
    let nonces = Box::new(move || {
        let mut nonce = [0; 16];
        nonces.fill_bytes(&mut nonce);
        nonce
    });
    Endpoint::new(Duration::ZERO, server, Box::new(StdRng::seed_from_u64(seed)), nonces)
}

impl Net {
    /// A server at `address(0)` and this many client endpoints at the addresses after it.
    pub fn new(server: ServerConfig, clients: u8) -> Self {
        let nodes = (0..=clients).map(|i| {
            let server = (i == 0).then_some(()).map(|()| i);
            (i, server)
        });
        let mut config = Some(server);
        let nodes = nodes
            .map(|(i, server)| Node {
                address: address(i),
                endpoint: endpoint(i.into(), server.and_then(|_| config.take())),
                events: Vec::new(),
            })
            .collect();
        Self {
            now: Duration::ZERO,
            nodes,
            log: Vec::new(),
            lose: Box::new(|_| false),
            delays: Box::new(|| vec![DELAY]),
            on_the_way: BTreeMap::new(),
            sent: 0,
            buffer: TransmitBuffer::new(100),
        }
    }

    /// A connected pair and the connection at both: the client's, the server's.
    pub fn connected(server: ServerConfig) -> (Self, ConnectionId, ConnectionId) {
        let mut net = Self::new(server, 1);
        let client = net.nodes[CLIENT].endpoint.connect(Duration::ZERO, client_config()).unwrap();
        net.run(Duration::from_millis(500));
        assert!(net.nodes[CLIENT].events.contains(&Event::Connected(client)));
        let server = net.new_connections();
        (net, client, server[0])
    }

    pub fn new_connections(&self) -> Vec<ConnectionId> {
        let new = |event: &Event| if let Event::NewConnection { id, .. } = event { Some(*id) } else { None };
        self.nodes[SERVER].events.iter().filter_map(new).collect()
    }

    /// Lets virtual time pass.
    pub fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.transmit();
            let arrival = self.on_the_way.keys().next().map(|(at, _)| *at);
            let deadlines = self.nodes.iter().filter_map(|node| node.endpoint.next_deadline());
            match arrival.into_iter().chain(deadlines).min() {
                Some(next) if next <= end => self.now = self.now.max(next),
                _ => break,
            }
            while let Some(entry) = self.on_the_way.first_entry().filter(|entry| entry.key().0 <= self.now) {
                let datagram = entry.remove();
                self.deliver(datagram);
            }
            self.nodes.iter_mut().for_each(|node| node.endpoint.handle_timeout(self.now));
        }
        self.now = end;
    }

    /// Hands a datagram over at once.
    pub fn deliver(&mut self, mut datagram: Datagram) {
        if let Some(node) = self.nodes.iter_mut().find(|node| node.address == datagram.to) {
            node.endpoint.handle_datagram(self.now, datagram.from, &mut datagram.bytes);
        }
    }

    /// Takes what the nodes want to send; returns the bytes per receiver.
    pub fn transmit(&mut self) {
        for node in &mut self.nodes {
            while node.endpoint.poll_transmit(self.now, &mut self.buffer) {
                for transmit in self.buffer.transmits() {
                    for bytes in transmit.datagrams() {
                        let datagram =
                            Datagram { from: node.address, to: transmit.destination, bytes: bytes.to_vec() };
                        self.log.push((self.now, datagram.clone()));
                        if (self.lose)(&datagram) {
                            continue;
                        }
                        for delay in (self.delays)() {
                            self.on_the_way.insert((self.now + delay, self.sent), datagram.clone());
                            self.sent += 1;
                        }
                    }
                }
            }
            while let Some(event) = node.endpoint.poll_event() {
                node.events.push(event);
            }
        }
    }

    /// All datagrams that were sent from one address, in order.
    pub fn sent_by(&self, from: SocketAddr) -> Vec<Datagram> {
        self.log
            .iter()
            .map(|(_, datagram)| datagram)
            .filter(|datagram| datagram.from == from)
            .cloned()
            .collect()
    }

    /// Bytes sent to an address.
    pub fn bytes_to(&self, to: SocketAddr) -> usize {
        self.log
            .iter()
            .filter(|(_, datagram)| datagram.to == to)
            .map(|(_, datagram)| datagram.bytes.len())
            .sum()
    }

    pub fn write(&mut self, node: usize, id: ConnectionId, bytes: &[u8]) {
        assert_eq!(self.nodes[node].endpoint.write(id, bytes).unwrap(), bytes.len());
    }

    /// All that can be read now.
    pub fn read(&mut self, node: usize, id: ConnectionId) -> Vec<u8> {
        let (mut all, mut part) = (Vec::new(), [0; 4096]);
        while let Read::Bytes(n) = self.nodes[node].endpoint.read(id, &mut part).unwrap() {
            all.extend_from_slice(&part[..n]);
        }
        all
    }

    /// Sends bytes to the other end, where they must arrive within a virtual minute.
    pub fn send(&mut self, from: usize, from_id: ConnectionId, to: usize, to_id: ConnectionId, bytes: &[u8]) {
        let (mut sent, mut arrived, end) = (0, Vec::new(), self.now + Duration::from_secs(60));
        while arrived.len() < bytes.len() && self.now < end {
            sent += self.nodes[from].endpoint.write(from_id, &bytes[sent..]).unwrap();
            self.run(Duration::from_millis(5));
            arrived.extend(self.read(to, to_id));
        }
        assert!(arrived == bytes, "{} of {} bytes arrived", arrived.len(), bytes.len());
    }

    /// Shows that data passes both ways.
    pub fn exchange(&mut self, client: ConnectionId, server: ConnectionId) {
        self.write(CLIENT, client, b"question");
        self.run(Duration::from_secs(2));
        assert_eq!(self.read(SERVER, server), b"question");
        self.write(SERVER, server, b"answer");
        self.run(Duration::from_secs(2));
        assert_eq!(self.read(CLIENT, client), b"answer");
    }
}
