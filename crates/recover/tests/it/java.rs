//! A client and a server in Java, written from the description of the protocol: recorded, which needs no Java, and live,
//! if Java is installed.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::thread;

use crate::asking::*;
use kendall_recover::{Algorithm, Ask, Dialect, RecoverOptions, request};
use kendall_testbed::{LIMIT, Running};

/// A request of the client in Java for a file of 100 bytes under "hello", and the answer of the server in Java.
fn recorded(dialect: Dialect) -> [Vec<u8>; 2] {
    match dialect {
        Dialect::Course => [
            include_str!("../testdata/java-course-request.hex"),
            include_str!("../testdata/java-course-answer.hex"),
        ],
        Dialect::WithId => [
            include_str!("../testdata/java-with-id-request.hex"),
            include_str!("../testdata/java-with-id-answer.hex"),
        ],
    }
    .map(hex)
}

fn server(dialect: Dialect) -> Running {
    run(RecoverOptions { dialect, ..options() })
}

/// The result of the request client for a server's answer to the recorded request.
fn asked(server: SocketAddr, dialect: Dialect) -> Vec<u8> {
    let [sent, _] = recorded(dialect);
    let encrypted = &sent[sent.len() - 112..];
    let ask = Ask { hash: Algorithm::Sha1.hash(b"hello"), lengths: 5..=5, dialect };
    let mut plain = Vec::new();
    request(server, &ask, (encrypted, 112), &mut plain, |_| {}).unwrap();
    plain
}

/// Accepts one connection, reads the expected number of bytes and answers; returns the bytes read.
fn answering(expected: usize, answer: Vec<u8>) -> (SocketAddr, thread::JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serve = move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut read = vec![0; expected];
        stream.read_exact(&mut read).unwrap();
        stream.write_all(&answer).unwrap();
        read
    };
    (address, thread::spawn(serve))
}

#[test]
fn what_the_client_in_java_sent_is_answered_as_by_the_server_in_java() {
    for dialect in Dialect::ALL {
        let [sent, answer] = recorded(dialect);
        let server = server(dialect);
        let mut peer = Peer::connect(server.address);
        peer.send(&sent);
        assert_eq!(peer.rest(), answer, "{dialect:?}");
    }
}

#[test]
fn what_the_server_in_java_answered_is_understood_and_asked_for_with_the_same_bytes() {
    for dialect in Dialect::ALL {
        let [sent, answer] = recorded(dialect);
        let plain = answer[dialect.answer_head_bytes()..].to_vec();
        let (address, serving) = answering(sent.len(), answer);
        assert_eq!(asked(address, dialect), plain, "{dialect:?}");
        assert_eq!(serving.join().unwrap(), sent, "{dialect:?}");
    }
}

/// Runs `java Peer.java …`, if Java is installed.
fn java(arguments: &[&str]) -> Option<Child> {
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/java/Peer.java");
    // The compiler and the virtual machine start faster without their best optimisations.
    let java = Command::new("java")
        .args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", source])
        .args(arguments)
        .stdout(Stdio::piped())
        .spawn();
    if java.is_err() {
        kendall_testbed::missing("java");
    }
    java.ok()
}

/// The output of the client in Java for its requests.
fn client(dialect: Dialect, server: SocketAddr, requests: &[&str]) -> Option<String> {
    let port = server.port().to_string();
    let output = java(&[&["client", dialect.name(), &port], requests].concat())?.wait_with_output().unwrap();
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap())
}

/// For a word, by brute force, for files around whole blocks, and for a password that cannot be found.
#[test]
fn the_client_in_java_gets_its_files() {
    for dialect in Dialect::ALL {
        let server = server(dialect);
        let requests = ["hello:0", "hello:16", "xqz:20480", "hello:1000003", "NO!:17"];
        let Some(said) = client(dialect, server.address, &requests) else { return };
        assert_eq!(
            said.lines().collect::<Vec<_>>(),
            ["same", "same", "same", "same", "nothing"],
            "{dialect:?}"
        );
        assert_eq!(came_to(&server, "recovered"), 4);
    }
}

/// The recordings are still what Java sends and answers.
#[test]
fn java_sends_and_answers_what_is_recorded() {
    for dialect in Dialect::ALL {
        let [sent, answer] = recorded(dialect);
        let (address, serving) = answering(sent.len(), answer.clone());
        let Some(said) = client(dialect, address, &["hello:100"]) else { return };
        assert_eq!((said.trim(), serving.join().unwrap()), ("same", sent), "{dialect:?}");

        let Some(mut server) = java(&["server", dialect.name(), "other", "hello"]) else { return };
        let mut port = String::new();
        BufReader::new(server.stdout.take().unwrap()).read_line(&mut port).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], port.trim().parse().unwrap()));
        assert_eq!(asked(address, dialect), answer[dialect.answer_head_bytes()..], "{dialect:?}");
        assert!(server.wait().unwrap().success());
    }
}
