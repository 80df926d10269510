//! One session from its opening to its end: requests arrive and messages leave concurrently.
//!
//! A client that closes its side ends its session, and its requests in service are withdrawn. If the server has a
//! certificate, TLS secures the session from its first byte.

use std::future::{pending, poll_fn};
use std::net::SocketAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use kendall_record::clock::now_ns;
use kendall_station::Job;
use prometheus_client::registry::Registry;
use tokio::io::{self, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpStream, tcp};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::config::Config;
use crate::handler::Malformed;
use crate::metrics::Ending;
use crate::outlet::{Message, Outlet, SessionLimits, ToWrite};
use crate::pool::Claim;
use crate::sessions::{Awaited, Delivery, InSessions, Request, SessionDecoded, Sessions};
use crate::shared::{AnswerTo, Shared, System};
use crate::socket;
use crate::stamps::StampLog;
use crate::station::Recipient;
use crate::turn::{Step, Turn};

/// The initial size of the buffer.
const FIRST_READ_BYTES: usize = 256;
/// The time at the end of a secured session for its last record.
const LAST_WORD: Duration = Duration::from_millis(50);

impl<S: Sessions> System for InSessions<S> {
    type Task = S::Task;
    type Answer = Delivery<S::Message>;
    type Recipient = ToSession<S::Message>;

    fn first_chunk(&self) -> u64 {
        self.system.first_chunk()
    }

    fn advance(
        &self,
        task: &mut S::Task,
        turn: &mut Turn<Delivery<S::Message>>,
    ) -> Step<Delivery<S::Message>> {
        self.system.advance(task, turn)
    }

    fn register(&self, registry: &mut Registry) {
        let messages = "Messages to sessions, answers and pushes";
        registry.register("session_messages", messages, self.rules.queued.clone());
        let refused = "Messages that were not pushed because the session's queue was full";
        registry.register("session_pushes_refused", refused, self.rules.refused.clone());
        self.system.register(registry);
    }

    /// Returns nothing, since there is no session that could carry a rejection.
    fn turned_away(&self) -> Vec<u8> {
        Vec::new()
    }

    async fn serve(
        mut stream: TcpStream,
        peer: SocketAddr,
        shared: Arc<Shared<Self>>,
        stamps: StampLog,
    ) -> Ending {
        let (ending, stream) = match shared.system.tls.clone() {
            None => {
                let (reader, writer) = stream.split();
                (Open::new(peer, shared, stamps).serve(reader, writer).await, stream)
            }
            Some(acceptor) => {
                let mut secured = match secure(acceptor, stream, &shared).await {
                    Ok(secured) => secured,
                    Err(ending) => return ending,
                };
                let (reader, writer) = io::split(&mut secured);
                let ending = Open::new(peer, shared, stamps).serve(reader, writer).await;
                if is_in_order(ending) {
                    // So that the client knows that nothing was cut off. A disconnected one does not mind.
                    let _ = timeout(LAST_WORD, secured.shutdown()).await;
                }
                (ending, secured.into_inner().0)
            }
        };
        if is_in_order(ending) {
            socket::finish(stream).await;
        }
        ending
    }
}

fn is_in_order(ending: Ending) -> bool {
    matches!(ending, Ending::Finished | Ending::Shutdown)
}

/// Negotiates keys with a client, as long as it responds in time and the server does not shut down.
async fn secure<S: Sessions>(
    acceptor: TlsAcceptor,
    stream: TcpStream,
    shared: &Shared<InSessions<S>>,
) -> Result<TlsStream<TcpStream>, Ending> {
    tokio::select! {
        biased;
        secured = timeout(shared.config.patience, acceptor.accept(stream)) => match secured {
            Ok(Ok(secured)) => Ok(secured),
            Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => Err(Ending::Incomplete),
            Ok(Err(error)) if error.kind() == io::ErrorKind::InvalidData => Err(Ending::Malformed),
            Ok(Err(_)) => Err(Ending::Reset),
            Err(_) => Err(Ending::Deadline),
        },
        () = shared.closing() => Err(Ending::Shutdown),
    }
}

/// The reading half of a session.
trait Incoming: AsyncRead + Unpin + Send + Sync {
    /// Returns once the connection is known to have failed without anything being read from it.
    fn gone(&self) -> impl Future<Output = ()> + Send;
}

impl Incoming for tcp::ReadHalf<'_> {
    fn gone(&self) -> impl Future<Output = ()> + Send {
        socket::gone(self.as_ref())
    }
}

/// For a secured connection, only writing detects a failure.
impl Incoming for io::ReadHalf<&mut TlsStream<TcpStream>> {
    fn gone(&self) -> impl Future<Output = ()> + Send {
        pending()
    }
}

/// A session's end of the path of an answer.
#[derive(Debug)]
pub struct ToSession<M> {
    port: u16,
    outlet: Outlet<M>,
    /// The message to the client if its request is rejected.
    refusal: M,
    answered: Arc<AtomicBool>,
}

