//! Forward secrecy in memory: a process that has opened, served and ended a connection, and whose minute keys have expired,
//! holds no key of it any more, neither whole nor half.
//!
//! The process under test is this program again. Its random numbers come from a counter, so the test repeats the run here
//! and knows every key that was drawn or derived there. It then reads `/proc/PID/mem`: while the keys are in use, to show
//! that it would find them, and afterwards.

#![cfg(target_os = "linux")]

use curvecp::packet::{Packet, prefix};
use curvecp::seal::DirectionKey;
use curvecp::{
    ClientConfig, ConnectionId, DomainName, Endpoint, Event, Extension, MessageConfig, PublicKey, Read,
    SecretKey, ServerConfig, TransmitBuffer,
};
use dryoc::classic::crypto_box::crypto_box_beforenm;
use dryoc::classic::crypto_core::{crypto_core_hsalsa20, crypto_scalarmult};
use rand_core::{TryCryptoRng, TryRng};
use std::collections::HashMap;
use std::convert::Infallible;
use std::io::{BufRead, BufReader, Write};
use std::net::SocketAddr;
use std::os::unix::fs::FileExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const CHILD: &str = "CURVECP_ERASURE_CHILD";
const SERVER: [u8; 32] = [1; 32];
const CLIENT: [u8; 32] = [2; 32];
/// Every half of a key is looked for: who finds one has to guess only the other.
const HALF: usize = 16;

/// Keys of 32 bytes that were drawn, in order.
type Log = Arc<Mutex<Vec<[u8; 32]>>>;

/// Random numbers that another process can repeat: SplitMix64, written straight to their place, so that this generator
/// keeps no copy as those with a buffer do.
struct Draws {
    state: u64,
    log: Option<Log>,
}

impl TryRng for Draws {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.try_next_u64()? as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.state ^ (self.state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Ok(mixed ^ (mixed >> 31))
    }

    fn try_fill_bytes(&mut self, into: &mut [u8]) -> Result<(), Infallible> {
        for word in into.chunks_mut(8) {
            let drawn = self.try_next_u64()?.to_le_bytes();
            word.copy_from_slice(&drawn[..word.len()]);
        }
        if let (Some(log), Ok(key)) = (&self.log, <[u8; 32]>::try_from(&*into)) {
            log.lock().unwrap().push(key);
        }
        Ok(())
    }
}

impl TryCryptoRng for Draws {}

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The client has sent its Hello and waits.
    Hello,
    /// Data has passed both ways.
    Open,
    /// The connection is over and both minute keys of its time are replaced.
    Expired,
}

/// A client and a server in one process and in virtual time.
struct Run {
    server: Endpoint,
    client: Endpoint,
    connection: ConnectionId,
    now: Duration,
    /// The Cookie packet, and what a key of each party is needed for to read it.
    packets: Vec<Vec<u8>>,
    draws: Log,
}

impl Run {
    fn new(keep_draws: bool) -> Self {
        let draws = Log::default();
        let rng = |state| Box::new(Draws { state, log: keep_draws.then(|| draws.clone()) });
        let nonces = |first: u128| {
            let mut next = first;
            Box::new(move || {
                next += 1;
                next.to_le_bytes()
            })
        };
        let message = MessageConfig { time_wait: Duration::from_secs(1), ..MessageConfig::default() };
        let name = DomainName::new("machine.example").unwrap();
        let mut config = ServerConfig::new(SecretKey::from_bytes(SERVER), Extension([3; 16]), name.clone());
        config.message = message.clone();
        let server = Endpoint::new(Duration::ZERO, Some(config), rng(1), nonces(0));
        let mut client = Endpoint::new(Duration::ZERO, None, rng(2), nonces(1 << 64));
        let connection = client.connect(
            Duration::ZERO,
            ClientConfig {
                identity: SecretKey::from_bytes(CLIENT),
                server: SecretKey::from_bytes(SERVER).public_key(),
                server_extension: Extension([3; 16]),
                name,
                addresses: vec![address(1)],
                extension: None,
                capabilities: [0; 12],
                message,
            },
        );
        Self { server, client, connection: connection.unwrap(), now: Duration::ZERO, packets: vec![], draws }
    }

    /// Carries what the client sends to the server; true where there was something.
    fn pass(&mut self, to_server: bool) -> bool {
        let mut buffer = TransmitBuffer::new(64);
        let (from, to) = if to_server {
            (&mut self.client, &mut self.server)
        } else {
            (&mut self.server, &mut self.client)
        };
        if !from.poll_transmit(self.now, &mut buffer) {
            return false;
        }
        for transmit in buffer.transmits() {
            self.packets.extend(transmit.datagrams().map(<[u8]>::to_vec));
            let address = address(2 - u8::from(!to_server));
            to.handle_datagrams(self.now, address, &mut transmit.bytes.to_vec(), transmit.segment);
        }
        true
    }

