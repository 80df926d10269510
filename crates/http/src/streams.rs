//! The common part of HTTP/2 and HTTP/3: a connection carries many requests at a time, each on a separate stream.
//!
//! To the generator a stream is a connection that carries one request at a time. A new one uses a line with a free slot, and
//! opens a new line only if there is no such line.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use bytes::Bytes;
use http::Request as Head;
use kendall_load::{Connect, Connection, Exchange, LocalFuture, Request, Reuse, Stamps};
use kendall_record::Outcome;
use kendall_record::clock::now_ns;
use std::thread::{self, ThreadId};
use tokio::sync::OnceCell;

use crate::expect::Expect;
use crate::requests::Requests;

/// One end of an open connection with many streams. A clone is another end of the same connection.
pub(crate) trait Line: Clone + Send + Sync + Sized + 'static {
    /// The parameters to open one.
    type Dial: Send + Sync + 'static;
    /// The error that ends an exchange without an answer.
    type Error;

    fn open(dial: &Self::Dial, to: SocketAddr) -> impl Future<Output = io::Result<Self>>;

    /// The client's port.
    fn port(&self) -> u16;

    /// The most streams at a time that the server allows, as far as it has announced.
    fn most_streams(&self) -> usize;

    /// Sends a request on a separate stream and reads the answer.
    fn exchange(
        &mut self,
        head: Head<()>,
        body: Bytes,
        expect: &Expect,
        stamps: &mut Stamps,
    ) -> impl Future<Output = Result<Outcome, Self::Error>>;

    /// The meaning of an error in an exchange with these stamps.
    fn failed(error: &Self::Error, stamps: &Stamps) -> Failed;
}

/// The reason why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// The line is being closed in order and the server has not processed the request, which may be sent again on another
    /// line (RFC 9113, section 8.7; RFC 9114, section 5.2).
    Unseen,
    /// The stream ended with this error; the line is still usable.
    Stream(Outcome),
    /// The line ended with this error.
    Line(Outcome),
}

/// Streams to one server.
pub(crate) struct Streams<L: Line>(Arc<Server<L>>);

/// A server, and the lines to it.
struct Server<L: Line> {
    requests: Arc<Requests>,
    to: SocketAddr,
    dial: L::Dial,
    /// The most streams on one line.
    most: u32,
    reuse: Reuse,
    /// The existing lines that have at least one stream.
    lines: Mutex<Vec<Weak<SharedLine<L>>>>,
}

/// A line, open or being opened.
struct SharedLine<L> {
    /// The thread that opened it. Its streams belong to that thread: the line ends with the thread's runtime.
    thread: ThreadId,
    end: OnceCell<L>,
    taken: AtomicU32,
    spent: AtomicBool,
}

/// A slot on a line, released when dropped.
struct StreamSlot<L>(Arc<SharedLine<L>>);

impl<L> Drop for StreamSlot<L> {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<L: Line> SharedLine<L> {
    /// Takes a slot for a stream of this thread, if one is free.
    fn take(self: Arc<Self>, thread: ThreadId, most: u32) -> Option<StreamSlot<L>> {
        let allowed = self.end.get().map_or(usize::MAX, L::most_streams).min(most as usize);
        let free =
            !self.spent.load(Ordering::Relaxed) && (self.taken.load(Ordering::Relaxed) as usize) < allowed;
        (free && self.thread == thread).then(|| {
            self.taken.fetch_add(1, Ordering::Relaxed);
            StreamSlot(self)
        })
    }
}

impl<L: Line> Streams<L> {
    /// Streams for these requests, at most this many on one line, or one for each request if lines are not kept.
    pub(crate) fn new(
        requests: Arc<Requests>,
        to: SocketAddr,
        dial: L::Dial,
        most: u32,
        reuse: Reuse,
    ) -> Self {
        let most = if reuse == Reuse::Close { 1 } else { most };
        Self(Arc::new(Server { requests, to, dial, most, reuse, lines: Mutex::default() }))
    }
}

impl<L: Line> Server<L> {
    /// A slot on a line that is open, or on a new one.
    async fn slot(&self) -> io::Result<(StreamSlot<L>, L)> {
        let slot = {
            let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.retain(|line| line.strong_count() > 0);
            let own = thread::current().id();
            let found = lines.iter().filter_map(Weak::upgrade).find_map(|line| line.take(own, self.most));
            found.unwrap_or_else(|| {
                let line = Arc::new(SharedLine {
                    thread: own,
                    end: OnceCell::new(),
                    taken: AtomicU32::new(1),
                    spent: AtomicBool::new(false),
                });
                lines.push(Arc::downgrade(&line));
                StreamSlot(line)
            })
        };
        // The first stream opens it, and the others wait for that.
        let end = slot.0.end.get_or_try_init(|| L::open(&self.dial, self.to)).await?.clone();
        Ok((slot, end))
    }
}

/// A stream: one slot on a line, for one request after the other.
struct Stream<L: Line> {
    server: Arc<Server<L>>,
    slot: StreamSlot<L>,
    end: L,
}

impl<L: Line> Connect for Streams<L> {
    fn connect(&self) -> LocalFuture<'_, io::Result<Box<dyn Connection>>> {
        Box::pin(async move {
            let (slot, end) = self.0.slot().await?;
            Ok(Box::new(Stream { server: self.0.clone(), slot, end }) as Box<dyn Connection>)
        })
    }
}

impl<L: Line> Connection for Stream<L> {
    fn port(&self) -> u16 {
        self.end.port()
    }

    fn exchange<'a>(
        &'a mut self,
        index: u64,
        request: &'a Request,
        stamps: &'a mut Stamps,
    ) -> LocalFuture<'a, Exchange> {
        Box::pin(async move {
            let exchange = self.ask(index, request.class as usize, stamps).await;
            stamps.completed = Some(now_ns());
            exchange
        })
    }
}

impl<L: Line> Stream<L> {
    async fn ask(&mut self, index: u64, template: usize, stamps: &mut Stamps) -> Exchange {
        let requests = self.server.requests.clone();
        let expect = requests.expect(template);
        let mut again = true;
        loop {
            let (head, body) = requests.filled(template, index).into_request(requests.origin());
            let failed = match self.end.exchange(head, body, expect, stamps).await {
                Ok(outcome) => return Exchange { outcome, reuse: self.server.reuse },
                Err(error) => L::failed(&error, stamps),
            };
            let (outcome, reuse) = match failed {
                Failed::Stream(outcome) => (outcome, self.server.reuse),
                Failed::Line(outcome) => (outcome, Reuse::Close),
                Failed::Unseen => (Outcome::Refused, Reuse::Close),
            };
            if !matches!(failed, Failed::Stream(_)) {
                self.slot.0.spent.store(true, Ordering::Relaxed);
            }
            if failed == Failed::Unseen
                && std::mem::take(&mut again)
                && let Ok((slot, end)) = self.server.slot().await
            {
                *stamps = Stamps::default();
                (self.slot, self.end) = (slot, end);
                continue;
            }
            return Exchange { outcome, reuse };
        }
    }
}
