//! The connections of the directory server, as the runtime sees them.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use kendall_service::{Delivery, Malformed, Outlet, SessionDecoded, SessionDecoding, Sessions, Step, Turn};
use kendall_station::Job;
use kendall_talk::relay::RelayHandle;

use super::comparison::{ComparedRequest, method_of, with_signature};
use super::hall::Hall;
use super::wire::Wire;
use super::work::{Exchange, Office, SharedExchange, Work, draw};
use crate::directory::{ConnectionId, Introduction, Refusal};
use crate::name::Name;
use crate::password::record::Record;
use crate::password::scram::{ITERATIONS, KEY_BYTES, Verifier};
use crate::password::server::finish_log_in;
use crate::password::{LOG_IN_3, PasswordError};
use crate::protocol::{
    Answer, Blame, Contact, DirectoryMessage, Fault, Frame, GREETING_BYTES, REQUEST_BYTES, Request, Secret,
    VERSION, decode_greeting, decode_request,
};

/// The directory server without its sockets.
pub struct Chat {
    office: Office,
    relay: RelayHandle,
    clock: Option<JoinHandle<()>>,
}

/// One connection of a client.
#[derive(Debug)]
pub struct Line {
    id: ConnectionId,
    outlet: Outlet<Wire>,
    greeting: Greeting,
    exchange: SharedExchange,
}

/// The progress of a connection's greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Greeting {
    Awaited,
    Exchanged,
    /// The client speaks another version, and the connection is about to end.
    Unknown,
}

/// A request at a worker.
#[derive(Debug)]
pub struct Task {
    connection: ConnectionId,
    exchange: SharedExchange,
    number: u32,
    work: WorkerJob,
}

/// What a worker is to do.
#[derive(Debug)]
enum WorkerJob {
    Work(Work),
    Compared(ComparedRequest),
}

/// What a request comes to at first sight.
enum Sight {
    Known(Result<Answer, Refusal>),
    Work(WorkerJob),
    /// The store answers.
    Awaited(Pin<Box<dyn Future<Output = Result<Answer, Refusal>> + Send>>),
}

impl Chat {
    /// A server with its clock.
    pub(crate) fn new(office: Office, relay: RelayHandle) -> Self {
        let hall = Arc::clone(&office.hall);
        let clock = thread::Builder::new().name("directory-clock".to_owned()).spawn(move || hall.run_clock());
        if let Err(error) = &clock {
            tracing::error!(%error, "no thread for the clock: sessions end only when another client makes a request");
        }
        Self { office, relay, clock: clock.ok() }
    }

    fn hall(&self) -> &Hall {
        &self.office.hall
    }

    fn see(&self, line: &Line, request: Request) -> Sight {
        self.begin(line, request).unwrap_or_else(|refusal| Sight::Known(Err(refusal)))
    }

    /// Begins a request, or does it if it needs no worker.
    fn begin(&self, line: &Line, request: Request) -> Result<Sight, Refusal> {
        let connection = line.id;
        if method_of(&request).is_some_and(|method| method != self.office.passwords.method()) {
            return Err(Blame::OtherMethod.into());
        }
        let work = match request {
            Request::RegisterStart { name, message } => {
                let name = Name::new(&name).map_err(|_| Blame::InvalidName)?;
                self.hall().with(|directory, now| directory.begin_registration(now, connection))?;
                Work::RegisterStart { name, message }
            }
            Request::RegisterFinish { record } => match line.exchange.take() {
                Exchange::Registration { name, credential } => {
                    let record =
                        Record::new(credential, &name, &record).map_err(|_| Blame::InvalidMessage)?;
                    return Ok(Sight::Awaited(Box::pin(self.office.insert(&name, &record))));
                }
                _ => return Err(Blame::OutOfOrder.into()),
            },
            Request::LogInStart { name, message } => {
                let name = Name::new(&name).map_err(|_| Blame::InvalidName)?;
                self.hall().with(|directory, now| directory.begin_log_in(now, connection, name.key()))?;
                Work::LogInStart { name, message }
            }
            Request::LogInFinish { message } => return Ok(Sight::Known(self.enter(line, &message))),
            Request::ChangePasswordStart { message } => {
                self.hall().with(|directory, now| directory.to_change(now, connection))?;
                Work::ChangeStart { message }
            }
            Request::ChangePasswordFinish { record } => match line.exchange.take() {
                Exchange::Change { credential } => Work::ChangeFinish { credential, record },
                _ => return Err(Blame::OutOfOrder.into()),
            },
            Request::DeleteAccount => Work::Delete,
            Request::Accept { call, contact } => {
                return Ok(Sight::Known(self.accept(connection, call, contact)));
            }
            Request::RegisterScram { name, salt, stored_key, server_key } => {
                let name = Name::new(&name).map_err(|_| Blame::InvalidName)?;
                self.hall().with(|directory, now| directory.begin_registration(now, connection))?;
                let record =
                    Record::scram(&name, Verifier { salt, iterations: ITERATIONS, stored_key, server_key });
                return Ok(Sight::Awaited(Box::pin(self.office.insert(&name, &record))));
            }
            Request::ScramFinish { proof } => return Ok(Sight::Known(self.enter_by_scram(line, &proof))),
            request => match ComparedRequest::begin(self.hall(), connection, request)? {
                Ok(compared) => return Ok(Sight::Work(WorkerJob::Compared(compared))),
                Err(request) => {
                    let done = self.hall().with(|directory, now| directory.perform(now, connection, request));
                    return Ok(Sight::Known(done));
                }
            },
        };
        Ok(Sight::Work(WorkerJob::Work(work)))
    }

