//! Talks over QUIC. The certificates of a talk are made for it and say nothing: TLS agrees on keys with anyone, and then each
//! peer proves its own key over the very connection, so that peers are known by the same keys as over CurveCP.
//!
//! A proof is a NaCl box between the two keys, which only they can make, around the side that made it and the connection's
//! exporter (RFC 8446, section 7.5; RFC 9266 names its use as a channel binding). A proof of another connection, or the
//! peer's own one sent back, proves nothing.

use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use kendall_curve::curvecp::{BoxKey, PublicKey, SecretKey};
use kendall_curve::system_random;
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Connection, Endpoint, EndpointConfig, Incoming, RecvStream, SendStream, ServerConfig,
    TokioRuntime, TransportConfig,
};
use rand::Rng;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, PrivatePkcs8KeyDer, ServerName, UnixTime};
use rustls::version::TLS13;
use rustls::{DigitallySignedStruct, Error, SignatureScheme};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::{sleep, timeout};

use crate::terms::{IDLE, KEEP_ALIVE, NAME};

const EXPORTER: &[u8] = b"EXPORTER-kendall-talk";
const NONCE: usize = 24;
const TAG: usize = 16;
/// A nonce, a tag, the side and the exporter.
const PROOF: usize = NONCE + TAG + 1 + 32;
/// An attempt whose first packets were lost at a translator waits ever longer between packets: another one is sooner there.
const ATTEMPT: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(100);
/// On a way that may be closed, the first packet is sent again after three times this.
const FIRST_ROUND_TRIP: Duration = Duration::from_millis(60);

/// Which side of a connection made a proof.
#[derive(Clone, Copy)]
enum Side {
    Dialling = 0,
    Accepting = 1,
}

/// One peer's end of the connections of a talk.
#[derive(Clone)]
pub(crate) struct QuicEnd {
    endpoint: Endpoint,
    socket: Arc<UdpSocket>,
    dialling: ClientConfig,
    /// What the two peers' keys have in common.
    key: Arc<BoxKey>,
}

impl QuicEnd {
    /// On a socket, for talks with one peer; within a tokio runtime.
    ///
    /// # Errors
    /// Where the system refuses the socket, and where the peer's key is not valid.
    pub(crate) fn new(socket: UdpSocket, identity: &SecretKey, peer: &PublicKey) -> io::Result<Self> {
        let key = identity.box_key(peer).ok_or_else(|| io::Error::other("the peer's key is not valid"))?;
        let own = socket.try_clone()?;
        let server = accepting()?;
        let endpoint =
            Endpoint::new(EndpointConfig::default(), Some(server), socket, Arc::new(TokioRuntime))?;
        Ok(Self { endpoint, socket: Arc::new(own), dialling: dialling(), key: Arc::new(key) })
    }

    /// Sends a datagram that is not of QUIC. If it cannot be sent, it is lost, as on any link.
    pub(crate) fn send_datagram(&self, to: SocketAddr, datagram: &[u8]) {
        let is_ipv6 = self.socket.local_addr().is_ok_and(|own| own.is_ipv6());
        let to = match to {
            SocketAddr::V4(to) if is_ipv6 => SocketAddr::new(to.ip().to_ipv6_mapped().into(), to.port()),
            to => to,
        };
        _ = self.socket.send_to(datagram, to);
    }

    /// Dials until the peer has proved its key.
    pub(crate) async fn connect(self, address: SocketAddr) -> QuicStream {
        loop {
            if let Ok(Some(stream)) = timeout(ATTEMPT, self.attempt(address)).await {
                return stream;
            }
            sleep(PAUSE).await;
        }
    }

    async fn attempt(&self, address: SocketAddr) -> Option<QuicStream> {
        let connecting = self.endpoint.connect_with(self.dialling.clone(), address, NAME).ok()?;
        let connection = connecting.await.ok()?;
        let (send, receive) = connection.open_bi().await.ok()?;
        let mut stream =
            QuicStream { send, receive, connection, endpoint: self.endpoint.clone(), sent: None };
        stream.write_all(&self.proof(&stream.connection, Side::Dialling)?).await.ok()?;
        self.check(&mut stream, Side::Accepting).await?;
        Some(stream)
    }

    /// Waits for a connection, which [`Self::admit`] then checks. `None` where the endpoint no longer works.
    pub(crate) async fn accept(&self) -> Option<Incoming> {
        self.endpoint.accept().await
    }

