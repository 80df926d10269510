//! HTTP/2 (RFC 9113), over TLS or, by prior knowledge, in the clear.

use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use h2::{Error, Reason};
use http::Request as Head;
use kendall_load::{ConnectionKind, Stamps, Tls};
use kendall_record::Outcome;
use kendall_record::clock::now_ns;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::expect::{AnswerCheck, Expect};
use crate::options::Version;
use crate::streams::{Failed, Line};
use crate::tls::alpn;

/// The windows of one answer, and of one connection: large enough that no answer waits for them on this machine.
const STREAM_WINDOW_BYTES: u32 = 1 << 20;
const LINE_WINDOW_BYTES: u32 = 16 << 20;
const LONGEST_HEAD_BYTES: u32 = 64 * 1024;

/// One end of an HTTP/2 connection.
#[derive(Clone)]
pub(crate) struct Http2 {
    port: u16,
    send: SendRequest<Bytes>,
}

impl Http2 {
    async fn over(io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static, port: u16) -> io::Result<Self> {
        let builder = Builder::new()
            .initial_window_size(STREAM_WINDOW_BYTES)
            .initial_connection_window_size(LINE_WINDOW_BYTES)
            .max_header_list_size(LONGEST_HEAD_BYTES)
            .enable_push(false)
            .to_owned();
        let (send, connection) = builder.handshake(io).await.map_err(io::Error::other)?;
        // Ends with the last stream; every stream reports its errors.
        tokio::spawn(async move { drop(connection.await) });
        Ok(Self { port, send })
    }
}

impl Line for Http2 {
    type Dial = ConnectionKind;
    type Error = Error;

    async fn open(kind: &ConnectionKind, to: SocketAddr) -> io::Result<Self> {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        let port = stream.local_addr()?.port();
        match kind.security() {
            None => Self::over(stream, port).await,
            Some(Tls { config, name }) => {
                let stream = TlsConnector::from(config.clone()).connect(name.clone(), stream).await?;
                match stream.get_ref().1.alpn_protocol() {
                    Some(chosen) if chosen == alpn(Version::Http2) => Self::over(stream, port).await,
                    chosen => Err(io::Error::other(not_chosen(chosen))),
                }
            }
        }
    }

    fn port(&self) -> u16 {
        self.port
    }

    fn most_streams(&self) -> usize {
        self.send.current_max_send_streams()
    }

    async fn exchange(
        &mut self,
        head: Head<()>,
        body: Bytes,
        expect: &Expect,
        stamps: &mut Stamps,
    ) -> Result<Outcome, Error> {
        let mut send = self.send.clone().ready().await?;
        stamps.sent = Some(now_ns());
        let length = body.len() as u64;
        let (answer, mut stream) = send.send_request(head, body.is_empty())?;
        if !body.is_empty() {
            // The connection keeps the bytes that the server does not accept yet: no copy, because they are shared.
            stream.send_data(body, true)?;
        }
        stamps.bytes_out += length;
        let answer = answer.await?;
        stamps.first_byte = Some(now_ns());
        let mut check = AnswerCheck::head(expect, answer.status().as_u16());
        let mut body = answer.into_body();
        while let Some(part) = body.data().await {
            let part = part?;
            stamps.bytes_in += part.len() as u64;
            check.body(expect, &part);
            body.flow_control().release_capacity(part.len())?;
            if check.is_too_long(expect) {
                // Dropping the body cancels its stream.
                break;
            }
        }
        if !check.is_too_long(expect) {
            body.trailers().await?;
        }
        stamps.status = Some(check.status());
        Ok(check.judge(expect))
    }

    fn failed(error: &Error, stamps: &Stamps) -> Failed {
        let in_good_order =
            error.is_go_away() && error.is_remote() && error.reason() == Some(Reason::NO_ERROR);
        match error {
            _ if in_good_order || stamps.sent.is_none() => Failed::Unseen,
            _ if error.is_reset() && error.is_remote() => Failed::Stream(Outcome::Refused),
            // An answer that this side cannot read is wrong.
            _ if error.is_reset() => Failed::Stream(Outcome::Wrong),
            _ if error.is_library() => Failed::Line(Outcome::Wrong),
            _ => Failed::Line(Outcome::Refused),
        }
    }
}

fn not_chosen(chosen: Option<&[u8]>) -> String {
    match chosen {
        Some(protocol) => format!("asked for HTTP/2, the server chose {}", String::from_utf8_lossy(protocol)),
        None => "asked for HTTP/2, the server chose no protocol, so it speaks at most HTTP/1.1".into(),
    }
}
