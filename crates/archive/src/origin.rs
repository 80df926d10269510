//! The user who started a run. A folder from another person is data: kendall starts the programs that its experiment names only
//! if this user started the run on this machine.
//!
//! A file in the run's folder contains the keyed hash (BLAKE3) of its experiment. The key is drawn once and lies in the user's
//! state folder (`$XDG_STATE_HOME/kendall`, or `~/.local/state/kendall`), which is outside of every run's folder.

use std::env;
use std::fs::DirBuilder;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use blake3::{Hash, keyed_hash};
use kendall_files::{Replacement, read, replace};
use rustix::rand::{GetRandomFlags, getrandom};

const EXPERIMENT: &str = "experiment.toml";
const SIGNATURE: &str = ".signature";
const KEY: &str = "runs.key";
/// The longest experiment.
const MOST_BYTES: u64 = 1 << 20;

/// The BLAKE3 hash of some bytes, in hexadecimal digits: what proves that a file was not changed.
pub fn fingerprint(bytes: &[u8]) -> String {
    blake3::hash(bytes).to_hex().to_string()
}

/// Signs the experiment of a run that this user starts.
///
/// # Errors
/// Fails where the user has no home folder, or where a file cannot be written.
pub fn sign(folder: &Path) -> io::Result<()> {
    sign_with(&key(&state()?)?, folder)
}

/// Whether this user started the run in a folder on this machine, and its experiment is unchanged.
pub fn is_ours(folder: &Path) -> bool {
    let experiment = read(&folder.join(EXPERIMENT), MOST_BYTES);
    experiment.is_ok_and(|experiment| has_signed(folder, &experiment))
}

/// Reports whether the folder is signed for this text of an experiment, which was read from it. A caller that acts on the
/// experiment checks the very text on which it acts: the file may have been replaced since.
pub fn has_signed(folder: &Path, experiment: &[u8]) -> bool {
    state().is_ok_and(|state| is_signed(&state, folder, experiment))
}

fn sign_with(key: &[u8; 32], folder: &Path) -> io::Result<()> {
    let experiment = read(&folder.join(EXPERIMENT), MOST_BYTES)?;
    replace(&folder.join(SIGNATURE), keyed_hash(key, &experiment).to_hex().as_str())
}

fn is_signed(state: &Path, folder: &Path, experiment: &[u8]) -> bool {
    let check = || {
        let key = read_key(&state.join(KEY))?;
        let signature = read(&folder.join(SIGNATURE), 64)?;
        // The comparison of hashes takes constant time.
        Ok::<_, io::Error>(Hash::from_hex(signature).is_ok_and(|hash| hash == keyed_hash(&key, experiment)))
    };
    check().unwrap_or(false)
}

/// The user's folder of state.
fn state() -> io::Result<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path: &PathBuf| path.is_absolute());
    let state = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")));
    let none = || io::Error::new(io::ErrorKind::NotFound, "neither XDG_STATE_HOME nor HOME names a folder");
    state.map(|state| state.join("kendall")).ok_or_else(none)
}

/// The user's key. The first call draws it.
fn key(state: &Path) -> io::Result<[u8; 32]> {
    let path = state.join(KEY);
    match read_key(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        known => return known,
    }
    DirBuilder::new().recursive(true).mode(0o700).create(state)?;
    let mut drawn = [0; 32];
    // The system call returns up to 256 bytes at once.
    getrandom(&mut drawn, GetRandomFlags::empty())?;
    let mut file = Replacement::secret(&path)?;
    file.write_all(&drawn)?;
    match file.commit_new() {
        // Another run drew one meanwhile.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => read_key(&path),
        written => written.map(|()| drawn),
    }
}

fn read_key(path: &Path) -> io::Result<[u8; 32]> {
    let damaged =
        |_| io::Error::new(io::ErrorKind::InvalidData, format!("{} has no 32 bytes", path.display()));
    read(path, 32)?.try_into().map_err(damaged)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_run_of_another_user_or_with_another_experiment_is_not_ours() {
        let folders = tempfile::tempdir().unwrap();
        let [ours, theirs, run] = ["ours", "theirs", "run"].map(|name| folders.path().join(name));
        fs::create_dir(&run).unwrap();
        fs::write(run.join(EXPERIMENT), "name = \"x\"").unwrap();
        let is_signed = |state: &Path, run: &Path| {
            let experiment = fs::read(run.join(EXPERIMENT)).unwrap();
            super::is_signed(state, run, &experiment)
        };
        assert!(!is_signed(&ours, &run));
        sign_with(&key(&ours).unwrap(), &run).unwrap();
        assert!(is_signed(&ours, &run) && is_signed(&ours, &run));
        assert_eq!(key(&ours).unwrap(), key(&ours).unwrap(), "drawn once");
        assert_eq!(fs::metadata(ours.join(KEY)).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!is_signed(&theirs, &run));
        key(&theirs).unwrap();
        assert!(!is_signed(&theirs, &run));

        // The text that was read counts, not a file that replaces it afterwards.
        assert!(!super::is_signed(&ours, &run, b"name = \"z\""));
        fs::write(run.join(EXPERIMENT), "name = \"y\"").unwrap();
        assert!(!is_signed(&ours, &run));
        for signature in ["", "0", "é", &"0".repeat(64)] {
            fs::write(run.join(SIGNATURE), signature).unwrap();
            assert!(!is_signed(&ours, &run), "{signature}");
        }
    }
}
