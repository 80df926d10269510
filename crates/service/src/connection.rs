//! One connection: a request at a time, each read under a deadline, each answered or refused.
//!
//! A body that follows its request is read while that waits and is served. Else nothing is read meanwhile; the socket is only watched for errors. A reset tells at
//! once that the client is gone. A client that closes its side in order may well be waiting still, for it may
//! have shut down only its sending half, and TCP does not tell the two apart. Such a client is served; if it
//! was gone after all, its kernel says so in answer to a keep-alive probe: on Linux some 75 s later, once it has
//! forgotten the connection.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use kendall_record::clock::now_ns;
use kendall_record::stamps::{Stamp, TURNED_AWAY};
use kendall_station::Job;
use rustix::net::sockopt;
use tokio::io::{AsyncReadExt, AsyncWriteExt, Interest};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep_until, timeout};

use crate::body::{Body, Sink};
use crate::handler::{Decoded, Handler, Malformed, Reply, Then};
use crate::metrics::{Ending, Times};
use crate::pool::{Claim, Verdict};
use crate::server::Shared;
use crate::stamps::StampLog;
use crate::transfer::{End, deliver, discard, fill};

/// After this long without a byte the kernel probes whether the client still is.
const PROBE_AFTER: Duration = Duration::from_secs(15);
/// The time between two probes.
const PROBE_EVERY: Duration = Duration::from_secs(5);
/// So many probes without an answer, and the client is gone.
const PROBES: u32 = 3;
/// At shutdown, for the rest of a request that is on its way.
const LAST_WORD: Duration = Duration::from_millis(50);
/// Of what a client sent beyond its last request, so much is read before the connection is closed. Closing with
/// unread bytes makes the kernel send a reset, which may overtake the answer.
const SURPLUS_BYTES: usize = 64 * 1024;
/// The buffer grows from this.
const FIRST_READ_BYTES: usize = 256;

/// Prepares a new connection: answers leave at once, and clients that vanish are noticed.
pub(crate) fn prepare(stream: &TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    sockopt::set_socket_keepalive(stream, true)?;
    sockopt::set_tcp_keepidle(stream, PROBE_AFTER)?;
    sockopt::set_tcp_keepintvl(stream, PROBE_EVERY)?;
    sockopt::set_tcp_keepcnt(stream, PROBES)?;
    Ok(())
}

/// Serves a connection until it ends.
pub(crate) async fn serve<H: Handler>(
    stream: TcpStream,
    peer: SocketAddr,
    shared: Arc<Shared<H>>,
    stamps: StampLog,
) -> Ending {
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
                    // A close in order would make the part look like the whole.
                    let _ = sockopt::set_socket_linger(&connection.stream, Some(Duration::ZERO));
                }
                return ending;
            }
        }
    }
}

struct Connection<H: Handler> {
    stream: TcpStream,
    peer: SocketAddr,
    /// What has come and is not taken yet.
    buffer: Vec<u8>,
    shared: Arc<Shared<H>>,
    stamps: StampLog,
}

/// Where the answer to a request comes from.
enum Course<T> {
    Known(Reply),
    Served(Claim<T>),
    Refused,
}

/// What came of taking a body.
enum Taken {
    /// It is there, and perhaps the verdict, too.
    Whole(Option<Verdict>),
    /// The verdict came first, and makes the rest useless.
    Unwanted(Verdict),
}

impl<T> Course<T> {
    async fn verdict(&mut self) -> Verdict {
        match self {
            Self::Known(reply) => Verdict::Answered(reply.clone()),
            Self::Served(claim) => claim.verdict().await,
            Self::Refused => Verdict::Refused,
        }
    }

    /// How it ends after its answer has begun; else it has ended.
    async fn end(self) -> End {
        match self {
            Self::Served(mut claim) => match claim.verdict().await {
                Verdict::Refused => End::CutShort,
                Verdict::Answered(_) | Verdict::Begun(_) => End::Whole,
            },
            Self::Known(_) | Self::Refused => End::Whole,
        }
    }
}

