//! A program for the kernel that thins out, at the socket, the packets of a flood: those that belong to no connection.
//!
//! It is classic BPF (Linux, Documentation/networking/filter.rst): it returns how many bytes of a packet to keep, and 0 drops
//! it before it takes space in the socket's buffer and wakes this process. Its data begin with the UDP header, so the packet is at
//! offset 8. Initiates, Messages and Cookies always pass. Hellos pass at random, and so does what is not a packet.
//!
//! With UDP_GRO the kernel runs it on datagrams of one length from one address that it has joined, before it takes them apart.
//! A packet of a connection may follow Hellos, so joined datagrams pass if there is one at any multiple of a Hello's length. A read
//! beyond the end drops: that is how this search ends. The kernel joins 64 at most. Only a sender that forges a client's address, port
//! and packet lengths can have a packet of a connection dropped, behind forged ones of another length than a Hello's.

use curvecp::Network;
use curvecp::packet::HELLO;
use socket2::SockFilter;

use crate::flood::Thinning;

/// Bytes of a UDP header.
const UDP: u32 = 8;
/// Datagrams that the kernel joins, at most (UDP_GRO_CNT_MAX).
const JOINED: u32 = 64;
/// The second halves of the magics of packets that belong to connections: Initiate, client Message, Cookie, server Message.
const OF_CONNECTIONS: [&[u8; 4]; 4] = [b"5XlI", b"5XlM", b"NMXK", b"NMXM"];

/// Offsets that the kernel gives a meaning: a random number, and the header of the network layer (linux/filter.h).
const RANDOM: u32 = -0x1000_i32 as u32 + 56;
const NETWORK_HEADER: u32 = -0x10_0000_i32 as u32;
/// Keeps all bytes of a packet.
const ALL: u32 = u32::MAX;

/// Operations (linux/bpf_common.h): on the accumulator, except that `TO_INDEX` copies it to the index register.
const LOAD_WORD: u16 = 0x20;
const LOAD_BYTE: u16 = 0x30;
const LOAD_CONSTANT: u16 = 0x00;
const AND: u16 = 0x54;
const TO_INDEX: u16 = 0x07;
const JUMP: u16 = 0x05;
const IF_EQUAL: u16 = 0x15;
const IF_COMMON_BITS_WITH_INDEX: u16 = 0x4d;
const RETURN: u16 = 0x06;

/// A program under construction.
#[derive(Default)]
struct Program {
    steps: Vec<SockFilter>,
    /// Jumps to the decision, whose place is not known yet.
    to_decision: Vec<usize>,
}

/// The program that thins out packets.
pub(crate) fn program(thinning: &Thinning) -> Vec<SockFilter> {
    let mut program = Program::default();
    program.pass_connections_at(UDP);
    program.choose_mask(thinning);
    // A packet passes if the random number has none of the bits of the mask.
    program.step(TO_INDEX, 0);
    program.step(LOAD_WORD, RANDOM);
    program.branch(IF_COMMON_BITS_WITH_INDEX, 0, 1, 0);
    program.step(RETURN, ALL);
    for place in 1..JOINED {
        program.pass_connections_at(UDP + place * HELLO as u32);
    }
    program.step(RETURN, 0);
    program.steps
}

impl Program {
    fn step(&mut self, operation: u16, operand: u32) {
        self.branch(operation, operand, 0, 0);
    }

    /// A step that skips the given numbers of steps, if its condition holds and if it does not.
    fn branch(&mut self, operation: u16, operand: u32, then: u8, otherwise: u8) {
        self.steps.push(SockFilter::new(operation, then, otherwise, operand));
    }

    /// Keeps what has the magic of a packet of a connection at this offset.
    fn pass_connections_at(&mut self, offset: u32) {
        self.step(LOAD_WORD, offset + 4);
        for (i, magic) in OF_CONNECTIONS.iter().enumerate() {
            let to_return = OF_CONNECTIONS.len() - 1 - i;
            let otherwise = u8::from(to_return == 0);
            self.branch(IF_EQUAL, u32::from_be_bytes(**magic), to_return as u8, otherwise);
        }
        self.step(RETURN, ALL);
    }

