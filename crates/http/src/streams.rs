//! What HTTP/2 and HTTP/3 have in common: a connection carries many requests at a time, each on its own stream.
//!
//! To the generator a stream is a connection that carries one request at a time. A new one goes onto a line that has a place
//! left, and only if there is none is a new line laid.

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
use tokio::sync::OnceCell;

use crate::expect::Expect;
use crate::requests::Requests;

/// One end of an open connection with many streams. A clone is another end of the same connection.
pub(crate) trait Line: Clone + Send + Sync + Sized + 'static {
    /// What it takes to open one.
    type Dial: Send + Sync + 'static;
    /// Why an exchange may end without an answer.
    type Error;

    fn open(dial: &Self::Dial, to: SocketAddr) -> impl Future<Output = io::Result<Self>>;

    /// The client's port.
    fn port(&self) -> u16;

    /// The most streams at a time that the server allows, as far as it has said.
    fn most_streams(&self) -> usize;

    /// Sends a request on its own stream and reads the answer.
    fn exchange(
        &mut self,
        head: Head<()>,
        body: Bytes,
        expect: &Expect,
        stamps: &mut Stamps,
    ) -> impl Future<Output = Result<Outcome, Self::Error>>;

    /// What an error in an exchange with these stamps means.
    fn failed(error: &Self::Error, stamps: &Stamps) -> Failed;
}

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// The line is going down in good order and the server has not looked at the request, which may go out again on
    /// another (RFC 9113, section 8.7; RFC 9114, section 5.2).
    Unseen,
    /// The stream ended so; the line lives.
    Stream(Outcome),
    /// The line ended so.
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
    /// The lines that there are, as long as there is a stream on them.
    lines: Mutex<Vec<Weak<Laid<L>>>>,
}

/// A line, open or being opened.
struct Laid<L> {
    end: OnceCell<L>,
    taken: AtomicU32,
    spent: AtomicBool,
}

/// A place on a line, given back when dropped.
struct Place<L>(Arc<Laid<L>>);

impl<L> Drop for Place<L> {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<L: Line> Laid<L> {
    /// Takes a place, if one is left.
    fn take(self: Arc<Self>, most: u32) -> Option<Place<L>> {
        let allowed = self.end.get().map_or(usize::MAX, L::most_streams).min(most as usize);
        let free =
            !self.spent.load(Ordering::Relaxed) && (self.taken.load(Ordering::Relaxed) as usize) < allowed;
        free.then(|| {
            self.taken.fetch_add(1, Ordering::Relaxed);
            Place(self)
        })
    }
}

impl<L: Line> Streams<L> {
    /// Streams for these requests, at most this many on one line, or one for each request where lines are not to be kept.
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
    /// A place on a line that is open, or is laid now.
    async fn place(&self) -> io::Result<(Place<L>, L)> {
        let place = {
            let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
            lines.retain(|line| line.strong_count() > 0);
            let found = lines.iter().filter_map(Weak::upgrade).find_map(|line| line.take(self.most));
            found.unwrap_or_else(|| {
                let line = Arc::new(Laid {
                    end: OnceCell::new(),
                    taken: AtomicU32::new(1),
                    spent: AtomicBool::new(false),
                });
                lines.push(Arc::downgrade(&line));
                Place(line)
            })
        };
        // Whoever comes first opens it, and the others wait for that.
        let end = place.0.end.get_or_try_init(|| L::open(&self.dial, self.to)).await?.clone();
        Ok((place, end))
    }
}

/// A stream: one place on a line, for one request after the other.
struct Stream<L: Line> {
    server: Arc<Server<L>>,
    place: Place<L>,
    end: L,
}

impl<L: Line> Connect for Streams<L> {
    fn connect(&self) -> LocalFuture<'_, io::Result<Box<dyn Connection>>> {
        Box::pin(async move {
            let (place, end) = self.0.place().await?;
            Ok(Box::new(Stream { server: self.0.clone(), place, end }) as Box<dyn Connection>)
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
    async fn ask(&mut self, index: u64, asked: usize, stamps: &mut Stamps) -> Exchange {
        let requests = self.server.requests.clone();
        let expect = requests.expect(asked);
        let mut again = true;
        loop {
            let (head, body) = requests.filled(asked, index).into_request(requests.origin());
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
                self.place.0.spent.store(true, Ordering::Relaxed);
            }
            if failed == Failed::Unseen
                && std::mem::take(&mut again)
                && let Ok((place, end)) = self.server.place().await
            {
                *stamps = Stamps::default();
                (self.place, self.end) = (place, end);
                continue;
            }
            return Exchange { outcome, reuse };
        }
    }
}
