//! TLS, and where there must be one.

use std::sync::Arc;

use kendall_chat::client::security::Security;
use kendall_chat::client::{Client, ClientError};
use kendall_chat::directory::Limits;
use kendall_chat::password::Stretch;
use kendall_chat::server::store::Memory;
use kendall_chat::server::{ChatError, bind, keys};
use kendall_testbed::wait_until;

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
fn no_server_listens_without_tls_beyond_the_loopback() {
    let mut options = options(Arc::new(Memory::default()), Limits::default(), None);
    options.service.listen = "0.0.0.0:0".parse().unwrap();
    let Err(error) = bind(options) else { panic!("it listens") };
    assert!(matches!(error, ChatError::PlainBeyondLoopback { .. }));
    assert!(error.to_string().contains("--tls"), "{error}");
}
