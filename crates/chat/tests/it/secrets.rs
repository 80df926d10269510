//! What the server keeps and logs has no password, and nothing that enters in its place.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, LazyLock, Mutex};

use aho_corasick::AhoCorasick;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use kendall_chat::directory::Limits;
use kendall_chat::password::{AuthMethod, Stretch};
use kendall_chat::protocol::Blame;
use kendall_chat::server::DirectoryOptions;
use kendall_chat::server::store::{Memory, Store};
use kendall_testbed::{Database, DatabaseKind, TempDir, tempdir};
use sha2::{Digest, Sha256, Sha512};

use crate::durable::open;
use crate::serving::{blame, by, clients, connect, options, run};

const OWN: &str = "only in this test: zugvogel-47";
const CHANGED: &str = "only in this test: moorhuhn-11";
const WRONG: &str = "only in this test: eisvogel-08";
/// Users of the methods that see or derive passwords in other ways.
const COMPARED: [(AuthMethod, &str, &str); 2] = [
    (AuthMethod::Argon2id, "bob", "only in this test: rotkehlchen-23"),
    (AuthMethod::Scram, "carl", "only in this test: kernbeisser-91"),
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

/// The log of this program, with everything that its libraries have to say.
static LOG: LazyLock<Log> = LazyLock::new(|| {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    tracing::subscriber::set_global_default(subscriber).expect("only these tests read the log");
    log
});

/// Where the servers of a test keep accounts, so that what they have stored can be read without them.
enum Backing {
    Memory(Arc<Memory>),
    Sqlite(TempDir),
    Server(Database),
}

impl Backing {
    /// The options of a server, and its store.
    fn options(&self) -> (DirectoryOptions, Arc<dyn Store>) {
        let limits = Limits { attempts: None, ..Limits::default() };
        let url = match self {
            Self::Memory(store) => return (options(store.clone(), limits, None), store.clone()),
            Self::Sqlite(folder) => format!("sqlite:{}", folder.path().join("accounts.db").display()),
            Self::Server(database) => database.url(0),
        };
        let usual = options(Arc::new(Memory::default()), limits, None);
        let store: Arc<dyn Store> = Arc::new(usual.runtime.block_on(open(&url)));
        (DirectoryOptions { store: store.clone(), ..usual }, store)
    }

    /// Everything that is stored: records in memory; of a database every file, its logs included.
    fn read(&self) -> Vec<u8> {
        let mut all = Vec::new();
        match self {
            Self::Memory(store) => all.extend(store.all().into_values().flatten()),
            Self::Sqlite(folder) => read_files(folder.path(), &mut all),
            Self::Server(database) => read_files(database.folder(), &mut all),
        }
        all
    }
}

/// The bytes of every file in a folder. A file may go away meanwhile.
fn read_files(folder: &Path, all: &mut Vec<u8>) {
    for entry in fs::read_dir(folder).unwrap().map_while(Result::ok) {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => read_files(&entry.path(), all),
            Ok(kind) if kind.is_file() => all.extend(fs::read(entry.path()).unwrap_or_default()),
            _ => {}
        }
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
fn a_store_in_memory_has_nothing_that_enters() {
    nothing_that_is_stored_or_logged_enters(&Backing::Memory(Arc::default()));
}

#[test]
fn the_files_of_sqlite_have_nothing_that_enters() {
    nothing_that_is_stored_or_logged_enters(&Backing::Sqlite(tempdir().unwrap()));
}

#[test]
fn the_files_of_postgres_have_nothing_that_enters() {
    database_has_nothing_that_enters(DatabaseKind::Postgres);
}

#[test]
fn the_files_of_mariadb_have_nothing_that_enters() {
    database_has_nothing_that_enters(DatabaseKind::Mariadb);
}

#[test]
fn the_files_of_redis_have_nothing_that_enters() {
    database_has_nothing_that_enters(DatabaseKind::Redis);
}

fn database_has_nothing_that_enters(kind: DatabaseKind) {
    // By default, PostgreSQL logs of a changed record only the bytes that differ.
    let settings = if kind == DatabaseKind::Postgres { &["-c", "wal_level=logical"][..] } else { &[] };
    let Some(database) = Database::start(kind, settings) else { return };
    nothing_that_is_stored_or_logged_enters(&Backing::Server(database));
}

fn nothing_that_is_stored_or_logged_enters(backing: &Backing) {
    LazyLock::force(&LOG);
    let mut secrets: Vec<Vec<u8>> =
        [OWN, CHANGED, WRONG].iter().map(|text| text.as_bytes().to_vec()).collect();
    let mut records: Vec<Vec<u8>> = Vec::new();
    let mut kept: Vec<u8> = Vec::new();
    let (options, store) = backing.options();
    let record = async |name: &str| store.find(name).await.unwrap().expect("it is registered");
    let server = run(options);
    clients(async {
        let mut client = connect(&server).await;
        client.register("alice", OWN, Stretch::Off).await.unwrap();
        secrets.push(client.log_in("alice", OWN, Stretch::Off).await.unwrap().token.0.to_vec());
        records.push(record("alice").await);
        assert_eq!(
            blame(connect(&server).await.log_in("alice", WRONG, Stretch::Off).await),
            Blame::WrongNameOrPassword
        );
        client.change_password(CHANGED, Stretch::Off).await.unwrap();
        secrets.push(client.log_in("alice", CHANGED, Stretch::Off).await.unwrap().token.0.to_vec());
        // What is stored is not a password: neither whole nor as text.
        let stored = record("alice").await;
        let mut thief = connect(&server).await;
        for guess in
            [hex(&stored), BASE64_STANDARD.encode(&stored), String::from_utf8_lossy(&stored).into_owned()]
        {
            let result = thief.log_in("alice", &guess, Stretch::Off).await;
            assert_eq!(blame(result), Blame::WrongNameOrPassword);
        }
        records.push(stored);
        kept.extend(backing.read());
        client.delete_account().await.unwrap();
    });
    kept.extend(server.stop().into_bytes());
    let mut keys = Vec::new();
    for (method, name, password) in COMPARED {
        secrets.push(password.as_bytes().to_vec());
        let (options, store) = backing.options();
        let server = run(by(method, options));
        clients(async {
            let mut client = connect(&server).await;
            client.register_by(method, name, password, Stretch::Off).await.unwrap();
            let wrong = client.log_in_by(method, name, WRONG, Stretch::Off).await;
            assert_eq!(blame(wrong), Blame::WrongNameOrPassword);
            let entered = client.log_in_by(method, name, password, Stretch::Off).await.unwrap();
            secrets.push(entered.token.0.to_vec());
            let stored = store.find(name).await.unwrap().expect("it is registered");
            keys.extend(client_keys(method, password, &stored));
            records.push(stored);
        });
        kept.extend(server.stop().into_bytes());
    }
    kept.extend(backing.read());
    kept.extend(LOG.0.lock().unwrap().iter());
    // What was read is what is stored; the first record was replaced, perhaps in its place.
    let found = AhoCorasick::new(&records[1..]).unwrap();
    let mut is_found = vec![false; records.len() - 1];
    found.find_overlapping_iter(&kept).for_each(|found| is_found[found.pattern().as_usize()] = true);
    assert!(is_found.iter().all(|is_found| *is_found), "records are not where they are read: {is_found:?}");
    // The server has the hash of a client's key of SCRAM, and not the key.
    let forms: Vec<Vec<u8>> = secrets
        .iter()
        .flat_map(|secret| forms(secret))
        .chain(keys.iter().flat_map(|key| written(key)))
        .collect();
    let leaked = AhoCorasick::new(&forms).unwrap().find(&kept);
    let shown = leaked.map(|leaked| String::from_utf8_lossy(&forms[leaked.pattern()]));
    assert_eq!(shown, None, "a secret is there");
}