impl<H: Handler> Connection<H> {
    /// Receives one request, has it served and answers it.
    async fn serve_one(&mut self) -> Result<Then, Ending> {
        let request = receive(&mut self.stream, &mut self.buffer, &self.shared).await?;
        let (used_bytes, mut course, body) = match request {
            Decoded::Answer { used_bytes, reply, body } => {
                answer_at_once(&self.shared, &self.stamps, self.peer);
                (used_bytes, Course::Known(reply), body)
            }
            Decoded::Work { used_bytes, job, task, key, body } => {
                (used_bytes, self.admit(job, task, key), body)
            }
        };
        self.buffer.drain(..used_bytes);
        match body {
            None => {
                let verdict = verdict(&self.stream, &mut course).await?;
                self.answer(verdict, course, None).await
            }
            Some(sink) => self.serve_with_body(course, sink).await,
        }
    }

    fn admit(&self, job: Job, task: H::Task, key: Option<Vec<u8>>) -> Course<H::Task> {
        let Self { shared, stamps, peer, .. } = self;
        shared.meters.received.inc();
        match shared.pool.admit(job, task, key, peer.port()) {
            Ok(claim) => Course::Served(claim),
            Err(fate) => {
                shared.meters.ended(fate);
                let now = now_ns();
                stamps.write(Stamp {
                    port: peer.port(),
                    queued: now,
                    started: now,
                    finished: now,
                    service: TURNED_AWAY,
                    fixed: None,
                });
                tracing::debug!(%peer, ?fate, "request refused");
                Course::Refused
            }
        }
    }

    /// Takes the body while the work waits and is done, and answers once both are complete, or at once where the
    /// body is not wanted any more.
    async fn serve_with_body(
        &mut self,
        mut course: Course<H::Task>,
        mut sink: Box<dyn Sink>,
    ) -> Result<Then, Ending> {
        let begun_ns = now_ns();
        let mut owed_bytes = sink.length();
        match self.take_body(&mut course, &mut *sink, &mut owed_bytes).await {
            Ok(Taken::Whole(known)) => {
                self.shared.meters.body_came(now_ns() - begun_ns);
                let verdict = match known {
                    Some(verdict) => verdict,
                    None => verdict(&self.stream, &mut course).await?,
                };
                self.answer(verdict, course, Some(sink)).await
            }
            Ok(Taken::Unwanted(verdict)) => {
                drop(sink);
                let then = self.answer(verdict, course, None).await?;
                self.drop_rest(owed_bytes, then).await
            }
            Err(Ending::NoPlace) => {
                drop((sink, course));
                let then = self.answer(Verdict::Refused, Course::Refused, None).await?;
                self.drop_rest(owed_bytes, then).await?;
                Err(Ending::NoPlace)
            }
            Err(ending) => Err(ending),
        }
    }

    /// Fills the sink, unless the verdict comes first and makes that useless.
    async fn take_body(
        &mut self,
        course: &mut Course<H::Task>,
        sink: &mut dyn Sink,
        owed_bytes: &mut u64,
    ) -> Result<Taken, Ending> {
        let Shared { config, handler, meters, .. } = &*self.shared;
        let mut filling =
            pin!(fill(&self.stream, &mut self.buffer, sink, owed_bytes, config.patience, &meters.body_bytes));
        let verdict = tokio::select! {
            biased;
            verdict = course.verdict() => verdict,
            filled = &mut filling => return filled.map(|()| Taken::Whole(None)),
        };
        match &verdict {
            Verdict::Answered(reply) | Verdict::Begun(reply) if handler.wants_body(reply) => {
                filling.await?;
                Ok(Taken::Whole(Some(verdict)))
            }
            _ => Ok(Taken::Unwanted(verdict)),
        }
    }

    /// Sends what a request came to, to its end.
    async fn answer(
        &mut self,
        verdict: Verdict,
        course: Course<H::Task>,
        sink: Option<Box<dyn Sink>>,
    ) -> Result<Then, Ending> {
        let patience = self.shared.config.patience;
        let (reply, sink, end) = match verdict {
            Verdict::Answered(reply) => (reply, sink, Course::Refused),
            Verdict::Begun(reply) => (reply, sink, course),
            Verdict::Refused => (self.shared.handler.refusal(), None, Course::Refused),
        };
        let (reader, then) = match (reply, sink) {
            (Reply { body: Body::Bytes(bytes), then }, None) => {
                send(&mut self.stream, &bytes, patience).await?;
                return Ok(then);
            }
            (Reply { body: Body::Stream(source), then }, None) => (source.open(), then),
            (reply, Some(sink)) => sink.finish(reply),
        };
        let meters = &self.shared.meters;
        let begun_ns = now_ns();
        deliver(&self.stream, reader, patience, &meters.stream_bytes, end.end()).await?;
        meters.streamed(now_ns() - begun_ns);
        Ok(then)
    }

