//! The server's keys in their folder: those of the passwords, and the certificate of TLS with its key.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kendall_files::Replacement;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::hybrid;
use crate::password::server::Passwords;

/// The file of the keys of the passwords.
const PASSWORDS: &str = "password.key";
/// The files of the certificate that the server makes for itself.
const CERTIFICATE: &str = "certificate.pem";
const CERTIFICATE_KEY: &str = "certificate.key";
/// A certificate with a key that is public: clients of an experiment can pin it before its servers start, and do all the work of
/// checking it. It protects nothing.
const TRIAL_CERTIFICATE: &[u8] = include_bytes!("trial/certificate.pem");
const TRIAL_KEY: &[u8] = include_bytes!("trial/key.pem");
/// No key is as long.
const MOST_BYTES: u64 = 64 * 1024;
/// No chain of certificates is as long.
const MOST_CERTIFICATE_BYTES: u64 = 4_000_000;

/// The reason why the server's keys cannot be had.
#[derive(Debug, thiserror::Error)]
#[expect(missing_docs, reason = "each variant's message says what it is")]
pub enum KeyError {
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {path}: {source}; choose another folder with --keys")]
    Write { path: PathBuf, source: io::Error },
    #[error("other users of this machine can read {path}; run chmod 600 {path}")]
    Open { path: PathBuf },
    #[error("{path} is not a key of this server; restore it from a backup")]
    Damaged { path: PathBuf },
    #[error(
        "{path} is missing, but the store has {accounts} accounts, which only that key opens; restore it from a backup"
    )]
    Missing { path: PathBuf, accounts: u64 },
    #[error("cannot use the certificate {path}: {why}")]
    Certificate { path: PathBuf, why: String },
}

/// A certificate with its key, and the SHA-256 of the certificate, which clients can pin.
#[derive(Clone, Debug)]
pub struct Identity {
    /// TLS 1.3 with this certificate.
    pub tls: Arc<ServerConfig>,
    /// The SHA-256 of the certificate.
    pub fingerprint: [u8; 32],
}

/// The keys of the passwords from their folder; made there if the store has no accounts yet.
///
/// # Errors
/// Fails where the file cannot be read or written, other users can read it, it is damaged, or it is missing and there are
/// accounts.
pub fn passwords(folder: &Path, accounts: u64) -> Result<Passwords, KeyError> {
    let path = folder.join(PASSWORDS);
    if let Some(bytes) = read_secret(&path)? {
        return Passwords::decode(&bytes).map_err(|_| KeyError::Damaged { path });
    }
    if accounts > 0 {
        return Err(KeyError::Missing { path, accounts });
    }
    let passwords = Passwords::new();
    write_secret(&path, &passwords.encode())?;
    Ok(passwords)
}

/// The certificate that the server makes for itself, kept in a folder if one is given.
///
/// # Errors
/// Fails where the files cannot be read or written, or are not a certificate and its key.
pub fn own_identity(folder: Option<&Path>) -> Result<Identity, KeyError> {
    let Some(folder) = folder else {
        let (certificate, key) = make_certificate(Path::new(CERTIFICATE))?;
        return identity(Path::new(CERTIFICATE), certificate.as_bytes(), key.as_bytes());
    };
    let (path, key_path) = (folder.join(CERTIFICATE), folder.join(CERTIFICATE_KEY));
    if read_secret(&key_path)?.is_none() {
        let (certificate, key) = make_certificate(&path)?;
        // The key last: where it is there, so is the certificate.
        write_secret(&path, certificate.as_bytes())?;
        write_secret(&key_path, key.as_bytes())?;
    }
    identity_of(&path, &key_path)
}

/// The certificate of servers for trials, whose key is public.
///
/// # Panics
/// Never: the certificate is a part of the program.
pub fn trial_identity() -> Identity {
    identity(Path::new("the certificate of trials"), TRIAL_CERTIFICATE, TRIAL_KEY)
        .expect("it is a certificate with its key")
}

/// The certificate of two PEM files.
///
/// # Errors
/// Fails where the files cannot be read, or are not a certificate and its key.
pub fn identity_of(certificate: &Path, key: &Path) -> Result<Identity, KeyError> {
    let key = read_secret(key)?
        .ok_or_else(|| KeyError::Read { path: key.to_owned(), source: io::ErrorKind::NotFound.into() })?;
    let bytes = kendall_files::read_any(certificate, MOST_CERTIFICATE_BYTES)
        .map_err(|source| KeyError::Read { path: certificate.to_owned(), source })?;
    identity(certificate, &bytes, &key)
}

