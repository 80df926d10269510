//! A bulk transfer allocates nothing once its buffers have grown.

#![allow(unsafe_code, reason = "an allocator that counts")]

#[path = "it/net/mod.rs"]
mod net;

use net::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::time::Duration;

use curvecp::{ConnectionId, Endpoint, Event, MessageConfig, Read, TransmitBuffer};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller keeps the rules of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: as for `alloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const HOP: Duration = Duration::from_micros(500);
const WARM_UP: usize = 30_000_000;
const MEASURED: usize = 20_000_000;

/// The two ends, and buffers that are used again and again.
struct Pair {
    now: Duration,
    client: Endpoint,
    server: Endpoint,
    buffer: TransmitBuffer,
    datagrams: Vec<u8>,
    piece: Vec<u8>,
}

impl Pair {
    fn new() -> Self {
        Self {
            now: HOP,
            client: endpoint(1, None),
            server: endpoint(2, Some(configured(server_config(), |config| config.message = message()))),
            buffer: TransmitBuffer::new(110),
            datagrams: Vec::with_capacity(1 << 18),
            piece: vec![7; 1 << 18],
        }
    }

    /// Hands everything that one end sends to the other.
    fn pass(&mut self, to_server: bool) {
        let (from, to, address) = if to_server {
            (&mut self.client, &mut self.server, address(1))
        } else {
            (&mut self.server, &mut self.client, address(0))
        };
        from.handle_timeout(self.now);
        while from.poll_transmit(self.now, &mut self.buffer) {
            for transmit in self.buffer.transmits() {
                self.datagrams.clear();
                self.datagrams.extend_from_slice(transmit.bytes);
                to.handle_datagrams(self.now, address, &mut self.datagrams, transmit.segment);
            }
        }
        self.now += HOP;
    }

    /// Moves at least this many bytes from the client to the server; returns how many.
    fn transfer(&mut self, client: ConnectionId, server: ConnectionId, least: usize) -> usize {
        let mut arrived = 0;
        while arrived < least {
            self.client.write(client, &self.piece).unwrap();
            self.pass(true);
            while let Read::Bytes(bytes) = self.server.read(server, &mut self.piece).unwrap() {
                arrived += bytes;
            }
            self.pass(false);
            while self.client.poll_event().is_some() || self.server.poll_event().is_some() {}
        }
        arrived
    }
}

fn configured<T>(mut value: T, set: impl FnOnce(&mut T)) -> T {
    set(&mut value);
    value
}

/// Buffers that soon have their full size.
fn message() -> MessageConfig {
    MessageConfig { max_receive_window: 1 << 20, max_send_buffer: 1 << 20, ..MessageConfig::default() }
}

#[test]
fn a_bulk_transfer_allocates_nothing_per_packet() {
    let mut pair = Pair::new();
    let config = configured(client_config(), |config| config.message = message());
    let client = pair.client.connect(pair.now, config).unwrap();
    pair.client.write(client, b"first").unwrap();
    let server = loop {
        pair.pass(true);
        pair.pass(false);
        if let Some(Event::NewConnection { id, .. }) = pair.server.poll_event() {
            break id;
        }
    };
    pair.transfer(client, server, WARM_UP);
    let before = ALLOCATIONS.get();
    let moved = pair.transfer(client, server, MEASURED);
    let allocations = ALLOCATIONS.get() - before;
    assert!(before > 0, "allocations are counted");
    assert_eq!(allocations, 0, "for {moved} bytes, {} packets", moved / 1024);
}
