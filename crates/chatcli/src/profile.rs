//! A profile: a folder with the user's name, the server, the user's key and the keys of peers. Only its owner can read it.

use std::env;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use kendall_chat::name::{Name, NameError};
use kendall_curve::KeyDirectory;
use serde::{Deserialize, Serialize};

use crate::files::replace;
use crate::known::KnownPeers;

/// The longest file of an account.
const MOST_ACCOUNT_BYTES: u64 = 64 * 1024;

/// The folder of a profile.
pub struct Profile {
    folder: PathBuf,
    name: String,
}

/// The account of the user at a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// The user's name.
    pub name: String,
    /// The server's address.
    pub server: String,
    /// The SHA-256 of the server's certificate in hexadecimal digits; without it, connections are plain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

/// A name as the directory writes it, however it is typed.
pub(crate) fn enforced(typed: &str) -> Result<String, NameError> {
    Ok(Name::new(typed)?.shown().to_owned())
}

impl Profile {
    /// The profile of a name, in the folder that the XDG Base Directory Specification has for data.
    ///
    /// # Errors
    /// Fails where the name is not a plain word, and where neither XDG_DATA_HOME nor HOME is set.
    pub fn named(name: &str) -> anyhow::Result<Self> {
        let is_plain = !name.is_empty() && name.chars().all(|it| it.is_alphanumeric() || "-_".contains(it));
        ensure!(is_plain, "the profile \"{name}\" must be a word of letters, digits, - and _");
        let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let home = || set("HOME").map(|home| home.join(".local/share"));
        let data = set("XDG_DATA_HOME").or_else(home).context("neither XDG_DATA_HOME nor HOME is set")?;
        Ok(Self { folder: data.join("kendall/chat").join(name), name: name.to_owned() })
    }

    /// The account of an existing profile.
    ///
    /// # Errors
    /// Fails where the profile has no account, and where its file is not valid.
    pub fn account(&self) -> anyhow::Result<Account> {
        let path = self.folder.join("account.toml");
        match kendall_files::read_text(&path, MOST_ACCOUNT_BYTES) {
            Ok(text) => toml::from_str(&text).with_context(|| format!("{} is not valid", path.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => bail!(
                "the profile {} has no account yet: make one with `kendall chat register NAME --server ADDR`, or use one that \
                 exists with `kendall chat login NAME --server ADDR`",
                self.name
            ),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    /// Whether the profile has an account. A file that is damaged is an account's, too.
    pub fn has_account(&self) -> bool {
        self.folder.join("account.toml").exists()
    }

    /// Fails where the profile has an account.
    pub(crate) fn check_unused(&self) -> anyhow::Result<()> {
        if !self.has_account() {
            return Ok(());
        }
        let Account { name, server, .. } = self.account()?;
        bail!("the profile {} is that of {name} at {server}: choose another with --profile", self.name)
    }

    /// Writes the account, and makes the user a key.
    pub(crate) fn create(&self, account: &Account) -> anyhow::Result<()> {
        let cannot = || format!("cannot create {}", self.folder.display());
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).with_context(cannot)?;
        let key = self.folder.join("key");
        if !key.exists() {
            KeyDirectory::create(&key)?;
        }
        replace(&self.folder.join("account.toml"), toml::to_string(account)?)
    }

    /// Removes the account, and keeps the key and what is known of peers.
    pub(crate) fn remove_account(&self) -> anyhow::Result<()> {
        let path = self.folder.join("account.toml");
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))
    }

    /// The folder of the profile.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The user's key.
    ///
    /// # Errors
    /// Fails where it cannot be read.
    pub fn key(&self) -> anyhow::Result<KeyDirectory> {
        Ok(KeyDirectory::open(&self.folder.join("key"))?)
    }

    /// The keys of peers.
    ///
    /// # Errors
    /// As [`KnownPeers::open`].
    pub fn known_peers(&self) -> anyhow::Result<KnownPeers> {
        KnownPeers::open(&self.folder.join("known-peers"))
    }
}
