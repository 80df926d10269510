//! A system of sessions, for tests of the runtime. Requests and messages are lines:
//!
//! | request | what happens |
//! | --- | --- |
//! | `i am NAME` | the session is NAME's; no answer |
//! | `to NAME TEXT` | NAME's session gets TEXT; the answer is `sent`, or why it was not |
//! | `pass NAME TEXT` | NAME's session gets TEXT instead of an answer; if it cannot, the answer is `kept TEXT` |
//! | `hold TEXT` | answered `held TEXT` once the gate is open; if rejected, `no TEXT` |
//! | `now TEXT` | answered `now TEXT` without work |
//! | `await TEXT` | answered `awaited TEXT` once the gate is open, without a worker; `await panic` is answered `no panic` |

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::sleep;
use std::time::Duration;

use kendall_service::{
    Config, Delivery, Malformed, Message, Outlet, PushError, Server, SessionDecoded, SessionDecoding,
    SessionLimits, Sessions, Step, Turn,
};
use kendall_station::Job;
use kendall_testbed::Running;
use tokio_rustls::rustls::ServerConfig;

use crate::lines::run;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Line(pub(crate) String);

impl Message for Line {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend(self.0.as_bytes());
        bytes.push(b'\n');
    }
}

/// The test's view of the club.
#[derive(Debug, Default)]
pub(crate) struct Book {
    pub(crate) gate: AtomicBool,
    pub(crate) present: Mutex<BTreeMap<String, Outlet<Line>>>,
    pub(crate) opened: AtomicU64,
    pub(crate) closed: AtomicU64,
}

impl Book {
    /// Pushes a line to a session.
    pub(crate) fn push(&self, name: &str, text: &str) -> Result<(), PushError> {
        let outlet = self.present.lock().unwrap().get(name).cloned().ok_or(PushError::Ended)?;
        outlet.push(&Line(text.into()))
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.present.lock().unwrap().keys().cloned().collect()
    }
}

struct Club(Arc<Book>);

struct Guest {
    outlet: Outlet<Line>,
    name: Option<String>,
}

enum Task {
    To { name: String, text: String },
    Pass { name: String, text: String },
    Hold(String),
}

impl Sessions for Club {
    type Session = Guest;
    type Task = Task;
    type Message = Line;

    fn open(&self, outlet: Outlet<Line>, _: SocketAddr) -> Guest {
        self.0.opened.fetch_add(1, Ordering::SeqCst);
        Guest { outlet, name: None }
    }

    fn decode(&self, guest: &mut Guest, bytes: &[u8]) -> SessionDecoding<Self> {
        let Some(end) = bytes.iter().position(|&byte| byte == b'\n') else { return Ok(None) };
        let text = std::str::from_utf8(&bytes[..end]).map_err(|_| Malformed)?;
        let (verb, rest) = text.split_once(' ').ok_or(Malformed)?;
        let work = |task| SessionDecoded::work(end + 1, Job::new(), task, Line(format!("no {rest}")));
        Ok(Some(match verb {
            "i" => {
                let name = rest.strip_prefix("am ").ok_or(Malformed)?.to_owned();
                self.0.present.lock().unwrap().insert(name.clone(), guest.outlet.clone());
                guest.name = Some(name);
                SessionDecoded::nothing(end + 1)
            }
            "to" => {
                let (name, text) = rest.split_once(' ').ok_or(Malformed)?;
                work(Task::To { name: name.into(), text: text.into() })
            }
            "pass" => {
                let (name, text) = rest.split_once(' ').ok_or(Malformed)?;
                work(Task::Pass { name: name.into(), text: text.into() })
            }
            "hold" => work(Task::Hold(rest.into())),
            "await" => SessionDecoded::awaited(
                end + 1,
                awaited(Arc::clone(&self.0), rest.to_owned()),
                Line(format!("no {rest}")),
            ),
            "now" => SessionDecoded::answer(end + 1, Line(format!("now {rest}"))),
            _ => return Err(Malformed),
        }))
    }

    fn advance(&self, task: &mut Task, _: &mut Turn<Delivery<Line>>) -> Step<Delivery<Line>> {
        match task {
            Task::To { name, text } => Step::Done(Delivery::Here(Line(match self.0.push(name, text) {
                Ok(()) => "sent".into(),
                Err(error) => error.to_string(),
            }))),
            Task::Pass { name, text } => {
                let unreached = Line(format!("kept {text}"));
                Step::Done(match self.0.present.lock().unwrap().get(name).cloned() {
                    Some(to) => Delivery::Elsewhere { to, message: Line(text.clone()), unreached },
                    None => Delivery::Here(unreached),
                })
            }
            Task::Hold(text) if self.0.gate.load(Ordering::SeqCst) => {
                Step::Done(Delivery::Here(Line(format!("held {text}"))))
            }
            Task::Hold(_) => {
                sleep(Duration::from_millis(1));
                Step::Continue { attained: 1.0 }
            }
        }
    }

    fn close(&self, guest: Guest) {
        self.0.closed.fetch_add(1, Ordering::SeqCst);
        assert_eq!(guest.outlet.push(&Line("too late".into())), Err(PushError::Ended));
        if let Some(name) = guest.name {
            self.0.present.lock().unwrap().remove(&name);
        }
    }
}

async fn awaited(book: Arc<Book>, text: String) -> Line {
    assert!(text != "panic", "as the test asks");
    while !book.gate.load(Ordering::SeqCst) {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Line(format!("awaited {text}"))
}

pub(crate) fn serve(config: Config, limits: SessionLimits) -> (Running, Arc<Book>) {
    let book = Arc::new(Book::default());
    (run(Server::bind_sessions(config, limits, Club(Arc::clone(&book))).unwrap()), book)
}

pub(crate) fn serve_secured(
    config: Config,
    limits: SessionLimits,
    tls: Arc<ServerConfig>,
) -> (Running, Arc<Book>) {
    let book = Arc::new(Book::default());
    let server = Server::bind_secured_sessions(config, limits, tls, Club(Arc::clone(&book)));
    (run(server.unwrap()), book)
}
