//! The list of contacts, a file of the profile.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;
use kendall_chatcli::replace;
use serde::{Deserialize, Serialize};

/// The longest file of contacts.
const MOST_BYTES: u64 = 16_000_000;

/// The list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Contacts {
    /// The names of all contacts.
    pub(crate) names: Vec<String>,
    /// The contacts whose calls are refused.
    pub(crate) blocked: Vec<String>,
}

impl Contacts {
    /// The list of names, with whether each is blocked.
    pub(crate) fn of<'a>(contacts: impl Iterator<Item = (&'a str, bool)>) -> Self {
        let mut list = Self::default();
        for (name, is_blocked) in contacts {
            list.names.push(name.to_owned());
            if is_blocked {
                list.blocked.push(name.to_owned());
            }
        }
        list
    }

    /// Reads the list of a profile; empty where the file does not exist yet.
    pub(crate) fn read(profile: &Path) -> anyhow::Result<Self> {
        let path = file(profile);
        match kendall_files::read_text(&path, MOST_BYTES) {
            Ok(text) => toml::from_str(&text).with_context(|| format!("{} is not valid", path.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
    }

    pub(crate) fn save(&self, profile: &Path) -> anyhow::Result<()> {
        replace(&file(profile), toml::to_string(self)?)
    }
}

fn file(profile: &Path) -> PathBuf {
    profile.join("contacts.toml")
}
