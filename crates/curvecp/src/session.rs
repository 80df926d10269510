//! The packet protection of a connection once both sides share a key: counters, keys and path of both directions.

use crate::hashing::KeyedHash;
use crate::keys::{BoxKey, erasing_stack, nonce};
use crate::layer::{MessageLayer, Role};
use crate::message::MAX_MESSAGE_BYTES;
use crate::nonce::{ReplayWindow, SendCounter};
use crate::packet::{
    ClientMessageHeader, INITIATE_BEFORE_MESSAGE, InitiateHeader, MAX_PACKET, ServerMessageHeader, prefix,
};
use crate::path::Path;
use crate::seal::{BATCH, Batch, DirectionKey};
use crate::transmit::TransmitBuffer;
use crate::{Extension, PublicKey, TAG};
use rand_core::CryptoRng;
use std::hash::BuildHasher;
use std::net::SocketAddr;
use std::time::Duration;

/// Keys, counters and addresses of one connection. Dropping it erases the keys.
#[derive(Debug)]
pub(crate) struct Session {
    ends: Ends,
    /// The key shared by C' and S'; seals and opens Initiates.
    shared: BoxKey,
    outgoing: DirectionKey,
    incoming: DirectionKey,
    counter: SendCounter,
    window: ReplayWindow,
    path: Path,
    /// Gives each address of the peer its shift of message IDs.
    shifts: KeyedHash,
    moves: u32,
}

/// The two ends of a session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ends {
    pub(crate) role: Role,
    /// The client's short-term key, which names the connection.
    pub(crate) client: PublicKey,
    pub(crate) ours: Extension,
    pub(crate) theirs: Extension,
}

/// The reason why a session stopped filling a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Filled {
    /// The message layer has nothing more to send now.
    Everything,
    /// The buffer is full.
    Buffer,
    /// The address may not be sent more until a packet comes from it.
    Allowance,
    /// All counters are used; the connection must end.
    Counters,
}

/// What [`Session::receive`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Received {
    /// Bit `i` is set where packet `i` is authentic and new; its message is open.
    pub(crate) accepted: u64,
    /// Whether the peer's address changed.
    pub(crate) moved: bool,
}

impl Session {
    /// Packet protection with a peer at an address that is `validated` or may be forged.
    pub(crate) fn new(
        ends: Ends,
        shared: BoxKey,
        (address, validated): (SocketAddr, bool),
        counter: SendCounter,
        rng: &mut (impl CryptoRng + ?Sized),
    ) -> Self {
        let by_client = DirectionKey::new(shared.clone(), prefix::CLIENT_MESSAGE);
        let by_server = DirectionKey::new(shared.clone(), prefix::SERVER_MESSAGE);
        let (outgoing, incoming) = match ends.role {
            Role::Client => (by_client, by_server),
            Role::Server => (by_server, by_client),
        };
        let shifts = KeyedHash::new(rng);
        let path = if validated {
            Path::validated(address)
        } else {
            Path::unvalidated(address, shifts.hash_one(0_u32) as u32)
        };
        let window = ReplayWindow::default();
        Self { ends, shared, outgoing, incoming, counter, window, path, shifts, moves: 0 }
    }

    pub(crate) fn ends(&self) -> &Ends {
        &self.ends
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.path.address()
    }

    pub(crate) fn next_counter(&mut self) -> Option<u64> {
        self.counter.next()
    }

    /// Seals the box of an Initiate.
    pub(crate) fn seal_initiate(&self, counter: u64, sealed: &mut [u8]) {
        erasing_stack(|| self.shared.seal(&nonce(prefix::INITIATE, &counter.to_le_bytes()), sealed));
    }

    /// Bytes of a received Message packet before its box.
    pub(crate) fn received_header(&self) -> usize {
        match self.ends.role {
            Role::Client => ServerMessageHeader::LENGTH,
            Role::Server => ClientMessageHeader::LENGTH,
        }
    }

    fn sent_header(&self) -> usize {
        match self.ends.role {
            Role::Client => ClientMessageHeader::LENGTH,
            Role::Server => ServerMessageHeader::LENGTH,
        }
    }

    /// Whether a packet with this counter from this address could be new. A client knows its server's address; a server
    /// follows its client.
    pub(crate) fn expects(&self, from: SocketAddr, counter: u64) -> bool {
        (self.ends.role == Role::Server || from == self.path.address()) && self.window.is_fresh(counter)
    }

