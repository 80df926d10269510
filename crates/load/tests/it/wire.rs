//! The layers between a workload and a server: answers in pieces, TLS, datagrams, and the kernel's timestamps.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use crate::echo::{Driver, Echo, over, plan, rows, run_all, server};
use bytes::Bytes;
use kendall_linkmodel::{Carries, Transport};
use kendall_load::{
    AnswerRead, ConnectionKind, Dialog, Dialogs, Plan, Progress, Request, RequestClass, Reuse, Route,
    StampedBy, Timing, Wire, Workload,
};
use kendall_record::clock::now_ns;
use kendall_record::{Outcome, RequestRow};
use kendall_station::{Arrivals, Law};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore, ServerConfig, ServerConnection, StreamOwned};

#[test]
fn an_answer_may_arrive_in_any_two_pieces() {
    let address = server(|stream, index| {
        let answer = index.to_be_bytes();
        let (first, second) = answer.split_at((index % 9) as usize);
        stream.write_all(first)?;
        thread::sleep(Duration::from_millis(1));
        stream.write_all(second)
    });
    let (rows, summary) = rows(&plan(Arrivals::constant(500.0), 300), &over(Driver::Poll, address));
    assert_eq!(summary.count(Outcome::Answered), summary.sent);
    assert!(rows.iter().all(|row| row.bytes_in == 8));
    let apart = |row: &RequestRow| row.completed.unwrap() - row.first_byte.unwrap();
    let in_one = |row: &&RequestRow| row.index.is_multiple_of(9) || row.index % 9 == 8;
    assert!(rows.iter().filter(in_one).all(|row| apart(row) == 0));
    // On a machine that pauses for a moment both pieces have arrived when the first is read.
    let in_two = rows.iter().filter(|row| !in_one(row) && apart(row) > 0).count();
    assert!(2 * in_two > rows.iter().filter(|row| !in_one(row)).count(), "{in_two} of {}", rows.len());
}

#[test]
fn bytes_beyond_an_answer_end_the_connection_and_not_the_request() {
    let address = server(|stream, index| stream.write_all(&[&index.to_be_bytes()[..], b"more"].concat()));
    let (_, summary) = rows(&plan(Arrivals::constant(200.0), 200), &over(Driver::Poll, address));
    assert_eq!(summary.count(Outcome::Answered), summary.sent);
    assert_eq!(summary.connections_opened, summary.sent);
}

/// A workload that reads an answer more slowly than the server sends it, and to no end.
struct SlowReader(SocketAddr);

impl Workload for SlowReader {
    fn request(&self, index: u64) -> Request {
        Request::new(0, Bytes::copy_from_slice(&index.to_be_bytes()))
    }

    fn classes(&self) -> Vec<RequestClass> {
        vec![RequestClass::new("all", 1.0)]
    }

    fn route(&self) -> Route<'_> {
        Route::Bytes(Wire { to: self.0, kind: ConnectionKind::TCP, reuse: Reuse::Keep }, self)
    }
}

impl Dialogs for SlowReader {
    fn dialog(&self) -> Box<dyn Dialog> {
        Box::new(SlowDialog)
    }
}

struct SlowDialog;

impl Dialog for SlowDialog {
    fn begin(&mut self, _: u64, _: &Request) {}

    fn read(&mut self, bytes: &[u8]) -> AnswerRead {
        thread::sleep(Duration::from_millis(1));
        AnswerRead::More { used: bytes.len() }
    }
}

/// There is always more to read, and yet requests are sent on time and exceed their timeout.
#[test]
fn an_answer_without_end_delays_no_timeout_and_no_other_request() {
    let address = server(|stream, _| {
        loop {
            stream.write_all(&[0; 1 << 16])?;
        }
    });
    let two = Plan {
        timeout: Duration::from_millis(100),
        requests: Some(2),
        ..plan(Arrivals::constant(20.0), 1000)
    };
    let (summary, rows) = run_all(&two, &SlowReader(address), &Progress::default(), &AtomicBool::new(false));
    assert_eq!(summary.count(Outcome::TimedOut), 2, "{summary:?}");
    assert!(rows.iter().all(|row| row.sent.is_some()), "{rows:?}");
}

#[test]
fn a_kept_connection_that_the_server_closes_is_replaced() {
    // Answers one request on each connection and closes it a millisecond later, long before the next request.
    let address = server(|stream, index| {
        stream.write_all(&index.to_be_bytes())?;
        thread::sleep(Duration::from_millis(1));
        Err(std::io::ErrorKind::BrokenPipe.into())
    });
    let slow = plan(Arrivals::constant(8.0), 1250);
    let (_, summary) = rows(&slow, &over(Driver::Poll, address));
    let ended = (summary.count(Outcome::Answered), summary.connections_opened);
    assert!(summary.sent >= 8 && ended == (summary.sent, summary.sent), "{ended:?} of {}", summary.sent);
}

