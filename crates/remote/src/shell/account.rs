//! The user that runs a session's programs, from this machine's user database.

use std::ffi::CString;
use std::io;
use std::path::PathBuf;

use nix::unistd::{Gid, Uid, User, getgrouplist};

use crate::shell::error::ShellError;

/// A user of this machine.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) name: String,
    pub(crate) home: PathBuf,
    pub(crate) shell: PathBuf,
    /// The identity to switch to, where the server runs as another user.
    pub(crate) identity: Option<Identity>,
}

/// What makes a process that of a user.
#[derive(Clone, Debug)]
pub(crate) struct Identity {
    pub(crate) user: Uid,
    pub(crate) group: Gid,
    pub(crate) groups: Vec<Gid>,
}

impl Account {
    /// The user of this name; without a name, the user that runs the server.
    ///
    /// # Errors
    /// [`ShellError::NoUser`]; [`ShellError::NotRoot`] where the server cannot become that user; [`ShellError::Users`].
    pub(crate) fn find(name: Option<&str>) -> Result<Self, ShellError> {
        let failed = |error: nix::Error| ShellError::Users(error.into());
        let own = Uid::effective();
        let found = match name {
            Some(name) => User::from_name(name),
            None => User::from_uid(own),
        };
        let missing = || ShellError::NoUser(name.map_or_else(|| own.to_string(), str::to_owned));
        let user = found.map_err(failed)?.ok_or_else(missing)?;
        let identity = match () {
            () if user.uid == own => None,
            () if !own.is_root() => return Err(ShellError::NotRoot(user.name)),
            () => {
                let name =
                    CString::new(user.name.as_str()).map_err(io::Error::from).map_err(ShellError::Users)?;
                let groups = getgrouplist(&name, user.gid).map_err(failed)?;
                Some(Identity { user: user.uid, group: user.gid, groups })
            }
        };
        let shell = if user.shell.as_os_str().is_empty() { "/bin/sh".into() } else { user.shell };
        Ok(Self { name: user.name, home: user.dir, shell, identity })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_own_user_needs_no_change_and_a_missing_user_is_named() {
        let own = Account::find(None).unwrap();
        assert!(own.identity.is_none() && own.shell.is_absolute());
        assert!(Account::find(Some(&own.name)).unwrap().identity.is_none());
        let error = Account::find(Some("no-such-user")).unwrap_err().to_string();
        assert!(error.contains("no user no-such-user"), "{error}");
    }
}
