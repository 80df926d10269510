//! The keys that a server admits, from a file like `authorized_keys` of SSH: a line for each client, with its public key in
//! hexadecimal digits and a name for the log. Lines that begin with `#` are comments. `user=NAME` between key and name is the user
//! of this machine that runs the client's shells where the server runs as root.
//!
//! The server reads the file again when it has changed, so that clients can be added or removed while it runs. The file has to belong
//! to root or to the server's user, and other users must not be able to write to it.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use kendall_curve::curvecp::PublicKey;
use rustix::process::geteuid;

use crate::error::RemoteError;
use crate::hosts::public_key;
use crate::path::shown;

/// The longest file: ten thousand keys with long names.
const MAX_BYTES: u64 = 2 << 20;

/// A file of keys.
#[derive(Debug)]
pub struct AuthorizedKeys {
    path: PathBuf,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    stamp: Stamp,
    clients: HashMap<PublicKey, AuthorizedClient>,
    /// The last error of a file that cannot be read, which is logged once: any key can cause a try.
    reported: Option<String>,
}

/// A client that is admitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthorizedClient {
    /// The client's name in the log.
    pub name: String,
    /// The user of this machine that runs its programs, where the file names one.
    pub user: Option<String>,
}

/// The identity by which a change of the file is noticed: its number, time of change in seconds and nanoseconds, and length.
type Stamp = (u64, i64, i64, u64);

impl AuthorizedKeys {
    /// Reads a file of keys.
    ///
    /// # Errors
    /// [`RemoteError::File`], [`RemoteError::KeyLine`] where a line is not valid, [`RemoteError::KeysWritable`] and
    /// [`RemoteError::KeysOwner`] where other users could add keys.
    pub fn open(path: &Path) -> Result<Self, RemoteError> {
        let state = read(path)?;
        Ok(Self { path: path.to_owned(), state: Mutex::new(state) })
    }

    /// The name of a client, where it is admitted; the key's first digits where the file has no name for it.
    ///
    /// A file that has become unreadable or invalid admits no client until it is repaired.
    pub fn name_of(&self, key: &PublicKey) -> Option<String> {
        self.client(key).map(|client| client.name)
    }

    /// The entry of an admitted client in the file.
    ///
    /// A file that has become unreadable or invalid admits no client until it is repaired.
    pub fn client(&self, key: &PublicKey) -> Option<AuthorizedClient> {
        let mut state = self.lock();
        let current = self.path.metadata().ok().map(|metadata| stamp(&metadata));
        if current != Some(state.stamp) {
            match read(&self.path) {
                Ok(read) => *state = read,
                Err(error) => {
                    let error = error.to_string();
                    if state.reported.as_ref() != Some(&error) {
                        tracing::error!("no client is admitted: {error}");
                        state.reported = Some(error);
                    }
                    return None;
                }
            }
        }
        state.clients.get(key).cloned()
    }