    /// Lets this much time pass.
    fn wait(&mut self, time: Duration) {
        let until = self.now + time;
        while self.now < until {
            while self.pass(true) | self.pass(false) {}
            let deadline = [&self.server, &self.client].into_iter().filter_map(Endpoint::next_deadline).min();
            self.now = deadline.map_or(until, |at| at.clamp(self.now + Duration::from_micros(1), until));
            self.server.handle_timeout(self.now);
            self.client.handle_timeout(self.now);
        }
    }

    /// Runs to the end and stops at every step.
    fn go(mut self, mut at: impl FnMut(Step, &Self)) {
        let mut buffer = TransmitBuffer::new(1);
        assert!(self.client.poll_transmit(self.now, &mut buffer));
        let mut hello = buffer.transmits().next().unwrap().bytes.to_vec();
        drop(buffer);
        at(Step::Hello, &self);

        self.server.handle_datagram(self.now, address(2), &mut hello);
        // Enough for batches of packets, which are sealed and opened side by side.
        self.client.write(self.connection, &[5; 20_000]).unwrap();
        self.wait(Duration::from_secs(2));
        let accepted = std::iter::from_fn(|| self.server.poll_event()).find_map(|event| match event {
            Event::NewConnection { id, .. } => Some(id),
            _ => None,
        });
        let accepted = accepted.expect("the server has a connection");
        let mut into = [0; 24_000];
        assert_eq!(self.server.read(accepted, &mut into).unwrap(), Read::Bytes(20_000));
        self.server.write(accepted, &[6; 20_000]).unwrap();
        self.wait(Duration::from_secs(2));
        assert_eq!(self.client.read(self.connection, &mut into).unwrap(), Read::Bytes(20_000));
        at(Step::Open, &self);

        self.client.finish(self.connection).unwrap();
        self.server.finish(accepted).unwrap();
        self.wait(Duration::from_secs(10));
        assert_eq!(self.server.read(accepted, &mut into).unwrap(), Read::Finished);
        assert!(self.server.address(accepted).is_none(), "the connection is over");
        self.wait(Duration::from_secs(130));
        at(Step::Expired, &self);
    }
}

fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], 4000))
}

/// Runs in the process whose memory is read: stops at each step until a line comes.
#[test]
fn process_under_test() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    Run::new(false).go(|step, _| {
        println!("at {step:?}");
        std::io::stdin().read_line(&mut String::new()).unwrap();
    });
}

/// The process under test.
struct Process {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
}