fn identity(path: &Path, certificate: &[u8], key: &[u8]) -> Result<Identity, KeyError> {
    let fails = |why: String| KeyError::Certificate { path: path.to_owned(), why };
    let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(certificate)
        .collect::<Result<_, _>>()
        .map_err(|error| fails(error.to_string()))?;
    let first = chain.first().ok_or_else(|| fails("the file has no certificate".to_owned()))?;
    let fingerprint = Sha256::digest(first).into();
    let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| fails(error.to_string()))?;
    let tls = ServerConfig::builder_with_provider(hybrid::provider())
        .with_protocol_versions(&[&TLS13])
        .map_err(|error| fails(error.to_string()))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| fails(error.to_string()))?;
    Ok(Identity { tls: Arc::new(tls), fingerprint })
}

fn make_certificate(path: &Path) -> Result<(String, String), KeyError> {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()])
        .map_err(|error| KeyError::Certificate { path: path.to_owned(), why: error.to_string() })?;
    Ok((made.cert.pem(), made.signing_key.serialize_pem()))
}

/// The bytes of a file that only its owner can read; `None` if there is no such file.
fn read_secret(path: &Path) -> Result<Option<Zeroizing<Vec<u8>>>, KeyError> {
    let fails = |source| KeyError::Read { path: path.to_owned(), source };
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(fails(error)),
    };
    if file.metadata().map_err(fails)?.permissions().mode() & 0o077 != 0 {
        return Err(KeyError::Open { path: path.to_owned() });
    }
    // It never grows, which would leave a copy behind.
    let mut bytes = Zeroizing::new(Vec::with_capacity(MOST_BYTES as usize + 32));
    file.take(MOST_BYTES).read_to_end(&mut bytes).map_err(fails)?;
    Ok(Some(bytes))
}

/// Writes a file that only its owner can read, whole or not at all.
fn write_secret(path: &Path, bytes: &[u8]) -> Result<(), KeyError> {
    let fails = |source| KeyError::Write { path: path.to_owned(), source };
    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    fs::create_dir_all(folder).map_err(fails)?;
    let mut file = Replacement::secret(path).map_err(fails)?;
    file.write_all(bytes).map_err(fails)?;
    file.commit_durably().map_err(fails)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_made_once_and_read_by_their_owner_only() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join("keys");
        let made = passwords(&folder, 0).unwrap().encode();
        assert_eq!(passwords(&folder, 5).unwrap().encode(), made);
        let path = folder.join(PASSWORDS);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(passwords(&folder, 0), Err(KeyError::Open { .. })));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        fs::write(&path, b"kendall chat k1\n?").unwrap();
        assert!(matches!(passwords(&folder, 0), Err(KeyError::Damaged { .. })));
        fs::remove_file(&path).unwrap();
        let missing = passwords(&folder, 5).unwrap_err().to_string();
        assert!(missing.contains("the store has 5 accounts"), "{missing}");
    }

    #[test]
    fn the_certificate_of_trials_is_always_the_same() {
        let other = own_identity(None).unwrap();
        assert_eq!(trial_identity().fingerprint, trial_identity().fingerprint);
        assert_ne!(trial_identity().fingerprint, other.fingerprint);
    }

    #[test]
    fn the_servers_own_certificate_stays() {
        let folder = tempfile::tempdir().unwrap();
        let first = own_identity(Some(folder.path())).unwrap();
        let second = own_identity(Some(folder.path())).unwrap();
        assert_eq!(first.fingerprint, second.fingerprint);
        assert_ne!(first.fingerprint, own_identity(None).unwrap().fingerprint);
        let endless = identity_of(Path::new("/dev/zero"), &folder.path().join(CERTIFICATE_KEY));
        let why = endless.err().unwrap().to_string();
        assert!(why.contains("/dev/zero") && why.contains("longer than the limit of 4 MB"), "{why}");
        fs::write(folder.path().join(CERTIFICATE), "no certificate").unwrap();
        assert!(matches!(own_identity(Some(folder.path())), Err(KeyError::Certificate { .. })));
    }
}
