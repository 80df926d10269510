//! Whole endpoints, a server and two clients, over a network that the input rules: what arrives, when, how often and
//! where from, what is forged, and what the applications do.

use super::recorded;
use crate::net::{Datagram, EXTENSION, address, client_config, endpoint as new_endpoint, server_config};
use curvecp::{ClientConfig, ConnectionId, Endpoint, Event, Extension, MessageConfig, Read, TransmitBuffer};
use kendall_testbed::fuzz::Script;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Datagrams on their way, at most.
const ON_THE_WAY: usize = 256;
/// An address from which only forged packets come.
const FORGER: u8 = 99;

/// One direction of a connection: what was written is a pattern of this length, of which this much was read.
#[derive(Clone, Copy, Debug, Default)]
struct Flow {
    written: u64,
    read: u64,
}

struct World {
    now: Duration,
    /// The server and two clients.
    nodes: Vec<(SocketAddr, Endpoint)>,
    on_the_way: Vec<Datagram>,
    /// Connections by node.
    connections: [Vec<ConnectionId>; 3],
    /// By node and connection.
    flows: HashMap<(usize, ConnectionId), Flow>,
    buffer: TransmitBuffer,
    /// Bytes from and to the forger.
    forged: usize,
    to_forger: usize,
}

fn pattern(position: u64) -> u8 {
    (position.wrapping_mul(0x9E37_79B9) >> 13) as u8
}

fn message_config() -> MessageConfig {
    MessageConfig { max_receive_window: 1 << 17, max_send_buffer: 1 << 17, ..MessageConfig::default() }
}

impl World {
    fn new() -> Self {
        let mut config = server_config();
        (config.message, config.max_connections) = (message_config(), 3);
        let server = (address(0), new_endpoint(1, Some(config)));
        let clients = (1..3).map(|i| (address(i), new_endpoint(i.into(), None)));
        Self {
            now: Duration::ZERO,
            nodes: [server].into_iter().chain(clients).collect(),
            on_the_way: vec![],
            connections: Default::default(),
            flows: HashMap::new(),
            buffer: TransmitBuffer::new(64),
            forged: 0,
            to_forger: 0,
        }
    }

    fn transmit(&mut self) {
        for (node, (from, endpoint)) in self.nodes.iter_mut().enumerate() {
            let mut rounds = 0;
            while endpoint.poll_transmit(self.now, &mut self.buffer) {
                rounds += 1;
                assert!(rounds < 200, "the endpoint sends for ever");
                for transmit in self.buffer.transmits() {
                    for bytes in transmit.datagrams() {
                        if transmit.destination == address(FORGER) {
                            self.to_forger += bytes.len();
                        } else if self.on_the_way.len() < ON_THE_WAY {
                            let (from, to) = (*from, transmit.destination);
                            self.on_the_way.push(Datagram { from, to, bytes: bytes.to_vec() });
                        }
                    }
                }
            }
            while let Some(event) = endpoint.poll_event() {
                if let Event::NewConnection { id, .. } = event {
                    self.connections[node].push(id);
                }
            }
        }
        assert!(self.to_forger <= 3 * self.forged, "{} bytes for {}", self.to_forger, self.forged);
    }

    fn deliver(&mut self, datagram: &Datagram) {
        if let Some((_, endpoint)) = self.nodes.iter_mut().find(|(address, _)| *address == datagram.to) {
            endpoint.handle_datagram(self.now, datagram.from, &mut datagram.bytes.clone());
        }
    }

    /// The application of a node does something with one of its connections.
    fn act(&mut self, node: usize, chosen: u64, action: u64, length: usize) {
        let Some(&id) = self.connections[node].get(chosen as usize % self.connections[node].len().max(1))
        else {
            return;
        };
        let endpoint = &mut self.nodes[node].1;
        let flow = self.flows.entry((node, id)).or_default();
        match action {
            0 | 1 => {
                let piece: Vec<u8> = (flow.written..flow.written + length as u64).map(pattern).collect();
                flow.written += endpoint.write(id, &piece).unwrap_or(0) as u64;
            }
            2 | 3 => {
                let mut piece = vec![0; length + 1];
                if let Ok(Read::Bytes(length)) = endpoint.read(id, &mut piece) {
                    let expected = (flow.read..flow.read + length as u64).map(pattern);
                    assert!(piece[..length].iter().copied().eq(expected), "wrong bytes at {}", flow.read);
                    flow.read += length as u64;
                }
            }
            4 => _ = endpoint.finish(id),
            5 => _ = endpoint.abort(id),
            6 => _ = endpoint.stop_reading(id),
            _ => {
                _ = endpoint.forget(id);
                self.connections[node].retain(|one| *one != id);
            }
        }
    }

