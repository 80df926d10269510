//! Exchanges over plain TCP, for workloads whose answers have a fixed length.

use std::io;
use std::net::SocketAddr;

use kendall_record::Outcome;
use kendall_record::clock::now_ns;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::workload::Stamps;

/// Connects, with Nagle's algorithm off: a request is one write and must not wait for company.
///
/// # Errors
/// As the operating system has them.
pub async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// Sends a request, fills `answer` and judges it: [`Outcome::Answered`], [`Outcome::Wrong`], or
/// [`Outcome::Refused`] where the connection did not last until the answer was complete.
pub async fn ask(
    stream: &mut TcpStream,
    request: &[u8],
    answer: &mut [u8],
    stamps: &mut Stamps,
    right: impl FnOnce(&[u8]) -> bool,
) -> Outcome {
    match exchange(stream, request, answer, stamps).await {
        Ok(()) if right(answer) => Outcome::Answered,
        Ok(()) => Outcome::Wrong,
        Err(_) => Outcome::Refused,
    }
}

/// Sends a request and fills `answer`, setting every stamp on the way.
///
/// # Errors
/// Fails where the connection is reset, or ends before the answer is complete.
pub async fn exchange(
    stream: &mut TcpStream,
    request: &[u8],
    answer: &mut [u8],
    stamps: &mut Stamps,
) -> io::Result<()> {
    stamps.sent = Some(now_ns());
    let result = write_and_read(stream, request, answer, stamps).await;
    stamps.completed = Some(now_ns());
    result
}

async fn write_and_read(
    stream: &mut TcpStream,
    request: &[u8],
    answer: &mut [u8],
    stamps: &mut Stamps,
) -> io::Result<()> {
    stream.write_all(request).await?;
    stamps.bytes_out += request.len() as u64;
    let mut filled = 0;
    while filled < answer.len() {
        let read = stream.read(&mut answer[filled..]).await?;
        if read == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        stamps.first_byte.get_or_insert_with(now_ns);
        stamps.bytes_in += read as u64;
        filled += read;
    }
    Ok(())
}
