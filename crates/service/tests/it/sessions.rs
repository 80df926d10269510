//! Lasting connections over which the server also sends messages without a request.

use std::sync::atomic::Ordering;
use std::time::Duration;

use kendall_service::{Config, PushError, SessionLimits, WhenFull};
use kendall_testbed::{LIMIT, wait_until};

use crate::club::serve;
use crate::lines::{Peer, config};

#[test]
fn an_answer_may_arrive_on_another_users_session() {
    let (server, book) = serve(config(2), SessionLimits::default());
    let (mut anna, mut ben) = (Peer::connect(server.address), Peer::connect(server.address));
    anna.send("i am anna\n");
    ben.send("i am ben\n");
    wait_until("both are there", || book.names() == ["anna", "ben"]);
    assert_eq!(anna.ask("to ben hello\n"), "sent");
    assert_eq!(ben.line(), "hello");
    assert_eq!(ben.ask("to anna hello yourself\n"), "sent");
    assert_eq!(anna.line(), "hello yourself");
    assert_eq!(anna.ask("to carl hello\n"), "the session has ended");
    assert_eq!(server.requests("answered"), 3);
    assert_eq!(server.metric("session_messages_total"), 5);
}

/// A client with the message finds its request answered, not still in service, so that it can disconnect without a
/// cancellation.
#[test]
fn a_request_is_counted_before_its_message_arrives_elsewhere() {
    let (server, book) = serve(config(2), SessionLimits::default());
    let mut ben = Peer::connect(server.address);
    ben.send("i am ben\n");
    wait_until("he is there", || book.names() == ["ben"]);
    for passed in 1..=200 {
        let mut anna = Peer::connect(server.address);
        anna.send("pass ben hello\n");
        assert_eq!(ben.line(), "hello");
        drop(anna);
        assert_eq!(server.requests("answered"), passed);
    }
    assert_eq!(server.requests("cancelled"), 0);
    assert_eq!(ben.ask("pass carl hello\n"), "kept hello");
}

/// Pushes of one thread, mixed with answers on the thread of sockets.
#[test]
fn messages_arrive_in_the_order_in_which_they_were_made() {
    const EACH: usize = 3_000;
    let limits = SessionLimits { messages: 2 * EACH, ..SessionLimits::default() };
    let (server, book) = serve(config(1), limits);
    let mut peer = Peer::connect(server.address);
    peer.send("i am anna\n");
    wait_until("she is there", || book.names() == ["anna"]);
    let (mut pushes, mut answers) = (0, 0);
    std::thread::scope(|scope| {
        scope.spawn(|| (0..EACH).for_each(|i| book.push("anna", &format!("push {i}")).unwrap()));
        for i in 0..EACH {
            peer.send(&format!("now {i}\n"));
        }
        while pushes + answers < 2 * EACH {
            let line = peer.line();
            match line.split_once(' ').unwrap() {
                ("push", i) => {
                    assert_eq!(i, pushes.to_string());
                    pushes += 1;
                }
                (_, i) => {
                    assert_eq!(i, answers.to_string());
                    answers += 1;
                }
            }
        }
    });
}

#[test]
fn an_awaited_answer_takes_no_worker() {
    let limits = SessionLimits { requests: 3, ..SessionLimits::default() };
    let (server, book) = serve(config(1), limits);
    let mut anna = Peer::connect(server.address);
    anna.send("i am anna\nawait 1\nawait panic\nawait 2\nnow 3\n");
    assert_eq!(anna.line(), "no panic");
    // The only worker is free, and one of three requests was completed.
    assert_eq!(anna.line(), "now 3");
    anna.send("to anna hello\nnow 4\n");
    assert_eq!([anna.line(), anna.line()], ["hello", "sent"]);
    assert_eq!(anna.line(), "now 4");
    book.gate.store(true, Ordering::SeqCst);
    let mut answers = [anna.line(), anna.line()];
    answers.sort();
    assert_eq!(answers, ["awaited 1", "awaited 2"]);
    assert_eq!((server.requests("answered"), server.requests("crashed")), (5, 1));
}

