//! Users who hold sessions: a log-in when the connection opens, many requests at a time on one connection, and answers that
//! arrive on the connection of another user.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use kendall_load::{
    ConnectionKind, LoadError, Opening, OpeningReply, Plan, Progress, Request, RequestClass, Route,
    RunSummary, Session, SessionRead, SessionRequest, Sessions, Workload, run,
};
use kendall_record::{Outcome, RequestRow};
use kendall_station::{Arrivals, Law};

use crate::echo::{plan, run_all};

/// The log-in is a user's number; a request is its key and the user who gets the answer; an answer is the key, and a notice is
/// 0. All numbers have eight bytes.
struct Post {
    server: SocketAddr,
    users: u32,
    /// The session on which an answer arrives: that of the user this far from the sender.
    to: u32,
    reply: OpeningReply,
    reading: Reading,
    notices: Arc<AtomicU64>,
}

#[derive(Clone, Copy, PartialEq)]
enum Reading {
    Usual,
    /// All bytes of a read are one notice, which takes a millisecond.
    Slow,
}

impl Post {
    fn new(server: SocketAddr, users: u32, to: u32) -> Self {
        let (reply, reading) = (OpeningReply::None, Reading::Usual);
        Self { server, users, to, reply, reading, notices: Arc::default() }
    }
}

impl Workload for Post {
    fn request(&self, _: u64) -> Request {
        Request::new(0, Bytes::new())
    }

    fn classes(&self) -> Vec<RequestClass> {
        vec![RequestClass::new("all", 1.0)]
    }

    fn route(&self) -> Route<'_> {
        Route::Sessions(self.server, ConnectionKind::TCP, self)
    }
}

impl Sessions for Post {
    fn users(&self) -> u32 {
        self.users
    }

    fn sender(&self, index: u64) -> u32 {
        (index % u64::from(self.users)) as u32
    }

    fn message(&self, index: u64, user: u32) -> SessionRequest {
        let (key, to) = (index + 1, u64::from((user + self.to) % self.users));
        SessionRequest { key, bytes: [key.to_be_bytes(), to.to_be_bytes()].concat().into() }
    }

    fn session(&self, user: u32) -> Box<dyn Session> {
        let (reply, reading, notices) = (self.reply, self.reading, self.notices.clone());
        Box::new(PostSession { user, reply, is_open: false, reading, notices })
    }
}

struct PostSession {
    user: u32,
    reply: OpeningReply,
    is_open: bool,
    reading: Reading,
    notices: Arc<AtomicU64>,
}

impl Session for PostSession {
    fn opening(&mut self) -> Opening {
        Opening { bytes: u64::from(self.user).to_be_bytes().to_vec().into(), reply: self.reply }
    }

    fn read(&mut self, bytes: &[u8]) -> SessionRead {
        if self.reading == Reading::Slow {
            thread::sleep(Duration::from_millis(1));
            return SessionRead::Unasked { used: bytes.len(), reply: Bytes::new() };
        }
        let Some(message) = bytes.first_chunk() else { return SessionRead::More };
        match u64::from_be_bytes(*message) {
            0 if self.reply == OpeningReply::Expected && !self.is_open => {
                self.is_open = true;
                SessionRead::Opened { used: 8 }
            }
            0 => {
                self.notices.fetch_add(1, Ordering::Relaxed);
                SessionRead::Unasked { used: 8, reply: Bytes::new() }
            }
            u64::MAX => SessionRead::Invalid,
            key => SessionRead::Answer { used: 8, key, outcome: Outcome::Answered },
        }
    }
}

/// The connections of the users that have logged in.
type Streams = Arc<Mutex<HashMap<u64, TcpStream>>>;

/// The server's handling of the request of this key that came from a user, for another.
type Serve = dyn Fn(&Streams, u64, u64, u64) -> io::Result<()> + Send + Sync;

/// Writes to the session of a user, if there is one.
fn tell(streams: &Streams, user: u64, messages: &[u64]) -> io::Result<()> {
    let bytes: Vec<u8> = messages.iter().flat_map(|message| message.to_be_bytes()).collect();
    match streams.lock().unwrap_or_else(PoisonError::into_inner).get_mut(&user) {
        Some(stream) => stream.write_all(&bytes),
        None => Ok(()),
    }
}

