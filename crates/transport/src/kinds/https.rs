//! HTTPS, by hyper: one request of HTTP/1.1 over TLS 1.3, whose body is the stream to the server, and whose answer's body is
//! the stream back. Both are chunked, and flow at the same time.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, Bytes};
use hyper::body::{Body, Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::time::sleep;
use tokio_rustls::{TlsAcceptor, TlsConnector, server};
use tokio_util::sync::PollSender;

use super::tcp;
use crate::error::TransportError;
use crate::laboratory;
use crate::transport::{BoxFuture, Connection, Listener, Transport};

/// The number of pieces between the writer of a body and hyper, and their size.
const PIECES: usize = 4;
const PIECE_BYTES: usize = 64 << 10;
/// How long a connection may take to send the written bytes, once its streams are dropped.
const LINGER: Duration = Duration::from_secs(10);

/// The transport's name in files, URLs and reports.
pub(crate) const NAME: &str = "https";

/// HTTPS.
pub(crate) struct Https;

impl Transport for Https {
    fn connect(&self, to: SocketAddr) -> BoxFuture<'_, io::Result<Connection>> {
        Box::pin(async move {
            let connector = TlsConnector::from(laboratory::client_tls().map_err(io::Error::other)?);
            let (stream, client_port) = tcp::dial(to).await?;
            let stream = connector.connect(laboratory::server_name(), stream).await?;
            let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
            let (mut sender, driver) = shaken.map_err(io::Error::other)?;
            // The streams report its errors.
            let alive = drive(async move { drop(driver.await) });
            let (write, body) = outgoing();
            let request = Request::builder().method(Method::POST).uri("/").header("host", laboratory::host());
            let request = request.body(body).expect("the head is valid");
            let answer = Box::pin(async move { sender.send_request(request).await });
            let stream = Box::new(Streams { write, read: Reading::Head(answer), _alive: alive });
            Ok(Connection { stream, client_port, moved: None })
        })
    }

    fn listen(&self, at: SocketAddr) -> Result<Box<dyn Listener>, TransportError> {
        let acceptor = TlsAcceptor::from(laboratory::server_tls()?);
        Ok(Box::new(tcp::listen(at, NAME, move |stream, client_port| {
            let accepting = acceptor.accept(stream);
            Box::pin(async move { accept(accepting.await?, client_port).await })
        })?))
    }
}

/// Waits for the head of a connection's only request.
async fn accept(stream: server::TlsStream<TcpStream>, client_port: u16) -> io::Result<Connection> {
    let (give, taken) = oneshot::channel();
    let give = Mutex::new(Some(give));
    let service = move |request: Request<Incoming>| {
        let first = give.try_lock().ok().and_then(|mut give| give.take());
        async move { Ok::<_, Infallible>(respond(request, first)) }
    };
    let alive = drive(async move {
        let service = service_fn(service);
        let mut http = hyper::server::conn::http1::Builder::new();
        // The streams report its errors. Clients of the laboratory send one request per connection.
        drop(http.keep_alive(false).serve_connection(TokioIo::new(stream), service).await);
    });
    let (write, read) = taken.await.map_err(|_| io::Error::other("the client sent no request of HTTP"))?;
    let stream = Streams { write, read, _alive: alive };
    Ok(Connection { stream: Box::new(stream), client_port, moved: None })
}

/// Runs hyper alongside the streams of a connection, until it is done, or for [`LINGER`] after the returned value is dropped: a
/// peer that neither sends nor reads does not keep the connection open.
fn drive(hyper: impl Future<Output = ()> + Send + 'static) -> oneshot::Sender<()> {
    let (alive, gone) = oneshot::channel();
    tokio::spawn(async move {
        let too_long = async {
            // The value is only dropped, never sent.
            drop(gone.await);
            sleep(LINGER).await;
        };
        tokio::select! {
            () = hyper => {}
            () = too_long => {}
        }
    });
    alive
}

fn respond(
    request: Request<Incoming>,
    give: Option<oneshot::Sender<(PollSender<Bytes>, Reading)>>,
) -> Response<Outgoing> {
    let (write, body) = outgoing();
    let mut response = Response::new(body);
    match give {
        Some(give) if request.method() == Method::POST => {
            let read = Reading::Body(request.into_body(), Bytes::new());
            // If the server no longer waits, the answer's body ends at once.
            drop(give.send((write, read)));
        }
        _ => *response.status_mut() = StatusCode::METHOD_NOT_ALLOWED,
    }
    response
}

fn outgoing() -> (PollSender<Bytes>, Outgoing) {
    let (sender, receiver) = mpsc::channel(PIECES);
    (PollSender::new(sender), Outgoing(receiver))
}

/// A body that is written piece by piece.
struct Outgoing(mpsc::Receiver<Bytes>);

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|piece| piece.map(|piece| Ok(Frame::data(piece))))
    }
}

/// Both bodies of one exchange.
struct Streams {
    write: PollSender<Bytes>,
    read: Reading,
    _alive: oneshot::Sender<()>,
}

/// The state of the body to be read.
enum Reading {
    /// The head of the answer has not arrived.
    Head(BoxFuture<'static, hyper::Result<Response<Incoming>>>),
    /// The body, and the rest of its last piece.
    Body(Incoming, Bytes),
    /// The answer has failed; the error has been returned.
    Failed,
}

impl Reading {
    fn body(answer: hyper::Result<Response<Incoming>>) -> io::Result<Self> {
        let answer = answer.map_err(io::Error::other)?;
        match answer.status() {
            StatusCode::OK => Ok(Self::Body(answer.into_body(), Bytes::new())),
            status => Err(io::Error::other(format!("the server answered {status}"))),
        }
    }
}

impl Streams {
    /// Takes the head of the answer, whose future must not be polled again.
    fn received(&mut self, answer: hyper::Result<Response<Incoming>>) -> io::Result<()> {
        self.read = Reading::Failed;
        self.read = Reading::body(answer)?;
        Ok(())
    }
}

impl AsyncRead for Streams {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            match &mut self.read {
                Reading::Head(answer) => {
                    let answer = ready!(answer.as_mut().poll(context));
                    self.received(answer)?;
                }
                Reading::Failed => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
                Reading::Body(_, left) if left.has_remaining() => {
                    let take = left.len().min(into.remaining());
                    into.put_slice(&left.split_to(take));
                    return Poll::Ready(Ok(()));
                }
                Reading::Body(body, left) => match ready!(Pin::new(body).poll_frame(context)) {
                    Some(frame) => *left = frame.map_err(io::Error::other)?.into_data().unwrap_or_default(),
                    None => return Poll::Ready(Ok(())),
                },
            }
        }
    }
}

impl AsyncWrite for Streams {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let gone = |_| io::Error::from(io::ErrorKind::BrokenPipe);
        // The head of a request is sent once hyper is polled, which the first write must do.
        if let Reading::Head(answer) = &mut self.read
            && let Poll::Ready(answer) = answer.as_mut().poll(context)
        {
            self.received(answer)?;
        }
        ready!(self.write.poll_reserve(context)).map_err(gone)?;
        let take = bytes.len().min(PIECE_BYTES);
        self.write.send_item(Bytes::copy_from_slice(&bytes[..take])).map_err(gone)?;
        Poll::Ready(Ok(take))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.write.close();
        Poll::Ready(Ok(()))
    }
}
