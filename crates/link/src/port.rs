//! Where the packets of a link come from and go to: one end of a pair of devices, or the file behind a TUN device.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use nix::cmsg_space;
use nix::errno::Errno;
use nix::ifaddrs::getifaddrs;
use nix::libc::timespec;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce, ReceiveTimestampns, SndBuf, SndBufForce};
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrLike, bind,
    recvmsg, send, setsockopt, socket,
};
use nix::time::{ClockId, clock_gettime};

use crate::frame::{ETHERNET_BYTES, Frame};

/// What the kernel keeps for us of what we have not read yet. A blast of 64 KiB segments must fit.
const BUFFER_BYTES: usize = 8 << 20;

/// One end of the emulated link.
pub(crate) trait Port: Send + Sync {
    /// An empty frame as this end needs it.
    fn frame(&self) -> Frame;
    /// Takes the next packet that has come, and gives the instant at which it came, if the kernel says: in ns of the
    /// clock of stamps. `None` where none has come.
    fn receive(&self, frame: &mut Frame) -> io::Result<Option<i64>>;
    /// Hands a packet over.
    fn send(&self, frame: &Frame) -> io::Result<()>;
    /// What becomes readable when a packet comes.
    fn file(&self) -> BorrowedFd<'_>;
}

/// A packet socket on one device of a pair (packet(7)): it sees what the other device sends, and what it sends comes in
/// at the other device.
pub(crate) struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// On a device of the calling thread's namespace.
    pub(crate) fn on(device: &str) -> io::Result<Self> {
        let missing = || io::Error::from(Errno::ENODEV);
        let address = getifaddrs()?
            .filter(|interface| interface.interface_name == device)
            .find_map(|interface| interface.address?.as_link_addr().copied())
            .ok_or_else(missing)?;
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll)?;
        // Its protocol in this address is 0, which keeps that of the socket.
        debug_assert_eq!(address.family(), Some(AddressFamily::Packet));
        bind(socket.as_raw_fd(), &address)?;
        setsockopt(&socket, ReceiveTimestampns, &true)?;
        // With the administrator's right beyond the machine's limit, else up to it.
        if setsockopt(&socket, RcvBufForce, &BUFFER_BYTES).is_err() {
            setsockopt(&socket, RcvBuf, &BUFFER_BYTES)?;
        }
        if setsockopt(&socket, SndBufForce, &BUFFER_BYTES).is_err() {
            setsockopt(&socket, SndBuf, &BUFFER_BYTES)?;
        }
        Ok(Self(socket))
    }
}

impl Port for PacketSocket {
    fn frame(&self) -> Frame {
        Frame::empty(ETHERNET_BYTES)
    }

    fn receive(&self, frame: &mut Frame) -> io::Result<Option<i64>> {
        let mut room = cmsg_space!(timespec);
        let mut parts = [IoSliceMut::new(frame.room())];
        let flags = MsgFlags::MSG_DONTWAIT;
        let (length, stamp) = match recvmsg::<()>(self.0.as_raw_fd(), &mut parts, Some(&mut room), flags) {
            Ok(message) => {
                let stamp = message.cmsgs()?.find_map(|control| match control {
                    ControlMessageOwned::ScmTimestampns(stamp) => {
                        Some(stamp.tv_sec() * 1_000_000_000 + stamp.tv_nsec())
                    }
                    _ => None,
                });
                (message.bytes, stamp)
            }
            Err(Errno::EAGAIN | Errno::EINTR) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        frame.filled(length);
        // The kernel stamps by the clock on the wall; all else here goes by the one that never jumps.
        let now_ns = kendall_record::clock::now_ns();
        let wall = clock_gettime(ClockId::CLOCK_REALTIME)?;
        let age_ns = stamp.map_or(0, |stamp| wall.tv_sec() * 1_000_000_000 + wall.tv_nsec() - stamp);
        Ok(Some(now_ns - age_ns.max(0)))
    }

    fn send(&self, frame: &Frame) -> io::Result<()> {
        send(self.0.as_raw_fd(), frame.bytes(), MsgFlags::MSG_DONTWAIT)?;
        Ok(())
    }

    fn file(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
