//! Receives datagrams with the instant at which the kernel got them: the time that a busy machine then takes to wake the receiver
//! is not a property of the link.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};
use std::os::fd::AsRawFd;

use kendall_record::clock::now_ns;
use nix::cmsg_space;
use nix::libc::timespec;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce, ReceiveTimestampns};
use nix::sys::socket::{ControlMessageOwned, MsgFlags, SockaddrStorage, recvmsg, setsockopt};
use nix::time::{ClockId, clock_gettime};

/// The receive buffer for bursts, in bytes.
const ROOM_BYTES: usize = 8 << 20;

/// Gives a socket a large buffer and timestamps.
pub(crate) fn prepare(socket: &UdpSocket) -> io::Result<()> {
    // Where a larger buffer is denied, a small one loses packets, which the measurement then shows.
    if setsockopt(socket, RcvBufForce, &ROOM_BYTES).is_err() {
        setsockopt(socket, RcvBuf, &ROOM_BYTES)?;
    }
    Ok(setsockopt(socket, ReceiveTimestampns, &true)?)
}

/// Waits for a datagram for as long as the socket's time-out. Returns its length, its sender, and its arrival, in ns of
/// [`now_ns`].
pub(crate) fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr, i64)> {
    let mut room = cmsg_space!(timespec);
    let mut parts = [IoSliceMut::new(buffer)];
    let flags = MsgFlags::empty();
    let message = recvmsg::<SockaddrStorage>(socket.as_raw_fd(), &mut parts, Some(&mut room), flags)?;
    let stamp = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(stamp) => Some(stamp.tv_sec() * 1_000_000_000 + stamp.tv_nsec()),
        _ => None,
    });
    let from = message.address.and_then(|address| {
        let v4 = address.as_sockaddr_in().map(|address| SocketAddr::V4(SocketAddrV4::from(*address)));
        v4.or_else(|| address.as_sockaddr_in6().map(|address| SocketAddr::V6(SocketAddrV6::from(*address))))
    });
    let from = from.ok_or(io::ErrorKind::InvalidData)?;
    // The kernel stamps by the wall clock; everything else here uses the monotonic clock.
    let now = now_ns();
    let wall = clock_gettime(ClockId::CLOCK_REALTIME)?;
    let age_ns = stamp.map_or(0, |stamp| wall.tv_sec() * 1_000_000_000 + wall.tv_nsec() - stamp);
    Ok((message.bytes, from, now - age_ns.max(0)))
}