    /// Reads what the client still sends of a body that nobody wants, so that it can read its answer: a close with
    /// unread bytes is a reset, which may overtake it.
    async fn drop_rest(&mut self, owed_bytes: u64, then: Then) -> Result<Then, Ending> {
        if then == Then::Close && owed_bytes > 0 {
            self.stream.shutdown().await.map_err(|_| Ending::Reset)?;
        }
        discard(&self.stream, &mut self.buffer, owed_bytes, self.shared.config.patience).await?;
        Ok(then)
    }
}

/// Waits for the verdict, as long as the client is there.
async fn verdict<T>(stream: &TcpStream, course: &mut Course<T>) -> Result<Verdict, Ending> {
    tokio::select! {
        biased;
        verdict = course.verdict() => Ok(verdict),
        () = gone(stream) => Err(Ending::Reset),
    }
}

/// Reads until there is a whole request, or says how the connection ended before.
async fn receive<H: Handler>(
    stream: &mut TcpStream,
    buffer: &mut Vec<u8>,
    shared: &Shared<H>,
) -> Result<Decoded<H::Task>, Ending> {
    let max_bytes = shared.handler.max_request_bytes();
    let mut closing = pin!(shared.closing());
    let last_deadline = Instant::now() + shared.config.request_deadline;
    let mut deadline = last_deadline.min(Instant::now() + shared.config.patience);
    let mut on_deadline = Ending::Deadline;
    loop {
        if !buffer.is_empty() {
            match shared.handler.decode(buffer) {
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
                Ok(_) => deadline = last_deadline.min(Instant::now() + shared.config.patience),
                Err(_) => return Err(Ending::Reset),
            },
            () = &mut closing, if on_deadline == Ending::Deadline => {
                on_deadline = Ending::Shutdown;
                deadline = deadline.min(Instant::now() + LAST_WORD);
            }
            () = sleep_until(deadline) => {
                // A client in the middle of its request is told, one that has not begun is not.
                if on_deadline == Ending::Shutdown
                    && !buffer.is_empty()
                    && let Body::Bytes(refusal) = shared.handler.refusal().body
                {
                    let _ = send(stream, &refusal, LAST_WORD).await;
                }
                return Err(on_deadline);
            }
        }
    }
}

/// Counts and stamps a request that needed no work.
fn answer_at_once<H: Handler>(shared: &Shared<H>, stamps: &StampLog, peer: SocketAddr) {
    let now = now_ns();
    shared.meters.received.inc();
    shared.meters.answered(Times { response_ns: 0, service_ns: 0 });
    stamps.write(Stamp {
        port: peer.port(),
        queued: now,
        started: now,
        finished: now,
        service: 0,
        fixed: None,
    });
}

/// Returns once the connection is reset or its network fails. A client that has only shut down its sending half
/// is not gone.
pub(crate) async fn gone(stream: &TcpStream) {
    while let Ok(ready) = stream.ready(Interest::ERROR).await {
        if ready.is_error() {
            return;
        }
    }
}

/// Sends all bytes, as long as the client takes some within each span of patience.
async fn send(stream: &mut TcpStream, mut bytes: &[u8], patience: Duration) -> Result<(), Ending> {
    while !bytes.is_empty() {
        match timeout(patience, stream.write(bytes)).await {
            Ok(Ok(sent)) => bytes = &bytes[sent..],
            Ok(Err(_)) => return Err(Ending::Reset),
            Err(_) => return Err(Ending::Deadline),
        }
    }
    Ok(())
}

/// Closes a connection so that the answer arrives even if the client had sent more than its request.
async fn finish(mut stream: TcpStream) {
    if stream.shutdown().await.is_err() {
        return;
    }
    let mut surplus = [0; 4096];
    let mut left = SURPLUS_BYTES;
    while let Ok(read @ 1..) = stream.try_read(&mut surplus) {
        left = left.saturating_sub(read);
        if left == 0 {
            return;
        }
    }
}

/// Tells a client, without waiting for anything, that it is turned away.
pub(crate) fn turn_away(stream: &TcpStream, refusal: &Reply) {
    // A socket on which nothing was sent has room for a refusal; if not, the client sees the close alone.
    if let Body::Bytes(refusal) = &refusal.body {
        let _ = stream.try_write(refusal);
    }
}
