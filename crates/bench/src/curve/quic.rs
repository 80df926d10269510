//! A transfer over QUIC.

use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;
use std::sync::{Arc, mpsc};

use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_send_buffer_size};
use rustls::RootCertStore;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::transfer::{BYTES, PIECE, SOCKET_BUFFER, Transfer, WINDOW, run, runtime};

/// A key and a certificate for `localhost` that it has signed itself.
pub(super) struct Identity {
    certificate: CertificateDer<'static>,
    key: PrivateKeyDer<'static>,
}

impl Identity {
    /// `None` where openssl is not installed.
    pub(super) fn new() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let [key, certificate] = ["key", "certificate"].map(|name| folder.path().join(name));
        let made = Command::new("openssl")
            .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost".split(' '))
            .args(["-addext", "subjectAltName=DNS:localhost", "-addext", "basicConstraints=critical,CA:FALSE"])
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .output();
        if !made.is_ok_and(|made| made.status.success()) {
            return None;
        }
        use rustls::pki_types::pem::PemObject;
        Some(Self {
            certificate: CertificateDer::from_pem_file(&certificate).expect("openssl writes PEM"),
            key: PrivateKeyDer::from_pem_file(&key).expect("openssl writes PEM"),
        })
    }

    fn server(&self) -> ServerConfig {
        let chain = vec![self.certificate.clone()];
        let mut config = ServerConfig::with_single_cert(chain, self.key.clone_key())
            .expect("the certificate is of the key");
        config.transport_config(transport());
        config
    }

    fn client(&self) -> ClientConfig {
        let mut roots = RootCertStore::empty();
        roots.add(self.certificate.clone()).expect("it is a certificate");
        let mut config =
            ClientConfig::with_root_certificates(Arc::new(roots)).expect("the roots are not empty");
        config.transport_config(transport());
        config
    }
}

/// The default, but for windows that do not hold the stream up.
fn transport() -> Arc<TransportConfig> {
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(WINDOW.into()).receive_window(WINDOW.into()).send_window(WINDOW.into());
    Arc::new(transport)
}

/// An endpoint on a free port, within a runtime.
fn endpoint(server: Option<ServerConfig>) -> Endpoint {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
    set_socket_send_buffer_size(&socket, SOCKET_BUFFER).expect("the kernel grants what it can");
    set_socket_recv_buffer_size(&socket, SOCKET_BUFFER).expect("the kernel grants what it can");
    Endpoint::new(EndpointConfig::default(), server, socket, Arc::new(TokioRuntime))
        .expect("the socket can be used")
}

pub(super) fn transfer(identity: &Identity) -> Transfer {
    let (bound, address) = mpsc::channel();
    let receive = || {
        runtime().block_on(async {
            let endpoint = endpoint(Some(identity.server()));
            bound.send(endpoint.local_addr().expect("it is bound")).expect("the sender waits for it");
            let incoming = endpoint.accept().await.expect("the endpoint is open");
            let connection = incoming.await.expect("the sender connects");
            let (mut reply, mut stream) = connection.accept_bi().await.expect("the sender opens a stream");
            let mut received = 0;
            while let Some(chunk) = stream.read_chunk(PIECE, true).await.expect("the sender ends well") {
                received += chunk.bytes.len();
            }
            assert_eq!(received, BYTES);
            reply.write_all(b".").await.expect("the sender waits");
            reply.finish().expect("the stream is open");
            connection.closed().await;
        });
    };
    let send = move || {
        runtime().block_on(async {
            let endpoint = endpoint(None);
            let to = address.recv().expect("the receiver is bound");
            let connecting = endpoint.connect_with(identity.client(), to, "localhost");
            let connection =
                connecting.expect("the configuration is valid").await.expect("the receiver answers");
            let (mut stream, mut reply) = connection.open_bi().await.expect("a stream can be opened");
            let (piece, mut sent) = (vec![7; PIECE], 0);
            while sent < BYTES {
                sent += stream.write(&piece[..PIECE.min(BYTES - sent)]).await.expect("the receiver reads");
            }
            stream.finish().expect("the stream is open");
            reply.read_to_end(1).await.expect("the receiver ends well");
            connection.close(0_u32.into(), b"");
            endpoint.wait_idle().await;
        });
    };
    run(BYTES, receive, send)
}
