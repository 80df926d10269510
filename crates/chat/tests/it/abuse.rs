//! Clients that break the rules, or just are slow or gone.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use kendall_chat::client::ClientError;
use kendall_chat::directory::Limits;
use kendall_chat::password::Stretch;
use kendall_chat::password::client::LogIn;
use kendall_chat::protocol::{Answer, Blame, Presence, Push, Request, encode_greeting};
use kendall_testbed::{LIMIT, reset, wait_until};

use crate::serving::{
    PASSWORD, blame, clients, connect, connect_from, contact, enter, new_user, pushed, serve,
};

#[test]
fn an_unknown_name_answers_like_a_wrong_password() {
    let server = serve(Limits { attempts: None, ..Limits::default() });
    clients(async {
        drop(new_user(&server, "alice").await);
        let mut client = connect(&server).await;
        for name in ["alice", "bob"] {
            let (log_in, message) = LogIn::start("a guess");
            let asked = Request::LogInStart { name: name.to_owned(), message };
            let Answer::LogInContinue { message } = client.ask(asked).await.unwrap() else { panic!() };
            assert!(log_in.finish(&message, Stretch::Off).is_err(), "the client notices first");
            let error = client.ask(Request::LogInFinish { message: [7; 64] }).await.unwrap_err();
            assert!(
                matches!(error, ClientError::Refused { why: Blame::WrongNameOrPassword, retry_ms: 0 }),
                "{error}"
            );
            let again = client.ask(Request::LogInFinish { message: [7; 64] }).await;
            assert_eq!(blame(again), Blame::OutOfOrder, "one proof for each log-in");
        }
    });
    server.stop();
}

#[test]
fn a_guesser_is_slowed_down_and_the_user_enters_from_elsewhere() {
    let server = serve(Limits::default());
    clients(async {
        drop(new_user(&server, "alice").await);
        let mut guesser = connect_from(&server, [127, 0, 0, 2]).await;
        let mut bobs = connect_from(&server, [127, 0, 0, 3]).await;
        bobs.register("bob", PASSWORD, Stretch::Off).await.unwrap();
        for name in ["alice", "no such user"] {
            let name = name.replace(' ', "");
            let mut blames = Vec::new();
            for _ in 0..8 {
                blames.push(blame(guesser.log_in(&name, "a guess", Stretch::Off).await));
            }
            // The sixth attempt begins the first wait.
            let expected =
                [[Blame::WrongNameOrPassword; 6].as_slice(), &[Blame::TooManyAttempts; 2]].concat();
            assert_eq!(blames, expected, "{name}");
        }
        enter(&mut connect_from(&server, [127, 0, 0, 3]).await, "alice").await;
        enter(&mut guesser, "bob").await;
    });
    server.stop();
}

#[test]
fn a_flood_of_half_open_log_ins_keeps_no_user_out() {
    let server = serve(Limits { log_ins: 50, attempts: None, ..Limits::default() });
    clients(async {
        drop(new_user(&server, "alice").await);
        let mut half_open = Vec::new();
        for _ in 0..120 {
            let mut client = connect(&server).await;
            let (_, message) = LogIn::start("a guess");
            client.ask(Request::LogInStart { name: "alice".into(), message }).await.unwrap();
            half_open.push(client);
        }
        enter(&mut connect(&server).await, "alice").await;
        // The first to come had to give way, and its proof comes too late whatever it is.
        let late = half_open[0].ask(Request::LogInFinish { message: [0; 64] }).await;
        assert_eq!(blame(late), Blame::WrongNameOrPassword);
    });
    server.stop();
}

#[test]
fn what_is_out_of_order_is_refused() {
    let server = serve(Limits::default());
    clients(async {
        let mut client = connect(&server).await;
        let record = || Box::new([0; 192]);
        let requests = [
            (Request::RegisterFinish { record: record() }, Blame::OutOfOrder),
            (Request::LogInFinish { message: [0; 64] }, Blame::OutOfOrder),
            (Request::ChangePasswordStart { message: [0; 32] }, Blame::NoSession),
            (Request::ChangePasswordFinish { record: record() }, Blame::OutOfOrder),
            (Request::DeleteAccount, Blame::NoSession),
            (Request::Call { name: "bob".into(), talk: [0; 16], contact: contact(1) }, Blame::NoSession),
            (Request::RegisterStart { name: "bob".into(), message: [0xff; 32] }, Blame::InvalidMessage),
            (Request::LogInStart { name: "bob".into(), message: [0xff; 96] }, Blame::InvalidMessage),
        ];
        for (request, expected) in requests {
            assert_eq!(blame(client.ask(request.clone()).await), expected, "{request:?}");
        }
    });
    server.stop();
}

