//! A client written from the description of the protocol alone, over blocking sockets: it shares no code with
//! the system under test.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};

use kendall_testbed::{LIMIT, reset};
use sha2::{Digest, Sha256};

/// 49 bytes: digest, start, end, priority.
pub(crate) fn request(digest: [u8; 32], start: u64, end: u64, priority: u8) -> Vec<u8> {
    [&digest[..], &start.to_be_bytes(), &end.to_be_bytes(), &[priority]].concat()
}

pub(crate) fn digest(x: u64) -> [u8; 32] {
    Sha256::digest(x.to_le_bytes()).into()
}

/// A request for `x` in `start..end`, for any `x`.
pub(crate) fn request_for(x: u64, start: u64, end: u64) -> Vec<u8> {
    request(digest(x), start, end, 1)
}

/// A request that no machine finishes, and that differs from all others.
pub(crate) fn endless(priority: u8) -> Vec<u8> {
    static ASKED: AtomicU64 = AtomicU64::new(0);
    let mut digest = [0; 32];
    digest[..8].copy_from_slice(&ASKED.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    request(digest, 0, u64::MAX, priority)
}

pub(crate) struct Peer(pub(crate) TcpStream);

impl Peer {
    pub(crate) fn connect(server: SocketAddr) -> Self {
        let stream = TcpStream::connect(server).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_nodelay(true).unwrap();
        Self(stream)
    }

    /// Connects and sends in one go.
    pub(crate) fn send(server: SocketAddr, bytes: &[u8]) -> Self {
        let mut peer = Self::connect(server);
        peer.0.write_all(bytes).unwrap();
        peer
    }

    /// Exactly 8 bytes, and then the end.
    pub(crate) fn answer(mut self) -> u64 {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes).unwrap();
        u64::from_be_bytes(bytes.try_into().expect("an answer has 8 bytes"))
    }

    /// All bytes until the server closes the connection.
    pub(crate) fn rest(mut self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes).map(|_| bytes)
    }

    pub(crate) fn half_close(&self) {
        self.0.shutdown(Shutdown::Write).unwrap();
    }

    /// Disconnects with a reset.
    pub(crate) fn reset(self) {
        reset(self.0);
    }
}

pub(crate) fn ask(server: SocketAddr, bytes: &[u8]) -> u64 {
    Peer::send(server, bytes).answer()
}

/// A correct client: the server answers it correctly, whatever other clients do.
pub(crate) fn check_that_others_are_served(server: SocketAddr) {
    let x = 4_369_917_658_905_853_663;
    assert_eq!(ask(server, &request_for(x, x - 50, x + 50)), x);
}
