//! A link measured before it is used, from both of its ends.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};

use crate::calibrate::{Calibration, measure, respond};
use crate::emulated::{CLIENT, EmulatedLink, SERVER};
use crate::error::LinkError;
use crate::protocol::LinkSettings;
use crate::relay::Relay;
use kendall_linkmodel::Transport;

impl EmulatedLink {
    /// Lets nothing but a measurement cross a link like this, for some seconds. It must not be started, and is not
    /// afterwards.
    ///
    /// # Errors
    /// Fails where the link does, or where its ends cannot be entered.
    pub fn measure(&mut self, asked: &LinkSettings, seed: u64) -> Result<Calibration, LinkError> {
        let server = self.server().visit(|| socket(SERVER))??;
        let client = self.client().visit(|| socket(CLIENT))??;
        self.start(asked, seed, None)?;
        let found = between(&client, &server, address(&server)?, asked);
        self.stop(None)?;
        found
    }
}

/// Measures a relay of datagrams that is such a link, for some seconds: what the model does and how punctual a relay is
/// here, which holds for streams as well. It listens on the loopback.
///
/// # Errors
/// Fails where a socket does, or where a relay cannot be such a link.
pub fn measure_relay(asked: &LinkSettings, seed: u64) -> Result<Calibration, LinkError> {
    let [server, client] = [socket(Ipv4Addr::LOCALHOST)?, socket(Ipv4Addr::LOCALHOST)?];
    let listen = (Ipv4Addr::LOCALHOST, 0).into();
    let relay = Relay::bind(Transport::UDP, listen, address(&server)?, asked, seed)?;
    let through = relay.address();
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let relaying = scope.spawn(|| relay.run(&done).map(drop));
        let found = between(&client, &server, through, asked);
        done.store(true, Ordering::Relaxed);
        ended(relaying).and(found)
    })
}

/// Measures what is between two sockets, of which the server's is reached at an address.
fn between(
    client: &UdpSocket,
    server: &UdpSocket,
    to: SocketAddr,
    asked: &LinkSettings,
) -> Result<Calibration, LinkError> {
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let answering = scope.spawn(|| respond(server, &done));
        let found = measure(client, to, asked);
        done.store(true, Ordering::Relaxed);
        ended(answering).and(found)
    })
}

fn ended(thread: ScopedJoinHandle<'_, Result<(), LinkError>>) -> Result<(), LinkError> {
    let failed = |_| Err(LinkError::step("measure the link")(io::Error::other("a thread of it failed")));
    thread.join().unwrap_or_else(failed)
}

fn socket(at: Ipv4Addr) -> Result<UdpSocket, LinkError> {
    UdpSocket::bind((at, 0)).map_err(LinkError::step("open a socket to measure the link with"))
}

fn address(socket: &UdpSocket) -> Result<SocketAddr, LinkError> {
    socket.local_addr().map_err(LinkError::step("open a socket to measure the link with"))
}
