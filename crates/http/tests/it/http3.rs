//! HTTP/3 with a server of the crates that it is built on, because nginx in Debian has none.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use crate::run::{all_end, closed, testdata, trusting};
use bytes::{Buf, Bytes};
use http::Response;
use kendall_http::{HttpOptions, Version};
use kendall_link::relay::Relay;
use kendall_link::{DirectionOutcome, HopCounts, LinkSettings};
use kendall_linkmodel::Transport;
use kendall_load::Reuse;
use kendall_record::Outcome;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, Incoming, ServerConfig};
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// A server that answers `/busy` with 503 and all else with the method, the path and the body; in the case of `/early`, the
/// head of the answer comes before it reads the body.
fn server() -> SocketAddr {
    let (said, hears) = channel();
    thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let endpoint = Endpoint::server(config(), ([127, 0, 0, 1], 0).into()).unwrap();
            said.send(endpoint.local_addr().unwrap()).unwrap();
            while let Some(incoming) = endpoint.accept().await {
                tokio::spawn(serve(incoming));
            }
        });
    });
    hears.recv().unwrap()
}

fn config() -> ServerConfig {
    let certificate = CertificateDer::from_pem_file(testdata("localhost.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(testdata("localhost.key")).unwrap();
    let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls).unwrap()))
}

async fn serve(incoming: Incoming) {
    let Ok(connection) = incoming.await else { return };
    let connection = h3_quinn::Connection::new(connection);
    let Ok(mut connection) = h3::server::Connection::<_, Bytes>::new(connection).await else { return };
    while let Ok(Some(resolver)) = connection.accept().await {
        tokio::spawn(async move {
            let Ok((request, mut stream)) = resolver.resolve_request().await else { return };
            let status = if request.uri().path() == "/busy" { 503 } else { 200 };
            let mut head = Some(Response::builder().status(status).body(()).unwrap());
            if request.uri().path() == "/early"
                && let Some(head) = head.take()
            {
                drop(stream.send_response(head).await);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let mut body = format!("{} {} ", request.method(), request.uri().path());
            while let Ok(Some(mut part)) = stream.recv_data().await {
                let length = part.remaining();
                body += &String::from_utf8_lossy(&part.copy_to_bytes(length));
            }
            // A client that disconnected is not this server's concern.
            if let Some(head) = head {
                drop(stream.send_response(head).await);
            }
            if stream.send_data(body.into()).await.is_ok() {
                drop(stream.finish().await);
            }
        });
    }
}

fn get(address: SocketAddr, path: &str) -> HttpOptions {
    let url = format!("https://localhost:{}{path}", address.port());
    HttpOptions { version: Version::Http3, ..trusting(&url) }
}

#[test]
fn requests_use_the_given_number_of_connections() {
    let address = server();
    let mut options = get(address, "/a");
    options.request.expect_text = Some("GET /a ".into());
    let (summary, rows) = closed(address, &options, 6, 60);
    assert_eq!(summary.count(Outcome::Answered), 60, "{:?}", summary.refused_because);
    assert!(rows.iter().all(|row| row.port == rows[0].port), "six streams go over one connection");
    let in_order = rows.iter().all(|row| row.sent <= row.first_byte && row.first_byte <= row.completed);
    assert!(in_order && rows.iter().all(|row| row.sent >= Some(row.scheduled)));
    all_end(address, &HttpOptions { reuse: Reuse::Close, ..options }, 2, 10, Outcome::Answered);
}

#[test]
fn bodies_and_statuses_go_through() {
    let address = server();
    let mut posts = get(address, "/b");
    posts.request.body = Some(format!("{}END", "x".repeat(300_000)));
    posts.request.expect_text = Some("xEND".into());
    all_end(address, &posts, 2, 10, Outcome::Answered);
    all_end(address, &get(address, "/busy"), 2, 10, Outcome::Refused);
    let mut wrong = get(address, "/b");
    wrong.request.expect_length = Some(1);
    all_end(address, &wrong, 2, 10, Outcome::Wrong);
}

/// The body exceeds the window of a stream, so most of it is unsent when the head of the answer arrives.
#[test]
fn a_body_is_sent_to_its_end_although_the_answer_has_begun() {
    let address = server();
    let mut posts = get(address, "/early");
    posts.request.body = Some(format!("{}END", "x".repeat(4_000_000)));
    posts.request.expect_text = Some("xEND".into());
    let (summary, rows) = closed(address, &posts, 1, 2);
    assert_eq!(summary.count(Outcome::Answered), 2, "{:?}", summary.refused_because);
    assert!(rows.iter().all(|row| row.bytes_out >= 4_000_003), "{rows:?}");
}

#[test]
fn a_server_that_is_not_trusted_is_refused() {
    let address = server();
    let options = HttpOptions { trust: kendall_http::Trust::Machine, ..get(address, "/") };
    all_end(address, &options, 1, 2, Outcome::Refused);
}

#[test]
fn a_relay_of_datagrams_delays_requests_and_handshakes_and_its_losses_are_repaired() {
    let server = server();
    let asked = LinkSettings::read_row("delay=10ms loss=2%").unwrap();
    let relay = Relay::bind(Transport::UDP, ([127, 0, 0, 1], 0).into(), server, &asked, 5).unwrap();
    let (address, stop) = (relay.address(), Arc::new(AtomicBool::new(false)));
    let stopped = Arc::clone(&stop);
    let relaying = thread::spawn(move || relay.run(&stopped).unwrap());

    let (summary, rows) = closed(address, &get(address, "/a"), 4, 200);
    assert_eq!(summary.count(Outcome::Answered), 200, "{:?}", summary.refused_because);
    let response_ns = |row: &kendall_record::RequestRow| row.completed.unwrap() - row.scheduled;
    assert!(rows.iter().all(|row| response_ns(row) >= 20_000_000), "each goes there and back");
    // The first of a connection waits for its handshake: a round trip more.
    assert!(rows.iter().filter(|row| response_ns(row) >= 40_000_000).count() >= 4);
    stop.store(true, Ordering::Relaxed);
    let relayed = relaying.join().unwrap();
    let dropped = |way: &DirectionOutcome| way.hops.iter().map(HopCounts::dropped).sum::<u64>();
    assert!(dropped(&relayed.link.up) + dropped(&relayed.link.down) > 0, "{:?}", relayed.link);
}
