//! The client of a user: a file in, a file out, in pieces of bounded size.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::ops::RangeInclusive;
use std::time::Duration;

use crate::protocol::{BLOCK_BYTES, Dialect, Head, NoHead, decode_answer};
use crate::search::Hash;

/// The size of the pieces that are read and written.
const PIECE_BYTES: usize = 256 * 1024;
/// The longest time for a server to accept the connection.
const CONNECT: Duration = Duration::from_secs(10);

/// The parameters of a request.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The digest of the password.
    pub hash: Hash,
    /// The range of its length.
    pub lengths: RangeInclusive<usize>,
    /// The dialect of the server.
    pub dialect: Dialect,
}

/// The progress of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The number of bytes of the encrypted file that were sent.
    Sent(u64),
    /// The number of bytes of the decrypted file that were received, and their total.
    Come(u64, u64),
}

/// The reason why there is no file.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// No server listens there, or the network fails.
    #[error("cannot reach {server}: {source}; is `kendall serve recover` running there?")]
    Unreachable {
        /// The server.
        server: SocketAddr,
        /// The operating system's message.
        source: io::Error,
    },
    /// The encrypted file cannot be read, or the decrypted one not written.
    #[error("cannot {what}: {source}")]
    File {
        /// The action that failed.
        what: &'static str,
        /// The operating system's message.
        source: io::Error,
    },
    /// The file is not one of the cipher's.
    #[error("a file of {0} bytes is not encrypted with AES: its length is 0 or not a multiple of 16")]
    Length(u64),
    /// The server closed the connection, which is its only error message.
    #[error(
        "the server closed the connection without an answer: it found no password of this length and digest, the file \
         is not encrypted under that password, or the server is full; check --length and --hash, try a server with \
         --strategy adaptive or another --dictionary, or retry later; its metrics show the reason"
    )]
    NoAnswer,
    /// The answer is not of this protocol.
    #[error("the answer is not of the protocol {0}: {1}; does the server speak another one (--protocol)?")]
    Wrong(&'static str, String),
    /// The answer ended early.
    #[error("the connection broke after {come} of {length} bytes; retry")]
    Broken {
        /// The number of bytes received.
        come: u64,
        /// The expected number of bytes.
        length: u64,
    },
}

/// Sends an encrypted file of this many bytes and receives the decrypted one; returns its length. Calls `watch` with
/// the progress.
///
/// # Errors
/// Fails if the server cannot be reached or does not answer, or files cannot be read or written.
pub fn request(
    server: SocketAddr,
    ask: &Ask,
    encrypted: (impl Read, u64),
    plain: impl Write,
    mut watch: impl FnMut(Stage),
) -> Result<u64, RequestError> {
    let (encrypted, file_bytes) = encrypted;
    if file_bytes == 0 || !file_bytes.is_multiple_of(BLOCK_BYTES) {
        return Err(RequestError::Length(file_bytes));
    }
    let unreachable = |source| RequestError::Unreachable { server, source };
    let mut stream = TcpStream::connect_timeout(&server, CONNECT).map_err(unreachable)?;
    stream.set_nodelay(true).map_err(unreachable)?;
    let head = Head { id: 1, hash: ask.hash, lengths: ask.lengths.clone(), file_bytes };
    send(&mut stream, &head.encode(ask.dialect), encrypted.take(file_bytes), file_bytes, &mut watch)?;
    receive(&mut stream, ask.dialect, file_bytes, plain, &mut watch)
}

fn send(
    stream: &mut TcpStream,
    head: &[u8],
    mut encrypted: impl Read,
    file_bytes: u64,
    watch: &mut impl FnMut(Stage),
) -> Result<(), RequestError> {
    let mut piece = Vec::with_capacity(head.len() + PIECE_BYTES);
    piece.extend_from_slice(head);
    let mut sent = 0;
    while sent < file_bytes {
        let begun = piece.len();
        let read = encrypted
            .by_ref()
            .take(PIECE_BYTES as u64)
            .read_to_end(&mut piece)
            .map_err(|source| RequestError::File { what: "read the encrypted file", source })?;
        if read == 0 {
            let source = ErrorKind::UnexpectedEof.into();
            return Err(RequestError::File { what: "read all of the encrypted file", source });
        }
        debug_assert_eq!(piece.len(), begun + read);
        // A server that will not answer may close before all is sent.
        stream.write_all(&piece).map_err(|_| RequestError::NoAnswer)?;
        piece.clear();
        sent += read as u64;
        watch(Stage::Sent(sent));
    }
    Ok(())
}

fn receive(
    stream: &mut TcpStream,
    dialect: Dialect,
    file_bytes: u64,
    mut plain: impl Write,
    watch: &mut impl FnMut(Stage),
) -> Result<u64, RequestError> {
    let mut head = vec![0; dialect.answer_head_bytes()];
    match stream.read(&mut head) {
        Ok(read @ 1..) => stream.read_exact(&mut head[read..]).map_err(|_| RequestError::NoAnswer)?,
        _ => return Err(RequestError::NoAnswer),
    }
    let wrong = |what| RequestError::Wrong(dialect.name(), what);
    let length = match decode_answer(&head, dialect) {
        Ok((id, _)) if dialect == Dialect::WithId && id != 1 => {
            return Err(wrong(format!("it has the number {id} instead of 1")));
        }
        Ok((_, length)) if length >= file_bytes || length < file_bytes - BLOCK_BYTES => {
            return Err(wrong(format!("a file of {file_bytes} bytes cannot decrypt to {length} bytes")));
        }
        Ok((_, length)) => length,
        Err(NoHead::Incomplete | NoHead::Malformed) => return Err(wrong("a length below zero".into())),
    };
    let mut piece = vec![0; PIECE_BYTES];
    let mut come = 0;
    while come < length {
        let most = usize::try_from(length - come).unwrap_or(usize::MAX).min(PIECE_BYTES);
        match stream.read(&mut piece[..most]) {
            Ok(read @ 1..) => {
                plain
                    .write_all(&piece[..read])
                    .map_err(|source| RequestError::File { what: "write the decrypted file", source })?;
                come += read as u64;
                watch(Stage::Come(come, length));
            }
            _ => return Err(RequestError::Broken { come, length }),
        }
    }
    Ok(length)
}
