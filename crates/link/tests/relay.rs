//! Tests the relay between real sockets, and its calibration.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use kendall_link::calibrate::{Calibration, Note, Quantity, Side, measure, respond};
use kendall_link::relay::{Relay, Relayed};
use kendall_link::{LinkError, LinkSettings};
use kendall_linkmodel::Transport;
use kendall_testbed::unless_disturbed;

const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn asked(up: &str, down: &str) -> LinkSettings {
    let hops = |text: &str| text.split('|').map(|hop| hop.parse().unwrap()).collect();
    LinkSettings { up: hops(up), down: hops(down) }
}

/// A thread that runs until it is dropped or asked for its result.
struct Running<T> {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<T>>,
}

impl<T: Send + 'static> Running<T> {
    fn start(run: impl FnOnce(&AtomicBool) -> T + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        Self { stop, thread: Some(thread::spawn(move || run(&seen))) }
    }

    fn end(mut self) -> T {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn relay(transport: Transport, to: SocketAddr, link: &LinkSettings) -> (SocketAddr, Running<Relayed>) {
    let relay = Relay::bind(transport, LOOPBACK, to, link, 1).unwrap();
    (relay.address(), Running::start(move |stop| relay.run(stop).unwrap()))
}

/// Measures a link behind a relay of datagrams.
fn measured(link: &LinkSettings) -> (Calibration, Relayed) {
    let server = UdpSocket::bind(LOOPBACK).unwrap();
    let address = server.local_addr().unwrap();
    let server = Running::start(move |stop| respond(&server, stop).unwrap());
    let (through, relay) = relay(Transport::UDP, address, link);
    let found = measure(&UdpSocket::bind(LOOPBACK).unwrap(), through, link).unwrap();
    server.end();
    (found, relay.end())
}

fn value(found: &Calibration, side: Side, quantity: Quantity) -> f64 {
    let row = found.rows.iter().find(|row| (row.side, row.quantity) == (side, quantity)).unwrap();
    row.measured.unwrap().value
}

/// A server that echoes what it receives, one connection after the other, and ends each when its client does.
fn echo() -> SocketAddr {
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut client in listener.incoming().flatten() {
            let mut answer = client.try_clone().unwrap();
            let _ = std::io::copy(&mut client, &mut answer);
            let _ = answer.shutdown(std::net::Shutdown::Write);
        }
    });
    address
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// The errors in a calibration of the link of [`a_link_measures_as_it_was_asked_for`], compared with one without a link.
fn off_what_was_asked(found: &Calibration, free: &Calibration) -> Vec<String> {
    let mut off = Vec::new();
    let mut check = |is_right: bool, what: String| off.extend((!is_right).then_some(what));
    // The time of the machine itself, several times over, since it is busy; never less than the setting.
    // The median of 47 draws from a uniform law 8 ms wide has a deviation of 0.58 ms; 5 of them are a false alarm of 6 in 10⁷.
    for (side, asked_s, chance_s) in [(Side::Up, 0.030, 0.0), (Side::Down, 0.010, 0.0029)] {
        let (with, without) = (value(found, side, Quantity::Delay), value(free, side, Quantity::Delay));
        let slack_s = 0.1 * asked_s + 5.0 * without.abs() + chance_s;
        check(
            (with - asked_s).abs() < slack_s,
            format!("{side:?}: {with} s, and {without} s without a link"),
        );
    }
    for (side, asked) in [(Side::Up, 8e6), (Side::Down, 4e6)] {
        let rate = value(found, side, Quantity::Rate);
        check((rate / asked - 1.0).abs() < 0.05, format!("{side:?}: {rate} bit/s of {asked}"));
    }
    // The deviation of a uniform law is its half-width over √3, and that of 50 draws is within a third of it (4 deviations).
    let jitter_s = value(found, Side::Down, Quantity::Jitter);
    check(jitter_s > 0.004 / 3.0_f64.sqrt() * 0.66, format!("a jitter of {jitter_s} s"));
    // Some 3,300 packets: 5 standard deviations are 1.9 %.
    let loss = value(found, Side::Up, Quantity::Loss);
    check((loss - 0.05).abs() < 0.02, format!("a loss of {loss}"));
    off
}