    /// Takes a call, and makes a pair at the relay for its sides.
    fn accept(&self, connection: ConnectionId, call: u64, contact: Contact) -> Result<Answer, Refusal> {
        let tokens = [(); 2].map(|()| draw());
        let pair = self.relay.open(tokens).map_err(|_| Blame::Busy)?;
        let introduction = Introduction { pair, tokens };
        let accepted =
            self.hall().with(|directory, now| directory.accept(now, connection, call, contact, introduction));
        if accepted.is_err() {
            self.relay.close(pair);
        }
        accepted
    }

    /// Checks the proof of a log-in. It takes a microsecond.
    fn enter(&self, line: &Line, third: &[u8; LOG_IN_3]) -> Result<Answer, Refusal> {
        let Exchange::LogIn { name, digest, half } = line.exchange.take() else {
            return Err(Blame::OutOfOrder.into());
        };
        self.proved(line, finish_log_in(&half, third))?;
        let token = Secret(draw());
        self.hall().with(|directory, now| directory.finish_log_in(now, line.id, name, digest, token))
    }

    /// Enters an account by SCRAM.
    fn enter_by_scram(&self, line: &Line, proof: &[u8; KEY_BYTES]) -> Result<Answer, Refusal> {
        let Exchange::Scram { name, digest, half } = line.exchange.take() else {
            return Err(Blame::OutOfOrder.into());
        };
        let signature = self.proved(line, half.finish(proof))?;
        let token = Secret(draw());
        let entered =
            self.hall().with(|directory, now| directory.finish_log_in(now, line.id, name, digest, token));
        entered.map(|answer| with_signature(answer, signature))
    }

    /// What the check of a proof gave; the log-in ends where the client has none.
    fn proved<T>(&self, line: &Line, checked: Result<T, PasswordError>) -> Result<T, Refusal> {
        checked.map_err(|_| {
            self.hall().with(|directory, _| directory.abandon_log_in(line.id));
            Blame::WrongNameOrPassword.into()
        })
    }
}

impl Sessions for Chat {
    type Session = Line;
    type Task = Task;
    type Message = Wire;

    fn open(&self, outlet: Outlet<Wire>, peer: SocketAddr) -> Line {
        let id = self.hall().connect(outlet.clone(), peer);
        Line { id, outlet, greeting: Greeting::Awaited, exchange: SharedExchange::default() }
    }

    fn decode(&self, line: &mut Line, bytes: &[u8]) -> SessionDecoding<Self> {
        match line.greeting {
            Greeting::Awaited => match decode_greeting(bytes) {
                Ok(version) => {
                    // The queue is empty, so there is a place.
                    let _ = line.outlet.push(&Wire::Greeting);
                    line.greeting = Greeting::Exchanged;
                    if version != VERSION {
                        line.greeting = Greeting::Unknown;
                        line.outlet.end();
                    }
                    Ok(Some(SessionDecoded::nothing(GREETING_BYTES)))
                }
                Err(Fault::Incomplete) => Ok(None),
                Err(Fault::Malformed) => Err(Malformed),
            },
            Greeting::Unknown => Ok(Some(SessionDecoded::nothing(bytes.len()))),
            Greeting::Exchanged => match decode_request(bytes) {
                Ok((Frame { number, message }, used)) => Ok(Some(match self.see(line, message) {
                    Sight::Known(result) => SessionDecoded::answer(used, answer(number, result)),
                    Sight::Work(work) => {
                        let exchange = line.exchange.clone();
                        let task = Task { connection: line.id, exchange, number, work };
                        SessionDecoded::work(used, Job::new(), task, answer(number, Err(Blame::Busy.into())))
                    }
                    Sight::Awaited(result) => {
                        let answered = async move { answer(number, result.await) };
                        SessionDecoded::awaited(
                            used,
                            answered,
                            answer(number, Err(Blame::StoreFailed.into())),
                        )
                    }
                })),
                Err(Fault::Incomplete) => Ok(None),
                Err(Fault::Malformed) => Err(Malformed),
            },
        }
    }

    fn advance(&self, task: &mut Task, _: &mut Turn<Delivery<Wire>>) -> Step<Delivery<Wire>> {
        let result = match &task.work {
            WorkerJob::Work(work) => self.office.work(task.connection, &task.exchange, work),
            WorkerJob::Compared(compared) => compared.perform(&self.office, task.connection, &task.exchange),
        };
        Step::Done(Delivery::Here(answer(task.number, result)))
    }

    fn close(&self, line: Line) {
        self.hall().disconnect(line.id);
    }

    fn max_request_bytes(&self) -> usize {
        REQUEST_BYTES
    }
}

impl Drop for Chat {
    fn drop(&mut self) {
        self.hall().close();
        if let Some(clock) = self.clock.take() {
            let _ = clock.join();
        }
        if let Err(error) = self.office.runtime.block_on(self.office.store.close()) {
            tracing::error!(%error, "the store of accounts was not closed in order");
        }
    }
}

impl fmt::Debug for Chat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chat").field("hall", &self.office.hall).finish_non_exhaustive()
    }
}

fn answer(number: u32, result: Result<Answer, Refusal>) -> Wire {
    let message = result.unwrap_or_else(|Refusal { why, retry }| Answer::Failed {
        why,
        // Rounded up: a client that waits this long is not early.
        retry_ms: u32::try_from(retry.as_micros().div_ceil(1000)).unwrap_or(u32::MAX),
    });
    Wire::Frame(Frame { number, message: DirectoryMessage::Answer(message) })
}