    /// The number of keys.
    pub fn count(&self) -> usize {
        self.lock().clients.len()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn stamp(metadata: &Metadata) -> Stamp {
    (metadata.ino(), metadata.mtime(), metadata.mtime_nsec(), metadata.len())
}

fn read(path: &Path) -> Result<State, RemoteError> {
    let failed = || RemoteError::file("read", path);
    let file = File::open(path).map_err(failed())?;
    let metadata = file.metadata().map_err(failed())?;
    check_writers(path, metadata.uid(), metadata.mode() & 0o7777, geteuid().as_raw())?;
    let mut text = String::new();
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(failed())?;
    if text.len() as u64 > MAX_BYTES {
        return Err(failed()(std::io::Error::other(format!("it is longer than {MAX_BYTES} bytes"))));
    }
    Ok(State { stamp: stamp(&metadata), clients: parse(path, &text)?, reported: None })
}

/// Fails where another user than root and `server`, that of this process, could add keys.
fn check_writers(path: &Path, owner: u32, mode: u32, server: u32) -> Result<(), RemoteError> {
    let path = path.to_owned();
    if owner != 0 && owner != server {
        return Err(RemoteError::KeysOwner { path, owner, server });
    }
    if mode & 0o022 != 0 {
        return Err(RemoteError::KeysWritable { path, mode });
    }
    Ok(())
}

fn parse(path: &Path, text: &str) -> Result<HashMap<PublicKey, AuthorizedClient>, RemoteError> {
    let mut clients = HashMap::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let wrong = |reason| RemoteError::KeyLine { path: path.to_owned(), line: number + 1, reason };
        let (digits, name) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let key = public_key(digits).ok_or_else(|| {
            wrong("a line is a public key of 64 hexadecimal digits, a space, and a name of the client")
        })?;
        let (user, name) = match name.trim().strip_prefix("user=") {
            Some(rest) => {
                let (user, name) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
                (Some(user.to_owned()), name.trim())
            }
            None => (None, name.trim()),
        };
        if user.as_deref() == Some("") {
            return Err(wrong("user= is followed by the name of a user of this machine, without a space"));
        }
        let name = if name.is_empty() { &digits[..8] } else { name };
        let client = AuthorizedClient { name: shown(name.as_bytes()).into_owned(), user };
        if clients.insert(key, client).is_some() {
            return Err(wrong("this key has a line already: remove one of them"));
        }
    }
    Ok(clients)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    fn write(path: &Path, text: &str, mode: u32) {
        fs::write(path, text).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn clients_are_added_and_removed_while_a_server_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("authorized_keys");
        let line = |digit: &str, name: &str| format!("{} {name}\n", digit.repeat(64));
        write(&path, &format!("# people\n\n{}", line("a", "Ann  on her laptop")), 0o644);
        let keys = AuthorizedKeys::open(&path).unwrap();
        let (ann, bob) = (PublicKey([0xaa; 32]), PublicKey([0xbb; 32]));
        assert_eq!(keys.name_of(&ann).as_deref(), Some("Ann  on her laptop"));
        assert_eq!(keys.name_of(&bob), None);
        write(&path, &line("b", ""), 0o600);
        assert_eq!(keys.name_of(&ann), None);
        assert_eq!(keys.name_of(&bob).as_deref(), Some("bbbbbbbb"));
        fs::remove_file(&path).unwrap();
        assert_eq!(keys.name_of(&bob), None);
    }

    #[test]
    fn a_line_may_name_a_user() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("authorized_keys");
        write(
            &path,
            &format!("{}  user=ann  Ann at home\n{} user=bob\n", "a".repeat(64), "b".repeat(64)),
            0o600,
        );
        let keys = AuthorizedKeys::open(&path).unwrap();
        let client =
            |name: &str, user: &str| Some(AuthorizedClient { name: name.into(), user: Some(user.into()) });
        assert_eq!(keys.client(&PublicKey([0xaa; 32])), client("Ann at home", "ann"));
        assert_eq!(keys.client(&PublicKey([0xbb; 32])), client("bbbbbbbb", "bob"));
        write(&path, &format!("{} user= ann\n", "a".repeat(64)), 0o600);
        assert!(AuthorizedKeys::open(&path).unwrap_err().to_string().contains("without a space"));
    }

    #[test]
    fn only_root_and_the_servers_user_may_own_the_file() {
        let check = |owner, mode, server| check_writers(Path::new("keys"), owner, mode, server);
        for (owner, server) in [(0, 0), (0, 1000), (1000, 1000)] {
            assert!(check(owner, 0o644, server).is_ok());
        }
        for (owner, server) in [(1000, 0), (1001, 1000)] {
            let error = check(owner, 0o600, server).unwrap_err().to_string();
            assert!(error.ends_with(&format!("run chown {server} keys")), "{error}");
        }
        assert!(matches!(check(0, 0o620, 0), Err(RemoteError::KeysWritable { .. })));
    }

    #[test]
    fn what_is_wrong_with_a_file_is_said() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("authorized_keys");
        write(&path, "\nabc Ann\n", 0o600);
        let error = AuthorizedKeys::open(&path).unwrap_err().to_string();
        assert!(error.contains("authorized_keys, line 2: a line is a public key"), "{error}");
        write(&path, &format!("{0}\n{0}\n", "a".repeat(64)), 0o600);
        assert!(
            AuthorizedKeys::open(&path)
                .unwrap_err()
                .to_string()
                .contains("line 2: this key has a line already")
        );
        write(&path, "", 0o666);
        assert!(AuthorizedKeys::open(&path).unwrap_err().to_string().contains("run chmod go-w"));
    }
}
