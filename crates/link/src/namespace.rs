//! Network namespaces without names. They vanish with the last process in them and the last file that holds them, so there is
//! nothing to clean up, however this program ends. Root makes them as root; other users first make a user namespace, in which
//! they keep their own user and group.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::sched::{CloneFlags, setns, unshare};
use nix::unistd::{getegid, geteuid};

/// The network namespace that the calling thread is in.
pub(crate) fn current() -> io::Result<File> {
    File::open("/proc/thread-self/ns/net")
}

/// Moves the calling thread into a network namespace.
pub(crate) fn enter(namespace: impl AsFd) -> io::Result<()> {
    Ok(setns(namespace, CloneFlags::CLONE_NEWNET)?)
}

/// Moves this process, which must have a single thread, into a user namespace.
pub(crate) fn enter_user(namespace: impl AsFd) -> io::Result<()> {
    Ok(setns(namespace, CloneFlags::CLONE_NEWUSER)?)
}

/// Calls a function in another network namespace, and moves back.
pub(crate) fn within<T>(namespace: impl AsFd, what: impl FnOnce() -> T) -> io::Result<T> {
    let here = current()?;
    enter(namespace)?;
    let done = what();
    enter(here)?;
    Ok(done)
}

/// The privilege by which the namespaces were made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Privilege {
    /// The privilege of root.
    Root,
    /// The privilege of any user: in a user namespace.
    User,
}

/// Moves this process, which must have a single thread, into a new network namespace, and into a new user namespace where that is
/// necessary.
pub(crate) fn leave() -> io::Result<Privilege> {
    match unshare(CloneFlags::CLONE_NEWNET) {
        Ok(()) => return Ok(Privilege::Root),
        Err(Errno::EPERM) => {}
        Err(error) => return Err(error.into()),
    }
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER)?;
    // A user may only map a group after giving up to change groups (user_namespaces(7)).
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    unshare(CloneFlags::CLONE_NEWNET)?;
    Ok(Privilege::User)
}

/// Moves the calling thread into another new network namespace.
pub(crate) fn leave_again() -> io::Result<()> {
    Ok(unshare(CloneFlags::CLONE_NEWNET)?)
}
