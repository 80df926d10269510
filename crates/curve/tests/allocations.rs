//! A bulk transfer over sockets allocates nothing once its buffers have grown.

#![allow(unsafe_code, reason = "an allocator that counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use kendall_curve::curvecp::{ClientConfig, DomainName, Extension, MessageConfig, SecretKey, ServerConfig};
use kendall_curve::{Endpoint, RandomNonces, Stream};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

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

const WARM_UP: usize = 60_000_000;
const MEASURED: usize = 20_000_000;

/// Buffers that soon have their full size.
fn message() -> MessageConfig {
    MessageConfig { max_receive_window: 1 << 20, max_send_buffer: 1 << 20, ..MessageConfig::default() }
}

/// Moves this many bytes from one end to the other, in pieces.
async fn transfer(from: &mut Stream, to: &mut Stream, bytes: usize, pieces: &mut [Vec<u8>; 2]) {
    let [written, read] = pieces;
    let write = async {
        for _ in 0..bytes / written.len() {
            from.write_all(written).await.unwrap();
        }
    };
    let read = async {
        for _ in 0..bytes / read.len() {
            to.read_exact(read).await.unwrap();
        }
    };
    tokio::join!(write, read);
}

/// Both endpoints and their drivers run on the thread whose allocations are counted.
#[tokio::test]
async fn a_bulk_transfer_allocates_nothing_per_packet() {
    let (any, secret) = ("127.0.0.1:0".parse().unwrap(), SecretKey::from_bytes([1; 32]));
    let name = DomainName::new("server.example").unwrap();
    let mut config = ServerConfig::new(secret.clone(), Extension::default(), name.clone());
    config.message = message();
    let server = Endpoint::server(any, config, RandomNonces).unwrap();
    let client = Endpoint::client(any, RandomNonces).unwrap();
    let mut ours = client
        .connect(ClientConfig {
            identity: SecretKey::from_bytes([2; 32]),
            server: secret.public_key(),
            server_extension: Extension::default(),
            name,
            addresses: vec![server.address()],
            extension: None,
            capabilities: Default::default(),
            message: message(),
        })
        .unwrap();
    let mut theirs = server.accept().await.unwrap();
    let mut pieces = [vec![7; 100_000], vec![0; 100_000]];
    transfer(&mut ours, &mut theirs, WARM_UP, &mut pieces).await;
    let before = ALLOCATIONS.get();
    transfer(&mut ours, &mut theirs, MEASURED, &mut pieces).await;
    let allocations = ALLOCATIONS.get() - before;
    assert!(before > 0, "allocations are counted");
    assert_eq!(allocations, 0, "for {} packets", MEASURED / 1_280);
}
