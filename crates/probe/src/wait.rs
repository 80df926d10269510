//! Waits for the end of a process.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Blocks until a process has ended, `stop` is readable, or the time is over. A process that does not exist counts as ended.
///
/// # Errors
/// Fails where the kernel cannot report the end of a process, as before Linux 5.3.
pub fn wait_for_end(pid: u32, stop: Option<BorrowedFd<'_>>, limit: Option<Duration>) -> io::Result<()> {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return Ok(()) };
    let ends = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(ends) => ends,
        Err(Errno::SRCH) => return Ok(()),
        Err(error) => return Err(error.into()),
    };
    let begun = Instant::now();
    loop {
        let descriptors = [Some(ends.as_fd()), stop];
        let mut polled: Vec<PollFd<'_>> =
            descriptors.iter().flatten().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let left = limit.map(|limit| limit.saturating_sub(begun.elapsed()));
        // A time that the system cannot represent counts as no limit.
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        match poll(&mut polled, left.as_ref()) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::os::unix::net::UnixStream;
    use std::process::{Command, Stdio};

    use super::*;

    /// Each of the three ends the wait; the test hangs where one does not.
    #[test]
    fn an_end_a_stop_and_a_limit_end_the_wait() {
        let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        wait_for_end(child.id(), None, Some(Duration::from_millis(5))).unwrap();
        let (stop, mut stopper) = UnixStream::pair().unwrap();
        stopper.write_all(b"x").unwrap();
        wait_for_end(child.id(), Some(stop.as_fd()), None).unwrap();
        drop(child.stdin.take());
        wait_for_end(child.id(), None, None).unwrap();
        child.wait().unwrap();
        wait_for_end(child.id(), None, None).unwrap();
    }
}
