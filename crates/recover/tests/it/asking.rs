//! A client written from the description of the protocol alone, over blocking sockets, and a server in this process: the
//! client shares no code with the system under test.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::num::NonZeroUsize;

use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use kendall_digest::Engine;
use kendall_recover::{Config, FinderOptions, RecoverOptions, Strategy, bind};
use kendall_testbed::{LIMIT, Running, reset};
use sha1::{Digest, Sha1};

/// The key of "test", as the course's class derives it.
pub(crate) const TEST_KEY: u128 = 0xbc22_4195_2238_500f_21b2_85fd_b75d_3e77;
/// The key of "abc".
pub(crate) const ABC_KEY: u128 = 0x7faa_8044_02d0_fa50_ff6c_2491_de3f_f46a;
/// The key of "xqz", as Python derives it.
pub(crate) const XQZ_KEY: u128 = 0x5c25_3292_22ae_6b8e_0395_ac9d_facd_a2e8;

pub(crate) fn sha1(password: &str) -> [u8; 20] {
    Sha1::digest(password.as_bytes()).into()
}

/// 20 bytes of digest, 4 of the number of characters, 8 of the length of the file.
pub(crate) fn head(digest: [u8; 20], characters: i32, file_bytes: i64) -> Vec<u8> {
    [&digest[..], &characters.to_be_bytes(), &file_bytes.to_be_bytes()].concat()
}

/// AES-128, block by block, with the padding of PKCS #5.
pub(crate) fn encrypt(key: u128, plain: &[u8]) -> Vec<u8> {
    let padding = 16 - plain.len() % 16;
    let mut bytes = [plain, &vec![padding as u8; padding]].concat();
    let cipher = Aes128::new(&key.to_be_bytes().into());
    for block in bytes.chunks_exact_mut(16) {
        cipher.encrypt_block(block.try_into().unwrap());
    }
    bytes
}

pub(crate) fn file(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 31 + i / 253) as u8).collect()
}

/// The bytes of a file of testdata: hexadecimal digits, and lines of comment that begin with #.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.lines().filter(|line| !line.starts_with('#')).collect::<String>().into();
    let pairs = digits.chunks_exact(2).map(|pair| std::str::from_utf8(pair).unwrap());
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

pub(crate) struct Peer(pub(crate) TcpStream);

impl Peer {
    pub(crate) fn connect(server: SocketAddr) -> Self {
        let stream = TcpStream::connect(server).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        Self(stream)
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    /// Everything until the server closes the connection in order.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        self.0.read_to_end(&mut bytes).unwrap();
        bytes
    }

    /// The decrypted file; `None` if the server closes the connection without a byte.
    pub(crate) fn answer(&mut self) -> Option<Vec<u8>> {
        let all = self.rest();
        if all.is_empty() {
            return None;
        }
        let (length, plain) = all.split_first_chunk().unwrap();
        assert_eq!(i64::from_be_bytes(*length), plain.len() as i64);
        Some(plain.to_vec())
    }

    /// Disconnects with a reset.
    pub(crate) fn reset(self) {
        reset(self.0);
    }
}

/// Sends a request for a file and waits for it.
pub(crate) fn ask(server: &Running, password: &str, encrypted: &[u8]) -> Option<Vec<u8>> {
    let mut peer = Peer::connect(server.address);
    peer.send(&head(sha1(password), password.len() as i32, encrypted.len() as i64));
    peer.send(encrypted);
    peer.answer()
}

/// Two workers, the words first, defaults otherwise.
pub(crate) fn options() -> RecoverOptions {
    let options = RecoverOptions::new("127.0.0.1:0".parse().unwrap(), Engine::Portable);
    RecoverOptions {
        service: Config { workers: NonZeroUsize::new(2).unwrap(), ..options.service },
        finder: FinderOptions { strategy: Strategy::Dictionary, ..options.finder },
        ..options
    }
}

/// Runs a server for the duration of a test.
pub(crate) fn run(options: RecoverOptions) -> Running {
    let server = bind(options).unwrap();
    let (address, metrics, stop) = (server.local_addr(), server.handle(), server.handle());
    Running::new(address, move || metrics.metrics_text(), move || stop.shut_down(), || server.run())
}

/// The number of requests with this outcome.
pub(crate) fn came_to(server: &Running, outcome: &str) -> u64 {
    server.metric(&format!("recover_outcomes_total{{outcome=\"{outcome}\"}}"))
}

/// Writes as the course's client does: the fields of the head one by one, the file in pieces of 64 bytes.
pub(crate) fn write_as_the_course(stream: &mut impl Write, head: &[u8], encrypted: &[u8]) -> io::Result<()> {
    for field in [&head[..20], &head[20..24], &head[24..]] {
        stream.write_all(field)?;
        stream.flush()?;
    }
    encrypted.chunks(64).try_for_each(|piece| stream.write_all(piece))
}
