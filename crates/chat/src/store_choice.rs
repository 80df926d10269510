//! Which store a server's settings choose, and where accounts are kept if they name none: in the user's folder for data, or, for
//! a trial of the laboratory, in a folder that ends with the server.

use std::env;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kendall_accounts::{Settings as StoreSettings, StoreUrl};
use kendall_system::Settings;
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::password::server::Passwords;
use crate::server::ChatError;
use crate::server::durable::Durable;
use crate::server::keys;
use crate::server::store::{Memory, Store};

/// The store that ends with the server.
pub(crate) const IN_MEMORY: &str = "memory:";
/// The folder of a server without `--store`, in the user's folder for data.
const FOLDER: &str = "kendall/chat-server";
/// The file of accounts in a folder of the server, and the folder of the keys next to it.
const FILE: &str = "accounts.db";
const KEYS: &str = "keys";

/// The store that the settings choose.
#[derive(Debug, PartialEq, Eq)]
enum StoreChoice {
    /// Until the server ends.
    Memory,
    /// The URL that the settings name.
    Named(String),
    /// SQLite in the user's folder for data.
    OfUser,
    /// SQLite in a folder that ends with the server.
    Temporary,
}

impl StoreChoice {
    fn new(server: &Settings, for_trial: bool) -> Self {
        match server.word("store") {
            Some(IN_MEMORY) => Self::Memory,
            Some(url) => Self::Named(url.to_owned()),
            None if for_trial || server.is_on("throwaway") => Self::Temporary,
            None => Self::OfUser,
        }
    }
}

/// What the server keeps accounts in, and the keys of their passwords.
pub(crate) struct Opened {
    pub(crate) store: Arc<dyn Store>,
    /// The store, if it is a database.
    pub(crate) durable: Option<Arc<Durable>>,
    pub(crate) passwords: Passwords,
    /// The folder of the server's keys, where they outlive it.
    pub(crate) keys: Option<PathBuf>,
    /// The folder of a temporary store, which is removed when this is dropped.
    pub(crate) temporary: Option<TempDir>,
}

/// Opens the store of a server's settings. A server for a trial never opens the user's own.
///
/// # Errors
/// Fails where the store or its keys cannot be opened, and where a store that is named has no keys.
pub(crate) fn open(server: &Settings, for_trial: bool, runtime: &Runtime) -> Result<Opened, ChatError> {
    let named_keys = server.word("keys").map(PathBuf::from);
    let (url, keys, temporary) = match StoreChoice::new(server, for_trial) {
        StoreChoice::Memory => {
            let store = Arc::new(Memory::default());
            let passwords = Passwords::new();
            return Ok(Opened { store, durable: None, passwords, keys: named_keys, temporary: None });
        }
        StoreChoice::Named(url) => (url, named_keys, None),
        StoreChoice::OfUser => {
            let folder = user_folder(|name| env::var_os(name).map(PathBuf::from))?;
            create_private(&folder)?;
            tracing::info!("accounts and keys are kept in {}", folder.display());
            (in_folder(&folder), Some(named_keys.unwrap_or_else(|| folder.join(KEYS))), None)
        }
        StoreChoice::Temporary => {
            let parent = temporary_parent();
            let made = tempfile::Builder::new().prefix("kendall-chat-").tempdir_in(&parent);
            let folder = made.map_err(|source| ChatError::Folder { path: parent, source })?;
            (in_folder(folder.path()), named_keys, Some(folder))
        }
    };
    let keys_end_too = server.is_on("throwaway") || (temporary.is_some() && keys.is_none());
    if keys.is_none() && !keys_end_too {
        return Err(ChatError::NoKeys);
    }
    let settings = StoreSettings { group_commit: server.is_on("group-commit"), ..StoreSettings::default() };
    let store = runtime
        .block_on(Durable::open_with(&url, settings))
        .map_err(|error| ChatError::Store(error.to_string()))?;
    let passwords = match keys.as_deref().filter(|_| !keys_end_too) {
        None => Passwords::new(),
        Some(folder) => {
            let accounts = runtime.block_on(store.count());
            keys::passwords(folder, accounts.map_err(|error| ChatError::Store(error.to_string()))?)?
        }
    };
    let durable = Arc::new(store);
    let store = Arc::clone(&durable) as Arc<dyn Store>;
    Ok(Opened { store, durable: Some(durable), passwords, keys, temporary })
}

