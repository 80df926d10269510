//! The load on a server of the laboratory: bulk transfers, echoes or handshakes.

use std::io;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use kendall_load::{Connect, Exchange, LocalFuture, Request, RequestClass, Reuse, Route, Stamps, Workload};
use kendall_record::Outcome;
use kendall_record::clock::now_ns;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadHalf, WriteHalf, split};

use crate::kind::Kind;
use crate::protocol::{HEAD_BYTES, Head, PIECE_BYTES, Pattern};
use crate::transport::{Connection, Duplex};

/// The operation of each request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The server sends bytes, on a kept connection.
    Bulk,
    /// The client sends bytes and gets them back, on a kept connection.
    Echo,
    /// An echo on a new connection, whose handshake is part of the response time.
    Handshake,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Self; 3] = [Self::Bulk, Self::Echo, Self::Handshake];

    /// The operation's name in files and URLs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::Echo => "echo",
            Self::Handshake => "handshake",
        }
    }

    /// The operation's default number of bytes.
    pub fn usual_bytes(self) -> u64 {
        match self {
            Self::Bulk => 1_000_000,
            Self::Echo => 64,
            Self::Handshake => 1,
        }
    }
}

impl FromStr for Operation {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|operation| operation.name() == text)
            .ok_or_else(|| format!("must be one of {}, not {text:?}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// Requests to a server of the laboratory.
pub struct TransportWorkload {
    to: SocketAddr,
    kind: Kind,
    operation: Operation,
    bytes: u64,
    pattern: Arc<Pattern>,
}

impl TransportWorkload {
    /// Requests of one operation over one transport, each of this many bytes.
    pub fn new(to: SocketAddr, kind: Kind, operation: Operation, bytes: u64) -> Self {
        Self { to, kind, operation, bytes, pattern: Arc::default() }
    }
}

impl Workload for TransportWorkload {
    fn request(&self, _: u64) -> Request {
        let head = match self.operation {
            Operation::Bulk => Head::Send(self.bytes),
            Operation::Echo | Operation::Handshake => Head::Echo(self.bytes),
        };
        Request::new(0, Bytes::copy_from_slice(&head.encode()))
    }

    fn classes(&self) -> Vec<RequestClass> {
        vec![RequestClass::new(self.operation.name(), 1.0)]
    }

    fn route(&self) -> Route<'_> {
        Route::Tasks(self)
    }
}

impl Connect for TransportWorkload {
    fn connect(&self) -> LocalFuture<'_, io::Result<Box<dyn kendall_load::Connection>>> {
        Box::pin(async move {
            let Connection { stream, client_port, .. } = self.kind.transport().connect(self.to).await?;
            let (read, write) = split(stream);
            let reuse = match self.operation {
                Operation::Bulk | Operation::Echo => Reuse::Keep,
                Operation::Handshake => Reuse::Close,
            };
            let pattern = self.pattern.clone();
            let line = Line { port: client_port, reuse, read, write, piece: vec![0; PIECE_BYTES], pattern };
            Ok(Box::new(line) as Box<dyn kendall_load::Connection>)
        })
    }
}

/// A connection that carries one request at a time.
struct Line {
    port: u16,
    reuse: Reuse,
    read: ReadHalf<Box<dyn Duplex>>,
    write: WriteHalf<Box<dyn Duplex>>,
    piece: Vec<u8>,
    pattern: Arc<Pattern>,
}

/// The reason why there is no good answer.
enum Failed {
    Connection,
    WrongBytes,
}

impl From<io::Error> for Failed {
    fn from(_: io::Error) -> Self {
        Self::Connection
    }
}

impl kendall_load::Connection for Line {
    fn port(&self) -> u16 {
        self.port
    }

    fn exchange<'a>(
        &'a mut self,
        _: u64,
        request: &'a Request,
        stamps: &'a mut Stamps,
    ) -> LocalFuture<'a, Exchange> {
        Box::pin(async move {
            let ended = self.ask(&request.bytes, stamps).await;
            stamps.completed = Some(now_ns());
            let (outcome, reuse) = match ended {
                Ok(()) => (Outcome::Answered, self.reuse),
                Err(Failed::WrongBytes) => (Outcome::Wrong, Reuse::Close),
                Err(Failed::Connection) => (Outcome::Refused, Reuse::Close),
            };
            if reuse == Reuse::Close {
                // The peer should see an orderly end; if it no longer reads, there is nothing more to do.
                let _ = self.write.shutdown().await;
            }
            Exchange { outcome, reuse }
        })
    }

    fn is_open(&mut self) -> bool {
        // Nothing comes on an idle connection but its end.
        self.read.read(&mut [0]).now_or_never().is_none()
    }
}

impl Line {
    async fn ask(&mut self, head: &[u8], stamps: &mut Stamps) -> Result<(), Failed> {
        let head: &[u8; HEAD_BYTES] = head.try_into().expect("a request is its head");
        let asked = Head::decode(head).expect("the workload makes valid requests");
        let (bytes, sent_after) = match asked {
            Head::Send(bytes) => (bytes, 0),
            Head::Echo(bytes) => (bytes, bytes),
            Head::Take(_) => unreachable!("the workload uploads nothing"),
        };
        let Self { read, write, piece, pattern, .. } = self;
        stamps.sent = Some(now_ns());
        stamps.bytes_out = HEAD_BYTES as u64 + sent_after;
        // Both concurrently: a long echo comes back while the rest of it is sent.
        let sending = send(write, *head, sent_after, pattern);
        tokio::try_join!(sending, receive(read, bytes, pattern, piece, stamps)).map(|_| ())
    }
}

async fn send(
    write: &mut (impl AsyncWrite + Unpin),
    head: [u8; HEAD_BYTES],
    bytes: u64,
    pattern: &Pattern,
) -> Result<(), Failed> {
    // The head is sent together with the first bytes.
    let first = pattern.piece(0..bytes.min((PIECE_BYTES - HEAD_BYTES) as u64));
    write.write_all(&[&head, first].concat()).await?;
    let mut place = first.len() as u64;
    while place < bytes {
        let piece = pattern.piece(place..bytes);
        write.write_all(piece).await?;
        place += piece.len() as u64;
    }
    Ok(write.flush().await?)
}

async fn receive(
    read: &mut (impl AsyncRead + Unpin),
    bytes: u64,
    pattern: &Pattern,
    piece: &mut [u8],
    stamps: &mut Stamps,
) -> Result<(), Failed> {
    let mut place = 0;
    while place < bytes {
        let most = piece.len().min(usize::try_from(bytes - place).unwrap_or(usize::MAX));
        let length = read.read(&mut piece[..most]).await?;
        if length == 0 {
            return Err(Failed::Connection);
        }
        stamps.first_byte.get_or_insert_with(now_ns);
        stamps.bytes_in += length as u64;
        let end = place + length as u64;
        if pattern.piece(place..end) != &piece[..length] {
            return Err(Failed::WrongBytes);
        }
        place = end;
    }
    Ok(())
}
