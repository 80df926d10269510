//! One connection: a request at a time, each read under a deadline, each answered or rejected.
//!
//! The body of a request is read while the request waits and is served. Otherwise nothing is read meanwhile; the server only
//! watches the socket for errors. A reset reports at once that the client is gone. A client that closes its side in order
//! may still be waiting, because it may have shut down only its sending half, and TCP does not distinguish the two. Such a
//! client is served; if it is gone after all, its kernel reports that in answer to a keep-alive probe: on Linux some 75 s
//! later, once it has forgotten the connection.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use kendall_record::clock::now_ns;
use kendall_station::Job;
use prometheus_client::registry::Registry;
use rustix::net::sockopt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until};

use crate::answer_events::{AnswerEvent, AnswerEventSender, AnswerEvents, answer_events};
use crate::config::Config;
use crate::handler::{Decoded, Handler, Malformed, RequestKind};
use crate::metrics::Ending;
use crate::pool::Claim;
use crate::reply::{Body, Reply, Then};
use crate::shared::{Shared, System};
use crate::socket::{finish, gone, send};
use crate::stamps::StampLog;
use crate::transfer::{End, deliver, discard, fill};
use crate::turn::{Step, Turn};
use crate::upload::Sink;

/// The time at shutdown for the rest of a request that is arriving.
const LAST_WORD: Duration = Duration::from_millis(50);
/// The initial size of the buffer.
const FIRST_READ_BYTES: usize = 256;

impl<H: Handler> System for H {
    type Task = H::Task;
    type Answer = H::Answer;
    type Recipient = AnswerEventSender<H::Answer>;

    fn first_chunk(&self) -> u64 {
        Handler::first_chunk(self)
    }

    fn advance(&self, task: &mut H::Task, turn: &mut Turn<H::Answer>) -> Step<H::Answer> {
        Handler::advance(self, task, turn)
    }

    fn register(&self, registry: &mut Registry) {
        Handler::register(self, registry);
    }

    fn turned_away(&self) -> Vec<u8> {
        match self.encode(self.refusal()).body {
            Body::Bytes(bytes) => bytes,
            Body::Stream(_) => Vec::new(),
        }
    }

    async fn serve(stream: TcpStream, peer: SocketAddr, shared: Arc<Shared<H>>, stamps: StampLog) -> Ending {
        let mut connection = Connection { stream, peer, buffer: Vec::new(), shared, stamps };
        loop {
            match connection.serve_one().await {
                Ok(Then::Keep) if !connection.shared.is_closing() => {}
                Ok(_) => {
                    finish(connection.stream).await;
                    return Ending::Finished;
                }
                Err(ending) => {
                    if ending == Ending::CutShort {
                        // An orderly close would make the part look like the whole.
                        let _ = sockopt::set_socket_linger(&connection.stream, Some(Duration::ZERO));
                    }
                    return ending;
                }
            }
        }
    }
}

struct Connection<H: Handler> {
    stream: TcpStream,
    peer: SocketAddr,
    /// The bytes that were received and not consumed yet.
    buffer: Vec<u8>,
    shared: Arc<Shared<H>>,
    stamps: StampLog,
}

/// A request's claim on the answer of a handler.
type ClaimOf<H> =
    Claim<<H as Handler>::Task, AnswerEventSender<<H as Handler>::Answer>, <H as Handler>::Answer>;

/// The source of the answer to a request.
enum Course<H: Handler> {
    Known(H::Answer),
    /// Dropping the claim cancels the work.
    Served(AnswerEvents<H::Answer>, ClaimOf<H>),
    Refused,
}

/// The outcome of reading a body.
enum BodyOutcome<A> {
    /// The body is complete, and an event may come with it.
    Complete(Option<AnswerEvent<A>>),
    /// The event came first, and makes the rest useless.
    Unwanted(AnswerEvent<A>),
}

impl<H: Handler> Course<H> {
    async fn event(&mut self) -> AnswerEvent<H::Answer> {
        match self {
            Self::Known(answer) => AnswerEvent::Answered(answer.clone()),
            Self::Served(events, _) => events.next().await,
            Self::Refused => AnswerEvent::Refused,
        }
    }