impl<M: Message> Recipient<Delivery<M>> for ToSession<M> {
    fn begun(&mut self, answer: &Delivery<M>) {
        if let Some(message) = answer.clone().dispatch() {
            self.outlet.begin_answer(&message);
        }
    }
}

impl<M: Message> AnswerTo<Delivery<M>> for ToSession<M> {
    fn port(&self) -> u16 {
        self.port
    }

    fn answered(self, answer: Delivery<M>) {
        self.answered.store(true, Ordering::Relaxed);
        self.outlet.answer(answer.dispatch().as_ref());
    }

    fn refused(self) {
        self.answered.store(true, Ordering::Relaxed);
        self.outlet.answer(Some(&self.refusal));
    }
}

/// A request's claim on its answer; dropping it withdraws the request.
type ClaimOf<S> =
    Claim<<S as Sessions>::Task, ToSession<<S as Sessions>::Message>, Delivery<<S as Sessions>::Message>>;

/// An open session. However it ends, the system is notified once.
struct Open<S: Sessions> {
    peer: SocketAddr,
    shared: Arc<Shared<InSessions<S>>>,
    stamps: StampLog,
    outlet: Outlet<S::Message>,
    /// `None` only while it is being dropped.
    session: Option<S::Session>,
    /// The requests in service, and some that are answered.
    claims: Vec<(Arc<AtomicBool>, ClaimOf<S>)>,
}

impl<S: Sessions> Drop for Open<S> {
    fn drop(&mut self) {
        self.outlet.close();
        self.claims.clear();
        if let Some(session) = self.session.take() {
            self.shared.system.system.close(session);
        }
    }
}

impl<S: Sessions> Open<S> {
    fn new(peer: SocketAddr, shared: Arc<Shared<InSessions<S>>>, stamps: StampLog) -> Self {
        let InSessions { system, rules, .. } = &shared.system;
        let outlet = Outlet::new(Arc::clone(rules));
        let session = Some(system.open(outlet.clone(), peer));
        Self { peer, shared, stamps, outlet, session, claims: Vec::new() }
    }

    async fn serve(mut self, reader: impl Incoming, writer: impl AsyncWrite + Unpin + Send) -> Ending {
        let (outlet, patience) = (self.outlet.clone(), self.shared.config.patience);
        let mut writing = pin!(write(&outlet, writer, patience));
        let ending = tokio::select! {
            biased;
            ending = &mut writing => return ending,
            ending = self.listen(reader) => ending,
        };
        if ending == Ending::Shutdown {
            outlet.end();
            if let failed @ (Ending::Reset | Ending::Deadline) = writing.await {
                return failed;
            }
        }
        ending
    }

    /// Reads requests and has them served, until the session should end.
    async fn listen(&mut self, mut reader: impl Incoming) -> Ending {
        let shared = Arc::clone(&self.shared);
        let (config, limits) = (&shared.config, shared.system.rules.limits);
        let max_bytes = shared.system.system.max_request_bytes();
        let outlet = self.outlet.clone();
        let mut closing = pin!(shared.closing());
        let mut buffer = Vec::new();
        let mut waits = Waits::new(config, limits);
        loop {
            let taken_bytes = match self.take_requests(&mut buffer, &reader, max_bytes).await {
                Ok(taken_bytes) => taken_bytes,
                Err(ending) => return ending,
            };
            waits.has_taken(taken_bytes, &buffer);
            buffer.reserve(buffer.len().clamp(FIRST_READ_BYTES, max_bytes.max(FIRST_READ_BYTES)));
            tokio::select! {
                biased;
                read = reader.read_buf(&mut buffer) => match read {
                    Ok(0) if buffer.is_empty() => return Ending::Finished,
                    Ok(0) => return Ending::Incomplete,
                    Ok(_) => waits.progress(),
                    Err(_) => return Ending::Reset,
                },
                () = &mut closing => return Ending::Shutdown,
                () = sleep_until(waits.deadline()) => {
                    if !buffer.is_empty() {
                        return Ending::Deadline;
                    }
                    if !outlet.is_busy() {
                        return Ending::Idle;
                    }
                    waits.progress();
                }
            }
        }
    }

    /// Takes the complete requests, as long as the limit of requests allows; returns the number of their bytes.
    async fn take_requests(
        &mut self,
        buffer: &mut Vec<u8>,
        reader: &impl Incoming,
        max_bytes: usize,
    ) -> Result<usize, Ending> {
        let mut used = 0;
        while used < buffer.len() {
            let session = self.session.as_mut().expect("it is open");
            match self.shared.system.system.decode(session, &buffer[used..]) {
                Ok(Some(SessionDecoded { used_bytes, request })) => {
                    used += used_bytes;
                    self.take(request);
                }
                Ok(None) if buffer.len() - used < max_bytes => break,
                Ok(None) | Err(Malformed) => return Err(Ending::Malformed),
            }
            tokio::select! {
                biased;
                () = self.outlet.capacity() => {}
                () = reader.gone() => return Err(Ending::Reset),
            }
        }
        buffer.drain(..used);
        Ok(used)
    }

