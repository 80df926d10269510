//! The source and the destination of a link's packets: one end of a pair of devices, or the file of a TUN device.

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

/// The size of the kernel's receive buffer. A burst of 64 KiB segments must fit.
const BUFFER_BYTES: usize = 8 << 20;

/// One end of the emulated link.
pub(crate) trait Port: Send + Sync {
    /// An empty frame of the kind that this end needs.
    fn frame(&self) -> Frame;
    /// Takes the next packet that has arrived. Returns the instant of its arrival, in ns of the stamp clock, if the kernel
    /// reports it. `None` where no packet has arrived.
    fn receive(&self, frame: &mut Frame) -> io::Result<Option<i64>>;
    /// Sends a packet.
    fn send(&self, frame: &Frame) -> io::Result<()>;
    /// The descriptor that becomes readable when a packet arrives.
    fn file(&self) -> BorrowedFd<'_>;
}

/// A packet socket on one device of a pair (packet(7)). It receives what the other device sends, and the other device receives
/// what it sends.
pub(crate) struct PacketSocket(OwnedFd);

impl PacketSocket {
    /// Opens it on a device of the calling thread's namespace.
    pub(crate) fn on(device: &str) -> io::Result<Self> {
        let missing = || io::Error::from(Errno::ENODEV);
        let address = getifaddrs()?
            .filter(|interface| interface.interface_name == device)
            .find_map(|interface| interface.address?.as_link_addr().copied())
            .ok_or_else(missing)?;
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        let socket = socket(AddressFamily::Packet, SockType::Raw, flags, SockProtocol::EthAll)?;
        // Protocol 0 in this address keeps the protocol of the socket.
        debug_assert_eq!(address.family(), Some(AddressFamily::Packet));
        bind(socket.as_raw_fd(), &address)?;
        setsockopt(&socket, ReceiveTimestampns, &true)?;
        // With root's right beyond the machine's limit, otherwise up to it.
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
        // The kernel stamps by the wall clock; everything else here uses the monotonic clock.
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
