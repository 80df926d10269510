//! Waits for the end of processes and for other descriptors at once.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::Child;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use crate::error::LinkError;

/// A descriptor that becomes readable when a child ends.
pub(crate) fn end_of(child: &Child) -> Result<OwnedFd, LinkError> {
    pidfd_open(Pid::from_child(child), PidfdFlags::empty())
        .map_err(|error| LinkError::step("watch a process")(error.into()))
}

/// Waits until one of the descriptors is readable, and returns the index of the first; `None` when the time is over.
pub(crate) fn wait(descriptors: &[BorrowedFd<'_>], limit: Option<Duration>) -> io::Result<Option<usize>> {
    let begun = Instant::now();
    loop {
        let mut polled: Vec<PollFd<'_>> =
            descriptors.iter().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let left = limit.map(|limit| limit.saturating_sub(begun.elapsed()));
        // A time that the system cannot represent counts as no limit.
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut polled, left.as_ref()) {
            Ok(0) => return Ok(None),
            Ok(_) => return Ok(polled.iter().position(|fd| !fd.revents().is_empty())),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}