#[test]
fn an_awaited_answer_is_sent_before_the_server_ends_and_dropped_with_its_session() {
    let (server, book) = serve(config(1), SessionLimits::default());
    let mut anna = Peer::connect(server.address);
    let mut ben = Peer::connect(server.address);
    anna.send("i am anna\nawait 1\nnow 2\n");
    ben.send("i am ben\nawait 1\nnow 2\n");
    assert_eq!([anna.line(), ben.line()], ["now 2", "now 2"]);
    drop(ben);
    wait_until("his session has ended", || book.closed.load(Ordering::SeqCst) == 1);
    server.shut_down();
    book.gate.store(true, Ordering::SeqCst);
    assert_eq!(anna.line(), "awaited 1");
    wait_until("her session has ended", || book.closed.load(Ordering::SeqCst) == 2);
}

/// Pushes to a client that reads nothing, until its queue is full.
fn fill(book: &crate::club::Book) -> usize {
    let text = "x".repeat(10_000);
    (0..).find(|_| book.push("anna", &text).is_err()).unwrap()
}

#[test]
fn a_full_queue_refuses_pushes_and_the_session_goes_on() {
    let limits = SessionLimits { messages: 50, bytes: 200_000, ..SessionLimits::default() };
    let (server, book) = serve(config(1), limits);
    let (mut anna, mut ben) = (Peer::connect(server.address), Peer::connect(server.address));
    anna.send("i am anna\n");
    wait_until("she is there", || book.names() == ["anna"]);
    let pushed = fill(&book);
    // The kernel may have accepted some of it by now.
    let was_sent = ben.ask("to anna hello\n") == "sent";
    assert_eq!(server.metric("session_pushes_refused_total"), 2 - u64::from(was_sent));
    // Its request is read once the queue has space again, and its answer comes after the earlier pushes.
    anna.send("now 1\n");
    (0..pushed).for_each(|_| assert_eq!(anna.line().len(), 10_000));
    assert!(!was_sent || anna.line() == "hello");
    assert_eq!(anna.line(), "now 1");
    assert_eq!(ben.ask("to anna hello\n"), "sent");
    assert_eq!(anna.line(), "hello");
}

#[test]
fn a_full_queue_ends_the_session_where_clients_must_miss_nothing() {
    let limits =
        SessionLimits { bytes: 100_000, when_full: WhenFull::EndSession, ..SessionLimits::default() };
    let (server, book) = serve(config(1), limits);
    let mut anna = Peer::connect(server.address);
    anna.send("i am anna\n");
    wait_until("she is there", || book.names() == ["anna"]);
    fill(&book);
    wait_until("she is gone", || server.closed("overrun") == 1 && book.names().is_empty());
    assert_eq!(book.push("anna", "hello"), Err(PushError::Ended));
}

#[test]
fn no_more_requests_of_a_session_are_read_than_may_be_in_service() {
    let limits = SessionLimits { requests: 3, ..SessionLimits::default() };
    let (server, book) = serve(config(2), limits);
    let (mut anna, mut ben) = (Peer::connect(server.address), Peer::connect(server.address));
    anna.send(&(0..10).map(|i| format!("hold {i}\n")).collect::<String>());
    wait_until("some are admitted", || server.metric("requests_received_total") == 3);
    assert_eq!(ben.ask("now 1\n"), "now 1");
    assert_eq!(server.metric("requests_received_total"), 4, "the others wait unread");
    book.gate.store(true, Ordering::SeqCst);
    let mut answers: Vec<String> = (0..10).map(|_| anna.line()).collect();
    answers.sort();
    assert_eq!(answers, (0..10).map(|i| format!("held {i}")).collect::<Vec<_>>());
    drop((anna, ben));
    server.check_conservation();
}