/// What a server says to some bytes until it closes the connection.
fn said_to(server: &kendall_testbed::Running, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(server.address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream.write_all(bytes).unwrap();
    let mut said = Vec::new();
    // A reset may follow the last byte, where the server closes with bytes unread.
    let mut byte = [0];
    while let Ok(1) = stream.read(&mut byte) {
        said.push(byte[0]);
    }
    said
}

#[test]
fn bytes_that_are_not_of_the_protocol_end_their_connection_only() {
    let server = serve(Limits::default());
    let greeting = encode_greeting(1);
    assert_eq!(said_to(&server, b"GET / HTTP/1.1\r\n\r\n"), b"");
    assert_eq!(said_to(&server, &encode_greeting(9)), greeting, "another version gets ours");
    // An oversized frame, and a kind that there is not: at most the greeting is answered before the end.
    for wrong in [&[2, 0][..], &[0, 5, 0, 0, 0, 0, 0]] {
        let said = said_to(&server, &[&greeting[..], wrong].concat());
        assert!(greeting.starts_with(&said), "{said:?}");
    }
    wait_until("all are counted", || server.closed("malformed") == 3);
    clients(async { drop(new_user(&server, "alice").await) });
    server.stop();
}

#[test]
fn a_slow_client_delays_no_other() {
    let server = serve(Limits::default());
    let mut slow = TcpStream::connect(server.address).unwrap();
    slow.write_all(&encode_greeting(1)[..3]).unwrap();
    let mut half = TcpStream::connect(server.address).unwrap();
    half.write_all(&[&encode_greeting(1)[..], &[0, 100, 1, 0]].concat()).unwrap();
    clients(async { drop(new_user(&server, "alice").await) });
    slow.write_all(&encode_greeting(1)[3..]).unwrap();
    let mut answer = [0; 8];
    slow.read_exact(&mut answer).unwrap();
    assert_eq!(answer, encode_greeting(1));
    server.stop();
}

#[test]
fn a_killed_client_is_gone_for_its_watchers() {
    let server = serve(Limits { linger: Duration::ZERO, ..Limits::default() });
    clients(async {
        let mut alice = new_user(&server, "alice").await;
        let presence = |push: &Push| match push {
            Push::Changed { presence, .. } => Some(*presence),
            _ => None,
        };
        alice.watch("bob").await.unwrap();
        assert_eq!(pushed(&mut alice, presence).await, Presence::Away);
        let stream = tokio::net::TcpStream::connect(server.address).await.unwrap();
        let stream = stream.into_std().unwrap();
        let killed = stream.try_clone().unwrap();
        let over = tokio::net::TcpStream::from_std(stream).unwrap();
        let security = kendall_chat::client::security::Security::Plain;
        let mut bob = kendall_chat::client::Client::over(over, &security).await.unwrap();
        bob.register("bob", PASSWORD, Stretch::Off).await.unwrap();
        enter(&mut bob, "bob").await;
        assert_eq!(pushed(&mut alice, presence).await, Presence::There);
        drop(bob);
        reset(killed);
        assert_eq!(pushed(&mut alice, presence).await, Presence::Away);
    });
    wait_until("its end is counted", || server.closed("reset") + server.closed("finished") >= 1);
    server.stop();
}

#[test]
fn a_full_house_refuses_log_ins_and_the_oldest_session_of_an_account_gives_way() {
    let server = serve(Limits { sessions: 3, sessions_of_account: 2, attempts: None, ..Limits::default() });
    clients(async {
        let mut first = new_user(&server, "alice").await;
        let mut second = connect(&server).await;
        enter(&mut second, "alice").await;
        let mut third = connect(&server).await;
        enter(&mut third, "alice").await;
        assert!(matches!(first.next_push().await.unwrap(), Push::SessionEnded { .. }));
        let mut bob = new_user(&server, "bob").await;
        bob.stay_alive().await.unwrap();
        let mut carol = connect(&server).await;
        carol.register("carol", PASSWORD, Stretch::Off).await.unwrap();
        assert_eq!(blame(carol.log_in("carol", PASSWORD, Stretch::Off).await), Blame::Busy);
        // A session without a connection gives way.
        drop(bob);
        while let Err(error) = carol.log_in("carol", PASSWORD, Stretch::Off).await {
            assert_eq!(error.blame(), Some(Blame::Busy));
        }
    });
    server.stop();
}