    /// Loads the mask of the packet's network. At a socket of IPv6 a packet may be of IPv4.
    fn choose_mask(&mut self, thinning: &Thinning) {
        self.step(LOAD_BYTE, NETWORK_HEADER);
        self.step(AND, 0xf0);
        self.branch(IF_EQUAL, 0x40, 1, 0);
        let to_version_6 = self.steps.len();
        self.step(JUMP, 0);
        for (network, halvings) in &thinning.networks {
            if let Network::V4([a, b, c]) = *network {
                self.compare_word(NETWORK_HEADER + 12, [a, b, c, 0], 0xffff_ff00, 2);
                self.decide(*halvings);
            }
        }
        self.decide(thinning.others);
        self.steps[to_version_6] = jump(to_version_6, self.steps.len());
        for (network, halvings) in &thinning.networks {
            if let Network::V6([a, b, c, d, e, f, g]) = *network {
                self.compare_word(NETWORK_HEADER + 8, [a, b, c, d], u32::MAX, 5);
                self.compare_word(NETWORK_HEADER + 12, [e, f, g, 0], 0xffff_ff00, 2);
                self.decide(*halvings);
            }
        }
        self.decide(thinning.others);
        for place in std::mem::take(&mut self.to_decision) {
            self.steps[place] = jump(place, self.steps.len());
        }
    }

    /// Goes on if the bits of the word at this offset are these; otherwise skips the given number of steps.
    fn compare_word(&mut self, offset: u32, bytes: [u8; 4], bits: u32, otherwise: u8) {
        self.step(LOAD_WORD, offset);
        self.step(AND, bits);
        self.branch(IF_EQUAL, u32::from_be_bytes(bytes), 0, otherwise);
    }

    /// Goes to the decision, where one in 2^n packets is to pass.
    fn decide(&mut self, halvings: u32) {
        self.step(LOAD_CONSTANT, (1 << halvings) - 1);
        self.to_decision.push(self.steps.len());
        self.step(JUMP, 0);
    }
}