    /// Waits for the end of an answer that has begun; other answers are complete.
    async fn end(self) -> End {
        match self {
            Self::Served(mut events, _claim) => match events.next().await {
                AnswerEvent::Refused => End::CutShort,
                AnswerEvent::Answered(_) | AnswerEvent::Begun(_) => End::Whole,
            },
            Self::Known(_) | Self::Refused => End::Whole,
        }
    }
}

impl<H: Handler> Connection<H> {
    /// Receives one request, and has it served and answered.
    async fn serve_one(&mut self) -> Result<Then, Ending> {
        let request = receive(&mut self.stream, &mut self.buffer, &self.shared).await?;
        let Decoded { used_bytes, kind, body } = request;
        self.buffer.drain(..used_bytes);
        self.shared.meters.received.inc();
        let mut course = match kind {
            RequestKind::Known(answer) => {
                self.shared.answered_after(&self.stamps, self.peer, now_ns());
                Course::Known(answer)
            }
            RequestKind::Work { job, task, key } => self.admit(job, task, key),
        };
        match body {
            None => {
                let event = next_event(&self.stream, &mut course).await?;
                self.answer(event, course, None).await
            }
            Some(sink) => self.serve_with_body(course, sink).await,
        }
    }

    fn admit(&self, job: Job, task: H::Task, key: Option<Vec<u8>>) -> Course<H> {
        let (sender, events) = answer_events(self.peer.port());
        match self.shared.pool.admit(job, task, key, sender) {
            Ok(claim) => Course::Served(events, claim),
            Err((why, _)) => {
                self.shared.denied(&self.stamps, self.peer, why);
                Course::Refused
            }
        }
    }

    /// Reads the body while the work waits and runs, and answers once both are complete, or at once if the body is no longer
    /// wanted.
    async fn serve_with_body(
        &mut self,
        mut course: Course<H>,
        mut sink: Box<dyn Sink<H::Answer>>,
    ) -> Result<Then, Ending> {
        let begun_ns = now_ns();
        let mut owed_bytes = sink.length();
        match self.take_body(&mut course, &mut *sink, &mut owed_bytes).await {
            Ok(BodyOutcome::Complete(known)) => {
                self.shared.meters.body_came(now_ns() - begun_ns);
                let event = match known {
                    Some(event) => event,
                    None => next_event(&self.stream, &mut course).await?,
                };
                self.answer(event, course, Some(sink)).await
            }
            Ok(BodyOutcome::Unwanted(event)) => {
                drop(sink);
                let then = self.answer(event, course, None).await?;
                self.drop_rest(owed_bytes, then).await
            }
            Err(Ending::NoPlace) => {
                drop((sink, course));
                let then = self.answer(AnswerEvent::Refused, Course::Refused, None).await?;
                self.drop_rest(owed_bytes, then).await?;
                Err(Ending::NoPlace)
            }
            Err(ending) => Err(ending),
        }
    }

    /// Fills the sink, unless the event comes first and makes that useless.
    async fn take_body(
        &mut self,
        course: &mut Course<H>,
        sink: &mut dyn Sink<H::Answer>,
        owed_bytes: &mut u64,
    ) -> Result<BodyOutcome<H::Answer>, Ending> {
        let Shared { config, meters, .. } = &*self.shared;
        let is_wanted = sink.wanted();
        let mut filling =
            pin!(fill(&self.stream, &mut self.buffer, sink, owed_bytes, config.patience, &meters.body_bytes));
        let event = tokio::select! {
            biased;
            event = course.event() => event,
            filled = &mut filling => return filled.map(|()| BodyOutcome::Complete(None)),
        };
        let is_wanted = match &event {
            AnswerEvent::Answered(answer) | AnswerEvent::Begun(answer) => is_wanted(answer),
            AnswerEvent::Refused => false,
        };
        if !is_wanted {
            return Ok(BodyOutcome::Unwanted(event));
        }
        filling.await?;
        Ok(BodyOutcome::Complete(Some(event)))
    }

