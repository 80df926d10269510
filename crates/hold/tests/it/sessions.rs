//! Sessions through the public interface: an answer arrives on the session of the user that the request
//! names.

use std::io::{Read, Write};
use std::net::TcpStream;

use kendall_hold::protocol::session::{
    ANSWER_BYTES, Answer, Fate, LAST_USER, Request, decode_answer, encode_opening, encode_request,
};
use kendall_hold::{Dialect, HoldOptions, bind_sessions};
use kendall_station::Law;
use kendall_testbed::{LIMIT, Running, wait_until};

use crate::station::{options, run_server};

fn serve(options: HoldOptions) -> Running {
    run_server(bind_sessions(&HoldOptions { dialect: Dialect::Sessions, ..options }).unwrap())
}

/// A user's session.
struct User(TcpStream);

impl User {
    fn new(server: &Running, user: u64) -> Self {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.write_all(&encode_opening(user)).unwrap();
        let mut session = Self(stream);
        assert_eq!(session.answer(), Answer { nonce: user, fate: Fate::Present });
        session
    }

    fn ask(&mut self, nonce: u64, to: u64) {
        self.0.write_all(&encode_request(Request { nonce, to })).unwrap();
    }

    fn answer(&mut self) -> Answer {
        let mut bytes = [0; ANSWER_BYTES];
        self.0.read_exact(&mut bytes).unwrap();
        decode_answer(bytes)
    }
}

#[test]
fn an_answer_arrives_at_the_named_user_or_returns_to_the_requester() {
    let server = serve(options(2, 10, Law::Constant { mean_s: 0.001 }));
    let (mut one, mut two) = (User::new(&server, 1), User::new(&server, LAST_USER));
    one.ask(7, LAST_USER);
    assert_eq!(two.answer(), Answer { nonce: 7, fate: Fate::Held { from: 1 } });
    two.ask(8, 1);
    assert_eq!(one.answer(), Answer { nonce: 8, fate: Fate::Held { from: LAST_USER } });
    one.ask(9, 3);
    assert_eq!(one.answer(), Answer { nonce: 9, fate: Fate::Unreached { from: 1 } });
    drop(two);
    wait_until("its session is closed", || server.closed("finished") == 1);
    one.ask(10, LAST_USER);
    assert_eq!(one.answer(), Answer { nonce: 10, fate: Fate::Unreached { from: 1 } });
}

/// A user that opens a second session gets its answers there; the end of the first one changes nothing.
#[test]
fn the_session_that_a_user_opened_last_counts() {
    let server = serve(options(1, 10, Law::Constant { mean_s: 0.001 }));
    let mut asks = User::new(&server, 1);
    let first = User::new(&server, 2);
    let mut second = User::new(&server, 2);
    drop(first);
    wait_until("it is closed", || server.closed("finished") == 1);
    asks.ask(5, 2);
    assert_eq!(second.answer(), Answer { nonce: 5, fate: Fate::Held { from: 1 } });
}

#[test]
fn requests_of_one_session_are_held_concurrently_and_rejected_beyond_the_capacity() {
    let server = serve(options(2, 3, Law::Constant { mean_s: 0.3 }));
    let mut user = User::new(&server, 1);
    (1..=4).for_each(|nonce| user.ask(nonce, 1));
    assert_eq!(user.answer(), Answer { nonce: 4, fate: Fate::Refused }, "at once, while the others are held");
    let mut held: Vec<u64> = (0..3).map(|_| user.answer().nonce).collect();
    held.sort_unstable();
    assert_eq!(held, [1, 2, 3]);
    assert_eq!((server.requests("answered"), server.requests("queue-full")), (3, 1));
}

#[test]
fn invalid_openings_are_closed() {
    let server = serve(options(1, 10, Law::Constant { mean_s: 0.001 }));
    for bytes in [&b"GET / HTTP/1.1\r\n"[..], &encode_opening(LAST_USER + 1)] {
        let mut stream = TcpStream::connect(server.address).unwrap();
        stream.write_all(bytes).unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(rest.is_empty());
    }
    wait_until("both are closed", || server.closed("malformed") == 2);
}
