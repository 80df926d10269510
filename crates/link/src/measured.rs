//! Measures a link from both of its ends before it is used.

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
    /// Starts a link with these settings, measures it for some seconds, and stops it. The link must not be started before.
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

/// Measures a relay of datagrams with these settings for some seconds. The result includes how punctual a relay is here, which
/// holds for streams as well. The relay listens on the loopback.
///
/// # Errors
/// Fails where a socket does, or where a relay does not support these settings.
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

/// Measures the path between two sockets, of which the server's has this address.
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