    /// A client opens a connection.
    fn connect(&mut self, node: usize) {
        if self.connections[node].len() < 3 {
            let addresses = vec![address(0), address(50)];
            let config = ClientConfig { addresses, message: message_config(), ..client_config() };
            self.connections[node].extend(self.nodes[node].1.connect(self.now, config));
        }
    }

    /// Time passes, up to the next deadline.
    fn wait(&mut self, most: Duration) {
        let deadlines = self.nodes.iter().filter_map(|(_, endpoint)| endpoint.next_deadline());
        let until = self.now + most;
        self.now = deadlines.min().map_or(until, |deadline| deadline.clamp(self.now, until));
        self.nodes.iter_mut().for_each(|(_, endpoint)| endpoint.handle_timeout(self.now));
    }
}

pub(super) fn endpoint(input: &[u8]) {
    let (mut world, mut script) = (World::new(), Script(input));
    world.connect(1);
    world.transmit();
    while let Some(step) = script.byte() {
        let choose = |script: &mut Script<'_>, world: &World| {
            (script.number(1) as usize).checked_rem(world.on_the_way.len())
        };
        match step % 12 {
            0..=2 => {
                for datagram in std::mem::take(&mut world.on_the_way) {
                    world.deliver(&datagram);
                    world.transmit();
                }
            }
            3 => {
                if let Some(chosen) = choose(&mut script, &world) {
                    let datagram = world.on_the_way.swap_remove(chosen);
                    world.deliver(&datagram);
                }
            }
            4 => {
                if let Some(chosen) = choose(&mut script, &world) {
                    let copy = world.on_the_way[chosen].clone();
                    world.deliver(&copy);
                }
            }
            5 => {
                if let Some(chosen) = choose(&mut script, &world) {
                    world.on_the_way.swap_remove(chosen);
                }
            }
            6 => {
                // Forged: a packet that is on its way, with some bytes changed, from another address.
                if let Some(chosen) = choose(&mut script, &world) {
                    let mut forged = world.on_the_way[chosen].clone();
                    let (at, with) = (script.number(2) as usize, script.number(1) as u8);
                    let at = at % forged.bytes.len();
                    forged.bytes[at] ^= with;
                    forged.from = address(FORGER);
                    world.forged += forged.bytes.len();
                    world.deliver(&forged);
                }
            }
            7 => {
                let length = script.number(2) as usize % 1300;
                let bytes = script.bytes(length).to_vec();
                world.forged += bytes.len();
                let to = address(script.number(1) as u8 % 3);
                world.deliver(&Datagram { from: address(FORGER), to, bytes });
            }
            8 => world.wait(Duration::from_micros(script.number(3) * 8)),
            9 => {
                // A client moves.
                let node = 1 + script.number(1) as usize % 2;
                world.nodes[node].0 = address(10 + script.number(1) as u8 % 40);
                world.nodes[node].1.rebound();
            }
            10 => world.connect(1 + script.number(1) as usize % 2),
            _ => {
                let (node, chosen) = (script.number(1) as usize % 3, script.number(1));
                let (action, length) = (script.number(1) % 8, script.number(2) as usize % 20_000);
                world.act(node, chosen, action, length);
            }
        }
        world.transmit();
    }
}

pub(super) fn seeds() -> Vec<Vec<u8>> {
    let write = |node: u8| [11, node, 0, 0, 0, 8];
    let read = |node: u8| [11, node, 0, 2, 255, 15];
    let end = |node: u8, action: u8| [11, node, 0, action, 0, 0];
    let wait = [8, 0, 64, 0];
    let whole = [
        &[0][..],
        &write(1),
        &[0, 0],
        &wait,
        &read(0),
        &write(0),
        &[0, 0],
        &wait,
        &read(1),
        &end(1, 4),
        &end(0, 4),
        &[0],
        &wait,
        &[0, 0],
        &wait,
    ]
    .concat();
    let moved =
        [&[0][..], &write(1), &[9, 0, 3, 0, 0], &wait, &write(0), &[6, 0, 80, 0, 1, 0, 0], &read(1)].concat();
    let mut hello = recorded("hello");
    hello[8..24].copy_from_slice(&EXTENSION.0);
    let forged = [&[7, hello.len() as u8, 0][..], &hello, &[0]].concat();
    _ = Extension::default();
    vec![whole, moved, forged, [&[10, 1, 10, 0, 0, 0, 0][..], &end(1, 7), &end(0, 5), &[0, 0]].concat()]
}
