//! What the server keeps and logs has no password, and nothing that enters in its place.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use kendall_chat::directory::Limits;
use kendall_chat::password::{AuthMethod, Stretch};
use kendall_chat::protocol::Blame;
use kendall_chat::server::store::Memory;
use sha2::{Digest, Sha256, Sha512};

use crate::serving::{blame, by, clients, connect, options, run};

const OWN: &str = "only in this test: zugvogel-47";
const CHANGED: &str = "only in this test: moorhuhn-11";
const WRONG: &str = "only in this test: eisvogel-08";
/// Of the methods that see or derive passwords in other ways.
const COMPARED: [(AuthMethod, &str); 2] = [
    (AuthMethod::Argon2id, "only in this test: rotkehlchen-23"),
    (AuthMethod::Scram, "only in this test: kernbeisser-91"),
];

/// What all servers of this program log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The forms in which bytes could be written down.
fn written(bytes: &[u8]) -> Vec<Vec<u8>> {
    vec![
        hex(bytes).into_bytes(),
        hex(bytes).to_uppercase().into_bytes(),
        BASE64_STANDARD.encode(bytes).into_bytes(),
        // As the list that debug output of bytes is.
        format!("{bytes:?}").into_bytes(),
        bytes.to_vec(),
    ]
}

/// The forms in which a secret, or a hash of it that anyone can compute, could be written down.
fn forms(secret: &[u8]) -> Vec<Vec<u8>> {
    let hashes = [Sha256::digest(secret).to_vec(), Sha512::digest(secret).to_vec()];
    [secret.to_vec()].into_iter().chain(hashes).flat_map(|bytes| written(&bytes)).collect()
}

/// The keys from which a client of SCRAM makes its proofs (RFC 5802, section 3), without a stretch.
fn client_keys(method: AuthMethod, password: &str, record: &[u8]) -> Vec<Vec<u8>> {
    if method != AuthMethod::Scram {
        return Vec::new();
    }
    // The salt, the iterations and two keys end the record.
    let salt = &record[record.len() - 84..record.len() - 68];
    let salted: [u8; 32] = pbkdf2::pbkdf2_array::<Hmac<Sha256>, 32>(password.as_bytes(), salt, 1).unwrap();
    let key = Hmac::<Sha256>::new_from_slice(&salted).unwrap().chain_update("Client Key");
    let key = key.finalize().into_bytes().to_vec();
    let stored_key = Sha256::digest(&key);
    assert_eq!(record[record.len() - 64..record.len() - 32], stored_key[..], "these are the keys");
    vec![salted.to_vec(), key]
}

#[test]
fn nothing_that_is_stored_or_logged_enters() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).expect("it is the only test that reads the log");
    let store = Arc::new(Memory::default());
    let limits = Limits { attempts: None, ..Limits::default() };
    let server = run(options(store.clone(), limits, None));
    let mut secrets: Vec<Vec<u8>> =
        [OWN, CHANGED, WRONG].iter().map(|text| text.as_bytes().to_vec()).collect();
    let mut kept: Vec<u8> = Vec::new();
    clients(async {
        let mut client = connect(&server).await;
        client.register("alice", OWN, Stretch::Off).await.unwrap();
        secrets.push(client.log_in("alice", OWN, Stretch::Off).await.unwrap().token.0.to_vec());
        kept.extend(store.all().into_values().flatten());
        assert_eq!(
            blame(connect(&server).await.log_in("alice", WRONG, Stretch::Off).await),
            Blame::WrongNameOrPassword
        );
        client.change_password(CHANGED, Stretch::Off).await.unwrap();
        secrets.push(client.log_in("alice", CHANGED, Stretch::Off).await.unwrap().token.0.to_vec());
        kept.extend(store.all().into_values().flatten());
        // What is stored is no password: neither whole nor as text.
        let record = store.all().into_values().next().unwrap();
        let mut thief = connect(&server).await;
        for guess in
            [hex(&record), BASE64_STANDARD.encode(&record), String::from_utf8_lossy(&record).into_owned()]
        {
            let result = thief.log_in("alice", &guess, Stretch::Off).await;
            assert_eq!(blame(result), Blame::WrongNameOrPassword);
        }
        client.delete_account().await.unwrap();
    });
    kept.extend(server.stop().into_bytes());
    let mut keys = Vec::new();
    for (method, password) in COMPARED {
        secrets.push(password.as_bytes().to_vec());
        let store = Arc::new(Memory::default());
        let server = run(by(method, options(store.clone(), limits, None)));
        clients(async {
            let mut client = connect(&server).await;
            client.register_by(method, "alice", password, Stretch::Off).await.unwrap();
            let wrong = client.log_in_by(method, "alice", WRONG, Stretch::Off).await;
            assert_eq!(blame(wrong), Blame::WrongNameOrPassword);
            let entered = client.log_in_by(method, "alice", password, Stretch::Off).await.unwrap();
            secrets.push(entered.token.0.to_vec());
        });
        let record = store.all().into_values().next().unwrap();
        kept.extend(&record);
        keys.extend(client_keys(method, password, &record));
        kept.extend(server.stop().into_bytes());
    }
    kept.extend(log.0.lock().unwrap().iter());
    assert!(kept.len() > 1_000, "there is something to read");
    // The server has the hash of a client's key of SCRAM, and not the key.
    let forms =
        secrets.iter().flat_map(|secret| forms(secret)).chain(keys.iter().flat_map(|key| written(key)));
    for form in forms {
        let is_there = kept.windows(form.len()).any(|window| window == form);
        assert!(!is_there, "a secret is there as {:?}", String::from_utf8_lossy(&form));
    }
}