    /// Opens Message packets of equal length, all of this connection; at most [`BATCH`].
    pub(crate) fn receive(&mut self, from: SocketAddr, packets: &mut [u8], stride: usize) -> Received {
        debug_assert!(packets.len() <= BATCH * stride);
        let header = self.received_header();
        let fresh = |packet: &[u8]| self.expects(from, counter(&packet[..header]));
        if !packets.chunks_exact(stride).any(fresh) {
            return Received::default();
        }
        let authentic = erasing_stack(|| self.incoming.open_batch(Batch { packets, stride, header }));
        let mut received = Received::default();
        for (i, packet) in
            packets.chunks_exact_mut(stride).enumerate().filter(|(i, _)| authentic >> i & 1 == 1)
        {
            let (header, boxed) = packet.split_at_mut(header);
            if let Some(moved) = self.accept(from, counter(header), stride, &mut boxed[TAG..]) {
                received.accepted |= 1 << i;
                received.moved |= moved;
            }
        }
        received
    }

    /// Opens a further Initiate and returns its message and whether the peer moved; `None` where it is forged or replayed.
    pub(crate) fn initiate<'a>(
        &mut self,
        from: SocketAddr,
        counter: u64,
        sealed: &'a mut [u8],
    ) -> Option<(&'a [u8], bool)> {
        if self.ends.role == Role::Client || !self.expects(from, counter) {
            return None;
        }
        let bytes = InitiateHeader::LENGTH + sealed.len();
        let authentic = erasing_stack(|| {
            self.shared.open(&nonce(prefix::INITIATE, &counter.to_le_bytes()), sealed).is_some()
        });
        if !authentic {
            return None;
        }
        let message = &mut sealed[INITIATE_BEFORE_MESSAGE..];
        let moved = self.accept(from, counter, bytes, message)?;
        Some((message, moved))
    }

    /// Records an authentic packet; `None` where it is a replay, otherwise whether the peer moved.
    pub(crate) fn accept(
        &mut self,
        from: SocketAddr,
        counter: u64,
        bytes: usize,
        message: &mut [u8],
    ) -> Option<bool> {
        if !self.expects(from, counter) {
            return None;
        }
        // Only the newest packet moves the path: an older one may have been delayed, or copied by an attacker.
        let moved = from != self.path.address() && self.window.is_newest(counter);
        self.window.accept(counter);
        if moved {
            self.moves += 1;
            self.path.follow(from, self.shifts.hash_one(self.moves) as u32);
        }
        self.path.receive(from, bytes, message);
        Some(moved)
    }

    /// Writes Message packets with all that `layer` wants to send, sealed in batches.
    pub(crate) fn fill(
        &mut self,
        now: Duration,
        layer: &mut MessageLayer,
        buffer: &mut TransmitBuffer,
    ) -> Filled {
        let header = self.sent_header();
        let (mut batch, mut stride) = (buffer.filled(), 0);
        let longest = if self.path.is_validated() { MAX_PACKET - header - TAG } else { MAX_MESSAGE_BYTES };
        let filled = loop {
            if self.path.allowance() < (header + TAG + longest) as u64 {
                break Filled::Allowance;
            }
            let Some(packet) = buffer.next_packet() else { break Filled::Buffer };
            let Some(length) = layer.poll_transmit(now, longest, &mut packet[header + TAG..]) else {
                break Filled::Everything;
            };
            let Some(counter) = self.counter.next() else { break Filled::Counters };
            self.write_header(counter, packet);
            let bytes = header + TAG + length;
            self.path.send(bytes, &mut packet[header + TAG..bytes]);
            if bytes != stride || buffer.filled() - batch == BATCH * stride {
                self.seal(buffer, batch, stride);
                (batch, stride) = (buffer.filled(), bytes);
            }
            if length > layer.longest_message() {
                buffer.push_alone(self.path.address(), bytes);
            } else {
                buffer.push(self.path.address(), bytes);
            }
        };
        self.seal(buffer, batch, stride);
        filled
    }

    fn seal(&self, buffer: &mut TransmitBuffer, batch: usize, stride: usize) {
        let packets = buffer.since(batch);
        if !packets.is_empty() {
            let header = self.sent_header();
            erasing_stack(|| self.outgoing.seal_batch(Batch { packets, stride, header }));
        }
    }

    fn write_header(&self, counter: u64, packet: &mut [u8]) {
        let Ends { role, client, ours: from, theirs: to } = self.ends;
        match role {
            Role::Client => ClientMessageHeader { to, from, client, counter }.write(packet),
            Role::Server => ServerMessageHeader { to, from, counter }.write(packet),
        }
    }
}

/// The counter at the end of a header.
fn counter(header: &[u8]) -> u64 {
    u64::from_le_bytes(*header.last_chunk().expect("a header ends in a counter"))
}
