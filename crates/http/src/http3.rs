//! HTTP/3 (RFC 9114), over QUIC.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;

use bytes::{Buf, Bytes};
use h3::client::{RequestStream, SendRequest};
use h3::error::{Code, ConnectionError, StreamError};
use h3::quic::RecvStream;
use h3_quinn::OpenStreams;
use http::{Request as Head, Response};
use kendall_load::Stamps;
use kendall_record::Outcome;
use kendall_record::clock::now_ns;
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Endpoint};

use crate::error::HttpError;
use crate::expect::{AnswerCheck, Expect};
use crate::streams::{Failed, Line};

const LONGEST_HEAD_BYTES: u64 = 64 * 1024;

/// One end of an HTTP/3 connection.
#[derive(Clone)]
pub(crate) struct Http3 {
    port: u16,
    send: SendRequest<OpenStreams, Bytes>,
}

/// The parameters to open a connection.
pub(crate) struct Dial {
    config: ClientConfig,
    /// The name that the server's certificate must have.
    name: String,
}

impl Dial {
    pub(crate) fn new(config: rustls::ClientConfig, name: String) -> Result<Self, HttpError> {
        let config =
            QuicClientConfig::try_from(config).expect("the ring provider has the first cipher of QUIC");
        Ok(Self { config: ClientConfig::new(Arc::new(config)), name })
    }
}

impl Line for Http3 {
    type Dial = Dial;
    type Error = StreamError;

    async fn open(dial: &Dial, to: SocketAddr) -> io::Result<Self> {
        let any = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        // A socket for each connection, so that a server whose workers share a port by flows uses all of them.
        let endpoint = Endpoint::client(SocketAddr::new(any, 0))?;
        let port = endpoint.local_addr()?.port();
        let connecting =
            endpoint.connect_with(dial.config.clone(), to, &dial.name).map_err(io::Error::other)?;
        let connection = h3_quinn::Connection::new(connecting.await?);
        let mut builder = h3::client::builder();
        builder.max_field_section_size(LONGEST_HEAD_BYTES).send_grease(false);
        let (mut driver, send) = builder.build(connection).await.map_err(io::Error::other)?;
        // Ends with the last stream; every stream reports its errors.
        tokio::spawn(async move { drop(driver.wait_idle().await) });
        Ok(Self { port, send })
    }

    fn port(&self) -> u16 {
        self.port
    }

    /// QUIC itself delays a stream until the server has credit for it.
    fn most_streams(&self) -> usize {
        usize::MAX
    }

    async fn exchange(
        &mut self,
        head: Head<()>,
        body: Bytes,
        expect: &Expect,
        stamps: &mut Stamps,
    ) -> Result<Outcome, StreamError> {
        let began_ns = now_ns();
        let length = body.len() as u64;
        let stream = self.send.send_request(head).await?;
        stamps.sent = Some(began_ns);
        let (mut send, mut receive) = stream.split();
        let mut sending = pin!(async {
            if !body.is_empty() {
                send.send_data(body).await?;
            }
            send.finish().await
        });
        let mut is_sending = true;
        // A server may answer before it has read the whole request.
        let answer = tokio::select! {
            biased;
            answer = final_answer(&mut receive) => answer?,
            sent = &mut sending => {
                sent?;
                (is_sending, stamps.bytes_out) = (false, stamps.bytes_out + length);
                final_answer(&mut receive).await?
            }
        };
        stamps.first_byte = Some(now_ns());
        let mut check = AnswerCheck::head(expect, answer.status().as_u16());
        // Dropping the stream of a body that is too long stops the server.
        while !check.is_too_long(expect) {
            let part = tokio::select! {
                biased;
                part = receive.recv_data() => part?,
                sent = &mut sending, if is_sending => {
                    // The answer counts, even if the server does not want the rest of the request.
                    let sent_bytes = if sent.is_ok() { length } else { 0 };
                    (is_sending, stamps.bytes_out) = (false, stamps.bytes_out + sent_bytes);
                    continue;
                }
            };
            let Some(mut part) = part else { break };
            while part.has_remaining() {
                let length = part.chunk().len();
                stamps.bytes_in += length as u64;
                check.body(expect, part.chunk());
                part.advance(length);
            }
        }
        stamps.status = Some(check.status());
        Ok(check.judge(expect))
    }

    fn failed(error: &StreamError, stamps: &Stamps) -> Failed {
        match error {
            _ if stamps.sent.is_none() => Failed::Unseen,
            StreamError::RemoteClosing { .. } => Failed::Unseen,
            // RFC 9114, 8.1: it was not processed, so it may be sent again.
            StreamError::RemoteTerminate { code, .. } if *code == Code::H3_REQUEST_REJECTED => Failed::Unseen,
            StreamError::RemoteTerminate { .. } => Failed::Stream(Outcome::Refused),
            StreamError::ConnectionError { 0: ConnectionError::Local { .. }, .. } => {
                Failed::Line(Outcome::Wrong)
            }
            StreamError::ConnectionError { .. } | StreamError::Undefined { .. } => {
                Failed::Line(Outcome::Refused)
            }
            // An answer that this side cannot read is wrong.
            _ => Failed::Stream(Outcome::Wrong),
        }
    }
}

/// The head of the answer, after those of interim answers (1xx).
async fn final_answer<R: RecvStream>(
    receive: &mut RequestStream<R, Bytes>,
) -> Result<Response<()>, StreamError> {
    loop {
        let answer = receive.recv_response().await?;
        if !answer.status().is_informational() {
            return Ok(answer);
        }
    }
}