    /// Sends the answer of a request, to its end.
    async fn answer(
        &mut self,
        event: AnswerEvent<H::Answer>,
        course: Course<H>,
        sink: Option<Box<dyn Sink<H::Answer>>>,
    ) -> Result<Then, Ending> {
        let patience = self.shared.config.patience;
        let system = &self.shared.system;
        let (answer, sink, end) = match event {
            AnswerEvent::Answered(answer) => (answer, sink, Course::Refused),
            AnswerEvent::Begun(answer) => (answer, sink, course),
            AnswerEvent::Refused => (system.refusal(), None, Course::Refused),
        };
        let (reader, then) = match sink {
            Some(sink) => sink.finish(answer),
            None => match system.encode(answer) {
                Reply { body: Body::Bytes(bytes), then } => {
                    send(&mut self.stream, &bytes, patience).await?;
                    return Ok(then);
                }
                Reply { body: Body::Stream(source), then } => (source.open(), then),
            },
        };
        let meters = &self.shared.meters;
        let begun_ns = now_ns();
        deliver(&self.stream, reader, patience, &meters.stream_bytes, end.end()).await?;
        meters.streamed(now_ns() - begun_ns);
        Ok(then)
    }

    /// Reads the rest of a body that is not wanted, so that the client can read its answer: a close with unread bytes is a
    /// reset, which may overtake the answer.
    async fn drop_rest(&mut self, owed_bytes: u64, then: Then) -> Result<Then, Ending> {
        if then == Then::Close && owed_bytes > 0 {
            self.stream.shutdown().await.map_err(|_| Ending::Reset)?;
        }
        discard(&self.stream, &mut self.buffer, owed_bytes, self.shared.config.patience).await?;
        Ok(then)
    }
}

/// Waits for the next event, as long as the client is connected.
async fn next_event<H: Handler>(
    stream: &TcpStream,
    course: &mut Course<H>,
) -> Result<AnswerEvent<H::Answer>, Ending> {
    tokio::select! {
        biased;
        event = course.event() => Ok(event),
        () = gone(stream) => Err(Ending::Reset),
    }
}

/// Reads until there is a complete request, or returns how the connection ended before.
async fn receive<H: Handler>(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    shared: &Shared<H>,
) -> Result<Decoded<H::Task, H::Answer>, Ending> {
    let max_bytes = shared.system.max_request_bytes();
    let mut closing = pin!(shared.closing());
    let Config { patience, request_deadline, .. } = shared.config;
    let mut complete_by = None;
    // The deadline after more bytes of the request have arrived.
    let mut deadline_after_bytes = || {
        let now = Instant::now();
        (now + patience).min(*complete_by.get_or_insert(now + request_deadline))
    };
    let mut deadline = if buffer.is_empty() { Instant::now() + patience } else { deadline_after_bytes() };
    let mut on_deadline = Ending::Deadline;
    loop {
        if !buffer.is_empty() {
            match shared.system.decode(buffer) {
                Ok(Some(request)) => return Ok(request),
                Ok(None) if buffer.len() < max_bytes => {}
                Ok(None) | Err(Malformed) => return Err(Ending::Malformed),
            }
        }
        buffer.reserve(buffer.len().clamp(FIRST_READ_BYTES, max_bytes.max(FIRST_READ_BYTES)));
        tokio::select! {
            biased;
            read = stream.read_buf(buffer) => match read {
                Ok(0) if buffer.is_empty() => return Err(Ending::Finished),
                Ok(0) => return Err(Ending::Incomplete),
                Ok(_) if on_deadline == Ending::Shutdown => {}
                Ok(_) => deadline = deadline_after_bytes(),
                Err(_) => return Err(Ending::Reset),
            },
            () = &mut closing, if on_deadline == Ending::Deadline => {
                on_deadline = Ending::Shutdown;
                deadline = deadline.min(Instant::now() + LAST_WORD);
            }
            () = sleep_until(deadline) => {
                // A client in the middle of its request gets an answer, one that has not begun does not.
                if on_deadline == Ending::Shutdown && !buffer.is_empty() {
                    let _ = send(stream, &shared.system.turned_away(), LAST_WORD).await;
                }
                return Err(on_deadline);
            }
        }
    }
}
