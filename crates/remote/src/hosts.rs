//! The servers that a client knows: a file in TOML with a table for each.
//!
//! ```toml
//! [backup]
//! name = "server.example"       # the domain name that the server goes by
//! key = "d87e…"                 # its public key, from `kendall curve show`
//! address = "192.0.2.7:10000"
//! key-directory = "/home/ann/key" # this client's key, if not the usual one
//! ```

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use kendall_curve::curvecp::{DomainName, PublicKey};
use serde::Deserialize;

use crate::error::RemoteError;

/// The longest file.
const MAX_BYTES: u64 = 1 << 20;

/// A server, as a client has to know it.
#[derive(Clone, Debug)]
pub struct Host {
    /// The domain name of the server.
    pub name: String,
    /// The host's public key.
    pub key: PublicKey,
    /// A host or an IP address, and a port.
    pub address: String,
    /// The directory of the client's key, if the file names one.
    pub key_directory: Option<PathBuf>,
}

/// A file of hosts.
#[derive(Debug)]
pub struct Hosts {
    path: PathBuf,
    hosts: BTreeMap<String, Host>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Table {
    name: String,
    key: String,
    address: String,
    key_directory: Option<PathBuf>,
}

impl Hosts {
    /// Reads a file of hosts. One that does not exist has none.
    ///
    /// # Errors
    /// [`RemoteError::File`], [`RemoteError::HostsFile`].
    pub fn open(path: &Path) -> Result<Self, RemoteError> {
        let failed = || RemoteError::file("read", path);
        let mut text = String::new();
        match File::open(path) {
            Ok(file) => _ = file.take(MAX_BYTES).read_to_string(&mut text).map_err(failed())?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed()(error)),
        }
        let wrong = |reason| RemoteError::HostsFile { path: path.to_owned(), reason };
        let tables: BTreeMap<String, Table> =
            toml::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let host = |(host, table): (String, Table)| {
            let Table { name, key, address, key_directory } = table;
            let key = public_key(&key)
                .ok_or_else(|| wrong(format!("the key of [{host}] is not one of 64 hexadecimal digits")))?;
            DomainName::new(&name).map_err(|error| wrong(format!("the name of [{host}]: {error}")))?;
            Ok((host, Host { name, key, address, key_directory }))
        };
        let hosts = tables.into_iter().map(host).collect::<Result<_, RemoteError>>()?;
        Ok(Self { path: path.to_owned(), hosts })
    }

    /// A host by its name in the file.
    ///
    /// # Errors
    /// [`RemoteError::UnknownHost`].
    pub fn get(&self, host: &str) -> Result<&Host, RemoteError> {
        let unknown = || RemoteError::UnknownHost { host: host.into(), path: self.path.clone() };
        self.hosts.get(host).ok_or_else(unknown)
    }
}

/// A public key of 64 hexadecimal digits.
pub fn public_key(digits: &str) -> Option<PublicKey> {
    if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    let mut key = [0; 32];
    for (byte, pair) in key.iter_mut().zip(digits.as_bytes().chunks(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(PublicKey(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_found_and_a_missing_one_says_what_to_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts.toml");
        assert!(Hosts::open(&path).unwrap().get("backup").is_err());
        let table =
            |key: &str| format!("[backup]\nname = \"a.example\"\nkey = \"{key}\"\naddress = \"[::1]:9\"\n");
        std::fs::write(&path, table(&"0f".repeat(32))).unwrap();
        let hosts = Hosts::open(&path).unwrap();
        assert_eq!(hosts.get("backup").unwrap().key, PublicKey([15; 32]));
        let error = hosts.get("other").unwrap_err().to_string();
        assert!(error.contains("add it to") && error.contains("[other]"), "{error}");
        std::fs::write(&path, table("0f")).unwrap();
        assert!(Hosts::open(&path).unwrap_err().to_string().contains("64 hexadecimal digits"));
        std::fs::write(&path, "[backup]\nkey = 1\n").unwrap();
        assert!(Hosts::open(&path).is_err());
    }
}