#[test]
fn a_link_measures_as_it_was_asked_for() {
    let link = asked("delay=30ms rate=8mbit loss=5%", "delay=10ms jitter=4ms rate=4mbit queue=1M");
    let (free, _) = measured(&asked("", ""));
    // A machine that pauses meanwhile looks like delay, or like a lower rate.
    let relayed = unless_disturbed(|| {
        let (found, relayed) = measured(&link);
        let reasons = off_what_was_asked(&found, &free);
        if reasons.is_empty() { Ok(relayed) } else { Err(reasons.join("; ")) }
    });
    let late = relayed.link.up.late.unwrap();
    assert!(late.packets > 0 && late.p50_ns <= late.p99_ns && late.p99_ns <= late.max_ns);
    assert!(relayed.link.up.hops[0].dropped_lost > 0 && relayed.link.down.hops[0].dropped_lost == 0);
}

#[test]
fn a_link_that_nothing_crosses_is_known_as_such() {
    let (found, _) = measured(&asked("loss=100%", ""));
    assert!(found.rows.iter().all(|row| row.measured.is_none() && row.note == Some(Note::NothingArrived)));
    assert_eq!(found.excess, None);
}

#[test]
fn datagrams_fare_each_by_itself() {
    let server = UdpSocket::bind(LOOPBACK).unwrap();
    server.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    let to = server.local_addr().unwrap();
    let mut buffer = [0; 100];
    let (twice, relay_twice) = relay(Transport::UDP, to, &asked("duplicate=100%|delay=2ms", ""));
    let client = UdpSocket::bind(LOOPBACK).unwrap();
    client.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
    client.send_to(b"one", twice).unwrap();
    for _ in 0..2 {
        let (length, from) = server.recv_from(&mut buffer).unwrap();
        assert_eq!(&buffer[..length], b"one");
        server.send_to(b"back", from).unwrap();
    }
    for _ in 0..2 {
        let (length, from) = client.recv_from(&mut buffer).unwrap();
        assert_eq!((&buffer[..length], from), (&b"back"[..], twice));
    }
    let relayed = relay_twice.end();
    assert_eq!((relayed.clients, relayed.link.up.hops[1].delivered), (1, 2));

    // A damaged datagram does not arrive: the next one that does was sent over the link without damage.
    let (damaged, relay_damaged) = relay(Transport::UDP, to, &asked("corrupt=100%", ""));
    client.send_to(b"damaged", damaged).unwrap();
    thread::sleep(Duration::from_millis(50));
    client.send_to(b"whole", to).unwrap();
    let length = server.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..length], b"whole");
    assert_eq!(relay_damaged.end().link.up.hops[0].corrupted, 1);
}

#[test]
fn a_stream_takes_its_time_and_arrives_whole() {
    let direct = echo();
    let (through, relay) = relay(Transport::TCP, direct, &asked("delay=20ms", "delay=10ms"));
    let round_trips = |to: SocketAddr| -> Vec<f64> {
        let mut stream = TcpStream::connect(to).unwrap();
        stream.set_nodelay(true).unwrap();
        (0..15)
            .map(|_| {
                let start = Instant::now();
                stream.write_all(b"ping").unwrap();
                stream.read_exact(&mut [0; 4]).unwrap();
                start.elapsed().as_secs_f64()
            })
            .collect()
    };
    let without_s = median(round_trips(direct));
    let with_s = round_trips(through);
    assert!(with_s.iter().all(|time_s| *time_s >= 0.030), "{with_s:?}");
    assert!(median(with_s.clone()) < 0.030 * 1.3 + 20.0 * without_s, "{with_s:?}, {without_s} s without");
    let relayed = relay.end();
    assert_eq!((relayed.clients, relayed.turned_away), (1, 0));
}