impl Process {
    fn start() -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "process_under_test", "--nocapture", "--test-threads=1"])
            .env(CHILD, "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, stdin, stdout: BufReader::new(stdout) }
    }

    fn wait_for(&mut self, step: Step) {
        let mut line = String::new();
        while !line.ends_with(&format!("at {step:?}\n")) {
            line.clear();
            assert!(self.stdout.read_line(&mut line).unwrap() > 0, "the process ended before {step:?}");
        }
    }

    fn go_on(&mut self) {
        writeln!(self.stdin).unwrap();
    }

    /// The names of the keys of which a half is in memory that can be written to.
    fn keys_in_memory(&self, keys: &HashMap<String, [u8; 32]>) -> Vec<String> {
        let halves: HashMap<u64, Vec<(&str, &[u8])>> =
            keys.iter().fold(HashMap::new(), |mut halves, (name, key)| {
                for half in key.chunks(HALF) {
                    let start = u64::from_le_bytes(*half.first_chunk().unwrap());
                    halves.entry(start).or_default().push((name.as_str(), half));
                }
                halves
            });
        let mut maybe = vec![false; 1 << 16];
        halves.keys().for_each(|start| maybe[usize::from(*start as u16)] = true);
        let process = format!("/proc/{}", self.child.id());
        let memory = std::fs::File::open(format!("{process}/mem")).unwrap();
        let mut found = std::collections::BTreeSet::new();
        for line in std::fs::read_to_string(format!("{process}/maps")).unwrap().lines() {
            let [range, rights] = [0, 1].map(|field| line.split_whitespace().nth(field).unwrap());
            let (from, to) = range.split_once('-').unwrap();
            let [from, to] = [from, to].map(|address| u64::from_str_radix(address, 16).unwrap());
            let mut bytes = vec![0; (to - from) as usize];
            // Some of the kernel's own mappings cannot be read.
            if !rights.starts_with("rw") || memory.read_exact_at(&mut bytes, from).is_err() {
                continue;
            }
            for window in bytes.windows(HALF) {
                if maybe[usize::from(u16::from_le_bytes([window[0], window[1]]))] {
                    let start = u64::from_le_bytes(*window.first_chunk().unwrap());
                    let known = halves.get(&start).into_iter().flatten().filter(|(_, half)| *half == window);
                    let place = line.split_whitespace().nth(5).unwrap_or("memory");
                    found.extend(known.map(|(name, _)| format!("{name} in {place}")));
                }
            }
        }
        found.into_iter().collect()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// All keys of the run that must be forgotten, by name.
fn keys() -> HashMap<String, [u8; 32]> {
    let mut known = None;
    Run::new(true).go(|step, run| {
        if step == Step::Open {
            known = Some((run.draws.lock().unwrap().clone(), run.packets.clone()));
        }
    });
    let (draws, packets) = known.unwrap();
    // In the order in which they are drawn: two minute keys, c', s'.
    let [minute, minute_before, client_short, server_short] = draws[..] else {
        panic!("{} keys", draws.len())
    };
    let public = |secret: [u8; 32]| SecretKey::from_bytes(secret).public_key();
    let mut cookie = packets.iter().find(|packet| packet.len() == 200).unwrap().clone();
    let Some(Packet::Cookie(header, sealed)) = Packet::decode(&mut cookie) else { panic!("not a Cookie") };
    let hello_key = SecretKey::from_bytes(SERVER).box_key(&public(client_short)).unwrap();
    let nonce = [&prefix::COOKIE[..], &header.nonce].concat().try_into().unwrap();
    let text = hello_key.open(&nonce, sealed).expect("the Cookie is of this run");
    assert_eq!(PublicKey(text[..32].try_into().unwrap()), public(server_short), "s' is of this run");

    let mut raw = [0; 32];
    crypto_scalarmult(&mut raw, &client_short, &public(server_short).0).unwrap();
    let mut keys = HashMap::from([
        ("minute key".to_owned(), minute),
        ("previous minute key".to_owned(), minute_before),
        ("c'".to_owned(), client_short),
        ("s'".to_owned(), server_short),
        ("X25519 of c' and S'".to_owned(), raw),
        ("shared key".to_owned(), crypto_box_beforenm(&public(server_short).0, &client_short).unwrap()),
        ("Hello key".to_owned(), crypto_box_beforenm(&public(SERVER).0, &client_short).unwrap()),
        ("key of the cookie".to_owned(), cookie_key(&minute, &public(client_short))),
    ]);
    for prefix in [prefix::INITIATE, prefix::CLIENT_MESSAGE, prefix::SERVER_MESSAGE] {
        let shared = SecretKey::from_bytes(client_short).box_key(&public(server_short)).unwrap();
        let name = format!("key of {}", String::from_utf8_lossy(prefix));
        keys.insert(name, *DirectionKey::new(shared, prefix).subkey());
    }
    keys
}

/// HSalsa20 over both halves of C' in turn.
fn cookie_key(minute: &[u8; 32], client: &PublicKey) -> [u8; 32] {
    client.0.chunks(16).fold(*minute, |key, half| {
        let mut next = [0; 32];
        crypto_core_hsalsa20(&mut next, half.try_into().unwrap(), &key, None);
        next
    })
}

#[test]
fn a_connection_that_is_over_leaves_no_key_in_memory() {
    let keys = keys();
    let mut process = Process::start();
    let found = |found: &[String], name: &str| found.iter().any(|one| one.starts_with(name));

    // The scan finds what is in use.
    process.wait_for(Step::Hello);
    let at_hello = process.keys_in_memory(&keys);
    for name in ["minute key", "previous minute key", "c'", "Hello key"] {
        assert!(found(&at_hello, name), "{name} is in use but was not found: {at_hello:?}");
    }
    process.go_on();
    process.wait_for(Step::Open);
    let open = process.keys_in_memory(&keys);
    for name in ["minute key", "previous minute key", "shared key", "key of CurveCP-client-M"] {
        assert!(found(&open, name), "{name} is in use but was not found: {open:?}");
    }
    // s' answers the Hellos of its second. The minute key, which opens the cookie with s', lives longer.
    for name in ["c'", "X25519"] {
        assert!(!found(&open, name), "{name} is not needed once the connection is open: {open:?}");
    }
    process.go_on();
    process.wait_for(Step::Expired);
    assert_eq!(process.keys_in_memory(&keys), Vec::<String>::new(), "keys that are over are still in memory");
}
