//! What the server keeps and logs has no password, and nothing that enters in its place.

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use kendall_chat::directory::Limits;
use kendall_chat::password::Stretch;
use kendall_chat::protocol::Blame;
use kendall_chat::server::store::Memory;
use sha2::{Digest, Sha256, Sha512};

use crate::serving::{blame, clients, connect, options, run};

const OWN: &str = "only in this test: zugvogel-47";
const CHANGED: &str = "only in this test: moorhuhn-11";
const WRONG: &str = "only in this test: eisvogel-08";

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

/// The forms in which a secret could be written down.
fn forms(secret: &[u8]) -> Vec<Vec<u8>> {
    let hashes = [Sha256::digest(secret).to_vec(), Sha512::digest(secret).to_vec()];
    let mut all = Vec::new();
    for bytes in [secret.to_vec()].into_iter().chain(hashes) {
        all.push(hex(&bytes).into_bytes());
        all.push(hex(&bytes).to_uppercase().into_bytes());
        all.push(BASE64_STANDARD.encode(&bytes).into_bytes());
        // As the list that debug output of bytes is.
        all.push(format!("{bytes:?}").into_bytes());
        all.push(bytes);
    }
    all
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
    kept.extend(log.0.lock().unwrap().iter());
    assert!(kept.len() > 1_000, "there is something to read");
    for (number, secret) in secrets.iter().enumerate() {
        for form in forms(secret) {
            let is_there = kept.windows(form.len()).any(|window| window == form);
            assert!(!is_there, "secret {number} is there as {:?}", String::from_utf8_lossy(&form));
        }
    }
}