#[test]
fn every_byte_of_a_stream_arrives_in_order_whatever_is_lost() {
    let link = asked("delay=3ms jitter=2ms loss=5% rate=20mbit queue=20k", "delay=3ms loss=2% burst 3");
    let (through, relay) = relay(Transport::TCP, echo(), &link);
    let sent: Vec<u8> = (0..400_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let mut stream = TcpStream::connect(through).unwrap();
    let mut sender = stream.try_clone().unwrap();
    let all = sent.clone();
    let sending = thread::spawn(move || {
        sender.write_all(&all).unwrap();
        sender.shutdown(std::net::Shutdown::Write).unwrap();
    });
    let mut received = Vec::new();
    stream.read_to_end(&mut received).unwrap();
    sending.join().unwrap();
    assert!(received == sent, "{} of {} bytes", received.len(), sent.len());
    let relayed = relay.end();
    assert!(relayed.sent_again > 0);
    // No piece is dropped: a lost one is sent again.
    assert_eq!(relayed.link.up.hops[0].dropped(), 0);
}

#[test]
fn a_sender_feels_the_rate_of_the_link() {
    // Of 1,514 bytes on the link 1,448 are the stream's.
    let rate_asked = 16e6 * 1448.0 / 1514.0;
    unless_disturbed(|| {
        let (rate, beyond) = rate_and_bytes_beyond(rate_asked);
        let is_felt = (rate / rate_asked - 1.0).abs() < 0.05 && beyond < 8e6;
        is_felt
            .then_some(())
            .ok_or_else(|| format!("{rate} of {rate_asked} bit/s arrive, {beyond} bytes are under way"))
    });
}

/// The rate at which a stream arrives, and how many bytes its sender wrote beyond what the link took.
fn rate_and_bytes_beyond(rate_asked: f64) -> (f64, f64) {
    let listener = TcpListener::bind(LOOPBACK).unwrap();
    let link = asked("rate=16mbit queue=30k delay=1ms", "");
    let (through, _relay) = relay(Transport::TCP, listener.local_addr().unwrap(), &link);
    let mut stream = TcpStream::connect(through).unwrap();
    let (mut server, _) = listener.accept().unwrap();
    let sending = thread::spawn(move || {
        let (start, mut sent) = (Instant::now(), 0);
        while start.elapsed() < Duration::from_millis(1200) {
            sent += stream.write(&[7; 16_384]).unwrap();
        }
        (sent, start.elapsed().as_secs_f64())
    });
    let mut buffer = vec![0; 65_536];
    let (mut received, mut first) = (0, None);
    let mut last = Instant::now();
    loop {
        match server.read(&mut buffer).unwrap() {
            0 => break,
            length => {
                last = Instant::now();
                received += if first.is_some() { length } else { 0 };
                first.get_or_insert(last);
            }
        }
    }
    let (sent, took_s) = sending.join().unwrap();
    let rate = received as f64 * 8.0 / last.duration_since(first.unwrap()).as_secs_f64();
    // The rest lies in buffers: the link's, and those that kernels give a socket.
    (rate, sent as f64 - rate_asked / 8.0 * took_s)
}

#[test]
fn whoever_cannot_be_served_is_turned_away() {
    let nobody = TcpListener::bind(LOOPBACK).unwrap().local_addr().unwrap();
    let (through, relay) = relay(Transport::TCP, nobody, &asked("", ""));
    let mut stream = TcpStream::connect(through).unwrap();
    assert!(matches!(stream.read(&mut [0; 1]), Ok(0) | Err(_)), "the connection ends");
    assert_eq!(relay.end().turned_away, 1);
}

#[test]
fn what_a_stream_cannot_have_is_refused_in_a_sentence() {
    for (link, what) in [
        ("aqm=codel", "CoDel"),
        ("corrupt=1%", "corruption"),
        ("duplicate=1%", "duplication"),
        ("reorder=1%", "reordering"),
        ("delay=1ms|delay=2ms", "several hops"),
    ] {
        let error = Relay::bind(Transport::TCP, LOOPBACK, LOOPBACK, &asked("", link), 1).unwrap_err();
        assert!(matches!(&error, LinkError::Refused(why) if why.contains(what)), "{error}");
    }
    let taken = UdpSocket::bind(LOOPBACK).unwrap();
    let error =
        Relay::bind(Transport::UDP, taken.local_addr().unwrap(), LOOPBACK, &asked("", ""), 1).unwrap_err();
    assert!(error.to_string().contains("listen for datagrams on 127.0.0.1"), "{error}");
}
