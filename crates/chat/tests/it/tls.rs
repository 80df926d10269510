//! TLS, and where there must be one.

use std::sync::Arc;

use kendall_chat::client::security::Security;
use kendall_chat::client::{Client, ClientError};
use kendall_chat::directory::Limits;
use kendall_chat::password::Stretch;
use kendall_chat::server::store::Memory;
use kendall_chat::server::{ChatError, bind, keys};
use kendall_testbed::{tempdir, wait_until};
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::version::TLS13;
use rustls::{ClientConfig, NamedGroup, RootCertStore};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use crate::serving::{PASSWORD, TALK, clients, contact, enter, options, run};

#[test]
fn a_pinned_server_is_talked_to_and_another_is_not() {
    let identity = keys::own_identity(None).unwrap();
    let fingerprint = identity.fingerprint;
    let server = run(options(Arc::new(Memory::default()), Limits::default(), Some(identity)));
    clients(async {
        let security = Security::pinned(fingerprint);
        let mut alice = Client::connect(server.address, &security).await.unwrap();
        alice.register("alice", PASSWORD, Stretch::Off).await.unwrap();
        enter(&mut alice, "alice").await;
        let mut bob = Client::connect(server.address, &security).await.unwrap();
        bob.register("bob", PASSWORD, Stretch::Off).await.unwrap();
        enter(&mut bob, "bob").await;
        bob.wait_for_calls().await.unwrap();
        let call = alice.call("bob", TALK, contact(1)).await.unwrap();
        bob.next_push().await.unwrap();
        assert_eq!(bob.accept(call, contact(2)).await.unwrap().0.name, "alice");
        alice.next_push().await.unwrap();
        let other = Client::connect(server.address, &Security::pinned([0; 32])).await.unwrap_err();
        assert!(other.to_string().contains("another certificate"), "{other}");
        let plain = Client::connect(server.address, &Security::Plain).await.unwrap_err();
        assert!(matches!(plain, ClientError::Protocol | ClientError::Connection(_)), "{plain}");
    });
    wait_until("the broken handshakes are counted", || server.closed("malformed") >= 1);
    server.stop();
}

#[test]
fn the_keys_of_a_connection_withstand_quantum_computers() {
    let folder = tempdir().unwrap();
    let identity = keys::own_identity(Some(folder.path())).unwrap();
    let Security::Tls { config, name } = Security::pinned(identity.fingerprint) else { panic!() };
    let server = run(options(Arc::new(Memory::default()), Limits::default(), Some(identity)));
    let group = |config: ClientConfig| {
        clients(async {
            let stream = TcpStream::connect(server.address).await.unwrap();
            let secured = TlsConnector::from(Arc::new(config)).connect(name.clone(), stream).await.unwrap();
            secured.get_ref().1.negotiated_key_exchange_group().unwrap().name()
        })
    };
    assert_eq!(group(ClientConfig::clone(&config)), NamedGroup::X25519MLKEM768);
    // A client that has not heard of it is served.
    let classical = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_protocol_versions(&[&TLS13])
        .unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(folder.path().join("certificate.pem")).unwrap()).unwrap();
    assert_eq!(group(classical.with_root_certificates(roots).with_no_client_auth()), NamedGroup::X25519);
    server.stop();
}

#[test]
fn no_server_listens_without_tls_beyond_the_loopback() {
    let mut options = options(Arc::new(Memory::default()), Limits::default(), None);
    options.service.listen = "0.0.0.0:0".parse().unwrap();
    let Err(error) = bind(options) else { panic!("it listens") };
    assert!(matches!(error, ChatError::PlainBeyondLoopback { .. }));
    assert!(error.to_string().contains("--tls"), "{error}");
}
