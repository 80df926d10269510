//! Recorded traffic, replayed: the client's part to the server, and the server's part to the client.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread::{self, sleep};
use std::time::Duration;

use crate::asking::ask;
use crate::peer::Peer;
use crate::running::{options, run};
use bytes::Bytes;
use kendall_load::Request as LoadRequest;
use kendall_record::Outcome;
use kendall_reverse::protocol::{REQUEST_BYTES, Request, decode_answer};
use kendall_reverse::{Parameters, ReverseWorkload};
use kendall_testbed::LIMIT;

/// Longer than the server takes to read the buffered bytes, so that pieces arrive separately.
const PAUSE: Duration = Duration::from_millis(5);

/// One recorded connection.
struct Conversation {
    name: &'static str,
    /// The bytes of the client, segment by segment.
    segments: Vec<Vec<u8>>,
    /// Whether it closed its side before it had the answer.
    half_closed: bool,
    /// All bytes of the server.
    answer: Vec<u8>,
}

impl Conversation {
    fn sent(&self) -> Vec<u8> {
        self.segments.concat()
    }
}

fn recorded() -> Vec<Conversation> {
    let mut all: Vec<Conversation> = Vec::new();
    let lines = include_str!("../../testdata/traffic.txt").lines();
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[') {
            let name = name.strip_suffix(']').unwrap();
            all.push(Conversation { name, segments: Vec::new(), half_closed: false, answer: Vec::new() });
            continue;
        }
        let conversation = all.last_mut().unwrap();
        match line.split_at(2) {
            ("> ", "end") => conversation.half_closed = true,
            ("> ", hex) => conversation.segments.push(bytes(hex)),
            ("< ", "end") => {}
            ("< ", hex) => conversation.answer.extend(bytes(hex)),
            _ => panic!("{line:?} is not a line of a conversation"),
        }
    }
    all
}

fn bytes(hex: &str) -> Vec<u8> {
    let pairs = (0..hex.len()).step_by(2).map(|at| &hex[at..at + 2]);
    pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

#[test]
fn the_server_answers_recorded_clients_as_it_was_recorded() {
    let server = run(options());
    for conversation in recorded() {
        let mut peer = Peer::connect(server.address);
        for segment in &conversation.segments {
            peer.0.write_all(segment).unwrap();
            sleep(PAUSE);
        }
        if conversation.half_closed {
            peer.half_close();
        }
        assert_eq!(peer.rest().unwrap(), conversation.answer, "{}", conversation.name);
    }
    server.check_conservation();
}

/// A server that reads one request of 49 bytes, answers in pieces of this length, and returns the request.
fn recorded_server(answer: Vec<u8>, piece_bytes: usize) -> (SocketAddr, thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_nodelay(true).unwrap();
        let mut request = vec![0; REQUEST_BYTES];
        stream.read_exact(&mut request).unwrap();
        for piece in answer.chunks(piece_bytes) {
            stream.write_all(piece).unwrap();
            sleep(PAUSE);
        }
        request
    });
    (address, server)
}

#[test]
fn the_client_sends_and_judges_as_recorded() {
    let any = Parameters { difficulty: 1, repeat_percent: 0.0, priority_lambda: 0.0, start: None };
    let mut judged = Vec::new();
    for conversation in recorded().iter().filter(|recorded| recorded.sent().len() == REQUEST_BYTES) {
        let name = conversation.name;
        let request = Request::decode(&conversation.sent()).unwrap();
        assert_eq!(request.encode().to_vec(), conversation.sent(), "{name}");
        let answer = decode_answer(conversation.answer.clone().try_into().unwrap());
        // Computed by the test's own client, not by the system.
        let holds =
            (request.start..request.end).contains(&answer) && crate::peer::digest(answer) == request.digest;
        for piece_bytes in [8, 3] {
            let (address, server) = recorded_server(conversation.answer.clone(), piece_bytes);
            let workload = ReverseWorkload::new(address, any, 1).unwrap();
            let request = LoadRequest::new(0, Bytes::copy_from_slice(&request.encode()));
            let outcome = ask(&workload, request, LIMIT).outcome;
            assert_eq!(server.join().unwrap(), conversation.sent(), "{name}");
            assert_eq!(outcome, if holds { Outcome::Answered } else { Outcome::Wrong }, "{name}");
        }
        judged.push(holds);
    }
    assert!(judged.contains(&true) && judged.contains(&false), "there are cases of both kinds");
}