/// A TLS server that answers like [`server`]; it closes a connection over a request of this number.
fn tls_server(closes_at: u64) -> (SocketAddr, ConnectionKind) {
    let certificate = CertificateDer::from(&include_bytes!("../../testdata/localhost.crt.der")[..]);
    let key = PrivateKeyDer::try_from(&include_bytes!("../../testdata/localhost.key.der")[..]).unwrap();
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key.clone_key())
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let tls = ServerConnection::new(config.clone()).unwrap();
            let mut stream = StreamOwned::new(tls, stream.unwrap());
            thread::spawn(move || {
                let mut request = [0; 8];
                while stream.read_exact(&mut request).is_ok() {
                    if u64::from_be_bytes(request) == closes_at || stream.write_all(&request).is_err() {
                        return;
                    }
                }
            });
        }
    });
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    (address, ConnectionKind::tls(Arc::new(config), name))
}

#[test]
fn requests_go_over_tls_kept_or_one_connection_each() {
    for reuse in [Reuse::Keep, Reuse::Close] {
        let (address, kind) = tls_server(7);
        let workload = Echo { reuse, kind, ..over(Driver::Poll, address) };
        let (rows, summary) = rows(&plan(Arrivals::constant(200.0), 300), &workload);
        for row in &rows {
            let refused = row.index == 7;
            let expected = if refused { Outcome::Refused } else { Outcome::Answered };
            assert_eq!(row.outcome, expected, "{row:?}");
            assert_eq!((row.bytes_out, row.bytes_in), (8, if refused { 0 } else { 8 }), "of the request");
            assert!([Some(row.scheduled), row.sent, row.completed].is_sorted(), "{row:?}");
        }
        match reuse {
            Reuse::Keep => assert!(summary.connections_opened < summary.sent),
            Reuse::Close => assert_eq!(summary.connections_opened, summary.sent),
        }
    }
}

/// Adding a transport takes only its data. Multipath TCP is one for which kendall has no constant; a kernel without it gets
/// TCP by its number. A server of plain TCP answers both.
#[test]
fn a_transport_is_added_by_its_data_alone() {
    const MULTIPATH_TCP: u16 = 262;
    const TCP: u16 = 6;
    let has_multipath = Path::new("/proc/sys/net/mptcp/enabled").exists();
    let added = Transport {
        name: "multipath TCP",
        carries: Carries::Streams,
        protocol: if has_multipath { MULTIPATH_TCP } else { TCP },
        differs: "a relay carries one path",
    };
    let address = server(|stream, index| stream.write_all(&index.to_be_bytes()));
    let workload = Echo { kind: ConnectionKind::plain(added), ..over(Driver::Poll, address) };
    let (_, summary) = rows(&plan(Arrivals::constant(200.0), 100), &workload);
    assert_eq!(summary.count(Outcome::Answered), summary.sent, "{summary:?}");
    assert_eq!(added.relay(), "relay of multipath TCP");
}

#[test]
fn a_certificate_for_another_name_is_rejected_with_a_reason() {
    let (address, kind) = tls_server(u64::MAX);
    let config = kind.security().expect("it is TLS").config.clone();
    let name = ServerName::try_from("elsewhere.example").unwrap();
    let workload = Echo { kind: ConnectionKind::tls(config, name), ..over(Driver::Poll, address) };
    let (rows, summary) = rows(&plan(Arrivals::constant(100.0), 100), &workload);
    assert_eq!(summary.count(Outcome::Refused), summary.sent);
    assert!(rows.iter().all(|row| row.sent.is_none()), "no request is sent to an untrusted server");
    let why = summary.refused_because.unwrap();
    assert!(why.contains("certificate") && why.contains("elsewhere.example"), "{why}");
}

/// Every fifth datagram is lost, and every seventh is answered after the timeout. A late answer must not be taken for that
/// of the next request, which would be wrong.
#[test]
fn lost_and_late_datagrams_are_abandoned_and_disturb_no_other() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    thread::spawn(move || {
        let mut request = [0; 64];
        while let Ok((8, client)) = socket.recv_from(&mut request) {
            let answer: [u8; 8] = request[..8].try_into().unwrap();
            let late = socket.try_clone().unwrap();
            match u64::from_be_bytes(answer) {
                index if index % 5 == 0 => {}
                index if index % 7 == 0 => drop(thread::spawn(move || {
                    thread::sleep(Duration::from_millis(1500));
                    late.send_to(&answer, client)
                })),
                _ => drop(socket.send_to(&answer, client)),
            }
        }
    });
    let workload = Echo { kind: ConnectionKind::UDP, ..over(Driver::Poll, address) };
    let patient = Plan { timeout: Duration::from_secs(1), ..plan(Arrivals::constant(200.0), 1000) };
    let (rows, _) = rows(&Plan { drain: Duration::from_secs(3), ..patient }, &workload);
    for row in &rows {
        let is_given_up = row.index % 5 == 0 || row.index % 7 == 0;
        let expected = if is_given_up { Outcome::TimedOut } else { Outcome::Answered };
        assert_eq!(row.outcome, expected, "{row:?}");
    }
}

