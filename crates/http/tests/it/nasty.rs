//! Servers with faulty answers: each request still ends in exactly one way, and the right one.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use crate::run::{all_end, closed, closed_within};
use kendall_http::{HttpOptions, Version};
use kendall_record::Outcome;

/// A server that reads the head of each request and then calls a function.
fn server(answer: impl Fn(&mut TcpStream) -> std::io::Result<()> + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let answer = answer.clone();
            thread::spawn(move || serve(stream, answer));
        }
    });
    address
}

fn serve(mut stream: TcpStream, answer: impl Fn(&mut TcpStream) -> std::io::Result<()>) {
    let mut head = Vec::new();
    let mut byte = [0];
    while stream.read_exact(&mut byte).is_ok() {
        head.push(byte[0]);
        if head.ends_with(b"\r\n\r\n") {
            head.clear();
            if answer(&mut stream).is_err() {
                return;
            }
        }
    }
}

/// A server that always answers with these bytes and then closes, or continues.
fn says(text: impl Into<Vec<u8>>, then: Then) -> SocketAddr {
    let text = text.into();
    server(move |stream| {
        stream.write_all(&text)?;
        match then {
            Then::Listen => Ok(()),
            Then::Close => {
                stream.shutdown(std::net::Shutdown::Both).and_then(|()| Err(std::io::ErrorKind::Other.into()))
            }
        }
    })
}

#[derive(Clone, Copy)]
enum Then {
    Listen,
    Close,
}

fn get(address: SocketAddr) -> HttpOptions {
    HttpOptions::get(format!("http://{address}/"))
}

fn ends(address: SocketAddr, outcome: Outcome) {
    all_end(address, &get(address), 3, 12, outcome);
}

#[test]
fn answers_are_accepted_in_any_pieces() {
    let ok = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    ends(says(ok, Then::Listen), Outcome::Answered);
    ends(says("HTTP/1.1 200 OK\r\n\r\nuntil the end", Then::Close), Outcome::Answered);
    ends(says("HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nok", Then::Close), Outcome::Answered);
    let drips = server(move |stream| {
        stream.set_nodelay(true)?;
        ok.bytes().try_for_each(|byte| {
            stream.write_all(&[byte])?;
            thread::sleep(Duration::from_micros(200));
            Ok(())
        })
    });
    ends(drips, Outcome::Answered);
    let long = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{}", 5_000_000, "x".repeat(5_000_000));
    ends(says(long, Then::Listen), Outcome::Answered);
}

#[test]
fn bad_answers_are_wrong_or_refused() {
    for garbage in [
        "\0\u{1}\u{2}\n\n",
        "220 mail.example ESMTP\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
    ] {
        ends(says(garbage, Then::Listen), Outcome::Wrong);
    }
    let both = "HTTP/1.1 200 OK\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n";
    ends(says(both, Then::Listen), Outcome::Wrong);
    ends(says("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", Then::Close), Outcome::Refused);
    ends(says("HTTP/1.1 200 O", Then::Close), Outcome::Refused);
    ends(says("", Then::Close), Outcome::Refused);
    ends(says("HTTP/1.1 503 Busy\r\ncontent-length: 0\r\n\r\n", Then::Listen), Outcome::Refused);
    ends(says("HTTP/1.1 500 Broken\r\ncontent-length: 0\r\n\r\n", Then::Listen), Outcome::Wrong);
}

#[test]
fn a_head_without_end_is_given_up() {
    let endless = server(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n")?;
        loop {
            stream.write_all(&[b'x'; 4096])?;
        }
    });
    ends(endless, Outcome::Wrong);
}

/// An answer whose body never ends.
fn endless() -> SocketAddr {
    server(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
        loop {
            stream.write_all(&[b'x'; 1 << 20])?;
        }
    })
}

#[test]
fn a_body_without_end_exceeds_the_timeout() {
    let address = endless();
    let (summary, _) = closed_within(Duration::from_millis(100), address, &get(address), 2, 4);
    assert_eq!(summary.count(Outcome::TimedOut), 4);
}

#[test]
fn a_body_without_end_is_given_up_at_the_expected_length() {
    let address = endless();
    let mut options = get(address);
    options.request.expect_length = Some(100_000);
    all_end(address, &options, 2, 4, Outcome::Wrong);
}

#[test]
fn the_reason_of_a_refusal_is_that_the_server_closed_the_connection() {
    let address = says("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf", Then::Close);
    let (summary, _) = closed(address, &get(address), 1, 1);
    let why = "the server closed the connection before its answer was complete";
    assert_eq!(summary.refused_because.as_deref(), Some(why));
}

#[test]
fn bytes_behind_an_answer_spend_the_connection_and_are_not_the_next_answer() {
    let twice = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok".repeat(2);
    let (summary, _) = closed(says(twice.clone(), Then::Listen), &get(says(twice, Then::Listen)), 1, 6);
    assert_eq!(summary.count(Outcome::Answered), 6);
    assert_eq!(summary.connections_opened, 6);
}

#[test]
fn http_2_survives_servers_that_do_not_speak_it() {
    for text in [
        "HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        "",
        "\0\0\0\0\0\0\0\0\0\0\0\0",
    ] {
        let address = says(text, Then::Close);
        let options = HttpOptions { version: Version::Http2, ..get(address) };
        let (summary, _) = closed(address, &options, 2, 6);
        assert_eq!(summary.count(Outcome::Answered), 0, "{text}");
        assert_eq!(summary.count(Outcome::Wrong) + summary.count(Outcome::Refused), 6, "{text}");
    }
}
