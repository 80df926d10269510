//! How fast file recovery moves files: one of 50 MB there and back, against a plain copy over TCP in the same rounds, and a
//! hundred at a time, with the memory that the server takes for them.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use kendall_recover::cipher::{Cipher, encrypted_bytes};
use kendall_recover::protocol::Head;
use kendall_recover::{Algorithm, Dialect};

use crate::common::{ROUNDS, median};

const FILE_BYTES: usize = 50_000_000;
/// What clients write and read at a time.
const PIECE: usize = 256 * 1024;
/// Copies of each kind in a round, in turns.
const COPIES: usize = 20;
const CLIENTS: usize = 100;
/// The key of "test".
const KEY: u128 = 0xbc22_4195_2238_500f_21b2_85fd_b75d_3e77;

pub(crate) fn section(page: &mut String) {
    page.push_str("\n## Files through file recovery\n\n");
    alone(page);
    together(page);
}

/// `kendall serve recover` in its own process.
struct Server {
    child: Child,
    address: SocketAddr,
}

impl Server {
    fn start() -> Self {
        let mut child = Command::new(crate::common::kendall())
            .args(["serve", "recover", "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut line = String::new();
        let output = child.stdout.take().expect("it is piped");
        BufReader::new(output).read_line(&mut line).expect("the server says where it listens");
        let address = line.split_whitespace().last().and_then(|word| word.parse().ok());
        Self { child, address: address.expect("the line ends with an address") }
    }

    /// The most memory that it ever had, in MiB.
    fn most_mib(&self) -> f64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).expect("it runs");
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("the kernel says it");
        line.trim().trim_end_matches(" kB").parse::<f64>().expect("it is a number") / 1024.0
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Receives this many bytes, then sends the first this many of them back, for one client after the other. It has touched its
/// memory before.
fn plain_server(length: usize, back: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("there is a free port");
    let address = listener.local_addr().expect("it is bound");
    thread::spawn(move || {
        let mut bytes = vec![1; length];
        for stream in listener.incoming() {
            let mut stream = stream.expect("a client connects");
            let _ = stream.set_nodelay(true);
            if stream.read_exact(&mut bytes).is_ok() {
                let _ = stream.write_all(&bytes[..back]);
            }
        }
    });
    address
}

/// What a client sends and expects: a head, then one piece over and over, and an end.
struct File {
    head: Vec<u8>,
    encrypted: Vec<u8>,
    end: Vec<u8>,
    plain: Vec<u8>,
}

impl File {
    fn new() -> Self {
        let cipher = Cipher::new(KEY.to_be_bytes());
        let plain: Vec<u8> = (0..PIECE).map(|i| (i * 31 + i / 253) as u8).collect();
        let mut encrypted = plain.clone();
        cipher.encrypt_blocks(&mut encrypted);
        let rest = FILE_BYTES % PIECE;
        let whole = rest / 16 * 16;
        let end = [&encrypted[..whole], &cipher.last_block(&plain[whole..rest])].concat();
        let hash = Algorithm::Sha1.hash(b"test");
        let file_bytes = encrypted_bytes(FILE_BYTES as u64);
        let head = Head { id: 0, hash, lengths: 4..=4, file_bytes }.encode(Dialect::Course);
        Self { head, encrypted, end, plain }
    }

    fn sent_bytes(&self) -> usize {
        self.head.len() + encrypted_bytes(FILE_BYTES as u64) as usize
    }

    /// Seconds from the first byte sent to the last received. Each piece that comes back is given to `each`.
    fn there_and_back(&self, server: SocketAddr, each: impl Fn(&[u8])) -> f64 {
        let mut stream = TcpStream::connect(server).expect("the server listens");
        stream.set_nodelay(true).expect("it is a socket");
        let (mut head, mut room) = ([0; 8], vec![1; PIECE]);
        let start = Instant::now();
        stream.write_all(&self.head).expect("the server takes it");
        for _ in 0..FILE_BYTES / PIECE {
            stream.write_all(&self.encrypted).expect("the server takes it");
        }
        stream.write_all(&self.end).expect("the server takes it");
        stream.read_exact(&mut head).expect("the server answers");
        let mut left = FILE_BYTES;
        while left > 0 {
            let piece = &mut room[..PIECE.min(left)];
            stream.read_exact(piece).expect("the answer is whole");
            each(piece);
            left -= piece.len();
        }
        start.elapsed().as_secs_f64()
    }

    /// Looks whether every byte that comes back is right.
    fn check(&self, server: SocketAddr) {
        self.there_and_back(server, |piece| {
            assert!(*piece == self.plain[..piece.len()], "it comes back wrong")
        });
    }
}

fn alone(page: &mut String) {
    let (server, file) = (Server::start(), File::new());
    let plain = plain_server(file.sent_bytes(), 8 + FILE_BYTES);
    // From here on the password is known, and its key.
    file.check(server.address);
    let first_mib = server.most_mib();
    let (mut ours, mut theirs, mut ratios) = (vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let copy = |server| file.there_and_back(server, |_| ());
        let pairs: Vec<[f64; 2]> = (0..COPIES).map(|_| [plain, server.address].map(copy)).collect();
        let [plain_s, our_s] = [0, 1].map(|side| median(pairs.iter().map(|pair| pair[side])));
        theirs.push(plain_s);
        ours.push(our_s);
        ratios.push(plain_s / our_s);
    }
    let [ours, theirs, ratio] = [ours, theirs, ratios].map(|values| median(values.into_iter()));
    let mb_per_s = |seconds: f64| 2.0 * FILE_BYTES as f64 / seconds / 1e6;
    let _ = writeln!(
        page,
        "A file of 50 MB to the server, decrypted and back, of a password that was found before, so without a search and the \
         derivation of a key: {:.1} ms, {:.0} MB/s. A plain copy over TCP, by a thread that receives as many bytes into memory \
         that it has used before, then sends as many back, with the same client: {:.1} ms, {:.0} MB/s. So file recovery has \
         {:.0} % of the speed of a plain copy. The most memory that the server had is {:.0} MiB, after the first file {:.0}.\n",
        ours * 1e3,
        mb_per_s(ours),
        theirs * 1e3,
        mb_per_s(theirs),
        100.0 * ratio,
        server.most_mib(),
        first_mib,
    );
}

fn together(page: &mut String) {
    let (server, file) = (Server::start(), File::new());
    file.check(server.address);
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| file.check(server.address));
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    let moved_mb = 2.0 * CLIENTS as f64 * FILE_BYTES as f64 / 1e6;
    let _ = writeln!(
        page,
        "{CLIENTS} clients with such a file each, at the same time, one run: {seconds:.1} s, {:.0} MB/s together; each byte that came \
         back was compared. The most memory that the server had is {:.0} MiB, of which 256 are the budget for files; the rest \
         of them waited in temporary files.\n",
        moved_mb / seconds,
        server.most_mib(),
    );
}