    fn take(&mut self, request: Request<S::Task, S::Message>) {
        let meters = &self.shared.meters;
        match request {
            Request::Nothing => {}
            Request::Known(message) => {
                meters.received.inc();
                self.shared.answered_after(&self.stamps, self.peer, now_ns());
                self.outlet.expect_answer();
                self.outlet.answer(Some(&message));
            }
            Request::Work { job, task, key, refusal } => {
                meters.received.inc();
                self.admit(job, task, key, refusal);
            }
            Request::Awaited(awaited) => {
                meters.received.inc();
                self.outlet.expect_answer();
                let (outlet, shared) = (self.outlet.clone(), Arc::clone(&self.shared));
                tokio::spawn(answer_when_there(awaited, outlet, shared, self.stamps.clone(), self.peer));
            }
        }
    }

    fn admit(&mut self, job: Job, task: S::Task, key: Option<Vec<u8>>, refusal: S::Message) {
        self.claims.retain(|(answered, _)| !answered.load(Ordering::Relaxed));
        let answered = Arc::new(AtomicBool::new(false));
        let recipient = ToSession {
            port: self.peer.port(),
            outlet: self.outlet.clone(),
            refusal,
            answered: Arc::clone(&answered),
        };
        self.outlet.expect_answer();
        match self.shared.pool.admit(job, task, key, recipient) {
            Ok(claim) => self.claims.push((answered, claim)),
            Err((why, recipient)) => {
                self.shared.denied(&self.stamps, self.peer, why);
                recipient.refused();
            }
        }
    }
}

/// Waits for an answer, and queues it. For the station, the request had no service: it only waited.
async fn answer_when_there<S: Sessions>(
    Awaited { mut answer, refusal }: Awaited<S::Message>,
    outlet: Outlet<S::Message>,
    shared: Arc<Shared<InSessions<S>>>,
    stamps: StampLog,
    peer: SocketAddr,
) {
    let queued_ns = now_ns();
    // A panic ends the answer, not the session.
    let answer = poll_fn(|context| {
        let polled = catch_unwind(AssertUnwindSafe(|| answer.as_mut().poll(context)));
        polled.map_or(Poll::Ready(None), |polled| polled.map(Some))
    });
    match answer.await {
        Some(message) => {
            shared.answered_after(&stamps, peer, queued_ns);
            outlet.answer(Some(&message));
        }
        None => {
            shared.crashed(peer);
            outlet.answer(Some(&refusal));
        }
    }
}

/// The deadlines of a silent client.
struct Waits {
    idle: Duration,
    patience: Duration,
    request_deadline: Duration,
    /// The instant at which the last bytes arrived.
    last: Instant,
    /// When the first bytes of an incomplete request arrived.
    begun: Option<Instant>,
}

impl Waits {
    fn new(config: &Config, limits: SessionLimits) -> Self {
        let Config { patience, request_deadline, .. } = *config;
        Self { idle: limits.idle, patience, request_deadline, last: Instant::now(), begun: None }
    }

    fn progress(&mut self) {
        self.last = Instant::now();
    }

    /// Records that complete requests of this length were taken, and that the rest is the beginning of the next one.
    fn has_taken(&mut self, taken_bytes: usize, rest: &[u8]) {
        self.begun = match rest {
            [] => None,
            _ if taken_bytes > 0 => Some(Instant::now()),
            _ => self.begun.or(Some(self.last)),
        };
    }

    fn deadline(&self) -> Instant {
        match self.begun {
            None => self.last + self.idle,
            Some(begun) => (begun + self.request_deadline).min(self.last + self.patience),
        }
    }
}

/// Writes messages until the session should end.
async fn write<M: Message>(
    outlet: &Outlet<M>,
    mut writer: impl AsyncWrite + Unpin,
    patience: Duration,
) -> Ending {
    loop {
        match outlet.to_write().await {
            ToWrite::Bytes(bytes) => match socket::send(&mut writer, &bytes, patience).await {
                // Encrypted bytes may still wait for the socket.
                Ok(()) => match timeout(patience, writer.flush()).await {
                    Ok(Ok(())) => outlet.written(),
                    Ok(Err(_)) => return Ending::Reset,
                    Err(_) => return Ending::Deadline,
                },
                Err(ending) => return ending,
            },
            ToWrite::End => return Ending::Finished,
            ToWrite::Overrun => return Ending::Overrun,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_deadline_of_a_request_counts_from_its_own_first_bytes() {
        let config = Config::new(([127, 0, 0, 1], 0).into());
        let mut waits = Waits::new(&config, SessionLimits::default());
        waits.has_taken(0, b"a");
        let first = waits.begun;
        assert!(first.is_some());
        waits.has_taken(0, b"ab");
        assert_eq!(waits.begun, first, "the request is still incomplete");
        waits.has_taken(3, b"d");
        assert!(waits.begun > first, "the rest belongs to the next request");
        waits.has_taken(2, b"");
        assert_eq!(waits.begun, None);
    }
}
