//! Clients that are not admitted, and clients that break the protocol.

use std::time::Duration;

use kendall_remote::shell::protocol::{
    ClientFrame, Exit, HEADER, MAX_DATA, OUTPUT_WINDOW, Open, ServerFrame, SessionId, Source, Token, Window,
    header,
};
use kendall_remote::shell::{ClientSettings, Outcome, ServerSettings, list};
use kendall_testbed::LIMIT;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use super::harness::{Client, Server, bare_server, connect, pipes, read_some, test};

fn bytes(frames: &[ClientFrame<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    frames.iter().for_each(|frame| frame.append(&mut out));
    out
}

fn open() -> ClientFrame<'static> {
    ClientFrame::Open(Open { terminal: None, command: Some(b"cat"), environment: Vec::new() })
}

#[test]
fn a_key_that_is_not_admitted_gets_no_answer() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let address = server.address;
        let settings = ClientSettings {
            host: "test".into(),
            no_answer: "add this client's key to the server's file".into(),
            answer_within: Duration::from_millis(500),
            silence: Duration::from_secs(5),
            has_escapes: false,
            is_raw: false,
        };
        let connect =
            move || -> kendall_remote::shell::Connecting { Box::pin(async move { Ok(connect(address, 9)) }) };
        let client = Client::start_with(settings, Box::new(connect), pipes("echo in"));
        let (outcome, output, _) = client.wait().await;
        assert_eq!(outcome.unwrap_err().to_string(), "add this client's key to the server's file");
        assert!(output.is_empty());
        server.stop().await;
    });
}

#[test]
fn requests_that_are_not_valid_are_refused_with_a_reason() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let session = SessionId(1);
        for (request, reason) in [
            (bytes(&[ClientFrame::Ping]), "begins with a request"),
            (vec![1, 0, 0, 0, 4, 99], "version 99"),
            (vec![0, 0, 0, 0, 77], "unknown kind 77"),
            (vec![1, 0, 0, 0, 1, 1], "Open frame that is not valid"),
            (bytes(&[ClientFrame::Resume { session, token: Token([0; 16]), received: 0 }]), "no session 1"),
        ] {
            let (_endpoint, mut stream) = connect(server.address, 2);
            stream.write_all(&request).await.unwrap();
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer).await.unwrap();
            let (kind, length) = header(&answer).unwrap().unwrap();
            let ServerFrame::Refused(_, text) =
                ServerFrame::decode(kind, &answer[HEADER..HEADER + length]).unwrap()
            else {
                panic!("{reason}: {answer:?}")
            };
            assert!(text.contains(reason), "{text}");
        }
        server.stop().await;
    });
}

#[test]
fn a_client_that_breaks_the_protocol_loses_its_session_and_others_go_on() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let mut other = server.client(pipes("echo ready; cat"));
        other.expect("ready").await;
        let long = vec![7; 32 * 1024];
        let mut flood: Vec<ClientFrame<'_>> = vec![open()];
        // The command does not read.
        flood.extend((0..40_u64).map(|i| ClientFrame::Input { offset: i * 32 * 1024, bytes: &long }));
        let sleeper =
            ClientFrame::Open(Open { terminal: None, command: Some(b"sleep 1000"), environment: Vec::new() });
        flood[0] = sleeper.clone();
        for attack in [
            bytes(&[open(), ClientFrame::Input { offset: 5, bytes: b"gap" }]),
            bytes(&[open(), ClientFrame::InputEnd(5)]),
            bytes(&[open(), ClientFrame::Acknowledge(1 << 40)]),
            bytes(&[open(), ClientFrame::Finished]),
            bytes(&[open(), open()]),
            bytes(&flood),
            [bytes(&[open()]), vec![255, 255, 255, 255, 16]].concat(),
            [bytes(&[open()]), vec![1, 0, 0, 0, 20, 99]].concat(),
        ] {
            let (_endpoint, mut stream) = connect(server.address, 2);
            _ = stream.write_all(&attack).await;
            // The session's connection is dropped, and with it the command.
            while !read_some(&mut stream).await.is_empty() {}
        }
        other.type_in("still here\n").await;
        other.expect("still here").await;
        while list(connect(server.address, 2), LIMIT, "").await.unwrap().len() > 1 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(other.finish().await.0.unwrap(), Outcome::Exited(Exit::Status(0)));
        server.stop().await;
    });
}

#[test]
fn a_client_that_asks_and_never_reads_is_not_read_for_ever() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let (_endpoint, mut stream) = connect(server.address, 2);
        stream.write_all(&bytes(&[open()])).await.unwrap();
        let pings = bytes(&vec![ClientFrame::Ping; 20_000]);
        let mut sent = 0;
        // 100 MB would fit nowhere.
        while sent < 100_000_000 && timeout(Duration::from_secs(1), stream.write_all(&pings)).await.is_ok() {
            sent += pings.len();
        }
        assert!(sent < 100_000_000, "the server took everything");
        drop(stream);
        server.stop().await;
    });
}

#[test]
fn a_server_that_sends_more_than_its_window_is_left() {
    test(async {
        let server = bare_server();
        // Nothing of what the client writes is read.
        let client = Client::start(server.address(), 2, pipes("cat"));
        let mut stream = server.accept().await.unwrap();
        let (session, token, mut frames) = (SessionId(1), Token([0; 16]), Vec::new());
        ServerFrame::Attached { session, token, terminal: false, input: 0, output: 0 }.append(&mut frames);
        for offset in (0..OUTPUT_WINDOW + (1 << 20)).step_by(MAX_DATA) {
            let (offset, bytes) = (offset as u64, &[7; MAX_DATA]);
            ServerFrame::Output { source: Source::Output, offset, bytes }.append(&mut frames);
        }
        let sent = tokio::spawn(async move { stream.write_all(&frames).await });
        let error = client.end_unread().await.unwrap_err().to_string();
        sent.abort();
        assert!(error.ends_with("more output than it may send before it is acknowledged"), "{error}");
    });
}

#[test]
fn a_session_is_idle_since_its_last_input_or_output() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let (_endpoint, mut stream) = connect(server.address, 2);
        stream.write_all(&bytes(&[open()])).await.unwrap();
        assert!(!read_some(&mut stream).await.is_empty(), "the session is open");
        let idle = async || list(connect(server.address, 2), LIMIT, "").await.unwrap()[0].idle;
        tokio::time::sleep(Duration::from_millis(1100)).await;
        stream.write_all(&bytes(&[ClientFrame::Ping])).await.unwrap();
        assert!(!read_some(&mut stream).await.is_empty(), "a Pong");
        assert!(idle().await > Duration::ZERO, "a keep-alive is not input");
        for offset in 0.. {
            stream.write_all(&bytes(&[ClientFrame::Input { offset, bytes: b"x" }])).await.unwrap();
            if idle().await == Duration::ZERO {
                break;
            }
        }
        drop(stream);
        server.stop().await;
    });
}

#[test]
fn windows_of_any_size_are_survived() {
    test(async {
        let server = Server::start(ServerSettings::default());
        let mut client = server.terminal("stty -echo; echo ready; cat");
        client.expect("ready").await;
        for size in [0, 1, u16::MAX] {
            let window = Window { columns: size, rows: size, x_pixels: size, y_pixels: size };
            client.event(kendall_remote::shell::LocalEvent::Resized(window)).await;
        }
        client.type_in("fine\n").await;
        client.expect("fine").await;
        server.stop().await;
    });
}