#[test]
fn a_rejected_request_is_named_and_the_session_continues() {
    let (server, book) = serve(Config { max_waiting: 0, ..config(1) }, SessionLimits::default());
    let mut anna = Peer::connect(server.address);
    anna.send("hold 1\n");
    wait_until("it is served", || server.levels() == (0, 1));
    assert_eq!(anna.ask("hold 2\n"), "no 2");
    book.gate.store(true, Ordering::SeqCst);
    assert_eq!(anna.line(), "held 1");
    wait_until("the worker is free", || server.levels() == (0, 0));
    assert_eq!(anna.ask("hold 3\n"), "held 3");
    assert_eq!((server.requests("queue-full"), server.requests("answered")), (1, 2));
}

/// However a session ends, the system is notified once, and its requests in service are withdrawn.
#[test]
fn every_session_that_opens_closes_once() {
    let limits = SessionLimits { idle: Duration::from_millis(100), ..SessionLimits::default() };
    let (server, book) = serve(config(4), limits);
    let name = |name: &str| {
        let mut peer = Peer::connect(server.address);
        peer.send(&format!("i am {name}\nhold {name}\n"));
        peer
    };
    let (reset, closes, mut breaks) = (name("a"), name("b"), name("c"));
    wait_until("all are served", || server.levels() == (0, 3));
    reset.reset();
    drop(closes);
    breaks.send("nonsense\n");
    assert_eq!(breaks.line(), "");
    wait_until("their requests are withdrawn", || {
        server.requests("cancelled") == 3 && server.levels() == (0, 0)
    });
    let mut idle = Peer::connect(server.address);
    idle.send("i am d\n");
    assert_eq!(idle.line(), "", "it was silent for too long");
    wait_until("it is counted", || (server.closed("malformed"), server.closed("idle")) == (1, 1));
    let mut busy = name("e");
    wait_until("it is served", || server.levels() == (0, 1));
    // Twice as long as it may be idle; there is no other way to see that it is not closed.
    std::thread::sleep(2 * limits.idle);
    book.gate.store(true, Ordering::SeqCst);
    assert_eq!(busy.line(), "held e", "a client that waits for an answer is not idle");
    drop(busy);
    wait_until("all are closed", || book.closed.load(Ordering::SeqCst) == 5);
    assert!(book.names().is_empty());
    server.check_conservation();
    drop(server);
    assert_eq!(book.opened.load(Ordering::SeqCst), book.closed.load(Ordering::SeqCst));
}

#[test]
fn shutdown_answers_what_is_in_service_and_sends_what_is_queued() {
    let (server, book) = serve(Config { grace: LIMIT, ..config(1) }, SessionLimits::default());
    let (mut anna, mut idle) = (Peer::connect(server.address), Peer::connect(server.address));
    anna.send("i am anna\nhold 1\n");
    wait_until("it is served", || server.levels() == (0, 1));
    server.shut_down();
    assert_eq!(idle.line(), "", "the idle one ends though the other is still served");
    wait_until("no message can be pushed any more", || book.push("anna", "late").is_err());
    book.gate.store(true, Ordering::SeqCst);
    wait_until("both are closed", || book.closed.load(Ordering::SeqCst) == 2);
    let lines: Vec<String> =
        std::iter::repeat_with(|| anna.line()).take_while(|line| !line.is_empty()).collect();
    assert_eq!(lines.last().map(String::as_str), Some("held 1"));
}

#[test]
fn shutdown_after_its_grace_refuses_what_is_in_service() {
    let (server, book) =
        serve(Config { grace: Duration::from_millis(20), ..config(1) }, SessionLimits::default());
    let mut anna = Peer::connect(server.address);
    anna.send("hold 1\nhold 2\n");
    wait_until("both are there", || server.levels() == (1, 1));
    server.shut_down();
    let mut lines = [anna.line(), anna.line()];
    lines.sort();
    assert_eq!(lines, ["no 1", "no 2"]);
    drop(server);
    assert_eq!(book.closed.load(Ordering::SeqCst), 1);
}
