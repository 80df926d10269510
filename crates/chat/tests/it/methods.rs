//! The methods of authentication that experiments compare with OPAQUE, over a real server.

use std::num::NonZeroUsize;
use std::sync::Arc;

use kendall_chat::client::security::Security;
use kendall_chat::client::{Client, ClientError};
use kendall_chat::directory::Limits;
use kendall_chat::name::Name;
use kendall_chat::password::argon2id::Hashers;
use kendall_chat::password::record::Record;
use kendall_chat::password::scram::{KEY_BYTES, NONCE_BYTES, Verifier};
use kendall_chat::password::{AuthMethod, Stretch};
use kendall_chat::protocol::{Answer, Blame, Request};
use kendall_chat::server::keys;
use kendall_chat::server::store::{Memory, Store};
use kendall_testbed::Running;

use crate::serving::{PASSWORD, blame, by, clients, connect, connect_from, options, run};

/// The methods beside OPAQUE.
const COMPARED: [AuthMethod; 2] = [AuthMethod::Argon2id, AuthMethod::Scram];

fn serve(method: AuthMethod, limits: Limits) -> Running {
    run(by(method, options(Arc::new(Memory::default()), limits, None)))
}

#[test]
fn only_the_right_password_of_an_account_enters() {
    for method in COMPARED {
        let server = serve(method, Limits::default());
        clients(async {
            let mut client = connect(&server).await;
            client.register_by(method, "Alice", PASSWORD, Stretch::Argon2id).await.unwrap();
            let taken = client.register_by(method, "a1ice", "other", Stretch::Off).await;
            assert_eq!(blame(taken), Blame::NameTaken);
            for (name, password) in [("alice", "other"), ("bob", PASSWORD)] {
                let wrong = client.log_in_by(method, name, password, Stretch::Argon2id).await;
                assert_eq!(blame(wrong), Blame::WrongNameOrPassword, "{method}: {name}");
            }
            let entered = client.log_in_by(method, "ALICE", PASSWORD, Stretch::Argon2id).await.unwrap();
            assert_eq!(entered.name, "alice");
            assert_eq!(client.who_is_there().await.unwrap(), ["alice"]);
            client.delete_account().await.unwrap();
            let gone = client.log_in_by(method, "alice", PASSWORD, Stretch::Argon2id).await;
            assert_eq!(blame(gone), Blame::WrongNameOrPassword);
        });
        server.stop();
    }
}

#[test]
fn a_password_in_clear_goes_over_tls() {
    let identity = keys::own_identity(None).unwrap();
    let security = Security::pinned(identity.fingerprint);
    let options = options(Arc::new(Memory::default()), Limits::default(), Some(identity));
    let server = run(by(AuthMethod::Argon2id, options));
    clients(async {
        let mut client = Client::connect(server.address, &security).await.unwrap();
        client.register_by(AuthMethod::Argon2id, "alice", PASSWORD, Stretch::Off).await.unwrap();
        client.log_in_by(AuthMethod::Argon2id, "alice", PASSWORD, Stretch::Off).await.unwrap();
        let long = "x".repeat(256);
        let refused = client.register_by(AuthMethod::Argon2id, "bob", &long, Stretch::Off).await;
        assert!(matches!(refused, Err(ClientError::LongPassword)));
    });
    server.stop();
}

#[test]
fn a_server_and_a_client_of_different_methods_refuse() {
    for of_server in AuthMethod::ALL {
        let server = serve(of_server, Limits::default());
        clients(async {
            let mut client = connect(&server).await;
            for method in AuthMethod::ALL.into_iter().filter(|method| *method != of_server) {
                let registered = client.register_by(method, "alice", PASSWORD, Stretch::Off).await;
                let error = registered.unwrap_err();
                assert!(matches!(error, ClientError::OtherMethod { method: of } if of == method), "{error}");
                let entered = client.log_in_by(method, "alice", PASSWORD, Stretch::Off).await;
                assert_eq!(blame(entered), Blame::OtherMethod);
            }
            client.register_by(of_server, "alice", PASSWORD, Stretch::Off).await.unwrap();
        });
        server.stop();
    }
}