/// The generator's thread stalls for 2 s while answers arrive. With the kernel's timestamps they count from their arrival,
/// otherwise from when they were read; in neither case do they count as silence.
#[test]
fn answers_during_a_stall_of_the_generator_are_not_silence_and_late_ones_time_out() {
    let address = server(|stream, index| {
        thread::sleep(Duration::from_millis([0, 0, 0, 0, 200, 500, 1500][index.min(6) as usize]));
        stream.write_all(&index.to_be_bytes())
    });
    let impatient = Plan {
        requests: Some(7),
        timeout: Duration::from_secs(1),
        drain: Duration::from_secs(10),
        ..plan(Arrivals::constant(100.0), 1000)
    };
    for (driver, timely) in [(Driver::Poll, Outcome::Answered), (Driver::Task, Outcome::TimedOut)] {
        let pausing = Echo { pause: Some((4, Duration::from_secs(2))), ..over(driver, address) };
        let (_, rows) = run_all(&impatient, &pausing, &Progress::default(), &AtomicBool::new(false));
        let outcomes: HashMap<u64, Outcome> = rows.iter().map(|row| (row.index, row.outcome)).collect();
        assert_eq!((outcomes[&5], outcomes[&6]), (timely, Outcome::TimedOut), "{outcomes:?} by {driver:?}");
    }
}

#[test]
fn a_datagram_to_a_closed_port_is_refused() {
    let address = UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let workload = Echo { kind: ConnectionKind::UDP, ..over(Driver::Poll, address) };
    let (_, summary) = rows(&plan(Arrivals::constant(200.0), 200), &workload);
    assert_eq!(summary.count(Outcome::Refused), summary.sent);
}

/// Answers contain the server's clock at their sending.
struct Clocked {
    server: SocketAddr,
    answers: Arc<Mutex<HashMap<u64, i64>>>,
}

impl Workload for Clocked {
    fn request(&self, _: u64) -> Request {
        Request::new(0, Bytes::from_static(&[0; 8]))
    }

    fn classes(&self) -> Vec<RequestClass> {
        vec![RequestClass::new("all", 1.0)]
    }

    fn route(&self) -> Route<'_> {
        Route::Bytes(Wire { to: self.server, kind: ConnectionKind::TCP, reuse: Reuse::Keep }, self)
    }
}

impl Dialogs for Clocked {
    fn dialog(&self) -> Box<dyn Dialog> {
        Box::new(Clock { index: 0, answers: self.answers.clone() })
    }
}

struct Clock {
    index: u64,
    answers: Arc<Mutex<HashMap<u64, i64>>>,
}

impl Dialog for Clock {
    fn begin(&mut self, index: u64, _: &Request) {
        self.index = index;
    }

    fn read(&mut self, bytes: &[u8]) -> AnswerRead {
        let Some(at_ns) = bytes.first_chunk() else { return AnswerRead::More { used: 0 } };
        self.answers.lock().unwrap().insert(self.index, i64::from_be_bytes(*at_ns));
        AnswerRead::Done { used: 8, outcome: Outcome::Answered, reuse: Reuse::Keep }
    }
}

/// From the instant the server sent each answer until the generator's stamp of its arrival, in ns, sorted.
fn ways_back_ns(plan: &Plan, stamped_by: StampedBy) -> Vec<i64> {
    let server = server(|stream: &mut TcpStream, _| stream.write_all(&now_ns().to_be_bytes()));
    let workload = Clocked { server, answers: Arc::default() };
    let (summary, rows) = run_all(plan, &workload, &Progress::default(), &AtomicBool::new(false));
    assert_eq!(summary.thread.stamped_by, stamped_by);
    assert_eq!(summary.count(Outcome::Answered), summary.sent);
    let answers = workload.answers.lock().unwrap();
    let back = |row: &RequestRow| row.completed.unwrap() + summary.start_ns - answers[&row.index];
    let mut back: Vec<i64> = rows.iter().map(back).collect();
    assert!(rows.iter().all(|row| row.sent <= row.first_byte && row.first_byte <= row.completed));
    back.sort_unstable();
    back
}

/// At this rate the generator only reads answers after the next send, up to 125 µs late. By the kernel's timestamps they
/// still arrive earlier than a generator that is woken by each of them could read it.
#[test]
fn an_answer_that_is_read_late_has_its_arrival_time() {
    let open = Plan { connections: 8, ..plan(Arrivals::constant(8000.0), 1000) };
    let late = ways_back_ns(&open, StampedBy::Kernel);
    let precise = ways_back_ns(&Plan { timing: Timing::Precise, ..open.clone() }, StampedBy::Kernel);
    let arrivals = Arrivals::Closed { population: 1, think: Law::Constant { mean_s: 0.0 } };
    let woken = ways_back_ns(&Plan { arrivals, ..open }, StampedBy::Generator);
    // The two clocks are compared with a better precision than this.
    const APART_NS: i64 = 5_000;
    assert!(late[0] > -APART_NS && precise[0] > -APART_NS, "{} and {}", late[0], precise[0]);
    let median = |back: &[i64]| back[back.len() / 2];
    assert!(median(&late) <= median(&woken), "{} and {} ns", median(&late), median(&woken));
    // Woken or not, the stamps are the same: they depend on packets, not on readings.
    assert!(median(&late) < 2 * median(&precise) + APART_NS, "{} and {}", median(&late), median(&precise));
}
