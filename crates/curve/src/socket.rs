//! A UDP socket that moves many datagrams in one system call: segmented sends (UDP_SEGMENT), coalesced receives (UDP_GRO)
//! of several messages at once (recvmmsg), by `quinn-udp`, which falls back to plain calls where the kernel has none.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket as StdSocket};
use std::os::fd::OwnedFd;

use curvecp::{Transmit, TransmitBuffer};
use quinn_udp::{RecvMeta, UdpSocketState};
use rustix::io::Errno;
use rustix::net::sockopt::{set_ipv6_v6only, set_socket_reuseport};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::filter::program;
use crate::flood::Thinning;

/// Messages taken in one system call.
const MESSAGES: usize = 32;
/// The number of messages where the kernel coalesces datagrams: more would not fit into the caches of a processor.
const COALESCED_MESSAGES: usize = 2;
/// The longest message: coalesced datagrams, or one of IPv4.
const MESSAGE_BYTES: usize = 1 << 16;
/// The kernel's buffers, as far as it grants them: a burst of a fast sender must fit until this process runs again.
const KERNEL_BUFFER: usize = 4 << 20;

/// A socket for one endpoint.
#[derive(Debug)]
pub(crate) struct Socket {
    io: UdpSocket,
    state: UdpSocketState,
}