#[test]
fn an_account_of_another_method_is_refused_with_its_right_password() {
    let store = Arc::new(Memory::default());
    let name = Name::new("alice").unwrap();
    let hash = Hashers::new(NonZeroUsize::MIN).hash(PASSWORD);
    let record = Record::argon2id(&name, hash).encode();
    for method in [AuthMethod::Opaque, AuthMethod::Scram] {
        let options = by(method, options(store.clone(), Limits::default(), None));
        options.runtime.block_on(store.insert(name.key().as_str(), record.clone())).unwrap();
        let server = run(options);
        clients(async {
            let entered = connect(&server).await.log_in_by(method, "alice", PASSWORD, Stretch::Off).await;
            assert_eq!(blame(entered), Blame::OtherMethod);
        });
        server.stop();
    }
}

#[test]
fn attempts_are_limited_as_with_opaque() {
    for method in COMPARED {
        let server = serve(method, Limits::default());
        clients(async {
            let mut users = connect(&server).await;
            users.register_by(method, "alice", PASSWORD, Stretch::Off).await.unwrap();
            let mut guesser = connect_from(&server, [127, 0, 0, 2]).await;
            for name in ["alice", "nosuchuser"] {
                let mut blames = Vec::new();
                for _ in 0..8 {
                    blames.push(blame(guesser.log_in_by(method, name, "a guess", Stretch::Off).await));
                }
                let expected =
                    [[Blame::WrongNameOrPassword; 6].as_slice(), &[Blame::TooManyAttempts; 2]].concat();
                assert_eq!(blames, expected, "{method}: {name}");
            }
            users.log_in_by(method, "alice", PASSWORD, Stretch::Off).await.unwrap();
        });
        server.stop();
    }
}

/// The salt of a name stays the same, whether it has an account or not, and differs between names.
#[test]
fn a_name_without_an_account_has_a_salt_of_scram() {
    let server = serve(AuthMethod::Scram, Limits { attempts: None, ..Limits::default() });
    clients(async {
        let mut client = connect(&server).await;
        client.register_by(AuthMethod::Scram, "alice", PASSWORD, Stretch::Off).await.unwrap();
        let mut salts = Vec::new();
        for name in ["alice", "bob", "carol", "alice", "bob", "carol"] {
            let asked = Request::ScramStart { name: name.to_owned(), nonce: [1; NONCE_BYTES] };
            let Answer::ScramContinue { salt, iterations, .. } = client.ask(asked).await.unwrap() else {
                panic!()
            };
            assert_eq!(iterations, 4096);
            salts.push(salt);
            let proof = client.ask(Request::ScramFinish { proof: [7; KEY_BYTES] }).await;
            assert_eq!(blame(proof), Blame::WrongNameOrPassword);
            let again = client.ask(Request::ScramFinish { proof: [7; KEY_BYTES] }).await;
            assert_eq!(blame(again), Blame::OutOfOrder, "one proof for each log-in");
        }
        assert_eq!(salts[..3], salts[3..]);
        assert!(salts[0] != salts[1] && salts[1] != salts[2]);
    });
    server.stop();
}

/// What SCRAM's server keeps is not a key of the client: with it in the place of a password, or of the client's key, no log-in ends.
#[test]
fn the_store_of_scram_has_no_key_of_the_client() {
    let store = Arc::new(Memory::default());
    let limits = Limits { attempts: None, ..Limits::default() };
    let server = run(by(AuthMethod::Scram, options(store.clone(), limits, None)));
    clients(async {
        let mut client = connect(&server).await;
        client.register_by(AuthMethod::Scram, "alice", PASSWORD, Stretch::Off).await.unwrap();
        let record = store.all().into_values().next().unwrap();
        let keys = &record[record.len() - 2 * KEY_BYTES..];
        for stolen in [&keys[..KEY_BYTES], &keys[KEY_BYTES..]] {
            let guess: String = stolen.iter().map(|byte| format!("{byte:02x}")).collect();
            let entered = client.log_in_by(AuthMethod::Scram, "alice", &guess, Stretch::Off).await;
            assert_eq!(blame(entered), Blame::WrongNameOrPassword);
            let start = Request::ScramStart { name: "alice".to_owned(), nonce: [1; NONCE_BYTES] };
            client.ask(start).await.unwrap();
            let proof = stolen.try_into().unwrap();
            assert_eq!(blame(client.ask(Request::ScramFinish { proof }).await), Blame::WrongNameOrPassword);
        }
        assert_ne!(Verifier::new(PASSWORD, Stretch::Off).stored_key, keys[..KEY_BYTES], "salted");
    });
    server.stop();
}