/// The database of a trial's server, where it has one: whose disk the machine's limits are measured on.
pub(crate) fn url_of_trial(server: &Settings) -> Option<StoreUrl> {
    match StoreChoice::new(server, true) {
        StoreChoice::Memory | StoreChoice::OfUser => None,
        StoreChoice::Named(url) => url.parse().ok(),
        StoreChoice::Temporary => in_folder(&temporary_parent()).parse().ok(),
    }
}

fn in_folder(folder: &Path) -> String {
    format!("sqlite:{}", folder.join(FILE).display())
}

/// Where the server's folder is by the XDG Base Directory Specification.
fn user_folder(variable: impl Fn(&str) -> Option<PathBuf>) -> Result<PathBuf, ChatError> {
    let absolute = |name: &str| variable(name).filter(|path| path.is_absolute());
    let home = || absolute("HOME").map(|home| home.join(".local/share"));
    let data = absolute("XDG_DATA_HOME").or_else(home).ok_or(ChatError::NoFolder)?;
    Ok(data.join(FOLDER))
}

/// `TMPDIR`, otherwise the folder for temporary files that is on a disk: `/tmp` is memory on many machines, where a flush costs
/// nothing.
fn temporary_parent() -> PathBuf {
    env::var_os("TMPDIR").filter(|it| !it.is_empty()).map_or_else(|| "/var/tmp".into(), PathBuf::from)
}

fn create_private(folder: &Path) -> Result<(), ChatError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|source| ChatError::Folder { path: folder.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use kendall_system::Value;

    use super::*;

    fn settings(set: &[(&'static str, &str)]) -> Settings {
        let mut settings = Settings::default();
        set.iter().for_each(|(name, value)| settings.set(name, Value::Word((*value).to_owned())));
        settings
    }

    fn choice(set: &[(&'static str, &str)], for_trial: bool) -> StoreChoice {
        StoreChoice::new(&settings(set), for_trial)
    }

    #[test]
    fn only_a_server_of_the_user_opens_the_users_store() {
        assert_eq!(choice(&[], false), StoreChoice::OfUser);
        assert_eq!(choice(&[], true), StoreChoice::Temporary);
        for for_trial in [true, false] {
            assert_eq!(choice(&[("throwaway", "on")], for_trial), StoreChoice::Temporary);
            assert_eq!(choice(&[("store", "memory:")], for_trial), StoreChoice::Memory);
            let named = [("store", "sqlite:a.db"), ("throwaway", "on")];
            assert_eq!(choice(&named, for_trial), StoreChoice::Named("sqlite:a.db".to_owned()));
        }
    }

    #[test]
    fn the_users_folder_is_that_for_data() {
        let folder = |set: &[(&str, &str)]| {
            let value = |name: &str| set.iter().find(|(key, _)| *key == name).map(|(_, path)| path.into());
            user_folder(value).map_err(|error| error.to_string())
        };
        let of_home = folder(&[("HOME", "/home/ann")]);
        assert_eq!(of_home, Ok("/home/ann/.local/share/kendall/chat-server".into()));
        let of_both = folder(&[("HOME", "/home/ann"), ("XDG_DATA_HOME", "/data")]);
        assert_eq!(of_both, Ok("/data/kendall/chat-server".into()));
        // The specification ignores relative paths.
        assert_eq!(folder(&[("HOME", "/home/ann"), ("XDG_DATA_HOME", "data")]), of_home);
        assert!(folder(&[]).unwrap_err().contains("--store"));
    }

    #[test]
    fn the_disk_of_a_trial_is_that_of_its_store() {
        let folder = |set: &[(&'static str, &str)]| {
            url_of_trial(&settings(set)).and_then(|url| url.folder().map(Path::to_owned))
        };
        assert_eq!(folder(&[]), Some(temporary_parent()));
        assert_eq!(folder(&[("store", "sqlite:/data/a.db")]), Some("/data".into()));
        assert_eq!(folder(&[("store", "memory:")]), None);
    }
}