    /// The stream of a connection, if it is the peer's.
    pub(crate) async fn admit(self, incoming: Incoming) -> Option<QuicStream> {
        let connection = incoming.await.ok()?;
        let (send, receive) = connection.accept_bi().await.ok()?;
        let mut stream =
            QuicStream { send, receive, connection, endpoint: self.endpoint.clone(), sent: None };
        self.check(&mut stream, Side::Dialling).await?;
        stream.write_all(&self.proof(&stream.connection, Side::Accepting)?).await.ok()?;
        Some(stream)
    }

    fn proof(&self, connection: &Connection, side: Side) -> Option<[u8; PROOF]> {
        let mut proof = [0; PROOF];
        let (nonce, boxed) = proof.split_first_chunk_mut::<NONCE>()?;
        system_random().fill_bytes(nonce);
        boxed[TAG] = side as u8;
        connection.export_keying_material(&mut boxed[TAG + 1..], EXPORTER, b"").ok()?;
        self.key.seal(nonce, boxed);
        Some(proof)
    }

    /// Reads the proof that the other side has made.
    async fn check(&self, stream: &mut QuicStream, side: Side) -> Option<()> {
        let mut proof = [0; PROOF];
        stream.read_exact(&mut proof).await.ok()?;
        let (nonce, boxed) = proof.split_first_chunk_mut::<NONCE>()?;
        let opened = self.key.open(nonce, boxed)?;
        let mut expected = [side as u8; 33];
        stream.connection.export_keying_material(&mut expected[1..], EXPORTER, b"").ok()?;
        (*opened == expected).then_some(())
    }
}

/// One stream of a connection, which ends with it.
pub struct QuicStream {
    send: SendStream,
    receive: RecvStream,
    connection: Connection,
    endpoint: Endpoint,
    /// After the shutdown: resolves once the peer's program has everything, or the connection is lost.
    sent: Option<Pin<Box<dyn Future<Output = ()> + Send + Sync>>>,
}

impl QuicStream {
    /// The connection of the stream, and the endpoint that drives the connection.
    pub(crate) fn connection(&self) -> (Connection, Endpoint) {
        (self.connection.clone(), self.endpoint.clone())
    }
}

impl fmt::Debug for QuicStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QuicStream").field("connection", &self.connection).finish_non_exhaustive()
    }
}

impl AsyncRead for QuicStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        AsyncRead::poll_read(Pin::new(&mut self.receive), context, into)
    }
}

impl AsyncWrite for QuicStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        AsyncWrite::poll_write(Pin::new(&mut self.send), context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        AsyncWrite::poll_flush(Pin::new(&mut self.send), context)
    }

    /// Returns once all is acknowledged: a connection that is closed sends nothing again.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.sent.is_none() {
            // It fails only where the stream has ended already.
            _ = self.send.finish();
            let stopped = self.send.stopped();
            self.sent = Some(Box::pin(async move { _ = stopped.await }));
        }
        let sent = self.sent.as_mut().expect("it was just put there");
        sent.as_mut().poll(context).map(Ok)
    }
}

fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(Some(IDLE.try_into().expect("seconds are short")))
        .keep_alive_interval(Some(KEEP_ALIVE))
        .initial_rtt(FIRST_ROUND_TRIP)
        .max_concurrent_bidi_streams(1_u8.into())
        .max_concurrent_uni_streams(0_u8.into());
    Arc::new(transport)
}

/// The accepting side, with a certificate that is made for this talk.
fn accepting() -> io::Result<ServerConfig> {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).map_err(io::Error::other)?;
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .expect("ring has suites of TLS 1.3")
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .expect("the key is the certificate's");
    tls.send_tls13_tickets = 0;
    let tls = QuicServerConfig::try_from(tls).expect("ring has the first suite of QUIC");
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(transport());
    Ok(config)
}

fn dialling() -> ClientConfig {
    let provider = Arc::new(ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&[&TLS13])
        .expect("ring has suites of TLS 1.3")
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Anyone(provider)))
        .with_no_client_auth();
    let tls = QuicClientConfig::try_from(tls).expect("ring has the first suite of QUIC");
    let mut config = ClientConfig::new(Arc::new(tls));
    config.transport_config(transport());
    config
}

/// Accepts any certificate: the peer identifies itself by a separate proof.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Err(Error::General("only TLS 1.3 is spoken".to_owned()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