/// A server with a thread for each session, which sends `first` to each that logs in. Also counts the log-ins.
fn post_office(first: &'static [u64], serve: Box<Serve>) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (streams, serve, logins) = (Streams::default(), Arc::new(serve), Arc::new(AtomicU64::new(0)));
    let counted = logins.clone();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, streams) = (stream.unwrap(), streams.clone());
            let (serve, logins) = (serve.clone(), counted.clone());
            stream.set_nodelay(true).unwrap();
            thread::spawn(move || -> io::Result<()> {
                let mut number = [0; 8];
                stream.read_exact(&mut number)?;
                let user = u64::from_be_bytes(number);
                logins.fetch_add(1, Ordering::Relaxed);
                streams.lock().unwrap().insert(user, stream.try_clone()?);
                tell(&streams, user, first)?;
                let mut request = [0; 16];
                while stream.read_exact(&mut request).is_ok() {
                    let (key, to) = request.split_at(8);
                    let number = |bytes: &[u8]| u64::from_be_bytes(bytes.try_into().unwrap());
                    if serve(&streams, number(key), user, number(to)).is_err() {
                        break;
                    }
                }
                stream.shutdown(Shutdown::Both)
            });
        }
    });
    (address, logins)
}

fn all(plan: &Plan, workload: &Post) -> (RunSummary, Vec<RequestRow>) {
    let patient = Plan { drain: Duration::from_secs(10), ..plan.clone() };
    let (summary, rows) = run_all(&patient, workload, &Progress::default(), &AtomicBool::new(false));
    assert_eq!((summary.sent, summary.ended.iter().sum()), (rows.len() as u64, rows.len() as u64));
    assert_eq!(summary.little.in_system_s, summary.little.responses_s, "Little's law");
    for row in &rows {
        assert!(
            [Some(row.scheduled), row.sent, row.first_byte, row.completed].iter().flatten().is_sorted(),
            "{row:?}"
        );
    }
    (summary, rows)
}

/// Many requests share few sessions, in an open stream and in a closed population; each logs in once.
#[test]
fn a_session_logs_in_once_and_carries_many_requests() {
    let think = Law::Constant { mean_s: 0.001 };
    for arrivals in [Arrivals::poisson(2000.0), Arrivals::Closed { population: 12, think }] {
        let (server, logins) =
            post_office(&[], Box::new(|streams, key, user, _| tell(streams, user, &[key])));
        let (summary, rows) = all(&plan(arrivals, 300), &Post::new(server, 4, 0));
        assert!(summary.sent > 100 && summary.count(Outcome::Answered) == summary.sent, "{summary:?}");
        assert_eq!((logins.load(Ordering::Relaxed), summary.connections_opened), (4, 4));
        assert!(rows.iter().all(|row| (row.bytes_out, row.bytes_in) == (16, 8) && row.port != 0));
    }
}

/// Every answer arrives on the session of the next user, those of one read together and in reverse order.
#[test]
fn an_answer_may_come_on_the_session_of_another_user() {
    let kept: Mutex<Vec<(u64, u64)>> = Mutex::default();
    let serve = move |streams: &Streams, key: u64, _: u64, to: u64| {
        let mut kept = kept.lock().unwrap();
        kept.push((key, to));
        // Two at a time, the later one first, with notices between.
        if kept.len() == 2 {
            while let Some((key, to)) = kept.pop() {
                tell(streams, to, &[0, key, 0])?;
            }
        }
        Ok(())
    };
    let (server, _) = post_office(&[], Box::new(serve));
    let workload = Post::new(server, 3, 1);
    let even = Plan { requests: Some(200), ..plan(Arrivals::constant(1000.0), 1000) };
    let (summary, _) = all(&even, &workload);
    assert_eq!(summary.count(Outcome::Answered), 200, "{summary:?}");
    assert_eq!(workload.notices.load(Ordering::Relaxed), 400, "the session has read every notice");
}

/// Requests wait until the server has accepted the log-in.
#[test]
fn no_request_is_sent_before_the_session_is_open() {
    let (server, _) = post_office(&[0], Box::new(|streams, key, user, _| tell(streams, user, &[key])));
    let workload = Post { reply: OpeningReply::Expected, ..Post::new(server, 3, 0) };
    let (summary, _) = all(&plan(Arrivals::constant(500.0), 200), &workload);
    assert_eq!(summary.count(Outcome::Answered), summary.sent, "{summary:?}");
    assert_eq!(workload.notices.load(Ordering::Relaxed), 0);

    // A server that never accepts: every request times out unsent.
    let (server, _) = post_office(&[], Box::new(|_, _, _, _| Ok(())));
    let workload = Post { reply: OpeningReply::Expected, ..Post::new(server, 3, 0) };
    let short = Plan { timeout: Duration::from_millis(50), ..plan(Arrivals::constant(200.0), 100) };
    let (summary, rows) = all(&short, &workload);
    assert_eq!(summary.count(Outcome::TimedOut), summary.sent);
    assert!(rows.iter().all(|row| row.sent.is_none()));
}

