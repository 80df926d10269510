//! The server of sessions: users hold connections, send requests in them, and receive the answers for them.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard};

use kendall_service::{
    Delivery, Handler, InSessions, Malformed, Message, Outlet, Registry, Server, ServiceError,
    SessionDecoded, SessionDecoding, SessionLimits, Sessions, Step, Turn,
};

use crate::protocol::session::{
    Answer, Fate, Fault, OPENING_BYTES, REQUEST_BYTES, Request, decode_opening, decode_request, encode_answer,
};
use crate::server::{Hold, HoldOptions, HoldProgress, REST, config};

/// Opens the sockets of a server of sessions.
///
/// # Errors
/// Fails if an address is in use or the file of stamps cannot be written.
pub fn bind_sessions(options: &HoldOptions) -> Result<Server<InSessions<HoldSessions>>, ServiceError> {
    let limits = SessionLimits { idle: REST, ..SessionLimits::default() };
    Server::bind_sessions(config(options), limits, HoldSessions::new(options))
}

/// The synthetic server with sessions, in the form of the runtime.
#[derive(Debug)]
pub struct HoldSessions {
    hold: Hold,
    /// The latest session of each user.
    present: Mutex<HashMap<u64, Outlet<Answer>>>,
}

/// One user's session.
#[derive(Debug)]
pub struct Session {
    outlet: Outlet<Answer>,
    /// The user, once the session was opened.
    user: Option<u64>,
}

/// A request in the runtime.
#[derive(Debug)]
pub struct SessionTask {
    request: Request,
    from: u64,
    left_ns: i64,
}

impl Message for Answer {
    fn encode(&self, bytes: &mut Vec<u8>) {
        bytes.extend(encode_answer(*self));
    }
}

impl HoldSessions {
    /// The system without its sockets.
    pub fn new(options: &HoldOptions) -> Self {
        Self { hold: Hold::new(options), present: Mutex::default() }
    }

    /// The answer to a request that was held, and its recipient.
    fn delivery(&self, task: &SessionTask) -> Delivery<Answer> {
        let SessionTask { request: Request { nonce, to }, from, .. } = *task;
        let held = Answer { nonce, fate: Fate::Held { from } };
        if to == from {
            return Delivery::Here(held);
        }
        let unreached = Answer { nonce, fate: Fate::Unreached { from } };
        match self.present().get(&to).cloned() {
            Some(to) => Delivery::Elsewhere { to, message: held, unreached },
            None => Delivery::Here(unreached),
        }
    }

    fn present(&self) -> MutexGuard<'_, HashMap<u64, Outlet<Answer>>> {
        self.present.lock().expect("no thread panics while it holds the users that are present")
    }
}

impl Sessions for HoldSessions {
    type Session = Session;
    type Task = SessionTask;
    type Message = Answer;

    fn open(&self, outlet: Outlet<Answer>, _: SocketAddr) -> Session {
        Session { outlet, user: None }
    }

    fn decode(&self, session: &mut Session, bytes: &[u8]) -> SessionDecoding<Self> {
        let Some(from) = session.user else {
            return known(decode_opening(bytes), |user| {
                session.user = Some(user);
                self.present().insert(user, session.outlet.clone());
                // Its queue is empty, so this only fails if the session has ended.
                let _ = session.outlet.push(&Answer { nonce: user, fate: Fate::Present });
                SessionDecoded::nothing(OPENING_BYTES)
            });
        };
        known(decode_request(bytes), |request| {
            let (job, left_ns) = self.hold.work(request.nonce);
            let refusal = Answer { nonce: request.nonce, fate: Fate::Refused };
            SessionDecoded::work(REQUEST_BYTES, job, SessionTask { request, from, left_ns }, refusal)
        })
    }

    fn advance(&self, task: &mut SessionTask, turn: &mut Turn<Delivery<Answer>>) -> Step<Delivery<Answer>> {
        match self.hold.hold(&mut task.left_ns, turn.units(), turn.interrupt()) {
            HoldProgress::All => Step::Done(self.delivery(task)),
            HoldProgress::Part { attained } => Step::Continue { attained },
        }
    }

    fn close(&self, session: Session) {
        let Some(user) = session.user else { return };
        let mut present = self.present();
        if present.get(&user) == Some(&session.outlet) {
            present.remove(&user);
        }
    }

    fn max_request_bytes(&self) -> usize {
        REQUEST_BYTES
    }

    fn first_chunk(&self) -> u64 {
        Handler::first_chunk(&self.hold)
    }

    fn register(&self, registry: &mut Registry) {
        Handler::register(&self.hold, registry);
    }
}

/// The decoding result of bytes that were read.
fn known<T>(
    read: Result<T, Fault>,
    heard: impl FnOnce(T) -> SessionDecoded<SessionTask, Answer>,
) -> SessionDecoding<HoldSessions> {
    match read {
        Ok(read) => Ok(Some(heard(read))),
        Err(Fault::Incomplete) => Ok(None),
        Err(Fault::Malformed) => Err(Malformed),
    }
}
