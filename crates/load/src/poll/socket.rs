//! The generator's sockets: non-blocking, with the kernel's timestamps of received packets.

use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use kendall_linkmodel::{Carries, Transport};
use kendall_record::clock::now_ns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, Protocol, RawProtocol, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType,
    connect, getsockname, recv, send, sendmsg, socket_with, sockopt as options,
};
use rustix::time::{ClockId, Timespec, clock_gettime};

use crate::summary::StampedBy;

/// A connected socket, or one that is being connected.
pub(crate) struct Socket {
    fd: OwnedFd,
    stamped_by: StampedBy,
}

impl Socket {
    /// Begins to connect. A refusal may only show when the socket is used.
    pub(crate) fn connect(to: &SocketAddr, transport: Transport, stamped_by: StampedBy) -> io::Result<Self> {
        let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
        let kind = match transport.carries {
            Carries::Streams => SocketType::STREAM,
            Carries::Datagrams => SocketType::DGRAM,
        };
        let protocol = RawProtocol::new(transport.protocol.into()).map(Protocol::from_raw);
        let fd = socket_with(family, kind, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC, protocol)?;
        if kind == SocketType::STREAM {
            // A request is one write and must not be delayed to be combined.
            options::set_tcp_nodelay(&fd, true)?;
        }
        if stamped_by == StampedBy::Kernel {
            setsockopt(&fd, sockopt::ReceiveTimestampns, &true)?;
        }
        match connect(&fd, to) {
            Ok(()) | Err(Errno::INPROGRESS) => Ok(Self { fd, stamped_by }),
            Err(error) => Err(error.into()),
        }
    }

    /// The port at this end.
    pub(crate) fn port(&self) -> io::Result<u16> {
        Ok(SocketAddr::try_from(getsockname(&self.fd)?).map_or(0, |address| address.port()))
    }

    /// Passes bytes to the kernel.
    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(send(&self.fd, bytes, SendFlags::NOSIGNAL)?)
    }

    /// Passes bytes of several buffers to the kernel, one after the other.
    pub(crate) fn send_parts<const N: usize>(&self, parts: [&[u8]; N]) -> io::Result<usize> {
        let parts = parts.map(IoSlice::new);
        Ok(sendmsg(&self.fd, &parts, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)?)
    }

    /// Reads the available bytes: their number, and when they arrived.
    pub(crate) fn receive(&self, inbox: &mut Inbox) -> io::Result<(usize, i64)> {
        let Inbox { buffer, control, clock } = inbox;
        self.receive_into(buffer, control, clock)
    }

    fn receive_into(
        &self,
        buffer: &mut [u8],
        control: &mut [u8],
        clock: &KernelClock,
    ) -> io::Result<(usize, i64)> {
        if self.stamped_by == StampedBy::Generator {
            let (read, _) = recv(&self.fd, buffer, RecvFlags::empty())?;
            return Ok((read, now_ns()));
        }
        let mut parts = [IoSliceMut::new(buffer)];
        let message = recvmsg::<()>(self.fd.as_raw_fd(), &mut parts, Some(control), MsgFlags::empty())
            .map_err(io::Error::from)?;
        let mut stamps = message.cmsgs().map_err(io::Error::from)?.filter_map(|one| match one {
            ControlMessageOwned::ScmTimestampns(at) => Some(clock.at_ns(at)),
            _ => None,
        });
        // There is no timestamp at the end of a stream, or for the first packets after timestamping was switched
        // on.
        let at_ns = stamps.next().unwrap_or_else(now_ns);
        Ok((message.bytes, at_ns))
    }

    /// Closes it with a reset, so that the server knows at once that no request waits for its answer any more.
    pub(crate) fn reset(self) {
        let _ = options::set_socket_linger(&self.fd, Some(Duration::ZERO));
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A socket for rustls; it records when the last read bytes had arrived.
pub(crate) struct Stamped<'a> {
    pub(crate) socket: &'a Socket,
    pub(crate) inbox: &'a mut Inbox,
    pub(crate) at_ns: i64,
}

impl Read for Stamped<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let Inbox { control, clock, .. } = self.inbox;
        let (read, at_ns) = self.socket.receive_into(buffer, control, clock)?;
        self.at_ns = at_ns;
        Ok(read)
    }
}

impl Write for &Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.send(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A buffer for reads, shared by all sockets.
pub(crate) struct Inbox {
    pub(crate) buffer: Vec<u8>,
    control: Vec<u8>,
    pub(crate) clock: KernelClock,
}

impl Inbox {
    /// Holds more than the largest datagram, and than most answers.
    const BYTES: usize = 64 * 1024;

    pub(crate) fn new() -> Self {
        Self { buffer: vec![0; Self::BYTES], control: nix::cmsg_space!(TimeSpec), clock: KernelClock::read() }
    }
}

/// The offset of the clock of the kernel's timestamps, CLOCK_REALTIME, from that of all our stamps,
/// CLOCK_MONOTONIC. Setting the time changes it, so it is read often.
pub(crate) struct KernelClock {
    ahead_ns: i64,
}

impl KernelClock {
    /// Uses the reading of three during which the least time passed.
    pub(crate) fn read() -> Self {
        let reading = |_| {
            let before = now_ns();
            let real = nanoseconds(clock_gettime(ClockId::Realtime));
            let after = now_ns();
            (after - before, real - (before + (after - before) / 2))
        };
        let (_, ahead_ns) = (0..3).map(reading).min().expect("there are three");
        Self { ahead_ns }
    }

    fn at_ns(&self, stamp: TimeSpec) -> i64 {
        stamp.tv_sec() * 1_000_000_000 + stamp.tv_nsec() - self.ahead_ns
    }
}

fn nanoseconds(time: Timespec) -> i64 {
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

/// Held during a run, so that the kernel does not switch its timestamping on and off with each connection, which
/// interrupts every core.
pub(crate) fn keep_stamping() -> Option<OwnedFd> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let fd = socket_with(AddressFamily::INET, SocketType::DGRAM, flags, None).ok()?;
    setsockopt(&fd, sockopt::ReceiveTimestampns, &true).ok()?;
    Some(fd)
}