/// The server closes a session over every tenth request: the requests of its user in flight are refused, and the session is
/// opened again, with a log-in, for the next.
#[test]
fn a_session_that_is_closed_is_opened_again_for_the_next_request() {
    let serve = |streams: &Streams, key: u64, user: u64, _: u64| match key % 10 {
        0 => Err(io::ErrorKind::ConnectionReset.into()),
        _ => tell(streams, user, &[key]),
    };
    let (server, logins) = post_office(&[], Box::new(serve));
    let slow = Plan { requests: Some(50), ..plan(Arrivals::constant(200.0), 1000) };
    let (summary, rows) = all(&slow, &Post::new(server, 1, 0));
    assert!(rows.iter().filter(|row| (row.index + 1) % 10 == 0).all(|row| row.outcome == Outcome::Refused));
    assert!(summary.count(Outcome::Answered) > 0 && summary.refused_because.is_some(), "{summary:?}");
    assert_eq!(logins.load(Ordering::Relaxed), summary.connections_opened);
    assert!((2..=6).contains(&summary.connections_opened), "{}", summary.connections_opened);
}

/// A late answer to an abandoned request answers no other, and a request without an answer disturbs none.
#[test]
fn late_and_missing_answers_spoil_no_other() {
    let serve = |streams: &Streams, key: u64, user: u64, _: u64| match key % 5 {
        0 => Ok(()),
        1 => {
            let streams = streams.clone();
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(1500));
                tell(&streams, user, &[key])
            });
            Ok(())
        }
        _ => tell(streams, user, &[key]),
    };
    let (server, _) = post_office(&[], Box::new(serve));
    let some = Plan { timeout: Duration::from_secs(1), ..plan(Arrivals::constant(100.0), 1000) };
    let (summary, rows) = all(&some, &Post::new(server, 2, 0));
    for row in &rows {
        let expected = if (row.index + 1) % 5 < 2 { Outcome::TimedOut } else { Outcome::Answered };
        assert_eq!(row.outcome, expected, "{row:?}");
    }
    assert_eq!(summary.connections_opened, 2, "sessions survive an abandoned request");
}

/// The server sends faster than the generator reads, and never answers: requests still exceed their timeout.
#[test]
fn a_server_that_sends_without_end_delays_no_timeout() {
    let serve = |streams: &Streams, _: u64, user: u64, _: u64| -> io::Result<()> {
        let mut stream = streams.lock().unwrap()[&user].try_clone()?;
        loop {
            stream.write_all(&[0; 1 << 16])?;
        }
    };
    let (server, _) = post_office(&[], Box::new(serve));
    let short = Plan { timeout: Duration::from_millis(100), ..plan(Arrivals::constant(100.0), 200) };
    let workload = Post { reading: Reading::Slow, ..Post::new(server, 1, 0) };
    let (summary, _) = all(&short, &workload);
    assert_eq!(summary.count(Outcome::TimedOut), summary.sent, "{summary:?}");
}

#[test]
fn a_server_that_breaks_the_protocol_or_is_not_there_refuses() {
    let broken: Box<Serve> = Box::new(|streams, _, user, _| tell(streams, user, &[u64::MAX]));
    let (server, _) = post_office(&[], broken);
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for server in [server, nobody] {
        let (summary, _) = all(&plan(Arrivals::constant(200.0), 200), &Post::new(server, 3, 0));
        assert_eq!(summary.count(Outcome::Refused), summary.sent, "{summary:?}");
        assert!(summary.refused_because.is_some());
    }
}

/// Datagrams have no sessions.
struct OverUdp(Post);

impl Workload for OverUdp {
    fn request(&self, index: u64) -> Request {
        self.0.request(index)
    }

    fn classes(&self) -> Vec<RequestClass> {
        self.0.classes()
    }

    fn route(&self) -> Route<'_> {
        Route::Sessions(self.0.server, ConnectionKind::UDP, &self.0)
    }
}

#[test]
fn sessions_need_a_stream() {
    let workload = OverUdp(Post::new(([127, 0, 0, 1], 9).into(), 1, 0));
    let plan = plan(Arrivals::constant(1.0), 10);
    let found = run(&plan, &workload, &Progress::default(), &AtomicBool::new(false), |rows| rows.count());
    assert!(matches!(found, Err(LoadError::SessionsOverDatagrams)), "{found:?}");
}