fn jump(from: usize, to: usize) -> SockFilter {
    SockFilter::new(JUMP, 0, 0, (to - from - 1) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket::{Inbox, Socket};
    use quinn_udp::{Transmit, UdpSocketState};
    use std::net::{SocketAddr, UdpSocket};
    use std::time::Duration;

    /// One packet in 2^31 passes: tests take that for none.
    const NONE: u32 = 31;

    fn packet(magic: &[u8; 8], length: usize) -> Vec<u8> {
        let mut packet = vec![0x35; length];
        packet[..8].copy_from_slice(magic);
        packet
    }

    fn hello() -> Vec<u8> {
        packet(b"QvnQ5XlH", HELLO)
    }

    fn message(length: usize) -> Vec<u8> {
        packet(b"QvnQ5XlM", length)
    }

    fn source(address: &str) -> UdpSocket {
        UdpSocket::bind((address, 0)).unwrap()
    }

    /// A server's socket whose packets are thinned out, and the address where senders of a family reach it.
    fn server(address: &str, thinning: &Thinning) -> (Socket, SocketAddr) {
        let socket = Socket::bind((address.parse::<std::net::IpAddr>().unwrap(), 0).into()).unwrap();
        // A program takes the place of another.
        socket.thin_out(thinning).unwrap();
        socket.thin_out(thinning).unwrap();
        let port = socket.address().unwrap().port();
        (socket, SocketAddr::from(([127, 0, 0, 1], port)))
    }

    fn everywhere(halvings: u32) -> Thinning {
        Thinning { networks: vec![], others: halvings }
    }

    /// What arrives, until a message does that is sent now.
    async fn arrived(server: &Socket, address: SocketAddr) -> Vec<Vec<u8>> {
        const LAST: usize = 1184;
        let own = if address.is_ipv4() { "127.0.0.1" } else { "::1" };
        source(own).send_to(&message(LAST), address).unwrap();
        let (mut inbox, mut packets) = (Inbox::new(), vec![]);
        let all = async {
            loop {
                server.readable().await.unwrap();
                server.receive(&mut inbox).unwrap();
                for (_, segment, datagrams) in inbox.messages() {
                    packets.extend(datagrams.chunks(segment.max(1)).map(<[u8]>::to_vec));
                }
                if packets.last().is_some_and(|packet| packet.len() == LAST) {
                    packets.pop();
                    return;
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(10), all).await.expect("messages always pass");
        packets
    }

    #[tokio::test]
    async fn packets_of_connections_pass_and_others_do_not() {
        let (server, address) = server("127.0.0.1", &everywhere(NONE));
        let own = source("127.0.0.1");
        let pass = [
            message(112),
            packet(b"QvnQ5XlI", 560),
            packet(b"RL3aNMXK", 200),
            packet(b"RL3aNMXM", 80),
            message(HELLO),
        ];
        let drop =
            [hello(), packet(b"QvnQ5XlH", 1184), packet(b"anything", 1000), vec![1; 9], vec![1; 3], vec![]];
        for packet in drop.iter().chain(&pass).chain(&drop) {
            own.send_to(packet, address).unwrap();
        }
        assert_eq!(arrived(&server, address).await, pass);
        server.thin_out(&Thinning::default()).unwrap();
        own.send_to(&drop[0], address).unwrap();
        assert_eq!(arrived(&server, address).await, [hello()], "thinning has ended");
    }

    /// Of 2,000 Hellos each passes with probability 1/4: more than 120, six standard deviations, from 500 has one of 10^-9.
    #[tokio::test]
    async fn the_share_that_passes_is_halved_as_often_as_asked() {
        let (server, address) = server("127.0.0.1", &everywhere(2));
        let own = source("127.0.0.1");
        let mut passed = 0;
        for _ in 0..20 {
            for _ in 0..100 {
                own.send_to(&hello(), address).unwrap();
            }
            passed += arrived(&server, address).await.len();
        }
        assert!((380..=620).contains(&passed), "{passed}");
    }

    #[tokio::test]
    async fn networks_are_thinned_out_apart_at_a_socket_of_both_families() {
        // A list as long as it can be, and this network last.
        let mut networks: Vec<_> = (0..7).map(|i| (Network::V6([0x20, 1, i, 0, 0, 0, 0]), NONE)).collect();
        let by_six =
            |socket: &Socket| SocketAddr::new("::1".parse().unwrap(), socket.address().unwrap().port());
        for (network, from_four, from_six) in
            [(Network::V4([127, 0, 7]), false, true), (Network::V6([0; 7]), true, false)]
        {
            networks.push((network, NONE));
            let (server, address) = server("::", &Thinning { networks: networks.clone(), others: 0 });
            networks.pop();
            let six = by_six(&server);
            source("127.0.8.1")
                .send_to(&[b"from another network", &hello()[20..]].concat(), address)
                .unwrap();
            source("127.0.7.1").send_to(&hello(), address).unwrap();
            source("::1").send_to(&hello(), six).unwrap();
            let arrived = arrived(&server, address).await;
            assert_eq!(arrived.len(), 1 + usize::from(from_four) + usize::from(from_six), "{network:?}");
            assert!(arrived[0].starts_with(b"from another"));
        }
        let (server, address) = server("::", &Thinning { networks, others: NONE });
        source("127.0.7.1").send_to(&hello(), address).unwrap();
        source("::1").send_to(&hello(), by_six(&server)).unwrap();
        source("::1").send_to(&message(112), by_six(&server)).unwrap();
        assert_eq!(arrived(&server, address).await, [message(112)]);
    }

    #[tokio::test]
    async fn no_packet_of_a_connection_is_lost_behind_hellos_that_the_kernel_joins_with_it() {
        for (own, bound) in [("127.0.0.1", "127.0.0.1"), ("::1", "::1")] {
            let (server, mut address) = server(bound, &everywhere(NONE));
            address.set_ip(own.parse().unwrap());
            let socket = source(own);
            let state = UdpSocketState::new((&socket).into()).unwrap();
            let send = |packets: &[Vec<u8>]| {
                let transmit = Transmit {
                    destination: address,
                    ecn: None,
                    contents: &packets.concat(),
                    segment_size: Some(packets[0].len()),
                    src_ip: None,
                };
                state.send((&socket).into(), &transmit).unwrap();
            };
            let many = state.max_gso_segments().min(JOINED as usize);
            send(&vec![hello(); many]);
            assert_eq!(arrived(&server, address).await.len(), 0);
            for last in [message(HELLO), message(112), packet(b"RL3aNMXK", 200)] {
                let mut train = vec![hello(); many - 1];
                train.push(last.clone());
                send(&train);
                let arrived = arrived(&server, address).await;
                assert_eq!(arrived.last(), Some(&last));
                // Where the kernel does not join them, the Hellos are dropped one by one.
                assert!([1, many].contains(&arrived.len()), "{}", arrived.len());
            }
        }
    }
}
