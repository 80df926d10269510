//! Where clients that were brought together announce themselves, and which forwards their packets where they have no direct way:
//! UDP at the address of the server.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use kendall_talk::relay::{Limits, PeerAnnounced, Relay};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::Receiver;

use super::ChatError;
use super::hall::Hall;

/// Ports that are tried where any will do.
const TRIES: usize = 16;

/// Binds the relay. Where the port is 0 it takes one that is free for TCP, too.
pub(crate) fn bind(
    runtime: &Runtime,
    listen: SocketAddr,
) -> Result<(Relay, Receiver<PeerAnnounced>), ChatError> {
    let mut tries = 0;
    loop {
        tries += 1;
        let bound = runtime.block_on(Relay::bind(listen, Limits::default()));
        let (relay, seen) = bound.map_err(ChatError::MeetingPoint)?;
        let fits = || -> io::Result<()> { TcpListener::bind(relay.address()?).map(drop) };
        if listen.port() != 0 || tries == TRIES || fits().is_ok() {
            return Ok((relay, seen));
        }
    }
}

/// Runs the relay as long as the runtime, and has each client learn where its peer was seen.
pub(crate) fn run(runtime: &Runtime, relay: Relay, mut seen: Receiver<PeerAnnounced>, hall: Arc<Hall>) {
    runtime.spawn(async move {
        if let Err(error) = relay.run().await {
            tracing::error!(%error, "the meeting point has failed: clients find each other only where no translator is between");
        }
    });
    runtime.spawn(async move {
        while let Some(PeerAnnounced { pair, side, address }) = seen.recv().await {
            hall.with(|directory, _| directory.seen(pair, side, address));
        }
    });
}
