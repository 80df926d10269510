//! Key directories as NaCl's `curvecpmakekey` makes them, so that its tools and this crate can use the same ones.
//!
//! | file | bytes | mode | what it holds |
//! | --- | --- | --- | --- |
//! | `publickey` | 32 | 0644 | the public key, to be given to others |
//! | `.expertsonly/secretkey` | 32 | 0600 | the secret key |
//! | `.expertsonly/lock` | 1 | 0600 | locked while the counter changes |
//! | `.expertsonly/noncekey` | 32 | 0600 | the key under which [nonces](FileNonces) are made |
//! | `.expertsonly/noncecounter` | 8 | 0600 | the first value of the counter that was never reserved |

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use curvecp::{PublicKey, SecretKey};
use rand::TryRng;
use rand::rngs::SysRng;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use zeroize::Zeroizing;

use crate::key_files::{SECRETS, read_exactly, write_new};
use crate::{CurveError, FileNonces};

/// A long-term key pair in a directory.
#[derive(Clone, Debug)]
pub struct KeyDirectory {
    path: PathBuf,
    secret: SecretKey,
}

impl KeyDirectory {
    /// Draws a key pair and writes a new directory for it, whole or not at all.
    ///
    /// # Errors
    /// [`CurveError::KeyDirectoryExists`] where something has this name already, [`CurveError::File`] where the directory
    /// cannot be written.
    pub fn create(path: &Path) -> Result<Self, CurveError> {
        let mut partial = path.as_os_str().to_owned();
        partial.push(format!(".{}.tmp", std::process::id()));
        let partial = PathBuf::from(partial);
        if path.symlink_metadata().is_ok() {
            return Err(CurveError::KeyDirectoryExists(path.to_owned()));
        }
        let written = write_keys(&partial).and_then(|secret| match put_in_place(&partial, path) {
            Ok(()) => Ok(Self { path: path.to_owned(), secret }),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Err(CurveError::KeyDirectoryExists(path.to_owned()))
            }
            Err(source) => Err(CurveError::file("create", path)(source)),
        });
        if written.is_err() {
            _ = fs::remove_dir_all(&partial);
        }
        written
    }

    /// Reads the keys of a directory.
    ///
    /// # Errors
    /// [`CurveError::File`], [`CurveError::KeyFileLength`], and [`CurveError::KeysDiffer`] where the two keys are of
    /// different pairs.
    pub fn open(path: &Path) -> Result<Self, CurveError> {
        let secret = SecretKey::from_bytes(*read_exactly(&path.join(SECRETS).join("secretkey"))?);
        if secret.public_key() != Self::public_key_in(path)? {
            return Err(CurveError::KeysDiffer(path.join("publickey")));
        }
        Ok(Self { path: path.to_owned(), secret })
    }

    /// Reads only the public key, which needs no right to read the secret one.
    ///
    /// # Errors
    /// [`CurveError::File`], [`CurveError::KeyFileLength`].
    pub fn public_key_in(path: &Path) -> Result<PublicKey, CurveError> {
        Ok(PublicKey(*read_exactly(&path.join("publickey"))?))
    }

    /// The secret key.
    pub fn secret(&self) -> &SecretKey {
        &self.secret
    }

    /// The public key.
    pub fn public_key(&self) -> PublicKey {
        self.secret.public_key()
    }

    /// The source of nonces for this key. Every process and endpoint that uses the key needs its own.
    ///
    /// # Errors
    /// As [`FileNonces::open`].
    pub fn nonces(&self) -> Result<FileNonces, CurveError> {
        FileNonces::open(&self.path)
    }
}

/// Writes all files of a new pair, with their modes whatever the umask is, and waits until the disk has them.
fn write_keys(path: &Path) -> Result<SecretKey, CurveError> {
    make_directory(path, 0o755)?;
    let secrets = path.join(SECRETS);
    make_directory(&secrets, 0o700)?;
    let (mut secret, mut nonce_key) = (Zeroizing::new([0; 32]), Zeroizing::new([0; 32]));
    for key in [&mut secret, &mut nonce_key] {
        SysRng
            .try_fill_bytes(&mut **key)
            .map_err(io::Error::other)
            .map_err(CurveError::file("draw", path))?;
    }
    let secret_key = SecretKey::from_bytes(*secret);
    write_new(&path.join("publickey"), 0o644, &secret_key.public_key().0)?;
    write_new(&secrets.join("secretkey"), 0o600, &*secret)?;
    write_new(&secrets.join("lock"), 0o600, &[0])?;
    write_new(&secrets.join("noncekey"), 0o600, &*nonce_key)?;
    write_new(&secrets.join("noncecounter"), 0o600, &[0; 8])?;
    for directory in [&secrets, path] {
        File::open(directory)
            .and_then(|open| open.sync_all())
            .map_err(CurveError::file("write", directory))?;
    }
    Ok(secret_key)
}

/// Renames without replacing what may have come in between; file systems that cannot do so just rename, which replaces
/// nothing but an empty directory.
fn put_in_place(partial: &Path, path: &Path) -> io::Result<()> {
    match renameat_with(CWD, partial, CWD, path, RenameFlags::NOREPLACE) {
        Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => fs::rename(partial, path),
        renamed => Ok(renamed?),
    }
}

fn make_directory(path: &Path, mode: u32) -> Result<(), CurveError> {
    DirBuilder::new()
        .mode(mode)
        .create(path)
        .and_then(|()| fs::set_permissions(path, Permissions::from_mode(mode)))
        .map_err(CurveError::file("create", path))
}
