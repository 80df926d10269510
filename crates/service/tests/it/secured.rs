//! Sessions over TLS: they behave like plain ones, and failures before they begin are counted.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use kendall_service::{Config, SessionLimits};
use kendall_testbed::{LIMIT, Running, wait_until};
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned};

use crate::club::{Book, serve_secured};
use crate::lines::config;

type Secured = BufReader<StreamOwned<ClientConnection, TcpStream>>;

/// A server with its own certificate, and the configuration of its clients.
fn serve(config: Config) -> (Running, Arc<Book>, Arc<ClientConfig>) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let certificate = CertificateDer::from(made.cert.der().to_vec());
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let tls = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.clone()], key)
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let client = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let (server, book) = serve_secured(config, SessionLimits::default(), Arc::new(tls));
    (server, book, Arc::new(client))
}

fn tcp(server: &Running) -> TcpStream {
    let stream = TcpStream::connect(server.address).unwrap();
    stream.set_nodelay(true).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
}

fn connect(server: &Running, config: &Arc<ClientConfig>) -> Secured {
    let name = ServerName::try_from("localhost").unwrap();
    let connection = ClientConnection::new(Arc::clone(config), name).unwrap();
    BufReader::new(StreamOwned::new(connection, tcp(server)))
}

fn line(peer: &mut Secured) -> String {
    let mut line = String::new();
    peer.read_line(&mut line).unwrap();
    line
}

#[test]
fn answers_and_pushes_arrive_and_the_end_is_in_order() {
    let (server, book, tls) = serve(config(2));
    let (mut anna, mut ben) = (connect(&server, &tls), connect(&server, &tls));
    anna.get_mut().write_all(b"i am anna\n").unwrap();
    ben.get_mut().write_all(b"i am ben\n").unwrap();
    wait_until("both are there", || book.names() == ["anna", "ben"]);
    anna.get_mut().write_all(b"to ben hello\nnow 1\n").unwrap();
    assert_eq!(line(&mut ben), "hello\n");
    let mut answers = [line(&mut anna), line(&mut anna)];
    answers.sort();
    assert_eq!(answers, ["now 1\n", "sent\n"]);
    // More than a record of TLS and than the socket accepts at a time.
    let text = "x".repeat(200_000);
    book.push("ben", &text).unwrap();
    assert_eq!(line(&mut ben).trim_end(), text);
    server.shut_down();
    // Without the last record of TLS, this would be an error.
    assert_eq!(ben.read(&mut [0]).unwrap(), 0);
    server.stop();
}

#[test]
fn clients_without_tls_or_silent_ones_are_disconnected_and_counted() {
    let (server, book, tls) = serve(Config { patience: Duration::from_millis(200), ..config(1) });
    let silent = tcp(&server);
    let mut plain = tcp(&server);
    plain.write_all(b"i am anna\n").unwrap();
    wait_until("the plain one is counted", || server.closed("malformed") == 1);
    wait_until("the silent one is counted", || server.closed("deadline") == 1);
    drop(tcp(&server));
    wait_until("the one that left is counted", || server.closed("incomplete") + server.closed("reset") == 1);
    drop(silent);
    let mut anna = connect(&server, &tls);
    anna.get_mut().write_all(b"now 1\n").unwrap();
    assert_eq!(line(&mut anna), "now 1\n");
    assert_eq!(book.opened.load(std::sync::atomic::Ordering::SeqCst), 1, "only this one is a session");
    server.stop();
}