/// Datagrams that were received together.
pub(crate) struct Inbox {
    bytes: Box<[u8]>,
    about: [RecvMeta; MESSAGES],
    filled: usize,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        // Memory is taken only for what arrives.
        let bytes = vec![0; MESSAGES * MESSAGE_BYTES].into();
        Self { bytes, about: [RecvMeta::default(); MESSAGES], filled: 0 }
    }

    /// The messages: where from, the bytes of each datagram, and the datagrams one after another.
    pub(crate) fn messages(&mut self) -> impl Iterator<Item = (SocketAddr, usize, &mut [u8])> {
        let about = self.about[..self.filled].iter();
        about.zip(self.bytes.chunks_mut(MESSAGE_BYTES)).map(|(about, bytes)| {
            let length = about.len.min(bytes.len());
            (about.addr, about.stride, &mut bytes[..length])
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.filled == 0
    }
}

impl Socket {
    /// A separate socket, bound within a tokio runtime.
    pub(crate) fn bind(address: SocketAddr) -> io::Result<Self> {
        Self::new(bind_alone(address)?)
    }

    /// A socket that shares its address with others bound so, among which the kernel distributes clients by their address;
    /// within a tokio runtime.
    pub(crate) fn bind_shared(address: SocketAddr) -> io::Result<Self> {
        let socket = open(address)?;
        set_socket_reuseport(&socket, true)?;
        rustix::net::bind(&socket, &address)?;
        Self::new(socket.into())
    }

    /// Takes over a socket; within a tokio runtime.
    pub(crate) fn new(socket: StdSocket) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        for set in [UdpSocketState::set_send_buffer_size, UdpSocketState::set_recv_buffer_size] {
            // The system's default does as well, slower.
            _ = set(&state, (&socket).into(), KERNEL_BUFFER);
        }
        socket.set_nonblocking(true)?;
        Ok(Self { io: UdpSocket::from_std(socket)?, state })
    }

    /// Has the kernel drop packets without a connection, or no longer.
    ///
    /// # Errors
    /// Where the kernel refuses programs, as some sandboxes make it.
    pub(crate) fn thin_out(&self, thinning: &Thinning) -> io::Result<()> {
        let socket = SockRef::from(&self.io);
        // Some kernels have memory for one program only, not for another in its place. There may be none to detach.
        _ = socket.detach_filter();
        if thinning.is_none() { Ok(()) } else { socket.attach_filter(&program(thinning)) }
    }

    pub(crate) fn address(&self) -> io::Result<SocketAddr> {
        self.io.local_addr()
    }

    /// Waits for datagrams.
    pub(crate) async fn readable(&self) -> io::Result<()> {
        self.io.readable().await
    }

    /// Takes what has arrived, perhaps nothing, in place of what the inbox held.
    ///
    /// # Errors
    /// Where the socket is unusable. Errors that others can cause by ICMP are ignored: forged packets change nothing.
    pub(crate) fn receive(&self, inbox: &mut Inbox) -> io::Result<()> {
        let coalesced = inbox.messages().any(|(_, datagram, datagrams)| datagram < datagrams.len());
        let most = if coalesced { COALESCED_MESSAGES } else { MESSAGES };
        inbox.filled = 0;
        let mut chunks = inbox.bytes.chunks_mut(MESSAGE_BYTES).map(IoSliceMut::new);
        let mut into: [IoSliceMut<'_>; MESSAGES] =
            std::array::from_fn(|_| chunks.next().expect("the inbox has this many messages"));
        let received = self.io.try_io(Interest::READABLE, || {
            self.state.recv((&self.io).into(), &mut into[..most], &mut inbox.about)
        });
        match received {
            Ok(filled) => inbox.filled = filled,
            Err(error) if is_harmless(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Sends one datagram. If it cannot be sent, it is lost, as on any link.
    pub(crate) async fn send_one(&self, to: SocketAddr, datagram: &[u8]) {
        _ = self.io.send_to(datagram, to).await;
    }

    /// Sends all that the buffer holds. What cannot be sent is lost, as on any link.
    pub(crate) async fn send(&self, buffer: &TransmitBuffer) {
        for Transmit { destination, segment, bytes } in buffer.transmits() {
            let mut rest = bytes;
            while !rest.is_empty() {
                // The limit falls to 1 where the system refuses segmented sends.
                let most = segment * self.state.max_gso_segments().max(1);
                let (contents, behind) = rest.split_at(rest.len().min(most));
                let transmit = quinn_udp::Transmit {
                    destination,
                    ecn: None,
                    contents,
                    segment_size: (contents.len() > segment).then_some(segment),
                    src_ip: None,
                };
                let sent =
                    self.io.async_io(Interest::WRITABLE, || self.state.send((&self.io).into(), &transmit));
                if sent.await.is_err() {
                    return;
                }
                rest = behind;
            }
        }
    }
}

/// A socket that shares its address with no other.
pub(crate) fn bind_alone(address: SocketAddr) -> io::Result<StdSocket> {
    let socket = open(address)?;
    rustix::net::bind(&socket, &address)?;
    Ok(socket.into())
}

/// A socket of the address's family. A socket of IPv6 also reaches addresses of IPv4 if it is bound to the unspecified address, whatever the
/// system's default is (net.ipv6.bindv6only).
fn open(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    if address.is_ipv6() {
        set_ipv6_v6only(&socket, false)?;
    }
    Ok(socket)
}

/// Whether a receive may be tried again: nothing was there, or the kernel reports a message of ICMP, which anyone can forge. It
/// does so to connected sockets, as one may be that was handed over.
fn is_harmless(error: &io::Error) -> bool {
    let is_icmp = |errno| {
        matches!(
            errno,
            Errno::ACCESS
                | Errno::CONNREFUSED
                | Errno::CONNRESET
                | Errno::HOSTDOWN
                | Errno::HOSTUNREACH
                | Errno::MSGSIZE
                | Errno::NETUNREACH
                | Errno::NONET
                | Errno::NOPROTOOPT
                | Errno::OPNOTSUPP
                | Errno::PROTO
        )
    };
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
        || Errno::from_io_error(error).is_some_and(is_icmp)
}

#[cfg(test)]
mod icmp;
#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::sockopt::ipv6_v6only;
    use std::net::Ipv6Addr;

    #[tokio::test]
    async fn a_socket_that_is_bound_to_all_addresses_is_of_both_families() {
        let all = (Ipv6Addr::UNSPECIFIED, 0).into();
        for socket in [Socket::bind(all).unwrap(), Socket::bind_shared(all).unwrap()] {
            // Whatever the system's default is.
            assert!(!ipv6_v6only(&socket.io).unwrap());
            let port = socket.address().unwrap().port();
            StdSocket::bind("127.0.0.1:0").unwrap().send_to(b"packet", ("127.0.0.1", port)).unwrap();
            socket.readable().await.unwrap();
            let mut inbox = Inbox::new();
            socket.receive(&mut inbox).unwrap();
            let from: Vec<_> = inbox.messages().map(|(from, ..)| from.ip().to_canonical()).collect();
            assert_eq!(from, ["127.0.0.1".parse::<std::net::IpAddr>().unwrap()]);
        }
    }
}
